//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ranked;
mod said;
