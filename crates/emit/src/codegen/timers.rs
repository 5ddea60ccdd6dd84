//! Timers in the values of maps: the functions that they call, and the one that fires what is due
//! (fastpath/state/timers.h).

use std::collections::BTreeMap;
use std::fmt::Write;

use millrace_check::facts::Timed;
use millrace_object::Program;
use millrace_object::program::ObjectId;

use super::body::{Body, Purpose};
use super::entries::{self, OUTLINED, PARAMETERS};
use super::slice::Slice;
use super::text::{Text, identifier};
use super::unit::Unit;
use crate::error::Error;

/// A member of the instance.
pub const MEMBER: &str = "struct alarms alarms; /* timers in the values of maps */";

/// Before each packet.
pub const BEGIN: &str =
    "if (mr_unlikely(packets[i]->time >= self->alarms.seen.next))\n\tfire_due(self, packets[i]);";

/// Those objects whose values have timers.
fn objects(program: &Program) -> impl Iterator<Item = ObjectId> {
    let all = program.objects.iter().enumerate();
    all.filter(|(_, o)| o.timer.is_some() && !o.is_shape())
        .map(|(at, _)| ObjectId(at))
}

/// Writes the functions that timers call; the text of what fires them, for behind these.
pub fn write(out: &mut Text, unit: &Unit, timers: &[Timed], file: &str) -> Result<String, Error> {
    let none = BTreeMap::new();
    let mut functions = Vec::new();
    for (index, timed) in timers.iter().enumerate() {
        let name = entries::name(unit.program, timed.function);
        let slice = Slice::whole(unit.program, &timed.flow, false)?;
        let body = Body::new(&slice, unit, Purpose::Program, &none)?;
        let body = body.hooked(unit.treatment.timer(index))?;
        let function = format!("timer{index}_{}", identifier(name));
        let signature = format!("{OUTLINED} void {function}({PARAMETERS})");
        let of = unit.program.objects.get(timed.object.0);
        let of = of.map_or("?", |o| o.name.as_str());
        let title = format!("{name}: timers in values of {of}");
        entries::function_text(out, file, &title, &signature, &body)?;
        functions.push((timed, function));
    }
    Ok(firing(unit, &functions))
}

/// In `create`, when all objects are there.
pub fn create(unit: &Unit) -> String {
    if !unit.timers {
        return String::new();
    }
    let mut out = String::from("\ttimers_begin(&self->alarms);\n");
    for object in objects(unit.program) {
        let _ = writeln!(
            out,
            "\t{}.timers.alarms = &self->alarms;",
            unit.instance(object)
        );
    }
    out
}

/// What fires timers; behind the functions that they call, which are called so in C.
fn firing(unit: &Unit, functions: &[(&Timed, String)]) -> String {
    if functions.is_empty() {
        return String::new();
    }
    let mut cases = String::new();
    let objects: Vec<ObjectId> = objects(unit.program).collect();
    for (map, object) in objects.iter().enumerate() {
        let of = functions
            .iter()
            .filter(|(timed, _)| timed.object == *object);
        for (timed, function) in of {
            // The number that `statement` gives a function.
            let number = timed.function.0 + 1;
            let _ = writeln!(
                cases,
                "\tcase TIMERS_CALL({map}, {number}):\n\t\t{function}(self, pkt);\n\t\tbreak;"
            );
        }
    }
    let all: Vec<String> = (objects.iter())
        .map(|o| format!("&{}.timers", unit.instance(*o)))
        .collect();
    format!(
        "
static void alarm_call(struct mr_instance *self, u32 map, u32 function, struct mr_packet *pkt)
{{
	switch (TIMERS_CALL(map, function)) {{
{cases}	default:
		break;
	}}
}}

/* Fires the timers that are due at the time of this packet. */
static __attribute__((noinline)) void fire_due(struct mr_instance *self, struct mr_packet *pkt)
{{
	struct timers *const all[] = {{ {all} }};

	timers_fire(all, {count}, &self->alarms, self, pkt, alarm_call);
}}

static const struct mr_alarms *alarms(struct mr_instance *self)
{{
	return &self->alarms.seen;
}}
",
        count = all.len(),
        all = all.join(", "),
    )
}
