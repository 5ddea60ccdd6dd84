//! Under which entry of the indirection table an entry of a sharded object lies, told by its key.
//!
//! Packets with one key meet under every key of the space, so the table's index is a function of what the entry's key
//! says of the packet: bits of fields that it does not have do not reach the index. So all entries of one index can be
//! found by looking at keys, without that anything is stored with them, and be moved together. Of a number that the
//! program leased nothing follows by itself: where it comes home (R6) each index has its list of numbers, and else the
//! entry lies where the one does that holds the number.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use millrace_object::program::ObjectId;
use millrace_steer::{Field, Kind, Owners, Parsed, Steering};

use crate::key::{Bit, Key};
use crate::packets::{Packets, Way};
use crate::solved::Solved;
use crate::touch::Touch;

/// A bit of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Of {
    /// the same in all keys
    Is(bool),
    /// a field's; 0 is the most significant
    Field(Field, u16),
    /// nothing that is hashed
    Other,
}

/// What keys of an object say of the packets of one class that make its entries.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Placed {
    object: usize,
    packets: Packets,
    /// byte after byte, each from its most significant bit
    key: Vec<Of>,
}

/// Of each class of packets that writes to an object what its keys say.
pub(crate) fn placed(touches: &[Touch], objects: &BTreeSet<usize>, solved: &Solved) -> Vec<Placed> {
    let bound = solved.steered.iter().filter(|s| s.bound);
    let bound: HashSet<Packets> = bound.map(|s| s.packets).collect();
    let (mut seen, mut out) = (HashSet::new(), BTreeSet::new());
    let writing = |t: &&Touch| t.writes && objects.contains(&t.object);
    for t in touches.iter().filter(writing) {
        let plain = |f: &&crate::touch::Found| {
            !f.inside && f.way == Way::Plain && bound.contains(&f.packets)
        };
        for f in t.by.iter().filter(plain) {
            if seen.insert((t.object, f.packets, Rc::as_ptr(&f.key))) {
                let (object, packets) = (t.object, f.packets);
                let key = shape(&f.key);
                out.insert(Placed {
                    object,
                    packets,
                    key,
                });
            }
        }
    }
    out.into_iter().collect()
}

fn shape(key: &Key) -> Vec<Of> {
    let of = |bit: &Bit| match *bit {
        Bit::Const(v) => Of::Is(v),
        Bit::Field(field, at) => Of::Field(field, at),
        Bit::Foreign(..) => Of::Other,
    };
    key.iter().map(of).collect()
}

/// Where an entry lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lies {
    /// the place in the indirection table under which the packets come that make it
    pub index: u32,
    /// the worker that it leads to
    pub worker: u32,
}

/// Tells where entries lie under keys that were drawn.
#[derive(Clone, Debug)]
pub struct Finder {
    owners: Vec<Owners>,
    placed: Vec<Placed>,
}

impl Finder {
    /// Of what a plan says of keys, and a port's steering each.
    pub(crate) fn of(placed: &[Placed], steering: &[Steering]) -> Self {
        let owners: Vec<Owners> = steering.iter().map(Steering::owners).collect();
        let tells = |p: &&Placed| {
            let port = owners.get(p.packets.port);
            port.is_some_and(|o| p.tells(o))
        };
        Self {
            placed: placed.iter().filter(tells).cloned().collect(),
            owners,
        }
    }

    /// Whether keys of an object tell where its entries lie.
    #[must_use]
    pub fn knows(&self, object: ObjectId) -> bool {
        self.placed.iter().any(|p| p.object == object.0)
    }

    /// Where the entry of an object with this key lies; none where its key does not tell.
    #[must_use]
    pub fn lies(&self, object: ObjectId, key: &[u8]) -> Option<Lies> {
        let own = self.placed.iter().filter(|p| p.object == object.0);
        let (port, packet) = { own }.find_map(|p| Some((p.packets.port, p.packet(key)?)))?;
        let (index, worker) = self.owners.get(port)?.place_of(&packet);
        Some(Lies { index, worker })
    }
}

impl Placed {
    /// Whether no bit of a field that the key does not have reaches the index. Keys that a solver was asked about, and
    /// what fields are computed from, say too little of single bits.
    fn tells(&self, owners: &Owners) -> bool {
        let kind = self.packets.kind;
        let zero = owners.place_of(&Parsed::with_only(kind, Field::SourceAddress, &[]));
        let has: BTreeSet<Of> = self.key.iter().copied().collect();
        Field::ALL.into_iter().all(|field| {
            (0..field.bits(kind)).all(|at| {
                let mut bytes = vec![0; field.bits(kind) / 8];
                if let Some(byte) = bytes.get_mut(at / 8) {
                    *byte = 0x80 >> (at % 8);
                }
                has.contains(&Of::Field(field, at as u16))
                    || owners.place_of(&Parsed::with_only(kind, field, &bytes)) == zero
            })
        })
    }

    /// A packet that makes an entry of this key; none if packets of this class make no such entry.
    fn packet(&self, key: &[u8]) -> Option<Parsed> {
        let kind: Kind = self.packets.kind;
        let bits = key
            .iter()
            .flat_map(|b| (0..8).map(move |i| b >> (7 - i) & 1 == 1));
        let mut fields = Field::ALL.map(|f| vec![0_u8; f.bits(kind) / 8]);
        if self.key.len() != 8 * key.len() {
            return None;
        }
        for (of, bit) in self.key.iter().zip(bits) {
            match *of {
                Of::Is(v) if v != bit => return None,
                Of::Is(_) | Of::Other => {}
                Of::Field(field, at) => {
                    let place = Field::ALL.iter().position(|f| *f == field)?;
                    let byte = fields.get_mut(place)?.get_mut(usize::from(at / 8))?;
                    *byte |= u8::from(bit) << (7 - at % 8);
                }
            }
        }
        let [source, destination, from, to] = &fields;
        Some(Parsed::of(
            kind,
            [source, destination, from, to].map(Vec::as_slice),
        ))
    }
}
