//! Timers in the values of maps, and entries whose expiry runs a function: the functions that they call, and the one
//! that fires what is due (fastpath/state/timers.h).

use std::collections::BTreeMap;
use std::fmt::Write;

use millrace_check::facts::Timed;
use millrace_object::Program;
use millrace_object::program::{FunctionId, ObjectId, Role};

use super::body::{Body, Purpose};
use super::entries::{self, OUTLINED, PARAMETERS};
use super::parts;
use super::slice::Slice;
use super::text::{Text, identifier};
use super::unit::Unit;
use crate::error::Error;

/// A member: of the instance, or of what workers share.
pub const MEMBER: &str = "struct alarms alarms; /* what is due at moments of its own */";

/// A member of the instance.
pub(super) fn member(unit: &Unit) -> &'static str {
    match unit.treatment.shares_moments() {
        true => "struct mr_alarms seen; /* of what is due, and what this worker has fired */",
        false => MEMBER,
    }
}

/// Before each packet.
pub(super) fn begin(unit: &Unit) -> String {
    format!(
        "if (mr_unlikely(packets[i]->time >= {}.seen.next))\n\tfire_due(self, packets[i]);",
        unit.alarms()
    )
}

/// Those objects in which something happens at moments of its own.
fn objects(program: &Program) -> impl Iterator<Item = ObjectId> {
    let all = program.objects.iter().enumerate();
    all.filter(|(_, o)| o.has_moments() && !o.is_shape())
        .map(|(at, _)| ObjectId(at))
}

/// The number of a function in C, from 1.
pub(super) fn number(function: FunctionId) -> u64 {
    function.0 as u64 + 1
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
        let title = match timed.role(unit.program) {
            Role::Expiry => format!("{name}: entries of {of} that expire"),
            _ => format!("{name}: timers in values of {of}"),
        };
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
    if unit.treatment.shares_moments() {
        return String::from("\tself->seen = (struct mr_alarms){.next = UINT64_MAX};\n");
    }
    heap(unit, |object| unit.instance(object))
}

/// In `create_shared`, when all objects are there.
pub fn create_shared(unit: &Unit) -> String {
    if !unit.timers || !unit.treatment.shares_moments() {
        return String::new();
    }
    heap(unit, |object| format!("self->{}", unit.member(object)))
}

/// Begins the heap of timers, in which each object has its own.
fn heap(unit: &Unit, place: impl Fn(ObjectId) -> String) -> String {
    let mut out = String::from("\ttimers_begin(&self->alarms);\n");
    for object in objects(unit.program) {
        let _ = writeln!(out, "\t{}.timers.alarms = &self->alarms;", place(object));
    }
    out
}

/// The functions that the host calls: what is due next, and what fires it when no packet comes.
fn host(unit: &Unit) -> String {
    if !unit.treatment.shares_moments() {
        return "
static const struct mr_alarms *alarms(struct mr_instance *self)
{
	return &self->alarms.seen;
}

static void alarm(struct mr_instance *self, struct mr_packet *pkt)
{
	fire_due(self, pkt);
"
        .to_owned()
            + parts::behind(unit)
            + "}\n";
    }
    let [before, behind] = unit.treatment.handler();
    format!(
        "
static const struct mr_alarms *alarms(struct mr_instance *self)
{{
	lock_read(&self->shared->lock, self->core);
	self->seen.next = self->shared->alarms.seen.next;
	lock_read_end(&self->shared->lock, self->core);
	return &self->seen;
}}

/* Another worker may have fired it meanwhile. */
static void alarm(struct mr_instance *self, struct mr_packet *pkt)
{{
{before}	fire_due(self, pkt);
{behind}{publish}}}
",
        publish = parts::behind(unit)
    )
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
            let number = number(timed.function);
            let _ = writeln!(
                cases,
                "\tcase TIMERS_CALL({map}, {number}):\n\t\t{function}(self, pkt);\n\t\tbreak;"
            );
        }
    }
    let all: Vec<String> = (objects.iter())
        .map(|o| format!("&{}.timers", unit.instance(*o)))
        .collect();
    let (text, latest) = latest(unit, &objects);
    format!(
        "
static void alarm_call(struct mr_instance *self, u32 map, u32 function, struct mr_packet *pkt)
{{
	switch (TIMERS_CALL(map, function)) {{
{cases}	default:
		break;
	}}
}}

{text}/* Fires what is due at the time of this packet. */
static __attribute__((noinline)) void fire_due(struct mr_instance *self, struct mr_packet *pkt)
{{
	struct timers *const all[] = {{ {all} }};
{before}
	timers_fire(all, {count}, &{alarms}, self, pkt, alarm_call, {latest});
{behind}}}
{host}",
        count = all.len(),
        alarms = unit.alarms(),
        host = host(unit),
        before = match unit.treatment.shares_moments() {
            true => "\tu64 fired = self->shared->alarms.seen.fired;\n",
            false => "",
        },
        behind = match unit.treatment.shares_moments() {
            true => "\tself->seen.fired += self->shared->alarms.seen.fired - fired;\n",
            false => "",
        },
        all = all.join(", "),
    )
}

/// What says when entries expire whose expiry is an event, and its name.
fn latest(unit: &Unit, objects: &[ObjectId]) -> (String, &'static str) {
    let mut cases = String::new();
    for (map, id) in objects.iter().enumerate() {
        let event = unit
            .program
            .objects
            .get(id.0)
            .is_some_and(|o| o.expiry.is_some());
        if event {
            let (kind, operands) = (unit.kind(*id), unit.operands(*id));
            let _ = writeln!(
                cases,
                "\tcase {map}:\n\t\treturn {kind}_latest({operands}, place);"
            );
        }
    }
    if cases.is_empty() {
        return (cases, "NULL");
    }
    let text = format!(
        "/* When an entry expires, by its stamp; a timer is due when it is. */
static u64 alarm_latest(struct mr_instance *self, u32 map, u32 place)
{{
	(void)self;
	switch (map) {{
{cases}	default:
		return 0;
	}}
}}

"
    );
    (text, "alarm_latest")
}
