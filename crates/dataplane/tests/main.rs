//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-dataplane --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod dpdk_shim;
mod sanitizer;
