//! Tests of the cluster: assignment, agreement under seeded faults, and a real store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod assign;
mod handing;
mod real;
mod sim;
mod tables;
