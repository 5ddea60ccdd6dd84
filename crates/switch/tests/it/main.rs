//! OpenFlow rules of synthesised chains, against the reference interpreter.

mod common;
mod rules;
