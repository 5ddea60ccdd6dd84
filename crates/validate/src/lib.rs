//! Is it so? A model is held against executions of its program.
//!
//! Every path carries an assignment under which its guard holds. Of that an execution is made: a packet, a
//! port, a time, parameters, and the state before. It runs twice, as the module that was emitted and in the
//! interpreter (`reference`), which must do the same to the last byte. The guards of all paths are then evaluated
//! on what was really there: exactly one must hold, and its accesses, packet writes, verdict and the state it
//! leaves must be what happened. After that packets are sent one after another from empty state, and each is
//! held against the model in the same way; this also says which paths packets alone reach.
//!
//! What is not compared: the ages of entries, but by their effects; which entry an LRU map evicts, but how many
//! it has; timers in values of maps. A random draw is taken as it comes. Programs are not compared at all ([`uncompared`])
//! whose state is in queues, stacks, Bloom filters or maps of maps, or that ask how full a ring buffer is.

mod alone;
mod chain;
mod chart;
mod drive;
pub mod findings;
mod flood;
pub mod judge;
pub mod packets;
pub mod pair;
pub mod predict;
pub mod run;
mod search;
mod stands;
pub mod trial;
mod turns;
pub mod witness;

pub use findings::{Findings, text};
pub use run::{Options, uncompared, validate};
