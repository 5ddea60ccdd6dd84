//! Helpers and functions that generated programs may call.

use millrace_object::helper::{
    KTIME_GET_NS, MAP_DELETE_ELEM, TAIL_CALL, TIMER_CANCEL, TIMER_START,
};
use millrace_object::insn::{AluOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::ObjectId;

use super::CALLEES;
use super::objects::{ALARMS, ONWARD};

/// What `bpf_loop` may call back.
pub const ROUND: usize = 2;
/// What `bpf_for_each_map_elem` may call back.
pub const ELEMENT: usize = 3;

/// What `bpf_loop` may not call back: it makes a tail call.
pub const LEAVE: usize = 4;
/// What timers of [`ALARMS`] call.
pub const TICK: usize = 5;
/// What subtracts two addresses.
pub const APART: usize = 7;
/// What compares an address with another, and writes to neither.
pub const MARK: usize = 8;
/// What subtracts an address from one of its own stack.
pub const BELOW: usize = 9;
/// What timers of [`TICKS`](super::objects::TICKS) call.
pub const TOCK: usize = 6;

/// The functions, by number.
pub fn all() -> [Vec<Insn>; CALLEES] {
    [
        through_the_stack(),
        of_the_packet(),
        round(),
        element(),
        leave(),
        tick(),
        tock(),
        apart(),
        mark(),
        below(),
    ]
}

fn alu(op: AluOp, dst: u8, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width: Width::W64,
        dst: Reg(dst),
        src,
    }
}

fn load(size: Size, dst: u8, base: u8, offset: i16) -> Insn {
    Insn::Load {
        size,
        signed: false,
        dst: Reg(dst),
        base: Reg(base),
        offset,
    }
}

fn store(size: Size, base: u8, offset: i16, src: u8) -> Insn {
    Insn::Store {
        size,
        base: Reg(base),
        offset,
        src: Operand::Reg(Reg(src)),
    }
}

fn object(dst: u8, object: ObjectId) -> Insn {
    Insn::LoadImm {
        dst: Reg(dst),
        value: Imm64::Object(object),
    }
}

fn call(helper: &millrace_object::helper::Helper) -> Insn {
    Insn::Call {
        helper: helper.number,
    }
}

/// r2: the context. Makes a tail call, which a function that a helper calls back may not.
fn leave() -> Vec<Insn> {
    vec![
        alu(AluOp::Mov, 1, Operand::Reg(Reg(2))),
        object(2, ONWARD),
        alu(AluOp::Mov, 3, Operand::Imm(1)),
        call(&TAIL_CALL),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Exit,
    ]
}

/// A timer's function. r2: a key of 8 bytes, r3: its value of 32 with the timer at byte 8. Writes the value, whose
/// key is another where time is negative,
/// and every other time starts the timer again.
fn tick() -> Vec<Insn> {
    vec![
        alu(AluOp::Mov, 6, Operand::Reg(Reg(3))),
        load(Size::B8, 7, 2, 0),
        call(&KTIME_GET_NS),
        Insn::Branch {
            condition: Condition::SignedGe,
            width: Width::W64,
            left: Reg(0),
            right: Operand::Imm(0),
            target: 5,
        },
        alu(AluOp::Mov, 7, Operand::Imm(77)),
        load(Size::B8, 0, 6, 0),
        alu(AluOp::Mul, 0, Operand::Imm(7)),
        alu(AluOp::Add, 0, Operand::Reg(Reg(7))),
        store(Size::B8, 6, 0, 0),
        Insn::Branch {
            condition: Condition::Test,
            width: Width::W64,
            left: Reg(0),
            right: Operand::Imm(1),
            target: 16,
        },
        alu(AluOp::Mov, 1, Operand::Reg(Reg(6))),
        alu(AluOp::Add, 1, Operand::Imm(8)),
        alu(AluOp::Mov, 2, Operand::Reg(Reg(0))),
        alu(AluOp::And, 2, Operand::Imm(127)),
        alu(AluOp::Mov, 3, Operand::Imm(0)),
        call(&TIMER_START),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Exit,
    ]
}

/// A timer's function. r3: a value of 24 bytes with the timer at its start. Tries to cancel its own timer, which
/// it may not, deletes an entry of the other map, whose timer may run, and starts its own again.
fn tock() -> Vec<Insn> {
    vec![
        alu(AluOp::Mov, 6, Operand::Reg(Reg(3))),
        alu(AluOp::Mov, 1, Operand::Reg(Reg(6))),
        call(&TIMER_CANCEL),
        load(Size::B8, 1, 6, 16),
        alu(AluOp::Mul, 1, Operand::Imm(3)),
        alu(AluOp::Add, 1, Operand::Reg(Reg(0))),
        store(Size::B8, 6, 16, 1),
        alu(AluOp::And, 1, Operand::Imm(3)),
        store(Size::B8, 10, -8, 1),
        object(1, ALARMS),
        alu(AluOp::Mov, 2, Operand::Reg(Reg(10))),
        alu(AluOp::Add, 2, Operand::Imm(-8)),
        call(&MAP_DELETE_ELEM),
        alu(AluOp::Mov, 1, Operand::Reg(Reg(6))),
        alu(AluOp::Mov, 2, Operand::Imm(150)),
        alu(AluOp::Mov, 3, Operand::Imm(0)),
        call(&TIMER_START),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Exit,
    ]
}

/// r1: 16 bytes of the caller's stack, r2: a number. Uses a stack of its own, too.
fn through_the_stack() -> Vec<Insn> {
    vec![
        store(Size::B8, 10, -8, 2),
        store(Size::B8, 10, -16, 1),
        load(Size::B8, 0, 1, 0),
        load(Size::B4, 3, 10, -8),
        alu(AluOp::Add, 0, Operand::Reg(Reg(3))),
        load(Size::B8, 4, 10, -16),
        store(Size::B4, 4, 9, 0),
        alu(AluOp::Mov, 6, Operand::Imm(1)),
        Insn::Exit,
    ]
}

/// r1: the packet, r2: its end. Its first word, or 0.
fn of_the_packet() -> Vec<Insn> {
    vec![
        alu(AluOp::Mov, 3, Operand::Reg(Reg(1))),
        alu(AluOp::Add, 3, Operand::Imm(8)),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Branch {
            condition: Condition::Gt,
            width: Width::W64,
            left: Reg(3),
            right: Operand::Reg(Reg(2)),
            target: 5,
        },
        load(Size::B8, 0, 1, 0),
        Insn::Exit,
    ]
}

/// r1: the round, r2: 16 bytes of the caller's stack, both halves of which it writes. Seven rounds are
/// enough.
fn round() -> Vec<Insn> {
    vec![
        load(Size::B8, 3, 2, 0),
        alu(AluOp::Mul, 3, Operand::Imm(31)),
        alu(AluOp::Add, 3, Operand::Reg(Reg(1))),
        store(Size::B8, 2, 0, 3),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Branch {
            condition: Condition::Le,
            width: Width::W64,
            left: Reg(1),
            right: Operand::Imm(5),
            target: 7,
        },
        alu(AluOp::Mov, 0, Operand::Imm(1)),
        alu(AluOp::And, 1, Operand::Imm(7)),
        alu(AluOp::Add, 2, Operand::Reg(Reg(1))),
        store(Size::B1, 2, 8, 3),
        Insn::Exit,
    ]
}

/// r1: a map, r2: a key of 4 bytes, r3: its value of 16, r4: 8 bytes of the caller's stack. Stops at key 3.
fn element() -> Vec<Insn> {
    vec![
        load(Size::B4, 5, 2, 0),
        load(Size::B8, 0, 3, 0),
        alu(AluOp::Add, 0, Operand::Reg(Reg(5))),
        load(Size::B8, 1, 4, 0),
        alu(AluOp::Mul, 1, Operand::Imm(7)),
        alu(AluOp::Add, 1, Operand::Reg(Reg(0))),
        store(Size::B8, 4, 0, 1),
        store(Size::B8, 3, 8, 1),
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Branch {
            condition: Condition::Ne,
            width: Width::W64,
            left: Reg(5),
            right: Operand::Imm(3),
            target: 11,
        },
        alu(AluOp::Mov, 0, Operand::Imm(1)),
        Insn::Exit,
    ]
}

/// r1, r2: places. How far the first is after the second.
fn apart() -> Vec<Insn> {
    vec![
        alu(AluOp::Mov, 0, Operand::Reg(Reg(1))),
        alu(AluOp::Sub, 0, Operand::Reg(Reg(2))),
        Insn::Exit,
    ]
}

/// r1, r2: places. Whether they are the same one.
fn mark() -> Vec<Insn> {
    vec![
        store(Size::B8, 10, -8, 1),
        load(Size::B8, 1, 10, -8),
        alu(AluOp::Mov, 0, Operand::Imm(1)),
        Insn::Branch {
            condition: Condition::Eq,
            width: Width::W64,
            left: Reg(1),
            right: Operand::Reg(Reg(2)),
            target: 5,
        },
        alu(AluOp::Mov, 0, Operand::Imm(0)),
        Insn::Exit,
    ]
}

/// r1: a place. How far a place of its own stack is above it: no number of BPF's.
fn below() -> Vec<Insn> {
    vec![
        alu(AluOp::Mov, 0, Operand::Reg(Reg(10))),
        alu(AluOp::Add, 0, Operand::Imm(-8)),
        alu(AluOp::Sub, 0, Operand::Reg(Reg(1))),
        Insn::Exit,
    ]
}
