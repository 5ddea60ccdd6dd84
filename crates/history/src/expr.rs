//! Expressions by which a row is filled and read.

use millrace_check::facts::{FrameId, StepId};
use millrace_object::insn::{AluOp, ByteOrder, Condition, Reg, Size, Width};
use millrace_object::program::ObjectId;

/// A number of 64 bits, computed from a packet where its row is made, or from a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expr {
    /// a field of the row
    Field(usize),
    /// a constant
    Number(u64),
    /// the packet's time, ns
    Time,
    /// the address of a byte of a section of variables
    Address(ObjectId, u32),
    /// a register where the program first comes to state
    Register(FrameId, Reg),
    /// the same, a pointer into the packet
    Pointer(FrameId, Reg),
    /// a byte of the stack there
    Stack(FrameId, i32),
    /// the result of a step, kept since
    Kept(StepId),
    /// a field of the context
    Context(u32, Size),
    /// bytes of the packet; 0 where they are not there
    Packet(Box<Expr>, Size, bool),
    /// bytes of a constant section
    Constant(Box<Expr>, Size, bool),
    /// a byte of a number, 0 the lowest
    Byte(Box<Expr>, u8),
    /// bytes side by side, the lowest first
    Bytes(Vec<Expr>),
    /// arithmetic
    Alu(AluOp, Width, Box<Expr>, Box<Expr>),
    /// negation
    Neg(Width, Box<Expr>),
    /// sign extension
    Extend(Width, Size, Box<Expr>),
    /// byte order
    Order(ByteOrder, u32, Box<Expr>),
    /// a comparison, 0 or 1
    Compare(Condition, Width, Box<Expr>, Box<Expr>),
    /// the second where the first is not 0, else the third
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// the place of a number in a list
    Index(Box<Expr>, Vec<u64>),
    /// the number at a place of a list
    Pick(Box<Expr>, Vec<u64>),
}

impl Expr {
    /// Calls `see` for this expression and all inside.
    pub fn walk<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        see(self);
        match self {
            Expr::Packet(e, ..)
            | Expr::Constant(e, ..)
            | Expr::Byte(e, _)
            | Expr::Neg(_, e)
            | Expr::Extend(_, _, e)
            | Expr::Order(_, _, e)
            | Expr::Index(e, _)
            | Expr::Pick(e, _) => e.walk(see),
            Expr::Alu(_, _, a, b) | Expr::Compare(_, _, a, b) => {
                a.walk(see);
                b.walk(see);
            }
            Expr::Select(a, b, c) => {
                a.walk(see);
                b.walk(see);
                c.walk(see);
            }
            Expr::Bytes(all) => all.iter().for_each(|e| e.walk(see)),
            Expr::Field(_)
            | Expr::Number(_)
            | Expr::Time
            | Expr::Address(..)
            | Expr::Register(..)
            | Expr::Pointer(..)
            | Expr::Stack(..)
            | Expr::Kept(_)
            | Expr::Context(..) => {}
        }
    }
}
