//! Loads and stores: which family of memory the address is in decides which rules apply.

use millrace_object::insn::{Operand, Reg, Size};

use super::{context, iterator, packet, read, stack, value};
use crate::collect::Narrow;
use crate::domain::{Pointer, Region, Scalar, Value, alu};
use crate::facts::Access;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::{PACKET_START, State};

/// Numbers below this are null, or members of what null points to.
const NULL_PAGE: u64 = 4096;

/// The address in a register, if it is one that may be followed.
///
/// # Errors
/// `not-a-pointer`, `unchecked-null`, `opaque-pointer`.
pub fn address(m: &Machine<'_>, st: &State, base: Reg, verb: &str) -> Verdict<Pointer> {
    match read(m, st, base)? {
        Value::Pointer(p) => follow(m, p, verb),
        Value::Scalar(s, _) => {
            let fault = if s.as_constant().is_some_and(|n| n < NULL_PAGE) {
                Fault::new(
                    Rule::NotAPointer,
                    format!("this {verb} follows a pointer that is null on this path"),
                    "Before it, insert `if (!pointer) return …;`: where there is nothing, `packet_at` and lookups give null.",
                )
            } else {
                Fault::new(
                    Rule::NotAPointer,
                    format!("this {verb} uses a number ({s}) as an address"),
                    "Derive the address from the context, a map value or a variable; numbers cannot become pointers.",
                )
            };
            m.or(Err(fault), || Pointer::to(Region::Packet(PACKET_START)))
        }
        Value::Gone(why) => Err(super::gone(m, "the address", why)),
    }
}

/// A pointer, if it may be followed.
///
/// # Errors
/// `unchecked-null`, `opaque-pointer`.
pub fn follow(m: &Machine<'_>, p: Pointer, verb: &str) -> Verdict<Pointer> {
    m.enforce(!p.nullable || p.sure, || {
        let what = match p.region {
            Region::Value(o) => m.object(o).map_or("a lookup".to_owned(), |o| {
                format!("a lookup in `{}`", o.name)
            }),
            Region::Inner(o) => m.object(o).map_or("a lookup".to_owned(), |o| {
                format!("a lookup of one of `{}`", o.name)
            }),
            Region::Record { object, .. } => {
                m.object(object).map_or("a reservation".to_owned(), |o| {
                    format!("a reservation in `{}`", o.name)
                })
            }
            _ => "a helper".to_owned(),
        };
        Fault::new(
            Rule::UncheckedNull,
            format!("this {verb} follows the result of {what}, which may be null"),
            "Before it, insert `if (!pointer) return …;`.",
        )
    })?;
    if p.half {
        return Err(Fault::new(
            Rule::NotAPointer,
            format!("this {verb} uses the lower half of an address"),
            "Keep addresses in 64-bit variables (pointers, or `long`).",
        ));
    }
    if let Some(fault) = super::moved(m, &p) {
        return Err(fault);
    }
    let followed = match p.region {
        Region::Object(_) | Region::Inner(_) => Err(Fault::new(
            Rule::OpaquePointer,
            format!("this {verb} follows the address of a state object itself"),
            "Look an entry up first; the object's own memory cannot be seen.",
        )),
        Region::Function(_) => Err(Fault::new(
            Rule::OpaquePointer,
            format!("this {verb} follows the address of a function"),
            "Pass the function to `bpf_loop` or `bpf_for_each_map_elem`; its code cannot be seen.",
        )),
        Region::PacketEnd => Err(Fault::new(
            Rule::PacketBounds,
            format!("this {verb} follows `data_end`, which is one past the packet's last byte"),
            "Start from `data`.",
        )),
        _ => Ok(p),
    };
    match followed {
        Err(fault) if fault.rule == Rule::OpaquePointer => m.or(Err(fault), || p),
        other => other,
    }
}

/// The offsets that `len` bytes at `off` from a pointer have: the first, and one past the last.
fn touched(p: &Pointer, off: i64, len: i64) -> (i64, i64) {
    (p.least() + off, p.most() + off + len)
}

/// A load into `dst`.
///
/// # Errors
/// Those of the memory's family.
pub fn load(
    m: &mut Machine<'_>,
    st: &mut State,
    size: Size,
    signed: bool,
    dst: Reg,
    base: Reg,
    off: i16,
) -> Verdict<()> {
    let p = address(m, st, base, "load")?;
    let (off, len) = (i64::from(off), i64::from(size.bytes()));
    let number = Value::number(Scalar::of_bits(size.bytes() * 8));
    let (access, found) = match p.region {
        Region::Context => context::load(m, &p, off, size, signed)?,
        Region::Packet(b) | Region::Meta(b) => {
            (packet::check(m, st, &p, b, off, len, "load")?, number)
        }
        Region::Value(o) => {
            let access = value::check(m, &p, o, off, len, false, "load")?;
            (
                access,
                value::constant(m, &p, o, off, len).unwrap_or(number),
            )
        }
        Region::Record { object, bytes } => (
            value::check_record(m, &p, object, bytes, off, len, "load")?,
            number,
        ),
        Region::Stack(frame) => {
            let e = stack::extent(m, &p, frame, off, len, "load")?;
            iterator::untouched(m, st, &p, touched(&p, off, len), false, "load")?;
            (e.access(), stack::load(m, st, &e, size.bytes() as u8)?)
        }
        // Only a switched-off rule gets here.
        Region::Object(_)
        | Region::Inner(_)
        | Region::Function(_)
        | Region::PacketEnd
        | Region::Moved(_) => (Access::Several, number),
    };
    if size == Size::B4 && p.region != Region::Context {
        narrow(m, &found)?;
    }
    let found = match found {
        Value::Pointer(_) if signed && p.region != Region::Context => {
            return Err(stack::partial());
        }
        Value::Scalar(s, _) if signed => Value::number(alu::sign_extend(
            millrace_object::insn::Width::W64,
            size,
            &s,
        )),
        other => other,
    };
    let noted = m.facts.access(m.at, access);
    m.or(noted, || ())?;
    super::alu::write(m, st, dst, found)
}

/// Notes what 4 bytes are loaded or stored: the code keeps a pointer otherwise than a number there.
fn narrow(m: &mut Machine<'_>, value: &Value) -> Verdict<()> {
    let noted = match value {
        Value::Gone(_) => return Ok(()),
        Value::Pointer(_) => Narrow::Left,
        Value::Scalar(..) => Narrow::Cut,
    };
    let noted = m.facts.narrow(m.at, noted);
    m.or(noted, || ())
}

/// A store.
///
/// # Errors
/// Those of the memory's family, `pointer-leak`.
pub fn store(
    m: &mut Machine<'_>,
    st: &mut State,
    size: Size,
    base: Reg,
    off: i16,
    src: Operand,
) -> Verdict<()> {
    let value = match src {
        Operand::Reg(r) => read(m, st, r)?,
        Operand::Imm(i) => Value::constant(i as u64),
    };
    let p = address(m, st, base, "store")?;
    let (off, len) = (i64::from(off), i64::from(size.bytes()));
    if !matches!(p.region, Region::Stack(_) | Region::Context) {
        m.enforce(!matches!(value, Value::Pointer(_)), || {
            Fault::new(
                Rule::PointerLeak,
                "a pointer is stored into memory that outlives the packet or leaves with it",
                "Store the value that it points to, or a key that finds it again.",
            )
        })?;
    }
    let access = writable(m, st, &p, off, len, "store")?;
    if let Region::Stack(frame) = p.region {
        let e = stack::extent(m, &p, frame, off, len, "store")?;
        let value = match src {
            Operand::Reg(r) if e.exact => super::alu::with_name(st, r, value),
            _ => value,
        };
        stack::store(m, st, &e, size.bytes() as u8, value)?;
    }
    if size == Size::B4 {
        narrow(m, &value)?;
    }
    m.facts.access(m.at, access)?;
    Ok(())
}

/// Checks that `len` bytes may be written; for a stack, without doing it.
///
/// # Errors
/// Those of the memory's family.
pub fn writable(
    m: &Machine<'_>,
    st: &State,
    p: &Pointer,
    off: i64,
    len: i64,
    verb: &str,
) -> Verdict<Access> {
    match p.region {
        Region::Context => m.or(Err(context::write_fault()), || Access::Several),
        Region::Packet(b) | Region::Meta(b) => packet::check(m, st, p, b, off, len, verb),
        Region::Value(o) => value::check(m, p, o, off, len, true, verb),
        Region::Record { object, bytes } => {
            value::check_record(m, p, object, bytes, off, len, verb)
        }
        Region::Stack(frame) => {
            let e = stack::extent(m, p, frame, off, len, verb)?;
            iterator::untouched(m, st, p, touched(p, off, len), true, verb)?;
            Ok(e.access())
        }
        Region::Object(_)
        | Region::Inner(_)
        | Region::Function(_)
        | Region::PacketEnd
        | Region::Moved(_) => follow(m, *p, verb).map(|_| Access::Several),
    }
}

/// Checks that `len` bytes may be read as bytes (by a helper).
///
/// # Errors
/// Those of the memory's family.
pub fn readable(m: &Machine<'_>, st: &State, p: &Pointer, len: i64, verb: &str) -> Verdict<Access> {
    looked_at(m, st, p, len, verb, stack::require_bytes)
}

/// The same for bytes that are there and that the helper does not look at, so that there may be pointers among them.
///
/// # Errors
/// Those of the memory's family.
pub fn present(m: &Machine<'_>, st: &State, p: &Pointer, len: i64, verb: &str) -> Verdict<Access> {
    looked_at(m, st, p, len, verb, stack::require_written)
}

fn looked_at(
    m: &Machine<'_>,
    st: &State,
    p: &Pointer,
    len: i64,
    verb: &str,
    required: fn(&Machine<'_>, &State, &stack::Extent) -> Verdict<()>,
) -> Verdict<Access> {
    match p.region {
        Region::Packet(b) | Region::Meta(b) => packet::check(m, st, p, b, 0, len, verb),
        Region::Value(o) => value::check(m, p, o, 0, len, false, verb),
        Region::Record { object, bytes } => value::check_record(m, p, object, bytes, 0, len, verb),
        Region::Stack(frame) => {
            let e = stack::extent(m, p, frame, 0, len, verb)?;
            iterator::untouched(m, st, p, touched(p, 0, len), false, verb)?;
            required(m, st, &e)?;
            Ok(e.access())
        }
        Region::Context => Err(Fault::new(
            Rule::HelperArgument,
            format!("this {verb} would read the context as bytes"),
            "Pass a pointer to the stack, a map value or the packet.",
        )),
        Region::Object(_)
        | Region::Inner(_)
        | Region::Function(_)
        | Region::PacketEnd
        | Region::Moved(_) => follow(m, *p, verb).map(|_| Access::Several),
    }
}
