//! Timers in the values of maps: the functions that they call, and the one that fires what is due
//! (fastpath/state/timers.h).

use std::fmt::Write;

use millrace_check::facts::Timed;
use millrace_object::Program;
use millrace_object::program::ObjectId;

use super::objects::Names;
use super::text::identifier;

/// A member of the instance.
pub const MEMBER: &str = "\tstruct alarms alarms; /* timers in the values of maps */\n";

/// Before each packet.
pub const BEGIN: &str =
    "if (mr_unlikely(packets[i]->time >= self->alarms.seen.next))\n\tfire_due(self, packets[i]);";

/// Those objects whose values have timers.
fn objects<'a>(program: &'a Program) -> impl Iterator<Item = ObjectId> + 'a {
    let all = program.objects.iter().enumerate();
    all.filter(|(_, o)| o.timer.is_some() && !o.is_shape())
        .map(|(at, _)| ObjectId(at))
}

/// What the `index`-th function is called in C.
pub fn function(index: usize, name: &str) -> String {
    format!("timer{index}_{}", identifier(name))
}

/// In `create`, when all objects are there.
pub fn create(program: &Program, names: &Names) -> String {
    if !names.timers {
        return String::new();
    }
    let mut out = String::from("\ttimers_begin(&self->alarms);\n");
    for object in objects(program) {
        let _ = writeln!(
            out,
            "\t{}.timers.alarms = &self->alarms;",
            names.instance(object)
        );
    }
    out
}

/// What fires timers; behind the functions that they call, which are called so in C.
pub fn firing(program: &Program, names: &Names, functions: &[(&Timed, String)]) -> String {
    if functions.is_empty() {
        return String::new();
    }
    let mut cases = String::new();
    let objects: Vec<ObjectId> = objects(program).collect();
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
        .map(|o| format!("&{}.timers", names.instance(*o)))
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
