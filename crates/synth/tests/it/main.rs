//! Synthesis against the reference interpreter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod click;
mod compare;
mod errors;
mod figures;
mod filters;
mod generate;
mod graphs;
mod rows;
