//! Is it safe? A [`Program`](millrace_object::Program) goes in, a [`Checked`] or a [`Refusal`] comes out.
//!
//! Nothing is emitted that has not passed here: every load and store stays inside packet, stack,
//! map value or global; the program ends; it calls only what exists. What the proof learned on the
//! way (which region each access touches, which branches can happen) is handed on as [`facts`], so
//! that `emit` decides nothing again.

pub mod facts;

pub use facts::Checked;
