//! Placement: how each state object of a function lives on several workers, and which worker gets which packet.
//!
//! One value between the plan, or a user who decides by hand, and all who carry it out: `emit` reads which objects are
//! locked, `dataplane` how parts are made and seen as one object, `verify` how they are compared. It holds decisions and
//! no reasons; those are the plan's.

mod held;
mod owning;
pub mod placement;
mod strategy;

pub use held::{Held, Word};
pub use owning::Owning;
pub use placement::{Elephants, MOST_NOTED, Place, Placement};
pub use strategy::{Strategy, Treatment};
