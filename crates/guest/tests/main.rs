//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-guest --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod dpdk;
mod hosted;
mod machine;
mod migrate;
mod programs;
mod protection;
mod sending;
mod snapshot;
mod sockets;
mod threads;
