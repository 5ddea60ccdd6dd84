//! Chains as people describe them: which elements there are, how their ports are connected, and at which of them
//! packets enter and leave.
//!
//! There is one value for that, [`Description`], whether it was written in a file ([`mod@file`], docs/chains.md) or on the
//! command line ([`Description::line`]). What an element is made from is not looked at here: a function's name and
//! settings and a guest's command and options are handed on as they were written, with the line they stand in.

pub mod connect;
pub mod description;
pub mod error;
pub mod file;
pub mod parts;

mod table;

pub use connect::{Connected, Named};
pub use description::{Description, Element, Function, Given, Guest, Port, Setting, What};
pub use error::{ChainError, Place};
pub use parts::Merged;
