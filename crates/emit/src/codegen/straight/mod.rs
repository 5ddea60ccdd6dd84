//! Straight code for common packets in front of the two prefetch passes of a linked program.
//!
//! The pass for the first element and the one for those behind it ([`super::later`]) both read the packet's headers. What the first has
//! read and compared is known where they meet only if it is so on all paths of the first, and these paths are as many as there are
//! kinds of headers. So the paths of a few common packets ([`super::walk`]) are written once more, without joins: both passes one behind the other, where
//! every load of a byte that was read before is a variable, and clang sees that a comparison was made before.
//!
//! The code is right for any packet: it goes on as long as each branch goes as it did for such a packet, and each address from which is read is where
//! it was. Else it leaves, and the pass that it was in runs from its beginning. A prefetch pass
//! has no effect but what it writes into its slot, so it may.

mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use millrace_check::facts::{Kind, Op, StepId};
use millrace_object::insn::{Insn, Size};

use super::body::Body;
use super::c::{Code, Local, Statement};
use super::known::{Known, State, Terms, Value, Variable};
use super::slice::Role;
use super::text::{self, Text};
use super::walk::{self, Path, Taken};
use super::{branch, call, store_order};
use crate::c;
use crate::codegen::PARAMETERS;
use crate::error::Error;
use tree::{End, Tree};

/// What the C function returns where it leaves in the first pass, where it leaves in the second, and behind both.
const NEITHER: u32 = 0;
const FIRST: u32 = 1;
const BOTH: u32 = 2;

/// A tree of which it is known which load is made of what.
struct Planned {
    steps: Vec<Taken>,
    known: Known,
    end: Behind,
}

enum Behind {
    /// by number: the second pass for these packets
    Found(usize),
    Fork(Taken, Box<[Planned; 2]>),
}

/// The plan of both passes.
struct Plan<'b, 'a> {
    second: &'b Body<'a>,
    /// by packet: its paths through the second pass
    paths: BTreeMap<usize, Vec<Path>>,
    terms: Terms,
    variables: BTreeMap<(u64, u32), Variable>,
    /// variables of which loads are made
    used: BTreeSet<Variable>,
    /// the second pass behind each end of the first
    seconds: Vec<Planned>,
}

/// Writes the function, `int function(self, pkt, slot, later)`; false: no packet comes to a keyed operation in both passes.
///
/// # Errors
/// Those of the steps' statements.
pub fn write(
    out: &mut Text,
    file: &str,
    (function, name): (&str, &str),
    first: &Body,
    second: &Body,
) -> Result<bool, Error> {
    let packets = walk::packets();
    let all = packets.iter().enumerate();
    let mut firsts: Vec<(usize, Path)> = Vec::new();
    let mut paths = BTreeMap::new();
    for (number, packet) in all {
        let behind = walk::paths(second.slice, &second.demand, packet);
        if !behind.is_empty() {
            let own = walk::paths(first.slice, &first.demand, packet).into_iter();
            firsts.extend(own.map(|path| (number, path)));
            paths.insert(number, behind);
        }
    }
    let firsts: Vec<(usize, &Path)> = firsts.iter().map(|(n, path)| (*n, path)).collect();
    let Some(tree) = Tree::of(&firsts) else {
        return Ok(false);
    };
    let mut plan = Plan {
        second,
        paths,
        terms: Terms::new(),
        variables: BTreeMap::new(),
        used: BTreeSet::new(),
        seconds: Vec::new(),
    };
    let Some(tree) = plan.first(first, tree, State::unknown(StepId(0))) else {
        return Ok(false);
    };
    let mut calls = Vec::new();
    for (number, planned) in plan.seconds.iter().enumerate() {
        let given = plan.given(planned);
        let names: Vec<String> = given.iter().map(|v| Local::Known(*v).name()).collect();
        let function = format!("{function}_{}", number + 1);
        let parameters: String = names.iter().map(|k| format!(", u64 {k}")).collect();
        let arguments: String = names.iter().map(|k| format!(", {k}")).collect();
        let title = format!("{name} without its first elements, for common packets.");
        let signature =
            format!("static inline int {function}({PARAMETERS}, struct slot *slot{parameters})");
        let straight = Straight {
            body: second,
            used: &plan.used,
            leave: format!("return {FIRST};"),
            ends: vec![format!("return {BOTH};")],
        };
        straight.write(out, file, (&title, &signature), planned, &given)?;
        calls.push(format!("return {function}(self, pkt, later{arguments});"));
    }
    let title = format!(
        "{name} up to first keyed operations, for common packets: leaves where one is another."
    );
    let signature = format!(
        "static inline int {function}({PARAMETERS}, struct slot *slot, struct slot *later)"
    );
    let straight = Straight {
        body: first,
        used: &plan.used,
        leave: format!("return {NEITHER};"),
        ends: calls,
    };
    straight.write(out, file, (&title, &signature), &tree, &BTreeSet::new())?;
    Ok(true)
}

impl Plan<'_, '_> {
    /// The first pass; none where the second has no tree for an end of it.
    fn first(&mut self, body: &Body, tree: Tree, mut state: State) -> Option<Planned> {
        let known = self.steps(body, &tree.steps, &mut state, NEITHER);
        let end = match tree.end {
            End::Found(packets) => {
                let paths = packets.iter().flat_map(|n| {
                    let all = self.paths.get(n).into_iter().flatten();
                    all.map(|path| (*n, path))
                });
                let tree = Tree::of(&paths.collect::<Vec<_>>())?;
                let second = self.second(tree, state)?;
                self.seconds.push(second);
                Behind::Found(self.seconds.len() - 1)
            }
            End::Fork(at, both) => {
                let [holds, not] = *both;
                let holds = self.first(body, holds, state.clone())?;
                let not = self.first(body, not, state)?;
                Behind::Fork(at, Box::new([holds, not]))
            }
        };
        Some(Planned {
            steps: tree.steps,
            known,
            end,
        })
    }

    fn second(&mut self, tree: Tree, mut state: State) -> Option<Planned> {
        let body = self.second;
        let known = self.steps(body, &tree.steps, &mut state, FIRST);
        let end = match tree.end {
            End::Found(_) => Behind::Found(0),
            End::Fork(at, both) => {
                let [holds, not] = *both;
                let holds = self.second(holds, state.clone())?;
                let not = self.second(not, state)?;
                Behind::Fork(at, Box::new([holds, not]))
            }
        };
        Some(Planned {
            steps: tree.steps,
            known,
            end,
        })
    }

    /// What is known of each load. The passes write no packet, so what was read stays known.
    fn steps(&mut self, body: &Body, steps: &[Taken], state: &mut State, leave: u32) -> Known {
        let mut known = Known::default();
        for taken in steps {
            let (Some(at), Op::Plain(Insn::Load { size, .. })) =
                (taken.at, body.slice.step(taken.id).op)
            else {
                continue;
            };
            if taken.guarded {
                known.guard(taken.id, at, format!("return {leave};"));
            }
            let place = Value {
                plus: at,
                ..self.terms.data()
            };
            if let Some(runs) = state.load(place, size) {
                self.used.extend(runs.iter().map(|r| r.variable));
                known.made(taken.id, runs);
                continue;
            }
            let variable = self.variable(at, size);
            state.hold(place, size, variable, Value::constant(0));
            known.hold(taken.id, variable);
        }
        known
    }

    fn variable(&mut self, at: u64, size: Size) -> Variable {
        let next = self.variables.len() as Variable;
        *self.variables.entry((at, size.bytes())).or_insert(next)
    }

    /// Variables that the second pass uses and the first holds.
    fn given(&self, planned: &Planned) -> BTreeSet<Variable> {
        let (mut used, mut held) = (BTreeSet::new(), BTreeSet::new());
        planned.variables(&mut used, &mut held);
        used.difference(&held).copied().collect()
    }
}

impl Planned {
    fn variables(&self, used: &mut BTreeSet<Variable>, held: &mut BTreeSet<Variable>) {
        used.extend(self.known.used());
        held.extend(self.known.held());
        if let Behind::Fork(_, both) = &self.end {
            both.iter().for_each(|side| side.variables(used, held));
        }
    }
}

/// One of the functions.
struct Straight<'p, 'a> {
    body: &'p Body<'a>,
    used: &'p BTreeSet<Variable>,
    /// the statement where it leaves
    leave: String,
    /// the statements at its ends
    ends: Vec<String>,
}

/// A piece of the text.
enum Piece {
    Step(StepId, Vec<Statement>),
    If(StepId, Code),
    Else,
    End,
}

impl Straight<'_, '_> {
    fn write(
        &self,
        out: &mut Text,
        file: &str,
        (title, signature): (&str, &str),
        planned: &Planned,
        given: &BTreeSet<Variable>,
    ) -> Result<(), Error> {
        let mut pieces = Vec::new();
        self.pieces(planned, &mut pieces)?;
        let mut named = BTreeSet::new();
        for piece in &pieces {
            match piece {
                Piece::Step(_, lines) => lines.iter().for_each(|s| s.locals(&mut named)),
                Piece::If(_, condition) => named.extend(condition.locals()),
                Piece::Else | Piece::End => {}
            }
        }
        out.blank();
        out.lines(&format!("/* {} */", text::comment_text(title)));
        out.lines(signature);
        out.lines("{");
        out.lines(&self.declarations(&named, given));
        out.blank();
        let mut depth = 1;
        for piece in &pieces {
            match piece {
                Piece::Step(id, lines) => self.body.emit(out, depth, *id, lines),
                Piece::If(id, condition) => {
                    let head = c!("if ({}) {{", condition);
                    self.body.emit(out, depth, *id, &[head.into()]);
                    depth += 1;
                }
                Piece::Else => out.line(depth - 1, "} else {", ""),
                Piece::End => {
                    depth -= 1;
                    out.line(depth, "}", "");
                }
            }
        }
        out.own_numbering(file);
        out.lines("}");
        Ok(())
    }

    fn pieces(&self, planned: &Planned, out: &mut Vec<Piece>) -> Result<(), Error> {
        let body = self.body;
        body.knows(Rc::new(planned.known.of_used(self.used)));
        let order: Vec<StepId> = planned.steps.iter().map(|t| t.id).collect();
        let runs = store_order::runs(body, &order, &BTreeSet::new())?;
        let mut at = 0;
        while let Some(taken) = planned.steps.get(at) {
            if let Some(run) = runs.get(&at) {
                let statements = run.statements.iter().cloned();
                out.extend(statements.map(|(id, lines)| Piece::Step(id, lines)));
                at += run.length;
                continue;
            }
            at += 1;
            let id = taken.id;
            if let (Role::Site(site), Behind::Found(end)) = (body.slice.role(id), &planned.end) {
                let end = self.ends.get(*end).or(self.ends.first());
                let end = end.map_or("return 0;", String::as_str);
                out.push(Piece::Step(id, call::prefetch_site(body, id, site, end)?));
                continue;
            }
            let mut lines = body.step(id)?;
            if let Some(holds) = taken.holds {
                let condition = self.condition(id)?;
                let leaves = match holds {
                    true => c!("!({})", condition),
                    false => condition,
                };
                lines.push(c!("if (mr_unlikely({})) {}", leaves, self.leave).into());
            }
            out.push(Piece::Step(id, lines));
        }
        if let Behind::Fork(taken, both) = &planned.end {
            let lines = body.step(taken.id)?;
            out.push(Piece::Step(taken.id, lines));
            out.push(Piece::If(taken.id, self.condition(taken.id)?));
            let [holds, not] = both.as_ref();
            self.pieces(holds, out)?;
            out.push(Piece::Else);
            self.pieces(not, out)?;
            out.push(Piece::End);
        }
        Ok(())
    }

    fn condition(&self, id: StepId) -> Result<Code, Error> {
        match self.body.slice.step(id).op {
            Op::Branch { insn, .. } => branch::condition(self.body, id, &insn),
            _ => {
                let slice = self.body.slice;
                Err(slice.contradiction(slice.step(id), "a branch that is none"))
            }
        }
    }

    /// All begin as something: a register that only other paths write is read on none.
    fn declarations(&self, named: &BTreeSet<Local>, given: &BTreeSet<Variable>) -> String {
        let mut text = String::new();
        let begin = self.body.slice.step(StepId(0)).before;
        for local in named {
            let name = local.name();
            let _ = match local {
                Local::Stack(object) => {
                    let bytes = object.to - object.from;
                    writeln!(text, "\t_Alignas(8) u8 {name}[{bytes}];")
                }
                Local::Number(frame, reg) => {
                    let context = frame.0 == 0 && begin[usize::from(reg.0)] == Kind::Context;
                    let value = if context { "(u64)(uintptr_t)pkt" } else { "0" };
                    writeln!(text, "\tu64 {name} = {value};")
                }
                Local::Pointer(frame, reg) => {
                    let context = frame.0 == 0 && begin[usize::from(reg.0)] == Kind::Context;
                    let value = if context { "(u8 *)pkt" } else { "0" };
                    writeln!(text, "\tu8 *{name} = {value};")
                }
                Local::Known(variable) if given.contains(variable) => Ok(()),
                Local::Known(_) | Local::Sum(_) => writeln!(text, "\tu64 {name};"),
            };
        }
        text
    }
}
