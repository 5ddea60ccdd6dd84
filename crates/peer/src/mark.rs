//! Marks, which follow the last packet of a bucket by a way that its packets take no more.
//!
//! A machine that sent packets of a bucket to its old owner, and has others for the new one, sends a mark to the old owner. That one sends it on as
//! it does packets, behind those that came before it, and the new owner's worker answers it ([`millrace_dataplane::classes::away`]).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use millrace_cluster::NodeId;

/// Answers that are kept; those of marks that nobody waits for any more go first.
const KEPT: usize = 1024;

/// A mark: 10 bytes, the number of its machine and its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// the machine that waits for the answer
    pub of: NodeId,
    /// its own number, of that machine
    pub number: u64,
}

impl Mark {
    /// As it is sent.
    pub fn bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        let parts = self.of.0.to_be_bytes().into_iter();
        for (to, from) in bytes.iter_mut().zip(parts.chain(self.number.to_be_bytes())) {
            *to = from;
        }
        bytes
    }

    /// Reads one; none where it is of another length.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 10] = bytes.try_into().ok()?;
        let [of, more, number @ ..] = bytes;
        Some(Self {
            of: NodeId(u16::from_be_bytes([of, more])),
            number: u64::from_be_bytes(number),
        })
    }
}

/// Marks of this machine.
#[derive(Default)]
pub struct Marks {
    next: AtomicU64,
    /// numbers whose answers have come, and were not asked for yet
    came: Mutex<VecDeque<u64>>,
}

impl Marks {
    /// The next one.
    pub fn next(&self, me: NodeId) -> Mark {
        Mark {
            of: me,
            number: self.next.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The answer to one has come.
    pub fn came(&self, number: u64) {
        let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        if came.len() >= KEPT {
            came.pop_front();
        }
        came.push_back(number);
    }

    /// Whether the answer to one has come, once.
    pub fn take(&self, number: u64) -> bool {
        let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        let at = came.iter().position(|n| *n == number);
        at.and_then(|at| came.remove(at)).is_some()
    }
}
