//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-model --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calls;
mod cuts;
mod fallback;
mod kept;
mod residue;
mod sat;
mod simplify;
mod solver;
mod stateful;
mod support;
mod turns;
