//! The integration tests of this crate, in one program.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod ranked;
mod said;
