//! The call of a timer in a map's value (kernel/bpf/helpers.c, `bpf_timer_cb`): its function, with the map, the key
//! and the value of the entry whose timer fired. An entry of its own: nothing of the program calls it.

use millrace_object::helper::TIMER_FIRED;
use millrace_object::insn::{AluOp, Condition, Insn, Reg, STACK};
use millrace_object::program::{FunctionId, ObjectId, Program};

use super::{Driver, alu, branch, call, call_helper, imm, mov, reg};

/// The instructions around a timer's function.
///
/// # Errors
/// What is wrong with the map.
pub fn driver(
    program: &Program,
    object: ObjectId,
    function: FunctionId,
) -> Result<Driver, &'static str> {
    let map = program
        .object(object)
        .filter(|o| o.timer.is_some())
        .ok_or("for a map without timers")?;
    // The key is handed on in this frame's stack, so that deleting the entry leaves it readable.
    let room = (i64::from(map.key_bytes) + 7) & !7;
    if room > STACK {
        return Err("for a map whose keys are longer than a stack");
    }
    let insns = vec![
        Insn::object(Reg(1), object),
        mov(2, reg(10)),
        alu(AluOp::Add, 2, imm(-room)),
        call_helper(&TIMER_FIRED),
        branch(Condition::Eq, 0, imm(0), 10),
        Insn::object(Reg(1), object),
        mov(2, reg(10)),
        alu(AluOp::Add, 2, imm(-room)),
        mov(3, reg(0)),
        call(function),
        // 10: what it returns is not looked at
        mov(0, imm(0)),
        Insn::Exit,
    ];
    Ok(Driver::fired(insns, function, object))
}
