//! Which entry of an object a key leads to, and whether it is there.

use millrace_object::program::ObjectId;

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
        self.apart(&s, on)?;
        let mut out = Vec::new();
        let by_prefix = matches!(on.object.kind.name, "lpm" | "lpm_trie");
        for i in self.live_places(&s, on.id) {
            let Some(p) = s.places.get(i) else { continue };
            if p.key.len() != key.len() {
                continue;
            }
            let (other, there) = (p.key.clone(), p.presence == Presence::There);
            let same = self.same(&other, key);
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
        s.places.push(Place::new(object, key, stem));
        s.places.len() - 1
    }

    /// Maps in maps have two names: that of their shape and, if the file declares them, their own. Two
    /// accesses by different names to what may be one map are told apart by nothing here; that matters only
    /// if one of them is a change.
    fn apart(&self, s: &State, on: &On<'_>) -> Result<(), Gap> {
        for p in &s.places {
            let Some(other) = self.program.objects.get(p.object.0) else {
                continue;
            };
            if p.object == on.id || !(other.is_shape() || on.object.is_shape()) {
                continue;
            }
            let changed = self.changed.contains(&p.object) || self.changed.contains(&on.id);
            let alike = other.kind == on.object.kind
                && other.key_bytes == on.object.key_bytes
                && other.value_bytes == on.object.value_bytes;
            if changed && alike {
                return gap(format!(
                    "`{}` and `{}` may be one map, and it is changed",
                    other.name, on.object.name
                ));
            }
        }
        Ok(())
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

    fn is_there(&mut self, p: &Place, on: &On<'_>) -> ExprId {
        let indexed = !matches!(
            on.object.kind.addressing,
            Addressing::Key | Addressing::None
        );
        let elements = on.object.kind.c == "array" || on.object.kind.name == "vector";
        let doubts = match p.doubts {
            0 => String::new(),
            n => n.to_string(),
        };
        let origin = Origin::State(p.object.0);
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
        s.places.push(next);
        s.places.len() - 1
    }
}

use millrace_object::state::Addressing;
