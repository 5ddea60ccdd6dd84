//! Decoding loses nothing: whatever is accepted encodes to the same slot again.

use super::{Decoded, Slot, decode};
use crate::insn::{AluOp, AtomicOp, ByteOrder, Condition, Insn, Operand, Size, Width};

fn size(size: Size) -> u8 {
    match size {
        Size::B4 => 0x00,
        Size::B2 => 0x08,
        Size::B1 => 0x10,
        Size::B8 => 0x18,
    }
}

fn alu_class(width: Width) -> u8 {
    match width {
        Width::W32 => 4,
        Width::W64 => 7,
    }
}

/// opcode, dst, src, offset, imm
type Fields = (u8, u8, u8, i16, i64);

fn with_operand((opcode, dst, _, offset, _): Fields, operand: Operand) -> Fields {
    match operand {
        Operand::Reg(reg) => (opcode | 8, dst, reg.0, offset, 0),
        Operand::Imm(imm) => (opcode, dst, 0, offset, imm),
    }
}

fn encode_alu(op: AluOp, width: Width, dst: u8, src: Operand) -> Fields {
    let (code, offset) = match op {
        AluOp::Add => (0x00, 0),
        AluOp::Sub => (0x10, 0),
        AluOp::Mul => (0x20, 0),
        AluOp::Div => (0x30, 0),
        AluOp::SignedDiv => (0x30, 1),
        AluOp::Or => (0x40, 0),
        AluOp::And => (0x50, 0),
        AluOp::Lsh => (0x60, 0),
        AluOp::Rsh => (0x70, 0),
        AluOp::Mod => (0x90, 0),
        AluOp::SignedMod => (0x90, 1),
        AluOp::Xor => (0xa0, 0),
        AluOp::Mov => (0xb0, 0),
        AluOp::Arsh => (0xc0, 0),
    };
    with_operand((code | alu_class(width), dst, 0, offset, 0), src)
}

fn encode_atomic(op: AtomicOp, fetch: bool) -> i64 {
    let code = match op {
        AtomicOp::Add => 0x00,
        AtomicOp::Or => 0x40,
        AtomicOp::And => 0x50,
        AtomicOp::Xor => 0xa0,
        AtomicOp::Exchange => 0xe0,
        AtomicOp::CompareExchange => 0xf0,
    };
    code | i64::from(fetch)
}

fn encode(insn: Insn) -> Fields {
    match insn {
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => encode_alu(op, width, dst.0, src),
        Insn::Neg { width, dst } => (0x80 | alu_class(width), dst.0, 0, 0, 0),
        Insn::SignExtend {
            width,
            from,
            dst,
            src,
        } => {
            let bits = from.bytes() as i16 * 8;
            (0xb8 | alu_class(width), dst.0, src.0, bits, 0)
        }
        Insn::ByteOrder { order, bits, dst } => {
            let opcode = match order {
                ByteOrder::ToLittle => 0xd4,
                ByteOrder::ToBig => 0xdc,
                ByteOrder::Swap => 0xd7,
            };
            (opcode, dst.0, 0, 0, i64::from(bits))
        }
        Insn::Load {
            size: bytes,
            signed,
            dst,
            base,
            offset,
        } => {
            let mode = if signed { 0x80 } else { 0x60 };
            (mode | size(bytes) | 1, dst.0, base.0, offset, 0)
        }
        Insn::Store {
            size: bytes,
            base,
            offset,
            src,
        } => match src {
            Operand::Reg(src) => (0x60 | size(bytes) | 3, base.0, src.0, offset, 0),
            Operand::Imm(imm) => (0x60 | size(bytes) | 2, base.0, 0, offset, imm),
        },
        Insn::Atomic {
            op,
            fetch,
            size: bytes,
            base,
            offset,
            src,
        } => {
            let imm = encode_atomic(op, fetch);
            (0xc0 | size(bytes) | 3, base.0, src.0, offset, imm)
        }
        Insn::Branch {
            condition,
            width,
            left,
            right,
            ..
        } => {
            let code = match condition {
                Condition::Eq => 0x10,
                Condition::Gt => 0x20,
                Condition::Ge => 0x30,
                Condition::Test => 0x40,
                Condition::Ne => 0x50,
                Condition::SignedGt => 0x60,
                Condition::SignedGe => 0x70,
                Condition::Lt => 0xa0,
                Condition::Le => 0xb0,
                Condition::SignedLt => 0xc0,
                Condition::SignedLe => 0xd0,
            };
            let class = match width {
                Width::W32 => 6,
                Width::W64 => 5,
            };
            with_operand((code | class, left.0, 0, 0, 0), right)
        }
        Insn::Call { helper } => (0x85, 0, 0, 0, i64::from(helper as i32)),
        Insn::CallRegister { target } => (0x8d, target.0, 0, 0, 0),
        Insn::Exit => (0x95, 0, 0, 0, 0),
        other => unreachable!("{other:?} is not complete after decoding"),
    }
}

/// The slot that a decoded one came from; none where it is not determined: classic packet loads,
/// calls of kernel functions, and the two ways of naming callx's register.
fn back(decoded: Decoded, slot: Slot) -> Option<Fields> {
    match decoded {
        Decoded::Plain(Insn::LegacyPacketLoad) | Decoded::CallKernel => None,
        Decoded::Plain(Insn::CallRegister { .. }) if slot.imm != 0 => None,
        Decoded::Plain(insn) => Some(encode(insn)),
        Decoded::Jump { delta } if slot.opcode == 0x05 => Some((0x05, 0, 0, delta as i16, 0)),
        Decoded::Jump { delta } => Some((0x06, 0, 0, 0, delta)),
        Decoded::Branch { insn, delta } => {
            let (opcode, dst, src, _, imm) = encode(insn);
            Some((opcode, dst, src, delta as i16, imm))
        }
        Decoded::Wide { dst, pseudo, low } => Some((0x18, dst.0, pseudo, 0, i64::from(low))),
        Decoded::MayGoto { delta } => Some((0xe5, 0, 0, delta as i16, 0)),
        Decoded::CallLocal { delta } => Some((0x85, 0, 1, 0, i64::from(delta))),
    }
}

#[test]
fn what_is_accepted_encodes_to_the_same_slot() {
    let mut accepted = std::collections::BTreeSet::new();
    let offsets = [0, 1, 2, 8, 16, 32, 64, -1, i16::MIN, i16::MAX];
    let imms = [
        0,
        1,
        2,
        8,
        11,
        16,
        32,
        64,
        0x40,
        0x41,
        0x50,
        0x51,
        0xa0,
        0xa1,
        0xe0,
        0xe1,
        0xf0,
        0xf1,
        0x100,
        -1,
        i32::MIN,
        i32::MAX,
    ];
    for opcode in 0..=255 {
        for dst in 0..16 {
            for src in 0..16 {
                for offset in offsets {
                    for imm in imms {
                        let slot = Slot {
                            opcode,
                            dst,
                            src,
                            offset,
                            imm,
                        };
                        let Ok(decoded) = decode(slot) else { continue };
                        accepted.insert(opcode);
                        let fields = (opcode, dst, src, offset, i64::from(imm));
                        if let Some(again) = back(decoded, slot) {
                            assert_eq!(again, fields);
                        }
                        assert!(dst <= 10 && src <= 10, "{fields:?}");
                    }
                }
            }
        }
    }
    // RFC 9669, appendix A: 11 branches and 12 binary operations, each by register and by immediate
    // and at both widths; 2 negations, 3 byte orders, 2 jumps, call, callx, exit, the 64-bit load, 6
    // classic loads, 7 loads, 8 stores, 2 atomics. And may_goto, which is the kernel's.
    assert_eq!(
        accepted.len(),
        4 * 11 + 4 * 12 + 2 + 3 + 2 + 3 + 1 + 6 + 7 + 8 + 2 + 1
    );
}

#[test]
fn the_frame_pointer_is_never_written() {
    for opcode in 0..=255 {
        for imm in [0, 1, 16, 0xe1] {
            for (dst, src) in [(10, 0), (10, 1), (1, 10)] {
                let slot = Slot {
                    opcode,
                    dst,
                    src,
                    offset: 0,
                    imm,
                };
                let Ok(Decoded::Plain(insn)) = decode(slot) else {
                    continue;
                };
                let writes = match insn {
                    Insn::Alu { dst, .. }
                    | Insn::Neg { dst, .. }
                    | Insn::SignExtend { dst, .. }
                    | Insn::ByteOrder { dst, .. }
                    | Insn::Load { dst, .. } => dst.0 == 10,
                    Insn::Atomic { fetch, src, op, .. } => {
                        fetch && src.0 == 10 && op != AtomicOp::CompareExchange
                    }
                    _ => false,
                };
                assert!(!writes, "{slot:?}");
            }
        }
    }
}

#[test]
fn refusals_name_the_field() {
    let slot = |opcode, dst, src, offset, imm| Slot {
        opcode,
        dst,
        src,
        offset,
        imm,
    };
    let cases = [
        (slot(0x07, 1, 2, 0, 5), "source register"),
        (slot(0x0f, 1, 2, 0, 5), "immediate"),
        (slot(0x0f, 1, 2, 3, 0), "offset"),
        (slot(0x95, 1, 0, 0, 0), "destination register"),
        (slot(0x07, 11, 0, 0, 5), "r11"),
        (slot(0xbf, 10, 1, 0, 0), "r10"),
        (slot(0xe7, 1, 0, 0, 0), "0xe7"),
        (slot(0xdb, 1, 2, 0, 0x100), "0x100"),
        (slot(0xd7, 1, 0, 0, 24), "24 bits"),
        (slot(0x85, 0, 3, 0, 0), "kind 3"),
        (slot(0xbc, 1, 2, 32, 0), "offset"),
        (slot(0xb7, 1, 0, 8, 0), "offset"),
    ];
    for (slot, word) in cases {
        match decode(slot) {
            Ok(_) => unreachable!("{slot:?} is accepted"),
            Err(problem) => assert!(problem.contains(word), "{slot:?}: {problem}"),
        }
    }
}
