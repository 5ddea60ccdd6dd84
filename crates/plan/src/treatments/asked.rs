//! The treatments of a strategy that was asked for.

use millrace_place::{Strategy, Treatment};

use crate::make::PlanError;
use crate::plan::ObjectPlan;

/// Replaces the treatments that come to the strategy `found` by those of the one that is `wanted` of the program `name`.
///
/// # Errors
/// [`PlanError::Strategy`]: the reasons for these exclude it.
pub(crate) fn asked_for(
    name: &str,
    (wanted, found): (Strategy, Strategy),
    objects: &mut [ObjectPlan],
) -> Result<(), PlanError> {
    let to = match wanted {
        Strategy::Alone => Treatment::Alone,
        Strategy::Lock if found != Strategy::Alone => Treatment::Lock,
        _ => {
            let barred = objects.iter().find(|o| match wanted {
                // What could be locked does not stand in the way.
                Strategy::Lock => o.treatment == Treatment::Alone,
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
                name: name.to_owned(),
                wanted: wanted.name(),
                reason,
            });
        }
    };
    let others = |o: &&mut ObjectPlan| {
        to == Treatment::Alone || matches!(o.treatment, Treatment::Shard | Treatment::Lock)
    };
    for o in objects.iter_mut().filter(others) {
        o.treatment = to;
        o.reason = format!("asked for; of itself: {}", o.reason);
    }
    Ok(())
}
