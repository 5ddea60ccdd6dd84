//! Under which entry of the indirection table an entry of a sharded object lies, told by its key.
//!
//! Packets with one key meet under every key of the space, so the table's index is a function of what the entry's key
//! says of the packet: bits of fields that it does not have do not reach the index. So all entries of one index can be
//! found by looking at keys, without that anything is stored with them, and be moved together. Of a number that the
//! program leased nothing follows by itself: where it comes home (R6) each index has its list of numbers, and else the
//! entry lies where the one does that holds the number.
//!
//! Keys of one object can have several shapes: by source address on one port, by a port number on another. Bytes may
//! then look like keys of more than one of them, and whose entry it is shows nowhere. So every shape under which packets make
//! entries is kept, those that do not tell as well, and where shapes that fit do not agree nothing is said.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use millrace_object::program::{ObjectId, Program};
use millrace_object::state::Addressing;
use millrace_steer::{Field, Kind, Owners, Parsed, Steering};

use crate::constraints::{Shape, shape};
use crate::key::Bit;
use crate::packets::{Packets, Way};
use crate::solved::Solved;
use crate::touch::Touch;

/// Facts in the keys of an object about the packets of one class that make its entries.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Placed {
    object: usize,
    packets: Packets,
    /// what of it is constant or a field's
    key: Shape,
    /// the key is an index, which programs compute in more bytes than entries have: those are zero
    index: bool,
    /// the plan brings such packets together by fields of this kind
    bound: bool,
    /// a port that is 0 in what is hashed of them: they are ICMP echoes, which count as UDP
    zero: Option<Field>,
    /// these packets look for entries of an object in which no packets make any: they are set from outside
    looks: bool,
}

/// Of each class of packets that makes entries of an object what its keys say. Of an ICMP error and a first fragment they say
/// what they say of the packet that it goes with, at ports where software looks `inside`. Where no packets make
/// entries, of each class that looks for them.
pub(crate) fn placed(
    program: &Program,
    touches: &[Touch],
    objects: &BTreeSet<usize>,
    solved: &Solved,
    inside: &BTreeSet<usize>,
) -> Vec<Placed> {
    let bound = solved.steered.iter().filter(|s| s.bound);
    let bound: HashSet<Packets> = bound.map(|s| s.packets).collect();
    let (mut seen, mut out) = (HashSet::new(), BTreeSet::new());
    // What has an index is there before the first packet; to change it is to make it.
    let indexed = |t: &Touch| {
        let object = program.objects.get(t.object);
        object.is_some_and(|o| o.kind.addressing == Addressing::Index)
    };
    let makes = |t: &&Touch| objects.contains(&t.object) && (t.makes || t.writes && indexed(t));
    let made: BTreeSet<usize> = touches.iter().filter(makes).map(|t| t.object).collect();
    let looks = |t: &Touch| objects.contains(&t.object) && !made.contains(&t.object);
    for t in touches.iter().filter(|t| makes(t) || looks(t)) {
        let occurs = |f: &&crate::touch::Found| {
            let looked = inside.contains(&f.packets.port);
            match f.way {
                Way::Plain => looked || !f.inside,
                Way::Answer | Way::Whole => looked,
                Way::Rough => !looked,
            }
        };
        for f in t.by.iter().filter(occurs) {
            let bound = bound.contains(&f.packets);
            if seen.insert((t.object, f.packets, f.zero, Rc::as_ptr(&f.key))) {
                out.insert(Placed {
                    object: t.object,
                    packets: f.packets,
                    key: shape(&f.key),
                    index: indexed(t),
                    bound,
                    zero: f.zero,
                    looks: looks(t),
                });
            }
        }
    }
    out.into_iter().collect()
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
    /// and whether it tells
    placed: Vec<(Placed, bool)>,
}

impl Finder {
    /// Of what a plan says of keys, and a port's steering each.
    pub(crate) fn of(placed: &[Placed], steering: &[Steering]) -> Self {
        let owners: Vec<Owners> = steering.iter().map(Steering::owners).collect();
        let tells = |p: &&Placed| {
            let port = owners.get(p.packets.port);
            p.bound && port.is_some_and(|o| p.tells(o))
        };
        Self {
            placed: placed.iter().map(|p| (p.clone(), tells(&p))).collect(),
            owners,
        }
    }

    /// Whether keys of an object tell where its entries lie.
    #[must_use]
    pub fn knows(&self, object: ObjectId) -> bool {
        let mut own = self.placed.iter().filter(|p| p.0.object == object.0);
        own.any(|(_, tells)| *tells)
    }

    /// Where the entry of an object with this key lies; none where its key does not tell, or packets of different
    /// classes may have made it which come under different indexes.
    #[must_use]
    pub fn lies(&self, object: ObjectId, key: &[u8]) -> Option<Lies> {
        let mut found = None;
        for (placed, tells) in self.placed.iter().filter(|p| p.0.object == object.0) {
            let Some(packet) = placed.packet(key) else {
                continue;
            };
            if !tells {
                return None;
            }
            let (index, worker) = self.owners.get(placed.packets.port)?.place_of(&packet);
            let lies = Lies { index, worker };
            if *found.get_or_insert(lies) != lies {
                return None;
            }
        }
        found
    }
}

impl Placed {
    /// Whether it is about keys of this object, of entries that packets make.
    pub(crate) fn is_of(&self, object: usize) -> bool {
        self.object == object && !self.looks
    }

    /// Whether it is about keys of this object, of entries that are only set from outside.
    pub(crate) fn is_looked_for(&self, object: usize) -> bool {
        self.object == object && self.looks
    }

    /// What of a key is constant or a field's.
    pub(crate) fn key(&self) -> &[Option<Bit>] {
        &self.key
    }

    /// Whether bytes of the shape beyond those of an entry's key are zero.
    pub(crate) fn is_index(&self) -> bool {
        self.index
    }

    /// The kind of the packets.
    pub(crate) fn kind(&self) -> Kind {
        self.packets.kind
    }

    /// The port of the packets.
    pub(crate) fn port(&self) -> usize {
        self.packets.port
    }

    /// Whether the plan brings such packets together.
    pub(crate) fn is_bound(&self) -> bool {
        self.bound
    }

    /// Whether no bit of a field that the key does not have reaches the index. Keys that a solver was asked about, and
    /// what fields are computed from, say too little of single bits.
    pub(crate) fn tells(&self, owners: &Owners) -> bool {
        self.tells_of(&|packet| owners.place_of(packet))
    }

    /// The same of the bits of the index that are a bucket's number, of which there are `count`.
    pub(crate) fn tells_bucket(&self, owners: &Owners, count: u32) -> bool {
        self.tells_of(&|packet| owners.place_of(packet).0 & count.saturating_sub(1))
    }

    fn tells_of<T: PartialEq>(&self, place: &dyn Fn(&Parsed) -> T) -> bool {
        let kind = self.packets.kind;
        let zero = place(&Parsed::with_only(kind, Field::SourceAddress, &[]));
        let has: BTreeSet<Bit> = self.key.iter().flatten().copied().collect();
        let known = |field: &Field| self.zero != Some(*field);
        Field::ALL.into_iter().filter(known).all(|field| {
            (0..field.bits(kind)).all(|at| {
                let mut bytes = vec![0; field.bits(kind) / 8];
                if let Some(byte) = bytes.get_mut(at / 8) {
                    *byte = 0x80 >> (at % 8);
                }
                has.contains(&Bit::Field(field, at as u16))
                    || place(&Parsed::with_only(kind, field, &bytes)) == zero
            })
        })
    }

    /// A packet that makes an entry of this key; none if packets of this class make no such entry.
    pub(crate) fn packet(&self, key: &[u8]) -> Option<Parsed> {
        let kind: Kind = self.packets.kind;
        let key = widened(key, self.index, self.key.len() / 8);
        let bits = key
            .iter()
            .flat_map(|b| (0..8).map(move |i| b >> (7 - i) & 1 == 1));
        let mut fields = Field::ALL.map(|f| vec![0_u8; f.bits(kind) / 8]);
        let mut seen: HashMap<(Field, u16), bool> = HashMap::new();
        if self.key.len() != 8 * key.len() {
            return None;
        }
        for (of, bit) in self.key.iter().zip(bits) {
            match *of {
                Some(Bit::Const(v)) if v != bit => return None,
                Some(Bit::Const(_) | Bit::Foreign(..)) | None => {}
                // A bit that stands in the key twice is the same there.
                Some(Bit::Field(field, at)) if *seen.entry((field, at)).or_insert(bit) != bit => {
                    return None;
                }
                Some(Bit::Field(field, at)) => {
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

/// An entry's key as programs compute it: an index of a handler's vector is a number of 64 bits there, and its elements have keys of 32.
pub(crate) fn widened(key: &[u8], index: bool, bytes: usize) -> Cow<'_, [u8]> {
    match index && key.len() < bytes && bytes <= size_of::<u64>() {
        true => Cow::Owned([key, &vec![0; bytes - key.len()]].concat()),
        false => Cow::Borrowed(key),
    }
}

/// A key of one object that is a byte 7 and the source address.
#[cfg(test)]
pub(crate) fn of_source(object: usize) -> Placed {
    let seven = (0..8).map(|i| Some(Bit::Const(7 >> (7 - i) & 1 == 1)));
    Placed {
        object,
        packets: Packets {
            port: 0,
            kind: Kind::Ipv4Udp,
        },
        key: seven
            .chain((0..32).map(|at| Some(Bit::Field(Field::SourceAddress, at))))
            .collect(),
        index: false,
        bound: true,
        zero: None,
        looks: false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use millrace_steer::{Rss, nic};

    use super::*;

    /// A byte that is 7, and a field of 32 bits behind it.
    fn told(field: Field, bound: bool) -> Placed {
        let seven = (0..8).map(|i| Some(Bit::Const(7 >> (7 - i) & 1 == 1)));
        Placed {
            object: 0,
            packets: Packets {
                port: 0,
                kind: Kind::Ipv4Udp,
            },
            key: seven
                .chain((0..32).map(|at| Some(Bit::Field(field, at))))
                .collect(),
            index: false,
            bound,
            zero: None,
            looks: false,
        }
    }

    /// A NIC that hashes this field alone.
    fn finder(placed: &[Placed], field: Field) -> Finder {
        let device = nic::named("software").unwrap();
        let key: Vec<u8> = (0..52_u8).map(|i| i.wrapping_mul(73) ^ 0x5a).collect();
        let rss = Rss::new(&device, 4).with_key(&device, &key).unwrap();
        let nic = rss.with_only(&device, &[field]).unwrap();
        let steering = Steering {
            nic,
            software: BTreeMap::new(),
            inside: true,
            echoes: false,
            odd: None,
        };
        Finder::of(placed, &[steering])
    }

    #[test]
    fn shapes_that_do_not_agree_tell_nothing() {
        use Field::{DestinationAddress as To, SourceAddress as From};
        let key = [7, 10, 0, 0, 1];
        let (object, one) = (ObjectId(0), told(From, true));
        let found = finder(std::slice::from_ref(&one), From);
        assert!(found.knows(object) && found.lies(object, &key).is_some());
        // A byte that is another one, in all keys.
        assert_eq!(found.lies(object, &[8, 10, 0, 0, 1]), None);
        // Of packets with the same bytes in another field nothing reaches the index: they do not tell, and might be whose it is.
        let both = [one.clone(), told(To, true)];
        assert_eq!(finder(&both, From).lies(object, &key), None);
        // Nor do packets that the plan leaves where the NIC likes.
        assert_eq!(
            finder(&[one.clone(), told(To, false)], From).lies(object, &key),
            None
        );
        // The same field twice has the same bits.
        let twice = Placed {
            key: one.key.iter().chain(&one.key[8..]).copied().collect(),
            ..one
        };
        let found = finder(&[twice], From);
        assert!(found.lies(object, &[7, 10, 0, 0, 1, 10, 0, 0, 1]).is_some());
        assert_eq!(found.lies(object, &[7, 10, 0, 0, 1, 10, 0, 0, 2]), None);
    }

    /// Bits of a field in any order, twice, and beside constants.
    #[test]
    fn a_reader_says_what_bits_say() {
        use crate::placed_reader::Reader;
        let (from, port) = (Field::SourceAddress, Field::DestinationPort);
        let bit = |field, at| Some(Bit::Field(field, at));
        let whole: Vec<_> = (0..32).map(|at| bit(from, at)).collect();
        let ports: Vec<_> = (0..16).map(|at| bit(port, 15 - at)).collect();
        let mixed = [
            bit(from, 0),
            Some(Bit::Const(true)),
            None,
            bit(from, 9),
            Some(Bit::Const(false)),
            bit(port, 3),
            None,
            None,
        ];
        let placed = Placed {
            key: whole.iter().chain(&mixed).chain(&ports).copied().collect(),
            ..told(from, true)
        };
        let reader = Reader::of(&placed);
        let mut state = 1_u32;
        let mut found = 0;
        for _ in 0..20_000 {
            let mut key: Vec<u8> = (0..7)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            key[4] = key[4] & 0x37 | 0x40;
            let packet = placed.packet(&key);
            found += u32::from(packet.is_some());
            assert_eq!(reader.packet(&key), packet, "{key:?}");
            assert_eq!(reader.packet(&key[1..]), None);
        }
        assert!((100..19_000).contains(&found), "{found}");
    }
}
