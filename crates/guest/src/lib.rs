//! Hosting unmodified programs of other people's as elements of a chain.
//!
//! A guest is a program as its distribution ships it: tcpdump, prads, an nDPI reader. It is mapped into a slot of
//! this process's address space with a dynamic loader and libraries of its own ([`load`], [`slot`]); its packet
//! library is interposed (preload/), so that asking for packets is a switch to the host (`switch.rs`); its system
//! calls come here ([`call`]). Faults are contained: a guest that fails is removed, and packets go on. That is no
//! defence against malice: README.md says what is not prevented.
//!
//! The design follows Li et al., "LemonNFV: Consolidating Heterogeneous Network Functions at Line Speed", NSDI 2023.

#![allow(
    unsafe_code,
    reason = "this room hosts foreign code; each block states its invariant"
)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

pub mod call;
pub mod command;
pub mod element;
mod end;
pub mod error;
mod fates;
pub mod fault;
mod filter;
pub mod headers;
mod heap;
pub mod hosted;
pub mod load;
mod memory;
pub mod migrate;
mod polling;
pub mod port;
pub mod preload;
pub mod protect;
pub mod rest;
mod room;
mod saver;
pub mod sent;
pub mod shared;
pub mod slot;
pub mod snapshot;
pub mod space;
mod stack;
mod start;
mod switch;
mod thread;
mod trap;
mod vdso;
mod watch;
pub mod word;

pub use command::Spec;
pub use element::Element;
pub use error::GuestError;
pub use hosted::Hosted;
pub use shared::{Over, describe};
pub use word::Word;
