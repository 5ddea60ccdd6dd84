//! Names of the header fields of a packet, on a path whose guard fixes the headers. A byte of a header that the guard
//! leaves open has no name and is shown as `pkt[offset]`; names of fields of the inner packet of an ICMP error begin with
//! `inner.`.

pub mod fields;
mod ipv6;
pub mod landing;
pub(crate) mod made;

use std::cell::RefCell;
use std::collections::BTreeSet;

use millrace_model::expr::sets::{Place, Set};
use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel, mask};
use millrace_model::known::{Known, Of};
use millrace_wire::ethernet;

use crate::words::Memory;
use fields::{ETHERNET, Field, ICMP_BYTES, IPV4, Name, TAG, transport};
use ipv6::Chains;
use landing::Meaning;

pub use ipv6::{Along, Header};

/// Positions of headers.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// offset of the network header and its EtherType; none where the guard does not say
    network: Option<(i64, u16)>,
    /// number of VLAN tags before it
    tags: i64,
    /// bytes of the IPv4 header, where the guard fixes them
    header: Option<i64>,
    protocol: Option<u8>,
    /// the packet carries another one's IPv4 header behind the first eight bytes of ICMP
    inner: bool,
    inner_protocol: Option<u8>,
    /// what follows the IPv6 header
    chains: Option<Chains>,
    /// the conditions that say so, and whether each holds
    guard: Vec<(ExprId, bool)>,
}

/// Whether a condition is that the EtherType at an offset is one of a tag's, whichever.
fn says_tag(arena: &Arena, condition: ExprId, at: i64) -> bool {
    let mut todo = vec![(condition, true)];
    let mut seen = BTreeSet::new();
    let mut found = false;
    while let Some((e, holds)) = todo.pop() {
        if !seen.insert((e, holds)) {
            continue;
        }
        match *arena.node(e) {
            Node::Bin(Bin::Xor, a, b) if arena.width(e) == 1 => {
                let inner = if arena.constant(a) == Some(1) { b } else { a };
                todo.push((inner, !holds));
            }
            Node::Bin(Bin::And | Bin::Or, a, b) if arena.width(e) == 1 => {
                todo.extend([(a, holds), (b, holds)]);
            }
            Node::Cmp(Rel::Eq, x, c) => {
                let Some(c) = arena.constant(c) else {
                    return false;
                };
                let word = match arena.node(x) {
                    Node::Concat(parts) => match parts.as_ref() {
                        // Loaded as the machine's: the later byte is the higher.
                        [high, low] => (arena.node(*high).clone(), arena.node(*low).clone()),
                        _ => return false,
                    },
                    _ => return false,
                };
                let here = |n: &Node, at: i64| *n == Node::Byte { base: None, at };
                let kind = if here(&word.0, at + 1) && here(&word.1, at) {
                    (c as u16).swap_bytes()
                } else if here(&word.0, at) && here(&word.1, at + 1) {
                    c as u16
                } else {
                    return false;
                };
                let tag = ethernet::is_tag(kind);
                if holds && !tag {
                    return false;
                }
                found |= holds;
            }
            _ => return false,
        }
    }
    found
}

/// How many tags a guard says there are, of the one that was asked for last: mostly the next one is the same
/// and a condition more.
#[derive(Default)]
pub struct Tags(RefCell<Told>);

/// A guard, its arena, and where it says that there is a tag's EtherType.
#[derive(Default)]
struct Told {
    arena: u64,
    guard: Vec<(ExprId, bool)>,
    at: [bool; 2],
}

impl Tags {
    fn before(&self, arena: &Arena, guard: &[(ExprId, bool)]) -> i64 {
        let mut told = self.0.borrow_mut();
        if told.arena != arena.identity() || !guard.starts_with(&told.guard) {
            *told = Told {
                arena: arena.identity(),
                ..Told::default()
            };
        }
        let from = told.guard.len();
        for e in guard.get(from..).unwrap_or(&[]) {
            for (is, at) in told.at.iter_mut().zip([12, 16]) {
                *is = *is || e.1 && says_tag(arena, e.0, at);
            }
            told.guard.push(*e);
        }
        told.at.iter().take_while(|is| **is).count() as i64
    }
}

/// Four times the lower half of a byte: the length of an IPv4 header; which byte.
fn header_bytes(arena: &Arena, e: ExprId) -> Option<Place> {
    let Node::Concat(parts) = arena.node(e) else {
        return None;
    };
    let [high, length, low] = parts.as_ref() else {
        return None;
    };
    let Node::Extract { of, low: 0 } = arena.node(*length) else {
        return None;
    };
    let Node::Byte { base, at } = *arena.node(*of) else {
        return None;
    };
    let zeros = (arena.constant(*high), arena.constant(*low)) == (Some(0), Some(0));
    (zeros && arena.width(*length) == 4 && arena.width(*low) == 2).then_some((base, at))
}

/// What an offset is the sum of: numbers that are not constant, and the constant.
fn summands(arena: &Arena, base: Option<ExprId>, at: i64) -> (Vec<ExprId>, i64) {
    let (mut others, mut sum) = (Vec::new(), at);
    let mut todo: Vec<ExprId> = base.into_iter().collect();
    while let Some(e) = todo.pop() {
        match *arena.node(e) {
            Node::Bin(Bin::Add, a, b) => todo.extend([a, b]),
            Node::Concat(ref parts) => match extended(arena, parts) {
                Some(sum) => todo.push(sum),
                None => others.push(e),
            },
            Node::Const(c) => sum = sum.wrapping_add(c as i64),
            _ => others.push(e),
        }
    }
    others.sort_unstable();
    (others, sum)
}

/// A sum behind zeros that make it wider, if its own width is enough for it.
fn extended(arena: &Arena, parts: &[ExprId]) -> Option<ExprId> {
    let [zeros, sum] = *parts else { return None };
    let Node::Bin(Bin::Add, a, b) = *arena.node(sum) else {
        return None;
    };
    let most = arena.bounds(a).1.checked_add(arena.bounds(b).1)?;
    (arena.constant(zeros) == Some(0) && most <= mask(arena.width(sum))).then_some(sum)
}

impl Layout {
    /// Layout that a guard implies.
    #[must_use]
    pub fn of(arena: &Arena, guard: &[ExprId], memory: &Memory) -> Self {
        memory.settle(arena);
        let guard = guard.iter().map(|e| (*e, true)).collect();
        Self::read(arena, guard, memory)
    }

    /// Layout that conditions imply, each of which holds or does not, and values that are known beside them.
    pub(crate) fn with(
        arena: &Arena,
        guard: Vec<(ExprId, bool)>,
        known: &Known,
        memory: &Memory,
    ) -> Self {
        memory.settle(arena);
        Self::from_known(arena, guard, known, memory)
    }

    pub(crate) fn guard(&self) -> &[(ExprId, bool)] {
        &self.guard
    }

    /// Layout where these conditions, or their negations, hold, too.
    #[must_use]
    pub fn given(&self, arena: &Arena, more: &[(ExprId, bool)], memory: &Memory) -> Self {
        let guard = self.guard.iter().chain(more).copied().collect();
        Self::read(arena, guard, memory)
    }

    fn read(arena: &Arena, guard: Vec<(ExprId, bool)>, memory: &Memory) -> Self {
        let known = memory.known.each(arena, &guard);
        Self::from_known(arena, guard, &known, memory)
    }

    fn from_known(
        arena: &Arena,
        guard: Vec<(ExprId, bool)>,
        known: &Known,
        memory: &Memory,
    ) -> Self {
        let at = |place: Place| known.get(&Of::Byte(place)).and_then(Set::only);
        let byte = |offset: i64| at((None, offset));
        let word = |at: i64| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
        let network = [12, 16, 20].into_iter().find_map(|at| {
            let kind = word(at)?;
            matches!(kind, 0x0800 | 0x86dd).then_some((at + 2, kind))
        });
        let tags = match network {
            Some((at, _)) => (at - 14) / 4,
            None => memory.tags.before(arena, &guard),
        };
        let mut layout = Self {
            network,
            tags,
            ..Self::default()
        };
        let Some((at_network, kind)) = network else {
            layout.guard = guard;
            return layout;
        };
        if kind == 0x86dd {
            let chains = Chains::of(arena, (&guard, known), at_network, &memory.landings);
            (layout.chains, layout.guard) = (Some(chains), guard);
            return layout;
        }
        layout.header = byte(at_network)
            .filter(|v| v >> 4 == 4)
            .map(|v| 4 * i64::from(v & 15));
        layout.protocol = byte(at_network + 9);
        if layout.protocol == Some(1) {
            let at_inner = at_network + ICMP_BYTES;
            let carried = |offset: i64| {
                let mut places = known.iter().filter_map(|(of, set)| match of {
                    Of::Byte((base @ Some(_), at)) => {
                        let place = layout.behind_ipv4(arena, *base, *at);
                        (place == Some((false, at_inner + offset))).then_some(set)
                    }
                    _ => None,
                });
                places.next()
            };
            let version = carried(0).is_some_and(|set| set.values().all(|v| v >> 4 == 4));
            let protocol = carried(9).and_then(Set::only);
            (layout.inner, layout.inner_protocol) = (version, protocol);
        }
        layout.guard = guard;
        layout
    }

    /// Offset of the network header, and its name; none where the guard does not say.
    #[must_use]
    pub fn network(&self) -> Option<(i64, &'static str)> {
        let (at, kind) = self.network?;
        Some((at, if kind == 0x0800 { "ip" } else { "ip6" }))
    }

    /// Where a byte lies whose offset has the length of the IPv4 header in it: whether also that of the one that the packet
    /// carries, and the rest of the offset. None for all others.
    fn behind_ipv4(&self, arena: &Arena, base: Option<ExprId>, at: i64) -> Option<(bool, i64)> {
        let (network, 0x0800) = self.network? else {
            return None;
        };
        let (lengths, at) = summands(arena, base, at);
        // The length of the header that begins at the network header, or behind the first one and eight bytes of ICMP.
        let own = |e: &ExprId| {
            let (base, at) = header_bytes(arena, *e)?;
            Some(summands(arena, base, at) == (Vec::new(), network))
        };
        let carried = |e: &ExprId| {
            let (base, at) = header_bytes(arena, *e)?;
            let (lengths, at) = summands(arena, base, at);
            let [first] = lengths.as_slice() else {
                return None;
            };
            Some(own(first)? && at == network + ICMP_BYTES)
        };
        match lengths.as_slice() {
            [a] if own(a)? => Some((false, at)),
            [a, b] if own(a)? && carried(b)? => Some((true, at)),
            [a, b] if own(b)? && carried(a)? => Some((true, at)),
            _ => None,
        }
    }

    /// An offset that is computed along the headers behind IPv6, or the number of the last of them.
    #[must_use]
    pub fn along(&self, arena: &Arena, e: ExprId, memory: &Memory) -> Option<Along> {
        let chains = self.chains.as_ref()?;
        Some(match memory.landings.meaning(arena, e, chains.network())? {
            Meaning::Offset(landing, by) => chains.offset(landing, by),
            Meaning::Protocol { inner } => Along::Protocol { inner },
        })
    }

    /// The place of a byte behind IPv6.
    #[must_use]
    pub fn place(
        &self,
        arena: &Arena,
        base: Option<ExprId>,
        at: i64,
        memory: &Memory,
    ) -> Option<Along> {
        let chains = self.chains.as_ref()?;
        let (landing, by) = chains.place(arena, base, at, &memory.landings)?;
        Some(chains.offset(landing, by))
    }

    /// The name of a field, where in it a byte is, and how long it is.
    #[must_use]
    pub fn field(
        &self,
        arena: &Arena,
        base: Option<ExprId>,
        at: i64,
        memory: &Memory,
    ) -> Option<(Name, i64, i64)> {
        if let Some(chains) = &self.chains
            && let Some((landing, at)) = chains.place(arena, base, at, &memory.landings)
        {
            return chains.field(landing, at);
        }
        let find = |fields: &'static [Field], at: i64, inner: bool| {
            let hit = fields.iter().find(|f| (f.1..f.1 + f.2).contains(&at));
            hit.map(|f| (Name::of(inner, f.0), at - f.1, f.2))
        };
        if base.is_none() {
            if at < 14 {
                return find(ETHERNET, at, false);
            }
            if at < 14 + 4 * self.tags {
                return find(TAG, (at - 14) % 4, false);
            }
            let (network, kind) = self.network?;
            if kind == 0x0800 {
                return find(IPV4, at - network, false).or_else(|| {
                    let from = network + self.header?;
                    find(transport(self.protocol, false), at - from, false)
                });
            }
            return None;
        }
        let (network, _) = self.network?;
        let (within, at) = self.behind_ipv4(arena, base, at)?;
        if !within {
            let own = find(transport(self.protocol, false), at - network, false);
            return match own {
                None if self.inner => find(IPV4, at - network - ICMP_BYTES, true),
                own => own,
            };
        }
        if self.inner {
            let kind = transport(self.inner_protocol, false);
            return find(kind, at - network - ICMP_BYTES, true);
        }
        None
    }
}
