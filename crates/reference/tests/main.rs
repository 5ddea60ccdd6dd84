//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-reference --test it SUBJECT::`. /tests compares the interpreter with emitted code and the kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod callbacks;
mod nested;
mod prefixes;
mod soundness;
mod zeros;
