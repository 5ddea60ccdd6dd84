//! Packets that are transactions, over the border (`struct mr_transact`, abi.h): what a worker counts, and in modules for tests
//! what packets read and wrote.

use std::ffi::c_void;

use super::{Instance, Module, abi, text};

pub use abi::TransactCounts;

/// The most reasons that are believed.
pub(super) const MOST_WHYS: u32 = 1 << 16;

/// An access to a version word, or the end of what one packet did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// a word had this version
    Read {
        /// which word; a number that means nothing else
        word: u64,
        /// how often it had been written
        version: u64,
        /// the packet's time may not be before that of the version's writer
        timed: bool,
    },
    /// a word has this version since
    Write {
        /// which word
        word: u64,
        /// how often it has been written
        version: u64,
    },
    /// an entry was removed for its age
    Expired {
        /// the map's place among the module's objects
        object: usize,
        /// the entry's
        key: Vec<u8>,
        /// ns, at which it had expired
        time: u64,
    },
    /// the end of what a packet did, or of a decision over an entry's expiry
    End {
        /// the packet's `number`; none of a decision
        packet: Option<u64>,
        /// how many packets had run alone by then, this one included
        alone: u64,
        /// whether this one did
        itself: bool,
        /// the time that it had, ns
        time: u64,
    },
}

impl Module {
    fn transact(&self) -> Option<&abi::Transact> {
        // SAFETY: `verify` has seen the table; the pointer is null or names a constant of the library, which stays
        // loaded as long as `self`.
        unsafe { self.table().transact.as_ref() }
    }

    /// Whether its packets are transactions.
    #[must_use]
    pub fn transacts(&self) -> bool {
        self.transact().is_some()
    }

    /// Reasons for which packets run alone, in words; none where packets are no transactions.
    #[must_use]
    pub fn reasons_alone(&self) -> Vec<String> {
        let Some(transact) = self.transact() else {
            return Vec::new();
        };
        let word = |at: usize| {
            // SAFETY: `verify` saw a non-null array of `whys` entries; each is a zero-terminated constant (abi.h).
            text(unsafe { *transact.why.add(at) }).unwrap_or_default()
        };
        (0..transact.whys as usize).map(word).collect()
    }
}

impl Instance {
    /// What this worker's packets did as transactions; none where they are none.
    #[must_use]
    pub fn transacted(&self) -> Option<TransactCounts> {
        let counts = self.module.transact()?.counts?;
        // SAFETY: the instance is created; abi.h promises an address within it, written only by calls that take
        // `&mut self`.
        unsafe { counts(self.memory.as_ptr()).as_ref() }.copied()
    }

    /// Packets that ran alone, in the order of [`Module::reasons_alone`].
    #[must_use]
    pub fn ran_alone(&self) -> Vec<u64> {
        let Some(transact) = self.module.transact() else {
            return Vec::new();
        };
        let Some(alone) = transact.alone else {
            return Vec::new();
        };
        // SAFETY: as in `transacted`; it is an array with a number for each reason.
        unsafe {
            let first = alone(self.memory.as_ptr());
            match first.is_null() {
                true => Vec::new(),
                false => std::slice::from_raw_parts(first, transact.whys as usize).to_vec(),
            }
        }
    }

    /// Takes what packets read and wrote since the last call, in this worker's order; nothing of a module that was not made
    /// for that.
    pub fn accesses(&mut self, mut sink: impl FnMut(Access)) {
        let Some(accesses) = self.module.transact().and_then(|t| t.accesses) else {
            return;
        };
        let mut sink: &mut dyn FnMut(Access) = &mut sink;
        // SAFETY: `take` gets back exactly the context given here, which outlives the call.
        unsafe { accesses(self.memory.as_ptr(), take, (&raw mut sink).cast::<c_void>()) };
    }
}

/// Receives one access from the module.
unsafe extern "C" fn take(context: *mut c_void, access: *const abi::Access) {
    // SAFETY: `accesses` passes the address of its `&mut dyn FnMut` and keeps it alive.
    let sink = unsafe { &mut *context.cast::<&mut dyn FnMut(Access)>() };
    // SAFETY: the module hands over one access, which lives during the call.
    let Some(access) = (unsafe { access.as_ref() }) else {
        return;
    };
    let (word, version, time) = (access.word, access.version, access.time);
    let end = |packet, itself| Access::End {
        packet,
        alone: version,
        itself,
        time,
    };
    sink(match access.what {
        abi::accessed::READ => Access::Read {
            word,
            version,
            timed: access.timed != 0,
        },
        abi::accessed::WRITE => Access::Write { word, version },
        abi::accessed::EXPIRED => Access::Expired {
            object: access.object as usize,
            key: match access.key.is_null() {
                true => Vec::new(),
                // SAFETY: a removed entry's key has `key_bytes` bytes, which live during the call (abi.h).
                false => unsafe {
                    std::slice::from_raw_parts(access.key, access.key_bytes as usize).to_vec()
                },
            },
            time,
        },
        abi::accessed::PACKET => end(Some(access.number), false),
        abi::accessed::ALONE => end(Some(access.number), true),
        _ => end(None, false),
    });
}
