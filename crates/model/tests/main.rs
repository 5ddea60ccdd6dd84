//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-model --test it SUBJECT::`.
mod calls;
mod cuts;
mod fallback;
mod sat;
mod simplify;
mod solver;
mod stateful;
mod support;
mod turns;
