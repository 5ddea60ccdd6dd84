//! Notes of which places of objects change, for a copy of them on another machine (`fastpath/state/notes.h`).
//!
//! What a call does to an object its own functions note. Here is what stands behind a store to a value, and which programs do to an object
//! what nothing would note.

use std::collections::BTreeSet;

use millrace_check::facts::{Access, ArgFact, Op, Step, StepId};
use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::{ObjectId, Program};
use millrace_place::{Held, MOST_NOTED};

use crate::c;
use crate::codegen::{Body, Slice, Statement};
use crate::error::Error;
use crate::headers;
use crate::sync::lock::called;
use crate::sync::lock::effects::{Effect, object, on_memory};
use crate::sync::{Hooks, Input};

/// Calls whose changes the functions of `fastpath/state` note.
const CALLS: &[&str] = &[
    "map_get",
    "map_refresh",
    "map_put",
    "map_delete",
    "map_slot",
    "map_lookup_elem",
    "map_update_elem",
    "map_delete_elem",
    "allocator_lease",
    "allocator_get",
    "allocator_refresh",
    "allocator_free",
    "vector_at",
];

/// The objects that note their changes.
pub struct Noting(pub BTreeSet<ObjectId>);

/// The objects of a placement that are to, which are those that each worker has a part of.
///
/// # Errors
/// Their kind cannot, or a step changes one where nothing notes it.
pub fn noted(input: &Input) -> Result<BTreeSet<ObjectId>, Error> {
    let Input {
        program, sharing, ..
    } = input;
    let mut found = BTreeSet::new();
    if !sharing.placement.noted {
        return Ok(found);
    }
    let timers = input.checked.timers.iter();
    let timers = timers.map(|t| Slice::whole(program, &t.flow, false));
    let timers = timers.collect::<Result<Vec<_>, _>>()?;
    let places = (0..).map(ObjectId).zip(&sharing.placement.objects);
    for (id, _) in places.filter(|(_, place)| place.held == Held::Divided) {
        let Some(object) = program.objects.get(id.0) else {
            continue;
        };
        let bytes = u64::from(object.key_bytes) + u64::from(object.value_bytes);
        let what = match object.timer {
            Some(_) => "timers in its values".to_owned(),
            None if !headers::notes(object.kind.c) || object.kind.per_cpu => {
                "which of its places change is not known of this kind".to_owned()
            }
            None if bytes > MOST_NOTED => {
                format!("a key and a value have {bytes} bytes, of which there may be {MOST_NOTED}")
            }
            None => {
                found.insert(id);
                continue;
            }
        };
        return Err(Error::Unsupported {
            place: first_use(program, input.wholes.iter().chain(&timers), id),
            what: format!("a copy of {} on another machine ({what})", object.name),
        });
    }
    for whole in input.wholes.iter().chain(&timers) {
        for id in whole.layout() {
            let step = whole.step(id);
            if let Some(object) = unnoted(&found, step) {
                let what = match object {
                    Some(id) => called(program, id),
                    None => "some object",
                };
                return Err(Error::Unsupported {
                    place: whole.place(step),
                    what: format!(
                        "a copy of {what} on another machine, which this step changes by other means than those that are noted"
                    ),
                });
            }
        }
    }
    Ok(found)
}

/// Where a program first calls something of an object; the program's name where it never does.
fn first_use<'a>(
    program: &Program,
    mut wholes: impl Iterator<Item = &'a Slice<'a>>,
    id: ObjectId,
) -> String {
    let calls = |step: &Step| {
        let Op::Plain(Insn::Call { helper }) = step.op else {
            return false;
        };
        helper::by_number(helper).is_some_and(|helper| object(step, helper) == Some(id))
    };
    let found = wholes.find_map(|whole| {
        let steps = whole.layout().into_iter().map(|step| whole.step(step));
        steps.into_iter().find(|s| calls(s)).map(|s| whole.place(s))
    });
    found.unwrap_or_else(|| program.name.clone())
}

/// The object that a step changes where nothing notes it, if it is known which.
fn unnoted(noted: &BTreeSet<ObjectId>, step: &Step) -> Option<Option<ObjectId>> {
    match step.op {
        Op::Plain(Insn::Store { .. } | Insn::Atomic { .. }) => match step.access {
            Some(Access::Several) | None => Some(None),
            _ => None,
        },
        Op::Plain(Insn::Call { helper }) => {
            let Some(helper) = helper::by_number(helper) else {
                return Some(None);
            };
            if on_memory(noted, step, helper, Effect::None) == Effect::Write {
                let of = step.args.iter().find_map(|arg| match arg {
                    ArgFact::Memory {
                        access: Access::Value(o),
                        ..
                    } => Some(*o),
                    _ => None,
                });
                return Some(of);
            }
            let of = object(step, helper).filter(|o| noted.contains(o))?;
            (!CALLS.contains(&helper.name)).then_some(Some(of))
        }
        Op::Plain(Insn::CallRegister { .. }) => Some(None),
        _ => None,
    }
}

impl Hooks for Noting {
    fn behind(&self, body: &Body, step: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
        let (Insn::Store { base, offset, .. } | Insn::Atomic { base, offset, .. }) = *insn else {
            return Ok(Vec::new());
        };
        let Some(Access::Value(id)) = body.slice.step(step).access else {
            return Ok(Vec::new());
        };
        if !self.0.contains(&id) {
            return Ok(Vec::new());
        }
        let address = body.address(step, base, offset)?;
        let (kind, operands) = (body.unit.kind(id), body.unit.operands(id));
        Ok(vec![
            c!("{}_written({}, {});", kind, operands, address).into(),
        ])
    }
}
