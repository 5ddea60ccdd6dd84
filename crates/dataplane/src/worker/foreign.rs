//! Elements of a chain that are no module: what hosts other people's programs implements this.
//!
//! The chain knows of them that they get packets, a burst at a time, and say of each whether it goes on. In a line
//! of functions a packet that goes on leaves at the other port than the one it came in at. An element that forwards by
//! itself names the port, and may have changed the packet's bytes and length.

use std::sync::{Arc, Mutex, PoisonError};

use super::condition::Condition;

/// A packet as a foreign element gets it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// first byte
    pub data: *mut u8,
    /// when it came, ns since the epoch: its own stamp
    pub time: u64,
    /// bytes there
    pub length: u32,
    /// bytes on the wire, at least as many
    pub wire: u32,
    /// bytes that may be written at `data`, at least `length`: how long the element may make it
    pub room: u32,
    /// the element's port that it came in at, 0 or 1
    pub port: u16,
    /// what becomes of it: [`ON`] or another of these
    pub fate: u16,
}

impl Given {
    /// One of these bytes, of which it takes no more room, that came in at port 0; it goes on.
    #[must_use]
    pub fn of(bytes: &mut [u8], time: u64, wire: u32) -> Self {
        Self {
            data: bytes.as_mut_ptr(),
            time,
            length: bytes.len() as u32,
            wire,
            room: bytes.len() as u32,
            port: 0,
            fate: ON,
        }
    }
}

/// It goes on: it leaves at the other port than the one that it came in at.
pub const ON: u16 = 0;
/// The element drops it.
pub const DROP: u16 = 1;
/// The element keeps it.
pub const KEEP: u16 = 2;
/// It leaves at port 0; `OUT + 1`: at port 1. `length` says how long it is then.
pub const OUT: u16 = 3;

/// What became of an element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Epilogue {
    /// what there is to know
    pub facts: Vec<String>,
    /// it failed: why, and what to do
    pub failure: Option<(String, String)>,
    /// memory that it took, bytes
    pub memory: u64,
}

/// An element that is no module.
pub trait Foreign: Send {
    /// Gives it packets. One that does not run any more leaves them as they are, and they go on.
    ///
    /// # Safety
    /// Each packet's bytes are valid, and nobody else's, during the call.
    unsafe fn burst(&mut self, packets: &mut [Given]);

    /// Whether it may name the port that a packet leaves at ([`OUT`]); if not, packets go on or end here. It stays so.
    fn decides(&self) -> bool {
        true
    }

    /// Hands over packets that it sends and that are none of a burst's, each with the element's port that it leaves
    /// at: those that leave before the last burst's packets, or (`after`) behind them. Most send none.
    fn sent(&mut self, after: bool, each: &mut dyn FnMut(u16, &[u8])) {
        let _ = (after, each);
    }

    /// Whether it has packets that it may still send, when it is let run ([`Foreign::idle`]).
    fn holds(&self) -> bool {
        false
    }

    /// Nothing has come for a while.
    fn idle(&mut self);

    /// Its state, for those who watch it; none where there is nothing to watch.
    fn condition(&self) -> Option<Arc<Condition>> {
        None
    }

    /// No packets will come any more; says what became of it.
    fn finish(&mut self) -> Epilogue;
}

/// Elements that have been made, one for each worker, which takes its own.
pub type Handed = Arc<Mutex<Vec<Box<dyn Foreign>>>>;

/// The state of an element that is handed over, until a worker takes it.
pub(super) fn condition(handed: &Handed) -> Option<Arc<Condition>> {
    let handed = handed.lock().unwrap_or_else(PoisonError::into_inner);
    handed.iter().find_map(|element| element.condition())
}
