//! What an explanation is: the document of `--json`, from which the text is made.

use serde::Serialize;

/// What happened to one packet.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// the function, or the functions of a chain joined by spaces
    pub name: String,
    /// the packet as it came in
    pub packet: millrace_verify::Shown,
    /// what happened, in order
    pub steps: Vec<Step>,
    /// the lines that it went through, `FILE:LINE`, each as often as it came back to it
    pub lines: Vec<String>,
    /// what was rewritten, field by field
    pub rewrites: Vec<Rewrite>,
    /// what each element said, in the order in which the packet, or copies of it, came to them
    pub elements: Vec<Left>,
    /// what became of it in the end
    pub verdict: String,
    /// the reason of a drop, if its author named one
    pub reason: Option<String>,
    /// of a drop: the nearest path that would have passed
    pub nearest: Option<Nearest>,
    /// emitted code did the same with it: fate, bytes, state
    pub agrees: bool,
    /// what is to be known beside
    pub notes: Vec<String>,
    /// of a packet of a running function: the worker that had it, from 0
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<usize>,
}

/// What an element did with the packet.
#[derive(Clone, Debug, Serialize)]
pub struct Left {
    /// the element
    pub element: String,
    /// the port that it came in at
    pub port: String,
    /// its verdict
    pub verdict: String,
    /// the line that gave it, `FILE:LINE`
    pub line: Option<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// the element
    pub element: String,
    /// the file, without its folder; none for a program without lines
    pub file: Option<String>,
    /// the line, from 1
    pub line: Option<u32>,
    /// its text
    pub source: Option<String>,
    /// it is in another file than the program's entry: a library's
    pub library: bool,
    /// the condition that held, in words of the model, or as the numbers that were compared
    pub condition: Option<String>,
    /// whether the branch was taken
    pub taken: Option<bool>,
    /// the values that decided it
    pub values: Vec<Value>,
    /// the access to state
    pub access: Option<Access>,
    /// a store into the packet
    pub store: Option<Store>,
}

/// Bytes that were written into the packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Store {
    /// the first, from the frame's first byte as it was then
    pub offset: i64,
    /// the bytes, in hexadecimal
    pub bytes: String,
}

/// An input of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Value {
    /// its name
    pub name: String,
    /// its value
    pub value: String,
}

/// An access to state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Access {
    /// the object
    pub object: String,
    /// the helper, `load`, `store` or `atomic`
    pub operation: String,
    /// the key with its numbers
    pub key: Option<String>,
    /// what the key is made of
    pub key_of: Vec<String>,
    /// whether there was an entry
    pub found: Option<bool>,
    /// what came of it: `there`, `absent`, `added`, `full` …
    pub outcome: Option<String>,
    /// the part of the value that it is about
    pub part: Option<String>,
    /// the value before the packet
    pub before: Option<String>,
    /// what was written
    pub written: Option<String>,
    /// what that is made of
    pub written_of: Vec<String>,
    /// the earlier packet that the value is from
    pub by: Option<By>,
    /// the earlier packet that last refreshed the entry
    pub refreshed: Option<By>,
}

/// An earlier packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct By {
    /// its number, from 0
    pub packet: u64,
    /// how long before, ns
    pub before_ns: u64,
    /// the line at which it did so, `FILE:LINE`
    pub line: Option<String>,
    /// its headers
    pub headers: String,
}

/// A field that was rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rewrite {
    /// the element
    pub element: String,
    /// the field
    pub field: String,
    /// its value before
    pub from: String,
    /// and after
    pub to: String,
    /// what that is made of
    pub of: Option<String>,
}

/// A path that the packet did not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nearest {
    /// its verdict
    pub verdict: String,
    /// what would have to be so that was not
    pub differs: Vec<Difference>,
    /// the model's paths were not all
    pub incomplete: bool,
}

/// A condition that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// the condition
    pub condition: String,
    /// what it is about, as it was
    pub values: Vec<Value>,
}
