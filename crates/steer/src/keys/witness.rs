//! The exact span of pairs that linear equations do not describe: inequalities, sums, tables.
//!
//! A case leaves out what is not linear, so that its span V may be too large. Between V and the span W of pairs that
//! are known to meet, the caller is asked for a pair outside of W, one that some linear function tells apart which is
//! zero on W and not on V. If there is one it joins W; if there is none W is the span (Reps, Sagiv and Yorsh,
//! "Symbolic Implementation of the Best Transformer", VMCAI 2004, section 3). So there are at most as many
//! questions as V has dimensions, and one more; each without quantifiers, as an SMT solver likes them. Where nobody
//! knows, the functions are asked about one by one: each that is zero on all pairs takes a dimension of V.
//!
//! What is found are linear equations, so that the case with them is like any other.

use super::case::{Bit, Case, Equation, Part, Side};
use super::class::Class;
use super::spans;
use super::unsolved::Invalid;
use crate::gf2::{Echelon, Row};

/// Oracle of the pairs that really exist: those of the case for which also everything holds that the case leaves out.
pub trait Witness {
    /// Pairs that need not be asked for, as in [`Answer::Pair`].
    fn known(&mut self) -> Vec<Vec<Bit>> {
        Vec::new()
    }

    /// A pair in which the exclusive or of the bits of at least one of these is 1. All are bits of the fields that the
    /// classes hash.
    fn find(&mut self, parities: &[Vec<Bit>]) -> Answer;
}

impl<F: FnMut(&[Vec<Bit>]) -> Answer> Witness for F {
    fn find(&mut self, parities: &[Vec<Bit>]) -> Answer {
        self(parities)
    }
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

/// Results of the questions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Asking {
    /// questions
    pub asked: usize,
    /// of them without an answer
    pub unknown: usize,
    /// dimensions of the span that may be too many, because nobody knew
    pub open: usize,
    /// dimensions by which the span shrank
    pub gained: usize,
}

impl std::ops::AddAssign for Asking {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.unknown += other.unknown;
        self.open += other.open;
        self.gained += other.gained;
    }
}

/// The case with all linear equations over the hashed fields of these classes that hold of the pairs which the
/// witness knows, or as many as it could say.
///
/// # Errors
/// [`Invalid`]: the case names what the classes do not have, or an answer is no pair of it ([`Invalid::Witness`]).
pub fn narrowed(
    (a, b): (&Class, &Class),
    case: &Case,
    witness: &mut impl Witness,
) -> Result<(Case, Asking), Invalid> {
    let mut asking = Asking::default();
    let Some(vectors) = spans::pairs(a, b, case)? else {
        return Ok((case.clone(), asking));
    };
    let inputs = Inputs { a, b };
    let mut span = Echelon::new(inputs.bits());
    for vector in &vectors {
        span.insert(&mut vector.clone());
    }
    let mut said = Echelon::new(inputs.bits());
    for function in span.clone().orthogonal() {
        said.insert(&mut function.clone());
    }
    let exact = shrunk(&inputs, span, witness, &mut asking)?;
    let mut case = case.clone();
    for function in exact.orthogonal() {
        if said.insert(&mut function.clone()) {
            case = case.and(Equation {
                bits: inputs.named(&function),
                odd: false,
            });
        }
    }
    Ok((case, asking))
}

/// The span of the pairs that the witness knows, of which that one is too large.
fn shrunk(
    inputs: &Inputs<'_>,
    span: Echelon,
    witness: &mut impl Witness,
    asking: &mut Asking,
) -> Result<Echelon, Invalid> {
    let bits = inputs.bits();
    let mut known = Echelon::new(bits);
    let all = span.clone();
    let joins = |known: &mut Echelon, pair: &[Bit]| {
        let mut pair = inputs.vector(pair);
        let is_one = all.contains(&pair);
        (is_one && known.insert(&mut pair))
            .then_some(())
            .ok_or(Invalid::Witness)
    };
    for pair in witness.known() {
        let mut pair = inputs.vector(&pair);
        if !all.contains(&pair) {
            return Err(Invalid::Witness);
        }
        known.insert(&mut pair);
    }
    loop {
        let apart = apart(&known, &span);
        if apart.is_empty() {
            return Ok(span);
        }
        let parities: Vec<Vec<Bit>> = apart.iter().map(|f| inputs.named(f)).collect();
        asking.asked += 1;
        match witness.find(&parities) {
            Answer::Pair(pair) => joins(&mut known, &pair)?,
            Answer::None => {
                asking.gained += span.rank() - known.rank();
                return Ok(known);
            }
            Answer::Unknown => {
                asking.unknown += 1;
                break;
            }
        }
    }
    let mut vectors: Vec<Row> = span.led_from(0).cloned().collect();
    // What is known, and what nobody knows of.
    let mut left = known;
    while left.rank() < vectors.len() {
        let functions = left.clone().orthogonal();
        let apart = |f: &Row| vectors.iter().position(|vector| f.dot(vector));
        let Some((function, place)) = functions.iter().find_map(|f| Some((f, apart(f)?))) else {
            break;
        };
        asking.asked += 1;
        match witness.find(&[inputs.named(function)]) {
            Answer::Pair(pair) => {
                if !function.dot(&inputs.vector(&pair)) {
                    return Err(Invalid::Witness);
                }
                joins(&mut left, &pair)?;
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
                asking.open += 1;
                if let Some(vector) = vectors.get(place) {
                    left.insert(&mut vector.clone());
                }
            }
        }
    }
    let mut span = Echelon::new(bits);
    for mut vector in vectors {
        span.insert(&mut vector);
    }
    Ok(span)
}

/// Functions that are zero on what is known and of which no combination is zero on the whole span.
fn apart(known: &Echelon, span: &Echelon) -> Vec<Row> {
    if known.rank() == span.rank() {
        return Vec::new();
    }
    let mut said = span.clone().orthogonal().into_iter().fold(
        Echelon::new(span.bits()),
        |mut said, mut function| {
            said.insert(&mut function);
            said
        },
    );
    let mut functions = known.clone().orthogonal();
    functions.retain(|f| said.insert(&mut f.clone()));
    functions
}

/// The hash inputs of a pair: the bits of a's, then those of b's.
struct Inputs<'a> {
    a: &'a Class,
    b: &'a Class,
}

impl Inputs<'_> {
    fn bits(&self) -> usize {
        self.a.bits() + self.b.bits()
    }

    /// The header bits that are set.
    fn named(&self, row: &Row) -> Vec<Bit> {
        row.ones().filter_map(|at| self.bit(at)).collect()
    }

    /// The header bit at a place.
    fn bit(&self, at: usize) -> Option<Bit> {
        let (side, class, at) = match at.checked_sub(self.a.bits()) {
            None => (Side::A, self.a, at),
            Some(at) => (Side::B, self.b, at),
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

    /// The pair with these bits set.
    fn vector(&self, ones: &[Bit]) -> Row {
        let mut row = Row::zero(self.bits());
        for bit in ones {
            let (class, before) = match bit.side {
                Side::A => (self.a, 0),
                Side::B => (self.b, self.a.bits()),
            };
            if let Part::Field(field) = bit.part
                && let Some(offset) = class.offset(field)
                && bit.at < field.bits(class.kind)
                && !row.get(before + offset + bit.at)
            {
                row.flip(before + offset + bit.at);
            }
        }
        row
    }
}
