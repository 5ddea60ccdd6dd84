//! When two packets touch the same place: equal keys, as linear equations over the bits of their fields.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use millrace_model::expr::ids::{IdMap, IdSet};
use millrace_model::weaken::weak;
use millrace_steer::keys::{Bits, Case, Equation, Part, Side};
use millrace_steer::{Field, Kind};

use crate::key::{Bit, Key};
use crate::packets::Packets;
use crate::touch::{Found, Touch};

/// Pairs of packets that must meet.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    pub a: Packets,
    pub b: Packets,
    /// there once among all of one plan
    pub case: Arc<Case>,
}

/// A meeting by its case's place in memory.
pub(crate) type Same = (Packets, Packets, *const Case);

impl Meeting {
    /// The property that distinguishes it from others.
    pub fn same(&self) -> Same {
        (self.a, self.b, Arc::as_ptr(&self.case))
    }
}

/// The cases of one plan, each once: most pairs of packets are held against each other alike.
#[derive(Default)]
pub(crate) struct Cases {
    all: RefCell<HashSet<Arc<Case>>>,
    /// whether the pairs of the first are among those of the second
    within: RefCell<IdMap<(*const Case, *const Case), bool>>,
}

impl Cases {
    /// The one that is there already, if it is.
    pub fn once(&self, case: Case) -> Arc<Case> {
        let mut all = self.all.borrow_mut();
        match all.get(&case) {
            Some(known) => known.clone(),
            None => {
                let case = Arc::new(case);
                all.insert(case.clone());
                case
            }
        }
    }

    /// Whether every equation of the other case stands in this one, so that its pairs are among the other's.
    fn within(&self, one: &Arc<Case>, other: &Arc<Case>) -> bool {
        let same = (Arc::as_ptr(one), Arc::as_ptr(other));
        let mut within = self.within.borrow_mut();
        *within.entry(same).or_insert_with(|| {
            let own: HashSet<&Equation> = one.equations.iter().collect();
            other.equations.iter().all(|e| own.contains(e))
        })
    }

    /// Without those that stand there twice, and without those whose pairs meet already because of another one.
    pub fn unique(&self, all: Vec<Meeting>) -> Vec<Meeting> {
        let mut seen = IdSet::default();
        let mut all = all;
        all.retain(|m| seen.insert(m.same()));
        let mut classes: IdMap<(Packets, Packets), Vec<Arc<Case>>> = IdMap::default();
        for m in &all {
            classes.entry((m.a, m.b)).or_default().push(m.case.clone());
        }
        all.retain(|m| {
            let mut others = classes.get(&(m.a, m.b)).into_iter().flatten();
            !others.any(|o| !Arc::ptr_eq(o, &m.case) && self.covers(o, &m.case))
        });
        all
    }

    /// Of two cases with the same pairs neither covers the other: one of them has to stay.
    fn covers(&self, one: &Arc<Case>, other: &Arc<Case>) -> bool {
        self.within(other, one) && !self.within(one, other)
    }
}

fn bit(kind: Kind, field: Field, at: u16) -> Option<Bits> {
    let all = Bits::of(kind, field);
    (usize::from(at) < all.count).then_some(Bits {
        part: Part::Field(field),
        first: usize::from(at),
        count: 1,
    })
}

/// Packets of a kind with a key, and the field of theirs that is 0 whatever the key is.
pub(crate) type Keyed<'a> = (Kind, &'a [Bit], Option<Field>);

/// Pairs of packets of two classes that have these bits equal, one by one; none where bits that are constant differ.
/// Bits that are not linear over fields are left out: more packets are said to meet than need, never fewer.
pub(crate) fn equal(a: Keyed<'_>, b: Keyed<'_>) -> Option<Case> {
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
    case = zeroed(case, [(a.0, a.2), (b.0, b.2)]);
    if weak("meet-coarser")
        && let [x, y] = [a.0, b.0].map(|kind| bit(kind, Field::SourcePort, 0))
        && let (Some(x), Some(y)) = (x, y)
    {
        case = case.equal(x, y);
    }
    Some(case)
}

/// A case of packets of these kinds, with the fields that are 0 whatever the key is.
pub(crate) fn zeroed(mut case: Case, of: [(Kind, Option<Field>); 2]) -> Case {
    for (side, (kind, zero)) in [Side::A, Side::B].into_iter().zip(of) {
        if let Some(field) = zero {
            case = case.constant(side, Bits::of(kind, field), 0);
        }
    }
    case
}

/// A key as equations see it: none for a bit that cannot stand in one.
pub(crate) type Shape = Vec<Option<Bit>>;

pub(crate) fn shape(key: &Key) -> Shape {
    let linear = |bit: &Bit| Some(*bit).filter(|bit| !matches!(bit, Bit::Foreign(..)));
    key.iter().map(linear).collect()
}

/// All pairs of packets that touch one place, of which at least one changes it.
pub(crate) fn by_key<'a>(
    touches: impl Iterator<Item = (&'a Touch, &'a Found)>,
    cases: &Cases,
) -> Vec<Meeting> {
    // Keys that differ only in what no equation speaks of ask for the same. They are many times fewer than the
    // accesses: each is written down once.
    let mut shapes: IdMap<*const Key, Rc<Shape>> = IdMap::default();
    let mut forms: HashSet<Rc<Shape>> = HashSet::new();
    let mut uses: BTreeMap<_, (&Key, bool)> = BTreeMap::new();
    let mut seen = IdSet::default();
    for (t, f) in touches {
        if !seen.insert((f.packets, f.zero, Rc::as_ptr(&f.key), t.writes)) {
            continue;
        }
        let shape = shapes.entry(Rc::as_ptr(&f.key)).or_insert_with(|| {
            let shape = Rc::new(shape(&f.key));
            let known = forms.get(&shape).cloned();
            known.unwrap_or_else(|| {
                forms.insert(shape.clone());
                shape
            })
        });
        let found = uses.entry((f.packets, f.zero, shape.clone()));
        found.or_insert((&f.key, false)).1 |= t.writes;
    }
    let uses: Vec<_> = uses.into_iter().collect();
    let mut out = Vec::new();
    // Two shapes are held against each other once for all kinds whose fields are as wide.
    let width = |kind: Kind| Field::ALL.map(|f| f.bits(kind));
    let mut known = IdMap::default();
    for (i, ((p, v, of), (x, writes))) in uses.iter().enumerate() {
        for ((q, w, with), (y, also)) in uses.iter().skip(i) {
            let apart = weak("meet-readers") && !(*writes && *also)
                || weak("meet-ports") && p.port != q.port
                || weak("meet-kinds") && p.kind != q.kind;
            if !writes && !also || apart {
                continue;
            }
            let same = (
                Rc::as_ptr(of),
                width(p.kind),
                *v,
                Rc::as_ptr(with),
                width(q.kind),
                *w,
            );
            let case = known.entry(same).or_insert_with(|| {
                let case = equal((p.kind, x, *v), (q.kind, y, *w));
                case.map(|c| cases.once(c))
            });
            if let Some(case) = case {
                let (a, b, case) = (*p, *q, case.clone());
                out.push(Meeting { a, b, case });
            }
        }
    }
    cases.unique(out)
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
