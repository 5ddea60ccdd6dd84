//! What holds a function back on several cores: conflicts by source line with their causes, changes of declarations that
//! would remove them, and how packets are shared out among workers.
//!
//! A module that is made for a profile counts what packets of a worker meet of another's, where an attempt does not commit or a
//! reader has to become a writer (`fastpath/sync/conflicts.h`). [`report`] puts these counts into the terms of the program's objects.
//! What a conflict means and what helps against it is said beside each kind of object ([`kinds`]). The idea of causes and recipes is
//! that of Yan et al., *Transparent Multicore Scaling of Single-Threaded Network Functions*, EuroSys 2024, section 6.

mod declared;
mod document;
mod html;
mod imbalance;
pub mod kinds;
mod report;
mod text;
mod times;

pub use declared::Sources;
pub use document::{
    Abort, Caches, Cause, Change, Element, Flow, Imbalance, Prefetch, Recipe, Report, Time, Tried,
    With, Worker,
};
pub use html::page;
pub use imbalance::Spread;
pub use report::{Measured, report};
pub use text::text;
pub use times::times;
