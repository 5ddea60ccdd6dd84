//! Turns a checked Program into C and the C into a shared object.

pub mod alone;
mod build;
pub mod cache;
mod error;
pub mod headers;
pub mod lock;
pub mod toolchain;

pub use build::{Built, Options, Stage, Timings, build};
pub use error::Error;
