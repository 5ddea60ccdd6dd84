//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-validate --test it SUBJECT::`.
mod common;
mod cut;
mod functions;
mod plant;
