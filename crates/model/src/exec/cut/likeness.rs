//! Classes of states that look alike, of which one represents the others.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use millrace_check::facts::FrameId;

use super::super::Engine;
use super::super::state::{Cell, DELETED, Presence, Region, State, Target, Value, Written};
use crate::expr::walk::each_of;
use crate::expr::{ExprId, Node, Origin};

/// Bytes of a packet that say what follows which header, behind none, one and two VLAN tags.
const KIND: [u32; 13] = [12, 13, 14, 16, 17, 18, 20, 21, 22, 23, 24, 25, 27];

/// Any number.
const ANY: u64 = u64::MAX;

/// How much alike states are that one stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// in all that is not made of state
    State,
    /// in fields of packets that registers and stack hold, and in what says which headers there are
    Fields,
    /// in what says which headers there are
    Kind,
    /// in pointers only
    Pointers,
    /// in what says which headers there are, and in pointers, but not in where in the packet these point if that is computed
    Offsets,
}

impl Engine<'_> {
    /// Whether a state keeps something that no other may stand for: a place in the packet that state decided.
    pub(super) fn goes_apart(&self, s: &State) -> bool {
        let borders = [s.borders.meta, s.borders.start, s.borders.end];
        let target: Vec<ExprId> = match &s.target {
            Some(Target::Interface(e)) => vec![*e],
            Some(Target::Entry(_, key)) => key.clone(),
            Some(Target::All(_)) | None => Vec::new(),
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

    /// Exact identity of a state, as a list of numbers.
    pub(super) fn likeness(&self, s: &State, block: usize, level: Level) -> Vec<u64> {
        let exact = |slot: String| match self.exact.contains(&(block, slot)) {
            true => Level::State,
            false => level,
        };
        let mut out = vec![
            s.at as u64,
            s.frames.len() as u64,
            u64::from(s.tail_calls),
            u64::from(s.borders.meta.0),
            u64::from(s.borders.start.0),
            u64::from(s.borders.end.0),
            s.borders.changed.map_or(0, |c| 1 + u64::from(c.number)),
            s.borders.changed.map_or(0, |c| u64::from(c.from.0)),
        ];
        let mut h = DefaultHasher::new();
        s.target.hash(&mut h);
        out.push(h.finish());
        let mut known = Vec::new();
        for (depth, (frame, regs)) in s.frames.iter().enumerate() {
            out.push(frame.0 as u64);
            for (reg, value) in regs.iter().enumerate() {
                let level = exact(register(depth, reg));
                self.value_likeness(s, *value, level, &mut known, &mut out);
            }
        }
        for ((frame, at), cell) in &s.stack {
            // What only some of them have set nobody reads.
            let part = match cell {
                Cell::Byte(e) => {
                    let before = out.len();
                    out.extend([1 << 40 | frame.0 as u64, *at as u64]);
                    self.number_likeness(*e, exact(word(*frame, *at)), &mut out);
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
                Level::Fields | Level::Kind | Level::Offsets => kind,
                Level::Pointers => false,
            }
    }

    fn number_likeness(&self, e: ExprId, level: Level, out: &mut Vec<u64>) {
        let exact = match level {
            Level::State => !self.depends_on_state(e),
            Level::Fields => self.arena.constant(e).is_none() && self.is_kept(e),
            Level::Kind | Level::Pointers | Level::Offsets => false,
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
                let any = level == Level::Offsets && self.is_computed(region, offset);
                out.extend([9 << 40, if any { ANY } else { u64::from(offset.0) }]);
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

    /// Whether a pointer leads to a computed place in the packet.
    pub(super) fn is_computed(&self, region: Region, offset: ExprId) -> bool {
        region == Region::Packet && self.arena.constant(offset).is_none()
    }

    fn place_likeness(&self, s: &State, at: usize, level: Level, out: &mut Vec<u64>) {
        let Some(p) = s.places.get(at) else { return };
        let presence = match p.presence {
            Presence::Open => 0,
            Presence::There => 1,
            Presence::Absent => 2,
        };
        out.extend([p.object.0 as u64, presence, p.key.len() as u64]);
        out.push(match p.lapsed {
            None => 0,
            Some(DELETED) => 1,
            Some(_) => 2,
        });
        for e in &p.key {
            self.number_likeness(*e, level.min(Level::Fields), out);
        }
        if self.is_record(s, at) {
            // Its slot is how long it is.
            out.extend([u64::from(p.fresh), p.slot.map_or(0, |n| n + 1)]);
            out.push(p.bytes.len() as u64);
            out.extend(p.bytes.keys().map(|k| u64::from(*k)));
        }
    }

    /// Whether a place is a record, which nobody finds by a key.
    pub(super) fn is_record(&self, s: &State, at: usize) -> bool {
        let global = s.globals.values().any(|g| *g == at);
        !global && s.places.get(at).is_some_and(|p| p.key.is_empty())
    }
}

/// The name of a register among what goes on.
pub(super) fn register(depth: usize, reg: usize) -> String {
    format!("r{reg}@{depth}")
}

/// The name of the eight bytes of stack that a byte is of.
pub(super) fn word(frame: FrameId, at: i64) -> String {
    let from = at.div_euclid(8) * 8;
    format!("stack{}[{from}..{}]", frame.0, from + 8)
}

/// The writes that count: the last to each place, where places are told apart by their offsets.
pub(super) fn latest(packet: &[Written]) -> Vec<Written> {
    if packet.iter().any(|w| w.base.is_some()) {
        return packet.to_vec();
    }
    let last: BTreeMap<i64, Written> = packet.iter().map(|w| (w.at, *w)).collect();
    last.into_values().collect()
}
