//! Constraints on hash inputs: for each case, the pairs of inputs that must meet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::case::{Bit, Case, Constraint, Part, Side};
use super::class::{Class, ClassId};
use super::unsolved::Invalid;
use crate::fields::Field;
use crate::gf2::{Echelon, Row};

/// Equations of one case; more than the bits of any two packets' headers.
const MAX_EQUATIONS: usize = 1 << 12;
/// Bits that the NIC does not hash, in one case.
const MAX_UNHASHED: usize = 1 << 11;
/// Cases of all constraints together.
const MAX_CASES: usize = 1 << 12;
/// Equations of all cases together.
const MAX_TOTAL: usize = 1 << 16;

/// The pairs of hash inputs (of a packet of class `a` and one of class `b`) that a case allows, what is
/// not hashed projected out: `base` plus any sum of `directions`. A vector has the bits of a's input,
/// then those of b's.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    pub constraint: usize,
    pub case: usize,
    pub a: ClassId,
    pub b: ClassId,
    /// the bits of a's input
    pub split: usize,
    /// of both
    pub bits: usize,
    /// the base, then the directions
    pub vectors: Arc<Vec<Row>>,
}

/// Vectors that span the pairs of a case. "Equal hash" is linear in the pair, so that it holds for all
/// pairs if and only if it holds for these.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub a: ClassId,
    pub b: ClassId,
    /// the bits of a's input
    pub split: usize,
    /// one list for all classes that are hashed alike
    pub vectors: Arc<Vec<Row>>,
}

/// Results of cases that were asked about before: of many constraints the case is one, and classes are hashed alike.
#[derive(Default, Debug)]
pub struct Remembered {
    /// fields that are hashed, and how many bits each field has, each once
    inputs: HashMap<(Vec<Field>, [usize; 4]), usize>,
    /// by case and the inputs of both classes; the cases are held, so that no other one takes their place
    cases: HashMap<(*const Case, usize, usize), (Arc<Case>, Solved)>,
}

/// Base and directions, if any pair satisfies the case.
type Solved = Option<Arc<Vec<Row>>>;

impl Remembered {
    fn input(&mut self, class: &Class) -> usize {
        let bits = Field::ALL.map(|f| f.bits(class.kind));
        let input = (class.fields.clone(), bits);
        let next = self.inputs.len();
        *self.inputs.entry(input).or_insert(next)
    }
}

impl Pairs {
    /// The span.
    pub fn span(&self) -> Span {
        Span {
            a: self.a,
            b: self.b,
            split: self.split,
            vectors: self.vectors.clone(),
        }
    }
}

/// The pairs of every case that any pair satisfies.
pub(super) fn all(
    classes: &[Class],
    constraints: &[Constraint],
    known: &mut Remembered,
) -> Result<Vec<Pairs>, Invalid> {
    let inputs: Vec<usize> = classes.iter().map(|c| known.input(c)).collect();
    let input = |id: ClassId| inputs.get(id).copied().unwrap_or(usize::MAX);
    let cases = || constraints.iter().flat_map(|c| &c.cases);
    let equations: usize = cases().map(|case| case.equations.len()).sum();
    if cases().count() > MAX_CASES || equations > MAX_TOTAL {
        return Err(Invalid::TooMany);
    }
    let mut found = Vec::new();
    for (number, constraint) in constraints.iter().enumerate() {
        let class = |id: ClassId| classes.get(id).ok_or(Invalid::NoClass { class: id });
        let (a, b) = (class(constraint.a)?, class(constraint.b)?);
        for (place, case) in constraint.cases.iter().enumerate() {
            let same = (Arc::as_ptr(case), input(constraint.a), input(constraint.b));
            let solved = match known.cases.get(&same) {
                Some((_, solved)) => solved.clone(),
                None => {
                    let solved = pairs(a, b, case)?.map(Arc::new);
                    known.cases.insert(same, (case.clone(), solved.clone()));
                    solved
                }
            };
            found.extend(solved.map(|vectors| Pairs {
                constraint: number,
                case: place,
                a: constraint.a,
                b: constraint.b,
                split: a.bits(),
                bits: a.bits() + b.bits(),
                vectors,
            }));
        }
    }
    Ok(found)
}

/// Base and directions of a case; none when its equations contradict each other.
///
/// The equations are homogenised: one more unknown stands for the constant 1. The null space then is the
/// span of the pairs together with that 1, and what is not hashed is cut off its vectors.
pub(super) fn pairs(a: &Class, b: &Class, case: &Case) -> Result<Option<Vec<Row>>, Invalid> {
    if case.equations.len() > MAX_EQUATIONS {
        return Err(Invalid::TooMany);
    }
    let hashed = a.bits() + b.bits();
    let mut unhashed: BTreeMap<Bit, usize> = BTreeMap::new();
    for bit in case.equations.iter().flat_map(|e| &e.bits) {
        if place(a, b, *bit)?.is_none() {
            let next = hashed + unhashed.len();
            unhashed.entry(*bit).or_insert(next);
        }
        if unhashed.len() > MAX_UNHASHED {
            return Err(Invalid::TooMany);
        }
    }
    let one = hashed + unhashed.len();
    let mut equations = Echelon::new(one + 1);
    let mut row = Row::zero(one + 1);
    for equation in &case.equations {
        row.clear();
        for bit in &equation.bits {
            let at = place(a, b, *bit)?.or_else(|| unhashed.get(bit).copied());
            at.into_iter().for_each(|at| row.flip(at));
        }
        if equation.odd {
            row.flip(one);
        }
        equations.insert(&mut row);
    }
    // One vector for each unknown that leads no equation, ordered; the 1 is the last unknown, set in its
    // own vector only, and leads an equation only if that says 1 = 0.
    let mut vectors = equations.orthogonal();
    let Some(base) = vectors.pop().filter(|vector| vector.get(one)) else {
        return Ok(None);
    };
    let cut = |vector: &Row| {
        let mut short = Row::zero(hashed);
        let ones = vector.ones().take_while(|at| *at < hashed);
        ones.for_each(|at| short.flip(at));
        short
    };
    let directions = vectors.iter().map(cut).filter(|vector| !vector.is_zero());
    Ok(Some(
        std::iter::once(cut(&base)).chain(directions).collect(),
    ))
}

/// Where a bit stands in the pair of hash inputs; none when it is not hashed.
fn place(a: &Class, b: &Class, bit: Bit) -> Result<Option<usize>, Invalid> {
    let (class, before) = match bit.side {
        Side::A => (a, 0),
        Side::B => (b, a.bits()),
    };
    let Part::Field(field) = bit.part else {
        return Ok(None);
    };
    if bit.at >= field.bits(class.kind) {
        return Err(Invalid::NoBit {
            bit,
            kind: class.kind,
        });
    }
    Ok(class.offset(field).map(|offset| before + offset + bit.at))
}
