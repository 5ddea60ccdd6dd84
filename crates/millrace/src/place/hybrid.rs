//! State on several workers where a few heavy keys are replicated and all others sharded: what becomes of each object, or why it
//! cannot be.

use std::collections::BTreeSet;
use std::sync::Arc;

use millrace_emit::lock;
use millrace_model::Model;
use millrace_object::program::{ObjectId, Role, StateObject};
use millrace_object::state::Addressing;
use millrace_place::{Elephants, Held, Place, Placement, Strategy, Treatment};
use millrace_plan::plan::{ObjectPlan, Rule};
use millrace_plan::{Fingerprints, Plan, Wanted};
use millrace_steer::Steering;

use super::{Answer, Asked, Proved, balance, parts, replicated};
use crate::cost::Frames;
use crate::ports::NEVER;
use crate::{Error, seed};

/// The plan, which shards all that heavy keys are moved of, and how each object is held in what is replicated, with the bytes of a row.
///
/// # Errors
/// It cannot be: with the object, the author's line and the reason.
pub(super) fn plan(
    proved: &Proved<'_>,
    model: &mut Model,
    wanted: &Wanted,
) -> Result<(Plan, Vec<Place>, u32), Error> {
    let program = proved.program;
    let (replicas, history) = replicated::objects(
        proved,
        model,
        ("hybrid", wanted.cores as usize),
        &BTreeSet::new(),
    )?;
    let wanted = Wanted {
        strategy: Some(Strategy::Shard),
        ..wanted.clone()
    };
    let plan = proved.plan(model, &wanted)?;
    allowed(proved, &plan, &replicas)?;
    debug_assert_eq!(program.objects.len(), replicas.len());
    Ok((plan, replicas, history.bytes))
}

/// Whether some keys of a plan that shards can be replicated, where objects are held so.
///
/// # Errors
/// They cannot.
fn allowed(proved: &Proved<'_>, plan: &Plan, replicas: &[Place]) -> Result<(), Error> {
    let program = proved.program;
    if program
        .entries
        .iter()
        .any(|e| matches!(e.role, Role::Every { .. }))
    {
        return Err(refused(
            &program.name,
            "it has EVERY, which each worker would do for its part and for its replica",
        ));
    }
    let steering = steering(proved, plan, seed::keys())?;
    let handled = lock::handled(program, &proved.checked);
    for ((id, object), replica) in (0..).map(ObjectId).zip(&program.objects).zip(replicas) {
        let Some(planned) = plan.objects.iter().find(|o| o.id == id) else {
            continue;
        };
        let tells = || plan.tells(id.0, &steering);
        if planned.treatment == Treatment::Shard && handled.contains(&id) {
            let why = "a handler without a packet works on all of its keys at once";
            return Err(on(&program.name, planned, why));
        }
        if replica.held.adds() {
            let why =
                "packets of heavy keys would add to numbers of the replicas, which nobody sums up";
            return Err(on(&program.name, planned, why));
        }
        if let Some(why) = obstacle((planned, object), &replica.held, tells) {
            return Err(on(&program.name, planned, &why));
        }
    }
    Ok(())
}

pub(super) fn steering(
    proved: &Proved<'_>,
    plan: &Plan,
    secret: [u8; 32],
) -> Result<Vec<Steering>, Error> {
    let ports = proved.program.ports.len().clamp(1, super::MOST_PORTS);
    let steering = plan.steering(ports, secret);
    steering.map_err(|e| Error::wrong(format!("--cores {}: {e}", plan.cores)))
}

/// Balances the table to the trace that is named, if one is, and says so.
pub(super) fn balanced(
    proved: &Proved<'_>,
    plan: &Plan,
    asked: &Asked<'_>,
    steering: &mut [Steering],
) -> Result<Option<String>, Error> {
    let Some(ports) = asked.trace else {
        return Ok(None);
    };
    let frames = Frames::read(ports, &ports.names(&proved.program.ports)?, &NEVER)?;
    balance::to(plan, ports, &frames, steering).map(Some)
}

/// The same of a plan that shards, if it can be; and what tells keys apart, under keys of the steering that are drawn.
///
/// # Errors
/// It cannot be.
pub(crate) fn of_sharded(
    proved: &Proved<'_>,
    model: &Model,
    plan: &Plan,
) -> Result<(Plan, Arc<Fingerprints>), Error> {
    let (replicas, _) = replicated::objects(
        proved,
        model,
        ("hybrid", plan.cores as usize),
        &BTreeSet::new(),
    )?;
    allowed(proved, plan, &replicas)?;
    let secret = seed::keys();
    let steering = steering(proved, plan, secret)?;
    let keys = plan.fingerprints(proved.program, &steering, secret);
    let keys = keys.map_err(|e| Error::wrong(format!("--cores {}: {e}", plan.cores)))?;
    Ok((of(plan.clone()), keys))
}

/// The arrangement on several workers: each has its part of what is sharded, and beside that a replica of what heavy keys have.
/// `measured`: the plan that says what a row costs, where that was measured.
///
/// # Errors
/// It cannot be: with the object, the author's line and the reason.
pub(super) fn arrange(
    proved: &Proved<'_>,
    model: &mut Model,
    asked: &Asked<'_>,
    measured: Option<&Plan>,
) -> Result<Answer, Error> {
    let (program, cores) = (proved.program, asked.cores);
    let wanted = Wanted {
        cores: cores as u32,
        nic: asked.nic.to_owned(),
        budget: asked.budget,
        ..Wanted::default()
    };
    if let Some(found) = parts::plan(proved, model, &wanted)? {
        return parts::arrange(proved, model, found, (asked, measured));
    }
    let (plan, replicas, bytes) = plan(proved, model, &wanted)?;
    let secret = asked.secret.unwrap_or_else(seed::keys);
    let mut steering = steering(proved, &plan, secret)?;
    let balanced = balanced(proved, &plan, asked, &mut steering)?;
    let treatments: Vec<Treatment> = (0..program.objects.len())
        .map(|object| plan.treatment(ObjectId(object)))
        .collect();
    let keys = plan
        .fingerprints(program, &steering, secret)
        .map_err(|e| Error::wrong(format!("--cores {cores}: {e}")))?;
    let mut found = proved.stand(model, &treatments, steering, cores);
    let row = measured.and_then(|plan| plan.measured.as_ref()?.row());
    let row = row.unwrap_or(millrace_steer::hybrid::ROW);
    found.placement.elephants = Some(Arc::new(Elephants {
        replicas: Arc::new(Placement {
            objects: replicas,
            ..Placement::default()
        }),
        keys,
        row,
    }));
    found.reasons.push(format!(
        "{}: hybrid on {cores} workers: up to {} heavy keys are replicated, with a row of {bytes} bytes for each of their packets, which \
         counts as {row:.2} of a packet; each worker has a replica beside its part, and the sequencer one",
        program.name,
        millrace_steer::hybrid::MAX_ELEPHANTS,
    ));
    found.reasons.extend(super::planned::besides(&plan));
    found.reasons.extend(balanced);
    let mut plan = of(plan);
    if let Some(measured) = measured {
        plan.predicted.clone_from(&measured.predicted);
        plan.measured.clone_from(&measured.measured);
        plan.grounds = measured.grounds;
    }
    Ok(found.arrangement(cores, Some(plan)))
}

/// The plan with the treatments of this strategy.
pub(super) fn of(mut plan: Plan) -> Plan {
    let sharded = plan.objects.iter_mut();
    for object in sharded.filter(|o| o.treatment == Treatment::Shard) {
        object.treatment = Treatment::Hybrid;
    }
    plan.strategy = Strategy::Hybrid;
    plan
}

/// Why an object's entries cannot go from an owner to all workers and back.
fn obstacle(
    (planned, object): (&ObjectPlan, &StateObject),
    replica: &Held,
    tells: impl Fn() -> bool,
) -> Option<String> {
    let kind = object.kind;
    match planned.treatment {
        Treatment::Shard => {}
        // No packet changes it.
        Treatment::Spread => return None,
        Treatment::Merge if *replica != Held::Replicated => return None,
        Treatment::Merge => {
            return Some("packets of all keys change one value of it".to_owned());
        }
        _ => return Some(planned.reason.clone()),
    }
    if object.timer.is_some() {
        return Some("its values have timers, which fire on one core".to_owned());
    }
    if object.expiry.is_some() {
        return Some("an expiry runs a function, where its entry is".to_owned());
    }
    if kind.leases() {
        return Some("what it leases to one core another one may have leased".to_owned());
    }
    if kind.addressing != Addressing::Key || !kind.is_table() || kind.per_cpu || kind.evicts {
        return Some(format!(
            "entries of {} cannot be moved one by one with their age",
            kind.name
        ));
    }
    if planned.rule == Rule::R5 || !tells() {
        return Some("its keys do not say which packets have an entry".to_owned());
    }
    None
}

pub(super) fn on(name: &str, planned: &ObjectPlan, why: &str) -> Error {
    let line = planned.line.as_ref();
    let line = line.map_or_else(String::new, |l| format!("{l}: "));
    refused(name, &format!("{line}{}: {why}", planned.name))
}

fn refused(name: &str, why: &str) -> Error {
    Error::no(format!(
        "--strategy hybrid: {name} cannot have some keys replicated and others sharded: {why}"
    ))
    .help("leave --strategy out, or ask for shard, replicate or lock")
}
