//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-object --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod contracts;
mod core;
mod declarations;
mod functions;
mod handlers;
mod hostile;
mod isa;
mod listing;
mod memory;
mod prototypes;
mod raw;
mod refusals;
mod refusals_handlers;
mod support;
mod xdp;
