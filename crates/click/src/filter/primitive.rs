//! One test of the filter language: words, operator and value, to a condition on bytes.

use super::parse::Side;
use super::vocabulary::{DCCP, Field, ICMP, TCP, TCP_OR_UDP, TOS, TRANSPORT, UDP, What};
use super::{Base, Compare, Condition, Test};
use crate::arguments::{self, integer};
use crate::names::Names;

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Data {
    #[default]
    None,
    Number(i64),
    Host([u8; 4]),
    Net([u8; 4], [u8; 4]),
    Ethernet([u8; 6]),
    /// a name, what it is a value of, and the value
    Named(What, u64),
}

impl Data {
    pub(super) fn is_ethernet(self) -> bool {
        matches!(self, Self::Ethernet(_))
    }

    /// What may stand behind `&`.
    pub(super) fn mask(word: &str, names: &Names) -> Option<Self> {
        if let Some(number) = integer(word) {
            return Some(Self::Number(number));
        }
        let address = arguments::ip(word, names).map(Self::Host);
        address.or_else(|| arguments::ethernet(word, names).map(Self::Ethernet))
    }
}

/// A test as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Primitive {
    pub(super) what: Option<What>,
    pub(super) side: Option<Side>,
    pub(super) protocol: Option<u16>,
    /// `ether` or `ip`, where it is written
    pub(super) ethernet: Option<bool>,
    pub(super) mask: Option<Data>,
    pub(super) compare: Compare,
    pub(super) data: Data,
}

impl Default for Primitive {
    fn default() -> Self {
        Self {
            what: None,
            side: None,
            protocol: None,
            ethernet: None,
            mask: None,
            compare: Compare::Equal,
            data: Data::None,
        }
    }
}

type Made = Result<Condition, String>;

impl Primitive {
    pub(super) fn set_what(&mut self, what: What) -> Result<(), String> {
        if self.what.replace(what).is_some() {
            return Err("two kinds of test in one: join them by 'and'".into());
        }
        match what {
            What::Field(Field {
                protocol: Some(protocol),
                ..
            }) => self.set_protocol(protocol),
            _ => Ok(()),
        }
    }

    pub(super) fn set_protocol(&mut self, protocol: u16) -> Result<(), String> {
        match self.protocol.replace(protocol) {
            Some(other) if other != protocol => {
                Err("transport protocol specified twice: join the tests by 'or'".into())
            }
            _ => Ok(()),
        }
    }

    /// Whether a name that is a value of this may stand here.
    pub(super) fn takes(&self, what: What) -> bool {
        let protocol = |some: &[u16]| self.protocol.is_none_or(|p| some.contains(&p));
        self.what.is_none_or(|w| w == what)
            && match what {
                What::Port => protocol(&[TCP, UDP, TCP_OR_UDP]),
                What::TcpOption => protocol(&[TCP, TCP_OR_UDP]),
                What::Field(_) => protocol(&[ICMP]),
                _ => true,
            }
    }

    /// The condition; what is not written is as in the test before, and is noted.
    pub(super) fn condition(&mut self, before: &Self) -> Made {
        self.complete(before)?;
        let what = self.what.ok_or("a kind of test is missing")?;
        let ethernet = self.ethernet == Some(true);
        if ethernet && !matches!(what, What::Ethernet | What::Field(_)) {
            return Err("only addresses are tested of Ethernet".into());
        }
        let body = match what {
            What::Host | What::Net => self.host()?,
            What::Ethernet => self.link()?,
            What::Port => self.port()?,
            What::Protocol => return self.of_protocol(),
            What::TcpOption => self.flags()?,
            What::Fragment => self.fragment(Compare::Unequal)?,
            What::Unfragmented => self.fragment(Compare::Equal)?,
            What::Congested => {
                self.nothing()?;
                self.what = Some(What::Field(TOS));
                Condition::Test(test(TOS, 3, Compare::Equal, 3))
            }
            What::Marked => {
                let (compare, value) = match self.data {
                    Data::None => (Compare::Unequal, 0),
                    Data::Number(value) => (self.compare, value),
                    _ => return Err("'ect' is compared with a number".into()),
                };
                self.what = Some(What::Field(TOS));
                let body = self.compared(3, value, compare)?;
                body.map(&mut |compare, mask, value| {
                    Condition::Test(test(TOS, mask, compare, value))
                })
            }
            What::Field(field) => {
                let value = match self.data {
                    Data::Number(value) => value,
                    Data::Named(named, value) if named == what => value as i64,
                    _ => return Err("a field is compared with a number".into()),
                };
                let body = self.compared(field.mask >> field.shift, value, self.compare)?;
                body.map(&mut |compare, mask, value| {
                    let (mask, value) = (mask << field.shift, value << field.shift);
                    Condition::Test(test(field, mask, compare, value))
                })
            }
        };
        let mut all = Vec::new();
        all.extend(self.protocol.and_then(protocols));
        if matches!(what, What::Port | What::TcpOption)
            || matches!(what, What::Field(f) if f.protocol.is_some())
        {
            all.push(first_fragment());
        }
        all.push(body);
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Condition::All(all),
        })
    }

    /// What is compared, where no word says it.
    fn complete(&mut self, before: &Self) -> Result<(), String> {
        if self.what.is_none() {
            self.what = Some(match self.data {
                Data::Host(_) => What::Host,
                Data::Net(..) => What::Net,
                Data::Ethernet(_) => What::Ethernet,
                Data::Named(what, _) => what,
                Data::Number(_) => match before.what {
                    Some(what @ (What::Field(_) | What::Protocol | What::Port)) => what,
                    _ => return Err("a number alone: specify a header field or 'port'".into()),
                },
                Data::None if self.protocol.is_some() => What::Protocol,
                Data::None => return Err("a value is missing".into()),
            });
            let what = self.what;
            if matches!(
                what,
                Some(What::Host | What::Net | What::Ethernet | What::Port)
            ) {
                self.side = self.side.or(before.side);
            }
            if what == Some(What::Port) {
                self.protocol = self.protocol.or(before.protocol);
            }
            if let Some(What::Field(field)) = what {
                self.protocol = self.protocol.or(field.protocol);
            }
        }
        let ethernet = match self.data {
            Data::Ethernet(_) => self.ethernet.unwrap_or(true),
            _ => self.ethernet.unwrap_or(false),
        };
        self.ethernet = Some(ethernet);
        if ethernet && self.what == Some(What::Host) {
            self.what = Some(What::Ethernet);
        }
        Ok(())
    }

    fn nothing(&self) -> Result<(), String> {
        match (self.data, self.mask, self.compare) {
            (Data::None, None, Compare::Equal) => Ok(()),
            _ => Err("this test has no value: join what follows by 'and'".into()),
        }
    }

    fn fragment(&self, compare: Compare) -> Made {
        self.nothing()?;
        Ok(Condition::Test(network(6, 2, 0x3fff, compare, 0)))
    }

    fn host(&mut self) -> Made {
        let (address, mask) = match (self.what, self.data) {
            (_, Data::Net(address, mask)) => (address, mask),
            (_, Data::Host(address)) => (address, [255; 4]),
            _ => return Err("an address is missing".into()),
        };
        let mask = match self.mask {
            None => mask,
            Some(Data::Host(mask)) => mask,
            Some(_) => return Err("the mask of an address is an address".into()),
        };
        self.equality()?;
        let number = |b: [u8; 4]| u64::from(u32::from_be_bytes(b));
        let (value, mask) = (number(address) & number(mask), number(mask));
        Ok(self.sides(self.compare, &|source, compare| {
            let at = if source { 12 } else { 16 };
            Condition::Test(network(at, 4, mask, compare, value))
        }))
    }

    fn link(&mut self) -> Made {
        let Data::Ethernet(address) = self.data else {
            return Err("an Ethernet address is missing".into());
        };
        let number = |b: [u8; 6]| b.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
        let mask = match self.mask {
            None => u64::MAX >> 16,
            Some(Data::Ethernet(mask)) => number(mask),
            Some(_) => return Err("the mask of an Ethernet address is one".into()),
        };
        self.equality()?;
        Ok(self.sides(self.compare, &|source, compare| {
            Condition::Test(Test {
                base: Base::Link,
                offset: if source { 6 } else { 0 },
                bytes: 6,
                mask,
                compare,
                value: number(address) & mask,
            })
        }))
    }

    fn equality(&self) -> Result<(), String> {
        match self.compare {
            Compare::Equal | Compare::Unequal => Ok(()),
            _ => Err("addresses are not compared by size".into()),
        }
    }

    fn port(&mut self) -> Made {
        let value = match self.data {
            Data::Number(value) => value,
            Data::Named(What::Port, value) => value as i64,
            _ => return Err("a port is missing".into()),
        };
        let protocol = *self.protocol.get_or_insert(TCP_OR_UDP);
        if ![TCP, UDP, TCP_OR_UDP, DCCP].contains(&protocol) {
            return Err("only TCP, UDP and DCCP have ports here".into());
        }
        let body = self.compared(0xffff, value, self.compare)?;
        Ok(body.map(&mut |compare, mask, value| {
            self.sides(compare, &|source, compare| {
                Condition::Test(Test {
                    base: Base::Transport,
                    offset: if source { 0 } else { 2 },
                    bytes: 2,
                    mask,
                    compare,
                    value,
                })
            })
        }))
    }

    fn of_protocol(&mut self) -> Made {
        let written = match self.data {
            Data::Number(value) => Some(value),
            Data::Named(_, value) => Some(value as i64),
            Data::None => None,
            _ => return Err("a protocol is missing".into()),
        };
        let value = match (written, self.protocol.map(i64::from)) {
            (Some(value), Some(other)) if value != other => {
                return Err("transport protocol specified twice: join the tests by 'or'".into());
            }
            (Some(value), _) | (None, Some(value)) => value,
            (None, None) => return Err("a protocol is missing".into()),
        };
        self.protocol = None;
        if let Ok(several) = u16::try_from(value)
            && matches!(several, TCP_OR_UDP | TRANSPORT)
        {
            if self.compare != Compare::Equal || self.mask.is_some() {
                return Err("several protocols are not compared".into());
            }
            return Ok(protocols(several).unwrap_or(Condition::Constant(true)));
        }
        let body = self.compared(0xff, value, self.compare)?;
        if self.compare == Compare::Equal && self.mask.is_none() {
            // A port that follows alone is this protocol's.
            self.protocol = u16::try_from(value).ok();
        }
        Ok(body
            .map(&mut |compare, mask, value| Condition::Test(network(9, 1, mask, compare, value))))
    }

    fn flags(&mut self) -> Made {
        let value = match self.data {
            Data::Number(value @ 0..=255) => value as u64,
            Data::Named(What::TcpOption, value) => value,
            _ => return Err("a TCP option is fin, syn, rst, psh, ack, urg, or 0 to 255".into()),
        };
        if *self.protocol.get_or_insert(TCP) != TCP {
            return Err("only TCP has these options".into());
        }
        if self.compare != Compare::Equal || self.mask.is_some() {
            return Err("a TCP option has no operator: use 'not'".into());
        }
        if value == 0 {
            return Ok(Condition::Constant(true));
        }
        Ok(Condition::Test(Test {
            base: Base::Transport,
            offset: 13,
            bytes: 1,
            mask: value,
            compare: Compare::Equal,
            value,
        }))
    }

    /// A comparison with a number, of a field that has these bits.
    fn compared(&self, full: u64, value: i64, compare: Compare) -> Result<Compared, String> {
        let mask = match self.mask {
            None => full,
            Some(Data::Number(mask)) if mask as u64 & !full == 0 && mask != 0 => mask as u64,
            Some(Data::Number(_)) => {
                return Err(format!("the mask is out of range: 1 to 0x{full:x}"));
            }
            Some(_) => return Err("the mask of a number is one".into()),
        };
        let equality = matches!(compare, Compare::Equal | Compare::Unequal);
        let Some(value) = u64::try_from(value)
            .ok()
            .filter(|v| *v <= full || !equality)
        else {
            return Err(format!("the value is out of range: 0 to {full}"));
        };
        // What holds for all numbers holds for packets without them, too.
        let always = match compare {
            Compare::Greater if value >= mask => Some(false),
            Compare::AtMost if value >= mask => Some(true),
            Compare::Less if value == 0 => Some(false),
            Compare::AtLeast if value == 0 => Some(true),
            Compare::Less if value > mask => Some(true),
            Compare::AtLeast if value > mask => Some(false),
            _ => None,
        };
        Ok(match always {
            Some(always) => Compared::Always(always),
            None if equality => Compared::With(compare, mask, value & mask),
            None => Compared::With(compare, mask, value),
        })
    }

    /// The same test of source, destination, or both. What excludes numbers (`!=`, `<`, `<=`) is the opposite of the test that
    /// admits them.
    fn sides(&self, compare: Compare, of: &dyn Fn(bool, Compare) -> Condition) -> Condition {
        let excludes = matches!(compare, Compare::Unequal | Compare::Less | Compare::AtMost);
        let both = || vec![of(true, compare), of(false, compare)];
        match (self.side.unwrap_or(Side::Either), excludes) {
            (Side::Source, _) => of(true, compare),
            (Side::Destination, _) => of(false, compare),
            (Side::Either, false) | (Side::Both, true) => Condition::Any(both()),
            (Side::Both, false) | (Side::Either, true) => Condition::All(both()),
        }
    }
}

/// A comparison with a number.
enum Compared {
    /// it holds for all numbers, or for none
    Always(bool),
    /// mask and value
    With(Compare, u64, u64),
}

impl Compared {
    fn map(self, make: &mut dyn FnMut(Compare, u64, u64) -> Condition) -> Condition {
        match self {
            Self::Always(answer) => Condition::Constant(answer),
            Self::With(compare, mask, value) => make(compare, mask, value),
        }
    }
}

fn test(field: Field, mask: u64, compare: Compare, value: u64) -> Test {
    Test {
        base: field.base,
        offset: field.offset,
        bytes: field.bytes,
        mask,
        compare,
        value,
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

/// The test of a protocol; none for any.
fn protocols(number: u16) -> Option<Condition> {
    let one = |number: u16| Condition::Test(network(9, 1, 0xff, Compare::Equal, u64::from(number)));
    match number {
        TCP_OR_UDP => Some(Condition::Any(vec![one(TCP), one(UDP)])),
        TRANSPORT => None,
        number => Some(one(number)),
    }
}
