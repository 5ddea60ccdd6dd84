//! Bits that are exclusive ors of bits of the packet: of these nobody need be asked. What a compiler makes of masks,
//! shifts and a CRC is such, and the lowest bit of a sum.

use std::cmp::Ordering;
use std::rc::Rc;

use millrace_model::expr::ids::IdMap;
use millrace_model::expr::import::above_leaves;
use millrace_model::expr::{Arena, Bin, ExprId, Node};

/// An exclusive or.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Sum {
    /// bits of the packet, ascending: the place of their byte, and which of it, 0 the least significant
    pub bits: Rc<[(i64, u32)]>,
    /// and 1
    pub odd: bool,
}

impl Sum {
    fn number(odd: bool) -> Self {
        Self {
            odd,
            ..Self::default()
        }
    }

    fn constant(&self) -> Option<bool> {
        self.bits.is_empty().then_some(self.odd)
    }

    fn with(&self, other: &Self) -> Self {
        let bits = match (&*self.bits, &*other.bits) {
            (_, []) => Rc::clone(&self.bits),
            ([], _) => Rc::clone(&other.bits),
            (a, b) => apart(a, b).into(),
        };
        Self {
            bits,
            odd: self.odd ^ other.odd,
        }
    }
}

/// What is in one of two ascending lists and not in the other.
fn apart(mut a: &[(i64, u32)], mut b: &[(i64, u32)]) -> Vec<(i64, u32)> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    while let ([x, behind_x @ ..], [y, behind_y @ ..]) = (a, b) {
        match x.cmp(y) {
            Ordering::Less => {
                out.push(*x);
                a = behind_x;
            }
            Ordering::Greater => {
                out.push(*y);
                b = behind_y;
            }
            Ordering::Equal => (a, b) = (behind_x, behind_y),
        }
    }
    out.extend_from_slice(a);
    out.extend_from_slice(b);
    out
}

/// The bits of an expression, from the least significant; none where they are no such sum.
type Word = Vec<Option<Sum>>;

/// The bits of each of these.
pub(super) fn sums(arena: &Arena, roots: &[ExprId]) -> Vec<Word> {
    each(arena, roots, |_, word| word)
}

/// The same where whatever is no such sum stands for itself, by its number in the place of a byte's place.
pub(super) fn parts(arena: &Arena, roots: &[ExprId]) -> Vec<Word> {
    each(arena, roots, |id, word| {
        let whole = word.iter().all(Option::is_some);
        let sum = matches!(
            arena.node(id),
            Node::Byte { .. } | Node::Bin(Bin::Add | Bin::Mul, ..)
        );
        match whole && !sum {
            true => word,
            false => own(i64::from(id.0), word.len()),
        }
    })
}

/// All bits of something.
fn own(place: i64, width: usize) -> Word {
    let bit = |i| {
        let bits = Rc::from([(place, i)]);
        Some(Sum { bits, odd: false })
    };
    (0..width as u32).map(bit).collect()
}

fn each(arena: &Arena, roots: &[ExprId], made: impl Fn(ExprId, Word) -> Word) -> Vec<Word> {
    let mut known: IdMap<ExprId, Word> = IdMap::default();
    for id in above_leaves(arena, roots) {
        let word = word(arena, id, &known);
        known.insert(id, made(id, word));
    }
    let of = |e: &ExprId| known.get(e).cloned().unwrap_or_default();
    roots.iter().map(of).collect()
}

fn word(arena: &Arena, id: ExprId, known: &IdMap<ExprId, Word>) -> Word {
    let width = arena.width(id) as usize;
    let of = |e: &ExprId| known.get(e).map_or(&[][..], Vec::as_slice);
    let mut word: Word = match arena.node(id) {
        Node::Const(c) => (0..width)
            .map(|i| Some(Sum::number(c >> i & 1 == 1)))
            .collect(),
        Node::Byte { base: None, at } => own(*at, width),
        Node::Concat(parts) => {
            let parts = parts.iter().rev();
            parts.flat_map(|p| of(p).iter().cloned()).collect()
        }
        Node::Extract { of: whole, low } => {
            let bits = of(whole).iter().skip(*low as usize);
            bits.take(width).cloned().collect()
        }
        Node::SignExtend(e) => {
            let mut word = of(e).to_vec();
            let sign = word.last().cloned().flatten();
            word.resize(width, sign);
            word
        }
        Node::Ite(c, a, b) => {
            let c = of(c).first().cloned().flatten();
            let both = of(a).iter().zip(of(b));
            both.map(|(a, b)| chosen(c.as_ref(), a.as_ref(), b.as_ref()))
                .collect()
        }
        Node::Bin(op, a, b) => binary(*op, of(a), of(b)),
        _ => Vec::new(),
    };
    word.resize(width, None);
    word
}

fn chosen(c: Option<&Sum>, a: Option<&Sum>, b: Option<&Sum>) -> Option<Sum> {
    let (a, b) = (a?, b?);
    if a == b {
        return Some(a.clone());
    }
    match (a.constant(), b.constant()) {
        (Some(_), Some(b)) => Some(c?.with(&Sum::number(b))),
        _ => None,
    }
}

fn binary(op: Bin, a: &[Option<Sum>], b: &[Option<Sum>]) -> Word {
    let each = |f: fn(&Sum, &Sum) -> Option<Sum>| -> Word {
        let both = a.iter().zip(b);
        both.map(|(a, b)| f(a.as_ref()?, b.as_ref()?)).collect()
    };
    let decides = |value: bool, a: &Sum, b: &Sum| match (a.constant(), b.constant()) {
        (Some(c), _) if c == value => Some(a.clone()),
        (_, Some(c)) if c == value => Some(b.clone()),
        (Some(_), _) => Some(b.clone()),
        (_, Some(_)) => Some(a.clone()),
        _ => (a == b).then(|| a.clone()),
    };
    match op {
        Bin::Xor => each(|a, b| Some(a.with(b))),
        Bin::And | Bin::Or => {
            let both = a.iter().zip(b);
            both.map(|(a, b)| decides(op == Bin::Or, a.as_ref()?, b.as_ref()?))
                .collect()
        }
        Bin::Add => added(a, b),
        Bin::Mul => {
            // Zeros below the first 1 of the factor, and there the other's last bit.
            let number = |w: &[Option<Sum>]| -> Option<usize> {
                let bits: Option<Vec<bool>> = w.iter().map(|s| s.as_ref()?.constant()).collect();
                bits?.into_iter().position(|b| b)
            };
            let (zeros, other) = match (number(a), number(b)) {
                (_, Some(zeros)) => (zeros, a),
                (Some(zeros), _) => (zeros, b),
                _ => (0, &[][..]),
            };
            let mut word: Word = vec![Some(Sum::number(false)); zeros];
            word.push(other.first().cloned().flatten());
            word
        }
        _ => Vec::new(),
    }
}

/// A sum, as far as what is carried is known.
fn added(a: &[Option<Sum>], b: &[Option<Sum>]) -> Word {
    let mut carry = Some(false);
    let mut word = Word::new();
    for (a, b) in a.iter().zip(b) {
        word.push(match (a, b, carry) {
            (Some(a), Some(b), Some(carry)) => Some(a.with(b).with(&Sum::number(carry))),
            _ => None,
        });
        let constants = [a, b].map(|s| s.as_ref().and_then(Sum::constant));
        let count = |value: bool| {
            let three = [constants[0], constants[1], carry];
            three.into_iter().filter(|c| *c == Some(value)).count()
        };
        carry = match (count(false) > 1, count(true) > 1) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        };
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_model::expr::eval::Assignment;

    fn byte(arena: &mut Arena, at: u64) -> ExprId {
        let at = arena.number(at, 64);
        arena.byte(at)
    }

    /// Against the values of all pairs of two bytes.
    #[test]
    fn a_bit_that_is_a_sum_is_that_sum() {
        let mut arena = Arena::new();
        let (x, y) = (byte(&mut arena, 3), byte(&mut arena, 9));
        let wide = arena.concat(&[x, y]);
        let number = |arena: &mut Arena, n| arena.number(n, 16);
        let (five, twelve) = (number(&mut arena, 5), number(&mut arena, 12));
        let shifted = number(&mut arena, 7);
        let shifted = arena.binary(Bin::Shr, wide, shifted);
        let mixed = arena.binary(Bin::Xor, wide, shifted);
        let some = [
            mixed,
            arena.binary(Bin::Add, wide, twelve),
            arena.binary(Bin::Add, mixed, wide),
            arena.binary(Bin::Mul, mixed, twelve),
            arena.binary(Bin::Mul, wide, mixed),
            arena.binary(Bin::And, mixed, five),
            arena.binary(Bin::Or, mixed, five),
            arena.binary(Bin::And, mixed, wide),
            arena.binary(Bin::Rem, wide, five),
        ];
        let low = arena.extract(mixed, 3, 1);
        let chosen = arena.ite(low, five, twelve);
        let roots: Vec<ExprId> = some.into_iter().chain([chosen]).collect();
        let words = sums(&arena, &roots);
        // As many bits of each as are sums.
        let known: Vec<usize> = words.iter().map(|w| w.iter().flatten().count()).collect();
        assert_eq!(known, [16, 3, 1, 3, 0, 16, 16, 7, 0, 16]);
        for n in (0..=u16::MAX).step_by(7) {
            let [a, b] = n.to_be_bytes();
            let packet = Assignment::new(IdMap::default(), [(3, a), (9, b)].into());
            for (root, word) in roots.iter().zip(&words) {
                let value = packet.value(&arena, *root);
                for (i, sum) in (0..).zip(word) {
                    let Some(sum) = sum else { continue };
                    let set = |(at, bit): &&(i64, u32)| {
                        let byte = if *at == 3 { a } else { b };
                        byte >> bit & 1 == 1
                    };
                    let odd = (sum.bits.iter().filter(set).count() % 2 == 1) ^ sum.odd;
                    assert_eq!(odd, value >> i & 1 == 1, "{n} {root:?} {i}");
                }
            }
        }
    }
}
