//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-traffic --test it SUBJECT::`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod acl;
mod bundled;
mod capture;
mod case;
mod common;
mod corpora;
mod generate;
mod info;
mod language;
mod sequenced;
mod split;
