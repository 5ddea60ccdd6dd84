//! Values of state objects, globals, and reserved records: memory of a fixed size.

use millrace_object::program::{ObjectId, StateObject};

use crate::domain::{Pointer, Value};
use crate::facts::Access;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict, bytes};
use crate::rule::Rule;

/// Checks that `len` bytes at `off` from `p` lie in a value of the object.
///
/// # Errors
/// `value-bounds`, `timer-field`, `constant-write`.
pub fn check(
    m: &Machine<'_>,
    p: &Pointer,
    object: ObjectId,
    off: i64,
    len: i64,
    write: bool,
    verb: &str,
) -> Verdict<Access> {
    let o = m.object(object)?;
    inside(
        m,
        Rule::ValueBounds,
        p,
        off,
        len,
        i64::from(o.value_bytes),
        &format!("a value of `{}`", o.name),
        verb,
    )?;
    super::timer::untouched(m, o, p.least() + off, p.most() + off + len, verb)?;
    if write {
        not_read_only(m, o, verb)?;
    } else {
        m.enforce(!o.is_write_only(), || {
            Fault::new(
                Rule::ValueBounds,
                format!("this {verb} reads a value of `{}`, which programs may only write", o.name),
                "Declare the map without `BPF_F_WRONLY_PROG`, or read what you have written elsewhere.",
            )
        })?;
    }
    m.facts
        .extent(m.at, object, p.least() + off, p.most() + off + len);
    Ok(Access::Value(object))
}

/// Checks that `len` bytes at `off` from `p` lie in a reserved record.
///
/// # Errors
/// `record-bounds`.
pub fn check_record(
    m: &Machine<'_>,
    p: &Pointer,
    object: ObjectId,
    bytes: u32,
    off: i64,
    len: i64,
    verb: &str,
) -> Verdict<Access> {
    let name = &m.object(object)?.name;
    inside(
        m,
        Rule::RecordBounds,
        p,
        off,
        len,
        i64::from(bytes),
        &format!("a record of `{name}`"),
        verb,
    )?;
    m.facts
        .extent(m.at, object, p.least() + off, p.most() + off + len);
    Ok(Access::Record(object))
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one sentence of the message"
)]
fn inside(
    m: &Machine<'_>,
    rule: Rule,
    p: &Pointer,
    off: i64,
    len: i64,
    size: i64,
    what: &str,
    verb: &str,
) -> Verdict<()> {
    let (from, to) = (p.least() + off, p.most() + off + len);
    m.enforce(from >= 0 && to <= size, || {
        let reason = format!("this {verb} touches {} of {what}, which has {size} bytes, from 0", bytes(from, to));
        let remedy = if p.fixed().is_some() {
            format!("Stay below {size} bytes, or make the declared type larger.")
        } else {
            let room = (size - len - off - p.off).max(0);
            format!("Before the index is used, bound it so that its offset in bytes is 0 to {room}, e.g. `if (index >= COUNT) return …;` or `index &= COUNT - 1;`.")
        };
        Fault::new(rule, reason, remedy)
    })
}

/// Checks that a program may write to an object.
///
/// # Errors
/// `constant-write`.
pub fn not_read_only(m: &Machine<'_>, o: &StateObject, verb: &str) -> Verdict<()> {
    m.enforce(!o.read_only, || {
        let (what, remedy) = match o.kind.is_global() {
            true if o.name == ".rodata.params" => (
                "holds the parameters, which are constant while a function runs",
                "Set a parameter before start (`--set NAME=VALUE`); keep what changes in a variable or a state object.",
            ),
            true => ("is constant", "Declare the variable without `const`."),
            false => (
                "programs may only read",
                "Declare the map without `BPF_F_RDONLY_PROG`, or leave the writing to who sets it.",
            ),
        };
        Fault::new(
            Rule::ConstantWrite,
            format!("this {verb} writes to `{}`, which {what}", o.name),
            remedy,
        )
    })
}

/// The number that a load finds, if the object's content cannot change.
#[must_use]
pub fn constant(
    m: &Machine<'_>,
    p: &Pointer,
    object: ObjectId,
    off: i64,
    len: i64,
) -> Option<Value> {
    let from = u32::try_from(p.fixed()? + off).ok()?;
    let bytes = m.program.constant(object, from, u32::try_from(len).ok()?)?;
    let number = bytes.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    Some(Value::constant(number))
}
