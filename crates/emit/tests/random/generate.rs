//! Random programs of the shapes that compilers make: arithmetic, a stack in pieces of any size, branches
//! and joins, pointers that differ between executions, spills, calls.

use millrace_assemble::oracle::{CONDITIONS, OPS};
use millrace_object::insn::{
    AluOp, AtomicOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width,
};

use millrace_object::program::ObjectId;

use crate::support::asm::*;
use crate::support::random::Random;

/// Bytes of a packet, all of which the programs check to be there.
pub const PACKET: u64 = 96;

/// Numbers live in these; r6 is the packet, r7 a pointer of the moment, r0 scratch.
const NUMBERS: &[Reg] = &[R1, R2, R3, R4, R5, R8, R9];
const SIZES: &[Size] = &[Size::B1, Size::B2, Size::B4, Size::B8];
const WIDTHS: &[Width] = &[Width::W32, Width::W64];
/// The stack from here to r10 is numbers; below it is a place for spilled pointers.
const STACK: i16 = 64;
const SPILL: i16 = -STACK - 8;

/// Checks the packet, and fills registers and stack with it.
fn begun() -> Vec<Insn> {
    let mut insns = vec![
        load(Size::B4, R6, R1, 0),
        load(Size::B4, R7, R1, 4),
        mov(R2, R6),
        addi(R2, PACKET as i64),
        branch(Condition::Le, Width::W64, R2, R7, 7),
        movi(R0, 0),
        exit(),
    ];
    for (at, reg) in (8i16..).step_by(8).zip(NUMBERS) {
        insns.push(load(Size::B8, *reg, R6, at));
    }
    for at in (8..=STACK).step_by(8) {
        insns.push(store(
            Size::B8,
            R10,
            -at,
            NUMBERS[at as usize / 8 % NUMBERS.len()],
        ));
    }
    insns
}

/// An entry and the function it may call (number 1).
pub fn program(random: &mut Random) -> (Vec<Insn>, Vec<Insn>) {
    let mut body = Vec::new();
    for _ in 0..4 + random.below(14) {
        piece(random, &mut body, 0);
    }
    (whole(&body), callee(random))
}

/// A body behind the check of the packet, and what it leaves as one number.
pub fn whole(body: &[Insn]) -> Vec<Insn> {
    let mut insns = begun();
    let start = insns.len();
    insns.extend(shifted(body, start));
    // Everything there is, in one number.
    insns.push(movi(R0, 0));
    for reg in NUMBERS {
        insns.extend([
            alui(AluOp::Mul, Width::W64, R0, 31),
            alu(AluOp::Xor, Width::W64, R0, *reg),
        ]);
    }
    for at in (8..=STACK).step_by(8) {
        insns.extend([
            load(Size::B8, R1, R10, -at),
            alui(AluOp::Mul, Width::W64, R0, 37),
            add(R0, R1),
        ]);
    }
    for at in (8..PACKET as i16).step_by(8) {
        insns.extend([
            load(Size::B8, R1, R6, at),
            alui(AluOp::Mul, Width::W64, R0, 41),
            add(R0, R1),
        ]);
    }
    insns.extend([store(Size::B8, R6, 0, R0), exit()]);
    insns
}

/// Keys and values of tables ([`TABLES`]) are made here.
const KEY: i16 = SPILL - 8;
const VALUE: i16 = KEY - 16;
/// How many objects programs with state work on: tables with keys of 8 bytes and values of 16.
pub const TABLES: u64 = 2;

/// An entry that works on tables, and the function it may call (number 1).
pub fn stateful(random: &mut Random) -> (Vec<Insn>, Vec<Insn>) {
    let mut body = Vec::new();
    for _ in 0..random.below(6) {
        piece(random, &mut body, 1);
    }
    if random.below(3) == 0 {
        // What is written is read back before state is touched.
        let at = packet(random);
        body.push(store(random.of(SIZES), R6, at, random.of(NUMBERS)));
        body.push(load(Size::B8, R8, R6, at));
    }
    for _ in 0..1 + random.below(3) {
        table(random, &mut body, 0);
        for _ in 0..random.below(3) {
            match random.below(3) {
                0 => piece(random, &mut body, 2),
                _ => arithmetic(random, &mut body),
            }
        }
    }
    let mut insns = begun();
    let start = insns.len();
    insns.extend(shifted(&body, start));
    insns.extend([movi(R0, 2), exit()]);
    (insns, callee(random))
}

/// Looks something up, and changes what is there or puts something there.
fn table(random: &mut Random, out: &mut Vec<Insn>, depth: u32) {
    let object = ObjectId(random.below(TABLES) as usize);
    let map = Insn::LoadImm {
        dst: R1,
        value: Imm64::Object(object),
    };
    if random.below(4) == 0 {
        // The time, or a draw.
        let number = random.of(&[5, 5, 7]);
        out.extend([helper(number), alu(AluOp::Xor, Width::W64, R9, R0)]);
        reload(out);
    }
    out.extend([
        mov(R0, random.of(NUMBERS)),
        alui(AluOp::And, Width::W64, R0, random.of(&[3, 15, 0xf0f])),
        store(Size::B8, R10, KEY, R0),
        store(Size::B8, R10, VALUE, random.of(&[R8, R9])),
        store(Size::B8, R10, VALUE + 8, random.of(NUMBERS)),
        mov(R2, R10),
        addi(R2, i64::from(KEY)),
        map,
        helper(1),
    ]);
    let (mut there, mut absent) = (Vec::new(), Vec::new());
    let size = random.of(SIZES);
    let at = random.below(17 - u64::from(size.bytes())) as i16;
    there.push(load(size, R1, R0, at));
    if random.below(2) == 0 {
        // Bytes that state depends on are read behind it, at a place that is known or computed.
        if random.below(3) == 0 {
            there.extend([
                mov(R7, R9),
                alui(AluOp::And, Width::W64, R7, 31),
                add(R7, R6),
            ]);
            there.push(load(random.of(SIZES), R2, R7, 8));
        } else {
            there.push(load(random.of(SIZES), R2, R6, packet(random)));
        }
        let op = random.of(&[AluOp::Add, AluOp::Xor, AluOp::Mul]);
        there.push(alu(op, Width::W64, random.of(&[R8, R9]), R2));
    }
    match random.below(4) {
        0 => {
            let target = there.len() + 3;
            there.push(condition_of(random, R1, target));
            there.push(store(size, R0, at, R8));
            there.push(alu(AluOp::Add, Width::W64, R8, R1));
        }
        1 => {
            let add = random.of(&[AtomicOp::Add, AtomicOp::Xor]);
            there.push(atomic(add, false, Size::B8, R0, 8, random.of(&[R8, R9])));
        }
        2 => {
            there.push(alu(
                random.of(&[AluOp::Add, AluOp::Xor]),
                Width::W64,
                R1,
                R9,
            ));
            there.push(store(size, R0, at, R1));
        }
        _ => there.push(alu(AluOp::Xor, Width::W64, R9, R1)),
    }
    absent.extend([mov(R2, R10), addi(R2, i64::from(KEY))]);
    if random.below(6) == 0 {
        absent.extend([map, helper(3)]);
    } else {
        absent.extend([
            mov(R3, R10),
            addi(R3, i64::from(VALUE)),
            movi(R4, 0),
            map,
            helper(2),
        ]);
    }
    let here = out.len();
    out.push(Insn::Branch {
        condition: Condition::Ne,
        width: Width::W64,
        left: R0,
        right: Operand::Imm(0),
        target: here + 2 + absent.len(),
    });
    out.extend(shifted(&absent, here + 1));
    out.push(jump(here + 2 + absent.len() + there.len()));
    out.extend(shifted(&there, here + 2 + absent.len()));
    reload(out);
    if depth < 1 && random.below(3) == 0 {
        let mut inner = Vec::new();
        table(random, &mut inner, depth + 1);
        let at = out.len();
        out.push(condition(random, at + 1 + inner.len()));
        out.extend(shifted(&inner, at + 1));
    }
}

/// A branch on a register, to `target` of a body of its own.
fn condition_of(random: &mut Random, left: Reg, target: usize) -> Insn {
    Insn::Branch {
        condition: random.of(&CONDITIONS),
        width: random.of(WIDTHS),
        left,
        right: Operand::Reg(random.of(&[R8, R9])),
        target,
    }
}

fn helper(number: u32) -> Insn {
    Insn::Call { helper: number }
}

/// Numbers again where a call left none.
fn reload(out: &mut Vec<Insn>) {
    for (at, reg) in (1i16..).zip([R1, R2, R3, R4, R5]) {
        out.push(load(Size::B8, reg, R10, -8 * at));
    }
}

/// Takes a pointer to 16 bytes of its caller's stack, two numbers and the packet.
pub fn callee(random: &mut Random) -> Vec<Insn> {
    let mut insns = vec![store(Size::B8, R10, -8, R2), store(Size::B8, R10, -16, R3)];
    for _ in 0..random.below(4) {
        let (size, at) = (random.of(SIZES), random.below(9) as i16);
        insns.push(store(size, R10, at - 16, R3));
        insns.push(alu(
            random.of(&[AluOp::Add, AluOp::Xor]),
            random.of(WIDTHS),
            R3,
            R2,
        ));
    }
    insns.extend([
        load(random.of(SIZES), R0, R4, random.below(80) as i16),
        load(Size::B8, R5, R1, 8),
        add(R5, R0),
        store(random.of(SIZES), R1, random.below(9) as i16, R5),
        load(Size::B8, R3, R10, -12),
        alu(AluOp::Xor, Width::W64, R0, R3),
        exit(),
    ]);
    insns
}

fn piece(random: &mut Random, out: &mut Vec<Insn>, depth: u32) {
    match random.below(if depth < 3 { 14 } else { 9 }) {
        0..=2 => arithmetic(random, out),
        3 => out.push(store(
            random.of(SIZES),
            R10,
            stack(random),
            random.of(NUMBERS),
        )),
        4 => out.push(storei(
            random.of(SIZES),
            R10,
            stack(random),
            random.next() as i32 as i64,
        )),
        5 => out.push(load(
            random.of(SIZES),
            random.of(NUMBERS),
            R10,
            stack(random),
        )),
        6 => out.push(store(
            random.of(SIZES),
            R6,
            packet(random),
            random.of(NUMBERS),
        )),
        7 => out.push(load(
            random.of(SIZES),
            random.of(NUMBERS),
            R6,
            packet(random),
        )),
        8 => atomics(random, out),
        9 | 10 => choice(random, out, depth),
        11 => pointers(random, out),
        12 => index(random, out),
        _ => call(random, out),
    }
}

/// Anywhere that eight bytes fit.
fn stack(random: &mut Random) -> i16 {
    random.below(STACK as u64 - 7) as i16 - STACK
}

fn packet(random: &mut Random) -> i16 {
    8 + random.below(PACKET - 15) as i16
}

fn arithmetic(random: &mut Random, out: &mut Vec<Insn>) {
    let (dst, src, width) = (random.of(NUMBERS), random.of(NUMBERS), random.of(WIDTHS));
    match random.below(8) {
        0 => out.push(neg(width, dst)),
        1 => out.push(extend(width, random.of(&[Size::B1, Size::B2]), dst, src)),
        2 => {
            let which = random.of(&[ByteOrder::ToLittle, ByteOrder::ToBig, ByteOrder::Swap]);
            out.push(order(which, random.of(&[16, 32, 64]), dst));
        }
        3 => out.push(load_signed(random.of(&SIZES[..3]), dst, R6, packet(random))),
        4 | 5 => out.push(alu(random.of(&OPS), width, dst, src)),
        _ => {
            let op = random.of(&OPS);
            let bits = if width == Width::W32 { 32 } else { 64 };
            let imm = match op {
                AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => random.below(bits) as i64,
                AluOp::Div | AluOp::SignedDiv | AluOp::Mod | AluOp::SignedMod => {
                    1 + random.below(99) as i64
                }
                _ => random.next() as i32 as i64 >> random.below(31),
            };
            out.push(alui(op, width, dst, imm));
        }
    }
}

fn atomics(random: &mut Random, out: &mut Vec<Insn>) {
    let op = random.of(&[
        AtomicOp::Add,
        AtomicOp::Or,
        AtomicOp::And,
        AtomicOp::Xor,
        AtomicOp::Exchange,
        AtomicOp::CompareExchange,
    ]);
    let size = random.of(&[Size::B4, Size::B8]);
    let at = -8 * (1 + random.below(STACK as u64 / 8) as i16);
    let fetch =
        matches!(op, AtomicOp::Exchange | AtomicOp::CompareExchange) || random.below(2) == 0;
    out.push(mov(R0, random.of(NUMBERS)));
    out.push(atomic(op, fetch, size, R10, at, random.of(NUMBERS)));
    out.push(alu(AluOp::Xor, Width::W64, random.of(NUMBERS), R0));
}

fn condition(random: &mut Random, target: usize) -> Insn {
    let right = if random.below(2) == 0 {
        Operand::Reg(random.of(NUMBERS))
    } else {
        Operand::Imm(random.below(9) as i64 - 4)
    };
    Insn::Branch {
        condition: random.of(&CONDITIONS),
        width: random.of(WIDTHS),
        left: random.of(NUMBERS),
        right,
        target,
    }
}

/// One way or the other, then on together.
fn choice(random: &mut Random, out: &mut Vec<Insn>, depth: u32) {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..1 + random.below(3) {
        piece(random, &mut one, depth + 1);
    }
    for _ in 0..random.below(3) {
        piece(random, &mut other, depth + 1);
    }
    let at = out.len();
    out.push(condition(random, at + 2 + one.len()));
    out.extend(shifted(&one, at + 1));
    out.push(jump(at + 2 + one.len() + other.len()));
    out.extend(shifted(&other, at + 2 + one.len()));
}

/// r7 is one of two places, perhaps spilled meanwhile; then it is used.
fn pointers(random: &mut Random, out: &mut Vec<Insn>) {
    let place = |random: &mut Random, out: &mut Vec<Insn>| {
        if random.below(3) == 0 {
            out.extend([mov(R7, R6), addi(R7, i64::from(packet(random)))]);
        } else {
            out.extend([mov(R7, R10), addi(R7, i64::from(stack(random)))]);
        }
    };
    place(random, out);
    let at = out.len();
    out.push(condition(random, at + 3));
    place(random, out);
    if random.below(2) == 0 {
        out.push(store(Size::B8, R10, SPILL, R7));
        arithmetic(random, out);
        out.push(load(Size::B8, R7, R10, SPILL));
    }
    for _ in 0..1 + random.below(2) {
        out.push(match random.below(2) {
            0 => load(random.of(SIZES), random.of(NUMBERS), R7, 0),
            _ => store(random.of(SIZES), R7, 0, random.of(NUMBERS)),
        });
    }
}

/// A place that a number decides.
fn index(random: &mut Random, out: &mut Vec<Insn>) {
    out.push(mov(R0, random.of(NUMBERS)));
    out.push(alui(
        AluOp::And,
        Width::W64,
        R0,
        random.of(&[1, 7, 8, 24, 31]),
    ));
    if random.below(2) == 0 {
        out.extend([
            mov(R7, R10),
            addi(R7, i64::from(random.of(&[-64i16, -48, -40]))),
            add(R7, R0),
        ]);
    } else {
        out.extend([mov(R7, R6), add(R7, R0), addi(R7, 8)]);
    }
    out.push(match random.below(2) {
        0 => load(
            random.of(SIZES),
            random.of(NUMBERS),
            R7,
            random.below(2) as i16,
        ),
        _ => store(
            random.of(SIZES),
            R7,
            random.below(2) as i16,
            random.of(NUMBERS),
        ),
    });
}

fn call(random: &mut Random, out: &mut Vec<Insn>) {
    out.extend([
        mov(R2, random.of(&[R2, R8, R9])),
        mov(R3, random.of(&[R3, R8, R9])),
        mov(R4, R6),
        mov(R1, R10),
        addi(R1, i64::from(-16 - 8 * random.below(6) as i16)),
        call_local(1),
    ]);
    for (at, reg) in (1i16..).zip([R1, R2, R3, R4, R5]) {
        out.push(load(Size::B8, reg, R10, -8 * at));
    }
    out.push(alu(AluOp::Xor, Width::W64, R8, R0));
}
