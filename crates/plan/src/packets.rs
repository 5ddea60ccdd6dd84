//! Which packets take a path: by port and by the kind that a NIC takes them for, as far as the path's guard
//! says. What the guard leaves open is taken for possible.

use std::collections::BTreeMap;
use std::rc::Rc;

use millrace_model::expr::sets::Set;
use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel};
use millrace_model::known::{Known, Of};
use millrace_steer::{Field, Kind};

use crate::memo::{Bytes, Memo, furthest};
use crate::offset::Offset;

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
#[derive(Clone)]
pub(crate) struct View {
    /// the version; none for what is not IP
    pub family: Option<Family>,
    /// offset of the network header
    pub at: i64,
    /// values that bytes can have
    known: Known,
    /// the furthest bytes of the packet that the path has read for certain
    read: Vec<Offset>,
    /// what is known of expressions
    pub memo: Rc<Memo>,
    /// the packet is so long at least
    length: i64,
    /// what the path's guard says of the packet
    pub guard: Rc<Vec<ExprId>>,
    /// nothing that the path does depends on what kind of packet it is
    any: bool,
    /// an extension header follows the IPv6 header
    pub extended: bool,
    /// the same of the packet that an ICMPv6 error carries
    pub carries_extended: bool,
    /// they are ICMP echoes, or errors that carry one, and their identifier counts as this port of UDP
    pub echo: Option<Field>,
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
/// Echo request and reply (RFC 792), and the port of UDP that their identifier counts as.
const ECHOES: [(u8, Field); 2] = [(8, Field::SourcePort), (0, Field::DestinationPort)];
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

/// What a guard says of conditions.
pub(crate) fn conditions(arena: &Arena, guard: &[ExprId]) -> BTreeMap<ExprId, bool> {
    let said = |e: ExprId| match negated(arena, e) {
        Some(contrary) => (contrary, false),
        None => (e, true),
    };
    conjuncts(arena, guard).into_iter().map(said).collect()
}

/// The parts of a guard that speak of the packet alone.
pub(crate) fn of_packet(arena: &Arena, memo: &Memo, guard: &[ExprId]) -> Vec<ExprId> {
    let plain = |e: ExprId| {
        let inner = negated(arena, e).unwrap_or(e);
        !matches!(arena.node(inner), Node::Bin(Bin::And | Bin::Or, ..))
    };
    let mut all = conjuncts(arena, guard);
    // What is said of the packet beside state, where paths merged, stays.
    all.retain(|e| !plain(*e) || !memo.parts(arena, *e).foreign);
    all.sort_unstable();
    all.dedup();
    all
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

/// What a path is known by: its guard, and what else it computes whatever happens.
#[derive(Clone)]
pub(crate) struct Course {
    /// what the guard says of the packet
    pub guard: Vec<ExprId>,
    /// keys of its accesses
    pub done: Vec<ExprId>,
    pub memo: Rc<Memo>,
}

impl Course {
    fn view(&self, arena: &mut Arena, family: Option<Family>, at: i64, bytes: &Bytes) -> View {
        let memo = &self.memo;
        let mut known = (*memo.known.all(arena, &self.guard)).clone();
        for (place, v) in bytes {
            known.insert(Of::Byte(*place), Set::one(*v));
        }
        let mut length = 0;
        for e in conjuncts(arena, &self.guard) {
            length = least_length(arena, e).unwrap_or(0).max(length);
        }
        let mut all: Vec<ExprId> = self.guard.iter().chain(&self.done).copied().collect();
        // Where a place is chosen by what the guard says, it is chosen now.
        if self.done.iter().any(|e| memo.parts(arena, *e).chooses) {
            let done = memo.given(arena, &self.done, bytes);
            let conditions = conditions(arena, &self.guard);
            all.extend(memo.decided(arena, &done, &conditions));
        }
        let mut read = Vec::new();
        for e in &all {
            let parts = memo.parts(arena, *e);
            parts.sure.iter().for_each(|o| furthest(&mut read, o));
        }
        View {
            family,
            at,
            known,
            read,
            memo: memo.clone(),
            length,
            guard: Rc::new(self.guard.clone()),
            any: false,
            extended: false,
            carries_extended: false,
            echo: None,
        }
    }

    /// The same of packets that have these bytes; none if there are no such packets on the path.
    fn with(&self, arena: &mut Arena, bytes: &Bytes) -> Option<Self> {
        let guard = self.memo.given(arena, &self.guard, bytes);
        let possible = !guard.iter().any(|e| arena.constant(*e) == Some(0));
        possible.then(|| Self {
            done: self.memo.given(arena, &self.done, bytes),
            guard,
            memo: self.memo.clone(),
        })
    }

    /// Whether it looks at the EtherType at an offset, or at anything behind it.
    fn looks_behind(&self, arena: &Arena, from: i64) -> bool {
        let mut all = self.guard.iter().chain(&self.done);
        all.any(|e| self.memo.parts(arena, *e).looks_behind(from))
    }
}

/// How the packets of a path can lie in memory.
pub(crate) fn views(arena: &mut Arena, path: &Course) -> Vec<View> {
    let known = path.memo.known.all(arena, &path.guard);
    let only = |at: i64| known.get(&Of::Byte((None, at))).and_then(Set::only);
    let word = |at: i64| Some(u16::from_be_bytes([only(at)?, only(at + 1)?]));
    let none = BTreeMap::new();
    let mut at = 12;
    while let Some(kind) = word(at) {
        let family = match kind {
            0x0800 => Family::V4,
            0x86dd => Family::V6,
            tag if TAGS.contains(&tag) && at < 12 + 4 * MOST_TAGS as i64 => {
                at += 4;
                continue;
            }
            _ => return vec![path.view(arena, None, at, &none)],
        };
        let view = path.view(arena, Some(family), at + 2, &none);
        return by_next(arena, view);
    }
    let mut out = Vec::new();
    let mut todo = vec![(12_i64, none, path.clone())];
    while let Some((at, bytes, path)) = todo.pop() {
        if !path.looks_behind(arena, at) {
            let mut view = path.view(arena, None, at, &bytes);
            view.any = true;
            out.push(view);
            continue;
        }
        let mut next: Vec<u16> = vec![0x0800, 0x86dd];
        if at < 12 + 4 * MOST_TAGS as i64 {
            next.extend(TAGS);
        }
        let known = path.memo.known.all(arena, &path.guard);
        if let Some(bytes) = any_other(arena, &known, &path, at, (&bytes, &next)) {
            out.push(path.view(arena, None, at, &bytes));
        }
        let mut behind: Vec<Course> = Vec::new();
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
            let Some(path) = path.with(arena, &bytes) else {
                continue;
            };
            match kind {
                0x0800 => out.push(path.view(arena, Some(Family::V4), at + 2, &bytes)),
                0x86dd => {
                    let view = path.view(arena, Some(Family::V6), at + 2, &bytes);
                    out.extend(by_next(arena, view));
                }
                // Tags that the path does not tell apart are one.
                _ => {
                    let same = |o: &Course| o.guard == path.guard && o.done == path.done;
                    if !behind.iter().any(same) {
                        behind.push(path.clone());
                        todo.push((at + 4, bytes, path));
                    }
                }
            }
        }
    }
    out
}

/// What the packets have in common that have none of these EtherTypes at an offset; none if there are no such.
fn any_other(
    arena: &mut Arena,
    known: &Known,
    path: &Course,
    at: i64,
    (bytes, types): (&Bytes, &[u16]),
) -> Option<Bytes> {
    let set = |at: i64| known.get(&Of::Byte((None, at))).cloned();
    let (Some(high), Some(low)) = (set(at), set(at + 1)) else {
        return Some(bytes.clone());
    };
    let pairs = high
        .values()
        .flat_map(|h| low.values().map(move |l| (h, l)));
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
        path.with(arena, &bytes).is_some()
    });
    possible.then(|| bytes.clone())
}

/// IPv6 with and without extension headers.
fn by_next(arena: &Arena, view: View) -> Vec<View> {
    if view.family != Some(Family::V6) {
        return vec![view];
    }
    let place = view.network().plus(6);
    let [plain, mut extended] = [false, true].map(|e| view.extends(arena, &place, e));
    extended.iter_mut().for_each(|v| v.extended = true);
    plain.into_iter().chain(extended).collect()
}

impl View {
    /// The values that a byte can have.
    pub fn set(&self, arena: &Arena, place: &Offset) -> Set {
        let mut set = Set::all();
        for at in self.memo.places(arena, place) {
            if let Some(s) = self.known.get(&Of::Byte(at)) {
                set = set.both(s);
            }
        }
        // What the EtherTypes were taken for is known of bytes that nobody looks at, too.
        match self.known.get(&Of::Byte((None, place.at))) {
            Some(s) if place.terms.is_empty() => set.both(s),
            _ => set,
        }
    }

    /// The same of packets with this byte.
    pub fn with(&self, arena: &Arena, place: &Offset, value: u8) -> Self {
        let mut view = self.clone();
        for at in self.memo.places(arena, place) {
            view.known.insert(Of::Byte(at), Set::one(value));
        }
        if place.terms.is_empty() {
            view.known
                .insert(Of::Byte((None, place.at)), Set::one(value));
        }
        view
    }

    /// Those whose byte is, or is not, the number of an IPv6 extension header.
    pub fn extends(&self, arena: &Arena, place: &Offset, extension: bool) -> Option<Self> {
        let set = self.set(arena, place);
        let set = set.filtered(|v| EXTENSIONS.contains(v) == extension);
        set.values().next()?;
        let mut view = self.clone();
        let mut places = self.memo.places(arena, place);
        if place.terms.is_empty() {
            places.push((None, place.at));
        }
        for at in places {
            view.known.insert(Of::Byte(at), set.clone());
        }
        Some(view)
    }

    /// Whether an IPv4 header here can be that of a later fragment: where the guard is about several layouts, it
    /// is asked.
    pub fn later(&self, arena: &mut Arena, header: &Offset) -> bool {
        if !self.pieces(arena, header).later {
            return false;
        }
        let mut conditions = BTreeMap::new();
        for e in self.guard.iter() {
            let parts = self.memo.parts(arena, *e);
            let here = parts.whole.iter().filter(|c| c.1 == *header);
            conditions.extend(here.map(|c| (c.0, false)));
        }
        let guard = self.memo.decided(arena, &self.guard, &conditions);
        !guard.iter().any(|e| arena.constant(*e) == Some(0))
    }

    /// Where the network header begins.
    pub fn network(&self) -> Offset {
        Offset::number(self.at)
    }

    /// The bytes of which one value only is possible.
    pub fn fixed(&self) -> Bytes {
        let single = self.known.iter().filter_map(|(of, set)| match of {
            Of::Byte(place) => Some((*place, set.only()?)),
            Of::Port => None,
        });
        single.collect()
    }

    /// Whether all packets have bytes up to this one.
    fn reaches(&self, last: &Offset) -> bool {
        let behind = |read: &Offset| read.from(last).is_some_and(|d| d >= 0);
        (last.terms.is_empty() && self.length > last.at) || self.read.iter().any(behind)
    }

    /// Where the transport header begins.
    pub fn transport(&self, arena: &Arena) -> Option<Offset> {
        match self.family? {
            Family::V6 => (!self.extended).then(|| self.network().plus(40)),
            Family::V4 => Some(match self.set(arena, &self.network()).only() {
                Some(first) => self.network().plus(4 * i64::from(first & 15)),
                None => self.network().behind_ipv4(),
            }),
        }
    }

    /// Whether some of the packets name a protocol with ports, and are too short to have them.
    pub fn short(&self, arena: &Arena) -> bool {
        let with_ports = self.protocols(arena).iter().any(|p| TRANSPORTS.contains(p));
        !self.extended && with_ports && !self.ports_there(arena)
    }

    fn ports_there(&self, arena: &Arena) -> bool {
        self.transport(arena)
            .is_some_and(|t| self.reaches(&t.plus(3)))
    }

    /// Whether there are packets of a kind among these: where the guard is about several kinds, it is asked.
    pub fn has(&self, arena: &mut Arena, kind: Kind, way: Way) -> bool {
        let several = self.protocols(arena).len() > 1;
        let Some(family) = self
            .family
            .filter(|_| several && !self.extended && !self.any)
        else {
            return true;
        };
        let number = match (kind, family, way) {
            (_, Family::V4, Way::Answer) => ICMP,
            (_, Family::V6, Way::Answer) => ICMPV6,
            (Kind::Ipv4Tcp | Kind::Ipv6Tcp, ..) => 6,
            (Kind::Ipv4Udp | Kind::Ipv6Udp, ..) => 17,
            (Kind::Ipv4Sctp | Kind::Ipv6Sctp, ..) => 132,
            _ => return true,
        };
        let of = if family == Family::V4 { 9 } else { 6 };
        let view = self.with(arena, &self.network().plus(of), number);
        if way != Way::Answer {
            return view.possible(arena);
        }
        let errors: &[u8] = if family == Family::V4 {
            &ERRORS
        } else {
            &ERRORS6
        };
        let Some(transport) = self.transport(arena) else {
            return true;
        };
        let types = self.set(arena, &transport);
        let mut types = types.values().filter(|t| errors.contains(t));
        types.any(|t| view.with(arena, &transport, t).possible(arena))
    }

    /// The ICMP errors among these packets, one view for each type of error.
    pub fn errors(&self, arena: &mut Arena, course: &Course) -> Vec<View> {
        let (Some(family), Some(transport)) = (self.family, self.transport(arena)) else {
            return vec![self.clone()];
        };
        let (icmp, of, errors): (u8, i64, &[u8]) = match family {
            Family::V4 => (ICMP, 9, &ERRORS),
            Family::V6 => (ICMPV6, 6, &ERRORS6),
        };
        let types = self.set(arena, &transport);
        let types: Vec<u8> = types.values().filter(|t| errors.contains(t)).collect();
        let base = self.with(arena, &self.network().plus(of), icmp);
        let mut out: Vec<View> = Vec::new();
        for t in types {
            let bytes = base.with(arena, &transport, t).fixed();
            let own = Course {
                guard: self.guard.to_vec(),
                ..course.clone()
            };
            let Some(refined) = own.with(arena, &bytes) else {
                continue;
            };
            // Types that the path does not tell apart are one.
            if !out.iter().any(|o| *o.guard == refined.guard) {
                out.push(refined.view(arena, Some(family), self.at, &bytes));
            }
        }
        out
    }

    /// The packets whose header names a protocol without ports there: ICMP, and all others if there are such.
    pub fn without_ports(&self, arena: &mut Arena, protocol: &Offset) -> Vec<View> {
        let icmp = match self.family {
            Some(Family::V4) => ICMP,
            _ => ICMPV6,
        };
        let set = self.set(arena, protocol);
        let mut out = Vec::new();
        let view = self.with(arena, protocol, icmp);
        if set.values().any(|v| v == icmp) && view.possible(arena) {
            out.push(view);
        }
        let mut others = set
            .values()
            .filter(|v| *v != icmp && !TRANSPORTS.contains(v));
        if others.next().is_some() && self.unnamed(arena, protocol) {
            out.push(self.clone());
        }
        out
    }

    /// The ICMP echoes among these packets, whose header is there: requests, and replies.
    pub fn echoes(&self, arena: &mut Arena, header: &Offset) -> Vec<View> {
        let set = self.set(arena, header);
        let mut out = Vec::new();
        if !self.is_icmp(arena, header) {
            return out;
        }
        for (number, field) in ECHOES {
            let mut view = self.with(arena, header, number);
            view.echo = Some(field);
            if set.values().any(|v| v == number) && view.possible(arena) {
                out.push(view);
            }
        }
        out
    }

    /// All others of them, if there are such.
    pub fn no_echoes(&self, arena: &mut Arena, header: &Offset) -> Option<View> {
        if !self.is_icmp(arena, header) {
            return Some(self.clone());
        }
        let is_echo = |v: u8| ECHOES.iter().any(|(number, _)| *number == v);
        let set = self.set(arena, header).filtered(|v| !is_echo(*v));
        let mut view = self.clone();
        for place in self.memo.places(arena, header) {
            view.known.insert(Of::Byte(place), set.clone());
        }
        // One by one: compilers turn "0 or 8" into a mask, of which nothing else is read off.
        let any = set
            .values()
            .any(|t| view.with(arena, header, t).possible(arena));
        any.then_some(view)
    }

    /// Whether a transport header behind an IPv4 header of these packets, their own or that of a carried one, is that
    /// of ICMP; [`Self::without_ports`] tells ICMP apart.
    fn is_icmp(&self, arena: &Arena, header: &Offset) -> bool {
        let Some(own) = self.transport(arena) else {
            return false;
        };
        let ip = if own == *header {
            self.network()
        } else {
            own.plus(8)
        };
        self.set(arena, &ip.plus(9)).only() == Some(ICMP)
    }

    /// Whether the guard leaves packets whose byte equals nothing that it is compared with.
    fn unnamed(&self, arena: &mut Arena, place: &Offset) -> bool {
        let mut conditions = BTreeMap::new();
        for e in self.guard.iter() {
            let parts = self.memo.parts(arena, *e);
            let here = parts.compared.iter().filter(|c| c.1 == *place);
            conditions.extend(here.map(|c| (c.0, false)));
        }
        let guard = self.memo.decided(arena, &self.guard, &conditions);
        !guard.iter().any(|e| arena.constant(*e) == Some(0))
    }

    /// Whether the guard leaves any packet with these bytes.
    pub fn possible(&self, arena: &mut Arena) -> bool {
        let guard = self.memo.given(arena, &self.guard, &self.fixed());
        !guard.iter().any(|e| arena.constant(*e) == Some(0))
    }

    /// What the packets can be, and for what they are taken; `Way::Answer` stands with the kind of the ICMP
    /// error itself.
    pub fn kinds(&self, arena: &mut Arena) -> Vec<(Kind, Way)> {
        if self.any {
            return Kind::ALL.map(|kind| (kind, Way::Plain)).to_vec();
        }
        let Some(family) = self.family else {
            return vec![(Kind::NotIp, Way::Plain)];
        };
        let mut out = Vec::new();
        let first = self.set(arena, &self.network());
        let (header, well) = match family {
            Family::V4 => (20, first.values().all(|v| v >> 4 == 4 && v & 15 >= 5)),
            Family::V6 => (40, first.values().all(|v| v >> 4 == 6)),
        };
        if !well || !self.reaches(&self.network().plus(header - 1)) {
            out.push((Kind::NotIp, Way::Plain));
        }
        let kinds = kinds_of(family);
        if self.extended {
            out.extend(kinds.map(|kind| (kind, Way::Plain)));
            return out;
        }
        let pieces = match family {
            Family::V4 => self.pieces(arena, &self.network()),
            Family::V6 => Pieces::WHOLE,
        };
        let fragment = kinds[FRAGMENT];
        if pieces.later && self.later(arena, &self.network()) {
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
        let mut protocols = self.protocols(arena);
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
            Some(place) if protocols.contains(&icmp) => self.set(arena, &place),
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
    fn protocols(&self, arena: &Arena) -> Vec<u8> {
        let at = match self.family {
            Some(Family::V4) => 9,
            _ => 6,
        };
        self.set(arena, &self.network().plus(at)).values().collect()
    }

    /// Which pieces an IPv4 packet can be, whose header is there.
    pub fn pieces(&self, arena: &Arena, header: &Offset) -> Pieces {
        let (high, low) = (
            self.set(arena, &header.plus(6)),
            self.set(arena, &header.plus(7)),
        );
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
