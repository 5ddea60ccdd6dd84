//! Where a byte of the packet is, apart from how the program computed that: a number, and lengths of headers.

use millrace_model::expr::sets::Place;
use millrace_model::expr::{Arena, Bin, ExprId, Node, mask};

/// An offset from the packet's first byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Offset {
    /// what is added, sorted
    pub terms: Vec<Term>,
    /// the constant part
    pub at: i64,
}

/// A part of an offset that differs from packet to packet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Term {
    /// four times the lower half of the byte there: the length of an IPv4 header
    Header(Box<Offset>),
    /// anything else
    Other(ExprId),
}

/// An outer header, and that of the packet which an ICMP error carries.
const DEEPEST: u32 = 3;
/// Operands of a sum.
const MOST: usize = 16;

impl Offset {
    /// A number.
    pub fn number(at: i64) -> Self {
        Self {
            terms: Vec::new(),
            at,
        }
    }

    /// The one that the IPv4 header here ends at.
    pub fn behind_ipv4(&self) -> Self {
        let mut terms = self.terms.clone();
        terms.push(Term::Header(Box::new(self.clone())));
        terms.sort();
        Self { terms, at: self.at }
    }

    /// So many bytes on.
    pub fn plus(&self, bytes: i64) -> Self {
        Self {
            terms: self.terms.clone(),
            at: self.at.saturating_add(bytes),
        }
    }

    /// How many bytes it is from another one, if that does not depend on the packet.
    pub fn from(&self, other: &Self) -> Option<i64> {
        (self.terms == other.terms).then(|| self.at.saturating_sub(other.at))
    }

    /// Of a byte.
    pub fn of(arena: &Arena, place: Place) -> Self {
        of(arena, place, DEEPEST)
    }
}

fn of(arena: &Arena, (base, at): Place, depth: u32) -> Offset {
    let mut offset = Offset::number(at);
    let mut todo: Vec<ExprId> = base.into_iter().collect();
    let mut left = MOST;
    while let Some(e) = todo.pop() {
        if let Some(c) = arena.constant(e) {
            offset.at = offset.at.wrapping_add(c as i64);
            continue;
        }
        left = left.saturating_sub(1);
        match arena.node(e) {
            Node::Bin(Bin::Add, a, b) if left > 0 && whole(arena, e, *a, *b) => {
                todo.extend([*a, *b]);
                continue;
            }
            // Extended with zeros.
            Node::Concat(parts) => {
                if let [high, low] = parts.as_ref()
                    && arena.constant(*high) == Some(0)
                    && left > 0
                {
                    todo.push(*low);
                    continue;
                }
            }
            _ => {}
        }
        let header = header(arena, e).filter(|_| depth > 0);
        offset.terms.push(match header {
            Some(place) => Term::Header(Box::new(of(arena, place, depth - 1))),
            None => Term::Other(e),
        });
    }
    offset.terms.sort();
    offset
}

/// Whether a sum does not overflow. Offsets themselves have 64 bits and wrap round.
fn whole(arena: &Arena, sum: ExprId, a: ExprId, b: ExprId) -> bool {
    let width = arena.width(sum);
    let most = arena.bounds(a).1.checked_add(arena.bounds(b).1);
    width >= 64 || most.is_some_and(|m| m <= mask(width))
}

/// Four times the lower half of which byte.
fn header(arena: &Arena, e: ExprId) -> Option<Place> {
    let Node::Concat(parts) = arena.node(e) else {
        return None;
    };
    let (length, low) = match parts.as_ref() {
        [high, length, low] if arena.constant(*high) == Some(0) => (*length, *low),
        [length, low] => (*length, *low),
        _ => return None,
    };
    if arena.constant(low) != Some(0) || arena.width(low) != 2 || arena.width(length) != 4 {
        return None;
    }
    let Node::Extract { of, low: 0 } = arena.node(length) else {
        return None;
    };
    match arena.node(*of) {
        Node::Byte { base, at } => Some((*base, *at)),
        _ => None,
    }
}
