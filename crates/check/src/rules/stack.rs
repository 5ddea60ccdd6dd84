//! A frame's stack: in bounds, initialised before it is read, pointers kept whole.
//!
//! Bytes that the function has not written are zeros, which a flow stores where it needs them (`zero`): what is
//! refused here as uninitialised is gathered first, and refused if it still is so behind these stores.

use millrace_object::insn::STACK;

use crate::domain::alu::zero_extend;
use crate::domain::{Gone, Link, Pointer, Region, Scalar, Value};
use crate::facts::{Access, FrameId};
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict, bytes};
use crate::rule::Rule;
use crate::state::State;

/// A range of a frame's stack, in bounds.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// whose
    pub frame: FrameId,
    /// first byte that may be touched, from the lowest
    pub at: u16,
    /// how many bytes may be touched
    pub len: u16,
    /// always exactly these
    pub exact: bool,
}

impl Extent {
    /// As a fact. Where no byte is touched, one of those beside the address: it is of this frame all the same.
    #[must_use]
    pub fn access(&self) -> Access {
        let from = (i32::from(self.at) - STACK as i32).min(if self.len == 0 { -1 } else { 0 });
        Access::Stack {
            frame: self.frame,
            from,
            to: from + i32::from(self.len.max(1)),
        }
    }
}

/// The bytes that `len` bytes at `off` from `p` may be.
///
/// # Errors
/// `stack-bounds`.
pub fn extent(
    m: &Machine<'_>,
    p: &Pointer,
    frame: FrameId,
    off: i64,
    len: i64,
    verb: &str,
) -> Verdict<Extent> {
    let (from, to) = (p.least() + off, p.most() + off + len);
    let ok = from >= -STACK && to <= 0;
    m.enforce(ok, || {
        let remedy = if p.fixed().is_some() {
            "Stay inside the variable; large arrays belong in a map."
        } else {
            "Bound the index before it is used, e.g. `if (index >= COUNT) return …;`."
        };
        Fault::new(
            Rule::StackBounds,
            format!(
                "this {verb} touches {} of the stack, which has bytes -{STACK} to -1",
                bytes(from, to)
            ),
            remedy,
        )
    })?;
    // Only a switched-off rule gets here out of bounds.
    let from = from.clamp(-STACK, 0);
    let to = to.clamp(from, 0);
    Ok(Extent {
        frame,
        at: (from + STACK) as u16,
        len: (to - from) as u16,
        exact: p.fixed().is_some() && ok,
    })
}

/// What a load of `size` bytes finds. Compilers reload spilled variables that they know will not be
/// used, so it is the use of bytes never written that is refused, not the load.
///
/// # Errors
/// `partial-pointer`, and `uninitialised-stack` where the address varies.
pub fn load(m: &Machine<'_>, st: &State, e: &Extent, size: u8) -> Verdict<Value> {
    let Some(frame) = st.frame_of(e.frame) else {
        return Err(dead_frame());
    };
    if e.exact {
        if let Some(Value::Gone(why)) = frame.load(e.at, size)
            && why != Gone::Never
        {
            return Ok(Value::Gone(why));
        }
        if let Some(byte) = frame.first_uninitialised(e.at, e.len) {
            if m.off(Rule::UninitialisedStack) && !m.gathers {
                return Ok(Value::number(Scalar::of_bits(u32::from(size) * 8)));
            }
            let missing = (byte..e.at + e.len)
                .filter(|&b| !frame.initialised(b, 1))
                .fold(0, |bits, b| bits | 1 << (b - e.at));
            let from = (i64::from(e.at) - STACK) as i16;
            return Ok(Value::Gone(Gone::Stack(e.frame, from, missing, m.at)));
        }
        let number = || Value::number(Scalar::of_bits(u32::from(size) * 8));
        return m.or(frame.load(e.at, size).ok_or_else(partial), number);
    }
    require_initialised(m, frame, e)?;
    require_numbers(m, frame, e)?;
    Ok(Value::number(Scalar::of_bits(u32::from(size) * 8)))
}

/// Requires bytes that somebody reads as bytes: initialised, and no pointer among them.
///
/// # Errors
/// `uninitialised-stack`, `partial-pointer`.
pub fn require_bytes(m: &Machine<'_>, st: &State, e: &Extent) -> Verdict<()> {
    let Some(frame) = st.frame_of(e.frame) else {
        return Err(dead_frame());
    };
    require_initialised(m, frame, e)?;
    require_numbers(m, frame, e)
}

/// Requires bytes that were written.
///
/// # Errors
/// `uninitialised-stack`.
pub fn require_written(m: &Machine<'_>, st: &State, e: &Extent) -> Verdict<()> {
    let frame = st.frame_of(e.frame).ok_or_else(dead_frame)?;
    require_initialised(m, frame, e)
}

fn require_initialised(
    m: &Machine<'_>,
    frame: &crate::state::FrameState,
    e: &Extent,
) -> Verdict<()> {
    let missing = frame.first_uninitialised(e.at, e.len);
    if missing.is_some() {
        m.reads_unwritten(e.frame, frame.uninitialised(e.at, e.len));
    }
    m.enforce(missing.is_none(), || {
        let from = i64::from(e.at) - STACK;
        let at = missing.map_or(0, |b| i64::from(b) - STACK);
        Fault::new(
            Rule::UninitialisedStack,
            format!(
                "{} of the stack are read here, but byte {at} (byte {} of the {} read, counted from 0) holds what is left of an address on this way, or of another kind of value",
                bytes(from, from + i64::from(e.len)),
                at - from,
                e.len
            ),
            "Write the whole variable, padding included, before it is read: `__builtin_memset(&k, 0, sizeof(k));`.",
        )
    })
}

fn require_numbers(m: &Machine<'_>, frame: &crate::state::FrameState, e: &Extent) -> Verdict<()> {
    let pointer = frame
        .touching(e.at, e.len)
        .any(|s| !matches!(s.value, Value::Scalar(..)));
    m.enforce(!pointer, partial)
}

/// The fault of reading a part of a pointer.
pub fn partial() -> Fault {
    Fault::new(
        Rule::PartialPointer,
        "part of a pointer that is kept on the stack is read as a number",
        "Load the pointer as a whole (8 bytes), and keep it out of keys and values.",
    )
}

fn dead_frame() -> Fault {
    Fault::new(
        Rule::StackBounds,
        "this pointer refers to the stack of a function that has returned",
        "Return the value itself, not its address.",
    )
}

/// Stores a value.
///
/// # Errors
/// `pointer-leak`.
pub fn store(m: &Machine<'_>, st: &mut State, e: &Extent, size: u8, value: Value) -> Verdict<()> {
    let depth = |st: &State, id: FrameId| st.frames.iter().position(|f| f.id == id);
    if let Value::Pointer(p) = value {
        let whole = size == 8 || size == 4 && p.narrow();
        m.enforce(whole && e.exact && e.at.is_multiple_of(u16::from(size)), || {
            Fault::new(Rule::PointerLeak, "a pointer is stored to a place on the stack that is not 8 aligned bytes, always the same", "Keep pointers in variables of their own.")
        })?;
        if let Region::Stack(of) = p.region {
            m.enforce(depth(st, of) <= depth(st, e.frame), || {
                Fault::new(
                    Rule::PointerLeak,
                    "the address of a local variable is stored where it outlives the function",
                    "Let the caller own the variable.",
                )
            })?;
        }
    }
    let value = match value {
        Value::Scalar(s, link) => {
            let cut = zero_extend(u32::from(size) * 8, &s);
            Value::Scalar(
                cut,
                if cut == s {
                    link
                } else if size == 4 {
                    link.halved()
                } else {
                    Link::NONE
                },
            )
        }
        other => other,
    };
    let Some(frame) = st.frame_of_mut(e.frame) else {
        return Err(dead_frame());
    };
    if e.exact {
        frame.store(e.at, size, value);
    } else {
        frame.clobber(e.at, e.len);
    }
    Ok(())
}

/// Somebody writes unknown bytes: `certain` of them for sure, the rest of the extent perhaps.
pub fn overwrite(st: &mut State, e: &Extent, certain: u16) {
    if let Some(frame) = st.frame_of_mut(e.frame) {
        frame.clobber(e.at, e.len);
        if e.exact {
            frame.mark(e.at, certain.min(e.len), true);
        }
    }
}
