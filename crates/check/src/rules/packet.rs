//! Packet memory: what a comparison with the end proves, and what an access needs proved.

use millrace_object::insn::{Condition, Width};

use crate::domain::assume::{mirrored, negated};
use crate::domain::value::Id;
use crate::domain::{Pointer, Region};
use crate::facts::Access;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict, bytes};
use crate::rules::alu::REACH;
use crate::state::{Base, PACKET_START, State};

/// The longest packet, in bytes (`end - data` in `fastpath/abi.h`).
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
                format!("this {verb} touches {} of the {whole}, {}", bytes(from, to), known_to_be_there(known)),
                format!("Before it, insert `if ({start} + {to} > {end}) return …;`."),
            )
        } else {
            let known = if proven <= 0 { "nothing".to_owned() } else { format!("only {proven} bytes") };
            Fault::new(
                "packet-bounds",
                format!(
                    "this {verb} touches {} after a position that is {} to {} bytes into the {whole}, and {known} after that position is known to be there",
                    bytes(from, to),
                    b.lo, b.hi
                ),
                if b.hi > REACH {
                    format!("Bound the variable part of the offset (mask it, or compare it with a constant of at most {FARTHEST}) before it is added, then insert `if (position + {to} > {end}) return …;`.")
                } else {
                    format!("After the variable part is added, insert `if (position + {to} > {end}) return …;`.")
                },
            )
        }
    })?;
    Ok(Access::Packet)
}

fn known_to_be_there(n: i64) -> String {
    match n {
        0 => "but none is known to be there".to_owned(),
        1 => "but only the first is known to be there".to_owned(),
        n => format!("but only the first {n} are known to be there"),
    }
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
    // Further away the address might wrap; the kernel stops at 0xffff already, where its own counters
    // of proven bytes end.
    if b.hi + p.off > REACH || b.lo + p.off < -REACH {
        return true;
    }
    // position + off < end means that the byte at off is there: off + 1 bytes.
    let there = |n: i64, b: &mut Base| {
        b.proven = Some(b.proven.map_or(n, |old| old.max(n)));
        b.beyond.is_none_or(|beyond| n < beyond)
    };
    let missing = |n: i64, b: &mut Base| {
        b.beyond = Some(b.beyond.map_or(n, |old| old.min(n)));
        b.proven.is_none_or(|proven| n > proven)
    };
    match condition {
        Condition::Lt => there(p.off + 1, b),
        Condition::Le => there(p.off, b),
        Condition::Gt => missing(p.off, b),
        Condition::Ge => missing(p.off + 1, b),
        Condition::Eq => there(p.off, b) && missing(p.off + 1, b),
        _ => true,
    }
}
