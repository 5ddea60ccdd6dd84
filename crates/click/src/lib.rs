//! Click configurations: their language and the graph of elements that they describe.

pub mod error;
pub mod language;
