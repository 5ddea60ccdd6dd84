//! Turns a checked Program into C and the C into a shared object.

pub mod alone;
mod error;
pub mod headers;

pub use error::Error;
