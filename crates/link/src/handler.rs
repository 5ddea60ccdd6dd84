//! The packet handler of the linked program: calls of elements, and what follows from their verdicts.

use millrace_object::insn::{AluOp, Condition, Insn, Operand, Reg, Size, Width};
use millrace_object::program::{Dialect, Function, FunctionId, LINKED, Role};
use millrace_topology::{End, Topology};

use crate::functions::set;
use crate::graph::{Graph, Node};
use crate::names::outside;
use crate::{Begins, Element, leads};

/// Verdicts of handlers (docs/dialect.md): the kind in the upper 8 of 32 bits.
pub(crate) const FORWARD: i64 = 1 << 24;
pub(crate) const FLOOD: i64 = 2 << 24;
const PASS: i64 = 4 << 24;
/// A verdict that does not exist: the packet is aborted.
const ABORTED: i64 = 0x7f << 24;
/// The largest argument of a verdict; no chain has this port, and no program this reason.
pub(crate) const NO_PORT: i64 = (1 << 24) - 1;

/// Verdicts of XDP (include/uapi/linux/bpf.h).
const XDP_DROP: i64 = 1;
const XDP_PASS: i64 = 2;
const XDP_TX: i64 = 3;
const XDP_REDIRECT: i64 = 4;

/// Where the context's port is.
const PORT: i16 = 12;

/// A function that nobody wrote in C: its instructions have no lines.
pub(crate) fn written(name: String, insns: Vec<Insn>) -> Function {
    Function {
        name,
        section: LINKED.to_owned(),
        slots: (0..insns.len() as u32).collect(),
        lines: vec![None; insns.len()],
        insns,
    }
}

/// Calls functions one after the other, each with the same argument: handlers beside packets.
pub(crate) fn one_after_the_other(role: Role, functions: &[FunctionId]) -> Function {
    let mut insns = vec![copy(6, 1)];
    for function in functions {
        insns.push(copy(1, 6));
        insns.push(Insn::CallLocal {
            function: *function,
        });
    }
    insns.extend([set(Reg(0), 0), Insn::Exit]);
    let name = if role == Role::OnStart {
        "on_start"
    } else {
        "on_stop"
    };
    written(name.to_owned(), insns)
}

fn copy(dst: u8, src: u8) -> Insn {
    Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst: Reg(dst),
        src: Operand::Reg(Reg(src)),
    }
}

/// A place that a jump leads to, before instructions have their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Label {
    /// the call of this node, by its place in the graph's order
    Call(usize),
    /// out of the chain at this port
    Out(u32),
    /// the verdict in r0 is the chain's
    End,
    /// the packet is aborted: no verdict that there is
    Abort,
    /// to a port that there is not
    Nowhere,
    /// within a node, behind the test of whether it drops
    Kept(usize),
}

/// Writes a handler.
#[derive(Default)]
struct Writer {
    insns: Vec<Insn>,
    places: Vec<(Label, usize)>,
    /// instructions whose target is a label
    open: Vec<(usize, Label)>,
}

impl Writer {
    fn here(&mut self, label: Label) {
        self.places.push((label, self.insns.len()));
    }

    fn push(&mut self, insn: Insn) {
        self.insns.push(insn);
    }

    fn jump(&mut self, label: Label) {
        self.open.push((self.insns.len(), label));
        self.push(Insn::Jump { target: usize::MAX });
    }

    /// If `left condition right`, on to the label.
    fn branch(&mut self, left: Reg, condition: Condition, right: i64, label: Label) {
        self.open.push((self.insns.len(), label));
        self.push(Insn::Branch {
            condition,
            width: Width::W64,
            left,
            right: Operand::Imm(right),
            target: usize::MAX,
        });
    }

    /// If `left condition right`, on beyond the next two instructions.
    fn beyond_two(&mut self, left: Reg, condition: Condition, right: i64) {
        self.push(Insn::Branch {
            condition,
            width: Width::W64,
            left,
            right: Operand::Imm(right),
            target: self.insns.len() + 3,
        });
    }

    fn finish(mut self) -> Vec<Insn> {
        for (at, label) in self.open {
            let place = self.places.iter().find(|(l, _)| *l == label);
            let place = place.map_or(usize::MAX, |(_, at)| *at);
            if let Some(Insn::Jump { target } | Insn::Branch { target, .. }) =
                self.insns.get_mut(at)
            {
                *target = place;
            }
        }
        self.insns
    }
}

/// The verdict, register 0.
const VERDICT: Reg = Reg(0);

/// The packet handler: the call of each node of the graph is `calls`, in its order.
pub(crate) fn make(
    elements: &[Element<'_>],
    topology: &Topology,
    graph: &Graph,
    calls: &[FunctionId],
    begins: &[Begins],
) -> Function {
    let mut w = Writer::default();
    w.push(copy(6, 1));
    w.push(Insn::Load {
        size: Size::B4,
        signed: false,
        dst: Reg(2),
        base: Reg(1),
        offset: PORT,
    });
    let label = |end: End| match end {
        End::Element { element, port } => {
            let node = Node { element, port };
            let place = graph.order.iter().position(|n| *n == node);
            place.map_or(Label::Abort, Label::Call)
        }
        End::Out(port) => Label::Out(port),
    };
    for (port, end) in topology.entries().iter().enumerate() {
        w.branch(Reg(2), Condition::Eq, port as i64, label(*end));
    }
    w.jump(Label::Abort);
    for (at, (node, call)) in graph.order.iter().zip(calls).enumerate() {
        let (Some(element), Some(begin)) = (elements.get(node.element), begins.get(node.element))
        else {
            continue;
        };
        w.here(Label::Call(at));
        w.push(copy(1, 6));
        w.push(Insn::CallLocal { function: *call });
        // A verdict has 32 bits.
        w.push(Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32,
            dst: VERDICT,
            src: Operand::Reg(VERDICT),
        });
        let ports = topology.ports(node.element).len() as u32;
        // Where a port that the element does not send packets of this one to leads does not matter.
        let to = |port: u32| match leads(topology, node.element, port) {
            Some(end) if outside(end).is_some() || graph.sends(*node, port) => label(end),
            _ => Label::Abort,
        };
        let xdp = element.program.dialect == Dialect::Xdp;
        w.branch(VERDICT, Condition::Gt, NO_PORT, Label::Kept(at));
        if xdp {
            w.branch(VERDICT, Condition::Eq, XDP_TX, to(node.port));
            // Redirects to what a call names have been made verdicts of handlers; this one names nothing.
            w.branch(VERDICT, Condition::Eq, XDP_REDIRECT, Label::Nowhere);
            // Ends the program with PASS or DROP.
            w.beyond_two(VERDICT, Condition::Ne, XDP_PASS);
            w.push(set(VERDICT, PASS));
            w.jump(Label::End);
            w.branch(VERDICT, Condition::Ne, XDP_DROP, Label::Abort);
            w.push(set(VERDICT, i64::from(begin.reason)));
            w.jump(Label::End);
        } else {
            // A reason that the program does not declare stays one.
            let reasons = element.program.reasons.len() as i64;
            w.beyond_two(VERDICT, Condition::Lt, reasons);
            w.push(set(VERDICT, NO_PORT));
            w.jump(Label::End);
            w.push(Insn::Alu {
                op: AluOp::Add,
                width: Width::W64,
                dst: VERDICT,
                src: Operand::Imm(i64::from(begin.reason)),
            });
            w.jump(Label::End);
        }
        w.here(Label::Kept(at));
        for port in 0..ports {
            w.branch(VERDICT, Condition::Eq, FORWARD + i64::from(port), to(port));
        }
        if !xdp && ports == 2 {
            w.branch(VERDICT, Condition::Eq, FLOOD, to(1 - node.port.min(1)));
        }
        // CONSUME and PASS end the packet; what is none of these aborts it.
        w.branch(VERDICT, Condition::Ge, FORWARD, Label::Nowhere);
        w.jump(Label::Abort);
    }
    for port in 0..topology.entries().len() as u32 {
        w.here(Label::Out(port));
        w.push(set(VERDICT, FORWARD + i64::from(port)));
        w.push(Insn::Exit);
    }
    w.here(Label::Nowhere);
    w.branch(VERDICT, Condition::Gt, FORWARD + NO_PORT, Label::End);
    w.push(set(VERDICT, FORWARD + NO_PORT));
    w.push(Insn::Exit);
    w.here(Label::Abort);
    w.push(set(VERDICT, ABORTED));
    w.here(Label::End);
    w.push(Insn::Exit);
    written("on_packet".to_owned(), w.finish())
}
