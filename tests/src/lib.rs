//! End-to-end tests: what they share.

pub mod kernel;
