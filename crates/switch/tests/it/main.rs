//! OpenFlow rules of synthesised chains, against the reference interpreter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;
mod exercise;
mod rules;
mod vswitch;
