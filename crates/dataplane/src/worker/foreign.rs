//! Elements of a chain that are no module: what hosts other people's programs implements this.
//!
//! The chain knows of them that they get packets, a burst at a time, and say of each whether it goes on. In a line
//! of functions a packet that goes on leaves at the other port than the one it came in at.

use std::sync::{Arc, Mutex};

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
    /// the element's port that it came in at, 0 or 1
    pub port: u32,
    /// 0: it goes on; anything else: the element drops it
    pub fate: u32,
}

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

    /// Nothing has come for a while.
    fn idle(&mut self);

    /// No packets will come any more; says what became of it.
    fn finish(&mut self) -> Epilogue;
}

/// Elements that have been made, one for each worker, which takes its own.
pub type Handed = Arc<Mutex<Vec<Box<dyn Foreign>>>>;
