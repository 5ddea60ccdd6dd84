//! The examples, on a bundled function and a bundled capture.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "../examples/check.rs"]
mod check;
#[allow(dead_code)]
#[path = "../examples/plan.rs"]
mod plan;
#[allow(dead_code)]
#[path = "../examples/run.rs"]
mod run;

mod click;
mod click_random;
mod copies;
mod egress;
mod errors;
mod functions;
mod hybrid;
mod mistakes;
mod moving;
mod ordinary;
mod public_chains;
mod replicas;
mod rows;
mod slow;
mod stages;
mod standby;
mod versions;

/// A path of the repository.
fn of_repository(path: &str) -> String {
    format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))
}
