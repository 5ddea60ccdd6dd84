//! What calls stand for whose helper calls the program back, keeps its state in the caller's stack, or
//! leaves the function that calls it, and what a timer calls: a few instructions, laid out as a frame of their own around the function that is called back.
//!
//! The loop that `bpf_loop` is, is then a loop like any other: the explorer takes its rounds together or
//! one by one, the proof that the program ends counts them, and the emitter writes it down as a loop of C
//! into which clang inlines the function. No rule knows of callbacks but one: what is called back, and
//! the map that is gone through, are those that were found before (`rules/callback`).

pub mod expiry;
pub mod for_each;
pub mod iter_num;
pub mod loop_;
pub mod resolve;
pub mod tail;
pub mod timer;

use std::collections::BTreeMap;

use millrace_object::helper::{self, Helper, TIMER_FIRED};
use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg};
use millrace_object::program::{FunctionId, ObjectId, Program};

use crate::facts::Expansion;
use resolve::{Address, Known};

/// A call's instructions.
pub struct Driver {
    /// jumps are within; the one local call is of the function that is called back
    pub insns: Vec<Insn>,
    /// how many arguments that function gets
    pub arguments: u8,
    /// what must hold where it begins
    pub expansion: Expansion,
}

impl Driver {
    /// Of instructions that call a function with the entry that something is due for: map, key and value.
    fn fired(insns: Vec<Insn>, function: FunctionId, object: ObjectId) -> Self {
        Self {
            insns,
            arguments: 3,
            expansion: Expansion {
                helper: TIMER_FIRED.number,
                function: Some(function),
                object: Some(object),
                plain: false,
            },
        }
    }
}

/// What a call of this helper is expanded into, if it is; given what its arguments are known to be.
///
/// # Errors
/// What is not known of them.
pub fn of(
    program: &Program,
    number: u32,
    arguments: &[Known; 5],
) -> Option<Result<Driver, &'static str>> {
    let helper = helper::by_number(number)?;
    if let Some(insns) = iter_num::insns(helper) {
        return Some(Ok(Driver {
            insns,
            arguments: 0,
            expansion: Expansion {
                helper: number,
                function: None,
                object: None,
                plain: false,
            },
        }));
    }
    let position = helper.function_argument()?;
    Some(expand(program, helper, position, arguments))
}

/// Maps, each with what the arguments of a call are known to be when it is that one.
pub type ByMap = Vec<(ObjectId, [Known; 5])>;

/// Where a call that is expanded goes through one of several maps: the register that holds it, and each
/// map with what the arguments are known to be when it is that one.
#[must_use]
pub fn maps(number: u32, arguments: &[Known; 5]) -> Option<(Reg, ByMap)> {
    let helper = helper::by_number(number)?;
    helper.function_argument()?;
    let position = helper.object_argument()?;
    let Known::Either(maps) = *arguments.get(position)? else {
        return None;
    };
    let with = |map| {
        let mut known = *arguments;
        if let Some(k) = known.get_mut(position) {
            *k = Known::One(Address::Object(map));
        }
        (map, known)
    };
    let register = Reg(u8::try_from(position + 1).ok()?);
    Some((register, maps.iter().map(with).collect()))
}

fn expand(
    program: &Program,
    helper: &'static Helper,
    position: usize,
    arguments: &[Known; 5],
) -> Result<Driver, &'static str> {
    let function = match arguments.get(position) {
        Some(Known::One(Address::Function(f))) => *f,
        Some(Known::Either(_) | Known::Many) => return Err("one of several functions"),
        _ => return Err("not the address of a function of this program"),
    };
    let object = match helper.object_argument().and_then(|i| arguments.get(i)) {
        None => None,
        Some(Known::One(Address::Object(o))) => Some(*o),
        Some(Known::Either(_) | Known::Many) => return Err("for one of too many maps"),
        Some(_) => return Err("for what is not known to be a map"),
    };
    let plain = arguments.get(3) == Some(&Known::One(Address::Zero));
    let (insns, count) = match object {
        None => (loop_::insns(function, plain), 2),
        Some(object) => (for_each::insns(program, object, function)?, 4),
    };
    Ok(Driver {
        insns,
        arguments: count,
        expansion: Expansion {
            helper: helper.number,
            function: Some(function),
            object,
            plain,
        },
    })
}

/// Flags of the `bpf_loop` calls of a function, by instruction, as far as the function alone shows them: what its
/// callers pass does not count, since the kernel decides once for an instruction whether it inlines the call.
#[must_use]
pub(crate) fn loop_flags(function: &[Insn]) -> BTreeMap<usize, Known> {
    let known = resolve::arguments(function, &[Known::No; 5]);
    known.into_iter().map(|(at, a)| (at, a[3])).collect()
}

/// Result of a `bpf_loop` call for more rounds than the kernel makes ([`helper::MOST_ROUNDS`]); the call is the
/// instruction `at` of a function. It is -E2BIG: of 32 bits where the function alone shows that the flags are always
/// the constant 0, as the kernel's verifier inlines such calls, else of 64 bits.
#[must_use]
pub fn too_many_rounds(function: &[Insn], at: usize) -> u64 {
    loop_::too_many(loop_flags(function).get(&at) == Some(&Known::One(Address::Zero)))
}

/// What a tail call in a function is expanded into.
#[must_use]
pub fn of_tail_call() -> Driver {
    Driver {
        insns: tail::insns(),
        arguments: 0,
        expansion: Expansion {
            helper: helper::TAIL_CALL.number,
            function: None,
            object: None,
            plain: false,
        },
    }
}

fn mov(dst: u8, src: Operand) -> Insn {
    alu(AluOp::Mov, dst, src)
}

fn alu(op: AluOp, dst: u8, src: Operand) -> Insn {
    Insn::alu(op, Reg(dst), src)
}

fn branch(condition: Condition, left: u8, right: Operand, target: usize) -> Insn {
    Insn::branch(condition, Reg(left), right, target)
}

fn call_helper(helper: &Helper) -> Insn {
    let helper = helper.number;
    Insn::Call { helper }
}

fn call(function: FunctionId) -> Insn {
    Insn::CallLocal { function }
}

const fn reg(r: u8) -> Operand {
    Operand::Reg(Reg(r))
}

const fn imm(n: i64) -> Operand {
    Operand::Imm(n)
}
