//! Moving a running guest to another process, and its packets with it; and snapshots of one that runs.
//!
//! The sender copies the guest's pages while it runs ([`crate::snapshot`]); then the worker that runs it waits between
//! two bursts ([`desk`]) while the rest is copied and the receiver sets it up ([`mod@receive`]). From the next
//! burst on, its packets go over the same connection ([`away`]), which gives their fates back: a packet is either
//! before the move or behind it. Until the receiver has said that the guest is there, and whenever it says or does
//! something else, the guest goes on where it was.

pub mod away;
pub mod desk;
pub mod receive;
pub mod send;

pub use receive::receive;
pub use send::{Report, migrate, migrate_by_comparison, save};

/// How long either side waits for the other's answer.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
