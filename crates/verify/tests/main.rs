//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-verify --test it SUBJECT::`.
mod common;
mod functions;
mod homing;
mod kinds;
mod lock;
mod lying;
mod planted;
