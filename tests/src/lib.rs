//! End-to-end tests: what they share.

pub mod command;
pub mod emitted;
pub mod kernel;
pub mod packets;
pub mod soundness;
pub mod vector;
