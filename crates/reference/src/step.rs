//! One instruction that does not call a function of the program.

use millrace_check::facts::written;
use millrace_object::arithmetic::{arithmetic, compare};
use millrace_object::helper;
use millrace_object::insn::{AluOp, AtomicOp, ByteOrder, Imm64, Insn, Operand, Reg, Width};

use super::{APART, Call, Machine, Violation, callback, log, violation};

impl Machine<'_> {
    pub(super) fn step(&mut self, c: &mut Call, insn: Insn) -> Result<(), Violation> {
        let get = |c: &Call, r: Reg| match c.regs.get(usize::from(r.0)).copied().flatten() {
            Some(v) => Ok(v),
            None => violation(format!("r{} is read unset", r.0)),
        };
        let operand = |c: &Call, o: Operand| match o {
            Operand::Reg(r) => get(c, r),
            Operand::Imm(i) => Ok(i as u64),
        };
        if written(&insn) == Some(Reg(10)) {
            return violation("the frame pointer is written");
        }
        match insn {
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src,
            } => c.regs[usize::from(dst.0)] = Some(operand(c, src)?),
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let b = operand(c, src)?;
                let a = if op == AluOp::Mov { 0 } else { get(c, dst)? };
                c.regs[usize::from(dst.0)] = Some(arithmetic(op, width, a, b));
            }
            Insn::Neg { width, dst } => {
                c.regs[usize::from(dst.0)] = Some(arithmetic(AluOp::Sub, width, 0, get(c, dst)?));
            }
            Insn::SignExtend {
                width,
                from,
                dst,
                src,
            } => {
                let up = 64 - 8 * from.bytes();
                let s = ((get(c, src)? << up) as i64 >> up) as u64;
                c.regs[usize::from(dst.0)] = Some(if width == Width::W32 {
                    u64::from(s as u32)
                } else {
                    s
                });
            }
            Insn::ByteOrder { order, bits, dst } => {
                let low = get(c, dst)? << (64 - bits) >> (64 - bits);
                let swapped = (low << (64 - bits)).swap_bytes();
                c.regs[usize::from(dst.0)] = Some(if order == ByteOrder::ToLittle {
                    low
                } else {
                    swapped
                });
            }
            Insn::LoadImm { dst, value } => {
                c.regs[usize::from(dst.0)] = Some(match value {
                    Imm64::Number(n) => n,
                    Imm64::Object(o) => Self::pointer(o),
                    Imm64::ObjectValue { object, offset } => match self.values.get(&object) {
                        Some(v) => v + u64::from(offset),
                        None => return violation("no such object"),
                    },
                    Imm64::Function(f) => callback::FUNCTIONS + f.0 as u64,
                });
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                offset,
            } => {
                let at = get(c, base)?.wrapping_add(offset as u64);
                let len = size.bytes() as usize;
                let mut value = if at / APART == self.context / APART {
                    Some(self.field(at, len)?)
                } else {
                    self.note_touch("load", at, Vec::new());
                    self.read(at, len)?
                };
                if signed {
                    let up = 64 - 8 * size.bytes();
                    value = value.map(|v| ((v << up) as i64 >> up) as u64);
                }
                c.regs[usize::from(dst.0)] = value;
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => {
                let v = operand(c, src)?;
                let at = get(c, base)?.wrapping_add(offset as u64);
                let len = size.bytes() as usize;
                self.note_touch("store", at, log::bytes_of(v, len));
                self.note_store(at, log::bytes_of(v, len));
                self.write(at, len, Some(v))?;
            }
            Insn::Atomic {
                op,
                fetch,
                size,
                base,
                offset,
                src,
            } => {
                let at = get(c, base)?.wrapping_add(offset as u64);
                let len = size.bytes() as usize;
                if at % len as u64 != 0 {
                    return violation("an atomic access that is not aligned");
                }
                let Some(old) = self.read(at, len)? else {
                    return violation("an atomic access to unset memory");
                };
                let v = get(c, src)?;
                let width = if len == 4 { Width::W32 } else { Width::W64 };
                let (new, to) = match op {
                    AtomicOp::Add => (arithmetic(AluOp::Add, width, old, v), src),
                    AtomicOp::Or => (old | v, src),
                    AtomicOp::And => (old & v, src),
                    AtomicOp::Xor => (old ^ v, src),
                    AtomicOp::Exchange => (v, src),
                    AtomicOp::CompareExchange => {
                        let expected = get(c, Reg(0))?;
                        let same = if len == 4 {
                            expected as u32 == old as u32
                        } else {
                            expected == old
                        };
                        (if same { v } else { old }, Reg(0))
                    }
                };
                self.note_touch("atomic", at, log::bytes_of(new, len));
                self.note_store(at, log::bytes_of(new, len));
                self.write(at, len, Some(new))?;
                if fetch {
                    c.regs[usize::from(to.0)] = Some(old);
                }
            }
            Insn::Jump { target } => c.pc = target,
            Insn::Branch {
                condition,
                width,
                left,
                right,
                target,
            } => {
                let (a, b) = (get(c, left)?, operand(c, right)?);
                let taken = compare(condition, width, a, b);
                self.note_branch((c.function, c.pc.saturating_sub(1)), (a, b), taken);
                if taken {
                    c.pc = target;
                }
            }
            Insn::Call { helper } => match helper::by_number(helper) {
                Some(h) => self.help(c, h)?,
                None => return violation("an unknown helper"),
            },
            _ => return violation("an instruction that may not be executed"),
        }
        Ok(())
    }

    /// The context's first two fields are whole addresses here, as they are in a register.
    fn field(&mut self, at: u64, len: usize) -> Result<u64, Violation> {
        if let Some(number) = self.exact_field(at.wrapping_sub(self.context), len) {
            return Ok(number);
        }
        let packet = self.packet;
        let bytes = self
            .memory
            .get(&(packet / APART))
            .map_or(0, |m| m.bytes.len() as u64);
        match (at.wrapping_sub(self.context), len) {
            (0 | 8, 4) => Ok(packet),
            (4, 4) => Ok(packet + bytes),
            (12 | 16 | 32, 4) => Ok(u64::from(self.draw() as u32)),
            (24, 8) => Ok(self.draw()),
            (offset, _) => violation(format!("{len} bytes at {offset} of the context")),
        }
    }
}
