//! The end of an entry whose expiry runs a function (`ON_EXPIRY`): its key and its value are copied, it is deleted, and
//! the function gets the packet of no bytes and both copies. So the entry is absent at the moment at which it expires, as
//! it is without such a function, and ends whatever that function does; and nothing that takes its place is seen
//! through the copy.

use millrace_object::helper::{MAP_DELETE, TIMER_FIRED};
use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, STACK, Size};
use millrace_object::program::{FunctionId, ObjectId, Program};

use super::{Driver, alu, branch, call, call_helper, imm, mov, reg};

/// The instructions around the function.
///
/// # Errors
/// What is wrong with the map.
pub fn driver(
    program: &Program,
    object: ObjectId,
    function: FunctionId,
) -> Result<Driver, &'static str> {
    let map = (program.objects.get(object.0)).ok_or("for a map that there is not")?;
    let room = |bytes: u32| i64::from(bytes.next_multiple_of(8));
    // Both copies in this frame's stack, the key above the value.
    let key = room(map.key_bytes);
    let value = key + room(map.value_bytes);
    if value > STACK {
        return Err("for a map whose keys and values are longer than a stack");
    }
    let of_map = [
        Insn::object(Reg(1), object),
        mov(2, reg(10)),
        alu(AluOp::Add, 2, imm(-key)),
    ];
    let copies: Vec<Insn> = pieces(map.value_bytes)
        .flat_map(|(at, size)| copy(at, at - value, size))
        .collect();
    let mut insns = vec![mov(6, reg(1))];
    insns.extend(of_map);
    insns.push(call_helper(&TIMER_FIRED));
    // Behind the branch: the copies, four to delete, six to call.
    let end = insns.len() + 1 + copies.len() + 4 + 6;
    insns.push(branch(Condition::Eq, 0, imm(0), end));
    insns.extend(copies);
    insns.extend(of_map);
    insns.push(call_helper(&MAP_DELETE));
    insns.extend([
        mov(1, reg(6)),
        mov(2, reg(10)),
        alu(AluOp::Add, 2, imm(-key)),
        mov(3, reg(10)),
        alu(AluOp::Add, 3, imm(-value)),
        call(function),
    ]);
    // What the function returns is not looked at.
    insns.extend([mov(0, imm(0)), Insn::Exit]);
    Ok(Driver::fired(insns, function, object))
}

/// A value in pieces that one load takes: where each begins, and its size.
fn pieces(bytes: u32) -> impl Iterator<Item = (i64, Size)> {
    let sizes = [(8, Size::B8), (4, Size::B4), (2, Size::B2), (1, Size::B1)];
    let mut at = 0;
    std::iter::from_fn(move || {
        let (step, size) = sizes.into_iter().find(|(step, _)| at + step <= bytes)?;
        let piece = (i64::from(at), size);
        at += step;
        Some(piece)
    })
}

/// Copies so much from an offset of the value, to which `r0` points, to one of the stack.
fn copy(from: i64, to: i64, size: Size) -> [Insn; 2] {
    [
        Insn::Load {
            size,
            signed: false,
            dst: Reg(1),
            base: Reg(0),
            offset: from as i16,
        },
        Insn::Store {
            size,
            base: Reg(10),
            offset: to as i16,
            src: Operand::Reg(Reg(1)),
        },
    ]
}
