//! State that is tried, and changes to it.

use std::collections::BTreeMap;

use millrace_object::program::{ObjectId, Program, StateObject};
use millrace_reference::index_key;
use rand::{Rng, RngExt};

use super::words::Words;
use crate::trial::{Case, Seed};

/// Elements of an array that are filled at most.
const ELEMENTS: u64 = 4096;
/// Keys that are put into a map at once, at most.
const KEYS: usize = 256;
/// Limit of all tables of a draft, bytes: the program's author chose how many there are and how long values
/// are.
const ROOM: u64 = 1 << 20;
/// Overhead of an entry beside its value, bytes.
const ENTRY: u64 = 64;

/// Whether an object is one whose entries are put there at will.
pub(super) fn fills(program: &Program, object: ObjectId) -> bool {
    program.objects.get(object.0).is_some_and(|o| {
        let keyed = o.kind.is_table() && !o.kind.per_cpu && o.nesting.is_none();
        (keyed || is_elements(o)) && o.value_bytes > 0
    })
}

fn is_elements(o: &StateObject) -> bool {
    o.kind.has_all() && !o.kind.per_cpu && o.nesting.is_none()
}

/// The entries of the objects that change, and what is put into state besides.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Draft {
    tables: BTreeMap<usize, BTreeMap<Vec<u8>, Vec<u8>>>,
    rest: Vec<Seed>,
}

/// Entries of an object that are filled at most, where this many objects are.
fn most(o: &StateObject, objects: usize) -> u64 {
    let room = ROOM / objects.max(1) as u64;
    (room / (u64::from(o.value_bytes) + ENTRY)).clamp(1, ELEMENTS)
}

impl Draft {
    /// Content that a case puts there.
    pub(super) fn of(case: &Case, altered: &[ObjectId]) -> Self {
        let mut tables: BTreeMap<usize, BTreeMap<Vec<u8>, Vec<u8>>> = BTreeMap::new();
        for o in altered {
            tables.entry(o.0).or_default();
        }
        let mut rest = Vec::new();
        for seed in &case.seeds {
            match seed {
                Seed::Entry { object, key, value } if altered.contains(object) => {
                    let table = tables.entry(object.0).or_default();
                    table.insert(key.clone(), value.clone());
                }
                // What fills a table leaves no room for what is tried.
                Seed::Full { object, .. } if altered.contains(object) => {}
                other => rest.push(other.clone()),
            }
        }
        Self { tables, rest }
    }

    /// These tables with all else that a case puts there.
    pub(super) fn with(&self, case: &Case, altered: &[ObjectId]) -> Self {
        let rest = Draft::of(case, altered).rest;
        Self {
            tables: self.tables.clone(),
            rest,
        }
    }

    /// All of it, in the order in which it is put there.
    pub(super) fn seeds(&self) -> impl Iterator<Item = Seed> {
        let entries = self.tables.iter().flat_map(|(object, table)| {
            table.iter().map(|(key, value)| Seed::Entry {
                object: ObjectId(*object),
                key: key.clone(),
                value: value.clone(),
            })
        });
        entries.chain(self.rest.iter().cloned())
    }

    /// All columns anew.
    pub(super) fn fill(
        &mut self,
        program: &Program,
        altered: &[ObjectId],
        words: &Words,
        random: &mut impl Rng,
    ) {
        for elements in [true, false] {
            for object in altered {
                let Some(o) = program.objects.get(object.0) else {
                    continue;
                };
                match (elements, is_elements(o)) {
                    (true, true) => {
                        for _ in 0..o.value_bytes.div_ceil(4) {
                            self.column(*object, o, words, random);
                        }
                    }
                    (false, false) => self.keys(*object, o, words, random),
                    _ => {}
                }
            }
        }
    }

    /// One change.
    pub(super) fn change(
        &mut self,
        program: &Program,
        altered: &[ObjectId],
        words: &Words,
        random: &mut impl Rng,
    ) {
        let Some(object) = one(altered, random).copied() else {
            return;
        };
        let Some(o) = program.objects.get(object.0) else {
            return;
        };
        match (is_elements(o), random.random_range(0..3)) {
            (true, 0 | 1) => self.column(object, o, words, random),
            (false, 0) => self.keys(object, o, words, random),
            (false, 1) => self.key(object, o, words, random),
            _ => self.word(object, o, words, random),
        }
    }

    /// One word of all elements, or of the first ones.
    fn column(&mut self, object: ObjectId, o: &StateObject, words: &Words, random: &mut impl Rng) {
        let rows = match random.random_range(0..4) {
            0 => random.random_range(1..=4),
            1 => random.random_range(1..=o.capacity.max(1)),
            2 => o.capacity.saturating_sub(1),
            _ => o.capacity,
        };
        let at = 4 * random.random_range(0..o.value_bytes.div_ceil(4)) as usize;
        let first = self.pick(words, random);
        let how = random.random_range(0..4);
        for n in 0..rows.min(o.capacity).min(most(o, self.tables.len())) {
            let word = match how {
                0 => first,
                1 => first.wrapping_add(n as u32),
                2 => first.wrapping_sub(n as u32),
                _ => self.pick(words, random),
            };
            if let Some(key) = index_key(n, o.key_bytes) {
                self.put(object, o, key, at, word);
            }
        }
    }

    /// One word of one entry.
    fn word(&mut self, object: ObjectId, o: &StateObject, words: &Words, random: &mut impl Rng) {
        let key = if is_elements(o) {
            let n = match random.random_range(0..4) {
                0 => 0,
                1 => o.capacity.saturating_sub(1),
                _ => random.random_range(0..o.capacity.max(1)),
            };
            index_key(n, o.key_bytes)
        } else {
            let table = self.tables.get(&object.0);
            let n = table.map_or(0, BTreeMap::len);
            let n = (n > 0).then(|| random.random_range(0..n));
            n.and_then(|n| table?.keys().nth(n).cloned())
        };
        let at = 4 * random.random_range(0..o.value_bytes.div_ceil(4)) as usize;
        let word = self.pick(words, random);
        if let Some(key) = key {
            self.put(object, o, key, at, word);
        }
    }

    /// The keys of a map: words that stand in the tables, or none.
    fn keys(&mut self, object: ObjectId, o: &StateObject, words: &Words, random: &mut impl Rng) {
        self.tables.entry(object.0).or_default().clear();
        let share = random.random_range(0..=4);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        if o.key_bytes == 4 {
            let others = self.tables.iter().filter(|(i, _)| **i != object.0);
            let all = others.flat_map(|(_, t)| t.values().flat_map(|v| v.chunks_exact(4)));
            keys.extend(all.map(<[u8]>::to_vec));
            keys.sort_unstable();
            keys.dedup();
            keys.truncate(KEYS);
        }
        for _ in 0..random.random_range(0..4) {
            keys.push(self.made(o.key_bytes, words, random));
        }
        let mut room = o.capacity.min(most(o, self.tables.len()));
        for key in keys {
            if room > 0 && random.random_range(0..4) < share {
                let word = self.pick(words, random);
                self.put(object, o, key, 0, word);
                room -= 1;
            }
        }
    }

    /// One key of a map more or less.
    fn key(&mut self, object: ObjectId, o: &StateObject, words: &Words, random: &mut impl Rng) {
        let table = self.tables.entry(object.0).or_default();
        let n = table.len();
        if n > 0 && (n as u64 >= o.capacity || random.random()) {
            let key = table.keys().nth(random.random_range(0..n)).cloned();
            if let Some(key) = key {
                table.remove(&key);
            }
            return;
        }
        let key = self.made(o.key_bytes, words, random);
        let word = self.pick(words, random);
        self.put(object, o, key, 0, word);
    }

    fn made(&self, bytes: u32, words: &Words, random: &mut impl Rng) -> Vec<u8> {
        let mut key = Vec::new();
        while key.len() < bytes as usize {
            key.extend(self.pick(words, random).to_le_bytes());
        }
        key.truncate(bytes as usize);
        key
    }

    fn put(&mut self, object: ObjectId, o: &StateObject, key: Vec<u8>, at: usize, word: u32) {
        let table = self.tables.entry(object.0).or_default();
        let value = table
            .entry(key)
            .or_insert_with(|| vec![0; o.value_bytes as usize]);
        let bytes = word.to_le_bytes();
        for (slot, byte) in value.iter_mut().skip(at).take(4).zip(bytes) {
            *slot = byte;
        }
    }

    /// A number that means something: one of the program's, or one that stands in the tables, or next to it.
    fn pick(&self, words: &Words, random: &mut impl Rng) -> u32 {
        if random.random_range(0..3) > 0 {
            return words.one(random);
        }
        let table = one_of(self.tables.values(), self.tables.len(), random);
        let value = table.and_then(|t| one_of(t.values(), t.len(), random));
        let found = value.and_then(|v| {
            let words = v.chunks_exact(4);
            one_of(words, v.len() / 4, random)?.first_chunk().copied()
        });
        let found = found.map_or(0, u32::from_le_bytes);
        match random.random_range(0..4) {
            0 => found.wrapping_add(1),
            1 => found.wrapping_sub(1),
            _ => found,
        }
    }
}

fn one<'a, T>(all: &'a [T], random: &mut impl Rng) -> Option<&'a T> {
    one_of(all.iter(), all.len(), random)
}

fn one_of<T>(mut all: impl Iterator<Item = T>, n: usize, random: &mut impl Rng) -> Option<T> {
    let at = (n > 0).then(|| random.random_range(0..n))?;
    all.nth(at)
}

#[cfg(test)]
mod tests {
    use millrace_object::state::array;

    use super::*;

    #[test]
    fn long_values_are_filled_as_far_as_there_is_room() {
        let of = |value_bytes| StateObject {
            value_bytes,
            ..array()
        };
        assert_eq!(most(&of(4), 1), ELEMENTS);
        for (bytes, objects) in [(4, 16), (4096, 1), (1 << 16, 4)] {
            let all = most(&of(bytes), objects) * u64::from(bytes) * objects as u64;
            assert!(all <= ROOM, "{bytes} {objects}: {all}");
        }
        // One at least: a draft without any would change nothing.
        assert_eq!(most(&of(1 << 24), 1), 1);
    }

    fn array() -> StateObject {
        StateObject::new("table", &array::KIND, 4, 4, 1 << 20)
    }
}
