//! Paths cut where they meet: what is followed where following every path to its end is more than a budget allows.
//!
//! N questions that a program asks one behind the other make 2^N paths and 2N ways through single questions. So where
//! more than a few states meet they end as paths that go on ([`Verdict::Onward`]), and behind the join goes on one state
//! that stands for all that look alike: what they have in common stays, what they differ in is any number. A packet takes
//! a sequence of such paths, and each speaks of the state as it is when the packet comes to it. So whatever is so of
//! every path by itself (which entries are touched under which keys, that what is left is a sum, that something does not
//! show) is so of every packet; what is said of a whole packet (that it does nothing but end) is said of none that goes
//! on.
//!
//! What goes on of the state that a path has read is told ([`tell`](super::tell)): whoever asks what depends on state finds it
//! among what shows.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use millrace_check::facts::FrameId;

use super::state::{Cell, Place, Presence, Region, State, Value, Written};
use super::{Engine, tell};
use crate::expr::eval::Assignment;
use crate::expr::walk::each_of;
use crate::expr::{ExprId, Node, Origin, Rel};
use crate::model::Verdict;

/// Why a path behind a cut may be impossible.
const LOOSE: &str = "paths are cut where they meet";

/// Most constants that what goes on is said to be one of.
const CONSTANTS: usize = 16;

/// So often paths come to a join in a loop before those of all turns are taken together.
const TURNS: usize = 8;

/// Bytes of a packet that say what follows which header, behind none, one and two VLAN tags.
const KIND: [u32; 13] = [12, 13, 14, 16, 17, 18, 20, 21, 22, 23, 24, 25, 27];

/// How much alike states are that one stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    /// in all that is not made of state
    State,
    /// in fields of packets that registers and stack hold, and in what says which headers there are
    Fields,
    /// in what says which headers there are
    Kind,
    /// in pointers only
    Pointers,
}

/// What paths know of an entry that a state behind a cut still points to.
#[derive(Clone)]
struct Kept {
    place: Place,
    global: bool,
}

impl Engine<'_> {
    /// Cuts the paths that have come to a join, where they are more than a few.
    pub(super) fn cut_at_join(&mut self, block: usize, states: Vec<State>) -> Vec<State> {
        let joins = self.blocks.before.get(block).is_some_and(|b| b.len() > 1);
        let turns = (0..self.loops.all.len()).any(|l| self.loops.contains(l, block));
        let Some(most) = self.cutting.filter(|_| joins) else {
            return states;
        };
        let known = self.joints.entry(block).or_default();
        known.visits += 1;
        // After some turns of a loop those that follow look alike.
        let turns = turns && known.visits > TURNS;
        if !turns && states.len() <= most {
            return states;
        }
        let start = self.blocks.starts.get(block).copied();
        let (mut whole, mut movable) = (Vec::new(), Vec::new());
        for s in states {
            // A call splits paths in the middle of a block: those have passed the join.
            match Some(s.at) != start || self.goes_apart(&s) {
                true => whole.push(s),
                false => movable.push(s),
            }
        }
        let levels = [Level::State, Level::Fields, Level::Kind, Level::Pointers];
        let mut groups: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
        for level in levels {
            groups.clear();
            for (i, s) in movable.iter().enumerate() {
                groups.entry(self.likeness(s, level)).or_default().push(i);
            }
            if groups.len() <= most && (!turns || level >= Level::Kind) {
                break;
            }
        }
        for (likeness, members) in groups {
            let members: Vec<State> = members
                .into_iter()
                .filter_map(|i| movable.get(i).cloned())
                .collect();
            if !turns {
                match members.as_slice() {
                    [_] => whole.extend(members),
                    _ => whole.push(self.joint(&members, false).1),
                }
                continue;
            }
            let joints = self.joints.entry(block).or_default();
            let (members, wide) = match joints.known.remove(&likeness) {
                Some((cut, joint)) if members.iter().all(|s| self.stands_for(&joint, s)) => {
                    for s in members {
                        let left = self.left_for(&joint, &s);
                        self.ends(s, cut, left);
                    }
                    let joints = self.joints.entry(block).or_default();
                    joints.known.insert(likeness, (cut, joint));
                    continue;
                }
                Some((_, joint)) => {
                    let mut all = members;
                    all.push(joint);
                    (all, true)
                }
                None => (members, false),
            };
            let (cut, onward) = self.joint(&members, wide);
            let joints = self.joints.entry(block).or_default();
            joints.known.insert(likeness, (cut, onward.clone()));
            whole.push(onward);
        }
        whole
    }

    /// Whether a state behind a cut stands for another one, too: what they differ in is any number there.
    fn stands_for(&self, joint: &State, s: &State) -> bool {
        if !joint.guard.iter().all(|c| s.guard.contains(c)) {
            return false;
        }
        let free = |any: ExprId, e: ExprId| any == e || self.is_free(any, e);
        let (mut regs, mut others) = (
            joint.frames.iter().flat_map(|f| &f.1),
            s.frames.iter().flat_map(|f| &f.1),
        );
        let same = |v: &Value, w: &Value| match (*v, *w) {
            (Value::Num(any), Value::Num(e)) => free(any, e),
            (Value::Inner(o, any), Value::Inner(p, e)) => o == p && free(any, e),
            (Value::Ptr(Region::Place(a), x), Value::Ptr(Region::Place(b), y)) => {
                let (a, b) = (joint.places.get(a), s.places.get(b));
                let (Some(a), Some(b)) = (a, b) else {
                    return false;
                };
                let key = a.key.iter().zip(&b.key).all(|(a, b)| free(*a, *b));
                let bytes = a
                    .bytes
                    .iter()
                    .all(|(at, e)| b.bytes.get(at).is_some_and(|b| free(*e, *b)));
                x == y && key && bytes && a.object == b.object
            }
            (Value::Unset, _) => true,
            (v, w) => v == w,
        };
        let registers = loop {
            match (regs.next(), others.next()) {
                (Some(v), Some(w)) if same(v, w) => {}
                (None, None) => break true,
                _ => break false,
            }
        };
        let stack = joint
            .stack
            .iter()
            .all(|(at, cell)| match (cell, s.stack.get(at)) {
                (Cell::Byte(any), Some(Cell::Byte(e))) => free(*any, *e),
                (Cell::Part(v, p), Some(Cell::Part(w, q))) => p == q && same(v, w),
                _ => false,
            });
        // What was written in the one and not in the other has been looked at when they were told apart, or is not
        // the same.
        let (mine, other) = (latest(&joint.packet), latest(&s.packet));
        let packet = mine.len() == other.len()
            && mine
                .iter()
                .zip(&other)
                .all(|(w, v)| (w.base, w.at) == (v.base, v.at) && free(w.byte, v.byte));
        // What a packet keeps for itself is not what another turn has left.
        let scratch = joint
            .places
            .iter()
            .filter(|p| !p.bytes.is_empty())
            .all(|p| {
                s.places.iter().any(|q| {
                    q.object == p.object
                        && q.key == p.key
                        && q.lapsed.is_none()
                        && p.bytes
                            .iter()
                            .all(|(at, e)| q.bytes.get(at).is_some_and(|b| free(*e, *b)))
                })
            });
        registers && stack && packet && scratch
    }

    /// Whether a number is a symbol of a cut, or a part of one, of which nothing is known, and wide enough for another.
    fn is_free(&self, any: ExprId, e: ExprId) -> bool {
        let symbol = |e: ExprId| match self.arena.node(e) {
            Node::Sym(s) => Some(*s),
            _ => None,
        };
        let found = match self.arena.node(any) {
            Node::Sym(s) => Some((*s, self.arena.width(any))),
            Node::Extract { of, .. } => symbol(*of).map(|s| (s, self.arena.width(any))),
            Node::Concat(parts) => match parts.as_ref() {
                [zeros, low] if self.arena.constant(*zeros) == Some(0) => {
                    symbol(*low).map(|s| (s, self.arena.width(*low)))
                }
                _ => None,
            },
            _ => None,
        };
        found.is_some_and(|(s, bits)| {
            self.arena.symbol(s).origin == Origin::Turn && self.arena.significant(e) <= bits
        })
    }

    /// The numbers of a state that are any behind a cut.
    fn left_for(&self, joint: &State, s: &State) -> Vec<(usize, ExprId)> {
        // Each with the place that it has among them.
        let (mut out, mut at) = (Vec::new(), 0);
        let mut add = |a: ExprId, b: ExprId| {
            at += 1;
            if a != b {
                out.push((at, b));
            }
        };
        let values = |s: &State| -> Vec<Value> { s.frames.iter().flat_map(|f| f.1).collect() };
        let mut places = BTreeSet::new();
        for (v, w) in values(joint).into_iter().zip(values(s)) {
            match (v, w) {
                (Value::Num(a), Value::Num(b)) | (Value::Inner(_, a), Value::Inner(_, b)) => {
                    add(a, b)
                }
                (Value::Ptr(Region::Place(a), _), Value::Ptr(Region::Place(b), _)) => {
                    places.insert((a, b));
                }
                _ => {}
            }
        }
        for (at, cell) in &joint.stack {
            match (cell, s.stack.get(at)) {
                (Cell::Byte(a), Some(Cell::Byte(b))) => add(*a, *b),
                (Cell::Part(v, _), Some(Cell::Part(w, _))) => match (*v, *w) {
                    (Value::Num(a), Value::Num(b)) | (Value::Inner(_, a), Value::Inner(_, b)) => {
                        add(a, b)
                    }
                    (Value::Ptr(Region::Place(a), _), Value::Ptr(Region::Place(b), _)) => {
                        places.insert((a, b));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        for (a, b) in places {
            if let (Some(p), Some(q)) = (joint.places.get(a), s.places.get(b)) {
                p.key.iter().zip(&q.key).for_each(|(a, b)| add(*a, *b));
                for (at, a) in &p.bytes {
                    if let Some(b) = q.bytes.get(at) {
                        add(*a, *b);
                    }
                }
            }
        }
        for (w, v) in latest(&joint.packet).iter().zip(&latest(&s.packet)) {
            add(w.byte, v.byte);
        }
        out
    }

    /// Ends a path that goes on behind a cut with these numbers.
    fn ends(&mut self, mut s: State, cut: u32, left: Vec<(usize, ExprId)>) {
        let mut h = DefaultHasher::new();
        (s.tells, &left).hash(&mut h);
        s.tells = tell::numbered(h.finish(), u64::from(cut));
        let told: Vec<ExprId> = left
            .into_iter()
            .map(|(_, e)| e)
            .filter(|e| self.depends_on_state(*e))
            .collect();
        self.tell(&mut s, &told);
        let mut path = self.path(s, Value::Unset);
        path.verdict = Verdict::Onward(cut);
        self.left.push(path);
    }

    /// Whether a state keeps something that no other may stand for: a place in the packet that state decided.
    fn goes_apart(&self, s: &State) -> bool {
        let borders = [s.borders.meta, s.borders.start, s.borders.end];
        let target: Vec<ExprId> = match &s.target {
            Some(super::Target::Interface(e)) => vec![*e],
            Some(super::Target::Entry(_, key)) => key.clone(),
            Some(super::Target::All(_)) | None => Vec::new(),
        };
        let bases = s.packet.iter().filter_map(|w| w.base);
        let regs = s.frames.iter().flat_map(|(_, regs)| regs);
        let cells = s.stack.values().filter_map(|c| match c {
            Cell::Part(v, _) => Some(v),
            Cell::Byte(_) => None,
        });
        let offsets = regs.chain(cells).filter_map(|v| match v {
            Value::Ptr(_, e) => Some(*e),
            _ => None,
        });
        let mut all = borders
            .into_iter()
            .chain(target)
            .chain(bases)
            .chain(offsets);
        all.any(|e| self.depends_on_state(e))
    }

    /// What states are told apart by, exactly, as a list of numbers.
    fn likeness(&self, s: &State, level: Level) -> Vec<u64> {
        let mut out = vec![
            s.at as u64,
            s.frames.len() as u64,
            u64::from(s.tail_calls),
            u64::from(s.borders.meta.0),
            u64::from(s.borders.start.0),
            u64::from(s.borders.end.0),
        ];
        let mut h = DefaultHasher::new();
        s.target.hash(&mut h);
        out.push(h.finish());
        let mut known = Vec::new();
        for (frame, regs) in &s.frames {
            out.push(frame.0 as u64);
            for value in regs {
                self.value_likeness(s, *value, level, &mut known, &mut out);
            }
        }
        for ((frame, at), cell) in &s.stack {
            // What only some of them have set nobody reads.
            let part = match cell {
                Cell::Byte(e) => {
                    let before = out.len();
                    out.extend([1 << 40 | frame.0 as u64, *at as u64]);
                    self.number_likeness(*e, level, &mut out);
                    if out.last() == Some(&ANY) {
                        out.truncate(before);
                    }
                    continue;
                }
                Cell::Part(v, part) => (v, part),
            };
            out.extend([2 << 40 | frame.0 as u64, *at as u64, u64::from(*part.1)]);
            self.value_likeness(s, *part.0, level, &mut known, &mut out);
        }
        let fixed = s.packet.iter().all(|w| w.base.is_none());
        if !fixed || level < Level::Kind {
            for w in latest(&s.packet) {
                out.extend([
                    3 << 40 | w.base.map_or(0, |b| u64::from(b.0) + 1),
                    w.at as u64,
                ]);
                self.number_likeness(w.byte, level, &mut out);
            }
        }
        let mut said: Vec<u64> = Vec::new();
        for c in &s.guard {
            if self.tells_apart(*c, level) {
                said.push(4 << 40 | u64::from(c.0));
            }
        }
        said.sort_unstable();
        said.dedup();
        out.extend(said);
        out
    }

    /// Whether a condition keeps states apart that differ in it.
    fn tells_apart(&self, condition: ExprId, level: Level) -> bool {
        let (mut packet, mut kind, mut other) = (false, true, false);
        each_of(
            &self.arena,
            &[condition],
            |_| false,
            |e| match self.arena.node(e) {
                Node::Byte { base, at } => {
                    packet = true;
                    kind &= base.is_none() && u32::try_from(*at).is_ok_and(|o| KIND.contains(&o));
                }
                Node::Sym(s) => match self.arena.symbol(*s).origin {
                    Origin::Port | Origin::Param => packet = true,
                    Origin::Length => {
                        packet = true;
                        kind = false;
                    }
                    _ => other = true,
                },
                _ => {}
            },
        );
        packet
            && !other
            && match level {
                Level::State => true,
                Level::Fields | Level::Kind => kind,
                Level::Pointers => false,
            }
    }

    fn number_likeness(&self, e: ExprId, level: Level, out: &mut Vec<u64>) {
        let exact = match level {
            Level::State => !self.depends_on_state(e),
            Level::Fields => self.arena.constant(e).is_none() && self.is_kept(e),
            Level::Kind | Level::Pointers => false,
        };
        out.push(match exact {
            true => u64::from(e.0),
            false => ANY,
        });
    }

    fn value_likeness(
        &self,
        s: &State,
        value: Value,
        level: Level,
        known: &mut Vec<usize>,
        out: &mut Vec<u64>,
    ) {
        match value {
            Value::Unset => out.push(5 << 40),
            Value::Num(e) => {
                out.push(6 << 40);
                self.number_likeness(e, level, out);
            }
            Value::Object(o) => out.extend([7 << 40, o.0 as u64]),
            Value::Inner(o, _) => out.extend([8 << 40, o.0 as u64]),
            Value::Ptr(region, offset) => {
                out.extend([9 << 40, u64::from(offset.0)]);
                match region {
                    Region::Packet => out.push(0),
                    Region::Context => out.push(1),
                    Region::Stack(f) => out.extend([2, f.0 as u64]),
                    Region::Place(at) => {
                        let n = known.iter().position(|k| *k == at).unwrap_or_else(|| {
                            known.push(at);
                            known.len() - 1
                        });
                        out.extend([3, n as u64]);
                        self.place_likeness(s, at, level, out);
                    }
                }
            }
        }
    }

    fn place_likeness(&self, s: &State, at: usize, level: Level, out: &mut Vec<u64>) {
        let Some(p) = s.places.get(at) else { return };
        let presence = match p.presence {
            Presence::Open => 0,
            Presence::There => 1,
            Presence::Absent => 2,
        };
        out.extend([p.object.0 as u64, presence, p.key.len() as u64]);
        out.push(u64::from(p.lapsed.is_some()));
        for e in &p.key {
            self.number_likeness(*e, level.min(Level::Fields), out);
        }
        if self.is_record(s, at) {
            out.push(p.bytes.len() as u64);
            out.extend(p.bytes.keys().map(|k| u64::from(*k)));
        }
    }

    /// Whether a place is a record, which nobody finds by a key.
    fn is_record(&self, s: &State, at: usize) -> bool {
        let global = s.globals.values().any(|g| *g == at);
        !global && s.places.get(at).is_some_and(|p| p.key.is_empty())
    }
}

/// What is known of a join at which paths are cut.
#[derive(Default)]
pub(super) struct Joints {
    /// how often paths have come to it together
    visits: usize,
    /// states that stand for all that look so, with the numbers of their cuts
    known: BTreeMap<Vec<u64>, (u32, State)>,
}

/// Any number.
const ANY: u64 = u64::MAX;

/// The writes that count: the last to each place, where places are told apart by their offsets.
fn latest(packet: &[Written]) -> Vec<Written> {
    if packet.iter().any(|w| w.base.is_some()) {
        return packet.to_vec();
    }
    let last: BTreeMap<i64, Written> = packet.iter().map(|w| (w.at, *w)).collect();
    last.into_values().collect()
}

/// What becomes of the numbers in which states differ.
struct Onward {
    /// begins the names of what may be any
    name: String,
    /// symbols, and what they are in the first of the states: of which bits, and their value
    values: Vec<(ExprId, u32, ExprId)>,
    /// for each state the numbers that became any
    left: Vec<Vec<ExprId>>,
    /// what is known of them
    guard: Vec<ExprId>,
    /// nothing is
    wide: bool,
}

impl Engine<'_> {
    /// Ends states as paths that go on, and gives the one that stands for them.
    fn joint(&mut self, states: &[State], wide: bool) -> (u32, State) {
        self.cuts += 1;
        let cut = self.cuts;
        let mut o = Onward {
            name: format!("cut#{cut}"),
            values: Vec::new(),
            left: vec![Vec::new(); states.len()],
            guard: Vec::new(),
            wide,
        };
        let mut onward = self.common(states, cut, &mut o);
        onward.guard.append(&mut o.guard);
        if let Some(model) = &onward.model {
            let mut symbols = model.symbols.clone();
            for (any, low, was) in &o.values {
                if let Node::Sym(s) = self.arena.node(*any) {
                    let value = model.value(&self.arena, *was) << low;
                    let known = symbols.entry(*s).or_insert(0);
                    *known |= value;
                }
            }
            onward.model = Some(Rc::new(Assignment::new(symbols, model.packet.clone())));
        }
        // One that stands for others has not come here again.
        let began = states.len().saturating_sub(usize::from(wide));
        for (s, left) in states.iter().zip(o.left).take(began) {
            let left = left.into_iter().enumerate().collect();
            self.ends(s.clone(), cut, left);
        }
        (cut, onward)
    }

    /// What states have in common; what is not the same in all of them, or made of state, becomes any.
    fn common(&mut self, states: &[State], cut: u32, o: &mut Onward) -> State {
        let Some(first) = states.first() else {
            unreachable!("a cut has paths");
        };
        let mut s = first.clone();
        let said = |c: &ExprId| states.iter().all(|t| t.guard.contains(c));
        s.guard.retain(|c| said(c));
        let stateless: Vec<ExprId> = s
            .guard
            .iter()
            .copied()
            .filter(|c| !self.depends_on_state(*c))
            .collect();
        s.guard = stateless;
        // Entries that are still pointed to, each once.
        let (mut kept, mut known): (Vec<Kept>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        for depth in 0..s.frames.len() {
            for reg in 0..first.frames.get(depth).map_or(0, |f| f.1.len()) {
                let all: Vec<Value> = states
                    .iter()
                    .map(|t| t.frames.get(depth).and_then(|f| f.1.get(reg)).copied())
                    .map(|v| v.unwrap_or(Value::Unset))
                    .collect();
                let value = self.one_value(
                    states,
                    &all,
                    &format!("r{reg}@{depth}"),
                    (&mut kept, &mut known),
                    o,
                );
                if let Some(slot) = s.frames.get_mut(depth).and_then(|f| f.1.get_mut(reg)) {
                    *slot = value;
                }
            }
        }
        s.stack
            .retain(|k, _| states.iter().all(|t| t.stack.contains_key(k)));
        let cells: Vec<((FrameId, i64), Cell)> = s.stack.iter().map(|(k, c)| (*k, *c)).collect();
        for (k, cell) in cells {
            let all: Vec<Cell> = states
                .iter()
                .filter_map(|t| t.stack.get(&k).copied())
                .collect();
            let new = match cell {
                Cell::Byte(_) => {
                    let bytes: Option<Vec<ExprId>> = all
                        .iter()
                        .map(|c| match c {
                            Cell::Byte(e) => Some(*e),
                            Cell::Part(..) => None,
                        })
                        .collect();
                    bytes.map(|b| Cell::Byte(self.one_byte(&b, &format!("stack{}", k.0.0), k.1, o)))
                }
                Cell::Part(_, part) => {
                    let values: Option<Vec<Value>> = all
                        .iter()
                        .map(|c| match c {
                            Cell::Part(v, p) if *p == part => Some(*v),
                            _ => None,
                        })
                        .collect();
                    values.map(|v| {
                        let at = format!("stack{}.{}", k.0.0, k.1 - i64::from(part));
                        Cell::Part(
                            self.one_value(states, &v, &at, (&mut kept, &mut known), o),
                            part,
                        )
                    })
                }
            };
            match new {
                Some(new) => drop(s.stack.insert(k, new)),
                // A number's byte in one and a pointer's in another: nobody reads it.
                None => drop(s.stack.remove(&k)),
            }
        }
        s.packet = self.one_packet(states, o);
        s.places = Vec::new();
        s.globals = BTreeMap::new();
        for k in kept {
            if k.global {
                s.globals.insert(k.place.object, s.places.len());
            }
            s.places.push(k.place);
        }
        self.scratch(states, &mut s, o);
        s.undecided = states.iter().any(|t| t.undecided);
        s.accesses = Vec::new();
        s.loose = Some(LOOSE);
        s.steps = states.iter().map(|t| t.steps).max().unwrap_or(0);
        s.draws = states.iter().map(|t| t.draws).max().unwrap_or(0);
        s.turns = states.iter().map(|t| t.turns).max().unwrap_or(0);
        s.turned = BTreeSet::new();
        s.told = BTreeSet::new();
        s.tells = 0;
        s.random = 0;
        s.segment = cut;
        s
    }

    /// One value for those of all states.
    fn one_value(
        &mut self,
        states: &[State],
        all: &[Value],
        at: &str,
        (kept, known): (&mut Vec<Kept>, &mut Vec<Vec<usize>>),
        o: &mut Onward,
    ) -> Value {
        let numbers =
            |f: fn(&Value) -> Option<ExprId>| all.iter().map(f).collect::<Option<Vec<_>>>();
        match all.first() {
            Some(Value::Num(_)) => {
                let numbers = numbers(|v| match v {
                    Value::Num(e) => Some(*e),
                    _ => None,
                });
                numbers.map_or(Value::Unset, |n| Value::Num(self.one_number(&n, at, o)))
            }
            Some(Value::Inner(object, _)) => {
                let numbers = numbers(|v| match v {
                    Value::Inner(_, e) => Some(*e),
                    _ => None,
                });
                numbers.map_or(Value::Unset, |n| {
                    Value::Inner(*object, self.one_number(&n, at, o))
                })
            }
            Some(Value::Ptr(Region::Place(_), offset)) => {
                let places: Option<Vec<usize>> = all
                    .iter()
                    .map(|v| match v {
                        Value::Ptr(Region::Place(p), _) => Some(*p),
                        _ => None,
                    })
                    .collect();
                let Some(places) = places else {
                    return Value::Unset;
                };
                let n = known.iter().position(|k| *k == places);
                let n = n.unwrap_or_else(|| {
                    known.push(places.clone());
                    let place = self.one_place(states, &places, kept, o);
                    kept.push(place);
                    kept.len() - 1
                });
                Value::Ptr(Region::Place(n), *offset)
            }
            Some(v) => *v,
            None => Value::Unset,
        }
    }

    /// One number for those of all states.
    fn one_number(&mut self, all: &[ExprId], at: &str, o: &mut Onward) -> ExprId {
        let Some(first) = all.first().copied() else {
            return self.arena.number(0, 64);
        };
        if all.iter().all(|e| *e == first) && !self.depends_on_state(first) {
            return first;
        }
        let width = self.arena.width(first);
        let bits = all.iter().map(|e| self.arena.significant(*e)).max();
        let bits = match o.wide {
            true => width,
            false => bits.unwrap_or(64).next_power_of_two().clamp(1, width),
        };
        let name = format!("{}.{at}", o.name);
        let any = self.arena.sym(&name, bits, Origin::Turn);
        let was = self.arena.extract(first, 0, bits);
        o.values.push((any, 0, was));
        for (left, e) in o.left.iter_mut().zip(all) {
            left.push(*e);
        }
        let constants: Option<BTreeSet<u64>> =
            all.iter().map(|e| self.arena.constant(*e)).collect();
        if let Some(constants) = constants.filter(|c| c.len() <= CONSTANTS && !o.wide) {
            let mut one = self.arena.number(0, 1);
            for c in constants {
                let c = self.arena.number(c, bits);
                let is = self.arena.compare(Rel::Eq, any, c);
                one = self.arena.either(one, is);
            }
            if self.arena.constant(one).is_none() {
                o.guard.push(one);
            }
        }
        self.arena.resize(any, width)
    }

    /// One byte for those of all states.
    fn one_byte(&mut self, all: &[ExprId], stem: &str, at: i64, o: &mut Onward) -> ExprId {
        let Some(first) = all.first().copied() else {
            return self.arena.number(0, 8);
        };
        if all.iter().all(|e| *e == first) && !self.depends_on_state(first) {
            return first;
        }
        for (left, e) in o.left.iter_mut().zip(all) {
            left.push(*e);
        }
        let stem = format!("{}.{stem}", o.name);
        self.any_byte(&stem, at, first, &mut o.values)
    }

    /// One entry for those that all states point to: its key, and nothing of what it holds, which is read anew.
    fn one_place(&mut self, states: &[State], at: &[usize], kept: &[Kept], o: &mut Onward) -> Kept {
        let all: Vec<Place> = states
            .iter()
            .zip(at)
            .filter_map(|(s, at)| s.places.get(*at).cloned())
            .collect();
        let global = states
            .iter()
            .zip(at)
            .all(|(s, at)| s.globals.values().any(|g| g == at));
        let record = states
            .first()
            .zip(at.first())
            .is_some_and(|(s, at)| self.is_record(s, *at));
        let Some(first) = all.first() else {
            unreachable!("a pointer leads somewhere");
        };
        let n = kept.len();
        let key = (0..first.key.len()).map(|i| {
            let bytes: Vec<ExprId> = all.iter().filter_map(|p| p.key.get(i).copied()).collect();
            self.one_byte(&bytes, &format!("key{n}"), i as i64, o)
        });
        let key: Vec<ExprId> = key.collect();
        let before = kept
            .iter()
            .filter(|k| k.place.object == first.object)
            .count();
        let name = self.object_name(first.object);
        let stem = match global {
            true => name,
            false => format!("{name}#{}", before + 1),
        };
        let mut place = Place {
            presence: first.presence,
            lapsed: first.lapsed,
            slot: first.slot,
            ..Place::new(first.object, key, stem)
        };
        if record {
            // A record is nobody's but the packet's until it is handed over.
            place.fresh = first.fresh;
            for at in first.bytes.keys() {
                let bytes: Option<Vec<ExprId>> =
                    all.iter().map(|p| p.bytes.get(at).copied()).collect();
                if let Some(bytes) = bytes {
                    let byte = self.one_byte(&bytes, &format!("record{n}"), i64::from(*at), o);
                    place.bytes.insert(*at, byte);
                }
            }
        }
        Kept { place, global }
    }

    /// What packets keep for themselves in globals and per-CPU arrays: bytes that all states have written, and that are
    /// not made of state.
    fn scratch(&mut self, states: &[State], s: &mut State, o: &mut Onward) {
        let Some(first) = states.first() else { return };
        for place in &first.places {
            let kind = self
                .program
                .objects
                .get(place.object.0)
                .map_or("", |o| o.kind.name);
            let constant = place.key.iter().all(|e| self.arena.constant(*e).is_some());
            let global = first.globals.contains_key(&place.object);
            let ours = (kind == "percpu_array" || global) && constant;
            if !ours || place.lapsed.is_some() || place.presence != Presence::There {
                continue;
            }
            let same =
                |p: &&Place| p.object == place.object && p.key == place.key && p.lapsed.is_none();
            let all: Option<Vec<Place>> = states
                .iter()
                .map(|t| t.places.iter().find(same).cloned())
                .collect();
            let Some(all) = all else { continue };
            let mut bytes = BTreeMap::new();
            for at in place.bytes.keys() {
                let values: Option<Vec<ExprId>> =
                    all.iter().map(|p| p.bytes.get(at).copied()).collect();
                let Some(values) = values else { continue };
                if values.iter().any(|e| self.depends_on_state(*e)) {
                    continue;
                }
                let stem = format!("{}.{}", self.object_name(place.object), place.number());
                bytes.insert(*at, self.one_byte(&values, &stem, i64::from(*at), o));
            }
            if bytes.is_empty() {
                continue;
            }
            let at = s.places.iter().position(|p| same(&p));
            let at = at.unwrap_or_else(|| {
                let before = s.places.iter().filter(|p| p.object == place.object).count();
                let name = self.object_name(place.object);
                let stem = match global {
                    true => name,
                    false => format!("{name}#{}", before + 1),
                };
                s.places.push(Place {
                    presence: Presence::There,
                    slot: place.slot,
                    ..Place::new(place.object, place.key.clone(), stem)
                });
                if global {
                    s.globals.insert(place.object, s.places.len() - 1);
                }
                s.places.len() - 1
            });
            if let Some(p) = s.places.get_mut(at) {
                p.bytes.extend(bytes);
            }
        }
    }

    /// What is written to the packet, in all states together.
    fn one_packet(&mut self, states: &[State], o: &mut Onward) -> Vec<Written> {
        let Some(first) = states.first() else {
            return Vec::new();
        };
        let fixed = states
            .iter()
            .flat_map(|s| &s.packet)
            .all(|w| w.base.is_none());
        let mut out = Vec::new();
        if !fixed {
            // They have written to the same places one after the other.
            for (i, w) in first.packet.iter().enumerate() {
                let bytes: Vec<ExprId> = states
                    .iter()
                    .filter_map(|s| s.packet.get(i))
                    .map(|w| w.byte)
                    .collect();
                let stem = format!("packet{}.{i}", w.base.map_or(0, |b| b.0));
                let byte = self.one_byte(&bytes, &stem, w.at, o);
                out.push(Written { byte, ..*w });
            }
            return out;
        }
        let places: BTreeSet<i64> = states
            .iter()
            .flat_map(|s| &s.packet)
            .map(|w| w.at)
            .collect();
        for at in places {
            let offset = self.joined(None, at);
            let bytes: Vec<ExprId> = states
                .iter()
                .map(|s| {
                    let written = s.packet.iter().rev().find(|w| w.at == at);
                    match written {
                        Some(w) => w.byte,
                        None => self.came_in(s, offset),
                    }
                })
                .collect();
            let byte = self.one_byte(&bytes, "packet", at, o);
            out.push(Written {
                base: None,
                at,
                byte,
            });
        }
        out
    }
}
