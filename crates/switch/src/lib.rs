//! OpenFlow 1.3 rules of a synthesised chain: classes without state are forwarded and dropped by the switch, the others by servers
//! behind it.
//!
//! [`compile()`] takes the diagram of a synthesis ([`millrace_synth`]) and projects it onto the fields that a switch sees
//! (`project`): where packets that look alike to the switch have different fates, a server decides. What is left becomes tables of
//! rows in a first-match order ([`millrace_synth::rows`]), with ranges of ports as bits of metadata (`ports`), so that a rule of a filter stays one
//! row. The rows are held against the diagram before they are given out: decision diagrams of one function are one node.
//!
//! [`run`] is a switch in software, for the share of traffic that servers see and for tests; [`ovs`] installs rules in Open
//! vSwitch. The method is that of Katsikas et al., SNF: synthesizing high performance NFV service chains, PeerJ Computer Science
//! 2:e98, 2016, whose switch tags classes for servers behind it.

pub mod compile;
mod error;
mod flatten;
mod matches;
pub mod openflow;
mod outcome;
pub mod ovs;
mod ports;
mod project;
pub mod run;
mod spread;
pub mod switch;

pub use compile::{Assumptions, Request, Rules, Server, compile};
pub use error::Error;
