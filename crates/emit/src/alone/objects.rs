//! State objects in C: members of the instance, their shapes, and the table that control uses.

use std::fmt::Write;

use millrace_object::Program;
use millrace_object::program::{ObjectId, StateObject};

use super::text::{comment_text, identifier, string};
use crate::error::Error;
use crate::headers;
use crate::lock::{self, Sharing};

/// How the objects are called.
pub struct Names {
    /// by object: index and name, as part of identifiers
    tags: Vec<String>,
    /// by object: constant bytes of the module instead of a member of the instance
    constants: Vec<bool>,
    /// programs leave their verdicts in the instance
    pub verdicts: bool,
    /// whether timers call anything
    pub timers: bool,
    /// which of them workers share
    pub sharing: Sharing,
    /// whether readers keep what they overwrite
    pub undo: bool,
}

impl Names {
    /// Names for a program's objects; `verdicts`: programs leave theirs in the instance; `timers`: timers
    /// call something.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a kind without a header.
    pub fn new(program: &Program, verdicts: bool, timers: bool) -> Result<Names, Error> {
        for object in &program.objects {
            if headers::text(&format!("state/{}.h", object.kind.c)).is_none() {
                return Err(Error::Unsupported {
                    place: program.name.clone(),
                    what: format!("the kind {} of {}", object.kind.name, object.name),
                });
            }
        }
        let tag = |(index, object): (usize, &StateObject)| {
            format!("{index}_{}", identifier(&object.name))
        };
        Ok(Names {
            tags: program.objects.iter().enumerate().map(tag).collect(),
            constants: program.objects.iter().map(is_constant).collect(),
            verdicts,
            timers,
            sharing: Sharing::default(),
            undo: false,
        })
    }

    /// The same where workers share some of the objects.
    pub fn with(mut self, sharing: &Sharing) -> Self {
        self.sharing = sharing.clone();
        self
    }

    /// Whether workers share this object.
    pub fn is_shared(&self, object: ObjectId) -> bool {
        self.sharing.is_shared(object)
    }

    /// Whether workers share any.
    pub fn shares(&self) -> bool {
        self.sharing.any()
    }

    /// What the object is called in the structure that holds it.
    pub fn member(&self, object: ObjectId) -> String {
        format!("o{}", self.tags[object.0])
    }

    /// The object itself, an lvalue.
    pub fn instance(&self, object: ObjectId) -> String {
        let shared = if self.is_shared(object) {
            "shared->"
        } else {
            ""
        };
        format!("self->{shared}o{}", self.tags[object.0])
    }

    /// The first two arguments of every function of a kind.
    pub fn operands(&self, object: ObjectId) -> String {
        format!("&{}, &shape{}", self.instance(object), self.tags[object.0])
    }

    /// An object's shape.
    pub fn shape(&self, object: ObjectId) -> String {
        format!("shape{}", self.tags[object.0])
    }

    /// What control functions and their like are called: a prefix.
    pub fn prefix(&self, object: ObjectId) -> String {
        format!("o{}", self.tags[object.0])
    }

    /// The address of a byte of a global section.
    pub fn value(&self, object: ObjectId, offset: u32) -> String {
        let base = if self.constants[object.0] {
            format!("(u8 *)constant{}", self.tags[object.0])
        } else {
            format!("global_base({})", self.operands(object))
        };
        if offset == 0 {
            base
        } else {
            format!("({base} + {offset})")
        }
    }

    /// Whether the object is constant bytes of the module.
    pub fn is_constant(&self, object: ObjectId) -> bool {
        self.constants[object.0]
    }

    /// Whether each instance has one of its own.
    pub fn is_owned(&self, object: ObjectId) -> bool {
        !self.is_constant(object) && !self.is_shared(object)
    }

    fn tag(&self, object: usize) -> &str {
        &self.tags[object]
    }
}

/// A global section that no run can change.
pub(super) fn is_constant(object: &StateObject) -> bool {
    object.kind.is_global() && object.read_only && !object.settable
}

/// Whether the header of this object's kind has a function.
pub fn offers(object: &StateObject, function: &str) -> bool {
    headers::defines(object.kind.c, function)
}

/// Shapes, constants and the instance.
pub fn declarations(program: &Program, names: &Names, random: bool, tails: bool) -> String {
    let mut out = String::new();
    for (index, object) in program.objects.iter().enumerate() {
        let _ = writeln!(
            out,
            "\n/* {}: {} */",
            comment_text(&object.name),
            describe(object)
        );
        if names.is_constant(ObjectId(index)) {
            constant(&mut out, names.tag(index), object);
        } else {
            shape(&mut out, names, index, object);
        }
    }
    out.push_str(&lock::text::shared(program, names));
    out.push_str("\nstruct mr_instance {\n");
    if names.shares() {
        out.push_str(lock::text::MEMBERS);
    }
    if names.undo {
        out.push_str(lock::text::UNDO);
    }
    if random {
        out.push_str("\tu64 sketch_seed; /* what random draws depend on */\n");
    }
    if tails {
        out.push_str(super::tail::MEMBER);
    }
    if names.verdicts {
        out.push_str(super::tail::VERDICT);
    }
    if names.timers {
        out.push_str(super::timers::MEMBER);
    }
    let nested = program.objects.iter().any(StateObject::is_shape);
    if nested {
        out.push_str(super::nested::MEMBER);
    }
    let mut members = [random, tails, nested, names.shares()]
        .map(usize::from)
        .iter()
        .sum::<usize>();
    for (index, object) in program.objects.iter().enumerate() {
        if names.is_owned(ObjectId(index)) && !object.is_shape() {
            let _ = writeln!(out, "\tstruct {} o{};", object.kind.c, names.tag(index));
            members += 1;
        }
    }
    if members == 0 {
        out.push_str("\tu8 stateless;\n");
    }
    out.push_str("};\n");
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

fn shape(out: &mut String, names: &Names, index: usize, object: &StateObject) {
    let (tag, shared) = (names.tag(index), names.is_shared(ObjectId(index)));
    let homes = names.sharing.homes(ObjectId(index));
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
        ("shared", u64::from(shared)),
        ("homes", u64::from(homes)),
        ("object", if homes > 0 { index as u64 } else { 0 }),
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
    const HUGE: u64 = 2 << 20;
    let lists = (4 * u64::from(homes)).next_multiple_of(64);
    let bytes = capacity.saturating_mul(4).div_ceil(64).saturating_mul(64) + 2 * lists;
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
pub fn control(program: &Program, names: &Names) -> String {
    let mut out = String::new();
    let mut table = String::from("\nstatic const struct mr_object objects[] = {\n");
    for (index, object) in program.objects.iter().enumerate() {
        let (tag, c) = (names.tag(index), object.kind.c);
        let constant = names.is_constant(ObjectId(index));
        let bytes = match names.sharing.homes(ObjectId(index)) {
            _ if constant => 0,
            0 => object.bytes(),
            homes => object.bytes() + homes_bytes(object.capacity, homes),
        };
        let (key_bytes, capacity) = super::nested::composite(program, object);
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
            out.push_str(&super::nested::inner_control(
                program, names, index, &mut table,
            ));
        } else if constant {
            let _ = write!(
                out,
                "\nstatic int o{tag}_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)\n{{\n\t(void)self;\n\t(void)key;\n\t(void)now;\n\tmemcpy(value, constant{tag}, {});\n\treturn 0;\n}}\n",
                object.value_bytes,
            );
            let _ = write!(table, "\n\t\t.get = o{tag}_get,");
        } else {
            let operands = names.operands(ObjectId(index));
            for (function, result, parameters, passed) in CONTROL {
                if !offers(object, function) {
                    continue;
                }
                let (verb, result_word) = if *result == "void" {
                    ("", "")
                } else {
                    ("return ", *result)
                };
                let word = if result_word.is_empty() {
                    "void"
                } else {
                    result_word
                };
                let call = format!("{c}_{function}({operands}, {passed})");
                let inside = if names.is_shared(ObjectId(index)) {
                    lock::text::controlled(result_word, &call)
                } else {
                    format!("\t{verb}{call};\n")
                };
                let _ = write!(
                    out,
                    "\nstatic {word} o{tag}_{function}(struct mr_instance *self, {parameters})\n{{\n{inside}}}\n",
                );
                let _ = write!(table, "\n\t\t.{function} = o{tag}_{function},");
            }
            out.push_str(&super::nested::holder_control(
                program, names, index, &mut table,
            ));
        }
        if names.is_shared(ObjectId(index)) {
            table.push_str("\n\t\t.shared = 1,");
        }
        table.push_str("\n\t},\n");
    }
    if program.objects.is_empty() {
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
    (
        "drain",
        "void",
        "u32 object, mr_record_fn *fn, void *context",
        "object, fn, context",
    ),
];
