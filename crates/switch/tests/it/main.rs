//! OpenFlow rules of synthesised chains, against the reference interpreter.

mod common;
mod exercise;
mod rules;
mod vswitch;
