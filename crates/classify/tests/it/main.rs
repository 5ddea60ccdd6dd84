//! Rules, diagrams, trees and files of rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod corpora;
mod decisions;
mod files;
mod hostile;
mod lookup;
mod reduced;
