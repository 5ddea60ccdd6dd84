//! What it costs to hand state to another machine, and to keep a copy of it there. docs/measurements/moving.md has figures.

mod copies;
mod handover;
mod made;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use rustix::thread::{CpuSet, sched_setaffinity};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// All buckets of a worker to another machine: ns of processor time an entry for each step
    Handover(handover::Handover),
    /// Rows for a standby: ns a packet without and with them
    Copies(copies::Copied),
}

fn main() -> Result<()> {
    match Arguments::parse().what {
        What::Handover(asked) => asked.measure(),
        What::Copies(asked) => asked.measure(),
    }
}

/// Has this thread on a processor.
fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).context("cannot be pinned")
}
