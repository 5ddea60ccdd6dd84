//! `bpf_check_mtu`, after fastpath/state/routes_lookup.h: whether a packet of this many bytes more fits through a
//! port, of which the host says how long its packets may be.

use millrace_object::helper::Helper;

use super::super::answer::EINVAL;
use super::super::state::Value;
use super::super::{Engine, Gap, State};
use super::routes::table;
use crate::expr::{Origin, Rel};
use crate::model::Effect;

const ENODEV: i64 = 19;
/// Bytes of an Ethernet header, which the host does not count.
const HEADER: u64 = 14;

pub fn meaning(engine: &mut Engine<'_>, s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    let table = table(engine)?;
    let (region, offset) = engine.pointer_in(&s, 3, h)?;
    let (index, by) = (engine.number_in(&s, 2)?, engine.number_in(&s, 4)?);
    let flags = engine.number_in(&s, 5)?;
    let plain = engine.is(flags, 0);
    let (good, bad) = engine.split(s, plain);
    let mut out = Vec::new();
    out.extend(bad.map(|s| engine.answers(s, -EINVAL)));
    let Some(mut s) = good else { return Ok(out) };
    let mut access = engine.access(&s, table, "check_mtu", Effect::Read);
    access.key = engine.split_bytes(index, 4);
    s.accesses.push(access);
    let name = engine.object_name(table);
    let origin = Origin::State(table.0);
    let there = engine.unknown(&mut s, &format!("{name}.port"), 1, origin);
    let (there, absent) = engine.split(s, there);
    out.extend(absent.map(|s| engine.answers(s, -ENODEV)));
    let Some(mut s) = there else { return Ok(out) };
    let mtu = engine.unknown(&mut s, &format!("{name}.mtu"), 32, origin);
    let given = engine.read(&mut s, region, offset, 4)?;
    let given = engine.joined_bytes(&given);
    let whole = engine.arena.minus(s.borders.end, s.borders.start);
    let whole = engine.arena.extract(whole, 0, 32);
    let header = engine.arena.number(HEADER, 32);
    let longer = engine.plus(given, header);
    let none = engine.is(given, 0);
    let length = engine.arena.ite(none, whole, longer);
    let by = engine.arena.extract(by, 0, 32);
    let length = engine.plus(length, by);
    let most = engine.plus(mtu, header);
    let over = engine.arena.compare(Rel::SignedLess, most, length);
    let bytes = engine.split_bytes(mtu, 4);
    engine.put(&mut s, region, offset, &bytes)?;
    let answer = engine.arena.resize(over, 64);
    out.push(engine.after(s, Value::Num(answer)));
    Ok(out)
}
