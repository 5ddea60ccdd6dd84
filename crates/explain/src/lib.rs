//! What happened to one packet: the path through the author's lines, the values that decided each branch, what was found
//! and written in state and by which earlier packet, what was rewritten, and the verdict.
//!
//! Emitted code runs all packets before the one that is asked about. Then the reference interpreter takes the state over,
//! exactly (module `execution`), and executes the packet, as an observer of its own writes down ([`millrace_reference::Log`]):
//! branches with what they compared, accesses, stores. The symbolic executor follows the same execution
//! ([`millrace_model::exec::along`]), which puts it in words of the model. Emitted code runs the packet, too, and an
//! explanation says whether it did the same.

mod decided;
mod document;
mod element;
mod execution;
mod filter;
mod follow;
mod history;
pub mod live;
mod nearest;
mod pcapng;
mod steps;
mod text;
mod walk;

pub use decided::Decider;
pub use document::{Access, By, Difference, Explanation, Left, Nearest, Rewrite, Step, Value};
pub use element::{Element, Part};
pub use execution::{Execution, Failed, execute};
pub use filter::{Filter, FilterError, Seen, WORDS};
pub use follow::{Case, ExplainError, Which, explain};
pub use pcapng::{Comments, write as write_pcapng};
pub use steps::follow as follow_along;
pub use text::{comments, text};
pub use walk::{Hop, Walk};
