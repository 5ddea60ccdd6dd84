//! Turns a checked Program into C and the C into a shared object.

mod build;
pub mod cache;
pub mod codegen;
mod error;
pub mod headers;
pub mod sync;
pub mod target;
pub mod toolchain;

pub use build::{Built, Options, Stage, Timings, build, build_program, object};
pub use codegen::{emit, identifier};
pub use error::Error;
pub use sync::{Sharing, Test, alone, lock};
