//! Tests of linking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rows;
mod verdicts;
