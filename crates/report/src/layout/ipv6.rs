//! Headers behind an IPv6 header: extension headers `ext1`, `ext2` …, the transport header, and behind an ICMPv6 error
//! the inner packet, whose fields' names begin with `inner.`.

use std::collections::BTreeMap;
use std::fmt;

use millrace_model::expr::sets::Set;
use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel};
use millrace_model::known::{Known, Of};

use super::fields::{EXTENSION, FRAGMENT, Field, ICMP_BYTES, IPV6, Name, transport};
use super::landing::{Landing, Meaning, Memory, Reach};
use super::made::{EXTENSIONS, HEADER, MOST, Possible};

/// A field's name, where in it a byte is, and how long it is.
pub(super) type Found = (Name, i64, i64);

/// Meaning of an expression for the headers behind IPv6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Along {
    /// the number of the header behind all extension headers
    Protocol {
        /// of the inner packet of an ICMPv6 error
        inner: bool,
    },
    /// an offset
    Offset {
        /// of the inner packet
        inner: bool,
        /// from where this header begins
        header: Header,
        /// bytes
        by: i64,
    },
}

/// A header of an IPv6 packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Header {
    /// the fixed one
    Ip6,
    /// the first, second … extension header
    Extension(usize),
    /// the one behind them
    Transport,
}

impl fmt::Display for Along {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = |inner: bool| if inner { "inner." } else { "" };
        match *self {
            Along::Protocol { inner } => write!(f, "{}ip6.protocol", prefix(inner)),
            Along::Offset { inner, header, by } => {
                write!(f, "at({}", prefix(inner))?;
                match header {
                    Header::Ip6 => f.write_str("ip6)")?,
                    Header::Extension(n) => write!(f, "ext{n})")?,
                    Header::Transport => f.write_str("l4)")?,
                }
                match by {
                    0 => Ok(()),
                    1.. => write!(f, " + {by}"),
                    _ => write!(f, " - {}", by.unsigned_abs()),
                }
            }
        }
    }
}

/// Facts about the numbers along a chain of headers.
#[derive(Clone, Debug)]
struct Chain {
    /// by how many extension headers stand before: the number of the next one
    next: BTreeMap<usize, Set>,
    /// the number behind all of them
    last: Set,
}

/// Kind of header at a place.
enum Stands {
    /// an extension header of one of these numbers
    Extension(Set),
    /// what is behind them, of one of these numbers
    Transport(Set),
    /// one or the other
    Either,
}

impl Chain {
    fn new() -> Self {
        Self {
            next: BTreeMap::new(),
            last: Set::all(),
        }
    }

    /// It ends with one of these numbers, and after so many extension headers if that is known.
    fn end(&mut self, after: Option<usize>, last: &Set) {
        if let Some(n) = after {
            let known = self.next.entry(n).or_insert_with(Set::all);
            *known = known.both(last);
        }
        self.last = self.last.both(last);
    }

    fn at(&self, reach: Reach) -> Stands {
        let extensions = EXTENSIONS.map(Set::one);
        let extension = extensions.iter().skip(1).fold(Set::one(0), |a, b| a.or(b));
        let set = match reach {
            Reach::After(n) => self.next.get(&n).cloned().unwrap_or_else(Set::all),
            Reach::Last(..) => self.last.without(&extension),
        };
        let is = |s: Set| s.values().next().is_some();
        match (is(set.both(&extension)), is(set.without(&extension))) {
            (true, false) => Stands::Extension(set),
            (false, _) => Stands::Transport(set),
            (true, true) => Stands::Either,
        }
    }
}

/// The headers of a packet behind Ethernet and IPv6.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    network: i64,
    outer: Chain,
    inner: Chain,
    /// places of ICMPv6 headers that are errors'
    errors: Vec<Reach>,
    /// whatever is behind all extension headers is one
    error_last: bool,
}

/// The conjuncts of a guard that say that an expression has a value, or that it has not.
fn equalities(arena: &Arena, guard: &[(ExprId, bool)]) -> Vec<(ExprId, u64, bool)> {
    let mut out = Vec::new();
    let mut todo = guard.to_vec();
    while let Some((e, holds)) = todo.pop() {
        match *arena.node(e) {
            Node::Bin(Bin::Xor, a, b) if arena.width(e) == 1 => {
                if arena.constant(a) == Some(1) {
                    todo.push((b, !holds));
                } else if arena.constant(b) == Some(1) {
                    todo.push((a, !holds));
                }
            }
            Node::Bin(Bin::And, a, b) if arena.width(e) == 1 && holds => {
                todo.extend([(a, true), (b, true)]);
            }
            Node::Bin(Bin::Or, a, b) if arena.width(e) == 1 && !holds => {
                todo.extend([(a, false), (b, false)]);
            }
            Node::Cmp(Rel::Eq, x, c) => {
                if let Some(c) = arena.constant(c) {
                    out.push((x, c, holds));
                }
            }
            _ => {}
        }
    }
    out
}

/// All of these values.
fn set(of: impl Iterator<Item = u8>) -> Option<Set> {
    of.map(Set::one).reduce(|a, b| a.or(&b))
}

/// The number that all of these are.
fn count(mut of: impl Iterator<Item = usize>) -> Option<usize> {
    let first = of.next()?;
    of.all(|n| n == first).then_some(first)
}

/// The one byte that a number is made of, if its others are 0.
fn lowest(arena: &Arena, e: ExprId) -> ExprId {
    match arena.node(e) {
        Node::Concat(parts) => match parts.as_ref() {
            [zero, low] if arena.constant(*zero) == Some(0) => *low,
            _ => e,
        },
        _ => e,
    }
}

impl Chains {
    /// The chains that a guard implies.
    pub(super) fn of(
        arena: &Arena,
        (guard, known): (&[(ExprId, bool)], &Known),
        network: i64,
        memory: &Memory,
    ) -> Self {
        let mut all = Self {
            network,
            outer: Chain::new(),
            inner: Chain::new(),
            errors: Vec::new(),
            error_last: false,
        };
        for (x, c, holds) in equalities(arena, guard) {
            let Some(Meaning::Protocol { inner }) =
                memory.meaning(arena, lowest(arena, x), network)
            else {
                continue;
            };
            let one = Set::one(c as u8);
            let set = if holds { one } else { Set::all().without(&one) };
            let chain = if inner {
                &mut all.inner
            } else {
                &mut all.outer
            };
            chain.last = chain.last.both(&set);
        }
        let bytes = known.iter().filter_map(|(of, set)| match of {
            Of::Byte((base, at)) => Some((all.place(arena, *base, *at, memory)?, set)),
            Of::Port => None,
        });
        let bytes: Vec<((Landing, i64), &Set)> = bytes.collect();
        for ((landing, at), set) in &bytes {
            // The fixed header's field, 34 bytes before its end.
            match (landing.inner, landing.outer, at) {
                (None, Reach::After(0), -34) => drop(all.outer.next.insert(0, (*set).clone())),
                (None, Reach::After(n), 0) => drop(all.outer.next.insert(n + 1, (*set).clone())),
                _ => {}
            }
        }
        for ((landing, at), set) in &bytes {
            let error = *at == 0 && set.values().all(|v| v < 128);
            if landing.inner.is_none() && error && all.is_icmp(landing.outer) {
                all.errors.push(landing.outer);
            }
        }
        for ((landing, at), set) in &bytes {
            match all.carried(*landing, *at) {
                Some((Reach::After(0), -34)) => drop(all.inner.next.insert(0, (*set).clone())),
                Some((Reach::After(n), 0)) => drop(all.inner.next.insert(n + 1, (*set).clone())),
                _ => {}
            }
        }
        if all.open() {
            all.narrow(&memory.possible(arena, guard, network));
        }
        all
    }

    /// Whether it is not known where a chain ends.
    fn open(&self) -> bool {
        let end = |chain: &Chain| {
            let mut reaches = (0..=MOST).map(Reach::After);
            reaches.find_map(|r| match chain.at(r) {
                Stands::Extension(_) => None,
                Stands::Either => Some(None),
                Stands::Transport(_) => Some(Some(r)),
            })
        };
        match end(&self.outer) {
            Some(Some(r)) if self.is_icmp(r) => {
                !self.errors.contains(&r) || end(&self.inner).flatten().is_none()
            }
            end => end.flatten().is_none(),
        }
    }

    /// Takes over what all packets have in common that are possible.
    fn narrow(&mut self, possible: &[Possible]) {
        let Some(last) = set(possible.iter().map(|p| p.protocol)) else {
            return;
        };
        let outer = count(possible.iter().map(|p| p.shape.0));
        let ends = outer.map(Reach::After);
        if possible.iter().all(|p| p.carried.is_some()) {
            self.errors.extend(ends);
            self.error_last = true;
            if let Some(last) = set(possible.iter().filter_map(|p| p.carried)) {
                let inner = count(possible.iter().filter_map(|p| p.shape.1));
                self.inner.end(inner, &last);
            }
        }
        self.outer.end(outer, &last);
    }

    /// Offset of the IPv6 header.
    pub(super) fn network(&self) -> i64 {
        self.network
    }

    /// A byte of the packet by the last place from which its distance is known.
    pub(super) fn place(
        &self,
        arena: &Arena,
        base: Option<ExprId>,
        at: i64,
        memory: &Memory,
    ) -> Option<(Landing, i64)> {
        match base {
            None => {
                let start = Landing {
                    outer: Reach::After(0),
                    inner: None,
                };
                (at >= self.network).then_some((start, at - self.network - HEADER))
            }
            Some(b) => match memory.meaning(arena, b, self.network)? {
                Meaning::Offset(landing, by) => Some((landing, by.checked_add(at)?)),
                Meaning::Protocol { .. } => None,
            },
        }
    }

    fn is_icmp(&self, outer: Reach) -> bool {
        match self.outer.at(outer) {
            Stands::Transport(set) => set.only() == Some(58),
            _ => false,
        }
    }

    fn is_error(&self, outer: Reach) -> bool {
        self.errors.contains(&outer) || self.error_last && matches!(outer, Reach::Last(..))
    }

    /// The place as one of the carried packet's, if it is one.
    fn carried(&self, landing: Landing, at: i64) -> Option<(Reach, i64)> {
        match landing.inner {
            Some(inner) => Some((inner, at)),
            None if self.is_error(landing.outer) && at >= ICMP_BYTES => {
                Some((Reach::After(0), at - ICMP_BYTES - HEADER))
            }
            None => None,
        }
    }

    /// The field that a byte is of.
    pub(super) fn field(&self, landing: Landing, at: i64) -> Option<Found> {
        let (chain, reach, at, inner) = match self.carried(landing, at) {
            Some((reach, at)) => (&self.inner, reach, at, true),
            None => (&self.outer, landing.outer, at, false),
        };
        let find = |fields: &'static [Field], at: i64, extension: usize| {
            let hit = fields.iter().find(|f| (f.1..f.1 + f.2).contains(&at));
            let name = |field| Name {
                inner,
                extension,
                field,
            };
            hit.map(|f| (name(f.0), at - f.1, f.2))
        };
        if at < 0 {
            let fixed = reach == Reach::After(0);
            return fixed.then(|| find(IPV6, at + HEADER, 0)).flatten();
        }
        match (chain.at(reach), reach) {
            (Stands::Extension(set), Reach::After(n)) => {
                let fragment = set.values().any(|v| v == 44);
                let fields = if fragment { FRAGMENT } else { EXTENSION };
                find(fields, at, n + 1)
            }
            (Stands::Transport(set), _) => {
                // What looks at either version's ICMP looks at the same fields.
                let icmp = set.values().all(|v| matches!(v, 1 | 58));
                let number = if icmp { Some(58) } else { set.only() };
                find(transport(number, true), at, 0)
            }
            _ => None,
        }
    }

    /// An offset, from the header that is there.
    pub(super) fn offset(&self, landing: Landing, by: i64) -> Along {
        let (chain, reach, by, inner) = match self.carried(landing, by) {
            Some((reach, by)) => (&self.inner, reach, by, true),
            None => (&self.outer, landing.outer, by, false),
        };
        let (header, by) = match reach {
            Reach::After(0) => (Header::Ip6, by + HEADER),
            Reach::After(n) => match chain.at(reach) {
                Stands::Transport(_) => (Header::Transport, by),
                _ => (Header::Extension(n + 1), by),
            },
            Reach::Last(..) => (Header::Transport, by),
        };
        Along::Offset { inner, header, by }
    }
}
