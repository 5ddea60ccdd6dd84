//! What goes between the machines of a cluster: packets that a router's hash brought to the wrong one, and buckets with their state.
//!
//! [`Link`] sends packets to the machine that has their bucket, in Geneve over UDP, and receives those of others; the data plane calls it for each
//! packet that no worker of this machine gets (`millrace_dataplane::classes::away`). A bucket goes over a stream of TCP, with TLS 1.3 and
//! certificates on both sides ([`Security`]): [`Hands`] sends it, a [`Listener`] takes it, [`Running`] is the function at both ends. Both use one
//! address, the node's `peer`. [`Fixed`] reads the table of nodes from a file, for clusters without a service that agrees on it.
//!
//! Invariants: a bucket is put in whole or not at all, and only what a holder of the cluster's secret sent in answer to this connection's own
//! number; each step has a bound of time and of bytes; a packet is sent on at most [`MOST_HOPS`] times.
//!
//! Assumed: machines of a cluster have one architecture, and clocks that differ by less than [`SKEW`], since entries carry the time at which they
//! were refreshed.

mod figures;
mod fixed;
mod hands;
mod link;
mod listener;
mod mark;
mod message;
mod running;
mod secret;
mod security;
mod standby;

use std::time::Duration;

pub use figures::{Figures, Viewer};
pub use fixed::{Fixed, FixedError, Plan};
pub use hands::Hands;
pub use link::Link;
pub use listener::{Admits, Listener};
pub use running::Running;
pub use secret::Secret;
pub use security::{Security, SecurityError};
pub use standby::{Keeping, Standby};

/// How often a packet is sent on: to the machine that has its bucket, and once more where that has given it away since.
pub const MOST_HOPS: u8 = 2;
/// How far the clocks of two machines may be apart.
pub const SKEW: Duration = Duration::from_secs(1);
/// How long a step of a hand-over may take: a connection, a frame, an answer.
pub const STEP: Duration = Duration::from_secs(2);
/// How long all of a hand-over may take.
pub const WHOLE: Duration = Duration::from_secs(10);
