//! Facts from the instructions alone, before anything is explored: the control-flow graph and its loops, which places
//! are still read later, and which may flow into a proof.
//!
//! None of this is trusted. The explorer *forgets* what these analyses call dead or irrelevant; if
//! they are wrong, a proof fails that could have been made, but none succeeds that should not.

pub mod backward;
pub mod graph;
pub mod hints;
pub mod loops;
pub mod places;
pub mod points;
