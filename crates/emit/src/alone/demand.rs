//! Which form of each register is needed where: as a number, as a pointer, both, or neither.
//!
//! A BPF register becomes two C locals, `u64 r1_0` and `u8 *p1_0` (register 1, frame 0). Writing
//! both at each definition would hide from LLVM what is a pointer and would leave dead code, so a
//! backward analysis, liveness with two bits a register, finds for each definition which forms
//! some later instruction reads. A constant stack pointer, the context and a state object need
//! neither: they are written as address expressions where they are used.
//!
//! Only the frames on the current call path have live registers, so a point's demand is one word
//! per level of calls.

use millrace_check::facts::{FrameId, Kind, Op, Step, StepId};
use millrace_object::helper;
use millrace_object::insn::{AluOp, AtomicOp, Condition, Insn, Operand, Reg, Width};

use super::slice::{Role, Slice};

/// Forms of a register, a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Forms {
    /// as a number
    pub scalar: bool,
    /// as a pointer
    pub pointer: bool,
}

impl Forms {
    /// Only as a number.
    pub const SCALAR: Forms = Forms {
        scalar: true,
        pointer: false,
    };
    /// Only as a pointer.
    pub const POINTER: Forms = Forms {
        scalar: false,
        pointer: true,
    };

    /// Whether any form is in it.
    pub fn any(self) -> bool {
        self.scalar || self.pointer
    }

    fn bits(self) -> u32 {
        u32::from(self.scalar) | u32::from(self.pointer) << 1
    }
}

/// The registers of one frame with their forms: two bits each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Live(u32);

impl Live {
    /// The forms of one register.
    pub fn forms(self, reg: Reg) -> Forms {
        let bits = self.0 >> (2 * u32::from(reg.0));
        Forms {
            scalar: bits & 1 != 0,
            pointer: bits & 2 != 0,
        }
    }

    fn add(&mut self, reg: Reg, forms: Forms) {
        self.0 |= forms.bits() << (2 * u32::from(reg.0));
    }

    fn remove(&mut self, reg: Reg) {
        self.0 &= !(3 << (2 * u32::from(reg.0)));
    }
}

/// The result: what is needed after each step, and which locals need a value from the start.
pub struct Demand {
    levels: usize,
    /// `levels` words a step: needed before it
    before: Vec<Live>,
    /// by frame: read on some path of the graph that does not write them first
    pub unwritten: Vec<Live>,
}

impl Demand {
    /// Solves the backward equations over a slice by a work list.
    pub fn solve(slice: &Slice) -> Demand {
        let levels = slice.levels();
        let steps = slice.flow.steps.len();
        let order = slice.layout();
        let mut predecessors = vec![Vec::new(); steps];
        for &id in &order {
            for next in slice.successors(id) {
                predecessors[next.0].push(id);
            }
        }
        let mut demand = Demand {
            levels,
            before: vec![Live::default(); steps * levels],
            unwritten: vec![Live::default(); slice.flow.frames.len()],
        };
        // A stack of the steps in layout order pops the last first, the good order backwards.
        let mut queued = vec![true; steps];
        let mut work = order;
        while let Some(id) = work.pop() {
            queued[id.0] = false;
            let before = demand.transfer(slice, id);
            let row = &mut demand.before[id.0 * levels..][..levels];
            if row != before.as_slice() {
                row.copy_from_slice(&before);
                for &p in &predecessors[id.0] {
                    if !queued[p.0] {
                        queued[p.0] = true;
                        work.push(p);
                    }
                }
            }
        }
        demand.unwritten[0] = demand.row(StepId(0))[0];
        demand
    }

    /// The forms of a register of the step's own frame that are needed after the step.
    pub fn after(&self, slice: &Slice, id: StepId, reg: Reg) -> Forms {
        let level = slice.depth(slice.step(id).frame);
        let mut live = Live::default();
        for next in slice.successors(id) {
            live.0 |= self.row(next)[level].0;
        }
        live.forms(reg)
    }

    /// The forms of a register of `frame` that are needed before the step.
    pub fn before(&self, slice: &Slice, id: StepId, frame: FrameId, reg: Reg) -> Forms {
        self.row(id)[slice.depth(frame)].forms(reg)
    }

    fn row(&self, id: StepId) -> &[Live] {
        &self.before[id.0 * self.levels..][..self.levels]
    }

    fn transfer(&mut self, slice: &Slice, id: StepId) -> Vec<Live> {
        let mut live = vec![Live::default(); self.levels];
        for next in slice.successors(id) {
            for (level, needed) in live.iter_mut().zip(self.row(next)) {
                level.0 |= needed.0;
            }
        }
        let step = slice.step(id);
        let level = slice.depth(step.frame);
        match slice.role(id) {
            Role::Absent | Role::Stop => return live,
            Role::Site(_) => {
                // Only what the token is computed from.
                if let Op::Plain(Insn::Call { helper: number }) = step.op
                    && let Some(at) = helper::by_number(number)
                        .and_then(|h| h.args.iter().position(|a| *a == helper::Arg::Key))
                {
                    let reg = Reg(at as u8 + 1);
                    live[level].add(reg, needs(step, reg, Forms::POINTER));
                }
                return live;
            }
            Role::Run => {}
        }
        match step.op {
            Op::Plain(insn) => plain(step, &insn, &mut live[level]),
            Op::Branch { insn, .. } => {
                if step.outcomes.holds && step.outcomes.fails {
                    branch(step, &insn, &mut live[level]);
                }
            }
            Op::Jump { .. } => {}
            Op::Enter { frame, .. } => {
                let inner = std::mem::take(&mut live[level + 1]);
                for reg in (0..=10).map(Reg) {
                    let forms = inner.forms(reg);
                    match reg.0 {
                        1..=5 => live[level].add(reg, needs(step, reg, forms)),
                        _ => self.unwritten[frame.0].add(reg, forms),
                    }
                }
            }
            Op::Leave { .. } => {
                if let Some(outer) = level.checked_sub(1) {
                    let forms = live[outer].forms(Reg(0));
                    for reg in (0..=5).map(Reg) {
                        live[outer].remove(reg);
                    }
                    live[level].add(Reg(0), needs(step, Reg(0), forms));
                }
            }
            Op::Exit if slice.verdict => {
                live[level].add(Reg(0), needs(step, Reg(0), Forms::SCALAR));
            }
            Op::Exit => {}
        }
        live
    }
}

/// What must be held of a register of this kind so that the wanted forms can be read: a number gives
/// its pointer form by a cast and the reverse; an address expression needs nothing.
fn needs(step: &Step, reg: Reg, wanted: Forms) -> Forms {
    if !wanted.any() {
        return Forms::default();
    }
    match step.before[usize::from(reg.0)] {
        Kind::Scalar | Kind::Unset => Forms::SCALAR,
        Kind::Mixed => wanted,
        Kind::Context
        | Kind::Object(_)
        | Kind::Stack {
            offset: Some(_), ..
        } => Forms::default(),
        kind if is_pointer(kind) => Forms::POINTER,
        _ => wanted,
    }
}

/// Whether a register of this kind holds a pointer (or null) in every execution.
pub fn is_pointer(kind: Kind) -> bool {
    !matches!(kind, Kind::Unset | Kind::Scalar | Kind::Mixed)
}

/// Whether this kind is written as an address expression, so that no local holds it.
pub fn is_address(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Context
            | Kind::Object(_)
            | Kind::Stack {
                offset: Some(_),
                ..
            }
    )
}

/// The form in which a definition's right-hand side is computed; the other is cast from it.
pub fn natural(after: Kind, demanded: Forms) -> Forms {
    match after {
        Kind::Mixed if demanded == Forms::POINTER => Forms::POINTER,
        kind if is_pointer(kind) => Forms::POINTER,
        _ => Forms::SCALAR,
    }
}

/// Which operand of a pointer addition is the pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// the left one; the right one is a number
    Left,
    /// the right one; the left one is a number
    Right,
}

/// How `dst = dst ± src` is computed in pointer form, if it can be.
pub fn pointer_base(step: &Step, op: AluOp, width: Width, dst: Reg, src: Operand) -> Option<Base> {
    let number = |reg: Reg| step.before[usize::from(reg.0)] == Kind::Scalar;
    match (op, width, src) {
        (AluOp::Add | AluOp::Sub, Width::W64, Operand::Imm(_)) => Some(Base::Left),
        (AluOp::Add | AluOp::Sub, Width::W64, Operand::Reg(src)) if number(src) => Some(Base::Left),
        (AluOp::Add, Width::W64, Operand::Reg(_)) if number(dst) => Some(Base::Right),
        _ => None,
    }
}

/// Whether a branch compares addresses rather than numbers.
pub fn compares_pointers(step: &Step, insn: &Insn) -> bool {
    let Insn::Branch {
        condition,
        width: Width::W64,
        left,
        right,
        ..
    } = *insn
    else {
        return false;
    };
    let kind = |reg: Reg| step.before[usize::from(reg.0)];
    match (condition, right) {
        (Condition::Eq | Condition::Ne, Operand::Imm(0)) => is_pointer(kind(left)),
        (
            Condition::Eq
            | Condition::Ne
            | Condition::Gt
            | Condition::Ge
            | Condition::Lt
            | Condition::Le,
            Operand::Reg(right),
        ) => is_pointer(kind(left)) && is_pointer(kind(right)),
        _ => false,
    }
}

/// Whether a call may be left out when nobody reads its result.
pub fn is_pure(number: u32) -> bool {
    helper::by_number(number).is_some_and(|h| {
        let e = h.effects;
        let writes = h.args.iter().any(|a| {
            matches!(
                a,
                helper::Arg::Write | helper::Arg::Out(_) | helper::Arg::Record
            )
        });
        !(e.moves_packet || e.state || e.other || e.random || writes)
    })
}

fn branch(step: &Step, insn: &Insn, live: &mut Live) {
    let Insn::Branch { left, right, .. } = *insn else {
        return;
    };
    let form = if compares_pointers(step, insn) {
        Forms::POINTER
    } else {
        Forms::SCALAR
    };
    live.add(left, needs(step, left, form));
    if let Operand::Reg(right) = right {
        live.add(right, needs(step, right, form));
    }
}

fn plain(step: &Step, insn: &Insn, live: &mut Live) {
    let need = |live: &mut Live, reg: Reg, form: Forms| live.add(reg, needs(step, reg, form));
    match *insn {
        Insn::Store { base, src, .. } => {
            address(step, base, live);
            if let Operand::Reg(src) = src {
                let kind = step.before[usize::from(src.0)];
                need(
                    live,
                    src,
                    if is_pointer(kind) {
                        Forms::POINTER
                    } else {
                        Forms::SCALAR
                    },
                );
            }
        }
        Insn::Atomic {
            op,
            fetch,
            base,
            src,
            ..
        } => {
            if fetch || matches!(op, AtomicOp::Exchange | AtomicOp::CompareExchange) {
                live.remove(if op == AtomicOp::CompareExchange {
                    Reg(0)
                } else {
                    src
                });
            }
            address(step, base, live);
            need(live, src, Forms::SCALAR);
            if op == AtomicOp::CompareExchange {
                need(live, Reg(0), Forms::SCALAR);
            }
        }
        Insn::Call { helper: number } => {
            let result = live.forms(Reg(0));
            for reg in (0..=5).map(Reg) {
                live.remove(reg);
            }
            if !result.any() && is_pure(number) {
                return;
            }
            let Some(helper) = helper::by_number(number) else {
                return;
            };
            for (arg, reg) in helper.args.iter().zip((1..=5).map(Reg)) {
                match arg {
                    helper::Arg::Context | helper::Arg::Object => {}
                    helper::Arg::Scalar | helper::Arg::Bytes { .. } => {
                        need(live, reg, Forms::SCALAR);
                    }
                    _ => need(live, reg, Forms::POINTER),
                }
            }
        }
        _ => definition(step, insn, live),
    }
}

/// Instructions that only compute a register: needed as far as their result is.
fn definition(step: &Step, insn: &Insn, live: &mut Live) {
    let Some(dst) = millrace_check::facts::written(insn) else {
        return;
    };
    let demanded = live.forms(dst);
    live.remove(dst);
    if !demanded.any() || is_address(step.after) {
        return;
    }
    let form = natural(step.after, demanded);
    let mut need = |reg: Reg, form: Forms| live.add(reg, needs(step, reg, form));
    match *insn {
        Insn::Alu {
            op: AluOp::Mov,
            src: Operand::Imm(_),
            ..
        } => {}
        Insn::Alu {
            op: AluOp::Mov,
            width,
            src: Operand::Reg(src),
            ..
        } => {
            let wide = width == Width::W64;
            need(src, if wide { form } else { Forms::SCALAR });
        }
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => {
            let base = if form == Forms::POINTER {
                pointer_base(step, op, width, dst, src)
            } else {
                None
            };
            need(
                dst,
                if base == Some(Base::Left) {
                    Forms::POINTER
                } else {
                    Forms::SCALAR
                },
            );
            if let Operand::Reg(src) = src {
                need(
                    src,
                    if base == Some(Base::Right) {
                        Forms::POINTER
                    } else {
                        Forms::SCALAR
                    },
                );
            }
        }
        Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } => need(dst, Forms::SCALAR),
        Insn::SignExtend { src, .. } => need(src, Forms::SCALAR),
        Insn::Load { base, .. } => address(step, base, live),
        _ => {}
    }
}

/// The base of a load or store.
fn address(step: &Step, base: Reg, live: &mut Live) {
    live.add(base, needs(step, base, Forms::POINTER));
}
