//! How a state object stands on several workers, and what its parts are together.
//!
//! A reader outside (pinned files, the control socket, the account, `verify`) sees one object, however many
//! instances there are: [`Share::value`] and [`Share::union`] are the only places that say which.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millrace_object::contract::Relaxed;
use millrace_object::state::StateKind;
use millrace_place::{Held, Placement, Word};

use crate::module::{Instance, KeyValue, Members, Module};

/// How a state object stands on several workers, and what its parts were when packets began.
#[derive(Clone, Debug, Default)]
pub struct Share {
    /// how it is held
    pub held: Held,
    /// the declared capacity
    pub whole: u64,
    /// how parts of its numbers are one, where that is not by adding them up
    pub members: Members,
    /// what elements of a divided object held when packets began
    pub before: Before,
}

/// Elements of an object addressed by an index, as they were when packets began: the same on all workers, so that an
/// element which a worker has otherwise is that worker's. Elements that held zeros are left out.
#[derive(Clone, Debug, Default)]
pub struct Before(Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>);

impl Before {
    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<u8>>> {
        // What a panicking thread has left is as whole as any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An element is set on all workers, from outside.
    pub fn set(&self, key: &[u8], value: &[u8]) {
        let mut all = self.lock();
        if value.iter().all(|b| *b == 0) {
            all.remove(key);
        } else {
            all.insert(key.to_vec(), value.to_vec());
        }
    }

    /// What an element of this many bytes held.
    #[must_use]
    pub fn of(&self, key: &[u8], bytes: usize) -> Vec<u8> {
        let before = self.lock().get(key).cloned();
        before.unwrap_or_else(|| vec![0; bytes])
    }

    /// All elements are zero on all workers.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// All elements that held something.
    #[must_use]
    pub fn all(&self) -> Vec<KeyValue> {
        let mut all: Vec<_> = self
            .lock()
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        all.sort_unstable();
        all
    }

    /// Whether an element holds something else now.
    pub(crate) fn differs(&self, key: &[u8], value: &[u8]) -> bool {
        match self.lock().get(key) {
            Some(before) => before != value,
            None => value.iter().any(|b| *b != 0),
        }
    }
}

impl Share {
    /// Of an object that is held so, with this declared capacity.
    #[must_use]
    pub fn new(held: Held, whole: u64) -> Self {
        Self {
            held,
            whole,
            ..Self::default()
        }
    }

    /// Shares of a module's objects, in its order, under a placement.
    #[must_use]
    pub fn of(placement: &Placement, module: &Module) -> Vec<Self> {
        let objects = module.objects().iter().enumerate();
        objects
            .map(|(at, o)| Self {
                members: module.members(at),
                ..match placement.of(&o.name) {
                    Some(place) => Self::new(place.held.clone(), place.whole),
                    None => Self::new(Held::Copied, o.capacity),
                }
            })
            .collect()
    }

    /// Whether each worker has entries of its own, which other workers have not.
    #[must_use]
    pub fn divided(&self) -> bool {
        matches!(self.held, Held::Divided | Held::Alone)
    }

    /// Entries that all parts together may have before one that found its own full would have been refused on one core,
    /// too; none of an object whose parts are not full each for itself.
    #[must_use]
    pub fn bound(&self, kind: &StateKind) -> Option<u64> {
        match self.held {
            Held::Divided | Held::Alone => Some(self.whole),
            // Each worker has room for all; which entries are there may still differ.
            Held::Merged { .. } if !kind.has_all() => Some(u64::MAX),
            _ => None,
        }
    }

    /// Whether what other workers have counts as well as what the first one has.
    #[must_use]
    pub fn parted(&self) -> bool {
        self.held.parted()
    }

    /// The value under a key, of what each worker that has the entry holds, in the workers' order; none where nobody
    /// has one.
    ///
    /// Of a divided object the owner has the entry. An element of an array is there on all workers; the owner's is the
    /// one that is not as it was when packets began, and if there is none all are alike.
    #[must_use]
    pub fn value(&self, key: &[u8], parts: &[Vec<u8>]) -> Option<Vec<u8>> {
        match &self.held {
            Held::Divided | Held::Alone if parts.len() > 1 => {
                let changed = |value: &&Vec<u8>| self.before.differs(key, value);
                parts.iter().find(changed).or(parts.first()).cloned()
            }
            Held::Merged { words, .. } => sum(self.members, words, parts),
            _ => parts.first().cloned(),
        }
    }

    /// The entries of all parts, by worker, in the order in which they are first met; each key once.
    #[must_use]
    pub fn union(&self, parts: Vec<Vec<KeyValue>>) -> Vec<KeyValue> {
        if !self.parted() {
            return parts.into_iter().next().unwrap_or_default();
        }
        let mut place = HashMap::new();
        let mut all: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
        for (key, value) in parts.into_iter().flatten() {
            let at = *place.entry(key.clone()).or_insert(all.len());
            match all.get_mut(at) {
                Some((_, values)) => values.push(value),
                None => all.push((key, vec![value])),
            }
        }
        let all = all.into_iter();
        all.filter_map(|(key, values)| {
            let value = self.value(&key, &values)?;
            Some((key, value))
        })
        .collect()
    }
}

/// What the parts of a value come to. Sums wrap, as the numbers do; bytes that nobody adds to are those of the first
/// part.
fn sum(members: Members, words: &[Word], parts: &[Vec<u8>]) -> Option<Vec<u8>> {
    let (first, others) = parts.split_first()?;
    let mut all = first.clone();
    for word in words {
        let place = word.offset..word.offset.saturating_add(word.bytes);
        let of = |value: &Vec<u8>| number(value.get(place.clone()).unwrap_or_default());
        let merged = |a, b| members.merged(word.offset / 8, a, b & !below(word.low));
        let total = others.iter().map(of).fold(of(first), merged);
        for (to, from) in all
            .get_mut(place.clone())
            .unwrap_or_default()
            .iter_mut()
            .zip(total.to_le_bytes())
        {
            *to = from;
        }
    }
    Some(all)
}

/// A number in the machine's byte order.
fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |n, b| n << 8 | u64::from(*b))
}

/// The bits below one.
fn below(bit: u32) -> u64 {
    1_u64.checked_shl(bit).map_or(u64::MAX, |one| one - 1)
}

/// The value as a worker other than the first begins with it: nothing was added to its numbers yet. What else is in it,
/// packets may read, flags below a counter too.
#[must_use]
pub fn cleared(words: &[Word], value: &[u8]) -> Vec<u8> {
    let mut value = value.to_vec();
    for word in words {
        let place = word.offset..word.offset.saturating_add(word.bytes);
        let bytes = value.get_mut(place).unwrap_or_default();
        let kept = number(bytes) & below(word.low);
        for (to, from) in bytes.iter_mut().zip(kept.to_le_bytes()) {
            *to = from;
        }
    }
    value
}

/// What objects (in the module's order) begin with on a worker, after `ON_START`. What was in numbers of merged objects
/// before the first packet counts once: workers other than the first begin them at zero. What elements of divided
/// objects held is kept, to tell by which of them packets have changed. `now` in ns.
pub fn begin(instance: &mut Instance, shares: &[Share], now: u64) {
    let first = instance.worker() == 0;
    for (object, share) in shares.iter().enumerate() {
        let kind = instance.module().objects().get(object);
        let indexed = kind.is_some_and(|o| o.kind.has_all());
        // What lists no entries, as ring buffers do not, has none to begin with.
        let mut entries = || {
            instance
                .entries(object, usize::MAX, now)
                .unwrap_or_default()
        };
        match &share.held {
            Held::Merged { words, .. } if !first => {
                for (key, value) in entries() {
                    let begins = cleared(words, &value);
                    if begins != value {
                        let _ = instance.set(object, &key, &begins, now);
                    }
                }
            }
            Held::Divided | Held::Alone if first && indexed => {
                share.before.clear();
                for (key, value) in entries() {
                    share.before.set(&key, &value);
                }
            }
            _ => {}
        }
    }
}

/// Live entries of an object, all workers together.
#[derive(Debug)]
pub struct Count {
    /// where several workers may have the same key: those that were met
    keys: Option<HashSet<Vec<u8>>>,
    /// none where they cannot be counted
    sum: Option<u64>,
    /// of each worker that was asked
    pub each: Vec<Option<u64>>,
    /// what the first worker has is not all
    every: bool,
    /// what comes of full parts
    full: Relaxed,
    /// entries of a worker that are looked at, to count keys once
    most: u64,
}

impl Count {
    /// Of an object of this kind that stands so, before any worker was asked.
    #[must_use]
    pub fn new(share: &Share, kind: &StateKind) -> Self {
        let every = share.parted() && !kind.has_all();
        let several = every && matches!(share.held, Held::Merged { .. });
        Self {
            keys: several.then(HashSet::new),
            sum: Some(0),
            each: Vec::new(),
            every,
            full: kind.when_full(),
            most: u64::MAX,
        }
    }

    /// The same for a worker that has packets waiting: what has more entries is not counted where that takes a look at
    /// each of them.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// Asks a worker, at `now` (ns).
    pub fn add(&mut self, instance: &mut Instance, object: usize, now: u64) {
        if !self.each.is_empty() && !self.every {
            return;
        }
        let count = instance.count(object, now);
        self.each.push(count);
        self.sum = self.sum.zip(count).map(|(a, b)| a + b);
        let Some(keys) = &mut self.keys else { return };
        if count.is_some_and(|n| n > self.most) {
            self.sum = None;
            return;
        }
        let entries = instance.entries(object, usize::MAX, now);
        keys.extend(entries.unwrap_or_default().into_iter().map(|(key, _)| key));
    }

    /// Some worker cannot say.
    pub fn unknown(&mut self) {
        self.sum = None;
    }

    /// Takes what was found at the next worker.
    pub fn join(&mut self, next: Self) {
        if !self.each.is_empty() && !self.every {
            return;
        }
        self.each.extend(next.each);
        self.sum = self.sum.zip(next.sum).map(|(a, b)| a + b);
        if let (Some(keys), Some(more)) = (&mut self.keys, next.keys) {
            keys.extend(more);
        }
    }

    /// Entries beyond a capacity that one core would not have had: each of several workers that add to parts of an
    /// object has room for all of it.
    #[must_use]
    pub fn beyond(&self, capacity: u64) -> u64 {
        let several = self.keys.is_some();
        let entries = self.whole().filter(|_| several);
        entries.map_or(0, |n| n.saturating_sub(capacity))
    }

    /// Counts those among the relaxations.
    pub(crate) fn note(&self, relaxations: &mut BTreeMap<String, u64>, capacity: u64) {
        let times = self.beyond(capacity);
        if times > 0 {
            *relaxations.entry(self.full.name().to_owned()).or_default() += times;
        }
    }

    /// How many there are; none where they cannot be counted. A key that packets of several workers met is one entry.
    #[must_use]
    pub fn whole(&self) -> Option<u64> {
        let sum = self.sum?;
        Some(self.keys.as_ref().map_or(sum, |k| k.len() as u64))
    }
}

/// The name under which [`Latest`] is counted.
const LATEST: &str = "latest";

/// Entries of which workers hold other bytes, where packets stored them and read none of them again. One core would have
/// what was stored last of all; the first worker's are shown. Whose were stored last is not known, so that an entry
/// counts also where they are the first worker's.
#[derive(Debug, Default)]
pub struct Latest {
    /// the numbers that are summed, which are no such bytes; none where nobody looks
    words: Option<Arc<[Word]>>,
    /// each worker has an element for every index
    indexed: bool,
    asked: usize,
    /// the other bytes as they were met first; of elements that are there everywhere those that are not all zero
    beside: HashMap<Vec<u8>, Vec<u8>>,
    differing: HashSet<Vec<u8>>,
}

impl Latest {
    /// Of an object of this kind that stands so, before any worker was asked.
    #[must_use]
    pub fn new(share: &Share, kind: &StateKind) -> Self {
        let words = match &share.held {
            Held::Merged {
                words,
                latest: true,
                ..
            } => Some(words.clone()),
            Held::Own { latest: true } => Some([].into()),
            _ => None,
        };
        Self {
            words,
            indexed: kind.has_all(),
            ..Self::default()
        }
    }

    /// Asks the next worker, at `now` (ns).
    pub fn add(&mut self, instance: &mut Instance, object: usize, now: u64) {
        if self.words.is_some() {
            let entries = instance.entries(object, usize::MAX, now);
            self.take(entries.unwrap_or_default());
        }
    }

    fn take(&mut self, entries: Vec<KeyValue>) {
        let Some(words) = &self.words else { return };
        for (key, value) in entries {
            let beside = cleared(words, &value);
            let zero = beside.iter().all(|b| *b == 0);
            match self.beside.get(&key) {
                Some(first) if *first == beside => {}
                Some(_) => {
                    self.differing.insert(key);
                }
                None if self.indexed && zero => {}
                None if self.indexed && self.asked > 0 => {
                    self.differing.insert(key);
                }
                None => {
                    self.beside.insert(key, beside);
                }
            }
        }
        self.asked += 1;
    }

    /// Counts them among the relaxations.
    pub(crate) fn note(&self, relaxations: &mut BTreeMap<String, u64>) {
        let entries = self.differing.len() as u64;
        if entries > 0 {
            *relaxations.entry(LATEST.to_owned()).or_default() += entries;
        }
    }
}

#[cfg(test)]
mod tests {
    use millrace_object::state::{percpu_array, percpu_hash};

    use super::*;

    fn share(held: Held) -> Share {
        Share::new(held, 9)
    }

    fn word(offset: usize, bytes: usize) -> Word {
        Word {
            offset,
            bytes,
            low: 0,
        }
    }

    #[test]
    fn sums_wrap_within_their_word() {
        let words = [word(0, 4), word(8, 2)];
        let one = vec![0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 0, 7, 8];
        let two = vec![2, 0, 0, 0, 9, 9, 9, 9, 0xff, 0xff, 9, 9];
        let merged = share(Held::merged(&words));
        let sum = merged.value(&[], &[one.clone(), two, vec![0; 12]]);
        assert_eq!(sum, Some(vec![1, 0, 0, 0, 1, 2, 3, 4, 4, 0, 7, 8]));
        assert_eq!(merged.value(&[], &[]), None);
        // A value that is shorter than its words is left as it is.
        let short = merged.value(&[], &[vec![1; 3], vec![1; 3]]);
        assert_eq!(short, Some(vec![1; 3]));
        let wordless = share(Held::merged(&[])).value(&[], std::slice::from_ref(&one));
        assert_eq!(wordless, Some(one));
    }

    /// As xdp-filter counts: `*value += 1 << 6` beside flags that its user sets.
    #[test]
    fn flags_below_a_counter_are_everybodys_and_count_once() {
        let words = [Word {
            low: 6,
            ..word(0, 8)
        }];
        let value = |n: u64| n.to_le_bytes().to_vec();
        assert_eq!(cleared(&words, &value(7 << 6 | 5)), value(5));
        let merged = share(Held::merged(&words));
        let parts = [value(7 << 6 | 5), value(2 << 6 | 5), value(5)];
        assert_eq!(merged.value(&[], &parts), Some(value(9 << 6 | 5)));
        let never = [Word {
            low: 64,
            ..word(0, 8)
        }];
        assert_eq!(cleared(&never, &value(u64::MAX)), value(u64::MAX));
    }

    fn list(list: &[(u8, u8)]) -> Vec<KeyValue> {
        list.iter().map(|(k, v)| (vec![*k], vec![*v])).collect()
    }

    #[test]
    fn a_union_has_each_key_once() {
        let parts = || vec![list(&[(3, 1), (1, 2)]), list(&[(1, 5), (2, 7)])];
        let merged = share(Held::merged(&[word(0, 1)]));
        assert_eq!(merged.union(parts()), list(&[(3, 1), (1, 7), (2, 7)]));
        for one_says_all in [Held::Copied, Held::Own { latest: true }, Held::Locked] {
            assert_eq!(share(one_says_all).union(parts()), list(&[(3, 1), (1, 2)]));
        }
        let apart = vec![list(&[(3, 1)]), list(&[]), list(&[(2, 0)])];
        assert_eq!(share(Held::Divided).union(apart), list(&[(3, 1), (2, 0)]));
    }

    #[test]
    fn what_was_stored_last_counts_where_workers_hold_something_else() {
        let counted = |share: &Share, kind: &StateKind, parts: &[&[(u8, [u8; 2])]]| {
            let mut latest = Latest::new(share, kind);
            for part in parts {
                let part = part.iter();
                latest.take(part.map(|(k, v)| (vec![*k], v.to_vec())).collect());
            }
            let mut relaxations = BTreeMap::new();
            latest.note(&mut relaxations);
            relaxations.get("latest").copied()
        };
        let merged = share(Held::Merged {
            words: [word(0, 1)].into(),
            latest: true,
            staleness: None,
        });
        // The first byte is a number, and the second was stored.
        let keyed: [&[(u8, [u8; 2])]; 3] = [
            &[(1, [5, 7]), (2, [0, 3])],
            &[(1, [6, 7]), (3, [1, 1])],
            &[(2, [0, 4])],
        ];
        assert_eq!(counted(&merged, &percpu_hash::KIND, &keyed), Some(1));
        let own = share(Held::Own { latest: true });
        assert_eq!(counted(&own, &percpu_hash::KIND, &keyed), Some(2));
        // An element is there on all workers, and zero where none of their packets stored anything.
        let elements: [&[(u8, [u8; 2])]; 2] = [
            &[(0, [1, 0]), (1, [0, 9]), (2, [3, 4])],
            &[(0, [2, 8]), (1, [0, 0]), (2, [5, 4])],
        ];
        assert_eq!(counted(&merged, &percpu_array::KIND, &elements), Some(2));
        for not in [
            share(Held::merged(&[word(0, 1)])),
            share(Held::Own { latest: false }),
        ] {
            assert_eq!(counted(&not, &percpu_array::KIND, &elements), None);
        }
    }

    #[test]
    fn an_element_is_that_of_the_worker_that_changed_it() {
        let share = share(Held::Divided);
        let before = &share.before;
        before.set(&[1], &[7]);
        let parts = || {
            vec![
                list(&[(0, 0), (1, 7), (2, 5), (3, 0)]),
                list(&[(0, 0), (1, 0), (2, 0), (3, 0)]),
                list(&[(0, 4), (1, 7), (2, 0), (3, 0)]),
            ]
        };
        assert_eq!(
            share.union(parts()),
            list(&[(0, 4), (1, 0), (2, 5), (3, 0)])
        );
        // Set from outside on all, then changed by its owner.
        before.set(&[2], &[9]);
        let value = |values: [u8; 3]| share.value(&[2], &values.map(|v| vec![v]));
        assert_eq!(value([9, 9, 9]), Some(vec![9]));
        assert_eq!(value([9, 8, 9]), Some(vec![8]));
        before.clear();
        assert_eq!(value([0, 9, 0]), Some(vec![9]));
    }
}
