//! Packet memory: what a comparison with the end proves, and what an access needs proved.

use millrace_object::insn::{Condition, Width};

use crate::domain::assume::{mirrored, negated};
use crate::domain::value::Id;
use crate::domain::{Pointer, Region};
use crate::facts::Access;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::state::{PACKET_START, State};

/// The largest distance from the packet's start at which a comparison still proves something; the
/// kernel's figure. Packets are at most this long, so that no pointer compared here has wrapped.
pub const FARTHEST: i64 = 0xffff;

/// Checks that `len` bytes at `off` from `p` are packet bytes that exist.
///
/// # Errors
/// `packet-bounds`.
pub fn check(
    m: &Machine<'_>,
    st: &State,
    p: &Pointer,
    base: Id,
    off: i64,
    len: i64,
    verb: &str,
) -> Verdict<Access> {
    let Some(b) = st.base(base).copied() else {
        return Err(Fault::new(
            "packet-bounds",
            "this pointer's position in the packet is not known",
            "Compute it from `data` again.",
        ));
    };
    let (from, to) = (p.off + off, p.off + off + len);
    let meta = matches!(p.region, Region::Meta(_));
    m.enforce(b.lo + from >= 0, || {
        Fault::new(
            "packet-bounds",
            format!(
                "this {verb} begins {} bytes before the start of the packet",
                -(b.lo + from)
            ),
            "Only go back as far as the program went forward.",
        )
    })?;
    let proven = b.proven.unwrap_or(i64::MIN);
    m.enforce(to <= proven, || {
        let (start, end) = if meta { ("data_meta", "data") } else { ("data", "data_end") };
        let whole = if meta { "metadata" } else { "packet" };
        if b.lo == b.hi {
            let (from, to, known) = (from + b.lo, to + b.lo, proven.saturating_add(b.lo).max(0));
            Fault::new(
                "packet-bounds",
                format!("this {verb} touches bytes {from} to {to} of the {whole}, but only {known} are known to be there"),
                format!("Before it, insert `if ({start} + {to} > {end}) return …;`."),
            )
        } else {
            let known = if proven == i64::MIN { "nothing".to_owned() } else { format!("only {proven} bytes") };
            Fault::new(
                "packet-bounds",
                format!(
                    "this {verb} touches bytes {from} to {to} after a position that is {} to {} bytes into the {whole}, and {known} after that position is known to be there",
                    b.lo, b.hi
                ),
                if b.hi > FARTHEST {
                    format!("Bound the variable part of the offset (mask it, or compare it with a constant of at most {FARTHEST}) before it is added, then insert `if (position + {to} > {end}) return …;`.")
                } else {
                    format!("After the variable part is added, insert `if (position + {to} > {end}) return …;`.")
                },
            )
        }
    })?;
    Ok(Access::Packet)
}

/// `left condition right` between two pointers is known to hold, or to fail. Gives false if that
/// cannot be; else sharpens what is known about the packet.
pub fn compare(
    st: &mut State,
    condition: Condition,
    width: Width,
    holds: bool,
    left: &Pointer,
    right: &Pointer,
) -> bool {
    if width != Width::W64 {
        return true;
    }
    let condition = if holds {
        Some(condition)
    } else {
        negated(condition)
    };
    let Some(condition) = condition else {
        return true;
    };
    match (limited(left, right), limited(right, left)) {
        (Some(base), _) => bounded(st, condition, left, base),
        (None, Some(base)) => bounded(st, mirrored(condition), right, base),
        (None, None) => true,
    }
}

/// The position of `p`, if `limit` is the end of the memory that `p` points into.
fn limited(p: &Pointer, limit: &Pointer) -> Option<Id> {
    match (p.region, limit.region) {
        (Region::Packet(base), Region::PacketEnd) => Some(base),
        (Region::Meta(base), Region::Packet(PACKET_START)) if limit.off == 0 => Some(base),
        _ => None,
    }
}

fn bounded(st: &mut State, condition: Condition, p: &Pointer, base: Id) -> bool {
    let Some(b) = st.base_mut(base) else {
        return true;
    };
    let known = b.proven.unwrap_or(i64::MIN);
    if b.hi + p.off > FARTHEST || b.lo + p.off < -FARTHEST {
        return true;
    }
    // position + off < end means that the byte at off is there: off + 1 bytes.
    let proves = match condition {
        Condition::Lt => p.off + 1,
        Condition::Le | Condition::Eq => p.off,
        Condition::Gt => return known < p.off,
        Condition::Ge => return known <= p.off,
        _ => return true,
    };
    b.proven = Some(known.max(proves));
    true
}
