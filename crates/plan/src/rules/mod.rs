//! Rules that find what separates the packets that reach an object, or why nothing does: one file a rule. R1 to R5 are
//! those of Pereira et al., "Automatic Parallelization of Software Network Functions" (NSDI 2024, section 3.4); R6 and
//! R7 are ours. No rule decides the treatment of an object ([`crate::treatments`]).

pub(crate) mod derived;
pub(crate) mod disjoint;
pub(crate) mod equality;
pub(crate) mod homing;
pub(crate) mod incompatible;
pub(crate) mod interchangeable;
pub(crate) mod nothing;
pub(crate) mod replication;
pub(crate) mod subsumption;
pub(crate) mod unknown;

use std::collections::BTreeSet;

use crate::constraints::Meeting;
use crate::plan::{Rule, Word};
use homing::Home;
use nothing::{Apart, Sum};

/// The property that separates the packets that reach an object.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// nothing has to: no packet leaves in it what decides over another one
    Apart(Apart),
    /// nothing has to: what packets leave in parts of it adds up to what they would leave in it, these numbers of each
    /// value if there are any
    Additive(Sum, Vec<Word>),
    /// steering that brings certain packets together
    By(Constraints, Said),
    /// nothing does
    Not(Barred),
}

/// Constraints on the steering under which packets that touch the same entry meet.
#[derive(Clone, Debug)]
pub(crate) struct Constraints {
    pub meetings: Vec<Meeting>,
    /// objects whose packets have to meet, too
    pub needs: BTreeSet<usize>,
    /// how packets with its numbers come home, if they do by R6
    pub home: Option<Home>,
}

/// The rule that decided, and its reason.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub rule: Rule,
    pub reason: String,
    /// FILE:LINE of the access that the reason is about
    pub line: Option<String>,
}

impl Said {
    pub fn new(rule: Rule, reason: String, line: Option<String>) -> Self {
        Self { rule, reason, line }
    }

    /// Nothing separates packets, for this reason, which is one of the object's own keys.
    pub fn barred(self, remedy: &str, proved: bool) -> Barred {
        Barred {
            said: self,
            remedy: remedy.to_owned(),
            proved,
            by: Bar::Keys,
        }
    }
}

/// Why nothing separates packets.
#[derive(Clone, Debug)]
pub(crate) struct Barred {
    pub said: Said,
    /// what change of the program would
    pub remedy: String,
    /// it is proved that no key does
    pub proved: bool,
    pub by: Bar,
}

/// The obstacle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bar {
    /// its own keys
    Keys,
    /// the paths of the model, which are not all
    Paths,
    /// these other objects, in words, which are separated instead
    Others(String),
}

impl Answer {
    /// The rule that decided.
    pub fn rule(&self) -> Rule {
        self.said().map_or(Rule::Nothing, |said| said.rule)
    }

    /// The reason, without what follows from the treatment.
    pub fn reason(&self) -> &str {
        match self {
            Self::Apart(apart) => apart.reason(),
            Self::Additive(sum, _) => sum.reason(),
            Self::By(_, said) => &said.reason,
            Self::Not(barred) => &barred.said.reason,
        }
    }

    /// The rule's words, where a rule looked at accesses.
    pub fn said(&self) -> Option<&Said> {
        match self {
            Self::Apart(_) | Self::Additive(..) => None,
            Self::By(_, said) => Some(said),
            Self::Not(barred) => Some(&barred.said),
        }
    }

    /// Why nothing separates packets, where nothing does.
    pub fn barred(&self) -> Option<&Barred> {
        match self {
            Self::Not(barred) => Some(barred),
            _ => None,
        }
    }
}
