//! The treatments of a strategy that was asked for.

use millrace_history::History;
use millrace_history::effects;
use millrace_model::Model;
use millrace_object::program::Program;
use millrace_place::{Strategy, Treatment};

use super::transact;
use crate::make::PlanError;
use crate::plan::ObjectPlan;
use crate::rules::replication;

/// Replaces the treatments that come to the strategy `found` by those of the one that is `wanted` of the program.
///
/// # Errors
/// [`PlanError::Strategy`]: the reasons for these exclude it.
pub(crate) fn asked_for(
    (program, model, history): (&Program, &Model, Option<&History>),
    (wanted, found): (Strategy, Strategy),
    objects: &mut [ObjectPlan],
) -> Result<(), PlanError> {
    if wanted == Strategy::Replicate {
        return replicated((program, history), objects);
    }
    let to = match wanted {
        Strategy::Alone => Treatment::Alone,
        Strategy::Lock if found != Strategy::Alone => Treatment::Lock,
        Strategy::Transact if found != Strategy::Alone => Treatment::Transact,
        _ => {
            let barred = objects.iter().find(|o| match wanted {
                // What could be locked does not stand in the way.
                Strategy::Lock | Strategy::Transact => o.treatment == Treatment::Alone,
                _ => {
                    matches!(o.treatment, Treatment::Lock | Treatment::Alone)
                        || (wanted == Strategy::Spread && o.treatment == Treatment::Shard)
                        || found == Strategy::Spread
                }
            });
            let reason = barred.or(objects.first()).map_or_else(
                || "it has no state".to_owned(),
                |o| match &o.line {
                    Some(line) => format!("{line}: {}", o.reason),
                    None => o.reason.clone(),
                },
            );
            return Err(PlanError::Strategy {
                name: program.name.clone(),
                wanted: wanted.name(),
                reason,
            });
        }
    };
    let others = |o: &&mut ObjectPlan| {
        to == Treatment::Alone || matches!(o.treatment, Treatment::Shard | Treatment::Lock)
    };
    let visited = |o: &&mut ObjectPlan| others(o) && transact::is_visited(model, program, o.id);
    if to == Treatment::Transact
        && let Some(o) = objects.iter_mut().find(visited)
    {
        return Err(PlanError::Strategy {
            name: program.name.clone(),
            wanted: wanted.name(),
            reason: transact::visited(&o.name),
        });
    }
    for o in objects.iter_mut().filter(others) {
        o.treatment = to;
        o.reason = format!("asked for; of itself: {}", o.reason);
    }
    Ok(())
}

/// All that packets leave something in on every core, by R7; each core has its own of the rest.
fn replicated(
    (program, history): (&Program, Option<&History>),
    objects: &mut [ObjectPlan],
) -> Result<(), PlanError> {
    let refused = |reason: String| PlanError::Strategy {
        name: program.name.clone(),
        wanted: Strategy::Replicate.name(),
        reason,
    };
    let Some(history) = history else {
        return Err(refused(
            "nothing is known of what of a packet reaches state".to_owned(),
        ));
    };
    if let Some(refusal) = history.refusals.first() {
        return Err(refused(replication::refused(refusal)));
    }
    if !history.touches() && history.bytes == 0 {
        return Err(refused("no packet changes state".to_owned()));
    }
    for o in objects {
        if effects::replicated(program, o.id) {
            let said = replication::said(history);
            o.treatment = Treatment::Replicate;
            (o.rule, o.line) = (said.rule, said.line);
            o.reason = format!("{}; of itself: {}", said.reason, o.reason);
            (o.infeasible, o.remedy) = (false, None);
            o.words.clear();
        } else if !matches!(o.treatment, Treatment::Spread | Treatment::Merge) {
            let declared = program.objects.get(o.id.0);
            let why = declared.and_then(|declared| match declared.kind {
                kind if kind.per_cpu => Some(effects::PER_CPU),
                kind if kind.holds_records() => Some(effects::RECORDS),
                _ => None,
            });
            if let Some(why) = why {
                return Err(refused(format!("{}: {why}", o.name)));
            }
            o.treatment = Treatment::Spread;
            o.reason = format!(
                "each core has its own, on which no state depends; of itself: {}",
                o.reason
            );
        }
    }
    Ok(())
}
