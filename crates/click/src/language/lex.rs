//! Words of the Click language, with their places.

use std::sync::Arc;

use crate::error::{MOST_SHOWN, Place};

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// name of an element or a class, keyword, number
    Name(String),
    /// `$name`, without the sign
    Variable(String),
    /// `->`, also with FastClick's context between `~` and `>`
    Arrow,
    /// `=>`
    DoubleArrow,
    /// `::`
    Colons,
    /// `||`
    Bars,
    /// `...`
    Ellipsis,
    /// any other character
    Sign(char),
    /// the file's end
    End,
}

impl Token {
    /// The word as the author wrote it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Variable(name) => format!("${name}"),
            Self::Arrow => "->".into(),
            Self::DoubleArrow => "=>".into(),
            Self::Colons => "::".into(),
            Self::Bars => "||".into(),
            Self::Ellipsis => "...".into(),
            Self::Sign(c) => c.to_string(),
            Self::End => "the file's end".into(),
        }
    }
}

/// A reader of one file; a copy reads on by itself.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    file: Arc<str>,
    line: u32,
    /// where the current line begins
    begin: usize,
}

fn part_of_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'@')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, file: &str) -> Self {
        let mut lexer = Self {
            text,
            at: 0,
            file: file.into(),
            line: 1,
            begin: 0,
        };
        lexer.directives();
        lexer
    }

    fn byte(&self, ahead: usize) -> u8 {
        let byte = self.text.as_bytes().get(self.at + ahead);
        byte.copied().unwrap_or(0)
    }

    fn ended(&self) -> bool {
        self.at >= self.text.len()
    }

    /// The place of the next byte.
    pub(super) fn place(&self) -> Place {
        let bytes = self.text.as_bytes().get(self.begin..).unwrap_or(&[]);
        // No more of a long line is looked at than is shown: a place is made for each word.
        let shown = bytes.iter().take(MOST_SHOWN);
        let mut end = shown.take_while(|b| !matches!(b, b'\n' | b'\r')).count();
        while !self.text.is_char_boundary(self.begin + end) {
            end -= 1;
        }
        let text = self.text.get(self.begin..self.begin + end).unwrap_or("");
        Place {
            file: self.file.clone(),
            line: self.line,
            column: (self.at - self.begin + 1) as u32,
            text: text.into(),
        }
    }

    /// One byte on; after a line's end its directives.
    fn step(&mut self) {
        let newline = self.byte(0) == b'\n' || (self.byte(0) == b'\r' && self.byte(1) != b'\n');
        self.at += 1;
        if newline {
            self.line += 1;
            self.begin = self.at;
            self.directives();
        }
    }

    /// Lines that begin with `#`: `# 12 "FILE"` and `#line 12 "FILE"` rename the next line, others say nothing.
    fn directives(&mut self) {
        while self.byte(0) == b'#' {
            let rest = &self.text[self.at..];
            let length = rest.find('\n').unwrap_or(rest.len());
            let line = rest[1..length].trim().trim_end_matches('\r');
            let line = line.strip_prefix("line").unwrap_or(line).trim_start();
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let number: Option<u32> = line[..digits].parse().ok();
            self.at = (self.at + length + 1).min(self.text.len());
            self.begin = self.at;
            self.line += 1;
            if let Some(number) = number {
                self.line = number;
                let name = line[digits..].trim();
                if let Some(name) = name.strip_prefix('"').and_then(|n| n.split('"').next()) {
                    self.file = name.into();
                }
            }
        }
    }

    /// Skips a comment; whether there was one.
    fn comment(&mut self) -> bool {
        match (self.byte(0), self.byte(1)) {
            (b'/', b'/') => {
                while !self.ended() && self.byte(0) != b'\n' {
                    self.at += 1;
                }
                true
            }
            (b'/', b'*') => {
                self.at += 2;
                while !(self.ended() || self.byte(0) == b'*' && self.byte(1) == b'/') {
                    self.step();
                }
                self.at = (self.at + 2).min(self.text.len());
                true
            }
            _ => false,
        }
    }

    fn blanks(&mut self) {
        while !self.ended() {
            if self.byte(0).is_ascii_whitespace() {
                self.step();
            } else if !self.comment() {
                return;
            }
        }
    }

    /// The next word and its place.
    pub(super) fn next(&mut self) -> (Token, Place) {
        self.blanks();
        let place = self.place();
        let from = self.at;
        if self.ended() {
            return (Token::End, place);
        }
        if part_of_name(self.byte(0)) {
            self.name();
            return (Token::Name(self.text[from..self.at].into()), place);
        }
        let token = match (self.byte(0), self.byte(1), self.byte(2)) {
            (b'$', c, _) if c.is_ascii_alphanumeric() || c == b'_' => {
                self.at += 1;
                while self.byte(0).is_ascii_alphanumeric() || self.byte(0) == b'_' {
                    self.at += 1;
                }
                return (Token::Variable(self.text[from + 1..self.at].into()), place);
            }
            (b'.', b'.', b'.') => (Token::Ellipsis, 3),
            (b'-', b'>', _) => (Token::Arrow, 2),
            (b'=', b'>', _) => (Token::DoubleArrow, 2),
            (b':', b':', _) => (Token::Colons, 2),
            (b'|', b'|', _) => (Token::Bars, 2),
            (b'~', ..) => {
                let context = self.text[from + 1..].bytes();
                let name = context.take_while(|b| part_of_name(*b)).count();
                match self.text.as_bytes().get(from + 1 + name) {
                    Some(b'>') => (Token::Arrow, name + 2),
                    _ => (Token::Sign('~'), 1),
                }
            }
            _ => {
                let sign = self.text[from..].chars().next().unwrap_or(' ');
                (Token::Sign(sign), sign.len_utf8())
            }
        };
        self.at += token.1;
        (token.0, place)
    }

    /// Names may hold `/`, where no comment begins.
    fn name(&mut self) {
        loop {
            let slash = self.byte(0) == b'/' && !matches!(self.byte(1), b'/' | b'*');
            if self.ended() || !(part_of_name(self.byte(0)) || slash) {
                return;
            }
            self.at += 1;
        }
    }

    /// Whether `(` is the next word.
    pub(super) fn at_config(&mut self) -> bool {
        self.blanks();
        self.byte(0) == b'('
    }

    /// The text between `(`, the next byte, and its `)`; comments stay, directives go. None if it does not end.
    pub(super) fn config(&mut self) -> Option<String> {
        self.at += 1;
        let (mut depth, mut out) = (1_usize, String::new());
        let mut from = self.at;
        // Directives are skipped by `step`, so what lies before them is taken when it moves by more than one byte.
        while !self.ended() {
            match (self.byte(0), self.byte(1)) {
                (b')', _) => {
                    depth -= 1;
                    if depth == 0 {
                        out.push_str(&self.text[from..self.at]);
                        self.at += 1;
                        return Some(out);
                    }
                    self.at += 1;
                }
                (b'(', _) => {
                    depth += 1;
                    self.at += 1;
                }
                (quote @ (b'"' | b'\''), _) => {
                    self.at += 1;
                    while !self.ended() && self.byte(0) != quote {
                        if self.byte(0) == b'\\' && quote == b'"' {
                            if self.byte(1) == b'<' {
                                while !self.ended() && self.byte(0) != b'>' {
                                    self.step();
                                }
                                continue;
                            }
                            self.at += 1;
                        }
                        if !self.ended() {
                            self.quoted_step();
                        }
                    }
                    self.at = (self.at + 1).min(self.text.len());
                }
                (b'\\', b'<') => {
                    while !self.ended() && self.byte(0) != b'>' {
                        if !self.comment() {
                            self.step();
                        }
                    }
                }
                (b'/', b'/' | b'*') => {
                    self.comment();
                }
                _ => {
                    let before = self.at;
                    self.step();
                    if self.at > before + 1 {
                        out.push_str(&self.text[from..before + 1]);
                        from = self.at;
                    }
                }
            }
        }
        None
    }

    /// Within quotes a `#` begins no directive.
    fn quoted_step(&mut self) {
        let newline = self.byte(0) == b'\n';
        self.at += 1;
        if newline {
            self.line += 1;
            self.begin = self.at;
        }
    }
}
