//! Registers that point into a frame's stack, and their offsets: a forward pass over the flow.

use std::collections::BTreeMap;

use millrace_object::helper::{self, Arg, Return};
use millrace_object::insn::{AluOp, Imm64, Insn, Operand, REGISTERS, Reg, STACK, Size, Width};
use millrace_object::program::{ObjectId, Program};

use super::graph::Blocks;
use super::places::{Level, Span};
use crate::facts::{Flow, Op};

/// What a register may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum P {
    /// always this number
    Number(i64),
    /// a number
    Scalar,
    /// the address of a state object
    Object(ObjectId),
    /// the context
    Context,
    /// a pointer, but not into a stack
    Pointer,
    /// anything but a pointer into a stack
    Other,
    /// into the stack of the frame at this depth, at this offset
    At(u8, i32),
    /// anything, but if into a stack, then into the one at this depth
    In(u8),
    /// anything
    Top,
}

fn join(a: P, b: P) -> P {
    use P::{At, Context, In, Number, Object, Other, Pointer, Scalar, Top};
    if a == b {
        return a;
    }
    match (a, b) {
        (Top, _) | (_, Top) => Top,
        (At(d, _) | In(d), At(e, _) | In(e)) => {
            if d == e {
                In(d)
            } else {
                Top
            }
        }
        (At(d, _) | In(d), _) | (_, At(d, _) | In(d)) => In(d),
        (Number(_) | Scalar, Number(_) | Scalar) => Scalar,
        (Pointer | Object(_) | Context, Pointer | Object(_) | Context) => Pointer,
        _ => Other,
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Now {
    regs: [P; REGISTERS],
    slots: BTreeMap<(u8, i32), P>,
}

/// What one step does to stack memory, and which numbers it adds to pointers.
#[derive(Clone, Debug)]
pub struct Touch {
    /// the memory of a load, store or atomic
    pub access: Span,
    /// what a helper reads
    pub reads: Vec<Span>,
    /// registers whose numbers become part of a pointer or a size
    pub proof: u16,
    /// how deep the frame is
    pub depth: u8,
}

/// The touches of every step, and for each block the places of the innermost frame that hold a pointer
/// when it begins, in some executions at least.
#[must_use]
pub fn points(program: &Program, flow: &Flow, blocks: &Blocks) -> (Vec<Touch>, Vec<Level>) {
    let mut depths: Vec<u8> = Vec::new();
    for f in &flow.frames {
        depths.push(
            f.caller
                .map_or(0, |c| depths.get(c.0).copied().unwrap_or(0) + 1),
        );
    }
    let depth_of = |at: usize| {
        flow.steps
            .get(at)
            .and_then(|s| depths.get(s.frame.0))
            .copied()
            .unwrap_or(0)
    };
    let mut pass = Pass {
        program,
        escaped: None,
    };
    let mut at_start: Vec<Option<Now>> = vec![None; blocks.starts.len()];
    let mut touches: Vec<Touch> = (0..flow.steps.len())
        .map(|at| Touch {
            access: Span::All,
            reads: Vec::new(),
            proof: 0,
            depth: depth_of(at),
        })
        .collect();
    let mut regs = [P::Other; REGISTERS];
    regs[1] = P::Context;
    regs[10] = P::At(0, 0);
    if let Some(first) = at_start.first_mut() {
        *first = Some(Now {
            regs,
            slots: BTreeMap::new(),
        });
    }
    let mut todo: Vec<bool> = vec![false; blocks.starts.len()];
    if let Some(t) = todo.first_mut() {
        *t = true;
    }
    // Joins only go up a lattice of small height; the bound is for safety, and nothing is lost but
    // precision if it is met.
    for _ in 0..64 {
        let mut changed = false;
        for &b in &blocks.order {
            if !std::mem::take(&mut todo[b]) {
                continue;
            }
            let Some(mut now) = at_start[b].clone() else {
                continue;
            };
            let escaped = pass.escaped;
            for at in blocks.steps(b) {
                let depth = depth_of(at);
                let Some(step) = flow.steps.get(at) else {
                    continue;
                };
                match step.op {
                    Op::Plain(insn) => {
                        touches[at] = pass.plain(&mut now, insn, depth);
                    }
                    Op::Enter { frame, target } => {
                        let mut callee = Now {
                            regs: [P::Other; REGISTERS],
                            slots: now.slots.clone(),
                        };
                        callee.regs[1..=5].copy_from_slice(&now.regs[1..=5]);
                        callee.regs[10] = P::At(depths.get(frame.0).copied().unwrap_or(0), 0);
                        changed |= flow_into(&mut at_start, &mut todo, blocks, target.0, &callee);
                        // The callee may write what it can reach of our stack.
                        if now.regs[1..=5]
                            .iter()
                            .any(|p| matches!(p, P::At(..) | P::In(_) | P::Top))
                            || pass.escaped.is_some()
                        {
                            now.slots.clear();
                        }
                        // The next number of an iterator is in the iterator.
                        let expansion = flow.frames.get(frame.0).and_then(|f| f.expansion);
                        now.regs[0] = match expansion {
                            Some(e) if e.helper == helper::ITER_NUM_NEXT.number => now.regs[1],
                            _ => P::Other,
                        };
                        now.regs[1..=5].fill(P::Scalar);
                        changed |= flow_into(&mut at_start, &mut todo, blocks, at + 1, &now);
                    }
                    Op::Jump { target } => {
                        changed |= flow_into(&mut at_start, &mut todo, blocks, target.0, &now);
                    }
                    Op::Branch { target, .. } => {
                        changed |= flow_into(&mut at_start, &mut todo, blocks, target.0, &now);
                    }
                    Op::Leave { .. } | Op::Exit => {}
                }
            }
            let last = blocks.steps(b).end;
            if last > 0
                && matches!(
                    flow.steps.get(last - 1).map(|s| s.op),
                    Some(Op::Plain(_) | Op::Branch { .. })
                )
            {
                changed |= flow_into(&mut at_start, &mut todo, blocks, last, &now);
            }
            if escaped != pass.escaped {
                todo.fill(true);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let pointers = (0..blocks.starts.len())
        .map(|b| pointers(at_start[b].as_ref(), depth_of(blocks.starts[b])))
        .collect();
    (touches, pointers)
}

fn pointers(now: Option<&Now>, depth: u8) -> Level {
    let maybe = |p: P| !matches!(p, P::Number(_) | P::Scalar);
    let mut level = Level::default();
    let Some(now) = now else { return level };
    for (r, _) in now.regs.iter().enumerate().filter(|(_, p)| maybe(**p)) {
        level.regs |= 1 << r;
    }
    for ((_, at), _) in now
        .slots
        .iter()
        .filter(|((d, _), p)| *d == depth && maybe(**p))
    {
        level.add_bytes((i64::from(*at) + STACK) as u16, 8);
    }
    level
}

fn flow_into(
    at_start: &mut [Option<Now>],
    todo: &mut [bool],
    blocks: &Blocks,
    to: usize,
    now: &Now,
) -> bool {
    let Some(&b) = blocks.of.get(to) else {
        return false;
    };
    let (Some(slot), Some(todo)) = (at_start.get_mut(b), todo.get_mut(b)) else {
        return false;
    };
    match slot {
        None => {
            *slot = Some(now.clone());
            *todo = true;
            true
        }
        Some(old) => {
            let before = old.clone();
            for (a, b) in old.regs.iter_mut().zip(&now.regs) {
                *a = join(*a, *b);
            }
            old.slots.retain(|k, _| now.slots.contains_key(k));
            for (k, v) in &mut old.slots {
                if let Some(w) = now.slots.get(k) {
                    *v = join(*v, *w);
                }
            }
            let changed = *old != before;
            *todo |= changed;
            changed
        }
    }
}

struct Pass<'a> {
    program: &'a Program,
    /// stack pointers that were stored somewhere that is not followed
    escaped: Option<P>,
}

fn span(p: P, off: i64, len: i64) -> Span {
    match p {
        P::At(d, o) => {
            let from = (i64::from(o) + off + STACK).clamp(0, STACK);
            let to = (i64::from(o) + off + len + STACK).clamp(from, STACK);
            Span::Exact(d, from as u16, (to - from) as u16)
        }
        P::In(d) => Span::Frame(d),
        P::Top => Span::All,
        _ => Span::None,
    }
}

impl Pass<'_> {
    fn plain(&mut self, now: &mut Now, insn: Insn, depth: u8) -> Touch {
        let mut touch = Touch {
            access: Span::None,
            reads: Vec::new(),
            proof: 0,
            depth,
        };
        let get = |now: &Now, r: Reg| now.regs.get(usize::from(r.0)).copied().unwrap_or(P::Top);
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let right = match src {
                    Operand::Reg(r) => get(now, r),
                    Operand::Imm(i) => P::Number(i),
                };
                let left = get(now, dst);
                if matches!(op, AluOp::Add | AluOp::Sub) && width == Width::W64 {
                    let pointer = |p| matches!(p, P::Pointer | P::At(..) | P::In(_));
                    if let Operand::Reg(r) = src {
                        if pointer(left) && !pointer(right) {
                            touch.proof |= 1 << r.0;
                        } else if pointer(right) && !pointer(left) {
                            touch.proof |= 1 << dst.0;
                        }
                    }
                }
                set(now, dst, arithmetic(op, width, left, right));
            }
            Insn::Neg { dst, .. } | Insn::SignExtend { dst, .. } | Insn::ByteOrder { dst, .. } => {
                set(now, dst, P::Scalar);
            }
            Insn::LoadImm { dst, value } => set(
                now,
                dst,
                match value {
                    Imm64::Number(n) => P::Number(n as i64),
                    Imm64::Object(o) => P::Object(o),
                    Imm64::ObjectValue { .. } => P::Pointer,
                    Imm64::Function(_) => P::Pointer,
                },
            ),
            Insn::Load {
                size,
                dst,
                base,
                offset,
                ..
            } => {
                let p = get(now, base);
                touch.access = span(p, i64::from(offset), i64::from(size.bytes()));
                let loaded = match (touch.access, size) {
                    (Span::Exact(d, at, 8), Size::B8) => {
                        let key = (d, i32::from(at) - STACK as i32);
                        now.slots
                            .get(&key)
                            .copied()
                            .unwrap_or(self.escaped.unwrap_or(P::Other))
                    }
                    (Span::None, Size::B8) => P::Scalar,
                    // `data`, `data_end`, `data_meta`
                    (Span::None, Size::B4) if p == P::Context && matches!(offset, 0 | 4 | 8) => {
                        P::Pointer
                    }
                    (_, Size::B8) => self.escaped.unwrap_or(P::Other),
                    _ => P::Scalar,
                };
                set(now, dst, loaded);
            }
            Insn::Store {
                size,
                base,
                offset,
                src,
            } => {
                touch.access = span(get(now, base), i64::from(offset), i64::from(size.bytes()));
                let value = match src {
                    Operand::Reg(r) => get(now, r),
                    Operand::Imm(i) => P::Number(i),
                };
                match touch.access {
                    Span::Exact(d, at, len) => {
                        let from = i32::from(at) - STACK as i32;
                        let to = from + i32::from(len);
                        now.slots
                            .retain(|&(e, o), _| e != d || o + 8 <= from || o >= to);
                        if size == Size::B8 {
                            now.slots.insert((d, from), value);
                        }
                    }
                    Span::None => {}
                    _ => {
                        now.slots.clear();
                        if matches!(value, P::At(..) | P::In(_) | P::Top) {
                            self.escaped = Some(self.escaped.map_or(value, |e| join(e, value)));
                        }
                    }
                }
                // A stack pointer in a slot may also be read where the slot has been forgotten.
                if matches!(value, P::At(..) | P::In(_)) {
                    self.escaped = Some(self.escaped.map_or(value, |e| join(e, value)));
                }
            }
            Insn::Atomic {
                op,
                fetch,
                size,
                base,
                offset,
                src,
            } => {
                touch.access = span(get(now, base), i64::from(offset), i64::from(size.bytes()));
                if op == millrace_object::insn::AtomicOp::CompareExchange {
                    set(now, Reg(0), P::Scalar);
                } else if fetch {
                    set(now, src, P::Scalar);
                }
            }
            Insn::Call { helper } => self.call(now, helper, &mut touch),
            _ => {}
        }
        touch
    }

    fn call(&self, now: &mut Now, number: u32, touch: &mut Touch) {
        let Some(h) = helper::by_number(number) else {
            return;
        };
        let object = match now.regs[1] {
            P::Object(o) => self.program.objects.get(o.0),
            _ => None,
        };
        for (i, arg) in h.args.iter().enumerate() {
            let p = now.regs.get(i + 1).copied().unwrap_or(P::Top);
            let len = match arg {
                Arg::Key => object.map_or(STACK, |o| i64::from(o.key_bytes)),
                Arg::Value => object.map_or(STACK, |o| i64::from(o.value_bytes)),
                Arg::In(n) | Arg::InOut(n) => i64::from(*n),
                // Which of the two it is, a map that was found in another one does not say here.
                Arg::ValueOut if object.is_none_or(|o| o.kind.membership()) => {
                    object.map_or(STACK, |o| i64::from(o.value_bytes))
                }
                Arg::Read { .. } | Arg::Update => match now.regs.get(i + 2) {
                    Some(P::Number(n)) => *n,
                    _ => STACK,
                },
                Arg::Bytes { .. } => {
                    touch.proof |= 1 << (i + 1);
                    continue;
                }
                _ => continue,
            };
            touch.reads.push(span(p, 0, len.clamp(0, STACK)));
        }
        if h.returns == Return::RecordOrNull {
            touch.proof |= 1 << 2;
        }
        now.regs[0] = match h.returns {
            Return::Scalar { .. } => P::Scalar,
            _ => P::Pointer,
        };
        now.regs[1..=5].fill(P::Scalar);
    }
}

fn set(now: &mut Now, r: Reg, p: P) {
    if let Some(x) = now.regs.get_mut(usize::from(r.0)) {
        *x = p;
    }
}

fn arithmetic(op: AluOp, width: Width, a: P, b: P) -> P {
    use P::{At, In, Number, Object, Other, Pointer, Scalar, Top};
    match (op, a, b) {
        (AluOp::Mov, _, b) if width == Width::W64 => b,
        (AluOp::Mov, _, Number(n)) => Number(i64::from(n as u32)),
        _ if width == Width::W32 => Scalar,
        (AluOp::Add, At(d, o), Number(n)) | (AluOp::Add, Number(n), At(d, o)) => {
            i32::try_from(i64::from(o).saturating_add(n)).map_or(In(d), |o| At(d, o))
        }
        (AluOp::Sub, At(d, o), Number(n)) => {
            i32::try_from(i64::from(o).saturating_sub(n)).map_or(In(d), |o| At(d, o))
        }
        (AluOp::Add | AluOp::Sub, Top, _) | (AluOp::Add | AluOp::Sub, _, Top) => Top,
        (AluOp::Add | AluOp::Sub, At(d, _) | In(d), At(e, _) | In(e)) => {
            if d == e {
                In(d)
            } else {
                Top
            }
        }
        (AluOp::Add | AluOp::Sub, At(d, _) | In(d), _)
        | (AluOp::Add | AluOp::Sub, _, At(d, _) | In(d)) => In(d),
        (AluOp::Sub, Pointer, Pointer) => Scalar,
        (AluOp::Add | AluOp::Sub, Pointer | Object(_), Number(_) | Scalar)
        | (AluOp::Add, Number(_) | Scalar, Pointer) => Pointer,
        (AluOp::Add | AluOp::Sub, Other, _) | (AluOp::Add | AluOp::Sub, _, Other | Pointer) => {
            Other
        }
        _ => Scalar,
    }
}
