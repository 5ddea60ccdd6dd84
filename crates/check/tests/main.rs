//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-check --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alters;
mod budgets;
mod callbacks;
mod clock;
mod domain;
mod egress;
mod facts;
mod held;
mod loops;
mod nested;
mod readers;
mod refusals;
mod rules;
mod timers;
mod zeros;
