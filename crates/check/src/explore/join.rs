//! One state for paths that meet and differ in where the packet's headers are, and in little else.
//!
//! A walk over headers leaves a few positions behind: 14, 18 or 22 bytes of link layer, 20 to 60 of IPv4. Each walk that follows
//! multiplies the states. Where paths meet outside of loops, a state is therefore generalised with one that was kept there: a
//! position becomes the range of the two. The result is used only if it includes both ([`includes`]), so nothing that this module
//! gets wrong can make a proof succeed.

use std::rc::Rc;

use super::subsume::includes;
use crate::domain::value::Id;
use crate::domain::{Link, Pointer, Region, Scalar, Value};
use crate::planted::{self, Planted};
use crate::state::{Base, FrameState, META_START, PACKET_START, Spill, State};

/// Values from which on a number is a length or an offset. One with fewer may be a kind that tells paths apart, and says which of them
/// have a header.
const FEW: u64 = 64;

/// A state that includes both, and keeps each pointer with what is proved of the bytes behind it. None where they differ in more than
/// positions, lengths, and numbers that follow positions.
#[must_use]
pub fn join(old: &State, new: &State) -> Option<State> {
    if planted::is(Planted::JoinOfOne) {
        return Some(old.clone());
    }
    let held = |s: &State| s.lock.is_some() || !s.records.is_empty();
    if held(old) || held(new) || old.frames.len() != new.frames.len() {
        return None;
    }
    let mut result = new.clone();
    let mut j = Joining {
        old,
        new,
        bases: Vec::new(),
        positions: Vec::new(),
        names: Vec::new(),
    };
    // The starts keep their names: they can be loaded again.
    for id in [PACKET_START, META_START] {
        let (a, b) = (old.base(id)?, new.base(id)?);
        j.bases.push(joined_base(id, (a, 0), (b, 0)));
    }
    let mut frames = Vec::new();
    for (a, b) in old.frames.iter().zip(&new.frames) {
        frames.push(Rc::new(j.pointers(a, b, &mut result)?));
    }
    for (frame, (a, b)) in frames.iter_mut().zip(old.frames.iter().zip(&new.frames)) {
        j.numbers(Rc::make_mut(frame), a, b, &mut result)?;
    }
    result.bases = j.bases;
    result.frames = frames;
    (includes(&result, old, &[]) && includes(&result, new, &[])).then_some(result)
}

/// The position `off` bytes behind each of two.
fn joined_base(id: Id, (a, off): (&Base, i64), (b, now): (&Base, i64)) -> Base {
    let both = |p: Option<i64>, q: Option<i64>| p.zip(q).map(|(p, q)| (p - off, q - now));
    Base {
        id,
        lo: (a.lo + off).min(b.lo + now),
        hi: (a.hi + off).max(b.hi + now),
        proven: both(a.proven, b.proven).map(|(p, q)| p.min(q)),
        beyond: both(a.beyond, b.beyond).map(|(p, q)| p.max(q)),
    }
}

/// Two positions that became one.
struct Position {
    old: Id,
    new: Id,
    /// bytes from the old position to the joined one
    off: i64,
    /// bytes from the new position to the joined one
    now: i64,
    joined: Id,
}

/// Two names that became one: of numbers, the newer ones greater by `apart`.
struct Name {
    old: Id,
    new: Id,
    apart: i64,
    up: bool,
    joined: Id,
}

struct Joining<'a> {
    old: &'a State,
    new: &'a State,
    bases: Vec<Base>,
    positions: Vec<Position>,
    names: Vec<Name>,
}

impl Joining<'_> {
    /// The frame's pointers; numbers are left as in `b`.
    fn pointers(
        &mut self,
        a: &FrameState,
        b: &FrameState,
        result: &mut State,
    ) -> Option<FrameState> {
        if a.id != b.id || a.init != b.init {
            return None;
        }
        let mut f = b.clone();
        for (r, (x, y)) in f.regs.iter_mut().zip(a.regs.iter().zip(&b.regs)) {
            *r = self.place(x, y, result)?;
        }
        let pointers = |f: &FrameState| {
            let all = f.spills.iter();
            all.filter(|s| !matches!(s.value, Value::Scalar(..)))
                .count()
        };
        if pointers(a) != pointers(b) {
            return None;
        }
        for s in &mut f.spills {
            if !matches!(s.value, Value::Scalar(..)) {
                let old = a.spills.iter().find(|o| (o.at, o.size) == (s.at, s.size))?;
                s.value = self.place(&old.value, &s.value, result)?;
            }
        }
        Some(f)
    }

    fn place(&mut self, a: &Value, b: &Value, result: &mut State) -> Option<Value> {
        match (a, b) {
            (Value::Pointer(p), Value::Pointer(q)) => {
                self.pointer(p, q, result).map(Value::Pointer)
            }
            (Value::Scalar(..), Value::Scalar(..)) | (Value::Gone(_), Value::Gone(_)) => Some(*b),
            _ => None,
        }
    }

    fn pointer(&mut self, p: &Pointer, q: &Pointer, result: &mut State) -> Option<Pointer> {
        if (p.nullable, p.sure, p.half) != (q.nullable, q.sure, q.half) {
            return None;
        }
        let id = match (p.id, q.id) {
            (0, 0) => 0,
            (0, _) | (_, 0) => return None,
            (x, y) => self.name(Link::named(x), Link::named(y), result),
        };
        let (a, b) = match (p.region, q.region) {
            (Region::Packet(a), Region::Packet(b)) | (Region::Meta(a), Region::Meta(b)) => (a, b),
            (x, y) => {
                let same = (x, p.off, p.lo, p.hi, p.align) == (y, q.off, q.lo, q.hi, q.align);
                return same.then_some(Pointer { id, ..*p });
            }
        };
        let (joined, off) = self.position((a, p.off), (b, q.off), result)?;
        let region = match p.region {
            Region::Meta(_) => Region::Meta(joined),
            _ => Region::Packet(joined),
        };
        Some(Pointer {
            region,
            off,
            id,
            ..*p
        })
    }

    /// The joined position for two pointers, and the joined pointer's offset from it.
    fn position(
        &mut self,
        (a, off): (Id, i64),
        (b, now): (Id, i64),
        result: &mut State,
    ) -> Option<(Id, i64)> {
        if a == b && off == now && (a == PACKET_START || a == META_START) {
            return Some((a, off));
        }
        let known = self
            .positions
            .iter()
            .find(|p| (p.old, p.new) == (a, b) && off - p.off == now - p.now);
        if let Some(p) = known {
            return Some((p.joined, off - p.off));
        }
        let (x, y) = (self.old.base(a)?, self.new.base(b)?);
        let ahead = |base: &Base, off: i64| base.proven.map(|p| p - off);
        if ahead(x, off) != ahead(y, now) {
            return None;
        }
        let joined = result.fresh();
        self.bases.push(joined_base(joined, (x, off), (y, now)));
        self.positions.push(Position {
            old: a,
            new: b,
            off,
            now,
            joined,
        });
        Some((joined, 0))
    }

    /// The frame's numbers, once all positions are known.
    fn numbers(
        &mut self,
        f: &mut FrameState,
        a: &FrameState,
        b: &FrameState,
        result: &mut State,
    ) -> Option<()> {
        for (r, (x, y)) in f.regs.iter_mut().zip(a.regs.iter().zip(&b.regs)) {
            if let (Value::Scalar(x, i), Value::Scalar(y, j)) = (x, y) {
                *r = self.number((x, *i), (y, *j), result)?;
            }
        }
        f.spills.retain(|s| !matches!(s.value, Value::Scalar(..)));
        for s in &a.spills {
            if let Value::Scalar(x, i) = &s.value
                && let Some(Value::Scalar(y, j)) = b.load(s.at, s.size)
            {
                let value = self.number((x, *i), (&y, j), result)?;
                let at = f.spills.partition_point(|o| o.at < s.at);
                f.spills.insert(at, Spill { value, ..*s });
            }
        }
        Some(())
    }

    fn number(
        &mut self,
        (x, i): (&Scalar, Link),
        (y, j): (&Scalar, Link),
        result: &mut State,
    ) -> Option<Value> {
        let equal = x.as_constant().is_some() && x.as_constant() == y.as_constant();
        if equal {
            return Some(Value::number(*x));
        }
        let few = |n: &Scalar| n.r64.umax - n.r64.umin < FEW;
        if few(y) && !x.includes(y) && !self.follows(x, y) || few(x) && !few(y) {
            return None;
        }
        let mut link = Link::NONE;
        if i.id != 0 && j.id != 0 && i.up == j.up {
            link = Link {
                id: self.name(i, j, result),
                low: i.low || j.low,
                ..i
            };
        }
        Some(Value::Scalar(x.join(y), link))
    }

    /// Whether two numbers are as far behind a position as one another, over all that it may be.
    fn follows(&self, x: &Scalar, y: &Scalar) -> bool {
        let ends = |base: Option<&Base>, off: i64| base.map(|b| (b.lo + off, b.hi + off));
        self.positions.iter().any(|p| {
            let old = ends(self.old.base(p.old), p.off);
            let new = ends(self.new.base(p.new), p.now);
            old.zip(new).is_some_and(|(old, new)| {
                // A number of which nothing is known is behind nothing by a constant.
                let behind = |n: &Scalar, (lo, hi)| {
                    let least = n.r64.smin.checked_sub(lo)?;
                    (n.r64.smax.checked_sub(hi)? == least).then_some(least)
                };
                let least = behind(x, old).filter(|least| *least >= 0);
                least.is_some() && behind(y, new) == least
            })
        })
    }

    fn name(&mut self, i: Link, j: Link, result: &mut State) -> Id {
        let apart = j.by.wrapping_sub(i.by);
        let known = self
            .names
            .iter()
            .find(|n| (n.old, n.new, n.apart, n.up) == (i.id, j.id, apart, i.up));
        if let Some(n) = known {
            return n.joined;
        }
        let joined = result.fresh();
        self.names.push(Name {
            old: i.id,
            new: j.id,
            apart,
            up: i.up,
            joined,
        });
        joined
    }
}
