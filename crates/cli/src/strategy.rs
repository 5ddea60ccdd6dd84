//! `--strategy`: a strategy that the user asks for, in place of the plan's choice.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use millrace_place::Strategy;

/// What `--strategy` says; none: what the plan takes for the best.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wished(pub Option<Strategy>);

impl Wished {
    /// On one worker, whatever the number of cores.
    pub const SEQUENTIAL: Self = Self(Some(Strategy::Alone));
    /// Any packet on any worker.
    pub const SPREAD: Self = Self(Some(Strategy::Spread));
    /// Packets that touch the same state meet on one worker.
    pub const SHARD: Self = Self(Some(Strategy::Shard));
    /// What packets write is one for all workers, under a lock.
    pub const LOCK: Self = Self(Some(Strategy::Lock));
    /// What packets write is one for all workers, and packets are transactions.
    pub const TRANSACT: Self = Self(Some(Strategy::Transact));
    /// Every worker has all state, and repeats what packets of others do to it.
    pub const REPLICATE: Self = Self(Some(Strategy::Replicate));
    /// A few heavy keys are replicated, all others sharded.
    pub const HYBRID: Self = Self(Some(Strategy::Hybrid));
}

impl ValueEnum for Wished {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(None),
            Self::SPREAD,
            Self::SHARD,
            Self::SEQUENTIAL,
            Self::LOCK,
            Self::TRANSACT,
            Self::REPLICATE,
            Self::HYBRID,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            None => ("best", "what the plan takes for the best"),
            Some(Strategy::Spread) => (
                "spread",
                "any packet on any worker, for functions whose packets write no state",
            ),
            Some(Strategy::Shard) => (
                "shard",
                "packets that touch the same state meet on one worker, which keeps it for itself",
            ),
            Some(Strategy::Alone) => ("sequential", "on one worker, whatever the number of cores"),
            Some(Strategy::Lock) => (
                "lock",
                "what packets write is one for all workers, under a lock",
            ),
            Some(Strategy::Replicate) => (
                "replicate",
                "every worker has all state, and repeats what packets of others do to it; for few, hot entries",
            ),
            Some(Strategy::Hybrid) => (
                "hybrid",
                "a few heavy keys are replicated, moved while packets come, and all others sharded",
            ),
            Some(Strategy::Transact) => (
                "transact",
                "what packets write is one for all workers, and packets that write different entries run at the same time",
            ),
            // May not be asked for.
            Some(Strategy::Mixed) => return None,
        };
        Some(PossibleValue::new(name).help(help))
    }
}
