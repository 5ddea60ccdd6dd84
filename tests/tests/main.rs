//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-tests --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod callbacks;
mod claims;
mod classifier;
mod conform;
mod contracts;
mod cookies;
mod corpora;
mod helpers;
mod hostile;
mod interpreter;
mod jobs;
mod kernel;
mod large;
mod maps;
mod numbered;
mod places;
mod planted;
mod prefetch;
mod public;
mod replicas;
mod routing;
mod soundness;
mod start;
mod stateful;
mod timers;
mod verifier;
