//! Traffic made to a specification: this many flows, so popular, so long-lived, of such packets.
//!
//! A [`Generator`] is a stream: it holds 24 bytes a flow and no packet but the current one. The same
//! [`Spec`] gives the same bytes, on every machine.

mod acl;
mod connection;
mod flow;
mod frame;
mod generator;
mod matched;
mod shape;
mod spec;

pub use crate::prefix::{Prefix, PrefixError};
pub use acl::{Acl, AclShape};
pub use generator::Generator;
pub use matched::Matched;

pub use shape::Shape;
pub use spec::{MAX_FLOWS, Mix, Size, Spec, SpecError};
