//! How may it run in parallel? A [`Model`](millrace_model::Model), a number of cores and a model of a NIC go
//! in, a [`Plan`] comes out: a treatment for each state object, the steering of each port, and the reasons
//! in terms of the author's source lines.

mod apart;
mod assumed;
mod balance;
mod buckets;
mod choose;
mod computed;
mod constraints;
pub mod cost;
mod degenerate;
mod expiring;
mod fingerprints;
mod key;
mod leased;
mod make;
mod memo;
mod offset;
mod packets;
mod pinned;
mod placed;
mod placed_reader;
pub mod plan;
mod relaxed;
pub mod room;
mod rules;
mod solved;
pub mod text;
mod together;
mod touch;
mod treatments;
mod words;

pub use apart::shows_records;
pub use balance::Loads;
pub use buckets::Stays;
pub use fingerprints::Fingerprints;
pub use make::{Carried, PlanError, SOLVER_TIME, Wanted, plan};
pub use placed::{Finder, Lies};
pub use plan::{Grounds, Plan};
