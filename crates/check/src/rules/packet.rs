//! Packet memory: what a comparison with the end proves, and what an access needs proved.

use millrace_object::program::Dialect;

use millrace_object::insn::Condition;

use crate::domain::assume::{mirrored, negated};
use crate::domain::value::Id;
use crate::domain::{Pointer, Region, Scalar};
use crate::facts::Access;
use crate::machine::Machine;
use crate::planted::{self, Planted};
use crate::refuse::{Fault, Verdict, bytes};
use crate::rule::Rule;
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
            Rule::PacketBounds,
            "this pointer's position in the packet is not known",
            "Compute it from `data` again.",
        ));
    };
    let (from, to) = (p.off + off, p.off + off + len);
    let meta = matches!(p.region, Region::Meta(_));
    m.enforce(b.lo + from >= 0, || {
        Fault::new(
            Rule::PacketBounds,
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
        let handlers = m.program.dialect == Dialect::Handlers;
        let whole = if meta { "metadata" } else { "packet" };
        if b.lo == b.hi {
            let (from, to, known) = (from + b.lo, to + b.lo, proven.saturating_add(b.lo).max(0));
            Fault::new(
                Rule::PacketBounds,
                format!("this {verb} touches {} of the {whole}, {}", bytes(from, to), known_to_be_there(known)),
                if handlers && !meta {
                    format!("Before it, insert `if (!pointer) return …;` for the pointer that `packet_at` gave; a TYPE of at least {to} bytes from the frame's start, or `packet_bytes(p, 0, {to})`, covers this access.")
                } else {
                    format!("Before it, insert `if ({start} + {to} > {end}) return …;`.")
                },
            )
        } else {
            let known = if proven <= 0 { "nothing".to_owned() } else { format!("only {proven} bytes") };
            Fault::new(
                Rule::PacketBounds,
                format!(
                    "this {verb} touches {} after a position that is {} to {} bytes into the {whole}, and {known} after that position is known to be there",
                    bytes(from, to),
                    b.lo, b.hi
                ),
                if b.hi > REACH {
                    format!("Bound the variable part of the offset (mask it, or compare it with a constant of at most {FARTHEST}) before it is added, then insert `if (position + {to} > {end}) return …;`.")
                } else if handlers && !meta {
                    format!("Read it through `packet_bytes(p, offset, {to})`, where the offset has the variable part, and test the result: `if (!pointer) return …;`.")
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

/// How many bytes lie between two pointers into the packet.
#[must_use]
pub fn distance(st: &State, p: &Pointer, q: &Pointer) -> Scalar {
    let base = |p: &Pointer| match p.region {
        Region::Packet(b) => st.base(b).copied(),
        _ => None,
    };
    let span = |p: &Pointer| match p.region {
        Region::PacketEnd => Some((0, FARTHEST)),
        _ => base(p).map(|b| (b.lo + p.off, b.hi + p.off)),
    };
    let (Some((a, b)), Some((c, d))) = (span(p), span(q)) else {
        return Scalar::unknown();
    };
    let mut least = a.saturating_sub(d);
    if p.region == Region::PacketEnd
        && let Some(proven) = base(q).and_then(|b| b.proven)
    {
        least = least.max(proven.saturating_sub(q.off));
    }
    Scalar::within(least, b.saturating_sub(c).max(least))
}

/// `left condition right` between two pointers is known to hold, or to fail. Gives false if that
/// cannot be; else sharpens what is known about the packet.
pub fn compare(
    st: &mut State,
    condition: Condition,
    holds: bool,
    left: &Pointer,
    right: &Pointer,
) -> bool {
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
        (None, None) => match (left.region, right.region) {
            (Region::Packet(a), Region::Packet(b)) => ordered(st, condition, (left, a), (right, b)),
            _ => true,
        },
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

/// Whether a pointer is so near to its region that its address cannot have wrapped. Arithmetic keeps
/// the parts of an offset below [`REACH`] each. (The kernel stops learning at 0xffff already, where its
/// own counters of proven bytes end.)
fn near(b: &Base, p: &Pointer) -> bool {
    b.hi + p.off <= 2 * REACH && b.lo + p.off >= -2 * REACH
}

/// Two pointers into the packet: what is there after the greater one is there after the smaller one.
/// Compilers drop the comparison with the end where this shows that it holds.
fn ordered(
    st: &mut State,
    condition: Condition,
    left: (&Pointer, Id),
    right: (&Pointer, Id),
) -> bool {
    let (small, great, gap) = match condition {
        Condition::Le | Condition::Eq => (left, right, 0),
        Condition::Lt => (left, right, 1),
        Condition::Ge => (right, left, 0),
        Condition::Gt => (right, left, 1),
        _ => return true,
    };
    let (Some(a), Some(b)) = (st.base(small.1).copied(), st.base(great.1).copied()) else {
        return true;
    };
    if !near(&a, small.0) || !near(&b, great.0) {
        return true;
    }
    let apart = small.0.off + gap - great.0.off;
    if let Some(x) = st.base_mut(small.1) {
        x.hi = x.hi.min(b.hi - apart);
        if x.hi < x.lo {
            return false;
        }
    }
    if let Some(x) = st.base_mut(great.1) {
        x.lo = x.lo.max(a.lo + apart);
        if x.hi < x.lo {
            return false;
        }
    }
    // small + gap <= great, and great + n <= end for n = proven - off.
    let after = b.proven.map(|n| n - great.0.off + gap + small.0.off);
    if let (Some(n), Some(a)) = (after, st.base_mut(small.1)) {
        a.proven = Some(a.proven.map_or(n, |old| old.max(n)));
        return a.beyond.is_none_or(|beyond| n < beyond);
    }
    true
}

fn bounded(st: &mut State, condition: Condition, p: &Pointer, base: Id) -> bool {
    let Some(b) = st.base_mut(base) else {
        return true;
    };
    if !near(b, p) {
        return true;
    }
    // position + off < end means that the byte at off is there: off + 1 bytes.
    let there = |n: i64, b: &mut Base| {
        b.proven = Some(b.proven.map_or(n, |old| old.max(n)));
        // No packet is longer than this (nor is its metadata, which ends where the packet begins).
        b.hi = b.hi.min(FARTHEST - n);
        b.hi >= b.lo && b.beyond.is_none_or(|beyond| n < beyond)
    };
    let missing = |n: i64, b: &mut Base| {
        b.beyond = Some(b.beyond.map_or(n, |old| old.min(n)));
        b.proven.is_none_or(|proven| n > proven)
    };
    match condition {
        Condition::Lt => there(p.off + 1, b),
        Condition::Le => there(
            p.off + i64::from(planted::is(Planted::PacketEndOffByOne)),
            b,
        ),
        Condition::Gt => missing(p.off, b),
        Condition::Ge => missing(p.off + 1, b),
        Condition::Eq => there(p.off, b) && missing(p.off + 1, b),
        _ => true,
    }
}
