//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-verify --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod functions;
mod homing;
mod hybrid;
mod kinds;
mod lock;
mod lying;
mod moving;
mod planted;
mod replicas;
mod sets;
