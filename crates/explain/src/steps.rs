//! An execution as steps in the author's lines, in words of the model where these say what the execution did.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::Flow;
use millrace_dataplane::packet::{HEADROOM, TAILROOM};
use millrace_dataplane::runner::hex;
use millrace_model::Limits;
use millrace_model::exec::along::{self, Along, Branch, Call, Happened};
use millrace_object::insn::{Insn, Operand};
use millrace_object::program::{Line, ObjectId, Program, clean};
use millrace_object::state::{allocator, vector};
use millrace_reference::{Log, Touch, index_key};
use millrace_report::along::Words;
use millrace_verify::Packet;

use crate::document::{Access, Rewrite, Step, Store, Value};
use crate::element::Part;
use crate::execution::Execution;

/// Most steps that are told.
const MOST: usize = 8192;
/// Most lines of the path.
const LINES: usize = 1 << 16;

/// An execution, told.
pub struct Told {
    /// its steps
    pub steps: Vec<Step>,
    /// its lines
    pub lines: Vec<String>,
    /// rewrites, field by field
    pub rewrites: Vec<Rewrite>,
    /// the keys that it came to, for each step that is an access
    pub keys: Vec<(usize, ObjectId, Vec<u8>)>,
    /// the line of its verdict
    pub last: Option<String>,
    /// why some of it is told in numbers
    pub notes: Vec<String>,
}

/// Something that happened, by when.
enum Event {
    Branch(usize),
    Touch(usize),
    Store(usize),
}

/// The path of an execution in expressions.
pub fn follow<'a>(
    part: &'a Part<'a>,
    flow: &'a Flow,
    packet: &Packet,
    done: &Execution<'_>,
) -> Along {
    let branches: Vec<Branch> = (done.log.branches.iter())
        .map(|b| Branch {
            insn: b.insn,
            taken: b.taken,
        })
        .collect();
    let insn_of = |at: u64| {
        let index = usize::try_from(at).unwrap_or(usize::MAX).wrapping_sub(1);
        done.trail.get(index).copied()
    };
    let is_call = |t: &&Touch| !matches!(t.operation, "load" | "store" | "atomic");
    let touches = done.log.touches.iter().zip(&done.log.touched_at);
    let touches = touches
        .filter(|(t, _)| is_call(t))
        .map(|(t, at)| (*at, t.operation, t.there, t.result));
    let answers = done.log.answers.iter().zip(&done.log.answered_at);
    let answers = answers.map(|((helper, result), at)| (*at, *helper, true, *result));
    let mut calls: Vec<(u64, &'static str, bool, u64)> = touches.chain(answers).collect();
    calls.sort_by_key(|c| c.0);
    let calls: Vec<Call> = (calls.into_iter())
        .filter_map(|(at, helper, there, result)| {
            Some(Call {
                insn: insn_of(at)?,
                helper,
                there,
                result,
            })
        })
        .collect();
    let program = part.program;
    let before = |object: ObjectId, key: &[u8]| before(program, &done.log, object, key);
    let limits = Limits {
        budget: None,
        ..Limits::default()
    };
    let role = part.running().and_then(|at| program.entries.get(at));
    let role = role.map_or(millrace_object::program::Role::OnPacket, |e| e.role);
    along::along(
        program,
        flow,
        role,
        &limits,
        &Happened {
            frame: &packet.frame,
            port: packet.port,
            ports: part.ports.len() as u32,
            time: packet.time,
            room: (HEADROOM as u64, TAILROOM as u64),
            branches: &branches,
            calls: &calls,
            before: &before,
        },
    )
}

/// A value before the packet, by the key as the model has it.
pub fn before(program: &Program, log: &Log, object: ObjectId, key: &[u8]) -> Option<Vec<u8>> {
    let o = program.objects.get(object.0)?;
    let stored = stored(program, object, key)?;
    let value = log.before.get(&(object, stored))?.clone()?;
    o.holds(&value).then_some(value)
}

/// A key as the object stores it.
pub fn stored(program: &Program, object: ObjectId, key: &[u8]) -> Option<Vec<u8>> {
    let o = program.objects.get(object.0)?;
    if [&vector::KIND, &allocator::KIND].contains(&o.kind) {
        let number = key
            .iter()
            .take(8)
            .rev()
            .fold(0, |n, b| n << 8 | u64::from(*b));
        return index_key(number, o.key_bytes);
    }
    Some(key.to_vec())
}

/// Tells an execution.
pub fn tell(
    part: &Part<'_>,
    words: &Words<'_>,
    along: &Along,
    packet: &Packet,
    done: &Execution<'_>,
) -> Told {
    let log = &done.log;
    let mut events: Vec<(u64, Event)> = Vec::new();
    events.extend(
        log.branches
            .iter()
            .enumerate()
            .map(|(i, b)| (b.at, Event::Branch(i))),
    );
    events.extend(
        log.touched_at
            .iter()
            .enumerate()
            .map(|(i, at)| (*at, Event::Touch(i))),
    );
    events.extend(
        log.stores
            .iter()
            .enumerate()
            .map(|(i, s)| (s.at, Event::Store(i))),
    );
    events.sort_by_key(|e| e.0);
    let mut teller = Teller {
        part,
        words,
        along,
        done,
        packet,
        decisions: along.decisions.iter().map(|d| (d.branch, *d)).collect(),
        accesses: accesses(along, done),
        out: Vec::new(),
        keys: Vec::new(),
        own: own_file(part),
        written: BTreeSet::new(),
    };
    for (_, event) in &events {
        if teller.out.len() >= MOST {
            break;
        }
        match event {
            Event::Branch(i) => teller.branch(*i),
            Event::Touch(i) => teller.touch(*i),
            Event::Store(i) => teller.store(*i),
        }
    }
    let mut notes = Vec::new();
    if let Some(why) = &along.ended {
        notes.push(format!(
            "{}: told in numbers from where the model does not follow: {why}",
            part.name
        ));
    }
    if events.len() > MOST {
        notes.push(format!(
            "{}: {} steps, of which the first {MOST} are told",
            part.name,
            events.len()
        ));
    }
    let (lines, last) = teller.lines();
    if lines.is_empty() {
        notes.push(format!(
            "{}: the object has no line information; compile it with -g to see lines in place of instructions",
            part.name
        ));
    }
    Told {
        rewrites: teller.rewrites(),
        // All returns of a function may be one instruction: what led there is the last that was decided.
        last: (teller
            .out
            .iter()
            .rev()
            .find(|s| !s.library && s.line.is_some()))
        .and_then(|s| Some(format!("{}:{}", s.file.as_ref()?, s.line?)))
        .or(last),
        steps: teller.out,
        keys: teller.keys,
        lines,
        notes,
    }
}

/// The model's access of each touch, by order at one instruction.
fn accesses(along: &Along, done: &Execution<'_>) -> BTreeMap<usize, usize> {
    let mut waiting: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (i, at) in along.accesses.iter().enumerate().rev() {
        waiting.entry(*at).or_default().push(i);
    }
    let mut out = BTreeMap::new();
    for (i, at) in done.log.touched_at.iter().enumerate() {
        let index = usize::try_from(*at).unwrap_or(usize::MAX).wrapping_sub(1);
        let found = done
            .trail
            .get(index)
            .and_then(|insn| waiting.get_mut(insn)?.pop());
        if let Some(access) = found {
            out.insert(i, access);
        }
    }
    out
}

/// The file in which the entry's function is.
pub(crate) fn own_file(part: &Part<'_>) -> Option<std::sync::Arc<str>> {
    let entry = part.running().and_then(|at| part.program.entries.get(at))?;
    let function = part.program.functions.get(entry.function.0)?;
    let mut count: BTreeMap<&std::sync::Arc<str>, usize> = BTreeMap::new();
    // A prologue may be of a header: the file that is not included has the first line.
    let first = function.lines.iter().flatten().next().map(|l| &l.file);
    for line in function.lines.iter().flatten() {
        *count.entry(&line.file).or_default() += 1;
    }
    let sources = count.keys().find(|f| f.ends_with(".c"));
    sources.copied().or(first).cloned()
}

struct Teller<'t> {
    part: &'t Part<'t>,
    words: &'t Words<'t>,
    along: &'t Along,
    done: &'t Execution<'t>,
    packet: &'t Packet,
    decisions: BTreeMap<usize, along::Decision>,
    accesses: BTreeMap<usize, usize>,
    out: Vec<Step>,
    keys: Vec<(usize, ObjectId, Vec<u8>)>,
    own: Option<std::sync::Arc<str>>,
    written: BTreeSet<(ObjectId, Vec<u8>)>,
}

impl Teller<'_> {
    fn line(&self, insn: (usize, usize)) -> Option<&Line> {
        let function = self.part.program.functions.get(insn.0)?;
        function.lines.get(insn.1)?.as_ref()
    }

    fn at(&self, at: u64) -> (usize, usize) {
        let index = usize::try_from(at).unwrap_or(usize::MAX).wrapping_sub(1);
        self.done
            .trail
            .get(index)
            .copied()
            .unwrap_or((usize::MAX, 0))
    }

    fn step(&self, insn: (usize, usize)) -> Step {
        let line = self.line(insn);
        Step {
            element: self.part.name.clone(),
            file: line.map(file),
            line: line.map(|l| l.line),
            source: line.map(|l| clean(&l.text)).filter(|t| !t.is_empty()),
            library: line.is_some_and(|l| self.own.as_ref().is_some_and(|own| **own != *l.file)),
            ..Step::default()
        }
    }

    fn branch(&mut self, i: usize) {
        let Some(branch) = self.done.log.branches.get(i) else {
            return;
        };
        let mut step = self.step(branch.insn);
        let path = self.along.entry.paths.first();
        match (self.decisions.get(&i), path) {
            (Some(d), Some(path)) if d.agrees || d.condition.is_none() => {
                // Numbers of the program decided, not of the packet.
                let Some(e) = d.condition else { return };
                let entry = &self.along.entry;
                let Some(text) = self.words.condition(entry, path, d.before, e) else {
                    return;
                };
                let inputs = self
                    .words
                    .inputs(entry, path, d.before, &[e], &self.along.under);
                step.values = inputs
                    .into_iter()
                    .map(|i| Value {
                        name: i.name,
                        value: i.value,
                    })
                    .collect();
                step.condition = Some(text);
            }
            _ => {
                let function = self.part.program.functions.get(branch.insn.0);
                let insn = function.and_then(|f| f.insns.get(branch.insn.1));
                let (condition, values) = raw(insn, branch.left, branch.right, branch.taken);
                step.condition = Some(condition);
                step.values = values;
            }
        }
        step.taken = Some(branch.taken);
        // What is decided on one line, one instruction after the other, is one decision.
        if let Some(last) = self.out.last_mut()
            && last.access.is_none()
            && last.condition.is_some()
            && (&last.file, last.line, &last.source) == (&step.file, step.line, &step.source)
            && last.line.is_some()
        {
            let (have, more) = (
                last.condition.take().unwrap_or_default(),
                step.condition.unwrap_or_default(),
            );
            last.condition = Some(together(&have, &more));
            last.taken = step.taken;
            for value in step.values {
                if !last.values.contains(&value) {
                    last.values.push(value);
                }
            }
            return;
        }
        self.out.push(step);
    }

    fn touch(&mut self, i: usize) {
        let log = &self.done.log;
        let (Some(touch), Some(at)) = (log.touches.get(i), log.touched_at.get(i)) else {
            return;
        };
        let Some(object) = self.part.program.objects.get(touch.object.0) else {
            return;
        };
        // A setting that is read is told where it decides.
        if object.kind.is_global() && object.read_only {
            return;
        }
        let mut step = self.step(self.at(*at));
        let path = self.along.entry.paths.first();
        let said = self.accesses.get(&i).and_then(|n| path?.accesses.get(*n));
        let said = said.filter(|a| a.object == touch.object && a.operation == touch.operation);
        let words = said
            .zip(path)
            .map(|(a, path)| self.words.access(&self.along.entry, path, a));
        let (key_of, written_of) = words.unwrap_or_default();
        let keyed = !touch.key.is_empty();
        let stored = match keyed {
            true => stored(self.part.program, touch.object, &touch.key),
            false => Some(Vec::new()),
        };
        let exposed = self.part.exposed;
        let show_value =
            |value: &[u8]| match value.len() == object.value_bytes as usize && !value.is_empty() {
                true => shown(&exposed.show_value(touch.object.0, value)),
                false => hex(value),
            };
        let before = stored
            .as_ref()
            .and_then(|key| log.before.get(&(touch.object, key.clone()))?.clone());
        let calls = !matches!(touch.operation, "load" | "store" | "atomic");
        let bytes = said.map_or_else(|| self.size_of(*at), |a| a.bytes);
        let part = self.part_of(touch, bytes);
        let field = |value: &[u8]| match touch.offset {
            Some(from) if !calls => {
                let from = from as usize;
                let bytes = bytes as usize;
                let typed = (value.len() == object.value_bytes as usize)
                    .then(|| exposed.show_value(touch.object.0, value))
                    .and_then(|whole| member(&whole, part.as_deref()?));
                if typed.is_some() {
                    return typed;
                }
                value.get(from..from + bytes).map(number)
            }
            _ => Some(show_value(value)),
        };
        step.access = Some(Access {
            object: clean(&object.name),
            operation: touch.operation.to_owned(),
            key: stored.as_ref().filter(|_| keyed).map(|key| {
                match key.len() == object.key_bytes as usize {
                    true => shown(&exposed.show_key(touch.object.0, key)),
                    false => hex(key),
                }
            }),
            key_of,
            found: (calls && keyed && touch.operation != "allocator_lease").then_some(touch.there),
            outcome: said.and_then(|a| a.outcome).map(str::to_owned),
            part: part.clone(),
            before: before
                .as_deref()
                .and_then(field)
                .filter(|_| !calls || (touch.there && !object.kind.is_global())),
            written: (!touch.value.is_empty()).then(|| match calls {
                true => show_value(&touch.value),
                false => number(&touch.value),
            }),
            written_of,
            by: None,
            refreshed: None,
        });
        if let Some(access) = step.access.as_mut()
            && let Some(key) = &stored
        {
            let here = (touch.object, key.clone());
            // What it was before the packet is not what is read once the packet has written to it.
            if touch.operation == "load" && self.written.contains(&here) {
                access.before = None;
            }
            if !touch.value.is_empty() {
                self.written.insert(here);
            }
        }
        if let Some(key) = stored {
            self.keys.push((self.out.len(), touch.object, key));
        }
        self.out.push(step);
    }

    /// Bytes that a load or store touches.
    fn size_of(&self, at: u64) -> u32 {
        let (function, insn) = self.at(at);
        let function = self.part.program.functions.get(function);
        match function.and_then(|f| f.insns.get(insn)) {
            Some(
                Insn::Load { size, .. } | Insn::Store { size, .. } | Insn::Atomic { size, .. },
            ) => size.bytes(),
            _ => 0,
        }
    }

    /// The name of the member that a load or store is of.
    fn part_of(&self, touch: &Touch, bytes: u32) -> Option<String> {
        let from = touch.offset?;
        let name = self.words.member(touch.object, from, bytes);
        Some(name.unwrap_or_else(|| format!("[{from}..{}]", from.saturating_add(bytes))))
    }

    fn store(&mut self, i: usize) {
        let Some(store) = self.done.log.stores.get(i) else {
            return;
        };
        if store.before == store.after {
            return;
        }
        let mut step = self.step(self.at(store.at));
        step.store = Some(Store {
            offset: store.offset,
            bytes: hex(&store.after),
        });
        self.out.push(step);
    }

    /// The path, and the line of the verdict.
    fn lines(&self) -> (Vec<String>, Option<String>) {
        let mut out: Vec<String> = Vec::new();
        let mut last = None;
        for insn in &self.done.trail {
            let Some(line) = self.line(*insn) else {
                continue;
            };
            if self.own.as_ref().is_none_or(|own| *own == line.file) {
                last = Some(line.place());
            }
            let place = line.place();
            if out.last() != Some(&place) && out.len() < LINES {
                out.push(place);
            }
        }
        (out, last)
    }

    fn rewrites(&self) -> Vec<Rewrite> {
        let element = || self.part.name.clone();
        let path = self.along.entry.paths.first();
        let whole = self.along.ended.is_none();
        if let Some(path) = path.filter(|_| whole) {
            let changes = self
                .words
                .changes(&self.along.entry, path, &self.along.under);
            let told = changes.into_iter().map(|c| Rewrite {
                element: element(),
                of: Some(c.value).filter(|v| *v != c.numbers.1),
                field: c.field,
                from: c.numbers.0,
                to: c.numbers.1,
            });
            let mut told: Vec<Rewrite> = told.collect();
            let (from, to) = (self.packet.frame.len(), self.done.bytes.len());
            if from != to {
                told.push(Rewrite {
                    element: element(),
                    field: "length".into(),
                    from: from.to_string(),
                    to: to.to_string(),
                    of: None,
                });
            }
            return told;
        }
        bytes_changed(&self.packet.frame, &self.done.bytes)
            .into_iter()
            .map(|(at, from, to)| Rewrite {
                element: element(),
                field: format!("pkt[{at}; {}]", from.len().max(to.len())),
                from: hex(&from),
                to: hex(&to),
                of: None,
            })
            .collect()
    }
}

/// Runs of bytes that differ; where lengths do, all of both.
fn bytes_changed(from: &[u8], to: &[u8]) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    if from.len() != to.len() {
        return vec![(0, from.to_vec(), to.to_vec())];
    }
    let mut out: Vec<(usize, Vec<u8>, Vec<u8>)> = Vec::new();
    for (i, (a, b)) in from.iter().zip(to).enumerate().filter(|(_, (a, b))| a != b) {
        match out.last_mut() {
            Some((at, x, y)) if *at + x.len() == i => {
                x.push(*a);
                y.push(*b);
            }
            _ => out.push((i, vec![*a], vec![*b])),
        }
    }
    out
}

/// A comparison of two numbers.
fn raw(insn: Option<&Insn>, left: u64, right: u64, taken: bool) -> (String, Vec<Value>) {
    use millrace_object::insn::Condition as C;
    let Some(Insn::Branch {
        condition,
        left: l,
        right: r,
        ..
    }) = insn
    else {
        return (String::new(), Vec::new());
    };
    let sign = match (condition, taken) {
        (C::Eq, true) | (C::Ne, false) => "==",
        (C::Ne, true) | (C::Eq, false) => "!=",
        (C::Gt | C::SignedGt, true) | (C::Le | C::SignedLe, false) => ">",
        (C::Ge | C::SignedGe, true) | (C::Lt | C::SignedLt, false) => ">=",
        (C::Lt | C::SignedLt, true) | (C::Ge | C::SignedGe, false) => "<",
        (C::Le | C::SignedLe, true) | (C::Gt | C::SignedGt, false) => "<=",
        (C::Test, true) => "has a bit of",
        (C::Test, false) => "has no bit of",
    };
    let name = |o: &Operand, value: u64| match o {
        Operand::Reg(r) => format!("r{}", r.0),
        Operand::Imm(_) => value.to_string(),
    };
    let mut values = vec![Value {
        name: format!("r{}", l.0),
        value: left.to_string(),
    }];
    if let Operand::Reg(r) = r {
        values.push(Value {
            name: format!("r{}", r.0),
            value: right.to_string(),
        });
    }
    (format!("r{} {sign} {}", l.0, name(r, right)), values)
}

/// Conditions that all hold, without those that another one implies: an equality says all that there is to say of a field.
fn together(have: &str, more: &str) -> String {
    let about = |c: &str| {
        c.split_once(' ')
            .map(|(field, rest)| (field.to_owned(), rest.to_owned()))
    };
    let mut all: Vec<&str> = have.split(" and ").collect();
    for c in more.split(" and ") {
        if all.contains(&c) {
            continue;
        }
        if let Some((field, rest)) = about(c)
            && rest.starts_with("== ")
        {
            all.retain(|k| {
                about(k).is_none_or(|(f, r)| {
                    f != field || r.contains(['(', '+']) || r.starts_with("== ")
                })
            });
        }
        all.push(c);
    }
    all.join(" and ")
}

/// A value as people read it.
fn shown(value: &serde_json::Value) -> String {
    use serde_json::Value as V;
    match value {
        V::String(text) => text.clone(),
        V::Object(members) => {
            // What fills a structure up says nothing.
            let filler = |name: &str, v: &V| {
                let zeros = match v {
                    V::Array(all) => all.iter().all(|v| v.as_u64() == Some(0)),
                    v => v.as_u64() == Some(0),
                };
                zeros && (name.starts_with("zero") || name.starts_with("pad"))
            };
            let members = members.iter().filter(|(name, v)| !filler(name, v));
            let all = members.map(|(name, v)| match v {
                V::Object(_) => format!("{name} {{{}}}", shown(v)),
                v => format!("{name} {}", shown(v)),
            });
            all.collect::<Vec<_>>().join(", ")
        }
        V::Array(all) => {
            let all: Vec<String> = all.iter().map(shown).collect();
            format!("[{}]", all.join(", "))
        }
        other => other.to_string(),
    }
}

/// A member of a value, by its name with those of the structures that it is in.
fn member(whole: &serde_json::Value, path: &str) -> Option<String> {
    let mut at = whole;
    if path != "value" {
        for name in path.split('.') {
            at = at.get(name)?;
        }
    }
    Some(shown(at))
}

/// A line's file without its folder.
fn file(line: &Line) -> String {
    let place = line.place();
    place
        .rsplit_once(':')
        .map_or(place.clone(), |p| p.0.to_owned())
}

/// Bytes of a number in memory order.
fn number(bytes: &[u8]) -> String {
    match bytes.len() {
        0..=8 => bytes
            .iter()
            .rev()
            .fold(0_u64, |n, b| n << 8 | u64::from(*b))
            .to_string(),
        _ => hex(bytes),
    }
}
