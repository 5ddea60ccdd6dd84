//! Which machine has which bucket of a function's state, and how machines agree on it.
//!
//! A cluster is the indirection table one level up: a packet's hash leads to a bucket ([`millrace_steer`'s `Buckets`]), the [`Table`] leads from
//! the bucket to a node, and the node's own table to a worker. What is agreed on is a table with a version; who may act on it, and until
//! when, is a node's [`Standing`]. What a node does about its buckets (hold packets, take entries out, send them, put them in) it does
//! through [`Machine`], and to others through [`Peers`]: this room knows neither packets nor sockets.
//!
//! [`millrace_steer`'s `Buckets`]: https://docs.rs/millrace-steer
//!
//! Invariants: a bucket has one owner under one version; a node accepts packets of a bucket only while its lease holds by its own clock; a
//! version is never taken back.

mod balance;
pub mod etcd;
mod lead;
mod log;
mod machine;
mod membership;
mod moving;
mod node;
mod standing;
mod status;
pub mod store;
mod table;
mod times;
pub mod vouch;

pub use balance::{assign, balanced, standbys};
pub use lead::{Change, MAX_NODES, next};
pub use log::{Conflict, Entry, Verdict, What, single_owner};
pub use machine::{HandOver, Machine, OTHER, Peers, Place, Refused};
pub use membership::{JoinError, Membership, Store, With, now};
#[doc(hidden)]
pub use node::Weakened;
pub use node::{Action, Config, Event, Node as Agreement, Outcome};
pub use standing::{FENCE, Standing};
pub use status::{DrainError, Finding, NodeStatus, STAYS, Status, drain};
pub use table::{Node, NodeId, Table, TableError};
pub use times::{SECOND, Times};
