//! Numbers of which each worker has a part (fastpath/state/distributed.h): how parts are one, and for tests what packets saw of
//! them.

use std::ffi::c_void;

use super::{Instance, Module, ModuleError, abi};

/// How parts of the numbers in a value, 8 bytes each, are one: a bit a number. Of those in neither the sum counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// the largest part counts
    pub max: u64,
    /// the bits of all parts count
    pub or: u64,
}

impl Members {
    /// Two parts of number `member` as one.
    #[must_use]
    pub fn merged(self, member: usize, a: u64, b: u64) -> u64 {
        let is = |mask: u64| mask.checked_shr(member as u32).unwrap_or(0) & 1 == 1;
        match () {
            () if is(self.max) => a.max(b),
            () if is(self.or) => a | b,
            () => a.wrapping_add(b),
        }
    }

    /// Adds a part to another one.
    pub fn join(self, to: &mut [u64], part: &[u64]) {
        for (i, (to, from)) in to.iter_mut().zip(part).enumerate() {
            *to = self.merged(i, *to, *from);
        }
    }
}

/// What a worker holds behind a packet of numbers of which each worker has a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartsSeen {
    /// the object's place among the objects
    pub object: usize,
    /// the packet has read it
    pub read: bool,
    /// ns: time of the packet at which the others' parts were taken
    pub at: u64,
    /// of its own part as it is published
    pub version: u64,
    /// its own part
    pub own: Vec<u64>,
    /// the others' parts as one
    pub others: Vec<u64>,
    /// of which versions these are, by worker
    pub versions: Vec<u64>,
}

impl Module {
    /// How parts of an object's numbers are one.
    #[must_use]
    pub fn members(&self, object: usize) -> Members {
        let found = self.object_table().get(object);
        found.map_or(Members::default(), |o| Members {
            max: o.max,
            or: o.or,
        })
    }

    fn parts(&self) -> Option<&abi::Parts> {
        // SAFETY: null, or a constant of the library, which is loaded as long as the module lives.
        unsafe { self.table().parts.as_ref() }
    }
}

impl Instance {
    /// What it holds of each object of such numbers since the last call; nothing of a module that was not made for that.
    pub fn parts(&mut self, mut sink: impl FnMut(PartsSeen)) {
        let Some(note) = self.module.parts().and_then(|p| p.note) else {
            return;
        };
        let mut sink: &mut dyn FnMut(PartsSeen) = &mut sink;
        // SAFETY: `take` gets back exactly the context given here, which outlives the call.
        unsafe { note(self.memory.as_ptr(), take, (&raw mut sink).cast::<c_void>()) };
    }

    /// From here on an object of such numbers holds this, and no part of another worker.
    ///
    /// # Errors
    /// It is none, there are more or fewer numbers, or the module was not made for that.
    pub fn feed(&mut self, object: usize, own: &[u64], others: &[u64]) -> Result<(), ModuleError> {
        let module = self.module.clone();
        let info = module.objects().get(object);
        let fits = info.is_some_and(|o| [own.len(), others.len()] == [o.value_bytes / 8; 2]);
        let feed = module.parts().and_then(|p| p.feed).filter(|_| fits);
        let fed = feed.map(|feed| {
            // SAFETY: both have as many numbers as the object has members (`fits`), and outlive the call, which copies them.
            unsafe {
                feed(
                    self.memory.as_ptr(),
                    object as u32,
                    own.as_ptr(),
                    others.as_ptr(),
                )
            }
        });
        match fed {
            Some(0) => Ok(()),
            _ => Err(ModuleError::Control {
                object: info.map_or_else(String::new, |o| o.name.clone()),
                operation: "feed",
                what: "it takes no parts".into(),
            }),
        }
    }
}

/// Receives what one object holds from the module.
unsafe extern "C" fn take(context: *mut c_void, seen: *const abi::PartsSeen) {
    // SAFETY: `note` passes the address of its `&mut dyn FnMut` and keeps it alive.
    let sink = unsafe { &mut *context.cast::<&mut dyn FnMut(PartsSeen)>() };
    // SAFETY: the module hands over one, which lives during the call.
    let Some(seen) = (unsafe { seen.as_ref() }) else {
        return;
    };
    let numbers = |from: *const u64, count: u32| match from.is_null() {
        true => Vec::new(),
        // SAFETY: the module says how many there are, and none is written meanwhile: they are the instance's own.
        false => unsafe { std::slice::from_raw_parts(from, count as usize) }.to_vec(),
    };
    sink(PartsSeen {
        object: seen.object as usize,
        read: seen.read != 0,
        at: seen.at,
        version: seen.version,
        own: numbers(seen.own, seen.members),
        others: numbers(seen.others, seen.members),
        versions: numbers(seen.versions, seen.workers),
    });
}
