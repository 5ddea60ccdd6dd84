//! Checks of an IPv4 header as a whole (RFC 1812, 5.2.2): version, lengths, sum.
//!
//! Whether the sum holds and whether the frame has all of the packet are no tests of single fields. Both are parts of the check that
//! synthesis has (`Guard::Right`), and programs make them behind the others. So a condition of these is that check, where the rest of it
//! holds; where that does not hold nothing asks for it (`Guard::Unknown`, of which nothing may be left).

use std::sync::Arc;

use millrace_click::function::{Base, Field, Guard};
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel};

use super::guard::{Bit, bits};

/// Places of a header: behind Ethernet and up to two VLAN tags.
const PLACES: [u16; 3] = [14, 18, 22];
/// Words of a header, of 32 bits.
const WORDS: std::ops::RangeInclusive<u32> = 5..=15;
/// What sums are taken modulo (RFC 1071).
const ONES: u64 = 0xffff;
/// Bytes of a header without options.
const HEADER: u64 = 20;
/// The byte of a header where its total length begins.
const TOTAL: u32 = 2;

/// What a condition says of a right header, if it is a part of such a check.
pub(super) fn right(arena: &Arena, e: ExprId) -> Option<Guard> {
    let Node::Cmp(rel, a, b) = *arena.node(e) else {
        return None;
    };
    if rel == Rel::Less {
        return whole(arena, a, b);
    }
    let of = match (rel, arena.constant(a), arena.constant(b)) {
        (Rel::Eq, Some(0), None) => b,
        (Rel::Eq, None, Some(0)) => a,
        _ => return None,
    };
    let Node::Bin(Bin::Rem, sum, by) = *arena.node(of) else {
        return None;
    };
    if arena.constant(by) != Some(ONES) {
        return None;
    }
    let at = PLACES.into_iter().find(|at| sums(arena, sum, *at))?;
    let but = Guard::choice(
        Guard::Right(at, false),
        Guard::Constant(false),
        Guard::Unknown,
    );
    Some(Guard::choice(
        Guard::Right(at, true),
        Guard::Constant(true),
        but,
    ))
}

/// Whether an expression is the sum of the words of the header at a byte, whatever its length: the other zero is no header's, whose
/// version is 4.
fn sums(arena: &Arena, sum: ExprId, at: u16) -> bool {
    WORDS.into_iter().all(|words| {
        let packet = [(u64::from(at), 0x40 | words as u8)];
        let known = Assignment::new(Default::default(), packet.into());
        summed(arena, (sum, &known), u32::from(at), words) == Some(true)
    })
}

/// The same for a length. None: something else decides what is summed.
fn summed(
    arena: &Arena,
    (mut sum, known): (ExprId, &Assignment),
    at: u32,
    words: u32,
) -> Option<bool> {
    while let Node::Ite(condition, yes, no) = *arena.node(sum) {
        let own = |id: &ExprId| match arena.node(*id) {
            Node::Sym(_) => false,
            Node::Byte { base, at: byte } => base.is_none() && *byte == i64::from(at),
            _ => true,
        };
        if !cone(arena, &[condition], |_| false).iter().all(own) {
            return None;
        }
        sum = if known.value(arena, condition) == 1 {
            yes
        } else {
            no
        };
    }
    let (terms, constant) = arena.linear(sum);
    let mut most = u128::from(constant);
    let mut weights = vec![0_u64; (words * 32) as usize];
    for (term, factor) in terms {
        let bits = bits(arena, term)?;
        let significant = { bits.iter() }
            .skip_while(|b| **b == Bit::Const(false))
            .count();
        most += u128::from(factor) << significant;
        for (n, bit) in bits.iter().rev().enumerate() {
            let place = match bit {
                Bit::Const(false) => continue,
                Bit::Of(Base::Front, place) => place.checked_sub(at * 8)?,
                _ => return None,
            };
            let weight = weights.get_mut(place as usize)?;
            *weight = (*weight + factor % ONES * ((1_u64 << n) % ONES)) % ONES;
        }
    }
    // Nothing wraps, so that the remainder is that of the words.
    if most > u128::from(u64::MAX) || constant % ONES != 0 {
        return Some(false);
    }
    let wanted = |place: usize, unit: u64| {
        let (byte, bit) = (place / 8, 7 - place % 8);
        unit * (1 << (bit + 8 * (byte % 2))) % ONES
    };
    Some(
        [1, 256].iter().any(|unit| {
            { weights.iter().enumerate() }.all(|(place, w)| *w == wanted(place, *unit))
        }),
    )
}

/// Whether a comparison is whether the frame has all of an IP packet, by the total length that its header names.
fn whole(arena: &Arena, a: ExprId, b: ExprId) -> Option<Guard> {
    let (x, y) = (side(arena, a)?, side(arena, b)?);
    match (x, y) {
        // length + c < total + d
        ((None, c), (Some(at), d)) if d.checked_sub(c)? == u64::from(at) => {
            Some(cut(at).opposite())
        }
        // total + d < length + c
        ((Some(at), d), (None, c)) if (d + 1).checked_sub(c)? == u64::from(at) => Some(cut(at)),
        _ => None,
    }
}

/// The packet's length (none), or the header of which it is the total length, and what is added.
fn side(arena: &Arena, e: ExprId) -> Option<(Option<u16>, u64)> {
    let (terms, constant) = arena.linear(e);
    let [(term, 1)] = terms.as_slice() else {
        return None;
    };
    let bits = bits(arena, *term)?;
    let plain = || {
        bits.iter()
            .skip_while(|b| **b == Bit::Const(false))
            .copied()
    };
    if arena.width(e) < 32 || constant > ONES {
        return None;
    }
    if plain().eq((0..16).map(Bit::Length)) {
        return Some((None, constant));
    }
    let at = PLACES.into_iter().find(|at| {
        let first = (u32::from(*at) + TOTAL) * 8;
        plain().eq((first..first + 16).map(|bit| Bit::Of(Base::Front, bit)))
    });
    at.map(|at| (Some(at), constant))
}

/// Whether the frame has all of the packet whose header is at a byte, where the header is right but for that and its sum.
fn cut(at: u16) -> Guard {
    let first = u32::from(at) * 8;
    let test = |first: u32, width: u32, low: u64, high: u64| {
        let field = Field::Bits {
            base: Base::Front,
            first,
            width,
        };
        Guard::Within(field, [(low, high)].into())
    };
    let long = |words: u32| {
        let own = test(first + 4, 4, words.into(), words.into());
        let total = test(first + TOTAL * 8, 16, u64::from(words) * 4, ONES);
        Guard::All(Arc::new([own, total]))
    };
    let rest = Guard::All(Arc::new([
        Guard::Within(Field::Length, [(u64::from(at) + HEADER, ONES)].into()),
        test(first, 4, 4, 4),
        Guard::Any(WORDS.map(long).collect()),
    ]));
    let wrong = Guard::choice(rest, Guard::Constant(false), Guard::Unknown);
    Guard::choice(Guard::Right(at, false), Guard::Constant(true), wrong)
}
