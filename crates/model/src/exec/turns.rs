//! Loops that are taken for any number of turns.
//!
//! What a turn may change becomes a symbol that may be any number: registers, bytes of stack, of values of objects
//! and of the packet. Which these are is found by following one turn after another from a state at the head in which
//! those found so far are symbols, until a turn changes nothing else: then this state stands for every turn, the
//! first among them (the inductive step of Floyd and Hoare, with no more of an invariant than what stays as it
//! is, and that what counts the turns stays below a number). The ways out of it are the ways out of the loop, and before the accesses of the last turn stand those of
//! all turns, each as something that may happen any number of times ([`Access::repeated`]).
//!
//! So the paths cover every execution, and some of them may be impossible. Which loops are taken so is in wide.rs.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_check::facts::FrameId;
use millrace_object::program::ObjectId;

use super::below::Counter;
use super::call::gap;
use super::explore::Followed;
use super::merge;
use super::state::{Access, Cell, DELETED, Presence, REPLACED, State, Value, Written};
use super::{Engine, Gap, tell};
use crate::expr::eval::Assignment;
use crate::expr::walk::cone;
use crate::expr::{ExprId, Node, Origin};
use crate::model::Effect;

/// Most turns that are followed until one changes nothing new.
const ROUNDS: usize = 16;

/// Why a path behind such a loop may be impossible.
const LOOSE: &str = "a loop is taken for any number of turns";

/// Changes by iterations of a loop.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Changes {
    /// registers by the depth of their frame, with the bits that their numbers have at most
    pub(super) regs: BTreeMap<(usize, usize), u32>,
    /// numbers that what counts the turns stays below
    pub(super) below: BTreeMap<Counter, u64>,
    /// those of them that reach the number which they were supposed to stay below at first
    pub(super) widened: BTreeSet<Counter>,
    /// registers that hold something on some ways only, which nobody reads
    pub(super) idle: BTreeSet<(usize, usize)>,
    /// bytes of stack
    pub(super) stack: BTreeSet<(FrameId, i64)>,
    /// bytes of stack that are there on some ways only
    pub(super) unread: BTreeSet<(FrameId, i64)>,
    /// bytes of values that the path knows
    pub(super) bytes: BTreeMap<ObjectId, BTreeSet<u32>>,
    /// objects of which a turn may add or remove entries that the path knows
    pub(super) upset: BTreeSet<ObjectId>,
    /// objects that a turn writes to
    written: BTreeSet<ObjectId>,
    /// globals that the path comes to in the loop
    globals: BTreeSet<ObjectId>,
    /// bytes of the packet
    pub(super) packet: BTreeSet<(Option<ExprId>, i64)>,
}

/// Whether two accesses are one of the program's, with what came of it.
fn kin(a: &Access, b: &Access) -> bool {
    (b.object, b.operation, b.effect) == (a.object, a.operation, a.effect)
        && (b.offset, b.chosen, b.outcome, &b.line) == (a.offset, a.chosen, a.outcome, &a.line)
}

/// The objects that a state has written to since it had this many accesses.
pub(super) fn written(s: &State, since: usize) -> impl Iterator<Item = ObjectId> {
    let writes = |a: &&Access| matches!(a.effect, Effect::Write | Effect::Add);
    s.accesses
        .iter()
        .skip(since)
        .filter(writes)
        .map(|a| a.object)
}

impl Engine<'_> {
    /// Takes a state through the loop at whose head it is.
    pub(super) fn any_turns(&mut self, s: State, head: usize) -> Result<Followed, Gap> {
        let (s, from, turn, changes) = self.one_turn(s, head)?;
        if turn.back.is_empty() {
            return Ok(turn);
        }
        // What the last turn does and leaves no other trace of than any turn may as well be done by an earlier one.
        let mut turns = turn.back;
        turns.extend(
            turn.out
                .iter()
                .filter_map(|o| self.quiet(&from, o, &changes)),
        );
        let turned = self.earlier(&from, &turns);
        let mut s = s;
        self.tell_start(&mut s);
        for other in &turns {
            tell::joined(&mut s, other, &[]);
        }
        let last = State {
            accesses: turned.accesses,
            places: turned.places,
            draws: turned.draws,
            turns: turned.turns,
            loose: Some(LOOSE),
            ..s
        };
        let (_, last) = self.at_any_turn(&last, &changes)?;
        let mut done = self.explore(last.clone(), Some(head));
        let mut out: Vec<State> = Vec::new();
        for mut o in done.out {
            // What it does must stand among what is repeated.
            let known = |a: &Access| last.accesses.iter().any(|b| b.repeated && kin(a, b));
            let stands = o.accesses.iter().skip(last.accesses.len()).all(known);
            if let Some(quiet) = self.quiet(&last, &o, &changes).filter(|_| stands) {
                o = quiet;
                (o.guard, o.model) = (last.guard.clone(), last.model.clone());
                (o.accesses, o.places) = (last.accesses.clone(), last.places.clone());
                (o.draws, o.turns, o.steps) = (last.draws, last.turns, last.steps);
                let alike = |k: &&State| k.at == o.at && k.frames == o.frames && k.stack == o.stack;
                if out.iter().filter(|k| k.guard == o.guard).any(|k| alike(&k)) {
                    continue;
                }
            }
            out.push(o);
        }
        done.out = out;
        Ok(done)
    }

    /// Follows one turn of a loop that stands for all: from the state with the globals that the loop comes to, and
    /// from the same as it is in any turn; with what turns change.
    pub(super) fn one_turn(
        &mut self,
        mut s: State,
        head: usize,
    ) -> Result<(State, State, Followed, Changes), Gap> {
        if let Some(live) = self.live.get(head) {
            merge::forget(&mut s, live);
        }
        // What other states of the path have found of the loop is the beginning of what is asked of this one.
        let fresh = self.supposed(&s, head);
        let mut changes = self.summed.get(&head).unwrap_or(&fresh).clone();
        changes.packet.clear();
        self.stays_below(&s, &mut changes);
        for at in changes.regs.keys().copied().collect::<Vec<_>>() {
            let slot = s.frames.get(at.0).and_then(|f| f.1.get(at.1));
            if let Some(Value::Num(e) | Value::Ptr(_, e)) = slot {
                self.wider(at, &[*e], &mut changes);
            }
        }
        for _ in 0..ROUNDS {
            let (all, from) = self.at_any_turn(&s, &changes)?;
            s = all;
            let turn = self.explore(from.clone(), Some(head));
            if let Some(why) = turn.missing {
                return gap(why);
            }
            if turn.back.is_empty() && changes != fresh {
                // What is known of other states is no reason to take this one for more than it is.
                changes = fresh.clone();
                continue;
            }
            let mut more = changes.clone();
            for back in &turn.back {
                self.stays_below(back, &mut more);
            }
            for mut back in turn.back.iter().cloned() {
                if let Some(live) = self.live.get(head) {
                    merge::forget(&mut back, live);
                }
                self.differences(&from, &back, &mut more)?;
            }
            if more == changes {
                self.summed.insert(head, changes.clone());
                return Ok((s, from, turn, changes));
            }
            changes = more;
        }
        gap("what a loop changes is different in each turn")
    }

    /// The state, with the globals that the loop comes to; and the same at the head in any turn.
    fn at_any_turn(&mut self, s: &State, c: &Changes) -> Result<(State, State), Gap> {
        let mut s = s.clone();
        for object in &c.globals {
            self.global(&mut s, *object);
        }
        let mut t = s.clone();
        t.turns += 1;
        t.turned.extend(&c.written);
        let name = format!("turn#{}", t.turns);
        // The first turn is one of them, so what holds of the state as it is holds of this one.
        let mut values: Vec<(ExprId, u32, ExprId)> = Vec::new();
        for ((depth, reg), bits) in &c.regs {
            let Some(slot) = t.frames.get_mut(*depth).and_then(|f| f.1.get_mut(*reg)) else {
                continue;
            };
            let (was, region) = match *slot {
                Value::Num(e) => (e, None),
                Value::Ptr(region, e) => (e, Some(region)),
                _ => continue,
            };
            let any = (self.arena).sym(&format!("{name}.r{reg}@{depth}"), *bits, Origin::Turn);
            let was = self.arena.extract(was, 0, *bits);
            values.push((any, 0, was));
            let any = self.arena.resize(any, 64);
            *slot = region.map_or(Value::Num(any), |region| Value::Ptr(region, any));
        }
        for (depth, reg) in &c.idle {
            if let Some(slot) = t.frames.get_mut(*depth).and_then(|f| f.1.get_mut(*reg)) {
                *slot = Value::Unset;
            }
        }
        t.stack.retain(|k, _| !c.unread.contains(k));
        for (frame, at) in &c.stack {
            let Some(Cell::Byte(was)) = t.stack.get(&(*frame, *at)).copied() else {
                continue;
            };
            let stem = format!("{name}.stack{}", frame.0);
            let byte = self.any_byte(&stem, *at, was, &mut values);
            t.stack.insert((*frame, *at), Cell::Byte(byte));
        }
        for i in 0..t.places.len() {
            let Some(p) = t.places.get(i).cloned() else {
                continue;
            };
            if p.lapsed.is_some() {
                // Iterations may add entries.
                if let Some(p) = t.places.get_mut(i).filter(|p| p.lapsed == Some(DELETED)) {
                    p.lapsed = Some(REPLACED);
                }
                continue;
            }
            let mut bytes = p.bytes.clone();
            for at in c.bytes.get(&p.object).into_iter().flatten() {
                let was = match p.bytes.get(at) {
                    Some(e) => *e,
                    None => self.initial(&p, *at),
                };
                let stem = format!("{name}.{}", p.stem);
                let byte = self.any_byte(&stem, i64::from(*at), was, &mut values);
                bytes.insert(*at, byte);
            }
            if let Some(p) = t.places.get_mut(i) {
                p.bytes = bytes;
                p.room &= !c.written.contains(&p.object);
                if c.upset.contains(&p.object) {
                    p.lapsed = Some("a loop may have removed its entry");
                }
            }
        }
        for (base, at) in &c.packet {
            let written = t.packet.iter().rev();
            let mut written = written.filter(|w| (w.base, w.at) == (*base, *at));
            let was = match written.next() {
                Some(w) => w.byte,
                None => {
                    let offset = self.joined(*base, *at);
                    self.packet_byte(&t, offset)?
                }
            };
            let stem = format!("{name}.packet{}", base.map_or(0, |b| b.0));
            let byte = self.any_byte(&stem, *at, was, &mut values);
            t.packet.push(Written {
                base: *base,
                at: *at,
                byte,
            });
        }
        self.keep_below(&mut t, c);
        if let Some(model) = &t.model {
            let mut symbols = model.symbols.clone();
            for (any, low, was) in values {
                if let Node::Sym(s) = self.arena.node(any) {
                    let value = model.value(&self.arena, was) << low;
                    symbols
                        .entry(*s)
                        .and_modify(|v| *v |= value)
                        .or_insert(value);
                }
            }
            t.model = Some(Rc::new(Assignment::new(symbols, model.packet.clone())));
        }
        Ok((s, t))
    }

    /// A byte that may be any: of a symbol of eight. `values` gets what it is in the first turn.
    pub(super) fn any_byte(
        &mut self,
        stem: &str,
        at: i64,
        was: ExprId,
        values: &mut Vec<(ExprId, u32, ExprId)>,
    ) -> ExprId {
        let from = at.div_euclid(8) * 8;
        let low = 8 * (at - from) as u32;
        let name = format!("{stem}[{from}..{}]", from + 8);
        let word = self.arena.sym(&name, 64, Origin::Turn);
        values.push((word, low, was));
        self.arena.extract(word, low, 8)
    }

    /// Changes of an iteration besides those known.
    fn differences(&mut self, from: &State, to: &State, c: &mut Changes) -> Result<(), Gap> {
        if from.frames.len() != to.frames.len()
            || from.borders != to.borders
            || from.target != to.target
            || from.tail_calls != to.tail_calls
        {
            return gap("a loop changes more of a path than numbers");
        }
        for (depth, ((f, x), (g, y))) in from.frames.iter().zip(&to.frames).enumerate() {
            if f != g {
                return gap("a loop returns into another call than it began in");
            }
            for (reg, (v, w)) in x.iter().zip(y).enumerate() {
                let at = (depth, reg);
                match (*v, *w) {
                    (v, w) if v == w => {}
                    (Value::Num(p), Value::Num(q)) => self.wider(at, &[p, q], c),
                    (Value::Ptr(r, p), Value::Ptr(q, o)) if r == q => self.wider(at, &[p, o], c),
                    (Value::Unset, _) | (_, Value::Unset) => {
                        c.idle.insert(at);
                    }
                    _ => return gap("a loop goes on with another pointer in each turn"),
                }
            }
        }
        let cells: BTreeSet<_> = from.stack.keys().chain(to.stack.keys()).collect();
        for at in cells {
            match (from.stack.get(at), to.stack.get(at)) {
                (Some(v), Some(w)) if v == w => {}
                (Some(Cell::Byte(_)), Some(Cell::Byte(_))) => {
                    c.stack.insert(*at);
                }
                (Some(_), Some(_)) => {
                    return gap("a loop keeps another pointer on the stack in each turn");
                }
                _ => {
                    c.unread.insert(*at);
                }
            }
        }
        for (p, q) in from.places.iter().zip(&to.places) {
            let known = p.lapsed.is_none();
            let kept = p.presence == q.presence || p.presence == Presence::Open;
            if known && (!kept || q.lapsed.is_some() || p.doubts != q.doubts || p.fresh != q.fresh)
            {
                c.upset.insert(p.object);
            }
            let offsets: BTreeSet<u32> = p.bytes.keys().chain(q.bytes.keys()).copied().collect();
            for at in offsets {
                if p.bytes.get(&at) != q.bytes.get(&at) {
                    c.bytes.entry(p.object).or_default().insert(at);
                }
            }
        }
        let globals = to.globals.keys();
        c.globals
            .extend(globals.filter(|g| !from.globals.contains_key(g)));
        c.written.extend(written(to, from.accesses.len()));
        self.packet_differences(from, to, c)
    }

    fn packet_differences(&self, from: &State, to: &State, c: &mut Changes) -> Result<(), Gap> {
        for w in to.packet.iter().filter(|w| !from.packet.contains(w)) {
            let roots: Vec<ExprId> = w.base.into_iter().collect();
            let turns = cone(&self.arena, &roots, |_| false).into_iter().any(|e| {
                matches!(self.arena.node(e), Node::Sym(s)
                    if self.arena.symbol(*s).origin == Origin::Turn)
            });
            if turns {
                return gap("a loop writes to the packet at another offset in each turn");
            }
            c.packet.insert((w.base, w.at));
        }
        Ok(())
    }

    /// A register's number may be any of this many bits as these have: 8, 16, 32 or 64.
    fn wider(&self, at: (usize, usize), numbers: &[ExprId], c: &mut Changes) {
        let most = numbers.iter().map(|e| self.arena.significant(*e)).max();
        let bits = most.unwrap_or(64).next_power_of_two().clamp(8, 64);
        let known = c.regs.entry(at).or_insert(bits);
        *known = (*known).max(bits);
    }

    /// The state before the last turn: what the path did until the loop, and what any turn that was not the last did.
    fn earlier(&mut self, from: &State, backs: &[State]) -> State {
        let mut s = from.clone();
        let begin = from.accesses.len();
        let zero = self.arena.number(0, 8);
        let mut repeated: Vec<Access> = Vec::new();
        let name = format!("turn#{}", from.turns);
        for a in backs.iter().flat_map(|b| b.accesses.iter().skip(begin)) {
            let at = repeated.iter().position(|b| kin(a, b));
            let Some((n, known)) = at.and_then(|n| Some((n, repeated.get_mut(n)?))) else {
                repeated.push(Access {
                    repeated: true,
                    ..a.clone()
                });
                continue;
            };
            if known.answer != a.answer {
                known.answer = None;
            }
            for (what, mine, other) in [
                ("key", &mut known.key, &a.key),
                ("value", &mut known.value, &a.value),
            ] {
                if mine == other {
                    continue;
                }
                // Not the same in all ways of a turn: any.
                let bytes = mine.len().max(other.len());
                let stem = format!("{name}.{what}{n}");
                *mine = (0..bytes as i64)
                    .map(|i| self.any_byte(&stem, i, zero, &mut Vec::new()))
                    .collect();
            }
        }
        s.accesses.extend(repeated);
        // The last turn's entries get other numbers than those of the turns before.
        let mut most: BTreeMap<ObjectId, usize> = BTreeMap::new();
        for b in backs {
            s.draws = s.draws.max(b.draws);
            s.turns = s.turns.max(b.turns);
            s.undecided |= b.undecided;
            let mut here: BTreeMap<ObjectId, usize> = BTreeMap::new();
            for p in b.places.iter().skip(from.places.len()) {
                let n = here.entry(p.object).or_default();
                *n += 1;
                let have = most.entry(p.object).or_default();
                if *n > *have {
                    *have = *n;
                    let mut p = p.clone();
                    p.lapsed = Some("an earlier turn of a loop came to it");
                    s.places.push(p);
                }
            }
        }
        s
    }
}
