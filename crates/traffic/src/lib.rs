//! Captures: reading, writing, making, describing.
//!
//! This room knows packets as bytes with a time and nothing of network functions. Everything streams:
//! no part of it holds a whole capture in memory, and what a hostile capture can make it allocate is
//! bounded by constants named where they apply.

pub mod capture;
pub mod generate;
pub mod info;
pub mod language;
pub mod prefix;
pub mod sequenced;
pub mod split;
