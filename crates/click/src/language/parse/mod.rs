//! Statements of the Click language.
//!
//! An element is declared before it is used; a name that is neither declared nor a class becomes a class of which
//! nothing is known, as in Click. After an error the reader goes on at the next statement.

mod class;

use std::collections::{HashMap, HashSet};

use super::Limits;
use super::args;
use super::lex::{Lexer, Token};
use super::scope::{Class, Compound, Connection, Declared, File, Scope};
use crate::error::{Error, Place};

/// Gives path and text of a file that `require(library NAME)` names, or says why not; the first argument is the path of
/// the file with the requirement.
pub type Library<'a> = &'a mut dyn FnMut(&str, &str) -> Result<(String, String), String>;

/// Reads a configuration.
///
/// # Errors
/// All that is wrong in it, in the order of the text, up to [`Limits::errors`].
pub fn parse(
    text: &str,
    file: &str,
    limits: &Limits,
    library: Library<'_>,
) -> Result<File, Vec<Error>> {
    let mut parser = Parser {
        limits,
        library,
        libraries: HashSet::new(),
        errors: Vec::new(),
        compounds: Vec::new(),
        requirements: Vec::new(),
        levels: vec![Level::default()],
        nesting: 0,
        lexer: Lexer::new("", file),
        ahead: None,
    };
    parser.file(text, file);
    let level = parser.levels.pop().unwrap_or_default();
    if parser.errors.is_empty() {
        return Ok(File {
            scope: level.scope,
            compounds: parser.compounds,
            requirements: parser.requirements,
        });
    }
    Err(parser.errors)
}

/// A scope that is being read.
#[derive(Default)]
pub(super) struct Level {
    pub(super) scope: Scope,
    names: HashMap<String, usize>,
    classes: HashMap<String, Class>,
    /// classes that were used without a definition
    used: HashMap<String, Place>,
    /// both ends that bare arrows lead to, by groups within each other
    pub(super) ends: Vec<(usize, usize)>,
}

/// An element of a list in a connection: both ends, and ports on either side.
pub(super) struct Item {
    pub(super) what: What,
    pub(super) inputs: Ports,
    pub(super) outputs: Ports,
    pub(super) place: Place,
}

pub(super) enum What {
    /// elements on the side of inputs, and of outputs
    Element(usize, usize),
    /// a name of which is not yet known what it is
    Name(String),
}

#[derive(Clone, Default)]
pub(super) struct Ports {
    pub(super) given: Vec<usize>,
    /// as many more as the other side has
    pub(super) open: bool,
    /// brackets were written
    pub(super) written: bool,
}

/// The statement is not understood; an error was noted.
pub(super) struct Stop;

pub(super) struct Parser<'a> {
    pub(super) limits: &'a Limits,
    library: Library<'a>,
    libraries: HashSet<String>,
    errors: Vec<Error>,
    compounds: Vec<Compound>,
    requirements: Vec<String>,
    levels: Vec<Level>,
    pub(super) nesting: usize,
    pub(super) lexer: Lexer<'a>,
    pub(super) ahead: Option<(Token, Place)>,
}

pub(super) const WRITE: &str = "write `NAME :: CLASS(ARGUMENTS);` or `A -> B;` (docs/click.md)";
pub(super) const KEYWORDS: [&str; 4] = ["elementclass", "require", "provide", "define"];

impl Parser<'_> {
    /// Reads a file into the outermost scope; a required one is read where the word stands.
    fn file(&mut self, text: &str, name: &str) {
        if text.len() > self.limits.bytes {
            self.errors.push(Error {
                place: None,
                what: format!("{name}: longer than {} bytes", self.limits.bytes),
                help: "give a smaller configuration".into(),
            });
            return;
        }
        let limits = self.limits;
        let mut inner = Parser {
            limits,
            library: &mut *self.library,
            libraries: std::mem::take(&mut self.libraries),
            errors: std::mem::take(&mut self.errors),
            compounds: std::mem::take(&mut self.compounds),
            requirements: std::mem::take(&mut self.requirements),
            levels: std::mem::take(&mut self.levels),
            nesting: self.nesting,
            lexer: Lexer::new(text, name),
            ahead: None,
        };
        inner.statements(&[Token::End]);
        self.libraries = inner.libraries;
        self.errors = inner.errors;
        self.compounds = inner.compounds;
        self.requirements = inner.requirements;
        self.levels = inner.levels;
    }

    pub(super) fn next(&mut self) -> (Token, Place) {
        match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.lexer.next(),
        }
    }

    pub(super) fn peek(&mut self) -> &Token {
        let lexer = &mut self.lexer;
        &self.ahead.get_or_insert_with(|| lexer.next()).0
    }

    pub(super) fn place(&mut self) -> Place {
        self.peek();
        match &self.ahead {
            Some((_, place)) => place.clone(),
            None => self.lexer.place(),
        }
    }

    pub(super) fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.ahead = None;
        }
        found
    }

    pub(super) fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    pub(super) fn wrong(
        &mut self,
        place: &Place,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.errors.len() < self.limits.errors {
            self.errors.push(Error::at(place, what, help));
        }
    }

    fn full(&self) -> bool {
        self.errors.len() >= self.limits.errors
    }

    pub(super) fn stop<T>(
        &mut self,
        place: &Place,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Result<T, Stop> {
        self.wrong(place, what, help);
        Err(Stop)
    }

    pub(super) fn unexpected<T>(&mut self, help: &str) -> Result<T, Stop> {
        let (token, place) = self.next();
        let what = format!("syntax error near `{}`", token.shown());
        self.wrong(&place, what, help);
        // What ends something around is not this statement's.
        self.ahead = Some((token, place));
        Err(Stop)
    }

    /// Statements up to one of the words, which stays.
    pub(super) fn statements(&mut self, ends: &[Token]) {
        while !self.full() {
            let token = self.peek().clone();
            if ends.contains(&token) || token == Token::End {
                return;
            }
            let (before, errors) = (self.place(), self.errors.len());
            if self.statement().is_err() {
                self.recover(ends);
            }
            // Each statement takes a word, or the reader would not come on.
            if self.errors.len() > errors && self.place() == before && !ends.contains(self.peek()) {
                self.next();
            }
        }
    }

    fn recover(&mut self, ends: &[Token]) {
        let mut depth = 0_usize;
        loop {
            let token = self.peek().clone();
            match token {
                Token::End => return,
                _ if depth == 0 && ends.contains(&token) => return,
                Token::Sign(';') if depth == 0 => {
                    self.next();
                    return;
                }
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.next();
        }
    }

    fn statement(&mut self) -> Result<(), Stop> {
        match self.peek().clone() {
            Token::Sign(';') => {
                self.next();
                Ok(())
            }
            Token::Name(word) if KEYWORDS.contains(&word.as_str()) => {
                let (_, place) = self.next();
                match word.as_str() {
                    "elementclass" => self.class(),
                    "define" => self.define(&place),
                    _ => self.require(word == "require", &place),
                }
            }
            _ => self.chain(),
        }
    }

    /// The text in parentheses that must come next.
    fn parenthesised(&mut self, place: &Place, word: &str) -> Result<String, Stop> {
        if self.ahead.is_some() || !self.lexer.at_config() {
            return self.unexpected(&format!("write `{word}(…)`"));
        }
        self.config(place)
    }

    pub(super) fn config(&mut self, place: &Place) -> Result<String, Stop> {
        match self.lexer.config() {
            Some(config) => Ok(config),
            None => self.stop(
                place,
                "its configuration does not end",
                "close the parenthesis `)`, and any quote in it",
            ),
        }
    }

    fn define(&mut self, place: &Place) -> Result<(), Stop> {
        let config = self.parenthesised(place, "define")?;
        for arg in args::split(&config) {
            let (name, value) = args::first_word(&arg);
            let Some(name) = name.strip_prefix('$').filter(|n| is_variable(n)) else {
                self.wrong(
                    place,
                    format!("`{name}` is no variable"),
                    "write `define($NAME VALUE, …)`",
                );
                continue;
            };
            let (name, value) = (name.to_owned(), value.to_owned());
            if self.level().scope.defines.iter().any(|(n, _)| *n == name) {
                self.wrong(
                    place,
                    format!("parameter `${name}` multiply defined"),
                    "define it once in this scope",
                );
                continue;
            }
            self.level().scope.defines.push((name, value));
        }
        Ok(())
    }

    fn require(&mut self, require: bool, place: &Place) -> Result<(), Stop> {
        let config = self.parenthesised(place, "require")?;
        if !require {
            return Ok(());
        }
        for arg in args::split(&config) {
            let (word, rest) = args::first_word(&arg);
            if word != "library" {
                if !arg.is_empty() {
                    self.requirements.push(arg);
                }
                continue;
            }
            let name = args::text(rest);
            if self.levels.len() > 1 {
                self.wrong(
                    place,
                    "a library within a compound element",
                    "require it at the top of the file",
                );
            } else if self.libraries.contains(&name) {
            } else if self.libraries.len() >= self.limits.libraries {
                let what = format!("more than {} libraries", self.limits.libraries);
                self.wrong(place, what, "join some of them");
            } else {
                self.libraries.insert(name.clone());
                match (self.library)(&place.file, &name) {
                    Ok((path, text)) => self.file(&text, &path),
                    Err(why) => self.wrong(
                        place,
                        format!("library `{name}`: {why}"),
                        "name a file that can be read",
                    ),
                }
            }
        }
        Ok(())
    }

    /// Lists of elements with arrows between them.
    fn chain(&mut self) -> Result<(), Stop> {
        let mut last: Option<(Vec<Item>, bool)> = None;
        loop {
            let place = self.place();
            let items = self.list(last.is_none())?;
            if let Some((from, double)) = last.take() {
                self.connect(&from, &items, double, &place);
            }
            match self.peek() {
                Token::Arrow => last = Some((items, false)),
                Token::DoubleArrow => last = Some((items, true)),
                Token::Sign(';') => {
                    self.next();
                    return Ok(());
                }
                Token::Name(_)
                | Token::Bars
                | Token::End
                | Token::Sign('{' | '}' | '[' | '(' | ')') => {
                    return Ok(());
                }
                _ => return self.unexpected("end a statement with `;`"),
            }
            self.next();
        }
    }

    /// Behind `::`: the class of all names of the list so far.
    pub(super) fn declare(&mut self, items: &mut [Item]) -> Result<(), Stop> {
        let (token, place) = self.next();
        let class = match token {
            Token::Name(name) if !KEYWORDS.contains(&name.as_str()) => self.class_of(&name, &place),
            Token::Sign('{') => self.compound("", &place)?,
            token => {
                self.ahead = Some((token, place));
                return self.unexpected("a class belongs behind `::`");
            }
        };
        let config = self.optional_config(&place)?;
        let mut any = false;
        for item in items.iter_mut() {
            if let What::Name(name) = &item.what {
                // `a [1], b :: Class` declares b: ports belong to an element that is there.
                let ported = item.inputs.written || item.outputs.written;
                if ported && self.level().names.contains_key(name) {
                    continue;
                }
                let place = item.place.clone();
                let at = self.add(name, class.clone(), config.clone(), &place)?;
                item.what = What::Element(at, at);
                any = true;
            }
        }
        if !any {
            return self.stop(&place, "a class for what has no name", WRITE);
        }
        Ok(())
    }

    /// An element with a name that is free.
    fn add(
        &mut self,
        name: &str,
        class: Class,
        config: String,
        place: &Place,
    ) -> Result<usize, Stop> {
        let limit = self.limits.elements;
        let level = self.level();
        let at = level.scope.elements.len();
        if at >= limit {
            let what = format!("more than {limit} elements");
            return self.stop(place, what, "split the configuration");
        }
        if let Some(&old) = level.names.get(name) {
            let before = level.scope.elements.get(old).map(|e| e.place.clone());
            let what = format!("redeclaration of element `{name}`");
            self.wrong(place, what, "give it another name");
            if let Some(before) = before {
                let what = format!("element `{name}` previously declared here");
                self.wrong(&before, what, "or give this one another name");
            }
            return Ok(old);
        }
        let is_class = level.used.contains_key(name) || level.classes.contains_key(name);
        level.names.insert(name.to_owned(), at);
        level.scope.elements.push(Declared {
            name: name.to_owned(),
            class,
            config,
            place: place.clone(),
        });
        if is_class {
            self.wrong(
                place,
                format!("class `{name}` used as element name"),
                "declare an element before its first use, and give classes other names",
            );
        }
        Ok(at)
    }

    pub(super) fn anonymous(
        &mut self,
        class: Class,
        word: &str,
        config: String,
        place: &Place,
    ) -> Result<usize, Stop> {
        let inside = self.levels.len() > 1;
        let count = self.level().scope.elements.iter();
        let count = count.filter(|e| !e.name.starts_with(';')).count();
        let number = count + 1 - if inside { 2 } else { 0 };
        let mut name = format!("{word}@{number}");
        while self.level().names.contains_key(&name) {
            name.push('_');
        }
        self.add(&name, class, config, place)
    }

    /// A name without `::` is an element that was declared, or else a class.
    pub(super) fn resolve(&mut self, item: &mut Item) {
        let What::Name(name) = &item.what else {
            return;
        };
        let (name, place) = (name.clone(), item.place.clone());
        let at = match self.level().names.get(&name) {
            Some(at) => *at,
            None => {
                let class = self.class_of(&name, &place);
                self.anonymous(class, &name, String::new(), &place)
                    .unwrap_or_default()
            }
        };
        item.what = What::Element(at, at);
    }
}

impl Item {
    pub(super) fn end(&self, input: bool) -> usize {
        match &self.what {
            What::Element(i, o) => {
                if input {
                    *i
                } else {
                    *o
                }
            }
            What::Name(_) => 0,
        }
    }
}

pub(super) fn border(name: &str, place: &Place) -> Declared {
    Declared {
        name: name.into(),
        class: Class::Border,
        config: String::new(),
        place: place.clone(),
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Inputs of the first element and outputs of the second that connections use, up to the highest.
pub(super) fn used_ports(connections: &[Connection], to: usize, from: usize) -> (usize, usize) {
    let (mut inputs, mut outputs) = (0, 0);
    for c in connections {
        if c.from.0 == from {
            inputs = inputs.max(c.from.1 + 1);
        }
        if c.to.0 == to {
            outputs = outputs.max(c.to.1 + 1);
        }
    }
    (inputs, outputs)
}
