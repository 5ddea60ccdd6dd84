//! Programs out of pieces that real ones are made of, with constants that are often off by a little:
//! some are safe, many nearly so.
//!
//! r6 is the context, r7 the packet, r8 its end; r1 to r4 and r9 hold numbers between pieces, r0 and r5
//! are scratch. The stack from r10 - 40 is initialised; loop counters and spilled pointers are below.

mod basic;
pub mod contract;
mod decided;
mod loops;
mod relate;
mod state;
mod timers;
mod write;
mod wrong;

use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Size, Width};
use rand::{Rng, RngExt};

use super::TRACE;

const NUMBERS: [u8; 5] = [1, 2, 3, 4, 9];
const SIZES: [Size; 4] = [Size::B1, Size::B2, Size::B4, Size::B8];
const OPS: [AluOp; 14] = [
    AluOp::Add,
    AluOp::Sub,
    AluOp::And,
    AluOp::Or,
    AluOp::Xor,
    AluOp::Mul,
    AluOp::Lsh,
    AluOp::Rsh,
    AluOp::Arsh,
    AluOp::Div,
    AluOp::Mod,
    AluOp::SignedDiv,
    AluOp::SignedMod,
    AluOp::Mov,
];
const CONDITIONS: [Condition; 11] = [
    Condition::Eq,
    Condition::Ne,
    Condition::Gt,
    Condition::Ge,
    Condition::Lt,
    Condition::Le,
    Condition::SignedGt,
    Condition::SignedGe,
    Condition::SignedLt,
    Condition::SignedLe,
    Condition::Test,
];
/// Programs of more instructions than this are not made longer.
const LONG: usize = 110;

/// A program.
pub fn program(random: &mut impl Rng) -> Vec<Insn> {
    let mut g = Generator::new(random);
    for _ in 0..g.random.random_range(2..16) {
        if g.insns.len() < LONG {
            g.piece(0);
        }
    }
    g.end()
}

/// What a program is mostly about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// arithmetic
    Numbers,
    /// branches on numbers
    Branches,
    /// bytes of the packet at fixed and variable places
    Packet,
    /// moved borders of the packet
    Borders,
    /// the stack at variable places
    Stack,
    /// values of maps, and globals
    Values,
    /// reserved records
    Records,
    /// atomic instructions
    Atomics,
    /// loops with counters and budgets
    Loops,
    /// loops over an iterator
    Iterators,
    /// functions of the program: called, called back, tail calls
    Calls,
    /// helpers by their contracts
    Helpers,
    /// locks in values
    Locks,
    /// timers in values
    Timers,
    /// maps of maps
    Nested,
    /// what relates two places
    Places,
    /// numbers whose bounds decide over an access
    Decided,
}

impl Class {
    /// Every one.
    pub const ALL: [Class; 17] = [
        Class::Numbers,
        Class::Branches,
        Class::Packet,
        Class::Borders,
        Class::Stack,
        Class::Values,
        Class::Records,
        Class::Atomics,
        Class::Loops,
        Class::Iterators,
        Class::Calls,
        Class::Helpers,
        Class::Locks,
        Class::Timers,
        Class::Nested,
        Class::Places,
        Class::Decided,
    ];
}

/// A short program, mostly of one class.
pub fn of_class(random: &mut impl Rng, class: Class) -> Vec<Insn> {
    let mut g = Generator::new(random);
    for _ in 0..g.random.random_range(1..4) {
        if g.chance(3) {
            g.piece(1);
        }
        g.of_class(class);
    }
    g.end()
}

/// A short program with a piece in it that breaks a rule which the others seldom break.
pub fn wrong(random: &mut impl Rng) -> Vec<Insn> {
    let mut g = Generator::new(random);
    for _ in 0..g.random.random_range(0..3) {
        g.piece(1);
    }
    g.wrong();
    for _ in 0..g.random.random_range(0..2) {
        g.piece(1);
    }
    g.end()
}

struct Generator<'r, R> {
    random: &'r mut R,
    insns: Vec<Insn>,
    /// branches to the common way out
    outs: Vec<usize>,
    loops: i16,
}

impl<'r, R: Rng> Generator<'r, R> {
    /// A program that has begun.
    fn new(random: &'r mut R) -> Self {
        let mut g = Generator {
            random,
            insns: Vec::new(),
            outs: Vec::new(),
            loops: 0,
        };
        g.begin();
        g
    }

    fn begin(&mut self) {
        self.copy(6, 1);
        self.packet();
        self.load_plain(Size::B4, 9, 6, 12);
        self.numbers();
        for at in [-8, -16, -24, -32, -40] {
            self.store(Size::B8, 10, at, Operand::Imm(i64::from(at) & 7));
        }
    }

    /// What a call has taken away.
    fn numbers(&mut self) {
        for r in [1, 2, 3, 4] {
            self.set(r, 7 * i64::from(r) - 7);
        }
    }

    /// The registers go into `trace`, so that no wrong number goes unseen.
    fn end(mut self) -> Vec<Insn> {
        self.value(5, TRACE, 0);
        self.load_plain(Size::B8, 0, 5, 0);
        for r in NUMBERS {
            self.alu(AluOp::Mul, Width::W64, 0, Operand::Imm(31));
            self.alu(AluOp::Xor, Width::W64, 0, Operand::Reg(Reg(r)));
        }
        for at in [-8, -16, -24, -32, -40] {
            self.load_plain(Size::B8, 1, 10, at);
            self.alu(AluOp::Mul, Width::W64, 0, Operand::Imm(37));
            self.alu(AluOp::Add, Width::W64, 0, Operand::Reg(Reg(1)));
        }
        self.store(Size::B8, 5, 0, Operand::Reg(Reg(0)));
        self.alu(AluOp::And, Width::W64, 0, Operand::Imm(3));
        self.put(Insn::Exit);
        let out = self.insns.len();
        self.set(0, 1);
        self.put(Insn::Exit);
        for at in &self.outs {
            if let Some(Insn::Branch { target, .. }) = self.insns.get_mut(*at) {
                *target = out;
            }
        }
        self.give_budget();
        self.insns
    }

    fn piece(&mut self, depth: u32) {
        match self.random.random_range(0..48) {
            0..=2 => self.arithmetic(),
            3 => self.unary(),
            4 | 5 => self.check(),
            6 => {
                let (size, dst, at) = (self.of(SIZES), self.number(), self.offset(40));
                self.load(size, dst, 7, at);
            }
            7 => {
                let (size, src, at) = (self.of(SIZES), self.number(), self.offset(40));
                self.store(size, 7, at, Operand::Reg(Reg(src)));
            }
            8 => self.variable_packet(),
            9 => {
                let (size, src, at) = (self.of(SIZES), self.number(), self.offset(42));
                self.store(size, 10, -at, Operand::Reg(Reg(src)));
            }
            10 => {
                let (size, dst, at) = (self.of(SIZES), self.number(), self.offset(42));
                self.load(size, dst, 10, -at);
            }
            11 => self.variable_stack(),
            12 => self.lookup(),
            13 => self.update(),
            14 => self.element(),
            15 => self.indexed(),
            16 if depth < 2 => self.branch(depth),
            17 if depth < 2 => self.repeat(depth),
            18 => self.spill(),
            19 => self.record(),
            20 => self.adjust(),
            21 => self.call(),
            22 => self.bytes(),
            23 => self.sequence(),
            24 => self.inner(),
            25 | 26 => self.call_back(),
            27 => self.tail_call(),
            28 => self.nested_element(),
            29 => self.locked(),
            30..=32 => self.timer(),
            33 if depth < 2 => self.budgeted(depth),
            34 if depth < 2 => self.iterate(depth),
            35..=41 => self.contract(),
            42 => self.overlap(),
            43 => self.disturbed(),
            44 | 45 => self.relate(),
            _ => self.atomic(),
        }
    }

    /// A piece of a class.
    fn of_class(&mut self, class: Class) {
        match class {
            Class::Numbers => {
                if self.chance(3) {
                    self.unary();
                } else {
                    self.arithmetic();
                }
            }
            Class::Branches => self.branch(1),
            Class::Packet => match self.random.random_range(0..4) {
                0 => self.check(),
                1 => self.variable_packet(),
                2 => self.again(),
                _ => self.spill(),
            },
            Class::Borders => self.adjust(),
            Class::Stack => self.variable_stack(),
            Class::Values => match self.random.random_range(0..4) {
                0 => self.lookup(),
                1 => self.element(),
                2 => self.indexed(),
                _ => self.update(),
            },
            Class::Records => self.record(),
            Class::Atomics => self.atomic(),
            Class::Loops => match self.random.random_range(0..3) {
                0 => self.budgeted(0),
                _ => self.repeat(0),
            },
            Class::Iterators => {
                if self.chance(2) {
                    self.iterate(0);
                } else {
                    self.disturbed();
                }
            }
            Class::Calls => match self.random.random_range(0..3) {
                0 => self.call(),
                1 => self.call_back(),
                _ => self.tail_call(),
            },
            Class::Helpers => match self.random.random_range(0..4) {
                0 => self.bytes(),
                1 => self.sequence(),
                2 => self.overlap(),
                _ => self.contract(),
            },
            Class::Locks => self.locked(),
            Class::Timers => self.timer(),
            Class::Nested => {
                if self.chance(2) {
                    self.inner();
                } else {
                    self.nested_element();
                }
            }
            Class::Places => self.relate(),
            Class::Decided => self.decided(),
        }
    }
}
