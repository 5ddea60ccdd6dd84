//! Copies of a machine's buckets on other machines, which go on with them where it dies.
//!
//! Emitted code notes which places of its objects change (`fastpath/state/notes.h`). Each worker tells the machine that keeps a copy of a bucket what
//! is at these places, once a period ([`PERIOD`]): a *row* says a place and its new content, so that a later row replaces an earlier one and a row that is
//! late says what is true by then (row.rs, [`Copier`]). The other machine files rows by their places ([`Mirror`]), and makes entries of a bucket
//! of them when the bucket is its own.
//!
//! A copy begins, and begins again after a lost connection or under another table, by noting all places that the machine was not told
//! ([`Following`]); rows of packets go on meanwhile on the same stream, behind those of before.
//!
//! Each machine has a queue of its own, of bounded bytes. What changes while that of one is full is not told there but marked, by its place, and told
//! as it is once there is room; until then that copy is not whole. So a machine that is slow holds up neither workers nor the rows of another one.

mod copier;
mod mirror;
mod row;

use std::sync::Arc;
use std::time::Duration;

pub use copier::Copier;
pub use mirror::{Content, Mirror};
use row::Kind;
pub use row::{RowError, clock_of};

/// How often a worker tells what has changed, unless that takes more than a ninth of its time. What it did in the last period before it dies is lost,
/// beside what is on its way.
pub const PERIOD: Duration = Duration::from_millis(1);

/// Bytes of rows behind which a frame is full.
const FULL: usize = 64 << 10;
/// Bytes of a frame, at most: it was not full yet, and the last row has four numbers of 10 bytes before its key and its value.
pub const FRAME: usize = FULL + 40 + millrace_place::MOST_NOTED as usize;

/// Stands in the place of a connection: the bucket is another machine's.
pub const ELSEWHERE: u32 = u32::MAX;

/// A frame that says that there is no copy of what a worker has.
#[must_use]
pub fn void(worker: usize) -> Vec<u8> {
    let mut frame = row::begin(worker, crate::clock::now());
    row::head(&mut frame, 0, Kind::Void);
    frame
}

/// A frame without rows, which says only what the clock is.
#[must_use]
pub fn beat() -> Vec<u8> {
    row::begin(0, crate::clock::now())
}

/// Whether a frame has no rows.
#[must_use]
pub fn is_beat(frame: &[u8]) -> bool {
    frame.len() == row::HEAD
}

/// Where the copy of each bucket is, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Following {
    /// of the table
    pub version: u64,
    /// of the function: how many ran before the one whose rows these connections take
    pub generation: u64,
    /// by bucket: the connection to the machine that keeps its copy, by a number that is never used again; 0: there is none;
    /// [`ELSEWHERE`]: the bucket was handed to another machine, and its copy here is to be forgotten
    pub to: Vec<u32>,
    /// by bucket: how often it has come to this machine
    pub arrivals: Vec<u32>,
}

/// Machines that keep copies, as workers see them. Calls do not wait.
pub trait Copies: Send + Sync {
    /// Raised whenever [`Self::following`] is another one.
    fn step(&self) -> u64;

    /// Where the copies are.
    fn following(&self) -> Arc<Following>;

    /// Bytes that each connection takes by now, by its number. One that is not among them has ended: what is for it goes nowhere.
    fn room(&self, to: &mut Vec<(u32, usize)>);

    /// So many changes found no room: what is at their places is told later.
    fn deferred(&self, changes: u64);

    /// Sends what a worker tells, with so many rows in it. What is for a connection that is no more is dropped: another one begins anew.
    fn send(&self, connection: u32, bytes: Vec<u8>, rows: u64);
}
