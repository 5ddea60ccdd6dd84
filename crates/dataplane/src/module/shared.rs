//! State that the instances of several workers have in common (treatment `lock`).

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

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
}

// SAFETY: nothing but the module's functions touches the memory, on behalf of instances; abi.h promises
// that they lock by themselves.
unsafe impl Send for Shared {}
// SAFETY: as above; a reference gives an address and constants.
unsafe impl Sync for Shared {}

impl Shared {
    /// Makes it for so many workers, at least 1.
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
