//! Proof by a loop's counter that the loop ends.
//!
//! If every time round the counter x has moved by some k of one sign, s <= |k| <= t, and whenever it
//! comes round it lies in lo..=hi, where hi + t (upwards; lo - t downwards) does not wrap, then the
//! values with which it comes round are strictly monotonic: the loop comes round at most
//! (hi - lo) / s + 1 times. The lower 32 bits of a number move likewise, modulo 2^32.

use millrace_object::insn::Width;

use super::plan::Counter;
use crate::domain::range::Range;
use crate::domain::{Link, Scalar, Value};
use crate::state::State;

/// The most rounds of one entry into a loop; the kernel's limit for `bpf_loop`.
pub const MAX_ROUNDS: u64 = 1 << 23;

/// What all rounds so far have shown about one counter.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// still a counter
    ok: bool,
    /// the movement of the first round; all others have its sign
    step: i64,
    /// the smallest movement
    least: u64,
    /// the largest movement
    most: u64,
    hull: Option<Scalar>,
    /// the movements are known modulo 2^32 only
    low: bool,
}

/// What all rounds so far have shown about a loop's counters.
#[derive(Clone, Debug)]
pub struct Progress {
    seen: Vec<Seen>,
}

fn value(st: &State, c: Counter) -> Option<Value> {
    match c {
        Counter::Reg(r) => Some(st.reg(r)),
        Counter::Slot(d, at, len) => st.frames.get(usize::from(d))?.load(at, len),
    }
}

/// Gives every counter's value a name, so that the next round shows how far it has moved.
pub fn name_counters(st: &mut State, counters: &[Counter]) -> Vec<Link> {
    counters
        .iter()
        .map(|&c| {
            let Some(Value::Scalar(s, link)) = value(st, c) else {
                return Link::NONE;
            };
            if link.id != 0 && !link.low && !link.up {
                return link;
            }
            let link = Link::named(st.fresh());
            let named = Value::Scalar(s, link);
            match c {
                Counter::Reg(r) => st.set(r, named),
                Counter::Slot(d, at, len) => {
                    if let Some(frame) = st.frames.get_mut(usize::from(d)) {
                        let frame = std::rc::Rc::make_mut(frame);
                        if frame.initialised(at, u16::from(len)) {
                            frame.store(at, len, named);
                        }
                    }
                }
            }
            link
        })
        .collect()
}

impl Progress {
    /// Nothing seen of so many counters.
    #[must_use]
    pub fn new(counters: usize) -> Self {
        Progress {
            seen: vec![
                Seen {
                    ok: true,
                    step: 0,
                    least: u64::MAX,
                    most: 0,
                    hull: None,
                    low: false
                };
                counters
            ],
        }
    }

    /// The loop comes round with this state; at its head the counters had these names. False if no
    /// counter is left.
    pub fn note(&mut self, counters: &[Counter], names: &[Link], st: &State) -> bool {
        for (i, (seen, &c)) in self.seen.iter_mut().zip(counters).enumerate() {
            if !seen.ok {
                continue;
            }
            let name = names.get(i).copied().unwrap_or(Link::NONE);
            seen.ok = match value(st, c) {
                Some(Value::Scalar(s, link)) if name.id != 0 && link.id == name.id && !link.up => {
                    let step = link.by.wrapping_sub(name.by);
                    seen.low |= link.low;
                    let step = if seen.low {
                        i64::from(step as i32)
                    } else {
                        step
                    };
                    seen.hull = Some(seen.hull.map_or(s, |h| h.join(&s)));
                    if seen.step == 0 {
                        seen.step = step;
                    }
                    seen.least = seen.least.min(step.unsigned_abs());
                    seen.most = seen.most.max(step.unsigned_abs());
                    step != 0 && (step > 0) == (seen.step > 0)
                }
                _ => false,
            };
        }
        self.seen.iter().any(|s| s.ok)
    }

    /// Which counters may still prove something.
    #[must_use]
    pub fn hopeful(&self) -> Vec<bool> {
        self.seen.iter().map(|s| s.ok).collect()
    }

    /// How often the loop comes round at most, if some counter proves that it is not more often than
    /// [`MAX_ROUNDS`].
    #[must_use]
    pub fn rounds(&self) -> Option<u64> {
        let counters = self.seen.iter().filter(|s| s.ok);
        counters
            .filter_map(|s| match s.hull {
                // It has never come round.
                None => Some(0),
                Some(h) => bounded(&h, s),
            })
            .min()
    }
}

fn bounded(hull: &Scalar, seen: &Seen) -> Option<u64> {
    let (up, least, most) = (seen.step > 0, seen.least.max(1), seen.most);
    let fits = |r: Range, width: Width| {
        let full = Range::full(width);
        let unsigned = if up {
            r.umax.checked_add(most).is_some_and(|x| x <= full.umax)
        } else {
            r.umin >= most
        };
        let by = i64::try_from(most).unwrap_or(i64::MAX);
        let signed = if up {
            r.smax.checked_add(by).is_some_and(|x| x <= full.smax)
        } else {
            r.smin.checked_sub(by).is_some_and(|x| x >= full.smin)
        };
        let unsigned = unsigned.then(|| (r.umax - r.umin) / least);
        let signed = signed.then(|| r.smax.wrapping_sub(r.smin) as u64 / least);
        let spans = unsigned.into_iter().chain(signed);
        spans.filter(|&n| n < MAX_ROUNDS).map(|n| n + 1).min()
    };
    let wide = (!seen.low).then(|| fits(hull.r64, Width::W64)).flatten();
    wide.into_iter().chain(fits(hull.r32, Width::W32)).min()
}
