//! Maps of maps: what the host needs to fill them, and what goes with an instance's beginning and end
//! (fastpath/state/maps.h).
//!
//! A shape (`Nesting::Shape`) has no member in the instance. Its control functions reach the entries of all
//! maps in its holder: their keys are the holder's and the map's, one after the other, and setting an entry
//! under a key without a map makes one.

use std::fmt::Write;

use millrace_object::Program;
use millrace_object::program::{Nesting, ObjectId, StateObject};

use super::objects::offers;
use super::unit::Unit;

/// What an instance keeps for maps that are made later.
pub const MEMBER: &str = "struct mr_config config; /* for maps that the host makes */";

/// Capacities up to this are positions in the lower half of a cursor.
const CURSOR_BITS: u32 = 32;

/// Key bytes and capacity as the host sees an object.
pub fn composite(program: &Program, object: &StateObject) -> (u32, u64) {
    match holder(program, object) {
        Some((_, holder)) => (
            holder.key_bytes + object.key_bytes,
            holder.capacity.saturating_mul(object.capacity),
        ),
        None => (object.key_bytes, object.capacity),
    }
}

fn holder<'a>(program: &'a Program, object: &StateObject) -> Option<(ObjectId, &'a StateObject)> {
    match object.nesting {
        Some(Nesting::Shape(holder)) => Some((holder, program.objects.get(holder.0)?)),
        _ => None,
    }
}

/// A map of maps with its shape.
struct Pair<'a> {
    id: ObjectId,
    holder: &'a StateObject,
    shape: ObjectId,
    inner: &'a StateObject,
    values: &'a [(u32, ObjectId)],
}

fn pairs(program: &Program) -> impl Iterator<Item = Pair<'_>> {
    let objects = program.objects.iter().enumerate();
    objects.filter_map(|(index, holder)| match &holder.nesting {
        Some(Nesting::Holds { shape, values }) => Some(Pair {
            id: ObjectId(index),
            holder,
            shape: *shape,
            inner: program.objects.get(shape.0)?,
            values,
        }),
        _ => None,
    })
}

/// At the beginning of `create`.
pub fn begin(program: &Program) -> &'static str {
    if pairs(program).next().is_some() {
        "\tself->config = *config;\n\tself->config.initial = NULL;\n"
    } else {
        ""
    }
}

/// Making and ending maps, before `create`.
pub fn lifetime(unit: &Unit) -> String {
    let mut out = String::new();
    for pair in pairs(unit.program) {
        let (prefix, c) = (unit.prefix(pair.shape), pair.inner.kind.c);
        let shape = unit.shape(pair.shape);
        let capacity = pair.inner.capacity;
        let mut cases = String::new();
        for (id, object) in unit.objects() {
            if object.fits(pair.inner) {
                let _ = writeln!(
                    cases,
                    "\tcase {number}: /* {name} */\n\t\t*map = (struct mr_map){{ (u8 *)&{instance}, {capacity}u, number }};\n\t\treturn 0;",
                    number = id.0 + 1,
                    name = super::text::comment_text(&object.name),
                    instance = unit.instance(id),
                    capacity = object.capacity,
                );
            }
        }
        let _ = write!(
            out,
            "
/* The map of this number that can be in {holder}. */
static int {prefix}_named(struct mr_instance *self, u32 number, struct mr_map *map)
{{
	struct {c} *made;
	int error;

	switch (number) {{
{cases}	case MAPS_OWN:
		break;
	default:
		return -EINVAL;
	}}
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	error = {c}_create(made, &{shape}, &self->config, NULL);
	if (error) {{
		free(made);
		return error;
	}}
	*map = (struct mr_map){{ (u8 *)made, {capacity}u, MAPS_OWN }};
	return 0;
}}

static void {prefix}_drop(struct mr_map *map)
{{
	if (map->number == MAPS_OWN) {{
		{c}_destroy((struct {c} *)map->object, &{shape});
		free(map->object);
	}}
}}
",
            holder = super::text::comment_text(&pair.holder.name),
        );
    }
    out
}

/// At the end of `create`: what the file says the maps of maps hold. They have room for it.
pub fn fill(unit: &Unit) -> String {
    let mut out = String::new();
    for pair in pairs(unit.program) {
        let (holder, shape) = (pair.holder, unit.prefix(pair.shape));
        for (index, map) in pair.values {
            let _ = write!(
                out,
                "\t{{\n\t\tconst u8 key[{bytes}] = {{ {key} }};\n\t\tstruct mr_map map;\n\n\t\t{shape}_named(self, {number}u, &map);\n\t\t{c}_hold({operands}, key, map, {shape}_drop, config->time);\n\t}}\n",
                bytes = holder.key_bytes.max(4),
                key = index.to_le_bytes().map(|b| b.to_string()).join(", "),
                number = map.0 + 1,
                c = holder.kind.c,
                operands = unit.operands(pair.id),
            );
        }
    }
    out
}

/// At the beginning of `destroy`: ends the maps that were made.
pub fn clear(unit: &Unit) -> String {
    let mut out = String::new();
    for pair in pairs(unit.program) {
        let _ = write!(
            out,
            "\t{{\n\t\tu8 key[MR_KEY_BYTES_MAX];\n\t\tu64 cursor = 0;\n\t\tstruct mr_map *map;\n\n\t\twhile ((map = {c}_each({operands}, &cursor, key, UINT64_MAX)))\n\t\t\t{shape}_drop(map);\n\t}}\n",
            c = pair.holder.kind.c,
            operands = unit.operands(pair.id),
            shape = unit.prefix(pair.shape),
        );
    }
    out
}

/// Setting and removing maps, for a map of maps; nothing for all others.
pub fn holder_control(unit: &Unit, id: ObjectId, table: &mut String) -> String {
    let Some(pair) = pairs(unit.program).find(|p| p.id == id) else {
        return String::new();
    };
    let (prefix, shape) = (unit.prefix(pair.id), unit.prefix(pair.shape));
    let _ = write!(
        table,
        "\n\t\t.set = {prefix}_set,\n\t\t.remove = {prefix}_remove,"
    );
    format!(
        "
static int {prefix}_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{{
	struct mr_map map;
	int error = {shape}_named(self, mr_load32(value), &map);

	return error ? error : {c}_hold({operands}, key, map, {shape}_drop, now);
}}

static int {prefix}_remove(struct mr_instance *self, const u8 *key, u64 now)
{{
	return {c}_take({operands}, key, {shape}_drop, now);
}}
",
        c = pair.holder.kind.c,
        operands = unit.operands(pair.id),
    )
}

/// The entries of the maps in a map of maps.
pub fn inner_control(unit: &Unit, id: ObjectId, table: &mut String) -> String {
    let Some(pair) = pairs(unit.program).find(|p| p.shape == id) else {
        return String::new();
    };
    let prefix = unit.prefix(pair.shape);
    let (c, holder) = (pair.inner.kind.c, pair.holder.kind.c);
    let operands = unit.operands(pair.id);
    let skip = pair.holder.key_bytes;
    let like = format!(
        "const struct shape like = maps_shape(&{}, map);",
        unit.shape(pair.shape)
    );
    let object = format!("(struct {c} *)map->object, &like");
    let mut out = String::new();
    let mut offer = |function: &str, text: String| {
        if offers(pair.inner, function) {
            let _ = write!(table, "\n\t\t.{function} = {prefix}_{function},");
            out.push_str(&text);
        }
    };
    for (function, parameters, passed) in [("get", "u8 *value, ", "value, "), ("remove", "", "")] {
        offer(
            function,
            format!(
                "
static int {prefix}_{function}(struct mr_instance *self, const u8 *key, {parameters}u64 now)
{{
	const struct mr_map *map = {holder}_element({operands}, key, now);

	if (!map || !map->object)
		return -ENOENT;
	{like}
	return {c}_{function}({object}, key + {skip}, {passed}now);
}}
"
            ),
        );
    }
    offer(
        "set",
        format!(
            "
static int {prefix}_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{{
	struct mr_map *map = {holder}_element({operands}, key, now);
	struct mr_map made;
	int error;

	if (!map || !map->object) {{
		error = {prefix}_named(self, MAPS_OWN, &made);
		if (!error)
			error = {holder}_hold({operands}, key, made, {prefix}_drop, now);
		if (error)
			return error;
		map = {holder}_element({operands}, key, now);
	}}
	{like}
	return {c}_set({object}, key + {skip}, value, now);
}}
"
        ),
    );
    offer(
        "count",
        format!(
            "
static u64 {prefix}_count(struct mr_instance *self, u64 now)
{{
	u8 key[MR_KEY_BYTES_MAX];
	u64 cursor = 0, count = 0;
	const struct mr_map *map;

	while ((map = {holder}_each({operands}, &cursor, key, now))) {{
		{like}
		count += {c}_count({object}, now);
	}}
	return count;
}}
"
        ),
    );
    offer(
        "next",
        format!(
            "
static int {prefix}_next(struct mr_instance *self, u64 *cursor, u8 *key, u8 *value, u64 now)
{{
	u64 outer = *cursor >> {CURSOR_BITS}, inner = (u32)*cursor, at = outer;
	const struct mr_map *map;

	while ((map = {holder}_each({operands}, &at, key, now))) {{
		{like}
		if (!{c}_next({object}, &inner, key + {skip}, value, now)) {{
			*cursor = outer << {CURSOR_BITS} | inner;
			return 0;
		}}
		outer = at;
		inner = 0;
	}}
	return -ENOENT;
}}
"
        ),
    );
    offer(
        "drain",
        format!(
            "
/* Of the maps that were made; the program's own have theirs. */
static void {prefix}_drain(struct mr_instance *self, u32 object, mr_record_fn *fn, void *context)
{{
	u8 key[MR_KEY_BYTES_MAX];
	u64 cursor = 0;
	const struct mr_map *map;

	while ((map = {holder}_each({operands}, &cursor, key, UINT64_MAX))) {{
		{like}
		if (map->number == MAPS_OWN)
			{c}_drain({object}, object, fn, context);
	}}
}}
"
        ),
    );
    out
}
