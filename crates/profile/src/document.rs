//! A profile: the document of `--json`, from which the text and the page are made.

use millrace_place::Strategy;
use serde::Serialize;

/// What holds a function back.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// the function
    pub name: String,
    /// how it ran
    pub strategy: String,
    /// workers
    pub cores: usize,
    /// packets
    pub packets: u64,
    /// ns a packet inside the function, waiting included
    pub ns_per_packet: f64,
    /// the part of that which conflicts take, 0 to 1
    pub lost: f64,
    /// what packets met, the costliest first
    pub aborts: Vec<Abort>,
    /// why, in the objects' terms, the costliest first
    pub causes: Vec<Cause>,
    /// what would help, the most first
    pub recipes: Vec<Recipe>,
    /// how packets are shared out
    pub imbalance: Imbalance,
    /// time inside each element of a run that is looked at while it lasts; else none
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<Element>,
    /// where workers were seen, the most first; empty where nothing was looked at
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Time>,
    /// what the workers' processors counted; none where the machine does not let them
    pub caches: Option<Caches>,
    /// what the prefetch passes give; none where that was not measured
    pub prefetch: Option<Prefetch>,
    /// what is to be known beside
    pub notes: Vec<String>,
}

/// What processors counted of the workers, all that these do with a packet: receiving, the function or the whole chain, sending.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caches {
    /// reads and writes that the last cache before memory did not have
    pub misses_per_packet: f64,
    /// instructions
    pub instructions_per_packet: f64,
}

/// What packets met of other workers' at one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Abort {
    /// `FILE:LINE` of the author's source
    pub line: String,
    /// the object
    pub object: String,
    /// what the packet did to it
    pub operation: String,
    /// whom it met; none where that is not known
    pub with: Option<With>,
    /// at what: `entry`, `bucket`, `full`, `write`, `alone`, `other`
    pub at: String,
    /// the key that more than half of them were about, in hexadecimal
    pub key: Option<String>,
    /// how often
    pub count: u64,
    /// its part of the time that all of them take, 0 to 1
    pub share: f64,
    /// time that it takes, ns over all workers
    pub ns: f64,
}

/// The other packet's operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct With {
    /// `FILE:LINE`
    pub line: String,
    /// what it did
    pub operation: String,
}

/// Why packets met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// the object
    pub object: String,
    /// `FILE:LINE` of the costliest of them
    pub line: String,
    /// what packets did to it, each once
    pub operations: Vec<String>,
    /// the cause
    pub cause: String,
    /// its part of the time that all conflicts take, 0 to 1
    pub share: f64,
    /// ns over all workers
    pub ns: f64,
}

/// What a recipe changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// an option of an object's declaration
    Option {
        /// the object
        object: String,
        /// the option
        option: &'static str,
        /// its new value
        value: String,
    },
    /// other words in one line of the source
    Edit {
        /// what is there
        from: String,
        /// what takes its place
        to: String,
    },
    /// another strategy
    Strategy(Strategy),
    /// the source, by its author
    Source,
}

/// What would help.
#[derive(Clone, Debug, Serialize)]
pub struct Recipe {
    /// the object; none of the whole function
    pub object: Option<String>,
    /// the file, without its folder
    pub file: String,
    /// the line, from 1; 0 where it is not known
    pub line: u32,
    /// what is there
    pub from: String,
    /// what would be there
    pub to: String,
    /// why
    pub why: String,
    /// throughput over that without it, as predicted
    pub gain: f64,
    /// the same, as measured
    pub tried: Option<Tried>,
    /// how it can be tried
    #[serde(skip)]
    pub change: Change,
}

/// What came of a recipe that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// throughput over that without it: the median over the turns; none where it is not possible
    pub gain: Option<f64>,
    /// the least of the turns
    pub low: Option<f64>,
    /// the greatest
    pub high: Option<f64>,
    /// turns
    pub turns: usize,
    /// why it is not possible
    pub refused: Option<String>,
}

/// Time by handler and line, by looking now and then.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Time {
    /// the function of the emitted code; empty outside of it
    pub handler: String,
    /// `FILE:LINE`, or what else it is
    pub line: String,
    /// how often a worker was there
    pub samples: u64,
    /// of all, 0 to 1
    pub share: f64,
}

/// Time inside an element.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Element {
    /// its name
    pub name: String,
    /// packets that went through it
    pub packets: u64,
    /// ns a packet
    pub ns_per_packet: f64,
    /// of the time inside all elements, 0 to 1
    pub share: f64,
}

/// How packets are shared out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Imbalance {
    /// the busiest worker's packets over the mean: 1 is even
    pub factor: f64,
    /// each worker's part of all packets, 0 to 1
    pub workers: Vec<Worker>,
    /// why they are not even; none where they are
    pub cause: Option<String>,
    /// what would help
    pub remedy: Option<String>,
    /// the flow that has the most packets
    pub flow: Option<Flow>,
}

/// A worker's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worker {
    /// its number, from 0
    pub worker: u32,
    /// its part of all packets, 0 to 1
    pub share: f64,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// its headers
    pub headers: String,
    /// its part of all packets, 0 to 1
    pub share: f64,
}

/// What the prefetch passes give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prefetch {
    /// throughput with them over that without, the median over the turns
    pub gain: f64,
    /// turns
    pub turns: usize,
}
