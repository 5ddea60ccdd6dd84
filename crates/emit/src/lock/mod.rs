//! Treatment `lock`: some objects are one for all workers of a process, guarded by a read/write lock with a
//! line for each core (fastpath/sync/lock.h); each worker has its own instance of the others.
//!
//! Pereira et al., Automatic Parallelization of Software Network Functions (NSDI 2024), section 4. A packet
//! runs as a reader; where it would change a shared object it stops, all lines are taken, and it runs
//! again from the beginning as the only one. So each packet program is there twice:
//!
//! - `run`, as in [`crate::alone`], for who has all lines;
//! - `reader`, which ends in `LOCK_RESTART` at the first step that could change a shared object.
//!
//! Until it is sure that a reader comes to its end, nothing that it does may show (`Reader`): a store to the
//! packet or to the worker's own state from which such a step can be reached keeps what it overwrites
//! (fastpath/sync/undo.h), a refresh of an own entry its stamp, and a call with another effect from which one can be
//! reached makes a writer of the packet at once. Draws are a function of the packet's number and begin again, so
//! that the second run meets what the first one met. Time may have gone on: it never goes back in the order of
//! commits (fastpath/sync/lock.h), so that a packet may get a later time than it came with. A burst is one hold of the reader's line, which is
//! given up between packets when a writer waits; value pointers live within a packet, so under the lock.
//!
//! What is written when: inserting, deleting, overwriting, leasing, and storing through a value pointer
//! write, unless what is to be there is there already, or nothing is free and nothing will have expired by then: a
//! refusal is counted per core. So does every lookup in an LRU map (it moves the entry),
//! every atomic operation, a lock in a value, adding to a sketch, and all that queues, stacks and ring
//! buffers do but to look. Refreshing an entry of a map or a lease does not: each core has its own stamps
//! (fastpath/sync/stamps.h), and a reader becomes a writer only where another core's might keep alive what
//! its own do not. `EVERY`, `ON_START` and `ON_STOP` write if they work on shared objects.
//! A program with tail calls or with timers in values runs all its packets as writers.
//!
//! A counter that is only added to needs no lock: give each worker its own and add them up when they are read
//! (treatment `merge`).

mod burst;
mod effects;
mod handlers;
mod reader;
pub(crate) mod text;

use millrace_check::Checked;
use millrace_check::facts::{Flow, Step};
use millrace_object::Program;
use millrace_object::program::ObjectId;
use millrace_place::{Held, Placement};

pub(crate) use burst::{Burst, bursts};
pub(crate) use effects::reads_clock;
pub use handlers::{apart, obstacle, repeated, together};
pub(crate) use reader::Reader;

use crate::error::Error;

/// What is made of a program for workers that share state.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    /// which objects are locked, and which allocators lease only numbers that come home (fastpath/state/homes.h); all
    /// others are each worker's own
    pub placement: Placement,
    /// none but for tests
    pub test: Option<Test>,
}

/// A module whose threads are switched wherever they touch shared state, at places that a seed chooses
/// (fastpath/sync/points.h): for tests of what comes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Test {
    /// chooses the places
    pub seed: u64,
    /// writers take no lock, so that something wrong does come of it
    pub dropped: bool,
}

impl Sharing {
    /// Whether workers share any object.
    #[must_use]
    pub fn any(&self) -> bool {
        self.placement.locks()
    }

    /// Over how many indexes an allocator's numbers are told apart; 0: a lease takes any.
    #[must_use]
    pub fn homes(&self, object: ObjectId) -> u32 {
        let place = self.placement.objects.get(object.0);
        let home = place.is_some_and(|place| place.home.is_some());
        if home { self.placement.indexes } else { 0 }
    }

    /// Whether workers share this object.
    #[must_use]
    pub fn is_shared(&self, object: ObjectId) -> bool {
        let place = self.placement.objects.get(object.0);
        place.is_some_and(|place| place.held == Held::Locked)
    }
}

/// C source of a module whose workers share state; without a shared object that of [`crate::alone::emit`].
///
/// # Errors
/// As [`crate::alone::emit`]; [`Error::Unsupported`] also for objects that cannot be shared, and handlers that
/// work both on shared state and on each worker's own.
pub fn emit(
    program: &Program,
    checked: &Checked,
    sharing: &Sharing,
    file: &str,
) -> Result<String, Error> {
    check(program, checked, sharing)?;
    crate::alone::emit_shared(program, checked, sharing, file)
}

/// Whether every object that is to be shared can be.
fn check(program: &Program, checked: &Checked, sharing: &Sharing) -> Result<(), Error> {
    let refused = |name: &str, what: &str| Error::Unsupported {
        place: program.name.clone(),
        what: format!("sharing {name} under the lock: {what}; give each worker its own"),
    };
    for (index, object) in program.objects.iter().enumerate() {
        let obstacle = obstacle(program, checked, ObjectId(index));
        if let (true, Some(what)) = (sharing.is_shared(ObjectId(index)), obstacle) {
            return Err(refused(&object.name, what));
        }
    }
    Ok(())
}

/// Whether a test may switch threads before this step.
pub(crate) fn switches(program: &Program, sharing: &Sharing, step: &Step) -> bool {
    use effects::Effect::{Ask, Compare, Read, Write};
    sharing.test.is_some()
        && matches!(
            effects::effect(program, sharing, step),
            Ask | Compare | Read | Write
        )
}

/// Whether a handler works on shared state.
///
/// # Errors
/// [`Error::Unsupported`] if on each worker's own as well: it can run neither once nor once a worker.
pub(crate) fn handler_shares(
    program: &Program,
    flow: &Flow,
    sharing: &Sharing,
    name: &str,
) -> Result<bool, Error> {
    let touched = effects::touched(program, flow);
    let shared = touched.iter().find(|o| sharing.is_shared(**o));
    let own = touched.iter().find(|o| {
        let object = program.objects.get(o.0);
        !sharing.is_shared(**o) && object.is_some_and(|o| !o.read_only)
    });
    let called = |o: &ObjectId| program.objects.get(o.0).map_or("?", |o| o.name.as_str());
    match (shared, own) {
        (Some(shared), Some(own)) => Err(Error::Unsupported {
            place: program.name.clone(),
            what: format!(
                "{name}, which works on {} (shared under the lock) and on {} (each worker's own); treat both alike",
                called(shared),
                called(own)
            ),
        }),
        (shared, _) => Ok(shared.is_some()),
    }
}
