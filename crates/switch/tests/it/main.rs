//! OpenFlow rules of synthesised chains, against the reference interpreter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod exercise;
// Rows of configurations are not a switch's.
#[allow(dead_code)]
#[path = "../../../synth/tests/it/generate.rs"]
mod generate;
mod rules;
mod vswitch;
