//! Numbers of which each worker has a part (`DISTRIBUTED` with a staleness, fastpath/sync/parts.h): where the parts stand,
//! when they are published, and for tests what packets saw of them.
//!
//! The object itself is the worker's own, whatever the treatment: packets wait for nobody. What workers have in common are
//! the published parts.

use std::fmt::Write;

use millrace_object::program::{ObjectId, StateObject};
use millrace_object::state::distributed;

use super::unit::Unit;

/// Whether an object is of numbers that packets add to.
pub fn is(object: &StateObject) -> bool {
    *object.kind == distributed::KIND
}

/// Objects that are each worker's own, and whose parts others read.
pub fn parted<'a>(
    unit: &'a Unit<'_>,
) -> impl Iterator<Item = (ObjectId, &'a StateObject)> + use<'a> {
    unit.objects().filter(|(id, _)| unit.is_parted(*id))
}

/// What the parts of an object are called in `struct mr_shared`.
fn board(unit: &Unit, id: ObjectId) -> String {
    format!("parts{}", unit.tag(id.0))
}

/// Members of `struct mr_shared`.
pub fn members(unit: &Unit) -> String {
    let line = |(id, _)| format!("\tstruct parts {};\n", board(unit, id));
    parted(unit).map(line).collect()
}

/// By object: what makes its parts in `self`, a `struct mr_shared *`, and what ends them.
pub fn common<'a>(
    unit: &'a Unit<'_>,
) -> impl Iterator<Item = (ObjectId, String, String)> + use<'a> {
    parted(unit).map(|(id, _)| {
        let operands = format!("&self->{}, &{}", board(unit, id), unit.shape(id));
        (
            id,
            format!("parts_create({operands}, config)"),
            format!("parts_destroy({operands})"),
        )
    })
}

/// The call by which an instance takes its part, in `create`.
pub fn join(unit: &Unit, id: ObjectId) -> String {
    format!(
        "distributed_join({}, &config->shared->{}, config->worker)",
        unit.operands(id),
        board(unit, id)
    )
}

/// Before anything else of the module.
pub fn defines(noted: bool) -> &'static str {
    match noted {
        true => "#define MR_PARTS_NOTED 1\n",
        false => "",
    }
}

/// The function that publishes what a worker has added.
pub fn publish(unit: &Unit) -> String {
    let calls: String = parted(unit)
        .map(|(id, _)| format!("\tdistributed_publish({});\n", unit.operands(id)))
        .collect();
    if calls.is_empty() {
        return calls;
    }
    format!(
        "\n/* When a burst has ended. */\nMR_INLINE void publish(struct mr_instance *self)\n{{\n{calls}}}\n"
    )
}

/// A function of bursts that publishes behind one of them; its name, and its text.
pub fn burst(unit: &Unit, function: &str) -> Option<(String, String)> {
    parted(unit).next()?;
    let name = format!("{function}_published");
    let text = format!(
        "
static void {name}(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	{function}(self, packets, n);
	publish(self);
}}
"
    );
    Some((name, text))
}

/// The statement behind what runs without a packet.
pub fn behind(unit: &Unit) -> &'static str {
    match parted(unit).next() {
        Some(_) => "\tpublish(self);\n",
        None => "",
    }
}

/// What tests see: the text, and a member of the module's table.
pub fn seen(unit: &Unit) -> [String; 2] {
    let mut objects = unit
        .objects()
        .filter(|(_, o)| is(o) && !o.is_shape())
        .peekable();
    if !unit.noted || objects.peek().is_none() {
        return [String::new(), String::new()];
    }
    let (mut notes, mut feeds) = (String::new(), String::new());
    for (id, _) in objects {
        let (place, operands) = (id.0, unit.operands(id));
        let _ = write!(
            notes,
            "\tseen.object = {place};\n\tdistributed_note({operands}, &seen);\n\tfn(context, &seen);\n"
        );
        let _ = write!(
            feeds,
            "\tcase {place}:\n\t\tdistributed_feed({operands}, own, others);\n\t\treturn 0;\n"
        );
    }
    let text = format!(
        "
static void parts_note(struct mr_instance *self, mr_parts_fn *fn, void *context)
{{
	struct mr_parts_seen seen = {{0}};

{notes}}}

static int parts_feed(struct mr_instance *self, u32 object, const u64 *own, const u64 *others)
{{
	switch (object) {{
{feeds}	default:
		return -EINVAL;
	}}
}}

static const struct mr_parts parts = {{ parts_note, parts_feed }};
"
    );
    [text, "\t.parts = &parts,\n".to_owned()]
}
