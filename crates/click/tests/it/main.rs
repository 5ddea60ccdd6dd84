//! Tests of the Click language and of its interpreter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clicktest;
mod docs;
mod interpreter;
mod language;
mod pattern;
