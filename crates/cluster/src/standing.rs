//! What a node may do at the moment, as its workers read it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::table::{NodeId, Table};

/// A node's table and the end of its lease. Whoever keeps the lease writes it; workers read two words a burst, and the table where its version
/// is another one.
#[derive(Debug)]
pub struct Standing {
    /// this node
    me: NodeId,
    version: AtomicU64,
    /// monotonic clock, ns: past it this node accepts no packet
    until: AtomicU64,
    table: RwLock<Arc<Table>>,
}

impl Standing {
    /// Of a node that owns nothing yet.
    #[must_use]
    pub fn new(me: NodeId, table: Table) -> Self {
        Self {
            me,
            version: AtomicU64::new(table.version),
            until: AtomicU64::new(0),
            table: RwLock::new(Arc::new(table)),
        }
    }

    /// This node.
    #[must_use]
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// The version of the table.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Whether this node may accept packets at `now`, ns of the monotonic clock.
    #[inline]
    #[must_use]
    pub fn holds(&self, now: u64) -> bool {
        now < self.until.load(Ordering::Acquire)
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
        true
    }

    /// The lease holds until then, ns of the monotonic clock; 0: there is none any more.
    pub fn set_until(&self, until: u64) {
        self.until.store(until, Ordering::Release);
    }
}
