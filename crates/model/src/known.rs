//! What a guard fixes: the values that bytes of the packet, and the port, can have. Where paths merged, a
//! guard has alternatives; what holds in each of them holds.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

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

/// What was worked out before, by condition and whether it holds.
#[derive(Default)]
pub struct Memory(RefCell<HashMap<(ExprId, bool), Rc<Known>>>);

/// Both hold.
fn both(a: &mut Known, b: &Known) {
    for (of, set) in b {
        match a.get_mut(of) {
            Some(s) => *s = s.both(set),
            None => drop(a.insert(*of, set.clone())),
        }
    }
}

/// One or the other holds.
fn either(a: &Known, b: &Known) -> Known {
    let shared = a.iter().filter_map(|(of, s)| Some((*of, s.or(b.get(of)?))));
    shared.collect()
}

impl Memory {
    /// What a condition fixes, or its contrary.
    pub fn of(&self, arena: &Arena, e: ExprId, holds: bool) -> Rc<Known> {
        // Operands before what they are operands of: depth is no matter.
        let mut todo = vec![(e, holds)];
        while let Some(&(e, holds)) = todo.last() {
            if self.0.borrow().contains_key(&(e, holds)) {
                todo.pop();
                continue;
            }
            let parts = parts(arena, e, holds);
            let missing: Vec<_> = {
                let all = self.0.borrow();
                parts
                    .1
                    .iter()
                    .filter(|p| !all.contains_key(p))
                    .copied()
                    .collect()
            };
            if !missing.is_empty() {
                todo.extend(missing);
                continue;
            }
            let known = {
                let all = self.0.borrow();
                let mut sides = parts.1.iter().filter_map(|p| all.get(p));
                match (parts.0, sides.next(), sides.next()) {
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
            self.0.borrow_mut().insert((e, holds), known);
            todo.pop();
        }
        self.0
            .borrow()
            .get(&(e, holds))
            .cloned()
            .unwrap_or_default()
    }

    /// What conditions fix that all hold.
    #[must_use]
    pub fn all(&self, arena: &Arena, guard: &[ExprId]) -> Known {
        let mut known = Known::new();
        for e in guard {
            both(&mut known, &self.of(arena, *e, true));
        }
        known
    }
}

#[derive(Clone, Copy)]
enum Join {
    Leaf,
    Both,
    Either,
}

/// What a condition is made of.
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
