//! Hybrid of sharding and replication: a few heavy keys are replicated on all cores, all others are sharded.
//!
//! The sequencer keeps up to 64 exact keys ([`Elephants`]). Their packets are sprayed over the cores and have rows in the history;
//! a packet of another key goes to the core that the key's hash names. A key is moved by a row of the history, too, so that all
//! cores move it at the same place among the rows. Every packet carries the number of the last row before it (an elephant's
//! packet that of its own), and its core applies all rows up to it first.
//!
//! - *Promotion* of a key is row i. Its owner publishes the key's state when it applies i: by then it has processed all earlier
//!   packets of the key, which came to it in order. The other cores wait for that at i. The owner waits, if at all, at a smaller
//!   number; so the least number waited for is one whose owner does not wait, and it applies i when it receives its next packet
//!   or heartbeat.
//! - *Demotion* is row i. The new owner moves the key's state from the replicated part to its own, the others drop it. Later
//!   packets of the key go to the new owner, and carry a number that is not below i.
//!
//! So the packets of a key fall into epochs; at each border the state passes on, and packets of other keys do not meet it. That
//! holds for state that is found by the key alone (the plan's proof for `shard`), without timers in values and without leases.
//!
//! This room decides and remembers; it copies no state by itself and has no threads. Its model check tries all orders in which
//! cores can run, and all moments of moves.

mod divide;
mod elephants;
mod heavy;
mod keys;
mod side;
#[cfg(test)]
mod tests;

pub use divide::{Divided, divide};
pub use elephants::{Elephants, Move, MoveError, Moving, Sent};
pub use heavy::{Heavy, PERIOD, ROW};
pub use keys::{Key, Keys};
pub use side::{Handover, Passed, Side};

/// The most keys that are replicated at a time.
pub const MAX_ELEPHANTS: usize = 64;
