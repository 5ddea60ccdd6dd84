//! Sequenced captures: what a sequencer makes of a capture, carrier by carrier (docs/replication.md).
//!
//! A sequenced capture is a pcap file. Its first record says the form; each further one is a carrier of the prefix form
//! (`millrace_steer::sequence::prefix`), in the order in which the sequencer gives them, at its stamp. Any make of a sequencer
//! is held to `step` by them: it has to give the same bytes for the same packets.
//!
//! The [`Reader`] does not trust a capture: it takes the steps itself, with the rows that it finds, and accepts a record only
//! if it is what [`step`](millrace_steer::sequence::step) gives.

mod error;
mod form;
mod reader;
mod writer;

pub use error::{Error, Problem};
pub use reader::{Reader, Step};
pub use writer::{SequenceError, Writer, sequence};
