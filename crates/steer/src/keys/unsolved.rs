//! Why there is no key.

use super::case::Bit;
use super::class::ClassId;
use crate::fields::Kind;

/// Reason why [`solve`](super::solve) has no keys.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsolved {
    /// There are none, which is proved.
    #[error(transparent)]
    Infeasible(#[from] Infeasible),
    /// There are none, which is proved, though for each class alone there are: no number of index bits and
    /// no keys let all of them reach all cores at once.
    #[error(
        "no RSS keys let all classes of packets reach all cores at once, though each alone could"
    )]
    Together,
    /// There may be some, but none of those drawn reaches all cores. No case that anybody wrote ends
    /// here: the bound on the rank is nearly always met.
    #[error("no key was found that reaches all cores, and none is proved impossible")]
    NotFound,
    /// The question is none.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// Proved: no keys make the packets meet that must, and yet reach all cores with every class that shall.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", said(.barred))]
pub struct Infeasible {
    /// the classes that no key spreads, with the reason
    pub barred: Vec<Barred>,
    /// for every class, the dimension D of the linear functions of its fields that the constraints leave
    /// invariant, for any linear hash on any NIC
    pub invariants: Vec<usize>,
}

/// A class that no key spreads over all cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Barred {
    /// which
    pub class: ClassId,
    /// which of the three kinds of no
    pub why: No,
    /// the dimension D of its invariants
    pub invariants: usize,
    /// the most that the rank of its index can be, in bits
    pub rank: usize,
    /// what reaching all cores takes: the base-2 logarithm of their number, rounded up
    pub needed: usize,
}

/// The three kinds of no.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum No {
    /// D = 0: the constraints connect all packets. No linear hash on any NIC tells two apart, and where
    /// the constraints are unions of field equalities no hash function at all does. Two counters, one by
    /// source and one by destination, are of this kind.
    Connected,
    /// D > 0, but neighbouring fields share key bits (each input bit uses the key bits from its own place
    /// on), and what cancels the ones cancels the others, however few index bits are asked for. Another
    /// set of hashed fields can help, or a key for each kind of packet.
    Overlap,
    /// Some bits reach the index, but they tell fewer groups of packets apart than there are cores.
    Narrow,
}

impl Barred {
    /// In a few words, for a report.
    #[must_use]
    pub fn reason(&self) -> String {
        let Self {
            invariants,
            rank,
            needed,
            ..
        } = self;
        match self.why {
            No::Connected => "the constraints connect all its packets: no hash can tell two apart \
                 (invariants: 0)"
                .to_owned(),
            No::Overlap => format!(
                "{invariants} invariant bits, but the fields' windows in the key overlap, so that no key \
                 lets any reach the index"
            ),
            No::Narrow => {
                format!(
                    "{rank} bits reach the index ({invariants} invariant), and {needed} are needed"
                )
            }
        }
    }
}

fn said(barred: &[Barred]) -> String {
    let each = |b: &Barred| format!("class {}: {}", b.class, b.reason());
    let all: Vec<String> = barred.iter().map(each).collect();
    format!("no RSS keys exist; {}", all.join("; "))
}

/// A question that cannot be asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Invalid {
    /// A constraint names a class that is not there.
    #[error("there is no class {class}")]
    NoClass {
        /// its place in the list
        class: ClassId,
    },
    /// A constraint names a bit that packets of this kind do not have.
    #[error("{} has no bit {} of {:?}", kind.name(), bit.at, bit.part)]
    NoBit {
        /// the bit
        bit: Bit,
        /// the kind of packet
        kind: Kind,
    },
    /// The NIC cannot hash these fields of this class, or not beside those of another class.
    #[error("class {class}: {what}")]
    Fields {
        /// its place in the list
        class: ClassId,
        /// what is wrong
        what: String,
    },
    /// More cases, equations, classes or bits than headers and programs have.
    #[error("the constraints on RSS keys are too many to solve")]
    TooMany,
    /// More cores than the table has entries, or none.
    #[error("{cores} cores and an indirection table of {entries} entries")]
    Cores {
        /// the cores
        cores: u32,
        /// entries of the table
        entries: usize,
    },
    /// An answer of a [`Witness`](super::Witness) that is no pair of the case that it was asked about.
    #[error("the pair given does not satisfy the case")]
    Witness,
}
