//! When two packets touch the same place: equal keys, as linear equations over the bits of their fields.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use millrace_steer::keys::{Bits, Case, Part, Side};
use millrace_steer::{Field, Kind};

use crate::key::{Bit, Key};
use crate::packets::Packets;
use crate::touch::{Found, Touch};

/// Pairs of packets that must meet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Meeting {
    pub a: Packets,
    pub b: Packets,
    pub case: Case,
}

fn bit(kind: Kind, field: Field, at: u16) -> Option<Bits> {
    let all = Bits::of(kind, field);
    (usize::from(at) < all.count).then_some(Bits {
        part: Part::Field(field),
        first: usize::from(at),
        count: 1,
    })
}

/// Which packets of two classes have these bits equal, one by one; none where bits that are constant differ. What
/// is not linear over fields is left out: more packets are said to meet than need, never fewer.
pub(crate) fn equal(a: (Kind, &[Bit]), b: (Kind, &[Bit])) -> Option<Case> {
    // Most pairs differ in a constant: nothing is built for them.
    let apart = |(x, y): (&Bit, &Bit)| matches!((x, y), (Bit::Const(x), Bit::Const(y)) if x != y);
    if a.1.iter().zip(b.1).any(apart) {
        return None;
    }
    let mut case = Case::all();
    for (x, y) in a.1.iter().zip(b.1) {
        case = match (*x, *y) {
            (Bit::Field(f, i), Bit::Field(g, j)) => match (bit(a.0, f, i), bit(b.0, g, j)) {
                (Some(x), Some(y)) => case.equal(x, y),
                _ => case,
            },
            (Bit::Field(f, i), Bit::Const(v)) => match bit(a.0, f, i) {
                Some(x) => case.constant(Side::A, x, u128::from(v)),
                None => case,
            },
            (Bit::Const(v), Bit::Field(g, j)) => match bit(b.0, g, j) {
                Some(y) => case.constant(Side::B, y, u128::from(v)),
                None => case,
            },
            _ => case,
        };
    }
    Some(case)
}

/// A key as equations see it.
type Shape = Rc<Vec<Option<Bit>>>;

/// What of a bit can stand in an equation.
fn linear(bit: Bit) -> Option<Bit> {
    match bit {
        Bit::Const(_) | Bit::Field(..) => Some(bit),
        Bit::Foreign(..) => None,
    }
}

/// All pairs of packets that touch one place, of which at least one changes it.
pub(crate) fn by_key<'a>(touches: impl Iterator<Item = (&'a Touch, &'a Found)>) -> Vec<Meeting> {
    // Keys that differ only in what no equation speaks of ask for the same. They are many times fewer than the
    // accesses: each is written down once.
    let mut shapes: HashMap<*const Key, Shape> = HashMap::new();
    let mut uses: BTreeMap<(Packets, Shape), (&Key, bool)> = BTreeMap::new();
    let mut seen = HashSet::new();
    for (t, f) in touches {
        if !seen.insert((f.packets, Rc::as_ptr(&f.key), t.writes)) {
            continue;
        }
        let shape = shapes
            .entry(Rc::as_ptr(&f.key))
            .or_insert_with(|| Rc::new(f.key.iter().map(|b| linear(*b)).collect()));
        let found = uses.entry((f.packets, shape.clone()));
        found.or_insert((&f.key, false)).1 |= t.writes;
    }
    let uses: Vec<_> = uses.into_iter().collect();
    let mut out = Vec::new();
    for (i, ((p, _), (x, writes))) in uses.iter().enumerate() {
        for ((q, _), (y, also)) in uses.iter().skip(i) {
            if !writes && !also {
                continue;
            }
            if let Some(case) = equal((p.kind, x), (q.kind, y)) {
                let (a, b) = (*p, *q);
                out.push(Meeting { a, b, case });
            }
        }
    }
    unique(out)
}

/// Without those that stand there twice.
pub(crate) fn unique(all: Vec<Meeting>) -> Vec<Meeting> {
    let mut seen = HashSet::new();
    all.into_iter().filter(|m| seen.insert(m.clone())).collect()
}

/// The fields that all pairs of one class have in common: only these can tell packets apart.
pub(crate) fn kept(meetings: &[Meeting], packets: Packets) -> Option<BTreeSet<Field>> {
    let mine = meetings.iter().filter(|m| m.a == packets && m.b == packets);
    let fields = |m: &Meeting| -> BTreeSet<Field> {
        let bits = m.case.equations.iter().flat_map(|e| &e.bits);
        bits.filter_map(|b| match b.part {
            Part::Field(f) => Some(f),
            Part::Other(_) => None,
        })
        .collect()
    };
    mine.map(fields).reduce(|a, b| &a & &b)
}
