//! Integration tests of explanations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agrees;
mod common;
mod earlier;
