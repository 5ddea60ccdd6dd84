//! Helper calls.

use millrace_check::facts::ArgFact;
use millrace_object::helper::{self, Arg, Helper, Return};
use millrace_object::program::{ObjectId, StateObject};

use super::state::{Access, Place, Presence, Region, State, Value};
use super::{Engine, Gap};
use crate::expr::{Bin, ExprId, Origin, Rel};
use crate::kinds::{self, Address, Answer, Meaning};
use crate::model::Effect;

fn gap<T>(what: impl Into<String>) -> Result<T, Gap> {
    Err(Gap(what.into()))
}

/// `XDP_REDIRECT`
const REDIRECT: u64 = 4;

impl Engine<'_> {
    /// A call, and the ways on from it.
    pub(super) fn call(&mut self, s: State, number: u32) -> Result<Vec<State>, Gap> {
        let Some(h) = helper::by_number(number) else {
            return gap(format!("helper #{number} has no meaning here"));
        };
        let facts = self.flow.steps.get(s.at).map_or(&[][..], |s| &s.args);
        let object = facts.iter().find_map(|a| match a {
            ArgFact::Object(id) => Some(*id),
            _ => None,
        });
        let program = self.program;
        if let Some(id) = object
            && let Some(declared) = program.objects.get(id.0)
        {
            if declared.nesting.is_some() {
                return gap(format!(
                    "`{}`: maps in maps have no meaning here yet",
                    declared.name
                ));
            }
            return match kinds::meaning(declared.kind.name, h.name) {
                Some(m) => self.on_object(s, h, id, declared, m),
                None => gap(format!(
                    "{} on `{}` ({}) has no meaning here yet",
                    h.name, declared.name, declared.kind.name
                )),
            };
        }
        self.without_object(s, h).map(|s| vec![s])
    }

    fn after(&mut self, mut s: State, result: Value) -> State {
        for r in 1..6 {
            s.set(r, Value::Unset);
        }
        s.set(0, result);
        s.at += 1;
        s
    }

    fn without_object(&mut self, mut s: State, h: &Helper) -> Result<State, Gap> {
        let name = match h.name {
            "multiply_high" => {
                let (a, b) = (self.num(s.reg(1))?, self.num(s.reg(2))?);
                let e = self.arena.binary(Bin::MulHigh, a, b);
                return Ok(self.after(s, Value::Num(e)));
            }
            "redirect" => {
                let (to, flags) = (self.num(s.reg(1))?, self.num(s.reg(2))?);
                s.target = Some(self.arena.extract(to, 0, 32));
                let zero = self.arena.number(0, 64);
                let plain = self.arena.compare(Rel::Eq, flags, zero);
                let to = self.arena.number(REDIRECT, 64);
                let e = self.arena.ite(plain, to, zero);
                return Ok(self.after(s, Value::Num(e)));
            }
            "xdp_get_buff_len" => {
                let e = self.length();
                return Ok(self.after(s, Value::Num(e)));
            }
            "spin_lock" | "spin_unlock" => {
                let zero = self.arena.number(0, 64);
                return Ok(self.after(s, Value::Num(zero)));
            }
            "get_prandom_u32"
            | "ktime_get_ns"
            | "ktime_get_boot_ns"
            | "ktime_get_coarse_ns"
            | "ktime_get_tai_ns"
            | "jiffies64"
            | "get_smp_processor_id"
            | "get_numa_node_id"
            | "trace_printk"
            | "trace_vprintk" => self.fresh(&mut s, h.name),
            other => return gap(format!("{other} has no meaning here yet")),
        };
        let origin = match h.effects {
            e if e.random => Origin::Random,
            e if e.time => Origin::Time,
            _ => Origin::Helper,
        };
        let e = self.arena.sym(&name, 64, origin);
        if let Return::Scalar { min, max } = h.returns
            && min >= 0
            && max < i64::MAX
        {
            let most = self.arena.number(max as u64, 64);
            let over = self.arena.compare(Rel::Less, most, e);
            let within = self.arena.not(over);
            let (yes, _) = self.split(s, within);
            let Some(yes) = yes else {
                return gap(format!("{} can answer nothing", h.name));
            };
            return Ok(self.after(yes, Value::Num(e)));
        }
        Ok(self.after(s, Value::Num(e)))
    }

    /// The bytes that an argument of this kind points to.
    fn argument(
        &mut self,
        s: &mut State,
        h: &Helper,
        want: Arg,
        bytes: u32,
    ) -> Result<Vec<ExprId>, Gap> {
        let Some(at) = h.args.iter().position(|a| *a == want) else {
            return Ok(Vec::new());
        };
        let Value::Ptr(region, offset) = s.reg(at + 1) else {
            return gap(format!("an argument of {} is no pointer", h.name));
        };
        self.read(s, region, offset, bytes)
    }

    fn on_object(
        &mut self,
        mut s: State,
        h: &Helper,
        id: ObjectId,
        object: &StateObject,
        m: Meaning,
    ) -> Result<Vec<State>, Gap> {
        let value = self.argument(&mut s, h, Arg::Value, object.value_bytes)?;
        let key = match m.address {
            Address::Key => self.argument(&mut s, h, Arg::Key, object.key_bytes)?,
            Address::Number => {
                let e = self.num(s.reg(2))?;
                (0..8).map(|i| self.arena.extract(e, 8 * i, 8)).collect()
            }
            Address::New => {
                let name = self.fresh(&mut s, &format!("{}.leased", object.name));
                let e = self.arena.sym(&name, 64, Origin::State(id.0));
                (0..8).map(|i| self.arena.extract(e, 8 * i, 8)).collect()
            }
        };
        let flags = if m.answer == Answer::Status {
            self.num(s.reg(4))?
        } else {
            self.arena.number(0, 64)
        };
        let access = Access {
            object: id,
            operation: m.helper,
            effect: m.effect,
            key: key.clone(),
            value,
            offset: None,
            answer: None,
            outcome: None,
            line: self.flow.steps.get(s.at).and_then(|s| s.line.clone()),
        };
        if m.answer == Answer::Estimate {
            let name = self.fresh(&mut s, &format!("{}.estimate", object.name));
            let e = self.arena.sym(&name, 64, Origin::State(id.0));
            s.accesses.push(Access {
                answer: Some(e),
                ..access
            });
            return Ok(vec![self.after(s, Value::Num(e))]);
        }
        let mut out = Vec::new();
        for (s, place) in self.places(s, id, &key) {
            self.answer(s, place, object, m, flags, &access, &mut out)?;
        }
        Ok(out)
    }

    /// The place of a key. Whether it is one that the path has touched already is asked of each.
    fn places(&mut self, mut s: State, object: ObjectId, key: &[ExprId]) -> Vec<(State, usize)> {
        let mut out = Vec::new();
        let before: Vec<usize> = (0..s.places.len())
            .filter(|i| {
                s.places
                    .get(*i)
                    .is_some_and(|p| p.object == object && p.key.len() == key.len())
            })
            .collect();
        for i in &before {
            let Some(other) = s.places.get(*i).map(|p| p.key.clone()) else {
                continue;
            };
            let same = self.same(&other, key);
            let (yes, no) = self.split(s, same);
            out.extend(yes.map(|s| (s, *i)));
            match no {
                Some(no) => s = no,
                None => return out,
            }
        }
        s.places.push(Place {
            object,
            key: key.to_vec(),
            stem: format!("{}#{}", self.object_name(object), before.len() + 1),
            bytes: std::collections::BTreeMap::new(),
            presence: Presence::Open,
            fresh: false,
        });
        let at = s.places.len() - 1;
        out.push((s, at));
        out
    }

    fn same(&mut self, a: &[ExprId], b: &[ExprId]) -> ExprId {
        let mut all = Vec::new();
        for (x, y) in a.chunks(8).zip(b.chunks(8)) {
            let x: Vec<ExprId> = x.iter().rev().copied().collect();
            let y: Vec<ExprId> = y.iter().rev().copied().collect();
            let (x, y) = (self.arena.concat(&x), self.arena.concat(&y));
            all.push(self.arena.compare(Rel::Eq, x, y));
        }
        self.arena.all(&all)
    }

    /// Whether an entry is there: asked once on a path.
    fn presence(
        &mut self,
        s: State,
        place: usize,
        object: &StateObject,
        m: Meaning,
    ) -> [(Option<State>, bool); 2] {
        let Some(p) = s.places.get(place).cloned() else {
            return [(None, true), (None, false)];
        };
        match p.presence {
            Presence::There => return [(Some(s), true), (None, false)],
            Presence::Absent => return [(None, true), (Some(s), false)],
            Presence::Open => {}
        }
        let elements = m.answer == Answer::Element || object.kind.c == "array";
        let condition = if elements {
            let parts: Vec<ExprId> = p.key.iter().rev().copied().collect();
            let index = self.arena.concat(&parts);
            let index = self.arena.resize(index, 64);
            let capacity = self.arena.number(object.capacity, 64);
            self.arena.compare(Rel::Less, index, capacity)
        } else {
            self.arena
                .sym(&format!("{}.present", p.stem), 1, Origin::State(p.object.0))
        };
        let (yes, no) = self.split(s, condition);
        let with = |s: Option<State>, presence| {
            s.map(|mut s| {
                if let Some(p) = s.places.get_mut(place) {
                    p.presence = presence;
                }
                s
            })
        };
        [
            (with(yes, Presence::There), true),
            (with(no, Presence::Absent), false),
        ]
    }

    #[allow(clippy::too_many_arguments)]
    fn answer(
        &mut self,
        s: State,
        place: usize,
        object: &StateObject,
        m: Meaning,
        flags: ExprId,
        access: &Access,
        out: &mut Vec<State>,
    ) -> Result<(), Gap> {
        let zero = self.arena.number(0, 64);
        let pointer = Value::Ptr(Region::Place(place), zero);
        let note = |mut s: State, outcome: &'static str| {
            s.accesses.push(Access {
                outcome: Some(outcome),
                ..access.clone()
            });
            s
        };
        let presence = |s: State, presence| {
            let mut s = s;
            if let Some(p) = s.places.get_mut(place) {
                p.presence = presence;
                p.bytes.clear();
                p.fresh = true;
            }
            s
        };
        let stored = |s: State, value: &[ExprId]| {
            let mut s = presence(s, Presence::There);
            if let Some(p) = s.places.get_mut(place) {
                p.bytes = value
                    .iter()
                    .enumerate()
                    .map(|(i, e)| (i as u32, *e))
                    .collect();
            }
            s
        };
        if m.answer == Answer::Leased {
            return self.lease(s, place, object, access, out, &stored);
        }
        let [(there, _), (absent, _)] = self.presence(s, place, object, m);
        let one = self.arena.number(1, 64);
        let enoent = self.arena.number(2_u64.wrapping_neg(), 64);
        match m.answer {
            Answer::Value | Answer::Element => {
                if let Some(s) = there {
                    let s = note(s, "there");
                    out.push(self.after(s, pointer));
                }
                if let Some(s) = absent {
                    let s = note(s, "absent");
                    out.push(self.after(s, Value::Num(zero)));
                }
            }
            Answer::Removed | Answer::Deleted => {
                let kernel = m.answer == Answer::Deleted;
                if let Some(s) = there {
                    let s = presence(note(s, "there"), Presence::Absent);
                    out.push(self.after(s, Value::Num(if kernel { zero } else { one })));
                }
                if let Some(s) = absent {
                    let s = note(s, "absent");
                    out.push(self.after(s, Value::Num(if kernel { enoent } else { zero })));
                }
            }
            Answer::Stored | Answer::Status => {
                let status = m.answer == Answer::Status;
                if status && self.arena.constant(flags) != Some(0) {
                    return gap(
                        "map_update_elem with flags other than BPF_ANY has no meaning here yet",
                    );
                }
                let array = object.kind.c == "array";
                if let Some(s) = there {
                    let s = stored(note(s, "overwritten"), &access.value);
                    out.push(self.after(s, if status { Value::Num(zero) } else { pointer }));
                }
                let Some(s) = absent else { return Ok(()) };
                let e2big = self.arena.number(7_u64.wrapping_neg(), 64);
                let refused = Value::Num(if status { e2big } else { zero });
                let never_full = object.kind.name.starts_with("lru_");
                let (full, room) = if array {
                    (Some(s), None)
                } else if never_full {
                    (None, Some(s))
                } else {
                    let stem = s
                        .places
                        .get(place)
                        .map_or(String::new(), |p| p.stem.clone());
                    let name = format!("{stem}.full");
                    let full = self.arena.sym(&name, 1, Origin::State(access.object.0));
                    self.split(s, full)
                };
                if let Some(s) = room {
                    let s = stored(note(s, "added"), &access.value);
                    out.push(self.after(s, if status { Value::Num(zero) } else { pointer }));
                }
                if let Some(s) = full {
                    let s = note(s, if array { "beyond the last" } else { "full" });
                    out.push(self.after(s, refused));
                }
            }
            Answer::Leased | Answer::Estimate => {}
        }
        Ok(())
    }

    fn lease(
        &mut self,
        s: State,
        place: usize,
        object: &StateObject,
        access: &Access,
        out: &mut Vec<State>,
        stored: &dyn Fn(State, &[ExprId]) -> State,
    ) -> Result<(), Gap> {
        let parts: Vec<ExprId> = access.key.iter().rev().copied().collect();
        let number = self.arena.concat(&parts);
        let first = self.arena.number(object.first, 64);
        let last = self
            .arena
            .number(object.first + (object.capacity.max(1) - 1), 64);
        let below = self.arena.compare(Rel::Less, number, first);
        let above = self.arena.compare(Rel::Less, last, number);
        let stem = s
            .places
            .get(place)
            .map_or(String::new(), |p| p.stem.clone());
        let full = self
            .arena
            .sym(&format!("{stem}.full"), 1, Origin::State(access.object.0));
        let (full, room) = self.split(s, full);
        if let Some(mut s) = full {
            s.accesses.push(Access {
                outcome: Some("none free"),
                key: Vec::new(),
                ..access.clone()
            });
            if let Some(p) = s.places.get_mut(place) {
                p.presence = Presence::Absent;
            }
            let none = self.arena.number(u64::MAX, 64);
            out.push(self.after(s, Value::Num(none)));
        }
        if let Some(s) = room {
            let (low, high) = (self.arena.not(below), self.arena.not(above));
            let within = self.arena.all(&[low, high]);
            if let (Some(mut s), _) = self.split(s, within) {
                s.accesses.push(Access {
                    outcome: Some("leased"),
                    ..access.clone()
                });
                let s = stored(s, &access.value);
                out.push(self.after(s, Value::Num(number)));
            }
        }
        Ok(())
    }

    /// Whether a value may be written through a pointer: of a kind where two keys may find one entry,
    /// nothing here would notice.
    pub(super) fn writable(&self, object: ObjectId, effect: Effect) -> Result<(), Gap> {
        let kind = self
            .program
            .objects
            .get(object.0)
            .map_or("", |o| o.kind.name);
        if effect != Effect::Read && matches!(kind, "lpm" | "lpm_trie") {
            return gap("a value found by prefix is changed, which has no meaning here yet");
        }
        Ok(())
    }
}
