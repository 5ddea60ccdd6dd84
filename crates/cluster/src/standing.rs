//! What a node may do at the moment, as its workers read it.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::log::Verdict;
use crate::table::{NodeId, Table};

/// How long a node accepts packets without the newer table that it has heard of, ns: it reads that at once, which takes some milliseconds.
pub const FENCE: u64 = 500_000_000;

/// A node's table and the end of its lease. Whoever keeps the lease writes it; workers read two words a burst, and the table where its version
/// is another one.
#[derive(Debug)]
pub struct Standing {
    /// this node
    me: AtomicU16,
    version: AtomicU64,
    /// monotonic clock, ns: past it this node accepts no packet
    until: AtomicU64,
    /// the highest version that anybody is known to have
    seen: AtomicU64,
    /// monotonic clock, ns: when a version was heard of that is newer than the table
    heard: AtomicU64,
    table: RwLock<Arc<Table>>,
}

impl Standing {
    /// Of a node that owns nothing yet.
    #[must_use]
    pub fn new(me: NodeId, table: Table) -> Self {
        Self {
            me: AtomicU16::new(me.0),
            version: AtomicU64::new(table.version),
            until: AtomicU64::new(0),
            seen: AtomicU64::new(table.version),
            heard: AtomicU64::new(0),
            table: RwLock::new(Arc::new(table)),
        }
    }

    /// This node.
    #[must_use]
    pub fn me(&self) -> NodeId {
        NodeId(self.me.load(Ordering::Acquire))
    }

    /// Of a node that joins after its data plane is there: the number that the table gives it, before it owns anything.
    pub fn set_me(&self, me: NodeId) {
        self.me.store(me.0, Ordering::Release);
    }

    /// The version of the table.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Whether this node may accept packets at `now`, ns of the monotonic clock: its lease holds, and it has not known for [`FENCE`] of a newer
    /// table than its own, as a machine does that stood still together with its clock.
    #[inline]
    #[must_use]
    pub fn holds(&self, now: u64) -> bool {
        let until = self.until.load(Ordering::Acquire);
        let fenced = || now >= self.heard.load(Ordering::Acquire).saturating_add(FENCE);
        // Without a lease, nobody else takes a bucket.
        now < until && (until == u64::MAX || !self.stale() || !fenced())
    }

    /// How long the lease lasts from `now` on, ns; none where there are no leases.
    #[must_use]
    pub fn left(&self, now: u64) -> Option<u64> {
        let until = self.until.load(Ordering::Acquire);
        (until != u64::MAX).then(|| until.saturating_sub(now))
    }

    /// Another node sent something under this version at `now`, ns of the monotonic clock.
    pub fn hear(&self, version: u64, now: u64) {
        if version > self.seen.load(Ordering::Acquire) {
            if !self.stale() {
                self.heard.store(now, Ordering::Release);
            }
            self.seen.fetch_max(version, Ordering::AcqRel);
        }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> Arc<Table> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.clone()
    }

    /// Another table; one of an older version changes nothing, and says so.
    pub fn set_table(&self, table: Table) -> bool {
        let mut now = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.version < now.version {
            return false;
        }
        let version = table.version;
        *now = Arc::new(table);
        self.version.store(version, Ordering::Release);
        self.seen.fetch_max(version, Ordering::AcqRel);
        true
    }

    /// The lease holds until then, ns of the monotonic clock; 0: there is none any more.
    pub fn set_until(&self, until: u64) {
        self.until.store(until, Ordering::Release);
    }

    /// Where a packet of a bucket belongs at `now`, ns of the monotonic clock; `stamp` is the version under which another node forwarded it.
    ///
    /// A stamp is a fence: it proves that its version exists, so a node with an older table accepts nothing, of no bucket, before it has read the
    /// newer one, even if its clock stood still and its lease seems to hold. A stamp older than the own table is judged by the own table.
    ///
    /// Ask before a burst is processed and again before its packets leave: what a burst that a pause interrupted did is not seen by others then.
    #[must_use]
    pub fn judge(&self, bucket: u32, stamp: Option<u64>, now: u64) -> Verdict {
        if let Some(stamp) = stamp {
            self.seen.fetch_max(stamp, Ordering::AcqRel);
        }
        let table = self.table();
        if self.seen.load(Ordering::Acquire) > table.version {
            return Verdict::Stale;
        }
        let version = table.version;
        match table.owner(bucket) {
            None => Verdict::Nobody,
            Some(to) if to != self.me() => Verdict::Forward { to, version },
            Some(_) if self.holds(now) => Verdict::Accept { version },
            Some(_) => Verdict::Stopped,
        }
    }

    /// The highest version that anybody is known to have.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// A read of the store that began when `seen` was [`Self::seen`] found `version`: where that is lower, no such table exists.
    pub fn disprove(&self, seen: u64, version: u64) {
        if version < seen {
            let order = Ordering::AcqRel;
            let _ = self
                .seen
                .compare_exchange(seen, version, order, Ordering::Acquire);
        }
    }

    /// Whether somebody is known to have a newer table than this node.
    #[inline]
    #[must_use]
    pub fn stale(&self) -> bool {
        self.seen.load(Ordering::Acquire) > self.version()
    }
}
