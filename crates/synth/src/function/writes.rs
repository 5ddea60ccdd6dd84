//! Writes of a path: constants in the link header, and the TTL with its sum.
//!
//! How a program updates the header's sum does not matter: a solver has to say that what it writes is what synthesis writes (RFC 1624,
//! equation 3), for every sum and every packet of the path.

use std::collections::BTreeMap;
use std::time::Duration;

use millrace_check::moment::Moment;
use millrace_click::function::Write;
use millrace_model::Limits;
use millrace_model::expr::given::Given;
use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel};
use millrace_model::model::Path;
use millrace_model::solver::{self, Answer, Oracle};

/// Most time for the questions of a path.
const TIME: Duration = Duration::from_secs(2);
/// Bytes of the link header.
const LINK: i64 = 14;
/// Bytes of a store, at most.
const WORD: usize = 8;

/// The writes of a path whose packets fulfil some conditions.
///
/// # Errors
/// What is written is none of these.
pub(super) fn of(
    arena: &mut Arena,
    given: &mut Given,
    path: &Path,
    conditions: &[ExprId],
) -> Result<Vec<Write>, String> {
    let borders = [path.borders.meta, path.borders.start];
    let still = borders.iter().all(|b| arena.constant(*b) == Some(0));
    let length = {
        let length = arena.sym("length", 16, millrace_model::expr::Origin::Length);
        arena.resize(length, 64)
    };
    if !still || path.borders.end != length || path.borders.changed.is_some() {
        return Err("it makes packets longer or shorter".into());
    }
    let mut bytes: BTreeMap<i64, ExprId> = BTreeMap::new();
    for written in &path.rewrites {
        if written.base.is_some() {
            return Err("it writes behind a header of any length".into());
        }
        let made = given.of(arena, &[written.byte]);
        bytes.extend(made.first().map(|byte| (written.at, *byte)));
    }
    bytes.retain(|at, byte| {
        *arena.node(*byte)
            != Node::Byte {
                base: None,
                at: *at,
            }
    });
    let mut writes = Vec::new();
    let behind = bytes.split_off(&LINK);
    let mut run: Vec<(i64, u64)> = Vec::new();
    let mut all: Vec<Vec<(i64, u64)>> = Vec::new();
    for (at, byte) in bytes {
        let value = arena.constant(byte);
        let value = value.ok_or("it writes what is no constant into the link header")?;
        if run.last().is_some_and(|last| last.0 + 1 != at) || run.len() == WORD {
            all.push(std::mem::take(&mut run));
        }
        run.push((at, value));
    }
    all.push(run);
    for run in all {
        let value = run.iter().fold(0, |n, (_, byte)| n << 8 | byte);
        let first = run.first().and_then(|(at, _)| u32::try_from(*at).ok());
        writes.extend(first.map(|first| Write::Link(first, run.len() as u32, value)));
    }
    if !behind.is_empty() {
        writes.push(lowered(arena, &behind, conditions)?);
    }
    Ok(writes)
}

/// The TTL of a header, lowered by one, with the header's sum.
fn lowered(
    arena: &mut Arena,
    bytes: &BTreeMap<i64, ExprId>,
    conditions: &[ExprId],
) -> Result<Write, String> {
    let none = || {
        "it writes other fields of the IP header, or behind it, than a TTL that is one less, with its sum".to_owned()
    };
    let places: Vec<i64> = bytes.keys().copied().collect();
    let header = places.first().map_or(0, |at| at - 8);
    if ![
        vec![header + 8, header + 10, header + 11],
        vec![header + 8, header + 10],
        vec![header + 8, header + 11],
    ]
    .contains(&places)
    {
        return Err(none());
    }
    let number = |arena: &mut Arena, at: i64| {
        let at = arena.number(at as u64, 64);
        arena.byte(at)
    };
    let ttl = number(arena, header + 8);
    let (less, zero) = (arena.number(0xff, 8), arena.number(0, 8));
    let less = arena.binary(Bin::Add, ttl, less);
    if bytes.get(&(header + 8)) != Some(&less) {
        return Err(none());
    }
    let (high, low) = (number(arena, header + 11), number(arena, header + 10));
    let after = |at: i64, before: ExprId| bytes.get(&at).copied().unwrap_or(before);
    // Words as they lie in the packet: little-endian.
    let new = arena.concat(&[after(header + 11, high), after(header + 10, low)]);
    let old = arena.concat(&[high, low]);
    let wanted = followed(arena, old);
    let same = arena.compare(Rel::Eq, new, wanted);
    let differs = arena.not(same);
    let spent = arena.compare(Rel::Eq, ttl, zero);
    let some = arena.not(spent);
    let limits = Limits {
        question: TIME / 2,
        ..Limits::default()
    };
    let mut oracle = Oracle::new(solver::of(&limits), Moment::now() + TIME);
    // Paths that became one write what a condition of theirs chooses: that takes the path's own conditions.
    let with =
        |more: &[ExprId]| -> Vec<ExprId> { conditions.iter().chain(more).copied().collect() };
    let mut never = |all: &[ExprId]| matches!(oracle.holds(arena, all), Answer::Fails);
    if !never(&[some, differs]) && !never(&with(&[some, differs])) {
        return Err("it lowers the TTL, and the sum is not known to follow as it should".into());
    }
    if !never(&with(&[spent])) {
        return Err("it lowers the TTL also of packets that have none to spare".into());
    }
    u16::try_from(header).map(Write::Ttl).map_err(|_| none())
}

/// A header's sum behind a TTL that is one less: the word that begins with the TTL is lowered by one, without a borrow, so that its
/// complement and the new word are 0xfffe together.
fn followed(arena: &mut Arena, old: ExprId) -> ExprId {
    let ones = arena.number(0xffff, 16);
    let complement = arena.binary(Bin::Xor, old, ones);
    let wide = arena.resize(complement, 32);
    let more = arena.number(0xfffe, 32);
    let sum = arena.binary(Bin::Add, wide, more);
    let (low, carry) = (arena.extract(sum, 0, 16), arena.extract(sum, 16, 16));
    let (low, carry) = (arena.resize(low, 32), arena.resize(carry, 32));
    let folded = arena.binary(Bin::Add, low, carry);
    let folded = arena.extract(folded, 0, 16);
    arena.binary(Bin::Xor, folded, ones)
}
