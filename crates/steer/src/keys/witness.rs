//! The exact span of pairs that linear equations do not describe: inequalities, sums, tables.
//!
//! A case leaves out what is not linear, so that its span (V) may be too large. Between V and the span W
//! of pairs that are known to meet, the caller is asked for a pair that a linear function tells apart
//! from W, one that is zero on W and not on V: if there is such a pair it joins W, if there is none the
//! function is zero on all pairs, and V shrinks to its kernel. Each answer closes the gap by one
//! dimension, so that there are at most as many questions as V has dimensions (a few hundred), each
//! without quantifiers, as an SMT solver likes them.

use std::sync::Arc;

use super::case::{Bit, Constraint, Part, Side};
use super::class::Class;
use super::solve::{Target, fits, from_spans, offered};
use super::space::Space;
use super::spans::{self, Pairs, Remembered, Span};
use super::unsolved::{Invalid, Unsolved};
use crate::gf2::{Echelon, Row};
use crate::nic::Nic;

/// Who knows which pairs there really are.
pub trait Witness {
    /// A pair of the case, for which also everything holds that the case leaves out, and in which the
    /// exclusive or of the bits asked about is 1.
    fn find(&mut self, asked: &Asked) -> Answer;
}

impl<F: FnMut(&Asked) -> Answer> Witness for F {
    fn find(&mut self, asked: &Asked) -> Answer {
        self(asked)
    }
}

/// A question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// the constraint's place in the list
    pub constraint: usize,
    /// the case's
    pub case: usize,
    /// bits of hashed fields whose exclusive or is to be 1
    pub parity: Vec<Bit>,
}

/// The answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The bits of hashed fields that are 1 in such a pair; all others are 0. What is not hashed may be
    /// named as well and is passed over.
    Pair(Vec<Bit>),
    /// There is none, which is proved.
    None,
    /// Nobody knows, or it took too long: the keys then obey more than they need.
    Unknown,
}

/// What the questions brought.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Asking {
    /// questions
    pub asked: usize,
    /// of them without an answer
    pub unknown: usize,
    /// dimensions by which the spans of all cases shrank
    pub gained: usize,
}

/// As [`solve`](super::solve), with the exact spans of the pairs that the witness knows.
///
/// # Errors
/// As [`solve`](super::solve), and [`Invalid::Witness`] when an answer is none. With an answer
/// [`Answer::Unknown`] among the others, [`Unsolved::Infeasible`] proves only that there are no keys for
/// what was left in the spans.
pub fn solve_exactly(
    classes: &[Class],
    constraints: &[Constraint],
    nic: &Nic,
    cores: u32,
    witness: &mut impl Witness,
) -> Result<(Space, Asking), Unsolved> {
    offered(classes, nic)?;
    exact_for(classes, constraints, Target::of(nic, cores), witness)
}

/// The same for any device that hashes these classes.
pub(super) fn exact_for(
    classes: &[Class],
    constraints: &[Constraint],
    target: Target,
    witness: &mut impl Witness,
) -> Result<(Space, Asking), Unsolved> {
    fits(classes, target)?;
    let mut asking = Asking::default();
    let mut exact = Vec::new();
    let pairs = spans::all(classes, constraints, &mut Remembered::default())?;
    for pairs in pairs {
        exact.push(shrunk(classes, &pairs, witness, &mut asking)?);
    }
    let space = from_spans(classes, &exact, target)?;
    Ok((space, asking))
}

/// The span of the pairs of a case that the witness knows.
fn shrunk(
    classes: &[Class],
    pairs: &Pairs,
    witness: &mut impl Witness,
    asking: &mut Asking,
) -> Result<Span, Invalid> {
    let mut span = pairs.span();
    let mut vectors = independent(&span.vectors, pairs.bits);
    let mut known = Echelon::new(pairs.bits);
    while known.rank() < vectors.len() {
        let functions = known.clone().orthogonal();
        let apart = |f: &Row| vectors.iter().position(|vector| f.dot(vector));
        let Some((function, place)) = functions.iter().find_map(|f| Some((f, apart(f)?))) else {
            break;
        };
        asking.asked += 1;
        let answer = witness.find(&Asked {
            constraint: pairs.constraint,
            case: pairs.case,
            parity: function
                .ones()
                .filter_map(|at| bit(classes, pairs, at))
                .collect(),
        });
        match answer {
            Answer::Pair(ones) => {
                let mut pair = vector(classes, pairs, &ones);
                let mut all = Echelon::new(pairs.bits);
                for vector in &vectors {
                    all.insert(&mut vector.clone());
                }
                if !function.dot(&pair) || !all.contains(&pair) {
                    return Err(Invalid::Witness {
                        constraint: pairs.constraint,
                        case: pairs.case,
                    });
                }
                known.insert(&mut pair);
            }
            Answer::None => {
                asking.gained += 1;
                let pivot = vectors.swap_remove(place);
                for vector in &mut vectors {
                    if function.dot(vector) {
                        vector.add(&pivot);
                    }
                }
            }
            Answer::Unknown => {
                asking.unknown += 1;
                if let Some(vector) = vectors.get(place) {
                    known.insert(&mut vector.clone());
                }
            }
        }
    }
    span.vectors = Arc::new(vectors);
    Ok(span)
}

/// Of these vectors as many as are independent.
fn independent(vectors: &[Row], bits: usize) -> Vec<Row> {
    let mut space = Echelon::new(bits);
    let fresh = vectors.iter().filter(|v| space.insert(&mut (*v).clone()));
    fresh.cloned().collect()
}

/// The header bit at a place of a pair of hash inputs.
fn bit(classes: &[Class], pairs: &Pairs, at: usize) -> Option<Bit> {
    let (side, class, at) = match at.checked_sub(pairs.split) {
        None => (Side::A, classes.get(pairs.a)?, at),
        Some(at) => (Side::B, classes.get(pairs.b)?, at),
    };
    class.fields.iter().find_map(|field| {
        let place = at.checked_sub(class.offset(*field)?)?;
        (place < field.bits(class.kind)).then_some(Bit {
            side,
            part: Part::Field(*field),
            at: place,
        })
    })
}

/// The pair of hash inputs with these bits set.
fn vector(classes: &[Class], pairs: &Pairs, ones: &[Bit]) -> Row {
    let mut row = Row::zero(pairs.bits);
    for bit in ones {
        let (id, before) = match bit.side {
            Side::A => (pairs.a, 0),
            Side::B => (pairs.b, pairs.split),
        };
        if let (Some(class), Part::Field(field)) = (classes.get(id), bit.part)
            && let Some(offset) = class.offset(field)
            && bit.at < field.bits(class.kind)
            && !row.get(before + offset + bit.at)
        {
            row.flip(before + offset + bit.at);
        }
    }
    row
}
