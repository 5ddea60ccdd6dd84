//! `bpf_for_each_map_elem` (kernel/bpf/bpf_iter.c, and `map_for_each_callback` of the kinds): every place
//! of the map in turn; where an entry is, one call with the map, its key, its value and the context.

use millrace_object::helper::MAP_SLOT;
use millrace_object::insn::{AluOp, Condition, Insn, Reg, STACK};
use millrace_object::program::{FunctionId, ObjectId, Program};

use super::{alu, branch, call, call_helper, imm, mov, reg};

const EINVAL: i64 = 22;

/// At entry: r1 the map, r2 the function, r3 the context, r4 the flags.
///
/// # Errors
/// What is wrong with the map.
pub fn insns(
    program: &Program,
    object: ObjectId,
    function: FunctionId,
) -> Result<Vec<Insn>, &'static str> {
    let map = program
        .object(object)
        .ok_or("for a map that does not exist")?;
    if map.does(&MAP_SLOT).is_none() {
        return Err("for a map whose entries it cannot visit");
    }
    // The key is handed on in this frame's stack, so that deleting the entry leaves it readable.
    let room = (i64::from(map.key_bytes) + 7) & !7;
    if room > STACK {
        return Err("for a map whose keys are longer than a stack");
    }
    let capacity = i64::try_from(map.capacity).map_err(|_| "for a map that is too large")?;
    Ok(vec![
        branch(Condition::Ne, 4, imm(0), 23),
        mov(6, reg(3)),
        mov(7, imm(0)),
        mov(8, imm(0)),
        // 4: the next place
        branch(Condition::Ge, 7, imm(capacity), 21),
        Insn::object(Reg(1), object),
        mov(2, reg(7)),
        mov(3, reg(10)),
        alu(AluOp::Add, 3, imm(-room)),
        call_helper(&MAP_SLOT),
        alu(AluOp::Add, 7, imm(1)),
        branch(Condition::Eq, 0, imm(0), 4),
        Insn::object(Reg(1), object),
        mov(2, reg(10)),
        alu(AluOp::Add, 2, imm(-room)),
        mov(3, reg(0)),
        mov(4, reg(6)),
        call(function),
        alu(AluOp::Add, 8, imm(1)),
        branch(Condition::Ne, 0, imm(0), 21),
        Insn::Jump { target: 4 },
        // 21: enough
        mov(0, reg(8)),
        Insn::Exit,
        mov(0, imm(-EINVAL)),
        Insn::Exit,
    ])
}
