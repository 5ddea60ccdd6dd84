//! Flow records of sampled packets, exported as IPFIX (RFC 7011).
//!
//! A worker's [`Sampler`] takes every N-th packet and puts what is counted of it into a ring ([`sample`]); one thread ([`Exporter`])
//! joins samples to flows ([`flows`]), writes them as messages ([`ipfix`]) and sends these. A worker waits for nothing: what has no room
//! in the ring, and what a collector that is away does not take, is counted and gone.

pub mod exporter;
pub mod flows;
pub mod ipfix;
pub mod sample;
pub mod sampler;
pub mod sender;

pub use exporter::{Counts, Exporter, Setting};
pub use sampler::{Lines, Sampler};
pub use sender::{Collector, Trouble};
