//! The entry of an object that a key leads to, and whether it exists.

use millrace_object::program::ObjectId;
use millrace_object::state::Addressing;

use super::call::{On, gap};
use super::state::{Place, Presence, State};
use super::{Engine, Gap};
use crate::expr::{ExprId, Origin, Rel};

impl Engine<'_> {
    /// The place of a key. Whether it is one that the path has touched already is asked of each.
    ///
    /// # Errors
    /// Another map of the path may be the same one under another name.
    pub(super) fn places(
        &mut self,
        mut s: State,
        on: &On<'_>,
        key: &[ExprId],
    ) -> Result<Vec<(State, usize)>, Gap> {
        let mut out = Vec::new();
        let by_prefix = on.object.kind.addressing == Addressing::Prefix;
        for i in self.kin_places(&s, on.id) {
            let Some(p) = s.places.get(i).cloned() else {
                continue;
            };
            let there = p.presence == Presence::There;
            let (one, other) = if p.object == on.id {
                (p.key, key.to_vec())
            } else if by_prefix {
                let (a, b) = (self.object_name(p.object), &on.object.name);
                return gap(format!(
                    "`{a}` and `{b}` may be one table, and it is changed"
                ));
            } else {
                (self.whole(p.object, p.key), self.whole(on.id, key.to_vec()))
            };
            if one.len() != other.len() {
                continue;
            }
            let same = self.same(&one, &other);
            let (yes, no) = self.split(s, same);
            out.extend(yes.map(|s| (s, i)));
            let Some(mut no) = no else { return Ok(out) };
            if by_prefix && there && self.changed.contains(&on.id) {
                // One prefix may match both keys.
                let one = self.unknown(
                    &mut no,
                    &format!("{}.one-prefix", on.object.name),
                    1,
                    Origin::State(on.id.0),
                );
                let (yes, other) = self.split(no, one);
                out.extend(yes.map(|s| (s, i)));
                match other {
                    Some(o) => no = o,
                    None => return Ok(out),
                }
            }
            s = no;
        }
        let at = self.add_place(&mut s, on.id, key.to_vec());
        out.push((s, at));
        Ok(out)
    }

    /// The entries of an object that keys still lead to.
    pub(super) fn live_places(&self, s: &State, object: ObjectId) -> Vec<usize> {
        let live = |p: &Place| p.object == object && p.lapsed.is_none();
        let all = s.places.iter().enumerate();
        all.filter(|(_, p)| live(p)).map(|(i, _)| i).collect()
    }

    /// An entry that the path has not touched yet.
    pub(super) fn add_place(&mut self, s: &mut State, object: ObjectId, key: Vec<ExprId>) -> usize {
        let before = s.places.iter().filter(|p| p.object == object).count();
        let stem = format!("{}#{}", self.object_name(object), before + 1);
        let turned = s
            .turned
            .iter()
            .any(|o| *o == object || self.one_map(*o, object));
        s.places.push(Place {
            turned,
            ..Place::new(object, key, stem)
        });
        s.places.len() - 1
    }

    /// The same, of all objects that may be this one under another name: a map in a map has that of its shape
    /// and, if the file declares it, its own. What no path changes needs no second name.
    pub(super) fn kin_places(&self, s: &State, object: ObjectId) -> Vec<usize> {
        let kin = |p: &Place| {
            p.object == object
                || (self.one_map(p.object, object)
                    && (self.changed.contains(&p.object) || self.changed.contains(&object)))
        };
        let all = s.places.iter().enumerate();
        all.filter(|(_, p)| p.lapsed.is_none() && kin(p))
            .map(|(i, _)| i)
            .collect()
    }

    /// Whether two objects, at least one of them a shape, can stand for one map.
    pub(super) fn one_map(&self, a: ObjectId, b: ObjectId) -> bool {
        let objects = &self.program.objects;
        let Some((a, b)) = objects.get(a.0).zip(objects.get(b.0)) else {
            return false;
        };
        match (a.is_shape(), b.is_shape()) {
            (true, true) => {
                a.kind == b.kind && a.key_bytes == b.key_bytes && a.value_bytes == b.value_bytes
            }
            (true, false) => b.fits(a),
            (false, true) => a.fits(b),
            (false, false) => false,
        }
    }

    /// A key with the number before it that says of which map it is.
    fn whole(&mut self, object: ObjectId, key: Vec<ExprId>) -> Vec<ExprId> {
        let shape = self.program.object(object).is_some_and(|o| o.is_shape());
        if shape {
            return key;
        }
        let number = self.arena.number(object.0 as u64 + 1, 32);
        let mut whole = self.split_bytes(number, 4);
        whole.extend(key);
        whole
    }

    pub(super) fn same(&mut self, a: &[ExprId], b: &[ExprId]) -> ExprId {
        let mut all = Vec::new();
        for (x, y) in a.chunks(8).zip(b.chunks(8)) {
            let (x, y) = (self.joined_bytes(x), self.joined_bytes(y));
            all.push(self.arena.compare(Rel::Eq, x, y));
        }
        self.arena.all(&all)
    }

    /// Whether an entry is there: asked once on a path. First the way where it is, then the other.
    pub(super) fn presence(
        &mut self,
        s: State,
        place: usize,
        on: &On<'_>,
    ) -> (Option<State>, Option<State>) {
        let Some(p) = s.places.get(place).cloned() else {
            return (None, None);
        };
        match p.presence {
            Presence::There => return (Some(s), None),
            Presence::Absent => return (None, Some(s)),
            Presence::Open => {}
        }
        let condition = self.is_there(&p, on);
        let (yes, no) = self.split(s, condition);
        let with = |s: Option<State>, presence| {
            s.map(|mut s| {
                if let Some(p) = s.places.get_mut(place) {
                    p.presence = presence;
                }
                s
            })
        };
        (with(yes, Presence::There), with(no, Presence::Absent))
    }

    pub(super) fn is_there(&mut self, p: &Place, on: &On<'_>) -> ExprId {
        let indexed = matches!(
            on.object.kind.addressing,
            Addressing::Index | Addressing::Lease
        );
        let elements = on.object.kind.has_all();
        let doubts = match p.doubts {
            0 => String::new(),
            n => n.to_string(),
        };
        let origin = p.origin();
        let present = format!("{}.present{doubts}", p.stem);
        if !indexed {
            return self.arena.sym(&present, 1, origin);
        }
        let index = p.key.get(on.prefix.len()..).unwrap_or(&[]);
        let index = self.joined_bytes(index);
        let mut index = self.arena.resize(index, 64);
        if on.object.kind.addressing == Addressing::Lease {
            // Numbers begin at the first that is leased.
            let first = self.arena.number(on.object.first, 64);
            index = self.arena.minus(index, first);
        }
        let capacity = if on.object.is_shape() && !on.object.one_capacity() {
            // Each map of this shape has its own.
            let capacity = self.arena.sym(&format!("{}.capacity", p.stem), 32, origin);
            self.arena.resize(capacity, 64)
        } else {
            self.arena.number(on.object.capacity, 64)
        };
        let within = self.arena.compare(Rel::Less, index, capacity);
        if elements {
            return within;
        }
        let set = self.arena.sym(&present, 1, origin);
        self.arena.all(&[within, set])
    }

    /// Ends what pointers to an entry's value are good for. The entry goes on under a place of its own,
    /// which is given.
    pub(super) fn lapse(
        &mut self,
        s: &mut State,
        place: usize,
        why: &'static str,
        presence: Presence,
    ) -> usize {
        let Some(p) = s.places.get_mut(place) else {
            return place;
        };
        let mut next = p.clone();
        p.lapsed = Some(why);
        next.presence = presence;
        next.doubts += 1;
        next.room = false;
        s.places.push(next);
        s.places.len() - 1
    }
}
