//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-emit --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod budget;
mod build;
mod golden;
mod hostile;
mod keys;
mod lock;
mod lock_cost;
mod lock_functions;
mod noted;
mod random;
mod replicate;
mod semantics;
mod serial;
mod state;
mod support;
mod target;
mod transact;
