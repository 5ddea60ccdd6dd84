//! `bpf_fib_lookup`: the host's routes, neighbours and ports, of which a program sees what the call answers
//! and what it writes into its parameters (`struct bpf_fib_lookup`); after fastpath/state/routes_lookup.h.
//! Which route there is for an address is not tied to another call's: the answers are symbols.

use millrace_object::helper::Helper;
use millrace_object::program::ObjectId;
use millrace_object::state::routes;

use super::super::answer::EINVAL;
use super::super::call::gap;
use super::super::state::{Access, Value};
use super::super::{Engine, Gap, State};
use crate::expr::{ExprId, Origin};
use crate::model::Effect;

/// Bytes of the parameters.
const PARAMS: u32 = 64;
/// Highest flag, and those below it.
const FLAGS: u64 = 0x3f;
const DIRECT: u64 = 1;
const SKIP_NEIGHBOUR: u64 = 4;
const BY_TABLE: u64 = 8;
const SOURCE: u64 = 16;
/// `AF_INET`, `AF_INET6`
const FAMILIES: [u64; 2] = [2, 10];
const ENODEV: i64 = 19;
const EAFNOSUPPORT: i64 = 97;
/// Answers: found; no neighbour; too long; no source address. 1 to 9 are the reasons against.
const DONE: u64 = 0;
const NOT_FORWARDED: u64 = 4;
const DISABLED: u64 = 5;
const NO_NEIGHBOUR: u64 = 7;
const TOO_LONG: u64 = 8;
const NO_SOURCE: u64 = 9;

pub fn meaning(engine: &mut Engine<'_>, s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    let table = table(engine)?;
    let (region, offset) = engine.pointer_in(&s, 2, h)?;
    let (size, flags) = (engine.number_in(&s, 3)?, engine.number_in(&s, 4)?);
    let (size, flags) = (engine.low32(size), engine.low32(flags));
    let small = engine.less(size, u64::from(PARAMS));
    let known = engine.less(flags, FLAGS + 1);
    let unknown = engine.arena.not(known);
    let bad = engine.arena.either(small, unknown);
    let (bad, good) = engine.split(s, bad);
    let mut out = Vec::new();
    out.extend(bad.map(|s| engine.answers(s, -EINVAL)));
    let Some(mut s) = good else { return Ok(out) };

    let old = engine.read(&mut s, region, offset, PARAMS)?;
    // The answer depends on all of them.
    engine.tell(&mut s, &old);
    engine.tell(&mut s, &[flags]);
    let name = format!("{}.answer", engine.object_name(table));
    let answer = engine.unknown(&mut s, &name, 32, Origin::State(table.0));
    let family = old.first().copied().unwrap_or(answer);
    let families = FAMILIES.map(|f| engine.is(family, f));
    let served = engine.arena.either(families[0], families[1]);
    let possible = answers(engine, answer, served);
    let Some(mut s) = engine.only(s, possible) else {
        return Ok(out);
    };
    let new = written(engine, &mut s, &old, flags, answer, table);
    let mut access = engine.access(&s, table, "fib_lookup", Effect::Read);
    let address = if engine.arena.constant(families[0]) == Some(1) {
        32..36
    } else {
        32..48
    };
    access.key = old.get(address).unwrap_or(&[]).to_vec();
    s.accesses.push(Access {
        outcome: None,
        ..access
    });
    engine.put(&mut s, region, offset, &new)?;
    let wide = engine.arena.sign_extend(answer, 64);
    out.push(engine.after(s, Value::Num(wide)));
    Ok(out)
}

/// The object that is asked, which the program does not declare.
pub(super) fn table(engine: &Engine<'_>) -> Result<ObjectId, Gap> {
    let objects = &engine.program.objects;
    match objects.iter().position(|o| *o.kind == routes::KIND) {
        Some(at) => Ok(ObjectId(at)),
        None => gap("a program that asks for routes has no object for them"),
    }
}

/// Possible answers: for another family that alone, else that the port does not exist or 0 to 9.
fn answers(engine: &mut Engine<'_>, answer: ExprId, served: ExprId) -> ExprId {
    let error = |n: i64| u64::from(n.wrapping_neg() as u32);
    let other = engine.is(answer, error(EAFNOSUPPORT));
    let (no_port, some) = (
        engine.is(answer, error(ENODEV)),
        engine.less(answer, NO_SOURCE + 1),
    );
    let usual = engine.arena.either(no_port, some);
    engine.arena.ite(served, usual, other)
}

/// The parameters afterwards, by the fields that an answer changes.
fn written(
    engine: &mut Engine<'_>,
    s: &mut State,
    old: &[ExprId],
    flags: ExprId,
    answer: ExprId,
    table: ObjectId,
) -> Vec<ExprId> {
    let name = format!("{}.found", engine.object_name(table));
    let found = engine.unknown_bytes(s, &name, PARAMS, Origin::State(table.0));
    let done = engine.is(answer, DONE);
    let no_neighbour = engine.is(answer, NO_NEIGHBOUR);
    let too_long = engine.is(answer, TOO_LONG);
    let no_source = engine.is(answer, NO_SOURCE);
    let routed = engine.arena.either(done, no_neighbour);
    let chosen = engine.arena.either(routed, no_source);
    let sized = engine.arena.either(done, too_long);
    let has = |engine: &mut Engine<'_>, bit: u64| {
        let part = engine.masked(flags, bit);
        let none = engine.is(part, 0);
        engine.arena.not(none)
    };
    let (source, skip) = (has(engine, SOURCE), has(engine, SKIP_NEIGHBOUR));
    let source = engine.arena.all(&[source, routed]);
    let resolve = engine.arena.not(skip);
    let resolved = engine.arena.all(&[resolve, done]);
    let name = format!("{}.gateway", engine.object_name(table));
    let gateway = engine.unknown(s, &name, 1, Origin::State(table.0));
    let gateway = engine.arena.all(&[gateway, chosen]);
    let name = format!("{}.other-family", engine.object_name(table));
    let other = engine.unknown(s, &name, 1, Origin::State(table.0));
    let other = engine.arena.all(&[other, gateway, routed]);
    let (direct, by_table) = (has(engine, DIRECT), has(engine, BY_TABLE));
    let reached = searched(engine, s, old, answer, table);
    let cleared = engine.arena.all(&[direct, by_table, reached]);
    let cleared = engine.arena.either(cleared, done);
    // Only an address of IPv6 is longer than four bytes.
    let family = old.first().copied().unwrap_or(answer);
    let four = engine.is(family, FAMILIES[0]);
    let long = engine.arena.ite(four, other, gateway);
    let zero = engine.arena.number(0, 8);
    let six = engine.arena.number(FAMILIES[1], 8);
    let mut new = Vec::new();
    for (i, (old, found)) in old.iter().zip(&found).enumerate() {
        let (condition, value) = match i {
            0 => (other, six),
            6..8 => (sized, *found),
            8..16 => (chosen, *found),
            16..32 => (source, *found),
            32..36 => (gateway, *found),
            36..48 => (long, *found),
            48..52 => (cleared, zero),
            52..64 => (resolved, *found),
            _ => {
                new.push(*old);
                continue;
            }
        };
        new.push(engine.arena.ite(condition, value, *old));
    }
    new
}

/// Whether a table is searched at all, before which its number is taken out of the parameters: not for a port
/// that does not exist or does not forward, another family, or an address of IPv6 that stays on its link.
fn searched(
    engine: &mut Engine<'_>,
    s: &mut State,
    old: &[ExprId],
    answer: ExprId,
    table: ObjectId,
) -> ExprId {
    let name = format!("{}.on-link", engine.object_name(table));
    let on_link = engine.unknown(s, &name, 1, Origin::State(table.0));
    let family = old.first().copied().unwrap_or(answer);
    let six = engine.is(family, FAMILIES[1]);
    let stays = engine.is(answer, NOT_FORWARDED);
    let on_link = engine.arena.all(&[on_link, six, stays]);
    let known = engine.less(answer, NO_SOURCE + 1);
    let unknown = engine.arena.not(known);
    let disabled = engine.is(answer, DISABLED);
    let early = engine.arena.either(unknown, disabled);
    let early = engine.arena.either(early, on_link);
    engine.arena.not(early)
}
