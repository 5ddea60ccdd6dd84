//! Profiles of what runs: counts over a time, and who can say what they mean.

use millrace_dataplane::account::Account;
use millrace_dataplane::counters::Counts;
use serde_json::Value;

/// Says what counts mean.
pub trait Profiler: Send + Sync {
    /// The profile of an element from what was counted of it over a time: `report`, a document, and `text`. None of an element that is
    /// not known. `ns_per_tick`: a tick of the processor's clock; `places`: where the workers were, as addresses; `counters`:
    /// what their processors counted, or why they did not.
    fn profile(
        &self,
        element: u64,
        counted: &Account,
        ns_per_tick: f64,
        places: &[usize],
        counters: &Result<Counts, String>,
    ) -> Option<Value>;
}
