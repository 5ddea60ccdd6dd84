//! Programs out of pieces that real ones are made of, with constants that are often off by a little:
//! some are safe, many nearly so.
//!
//! r6 is the context, r7 the packet, r8 its end; r1 to r4 and r9 hold numbers between pieces, r0 and r5
//! are scratch. The stack from r10 - 40 is initialised; loop counters and spilled pointers are below.

mod state;

use millrace_object::insn::{AluOp, ByteOrder, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::ObjectId;
use rand::{Rng, RngExt};

use super::{PAGE, TRACE};

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
    let mut g = Generator {
        random,
        insns: Vec::new(),
        outs: Vec::new(),
        loops: 0,
    };
    g.begin();
    for _ in 0..g.random.random_range(2..16) {
        if g.insns.len() < LONG {
            g.piece(0);
        }
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

impl<R: Rng> Generator<'_, R> {
    fn of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.random.random_range(0..N)]
    }

    fn chance(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    fn number(&mut self) -> u8 {
        self.of(NUMBERS)
    }

    fn offset(&mut self, below: i16) -> i16 {
        self.random.random_range(0..below)
    }

    /// Mostly what fits, sometimes what does not.
    fn near(&mut self, right: i64) -> i64 {
        if self.chance(6) {
            right + self.of([-8, -4, -1, 1, 1, 4, 8])
        } else {
            right
        }
    }

    fn put(&mut self, insn: Insn) {
        self.insns.push(insn);
    }

    fn alu(&mut self, op: AluOp, width: Width, dst: u8, src: Operand) {
        let dst = Reg(dst);
        self.put(Insn::Alu {
            op,
            width,
            dst,
            src,
        });
    }

    fn set(&mut self, dst: u8, imm: i64) {
        self.alu(AluOp::Mov, Width::W64, dst, Operand::Imm(imm));
    }

    fn copy(&mut self, dst: u8, src: u8) {
        self.alu(AluOp::Mov, Width::W64, dst, Operand::Reg(Reg(src)));
    }

    fn add(&mut self, dst: u8, imm: i64) {
        self.alu(AluOp::Add, Width::W64, dst, Operand::Imm(imm));
    }

    fn load(&mut self, size: Size, dst: u8, base: u8, offset: i16) {
        let signed = size != Size::B8 && self.chance(4);
        let (dst, base) = (Reg(dst), Reg(base));
        self.put(Insn::Load {
            size,
            signed,
            dst,
            base,
            offset,
        });
    }

    fn load_plain(&mut self, size: Size, dst: u8, base: u8, offset: i16) {
        let (dst, base) = (Reg(dst), Reg(base));
        self.put(Insn::Load {
            size,
            signed: false,
            dst,
            base,
            offset,
        });
    }

    fn store(&mut self, size: Size, base: u8, offset: i16, src: Operand) {
        let base = Reg(base);
        self.put(Insn::Store {
            size,
            base,
            offset,
            src,
        });
    }

    fn object(&mut self, dst: u8, object: ObjectId) {
        let (dst, value) = (Reg(dst), Imm64::Object(object));
        self.put(Insn::LoadImm { dst, value });
    }

    fn value(&mut self, dst: u8, object: ObjectId, offset: u32) {
        let (dst, value) = (Reg(dst), Imm64::ObjectValue { object, offset });
        self.put(Insn::LoadImm { dst, value });
    }

    fn out_if(&mut self, condition: Condition, left: u8, right: Operand) {
        self.outs.push(self.insns.len());
        self.put(Insn::Branch {
            condition,
            width: Width::W64,
            left: Reg(left),
            right,
            target: 0,
        });
    }

    fn packet(&mut self) {
        self.load_plain(Size::B4, 8, 6, 4);
        self.load_plain(Size::B4, 7, 6, 0);
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
        for at in self.outs {
            if let Some(Insn::Branch { target, .. }) = self.insns.get_mut(at) {
                *target = out;
            }
        }
        self.insns
    }

    fn piece(&mut self, depth: u32) {
        match self.random.random_range(0..26) {
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
            _ => self.atomic(),
        }
    }

    fn arithmetic(&mut self) {
        let (op, dst) = (self.of(OPS), self.number());
        let width = self.of([Width::W32, Width::W64]);
        let src = if self.chance(2) {
            Operand::Reg(Reg(self.number()))
        } else {
            let imm = i64::from(self.random.random::<i8>());
            let shift = matches!(op, AluOp::Lsh | AluOp::Rsh | AluOp::Arsh);
            Operand::Imm(if shift { imm & 31 } else { imm })
        };
        let zero = matches!(
            op,
            AluOp::Div | AluOp::Mod | AluOp::SignedDiv | AluOp::SignedMod
        ) && src == Operand::Imm(0);
        self.alu(op, width, dst, if zero { Operand::Imm(3) } else { src });
    }

    fn unary(&mut self) {
        let (dst, src) = (Reg(self.number()), Reg(self.number()));
        let width = self.of([Width::W32, Width::W64]);
        let insn = match self.random.random_range(0..3) {
            0 => Insn::Neg { width, dst },
            1 => Insn::SignExtend {
                width,
                from: self.of([Size::B1, Size::B2]),
                dst,
                src,
            },
            _ => Insn::ByteOrder {
                order: self.of([ByteOrder::ToBig, ByteOrder::ToLittle, ByteOrder::Swap]),
                bits: self.of([16, 32, 64]),
                dst,
            },
        };
        self.put(insn);
    }

    fn check(&mut self) {
        let n = i64::from(self.offset(48));
        let condition = self.of([Condition::Gt, Condition::Gt, Condition::Ge]);
        self.check_bytes(n, condition);
    }

    fn check_bytes(&mut self, n: i64, condition: Condition) {
        self.copy(5, 7);
        self.add(5, n);
        self.out_if(condition, 5, Operand::Reg(Reg(8)));
    }

    fn variable_packet(&mut self) {
        let r = self.number();
        // Added twice, a number without a bound comes round to a little before the packet.
        let round = self.chance(12);
        if round {
            self.check_bytes(16, Condition::Gt);
            self.load_plain(Size::B8, r, 7, 8);
            self.alu(AluOp::Rsh, Width::W64, r, Operand::Imm(1));
        } else if !self.chance(12) {
            let mask = self.of([3, 7, 15, 60]);
            self.alu(AluOp::And, Width::W64, r, Operand::Imm(mask));
        }
        self.copy(5, 7);
        for _ in 0..=u32::from(round) {
            self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(r)));
        }
        let at = self.offset(8);
        let size = self.of(SIZES);
        if !self.chance(5) {
            let n = self.near(i64::from(at) + i64::from(size.bytes()));
            self.copy(0, 5);
            self.add(0, n);
            self.out_if(Condition::Gt, 0, Operand::Reg(Reg(8)));
        }
        if self.chance(2) {
            self.load(size, r, 5, at);
        } else {
            self.store(size, 5, at, Operand::Reg(Reg(r)));
        }
    }

    fn variable_stack(&mut self) {
        let (r, size) = (self.number(), self.of(SIZES));
        self.alu(AluOp::And, Width::W64, r, Operand::Imm(7));
        self.copy(5, 10);
        let low = self.near(-8 - i64::from(size.bytes()));
        self.add(5, low);
        self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(r)));
        if self.chance(2) {
            self.load(size, r, 5, 0);
        } else {
            self.store(size, 5, 0, Operand::Reg(Reg(r)));
        }
    }

    fn branch(&mut self, depth: u32) {
        let at = self.insns.len();
        let right = if self.chance(2) {
            Operand::Reg(Reg(self.number()))
        } else {
            Operand::Imm(i64::from(self.random.random::<i8>()))
        };
        let insn = Insn::Branch {
            condition: self.of(CONDITIONS),
            width: self.of([Width::W32, Width::W64]),
            left: Reg(self.number()),
            right,
            target: 0,
        };
        self.put(insn);
        for _ in 0..self.random.random_range(1..3) {
            self.piece(depth + 1);
        }
        let end = self.insns.len();
        if let Some(Insn::Branch { target, .. }) = self.insns.get_mut(at) {
            *target = end;
        }
    }

    fn repeat(&mut self, depth: u32) {
        // The counter is on the stack, where the other pieces do not reach.
        let slot = -64 - 8 * (self.loops % 4);
        self.loops += 1;
        self.store(Size::B8, 10, slot, Operand::Imm(0));
        let head = self.insns.len();
        for _ in 0..self.random.random_range(1..3) {
            self.piece(depth + 1);
        }
        self.load_plain(Size::B8, 5, 10, slot);
        let step = self.of([1, 1, 3]);
        self.add(5, step);
        self.store(Size::B8, 10, slot, Operand::Reg(Reg(5)));
        let insn = Insn::Branch {
            condition: self.of([Condition::Lt, Condition::Ne, Condition::Le]),
            width: Width::W64,
            left: Reg(5),
            right: Operand::Imm(self.of([4, 9, 30])),
            target: head,
        };
        self.put(insn);
    }

    /// A packet pointer goes to the stack and comes back.
    fn spill(&mut self) {
        let (size, dst, off) = (self.of(SIZES), self.number(), self.offset(24));
        let n = self.near(i64::from(off) + i64::from(size.bytes()));
        self.check_bytes(n, Condition::Gt);
        let at = self.of([-48i16, -48, -56]);
        self.store(Size::B8, 10, at, Operand::Reg(Reg(7)));
        self.arithmetic();
        if self.chance(8) {
            let (size, dst, part) = (self.of([Size::B2, Size::B4]), self.number(), self.offset(6));
            self.load_plain(size, dst, 10, at + part);
        }
        if self.chance(16) {
            self.value(5, PAGE, 8);
            self.store(Size::B8, 5, 0, Operand::Reg(Reg(7)));
        }
        let back = self.of([at, at, at, -48, -52]);
        self.load_plain(Size::B8, 5, 10, back);
        self.load(size, dst, 5, off);
    }
}
