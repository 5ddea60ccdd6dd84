//! Generated programs that keep state, run on one core and on several by the `millrace` command, and a comparison of
//! the two that shares no code with `millrace verify`.
//!
//! A [`Case`] is a program and its packets, both drawn from one seed. [`judge()`] plans it, runs it at 1, 2, 4 and 8 and
//! compares verdicts, bytes, records and pinned state:
//!
//! - Under `spread`, `shard` and `merge` every packet has the verdict, the port and the bytes of the run on one core,
//!   and the pinned state is the same.
//! - Under `lock` a run takes place in some order that keeps that of each flow. `run --fates` tells the order of
//!   commits. The packets are replayed on one core in this order, and everything has to be equal to the replay. The
//!   order is a witness: whoever wrote it, an equal replay proves that one core could have done what the workers did.
//! - What a plan keeps on one core `run --cores` has to refuse.
//!
//! What a plan names as a relaxation is left out of the comparison only where the account of the run counts it.

pub mod aimed;
pub mod capture;
pub mod case;
pub mod compare;
pub mod drive;
pub mod grammar;
pub mod judge;
pub mod planted;
pub mod render;
pub mod replicas;
pub mod sets;
pub mod shrink;
pub mod traffic;

pub use case::Case;
pub use judge::{Finding, Judgement, judge};
