//! Subsumption of states: a state that allows every execution of another one. What was proved from the first holds
//! for the second.

use crate::domain::value::Id;
use crate::domain::{Link, Pointer, Region, Value};
use crate::planted::{self, Planted};
use crate::rules::iterator;
use crate::state::{FrameState, State};

/// A name of the older state and what it stands for: numbers (the newer ones greater by `apart`,
/// modulo 2^32 if `low`), what is null together, or records.
struct Named {
    old: Id,
    new: Id,
    apart: i64,
    low: bool,
    up: bool,
    new_low: bool,
}

/// Which names of the newer state stand for which of the older one.
#[derive(Default)]
struct Names {
    ids: Vec<Named>,
    /// positions: old name, new name, and the new position's offset that is the old position
    bases: Vec<(Id, Id, i64)>,
}

/// Whether every execution that `new` describes is one that `old` describes. `bound` are numbers
/// outside the states that stand for each other.
#[must_use]
pub fn includes(old: &State, new: &State, bound: &[(Link, Link)]) -> bool {
    if old.frames.len() != new.frames.len() || old.records.len() != new.records.len() {
        return false;
    }
    let mut names = Names::default();
    if !bound.iter().all(|&(a, b)| names.same(a, b)) {
        return false;
    }
    let frames = old.frames.iter().zip(&new.frames).rev();
    for (o, n) in frames {
        if o.id != n.id {
            return false;
        }
        for (a, b) in o.regs.iter().zip(&n.regs) {
            if !names.value(a, b, old, new) {
                return false;
            }
        }
        if !names.stack(o, n, old, new) {
            return false;
        }
    }
    let locks = match (&old.lock, &new.lock) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            (a.region, a.off, a.id == 0) == (b.region, b.off, b.id == 0)
                && names.same_id(a.id, b.id)
        }
        _ => false,
    };
    if !locks {
        return false;
    }
    // Every record that the old way held and gives back must be one that the new way holds.
    names.starts(old, new)
        && old.records.iter().zip(&new.records).all(|(a, b)| {
            let reserved = a.0.max(b.0) >= iterator::FIRST;
            if reserved {
                a.0 == b.0
            } else {
                names.same_id(a.0, b.0)
            }
        })
}

impl Names {
    /// An old name that occurs once binds nothing; where it occurs again, the newer values must be
    /// related in the same way.
    fn same(&mut self, old: Link, new: Link) -> bool {
        if old.id == 0 {
            return true;
        }
        // What a shifted number says of the others is what its lower half says.
        if old.up != new.up {
            return false;
        }
        let apart = new.by.wrapping_sub(old.by);
        let agrees = self.ids.iter().filter(|i| i.old == old.id).all(|i| {
            let alike = if i.low || old.low || i.up || old.up {
                i.apart as u32 == apart as u32
            } else {
                i.apart == apart && !new.low && !i.new_low
            };
            i.new == new.id && new.id != 0 && alike
        });
        if agrees {
            self.ids.push(Named {
                old: old.id,
                new: new.id,
                apart,
                low: old.low,
                up: old.up,
                new_low: new.low,
            });
        }
        agrees
    }

    fn same_id(&mut self, old: Id, new: Id) -> bool {
        self.same(Link::named(old), Link::named(new))
    }

    /// What is proved about the packet's start matters even if no pointer is held: it can be
    /// loaded again.
    fn starts(&mut self, old: &State, new: &State) -> bool {
        [crate::state::PACKET_START, crate::state::META_START]
            .iter()
            .all(|&id| self.base(id, id, 0, old, new))
    }

    fn base(&mut self, o: Id, n: Id, delta: i64, old: &State, new: &State) -> bool {
        if let Some(&(_, name, d)) = self.bases.iter().find(|(x, _, _)| *x == o) {
            return name == n && d == delta;
        }
        let (Some(a), Some(b)) = (old.base(o), new.base(n)) else {
            return false;
        };
        // The old position is the new one plus delta.
        let inside = b.lo + delta >= a.lo && b.hi + delta <= a.hi;
        let proven = match (a.proven, b.proven) {
            (None, _) => true,
            (Some(p), Some(q)) => q >= p + delta,
            (Some(_), None) => false,
        };
        let beyond = match (a.beyond, b.beyond) {
            (None, _) => true,
            (Some(p), Some(q)) => q <= p + delta,
            (Some(_), None) => false,
        };
        if inside && proven && beyond {
            self.bases.push((o, n, delta));
        }
        inside && proven && beyond
    }

    fn value(&mut self, old: &Value, new: &Value, a: &State, b: &State) -> bool {
        match (old, new) {
            (Value::Gone(_), _) => true,
            (Value::Scalar(s, i), Value::Scalar(t, j)) => {
                let within = s.includes(t) || planted::is(Planted::AnyNumberIncluded);
                within && (s.as_constant().is_some() || self.same(*i, *j))
            }
            (Value::Pointer(p), Value::Pointer(q)) => self.pointer(p, q, a, b),
            _ => false,
        }
    }

    fn pointer(&mut self, p: &Pointer, q: &Pointer, a: &State, b: &State) -> bool {
        let less = q.nullable && (!p.nullable || p.sure && !q.sure);
        if less || q.half != p.half || !self.same_id(p.id, q.id) {
            return false;
        }
        match (p.region, q.region) {
            // The old pointer is old position + p.off, the new one new position + q.off.
            (Region::Packet(x), Region::Packet(y)) | (Region::Meta(x), Region::Meta(y)) => {
                self.base(x, y, q.off - p.off, a, b)
            }
            (x, y) if x == y => {
                if let Some(f) = p.fixed() {
                    return q.fixed() == Some(f);
                }
                // The variable parts are unrelated to anything else, so only the sum counts.
                q.least() >= p.least() && q.most() <= p.most() && q_aligned(p, q)
            }
            _ => false,
        }
    }

    fn stack(&mut self, o: &FrameState, n: &FrameState, a: &State, b: &State) -> bool {
        for (x, y) in o.init.iter().zip(&n.init) {
            if x & !y != 0 {
                return false;
            }
        }
        for s in &o.spills {
            match (s.value, n.load(s.at, s.size)) {
                (Value::Gone(_), _) => {}
                (v, Some(w)) => {
                    if !self.value(&v, &w, a, b) {
                        return false;
                    }
                }
                (_, None) => return false,
            }
        }
        // Bytes that the old way might read as numbers must not be a pointer now.
        n.spills.iter().all(|s| {
            matches!(s.value, Value::Scalar(..))
                || (s.at..s.at + u16::from(s.size)).all(|byte| {
                    !o.initialised(byte, 1)
                        || o.touching(byte, 1)
                            .any(|t| !matches!(t.value, Value::Scalar(..)))
                })
        })
    }
}

/// Whether the newer offset is aligned at least as the older one is known to be.
fn q_aligned(p: &Pointer, q: &Pointer) -> bool {
    let fixed = |x: &Pointer| {
        x.fixed().map_or_else(
            || (x.off & ((1 << x.align.min(6)) - 1), x.align.min(6)),
            |f| (f, 6),
        )
    };
    let ((po, pa), (qo, qa)) = (fixed(p), fixed(q));
    qa >= pa && (qo - po) & ((1 << pa) - 1) == 0
}
