//! What packets of workers that share state met, in modules that are made for profiles (`struct mr_profile`, abi.h).

use std::ffi::c_void;

use super::{Instance, Module, abi, text};

/// The most steps that are believed: version words have 12 bits for one.
pub(super) const MOST_SITES: u32 = 1 << 12;

/// A step of the program that works on what workers share.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// `FILE:LINE`, or the function and the instruction where there are no lines; empty: unknown
    pub line: String,
    /// the helper, or what else it does
    pub operation: String,
    /// the object; empty: none
    pub object: String,
}

/// What was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// an entry that another core wrote, removed or was at work on
    Entry,
    /// a bucket in which another core filed or removed an entry
    Bucket,
    /// that an object was full
    Full,
    /// all other cores: the step is a writer's
    Write,
    /// something that was over when it was looked for
    Other,
    /// nobody: the packet had no room for more in what it reads and writes, and ran alone
    Room,
    /// nobody: the worker had no entry or number of its own left, and the packet ran alone
    Pool,
    /// nobody: the bucket was full, and the packet ran alone
    Ways,
}

/// What packets of a worker met, of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// the packet's step
    pub mine: Site,
    /// the step that it met; none where that is unknown
    pub theirs: Option<Site>,
    /// at what
    pub what: What,
    /// how often
    pub count: u64,
    /// ticks of [`crate::clock`] that the packets waited; 0 where they run again
    pub ticks: u64,
    /// where packets ran alone, why, as [`Instance::ran_alone`]'s reasons have it
    pub alone: Option<String>,
    /// the key at which most of them were, and how many more were there than were not
    pub key: Option<(Vec<u8>, u64)>,
}

impl Module {
    fn profile(&self) -> Option<&abi::Profile> {
        // SAFETY: `verify` has seen the table; the pointer is null or names a constant of the library, which stays
        // loaded as long as `self`.
        unsafe { self.table().profile.as_ref() }
    }

    /// Whether it is made for a profile.
    #[must_use]
    pub fn profiles(&self) -> bool {
        self.profile().is_some()
    }

    fn site(&self, at: u32) -> Option<Site> {
        let profile = self.profile()?;
        // The first is none.
        if at == 0 || at >= profile.sites.min(MOST_SITES) || profile.site.is_null() {
            return None;
        }
        // SAFETY: `site` has `sites` zero-terminated constants (abi.h).
        let said = text(unsafe { *profile.site.add(at as usize) })?;
        let mut parts = said.split('\t').map(str::to_owned);
        Some(Site {
            line: parts.next()?,
            operation: parts.next()?,
            object: parts.next()?,
        })
    }
}

impl Instance {
    /// What this worker's packets met since the start; nothing of a module that is not made for a profile.
    #[must_use]
    pub fn conflicts(&self) -> Vec<Conflict> {
        let mut told = Told::new();
        let Some(conflicts) = self.module.profile().and_then(|p| p.conflicts) else {
            return Vec::new();
        };
        // SAFETY: `take` gets back exactly the context given here, which outlives the call.
        unsafe {
            conflicts(self.memory.as_ptr(), take, (&raw mut told).cast::<c_void>());
        }
        let all = told
            .into_iter()
            .map(|(mine, theirs, what, count, ticks, votes, key)| Conflict {
                mine: self.module.site(mine).unwrap_or_default(),
                theirs: self.module.site(theirs),
                what: match what {
                    0 => What::Entry,
                    1 => What::Bucket,
                    2 => What::Full,
                    3 => What::Write,
                    5 => What::Room,
                    6 => What::Pool,
                    7 => What::Ways,
                    _ => What::Other,
                },
                // As `enum transact_why` numbers them.
                alone: (5..=7).contains(&what).then(|| {
                    let whys = self.module.reasons_alone();
                    whys.get(what as usize - 5).cloned().unwrap_or_default()
                }),
                count,
                ticks,
                key: key.map(|key| (key, votes)),
            });
        all.collect()
    }
}

type Told = Vec<(u32, u32, u32, u64, u64, u64, Option<Vec<u8>>)>;

/// Receives one conflict from the module.
unsafe extern "C" fn take(context: *mut c_void, conflict: *const abi::Conflict) {
    // SAFETY: `conflicts` passes the address of its vector and keeps it alive.
    let told = unsafe { &mut *context.cast::<Told>() };
    // SAFETY: the module hands over one conflict, which lives during the call.
    let Some(c) = (unsafe { conflict.as_ref() }) else {
        return;
    };
    let key = (!c.key.is_null()).then(|| {
        // SAFETY: `key_bytes` bytes of a key, as abi.h says.
        unsafe { std::slice::from_raw_parts(c.key, c.key_bytes as usize) }.to_vec()
    });
    told.push((c.mine, c.theirs, c.what, c.count, c.ticks, c.votes, key));
}
