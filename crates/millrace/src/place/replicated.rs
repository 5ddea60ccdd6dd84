//! State on several workers by state-compute replication: what becomes of each object, or why it cannot be.

use std::collections::BTreeSet;

use millrace_history::{History, Refusal, effects};
use millrace_model::Model;
use millrace_model::model::Use;
use millrace_object::program::{ObjectId, StateObject};
use millrace_place::{Held, Place, Placement, Treatment};
use millrace_plan::Plan;
use millrace_steer::sequence::MAX_CORES;

use super::{Answer, BUILT, Stand, held, on_one};
use crate::Error;
use crate::written::Proved;

/// How each object is held where all that packets of others may change is replicated; what belongs to a worker alone (per-CPU
/// values, records) is each worker's own. And the rows. `strategy` is what was asked for; each worker has a part
/// of the objects `parted`.
///
/// # Errors
/// The function cannot be replicated: with the object, the author's line and the reason.
pub(super) fn objects(
    proved: &Proved<'_>,
    model: &Model,
    (strategy, cores): (&str, usize),
    parted: &BTreeSet<ObjectId>,
) -> Result<(Vec<Place>, History), Error> {
    let program = proved.program;
    if proved.built {
        return Err(on_one(&program.name, cores, BUILT));
    }
    if cores > usize::from(MAX_CORES) {
        return Err(Error::wrong(format!(
            "--cores {cores}: a sequencer sprays packets over at most {MAX_CORES} workers"
        )));
    }
    let history = History::beside(program, &proved.checked, parted);
    if let Some(refusal) = history.refusals.first() {
        let cannot = match parted.is_empty() {
            true => "be replicated",
            false => "have some objects sharded and others replicated",
        };
        return Err(refused(
            (&program.name, strategy, cannot),
            &history.refusals,
            refusal,
        ));
    }
    if !history.touches() {
        return Err(Error::no(format!(
            "--strategy {strategy}: no packet of {} changes state that another packet may find, so there is nothing to replicate",
            program.name
        ))
        .help("leave --strategy out: any packet may go to any worker"));
    }
    if let Some((object, why)) = program.objects.iter().enumerate().find_map(decides(model)) {
        return Err(Error::no(format!(
            "--strategy {strategy}: {} cannot be replicated: {object}: {why}",
            program.name,
        ))
        .help("leave --strategy out: `millrace plan` says what would be done instead"));
    }
    let place = |(at, object): (usize, &StateObject)| {
        let id = ObjectId(at);
        let held = match () {
            () if parted.contains(&id) => Held::Divided,
            () if effects::replicated(program, id) => Held::Replicated,
            () if effects::constant(program, id) => Held::Copied,
            () if object.kind.holds_records() => Held::Own { latest: false },
            // Each worker's packets add to its own; nothing else may read it (the history refuses that).
            () => match held::held(model, id, object, Treatment::Merge) {
                held @ Held::Merged { .. } if held.adds() => held,
                _ => held::held(model, id, object, Treatment::Spread),
            },
        };
        Place::new(object, held)
    };
    let objects: Vec<Place> = program.objects.iter().enumerate().map(place).collect();
    Ok((objects, history))
}

/// The name of an object that each core has for itself although something depends on what packets leave there, and why that does not do.
fn decides(model: &Model) -> impl Fn((usize, &StateObject)) -> Option<(String, &'static str)> {
    |(at, object)| {
        let found = model.objects.get(at)?;
        let apart = found.usage != Use::ReadWrite || found.parts.is_some();
        let why = match () {
            () if object.kind.per_cpu && !apart => effects::PER_CPU,
            () if millrace_plan::shows_records(model, ObjectId(at), object) => effects::RECORDS,
            () => return None,
        };
        Some((object.name.clone(), why))
    }
}

/// The arrangement on this many workers; `plan`: why, where that was found out and not asked for.
///
/// # Errors
/// As [`objects`].
pub(super) fn arrange(
    proved: &Proved<'_>,
    model: &Model,
    (cores, plan): (usize, Option<Plan>),
) -> Result<Answer, Error> {
    let program = proved.program;
    let (objects, history) = objects(proved, model, ("replicate", cores), &BTreeSet::new())?;
    let of = |treatment: Treatment| {
        let names = objects.iter().filter(|o| o.held.treatment() == treatment);
        names.map(|o| o.name.as_str()).collect::<Vec<_>>()
    };
    let replicas = objects.iter().zip(&program.objects);
    let bytes: u64 = replicas
        .filter(|(place, _)| place.held == Held::Replicated)
        .fold(0, |sum, (_, object)| sum.saturating_add(object.bytes()));
    let mut reasons = vec![
        format!(
            "{}: replicate on {cores} workers: {}",
            program.name,
            of(Treatment::Replicate).join(", ")
        ),
        format!(
            "a row of {} bytes for each packet that touches state; each worker has all of it, and the sequencer once: {} MiB \
             {} times",
            history.bytes,
            bytes.div_ceil(1 << 20),
            cores + 1
        ),
    ];
    let merged = of(Treatment::Merge);
    if !merged.is_empty() {
        let merged = merged.join(", ");
        reasons.push(format!("each worker adds to its own: {merged}"));
    }
    let placement = Placement {
        objects,
        ..Placement::default()
    };
    Ok(Stand { placement, reasons }.arrangement(cores, plan))
}

/// Why it cannot be, with the first reason on one line and all of them in the detail.
fn refused(
    (name, strategy, cannot): (&str, &str, &str),
    all: &[Refusal],
    first: &Refusal,
) -> Error {
    let line = |refusal: &Refusal| {
        let place = refusal.line.as_ref();
        let place = place.map_or_else(String::new, |l| format!("{}:{}: ", l.file, l.line));
        let object = refusal.object.as_ref();
        let object = object.map_or_else(String::new, |o| format!("{o}: "));
        format!("{place}{object}{}", refusal.reason)
    };
    let other = match strategy {
        "hybrid" => "replicate or lock",
        _ => "lock",
    };
    let error = Error::no(format!(
        "--strategy {strategy}: {name} cannot {cannot}: {}",
        line(first)
    ));
    Error {
        detail: Some(all.iter().map(line).collect::<Vec<_>>().join("\n"))
            .filter(|_| all.len() > 1),
        ..error.help(format!(
            "leave --strategy out, or ask for {other}; `millrace model {name} --history` shows what a row would hold"
        ))
    }
}
