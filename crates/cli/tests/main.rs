//! The integration tests of this crate, in one program: a file a subject. Run those of one with
//! `cargo test -p millrace-cli --test it SUBJECT::`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod bench;
mod book;
mod budgets;
mod chains;
mod changes;
mod changes_workers;
mod classes;
mod clusters;
mod common;
mod computed;
mod control;
mod distributed;
mod explain;
mod exported;
mod guests;
mod history;
mod hostile_clients;
mod kept;
mod linked;
mod live;
mod lock;
mod map;
mod map_nested;
mod maps;
mod mixed;
mod model;
mod model_report;
mod model_state;
mod moved;
mod odd;
mod offload;
mod owned;
mod packaging;
mod parallel;
mod parts;
mod pins;
mod plan;
mod prefixes;
mod profile;
mod profile_kinds;
mod public_models;
mod public_objects;
mod public_plans;
mod relaxed;
mod reload;
mod replicas_kept;
mod replicate;
mod routes;
mod rules;
mod run;
mod scaling;
mod sequence;
mod service;
mod shell;
mod skew;
mod straight;
mod top;
mod traced;
mod transact;
mod verbs;
mod verify;
mod watched;
