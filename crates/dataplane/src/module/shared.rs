//! State that the instances of several workers have in common (treatment `lock`).

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::instance::{errno, initial, seen};
use super::{Config, Module, ModuleError, abi};

/// One copy of what a module's instances share: made before them, released behind the last of them.
///
/// Of a module that shares nothing ([`Module::shares`]) it is empty, so that hosts need not ask.
#[derive(Debug)]
pub struct Shared {
    module: Arc<Module>,
    memory: NonNull<abi::Shared>,
    layout: Layout,
    workers: u32,
    /// workers that have stopped
    stopped: AtomicU32,
}

// SAFETY: nothing but the module's functions touches the memory, on behalf of instances; abi.h promises
// that they lock by themselves.
unsafe impl Send for Shared {}
// SAFETY: as above; a reference gives an address and constants.
unsafe impl Sync for Shared {}

impl Shared {
    /// Makes it for this many workers, at least 1.
    ///
    /// # Errors
    /// As [`super::Instance::create`]; also for no worker, or more than the module can take.
    pub fn create(
        module: Arc<Module>,
        config: &Config,
        workers: u32,
    ) -> Result<Arc<Self>, ModuleError> {
        let failed = |what: String| ModuleError::Create {
            path: module.path.clone(),
            what,
        };
        if workers == 0 {
            return Err(failed("state for no worker".into()));
        }
        let initial = initial(&module, config)?;
        let table = module.table();
        let layout = Layout::from_size_align(
            table.shared_bytes.max(1) as usize,
            table.shared_align.max(1) as usize,
        )
        .map_err(|e| failed(e.to_string()))?;
        // SAFETY: the layout has a size of at least 1.
        let raw = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(raw.cast::<abi::Shared>()) else {
            handle_alloc_error(layout)
        };
        let seen = abi::Config {
            workers,
            ..seen(config, &initial)
        };
        let create = table.create_shared.filter(|_| module.shares());
        let result = create.map_or(0, |create| {
            // SAFETY: `memory` is zeroed, of the size and alignment that the module asked for; `seen` and
            // what it points to outlive the call, which copies what it needs (abi.h).
            unsafe { create(memory.as_ptr(), &raw const seen) }
        });
        if result != 0 {
            // SAFETY: allocated above with this layout; a failed `create_shared` leaves nothing behind.
            unsafe { dealloc(raw, layout) };
            return Err(failed(errno(result)));
        }
        Ok(Arc::new(Self {
            module,
            memory,
            layout,
            workers,
            stopped: AtomicU32::new(0),
        }))
    }

    /// How many workers may join.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Counts a worker that stops: whether all others have.
    pub(super) fn is_last(&self) -> bool {
        self.stopped.fetch_add(1, Ordering::AcqRel) + 1 == self.workers
    }

    /// For `mr_config`: null where nothing is shared.
    pub(super) fn memory(&self) -> *mut abi::Shared {
        if self.module.shares() {
            self.memory.as_ptr()
        } else {
            std::ptr::null_mut()
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let destroy = self.module.table().destroy_shared;
        if let Some(destroy) = destroy.filter(|_| self.module.shares()) {
            // SAFETY: created once, destroyed once, behind all instances, which hold references to it.
            unsafe { destroy(self.memory.as_ptr()) };
        }
        // SAFETY: allocated in `create` with this layout; nothing refers to it any more.
        unsafe { dealloc(self.memory.as_ptr().cast::<u8>(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::{Entry, Instance};
    use crate::packet::{Arrival, Burst, Layout};
    use crate::testing;
    use std::path::Path;

    fn module(name: &str, define: &[&str]) -> Result<Module, ModuleError> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shared.c");
        Module::load(&testing::compile_module(name, &source, define))
    }

    fn number(instance: &mut Instance, object: usize, key: u8) -> u64 {
        let value = instance.get(object, &[key], 0).unwrap().unwrap();
        u64::from_ne_bytes(value.try_into().unwrap())
    }

    #[test]
    fn workers_share_what_is_shared_and_nothing_else() {
        let module = Arc::new(module("shared", &[]).unwrap());
        assert!(module.shares() && module.is_shared(0) && !module.is_shared(1));
        let config = Config {
            entries: vec![Entry::new(0, vec![0], 1000_u64.to_ne_bytes().to_vec())],
            ..Config::default()
        };
        let shared = Shared::create(module, &config, 3).unwrap();
        let instances: Vec<Instance> = (0..3)
            .map(|w| Instance::join(&config, &shared, w).unwrap())
            .collect();
        let error = Instance::join(&config, &shared, 3).unwrap_err();
        assert!(error.to_string().contains("worker 3 of 3"), "{error}");

        let run = |mut instance: Instance| {
            let mut commits = Vec::new();
            instance.start(0);
            for _ in 0..100 {
                let mut burst = Burst::new(8, 1, Layout::Pooled);
                for length in [2, 1, 2, 2] {
                    assert!(burst.push(&[0; 2][..length], Arrival::default()));
                }
                instance.burst(0, true, &mut burst);
                commits.extend((0..4).map(|i| burst.commit(i).unwrap()));
                assert_eq!(burst.commit(4), None);
            }
            instance.stop(0);
            (instance, commits)
        };
        let (mut instances, commits): (Vec<_>, Vec<_>) = std::thread::scope(|scope| {
            let threads: Vec<_> = (instances.into_iter())
                .map(|instance| scope.spawn(|| run(instance)))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).unzip()
        });
        // Entries are set once; every writer has counted.
        assert_eq!(number(&mut instances[2], 0, 0), 1000 + 3 * 300);
        assert_eq!(number(&mut instances[1], 0, 1), 1, "started once");
        assert_eq!(
            number(&mut instances[1], 0, 2),
            1200,
            "stopped once, behind all"
        );
        assert_eq!(number(&mut instances[1], 1, 0), 400);
        assert!(commits.iter().all(|c| c.is_sorted()));
        let mut written: Vec<u64> = commits.concat();
        written.retain(|c| c % 2 == 0);
        written.sort_unstable();
        let all: Vec<u64> = (1..=900).map(|c| 2 * c).collect();
        assert_eq!(written, all);
        drop(shared);
        drop(instances);
    }

    #[test]
    fn one_instance_shares_with_nobody() {
        let module = Arc::new(module("shared_alone", &[]).unwrap());
        let mut instance = Instance::create(module.clone(), &Config::default()).unwrap();
        assert_eq!((instance.worker(), number(&mut instance, 0, 0)), (0, 0));
        assert!(Shared::create(module.clone(), &Config::default(), 0).is_err());
        // More than the lock has lines for.
        assert!(Shared::create(module, &Config::default(), 5000).is_err());
        // A module that shares nothing: hosts need not ask.
        let shared = Shared::create(testing::fixture(), &Config::default(), 2).unwrap();
        assert!(Instance::join(&Config::default(), &shared, 1).is_ok());
    }

    #[test]
    fn a_module_that_cannot_make_it_is_refused() {
        let refused = module("shared_unmade", &["-DSHARED_CANNOT_BE_MADE"]);
        assert!(matches!(refused, Err(ModuleError::Unfit { what, .. }) if what.contains("share")));
    }
}
