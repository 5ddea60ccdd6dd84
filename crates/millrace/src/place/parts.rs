//! State on several workers where some objects are sharded and all others replicated: packets go to the worker that has their part, and
//! rows carry what they do to the rest.

use std::collections::BTreeSet;

use millrace_emit::lock;
use millrace_model::Model;
use millrace_object::program::ObjectId;
use millrace_place::{Held, Place, Strategy, Treatment};
use millrace_plan::plan::Rule;
use millrace_plan::{Plan, Wanted};

use super::{Answer, Asked, Proved, hybrid, replicated};
use crate::{Error, seed};

/// A plan by object.
pub(crate) struct Parts {
    /// with the treatments `shard` and `replicate`
    pub plan: Plan,
    /// how each object is held
    pub places: Vec<Place>,
    /// of a row
    bytes: u32,
}

/// The plan of a function of which some objects shard and others would be locked: the latter replicated; none where all objects shard, or
/// none.
///
/// # Errors
/// What would be locked cannot be replicated: with the object, the author's line and the reason.
pub(crate) fn plan(
    proved: &Proved<'_>,
    model: &mut Model,
    wanted: &Wanted,
) -> Result<Option<Parts>, Error> {
    let wanted = Wanted {
        strategy: None,
        ..wanted.clone()
    };
    let mut plan = proved.plan(model, &wanted)?;
    let of = |treatment: Treatment| {
        let objects = plan.objects.iter().filter(|o| o.treatment == treatment);
        objects.map(|o| o.id).collect::<BTreeSet<ObjectId>>()
    };
    let (parted, locked) = (of(Treatment::Shard), of(Treatment::Lock));
    if parted.is_empty() || locked.is_empty() || plan.strategy == Strategy::Alone {
        return Ok(None);
    }
    let program = proved.program;
    let handled = lock::handled(program, &proved.checked);
    for object in plan.objects.iter().filter(|o| parted.contains(&o.id)) {
        let leases = program.objects.get(object.id.0);
        let leases = leases.is_some_and(|o| o.kind.leases());
        let why = match () {
            () if handled.contains(&object.id) => {
                "a handler without a packet works on all of its keys at once"
            }
            () if leases => "what it leases to one core another one may have leased",
            () => continue,
        };
        return Err(hybrid::on(&program.name, object, why));
    }
    let (places, history) =
        replicated::objects(proved, model, ("hybrid", plan.cores as usize), &parted)?;
    let kept = |id: ObjectId| places.get(id.0).map(|p| &p.held);
    for object in &mut plan.objects {
        if kept(object.id) != Some(&Held::Replicated) {
            continue;
        }
        object.treatment = Treatment::Replicate;
        object.rule = Rule::R7;
        object.reason = format!(
            "every core has all of it, and repeats what packets of the others do to it, beside its part of what is sharded: a row of {} \
             bytes; of itself: {}",
            history.bytes, object.reason
        );
        (object.infeasible, object.remedy) = (false, None);
        object.words.clear();
    }
    let replicated: BTreeSet<&str> = { plan.objects.iter() }
        .filter(|o| o.treatment == Treatment::Replicate)
        .map(|o| o.name.as_str())
        .collect();
    plan.relaxations
        .retain(|r| !replicated.contains(r.object.as_str()));
    plan.strategy = Strategy::Hybrid;
    Ok(Some(Parts {
        plan,
        places,
        bytes: history.bytes,
    }))
}

/// The arrangement on several workers. `measured`: the plan that says what is to be expected, where that was measured.
///
/// # Errors
/// There are more workers than a sequencer or the table of the hash has places for.
pub(super) fn arrange(
    proved: &Proved<'_>,
    model: &Model,
    parts: Parts,
    (asked, measured): (&Asked<'_>, Option<&Plan>),
) -> Result<Answer, Error> {
    let (program, cores) = (proved.program, asked.cores);
    let Parts {
        mut plan,
        places,
        bytes,
    } = parts;
    let secret = asked.secret.unwrap_or_else(seed::keys);
    let mut steering = hybrid::steering(proved, &plan, secret)?;
    let balanced = hybrid::balanced(proved, &plan, asked, &mut steering)?;
    // How large parts are, as where nothing is replicated.
    let treatments: Vec<Treatment> = (places.iter())
        .map(|place| match place.held {
            Held::Divided => Treatment::Shard,
            _ => Treatment::Spread,
        })
        .collect();
    let mut found = proved.stand(model, &treatments, steering, cores);
    for (place, held) in found.placement.objects.iter_mut().zip(&places) {
        if held.held != Held::Divided {
            *place = held.clone();
        }
    }
    let names = |held: &Held| {
        let names = places.iter().filter(|p| p.held == *held);
        let names: Vec<&str> = names.map(|p| p.name.as_str()).collect();
        names.join(", ")
    };
    found.reasons.push(format!(
        "{}: hybrid on {cores} workers: each has its part of {}, and all of {}, which it repeats from rows of {bytes} bytes; the \
         sequencer has one more",
        program.name,
        names(&Held::Divided),
        names(&Held::Replicated),
    ));
    found.reasons.extend(super::planned::besides(&plan));
    found.reasons.extend(balanced);
    if let Some(measured) = measured {
        plan.predicted.clone_from(&measured.predicted);
        plan.measured.clone_from(&measured.measured);
        plan.grounds = measured.grounds;
    }
    Ok(found.arrangement(cores, Some(plan)))
}
