//! Bit-vectors as gates, the lowest bit first: circuits as hardware has them.

use super::gates::{Bit, Gates};

/// Bits of a number, the lowest first.
pub(super) type Word = Vec<Bit>;

/// A quotient and a remainder.
pub(super) type Divided = (Word, Word);

fn bit(w: &[Bit], i: usize) -> Bit {
    w.get(i).copied().unwrap_or(Bit::ZERO)
}

impl Gates {
    pub(super) fn number(value: u64, width: usize) -> Word {
        let bit = |i| value.checked_shr(i).is_some_and(|v| v & 1 == 1);
        (0..width as u32).map(|i| Bit::of(bit(i))).collect()
    }

    pub(super) fn free(&mut self, width: usize) -> Word {
        (0..width).map(|_| self.input()).collect()
    }

    /// `a + b + carry`, as wide as `a`.
    pub(super) fn plus(&mut self, a: &[Bit], b: &[Bit], mut carry: Bit) -> Word {
        let mut out = Word::with_capacity(a.len());
        for (i, x) in a.iter().enumerate() {
            let (sum, next) = self.full_adder(*x, bit(b, i), carry);
            out.push(sum);
            carry = next;
        }
        out
    }

    /// `a - b`, as wide as `a`; `b` is as wide.
    pub(super) fn minus(&mut self, a: &[Bit], b: &[Bit]) -> Word {
        let not: Word = b.iter().map(|x| !*x).collect();
        self.plus(a, &not, Bit::ONE)
    }

    /// `a + factor * b`, as wide as `a`: one addition or subtraction for each digit of the factor that is not
    /// 0, in the form in which these are fewest (non-adjacent form: Reitwiesner, 1960).
    pub(super) fn plus_times(&mut self, a: &[Bit], b: &[Bit], factor: u64) -> Word {
        let width = a.len();
        let mut total = a.to_vec();
        let mut rest = u128::from(factor);
        let mut at = 0;
        while rest != 0 && at < width {
            if rest & 1 == 1 {
                let shifted: Word = (0..width)
                    .map(|i| i.checked_sub(at).map_or(Bit::ZERO, |i| bit(b, i)))
                    .collect();
                if rest & 3 == 3 {
                    total = self.minus(&total, &shifted);
                    rest += 1;
                } else {
                    total = self.plus(&total, &shifted, Bit::ZERO);
                }
            }
            rest >>= 1;
            at += 1;
        }
        total
    }

    /// The lowest `width` bits of a product.
    pub(super) fn times(&mut self, a: &[Bit], b: &[Bit], width: usize) -> Word {
        let mut total = Self::number(0, width);
        for (at, y) in b.iter().enumerate().take(width) {
            if *y == Bit::ZERO {
                continue;
            }
            let mut row = Self::number(0, at);
            for x in a.iter().take(width - at) {
                row.push(self.and(*x, *y));
            }
            row.resize(width, Bit::ZERO);
            // Below the row's first bit nothing is added.
            let (low, high) = total.split_at(at);
            let (low, high) = (low.to_vec(), high.to_vec());
            let added = self.plus(&high, row.get(at..).unwrap_or(&[]), Bit::ZERO);
            total = low;
            total.extend(added);
        }
        total
    }

    /// Quotient and remainder by what is not 0, as inputs that are bound to be these:
    /// `a = q * b + r` without overflow, and `r < b`. If `b` is 0 both are 0. The inputs themselves, which
    /// are any numbers then, come second.
    pub(super) fn divide(&mut self, a: &[Bit], b: &[Bit]) -> (Divided, Divided) {
        let width = a.len();
        let value = |w: &[Bit]| {
            w.iter().rev().try_fold(0_u64, |n, x| {
                x.constant().map(|one| n << 1 | u64::from(one))
            })
        };
        let zero = {
            let some = b.iter().copied().reduce(|x, y| self.or(x, y));
            !some.unwrap_or(Bit::ZERO)
        };
        if zero == Bit::ONE {
            let none = (Self::number(0, width), Self::number(0, width));
            return (none.clone(), none);
        }
        let constant = value(b);
        // A divisor of k + 1 bits leaves a quotient of k bits less, and a remainder of k + 1.
        let k = constant.map_or(0, |c| c.ilog2() as usize);
        let mut q = self.free(width.saturating_sub(k));
        let mut r = self.free(constant.map_or(width, |_| (k + 1).min(width)));
        let made: Word = q.iter().chain(&r).copied().collect();
        q.resize(width, Bit::ZERO);
        r.resize(width, Bit::ZERO);
        let (total, wide) = match constant {
            // q has at most width - k bits, the divisor k + 1, the sum one more.
            Some(c) => {
                let wide = width + 2;
                let mut from = r.clone();
                from.resize(wide, Bit::ZERO);
                (self.plus_times(&from, &q, c), wide)
            }
            None => {
                let wide = 2 * width + 1;
                let mut product = self.times(&q, b, 2 * width);
                product.push(Bit::ZERO);
                (self.plus(&product, &r, Bit::ZERO), wide)
            }
        };
        let mut whole = a.to_vec();
        whole.resize(wide, Bit::ZERO);
        let same = self.equal(&total, &whole);
        let less = self.less(&r, b);
        let both = self.and(same, less);
        let holds = self.or(zero, both);
        self.bind(&made, holds);
        let not = !zero;
        let masked = |gates: &mut Self, w: &[Bit]| -> Word {
            w.iter().map(|x| gates.and(*x, not)).collect()
        };
        let out = (masked(self, &q), masked(self, &r));
        (out, (q, r))
    }

    pub(super) fn equal(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        let mut all = Bit::ONE;
        for (x, y) in a.iter().zip(b) {
            let same = !self.xor(*x, *y);
            all = self.and(all, same);
        }
        all
    }

    /// Whether `a < b`, unsigned: the carry out of `a - b` is not there.
    pub(super) fn less(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        let mut carry = Bit::ONE;
        for (x, y) in a.iter().zip(b) {
            carry = self.full_adder(*x, !*y, carry).1;
        }
        !carry
    }

    pub(super) fn choose(&mut self, c: Bit, yes: &[Bit], no: &[Bit]) -> Word {
        let pairs = yes.iter().zip(no);
        pairs.map(|(x, y)| self.choice(c, *x, *y)).collect()
    }

    /// A shift by a number that is computed: one choice a bit of the number. By the width or more it leaves
    /// `fill` alone.
    pub(super) fn shift(&mut self, a: &[Bit], by: &[Bit], left: bool, fill: Bit) -> Word {
        let width = a.len();
        let mut out = a.to_vec();
        let mut over = Bit::ZERO;
        for (i, c) in by.iter().enumerate() {
            let n = 1_usize.checked_shl(i as u32).filter(|n| *n < width);
            let Some(n) = n else {
                over = self.or(over, *c);
                continue;
            };
            let moved: Word = (0..width)
                .map(|j| {
                    let from = if left {
                        j.checked_sub(n)
                    } else {
                        Some(j + n).filter(|k| *k < width)
                    };
                    from.map_or(fill, |k| bit(&out, k))
                })
                .collect();
            out = self.choose(*c, &moved, &out);
        }
        let gone = vec![fill; width];
        self.choose(over, &gone, &out)
    }
}
