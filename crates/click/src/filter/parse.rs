//! Text to conditions.

use super::vocabulary::{Transport, What, icmp_type, tcp_flag, transport, what, words};
use super::{Base, Compare, Condition, Test};
use crate::arguments::{self, integer};
use crate::names::{Names, protocol};

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
        last: None,
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Source,
    Destination,
    Either,
    Both,
}

/// The words before a value.
#[derive(Clone, Copy, Debug)]
struct Qualifier {
    side: Option<Side>,
    what: Option<What>,
    protocol: Option<Transport>,
}

struct Parser<'a> {
    words: Vec<String>,
    at: usize,
    names: &'a Names,
    /// the words of the test before
    last: Option<Qualifier>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
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
        match word {
            "true" | "all" | "any" | "-" => {
                self.at += 1;
                return Ok(Condition::Constant(true));
            }
            "false" | "none" => {
                self.at += 1;
                return Ok(Condition::Constant(false));
            }
            _ => {}
        }
        let begin = self.at;
        let mut qualifier = Qualifier {
            side: None,
            what: None,
            protocol: None,
        };
        while let Some(word) = self.peek().map(str::to_owned) {
            let side = match (word.as_str(), self.ahead(1), self.ahead(2)) {
                ("src", Some("or" | "||"), Some("dst"))
                | ("dst", Some("or" | "||"), Some("src")) => Some((Side::Either, 3)),
                ("src", Some("and" | "&&"), Some("dst"))
                | ("dst", Some("and" | "&&"), Some("src")) => Some((Side::Both, 3)),
                ("src", ..) => Some((Side::Source, 1)),
                ("dst", ..) => Some((Side::Destination, 1)),
                _ => None,
            };
            if let Some((side, length)) = side {
                qualifier.side = Some(side);
                self.at += length;
                continue;
            }
            if let Some(done) = self.flag(&word) {
                return Ok(done);
            }
            if qualifier.what.is_none()
                && let Some(what) = what(&word)?
            {
                qualifier.what = Some(what);
                self.at += 1;
                continue;
            }
            if qualifier.what.is_none()
                && qualifier.protocol.is_none()
                && let Some(transport) = transport(&word)
            {
                self.at += 1;
                let next = self.peek();
                // The name alone is a test of the protocol.
                let more = next
                    .is_some_and(|n| matches!(n, "src" | "dst" | "port" | "opt" | "type" | "win"));
                if !more {
                    self.last = Some(Qualifier {
                        side: None,
                        what: Some(What::Protocol),
                        protocol: None,
                    });
                    return Ok(of_protocol(transport));
                }
                qualifier.protocol = Some(transport);
                continue;
            }
            if word == "ip" || word == "ether" {
                self.at += 1;
                let more = self.peek().is_some_and(|n| {
                    matches!(
                        n,
                        "src" | "dst" | "frag" | "unfrag" | "ect" | "ce" | "host" | "net"
                    ) || what(n).ok().flatten().is_some()
                });
                if !more {
                    return Ok(Condition::Constant(true));
                }
                continue;
            }
            break;
        }
        if begin == self.at {
            // A value alone has the words of the test before.
            if let Some(last) = self.last {
                let looks = self.peek().is_some_and(|w| self.fits(w, last));
                if looks {
                    qualifier = last;
                }
            }
        }
        self.compare(qualifier)
    }

    /// Whether a word is a value for what was compared before.
    fn fits(&self, word: &str, last: Qualifier) -> bool {
        match last.what {
            Some(What::Port) => integer(word).is_some() || self.names.port(word).is_some(),
            Some(What::Protocol) => integer(word).is_some(),
            Some(What::IcmpType) => icmp_type(word).is_some(),
            Some(What::TcpOption) => tcp_flag(word).is_some(),
            Some(What::Field(_)) => integer(word).is_some(),
            Some(What::Host | What::Net) | None => true,
        }
    }

    /// Tests that have no value.
    fn flag(&mut self, word: &str) -> Option<Condition> {
        let test =
            |offset, mask, value| Condition::Test(network(offset, 2, mask, Compare::Equal, value));
        let done = match word {
            "frag" => Condition::Test(network(6, 2, 0x3fff, Compare::Unequal, 0)),
            "unfrag" => test(6, 0x3fff, 0),
            "ce" => test(0, 3, 3),
            "ect" => {
                let some = network(0, 2, 3, Compare::Unequal, 0);
                Condition::Test(some)
            }
            _ => return None,
        };
        self.at += 1;
        Some(done)
    }

    fn compare(&mut self, mut qualifier: Qualifier) -> Result<Condition, String> {
        let mut mask = None;
        if self.take(&["&"]) {
            let word = self.next("a mask")?;
            mask = Some(integer(&word).ok_or_else(|| format!("'{word}' is no mask"))? as u64);
        }
        let compare = self.operator();
        let word = self.next("a value")?;
        if qualifier.what.is_none() {
            qualifier.what = Some(self.guess(&word, qualifier)?);
        }
        let what = qualifier.what.unwrap_or(What::Host);
        self.last = Some(qualifier);
        let side = qualifier.side.unwrap_or(Side::Either);
        match what {
            What::Host | What::Net => self.address(&word, what, side, compare),
            What::Port => {
                let value = match integer(&word) {
                    Some(n) => n as u64,
                    None => u64::from(
                        self.names
                            .port(&word)
                            .ok_or(format!("unknown port '{word}'"))?,
                    ),
                };
                if value > 65_535 {
                    return Err(format!("port {value} out of range"));
                }
                let transport = qualifier.protocol.unwrap_or(Transport::TcpOrUdp);
                let mask = mask.unwrap_or(0xffff);
                let of = |offset, compare| {
                    Condition::Test(Test {
                        base: Base::Transport,
                        offset,
                        bytes: 2,
                        mask,
                        compare,
                        value,
                    })
                };
                Ok(Condition::All(vec![
                    of_protocol(transport),
                    first_fragment(),
                    sides(side, compare, |s, c| {
                        of(if s == Side::Source { 0 } else { 2 }, c)
                    }),
                ]))
            }
            What::Protocol => {
                let number = integer(&word).or(protocol(&word).map(i64::from));
                if word == "tcpudp" {
                    return Ok(of_protocol(Transport::TcpOrUdp));
                }
                let number = number.ok_or(format!("unknown protocol '{word}'"))?;
                Ok(Condition::Test(network(
                    9,
                    1,
                    mask.unwrap_or(0xff),
                    compare,
                    number as u64,
                )))
            }
            What::IcmpType => {
                let value = icmp_type(&word).ok_or(format!("unknown ICMP type '{word}'"))?;
                Ok(Condition::All(vec![
                    of_protocol(Transport::One(1)),
                    first_fragment(),
                    Condition::Test(Test {
                        base: Base::Transport,
                        offset: 0,
                        bytes: 1,
                        mask: mask.unwrap_or(0xff),
                        compare,
                        value,
                    }),
                ]))
            }
            What::TcpOption => {
                let flag = tcp_flag(&word).ok_or(format!("unknown TCP option '{word}'"))?;
                let value = if compare == Compare::Unequal { 0 } else { flag };
                Ok(Condition::All(vec![
                    of_protocol(Transport::One(6)),
                    first_fragment(),
                    Condition::Test(Test {
                        base: Base::Transport,
                        offset: 13,
                        bytes: 1,
                        mask: flag,
                        compare: Compare::Equal,
                        value,
                    }),
                ]))
            }
            What::Field(field) => {
                let value = integer(&word).ok_or(format!("'{word}' is no number"))? as u64;
                let width = u64::MAX >> (64 - 8 * field.bytes as u32);
                let test = Condition::Test(Test {
                    base: field.base,
                    offset: field.offset,
                    bytes: field.bytes,
                    mask: (mask.map_or(field.mask, |m| (m << field.shift) & field.mask)) & width,
                    compare,
                    value: value << field.shift,
                });
                let mut all = Vec::new();
                if let Some(number) = field.protocol {
                    all.push(of_protocol(Transport::One(number)));
                }
                if field.base == Base::Transport {
                    all.push(first_fragment());
                }
                all.push(test);
                Ok(Condition::All(all))
            }
        }
    }

    fn next(&mut self, what: &str) -> Result<String, String> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word.ok_or_else(|| format!("{what} expected at the pattern's end"))
    }

    fn operator(&mut self) -> Compare {
        let compare = match self.peek() {
            Some("=" | "==") => Compare::Equal,
            Some("!=") => Compare::Unequal,
            Some("!") if self.ahead(1) == Some("=") => {
                self.at += 1;
                Compare::Unequal
            }
            Some("<") => Compare::Less,
            Some("<=") => Compare::AtMost,
            Some(">") => Compare::Greater,
            Some(">=") => Compare::AtLeast,
            _ => return Compare::Equal,
        };
        self.at += 1;
        compare
    }

    /// What a value without words is.
    fn guess(&self, word: &str, qualifier: Qualifier) -> Result<What, String> {
        if qualifier.side.is_none() && qualifier.protocol.is_none() && tcp_flag(word).is_some() {
            return Ok(What::TcpOption);
        }
        if word.contains('/') {
            return Ok(What::Net);
        }
        if arguments::ip(word, self.names).is_some()
            || arguments::ethernet(word, self.names).is_some()
        {
            return Ok(What::Host);
        }
        if self.names.prefix(word).is_some() {
            return Ok(What::Net);
        }
        let port = integer(word).is_some() || self.names.port(word).is_some();
        match port && (qualifier.side.is_some() || qualifier.protocol.is_some()) {
            true => Ok(What::Port),
            false => Err(format!("syntax error near '{word}'")),
        }
    }

    fn address(
        &mut self,
        word: &str,
        what: What,
        side: Side,
        compare: Compare,
    ) -> Result<Condition, String> {
        if what == What::Host
            && arguments::ip(word, self.names).is_none()
            && let Some(address) = arguments::ethernet(word, self.names)
        {
            let value = address.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
            return Ok(sides(side, compare, |s, compare| {
                Condition::Test(Test {
                    base: Base::Link,
                    offset: if s == Side::Source { 6 } else { 0 },
                    bytes: 6,
                    mask: u64::MAX >> 16,
                    compare,
                    value,
                })
            }));
        }
        let wrong = || format!("'{word}' is no address");
        let (address, mut mask) = arguments::prefix(word, self.names).ok_or_else(wrong)?;
        if self.take(&["mask"]) {
            let word = self.next("a mask")?;
            mask =
                arguments::ip(&word, self.names).ok_or_else(|| format!("'{word}' is no mask"))?;
        }
        let number = |b: [u8; 4]| u64::from(u32::from_be_bytes(b));
        let mask = number(mask);
        let value = number(address) & mask;
        Ok(sides(side, compare, |s, compare| {
            Condition::Test(network(
                if s == Side::Source { 12 } else { 16 },
                4,
                mask,
                compare,
                value,
            ))
        }))
    }
}

/// The same test of source, destination, or both. Unequal to either is unequal to both.
fn sides(side: Side, compare: Compare, test: impl Fn(Side, Compare) -> Condition) -> Condition {
    let both = || {
        vec![
            test(Side::Source, compare),
            test(Side::Destination, compare),
        ]
    };
    match (side, compare == Compare::Unequal) {
        (Side::Source | Side::Destination, _) => test(side, compare),
        (Side::Either, false) | (Side::Both, true) => Condition::Any(both()),
        (Side::Both, false) | (Side::Either, true) => Condition::All(both()),
    }
}

fn network(offset: usize, bytes: usize, mask: u64, compare: Compare, value: u64) -> Test {
    Test {
        base: Base::Network,
        offset,
        bytes,
        mask,
        compare,
        value,
    }
}

fn first_fragment() -> Condition {
    Condition::Test(network(6, 2, 0x1fff, Compare::Equal, 0))
}

fn of_protocol(transport: Transport) -> Condition {
    let one = |number: u8| Condition::Test(network(9, 1, 0xff, Compare::Equal, u64::from(number)));
    match transport {
        Transport::One(number) => one(number),
        Transport::TcpOrUdp => Condition::Any(vec![one(6), one(17)]),
    }
}
