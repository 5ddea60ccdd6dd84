//! A key as a formula over the fields of one packet, whatever path and header it was read from: equal formulas are one.
//!
//! Formulas are expressions over a packet of their own, in which each field has its place: so all of them are of one
//! arena, and those of a second packet are the same further behind.

use std::collections::BTreeSet;

use millrace_model::expr::ids::IdMap;
use millrace_model::expr::import::{above_leaves, imported};
use millrace_model::expr::walk::rename;
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_steer::keys::{self as steer, Case, Equation, Part, Side};
use millrace_steer::{Field, Kind};

use crate::constraints::zeroed;
use crate::key::{Bit, DEEPEST, Key, Resolver, followed};
use crate::packets::conjuncts;
use crate::touch::Seen;

use super::one_to_one::{Taken, peeled};
use super::sums::sums;

/// Bytes that each field has, those of IPv6 addresses.
const FIELD: i64 = 16;
/// Where that begins which is no field: each byte or symbol where there is room.
const OTHERS: i64 = FIELD * Field::ALL.len() as i64;
/// Where the second packet begins.
const SECOND: i64 = 1 << 14;
/// A condition of more parts is left out.
const LONGEST: usize = 256;

/// A packet's key, and facts about packets that have it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Formula {
    /// the key, byte by byte
    pub key: Vec<ExprId>,
    /// conditions on the fields that the key is computed from
    pub when: Vec<ExprId>,
}

/// Where a field's byte stands.
pub(super) fn place(field: Field, byte: usize) -> i64 {
    let number = Field::ALL.iter().position(|f| *f == field);
    FIELD * number.unwrap_or(Field::ALL.len()) as i64 + byte as i64
}

/// The field's byte that stands at a place.
fn field(at: i64) -> Option<(Field, u16)> {
    let field = Field::ALL.get(usize::try_from(at / FIELD).ok()?)?;
    Some((*field, (at % FIELD) as u16))
}

/// A place of the first packet in the second.
pub(super) fn second(at: i64) -> i64 {
    at + SECOND
}

impl Formula {
    /// The key of packets that are seen so, from expressions of an entry; none if there are no such packets at their
    /// port.
    pub fn of(arena: &mut Arena, entry: &mut Arena, seen: &Seen, key: &[ExprId]) -> Option<Self> {
        let resolver = seen.resolver();
        let guard = resolver.guard(entry);
        let mut leaves = Leaves::default();
        let mut leaf = |arena: &mut Arena, e| leaves.leaf(arena, entry, &resolver, seen, e);
        let guard = imported(entry, arena, &guard, &mut leaf);
        if guard.iter().any(|e| arena.constant(*e) == Some(0)) {
            return None;
        }
        let key = resolver.exact(entry, key);
        let mut leaves = Leaves::default();
        let mut leaf = |arena: &mut Arena, e| leaves.leaf(arena, entry, &resolver, seen, e);
        let key = imported(entry, arena, &key, &mut leaf);
        Some(Self {
            key,
            when: Vec::new(),
        })
    }

    /// With what the guard of the view says of the fields that a computed key is computed from, and of no more.
    pub fn guarded(mut self, arena: &mut Arena, entry: &mut Arena, seen: &Seen) -> Self {
        let (resolver, fields) = (seen.resolver(), self.computed_from(arena));
        let guard = resolver.guard(entry);
        for condition in conjuncts(entry, &guard) {
            let parts = above_leaves(entry, &[condition]);
            let mut of = BTreeSet::new();
            let plain = parts.iter().all(|e| match *entry.node(*e) {
                Node::Byte { base, at } => match resolver.field(entry, (base, at)) {
                    Some((field, _)) => {
                        of.insert(field);
                        true
                    }
                    None => false,
                },
                Node::Sym(s) => entry.symbol(s).origin == Origin::Param,
                _ => true,
            });
            if !plain || parts.len() > LONGEST || of.is_disjoint(&fields) {
                continue;
            }
            let mut leaves = Leaves::default();
            let mut leaf = |arena: &mut Arena, e| leaves.leaf(arena, entry, &resolver, seen, e);
            let made = imported(entry, arena, &[condition], &mut leaf);
            self.when
                .extend(made.into_iter().filter(|e| arena.constant(*e) != Some(1)));
        }
        self.when.sort_unstable();
        self.when.dedup();
        self
    }

    /// Its bits, as far as they are bits of fields.
    pub fn bits(&self, arena: &Arena) -> Key {
        let bit = |e: &ExprId, i: u32| match followed(arena, *e, i, DEEPEST) {
            Ok(value) => Bit::Const(value),
            Err((leaf, i)) => match arena.node(leaf) {
                Node::Byte { base: None, at } => match field(*at) {
                    Some((field, byte)) => Bit::Field(field, 8 * byte + (7 - i as u16)),
                    None => Bit::Foreign(leaf, i as u8),
                },
                _ => Bit::Foreign(leaf, i as u8),
            },
        };
        let each = self.key.iter().map(|e| (e, arena.width(*e)));
        each.flat_map(|(e, width)| (0..width).rev().map(move |i| bit(e, i)))
            .collect()
    }

    /// Formulas of which two packets have equal keys if and only if they have equal keys of these, closer to their fields. The
    /// second is `second` of its own ([`Self::of_second`]).
    pub fn peeled(
        arena: &mut Arena,
        taken: &mut Taken,
        a: &Self,
        b: &Self,
        second: &Self,
    ) -> (Self, Self) {
        let (x, y) = peeled(arena, taken, &a.key, &second.key);
        let to = |_: Option<ExprId>, at: i64| Some(at - SECOND);
        let y = match y == second.key {
            true => b.key.clone(),
            false => y.into_iter().map(|e| rename(arena, e, &to)).collect(),
        };
        let with = |of: &Self, key| Self {
            key,
            when: of.when.clone(),
        };
        (with(a, x), with(b, y))
    }

    /// In which packets two keys are equal, as far as their bits are exclusive ors of bits, and whether that is all there
    /// is to say; none if there are no such.
    pub fn equal(
        arena: &Arena,
        (x, kind, zero): (&Self, Kind, Option<Field>),
        (y, other, also): (&Self, Kind, Option<Field>),
    ) -> Option<(Case, bool)> {
        let (mut case, mut all) = (Case::all(), true);
        let words = (sums(arena, &x.key), sums(arena, &y.key));
        for (x, y) in words.0.iter().flatten().zip(words.1.iter().flatten()) {
            let (Some(x), Some(y)) = (x, y) else {
                all = false;
                continue;
            };
            let named = |side, kind| move |at: &(i64, u32)| bit(side, kind, *at);
            let bits = x.bits.iter().map(named(Side::A, kind));
            let bits = bits.chain(y.bits.iter().map(named(Side::B, other)));
            let bits: Vec<_> = bits.collect();
            let odd = x.odd ^ y.odd;
            if !bits.is_empty() {
                case = case.and(Equation { bits, odd });
            } else if odd {
                return None;
            }
        }
        Some((zeroed(case, [(kind, zero), (other, also)]), all))
    }

    /// Whether some of its bits are computed from fields.
    pub fn is_computed(&self, arena: &Arena) -> bool {
        !self.computed_from(arena).is_empty()
    }

    /// The fields that such bits are computed from.
    pub fn computed_from(&self, arena: &Arena) -> BTreeSet<Field> {
        let bits = self.bits(arena);
        let computed = bits.iter().filter_map(|b| match b {
            Bit::Foreign(e, _) => Some(*e),
            _ => None,
        });
        fields(arena, &computed.collect::<Vec<_>>())
    }

    /// All fields in it.
    pub fn fields(&self, arena: &Arena) -> BTreeSet<Field> {
        fields(arena, &[self.key.as_slice(), &self.when].concat())
    }

    /// The same of the second packet.
    pub fn of_second(&self, arena: &mut Arena) -> Self {
        let to = |_: Option<ExprId>, at: i64| Some(second(at));
        let mut all = |of: &[ExprId]| of.iter().map(|e| rename(arena, *e, &to)).collect();
        Self {
            key: all(&self.key),
            when: all(&self.when),
        }
    }

    /// The offsets that it is made of.
    pub fn offsets(&self, arena: &Arena) -> BTreeSet<i64> {
        let all = [self.key.as_slice(), &self.when].concat();
        let offset = |e: ExprId| match arena.node(e) {
            Node::Byte { at, .. } => Some(*at),
            _ => None,
        };
        let all = above_leaves(arena, &all).into_iter();
        all.filter_map(offset).collect()
    }
}

/// A bit of a packet as equations name it.
fn bit(side: Side, kind: Kind, (place, low): (i64, u32)) -> steer::Bit {
    match field(place) {
        Some((field, byte)) if usize::from(byte) < field.bits(kind) / 8 => steer::Bit {
            side,
            part: Part::Field(field),
            at: usize::from(8 * byte) + 7 - low as usize,
        },
        _ => steer::Bit {
            side,
            part: Part::Other(place as u32),
            at: low as usize,
        },
    }
}

fn fields(arena: &Arena, roots: &[ExprId]) -> BTreeSet<Field> {
    let all = above_leaves(arena, roots).into_iter();
    all.filter_map(|e| match arena.node(e) {
        Node::Byte { base: None, at } => Some(field(*at)?.0),
        _ => None,
    })
    .collect()
}

/// Symbols for operands that are no field.
#[derive(Default)]
struct Leaves {
    made: IdMap<ExprId, ExprId>,
    bytes: i64,
}

impl Leaves {
    fn leaf(
        &mut self,
        arena: &mut Arena,
        entry: &Arena,
        resolver: &Resolver<'_>,
        seen: &Seen,
        e: ExprId,
    ) -> ExprId {
        match *entry.node(e) {
            Node::Byte { base, at } => {
                if let Some((field, byte)) = resolver.field(entry, (base, at)) {
                    return byte_at(arena, place(field, usize::from(byte)));
                }
            }
            Node::Sym(s) => {
                let symbol = entry.symbol(s);
                match symbol.origin {
                    // The same for both packets.
                    Origin::Param => return arena.sym(&symbol.name, symbol.width, Origin::Param),
                    Origin::Port if symbol.name == "port" => {
                        if let Some(number) = seen.number {
                            return arena.number(number, symbol.width);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        if let Some(known) = self.made.get(&e) {
            return *known;
        }
        let width = entry.width(e);
        let bytes: Vec<ExprId> = (0..width.div_ceil(8))
            .map(|_| {
                self.bytes += 1;
                byte_at(arena, OTHERS + self.bytes - 1)
            })
            .collect();
        let whole = arena.concat(&bytes);
        let made = arena.extract(whole, 0, width);
        self.made.insert(e, made);
        made
    }
}

fn byte_at(arena: &mut Arena, at: i64) -> ExprId {
    let at = arena.number(at as u64, 64);
    arena.byte(at)
}
