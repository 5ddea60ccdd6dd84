//! The integration tests of this crate, in one program: a file a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "it/apart.rs"]
mod apart;
#[path = "it/figures.rs"]
mod figures;
#[path = "it/fixed.rs"]
mod fixed;
#[path = "it/hostile.rs"]
mod hostile;
