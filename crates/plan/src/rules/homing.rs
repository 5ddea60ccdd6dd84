//! R6, homing: packets that carry a number which the program itself leased come home by it.
//!
//! A packet that comes with a leased number finds the lease on the core that leased it, if that core leases to a
//! packet only numbers whose index of the indirection table is the packet's own. Let `f` be the index under which
//! packets with the number `n` come in. The keys are such that `f` depends on `n` alone: all pairs of packets that
//! reach the object with the same number meet. Then a lease to a packet of index `i` takes a free `n` with `f(n) = i`, and
//! the lease, the packet that made it and those that carry the number share one entry of the table, also
//! when that entry is moved to another core.
//!
//! What the leasing packet touches besides (the entry in which the number is kept) is of its own index; who reads
//! the number there has that index, too ([`super::derived`]). A packet that carries the number of another one's
//! lease and leases itself (hairpin) would have to be of two indexes at once; the equations say so, and then there is
//! no such key.
//!
//! For this every index must have numbers: `f` must reach all of them.
//!
//! Numbers that nobody looks up so are leased by one core at a time all the same: two flows that have one would be one to who
//! receives their packets, and to objects that are keyed by it. So they are dealt over the indexes ([`Home::Dealt`]) unless what
//! reads entries by number compares them, which makes equal numbers of two cores harmless ([`super::interchangeable`]).

use std::collections::BTreeSet;
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::expr::ids::IdSet;
use millrace_object::program::Program;
use millrace_steer::{Field, Kind, Parsed, Steering};

use super::{Barred, Said};
use crate::constraints::{Cases, Meeting, equal};
use crate::key::{Bit, Key};
use crate::packets::Packets;
use crate::plan::Rule;
use crate::solved::Solved;
use crate::touch::{Found, Source, Touch, distinct};
use crate::words;

/// By what the numbers of an allocator are told apart, so that no two cores lease one at a time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Home {
    /// by where packets come in that carry them
    Carried(Carried),
    /// evenly over the table's indexes: no packet finds the lease by the number, but it is told from others outside, or in
    /// other objects
    Dealt,
}

/// How packets come home.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Carried {
    /// packets that carry the number; all others that do have its index, too
    pub packets: Packets,
    /// the field that it stands in
    pub field: Field,
    /// of each bit of the field, from the most significant, which bit of the number it is
    bits: Vec<u32>,
}

/// Requirements of the rule.
#[derive(Debug)]
pub(crate) struct Homed {
    pub home: Carried,
    pub meetings: Vec<Meeting>,
    /// ICMP echoes carry the number, too: they come home only if somebody looks for their identifiers
    pub echoes: bool,
}

/// Why the rule does not serve.
#[derive(Debug)]
pub(crate) enum Unserved {
    /// the number is the identifier of ICMP echoes, which nobody has looked for
    Echoes,
    /// for another reason
    Other,
}

/// For an object whose numbers are leased, reached by numbers that packets carry; `own` are its touches.
pub(crate) fn homed(
    program: &Program,
    object: usize,
    own: &[&Touch],
    cases: &Cases,
) -> Result<Homed, Unserved> {
    let declared = program.objects.get(object).ok_or(Unserved::Other)?;
    if !declared.kind.leases() || declared.capacity == 0 {
        return Err(Unserved::Other);
    }
    let last = declared.first.saturating_add(declared.capacity - 1);
    let mut direct: BTreeSet<(Packets, Option<Field>, &Key)> = BTreeSet::new();
    let mut homes = Vec::new();
    // Keys are there once each: by their places in memory they are told apart.
    let mut seen = IdSet::default();
    let (mut echoes, mut other) = (false, false);
    for (_, t) in distinct(own.iter().copied()) {
        match &t.source {
            Source::Leased => {}
            // What has no port has 0 for one: never leased.
            Source::Fields | Source::Constant if never(&t.key, declared.first, last) => {}
            Source::Fields if !seen.insert((t.packets, t.zero, Rc::as_ptr(&t.key))) => {}
            Source::Fields => match home(t, declared.first, last) {
                Some(home) => {
                    homes.push(home);
                    direct.insert((t.packets, t.zero, &t.key));
                }
                None => other = true,
            },
            Source::Foreign(_) if t.packets.kind == Kind::Ipv4 => echoes = true,
            _ => other = true,
        }
    }
    if echoes {
        return Err(Unserved::Echoes);
    }
    if other {
        return Err(Unserved::Other);
    }
    let home = homes.into_iter().min().ok_or(Unserved::Other)?;
    let echoes = direct.iter().any(|(_, zero, _)| zero.is_some());
    let direct: Vec<_> = direct.into_iter().collect();
    let mut meetings = Vec::new();
    for (i, (a, v, x)) in direct.iter().enumerate() {
        for (b, w, y) in direct.iter().skip(i) {
            if let Some(case) = equal((a.kind, x, *v), (b.kind, y, *w)) {
                let (a, b, case) = (*a, *b, cases.once(case));
                meetings.push(Meeting { a, b, case });
            }
        }
    }
    Ok(Homed {
        home,
        meetings: cases.unique(meetings),
        echoes,
    })
}

/// An object whose packets meet by it.
pub(crate) fn judge(
    model: &Model,
    name: &str,
    own: &[&Touch],
    home: &Carried,
    ports: &[String],
) -> Said {
    let leases = own.iter().find(|t| t.any(|s| *s == Source::Leased));
    let port = words::port(ports, home.packets.port);
    let reason = format!(
        "packets on {port} find their lease of {name} by the number in their {}: a core leases to a packet only numbers that \
         come home to it, those whose table index there is the packet's own",
        words::field(home.field)
    );
    Said::new(Rule::R6, reason, leases.and_then(|t| t.at.place(model)))
}

/// An object of which some indexes would have no number.
pub(crate) fn poor(
    name: &str,
    home: &Home,
    capacity: u64,
    bits: usize,
    line: Option<String>,
) -> Barred {
    let indexes = 1_u64 << bits.min(63);
    let reason = match home {
        Home::Carried(home) => format!(
            "the {capacity} numbers of {name} do not come home to all of the {indexes} indexes of the table by their {}, and \
             flows of the others would never be leased one",
            words::field(home.field)
        ),
        Home::Dealt => format!(
            "cores lease different numbers of {name} by the table's index of the packet, and its {capacity} numbers are too few \
             for {indexes} indexes"
        ),
    };
    Said::new(Rule::R6, reason, line).barred(
        "lease more numbers, or use a NIC with a smaller indirection table",
        false,
    )
}

/// The bits of a key, each with its place in the number that it is: keys are from the most significant bit of the first
/// byte, numbers from the least byte.
fn numbered(key: &Key) -> impl Iterator<Item = (u32, &Bit)> {
    let place = |i: usize| (i / 8 * 8 + 7 - i % 8) as u32;
    key.iter().enumerate().map(move |(i, bit)| (place(i), bit))
}

/// Whether a key is one number that is never leased.
fn never(key: &Key, first: u64, last: u64) -> bool {
    let mut number = 0_u64;
    for (at, bit) in numbered(key) {
        match bit {
            Bit::Const(true) => number |= 1_u64.checked_shl(at).unwrap_or(0),
            Bit::Const(false) => {}
            Bit::Field(..) | Bit::Foreign(..) => return false,
        }
    }
    !(first..=last).contains(&number)
}

/// Where a packet has the number, if all numbers from `first` to `last` fit there.
fn home(touch: &Found, first: u64, last: u64) -> Option<Carried> {
    let mut found: Option<(Field, Vec<Option<u32>>)> = None;
    for (number, bit) in numbered(&touch.key) {
        match bit {
            Bit::Field(field, at) => {
                let width = field.bits(touch.packets.kind);
                let (own, bits) = found.get_or_insert((*field, vec![None; width]));
                if own != field {
                    return None;
                }
                *bits.get_mut(usize::from(*at))? = Some(number);
            }
            // A bit that packets do not carry is that of every number.
            Bit::Const(v) => {
                let of = |n: u64| n.checked_shr(number).unwrap_or(0) & 1 == 1;
                let varies = number < 64 && first >> number != last >> number;
                if varies || of(first) != *v {
                    return None;
                }
            }
            Bit::Foreign(..) => return None,
        }
    }
    let (field, bits) = found?;
    Some(Carried {
        packets: touch.packets,
        field,
        bits: bits.into_iter().collect::<Option<_>>()?,
    })
}

impl Home {
    /// Whether every index of the table has numbers, as far as keys can say.
    pub fn reaches_all(&self, solved: &Solved, capacity: u64) -> bool {
        match self {
            Self::Carried(home) => home.reaches_all(solved, capacity),
            Self::Dealt => capacity >> solved.space.index_bits() > 0,
        }
    }

    /// The index of each number, from `first` on, under a steering of all ports, over `indexes` of them, a power of two;
    /// none if the port where packets carry them is not steered.
    pub fn table(
        &self,
        steering: &[Steering],
        indexes: u32,
        first: u64,
        capacity: u64,
    ) -> Option<Vec<u32>> {
        match self {
            Self::Carried(home) => home.table(steering, indexes, first, capacity),
            Self::Dealt => {
                let of = |number| (number % u64::from(indexes.max(1))) as u32;
                Some((0..capacity).map(of).collect())
            }
        }
    }
}

impl Carried {
    /// Whether every index of the table has numbers, as far as keys can say.
    pub fn reaches_all(&self, solved: &Solved, capacity: u64) -> bool {
        let class = solved
            .steered
            .iter()
            .position(|s| s.packets == self.packets);
        let bits = solved.space.index_bits();
        class.is_some_and(|c| solved.space.table_rank(c) >= bits) && capacity >> bits > 0
    }

    /// As of [`Home::table`].
    ///
    /// The hash is linear: the index of a number is that of zero and of each of its bits, added.
    fn table(
        &self,
        steering: &[Steering],
        indexes: u32,
        first: u64,
        capacity: u64,
    ) -> Option<Vec<u32>> {
        let steering = steering.get(self.packets.port)?;
        let index = |number: u64| {
            let mut bytes = vec![0_u8; self.bits.len().div_ceil(8)];
            for (at, bit) in self.bits.iter().enumerate() {
                let one = number.checked_shr(*bit).unwrap_or(0) & 1;
                if let Some(byte) = bytes.get_mut(at / 8) {
                    *byte |= (one as u8) << (7 - at % 8);
                }
            }
            let packet = Parsed::with_only(self.packets.kind, self.field, &bytes);
            steering.index_of(&packet) & indexes.saturating_sub(1)
        };
        let zero = index(0);
        let columns: Vec<(u32, u32)> = self
            .bits
            .iter()
            .map(|bit| (*bit, index(1 << (*bit).min(63)) ^ zero))
            .collect();
        let of = |number: u64| {
            let set = columns.iter().filter(|(bit, _)| number >> bit & 1 == 1);
            set.fold(zero, |sum, (_, column)| sum ^ column)
        };
        Some((first..first.saturating_add(capacity)).map(of).collect())
    }
}

/// How many numbers the poorest and the richest index have.
pub(crate) fn spread(table: &[u32], indexes: u32) -> (u64, u64) {
    let mut counts = vec![0_u64; indexes as usize];
    for index in table {
        if let Some(count) = counts.get_mut(*index as usize) {
            *count += 1;
        }
    }
    let least = counts.iter().min().copied().unwrap_or(0);
    (least, counts.into_iter().max().unwrap_or(0))
}
