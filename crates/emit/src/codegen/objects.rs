//! State objects in C: members of the instance, their shapes, and the table that control uses.

use std::fmt::Write;

use millrace_object::program::{ObjectId, StateObject};

use super::text::{comment_text, string};
use super::unit::Unit;
use super::{lifetime, nested, tail, timers};
use crate::headers;

/// A global section that no run can change.
pub(super) fn is_constant(object: &StateObject) -> bool {
    object.kind.is_global() && object.read_only && !object.settable
}

/// Whether the header of this object's kind has a function.
pub fn offers(object: &StateObject, function: &str) -> bool {
    headers::defines(object.kind.c, function)
}

/// Shapes, constants and the instance.
pub fn declarations(unit: &Unit) -> String {
    let mut out = String::new();
    for (id, object) in unit.objects() {
        let name = comment_text(&object.name);
        let _ = writeln!(out, "\n/* {name}: {} */", describe(object));
        if unit.is_constant(id) {
            constant(&mut out, unit.tag(id.0), object);
        } else {
            shape(&mut out, unit, id, object);
        }
    }
    out.push_str(&lifetime::common(unit));
    let mut members = unit.treatment.members();
    let nested = unit.program.objects.iter().any(StateObject::is_shape);
    for (there, member) in [
        (
            unit.random,
            "u64 sketch_seed; /* what random draws depend on */",
        ),
        (unit.tails, tail::MEMBER),
        (unit.verdicts, tail::VERDICT),
        (unit.timers, timers::member(unit)),
        (nested, nested::MEMBER),
    ] {
        members.extend(there.then_some(member));
    }
    let mut members: Vec<String> = members.into_iter().map(str::to_owned).collect();
    let own = unit
        .objects()
        .filter(|(id, o)| unit.is_owned(*id) && !o.is_shape());
    members.extend(own.map(|(id, _)| format!("struct {} {};", unit.kind(id), unit.member(id))));
    if members.is_empty() {
        members.push("u8 stateless;".to_owned());
    }
    let _ = writeln!(
        out,
        "\nstruct mr_instance {{\n\t{}\n}};",
        members.join("\n\t")
    );
    out
}

fn describe(object: &StateObject) -> String {
    let mut text = object.kind.name.to_owned();
    if object.key_bytes > 0 {
        let _ = write!(text, ", key {} B", object.key_bytes);
    }
    let _ = write!(text, ", value {} B", object.value_bytes);
    if !object.kind.is_global() {
        let _ = write!(text, ", capacity {}", object.capacity);
    }
    if object.expire_after > 0 {
        let _ = write!(text, ", expires after {} ns", object.expire_after);
    }
    text
}

fn shape(out: &mut String, unit: &Unit, id: ObjectId, object: &StateObject) {
    let (tag, shared, homes) = (unit.tag(id.0), unit.is_shared(id), unit.homes(id));
    let operators = unit.operators.get(id.0).copied().unwrap_or_default();
    let fields = [
        ("key_bytes", u64::from(object.key_bytes)),
        ("value_bytes", u64::from(object.value_bytes)),
        ("capacity", object.capacity),
        ("expire_after", object.expire_after),
        ("first", object.first),
        ("window", object.window),
        ("rows", u64::from(object.rows)),
        ("flags", u64::from(object.flags)),
        ("timer", object.timer.map_or(0, |at| u64::from(at) + 1)),
        ("event", object.expiry.map_or(0, timers::number)),
        ("shared", u64::from(shared)),
        ("timed", u64::from(unit.treatment.timed(id))),
        ("homes", u64::from(homes)),
        ("staleness", unit.staleness(id)),
        ("max", operators.max),
        ("or", operators.or),
        ("object", if homes > 0 { id.0 as u64 } else { 0 }),
        ("noted", u64::from(unit.treatment.notes(id))),
        (
            "numbered",
            u64::from(unit.is_worded(id) && object.kind.key_is_place()),
        ),
    ];
    let set: Vec<String> = fields
        .iter()
        .filter(|(_, value)| *value != 0)
        .map(|(name, value)| {
            format!(
                ".{name} = {value}u{}",
                if *value > u64::from(u32::MAX) {
                    "ll"
                } else {
                    ""
                }
            )
        })
        .collect();
    let set = if set.is_empty() {
        "0".to_owned()
    } else {
        set.join(", ")
    };
    let _ = writeln!(out, "static const struct shape shape{tag} = {{ {set} }};");
}

/// Memory that `state/homes.h` maps: of each number its index, of each index a list.
fn homes_bytes(capacity: u64, homes: u32) -> u64 {
    let lists = (4 * u64::from(homes)).next_multiple_of(64);
    let bytes = capacity.saturating_mul(4).div_ceil(64).saturating_mul(64) + 2 * lists;
    mapped(bytes)
}

/// `mr_mapped_bytes` of base.h.
fn mapped(bytes: u64) -> u64 {
    const HUGE: u64 = 2 << 20;
    let page = if bytes < HUGE { 4096 } else { HUGE };
    bytes.div_ceil(page).saturating_mul(page)
}

fn constant(out: &mut String, tag: &str, object: &StateObject) {
    let bytes = object.initial.as_deref().unwrap_or_default();
    let used = bytes
        .iter()
        .rposition(|b| *b != 0)
        .map_or(0, |last| last + 1);
    let _ = write!(
        out,
        "static const _Alignas(16) u8 constant{tag}[{}] = {{",
        object.value_bytes.max(1)
    );
    for (index, byte) in bytes.iter().take(used).enumerate() {
        out.push_str(if index % 16 == 0 { "\n\t" } else { " " });
        let _ = write!(out, "{byte:#04x},");
    }
    out.push_str(if used == 0 { " 0 };\n" } else { "\n};\n" });
}

/// Control functions of each object, and the table of objects.
pub fn control(unit: &Unit) -> String {
    let [before, behind] = unit.treatment.control();
    let mut out = String::new();
    let mut table = String::from("\nstatic const struct mr_object objects[] = {\n");
    for (id, object) in unit.objects() {
        let (tag, c) = (unit.tag(id.0), unit.kind(id));
        let constant = unit.is_constant(id);
        let bytes = match unit.homes(id) {
            _ if constant => 0,
            _ if unit.is_worded(id) => {
                let timed = unit.treatment.timed(id);
                let found = object.transacted_bytes(timed);
                found.map_or(object.bytes(), |(common, _)| common)
            }
            0 => object.bytes(),
            homes => object.bytes() + homes_bytes(object.capacity, homes),
        } + match unit.treatment.notes(id) {
            true => mapped(
                object.capacity.next_multiple_of(64) + (4 * object.capacity).next_multiple_of(64),
            ),
            false => 0,
        };
        let (key_bytes, capacity) = nested::composite(unit.program, object);
        let _ = write!(
            table,
            "\t{{\n\t\t.name = {}, .kind = {}, .key_bytes = {}, .value_bytes = {},\n\t\t.capacity = {}ull, .bytes = {bytes}ull,",
            string(object.name.as_bytes()),
            string(object.kind.name.as_bytes()),
            key_bytes,
            object.value_bytes,
            capacity,
        );
        if object.is_shape() {
            out.push_str(&nested::inner_control(unit, id, &mut table));
        } else if constant {
            let _ = write!(
                out,
                "\nstatic int o{tag}_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)\n{{\n\tmemcpy(value, constant{tag}, {});\n\treturn 0;\n}}\n",
                object.value_bytes,
            );
            let _ = write!(table, "\n\t\t.get = o{tag}_get,");
        } else {
            let operands = unit.operands(id);
            for (function, result, parameters, passed) in CONTROL {
                // Parameters are what a run is told, not what it has learnt.
                let settings = object.kind.is_global() && object.read_only;
                let there = match *function {
                    "changes" => unit.treatment.notes(id),
                    _ => unit.offers(id, function),
                };
                if !there || (settings && ["save", "load", "list", "put"].contains(function)) {
                    continue;
                }
                let call = format!("{c}_{function}({operands}, {passed})");
                let inside = match (unit.is_shared(id), *result) {
                    (false, "void") => format!("\t{call};\n"),
                    (false, _) => format!("\treturn {call};\n"),
                    (true, "void") => format!("{before}\t{call};\n{behind}"),
                    (true, word) => format!(
                        "\t{word} result;\n\n{before}\tresult = {call};\n{behind}\treturn result;\n"
                    ),
                };
                let _ = write!(
                    out,
                    "\nstatic {result} o{tag}_{function}(struct mr_instance *self, {parameters})\n{{\n{inside}}}\n",
                );
                let _ = write!(table, "\n\t\t.{function} = o{tag}_{function},");
            }
            out.push_str(&nested::holder_control(unit, id, &mut table));
        }
        if unit.is_shared(id) {
            table.push_str("\n\t\t.shared = 1,");
        }
        let operators = unit.operators.get(id.0).copied().unwrap_or_default();
        for (name, members) in [("max", operators.max), ("or", operators.or)] {
            if members != 0 {
                let _ = write!(table, "\n\t\t.{name} = {members}ull,");
            }
        }
        table.push_str("\n\t},\n");
    }
    if unit.program.objects.is_empty() {
        return String::new();
    }
    table.push_str("};\n");
    out.push_str(&table);
    out
}

/// Function, result, parameters after the instance, arguments after object and shape.
const CONTROL: &[(&str, &str, &str, &str)] = &[
    ("count", "u64", "u64 now", "now"),
    (
        "get",
        "int",
        "const u8 *key, u8 *value, u64 now",
        "key, value, now",
    ),
    (
        "set",
        "int",
        "const u8 *key, const u8 *value, u64 now",
        "key, value, now",
    ),
    ("remove", "int", "const u8 *key, u64 now", "key, now"),
    (
        "next",
        "int",
        "u64 *cursor, u8 *key, u8 *value, u64 now",
        "cursor, key, value, now",
    ),
    ("full", "u64", "u64 now", "now"),
    ("used", "u64", "u64 now", "now"),
    (
        "drain",
        "void",
        "u32 object, mr_record_fn *fn, void *context",
        "object, fn, context",
    ),
    (
        "save",
        "int",
        "mr_saved_fn *fn, void *context",
        "fn, context",
    ),
    (
        "load",
        "int",
        "const struct mr_saved *piece, u64 now",
        "piece, now",
    ),
    (
        "list",
        "int",
        "u64 from, u64 to, mr_saved_fn *fn, void *context",
        "from, to, fn, context",
    ),
    (
        "put",
        "int",
        "const struct mr_saved *piece, u64 now",
        "piece, now",
    ),
    ("attach", "int", "const void *table", "table"),
    (
        "changes",
        "u64",
        "u64 from, u64 to, u64 most, mr_saved_fn *fn, void *context",
        "from, to, most, fn, context",
    ),
];
