//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-plan --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod computed;
mod functions;
mod homing;
mod nics;
mod observed;
mod support;
mod unchecked;
