//! Metadata of a packet from a NIC, and lookups in the kernel's flow table: packets come without the first,
//! and there is none of the second (fastpath/helpers/xdp_metadata_rx_*.h, xdp_flow_lookup.h).

use millrace_object::helper::Helper;

use super::super::answer::{EINVAL, ENOENT};
use super::super::{Engine, Gap, State};
use crate::expr::Origin;

type Ways = Result<Vec<State>, Gap>;

const EOPNOTSUPP: i64 = 95;
const EAFNOSUPPORT: i64 = 97;
/// `AF_INET`, `AF_INET6`
const FAMILIES: [u64; 2] = [2, 10];

pub fn absent(engine: &mut Engine<'_>, s: State, _: &Helper) -> Ways {
    Ok(vec![engine.answers(s, -EOPNOTSUPP)])
}

pub fn time(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let (region, offset) = engine.pointer_in(&s, 2, h)?;
    let time = engine.arena.sym("time", 64, Origin::Time);
    let bytes = engine.split_bytes(time, 8);
    engine.put(&mut s, region, offset, &bytes)?;
    Ok(vec![engine.answers(s, 0)])
}

/// Null, and why in the options.
pub fn flow(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Ways {
    let (region, tuple) = engine.pointer_in(&s, 2, h)?;
    let family = engine.read(&mut s, region, tuple, 1)?;
    let family = engine.joined_bytes(&family);
    let (region, options) = engine.pointer_in(&s, 3, h)?;
    let length = engine.number_in(&s, 4)?;
    let length = engine.arena.extract(length, 0, 32);
    let error = |engine: &mut Engine<'_>, n: i64| engine.arena.number(n.wrapping_neg() as u64, 32);
    let (bad, unknown, none) = (
        error(engine, EINVAL),
        error(engine, EAFNOSUPPORT),
        error(engine, ENOENT),
    );
    let mut answer = unknown;
    for f in FAMILIES {
        let is = engine.is(family, f);
        answer = engine.arena.ite(is, none, answer);
    }
    let right = engine.is(length, 4);
    let answer = engine.arena.ite(right, answer, bad);
    let bytes = engine.split_bytes(answer, 4);
    engine.put(&mut s, region, options, &bytes)?;
    Ok(vec![engine.answers(s, 0)])
}
