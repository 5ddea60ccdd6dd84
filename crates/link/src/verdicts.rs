//! Verdicts of an XDP element: which of the numbers that it returns are answers of `bpf_redirect`.
//!
//! In the linked program the answer of `bpf_redirect` is a handler's verdict, a number that names the port ([`crate::handler`]). So it must
//! go from the call to the end of the element by moves alone: a comparison with `XDP_REDIRECT` would fail, and a sum would be another
//! verdict. And no other number that the element returns may be taken for such an answer.
//!
//! A forward dataflow analysis (Kildall, 1973) of the packet handler and, once each, of the local functions that it calls. A
//! register holds an answer, or a number of which the greatest value is kept, or one of both. Joins round that value up to
//! 2^n - 1, so that loops end.

use std::collections::{BTreeMap, BTreeSet};

use millrace_object::helper;
use millrace_object::insn::{AluOp, AtomicOp, Imm64, Insn, Operand, REGISTERS, Reg, Size, Width};
use millrace_object::program::FunctionId;

use crate::Element;
use crate::handler::NO_PORT;
use crate::refuse::{Reason, Unlinkable};

/// A number of which nothing is known. Greatest values beyond `NO_PORT` are as good as none.
const ANY: u64 = u64::MAX;
/// `XDP_REDIRECT`
const REDIRECT: u64 = 4;

/// Content of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Value {
    /// it may be an answer of `bpf_redirect`
    answer: bool,
    /// the greatest number that it may be otherwise; none: it is an answer
    most: Option<u64>,
}

impl Value {
    fn number(most: u64) -> Self {
        let most = if most > NO_PORT as u64 { ANY } else { most };
        Self {
            answer: false,
            most: Some(most),
        }
    }

    fn join(self, other: Self) -> Self {
        let most = match (self.most, other.most) {
            (Some(a), Some(b)) if a != b => Self::number(filled(a | b)).most,
            (a, b) => a.or(b),
        };
        Self {
            answer: self.answer || other.answer,
            most,
        }
    }

    fn most(self) -> u64 {
        self.most.unwrap_or(ANY)
    }
}

/// The least 2^k - 1 that is not less.
fn filled(n: u64) -> u64 {
    ANY.checked_shr(n.leading_zeros()).unwrap_or(0)
}

#[derive(Clone, PartialEq, Eq)]
struct State {
    registers: [Value; REGISTERS],
    /// `bpf_redirect` may have been called
    named: bool,
}

impl State {
    fn get(&self, register: Reg) -> Value {
        let value = self.registers.get(usize::from(register.0));
        value.copied().unwrap_or(Value::number(ANY))
    }

    fn set(&mut self, register: Reg, value: Value) {
        if let Some(place) = self.registers.get_mut(usize::from(register.0)) {
            *place = value;
        }
    }

    fn join(&self, other: &Self) -> Self {
        let mut registers = self.registers;
        for (own, other) in registers.iter_mut().zip(other.registers) {
            *own = own.join(other);
        }
        Self {
            registers,
            named: self.named || other.named,
        }
    }
}

/// Outcome of a function.
#[derive(Clone)]
struct Outcome {
    /// what it returns; none where it does not end
    returned: Option<Value>,
    /// `bpf_redirect` may have been called
    named: bool,
    /// instructions `Exit` that return a number which could be taken for an answer
    open: BTreeSet<usize>,
}

/// The instructions that end the packet handler of an XDP element with a number that could be taken for a verdict of handlers.
pub(crate) fn open_ends(
    element: &Element<'_>,
    handler: FunctionId,
) -> Result<BTreeSet<usize>, Unlinkable> {
    let mut all = Functions {
        element,
        done: BTreeMap::new(),
    };
    Ok(all.outcome(handler, true)?.open)
}

struct Functions<'a, 'e> {
    element: &'a Element<'e>,
    /// local functions; none while they are followed
    done: BTreeMap<FunctionId, Option<Outcome>>,
}

impl Functions<'_, '_> {
    /// Follows a function, `last` if its end is the element's.
    fn outcome(&mut self, id: FunctionId, last: bool) -> Result<Outcome, Unlinkable> {
        match self.done.get(&id) {
            Some(Some(done)) => return Ok(done.clone()),
            // `check` refuses recursion.
            Some(None) => return Err(self.used()),
            None => {}
        }
        self.done.insert(id, None);
        let outcome = self.follow(id, last)?;
        self.done.insert(id, Some(outcome.clone()));
        Ok(outcome)
    }

    fn used(&self) -> Unlinkable {
        self.element.refused(Reason::Redirect)
    }

    fn follow(&mut self, id: FunctionId, last: bool) -> Result<Outcome, Unlinkable> {
        let program = self.element.program;
        let insns = match program.functions.get(id.0) {
            Some(function) => function.insns.as_slice(),
            None => &[],
        };
        let mut before: Vec<Option<State>> = vec![None; insns.len()];
        let begin = State {
            registers: [Value::number(ANY); REGISTERS],
            named: false,
        };
        let mut out = Outcome {
            returned: None,
            named: false,
            open: BTreeSet::new(),
        };
        let mut todo = vec![(0, begin)];
        while let Some((at, state)) = todo.pop() {
            let (Some(place), Some(insn)) = (before.get_mut(at), insns.get(at)) else {
                continue;
            };
            let joined = match place.as_ref() {
                Some(old) => old.join(&state),
                None => state,
            };
            if place.as_ref() == Some(&joined) {
                continue;
            }
            *place = Some(joined.clone());
            let mut state = joined;
            match *insn {
                Insn::Exit => {
                    let value = state.get(Reg(0));
                    out.returned = Some(out.returned.map_or(value, |r| r.join(value)));
                    out.named |= state.named;
                    if last && self.ends(&state)? {
                        out.open.insert(at);
                    }
                }
                Insn::Jump { target } => todo.push((target, state)),
                Insn::Branch {
                    left,
                    right,
                    target,
                    ..
                } => {
                    self.number(&state, Operand::Reg(left))?;
                    self.number(&state, right)?;
                    todo.push((target, state.clone()));
                    todo.push((at + 1, state));
                }
                insn => {
                    self.step(insn, &mut state)?;
                    todo.push((at + 1, state));
                }
            }
        }
        Ok(out)
    }

    /// Whether the element ends here with a number that could be taken for an answer.
    fn ends(&self, state: &State) -> Result<bool, Unlinkable> {
        let value = state.get(Reg(0));
        match value.most {
            None => Ok(false),
            // It may be XDP_REDIRECT behind a call whose answer is not returned.
            Some(most) if state.named && most >= REDIRECT => Err(match value.answer {
                true => self.element.refused(Reason::Verdicts),
                false => self.used(),
            }),
            Some(most) if most == ANY && value.answer => {
                Err(self.element.refused(Reason::Verdicts))
            }
            Some(most) => Ok(most == ANY),
        }
    }

    /// The greatest value of a number; an answer of `bpf_redirect` must not be one.
    fn number(&self, state: &State, operand: Operand) -> Result<u64, Unlinkable> {
        match operand {
            Operand::Imm(n) => Ok(n as u64),
            Operand::Reg(register) => match state.get(register) {
                value if value.answer => Err(self.used()),
                value => Ok(value.most()),
            },
        }
    }

    fn step(&mut self, insn: Insn, state: &mut State) -> Result<(), Unlinkable> {
        let reg = Operand::Reg;
        match insn {
            Insn::Alu {
                op: AluOp::Mov,
                width,
                dst,
                src,
            } => {
                let value = match (src, width) {
                    (Operand::Reg(src), _) => state.get(src),
                    (Operand::Imm(n), Width::W32) => Value::number(u64::from(n as u32)),
                    (Operand::Imm(n), Width::W64) => Value::number(n as u64),
                };
                state.set(dst, value);
            }
            Insn::Alu {
                op,
                width: _,
                dst,
                src,
            } => {
                let (left, right) = (self.number(state, reg(dst))?, self.number(state, src)?);
                let most = greatest(op, left, right, matches!(src, Operand::Imm(_)));
                state.set(dst, Value::number(most));
            }
            // Verdicts of handlers are positive 32-bit numbers.
            Insn::SignExtend {
                from: Size::B4,
                dst,
                src,
                ..
            } => state.set(dst, state.get(src)),
            Insn::SignExtend { dst, src, .. } => {
                self.number(state, reg(src))?;
                state.set(dst, Value::number(ANY));
            }
            Insn::Neg { dst, .. } | Insn::ByteOrder { dst, .. } => {
                self.number(state, reg(dst))?;
                state.set(dst, Value::number(ANY));
            }
            Insn::LoadImm { dst, value } => {
                if let Imm64::Function(called) = value
                    && self.outcome(called, false)?.named
                {
                    return Err(self.used());
                }
                let most = match value {
                    Imm64::Number(n) => n,
                    _ => ANY,
                };
                state.set(dst, Value::number(most));
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                ..
            } => {
                self.number(state, reg(base))?;
                let most = match (size, signed) {
                    (Size::B1, false) => u64::from(u8::MAX),
                    (Size::B2, false) => u64::from(u16::MAX),
                    _ => ANY,
                };
                state.set(dst, Value::number(most));
            }
            Insn::Store { base, src, .. } => {
                self.number(state, reg(base))?;
                self.number(state, src)?;
            }
            Insn::Atomic {
                op,
                fetch,
                base,
                src,
                ..
            } => {
                self.number(state, reg(base))?;
                self.number(state, reg(src))?;
                if op == AtomicOp::CompareExchange {
                    self.number(state, reg(Reg(0)))?;
                    state.set(Reg(0), Value::number(ANY));
                } else if fetch {
                    state.set(src, Value::number(ANY));
                }
            }
            Insn::Call { helper: number } => {
                let named = helper::by_number(number);
                let arguments = named.map_or(5, |h| h.args.len() as u8);
                let answer = (number == helper::REDIRECT.number).then_some(Value {
                    answer: true,
                    most: None,
                });
                self.call(state, arguments, answer.is_some())?;
                state.set(Reg(0), answer.unwrap_or(Value::number(ANY)));
            }
            Insn::CallLocal { function } => {
                let outcome = self.outcome(function, false)?;
                self.call(state, 5, outcome.named)?;
                state.set(Reg(0), outcome.returned.unwrap_or(Value::number(ANY)));
            }
            Insn::CallRegister { .. }
            | Insn::LegacyPacketLoad
            | Insn::Jump { .. }
            | Insn::Branch { .. }
            | Insn::Exit => {}
        }
        Ok(())
    }

    /// A call: what it reads is no answer, and where it names a target no earlier answer is returned any more.
    fn call(&self, state: &mut State, arguments: u8, names: bool) -> Result<(), Unlinkable> {
        for register in (1..=arguments).map(Reg) {
            self.number(state, Operand::Reg(register))?;
        }
        for register in (0..=5).map(Reg) {
            state.set(register, Value::number(ANY));
        }
        if names {
            for register in (6..=9).map(Reg) {
                self.number(state, Operand::Reg(register))?;
            }
            state.named = true;
        }
        Ok(())
    }
}

/// The greatest value of `left op right`, of which these are the greatest, at either width.
fn greatest(op: AluOp, left: u64, right: u64, constant: bool) -> u64 {
    match op {
        AluOp::And => left.min(right),
        AluOp::Or | AluOp::Xor => filled(left | right),
        AluOp::Add => left.saturating_add(right),
        AluOp::Mul => left.saturating_mul(right),
        AluOp::Lsh if constant && right < 24 => left.saturating_mul(1 << right),
        AluOp::Rsh | AluOp::Div | AluOp::Mod => left,
        _ => ANY,
    }
}
