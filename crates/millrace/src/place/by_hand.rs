//! Who gets which packet, said by the user: what becomes of the objects then.

use millrace_check::Checked;
use millrace_emit::lock;
use millrace_model::Model;
use millrace_object::program::{ObjectId, Program};
use millrace_place::Treatment;
use millrace_plan::Plan;

use super::{planned, written};
use crate::Error;

/// Whether a program writes objects of which the paths decide what is done with them by hand: those that every core has
/// one of, and those whose elements packets may only add to. A table is divided.
pub(super) fn asks(model: &Model, program: &Program) -> bool {
    let mut objects = (0..).map(ObjectId).zip(&program.objects);
    objects.any(|(id, object)| {
        let shown = object.kind.is_global() || object.kind.has_all() || object.kind.per_cpu;
        shown && written(model, id)
    })
}

/// Treatment of each object where the user sets the steering: what asks for nothing is as the plan says,
/// but for numbers that handlers without a packet add to, which are one for all workers; all else that packets write is
/// divided, on the user's word. What packets find in a per-CPU map no steering brings together.
///
/// # Errors
/// A per-CPU map keeps the function on one core.
pub(super) fn treatments(
    model: &Model,
    program: &Program,
    checked: &Checked,
    plan: &Plan,
    cores: usize,
) -> Result<Vec<Treatment>, Error> {
    let mut added = lock::repeated(program, checked);
    added.retain(|id| {
        plan.treatment(*id) == Treatment::Merge && lock::obstacle(program, checked, *id).is_none()
    });
    let shared = lock::together(program, checked, &added);
    let objects = (0..).map(ObjectId).zip(&program.objects);
    objects
        .map(|(id, object)| match plan.treatment(id) {
            _ if shared.contains(&id) && lock::obstacle(program, checked, id).is_none() => {
                Ok(Treatment::Lock)
            }
            found @ (Treatment::Merge | Treatment::Spread) => Ok(found),
            _ if !written(model, id) => Ok(Treatment::Spread),
            Treatment::Alone if object.kind.per_cpu => {
                let said = plan.objects.iter().find(|o| o.id == id);
                let said = said.map_or_else(|| object.name.clone(), planned::reason);
                Err(Error::no(format!(
                    "--cores {cores}: {} runs on one core: {said}",
                    program.name
                ))
                .help("use --cores 1: --steer divides what packets find by a key, and not what each CPU has"))
            }
            _ => Ok(Treatment::Shard),
        })
        .collect()
}
