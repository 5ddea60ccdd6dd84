//! Relations of two pointers: their difference, and their order.
//!
//! Addresses are secret, as the kernel has it ("pointer leak"): no number that a program computes may tell where the
//! host put something, or two runs would differ. So two pointers are related only where both lead into one piece of
//! memory whose bytes lie side by side in BPF's own numbering: the packet with its metadata, one frame's stack, one
//! entry's value, one record. `emit` keeps each of those in one C object as far as the program relates places in it
//! (`millrace_emit`, `codegen/origin.rs`), so that the machine computes BPF's number.
//!
//! Two lookups in the same map may find two entries, and where entries lie is the host's affair: pointers are into
//! one value only if they come from the same lookup, or if the object is a global, of which there is one.

use millrace_object::insn::{Condition, Width};

use super::packet;
use crate::domain::assume::assume;
use crate::domain::{Pointer, Region, Scalar, Value, alu};
use crate::machine::Machine;
use crate::planted::{self, Planted};
use crate::state::State;

/// What an offset is counted from when two offsets are compared as unsigned numbers: farther than any pointer reaches
/// ([`super::alu::REACH`]), so that none is negative.
const MIDDLE: i64 = 1 << 40;

/// Whether two pointers lead into the same memory in every execution, so that their distance is BPF's own number.
#[must_use]
pub fn same_memory(m: &Machine<'_>, p: &Pointer, q: &Pointer) -> bool {
    if p.nullable || q.nullable {
        return false;
    }
    match (p.region, q.region) {
        (Region::Stack(a), Region::Stack(b)) => a == b || planted::is(Planted::FramesAsOne),
        (Region::Value(a), Region::Value(b)) => {
            let one = p.id == q.id && (p.id != 0 || one_value(m, p));
            a == b && (one || planted::is(Planted::EntriesAsOne))
        }
        (Region::Record { .. }, Region::Record { .. }) => p.id == q.id && p.id != 0,
        (Region::Moved(_), Region::Moved(_)) => true,
        (Region::Object(_), Region::Object(_)) => planted::is(Planted::MapsAsOne),
        _ => p.of_packet() && q.of_packet(),
    }
}

/// Whether pointers into this object's values all lead into one value.
fn one_value(m: &Machine<'_>, p: &Pointer) -> bool {
    match p.region {
        Region::Value(o) => m.object(o).is_ok_and(|o| o.kind.is_global()),
        _ => false,
    }
}

/// Whether the lower half of this pointer, of which it is not all, may stand for it in a 32-bit difference.
#[must_use]
pub fn halves(p: &Pointer) -> bool {
    !p.nullable
        && matches!(
            p.region,
            Region::Stack(_) | Region::Value(_) | Region::Record { .. } | Region::Moved(_)
        )
}

/// `p - q` in bytes; none if that is no number of BPF's.
#[must_use]
pub fn distance(
    m: &Machine<'_>,
    st: &State,
    p: &Pointer,
    q: &Pointer,
    width: Width,
) -> Option<Value> {
    if !same_memory(m, p, q) || width == Width::W64 && (p.half || q.half) {
        return None;
    }
    let bytes = if p.of_packet() {
        packet::distance(st, p, q)
    } else if p.moved().is_some() {
        // Where they were is forgotten.
        Scalar::unknown()
    } else {
        Scalar::within(p.least() - q.most(), p.most() - q.least())
    };
    Some(Value::number(match width {
        Width::W32 => alu::zero_extend(32, &bytes),
        Width::W64 => bytes,
    }))
}

/// Whether a branch may compare two pointers. That two addresses have a bit in common tells where they are.
#[must_use]
pub fn comparable(
    m: &Machine<'_>,
    condition: Condition,
    width: Width,
    p: &Pointer,
    q: &Pointer,
) -> bool {
    let signed = matches!(
        condition,
        Condition::SignedGt | Condition::SignedGe | Condition::SignedLt | Condition::SignedLe
    );
    let narrow = !signed && p.narrow() && q.narrow();
    condition != Condition::Test
        && (width == Width::W64 || narrow)
        && !p.half
        && !q.half
        && p.moved().is_none()
        && same_memory(m, p, q)
}

/// `p condition q`, two pointers into the same memory other than the packet, is known to hold, or to fail: both, with
/// what that says about their offsets; none if it cannot be.
#[must_use]
pub fn ordered(
    condition: Condition,
    holds: bool,
    p: &Pointer,
    q: &Pointer,
) -> Option<(Pointer, Pointer)> {
    let place = |p: &Pointer| Scalar::within(MIDDLE + p.least(), MIDDLE + p.most());
    let (a, b) = assume(condition, Width::W64, holds, &place(p), &place(q))?;
    let within = |p: &Pointer, s: Scalar| Pointer {
        lo: p.lo.max(s.r64.smin - MIDDLE - p.off),
        hi: p.hi.min(s.r64.smax - MIDDLE - p.off),
        ..*p
    };
    let (a, b) = (within(p, a), within(q, b));
    (a.lo <= a.hi && b.lo <= b.hi).then_some((a, b))
}
