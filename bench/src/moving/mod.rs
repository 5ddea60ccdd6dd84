//! What it costs to hand state to another machine, and to keep a copy of it there. docs/measurements/moving.md has figures.

pub mod copies;
pub mod handover;
mod made;
