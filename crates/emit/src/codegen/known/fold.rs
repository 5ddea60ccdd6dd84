//! What terms are as numbers: their greatest value, and whether they are folds of a sum.
//!
//! The Internet checksum (RFC 1071) folds a sum: the upper half is added to the lower one until 16 bits are left. Each such step keeps
//! the remainder by 0xffff, and only a sum of 0 becomes 0. So a fold is told by the sum that it is of, and
//! `fold(fold(s) + d)` is `fold(s + d)`, to the bit, whatever `s` and `d` are ([`super::merged`]).

use millrace_object::insn::{AluOp, ByteOrder, Size, Width};

use super::value::{Term, Terms, Value};

/// What the lowest 16 bits of a number are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Low {
    /// the fold of this sum
    pub sum: Value,
    /// with all of them the other way round
    pub not: bool,
}

/// What is known of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// the greatest that it can be
    pub most: u64,
    /// its lowest 16 bits, where they are a fold
    pub low: Option<Low>,
    /// a sum that leaves the same remainder by 0xffff, and is 0 where this number is: some upper bits of it were added to lower ones
    pub sum: Option<Value>,
}

impl Facts {
    /// Nothing but the greatest value.
    pub const fn at_most(most: u64) -> Self {
        Self {
            most,
            low: None,
            sum: None,
        }
    }
}

/// The greatest number of 32 bits.
const WORD: u64 = u32::MAX as u64;
/// The greatest number of 16 bits.
const HALF: u64 = u16::MAX as u64;

/// The greatest number of as many bits as this one.
fn filled(n: u64) -> u64 {
    u64::MAX.checked_shr(n.leading_zeros()).unwrap_or(0)
}

/// The greatest value of an operation at 64 bits that does not wrap; none if it may.
fn greatest(op: AluOp, left: u64, right: u64, constant: Option<u64>) -> Option<u64> {
    match op {
        AluOp::Mov => Some(right),
        AluOp::And => Some(left.min(right)),
        AluOp::Or | AluOp::Xor => Some(filled(left | right)),
        AluOp::Add => left.checked_add(right),
        AluOp::Mul => left.checked_mul(right),
        AluOp::Rsh => constant.map(|c| left >> (c & 63)),
        _ => None,
    }
}

/// Whether an operation of 32 bits gives the same as one of 64.
pub fn same_at_64_bits(op: AluOp, left: Facts, right: Facts, operand: Value) -> bool {
    let left = if op == AluOp::Mov { 0 } else { left.most };
    let constant = operand.as_constant();
    let shifts = op != AluOp::Rsh || constant.is_some_and(|c| c < 32);
    let most = greatest(op, left, right.most, constant);
    shifts && left <= WORD && right.most <= WORD && most.is_some_and(|m| m <= WORD)
}

/// What is known of a term by what is known of its operands.
pub fn facts(terms: &Terms, term: &Term) -> Facts {
    match *term {
        Term::Zero => Facts::at_most(0),
        // A field of the context may be an address, which here has more bits than there.
        Term::Entry(..) | Term::Result(..) | Term::Context(..) => Facts::at_most(u64::MAX),
        Term::Narrow(size, signed, _, of) => {
            let of = terms.facts(of);
            let most = match signed {
                true => u64::MAX,
                false => of.most.min(u64::MAX >> (64 - 8 * size.bytes())),
            };
            let low = of.low.filter(|_| size != Size::B1);
            Facts {
                low,
                ..Facts::at_most(most)
            }
        }
        Term::Order(order, bits, of) => Facts {
            low: (terms.facts(of).low).filter(|_| order == ByteOrder::ToLittle),
            ..Facts::at_most(u64::MAX >> (64 - bits.clamp(1, 64)))
        },
        Term::Negative(Width::W32, _) => Facts::at_most(WORD),
        Term::Negative(Width::W64, _) => Facts::at_most(u64::MAX),
        Term::Alu(op, width, left, right) => {
            let (l, r) = (terms.facts(left), terms.facts(right));
            let limit = match width {
                Width::W32 => WORD,
                Width::W64 => u64::MAX,
            };
            let constant = right.as_constant();
            let most = greatest(op, l.most.min(limit), r.most.min(limit), constant);
            let most = most.filter(|_| width == Width::W64 || op != AluOp::Rsh);
            let plain = Facts::at_most(most.unwrap_or(limit).min(limit));
            // The lowest 16 bits stay as they are, or are all turned.
            let kept = constant.is_some_and(|c| c & HALF == HALF);
            match op {
                AluOp::And if kept => Facts {
                    low: l.low,
                    ..plain
                },
                AluOp::Xor if kept => Facts {
                    low: l.low.map(|low| Low {
                        not: !low.not,
                        ..low
                    }),
                    ..plain
                },
                AluOp::Add if width == Width::W64 => folded(terms, left, right)
                    .or_else(|| folded(terms, right, left))
                    .unwrap_or(plain),
                _ => plain,
            }
        }
    }
}

/// `lower + upper`, if that is a step of a fold: the upper bits of a number added to its lower ones, or to all of it.
fn folded(terms: &Terms, lower: Value, upper: Value) -> Option<Facts> {
    let Term::Alu(AluOp::Rsh, Width::W64, of, bits) = *terms.term(upper)? else {
        return None;
    };
    let bits = bits.as_constant().filter(|b| matches!(b, 16 | 32))?;
    let facts = terms.facts(of);
    let most = most_folded(facts.most, bits);
    let sum = facts.sum.unwrap_or(of);
    let low = (most <= HALF).then_some(Low { sum, not: false });
    if lower == of {
        // Beyond the lowest bits it is no part of a fold.
        let all = facts.most.checked_add(facts.most >> bits);
        return Some(Facts {
            low: low.filter(|_| bits == 16),
            ..Facts::at_most(all.unwrap_or(u64::MAX))
        });
    }
    let cut = match *terms.term(lower)? {
        Term::Narrow(Size::B2, false, _, cut) if bits == 16 => cut,
        Term::Narrow(Size::B4, false, _, cut) if bits == 32 => cut,
        Term::Alu(AluOp::And, _, cut, mask) if mask.as_constant() == Some((1 << bits) - 1) => cut,
        _ => return None,
    };
    (cut == of).then_some(Facts {
        most,
        low,
        sum: Some(sum),
    })
}

/// The greatest value of a number's lower bits and its upper ones, added.
fn most_folded(most: u64, bits: u64) -> u64 {
    let (upper, mask) = (most >> bits, (1 << bits) - 1);
    match upper.checked_sub(1) {
        // With all upper bits as large as they can be, the lower ones are not.
        Some(less) => (mask + less).max((most & mask) + upper),
        None => most,
    }
}

#[cfg(test)]
mod tests {
    use super::most_folded;

    #[test]
    fn bounds_of_folds_are_exact() {
        let mut largest = 0;
        for most in 0_u64..1 << 17 {
            largest = largest.max((most & 0xff) + (most >> 8));
            assert_eq!(largest, most_folded(most, 8), "{most:#x}");
        }
    }
}
