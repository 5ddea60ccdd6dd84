//! Instruction encodings (RFC 9669), all of v1 to v4. Fields that an encoding does not use must be
//! zero: a later instruction set may give them a meaning that would be missed here.

use crate::bytes::u32_at;
use crate::insn::{AluOp, AtomicOp, ByteOrder, Condition, Insn, Operand, Reg, Size, Width};

/// Bytes of one slot.
pub(crate) const SLOT: u64 = 8;

/// The fields of one 8-byte slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub opcode: u8,
    pub dst: u8,
    pub src: u8,
    pub offset: i16,
    pub imm: i32,
}

impl Slot {
    pub fn read(bytes: &[u8], at: usize) -> Option<Slot> {
        let (head, imm) = (u32_at(bytes, at)?, u32_at(bytes, at.checked_add(4)?)?);
        Some(Slot {
            opcode: head as u8,
            dst: (head >> 8) as u8 & 15,
            src: (head >> 12) as u8 & 15,
            offset: (head >> 16) as i16,
            imm: imm as i32,
        })
    }

    /// Whether it is the first half of a 64-bit immediate load.
    pub fn is_wide(self) -> bool {
        self.opcode == 0x18
    }
}

/// A decoded slot whose targets are still relative.
#[derive(Clone, Copy)]
pub(crate) enum Decoded {
    /// complete
    Plain(Insn),
    /// to `delta` slots after the next one
    Jump { delta: i64 },
    /// the same, conditionally; the target inside is not set
    Branch { insn: Insn, delta: i64 },
    /// to `delta` slots after the next one if the function has done so too often
    MayGoto { delta: i64 },
    /// first half of a 64-bit immediate load; the upper 32 bits are in the next slot
    Wide { dst: Reg, pseudo: u8, low: i32 },
    /// call of the function `delta` slots after the next one, unless relocated
    CallLocal { delta: i32 },
    /// call of a kernel function by BTF number
    CallKernel,
}

const CLASS: u8 = 0x07;
const BY_REGISTER: u8 = 0x08;

/// Decodes one slot. The error says what is wrong with it.
pub(crate) fn decode(slot: Slot) -> Result<Decoded, String> {
    if slot.dst > 10 || slot.src > 10 {
        return Err(format!("names register r{}", slot.dst.max(slot.src)));
    }
    match slot.opcode & CLASS {
        0 => load_immediate(slot),
        1 => load(slot),
        2 | 3 => store(slot),
        4 => arithmetic(slot, Width::W32),
        5 => jump(slot, Width::W64),
        6 => jump(slot, Width::W32),
        _ => arithmetic(slot, Width::W64),
    }
}

fn unknown(slot: Slot) -> String {
    format!("has the unknown opcode {:#04x}", slot.opcode)
}

fn unused(slot: Slot, dst: bool, src: bool, offset: bool, imm: bool) -> Result<(), String> {
    let fields = [
        (dst, i64::from(slot.dst), "destination register"),
        (src, i64::from(slot.src), "source register"),
        (offset, i64::from(slot.offset), "offset"),
        (imm, i64::from(slot.imm), "immediate"),
    ];
    for (is_unused, value, name) in fields {
        if is_unused && value != 0 {
            return Err(format!(
                "(opcode {:#04x}) has {value} in its {name}, which must be 0",
                slot.opcode
            ));
        }
    }
    Ok(())
}

/// A destination that the instruction writes.
fn written(slot: Slot) -> Result<Reg, String> {
    match slot.dst {
        10 => Err("writes r10, the read-only frame pointer".to_owned()),
        dst => Ok(Reg(dst)),
    }
}

fn operand(slot: Slot) -> Result<Operand, String> {
    if slot.opcode & BY_REGISTER != 0 {
        unused(slot, false, false, false, true)?;
        Ok(Operand::Reg(Reg(slot.src)))
    } else {
        unused(slot, false, true, false, false)?;
        Ok(Operand::Imm(i64::from(slot.imm)))
    }
}

fn size(slot: Slot) -> Size {
    match slot.opcode & 0x18 {
        0x00 => Size::B4,
        0x08 => Size::B2,
        0x10 => Size::B1,
        _ => Size::B8,
    }
}

fn load_immediate(slot: Slot) -> Result<Decoded, String> {
    match slot.opcode {
        0x18 => {
            unused(slot, false, false, true, false)?;
            Ok(Decoded::Wide {
                dst: written(slot)?,
                pseudo: slot.src,
                low: slot.imm,
            })
        }
        0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 => Ok(Decoded::Plain(Insn::LegacyPacketLoad)),
        _ => Err(unknown(slot)),
    }
}

fn load(slot: Slot) -> Result<Decoded, String> {
    let signed = match slot.opcode & 0xe0 {
        0x60 => false,
        0x80 if size(slot) != Size::B8 => true,
        _ => return Err(unknown(slot)),
    };
    unused(slot, false, false, false, true)?;
    Ok(Decoded::Plain(Insn::Load {
        size: size(slot),
        signed,
        dst: written(slot)?,
        base: Reg(slot.src),
        offset: slot.offset,
    }))
}

fn store(slot: Slot) -> Result<Decoded, String> {
    let by_register = slot.opcode & CLASS == 3;
    match slot.opcode & 0xe0 {
        0x60 => {
            unused(slot, false, !by_register, false, by_register)?;
            Ok(Decoded::Plain(Insn::Store {
                size: size(slot),
                base: Reg(slot.dst),
                offset: slot.offset,
                src: if by_register {
                    Operand::Reg(Reg(slot.src))
                } else {
                    Operand::Imm(i64::from(slot.imm))
                },
            }))
        }
        0xc0 if by_register && matches!(size(slot), Size::B4 | Size::B8) => atomic(slot),
        _ => Err(unknown(slot)),
    }
}

fn atomic(slot: Slot) -> Result<Decoded, String> {
    let (op, fetch) = match slot.imm {
        0x00 => (AtomicOp::Add, false),
        0x01 => (AtomicOp::Add, true),
        0x40 => (AtomicOp::Or, false),
        0x41 => (AtomicOp::Or, true),
        0x50 => (AtomicOp::And, false),
        0x51 => (AtomicOp::And, true),
        0xa0 => (AtomicOp::Xor, false),
        0xa1 => (AtomicOp::Xor, true),
        0xe1 => (AtomicOp::Exchange, true),
        0xf1 => (AtomicOp::CompareExchange, true),
        other => return Err(format!("has the unknown atomic operation {other:#x}")),
    };
    if fetch && op != AtomicOp::CompareExchange && slot.src == 10 {
        return Err("writes r10, the read-only frame pointer".to_owned());
    }
    Ok(Decoded::Plain(Insn::Atomic {
        op,
        fetch,
        size: size(slot),
        base: Reg(slot.dst),
        offset: slot.offset,
        src: Reg(slot.src),
    }))
}

fn arithmetic(slot: Slot, width: Width) -> Result<Decoded, String> {
    let dst = written(slot)?;
    let signed = slot.offset == 1;
    let op = match slot.opcode & 0xf0 {
        0x00 => AluOp::Add,
        0x10 => AluOp::Sub,
        0x20 => AluOp::Mul,
        0x30 if signed => AluOp::SignedDiv,
        0x30 => AluOp::Div,
        0x40 => AluOp::Or,
        0x50 => AluOp::And,
        0x60 => AluOp::Lsh,
        0x70 => AluOp::Rsh,
        0x80 if slot.opcode & BY_REGISTER == 0 => {
            unused(slot, false, true, true, true)?;
            return Ok(Decoded::Plain(Insn::Neg { width, dst }));
        }
        0x90 if signed => AluOp::SignedMod,
        0x90 => AluOp::Mod,
        0xa0 => AluOp::Xor,
        0xb0 => AluOp::Mov,
        0xc0 => AluOp::Arsh,
        0xd0 => return byte_order(slot, width, dst),
        _ => return Err(unknown(slot)),
    };
    let src = operand(slot)?;
    match (op, slot.offset) {
        (_, 0) | (AluOp::SignedDiv | AluOp::SignedMod, 1) => {}
        (AluOp::Mov, 8 | 16 | 32) => return sign_extend(slot, width, dst),
        _ => unused(slot, false, false, true, false)?,
    }
    Ok(Decoded::Plain(Insn::Alu {
        op,
        width,
        dst,
        src,
    }))
}

fn sign_extend(slot: Slot, width: Width, dst: Reg) -> Result<Decoded, String> {
    let from = match slot.offset {
        8 => Size::B1,
        16 => Size::B2,
        _ => Size::B4,
    };
    if slot.opcode & BY_REGISTER == 0 || (from == Size::B4 && width == Width::W32) {
        unused(slot, false, false, true, false)?;
    }
    let src = Reg(slot.src);
    Ok(Decoded::Plain(Insn::SignExtend {
        width,
        from,
        dst,
        src,
    }))
}

fn byte_order(slot: Slot, width: Width, dst: Reg) -> Result<Decoded, String> {
    unused(slot, false, true, true, false)?;
    let order = match (width, slot.opcode & BY_REGISTER != 0) {
        (Width::W32, false) => ByteOrder::ToLittle,
        (Width::W32, true) => ByteOrder::ToBig,
        (Width::W64, false) => ByteOrder::Swap,
        (Width::W64, true) => return Err(unknown(slot)),
    };
    match u32::try_from(slot.imm) {
        Ok(bits @ (16 | 32 | 64)) => Ok(Decoded::Plain(Insn::ByteOrder { order, bits, dst })),
        _ => Err(format!(
            "changes the byte order of {} bits; 16, 32 and 64 exist",
            slot.imm
        )),
    }
}

fn jump(slot: Slot, width: Width) -> Result<Decoded, String> {
    let condition = match slot.opcode & 0xf0 {
        0x10 => Condition::Eq,
        0x20 => Condition::Gt,
        0x30 => Condition::Ge,
        0x40 => Condition::Test,
        0x50 => Condition::Ne,
        0x60 => Condition::SignedGt,
        0x70 => Condition::SignedGe,
        0xa0 => Condition::Lt,
        0xb0 => Condition::Le,
        0xc0 => Condition::SignedLt,
        0xd0 => Condition::SignedLe,
        _ => return without_condition(slot),
    };
    Ok(Decoded::Branch {
        insn: Insn::Branch {
            condition,
            width,
            left: Reg(slot.dst),
            right: operand(slot)?,
            target: usize::MAX,
        },
        delta: i64::from(slot.offset),
    })
}

fn without_condition(slot: Slot) -> Result<Decoded, String> {
    match slot.opcode {
        0x05 => {
            unused(slot, true, true, false, true)?;
            Ok(Decoded::Jump {
                delta: i64::from(slot.offset),
            })
        }
        // Of these jumps (JCOND) only one sort has a meaning, by which its source register is 0.
        0xe5 => {
            unused(slot, true, true, false, true)?;
            Ok(Decoded::MayGoto {
                delta: i64::from(slot.offset),
            })
        }
        0x06 => {
            unused(slot, true, true, true, false)?;
            Ok(Decoded::Jump {
                delta: i64::from(slot.imm),
            })
        }
        0x85 => match slot.src {
            0 => {
                unused(slot, true, false, true, false)?;
                Ok(Decoded::Plain(Insn::Call {
                    helper: slot.imm as u32,
                }))
            }
            1 => {
                unused(slot, true, false, true, false)?;
                Ok(Decoded::CallLocal { delta: slot.imm })
            }
            2 => Ok(Decoded::CallKernel),
            other => Err(format!("is a call of the unknown kind {other}")),
        },
        // LLVM wrote the register into the immediate until version 18.
        0x8d => {
            unused(slot, slot.imm != 0, true, true, false)?;
            match u8::try_from(slot.imm) {
                Ok(0) => Ok(Decoded::Plain(Insn::CallRegister {
                    target: Reg(slot.dst),
                })),
                Ok(r @ 1..=10) => Ok(Decoded::Plain(Insn::CallRegister { target: Reg(r) })),
                _ => Err(format!("calls the address in register r{}", slot.imm)),
            }
        }
        0x95 => {
            unused(slot, true, true, true, true)?;
            Ok(Decoded::Plain(Insn::Exit))
        }
        _ => Err(unknown(slot)),
    }
}

#[cfg(test)]
mod tests;
