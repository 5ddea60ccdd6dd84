//! Numbers in instructions: the immediate of arithmetic, the offset of loads and stores, both halves
//! of a 64-bit load.

use super::Relocated;
use super::value::{Resized, Worth};
use crate::decode::Slot;

const CLASS: u8 = 0x07;
const SIZE: u8 = 0x18;
const BY_REGISTER: u8 = 0x08;

/// Puts a number where the instruction holds it; `high` is the second slot's number.
pub(super) fn patch(mut slot: Slot, high: i32, worth: &Worth) -> Result<Relocated, String> {
    let Worth::Number {
        value,
        before,
        resized,
    } = *worth
    else {
        return Ok(Relocated::Absent);
    };
    let differs = |held: u64, before: u64| {
        format!("expects {before} in an instruction that holds {held}: they contradict each other")
    };
    match slot.opcode & CLASS {
        // Arithmetic: 32 and 64 bits wide.
        4 | 7 => {
            if slot.opcode & BY_REGISTER != 0 {
                return Err("is of an instruction without a number".to_owned());
            }
            let held = slot.imm as u32;
            if let Some(before) = before.filter(|b| *b as u32 != held) {
                return Err(differs(u64::from(held), before));
            }
            slot.imm = value as i32;
            Ok(Relocated::Slot(slot, None))
        }
        // A load, a store of a number, a store.
        1..=3 => {
            let held = slot.offset;
            if let Some(before) = before.filter(|b| i16::try_from(*b) != Ok(held)) {
                return Err(differs(held as u64, before));
            }
            slot.offset = i16::try_from(value)
                .map_err(|_| format!("asks for the offset {value}, which no load can have"))?;
            if let Some(Resized { from, to, loads }) = resized {
                if !loads {
                    return Ok(Relocated::Absent);
                }
                let size = |opcode: u8| match opcode & SIZE {
                    0x00 => 4,
                    0x08 => 2,
                    0x10 => 1,
                    _ => 8,
                };
                let bits = match to {
                    4 => 0x00,
                    2 => 0x08,
                    1 => 0x10,
                    8 => 0x18,
                    _ => return Err(format!("asks for a load of {to} bytes")),
                };
                if size(slot.opcode) != from {
                    return Err(differs(size(slot.opcode), from));
                }
                slot.opcode = slot.opcode & !SIZE | bits;
            }
            Ok(Relocated::Slot(slot, None))
        }
        0 if slot.is_wide() && slot.src == 0 => {
            let held = u64::from(high as u32) << 32 | u64::from(slot.imm as u32);
            if let Some(before) = before.filter(|b| *b != held) {
                return Err(differs(held, before));
            }
            slot.imm = value as i32;
            Ok(Relocated::Slot(slot, Some((value >> 32) as i32)))
        }
        _ => Err("is of an instruction that takes none".to_owned()),
    }
}
