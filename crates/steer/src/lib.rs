//! Steering: a NIC's receive side scaling (RSS), in software.
//!
//! A NIC takes fields of a packet ([`fields`]), hashes them with a key ([`toeplitz`]), and looks the
//! queue up in an indirection table ([`rss`]). Which fields it can take, how long its key and its table
//! are and how it makes the hash symmetric differ by device; that is written down as data, one file a
//! device, in `nics/` ([`nic`]). What a NIC cannot steer is steered in software beside it
//! ([`steering`], [`owner`]).
//!
//! Which keys keep together the packets that must meet, and spread the others, is linear algebra over
//! GF(2) ([`keys`]); which queue each entry of the table leads to is a matter of the load ([`table`]).
//!
//! Where packets are sprayed instead and every core keeps all state, a sequencer numbers them ([`sequence`]); [`hybrid`] does so for
//! a few heavy keys and shards the others. [`buckets`] says what goes along when a place of the table gets another queue.

#[macro_use]
mod named;

pub mod buckets;
pub mod carried;
pub mod fields;
mod gf2;
pub mod hybrid;
pub mod keys;
pub mod nic;
pub mod odd;
pub mod owner;
pub mod rss;
pub mod sequence;
pub mod steering;
pub mod table;
pub mod toeplitz;

pub use fields::{Field, Kind, Parsed};
pub use nic::{Nic, Symmetry};
pub use odd::{Odd, Ports};
pub use owner::Owners;
pub use rss::{Lookup, Rss, RssError};
pub use steering::Steering;

// The fixtures of the tests are shared with the benchmark and name this crate as it does.
#[cfg(test)]
extern crate self as millrace_steer;
