//! Names of what is done with a whole function, and with one of its objects.

use millrace_steer::named;
use serde::Serialize;

named! {
    /// How a function runs as a whole: the one treatment that its objects have beside `spread` and `merge`, or `mixed`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Strategy {
        /// on one core
        Alone = "alone",
        /// any packet on any core
        Spread = "spread",
        /// packets that touch the same state meet on one core, which keeps it for itself
        Shard = "shard",
        /// the state is shared, and guarded by locks
        Lock = "lock",
        /// the state is shared, and packets that write it are transactions
        Transact = "transact",
        /// every core has all state, and repeats what packets of others do to it
        Replicate = "replicate",
        /// a few heavy keys are replicated, all others shard
        Hybrid = "hybrid",
        /// some objects shard, others are locked
        Mixed = "mixed",
    }
}

impl Strategy {
    /// Names that users may ask for: those of strategies, and `sequential` for `alone`.
    pub const WORDS: [&str; 9] = [
        "alone",
        "sequential",
        "spread",
        "shard",
        "lock",
        "transact",
        "mixed",
        "replicate",
        "hybrid",
    ];

    /// The one of this name; `sequential` is `alone`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = if name == "sequential" { "alone" } else { name };
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// The strategy of a function whose objects have these treatments: one object on one core keeps all of it there.
    #[must_use]
    pub fn of(treatments: impl Iterator<Item = Treatment>) -> Self {
        let mut all = [false; Treatment::ALL.len()];
        for treatment in treatments {
            if let Some(met) = all.get_mut(treatment as usize) {
                *met = true;
            }
        }
        let has = |wanted: Treatment| all.get(wanted as usize) == Some(&true);
        if has(Treatment::Hybrid) && !has(Treatment::Alone) {
            let others = [
                Treatment::Shard,
                Treatment::Lock,
                Treatment::Transact,
                Treatment::Replicate,
            ];
            let mixed = others.into_iter().any(has);
            return if mixed { Self::Mixed } else { Self::Hybrid };
        }
        if has(Treatment::Replicate) && !has(Treatment::Alone) {
            let others = [Treatment::Shard, Treatment::Lock, Treatment::Transact];
            let mixed = others.into_iter().any(has);
            return if mixed { Self::Mixed } else { Self::Replicate };
        }
        if has(Treatment::Transact) && !has(Treatment::Alone) {
            let others = has(Treatment::Shard) || has(Treatment::Lock);
            return if others { Self::Mixed } else { Self::Transact };
        }
        match (
            has(Treatment::Alone),
            has(Treatment::Shard),
            has(Treatment::Lock),
        ) {
            (true, ..) => Self::Alone,
            (_, true, true) => Self::Mixed,
            (_, true, false) => Self::Shard,
            (_, false, true) => Self::Lock,
            (_, false, false) => Self::Spread,
        }
    }
}

named! {
    /// Treatment of one state object.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Treatment {
        /// one core runs everything that touches it
        Alone = "alone",
        /// each core has a copy, and no packet changes it
        Spread = "spread",
        /// each core has its own entries; the steering brings a packet to the core that has its entry
        Shard = "shard",
        /// one copy for all cores, guarded by per-core read/write locks
        Lock = "lock",
        /// one copy for all cores, of which packets of several cores write different entries at a time
        Transact = "transact",
        /// each core adds to its own part; whoever reads from outside sees the sum, or the records of all
        Merge = "merge",
        /// each core has all of it, and repeats what packets of other cores do to it
        Replicate = "replicate",
        /// each core has its own entries, and beside them all those of a few heavy keys, which it keeps as `replicate` does
        Hybrid = "hybrid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strategy_follows_from_the_treatments() {
        use Treatment::{Alone, Hybrid, Lock, Merge, Replicate, Shard, Spread, Transact};
        let of = |treatments: &[Treatment]| Strategy::of(treatments.iter().copied());
        assert_eq!(of(&[]), Strategy::Spread);
        assert_eq!(of(&[Merge, Spread]), Strategy::Spread);
        assert_eq!(of(&[Merge, Shard]), Strategy::Shard);
        assert_eq!(of(&[Lock, Spread]), Strategy::Lock);
        assert_eq!(of(&[Replicate, Spread]), Strategy::Replicate);
        assert_eq!(of(&[Replicate, Shard]), Strategy::Mixed);
        assert_eq!(of(&[Hybrid, Merge]), Strategy::Hybrid);
        assert_eq!(of(&[Hybrid, Lock]), Strategy::Mixed);
        assert_eq!(of(&[Transact, Spread]), Strategy::Transact);
        assert_eq!(of(&[Transact, Shard]), Strategy::Mixed);
        assert_eq!(of(&[Lock, Shard]), Strategy::Mixed);
        assert_eq!(of(&[Lock, Shard, Alone]), Strategy::Alone);
    }

    #[test]
    fn every_name_and_every_word_is_that_of_a_strategy() {
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::named(strategy.name()), Some(strategy));
        }
        assert!(Strategy::WORDS.iter().all(|w| Strategy::named(w).is_some()));
        assert_eq!(Strategy::named("sequential"), Some(Strategy::Alone));
        assert_eq!(Strategy::named("locks"), None);
    }
}
