//! `bpf_csum_diff`, as fastpath/helpers/csum_diff.h computes it (RFC 1071): exact for buffers of a known
//! number of bytes.

use millrace_object::helper::Helper;

use super::super::call::gap;
use super::super::state::Value;
use super::super::{Engine, Gap, State};
use crate::expr::{Bin, ExprId, Origin};

/// Most bytes of a buffer that are added up as expressions.
const MOST: u32 = 256;

pub fn meaning(engine: &mut Engine<'_>, mut s: State, h: &Helper) -> Result<Vec<State>, Gap> {
    let from = words(engine, &mut s, 1, h);
    let to = words(engine, &mut s, 3, h);
    let seed = engine.number_in(&s, 5)?;
    let seed = engine.low32(seed);
    let (Ok(from), Ok(to)) = (from, to) else {
        engine.tell_all(&mut s, h);
        let e = engine.unknown(&mut s, h.name, 16, Origin::Helper);
        let e = engine.arena.resize(e, 64);
        s.loose = Some("the sum of a computed number of bytes is taken for any number");
        return Ok(vec![engine.after(s, Value::Num(e))]);
    };
    let ones = engine.arena.number(u64::from(u32::MAX), 64);
    let not = |engine: &mut Engine<'_>, e| engine.arena.binary(Bin::Xor, e, ones);
    let zero = engine.arena.number(0, 64);
    let sum = match (from.is_empty(), to.is_empty()) {
        (false, false) => {
            let less = total(engine, &from, zero);
            let less = not(engine, less);
            let more = total(engine, &to, seed);
            engine.plus(more, less)
        }
        (true, false) => total(engine, &to, seed),
        (false, true) => {
            let seed = not(engine, seed);
            let less = total(engine, &from, seed);
            not(engine, less)
        }
        (true, true) => seed,
    };
    let sum = fold(engine, sum, 32);
    let sum = fold(engine, sum, 16);
    let sum = fold(engine, sum, 16);
    Ok(vec![engine.after(s, Value::Num(sum))])
}

/// The buffer that two arguments name as 32-bit words; what lacks to a whole word is zero.
fn words(engine: &mut Engine<'_>, s: &mut State, r: usize, h: &Helper) -> Result<Vec<ExprId>, Gap> {
    let bytes = engine.size_in(s, r + 1, h)?;
    if bytes == 0 {
        return Ok(Vec::new());
    }
    if bytes > MOST {
        return gap("a long buffer is added up");
    }
    let (region, offset) = engine.pointer_in(s, r, h)?;
    let bytes = engine.read(s, region, offset, bytes)?;
    let words = bytes.chunks(4).map(|word| {
        let word = engine.joined_bytes(word);
        engine.arena.resize(word, 64)
    });
    Ok(words.collect())
}

/// One's complement sum in 32 bits.
fn total(engine: &mut Engine<'_>, words: &[ExprId], seed: ExprId) -> ExprId {
    let sum = words.iter().fold(seed, |sum, w| engine.plus(sum, *w));
    let sum = fold(engine, sum, 32);
    let sum = fold(engine, sum, 32);
    engine.low32(sum)
}

/// The low bits and the others added.
fn fold(engine: &mut Engine<'_>, sum: ExprId, bits: u32) -> ExprId {
    let low = engine.arena.extract(sum, 0, bits);
    let low = engine.arena.resize(low, 64);
    let high = engine.arena.extract(sum, bits, 64 - bits);
    let high = engine.arena.resize(high, 64);
    engine.plus(low, high)
}
