//! Keys bit by bit: which bit of a key is which bit of a field that NICs hash.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_model::expr::ids::IdMap;
use millrace_model::expr::sets::Place;
use millrace_model::expr::{Arena, Bin, ExprId, Node};
use millrace_steer::Field;

use crate::memo::Bytes;
use crate::offset::Offset;
use crate::packets::{Family, View, conditions};

/// One bit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Bit {
    /// 0 or 1
    Const(bool),
    /// a field's bit; 0 is the most significant
    Field(Field, u16),
    /// a bit of something that NICs do not hash: which expression, and which bit, 0 the least significant
    Foreign(ExprId, u8),
}

/// Whose fields a key is looked for in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// the packet's own
    Own,
    /// those of the packet that would answer the one that an ICMP error carries
    Answer,
}

/// A key's bits, byte after byte, each from its most significant bit; other ones where a choice falls otherwise.
pub(crate) type Key = Vec<Bit>;

/// Choices that are followed to both sides.
const CHOICES: usize = 3;
/// Operands that a bit is followed through.
pub(crate) const DEEPEST: usize = 64;

/// Looks bits up for one view.
pub(crate) struct Resolver<'a> {
    pub view: &'a View,
    pub whose: Whose,
    fixed: Rc<Bytes>,
    /// of which field bytes are, each looked for once
    found: RefCell<IdMap<Place, Option<(Field, u16)>>>,
}

impl<'a> Resolver<'a> {
    pub fn new(view: &'a View, whose: Whose) -> Self {
        Self {
            view,
            whose,
            fixed: view.fixed().clone(),
            found: RefCell::default(),
        }
    }

    /// The bits of expressions of 8 bits each.
    pub fn keys(&self, arena: &mut Arena, bytes: &[ExprId]) -> Vec<Key> {
        self.read(arena, bytes).0
    }

    /// The same, and whether they depend on the guard of the view, not only on what bytes are fixed in it.
    pub fn read(&self, arena: &mut Arena, bytes: &[ExprId]) -> (Vec<Key>, bool) {
        let plain = self.bytes(arena, bytes, &BTreeMap::new());
        if plain.1.is_empty() && !self.unclear(arena, &plain.0) {
            return (vec![plain.0], false);
        }
        // What is computed from bytes that these packets have in common, or decided by what they all fulfil.
        let memo = &self.view.memo;
        let mut bytes = memo.given(arena, bytes, &self.fixed);
        let (mut key, mut choices) = self.bytes(arena, &bytes, &BTreeMap::new());
        let by_guard = !choices.is_empty() || self.unclear(arena, &key);
        if by_guard {
            let guard = self.guard(arena);
            let conditions = conditions(arena, &guard);
            bytes = memo.decided(arena, &bytes, &conditions);
            // Where a place was chosen, what is known of its byte counts now.
            bytes = memo.given(arena, &bytes, &self.fixed);
            (key, choices) = self.bytes(arena, &bytes, &BTreeMap::new());
        }
        let mut open = choices;
        open.truncate(CHOICES);
        if open.is_empty() {
            return (vec![key], by_guard);
        }
        let mut all = BTreeSet::new();
        for taken in 0..1_u32 << open.len() {
            let side = |(i, c): (usize, &ExprId)| (*c, taken >> i & 1 == 1);
            let decided = open.iter().enumerate().map(side).collect();
            all.insert(self.bytes(arena, &bytes, &decided).0);
        }
        (all.into_iter().collect(), by_guard)
    }

    /// Expressions as they are of the view's packets, with the choices that are left.
    pub fn exact(&self, arena: &mut Arena, bytes: &[ExprId]) -> Vec<ExprId> {
        let memo = &self.view.memo;
        let bytes = memo.given(arena, bytes, &self.fixed);
        let guard = self.guard(arena);
        let conditions = conditions(arena, &guard);
        let bytes = memo.decided(arena, &bytes, &conditions);
        memo.given(arena, &bytes, &self.fixed)
    }

    /// Conditions of the guard on the view's packets.
    pub fn guard(&self, arena: &mut Arena) -> Vec<ExprId> {
        let memo = &self.view.memo;
        memo.given(arena, &self.view.guard, &self.fixed)
    }

    /// Whether some bit is computed from bytes of the packet, so that it may be plain once they are known.
    fn unclear(&self, arena: &Arena, key: &Key) -> bool {
        key.iter().any(|bit| match bit {
            Bit::Foreign(e, _) => match arena.node(*e) {
                Node::Sym(_) => false,
                Node::Byte { base, .. } => base.is_some(),
                _ => true,
            },
            _ => false,
        })
    }

    /// The key, and the choices that decide over it, sorted.
    fn bytes(
        &self,
        arena: &Arena,
        bytes: &[ExprId],
        decided: &BTreeMap<ExprId, bool>,
    ) -> (Key, Vec<ExprId>) {
        let mut open = Vec::new();
        let mut key = Vec::with_capacity(8 * bytes.len());
        for e in bytes {
            let width = arena.width(*e);
            for i in (0..width).rev() {
                key.push(self.bit(arena, *e, i, decided, &mut open, DEEPEST));
            }
        }
        open.sort_unstable();
        open.dedup();
        (key, open)
    }

    /// The bits of one expression, the most significant first.
    pub fn number(&self, arena: &Arena, e: ExprId) -> Key {
        self.bytes(arena, &[e], &BTreeMap::new()).0
    }

    fn bit(
        &self,
        arena: &Arena,
        e: ExprId,
        i: u32,
        decided: &BTreeMap<ExprId, bool>,
        open: &mut Vec<ExprId>,
        depth: usize,
    ) -> Bit {
        let (e, i) = match followed(arena, e, i, depth) {
            Ok(constant) => return Bit::Const(constant),
            Err(place) => place,
        };
        match arena.node(e) {
            Node::Byte { base, at } => return self.byte(arena, e, (*base, *at), i),
            Node::Ite(c, a, b) if depth > 1 => match decided.get(c) {
                Some(true) => return self.bit(arena, *a, i, decided, open, depth - 1),
                Some(false) => return self.bit(arena, *b, i, decided, open, depth - 1),
                None => {
                    let half = depth / 2;
                    let before = open.len();
                    let x = self.bit(arena, *a, i, decided, open, half);
                    let y = self.bit(arena, *b, i, decided, open, half);
                    if x == y {
                        // Whatever is chosen, it is the same bit.
                        open.truncate(before);
                        return x;
                    }
                    open.push(*c);
                }
            },
            _ => {}
        }
        Bit::Foreign(e, u8::try_from(i).unwrap_or(u8::MAX))
    }

    fn byte(&self, arena: &Arena, e: ExprId, place: Place, i: u32) -> Bit {
        if let Some(v) = self.fixed.get(&place) {
            return Bit::Const(v >> i & 1 == 1);
        }
        match self.field(arena, place) {
            Some((field, byte)) => Bit::Field(field, 8 * byte + (7 - i as u16)),
            None => Bit::Foreign(e, i as u8),
        }
    }

    /// The field that a byte is in, and which of its bytes.
    pub fn field(&self, arena: &Arena, place: Place) -> Option<(Field, u16)> {
        if let Some(known) = self.found.borrow().get(&place) {
            return *known;
        }
        let found = self.search(arena, place);
        self.found.borrow_mut().insert(place, found);
        found
    }

    fn search(&self, arena: &Arena, place: Place) -> Option<(Field, u16)> {
        let family = self.view.family?;
        let place = Offset::of(arena, place);
        match self.whose {
            Whose::Own => {
                let header = addresses(family, &self.view.network(), &place);
                header.or_else(|| self.ports(&self.view.transport(arena)?, &place))
            }
            Whose::Answer => {
                let carried = self.view.transport(arena)?.plus(8);
                let behind = match family {
                    Family::V6 => carried.plus(40),
                    Family::V4 => carried.behind_ipv4(),
                };
                let found = addresses(family, &carried, &place).or_else(|| {
                    let plain = !self.view.carries_extended;
                    plain.then(|| self.ports(&behind, &place)).flatten()
                });
                let (field, byte) = found?;
                Some((swapped(field), byte))
            }
        }
    }
}

impl Resolver<'_> {
    /// In a transport header, or in that of an echo whose identifier counts as a port.
    fn ports(&self, header: &Offset, place: &Offset) -> Option<(Field, u16)> {
        match self.view.echo {
            None => ports(header, place),
            Some(field) => match place.from(header)? {
                byte @ (4 | 5) => Some((field, byte as u16 - 4)),
                _ => None,
            },
        }
    }
}

/// Where a bit of an expression, 0 the least significant, comes from: its value, or an expression that is no mere
/// rearrangement of others, and which of its bits.
pub(crate) fn followed(
    arena: &Arena,
    mut e: ExprId,
    mut i: u32,
    depth: usize,
) -> Result<bool, (ExprId, u32)> {
    for _ in 0..depth {
        let known = arena.bits(e);
        if known.mask >> i & 1 == 0 {
            return Ok(known.value >> i & 1 == 1);
        }
        match arena.node(e) {
            Node::Concat(parts) => {
                let mut below = 0;
                let mut hit = None;
                for p in parts.iter().rev() {
                    let width = arena.width(*p);
                    if i < below + width {
                        hit = Some((*p, i - below));
                        break;
                    }
                    below += width;
                }
                let Some((part, bit)) = hit else { break };
                (e, i) = (part, bit);
            }
            Node::Extract { of, low } => (e, i) = (*of, i + low),
            Node::SignExtend(of) => (e, i) = (*of, i.min(arena.width(*of) - 1)),
            Node::Bin(op @ (Bin::And | Bin::Or | Bin::Xor), a, b) => {
                let constant = |x: ExprId| {
                    let known = arena.bits(x);
                    (known.mask >> i & 1 == 0).then_some(known.value >> i & 1 == 1)
                };
                let neutral = *op == Bin::And;
                if constant(*a) == Some(neutral) {
                    e = *b;
                } else if constant(*b) == Some(neutral) {
                    e = *a;
                } else {
                    break;
                }
            }
            _ => break,
        }
    }
    Err((e, i))
}

/// Whether a key has bits of the packet that an ICMP error carries.
pub(crate) fn is_carried(own: &[Key], answer: &[Key]) -> bool {
    let fields = |keys: &[Key]| {
        let bits = keys.iter().flatten();
        bits.filter(|b| matches!(b, Bit::Field(..))).count()
    };
    fields(answer) > 0 && fields(own) == 0
}

pub(crate) fn swapped(field: Field) -> Field {
    match field {
        Field::SourceAddress => Field::DestinationAddress,
        Field::DestinationAddress => Field::SourceAddress,
        Field::SourcePort => Field::DestinationPort,
        Field::DestinationPort => Field::SourcePort,
    }
}

/// In a network header (RFC 791, RFC 8200).
fn addresses(family: Family, header: &Offset, place: &Offset) -> Option<(Field, u16)> {
    let offset = u16::try_from(place.from(header)?).ok()?;
    let (source, destination, bytes) = match family {
        Family::V4 => (12, 16, 4),
        Family::V6 => (8, 24, 16),
    };
    if (source..source + bytes).contains(&offset) {
        Some((Field::SourceAddress, offset - source))
    } else if (destination..destination + bytes).contains(&offset) {
        Some((Field::DestinationAddress, offset - destination))
    } else {
        None
    }
}

/// In the header of TCP, UDP or SCTP: all begin with their ports.
fn ports(header: &Offset, place: &Offset) -> Option<(Field, u16)> {
    match place.from(header)? {
        byte @ (0 | 1) => Some((Field::SourcePort, byte as u16)),
        byte @ (2 | 3) => Some((Field::DestinationPort, byte as u16 - 2)),
        _ => None,
    }
}
