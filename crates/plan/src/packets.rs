//! Which packets take a path: by port and by the kind that a NIC takes them for, as far as the path's guard
//! says. What the guard leaves open is taken for possible.

use std::collections::BTreeMap;

use millrace_model::expr::sets::{Place, Set};
use millrace_model::expr::walk::{cone, with_bytes};
use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel};
use millrace_model::known::{Known, Memory, Of};
use millrace_model::layout::header_bytes;
use millrace_steer::Kind;

/// Packets of one kind at one port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Packets {
    /// index of the port
    pub port: usize,
    /// what the NIC takes them for; of an ICMP error that is steered as the answer to what it carries: that
    /// answer's kind
    pub kind: Kind,
}

/// The version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

/// How the packet lies in memory, for some of a path's packets.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// the version; none for what is not IP
    pub family: Option<Family>,
    /// offset of the network header
    pub at: i64,
    /// bytes that these packets have
    pub bytes: BTreeMap<Place, u8>,
    /// values that bytes can have
    known: Known,
    /// bytes of the packet that the path has read for certain, by what their place is computed from: the last
    read: BTreeMap<Option<ExprId>, i64>,
    /// the packet is so long at least
    length: i64,
    /// the protocol of IPv4, or what follows the IPv6 header, may be an IPv6 extension header
    pub extended: bool,
}

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// As many VLAN tags as crates/steer steps over.
const MOST_TAGS: usize = 4;
/// More EtherTypes that a guard leaves beside those of IP and tags are taken for possible without a look.
const MOST_TYPES: usize = 16;
/// Next headers of IPv6 that other headers follow (crates/steer, fields.rs).
const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
pub(crate) const TRANSPORTS: [u8; 3] = [6, 17, 132];
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Types of ICMP that carry the packet that they are about (RFC 792, RFC 4443).
pub(crate) const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
pub(crate) const ERRORS6: [u8; 4] = [1, 2, 3, 4];

/// The parts of a conjunction that stand in a guard.
pub(crate) fn conjuncts(arena: &Arena, guard: &[ExprId]) -> Vec<ExprId> {
    let (mut out, mut todo) = (Vec::new(), guard.to_vec());
    while let Some(e) = todo.pop() {
        match *arena.node(e) {
            Node::Bin(Bin::And, a, b) if arena.width(e) == 1 => todo.extend([a, b]),
            _ => out.push(e),
        }
    }
    out
}

/// The condition whose contrary this is.
pub(crate) fn negated(arena: &Arena, e: ExprId) -> Option<ExprId> {
    match *arena.node(e) {
        Node::Bin(Bin::Xor, a, b) if arena.width(e) == 1 => {
            if arena.constant(a) == Some(1) {
                Some(b)
            } else {
                (arena.constant(b) == Some(1)).then_some(a)
            }
        }
        _ => None,
    }
}

/// The bytes that a condition reads whatever happens: not behind a choice.
fn surely_read(arena: &Arena, e: ExprId, read: &mut BTreeMap<Option<ExprId>, i64>) {
    // A choice is as old as what it chooses from or newer, so the walk is cut there.
    let open = |id: ExprId| {
        let either = matches!(arena.node(id), Node::Bin(Bin::Or, ..)) && arena.width(id) == 1;
        matches!(arena.node(id), Node::Ite(..)) || either
    };
    for id in cone(arena, &[e], open) {
        if let Node::Byte { base, at } = *arena.node(id) {
            let last = read.entry(base).or_insert(at);
            *last = (*last).max(at);
        }
    }
}

/// The least length that a condition leaves.
fn least_length(arena: &Arena, e: ExprId) -> Option<i64> {
    let is_length = |mut e: ExprId| {
        loop {
            match arena.node(e) {
                Node::Sym(s) => return arena.symbol(*s).name == "length",
                Node::Concat(parts) => match parts.as_ref() {
                    [high, low] if arena.constant(*high) == Some(0) => e = *low,
                    _ => return false,
                },
                Node::Extract { of, low: 0 } => e = *of,
                _ => return false,
            }
        }
    };
    let (condition, holds) = match negated(arena, e) {
        Some(inner) => (inner, false),
        None => (e, true),
    };
    let Node::Cmp(Rel::Less, a, b) = *arena.node(condition) else {
        return None;
    };
    match (holds, arena.constant(a), arena.constant(b)) {
        (false, _, Some(c)) if is_length(a) => i64::try_from(c).ok(),
        (true, Some(c), _) if is_length(b) => i64::try_from(c).ok()?.checked_add(1),
        _ => None,
    }
}

/// What a guard says of bytes, once for a path.
struct Guard<'a> {
    guard: &'a [ExprId],
    memory: &'a Memory,
}

impl Guard<'_> {
    fn view(&self, arena: &Arena, family: Option<Family>, at: i64, bytes: &BTreeMap<Place, u8>) -> View {
        self.seen(arena, self.guard, family, at, bytes)
    }

    fn seen(
        &self,
        arena: &Arena,
        guard: &[ExprId],
        family: Option<Family>,
        at: i64,
        bytes: &BTreeMap<Place, u8>,
    ) -> View {
        let mut known = self.memory.all(arena, guard);
        for (place, v) in bytes {
            known.insert(Of::Byte(*place), Set::one(*v));
        }
        let (mut read, mut length) = (BTreeMap::new(), 0);
        for e in conjuncts(arena, guard) {
            surely_read(arena, e, &mut read);
            length = least_length(arena, e).unwrap_or(0).max(length);
        }
        View {
            family,
            at,
            bytes: bytes.clone(),
            known,
            read,
            length,
            extended: false,
        }
    }
}

/// How the packets of a path can lie in memory; `roots` are expressions that matter to whoever asks: where none
/// of them depends on what the guard leaves open, nothing is tried.
pub(crate) fn views(arena: &mut Arena, guard: &[ExprId], memory: &Memory) -> Vec<View> {
    let all = Guard { guard, memory };
    let known = memory.all(arena, guard);
    let only = |at: i64| known.get(&Of::Byte((None, at))).and_then(Set::only);
    let word = |at: i64| Some(u16::from_be_bytes([only(at)?, only(at + 1)?]));
    // What precedes a known EtherType at 16 or 20 is tags, or the guard would not have looked there: it is
    // looked at all the same.
    let mut at = 12;
    while let Some(kind) = word(at) {
        let family = match kind {
            0x0800 => Family::V4,
            0x86dd => Family::V6,
            tag if TAGS.contains(&tag) && at < 12 + 4 * MOST_TAGS as i64 => {
                at += 4;
                continue;
            }
            _ => return vec![all.view(arena, None, at, &BTreeMap::new())],
        };
        return by_next(all.view(arena, Some(family), at + 2, &BTreeMap::new()));
    }
    let mut out = Vec::new();
    let mut todo = vec![(12_i64, BTreeMap::<Place, u8>::new(), guard.to_vec())];
    while let Some((at, bytes, guard)) = todo.pop() {
        let mut next: Vec<u16> = vec![0x0800, 0x86dd];
        if at < 12 + 4 * MOST_TAGS as i64 {
            next.extend(TAGS);
        }
        if let Some(bytes) = any_other(arena, &known, &guard, at, (&bytes, &next)) {
            out.push(all.seen(arena, &guard, None, at, &bytes));
        }
        for kind in next {
            let [high, low] = kind.to_be_bytes();
            let admits = |place: i64, v: u8| {
                let set = known.get(&Of::Byte((None, place)));
                set.is_none_or(|s| s.values().any(|x| x == v))
            };
            if !admits(at, high) || !admits(at + 1, low) {
                continue;
            }
            let mut bytes = bytes.clone();
            bytes.extend([((None, at), high), ((None, at + 1), low)]);
            let guard = with_bytes(arena, &guard, &bytes);
            if guard.iter().any(|e| arena.constant(*e) == Some(0)) {
                continue;
            }
            match kind {
                0x0800 => out.extend(by_next(all.seen(arena, &guard, Some(Family::V4), at + 2, &bytes))),
                0x86dd => out.extend(by_next(all.seen(arena, &guard, Some(Family::V6), at + 2, &bytes))),
                _ => todo.push((at + 4, bytes, guard)),
            }
        }
    }
    out
}

/// What the packets have in common that have none of these EtherTypes at an offset; none if there are no such.
fn any_other(
    arena: &mut Arena,
    known: &Known,
    guard: &[ExprId],
    at: i64,
    (bytes, types): (&BTreeMap<Place, u8>, &[u16]),
) -> Option<BTreeMap<Place, u8>> {
    let set = |at: i64| known.get(&Of::Byte((None, at))).cloned();
    let (Some(high), Some(low)) = (set(at), set(at + 1)) else {
        return Some(bytes.clone());
    };
    let pairs = high.values().flat_map(|h| low.values().map(move |l| (h, l)));
    let others: Vec<(u8, u8)> = pairs
        .filter(|(h, l)| !types.contains(&u16::from_be_bytes([*h, *l])))
        .take(MOST_TYPES + 1)
        .collect();
    if others.len() > MOST_TYPES {
        return Some(bytes.clone());
    }
    let possible = others.into_iter().any(|(h, l)| {
        let mut bytes = bytes.clone();
        bytes.extend([((None, at), h), ((None, at + 1), l)]);
        let guard = with_bytes(arena, guard, &bytes);
        !guard.iter().any(|e| arena.constant(*e) == Some(0))
    });
    possible.then(|| bytes.clone())
}

/// IPv6 with and without extension headers.
fn by_next(view: View) -> Vec<View> {
    if view.family != Some(Family::V6) {
        return vec![view];
    }
    let next = view.set((None, view.at + 6));
    let place = Of::Byte((None, view.at + 6));
    let part = |extended: bool| {
        let set = next.filtered(|v| EXTENSIONS.contains(v) == extended);
        set.values().next()?;
        let mut view = view.clone();
        view.known.insert(place, set);
        view.extended = extended;
        Some(view)
    };
    [part(false), part(true)].into_iter().flatten().collect()
}

impl View {
    /// The values that a byte can have.
    pub fn set(&self, place: Place) -> Set {
        let found = self.known.get(&Of::Byte(place)).cloned();
        found.unwrap_or_else(Set::all)
    }

    /// The value of a byte that has only one.
    pub fn only(&self, place: Place) -> Option<u8> {
        self.known.get(&Of::Byte(place)).and_then(Set::only)
    }

    /// The same of packets of which more is known.
    pub fn with(&self, more: &[(Place, u8)]) -> Self {
        let mut view = self.clone();
        for (place, v) in more {
            view.bytes.insert(*place, *v);
            view.known.insert(Of::Byte(*place), Set::one(*v));
        }
        view
    }

    /// The bytes of which one value only is possible.
    pub fn fixed(&self) -> BTreeMap<Place, u8> {
        let single = self.known.iter().filter_map(|(of, set)| match of {
            Of::Byte(place) => Some((*place, set.only()?)),
            Of::Port => None,
        });
        single.collect()
    }

    /// Whether all packets have bytes up to this one, counted from the first.
    fn reaches(&self, at: i64) -> bool {
        self.length > at || self.read.get(&None).is_some_and(|last| *last >= at)
    }

    /// Where the transport header begins: the part of the offset that is computed, and the constant part.
    pub fn transport(&self, arena: &Arena) -> Option<Place> {
        match self.family? {
            Family::V6 => (!self.extended).then_some((None, self.at + 40)),
            Family::V4 => match self.only((None, self.at)) {
                Some(first) => Some((None, self.at + 4 * i64::from(first & 15))),
                None => {
                    let known = self.known.keys().filter_map(|of| match of {
                        Of::Byte((base, _)) => *base,
                        Of::Port => None,
                    });
                    let read = self.read.keys().flatten().copied();
                    let mut bases = known.chain(read);
                    let base = bases.find(|b| header_bytes(arena, *b) == Some((None, self.at)))?;
                    Some((Some(base), self.at))
                }
            },
        }
    }

    fn ports_there(&self, arena: &Arena) -> bool {
        match self.transport(arena) {
            Some((None, at)) => self.reaches(at + 3),
            Some((base, at)) => self.read.get(&base).is_some_and(|last| *last >= at + 3),
            None => false,
        }
    }

    /// What the packets can be, and for what they are taken; `Way::Answer` stands with the kind of the ICMP
    /// error itself.
    pub fn kinds(&self, arena: &Arena) -> Vec<(Kind, Way)> {
        let Some(family) = self.family else {
            return vec![(Kind::NotIp, Way::Plain)];
        };
        let mut out = Vec::new();
        let first = self.set((None, self.at));
        let (header, well) = match family {
            Family::V4 => (20, first.values().all(|v| v >> 4 == 4 && v & 15 >= 5)),
            Family::V6 => (40, first.values().all(|v| v >> 4 == 6)),
        };
        if !well || !self.reaches(self.at + header - 1) {
            out.push((Kind::NotIp, Way::Plain));
        }
        let kinds = kinds_of(family);
        if self.extended {
            out.extend(kinds.map(|kind| (kind, Way::Plain)));
            return out;
        }
        let pieces = match family {
            Family::V4 => self.pieces((None, self.at)),
            Family::V6 => Pieces::WHOLE,
        };
        let fragment = kinds[FRAGMENT];
        if pieces.later {
            out.push((fragment, Way::Plain));
        }
        for (kind, error) in self.whole(arena, family, kinds) {
            if pieces.whole {
                out.push((kind, if error { Way::Answer } else { Way::Plain }));
                if error {
                    out.push((kind, Way::Rough));
                }
            }
            if pieces.first {
                out.push((kind, if error { Way::Answer } else { Way::Whole }));
                out.push((fragment, Way::Rough));
            }
        }
        out
    }

    /// The kinds of packets that are whole, and whether they are ICMP errors.
    fn whole(&self, arena: &Arena, family: Family, kinds: [Kind; 5]) -> Vec<(Kind, bool)> {
        let mut out = Vec::new();
        let mut protocols = self.protocols();
        for (number, kind) in TRANSPORTS.into_iter().zip(kinds) {
            if protocols.contains(&number) {
                out.push((kind, false));
                if !self.ports_there(arena) {
                    out.push((kinds[OTHER], false));
                }
            }
        }
        protocols.retain(|p| !TRANSPORTS.contains(p));
        if protocols.is_empty() {
            return out;
        }
        let (icmp, errors): (u8, &[u8]) = match family {
            Family::V4 => (ICMP, &ERRORS),
            Family::V6 => (ICMPV6, &ERRORS6),
        };
        let types = match self.transport(arena) {
            Some(place) if protocols.contains(&icmp) => self.set(place),
            _ => Set::all(),
        };
        let is_error = |t: u8| errors.contains(&t);
        if protocols.contains(&icmp) && types.values().any(is_error) {
            out.push((kinds[OTHER], true));
        }
        if protocols.iter().any(|p| *p != icmp) || types.values().any(|t| !is_error(t)) {
            out.push((kinds[OTHER], false));
        }
        out
    }

    /// The protocols that IPv4 or IPv6 can name.
    fn protocols(&self) -> Vec<u8> {
        let at = match self.family {
            Some(Family::V4) => 9,
            _ => 6,
        };
        self.set((None, self.at + at)).values().collect()
    }

    /// Which pieces an IPv4 packet can be, whose header is there.
    pub fn pieces(&self, (base, at): Place) -> Pieces {
        let (high, low) = (self.set((base, at + 6)), self.set((base, at + 7)));
        let some = |set: &Set, is: &dyn Fn(u8) -> bool| set.values().any(is);
        let zero = some(&low, &|v| v == 0);
        Pieces {
            whole: zero && some(&high, &|v| v & 0x3f == 0),
            first: zero && some(&high, &|v| v & 0x3f == 0x20),
            later: some(&low, &|v| v != 0) || some(&high, &|v| v & 0x1f != 0),
        }
    }
}

/// TCP, UDP, SCTP, fragment, other.
pub(crate) fn kinds_of(family: Family) -> [Kind; 5] {
    match family {
        Family::V4 => [
            Kind::Ipv4Tcp,
            Kind::Ipv4Udp,
            Kind::Ipv4Sctp,
            Kind::Ipv4Fragment,
            Kind::Ipv4,
        ],
        Family::V6 => [
            Kind::Ipv6Tcp,
            Kind::Ipv6Udp,
            Kind::Ipv6Sctp,
            Kind::Ipv6Fragment,
            Kind::Ipv6,
        ],
    }
}
pub(crate) const FRAGMENT: usize = 3;
const OTHER: usize = 4;

/// What a packet can be of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pieces {
    /// all of it
    pub whole: bool,
    /// its first fragment
    pub first: bool,
    /// a later one
    pub later: bool,
}

impl Pieces {
    const WHOLE: Self = Self {
        whole: true,
        first: false,
        later: false,
    };
}

/// What a packet is taken for when it is steered. Where software looks inside packets, ICMP errors go as answers
/// and first fragments as whole packets; where it does not, both go as the NIC takes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Way {
    /// what it is, either way
    Plain,
    /// if looked inside: an ICMP error, as the answer to the packet that it carries
    Answer,
    /// if looked inside: a first fragment, as the packet that it begins
    Whole,
    /// if not looked inside: an ICMP error or a first fragment
    Rough,
}
