//! Traces of packets of what runs: who can make them.

use std::time::Duration;

use millrace_dataplane::worker::watch::Observer;
use millrace_topology::Topology;
use serde_json::Value;

use crate::trouble::Trouble;

/// Makes traces.
pub trait Tracer: Send + Sync {
    /// Begins one of `count` packets that fit a filter. `chain`: the numbers of the elements, in the order of the topology, where
    /// they can change.
    ///
    /// # Errors
    /// The filter is none, or an element cannot be traced.
    fn begin(
        &self,
        filter: &str,
        count: u64,
        chain: Option<(Vec<u64>, Topology)>,
    ) -> Result<Box<dyn Trace>, Trouble>;
}

/// A trace that goes on.
pub trait Trace: Send {
    /// What follows the packets of so many workers; asked once.
    fn observers(&mut self, workers: usize) -> Vec<Box<dyn Observer>>;
    /// What has come since the last time, waiting so long for the first packet: `packets[]`, each explained, and `ended`, why no
    /// other one will come, if none will.
    fn next(&mut self, wait: Duration) -> Value;
}
