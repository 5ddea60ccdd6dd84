//! `crc32c` (RFC 3720, B.4). A CRC is linear over GF(2): the result is the exclusive or of what each bit of
//! `word ^ seed` gives alone, which says what a solver and an analysis of keys need.

use millrace_object::helper::Helper;

use super::super::state::Value;
use super::super::{Engine, Gap, State};
use crate::expr::Bin;

/// The polynomial, lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

pub fn meaning(engine: &mut Engine<'_>, s: State, _: &Helper) -> Result<Vec<State>, Gap> {
    let (seed, word) = (engine.number_in(&s, 1)?, engine.number_in(&s, 2)?);
    let seed = engine.low32(seed);
    let word = engine.arena.binary(Bin::Xor, word, seed);
    let zero = engine.arena.number(0, 32);
    let mut crc = zero;
    for (i, part) in (0_u32..).zip(table()) {
        let bit = engine.arena.extract(word, i, 1);
        let part = engine.arena.number(u64::from(part), 32);
        let part = engine.arena.ite(bit, part, zero);
        crc = engine.arena.binary(Bin::Xor, crc, part);
    }
    let crc = engine.arena.resize(crc, 64);
    Ok(vec![engine.after(s, Value::Num(crc))])
}

/// Contribution of each bit of a 64-bit word.
fn table() -> [u32; 64] {
    let mut table = [0; 64];
    let mut crc = POLYNOMIAL;
    // The last bit goes through one division, each one before it through one more.
    for part in table.iter_mut().rev() {
        *part = crc;
        crc = if crc & 1 == 1 {
            crc >> 1 ^ POLYNOMIAL
        } else {
            crc >> 1
        };
    }
    table
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn the_check_value_of_the_polynomial_comes_out() {
        // "12345678", then "9" as the lowest byte of a shorter word: RFC 3720's polynomial gives e3069283
        // for all nine.
        let mut rest = u64::from_le_bytes(*b"12345678") ^ u64::from(u32::MAX);
        let mut crc = table().iter().fold(0, |crc, part| {
            let bit = rest & 1;
            rest >>= 1;
            if bit == 1 { crc ^ part } else { crc }
        });
        crc ^= u32::from(b'9');
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ super::POLYNOMIAL
            } else {
                crc >> 1
            };
        }
        assert_eq!(!crc, 0xe306_9283);
    }
}
