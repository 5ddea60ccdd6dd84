//! Words of a line, and the sums of `$i` inside them.

use super::error::Fault;

/// A word, its place, and whether it was written between quotes.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) column: usize,
    pub(super) quoted: bool,
}

impl Word {
    /// The word as it is, or as it stands in JSON.
    pub(super) fn written(&self, json: bool) -> String {
        if !json || !self.quoted {
            return self.text.clone();
        }
        let mut text = String::from('"');
        for character in self.text.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                other => text.push(other),
            }
        }
        text.push('"');
        text
    }
}

/// How deep parentheses may nest in a sum.
const MAX_DEPTH: u32 = 32;

/// The words of a line up to its comment. `round` is what `$i` stands for.
pub(super) fn words(line: &str, round: Option<u64>) -> Result<Vec<Word>, Fault> {
    let mut scan = Scan {
        rest: line,
        column: 1,
    };
    let mut words = Vec::new();
    loop {
        while scan.peek().is_some_and(char::is_whitespace) {
            scan.take();
        }
        let column = scan.column;
        match scan.peek() {
            None | Some('#') => return Ok(words),
            Some('"') => {
                let text = scan.quoted()?;
                words.push(Word {
                    text,
                    column,
                    quoted: true,
                });
            }
            Some(_) => {
                let mut text = String::new();
                while let Some(next) = scan.peek() {
                    match next {
                        '#' | '"' => break,
                        '$' => text.push_str(&scan.sum_word(round)?.to_string()),
                        next if next.is_whitespace() => break,
                        next => {
                            scan.take();
                            text.push(next);
                        }
                    }
                }
                words.push(Word {
                    text,
                    column,
                    quoted: false,
                });
            }
        }
    }
}

/// The text after the line's `#`, if it has one outside quotes.
pub(super) fn comment(line: &str) -> Option<&str> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, character) in line.char_indices() {
        match character {
            '#' if !quoted => return line.get(at + 1..).map(str::trim),
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && character == '\\' && !escaped;
    }
    None
}

struct Scan<'a> {
    rest: &'a str,
    column: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let taken = characters.next()?;
        self.rest = characters.as_str();
        self.column += 1;
        Some(taken)
    }

    fn fault<T>(&self, message: &str) -> Result<T, Fault> {
        Err(Fault::new(self.column, message))
    }

    fn quoted(&mut self) -> Result<String, Fault> {
        let begun = self.column;
        let mut text = String::new();
        self.take();
        loop {
            let column = self.column;
            match self.take() {
                None => return Err(Fault::new(begun, "a text without its closing \"")),
                Some('"') => return Ok(text),
                Some('\\') => text.push(match self.take() {
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some('\\') => '\\',
                    Some('"') => '"',
                    _ => {
                        let message = "after \\ stands one of n, r, t, \\ and \"; \
                                       other bytes are written as HEX";
                        return Err(Fault::new(column, message));
                    }
                }),
                Some(character) => text.push(character),
            }
        }
    }

    /// `$i` or `$(…)`.
    fn sum_word(&mut self, round: Option<u64>) -> Result<i128, Fault> {
        let column = self.column;
        let Some(round) = round else {
            return self.fault("`$i` has a meaning only between `repeat` and `end`");
        };
        self.take();
        let value = match self.peek() {
            Some('i') => {
                self.take();
                i128::from(round)
            }
            Some('(') => self.factor(i128::from(round), 0)?,
            _ => {
                return self.fault("after `$` stands `i`, or a sum in parentheses as in $(i+1000)");
            }
        };
        if value < 0 {
            return Err(Fault::new(
                column,
                format!("this sum is {value}; it may not be negative"),
            ));
        }
        Ok(value)
    }

    fn space(&mut self) {
        while self.peek() == Some(' ') {
            self.take();
        }
    }

    fn sum(&mut self, round: i128, depth: u32) -> Result<i128, Fault> {
        let mut left = self.product(round, depth)?;
        loop {
            self.space();
            let column = self.column;
            left = match self.peek() {
                Some('+') => {
                    self.take();
                    left.checked_add(self.product(round, depth)?)
                }
                Some('-') => {
                    self.take();
                    left.checked_sub(self.product(round, depth)?)
                }
                _ => return Ok(left),
            }
            .ok_or_else(|| Fault::new(column, "the sum is out of range"))?;
        }
    }

    fn product(&mut self, round: i128, depth: u32) -> Result<i128, Fault> {
        let mut left = self.factor(round, depth)?;
        loop {
            self.space();
            let column = self.column;
            let operator = match self.peek() {
                Some(operator @ ('*' | '/' | '%')) => operator,
                _ => return Ok(left),
            };
            self.take();
            let right = self.factor(round, depth)?;
            left = match operator {
                '*' => left.checked_mul(right),
                '/' => left.checked_div(right),
                _ => left.checked_rem(right),
            }
            .ok_or_else(|| Fault::new(column, "the sum is out of range, or divides by zero"))?;
        }
    }

    fn factor(&mut self, round: i128, depth: u32) -> Result<i128, Fault> {
        self.space();
        match self.peek() {
            Some('i') => {
                self.take();
                Ok(round)
            }
            Some('(') if depth < MAX_DEPTH => {
                self.take();
                let value = self.sum(round, depth + 1)?;
                self.space();
                if self.peek() != Some(')') {
                    return self.fault("here stands an operator (+ - * / %) or `)`");
                }
                self.take();
                Ok(value)
            }
            Some('(') => self.fault("parentheses nest too deep"),
            Some('0'..='9') => {
                let mut value = 0_i128;
                while let Some(digit) = self.peek().and_then(|next| next.to_digit(10)) {
                    let next = value
                        .checked_mul(10)
                        .and_then(|v| v.checked_add(digit.into()));
                    let Some(next) = next else {
                        return self.fault("the number is too large");
                    };
                    value = next;
                    self.take();
                }
                Ok(value)
            }
            _ => self.fault("in a sum stand `i`, numbers, + - * / % and parentheses"),
        }
    }
}
