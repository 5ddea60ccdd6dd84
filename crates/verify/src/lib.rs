//! Is it the same? A function on many cores is held against the same function on one.
//!
//! The reference is the sequential program over the whole trace at full capacity, packets in ingress order. The
//! other side has as many copies of the function as there are workers, each with its part of the capacity, and
//! gives each packet to the worker that the plan's steering says. Both get recorded time, random draws that are
//! functions of the packet's number, and the number of the CPU that had the packet. Compared are each packet's
//! fate, its bytes where it leaves, the records that it left, the order within each flow, and at the end the
//! union of the workers' state.
//!
//! What may differ is named and counted: `lease` is checked by a bijection over the leases' lives (`lease.rs`);
//! `capacity`, `eviction` and `collision` are proved by running both sides again with memory for everything
//! (`relax.rs`). Everything else is a difference, and is shown with what there is around it (`around.rs`).

mod alike;
mod answers;
mod around;
mod at_once;
mod compare;
mod copy;
mod deal;
mod distributed;
mod findings;
mod history;
mod lane;
mod lease;
mod modules;
mod moving;
mod order;
mod outcome;
mod probes;
mod relax;
mod replica;
mod run;
mod schedule;
mod show;
mod sides;
mod state;
mod sums;
mod text;
mod trace;
mod tuple;

pub use compare::Kind;
pub use deal::{Deal, Dispatch};
pub use findings::{
    Around, AtWorker, Did, Difference, Findings, Moves, Relaxed, Shown, Transactions,
};
pub use modules::{Build, Wanted};
pub use moving::Moving;
pub use run::{Case, VerifyError, verify};
pub use schedule::Schedule;
pub use show::{Bytes, Names};
pub use state::NotCompared;
pub use text::text;
pub use trace::{Arriving, Captured, First, Generated, Given, Packet, Pass, Trace, TraceError};
