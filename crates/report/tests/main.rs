//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-report --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod deep;
mod hostile;
mod keys;
#[path = "../../model/tests/support/mod.rs"]
mod models;
