//! Results of calls on entries, and the entry's contents afterwards.

use millrace_object::helper::{Arg, Helper};
use millrace_object::program::ObjectId;
use millrace_object::state::{Addressing, classifier};

use super::call::On;
use super::state::{Access, DELETED, Place, Presence, REPLACED, Region, State, Value};
use super::{Engine, Gap};
use crate::expr::{ExprId, Origin, Rel};
use crate::kinds::{Address, Answer, Meaning};
use crate::model::Effect;

/// The kernel's error numbers.
pub(super) const ENOENT: i64 = 2;
pub(super) const E2BIG: i64 = 7;
pub(super) const EEXIST: i64 = 17;
pub(super) const EINVAL: i64 = 22;

/// `BPF_NOEXIST`: only if it is not there; and `BPF_EXIST`: only if it is, which is the highest flag.
const NOEXIST: u64 = 1;
const EXIST: u64 = 2;

/// One call under way.
struct Call<'c, 'p> {
    on: &'c On<'p>,
    meaning: Meaning,
    /// what is recorded, but for what came of it
    access: Access,
    /// of an update
    flags: ExprId,
}

impl Call<'_, '_> {
    fn note(&self, mut s: State, outcome: &'static str) -> State {
        s.accesses.push(self.access.clone().ended(outcome));
        s
    }
}

impl Engine<'_> {
    pub(super) fn on_object(
        &mut self,
        mut s: State,
        h: &Helper,
        on: &On<'_>,
        meaning: Meaning,
    ) -> Result<Vec<State>, Gap> {
        let value = self.argument(&mut s, h, Arg::Value, on.object.value_bytes)?;
        let mut key = on.prefix.clone();
        match meaning.address {
            Address::Key => key.extend(self.argument(&mut s, h, Arg::Key, on.object.key_bytes)?),
            Address::Number => {
                let e = self.num(s.reg(2))?;
                key.extend(self.split_bytes(e, 8));
            }
            Address::New => {
                let name = format!("{}.leased", on.object.name);
                let e = self.unknown(&mut s, &name, 64, Origin::State(on.id.0));
                key.extend(self.split_bytes(e, 8));
            }
        }
        let flags = if meaning.answer == Answer::Status {
            self.num(s.reg(4))?
        } else {
            self.arena.number(0, 64)
        };
        let mut access = self.access(&s, on.id, meaning.helper, meaning.effect);
        (access.key, access.value) = (key.clone(), value);
        let mut call = Call {
            on,
            meaning,
            access,
            flags,
        };
        if meaning.effect == Effect::Add
            && let Value::Num(amount) = s.reg(3)
        {
            // How much is added is in no access.
            self.tell(&mut s, &[amount]);
        }
        if meaning.answer == Answer::Nothing {
            s.accesses.push(call.access);
            return Ok(vec![self.answers(s, 0)]);
        }
        let unknown = match meaning.answer {
            Answer::Estimate => Some(("estimate", 32)),
            Answer::Member => Some(("member", 64)),
            _ => None,
        };
        if let Some((what, bits)) = unknown {
            let name = format!("{}.{what}", on.object.name);
            let e = self.unknown(&mut s, &name, bits, Origin::State(on.id.0));
            let e = self.arena.resize(e, 64);
            s.accesses.push(Access {
                answer: Some(e),
                ..call.access
            });
            return Ok(vec![self.after(s, Value::Num(e))]);
        }
        if meaning.answer == Answer::Class {
            return Ok(self.class(s, call.access, on));
        }
        if meaning.answer == Answer::Refused {
            let s = call.note(s, "refused");
            return Ok(vec![self.answers(s, -EINVAL)]);
        }
        let mut out = Vec::new();
        let mut ways = vec![s];
        if meaning.answer == Answer::Status {
            let s = ways.remove(0);
            let most = self.arena.number(EXIST, 64);
            let unknown = self.arena.compare(Rel::Less, most, flags);
            let (bad, good) = self.split(s, unknown);
            if let Some(s) = bad {
                let s = call.note(s, "refused: unknown flags");
                out.push(self.answers(s, -EINVAL));
            }
            ways.extend(good);
        }
        for s in ways {
            if meaning.answer == Answer::Leased {
                self.lease(s, &call, &mut out);
                continue;
            }
            for (s, place) in self.places(s, on, &key)? {
                call.access.entry = s.places.get(place).map_or(0, Place::number);
                self.answer(s, place, &call, &mut out);
            }
        }
        Ok(out)
    }

    fn answer(&mut self, s: State, place: usize, call: &Call<'_, '_>, out: &mut Vec<State>) {
        let zero = self.arena.number(0, 64);
        let pointer = Value::Ptr(Region::Place(place), zero);
        let (there, absent) = self.presence(s, place, call.on);
        match call.meaning.answer {
            Answer::Value | Answer::Element | Answer::Map => {
                if let Some(s) = there {
                    let s = call.note(s, "there");
                    let found = match call.meaning.answer {
                        Answer::Map => self.inner(&s, place, call.on),
                        _ => pointer,
                    };
                    out.push(self.after(s, found));
                }
                if let Some(s) = absent {
                    let s = call.note(s, "absent");
                    out.push(self.answers(s, 0));
                }
            }
            Answer::Removed | Answer::Deleted => {
                let kernel = call.meaning.answer == Answer::Deleted;
                if let Some(s) = there {
                    let mut s = call.note(s, "there");
                    let next = self.lapse(&mut s, place, DELETED, Presence::Absent);
                    if let Some(p) = s.places.get_mut(next) {
                        p.bytes.clear();
                        (p.fresh, p.room) = (true, true);
                    }
                    out.push(self.answers(s, i64::from(!kernel)));
                }
                if let Some(s) = absent {
                    let s = call.note(s, "absent");
                    out.push(self.answers(s, if kernel { -ENOENT } else { 0 }));
                }
            }
            Answer::Stored => {
                if let Some(s) = there {
                    let s = Self::filled(call.note(s, "overwritten"), place, &call.access.value);
                    out.push(self.after(s, pointer));
                }
                let (full, room) = self.full(absent, place, call);
                if let Some(s) = room {
                    let s = Self::added(call.note(s, "added"), place, &call.access.value);
                    out.push(self.after(s, pointer));
                }
                if let Some(s) = full {
                    let s = call.note(s, "full");
                    out.push(self.answers(s, 0));
                }
            }
            Answer::Status => self.update(there, absent, place, call, out),
            Answer::Leased
            | Answer::Estimate
            | Answer::Member
            | Answer::Nothing
            | Answer::Class
            | Answer::Refused => {}
        }
    }

    /// The kernel's update, of a place that is there or not.
    fn update(
        &mut self,
        there: Option<State>,
        absent: Option<State>,
        place: usize,
        call: &Call<'_, '_>,
        out: &mut Vec<State>,
    ) {
        let only_new = self.is(call.flags, NOEXIST);
        let (refused, there) = self.either_way(there, only_new);
        if let Some(s) = refused {
            let s = call.note(s, "refused: there");
            out.push(self.answers(s, -EEXIST));
        }
        if let Some(s) = there {
            let s = Self::filled(call.note(s, "overwritten"), place, &call.access.value);
            out.push(self.answers(s, 0));
        }
        if call.on.object.kind.addressing == Addressing::Index {
            if let Some(s) = absent {
                let s = call.note(s, "beyond the last");
                out.push(self.answers(s, -E2BIG));
            }
            return;
        }
        let only_old = self.is(call.flags, EXIST);
        let (refused, absent) = self.either_way(absent, only_old);
        if let Some(s) = refused {
            let s = call.note(s, "refused: absent");
            out.push(self.answers(s, -ENOENT));
        }
        let evicts = call.on.object.kind.evicts;
        let (full, room) = if evicts {
            (None, absent)
        } else {
            self.full(absent, place, call)
        };
        if let Some(mut s) = room {
            if evicts {
                self.evict(&mut s, place, call);
            }
            let s = Self::added(call.note(s, "added"), place, &call.access.value);
            out.push(self.answers(s, 0));
        }
        if let Some(s) = full {
            let s = call.note(s, "full");
            out.push(self.answers(s, -E2BIG));
        }
    }

    /// A new entry of an object that evicts takes the place of another, perhaps of one that the path holds.
    fn evict(&mut self, s: &mut State, place: usize, call: &Call<'_, '_>) {
        for i in self.kin_places(s, call.on.id) {
            let there = s
                .places
                .get(i)
                .is_some_and(|p| p.presence == Presence::There);
            if i != place && there {
                self.lapse(s, i, "its entry may have been evicted", Presence::Open);
            }
        }
    }

    /// Whether there is no room for one more, of what is absent. Each entry of the object that the path has deleted leaves room for one.
    fn full(
        &mut self,
        s: Option<State>,
        place: usize,
        call: &Call<'_, '_>,
    ) -> (Option<State>, Option<State>) {
        let Some(mut s) = s else { return (None, None) };
        let Some(p) = s.places.get(place).cloned() else {
            return (None, None);
        };
        // Which map a shape stands for is open, and so whether it is the one with room.
        let (id, open) = (call.on.id, call.on.object.is_shape());
        let kin = self.kin_places(&s, id);
        let has_room = |i: &usize| s.places.get(*i).is_some_and(|p| p.room && p.object == id);
        let freed = match p.room || open {
            true => p.room.then_some(place),
            false => kin.iter().copied().find(has_room),
        };
        for i in kin {
            if let Some(other) = s.places.get_mut(i) {
                other.room &= !open && other.object == id && Some(i) != freed;
            }
        }
        if freed.is_some() {
            return (None, Some(s));
        }
        if !open && self.is_exhausted(&s, id, "full") {
            return (Some(s), None);
        }
        let name = match p.doubts {
            0 => format!("{}.full", p.stem),
            n => format!("{}.full{n}", p.stem),
        };
        let full = self.arena.sym(&name, 1, p.origin());
        self.split(s, full)
    }

    /// Whether the path has found the object without room, by a call with this outcome. All that it deleted since has been put to use, where no
    /// place has room.
    fn is_exhausted(&self, s: &State, id: ObjectId, outcome: &str) -> bool {
        let found = |a: &Access| a.object == id && a.outcome == Some(outcome);
        let other = |a: &Access| a.object != id && self.one_map(a.object, id);
        !s.turned.contains(&id) && s.accesses.iter().any(found) && !s.accesses.iter().any(other)
    }

    /// A new entry with this value. It may take the place of one that the path deleted, in whichever map: two may be one.
    fn added(mut s: State, place: usize, value: &[ExprId]) -> State {
        for p in &mut s.places {
            if p.lapsed == Some(DELETED) {
                p.lapsed = Some(REPLACED);
            }
        }
        Self::filled(s, place, value)
    }

    /// The place with this value in it.
    fn filled(mut s: State, place: usize, value: &[ExprId]) -> State {
        if let Some(p) = s.places.get_mut(place) {
            p.presence = Presence::There;
            p.fresh = true;
            p.bytes = (0..).zip(value.iter().copied()).collect();
        }
        s
    }

    /// The class of a key: any that there is, and that of a key that the path has asked for before if they are equal. No rule
    /// changes while a packet is run.
    fn class(&mut self, s: State, access: Access, on: &On<'_>) -> Vec<State> {
        let before: Vec<(Vec<ExprId>, ExprId)> = (s.accesses.iter())
            .filter(|a| a.object == on.id)
            .filter_map(|a| Some((a.key.clone(), a.answer?)))
            .collect();
        let mut s = s;
        let name = format!("{}.class", on.object.name);
        let class = self.unknown(&mut s, &name, 32, Origin::State(on.id.0));
        let mut possible = vec![self.less(class, u64::from(classifier::classes(on.object)))];
        for (key, other) in before {
            let same = self.same(&key, &access.key);
            let apart = self.arena.not(same);
            let other = self.arena.extract(other, 0, 32);
            let equal = self.arena.compare(Rel::Eq, class, other);
            possible.push(self.arena.either(apart, equal));
        }
        let possible = self.arena.all(&possible);
        let Some(mut s) = self.only(s, possible) else {
            return Vec::new();
        };
        let class = self.arena.resize(class, 64);
        s.accesses.push(Access {
            answer: Some(class),
            ..access
        });
        vec![self.after(s, Value::Num(class))]
    }

    /// The map in an entry of a map of maps: a number says which, the same under several keys if these have
    /// the same map.
    fn inner(&mut self, s: &State, place: usize, on: &On<'_>) -> Value {
        let place = s.places.get(place);
        let name = format!("{}.map", place.map_or("", |p| &p.stem));
        let origin = place.map_or(Origin::State(on.id.0), Place::origin);
        let number = self.arena.sym(&name, 32, origin);
        match on.object.shape() {
            Some(shape) => Value::Inner(shape, number),
            None => Value::Unset,
        }
    }

    fn lease(&mut self, s: State, call: &Call<'_, '_>, out: &mut Vec<State>) {
        let (id, object) = (call.on.id, call.on.object);
        let mut s = s;
        let stem = {
            let n = s.places.iter().filter(|p| p.object == id).count();
            format!("{}#{}", object.name, n + 1)
        };
        let origin = if s.turned.contains(&id) {
            Origin::Turn
        } else {
            Origin::State(id.0)
        };
        let full = self.arena.sym(&format!("{stem}.full"), 1, origin);
        // A number that the path has given back is free.
        let room = self
            .live_places(&s, id)
            .iter()
            .any(|i| s.places.get(*i).is_some_and(|p| p.room));
        let (none, some) = if room {
            for p in &mut s.places {
                p.room = p.room && p.object != id;
            }
            (None, Some(s))
        } else {
            self.split(s, full)
        };
        if let Some(mut s) = none {
            s.accesses.push(Access {
                outcome: Some("none free"),
                key: Vec::new(),
                ..call.access.clone()
            });
            out.push(self.answers(s, -1));
        }
        let Some(s) = some else { return };
        let number = self.joined_bytes(&call.access.key);
        let first = self.arena.number(object.first, 64);
        let last = object.first.saturating_add(object.capacity.max(1) - 1);
        let last = self.arena.number(last, 64);
        let below = self.arena.compare(Rel::Less, number, first);
        let above = self.arena.compare(Rel::Less, last, number);
        let mut conditions = vec![self.arena.not(below), self.arena.not(above)];
        // It was not leased before.
        for i in self.live_places(&s, id) {
            let Some(p) = s.places.get(i).cloned() else {
                continue;
            };
            if p.presence == Presence::There {
                let same = self.same(&p.key, &call.access.key);
                conditions.push(self.arena.not(same));
            }
        }
        let within = self.arena.all(&conditions);
        let Some(mut s) = self.only(s, within) else {
            return;
        };
        // It may be one that the path has given back, or has found to be free.
        for i in self.live_places(&s, id) {
            let Some(p) = s.places.get(i).cloned() else {
                continue;
            };
            if p.presence == Presence::There {
                continue;
            }
            let same = self.same(&p.key, &call.access.key);
            let (again, other) = self.split(s, same);
            let again = match p.presence {
                Presence::Open => again.and_then(|s| {
                    let there = self.is_there(&p, call.on);
                    let free = self.arena.not(there);
                    self.only(s, free)
                }),
                _ => again,
            };
            if let Some(s) = again {
                out.push(self.leased(s, i, call, number));
            }
            let Some(other) = other else { return };
            s = other;
        }
        let place = self.add_place(&mut s, id, call.access.key.clone());
        out.push(self.leased(s, place, call, number));
    }

    /// A lease of this number, which is an entry's.
    fn leased(&mut self, mut s: State, place: usize, call: &Call<'_, '_>, number: ExprId) -> State {
        s.accesses.push(Access {
            outcome: Some("leased"),
            entry: s.places.get(place).map_or(0, Place::number),
            ..call.access.clone()
        });
        let s = Self::filled(s, place, &call.access.value);
        self.after(s, Value::Num(number))
    }
}
