//! The report as a value: the document of `--json`, from which the other forms are made.

use std::collections::BTreeMap;

use millrace_model::model::{Effect, Took, Use};
use millrace_object::state::StateKind;
use serde::Serialize;

use super::tree::Tree;
use crate::relation::Relation;

/// A model in words.
#[derive(Serialize)]
pub struct Report {
    /// the program
    pub name: String,
    /// whether all entries' paths are all
    pub exhaustive: bool,
    /// whether every execution takes one of the paths: what is so on all of them is so
    pub covers: bool,
    /// why some paths may be impossible where every execution takes one of them, by entry
    pub covering: Vec<String>,
    /// what stood in the way of finding all paths, by entry
    pub bounded: Vec<String>,
    /// the objects
    pub objects: Vec<ObjectReport>,
    /// what holds between accesses to one object on different paths
    pub relations: Vec<Relation>,
    /// the paths of all entries
    pub paths: Vec<PathReport>,
    /// what it took, by entry
    pub took: BTreeMap<String, Took>,
    /// the paths once more, as decisions
    #[serde(skip)]
    pub trees: Vec<Tree>,
}

/// One object.
#[derive(Serialize)]
pub struct ObjectReport {
    /// its name
    pub name: String,
    /// its kind
    pub kind: &'static StateKind,
    /// most entries
    pub capacity: u64,
    /// nanoseconds until an entry that is not refreshed is absent; 0 means never
    pub expire_after: u64,
    /// how it is used
    pub access: Use,
    /// from the proof of safety alone
    pub approximate: bool,
    /// the keys that paths use, each once
    pub keys: Vec<String>,
    /// letters that stand for long keys in the other fields
    pub letters: BTreeMap<String, String>,
    /// what touches it, by source line, on the paths that were followed
    pub accesses: Vec<Summary>,
    /// where paths are not all: every access of any execution, by source line
    pub at_most: Vec<AtMost>,
}

/// Upper bound of the effect of one source line on an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AtMost {
    /// the functions of the entries that may do it
    pub entries: Vec<String>,
    /// FILE:LINE
    pub line: Option<String>,
    /// the helper, `load`, `store` or `atomic`
    pub operation: &'static str,
    /// the most that it does
    pub effect: Effect,
    /// the lowest byte of the value that it touches
    pub from: u32,
    /// one past the highest
    pub to: u32,
    /// the members in which these bytes are; empty where it may be all, or where they have no names
    pub parts: Vec<String>,
}

/// Effect of one source line on an object, on all paths through it.
#[derive(Clone, Serialize)]
pub struct Summary {
    /// FILE:LINE
    pub line: Option<String>,
    /// the line's text
    pub source: Option<String>,
    /// the helper, `load`, `store` or `atomic`
    pub operation: &'static str,
    /// what it does
    pub effect: Effect,
    /// the parts of the value that loads and stores touch
    pub parts: Vec<String>,
    /// the keys, letters for long ones
    pub keys: Vec<String>,
    /// what is written
    pub values: Vec<String>,
    /// the fields, ports, state and other inputs that keys and values come from
    pub sources: Vec<String>,
    /// what came of it
    pub outcomes: Vec<&'static str>,
    /// the ports on which it happens; empty where the paths do not say
    pub ports: Vec<String>,
    /// conditions on port, state and parameters that hold on all these paths
    pub when: Vec<String>,
    /// how many paths
    pub paths: usize,
    /// it is in a loop that is modelled for any number of iterations
    pub repeated: bool,
}

/// One access.
#[derive(Serialize)]
pub struct AccessReport {
    /// the object
    pub object: String,
    /// the helper, `load`, `store` or `atomic`
    pub operation: &'static str,
    /// what it does
    pub effect: Effect,
    /// the key's parts, in memory order
    pub key: Vec<String>,
    /// what is written
    pub value: Vec<String>,
    /// first byte of the value that is touched
    pub offset: Option<u32>,
    /// what came of it
    pub outcome: Option<&'static str>,
    /// it happens any number of times: in the iterations of a loop before its last
    pub repeated: bool,
    /// FILE:LINE
    pub line: Option<String>,
}

/// Bytes of the packet that are written.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Rewrite {
    /// the field
    pub field: String,
    /// the value
    pub value: String,
}

/// One path.
#[derive(Serialize)]
pub struct PathReport {
    /// the entry's function
    pub entry: String,
    /// conditions, all of which hold
    pub guard: Vec<String>,
    /// accesses to state in order
    pub accesses: Vec<AccessReport>,
    /// packet writes
    pub rewrites: Vec<Rewrite>,
    /// the verdict
    pub verdict: String,
    /// whether anything that it does depends on the time
    pub time: bool,
    /// or on a random draw
    pub random: bool,
    /// or on what other packets wrote to state before
    pub order: bool,
    /// the solver could not say whether it is possible
    pub undecided: bool,
}
