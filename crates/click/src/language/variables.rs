//! Variables of compound elements and of `define`: their environment, and their place in configuration strings.

use std::rc::Rc;

use super::args;

/// Definitions that hold in one scope, and those around it.
#[derive(Debug, Default)]
pub struct Environment {
    /// names and values, as written; the first of a name holds
    pub names: Vec<(String, String)>,
    /// the scope around
    pub parent: Option<Rc<Environment>>,
    /// how many scopes are around
    pub depth: usize,
}

/// Definitions within definitions, at most.
const MOST_DEPTH: usize = 10;

/// More bytes than the budget allows would be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// Replaces variables other than by name: `$(…)` of scripts.
pub type Calls<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

impl Environment {
    /// The value of a name: the innermost definition.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut at = Some(self);
        while let Some(env) = at {
            if let Some((_, value)) = env.names.iter().find(|(n, _)| n == name) {
                return Some(value);
            }
            at = env.parent.as_deref();
        }
        None
    }

    /// The environment around scopes of a depth.
    #[must_use]
    pub fn outside(this: &Rc<Self>, depth: usize) -> Rc<Self> {
        let mut at = this;
        while at.depth >= depth {
            match &at.parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at.clone()
    }

    /// A configuration string with the variables replaced that have values; others stay. Nothing is replaced in single
    /// quotes; in double quotes a value is escaped.
    ///
    /// # Errors
    /// The result has more than `most` bytes.
    pub fn expand(&self, config: &str, most: usize) -> Result<String, TooLong> {
        Expansion {
            value: &mut |name| self.value(name).map(str::to_owned),
            call: None,
            left: most,
        }
        .expand(config, 0)
    }
}

/// Replacement by any source of values, as scripts need it.
pub struct Expansion<'a> {
    /// the value of a name
    pub value: &'a mut dyn FnMut(&str) -> Option<String>,
    /// the value of `$(…)`, which stays without this
    pub call: Option<Calls<'a>>,
    /// bytes that may still be made
    pub left: usize,
}

impl Expansion<'_> {
    /// See [`Environment::expand`].
    ///
    /// # Errors
    /// The budget is passed.
    pub fn expand(&mut self, config: &str, depth: usize) -> Result<String, TooLong> {
        let bytes = config.as_bytes();
        let mut out = String::new();
        let (mut at, mut from, mut quote) = (0, 0, 0_u8);
        while let Some(&b) = bytes.get(at) {
            match b {
                b'\'' | b'"' if quote == 0 => quote = b,
                b'\'' | b'"' if quote == b => quote = 0,
                b'/' if quote == 0 && bytes.get(at + 1) == Some(&b'/') => {
                    at += bytes
                        .iter()
                        .skip(at)
                        .position(|b| *b == b'\n')
                        .unwrap_or(bytes.len());
                    continue;
                }
                b'/' if quote == 0 && bytes.get(at + 1) == Some(&b'*') => {
                    let rest = bytes.get(at + 2..).unwrap_or(&[]);
                    let end = rest.windows(2).position(|w| w == b"*/");
                    at += end.map_or(bytes.len(), |e| e + 4);
                    continue;
                }
                b'\\' if quote != b'\'' => {
                    if bytes.get(at + 1) == Some(&b'<') {
                        let end = bytes.iter().skip(at).position(|b| *b == b'>');
                        at += end.unwrap_or(bytes.len());
                    } else {
                        at += 1;
                    }
                }
                b'$' if quote != b'\'' && depth <= MOST_DEPTH => {
                    let (length, word) = variable(&config[at..]);
                    if let (Some(Word::Call(inner)), None) = (&word, &self.call) {
                        // The call stays for a script; variables in it are replaced.
                        let inner = self.expand(inner, depth + 1)?;
                        out.push_str(config.get(from..at).unwrap_or(""));
                        out.push_str(&format!("$({inner})"));
                        at += length;
                        from = at;
                        continue;
                    }
                    if let Some(word) = word
                        && let Some(value) = self.replace(&word, depth)?
                    {
                        out.push_str(config.get(from..at).unwrap_or(""));
                        let value = match quote {
                            b'"' => inside_quotes(&value),
                            _ => value,
                        };
                        self.left = self.left.checked_sub(value.len()).ok_or(TooLong)?;
                        out.push_str(&value);
                        at += length;
                        from = at;
                        continue;
                    }
                    at += length.max(1);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        out.push_str(config.get(from..).unwrap_or(""));
        Ok(out)
    }

    fn replace(&mut self, word: &Word, depth: usize) -> Result<Option<String>, TooLong> {
        match word {
            Word::Name(name) => match (self.value)(name) {
                Some(value) => self.expand(&value, depth + 1).map(Some),
                None => Ok(None),
            },
            Word::Braces(inner) => {
                let inner = self.expand(inner, depth + 1)?;
                let (name, index, default) = braces(&inner);
                let Some(value) = (self.value)(name) else {
                    return Ok(default.map(str::to_owned));
                };
                let value = self.expand(&value, depth + 1)?;
                Ok(Some(match index {
                    Some(index) => {
                        let words = args::words(&value);
                        words.get(index).cloned().unwrap_or_default()
                    }
                    None => value,
                }))
            }
            Word::Call(inner) => {
                let inner = self.expand(inner, depth + 1)?;
                Ok(self.call.as_mut().and_then(|call| call(&inner)))
            }
        }
    }
}

enum Word {
    Name(String),
    Braces(String),
    Call(String),
}

/// The variable at the beginning of a text, and its bytes.
fn variable(text: &str) -> (usize, Option<Word>) {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        Some(b'{') => match text.find('}') {
            Some(end) => (end + 1, Some(Word::Braces(text[2..end].into()))),
            None => (1, None),
        },
        Some(b'(') => {
            let (mut depth, mut at, mut quote) = (1_usize, 2, 0_u8);
            while let Some(&b) = bytes.get(at) {
                match b {
                    b'\'' | b'"' if quote == 0 => quote = b,
                    b'\'' | b'"' if quote == b => quote = 0,
                    b'\\' if quote != b'\'' => at += 1,
                    b'(' if quote == 0 => depth += 1,
                    b')' if quote == 0 => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    let inner = text.get(2..at - 1).unwrap_or("");
                    return (at, Some(Word::Call(inner.into())));
                }
            }
            (1, None)
        }
        Some(b'?' | b'#' | b'$') => (2, Some(Word::Name(text[1..2].into()))),
        _ => {
            let name = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
            let length = bytes.iter().skip(1).take_while(name).count();
            match length {
                0 => (1, None),
                _ => (length + 1, Some(Word::Name(text[1..=length].into()))),
            }
        }
    }
}

/// Name, index and default of `${name[index]-default}`.
fn braces(inner: &str) -> (&str, Option<usize>, Option<&str>) {
    let inner = inner.trim_start();
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let end = inner.bytes().take_while(|b| word(*b)).count();
    let (name, mut rest) = (&inner[..end], inner[end..].trim_start());
    let mut index = None;
    if let Some(after) = rest.strip_prefix('[')
        && let Some(close) = after.find(']')
        && let Ok(number) = after[..close].trim().parse()
    {
        index = Some(number);
        rest = after[close + 1..].trim_start();
    }
    (name, index, rest.strip_prefix('-'))
}

/// A value as the inside of a string in double quotes.
fn inside_quotes(value: &str) -> String {
    let quoted = args::quote(&args::text(value));
    match quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"')) {
        Some(inside) => inside.to_owned(),
        None => quoted,
    }
}
