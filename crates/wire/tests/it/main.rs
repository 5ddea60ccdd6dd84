//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-wire --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod frames;
mod geneve;
mod hostile;
mod oracle;
mod program;
mod rules;
