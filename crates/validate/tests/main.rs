//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-validate --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod cut;
mod draws;
mod functions;
mod plant;
mod uncompared;
