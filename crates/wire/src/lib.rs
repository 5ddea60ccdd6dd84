//! Packet headers: typed views of their bytes, one walk from header to header, and checksums.
//!
//! A view borrows the bytes of one header and gives its fields by name: [`ethernet`], [`vlan`], [`arp`], [`ipv4`],
//! [`ipv6`] and its [`extension`] headers, [`tcp`], [`udp`], [`icmpv4`], [`icmpv6`], [`geneve`]. [`walk`] finds where each header of a
//! frame is and says why it stops. Its rule is that of `include/millrace`, which network functions are written with;
//! where a caller needs another one, the difference is a named field of [`Rule`].
//!
//! # Panics
//! No constructor and no walk panics, whatever the bytes. An accessor of a view does not either: `new_checked` has
//! seen that the buffer holds the whole header, and no setter changes how long the header is. Only a buffer type whose
//! `as_ref` becomes shorter afterwards breaks this; its accessors panic then, they read nothing outside of the buffer.

pub mod arp;
pub mod bytes;
pub mod checksum;
pub mod ethernet;
pub mod extension;
pub mod geneve;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod protocol;
mod rule;
pub mod tcp;
pub mod udp;
pub mod vlan;
mod walk;

pub use bytes::{put, word};
pub use rule::{Lengths, Rule};
pub use walk::{Fragment, Ip, Layers, Link, Stop, Upper, Version, announced, link, walk};

/// A header that its bytes do not hold: they end before it does, or it says that it is shorter than it can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incomplete;

impl std::fmt::Display for Incomplete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the bytes do not hold the whole header")
    }
}

impl std::error::Error for Incomplete {}
