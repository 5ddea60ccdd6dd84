//! Text to conditions, by the rules of Click's IPFilter: words that qualify, then an operator, then a value; a value alone has the words
//! of the test before it.

use super::primitive::{Data, Primitive};
use super::vocabulary::{Field, What, named, what, words};
use super::{Base, Compare, Condition};
use crate::arguments::{self, integer};
use crate::names::Names;

/// Parentheses and operators within each other, at most.
const MOST_DEPTH: usize = 200;

/// Reads a condition.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str, names: &Names) -> Result<Condition, String> {
    let words = words(text);
    let mut parser = Parser {
        words,
        at: 0,
        names,
        last: Primitive::default(),
        depth: 0,
    };
    if parser.words.is_empty() {
        return Err("empty pattern".into());
    }
    let condition = parser.choice()?;
    match parser.peek() {
        None => Ok(condition),
        Some(word) => Err(format!("syntax error near '{word}'")),
    }
}

/// Which addresses or ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Source,
    Destination,
    Either,
    Both,
}

struct Parser<'a> {
    words: Vec<String>,
    at: usize,
    names: &'a Names,
    /// the test before
    last: Primitive,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Option<&str> {
        self.words.get(self.at + by).map(String::as_str)
    }

    fn take(&mut self, any: &[&str]) -> bool {
        let found = self.peek().is_some_and(|w| any.contains(&w));
        self.at += usize::from(found);
        found
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        match self.depth > MOST_DEPTH {
            true => Err(format!("more than {MOST_DEPTH} parts within each other")),
            false => Ok(()),
        }
    }

    fn choice(&mut self) -> Result<Condition, String> {
        self.deeper()?;
        let condition = self.any()?;
        let done = if self.take(&["?"]) {
            let then = self.choice()?;
            if !self.take(&[":"]) {
                return Err("':' expected in '?:'".into());
            }
            let other = self.choice()?;
            Condition::If(Box::new([condition, then, other]))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(done)
    }

    fn any(&mut self) -> Result<Condition, String> {
        let mut any = vec![self.all()?];
        while self.take(&["or", "||"]) {
            any.push(self.all()?);
        }
        Ok(match any.len() {
            1 => any.remove(0),
            _ => Condition::Any(any),
        })
    }

    fn all(&mut self) -> Result<Condition, String> {
        let mut all = vec![self.not()?];
        loop {
            let joined = self.take(&["and", "&&"]);
            let ends = matches!(self.peek(), None | Some("or" | "||" | ")" | "?" | ":"));
            if !joined && ends {
                break;
            }
            all.push(self.not()?);
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Condition::All(all),
        })
    }

    fn not(&mut self) -> Result<Condition, String> {
        if self.take(&["not", "!"]) {
            self.deeper()?;
            let inner = self.not()?;
            self.depth -= 1;
            return Ok(Condition::Not(Box::new(inner)));
        }
        if self.take(&["("]) {
            let inner = self.choice()?;
            return match self.take(&[")"]) {
                true => Ok(inner),
                false => Err("missing ')'".into()),
            };
        }
        self.test()
    }

    fn test(&mut self) -> Result<Condition, String> {
        let Some(word) = self.peek() else {
            return Err("pattern ends too early".into());
        };
        let constant = match word {
            "true" | "all" | "any" | "-" => Some(true),
            "false" | "none" => Some(false),
            _ => None,
        };
        if let Some(constant) = constant {
            self.at += 1;
            return Ok(Condition::Constant(constant));
        }
        let (begin, mut primitive) = (self.at, Primitive::default());
        let negated = self.qualifiers(&mut primitive)?;
        let before = match self.at > begin {
            true => Primitive::default(),
            false => std::mem::take(&mut self.last),
        };
        if before.data.is_ethernet() {
            primitive.ethernet = Some(true);
        }
        if self.at > begin && primitive.what.is_none() && self.take(&["["]) {
            primitive.set_what(What::Field(self.bytes(&primitive)?))?;
        }
        if self.peek() == Some("&") {
            self.at += 1;
            let mask = self.next("a mask")?;
            let mask = Data::mask(&mask, self.names);
            primitive.mask = Some(mask.ok_or("a mask is a number or an address")?);
        }
        let operator = self.operator();
        primitive.compare = operator.unwrap_or(Compare::Equal);
        self.data(&mut primitive)?;
        if primitive.data == Data::None {
            let word = self.peek();
            let missing = match primitive.what {
                Some(What::Host | What::Net | What::Ethernet) => "address",
                Some(What::Port) => "port",
                Some(What::TcpOption) => "TCP option",
                Some(What::Field(_)) => "number",
                Some(What::Protocol) if primitive.protocol.is_none() => "protocol",
                None if self.at > begin && primitive.protocol.is_none() => "value",
                _ if operator.is_some() => "value",
                _ if self.at == begin => {
                    return Err(format!("syntax error near '{}'", word.unwrap_or("")));
                }
                _ => "",
            };
            match word {
                _ if missing.is_empty() => {}
                Some(word) => return Err(format!("unknown {missing} '{word}'")),
                None => return Err(format!("a {missing} expected at the pattern's end")),
            }
        }
        let condition = primitive.condition(&before)?;
        self.last = primitive;
        Ok(match negated {
            true => Condition::Not(Box::new(condition)),
            false => condition,
        })
    }

    /// Words before a value; whether there is a `not` among them.
    fn qualifiers(&mut self, primitive: &mut Primitive) -> Result<bool, String> {
        let mut negated = false;
        while let Some(word) = self.peek().map(str::to_owned) {
            let other = |at, other: &[&str]| self.ahead(at).is_some_and(|w| other.contains(&w));
            let with = |connective: &[&str]| {
                other(1, connective)
                    && match word.as_str() {
                        "src" => other(2, &["dst", "dest"]),
                        _ => other(2, &["src"]),
                    }
            };
            let mut length = 1;
            match word.as_str() {
                "src" | "dst" | "dest" => {
                    let side = match word.as_str() {
                        _ if with(&["or", "||"]) => Side::Either,
                        _ if with(&["and", "&&"]) => Side::Both,
                        "src" => Side::Source,
                        _ => Side::Destination,
                    };
                    if matches!(side, Side::Either | Side::Both) {
                        length = 3;
                    }
                    if primitive.side.replace(side).is_some() {
                        return Err("'src' or 'dst' specified twice".into());
                    }
                }
                "ip" | "ether" if primitive.ethernet.is_none() => {
                    primitive.ethernet = Some(word == "ether");
                }
                "not" | "!" => negated = !negated,
                word => match (what(word), named(word, self.names).as_slice()) {
                    (Some(what), _) => primitive.set_what(what)?,
                    (None, &[(What::Protocol, number)]) => {
                        primitive.set_protocol(number as u16)?;
                    }
                    _ => break,
                },
            }
            self.at += length;
        }
        Ok(negated)
    }

    /// What is behind a `[`: a place in a header, or its place and length, or its first and last byte.
    fn bytes(&mut self, primitive: &Primitive) -> Result<Field, String> {
        let mut inside = String::new();
        loop {
            match self.next("']'")?.as_str() {
                "]" => break,
                word => inside.push_str(word),
            }
        }
        let wrong = || format!("bad bytes '[{inside}]': write [OFFSET] or [OFFSET:LENGTH]");
        let number = |text: &str| integer(text).ok_or_else(wrong);
        let (offset, bytes) = if let Some((offset, length)) = inside.split_once(':') {
            (number(offset)?, number(length)?)
        } else if let Some((first, last)) = inside.split_once(',') {
            let first = number(first)?;
            (first, number(last)?.saturating_sub(first).saturating_add(1))
        } else {
            (number(&inside)?, 1)
        };
        if !(0..=8191).contains(&offset) || !(1..=4).contains(&bytes) {
            return Err(wrong());
        }
        if offset / 4 != (offset + bytes - 1) / 4 {
            return Err(format!(
                "'[{inside}]' does not fit into one word of four bytes: test the two parts"
            ));
        }
        Ok(Field {
            base: match (primitive.ethernet, primitive.protocol) {
                (Some(true), _) => Base::Link,
                (_, None) => Base::Network,
                (_, Some(_)) => Base::Transport,
            },
            offset: offset as usize,
            bytes: bytes as usize,
            mask: u64::MAX >> (64 - 8 * bytes as u32),
            shift: 0,
            protocol: primitive.protocol,
        })
    }

    fn next(&mut self, what: &str) -> Result<String, String> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word.ok_or_else(|| format!("{what} expected at the pattern's end"))
    }

    fn operator(&mut self) -> Option<Compare> {
        let compare = match self.peek()? {
            "=" | "==" => Compare::Equal,
            "!=" => Compare::Unequal,
            "<" => Compare::Less,
            "<=" => Compare::AtMost,
            ">" => Compare::Greater,
            ">=" => Compare::AtLeast,
            _ => return None,
        };
        self.at += 1;
        Some(compare)
    }

    /// The value, if there is one.
    fn data(&mut self, primitive: &mut Primitive) -> Result<(), String> {
        let Some(word) = self.peek().map(str::to_owned) else {
            return Ok(());
        };
        let all = named(&word, self.names);
        let fits = all.iter().filter(|(what, _)| primitive.takes(*what));
        match fits.copied().collect::<Vec<_>>().as_slice() {
            &[(what, value)] => primitive.data = Data::Named(what, value),
            [] if all.is_empty() => primitive.data = self.value(&word, primitive),
            [] => return Err(format!("'{word}' is meaningless here")),
            _ => {
                return Err(format!(
                    "'{word}' is ambiguous: say 'port', 'proto', 'tcp opt' or 'icmp type'"
                ));
            }
        }
        if primitive.data == Data::None {
            return Ok(());
        }
        self.at += 1;
        if let Data::Host(address) = primitive.data
            && self.peek() == Some("mask")
            && let Some(mask) = self.ahead(1)
            && let Some(mask) = arguments::ip(mask, self.names)
        {
            self.at += 2;
            primitive.data = Data::Net(address, mask);
        }
        Ok(())
    }

    fn value(&self, word: &str, primitive: &Primitive) -> Data {
        if let Some(number) = integer(word) {
            return Data::Number(number);
        }
        if primitive.ethernet != Some(true) {
            let network = self.names.prefix(word).or_else(|| {
                { word.contains('/') }
                    .then(|| arguments::prefix(word, self.names))
                    .flatten()
            });
            let address = arguments::ip(word, self.names);
            match (address, network) {
                (Some(address), None) => return Data::Host(address),
                (Some(address), Some(_)) if primitive.what != Some(What::Net) => {
                    return Data::Host(address);
                }
                (_, Some((address, mask))) => return Data::Net(address, mask),
                (None, None) => {}
            }
        }
        match arguments::ethernet(word, self.names) {
            Some(address) if primitive.ethernet != Some(false) => Data::Ethernet(address),
            _ => Data::None,
        }
    }
}
