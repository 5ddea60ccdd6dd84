//! Element classes: compound ones, their overloads, and their formal parameters.

use super::{Level, Parser, Stop, WRITE, border, used_ports};
use crate::error::Place;
use crate::language::lex::Token;
use crate::language::scope::{Class, Compound, Formal};

impl Parser<'_> {
    pub(super) fn class(&mut self) -> Result<(), Stop> {
        let (token, place) = self.next();
        let Token::Name(name) = token else {
            self.ahead = Some((token, place));
            return self.unexpected("write `elementclass NAME { … }` or `elementclass NAME OTHER`");
        };
        if self.level().names.contains_key(&name) {
            self.wrong(
                &place,
                format!("`{name}` is an element, and cannot be a class too"),
                "give the class another name",
            );
        }
        let class = match self.peek().clone() {
            Token::Sign('{') => {
                self.next();
                self.compound(&name, &place)?
            }
            Token::Name(other) => {
                let (_, place) = self.next();
                self.class_of(&other, &place)
            }
            _ => {
                return self
                    .unexpected("write `elementclass NAME { … }` or `elementclass NAME OTHER`");
            }
        };
        self.level().classes.insert(name, class);
        Ok(())
    }

    /// The class that a name means here.
    pub(in crate::language) fn class_of(&mut self, name: &str, place: &Place) -> Class {
        for level in self.levels.iter().rev() {
            if let Some(class) = level.classes.get(name) {
                return class.clone();
            }
        }
        let used = &mut self.level().used;
        used.entry(name.to_owned()).or_insert_with(|| place.clone());
        Class::Named(name.to_owned())
    }

    /// A compound element behind its `{`, with its overloads; gives the one that is tried first.
    pub(in crate::language) fn compound(
        &mut self,
        name: &str,
        place: &Place,
    ) -> Result<Class, Stop> {
        let before = self
            .levels
            .iter()
            .rev()
            .find_map(|l| l.classes.get(name).cloned());
        let mut made: Vec<usize> = Vec::new();
        let mut extends = None;
        loop {
            if self.take(&Token::Ellipsis) {
                let named = || Class::Named(name.to_owned());
                extends = Some(before.unwrap_or_else(named));
                if !self.take(&Token::Sign('}')) {
                    return self.unexpected("`...` is the last alternative; close with `}`");
                }
                break;
            }
            made.push(self.body(name, place)?);
            if self.take(&Token::Bars) {
                continue;
            }
            if self.take(&Token::Sign('}')) {
                break;
            }
            return self.unexpected("close the compound element with `}`");
        }
        let mut next = extends;
        for number in made.iter().rev() {
            if let Some(compound) = self.compounds.get_mut(*number) {
                compound.next = next;
            }
            next = Some(Class::Compound(*number));
        }
        match next {
            Some(class) => Ok(class),
            None => self.stop(place, "an empty compound element", "write its body"),
        }
    }

    pub(in crate::language) fn deeper(&mut self, place: &Place) -> Result<(), Stop> {
        if self.nesting >= self.limits.nesting {
            let what = format!(
                "more than {} `{{` or `(` within each other",
                self.limits.nesting
            );
            return self.stop(place, what, "give inner compound elements a name");
        }
        self.nesting += 1;
        Ok(())
    }

    pub(super) fn body(&mut self, name: &str, place: &Place) -> Result<usize, Stop> {
        self.deeper(place)?;
        let mut level = Level::default();
        for end in ["input", "output"] {
            level.names.insert(end.into(), level.scope.elements.len());
            level.scope.elements.push(border(end, place));
        }
        level.ends.push((0, 1));
        self.levels.push(level);
        let formals = self.formals();
        if formals.is_ok() {
            self.statements(&[Token::Sign('}'), Token::Bars]);
        }
        self.nesting -= 1;
        let scope = self.levels.pop().unwrap_or_default().scope;
        let ports = used_ports(&scope.connections, 1, 0);
        let number = self.compounds.len();
        self.compounds.push(Compound {
            name: name.to_owned(),
            formals: formals?,
            scope,
            ports,
            next: None,
            depth: self.levels.len(),
            place: place.clone(),
        });
        Ok(number)
    }

    /// `$a, KEYWORD $b, __REST__ $c |`, or nothing.
    pub(super) fn formals(&mut self) -> Result<Vec<(Formal, String)>, Stop> {
        let mut formals: Vec<(Formal, String)> = Vec::new();
        // A body begins like a parameter: with a name. The word behind it tells.
        let begins = match self.peek().clone() {
            Token::Variable(_) | Token::Sign('|') => true,
            Token::Name(_) => matches!(self.lexer.clone().next().0, Token::Variable(_)),
            _ => false,
        };
        if !begins || self.take(&Token::Sign('|')) {
            return Ok(formals);
        }
        loop {
            let (token, place) = self.next();
            let (formal, variable) = match token {
                Token::Variable(name) => (Formal::Positional, name),
                Token::Name(word) if matches!(self.peek(), Token::Variable(_)) => {
                    let (token, _) = self.next();
                    let Token::Variable(name) = token else {
                        return self.unexpected(WRITE);
                    };
                    let formal = match word.as_str() {
                        "__REST__" => Formal::Rest,
                        _ => Formal::Keyword(word),
                    };
                    (formal, name)
                }
                token => {
                    self.ahead = Some((token, place));
                    return self.unexpected("write parameters as `$a, KEYWORD $b |`");
                }
            };
            if formals.iter().any(|(_, n)| *n == variable) {
                self.wrong(
                    &place,
                    format!("parameter `${variable}` multiply defined"),
                    "give each parameter a name of its own",
                );
            }
            if matches!(formals.last(), Some((Formal::Rest, _))) {
                self.wrong(
                    &place,
                    "a parameter behind `__REST__`",
                    "`__REST__` takes all arguments that are left: put it last",
                );
            }
            formals.push((formal, variable));
            if self.take(&Token::Sign('|')) {
                return Ok(formals);
            }
            if !self.take(&Token::Sign(',')) {
                return self.unexpected("write parameters as `$a, KEYWORD $b |`");
            }
        }
    }
}
