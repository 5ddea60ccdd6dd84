//! Copies of an element's functions, in which the context's port is a constant.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::{Access, Op};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::{Dialect, Function, FunctionId, ObjectId, Program};

use crate::Element;
use crate::handler::{FORWARD, NO_PORT};
use crate::refuse::{self, Reason, Unlinkable};
use crate::verdicts;

/// Offsets of the context's fields (docs/dialect.md).
const PORT: u32 = 12;
const PORTS: u32 = 32;

/// Port and ports as an element sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub port: u32,
    pub ports: u32,
}

/// Functions of one element as they are copied: all with the same constants.
pub(crate) struct Copy<'a, 'o> {
    out: &'o mut Program,
    element: Element<'a>,
    first_object: usize,
    seen: Option<Seen>,
    copied: BTreeMap<FunctionId, FunctionId>,
    /// loads from the context's port and ports
    fields: BTreeMap<(FunctionId, usize), u32>,
    redirect: Option<FunctionId>,
    /// the packet handler of an XDP element, and its ends whose number could be taken for a verdict of handlers
    open: Option<(FunctionId, BTreeSet<usize>)>,
}

impl<'a, 'o> Copy<'a, 'o> {
    /// Of an element whose objects begin at `first_object`; what packets run if there is a `seen`.
    pub fn new(
        out: &'o mut Program,
        element: Element<'a>,
        first_object: usize,
        seen: Option<Seen>,
    ) -> Result<Self, Unlinkable> {
        let fields = match seen {
            Some(_) => fields(&element)?,
            None => BTreeMap::new(),
        };
        let open = match element.program.dialect {
            Dialect::Xdp if seen.is_some() => {
                let handler = refuse::packets(&element)?;
                Some((handler, verdicts::open_ends(&element, handler)?))
            }
            _ => None,
        };
        Ok(Self {
            out,
            element,
            first_object,
            seen,
            copied: BTreeMap::new(),
            fields,
            redirect: None,
            open,
        })
    }

    /// The copy of a function and of all that it calls or names.
    pub fn function(&mut self, id: FunctionId) -> Result<FunctionId, Unlinkable> {
        if let Some(copy) = self.copied.get(&id) {
            return Ok(*copy);
        }
        let Some(function) = self.element.program.functions.get(id.0) else {
            // `check` refuses a call of what is not there.
            return Ok(FunctionId(usize::MAX));
        };
        let place = FunctionId(self.out.functions.len());
        self.copied.insert(id, place);
        self.out.functions.push(Function {
            name: format!("{}:{}", self.element.name, function.name),
            insns: Vec::new(),
            ..function.clone()
        });
        let mut insns = Vec::with_capacity(function.insns.len());
        for (pc, insn) in function.insns.iter().enumerate() {
            insns.push(self.insn((id, pc), *insn)?);
        }
        self.cut(id, &mut insns);
        let added = insns.len() - function.insns.len();
        if let Some(copy) = self.out.functions.get_mut(place.0) {
            copy.lines.extend(vec![None; added]);
            let last = copy.slots.last().copied().unwrap_or(0);
            copy.slots.extend(vec![last; added]);
            copy.insns = insns;
        }
        Ok(place)
    }

    /// Has ends of the packet handler at which a number could be taken for a verdict of handlers return 0 instead, which aborts
    /// as that number does.
    fn cut(&self, id: FunctionId, insns: &mut Vec<Insn>) {
        let open = match &self.open {
            Some((handler, open)) if *handler == id => open,
            _ => return,
        };
        let Some(first) = open.first().map(|_| insns.len()) else {
            return;
        };
        for at in open {
            if let Some(insn) = insns.get_mut(*at) {
                *insn = Insn::Jump { target: first };
            }
        }
        insns.extend([
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W32,
                dst: Reg(0),
                src: Operand::Reg(Reg(0)),
            },
            Insn::Branch {
                condition: Condition::Le,
                width: Width::W64,
                left: Reg(0),
                right: Operand::Imm(NO_PORT),
                target: first + 3,
            },
            set(Reg(0), 0),
            Insn::Exit,
        ]);
    }

    fn insn(&mut self, at: (FunctionId, usize), insn: Insn) -> Result<Insn, Unlinkable> {
        let moved = |id: ObjectId| ObjectId(self.first_object + id.0);
        Ok(match insn {
            Insn::LoadImm { dst, value } => Insn::LoadImm {
                dst,
                value: match value {
                    Imm64::Number(n) => Imm64::Number(n),
                    Imm64::Object(object) => Imm64::Object(moved(object)),
                    Imm64::ObjectValue { object, offset } => Imm64::ObjectValue {
                        object: moved(object),
                        offset,
                    },
                    Imm64::Function(function) => Imm64::Function(self.function(function)?),
                },
            },
            Insn::CallLocal { function } => Insn::CallLocal {
                function: self.function(function)?,
            },
            Insn::Load { dst, .. } if self.fields.contains_key(&at) => {
                let seen = self.seen.zip(self.fields.get(&at));
                let xdp = u32::from(self.element.program.dialect == Dialect::Xdp);
                let value = seen.map_or(0, |(seen, field)| match *field {
                    // Interfaces are numbered from 1.
                    PORT => seen.port + xdp,
                    _ => seen.ports,
                });
                set(dst, i64::from(value))
            }
            Insn::Call { helper } if helper == helper::REDIRECT.number => Insn::CallLocal {
                function: self.redirect(),
            },
            other => other,
        })
    }

    /// A function in the place of `bpf_redirect`, whose answer is a handler's verdict.
    fn redirect(&mut self) -> FunctionId {
        if let Some(there) = self.redirect {
            return there;
        }
        const EXIT: usize = 8;
        let exit = |condition, left, right| Insn::Branch {
            condition,
            width: Width::W64,
            left: Reg(left),
            right: Operand::Imm(right),
            target: EXIT,
        };
        let alu = |op, width, dst, src| Insn::Alu {
            op,
            width,
            dst: Reg(dst),
            src,
        };
        // r1: the interface, 32 bits, from 1; r2: flags, of which XDP has none.
        let insns = vec![
            set(Reg(0), 0),
            exit(Condition::Ne, 2, 0),
            set(Reg(0), FORWARD + NO_PORT),
            alu(AluOp::Mov, Width::W32, 1, Operand::Reg(Reg(1))),
            exit(Condition::Eq, 1, 0),
            exit(Condition::Gt, 1, NO_PORT),
            alu(AluOp::Mov, Width::W64, 0, Operand::Reg(Reg(1))),
            alu(AluOp::Add, Width::W64, 0, Operand::Imm(FORWARD - 1)),
            Insn::Exit,
        ];
        let place = FunctionId(self.out.functions.len());
        let name = format!("{}:bpf_redirect", self.element.name);
        self.out
            .functions
            .push(crate::handler::written(name, insns));
        self.redirect = Some(place);
        place
    }
}

/// `dst = n`.
pub(crate) fn set(dst: Reg, n: i64) -> Insn {
    Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst,
        src: Operand::Imm(n),
    }
}

/// Loads that find the context's port or number of ports, by the proof of the packet handler.
fn fields(element: &Element<'_>) -> Result<BTreeMap<(FunctionId, usize), u32>, Unlinkable> {
    let program = element.program;
    let mut found: BTreeMap<(FunctionId, usize), Option<u32>> = BTreeMap::new();
    let packets = crate::refuse::packets(element)?;
    let flows = program.entries.iter().zip(&element.checked.flows);
    for (_, flow) in flows.filter(|(e, _)| e.function == packets) {
        for step in flow.steps.iter().filter(|s| s.reached) {
            let Some(frame) = flow.frames.get(step.frame.0) else {
                continue;
            };
            let Op::Plain(Insn::Load { size, .. }) = step.op else {
                continue;
            };
            if frame.expansion.is_some() {
                continue;
            }
            let field = match step.access {
                Some(Access::Context { offset }) if size == Size::B4 => {
                    Some(offset).filter(|o| matches!(*o, PORT | PORTS))
                }
                _ => None,
            };
            let place = (frame.function, step.pc);
            if found.insert(place, field).is_some_and(|old| old != field) {
                let name = program.functions.get(frame.function.0);
                let name = name.map_or_else(String::new, |f| f.name.clone());
                return Err(element.refused(Reason::Port(name)));
            }
        }
    }
    let found = found.into_iter();
    Ok(found
        .filter_map(|(place, field)| Some((place, field?)))
        .collect())
}
