//! Insertions that found a worker's part of an object full while others had room: on one core they would have
//! succeeded. Entries are counted only then, since counting looks at all of them.

use std::collections::BTreeMap;

use super::window::Batch;
use crate::module::Module;
use crate::share::Share;

/// What is known of the divided objects.
pub struct Pressure {
    objects: Vec<Divided>,
    /// counted so far, by name
    pub relaxations: BTreeMap<String, u64>,
}

struct Divided {
    /// index in the module
    object: usize,
    whole: u64,
    name: &'static str,
    /// insertions that found a part full since entries were counted
    full: u64,
}

impl Pressure {
    /// For a module whose objects stand so on the workers.
    pub fn new(module: &Module, shares: &[Share]) -> Self {
        let objects = module.objects().iter().zip(shares).enumerate();
        let divided = objects.filter_map(|(object, (info, share))| {
            Some(Divided {
                object,
                whole: share.bound(info.kind)?,
                name: info.kind.when_full().name(),
                full: 0,
            })
        });
        Self {
            objects: divided.collect(),
            relaxations: BTreeMap::new(),
        }
    }

    /// The divided objects.
    pub fn objects(&self) -> impl Iterator<Item = usize> {
        self.objects.iter().map(|d| d.object)
    }

    /// Takes what the workers say at the end of a window.
    pub fn add(&mut self, batches: &[Batch]) {
        for (at, divided) in self.objects.iter_mut().enumerate() {
            let parts = || batches.iter().filter_map(|b| b.parts.get(at));
            divided.full += parts().map(|p| p.full).sum::<u64>();
            if batches.iter().any(|b| b.count) {
                let entries = parts().map(|p| p.entries).sum::<Option<u64>>();
                divided.settle(entries, &mut self.relaxations);
            }
        }
    }

    /// Whether entries are to be counted.
    pub fn counts(&self) -> bool {
        self.objects.iter().any(|d| d.full > 0)
    }

    /// What is left at the end, where the objects have these entries.
    pub fn finish(&mut self, entries: impl Fn(usize) -> Option<u64>) {
        for divided in &mut self.objects {
            divided.settle(entries(divided.object), &mut self.relaxations);
        }
    }
}

impl Divided {
    /// Decides over the insertions since the last time: they differ from one core where all parts together have
    /// room. What cannot be counted is taken to have room.
    fn settle(&mut self, entries: Option<u64>, relaxations: &mut BTreeMap<String, u64>) {
        let full = std::mem::take(&mut self.full);
        if full > 0 && entries.is_none_or(|entries| entries < self.whole) {
            *relaxations.entry(self.name.to_owned()).or_default() += full;
        }
    }
}
