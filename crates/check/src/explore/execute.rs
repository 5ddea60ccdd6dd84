//! One step: which rules an instruction stands under, and where it goes on.

use millrace_object::insn::Insn;

use crate::facts::{Op, StepId};
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::rules::{alu, atomic, callback, calls, control, memory};
use crate::state::State;

/// Where a way goes on.
pub enum Next {
    /// here
    To(StepId, State),
    /// where the condition holds, and where it fails; none where that cannot be
    Both(Option<(StepId, State)>, Option<(StepId, State)>),
    /// nowhere
    End,
}

/// Executes the step `m.at`.
///
/// # Errors
/// The rule that it breaks.
pub fn step(m: &mut Machine<'_>, mut st: State) -> Verdict<Next> {
    let following = StepId(m.at.0 + 1);
    let Some(step) = m.flow.steps.get(m.at.0) else {
        return Err(Fault::new(
            Rule::FallsOff,
            "execution runs off the end of the program",
            "End every function with a return.",
        ));
    };
    match step.op {
        Op::Plain(insn) => {
            plain(m, &mut st, insn)?;
            Ok(Next::To(following, st))
        }
        Op::Jump { target } => Ok(Next::To(target, st)),
        Op::Branch {
            insn:
                Insn::Branch {
                    condition,
                    width,
                    left,
                    right,
                    ..
                },
            target,
        } => {
            let (holds, fails) = control::branch(m, st, condition, width, left, right)?;
            Ok(Next::Both(
                holds.map(|s| (target, s)),
                fails.map(|s| (following, s)),
            ))
        }
        Op::Branch { .. } => Err(Fault::new(
            Rule::BadInstruction,
            "this branch has no condition",
            "Compile the object again.",
        )),
        Op::Enter { frame, target } => {
            callback::enter(m, &mut st, frame)?;
            control::enter(m, &mut st, frame);
            Ok(Next::To(target, st))
        }
        Op::Leave { target } => {
            control::leave(m, &mut st)?;
            Ok(Next::To(target, st))
        }
        Op::Exit => {
            control::exit(m, &st)?;
            Ok(Next::End)
        }
    }
}

fn plain(m: &mut Machine<'_>, st: &mut State, insn: Insn) -> Verdict<()> {
    match insn {
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => alu::binary(m, st, op, width, dst, src),
        Insn::Neg { width, dst } => alu::neg(m, st, width, dst),
        Insn::SignExtend {
            width,
            from,
            dst,
            src,
        } => alu::sign_extend(m, st, width, from, dst, src),
        Insn::ByteOrder { order, bits, dst } => alu::byte_order(m, st, order, bits, dst),
        Insn::LoadImm { dst, value } => alu::load_imm(m, st, dst, value),
        Insn::Load {
            size,
            signed,
            dst,
            base,
            offset,
        } => memory::load(m, st, size, signed, dst, base, offset),
        Insn::Store {
            size,
            base,
            offset,
            src,
        } => memory::store(m, st, size, base, offset, src),
        Insn::Atomic {
            op,
            fetch,
            size,
            base,
            offset,
            src,
        } => atomic::atomic(m, st, op, fetch, size, base, offset, src),
        Insn::Call { helper } => calls::call(m, st, helper),
        Insn::CallRegister { target } => m.enforce(false, || {
            Fault::new(
                Rule::CallRegister,
                format!(
                    "this instruction calls the function whose address is in r{}",
                    target.0
                ),
                "Call functions by name, and choose between them with `switch`.",
            )
        }),
        Insn::LegacyPacketLoad => m.enforce(false, || {
            Fault::new(
                Rule::LegacyPacketLoad,
                "this is a classic packet load (BPF_ABS or BPF_IND), which XDP programs do not have",
                "Read the packet through `data` and `data_end`.",
            )
        }),
        Insn::Jump { .. } | Insn::Branch { .. } | Insn::CallLocal { .. } | Insn::Exit => {
            Err(Fault::new(
                Rule::BadInstruction,
                "control flow where an ordinary instruction is expected",
                "Compile the object again.",
            ))
        }
    }
}
