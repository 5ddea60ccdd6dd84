//! Expressions as gates (bit-blasting: Kroening and Strichman, Decision Procedures, chapter 6).

use super::gates::{Bit, Gates};
use super::words::Word;
use crate::expr::eval::Assignment;
use crate::expr::ids::{IdMap, IdSet};
use crate::expr::walk::cone;
use crate::expr::{Arena, Bin, ExprId, Node, Origin, Rel};
use millrace_check::moment::Moment;

/// Most terms of a sum that is taken apart.
const TERMS: usize = 32;

/// A factor of this many digits is there to mix bits.
const MIXING: u32 = 12;

/// The gates of expressions, each made once.
pub(super) struct Circuit {
    pub(super) gates: Gates,
    words: IdMap<ExprId, Word>,
    quotients: IdMap<(ExprId, ExprId), (Word, Word)>,
    /// the outputs of products
    products: IdSet<u32>,
    /// what inputs stand for
    inputs: IdMap<u32, (Source, u32)>,
}

/// Meaning of a number whose bits are inputs.
#[derive(Clone, Copy)]
enum Source {
    /// a symbol or a byte of the packet
    Leaf(ExprId),
    Quotient(ExprId, ExprId),
    Remainder(ExprId, ExprId),
}

impl Circuit {
    pub(super) fn new() -> Self {
        Self {
            gates: Gates::new(),
            words: IdMap::default(),
            quotients: IdMap::default(),
            products: IdSet::default(),
            inputs: IdMap::default(),
        }
    }

    /// Whether this is a bit of a product.
    pub(super) fn of_product(&self, n: usize) -> bool {
        self.products.contains(&(n as u32))
    }

    /// Remembers what the inputs among these bits stand for.
    fn name(&mut self, bits: &[Bit], source: Source) {
        let inputs = bits.iter().zip(0..).filter(|(b, _)| !b.negated());
        for (b, at) in inputs.filter(|(b, _)| b.constant().is_none()) {
            self.inputs.entry(b.gate() as u32).or_insert((source, at));
        }
    }

    /// The parameter that an input is a bit of, and which.
    pub(super) fn parameter(&self, arena: &Arena, n: usize) -> Option<(ExprId, u32)> {
        let (Source::Leaf(e), at) = *self.inputs.get(&(n as u32))? else {
            return None;
        };
        let is = matches!(arena.node(e), Node::Sym(s) if arena.symbol(*s).origin == Origin::Param);
        is.then_some((e, at))
    }

    /// The value of an input under an assignment, as far as it is known.
    pub(super) fn input(&self, arena: &Arena, n: usize, under: &Assignment) -> bool {
        let Some((source, at)) = self.inputs.get(&(n as u32)) else {
            return false;
        };
        let value = match source {
            Source::Leaf(e) => under.value(arena, *e),
            Source::Quotient(a, b) => {
                let (a, b) = (under.value(arena, *a), under.value(arena, *b));
                a.checked_div(b).unwrap_or(0)
            }
            Source::Remainder(a, b) => {
                let (a, b) = (under.value(arena, *a), under.value(arena, *b));
                a.checked_rem(b).unwrap_or(0)
            }
        };
        value >> at & 1 == 1
    }

    /// The bits of an expression, if they can be had with about this many gates in all, and in time.
    pub(super) fn bits(
        &mut self,
        arena: &Arena,
        e: ExprId,
        (most, until): (usize, Moment),
    ) -> Option<Word> {
        for id in cone(arena, &[e], |id| self.words.contains_key(&id)) {
            if self.gates.len() > most || Moment::now() > until {
                return None;
            }
            let mut word = self.made(arena, id);
            // What is known of every value need not be found out again.
            let known = arena.bits(id);
            for (i, bit) in word.iter_mut().enumerate() {
                if known.mask >> i & 1 == 0 {
                    *bit = Bit::of(known.value >> i & 1 == 1);
                }
            }
            if is_product(arena, id) {
                let bits = word.iter().filter(|b| b.constant().is_none());
                self.products.extend(bits.map(|b| b.gate() as u32));
            }
            self.words.insert(id, word);
        }
        self.words.get(&e).cloned()
    }

    /// The bits of an expression that were asked for before.
    pub(super) fn known(&self, e: ExprId) -> Option<&Word> {
        self.words.get(&e)
    }

    fn word(&self, e: ExprId) -> Word {
        // Operands come before what is made of them.
        self.words.get(&e).cloned().unwrap_or_default()
    }

    fn made(&mut self, arena: &Arena, id: ExprId) -> Word {
        let width = arena.width(id) as usize;
        match arena.node(id) {
            Node::Const(c) => Gates::number(*c, width),
            Node::Sym(_) | Node::Byte { .. } => {
                let word = self.gates.free(width);
                self.name(&word, Source::Leaf(id));
                word
            }
            Node::Concat(parts) => {
                let parts = parts.iter().rev();
                parts.flat_map(|p| self.word(*p)).collect()
            }
            Node::Extract { of, low } => {
                let all = self.word(*of);
                all.into_iter().skip(*low as usize).take(width).collect()
            }
            Node::SignExtend(x) => {
                let mut word = self.word(*x);
                let sign = word.last().copied().unwrap_or(Bit::ZERO);
                word.resize(width, sign);
                word
            }
            Node::Ite(c, x, y) => {
                let (c, x, y) = (self.word(*c), self.word(*x), self.word(*y));
                let c = c.first().copied().unwrap_or(Bit::ZERO);
                self.gates.choose(c, &x, &y)
            }
            Node::Cmp(rel, a, b) => vec![self.comparison(*rel, *a, *b)],
            Node::Bin(op, a, b) => self.binary(arena, *op, (*a, *b), width),
        }
    }

    fn comparison(&mut self, rel: Rel, a: ExprId, b: ExprId) -> Bit {
        let (mut a, mut b) = (self.word(a), self.word(b));
        match rel {
            Rel::Eq => self.gates.equal(&a, &b),
            Rel::Less => self.gates.less(&a, &b),
            Rel::SignedLess => {
                // Signed order is unsigned order with the signs turned.
                for sign in [a.last_mut(), b.last_mut()].into_iter().flatten() {
                    *sign = !*sign;
                }
                self.gates.less(&a, &b)
            }
        }
    }

    fn binary(&mut self, arena: &Arena, op: Bin, (x, y): (ExprId, ExprId), width: usize) -> Word {
        let (a, b) = (self.word(x), self.word(y));
        let pairs = |gates: &mut Gates, f: fn(&mut Gates, Bit, Bit) -> Bit| -> Word {
            a.iter().zip(&b).map(|(x, y)| f(gates, *x, *y)).collect()
        };
        match op {
            Bin::And => pairs(&mut self.gates, Gates::and),
            Bin::Or => pairs(&mut self.gates, Gates::or),
            Bin::Xor => pairs(&mut self.gates, Gates::xor),
            Bin::Add => self.sum(arena, (x, y), width),
            Bin::Mul => match (arena.constant(x), arena.constant(y)) {
                (_, Some(c)) => self.gates.plus_times(&Gates::number(0, width), &a, c),
                (Some(c), _) => self.gates.plus_times(&Gates::number(0, width), &b, c),
                _ => self.gates.times(&a, &b, width),
            },
            Bin::MulHigh => {
                let mut product = self.gates.times(&a, &b, 2 * width);
                product.split_off(width)
            }
            Bin::Div => self.divided((x, y), &a, &b).0,
            Bin::Rem => {
                let rest = self.divided((x, y), &a, &b).1;
                self.or_whole(&a, &b, &rest)
            }
            Bin::SignedDiv | Bin::SignedRem => {
                let sign = |w: &Word| w.last().copied().unwrap_or(Bit::ZERO);
                let (sa, sb) = (sign(&a), sign(&b));
                let (p, n) = (self.turned(&a, sa), self.turned(&b, sb));
                let ((q, r), _) = self.gates.divide(&p, &n);
                if op == Bin::SignedDiv {
                    let other = self.gates.xor(sa, sb);
                    self.turned(&q, other)
                } else {
                    let rest = self.turned(&r, sa);
                    self.or_whole(&a, &b, &rest)
                }
            }
            Bin::Shl => self.gates.shift(&a, &b, true, Bit::ZERO),
            Bin::Shr => self.gates.shift(&a, &b, false, Bit::ZERO),
            Bin::Sar => {
                let sign = a.last().copied().unwrap_or(Bit::ZERO);
                self.gates.shift(&a, &b, false, sign)
            }
        }
    }

    /// A sum, its terms in the order of their bits: however many bits of it are wanted, its lower ones are the
    /// same gates, so that nobody has to prove that they are equal.
    fn sum(&mut self, arena: &Arena, (a, b): (ExprId, ExprId), width: usize) -> Word {
        let (mut terms, mut constant) = arena.linear(a);
        let (more, other) = arena.linear(b);
        terms.extend(more);
        constant = constant.wrapping_add(other);
        if terms.len() > TERMS {
            (terms, constant) = (vec![(a, 1), (b, 1)], 0);
        }
        // Operands have words before what is made of them.
        let words = terms.iter().map(|(e, factor)| (self.word(*e), *factor));
        let mut words: Vec<(Word, u64)> = words.collect();
        words.sort();
        let mut total = Gates::number(0, width);
        for (word, factor) in words {
            total = self.gates.plus_times(&total, &word, factor);
        }
        self.gates
            .plus(&total, &Gates::number(constant, width), Bit::ZERO)
    }

    /// A quotient is mostly wanted together with its remainder.
    fn divided(&mut self, key: (ExprId, ExprId), a: &[Bit], b: &[Bit]) -> (Word, Word) {
        if let Some(known) = self.quotients.get(&key) {
            return known.clone();
        }
        let (made, (q, r)) = self.gates.divide(a, b);
        self.name(&q, Source::Quotient(key.0, key.1));
        self.name(&r, Source::Remainder(key.0, key.1));
        self.quotients.insert(key, made.clone());
        made
    }

    /// A remainder by 0 is the whole.
    fn or_whole(&mut self, a: &[Bit], b: &[Bit], rest: &[Bit]) -> Word {
        let some = b.iter().copied().reduce(|x, y| self.gates.or(x, y));
        self.gates.choose(some.unwrap_or(Bit::ZERO), rest, a)
    }

    /// The negated number if so.
    fn turned(&mut self, a: &[Bit], negative: Bit) -> Word {
        let flipped: Word = a.iter().map(|x| self.gates.xor(*x, negative)).collect();
        self.gates.plus(&flipped, &[], negative)
    }
}

/// Whether an expression is a product that a solver should leave for last: of two unknowns, or by a factor of this many
/// digits that it is there to mix bits, as in a hash.
fn is_product(arena: &Arena, e: ExprId) -> bool {
    let Node::Bin(op, a, b) = *arena.node(e) else {
        return false;
    };
    match (op, arena.constant(a).or(arena.constant(b))) {
        (Bin::MulHigh, _) | (Bin::Mul, None) => true,
        // As many additions as the factor has digits in non-adjacent form.
        (Bin::Mul, Some(c)) => (c ^ c.wrapping_mul(3)).count_ones() >= MIXING,
        _ => false,
    }
}
