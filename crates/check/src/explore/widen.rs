//! One state for all rounds of a loop: what the last round and this one have in common, bounds that
//! grew pushed on to the next threshold so that few rounds suffice.

use std::rc::Rc;

use millrace_object::insn::Width;

use crate::domain::range::Range;
use crate::domain::tnum::low_mask;
use crate::domain::value::Id;
use crate::domain::{Gone, Link, Pointer, Region, Scalar, Tnum, Value};
use crate::planted::{self, Planted};
use crate::rules::alu::REACH;
use crate::state::{Base, FrameState, State};

/// A state that describes every execution that `old` or `new` describes; `new` comes from `old` by
/// a round of the loop. None if they hold different records or calls.
#[must_use]
pub fn widen(old: &State, new: &State, thresholds: &[u64]) -> Option<State> {
    let same_calls = old.frames.len() == new.frames.len()
        && old
            .frames
            .iter()
            .zip(&new.frames)
            .all(|(a, b)| a.id == b.id);
    if !same_calls || old.records != new.records || old.lock != new.lock {
        return None;
    }
    let mut result = new.clone();
    let mut w = Widening {
        old,
        new,
        thresholds,
        bases: Vec::new(),
        names: Vec::new(),
    };
    // The starts keep their names: everybody may load them again.
    for id in [crate::state::PACKET_START, crate::state::META_START] {
        if let (Some(a), Some(b)) = (old.base(id), new.base(id)) {
            let joined = w.join_bases(id, a, b, 0, 0);
            w.bases.push(joined);
            w.names.push((id, id, 0, id));
        }
    }
    let mut frames = Vec::new();
    for (a, b) in old.frames.iter().zip(&new.frames) {
        let frame = w.frame(a, b, &mut result);
        frames.push(Rc::new(frame));
    }
    result.bases = w.bases;
    result.frames = frames;
    Some(result)
}

struct Widening<'a> {
    old: &'a State,
    new: &'a State,
    thresholds: &'a [u64],
    bases: Vec<Base>,
    /// old position, new position, distance, joined position
    names: Vec<(Id, Id, i64, Id)>,
}

impl Widening<'_> {
    fn frame(&mut self, a: &FrameState, b: &FrameState, result: &mut State) -> FrameState {
        let mut f = FrameState::new(a.id);
        for (r, (x, y)) in f.regs.iter_mut().zip(a.regs.iter().zip(&b.regs)) {
            *r = self.value(x, y, result);
        }
        for (init, (x, y)) in f.init.iter_mut().zip(a.init.iter().zip(&b.init)) {
            *init = x & y;
        }
        let mut unreadable: Vec<(u16, u8)> = Vec::new();
        for s in &a.spills {
            let joined = match b.load(s.at, s.size) {
                Some(v) if b.initialised(s.at, u16::from(s.size)) => {
                    self.value(&s.value, &v, result)
                }
                _ => Value::Gone(Gone::Join),
            };
            match joined {
                Value::Gone(_) => unreadable.push((s.at, s.size)),
                v => f.spills.push(crate::state::Spill { value: v, ..*s }),
            }
        }
        // Pointers that only the new round keeps are no numbers for the old one.
        for s in &b.spills {
            let kept = f.spills.iter().any(|t| t.at == s.at && t.size == s.size);
            if !kept && !matches!(s.value, Value::Scalar(..)) {
                unreadable.push((s.at, s.size));
            }
        }
        for (at, size) in unreadable {
            f.spills
                .retain(|s| s.at + u16::from(s.size) <= at || s.at >= at + u16::from(size));
            f.mark(at, u16::from(size), false);
        }
        f
    }

    fn value(&mut self, a: &Value, b: &Value, result: &mut State) -> Value {
        match (a, b) {
            (Value::Scalar(x, i), Value::Scalar(..)) if planted::is(Planted::WidenNothing) => {
                Value::Scalar(*x, *i)
            }
            (Value::Scalar(x, i), Value::Scalar(y, j)) => {
                let link = if i == j { *i } else { Link::NONE };
                Value::Scalar(self.scalar(x, y), link)
            }
            (Value::Pointer(p), Value::Pointer(q)) => self
                .pointer(p, q, result)
                .map_or(Value::Gone(Gone::Join), Value::Pointer),
            (Value::Gone(why), _) | (_, Value::Gone(why)) => Value::Gone(*why),
            _ => Value::Gone(Gone::Join),
        }
    }

    fn scalar(&self, x: &Scalar, y: &Scalar) -> Scalar {
        if x.includes(y) {
            return *x;
        }
        let bits = x.bits.join(y.bits);
        let r64 = self.range(x.r64, y.r64, Width::W64);
        // Of the unknown bits only the lowest matter (alignment); the others follow the bounds.
        let reach = 64 - r64.umax.leading_zeros();
        let lowest = bits.mask.trailing_zeros();
        let fill = low_mask(reach) & !low_mask(lowest);
        let bits = Tnum {
            value: bits.value & !fill,
            mask: bits.mask | fill,
        };
        Scalar {
            bits,
            r64,
            r32: self.range(x.r32, y.r32, Width::W32),
        }
        .deduce()
        .unwrap_or_else(Scalar::unknown)
    }

    fn range(&self, old: Range, new: Range, width: Width) -> Range {
        let full = Range::full(width);
        let up = |x: u64| self.thresholds.iter().copied().find(|&t| t >= x);
        let down = |x: u64| self.thresholds.iter().rev().copied().find(|&t| t <= x);
        Range {
            umin: if new.umin < old.umin {
                down(new.umin).unwrap_or(0)
            } else {
                old.umin
            },
            umax: if new.umax > old.umax {
                up(new.umax).unwrap_or(full.umax).min(full.umax)
            } else {
                old.umax
            },
            smin: if new.smin >= old.smin {
                old.smin
            } else if new.smin >= 0 {
                down(new.smin as u64).unwrap_or(0) as i64
            } else {
                full.smin
            },
            smax: if new.smax <= old.smax {
                old.smax
            } else if new.smax >= 0 {
                up(new.smax as u64)
                    .and_then(|t| i64::try_from(t).ok())
                    .unwrap_or(full.smax)
                    .min(full.smax)
            } else {
                0
            },
        }
    }

    fn pointer(&mut self, p: &Pointer, q: &Pointer, result: &mut State) -> Option<Pointer> {
        if p.nullable != q.nullable || p.sure != q.sure || p.half != q.half {
            return None;
        }
        let named = p.nullable || matches!(p.region, Region::Record { .. });
        if named && p.id != q.id {
            return None;
        }
        let id = if p.id == q.id { p.id } else { 0 };
        match (p.region, q.region) {
            (Region::Packet(a), Region::Packet(b)) => {
                let base = self.base((a, p.off), (b, q.off), result)?;
                Some(Pointer {
                    region: Region::Packet(base),
                    id,
                    ..*p
                })
            }
            (Region::Meta(a), Region::Meta(b)) => {
                let base = self.base((a, p.off), (b, q.off), result)?;
                Some(Pointer {
                    region: Region::Meta(base),
                    id,
                    ..*p
                })
            }
            (x, y) if x == y => {
                if (p.off, p.lo, p.hi) == (q.off, q.lo, q.hi) {
                    return Some(Pointer {
                        id,
                        align: p.align.min(q.align),
                        ..*p
                    });
                }
                let up = |x: i64| {
                    u64::try_from(x)
                        .ok()
                        .and_then(|x| self.thresholds.iter().copied().find(|&t| t >= x))
                        .map_or(REACH, |t| (t.min(REACH as u64)) as i64)
                };
                // As variable part over the fixed offset of the old one.
                let (qlo, qhi) = (q.least() - p.off, q.most() - p.off);
                let lo = if qlo < p.lo { -REACH } else { p.lo };
                let hi = if qhi > p.hi { up(qhi) } else { p.hi };
                let apart = (qlo ^ p.lo) as u64 | (qhi ^ p.hi) as u64;
                let align = p
                    .align
                    .min(q.align)
                    .min(apart.trailing_zeros().min(63) as u8)
                    .min(if p.lo == 0 {
                        63
                    } else {
                        p.lo.trailing_zeros() as u8
                    });
                Some(Pointer {
                    lo,
                    hi,
                    align,
                    id,
                    ..*p
                })
            }
            _ => None,
        }
    }

    /// The position that stands for `a` before and for `b` plus the difference of the offsets now. The pointer that
    /// it is for is that far from it.
    fn base(&mut self, (a, off): (Id, i64), (b, now): (Id, i64), result: &mut State) -> Option<Id> {
        let delta = now - off;
        if let Some(&(_, _, _, id)) = self
            .names
            .iter()
            .find(|&&(x, y, d, _)| (x, y, d) == (a, b, delta))
        {
            return Some(id);
        }
        let (x, y) = (*self.old.base(a)?, *self.new.base(b)?);
        let id = result.fresh();
        let joined = self.join_bases(id, &x, &y, delta, off);
        self.bases.push(joined);
        self.names.push((a, b, delta, id));
        Some(id)
    }

    fn join_bases(&self, id: Id, a: &Base, b: &Base, delta: i64, off: i64) -> Base {
        let up = |x: i64| {
            u64::try_from(x)
                .ok()
                .and_then(|x| self.thresholds.iter().copied().find(|&t| t >= x))
                .map_or(REACH, |t| t.min(REACH as u64) as i64)
        };
        let (blo, bhi) = (b.lo + delta, b.hi + delta);
        Base {
            id,
            lo: if blo < a.lo {
                if blo >= 0 { 0 } else { -REACH }
            } else {
                a.lo
            },
            hi: if bhi > a.hi { up(bhi) } else { a.hi },
            // What shrinks from round to round does so in few steps: to a power of two beyond the pointer, then to 0.
            proven: a.proven.zip(b.proven).and_then(|(p, q)| match q - delta {
                q if q >= p => Some(p),
                q if q > off.max(0) => Some(off + (1 << (q - off).ilog2())),
                0.. => Some(0),
                _ => None,
            }),
            beyond: a
                .beyond
                .zip(b.beyond)
                .and_then(|(p, q)| (q - delta <= p).then_some(p)),
        }
    }
}
