//! Maps of maps: the numbers that name maps, and the maps under their keys.

use millrace_object::program::{ObjectId, StateObject};

use super::Machine;

/// Added to the number of an object, so that its address is not null.
const ADDRESS: u64 = 1 << 63;

impl<'a> Machine<'a> {
    /// Puts a new, empty map under a key of a map of maps, or a map of the program's. The map's number; none
    /// if `holder` holds no maps.
    pub fn nest(
        &mut self,
        holder: ObjectId,
        key: &[u8],
        map: Option<ObjectId>,
    ) -> Option<ObjectId> {
        let program = self.program;
        let shape = program.objects.get(holder.0)?.shape()?;
        let map = match map {
            Some(map) => map,
            None => {
                let exact = self.exact.as_mut()?;
                exact.made.push(shape);
                let made = ObjectId(program.objects.len() + exact.made.len() - 1);
                let like = StateObject {
                    nesting: None,
                    timer: None,
                    ..program.objects.get(shape.0)?.clone()
                };
                self.create(made, &like);
                made
            }
        };
        let inner = self.exact.as_mut()?.inner.entry(holder).or_default();
        inner.insert(key.to_vec(), map);
        Some(map)
    }

    /// Takes the map away that is under a key of a map of maps.
    pub fn leave(&mut self, holder: ObjectId, key: &[u8]) {
        if let Some(inner) = self.exact.as_mut().and_then(|e| e.inner.get_mut(&holder)) {
            inner.remove(key);
        }
    }

    /// Sets an entry of a map, as the host would.
    pub fn set_entry(&mut self, map: ObjectId, key: &[u8], value: &[u8]) {
        self.set(map, key, value);
    }

    /// Every map in a map of maps, with its key.
    #[must_use]
    pub fn inner_maps(&self, holder: ObjectId) -> Vec<(Vec<u8>, ObjectId)> {
        let inner = self.exact.as_ref().and_then(|e| e.inner.get(&holder));
        let pair = |(key, map): (&Vec<u8>, &ObjectId)| (key.clone(), *map);
        inner.into_iter().flatten().map(pair).collect()
    }

    /// The map under a key of a map of maps.
    #[must_use]
    pub fn inner(&self, holder: ObjectId, key: &[u8]) -> Option<ObjectId> {
        self.exact.as_ref()?.inner.get(&holder)?.get(key).copied()
    }

    /// The object that a number in a register names.
    pub(super) fn named(number: u64) -> ObjectId {
        ObjectId((number & !ADDRESS) as usize)
    }

    /// The number for an object in a register.
    pub(super) fn pointer(map: ObjectId) -> u64 {
        map.0 as u64 | ADDRESS
    }

    /// Declaration of an object; of one that was made, its shape.
    pub(super) fn declaration(&self, id: ObjectId) -> Option<&'a StateObject> {
        let objects = &self.program.objects;
        objects.get(id.0).or_else(|| {
            let made = &self.exact.as_ref()?.made;
            objects.get(made.get(id.0 - objects.len())?.0)
        })
    }
}
