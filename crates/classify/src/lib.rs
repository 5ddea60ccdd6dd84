//! Packet classification: from a list of rules to the class of a key.
//!
//! [`Rules`] are intervals by field, in order of priority; the first rule that contains a key gives its class, and a key in
//! none has class 0. Rules that cannot change a class are taken out first ([`redundant`]). The rest becomes a reduced interval
//! decision diagram ([`Diagrams`]), one level a 32-bit word of the key (multi-terminal IDDs: Strehl and Thiele, "Symbolic
//! model checking using interval diagram techniques", 1998; firewall decision diagrams: Gouda and Liu, "Structured firewall
//! design", Computer Networks 51(4), 2007), or, where that passes its [`Budget`], cut trees ([`Trees`]: Gupta and McKeown,
//! "Packet classification using hierarchical intelligent cuttings", HotI 1999; the partition by small fields: Li et al.,
//! "CutSplit", INFOCOM 2018). Either is laid out as a [`Table`], which emitted code walks.
//!
//! All is bounded: a budget counts what is made and what is done, and beyond it something smaller and slower takes over;
//! the last resort is a scan of the rules, which is always right.

mod budget;
mod classifier;
mod decisions;
mod diagram;
mod from_rules;
mod key;
mod read;
mod reduce;
mod rules;
mod saved;
mod table;
mod together;
mod trees;
mod value;

pub use budget::{Budget, Exceeded, Meter};
pub use classifier::{Classifier, Form};
pub use decisions::{DecisionError, Decisions};
pub use diagram::{Diagrams, Edge, First, Merge, NONE, Ref};
pub use from_rules::{diagram, order};
pub use key::{Field, Key, KeyError, Order, Word};
pub use read::{FileError, MOST_BYTES, Read};
pub use reduce::{Redundant, Why, redundant};
pub use rules::{Interval, MOST_CLASSES, MOST_RULES, Rule, RuleError, Rules};
pub use saved::SavedError;
pub use table::{Block, Table};
pub use together::{Together, together};
pub use trees::Trees;
