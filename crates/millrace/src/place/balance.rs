//! `run --trace` and `plan --in`: what is chosen and balanced by a capture before anything runs.

use millrace_model::Model;
use millrace_plan::plan::Rule;
use millrace_plan::{Carried, Loads, Plan, Wanted};
use millrace_steer::Steering;

use crate::cost::Frames;
use crate::ports::Ports;
use crate::written::Proved;
use crate::{Error, seed};

/// Draws of keys whose median counts: one may happen to be good or bad.
const DRAWS: usize = 5;
/// By how much, as a part, another plan must be better to be taken.
const MARGIN: f64 = 0.05;

impl Proved<'_> {
    /// Where leased numbers that packets carry can be found by two rules: the plan by whose keys the busiest worker has
    /// less of the captures, and in words why it is another one than `plan`, if it is.
    pub(crate) fn preferred(
        &self,
        plan: Plan,
        model: &mut Model,
        wanted: &Wanted,
        frames: &Frames,
    ) -> (Plan, Option<String>) {
        if plan.homes.is_empty() || wanted.strategy.is_some() {
            return (plan, None);
        }
        let wanted = Wanted {
            carried: Carried::Compared,
            ..wanted.clone()
        };
        let Ok(other) = self.plan(model, &wanted) else {
            return (plan, None);
        };
        let by_fields = other.objects.iter().any(|o| o.rule == Rule::R5);
        if other.strategy != plan.strategy || !by_fields {
            return (plan, None);
        }
        let (mine, theirs) = (busiest(&plan, frames), busiest(&other, frames));
        if theirs >= mine * (1.0 - MARGIN) {
            return (plan, None);
        }
        let mean = 1.0 / f64::from(plan.cores);
        let why = format!(
            "packets are steered by the fields that are compared, not by the leased number: the busiest worker then has {:.2} \
             times the mean of the trace in place of {:.2}",
            theirs / mean,
            mine / mean
        );
        (other, Some(why))
    }
}

/// The busiest worker's part of the captures under tables that are balanced to them.
fn busiest(plan: &Plan, frames: &Frames) -> f64 {
    let mut parts: Vec<f64> = Vec::new();
    for _ in 0..DRAWS {
        let Ok(steering) = plan.steering(plan.ports.len().max(1), seed::keys()) else {
            return 1.0;
        };
        parts.push(loads(plan, frames, &steering).busiest(plan.cores));
    }
    parts.sort_by(f64::total_cmp);
    parts.get(DRAWS / 2).copied().unwrap_or(1.0)
}

fn loads(plan: &Plan, frames: &Frames, steering: &[Steering]) -> Loads {
    let mut loads = plan.loads();
    for (frame, port) in frames.all() {
        loads.add(steering, port as usize, frame);
    }
    loads
}

/// Gives all ports the table under which the busiest worker has least of the captures' packets, and says what it
/// has.
///
/// # Errors
/// The table does not fit the NIC.
pub(super) fn to(
    plan: &Plan,
    ports: &Ports,
    frames: &Frames,
    steering: &mut [Steering],
) -> Result<String, Error> {
    let loads = loads(plan, frames, steering);
    plan.balance(steering, &loads).map_err(Error::wrong)?;
    let (busiest, mean) = (loads.busiest(plan.cores), 1.0 / f64::from(plan.cores));
    Ok(format!(
        "the table is balanced to {}: the busiest worker has {:.2} times the mean of its {} packets, the heaviest \
         entry {:.2} % of all",
        ports.inputs.join(", "),
        busiest / mean,
        loads.packets(),
        loads.heaviest() * 100.0
    ))
}
