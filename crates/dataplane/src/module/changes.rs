//! Places of an object that have changed since they were told last (`fastpath/state/notes.h`).

use std::ffi::{c_int, c_void};
use std::ops::Range;

use super::{Instance, Module, ModuleError, abi};

/// What is at a place that has changed.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'a> {
    /// which place of the object
    pub place: u64,
    /// the entry there; none: nothing
    pub entry: Option<ChangedEntry<'a>>,
}

/// An entry that has changed.
#[derive(Clone, Copy, Debug)]
pub struct ChangedEntry<'a> {
    /// its key
    pub key: &'a [u8],
    /// its value
    pub value: &'a [u8],
    /// when it was last refreshed, ns; 0 where entries do not expire
    pub stamp: u64,
    /// its key is the one that was told of this place last
    pub same: bool,
    /// of an allocator: the index of the table at which the number comes home
    pub home: u64,
}

impl Module {
    /// Whether an object notes which of its places change.
    #[must_use]
    pub fn notes(&self, index: usize) -> bool {
        let object = self.object_table().get(index);
        object.is_some_and(|o| o.changes.is_some())
    }
}

struct Changing<'a> {
    key_bytes: usize,
    value_bytes: usize,
    each: &'a mut dyn FnMut(Changed<'_>),
}

impl Instance {
    /// Tells at most `most` places of an object that have changed since they were told last, those of `noted` among them whether or not they
    /// have. How many are left; none: the object does not note them.
    ///
    /// # Errors
    /// [`ModuleError::Control`] when there is no such object.
    pub fn changes(
        &mut self,
        index: usize,
        noted: Range<u64>,
        most: u64,
        each: &mut dyn FnMut(Changed<'_>),
    ) -> Result<Option<u64>, ModuleError> {
        let (info, object) = self.object(index, "changes")?;
        let Some(changes) = object.changes else {
            return Ok(None);
        };
        let mut changing = Changing {
            key_bytes: info.key_bytes,
            value_bytes: info.value_bytes,
            each,
        };
        // SAFETY: a control function of this module on its own created instance; `tell` gets back exactly the context given here, which
        // outlives the call.
        let left = unsafe {
            changes(
                self.memory.as_ptr(),
                noted.start,
                noted.end,
                most,
                tell,
                (&raw mut changing).cast::<c_void>(),
            )
        };
        Ok(Some(left))
    }
}

/// Receives one place from the module.
unsafe extern "C" fn tell(context: *mut c_void, piece: *const abi::Saved) -> c_int {
    // SAFETY: `changes` passes the address of its `Changing` and keeps it alive; the module hands a piece that is valid during
    // this call.
    let (changing, piece) = unsafe { (&mut *context.cast::<Changing<'_>>(), &*piece) };
    let entry = match piece.key.is_null() || piece.value.is_null() {
        true => None,
        // SAFETY: abi.h promises `key_bytes` at the key and `value_bytes` at the value of an entry.
        false => Some(unsafe {
            ChangedEntry {
                key: std::slice::from_raw_parts(piece.key, changing.key_bytes),
                value: std::slice::from_raw_parts(piece.value, changing.value_bytes),
                stamp: piece.stamp,
                same: piece.length == 1,
                home: piece.order,
            }
        }),
    };
    (changing.each)(Changed {
        place: piece.place,
        entry,
    });
    0
}
