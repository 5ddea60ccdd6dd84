//! Registers that each instruction reads and writes, for the demand analysis.

use millrace_check::facts::Step;
use millrace_object::helper;
use millrace_object::insn::{AluOp, AtomicOp, Insn, Operand, Reg, Width};

use super::demand::Live;
use super::forms::{
    self, Base, Forms, compares_pointers, is_address, is_pointer, is_pure, natural, needs,
    pointer_base,
};

/// A branch of which both outcomes can happen.
pub fn branch(step: &Step, insn: &Insn, live: &mut Live) {
    let Insn::Branch { left, right, .. } = *insn else {
        return;
    };
    let form = if compares_pointers(step, insn) {
        Forms::POINTER
    } else {
        Forms::SCALAR
    };
    live.add(left, needs(step, left, form));
    if let Operand::Reg(right) = right {
        live.add(right, needs(step, right, form));
    }
}

/// An instruction that goes on to the next.
pub fn plain(step: &Step, insn: &Insn, live: &mut Live) {
    let need = |live: &mut Live, reg: Reg, form: Forms| live.add(reg, needs(step, reg, form));
    match *insn {
        Insn::Store { base, src, .. } => {
            address(step, base, live);
            if let Operand::Reg(src) = src {
                let kind = step.before[usize::from(src.0)];
                need(
                    live,
                    src,
                    if is_pointer(kind) {
                        Forms::POINTER
                    } else {
                        Forms::SCALAR
                    },
                );
            }
        }
        Insn::Atomic {
            op,
            fetch,
            base,
            src,
            ..
        } => {
            if fetch || matches!(op, AtomicOp::Exchange | AtomicOp::CompareExchange) {
                live.remove(if op == AtomicOp::CompareExchange {
                    Reg(0)
                } else {
                    src
                });
            }
            address(step, base, live);
            need(live, src, Forms::SCALAR);
            if op == AtomicOp::CompareExchange {
                need(live, Reg(0), Forms::SCALAR);
            }
        }
        Insn::Call { helper: number } => {
            let result = live.forms(Reg(0));
            for reg in (0..=5).map(Reg) {
                live.remove(reg);
            }
            if !result.any() && is_pure(number) {
                return;
            }
            let Some(helper) = helper::by_number(number) else {
                return;
            };
            for (arg, reg) in helper.args.iter().zip((1..=5).map(Reg)) {
                match arg {
                    helper::Arg::Context => {}
                    helper::Arg::Scalar | helper::Arg::Bytes { .. } | helper::Arg::Callback => {
                        need(live, reg, Forms::SCALAR);
                    }
                    // An object that the program names needs nothing; one that was found does.
                    _ => need(live, reg, Forms::POINTER),
                }
            }
        }
        _ => definition(step, insn, live),
    }
}

/// Instructions that only compute a register: needed as far as their result is.
fn definition(step: &Step, insn: &Insn, live: &mut Live) {
    let Some(dst) = millrace_check::facts::written(insn) else {
        return;
    };
    let demanded = live.forms(dst);
    live.remove(dst);
    if !demanded.any() || is_address(step.after) {
        return;
    }
    let form = natural(step.after, demanded);
    let mut need = |reg: Reg, form: Forms| live.add(reg, needs(step, reg, form));
    match *insn {
        Insn::Alu {
            op: AluOp::Mov,
            src: Operand::Imm(_),
            ..
        } => {}
        Insn::Alu {
            op: AluOp::Mov,
            width,
            src: Operand::Reg(src),
            ..
        } => {
            let wide = forms::width(step, width) == Width::W64;
            need(src, if wide { form } else { Forms::SCALAR });
        }
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => {
            let base = if form == Forms::POINTER {
                pointer_base(step, op, width, dst, src)
            } else {
                None
            };
            need(
                dst,
                if base == Some(Base::Left) {
                    Forms::POINTER
                } else {
                    Forms::SCALAR
                },
            );
            if let Operand::Reg(src) = src {
                need(
                    src,
                    if base == Some(Base::Right) {
                        Forms::POINTER
                    } else {
                        Forms::SCALAR
                    },
                );
            }
        }
        Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } => need(dst, Forms::SCALAR),
        Insn::SignExtend { src, .. } => need(src, Forms::SCALAR),
        Insn::Load { base, .. } => address(step, base, live),
        _ => {}
    }
}

/// The base of a load or store.
fn address(step: &Step, base: Reg, live: &mut Live) {
    live.add(base, needs(step, base, Forms::POINTER));
}
