//! A key as packets of a class see it, and where it comes from.

use std::collections::BTreeSet;
use std::rc::Rc;

use millrace_model::expr::ids::IdSet;
use millrace_model::expr::{Arena, ExprId, Node, Origin};
use millrace_model::symbols::{self, StateName, What};
use millrace_object::program::Program;
use millrace_steer::{Field, Kind};

use super::read::{Look, Read};
use super::{Seen, Source};
use crate::key::{Bit, Key};
use crate::memo::Memo;
use crate::packets::{Packets, Way};

/// A key as packets of a class see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub packets: Packets,
    pub way: Way,
    pub key: Rc<Key>,
    pub source: Source,
    pub zero: Option<Field>,
    /// only who looks inside the packet finds this key
    pub inside: bool,
}

impl Found {
    /// Whether a NIC reads these packets otherwise than the program: it does not take for a field of theirs what is in
    /// the key.
    pub fn is_odd(&self, arena: &Arena) -> bool {
        let kind = self.packets.kind;
        // What else is foreign in the key no NIC hashes, and the rest of it may do without.
        if !matches!(self.source, Source::Fields | Source::Foreign(_)) {
            return false;
        }
        self.key.iter().any(|bit| match bit {
            Bit::Const(_) => false,
            Bit::Field(field, at) => usize::from(*at) >= field.bits(kind),
            Bit::Foreign(e, _) => match arena.node(*e) {
                Node::Byte { base: None, at } => *at >= 14,
                Node::Sym(_) => false,
                // What is behind headers of many lengths may be where a NIC looks for it.
                _ => kind == Kind::NotIp,
            },
        })
    }
}

/// A key as all packets of a path see it, each look once. What one of them reads, `read` says.
pub(super) fn found(
    arena: &mut Arena,
    all: &[Seen],
    looks: &[Look],
    source: &Source,
    mut read: impl FnMut(&mut Arena, &Seen, Look) -> Rc<Read>,
) -> Vec<Found> {
    let mut out = Vec::new();
    let mut there = IdSet::default();
    for (seen, look) in all.iter().zip(looks) {
        let read = read(arena, seen, *look);
        for (key, foreign) in &read.keys {
            // Keys are there once each, and with them what is foreign in them.
            if !there.insert((
                seen.packets,
                seen.way,
                seen.zero(),
                Rc::as_ptr(key),
                read.inside,
            )) {
                continue;
            }
            let source = match source {
                Source::Fields => foreign.clone().unwrap_or(Source::Fields),
                other => other.clone(),
            };
            out.push(Found {
                packets: seen.packets,
                way: seen.way,
                key: key.clone(),
                source,
                zero: seen.zero(),
                inside: read.inside,
            });
        }
    }
    out
}

/// Composition of a key, before its bytes are named as header fields.
pub(super) fn source(
    program: &Program,
    arena: &Arena,
    memo: &Memo,
    (accessed, key): (usize, &[ExprId]),
) -> Source {
    let parts = |e: &ExprId| memo.parts(arena, *e);
    if key.iter().all(|e| parts(e).settled) {
        return Source::Constant;
    }
    let mut of = BTreeSet::new();
    let mut places = Vec::new();
    for e in key {
        match value_byte(program, arena, *e) {
            Some((object, Some(byte))) => {
                of.insert(object);
                places.push(Some(byte));
            }
            Some((object, None)) if object == accessed => {
                let kind = program.objects.get(object).map(|o| o.kind);
                return match kind.is_some_and(|k| k.leases()) {
                    true => Source::Leased,
                    // A visit of all entries, as by `bpf_for_each_map_elem`.
                    false => Source::Foreign("that of any entry that it holds".to_owned()),
                };
            }
            _ if arena.constant(*e).is_some() => places.push(None),
            _ => return Source::Fields,
        }
    }
    match of.into_iter().collect::<Vec<_>>().as_slice() {
        [object] => Source::Value {
            object: *object,
            bytes: places,
        },
        _ => Source::Fields,
    }
}

/// For a byte that is one of a value, or of a number that an object gave: of which object, and which byte.
pub(crate) fn value_byte(
    program: &Program,
    arena: &Arena,
    e: ExprId,
) -> Option<(usize, Option<u32>)> {
    let (of, low) = match arena.node(e) {
        Node::Extract { of, low } => (*of, *low),
        _ => (e, 0),
    };
    let (object, name) = read(program, arena, of)?;
    match name.what {
        What::Bytes { from } => Some((object, Some(from + low / 8))),
        What::Number => Some((object, None)),
        What::Present | What::Full => None,
    }
}

/// For bytes of a value of this object: of which of its entries, and which byte is the first.
pub(crate) fn value_of(
    program: &Program,
    arena: &Arena,
    (object, e): (usize, ExprId),
) -> Option<(u32, u32)> {
    let (_, name) = read(program, arena, e).filter(|read| read.0 == object)?;
    match name.what {
        What::Bytes { from } => Some((name.entry, from)),
        _ => None,
    }
}

/// For a symbol that is read from state: of which object, and what.
fn read<'a>(program: &Program, arena: &'a Arena, e: ExprId) -> Option<(usize, StateName<'a>)> {
    let Node::Sym(s) = arena.node(e) else {
        return None;
    };
    let symbol = arena.symbol(*s);
    let Origin::State(object) = symbol.origin else {
        return None;
    };
    let name = &program.objects.get(object)?.name;
    Some((object, symbols::state(name, &symbol.name)?))
}

/// Bytes of a key that are no header field and have no name.
pub(crate) const OTHER: &str = "other bytes of the packet";

/// The first thing in a key that NICs do not hash, in words.
pub(super) fn foreign(arena: &Arena, key: &Key) -> Option<Source> {
    let mut other = None;
    for bit in key {
        let Bit::Foreign(e, _) = bit else { continue };
        let text = match arena.node(*e) {
            Node::Sym(s) => match arena.symbol(*s).origin {
                Origin::Param => continue,
                Origin::State(_) => "what is read from state",
                Origin::Time => "the time",
                Origin::Random => "a random draw",
                Origin::Length => "the packet's length",
                Origin::Port => "the port",
                _ => "what a helper says",
            },
            Node::Byte {
                base: None,
                at: 0..6,
            } => "the destination's MAC address",
            Node::Byte {
                base: None,
                at: 6..12,
            } => "the source's MAC address",
            Node::Byte {
                base: None,
                at: 12..14,
            } => "the EtherType",
            _ => {
                other = Some(OTHER);
                continue;
            }
        };
        return Some(Source::Foreign(text.to_owned()));
    }
    // With any field beside it the rest may do without.
    let fields = key.iter().any(|b| matches!(b, Bit::Field(..)));
    other
        .filter(|_| !fields)
        .map(|t| Source::Foreign(t.to_owned()))
}
