//! Keys held against the constraints in software: pairs of packets that must meet, hashed.

use rand::rand_core::Rng;

use super::case::Constraint;
use super::draw::Keys;
use super::space::Space;
use super::spans::{self, Pairs, Remembered};
use super::unsolved::Invalid;
use crate::gf2::Row;

/// A pair of hash inputs that some case of a constraint says must meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pair {
    /// the constraint's place in the list
    pub constraint: usize,
    /// the case's
    pub case: usize,
    /// the input of the packet of class a
    pub a: Vec<u8>,
    /// the input of the packet of class b
    pub b: Vec<u8>,
}

/// Result of [`Space::check`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// pairs hashed
    pub pairs: usize,
    /// the first that does not meet
    pub apart: Option<Pair>,
}

impl Space {
    /// Hashes this many random pairs of each case with these keys, in software, and compares their indexes.
    /// Whatever made the keys, this finds those that are wrong: of pairs that a wrong key tells apart at
    /// all, it does half.
    ///
    /// # Errors
    /// [`Invalid`] when the constraints are not of these classes.
    pub fn check(
        &self,
        keys: &Keys,
        constraints: &[Constraint],
        each: usize,
        random: &mut impl Rng,
    ) -> Result<Checked, Invalid> {
        let mut checked = Checked {
            pairs: 0,
            apart: None,
        };
        for pairs in spans::all(&self.classes, constraints, &mut Remembered::default())? {
            for _ in 0..each {
                let pair = pairs.random(random);
                let port = |class: usize| self.classes.get(class).map_or(0, |class| class.port);
                checked.pairs += 1;
                if keys.index(port(pairs.a), &pair.a) != keys.index(port(pairs.b), &pair.b) {
                    checked.apart = Some(pair);
                    return Ok(checked);
                }
            }
        }
        Ok(checked)
    }
}

/// Random pairs of hash inputs, so many of each case that any pair satisfies.
///
/// # Errors
/// [`Invalid`] when the constraints are not of these classes.
pub fn pairs(
    classes: &[super::Class],
    constraints: &[Constraint],
    each: usize,
    random: &mut impl Rng,
) -> Result<Vec<Pair>, Invalid> {
    let all = spans::all(classes, constraints, &mut Remembered::default())?;
    let some = |pairs: &Pairs| -> Vec<Pair> { (0..each).map(|_| pairs.random(random)).collect() };
    Ok(all.iter().flat_map(some).collect())
}

impl Pairs {
    /// One of the pairs, each as likely as any other where the directions are independent.
    fn random(&self, random: &mut impl Rng) -> Pair {
        let zero = Row::zero(self.bits);
        let (base, directions) = self.vectors.split_first().unwrap_or((&zero, &[]));
        let mut sum = base.clone();
        for directions in directions.chunks(64) {
            let mut draw = random.next_u64();
            for direction in directions {
                if draw & 1 == 1 {
                    sum.add(direction);
                }
                draw >>= 1;
            }
        }
        Pair {
            constraint: self.constraint,
            case: self.case,
            a: bytes(&sum, 0, self.split),
            b: bytes(&sum, self.split, self.bits - self.split),
        }
    }
}

/// So many bits of a vector, the first as the most significant of the first byte.
fn bytes(row: &Row, from: usize, bits: usize) -> Vec<u8> {
    let byte = |at: usize| row.window(from + at, (bits - at).min(8)) << (8 - (bits - at).min(8));
    (0..bits).step_by(8).map(|at| byte(at) as u8).collect()
}
