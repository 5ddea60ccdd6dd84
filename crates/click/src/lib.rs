//! Click configurations: their language, their elements, and the reference interpreter.
//!
//! [`language`] reads text to a flat graph of elements, [`elements`] are the classes that there are, and [`interpreter`]
//! runs a graph packet by packet. Everything that is synthesised from a configuration is compared with the interpreter.

pub mod arguments;
pub mod element;
pub mod elements;
pub mod error;
pub mod filter;
pub mod function;
pub mod headers;
pub mod interpreter;
pub mod language;
pub mod meaning;
pub mod names;
pub mod packet;
mod recorded;
pub mod rewriter;
pub mod script;
pub mod summary;
