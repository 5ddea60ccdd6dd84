//! Values that a guard fixes: those that bytes of the packet, and the port, can have. Where paths merged, a guard has
//! alternatives; what holds in each of them holds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::expr::ids::IdMap;
use crate::expr::sets::{self, Place, Set};
use crate::expr::{Arena, Bin, ExprId, Node, Rel, mask};

/// Something whose values are followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Of {
    /// a byte of the packet
    Byte(Place),
    /// the port by which it came; of more ports than a byte can tell nothing is known
    Port,
}

/// The values that each can have; what is not there can have any.
pub type Known = BTreeMap<Of, Set>;

/// Results of earlier work.
#[derive(Default)]
pub struct Memory {
    /// by arena, condition and whether it holds
    conditions: RefCell<IdMap<(u64, ExprId, bool), Rc<Known>>>,
    /// of the guard that was asked for last
    last: RefCell<Last>,
}

/// A guard, its arena, and what it fixes.
#[derive(Default)]
struct Last {
    arena: u64,
    guard: Vec<ExprId>,
    known: Rc<Known>,
}

/// Most places that are followed at once; of others nothing is known.
const PLACES: usize = 128;
/// Most parts of one condition that are looked at.
const PARTS: usize = 4096;
/// Most that is remembered.
const REMEMBERED: usize = 1 << 16;

/// Both hold.
pub fn both(a: &mut Known, b: &Known) {
    for (of, set) in b {
        let room = a.len() < PLACES;
        match a.get_mut(of) {
            Some(s) => *s = s.both(set),
            None if room => drop(a.insert(*of, set.clone())),
            None => {}
        }
    }
}

/// One or the other holds.
#[must_use]
pub fn either(a: &Known, b: &Known) -> Known {
    let shared = a.iter().filter_map(|(of, s)| Some((*of, s.or(b.get(of)?))));
    shared.collect()
}

impl Memory {
    /// Values that a condition, or its negation, fixes.
    pub fn of(&self, arena: &Arena, e: ExprId, holds: bool) -> Rc<Known> {
        let key = |(e, holds): &(ExprId, bool)| (arena.identity(), *e, *holds);
        if let Some(known) = self.conditions.borrow().get(&key(&(e, holds))) {
            return known.clone();
        }
        if self.conditions.borrow().len() > REMEMBERED {
            self.conditions.borrow_mut().clear();
        }
        // Operands before what they are operands of: depth is no matter.
        let mut todo = vec![(e, holds)];
        let mut left = PARTS;
        while let Some(&(e, holds)) = todo.last() {
            if self.conditions.borrow().contains_key(&key(&(e, holds))) {
                todo.pop();
                continue;
            }
            let (join, parts) = match left {
                0 => (Join::Unknown, Vec::new()),
                _ => parts(arena, e, holds),
            };
            let missing = |p: &&(ExprId, bool)| !self.conditions.borrow().contains_key(&key(p));
            let missing: Vec<_> = parts.iter().filter(missing).copied().collect();
            if !missing.is_empty() {
                todo.extend(missing);
                continue;
            }
            let known = {
                let all = self.conditions.borrow();
                let mut sides = parts.iter().filter_map(|p| all.get(&key(p)));
                match (join, sides.next(), sides.next()) {
                    (Join::Unknown, ..) => Rc::default(),
                    (Join::Leaf, ..) | (_, None, _) => Rc::new(leaf(arena, e, holds)),
                    (_, Some(one), None) => one.clone(),
                    (Join::Both, Some(a), Some(b)) => {
                        let mut k = Known::clone(a);
                        both(&mut k, b);
                        Rc::new(k)
                    }
                    (Join::Either, Some(a), Some(b)) => Rc::new(either(a, b)),
                }
            };
            self.conditions.borrow_mut().insert(key(&(e, holds)), known);
            left = left.saturating_sub(1);
            todo.pop();
        }
        let all = self.conditions.borrow();
        all.get(&key(&(e, holds))).cloned().unwrap_or_default()
    }

    /// Values that conditions fix together.
    #[must_use]
    pub fn all(&self, arena: &Arena, guard: &[ExprId]) -> Rc<Known> {
        let mut last = self.last.borrow_mut();
        // Mostly one is asked for after the other, each with one condition more.
        if last.arena != arena.identity() || !guard.starts_with(&last.guard) {
            *last = Last {
                arena: arena.identity(),
                ..Last::default()
            };
        }
        let told = last.guard.len();
        for e in guard.get(told..).unwrap_or(&[]) {
            let more = self.of(arena, *e, true);
            both(Rc::make_mut(&mut last.known), &more);
            last.guard.push(*e);
        }
        last.known.clone()
    }

    /// The same of conditions of which each holds or does not.
    #[must_use]
    pub fn each(&self, arena: &Arena, guard: &[(ExprId, bool)]) -> Known {
        let mut known = Known::new();
        for (e, holds) in guard {
            both(&mut known, &self.of(arena, *e, *holds));
        }
        known
    }
}

#[derive(Clone, Copy)]
enum Join {
    /// nobody looks
    Unknown,
    Leaf,
    Both,
    Either,
}

/// Composition of a condition.
fn parts(arena: &Arena, e: ExprId, holds: bool) -> (Join, Vec<(ExprId, bool)>) {
    if let (Node::Bin(op, a, b), 1) = (arena.node(e), arena.width(e)) {
        let (a, b) = (*a, *b);
        match op {
            Bin::And if holds => return (Join::Both, vec![(a, true), (b, true)]),
            Bin::And => return (Join::Either, vec![(a, false), (b, false)]),
            Bin::Or if holds => return (Join::Either, vec![(a, true), (b, true)]),
            Bin::Or => return (Join::Both, vec![(a, false), (b, false)]),
            Bin::Xor if arena.constant(a) == Some(1) => return (Join::Both, vec![(b, !holds)]),
            Bin::Xor if arena.constant(b) == Some(1) => return (Join::Both, vec![(a, !holds)]),
            _ => {}
        }
    }
    (Join::Leaf, Vec::new())
}

fn leaf(arena: &Arena, e: ExprId, holds: bool) -> Known {
    let mut known = Known::new();
    let contrary = |set: Set| {
        if holds { set } else { Set::all().without(&set) }
    };
    if let Some((place, set)) = sets::of(arena, e) {
        known.insert(Of::Byte(place), contrary(set));
        return known;
    }
    let Node::Cmp(Rel::Eq, x, c) = *arena.node(e) else {
        return known;
    };
    let Some(mut c) = arena.constant(c) else {
        return known;
    };
    if let Node::Sym(s) = arena.node(x) {
        if arena.symbol(*s).name == "port" && c < 256 {
            known.insert(Of::Port, contrary(Set::one(c as u8)));
        }
        return known;
    }
    let (Node::Concat(parts), true) = (arena.node(x), holds) else {
        return known;
    };
    for p in parts.iter().rev() {
        let width = arena.width(*p);
        let bits = (c & mask(width)) as u8;
        match arena.node(*p) {
            Node::Byte { base, at } if width == 8 => {
                known.insert(Of::Byte((*base, *at)), Set::one(bits));
            }
            // Some bits of a byte, as of the flags and the offset of fragments.
            Node::Extract { of, low } if width < 8 => {
                if let Node::Byte { base, at } = arena.node(*of) {
                    let have = |v: &u8| u64::from(v >> low) & mask(width) == u64::from(bits);
                    let set = Set::all().filtered(have);
                    both(&mut known, &Known::from([(Of::Byte((*base, *at)), set)]));
                }
            }
            _ => {}
        }
        c = c.checked_shr(arena.width(*p)).unwrap_or(0);
    }
    known
}
