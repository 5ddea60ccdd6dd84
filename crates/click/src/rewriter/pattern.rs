//! Specifications of a rewriter's inputs, and patterns: what a new flow's packets become.

use super::Key;
use crate::arguments::{dots, integer, ip};
use crate::names::Names;

/// What happens to a packet of no flow.
#[derive(Clone, Debug)]
pub enum Specification {
    /// it is dropped
    Drop,
    /// it goes to an output, unchanged and without a mapping
    Pass(usize),
    /// it has a mapping that changes nothing: outputs of both directions
    Keep(usize, usize),
    /// it is rewritten: outputs of both directions
    Pattern(Pattern, usize, usize),
    /// an element says how
    Mapper(usize),
}

/// Which values of a range are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// the packet's own first, then random ones
    Own,
    /// one after the other
    Sequential,
    /// random ones
    Random,
}

/// What the four words become; none stays.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// source address and how many there are
    source: Option<([u8; 4], u64)>,
    sport: Option<(u16, u64)>,
    destination: Option<[u8; 4]>,
    dport: Option<u16>,
    order: Order,
    next: u64,
    /// an address pattern: no ports
    addresses: bool,
}

/// Named patterns of IPRewriterPatterns.
pub type Named<'a> = &'a dyn Fn(&str) -> Option<Vec<String>>;

impl Specification {
    /// Reads a specification; `ports` is whether patterns have ports.
    ///
    /// # Errors
    /// What is wrong.
    pub fn read(
        text: &str,
        ports: bool,
        names: &Names,
        named: Named<'_>,
        mapper: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        let words = crate::language::args::words(text);
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let output = |at: usize| {
            let number = integer(word(at)).and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| format!("bad output '{}'", word(at)))
        };
        match word(0) {
            "drop" | "discard" => Ok(Self::Drop),
            "pass" | "passthrough" | "nochange" => Ok(Self::Pass(output(1).unwrap_or(0))),
            "keep" => Ok(Self::Keep(output(1)?, output(2)?)),
            "pattern" | "xpattern" => {
                let mut rest = words.get(1..).unwrap_or(&[]).to_vec();
                if let Some(pattern) = rest.first().and_then(|n| named(n)) {
                    rest.splice(0..1, pattern);
                }
                let count = if ports || rest.len() == 6 { 4 } else { 2 };
                let Some((pattern, outputs)) = rest.split_at_checked(count) else {
                    return Err(format!("bad pattern '{text}'"));
                };
                let number = |at: usize| {
                    let word = outputs.get(at).map_or("", String::as_str);
                    let number = integer(word).and_then(|n| usize::try_from(n).ok());
                    number.ok_or_else(|| format!("bad output '{word}'"))
                };
                Ok(Self::Pattern(
                    Pattern::read(pattern, names)?,
                    number(0)?,
                    number(1)?,
                ))
            }
            other => match mapper(other) {
                Some(id) => Ok(Self::Mapper(id)),
                None => Err(format!("unknown specification '{text}'")),
            },
        }
    }
}

impl Pattern {
    /// Reads `SADDR SPORT DADDR DPORT`, or `SADDR DADDR`.
    ///
    /// # Errors
    /// What is wrong.
    pub fn read(words: &[String], names: &Names) -> Result<Self, String> {
        let mut order = Order::Own;
        let mut marked = |word: &str| -> String {
            if let Some(rest) = word.strip_suffix('#') {
                order = Order::Sequential;
                return rest.to_owned();
            }
            if let Some(rest) = word.strip_suffix('?') {
                order = Order::Random;
                return rest.to_owned();
            }
            word.to_owned()
        };
        let addresses = words.len() == 2;
        let (saddr, sport, daddr, dport) = match words {
            [saddr, daddr] => (marked(saddr), "-".to_owned(), daddr, "-"),
            [saddr, sport, daddr, dport] => (marked(saddr), marked(sport), daddr, dport.as_str()),
            _ => return Err("bad pattern".into()),
        };
        let source = match saddr.as_str() {
            "-" => None,
            text => Some(range(text, names).ok_or("bad source address")?),
        };
        let port = |text: &str| integer(text).and_then(|n| u16::try_from(n).ok());
        let sport = match sport.as_str() {
            "-" => None,
            text => {
                let (low, high) = text.split_once('-').unwrap_or((text, text));
                let pair = port(low).zip(port(high)).filter(|(l, h)| l <= h);
                let (low, high) = pair.ok_or("bad source port")?;
                Some((low, u64::from(high - low) + 1))
            }
        };
        let destination = match daddr.as_str() {
            "-" => None,
            text => Some(ip(text, names).ok_or("bad destination address")?),
        };
        let dport = match dport {
            "-" => None,
            text => Some(port(text).ok_or("bad destination port")?),
        };
        Ok(Self {
            source,
            sport,
            destination,
            dport,
            order,
            next: 0,
            addresses,
        })
    }

    /// The source address and how many there are; none stays.
    #[must_use]
    pub fn source(&self) -> Option<(u32, u64)> {
        self.source.map(|(a, n)| (u32::from_be_bytes(a), n))
    }

    /// The source port and how many there are; none stays.
    #[must_use]
    pub fn sport(&self) -> Option<(u16, u64)> {
        self.sport
    }

    /// The destination address; none stays.
    #[must_use]
    pub fn destination(&self) -> Option<u32> {
        self.destination.map(u32::from_be_bytes)
    }

    /// The destination port; none stays.
    #[must_use]
    pub fn dport(&self) -> Option<u16> {
        self.dport
    }

    /// Whether the packet's own port is preferred.
    #[must_use]
    pub fn own(&self) -> bool {
        self.order == Order::Own
    }

    /// As text, without the outputs.
    #[must_use]
    pub fn show(&self) -> String {
        let source = match self.source {
            None => "-".into(),
            Some((low, 1)) => dots(low),
            Some((low, count)) => format!("{}-{}", dots(low), dots(plus(low, count - 1))),
        };
        let destination = self.destination.map_or("-".into(), dots);
        if self.addresses {
            return format!("{source} {destination}");
        }
        let sport = match self.sport {
            None => "-".into(),
            Some((low, 1)) => low.to_string(),
            Some((low, count)) => format!("{low}-{}", u64::from(low) + count - 1),
        };
        let dport = self.dport.map_or("-".into(), |p| p.to_string());
        format!("{source} {sport} {destination} {dport}")
    }

    /// The new words of a flow; `free` says whether an answer to them would be another flow's. Without a range it is not
    /// asked: an older flow gives way.
    pub fn rewrite(
        &mut self,
        key: Key,
        random: &dyn Fn() -> u32,
        free: &dyn Fn(Key) -> bool,
    ) -> Option<Key> {
        let mut to = key;
        if let Some(address) = self.destination {
            to.destination = address;
        }
        if let Some(port) = self.dport {
            to.dport = port;
        }
        let (base, addresses) = self.source.unwrap_or((key.source, 1));
        let (low, ports) = self.sport.unwrap_or((key.sport, 1));
        let count = addresses * ports;
        let at = |n: u64| Key {
            source: plus(base, n / ports),
            sport: low.wrapping_add((n % ports) as u16),
            ..to
        };
        if count == 1 {
            return Some(at(0));
        }
        // The packet's own words are kept where they are in the range.
        let own = u64::from(key.sport.wrapping_sub(low));
        let first = match self.order {
            Order::Sequential => self.next % count,
            Order::Own if self.sport.is_some() && key.sport >= low && own < ports => own,
            _ => u64::from(random()) % count,
        };
        let taken = (0..count)
            .map(|n| (first + n) % count)
            .find(|n| free(at(*n)));
        if self.order == Order::Own && taken.is_some_and(|t| t != first) {
            // The next one would be guessed: one of the others, at random, and the next free one behind it.
            let start = u64::from(random()) % count;
            let taken = (0..count)
                .map(|n| (start + n) % count)
                .find(|n| free(at(*n)));
            return taken.map(at);
        }
        let taken = taken?;
        self.next = (taken + 1) % count;
        Some(at(taken))
    }
}

fn plus(address: [u8; 4], more: u64) -> [u8; 4] {
    u32::from_be_bytes(address)
        .wrapping_add(more as u32)
        .to_be_bytes()
}

/// `A`, `A-B`, or `A/N`: the hosts of a network from A's number on.
fn range(text: &str, names: &Names) -> Option<([u8; 4], u64)> {
    let number = |a: [u8; 4]| u64::from(u32::from_be_bytes(a));
    if let Some((low, high)) = text.split_once('-') {
        let (low, high) = (ip(low, names)?, ip(high, names)?);
        let count = (number(high) + 1)
            .checked_sub(number(low))
            .filter(|c| *c > 0)?;
        return Some((low, count));
    }
    if text.contains('/') {
        let (address, mask) = crate::arguments::prefix(text, names)?;
        let mask = number(mask);
        let (first, last) = (
            number(address) & mask,
            number(address) | !mask & 0xffff_ffff,
        );
        let hosts = (last + 1 - first).saturating_sub(2).max(1);
        return Some(((first as u32).wrapping_add(1).to_be_bytes(), hosts));
    }
    Some((ip(text, names)?, 1))
}
