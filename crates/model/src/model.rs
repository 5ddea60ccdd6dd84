//! The value that this stage gives.

use std::rc::Rc;
use std::time::Duration;

use millrace_object::program::{Line, ObjectId, Role};
use serde::{Deserialize, Serialize};

use crate::exec::{Access, Borders, Place, Target, Written};
use crate::expr::eval::Assignment;
use crate::expr::{Arena, ExprId};
use crate::names;
use crate::observe::Observed;
use crate::sums::Parts;
use crate::writers::Writer;

/// Effect of one access on its object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// reads
    Read,
    /// reads, and sets the entry's age to zero or counts it as used
    Refresh,
    /// adds to a number without looking at it
    Add,
    /// adds, changes or removes an entry or its value
    Write,
}

/// Whether the paths are all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// these are all paths, and each is possible
    Exhaustive,
    /// every execution takes one of these paths, but some of them may be impossible, or several be one: what is
    /// so on all of them is so
    Covering {
        /// what some of them take for possible
        why: String,
    },
    /// there may be others, or the solver could not say of some whether they are possible; the objects' accesses are
    /// those that the proof of safety saw, which are all
    Bounded {
        /// what stood in the way
        why: String,
    },
}

impl Outcome {
    /// Whether every execution takes one of the paths.
    #[must_use]
    pub fn covers(&self) -> bool {
        !matches!(self, Outcome::Bounded { .. })
    }
}

/// End of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// a number of 32 bits
    Number(ExprId),
    /// nothing: the entry takes no packet
    None,
    /// the program in this program array under this index of 32 bits goes on
    GoesOn(ObjectId, ExprId),
    /// nothing yet: the paths that begin behind this cut go on
    Onward(u32),
}

/// One path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Path {
    /// conditions, all of which hold
    pub guard: Vec<ExprId>,
    /// accesses to state, in order
    pub accesses: Vec<Access>,
    /// entries of state objects that it touched, in the order of their first access, as they are at its end
    pub places: Vec<Place>,
    /// bytes of the packet that were written
    pub rewrites: Vec<Written>,
    /// where the last redirect leads
    pub target: Option<Target>,
    /// where the packet begins and ends, after the helpers that move that
    pub borders: Borders,
    /// the verdict
    pub verdict: Verdict,
    /// the cut behind which it begins, 0 where the entry does: what it says of state is said of what a packet finds when
    /// it comes there
    pub segment: u32,
    /// what was handed to calls whose answer, or whose effect outside, is no expression of it here
    pub told: Vec<ExprId>,
    /// which calls something outside hears of that no access is recorded of: a number of their sequence, 0 for none
    pub tells: u64,
    /// which symbols are random draws: a number of their sequence, 0 for none
    pub random: u64,
    /// random draws in order, each a symbol, also those that nothing else of the path has
    pub drawn: Vec<ExprId>,
    /// the solver could not say whether it is possible
    pub undecided: bool,
    /// why it may be impossible although its guard can hold: something is taken for any number here that
    /// is not
    #[serde(with = "names::maybe")]
    pub loose: Option<names::Name>,
    /// an assignment under which it is taken
    pub witness: Option<Rc<Assignment>>,
}

/// An access that the proof of safety admits, in some execution.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Touch {
    /// the object; a shape for the maps in maps of maps
    pub object: ObjectId,
    /// the helper's name, `load`, `store` or `atomic`
    #[serde(with = "names")]
    pub operation: names::Name,
    /// the most that it does
    pub effect: Effect,
    /// the lowest byte that it touches, from the first of the value or record
    pub from: u32,
    /// one past the highest
    pub to: u32,
    /// where
    pub line: Option<Line>,
}

/// One entry's paths.
#[derive(Clone, Serialize, Deserialize)]
pub struct Entry {
    /// the function's name
    pub function: String,
    /// what makes it run
    pub role: Role,
    /// the expressions that the paths speak in
    pub arena: Arena,
    /// the paths
    pub paths: Vec<Path>,
    /// whether these are all
    pub outcome: Outcome,
    /// every access of any execution, paths or not: more than there are, never fewer
    pub at_most: Vec<Touch>,
    /// what it took
    pub took: Took,
}

/// Cost of an execution.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Took {
    /// instructions followed
    pub steps: u64,
    /// expressions made
    pub expressions: usize,
    /// questions that the solver got
    pub asked: u64,
    /// how long it took over them
    #[serde(rename = "solver_ms", with = "milliseconds")]
    pub solving: Duration,
    /// questions that it did not answer
    pub unanswered: u64,
    /// questions that an earlier assignment or answer settled
    pub remembered: u64,
    /// questions that a walk from an earlier assignment settled
    pub found: u64,
    /// time
    #[serde(rename = "ms", with = "milliseconds")]
    pub time: Duration,
}

/// Durations: to a reader milliseconds, else whole.
mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() {
            s.serialize_f64(time.as_secs_f64() * 1e3)
        } else {
            time.serialize(s)
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        Duration::deserialize(d)
    }
}

/// How an object is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// nothing touches it
    Unused,
    /// no packet and no timer writes it, nor does the start
    ReadOnly,
    /// written before the first packet, by nothing later
    WrittenAtStart,
    /// packets only add to its numbers, and nothing depends on them
    Additive,
    /// all else
    ReadWrite,
}

/// One object's accesses, over all entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Object {
    /// which
    pub id: ObjectId,
    /// how it is used
    pub usage: Use,
    /// from the proof of safety alone, not from the paths: an entry was not exhaustive
    pub approximate: bool,
    /// what writes to its values, on the paths that were followed
    pub writers: Vec<Writer>,
    /// what every core's part of it is, if each may have one of its own
    pub parts: Option<Parts>,
    /// what of it, as it was before a packet, shows in what becomes of the packet
    pub observed: Observed,
}

/// The model of a program.
#[derive(Clone, Serialize, Deserialize)]
pub struct Model {
    /// the program's name
    pub name: String,
    /// its entries
    pub entries: Vec<Entry>,
    /// its objects, in the program's order
    pub objects: Vec<Object>,
    /// no limit of time or of what may be followed was met on the way: another execution finds the same
    pub settled: bool,
}

impl Model {
    /// Whether every entry's paths are all.
    #[must_use]
    pub fn exhaustive(&self) -> bool {
        self.entries
            .iter()
            .all(|e| e.outcome == Outcome::Exhaustive)
    }

    /// Whether every execution takes one of the paths: what is so on all of them is so.
    #[must_use]
    pub fn covers(&self) -> bool {
        self.entries.iter().all(|e| e.outcome.covers())
    }
}
