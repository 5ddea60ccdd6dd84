//! One decoded BPF instruction (RFC 9669), every relocation already resolved.

use serde::Serialize;

use crate::program::{FunctionId, ObjectId};
pub use crate::text::text;

/// A register, `r0` to `r10`; `r10` is the read-only frame pointer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Reg(pub u8);

/// Counts what is left of the rounds that a function may make by `may_goto`. No instruction of an object file
/// names it: decoding puts a comparison and a subtraction in the place of each `may_goto`, and the whole
/// budget, [`ROUNDS`], where the function begins (kernel/bpf/verifier.c does the same on the stack).
pub const BUDGET: Reg = Reg(11);

/// How often the `may_goto` instructions of one call of a function go on before they jump (the kernel's
/// `BPF_MAX_LOOPS`).
pub const ROUNDS: i64 = 1 << 23;

/// How many registers there are, [`BUDGET`] included.
pub const REGISTERS: usize = 12;

/// Bytes of the stack of one call of a function, the kernel's `MAX_BPF_STACK`. Their offsets from `r10` are `-STACK..0`.
pub const STACK: i64 = 512;

/// The width an arithmetic or branch instruction works at. A 32-bit result is zero-extended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Width {
    /// 32 bits
    W32,
    /// 64 bits
    W64,
}

/// The number of bytes a memory access moves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub enum Size {
    /// 1 byte
    B1,
    /// 2 bytes
    B2,
    /// 4 bytes
    B4,
    /// 8 bytes
    B8,
}

impl Size {
    /// The size in bytes: 1, 2, 4 or 8.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            Size::B1 => 1,
            Size::B2 => 2,
            Size::B4 => 4,
            Size::B8 => 8,
        }
    }
}

/// The second operand of an arithmetic or branch instruction, or the value a store writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Operand {
    /// a register
    Reg(Reg),
    /// an immediate, sign-extended from the instruction's 32 bits
    Imm(i64),
}

/// Two-operand arithmetic. `dst = dst op src`, except [`AluOp::Mov`]: `dst = src`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum AluOp {
    /// addition
    Add,
    /// subtraction
    Sub,
    /// multiplication
    Mul,
    /// unsigned division; by zero gives 0
    Div,
    /// signed division; by zero gives 0, the minimum by -1 gives the minimum
    SignedDiv,
    /// unsigned remainder; by zero leaves `dst`
    Mod,
    /// signed remainder; by zero leaves `dst`, the minimum by -1 gives 0
    SignedMod,
    /// bitwise or
    Or,
    /// bitwise and
    And,
    /// bitwise exclusive or
    Xor,
    /// shift left by `src` modulo the width
    Lsh,
    /// logical shift right by `src` modulo the width
    Rsh,
    /// arithmetic shift right by `src` modulo the width
    Arsh,
    /// copy
    Mov,
}

/// Operation of a byte-order instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum ByteOrder {
    /// truncate to the given bits (this machine is little-endian)
    ToLittle,
    /// swap the lowest bits and truncate to them (this machine is little-endian)
    ToBig,
    /// swap the lowest bits and truncate to them, unconditionally (v4)
    Swap,
}

/// The condition of a branch: `left cond right`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Condition {
    /// equal
    Eq,
    /// not equal
    Ne,
    /// unsigned greater
    Gt,
    /// unsigned greater or equal
    Ge,
    /// unsigned less
    Lt,
    /// unsigned less or equal
    Le,
    /// signed greater
    SignedGt,
    /// signed greater or equal
    SignedGe,
    /// signed less
    SignedLt,
    /// signed less or equal
    SignedLe,
    /// `left & right` is not zero
    Test,
}

/// Operation of an atomic instruction on memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum AtomicOp {
    /// add
    Add,
    /// or
    Or,
    /// and
    And,
    /// exclusive or
    Xor,
    /// exchange; always fetches into the source register
    Exchange,
    /// compare with `r0` and exchange; the old value goes to `r0`
    CompareExchange,
}

/// A 64-bit immediate load, its relocation resolved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Imm64 {
    /// a number (also a drop reason's verdict, once its name has become an index)
    Number(u64),
    /// the address of a state object, as helpers take it
    Object(ObjectId),
    /// the address of a byte inside the only value of a state object (globals: `.data`, `.bss`, `.rodata`)
    ObjectValue {
        /// the object
        object: ObjectId,
        /// offset in bytes from the start of the value
        offset: u32,
    },
    /// the address of a function of this object, for helpers that call back
    Function(FunctionId),
}

/// One instruction. Jump targets are indices into the function's `insns`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Insn {
    /// `dst = dst op src`
    Alu {
        /// the operation
        op: AluOp,
        /// at which width
        width: Width,
        /// destination, and left operand
        dst: Reg,
        /// right operand
        src: Operand,
    },
    /// `dst = -dst`
    Neg {
        /// at which width
        width: Width,
        /// the register
        dst: Reg,
    },
    /// `dst = sign-extended low bytes of src` (movsx, v4)
    SignExtend {
        /// the width of the result
        width: Width,
        /// how many bytes of `src` count
        from: Size,
        /// destination
        dst: Reg,
        /// source
        src: Reg,
    },
    /// byte order of the lowest `bits` of `dst`
    ByteOrder {
        /// which
        order: ByteOrder,
        /// 16, 32 or 64
        bits: u32,
        /// the register
        dst: Reg,
    },
    /// `dst = value` (two slots in the file, one instruction here)
    LoadImm {
        /// destination
        dst: Reg,
        /// the value
        value: Imm64,
    },
    /// `dst = *(size *)(base + offset)`
    Load {
        /// bytes moved
        size: Size,
        /// sign-extended (ldsx, v4) instead of zero-extended
        signed: bool,
        /// destination
        dst: Reg,
        /// address
        base: Reg,
        /// added to the address
        offset: i16,
    },
    /// `*(size *)(base + offset) = src`
    Store {
        /// bytes moved
        size: Size,
        /// address
        base: Reg,
        /// added to the address
        offset: i16,
        /// the value
        src: Operand,
    },
    /// `*(size *)(base + offset) op= src`, indivisibly
    Atomic {
        /// the operation
        op: AtomicOp,
        /// the old value goes to `src` (to `r0` for compare-exchange)
        fetch: bool,
        /// 4 or 8 bytes
        size: Size,
        /// address
        base: Reg,
        /// added to the address
        offset: i16,
        /// the operand
        src: Reg,
    },
    /// unconditional jump
    Jump {
        /// index of the next instruction
        target: usize,
    },
    /// conditional jump
    Branch {
        /// the condition
        condition: Condition,
        /// at which width both sides are compared
        width: Width,
        /// left side
        left: Reg,
        /// right side
        right: Operand,
        /// index of the next instruction when the condition holds
        target: usize,
    },
    /// call of a helper by number: arguments in `r1` to `r5`, result in `r0`
    Call {
        /// the helper's number, see [`crate::helper`]
        helper: u32,
    },
    /// call of another function of the object
    CallLocal {
        /// the function
        function: FunctionId,
    },
    /// call of the address in a register (callx); `check` refuses it by name
    CallRegister {
        /// the register
        target: Reg,
    },
    /// the classic packet loads (`BPF_ABS`, `BPF_IND`); `check` refuses them by name
    LegacyPacketLoad,
    /// return `r0`
    Exit,
}

impl Insn {
    /// `dst = dst op src`, of 64 bits.
    #[must_use]
    pub const fn alu(op: AluOp, dst: Reg, src: Operand) -> Self {
        let width = Width::W64;
        Self::Alu {
            op,
            width,
            dst,
            src,
        }
    }

    /// `dst = src`, of 64 bits.
    #[must_use]
    pub const fn mov(dst: Reg, src: Operand) -> Self {
        Self::alu(AluOp::Mov, dst, src)
    }

    /// The address of a state object.
    #[must_use]
    pub const fn object(dst: Reg, object: ObjectId) -> Self {
        let value = Imm64::Object(object);
        Self::LoadImm { dst, value }
    }

    /// A jump where `left condition right`, of 64 bits.
    #[must_use]
    pub const fn branch(condition: Condition, left: Reg, right: Operand, target: usize) -> Self {
        Self::Branch {
            condition,
            width: Width::W64,
            left,
            right,
            target,
        }
    }

    /// The register that it writes; of a call that of the result.
    #[must_use]
    pub fn written(&self) -> Option<Reg> {
        match *self {
            Self::Alu { dst, .. }
            | Self::Neg { dst, .. }
            | Self::SignExtend { dst, .. }
            | Self::ByteOrder { dst, .. }
            | Self::LoadImm { dst, .. }
            | Self::Load { dst, .. } => Some(dst),
            Self::Atomic { op, fetch, src, .. } => match op {
                AtomicOp::CompareExchange => Some(Reg(0)),
                _ if fetch => Some(src),
                _ => None,
            },
            Self::Call { .. } => Some(Reg(0)),
            _ => None,
        }
    }
}
