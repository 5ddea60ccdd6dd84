//! Consequences of sharing an object for the rest of the program: for handlers that work on it, and for time.

use std::collections::BTreeSet;

use millrace_check::Checked;
use millrace_object::Program;
use millrace_object::program::{ObjectId, Role, StateObject};

use super::effects::{reads_clock, touched};

/// The part of an object's `expire_after` by which the times of workers may be apart (fastpath/README.md, Shared by
/// workers).
const PART: u64 = 64;

/// How far apart (ns) the times of workers may be where a program computes with the packet's time: under the lock a
/// packet gets a later one by up to this, which is what packets wait for at a busy core.
const CLOCK: u64 = 1_000_000;

/// Why an object cannot be shared; none where it can.
#[must_use]
pub fn obstacle(program: &Program, checked: &Checked, object: ObjectId) -> Option<&'static str> {
    let object = program.objects.get(object.0)?;
    if object.is_shape() {
        Some("it is found in another map")
    } else if found_in_another(program, checked, object) {
        Some("the program may find it in a map of maps, and does not see that it is shared")
    } else if object.timer.is_some() {
        Some("its values have timers")
    } else if object.kind.holds_maps() || object.kind.holds_programs() {
        Some("it holds maps or programs")
    } else if object.read_only {
        Some("it is constant")
    } else {
        None
    }
}

/// Whether the program comes to maps in a map of maps of which this may be one.
fn found_in_another(program: &Program, checked: &Checked, object: &StateObject) -> bool {
    let shapes = program.objects.iter().enumerate();
    let mut shapes = shapes.filter(|(_, shape)| shape.is_shape() && object.fits(shape));
    shapes.any(|(shape, _)| {
        let mut running = checked.running(program);
        running.any(|r| touched(program, r.flow).contains(&ObjectId(shape)))
    })
}

/// Objects that are shared, and with them all others that a handler without a packet (`ON_START`, `ON_STOP`,
/// `EVERY`, `ON_EXPIRY` with its set) works on beside a shared one: such a handler runs once for all workers, so that each of them having its own
/// would leave those of the others behind. To share an object is right whatever else could be done with it.
#[must_use]
pub fn together(
    program: &Program,
    checked: &Checked,
    shared: &BTreeSet<ObjectId>,
) -> BTreeSet<ObjectId> {
    let mut all = shared.clone();
    let handlers = checked.running(program);
    let handlers = handlers.filter(|r| is_handler(r.role) || r.role == Role::Expiry);
    let touched: Vec<_> = handlers.map(|r| touched(program, r.flow)).collect();
    loop {
        let before = all.len();
        for of in &touched {
            let written = |id: &&ObjectId| program.objects.get(id.0).is_some_and(|o| !o.read_only);
            if !of.is_disjoint(&all) {
                all.extend(of.iter().filter(written));
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// Objects that a handler works on which every worker runs for itself (`EVERY`, `ON_STOP`): what it adds to a number
/// it would add as often as there are workers.
#[must_use]
pub fn repeated(program: &Program, checked: &Checked) -> BTreeSet<ObjectId> {
    let handlers = checked.running(program);
    let handlers = handlers.filter(|r| is_handler(r.role) && r.role != Role::OnStart);
    handlers.flat_map(|r| touched(program, r.flow)).collect()
}

/// Objects that a handler without a packet works on (`ON_START`, `EVERY`, `ON_STOP`).
#[must_use]
pub fn handled(program: &Program, checked: &Checked) -> BTreeSet<ObjectId> {
    let handlers = checked.running(program).filter(|r| is_handler(r.role));
    handlers.flat_map(|r| touched(program, r.flow)).collect()
}

fn is_handler(role: Role) -> bool {
    matches!(role, Role::OnStart | Role::OnStop | Role::Every { .. })
}

/// How far apart in time (ns) packets may be that workers do at the same moment: a 64th of what the soonest entry
/// of a shared object lives, no more than the period of a timer that works on one, and no more than a millisecond where
/// a program that works on one computes with the time. None: as far as they like.
#[must_use]
pub fn apart(program: &Program, checked: &Checked, shared: &BTreeSet<ObjectId>) -> Option<u64> {
    let objects = shared.iter().filter_map(|id| program.objects.get(id.0));
    let lives = objects.map(|o| o.expire_after).filter(|t| *t > 0);
    let periods = checked.running(program).filter_map(|r| match r.role {
        Role::Every { period } if !touched(program, r.flow).is_disjoint(shared) => Some(period),
        _ => None,
    });
    let clocks = checked
        .running(program)
        .filter(|r| reads_clock(r.flow) && !touched(program, r.flow).is_disjoint(shared));
    let lives = lives.map(|t| (t / PART).max(1));
    lives.chain(periods).chain(clocks.map(|_| CLOCK)).min()
}
