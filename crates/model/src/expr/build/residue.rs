//! Remainders by 2^16 - 1, by which the Internet checksum is held against a header (RFC 1071): two sums that are congruent
//! have one remainder.
//!
//! A function that updates a checksum by equation 3 of RFC 1624, HC' = ~(~HC + ~m + m'), leaves the header's sum congruent to what it
//! was. A later function that looks at the sum again asks for the remainder of other bytes, and bit by bit a solver does not
//! find in minutes that it is the same number. Here it is found by linear algebra: a sum is a linear combination of
//! atoms, with coefficients modulo 65535, and the combination is the key by which its remainder is known.
//!
//! - A concatenation is the sum of its parts, shifted; 2^16 is 1.
//! - A sum that cannot wrap is one. What bounds a folded sum is known better than by its bits ([`Arena::most`]).
//! - A complement of 16 k bits, `mask - x`, is `-x`; of others it is the constant and `-x`.
//! - A sum that was folded, the lowest 16 bits and those above them, is what it was before.
//! - The bits of `x` from `l` on are `(x mod 2^n - x mod 2^l) / 2^l`, and 2 has an inverse: so that the bytes that
//!   a checksum was stored in become the checksum.
//! - A choice is what it is otherwise, and the difference where its condition holds: atoms stand beneath conditions, as factors 0 or 1.
//!   `not c` is 1 - c, `a and b` the product, `a or b` the sum less the product, and of two lower limits of one number the
//!   higher one is the product. So paths that met in another order give the same polynomial.
//!
//! All of these are exact, so equal keys are equal remainders.

use std::collections::{BTreeMap, HashMap};

use super::super::{Arena, Bin, ExprId, Node, Rel, mask};

/// The modulus.
pub(super) const M: u64 = 0xffff;
/// Most terms that are taken apart for one remainder: a header of 60 bytes, each of them rewritten twice by two functions,
/// is some thousand.
const STEPS: usize = 8192;
/// Most terms in which two sums differ before their conditions are taken apart.
const DIFFERENT: usize = 128;
/// Most conditions that an atom stands beneath.
const CONDITIONS: usize = 12;
/// How deep a bound is looked for.
const DEPTH: u32 = 48;

/// A condition, 0 or 1.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub(in crate::expr) enum Condition {
    /// the first is greater than the number
    Above(ExprId, u64),
    /// any other
    Is(ExprId),
}

/// An atom beneath conditions, all of which hold where it counts; none: the number 1.
type Term = (Vec<Condition>, Option<ExprId>);

/// Linear combination modulo 65535 in canonical form.
pub(in crate::expr) type Residue = Vec<(Term, u64)>;

/// `2^n` modulo 65535.
fn power(n: u32) -> u64 {
    (1 << (n % 16)) % M
}

/// `2^-n` modulo 65535.
fn inverse(n: u32) -> u64 {
    power(16 - n % 16)
}

/// Sum of terms, of which some are still taken apart.
#[derive(Default)]
struct Combination {
    open: BTreeMap<(ExprId, Vec<Condition>), u64>,
    done: BTreeMap<Term, u64>,
}

impl Combination {
    fn push(&mut self, conditions: &[Condition], e: ExprId, factor: u64) {
        let all = self.open.entry((e, conditions.to_vec())).or_default();
        *all = (*all + factor) % M;
    }

    fn settle(&mut self, conditions: Vec<Condition>, atom: Option<ExprId>, factor: u64) {
        let all = self.done.entry((conditions, atom)).or_default();
        *all = (*all + factor) % M;
    }
}

fn negative(factor: u64) -> u64 {
    (M - factor % M) % M
}

/// Conditions and one more; of lower limits of one number only the highest.
fn and(conditions: &[Condition], more: Condition) -> Vec<Condition> {
    let mut all = conditions.to_vec();
    match (more, &mut all) {
        (Condition::Above(x, limit), all) => {
            let there = all.iter_mut().find_map(|c| match c {
                Condition::Above(y, other) if *y == x => Some(other),
                _ => None,
            });
            match there {
                Some(other) => *other = limit.max(*other),
                None => all.push(more),
            }
        }
        (Condition::Is(_), all) if all.contains(&more) => {}
        (Condition::Is(_), all) => all.push(more),
    }
    all.sort_unstable();
    all
}

impl Arena {
    /// The combination that an expression is modulo 65535; none where it has too many terms.
    pub(in crate::expr) fn residue(&mut self, e: ExprId) -> Option<Residue> {
        let mut c = Combination::default();
        let mut known = HashMap::new();
        c.push(&[], e, 1);
        for _ in 0..STEPS {
            let Some(((e, conditions), factor)) = c.open.pop_last() else {
                c.done.retain(|_, factor| *factor != 0);
                return Some(c.done.into_iter().collect());
            };
            if factor == 0 {
                continue;
            }
            self.taken_apart(&mut c, &mut known, (e, conditions), factor);
        }
        None
    }

    /// Whether two combinations are one, of which the conditions are taken apart where they differ.
    pub(in crate::expr) fn same_residue(&self, one: &Residue, other: &Residue) -> bool {
        let mut difference: BTreeMap<&Term, u64> = one.iter().map(|(t, f)| (t, *f)).collect();
        for (term, factor) in other {
            let all = difference.entry(term).or_default();
            *all = (*all + negative(*factor)) % M;
        }
        difference.retain(|_, factor| *factor != 0);
        if difference.len() > DIFFERENT {
            return false;
        }
        let mut open: BTreeMap<Term, u64> = BTreeMap::new();
        for (term, factor) in difference {
            open.insert(term.clone(), factor);
        }
        let mut done: BTreeMap<Term, u64> = BTreeMap::new();
        for _ in 0..STEPS {
            let Some(((conditions, atom), factor)) = open.pop_last() else {
                done.retain(|_, factor| *factor != 0);
                return done.is_empty();
            };
            let compound = conditions.iter().find_map(|c| match c {
                Condition::Is(c) if self.is_compound(*c) => Some(*c),
                _ => None,
            });
            let put = |to: &mut BTreeMap<Term, u64>, conditions: Vec<Condition>, factor: u64| {
                let all = to.entry((conditions, atom)).or_default();
                *all = (*all + factor) % M;
            };
            match compound {
                _ if factor == 0 => {}
                None => put(&mut done, conditions, factor),
                Some(condition) => {
                    let mut others = conditions;
                    others.retain(|c| *c != Condition::Is(condition));
                    for (conditions, times) in self.beneath(&others, condition) {
                        put(&mut open, conditions, factor * times % M);
                    }
                }
            }
        }
        false
    }

    fn taken_apart(
        &mut self,
        c: &mut Combination,
        known: &mut HashMap<ExprId, u64>,
        (e, conditions): (ExprId, Vec<Condition>),
        factor: u64,
    ) {
        let width = self.width(e);
        match self.node(e).clone() {
            Node::Const(n) => c.settle(conditions, None, factor * (n % M) % M),
            Node::Concat(parts) => {
                let mut at = width;
                for part in &parts {
                    at -= self.width(*part);
                    c.push(&conditions, *part, factor * power(at) % M);
                }
            }
            Node::Extract { of, low } if low > 0 => {
                let divided = factor * inverse(low) % M;
                let whole = self.below(known, of, low + width);
                let rest = self.below(known, of, low);
                c.push(&conditions, whole, divided);
                c.push(&conditions, rest, negative(divided));
            }
            // All of its bits.
            Node::Extract { of, low: 0 } if self.most(known, of, DEPTH) <= mask(width) => {
                c.push(&conditions, of, factor);
            }
            Node::Bin(Bin::Add, a, b) => {
                let most = u128::from(self.most(known, a, DEPTH));
                let folded = self.folded(a, b).or_else(|| self.folded(b, a));
                if most + u128::from(self.most(known, b, DEPTH)) > u128::from(mask(width)) {
                    c.settle(conditions, Some(e), factor);
                } else if let Some(whole) = folded {
                    c.push(&conditions, whole, factor);
                } else {
                    c.push(&conditions, a, factor);
                    c.push(&conditions, b, factor);
                }
            }
            Node::Bin(Bin::Mul, a, b) if self.constant(b).is_some() => {
                let by = self.constant(b).unwrap_or(1);
                let most = u128::from(self.most(known, a, DEPTH));
                if most * u128::from(by) <= u128::from(mask(width)) {
                    c.push(&conditions, a, factor * (by % M) % M);
                } else {
                    c.settle(conditions, Some(e), factor);
                }
            }
            Node::Bin(Bin::Xor, a, b)
                if self.constant(a) == Some(mask(width))
                    || self.constant(b) == Some(mask(width)) =>
            {
                let x = if self.constant(a).is_some() { b } else { a };
                c.push(&conditions, x, negative(factor));
                c.settle(conditions, None, factor * (mask(width) % M) % M);
            }
            Node::Bin(Bin::Rem, x, by) if self.constant(by) == Some(M) => {
                c.push(&conditions, x, factor);
            }
            Node::Ite(condition, x, y) if conditions.len() < CONDITIONS => {
                let beneath = and(&conditions, Condition::Is(condition));
                c.push(&conditions, y, factor);
                c.push(&beneath, x, factor);
                c.push(&beneath, y, negative(factor));
            }
            _ => c.settle(conditions, Some(e), factor),
        }
    }

    /// Whether a condition is one of those that [`Self::beneath`] takes apart.
    fn is_compound(&self, condition: ExprId) -> bool {
        match *self.node(condition) {
            Node::Const(_) | Node::Ite(..) => true,
            Node::Bin(Bin::And | Bin::Or, ..) => true,
            Node::Bin(Bin::Xor, a, b) => self.constant(a).or(self.constant(b)).is_some(),
            Node::Cmp(Rel::Less, a, b) => self.constant(a).or(self.constant(b)).is_some(),
            _ => false,
        }
    }

    /// Conditions and one more, which is taken apart: sets of conditions, and how often each counts.
    fn beneath(&self, others: &[Condition], condition: ExprId) -> Vec<(Vec<Condition>, u64)> {
        let is = |x: ExprId| and(others, Condition::Is(x));
        let less = M - 1;
        match *self.node(condition) {
            Node::Const(0) => Vec::new(),
            Node::Const(_) => vec![(others.to_vec(), 1)],
            Node::Bin(Bin::Xor, a, b) => {
                let (k, x) = match self.constant(a) {
                    Some(k) => (k, b),
                    None => (self.constant(b).unwrap_or(0), a),
                };
                match k {
                    0 => vec![(is(x), 1)],
                    _ => vec![(others.to_vec(), 1), (is(x), less)],
                }
            }
            Node::Bin(op, a, b) => {
                let both = and(&is(a), Condition::Is(b));
                match op {
                    Bin::And => vec![(both, 1)],
                    _ => vec![(is(a), 1), (is(b), 1), (both, less)],
                }
            }
            Node::Ite(condition, x, y) => vec![
                (is(y), 1),
                (and(&is(condition), Condition::Is(x)), 1),
                (and(&is(condition), Condition::Is(y)), less),
            ],
            Node::Cmp(_, a, b) => match (self.constant(a), self.constant(b)) {
                (Some(limit), _) => vec![(and(others, Condition::Above(b, limit)), 1)],
                // Nothing is less than 0.
                (_, Some(0)) => Vec::new(),
                (_, limit) => {
                    let above = and(others, Condition::Above(a, limit.unwrap_or(1) - 1));
                    vec![(others.to_vec(), 1), (above, less)]
                }
            },
            _ => Vec::new(),
        }
    }

    /// The lowest `width` bits as a number: all of it, where that is as much.
    fn below(&mut self, known: &mut HashMap<ExprId, u64>, e: ExprId, width: u32) -> ExprId {
        if width >= self.width(e) || self.most(known, e, DEPTH) <= mask(width) {
            return e;
        }
        self.extract(e, 0, width)
    }

    /// Upper bound, unsigned. Of a sum of two parts of one number it is what folding leaves: with h the highest that is above 16 bits,
    /// either that comes with what is left of the largest number, or h - 1 with all ones.
    fn most(&mut self, known: &mut HashMap<ExprId, u64>, e: ExprId, depth: u32) -> u64 {
        if let Some(most) = known.get(&e) {
            return *most;
        }
        let width = self.width(e);
        let plain = self.bounds(e).1;
        let Some(deeper) = depth.checked_sub(1) else {
            return plain;
        };
        let found = match self.node(e).clone() {
            Node::Concat(parts) => {
                let mut at = width;
                let mut most = 0_u64;
                for part in &parts {
                    at -= self.width(*part);
                    most |= self.most(known, *part, deeper) << at;
                    if most != 0 {
                        // What is below the highest part may be all ones.
                        most |= mask(at) & !(u64::MAX.checked_shl(at).unwrap_or(0));
                        break;
                    }
                }
                most
            }
            Node::Extract { of, low } => self.most(known, of, deeper) >> low,
            Node::Ite(_, x, y) => {
                let x = self.most(known, x, deeper);
                x.max(self.most(known, y, deeper))
            }
            Node::Bin(Bin::Add, a, b) => {
                let folded = self.folded(a, b).or_else(|| self.folded(b, a));
                match folded {
                    Some(y) => {
                        let most = self.most(known, y, deeper);
                        match most >> 16 {
                            0 => most,
                            high => (M + high - 1).max((most & M) + high),
                        }
                    }
                    None => {
                        let a = self.most(known, a, deeper);
                        a.saturating_add(self.most(known, b, deeper))
                    }
                }
            }
            _ => plain,
        };
        let most = found.min(plain);
        known.insert(e, most);
        most
    }

    /// The number of which `low` is the lowest 16 bits and `high` all others, if it is one.
    fn folded(&mut self, low: ExprId, high: ExprId) -> Option<ExprId> {
        let (low, high) = (self.bare(low), self.bare(high));
        let Node::Extract { of, low: 16 } = *self.node(high) else {
            return None;
        };
        let all = self.significant(of) <= 16 + self.width(high);
        (all && self.extract(of, 0, 16) == low).then_some(of)
    }

    /// Without the zeros above it.
    fn bare(&self, e: ExprId) -> ExprId {
        match self.node(e) {
            Node::Concat(parts) => match parts.as_ref() {
                [zeros, only] if self.constant(*zeros) == Some(0) => *only,
                _ => e,
            },
            _ => e,
        }
    }
}
