//! The row of one site: its fields, what they are filled from, and what is set from them.

use std::collections::BTreeMap;

use millrace_check::facts::{Access, FrameId, Kind, Op, StepId};
use millrace_object::helper;
use millrace_object::insn::{AluOp, Insn, Operand, Reg, Width};

use crate::effects::Effect;
use crate::expr::Expr;
use crate::graph::Graph;
use crate::places::{Place, Places, Which};
use crate::values::{Maker, Origin, Value, Values};
use join::{joined, side_by_side};

mod choice;
mod fill;
mod join;
mod name;
mod network;

/// A field before it has a place in the row.
#[derive(Debug)]
pub struct Draft {
    /// what it is filled from
    pub from: Expr,
    /// the bits of it that are kept
    pub mask: u64,
    /// what it is
    pub name: String,
    /// the step whose line it is for
    pub step: StepId,
    /// part of the key of the first operation
    pub key: Option<i32>,
}

/// A place that is set from a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Set {
    /// a register
    Register(FrameId, Reg),
    /// so many bytes of the stack
    Stack(FrameId, i32, u32),
}

/// What is known of a flow where a row is made.
pub struct Row<'a> {
    /// how steps read and write
    pub maker: &'a Maker<'a>,
    /// the graph
    pub graph: &'a Graph,
    /// the values
    pub values: &'a mut Values,
    /// what steps do to state
    pub effects: &'a [Effect],
    /// the first step that touches state
    pub site: usize,
    /// what places hold there
    pub state: Vec<Value>,
    /// the steps that may come from there on
    pub behind: &'a [bool],
    /// whether the time is used
    pub time: bool,
    demand: BTreeMap<Value, u64>,
    /// something that is needed lies before the cut
    lost: bool,
}

/// Why a row cannot be made: the step, and what stands against it.
pub type Obstacle = (StepId, &'static str);

/// What a row consists of.
pub struct Made {
    /// fields
    pub fields: Vec<Draft>,
    /// what is set from them, in order
    pub sets: Vec<(Set, Expr)>,
    /// steps whose results are fields
    pub late: BTreeMap<StepId, Expr>,
}

/// Weight of a bit; that of a field is 1.
const SCALE: u32 = 1 << 12;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Vertex {
    Value(Value),
    Selector(usize),
}

const ADDRESS: &str = "the address of a byte of the packet, of the stack or of state is still needed behind the first access to state; compute it anew there";
const HOIST: &str = "what is read of the packet here depends on what state decided, or on a loop behind the first access to state; read it before";
const WRITTEN: &str =
    "bytes of the packet are read back after a write that state decides; read them before";
const CALL: &str = "a helper reads the packet behind the first access to state; call it before";

impl<'a> Row<'a> {
    /// The row of a site.
    #[must_use]
    pub fn new(
        (maker, graph): (&'a Maker<'a>, &'a Graph),
        values: &'a mut Values,
        effects: &'a [Effect],
        site: usize,
        behind: &'a [bool],
    ) -> Self {
        let state = values.before(maker, graph, site);
        Row {
            maker,
            graph,
            values,
            effects,
            site,
            state,
            behind,
            time: false,
            demand: BTreeMap::new(),
            lost: false,
        }
    }

    fn places(&self) -> &'a Places {
        self.maker.places
    }

    /// Makes it: `live` places at the site, and the `leaves` behind it.
    ///
    /// # Errors
    /// Where something cannot be computed before state is touched.
    pub fn make(&mut self, live: &[Place], leaves: &[usize]) -> Result<Made, Obstacle> {
        let site = StepId(self.site);
        let mut sinks: Vec<(Place, Value)> = Vec::new();
        for &place in live {
            let v = self.state[place];
            let which = self.places().which(place);
            match which {
                Which::Packet | Which::Borders => continue,
                Which::Draws => {
                    if !matches!(self.values.origin(v), Origin::Start(_)) {
                        return Err((
                            site,
                            "a random number is drawn before the first access to state, and another one behind it",
                        ));
                    }
                    continue;
                }
                Which::Register(frame, reg) => {
                    let step = &self.maker.flow.steps[self.site];
                    let own = frame == step.frame;
                    let kind = step.before[usize::from(reg.0)];
                    if own
                        && !matches!(
                            kind,
                            Kind::Scalar
                                | Kind::Mixed
                                | Kind::Value(_)
                                | Kind::Unset
                                | Kind::Packet
                                | Kind::PacketEnd
                                | Kind::PacketMeta
                                | Kind::Record(_)
                                | Kind::Inner(_)
                                | Kind::Pointer
                                | Kind::Stack { offset: None, .. }
                        )
                    {
                        continue;
                    }
                }
                Which::Stack(..) => {}
            }
            if let Some(kind) = self.pointer(v, 0)
                && !matches!(self.values.origin(v), Origin::Address(..))
                && !self.computes(v)
            {
                // Constant addresses are written out where they are used.
                if matches!(
                    kind,
                    Kind::Context
                        | Kind::Object(_)
                        | Kind::Stack {
                            offset: Some(_),
                            ..
                        }
                ) {
                    continue;
                }
                return Err((site, ADDRESS));
            }
            sinks.push((place, v));
        }
        let (vertices, network) = self.network(&sinks);
        let Some(cut) = network.cut() else {
            return Err((site, ADDRESS));
        };
        let mut drafts = Vec::new();
        for index in cut {
            let vertex = vertices[index];
            drafts.push((vertex, self.field(vertex, &sinks).ok_or((site, ADDRESS))?));
        }
        let (mut fields, number) = side_by_side(drafts);
        let mut late = BTreeMap::new();
        for &at in leaves {
            let (from, mask) = self.leaf(at)?;
            let index = match fields.iter().position(|f: &Draft| f.from == from) {
                Some(index) => {
                    fields[index].mask |= mask;
                    index
                }
                None => {
                    fields.push(Draft {
                        name: self.step_name(at),
                        from,
                        mask,
                        step: StepId(at),
                        key: None,
                    });
                    fields.len() - 1
                }
            };
            late.insert(StepId(at), Expr::Field(index));
        }
        let mut sets = Vec::new();
        for &(place, v) in &sinks {
            let expr = self.decoded(v, &number);
            match self.places().which(place) {
                Which::Register(frame, reg) => sets.push((Set::Register(frame, reg), expr)),
                Which::Stack(frame, from) => sets.push((Set::Stack(frame, from, 1), expr)),
                _ => {}
            }
        }
        if self.lost {
            return Err((site, ADDRESS));
        }
        Ok(Made {
            fields,
            sets: joined(&sets),
            late,
        })
    }

    /// Kind of pointer that a value is; none for numbers.
    fn pointer(&self, v: Value, depth: u32) -> Option<Kind> {
        match self.values.origin(v) {
            Origin::Step(id) => {
                let kind = self.maker.flow.steps[id.0].after;
                (!matches!(kind, Kind::Scalar | Kind::Unset)).then_some(kind)
            }
            Origin::Byte(of, _) => self.pointer(*of, depth),
            Origin::Join { .. } if depth < 8 => {
                let all = self.values.joined.get(&self.values.value(v))?;
                all.iter().find_map(|(_, v)| self.pointer(*v, depth + 1))
            }
            // An address of the stack that was stored there, or what a call left.
            Origin::Left { step, .. } => {
                let step = &self.maker.flow.steps[step.0];
                match step.op {
                    Op::Plain(Insn::Store {
                        src: Operand::Reg(src),
                        ..
                    }) => Some(step.before[usize::from(src.0)]).filter(|k| *k != Kind::Scalar),
                    _ => None,
                }
            }
            Origin::Address(..) => Some(Kind::Pointer),
            _ => None,
        }
    }

    /// Whether an address is a sum of one in a global variable and numbers, which are what a row carries.
    fn computes(&self, v: Value) -> bool {
        match *self.values.origin(v) {
            Origin::Address(..) => true,
            Origin::Step(id) => {
                let moved = matches!(
                    self.maker.flow.steps[id.0].op,
                    Op::Plain(Insn::Alu {
                        op: AluOp::Mov,
                        width: Width::W64,
                        ..
                    })
                );
                if !moved && !self.indexes(id.0) {
                    return false;
                }
                let all = self.read(id.0);
                let mut pointers = all.iter().filter(|v| self.pointer(**v, 0).is_some());
                pointers.all(|v| self.computes(*v))
            }
            _ => false,
        }
    }

    fn acyclic(&self, at: usize) -> bool {
        self.graph.of[at].is_some_and(|b| !self.graph.cyclic[b])
    }
}

impl Draft {
    /// Whether it is for the same step as the last of these.
    fn line_of(&self, fields: &[Draft]) -> bool {
        fields.last().is_some_and(|f| f.step == self.step)
    }
}

/// Whether a step reads what only the packet's own worker has: bytes and borders of the packet, fields of its context.
#[must_use]
pub fn is_leaf(maker: &Maker, at: usize) -> bool {
    let Some(step) = maker.flow.steps.get(at) else {
        return false;
    };
    let packet = |r: Reg| {
        matches!(
            step.before[usize::from(r.0)],
            Kind::Packet | Kind::PacketEnd | Kind::PacketMeta
        )
    };
    match step.op {
        Op::Plain(Insn::Load { .. }) => match step.access {
            Some(Access::Packet) => true,
            // Time stands in the row, addresses are read by leaves only.
            Some(Access::Context { offset }) => {
                step.after == Kind::Scalar
                    && !(offset == 24
                        && maker.program.dialect == millrace_object::program::Dialect::Handlers)
            }
            _ => false,
        },
        Op::Plain(insn @ Insn::Alu { dst, op, .. }) => {
            let right = crate::needs::second(&insn);
            step.after == Kind::Scalar
                && (op != AluOp::Mov && packet(dst) || right.is_some_and(packet))
        }
        Op::Branch { insn, .. } => match insn {
            Insn::Branch { left, .. } => {
                packet(left) || crate::needs::second(&insn).is_some_and(packet)
            }
            _ => false,
        },
        Op::Plain(Insn::Call { helper }) => {
            let reads = helper::by_number(helper)
                .is_some_and(|h| !h.takes_object() && h.args.contains(&helper::Arg::Context));
            let memory = step.args.iter().any(|a| {
                matches!(
                    a,
                    millrace_check::facts::ArgFact::Memory {
                        access: Access::Packet,
                        ..
                    }
                )
            });
            reads || memory
        }
        _ => false,
    }
}
