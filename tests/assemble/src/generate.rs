//! Programs from arbitrary bytes: pieces that real programs are made of, with constants that are
//! often off by one, so that some programs are safe and many are nearly so.

use millrace_object::insn::{AluOp, AtomicOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::{
    Dialect, Entry, Function, FunctionId, ObjectId, Program, Role, StateObject,
};

use crate::object;

/// The bytes that decide.
struct Source<'a> {
    bytes: &'a [u8],
}

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((b, rest)) => {
                self.bytes = rest;
                *b
            }
            None => 0,
        }
    }

    fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }
}

const SCALARS: [u8; 5] = [1, 2, 3, 4, 9];
const SIZES: [Size; 4] = [Size::B1, Size::B2, Size::B4, Size::B8];

/// A program of at most some hundred instructions.
#[must_use]
pub fn program(bytes: &[u8]) -> Program {
    let mut s = Source { bytes };
    let mut g = Generator {
        insns: Vec::new(),
        outs: Vec::new(),
    };
    g.prologue();
    while !s.bytes.is_empty() && g.insns.len() < 120 {
        g.piece(&mut s, 0);
    }
    g.mov(0, 2);
    g.insns.push(Insn::Exit);
    let out = g.insns.len();
    g.mov(0, 1);
    g.insns.push(Insn::Exit);
    for at in std::mem::take(&mut g.outs) {
        if let Insn::Branch { target, .. } = &mut g.insns[at] {
            *target = out;
        }
    }
    let n = g.insns.len();
    let functions = vec![Function {
        name: "main".into(),
        section: "xdp".into(),
        insns: g.insns,
        slots: (0..n as u32).collect(),
        lines: vec![None; n],
    }];
    let objects: Vec<StateObject> = vec![
        object("table", "hash", 8, 16),
        object("page", "global", 0, 32),
        object("ring", "ringbuf", 0, 0),
        object("other", "hash", 12, 12),
    ];
    Program {
        name: "generated".into(),
        dialect: Dialect::Xdp,
        functions,
        entries: vec![Entry {
            role: Role::Xdp,
            function: FunctionId(0),
        }],
        objects,
        ports: Vec::new(),
        params: Vec::new(),
        reasons: Vec::new(),
        license: String::new(),
    }
}

struct Generator {
    insns: Vec<Insn>,
    /// branches to the common way out
    outs: Vec<usize>,
}

impl Generator {
    fn mov(&mut self, dst: u8, imm: i64) {
        self.alu(AluOp::Mov, Width::W64, dst, Operand::Imm(imm));
    }

    fn alu(&mut self, op: AluOp, width: Width, dst: u8, src: Operand) {
        self.insns.push(Insn::Alu {
            op,
            width,
            dst: Reg(dst),
            src,
        });
    }

    fn load(&mut self, size: Size, dst: u8, base: u8, offset: i16) {
        self.insns.push(Insn::Load {
            size,
            signed: false,
            dst: Reg(dst),
            base: Reg(base),
            offset,
        });
    }

    fn out_if(&mut self, condition: Condition, left: u8, right: Operand) {
        self.outs.push(self.insns.len());
        self.insns.push(Insn::Branch {
            condition,
            width: Width::W64,
            left: Reg(left),
            right,
            target: 0,
        });
    }

    /// r6 context, r7 data, r8 data_end; numbers in r1 to r4 and r9, a key and its neighbour on the
    /// stack.
    fn prologue(&mut self) {
        self.alu(AluOp::Mov, Width::W64, 6, Operand::Reg(Reg(1)));
        self.load(Size::B4, 8, 6, 4);
        self.load(Size::B4, 7, 6, 0);
        self.load(Size::B4, 9, 6, 12);
        self.numbers();
        self.insns.push(Insn::Store {
            size: Size::B8,
            base: Reg(10),
            offset: -16,
            src: Operand::Imm(5),
        });
    }

    fn numbers(&mut self) {
        for (i, r) in [1, 2, 3, 4].into_iter().enumerate() {
            self.mov(r, 7 * i as i64);
        }
    }

    fn piece(&mut self, s: &mut Source<'_>, depth: u32) {
        match s.below(16) {
            0 | 1 => {
                let op = s.of(&[
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
                    AluOp::Mov,
                ]);
                let width = s.of(&[Width::W32, Width::W64]);
                let src = if s.byte() & 1 == 0 {
                    Operand::Reg(Reg(s.of(&SCALARS)))
                } else {
                    Operand::Imm(i64::from(s.byte() as i8))
                };
                let dst = s.of(&SCALARS);
                self.alu(op, width, dst, src);
            }
            2 => self.check(s),
            3 => {
                let (size, dst, off) = (s.of(&SIZES), s.of(&SCALARS), i16::from(s.below(40)));
                self.load(size, dst, 7, off);
            }
            4 => {
                let (size, src, off) = (s.of(&SIZES), s.of(&SCALARS), i16::from(s.below(40)));
                self.insns.push(Insn::Store {
                    size,
                    base: Reg(7),
                    offset: off,
                    src: Operand::Reg(Reg(src)),
                });
            }
            6 if s.byte() & 3 == 0 => {
                // A number cut to its lower half, without 32-bit arithmetic, and bounded there.
                let (a, b) = (s.of(&SCALARS), s.of(&SCALARS));
                self.alu(AluOp::Mov, Width::W64, b, Operand::Reg(Reg(a)));
                self.alu(AluOp::Lsh, Width::W64, b, Operand::Imm(32));
                self.alu(
                    s.of(&[AluOp::Rsh, AluOp::Rsh, AluOp::Arsh]),
                    Width::W64,
                    b,
                    Operand::Imm(32),
                );
                self.out_if(
                    Condition::Gt,
                    b,
                    Operand::Imm(i64::from(s.of(&[8u8, 24, 31]))),
                );
            }
            5 if s.byte() & 1 == 0 => self.two_pointers(s),
            5 => self.variable_packet(s),
            6 => {
                let (size, src) = (s.of(&SIZES), s.of(&SCALARS));
                let off = -i16::from(s.below(40));
                self.insns.push(Insn::Store {
                    size,
                    base: Reg(10),
                    offset: off,
                    src: Operand::Reg(Reg(src)),
                });
            }
            7 => {
                let (size, dst) = (s.of(&SIZES), s.of(&SCALARS));
                let off = -i16::from(s.below(40));
                self.load(size, dst, 10, off);
            }
            8 => self.lookup(s),
            9 => self.indexed(s),
            10 if depth < 2 => self.branch(s, depth),
            11 if depth < 2 => self.repeat(s, depth),
            12 => self.record(s),
            13 => {
                self.alu(AluOp::Mov, Width::W64, 1, Operand::Reg(Reg(6)));
                self.mov(2, 0);
                self.insns.push(Insn::Call { helper: 44 });
                if s.below(4) > 0 {
                    self.load(Size::B4, 8, 6, 4);
                    self.load(Size::B4, 7, 6, 0);
                }
                self.numbers();
            }
            14 => {
                let (left, right) = (s.of(&SCALARS), i64::from(s.byte()));
                let c = s.of(&[
                    Condition::Gt,
                    Condition::SignedGt,
                    Condition::Ne,
                    Condition::Ge,
                    Condition::SignedLt,
                ]);
                self.out_if(c, left, Operand::Imm(right));
            }
            _ => self.variable_stack(s),
        }
    }

    fn check(&mut self, s: &mut Source<'_>) {
        let n = i64::from(s.below(44));
        self.alu(AluOp::Mov, Width::W64, 5, Operand::Reg(Reg(7)));
        self.alu(AluOp::Add, Width::W64, 5, Operand::Imm(n));
        let c = s.of(&[Condition::Gt, Condition::Gt, Condition::Ge]);
        self.out_if(c, 5, Operand::Reg(Reg(8)));
    }

    fn variable_packet(&mut self, s: &mut Source<'_>) {
        let r = s.of(&SCALARS);
        self.alu(
            AluOp::And,
            Width::W64,
            r,
            Operand::Imm(i64::from(s.of(&[3u8, 7, 15, 60]))),
        );
        self.alu(AluOp::Mov, Width::W64, 5, Operand::Reg(Reg(7)));
        self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(r)));
        if s.below(3) > 0 {
            let n = i64::from(s.below(12));
            self.alu(AluOp::Mov, Width::W64, 0, Operand::Reg(Reg(5)));
            self.alu(AluOp::Add, Width::W64, 0, Operand::Imm(n));
            self.out_if(Condition::Gt, 0, Operand::Reg(Reg(8)));
        }
        let off = i16::from(s.below(8));
        self.load(s.of(&SIZES), r, 5, off);
    }

    /// r5 is shown to be at most the end, and r0 + n at most r5; then r0 is followed.
    fn two_pointers(&mut self, s: &mut Source<'_>) {
        let (a, b) = (s.of(&SCALARS), s.of(&SCALARS));
        for r in [a, b] {
            self.alu(
                AluOp::And,
                Width::W64,
                r,
                Operand::Imm(i64::from(s.of(&[7u8, 31]))),
            );
        }
        self.alu(AluOp::Mov, Width::W64, 5, Operand::Reg(Reg(7)));
        self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(a)));
        if s.below(4) > 0 {
            self.out_if(Condition::Gt, 5, Operand::Reg(Reg(8)));
        }
        self.alu(AluOp::Mov, Width::W64, 0, Operand::Reg(Reg(7)));
        self.alu(AluOp::Add, Width::W64, 0, Operand::Reg(Reg(b)));
        let n = i64::from(s.below(9));
        self.alu(AluOp::Add, Width::W64, 0, Operand::Imm(n));
        let c = s.of(&[Condition::Gt, Condition::Ge]);
        self.out_if(c, 0, Operand::Reg(Reg(5)));
        self.load(s.of(&SIZES), a, 0, -i16::from(s.below(9)));
    }

    fn variable_stack(&mut self, s: &mut Source<'_>) {
        let r = s.of(&SCALARS);
        self.alu(AluOp::And, Width::W64, r, Operand::Imm(7));
        self.alu(AluOp::Mov, Width::W64, 5, Operand::Reg(Reg(10)));
        self.alu(
            AluOp::Add,
            Width::W64,
            5,
            Operand::Imm(-i64::from(s.of(&[16u8, 16, 8, 7]))),
        );
        self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(r)));
        if s.byte() & 1 == 0 {
            self.load(Size::B1, r, 5, 0);
        } else {
            self.insns.push(Insn::Store {
                size: s.of(&SIZES),
                base: Reg(5),
                offset: 0,
                src: Operand::Reg(Reg(r)),
            });
        }
    }

    fn lookup(&mut self, s: &mut Source<'_>) {
        self.insns.push(Insn::LoadImm {
            dst: Reg(1),
            value: Imm64::Object(ObjectId(0)),
        });
        // On another way perhaps another one, with a longer key and a shorter value.
        if s.below(3) == 0 {
            let target = self.insns.len() + 2;
            self.insns.push(Insn::Branch {
                condition: s.of(&[Condition::Gt, Condition::Test]),
                width: Width::W64,
                left: Reg(9),
                right: Operand::Imm(3),
                target,
            });
            self.insns.push(Insn::LoadImm {
                dst: Reg(1),
                value: Imm64::Object(ObjectId(3)),
            });
        }
        self.alu(AluOp::Mov, Width::W64, 2, Operand::Reg(Reg(10)));
        self.alu(
            AluOp::Add,
            Width::W64,
            2,
            Operand::Imm(-i64::from(s.of(&[16u8, 16, 16, 24, 12]))),
        );
        self.insns.push(Insn::Call { helper: 1 });
        if s.below(5) > 0 {
            self.out_if(Condition::Eq, 0, Operand::Imm(0));
        }
        self.numbers();
        let off = i16::from(s.of(&[0u8, 8, 8, 4, 9, 12, 15]));
        match s.below(3) {
            0 => self.load(s.of(&SIZES), 3, 0, off),
            1 => self.insns.push(Insn::Atomic {
                op: AtomicOp::Add,
                fetch: false,
                size: Size::B8,
                base: Reg(0),
                offset: off,
                src: Reg(2),
            }),
            _ => self.insns.push(Insn::Store {
                size: s.of(&SIZES),
                base: Reg(0),
                offset: off,
                src: Operand::Reg(Reg(4)),
            }),
        }
    }

    fn indexed(&mut self, s: &mut Source<'_>) {
        let r = s.of(&SCALARS);
        if s.byte() & 1 == 0 {
            self.alu(
                AluOp::And,
                Width::W64,
                r,
                Operand::Imm(i64::from(s.of(&[15u8, 31, 28, 63]))),
            );
        } else {
            self.out_if(
                Condition::Gt,
                r,
                Operand::Imm(i64::from(s.of(&[24u8, 31, 30, 32]))),
            );
        }
        self.insns.push(Insn::LoadImm {
            dst: Reg(5),
            value: Imm64::ObjectValue {
                object: ObjectId(1),
                offset: 0,
            },
        });
        self.alu(AluOp::Add, Width::W64, 5, Operand::Reg(Reg(r)));
        self.load(s.of(&SIZES), r, 5, 0);
    }

    fn branch(&mut self, s: &mut Source<'_>, depth: u32) {
        let at = self.insns.len();
        let c = s.of(&[
            Condition::Gt,
            Condition::SignedLt,
            Condition::Eq,
            Condition::Ne,
            Condition::Test,
            Condition::Le,
        ]);
        let right = if s.byte() & 1 == 0 {
            Operand::Reg(Reg(s.of(&SCALARS)))
        } else {
            Operand::Imm(i64::from(s.byte() as i8))
        };
        self.insns.push(Insn::Branch {
            condition: c,
            width: s.of(&[Width::W32, Width::W64]),
            left: Reg(s.of(&SCALARS)),
            right,
            target: 0,
        });
        for _ in 0..=s.below(2) {
            self.piece(s, depth + 1);
        }
        let end = self.insns.len();
        if let Insn::Branch { target, .. } = &mut self.insns[at] {
            *target = end;
        }
    }

    fn repeat(&mut self, s: &mut Source<'_>, depth: u32) {
        // The counter is on the stack, out of reach of the other pieces most of the time.
        let slot = if depth == 0 { -64 } else { -72 };
        self.insns.push(Insn::Store {
            size: Size::B8,
            base: Reg(10),
            offset: slot,
            src: Operand::Imm(0),
        });
        let head = self.insns.len();
        for _ in 0..=s.below(2) {
            self.piece(s, depth + 1);
        }
        self.load(Size::B8, 5, 10, slot);
        self.alu(
            AluOp::Add,
            Width::W64,
            5,
            Operand::Imm(i64::from(s.of(&[1u8, 1, 3]))),
        );
        self.insns.push(Insn::Store {
            size: Size::B8,
            base: Reg(10),
            offset: slot,
            src: Operand::Reg(Reg(5)),
        });
        let c = s.of(&[Condition::Lt, Condition::Ne, Condition::Le]);
        self.insns.push(Insn::Branch {
            condition: c,
            width: Width::W64,
            left: Reg(5),
            right: Operand::Imm(i64::from(s.of(&[4u8, 9, 40]))),
            target: head,
        });
    }

    fn record(&mut self, s: &mut Source<'_>) {
        self.insns.push(Insn::LoadImm {
            dst: Reg(1),
            value: Imm64::Object(ObjectId(2)),
        });
        self.mov(2, 12);
        self.mov(3, 0);
        self.insns.push(Insn::Call { helper: 131 });
        self.out_if(Condition::Eq, 0, Operand::Imm(0));
        let off = i16::from(s.of(&[0u8, 4, 8, 9]));
        self.insns.push(Insn::Store {
            size: s.of(&SIZES),
            base: Reg(0),
            offset: off,
            src: Operand::Imm(1),
        });
        if s.below(5) > 0 {
            self.alu(AluOp::Mov, Width::W64, 1, Operand::Reg(Reg(0)));
            self.mov(2, 0);
            self.insns.push(Insn::Call { helper: 132 });
        }
        self.numbers();
    }
}
