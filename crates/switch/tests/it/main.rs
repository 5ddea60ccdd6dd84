//! OpenFlow rules of synthesised chains, against the reference interpreter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;
mod exercise;
#[path = "../../../synth/tests/it/generate.rs"]
mod generate;
mod rules;
mod vswitch;
