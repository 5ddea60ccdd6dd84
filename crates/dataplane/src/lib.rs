//! Ports, bursts, timers and counters around an emitted module.
//!
//! This room moves packets between ports and a module, a burst at a time, and accounts for each of
//! them. It does not know what a network function does: it loads the module that `emit` made
//! ([`module`]), fills bursts from ports ([`port`], [`packet`]), calls the module, and does with each
//! packet what the module said ([`worker`]); captures are a port of that loop ([`runner`]).

pub mod account;
pub mod classes;
#[allow(unsafe_code, reason = "the time stamp counter is read by an intrinsic")]
pub mod clock;
pub mod copies;
pub mod counters;
pub mod histogram;
pub mod inside;
pub mod mailbox;
#[allow(unsafe_code, reason = "the C library is asked to give memory back")]
pub mod memory;
#[allow(unsafe_code, reason = "the border to emitted code")]
pub mod module;
pub mod moved;
pub mod packet;
pub mod place;
pub mod port;
pub mod privilege;
#[allow(unsafe_code, reason = "timers and signals are the C library's")]
pub mod probe;
pub mod replica;
pub mod runner;
pub mod share;
#[allow(
    unsafe_code,
    reason = "signal handlers are installed through the C library"
)]
pub mod signal;

pub mod worker;

#[cfg(test)]
mod testing;

pub use account::Account;
pub use mailbox::Mailbox;
pub use module::{Config, Instance, Module};
pub use runner::{Parallel, Run, run, run_parallel};
pub use share::Share;
pub use worker::{Serve, serve};
