//! What is done between two bursts of a worker, and what takes it back.

use millrace_dataplane::Instance;
use millrace_dataplane::mailbox::Desk;
use millrace_dataplane::worker::change::{self, Changed, Own};
use millrace_dataplane::worker::meeting::Seat;
use millrace_object::program::Param;

use super::{Edits, Outcome, Shown};
use crate::answer::Result;
use crate::edit::{self, Change};
use crate::exposed::Exposed;
use crate::trouble::Trouble;

/// Why a worker has not made its part of a reload.
pub(super) struct Failed {
    pub trouble: Trouble,
    /// it is another worker that could not
    pub elsewhere: bool,
    /// what was to come in
    pub fresh: Vec<Own>,
}

/// All of a reload, between two bursts of a worker, and as all other workers do.
pub(super) fn reloaded(
    desk: &mut Desk<'_>,
    part: change::Part,
    seat: Seat,
    all: &[Edits],
) -> std::result::Result<(Changed, Vec<Outcome>), Failed> {
    let failed = |trouble, elsewhere, fresh| Failed {
        trouble,
        elsewhere,
        fresh,
    };
    let Some(chain) = desk.chain.as_mut() else {
        return Err(failed(crate::answer::not_started(), false, part.given_up()));
    };
    let refused = |e: Box<change::Refused>| {
        let trouble = Trouble::new("refused", e.why)
            .help("nothing was changed; give the new object at least the old one's capacity");
        failed(trouble, e.elsewhere, e.fresh)
    };
    let mut prepared = chain.prepare(part, &seat).map_err(refused)?;
    let mut undo = Vec::new();
    let done = edited(desk, all, &mut undo, Some(&mut prepared));
    // All have made them, or all take back what they made.
    let agreed = seat.meet(done.is_ok()) == Some(true);
    let why = match (done, desk.chain.as_mut()) {
        (Ok(outcomes), Some(chain)) if agreed => {
            let changed = chain.commit(prepared);
            seat.leave();
            return Ok((changed, outcomes));
        }
        (Err(trouble), _) => (trouble, false),
        (Ok(_), None) => (crate::answer::not_started(), false),
        (Ok(_), Some(_)) => {
            let other = Trouble::new("refused", "another worker cannot make the change");
            (
                other.help("nothing was changed: the run goes on as it was"),
                true,
            )
        }
    };
    undone(desk, undo, Some(&mut prepared));
    Err(failed(why.0, why.1, prepared.given_up()))
}

/// The state of an element that is in the chain, or prepared for it.
pub(super) fn state_of<'a>(
    desk: &'a mut Desk<'_>,
    prepared: Option<&'a mut change::Prepared>,
    id: u64,
) -> Option<&'a mut Instance> {
    let new = prepared.and_then(|prepared| prepared.state(id));
    match new {
        Some(instance) => Some(instance),
        None => desk.state(id),
    }
}

/// Sets parameters and entries; `undo` is what takes back what was set, by element.
pub(super) fn edited(
    desk: &mut Desk<'_>,
    all: &[Edits],
    undo: &mut Vec<(u64, Vec<Change>)>,
    mut prepared: Option<&mut change::Prepared>,
) -> Result<Vec<Outcome>> {
    let now = desk.now;
    let mut outcomes = Vec::new();
    let worker = desk.worker;
    for edits in all {
        let instance = state_of(desk, prepared.as_deref_mut(), edits.id);
        let instance = instance.ok_or_else(|| gone(&edits.name))?;
        let (mut outcome, mut taken) = (Outcome::default(), Vec::new());
        let done = set((instance, worker), edits, now, &mut taken, &mut outcome);
        undo.push((edits.id, taken));
        done.map_err(|t| Trouble {
            what: format!("{}: {}", edits.name, t.what),
            help: Some("nothing was changed: the run goes on as it was".to_owned()),
            ..t
        })?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

pub(super) fn set(
    (instance, worker): (&mut Instance, usize),
    edits: &Edits,
    now: u64,
    undo: &mut Vec<Change>,
    outcome: &mut Outcome,
) -> Result<()> {
    for (param, value) in edits.params.iter() {
        if let Some((shown, change)) = differs(instance, &edits.exposed, param, value, now)? {
            edit::apply((instance, worker), &[change], &edits.exposed, now, undo)?;
            outcome.params.push(shown);
        }
    }
    let (copies, parts) = edit::apply(
        (instance, worker),
        &edits.changes,
        &edits.exposed,
        now,
        undo,
    )?;
    (outcome.done, outcome.parts) = (copies, parts);
    Ok(())
}

/// Takes back what was set.
pub(super) fn undone(
    desk: &mut Desk<'_>,
    undo: Vec<(u64, Vec<Change>)>,
    mut prepared: Option<&mut change::Prepared>,
) {
    let now = desk.now;
    for (id, changes) in undo.into_iter().rev() {
        if let Some(instance) = state_of(desk, prepared.as_deref_mut(), id) {
            edit::undo(instance, changes, now);
        }
    }
}

/// A parameter that has another value than it is to have: its name and both values, and what sets it.
pub(super) fn differs(
    instance: &mut Instance,
    exposed: &Exposed,
    param: &Param,
    value: &[u8],
    now: u64,
) -> Result<Option<(Shown, Change)>> {
    let (object, at) = (param.object.0, param.offset as usize);
    let key = vec![0; exposed.info(object).map_or(0, |o| o.key_bytes)];
    let section = instance
        .get(object, &key, now)
        .map_err(crate::answer::refused)?;
    let mut section = section.unwrap_or_default();
    let place = section.get_mut(at..at.saturating_add(value.len()));
    let place = place.ok_or_else(|| {
        Trouble::new(
            "refused",
            format!("the parameter {} is not in this module", param.name),
        )
        .help("build it again")
    })?;
    if place == value {
        return Ok(None);
    }
    let written = |bytes: &[u8]| param.written(param.decoded(bytes));
    let shown = (param.name.clone(), written(place), written(value));
    place.copy_from_slice(value);
    let change = Change::Set {
        object,
        key,
        value: section,
    };
    Ok(Some((shown, change)))
}

pub(super) fn gone(name: &str) -> Trouble {
    Trouble::new("no-such-element", format!("{name} is not in the chain"))
        .help("`millrace ctl chain show` lists those that are there")
}
