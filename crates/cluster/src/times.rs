//! Durations of the protocol, and the bounds that follow from them.

use std::fmt;

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// Durations, ns. All are measured with each node's own monotonic clock; wall clocks are not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// how long a lease lasts, whole seconds from 2 on
    pub ttl: u64,
    /// how much earlier than its lease a node stops: room for clocks of different rates and for a pause between a check and the act it allows
    pub margin: u64,
    /// how long a node goes on without the store where all peers vouch, from its last answer of the store
    pub alone: u64,
}

impl Times {
    /// For a lease of `ttl` seconds (2 to 300; others are taken for the nearest): a fifth of it is margin, and ten minutes without the store are bridged.
    #[must_use]
    pub fn of_lease(ttl: u64) -> Self {
        let ttl = ttl.clamp(2, 300) * SECOND;
        Self {
            ttl,
            margin: ttl / 5,
            // The same for all leases, as nodes rely on each other's.
            alone: 600 * SECOND,
        }
    }

    /// The end of the own right, for a lease of `ttl` ns that was prolonged by a request sent at `sent`.
    #[must_use]
    pub fn until(&self, sent: u64, ttl: u64) -> u64 {
        // The store counts from when it got the request, so no earlier than `sent`.
        sent.saturating_add(ttl.saturating_sub(self.margin))
    }

    /// How often the lease is prolonged: three tries fail before peers are asked.
    #[must_use]
    pub fn beat(&self) -> u64 {
        self.ttl / 8
    }
}

impl fmt::Display for Times {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| ns as f64 / SECOND as f64;
        write!(
            to,
            "a node that is cut off stops at most {:.1} s after its last answered keepalive; its buckets go to others no earlier than {:.1} s after it; \
             where the store is away for all nodes of the table, they go on for up to {:.0} s",
            seconds(self.ttl - self.margin),
            seconds(self.ttl),
            seconds(self.alone)
        )
    }
}
