//! The state that stands for those that look alike: what they have in common, and symbols for the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_check::facts::FrameId;

use super::super::Engine;
use super::super::state::{Cell, Place, Presence, Region, State, Value, Written};
use super::likeness::register;
use crate::expr::eval::Assignment;
use crate::expr::walk::each_of;
use crate::expr::{ExprId, Node, Origin, Rel};

/// Why a path behind a cut may be impossible.
const LOOSE: &str = "paths are cut where they meet";

/// Most constants that what goes on is said to be one of.
const CONSTANTS: usize = 16;

/// Knowledge of paths about an entry that a state behind a cut still points to.
#[derive(Clone)]
struct Kept {
    place: Place,
    global: bool,
}

/// Results for the numbers in which states differ.
struct Onward {
    /// the number of the cut
    cut: u32,
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
    pub(super) fn joint(&mut self, states: &[State], wide: bool) -> (u32, State) {
        self.cuts += 1;
        let cut = self.cuts;
        let at = states.first().and_then(|s| self.blocks.of.get(s.at));
        self.cut_at.insert(cut, at.copied().unwrap_or(0));
        let mut o = Onward {
            cut,
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

    /// Intersection of states; what is not the same in all of them, or made of state, becomes any.
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
                    &register(depth, reg),
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
        s.drawn = Vec::new();
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
            Some(Value::Ptr(Region::Packet, _)) => {
                let offsets = numbers(|v| match v {
                    Value::Ptr(Region::Packet, e) => Some(*e),
                    _ => None,
                });
                offsets.map_or(Value::Unset, |e| {
                    let any = self.one_number(&e, at, o);
                    self.is_of_packets(any);
                    Value::Ptr(Region::Packet, any)
                })
            }
            Some(v) => *v,
            None => Value::Unset,
        }
    }

    /// Notes that a symbol is any of some numbers of which none is made of state.
    fn is_of_packets(&mut self, any: ExprId) {
        each_of(
            &self.arena,
            &[any],
            |_| false,
            |e| {
                if let Node::Sym(s) = self.arena.node(e)
                    && self.arena.symbol(*s).origin == Origin::Turn
                {
                    self.of_packets.insert(*s);
                }
            },
        );
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
        self.stands_behind(any, o.cut, all);
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
        let byte = self.any_byte(&stem, at, first, &mut o.values);
        if let Some((any, ..)) = o.values.last().copied() {
            self.stands_behind(any, o.cut, all);
        }
        byte
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
            // Found in one slot by some, and in another by others: in any.
            slot: first
                .slot
                .filter(|_| all.iter().all(|p| p.slot == first.slot)),
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

    /// Scratch bytes of packets in globals and per-CPU arrays: bytes that all states have written, and that are
    /// not made of state.
    fn scratch(&mut self, states: &[State], s: &mut State, o: &mut Onward) {
        let Some(first) = states.first() else { return };
        for place in &first.places {
            let object = self.program.objects.get(place.object.0);
            let own = object.is_some_and(|o| o.kind.per_cpu && o.kind.has_all());
            let constant = place.key.iter().all(|e| self.arena.constant(*e).is_some());
            let global = first.globals.contains_key(&place.object);
            let ours = (own || global) && constant;
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

    /// Bytes written to the packet in all states together.
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
