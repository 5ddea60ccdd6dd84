//! Where packets come home that carry leased numbers.
//!
//! An allocator on several workers leases to a packet only numbers whose index of the indirection table is the
//! packet's own (fastpath/state/homes.h), so that what comes back with the number comes to the worker that leased it. The
//! host says of each packet which index brought it, and of each number which index would.

use millrace_place::Placement;
use millrace_steer::{Owners, Steering};

use super::Module;

/// The indexes of packets and of numbers.
#[derive(Clone)]
pub struct Homes {
    owners: Vec<Owners>,
    indexes: u32,
    tables: Vec<Option<Vec<u32>>>,
}

impl std::fmt::Debug for Homes {
    /// Without the indexes of numbers, from which the key of the steering can be worked out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Homes")
            .field("owners", &self.owners)
            .field("indexes", &self.indexes)
            .finish_non_exhaustive()
    }
}

impl Homes {
    /// Of packets as these owners steer them, a port each, over so many indexes, a power of two that does not exceed
    /// the length of their tables; and of the numbers of each object of the module, in its order, none for those that are
    /// no such allocators.
    #[must_use]
    pub fn new(owners: Vec<Owners>, indexes: u32, tables: Vec<Option<Vec<u32>>>) -> Self {
        Self {
            owners,
            indexes,
            tables,
        }
    }

    /// As a placement says; none where no numbers come home.
    #[must_use]
    pub fn of_placement(placement: &Placement) -> Option<Self> {
        placement.coming_home().next()?;
        let owners = placement.steering.iter().map(Steering::owners);
        let tables = placement.objects.iter().map(|o| o.home.clone());
        Some(Self::new(
            owners.collect(),
            placement.indexes,
            tables.collect(),
        ))
    }

    /// The index that brings a packet of a port to its worker; 0 for a port that there is not.
    #[inline]
    #[must_use]
    pub fn of(&self, port: u32, frame: &[u8]) -> u32 {
        let owners = self.owners.get(port as usize);
        owners.map_or(0, |o| o.index(frame) & self.indexes.saturating_sub(1))
    }

    /// For `mr_config`: one pointer an object, to as many indexes as it has numbers.
    pub(super) fn pointers(&self, module: &Module) -> Result<Vec<*const u32>, String> {
        let objects = module.objects().iter().enumerate();
        let pointers = objects.map(|(i, object)| {
            let Some(Some(table)) = self.tables.get(i) else {
                return Ok(std::ptr::null());
            };
            if table.len() as u64 == object.capacity {
                return Ok(table.as_ptr());
            }
            Err(format!(
                "`{}` leases {} numbers, and homes are known of {}",
                object.name,
                object.capacity,
                table.len()
            ))
        });
        // Never empty: the pointer to the first must be one.
        let end = std::iter::once(Ok(std::ptr::null()));
        pointers.chain(end).collect()
    }
}
