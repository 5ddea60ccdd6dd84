//! End-to-end tests: what they share.

pub mod command;
pub mod emitted;
pub mod kernel;
pub mod large;
pub mod packets;
pub mod public;
pub mod random;
pub mod soundness;
pub mod stateful;
pub mod vector;
pub mod verifier;
