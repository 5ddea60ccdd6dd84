//! The copy of another machine's buckets: rows by their places, of which entries of a bucket are made when it is this machine's.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::row::{Kind, Reader, RowError};
use crate::module::{Module, Rest, Stamped};
use crate::moved::Contents;

/// No bucket: there is nothing at the place.
const NONE: u32 = u32::MAX;

/// What is copied: the objects of the function, which are those of the other machine.
#[derive(Clone)]
pub struct Content {
    /// the function
    pub module: Arc<Module>,
    /// which of its objects have parts
    pub contents: Contents,
    /// workers of each machine
    pub workers: usize,
    /// how many buckets there are
    pub buckets: u32,
}

impl Content {
    /// An object of which no worker notes what changes, if there is one: there are no copies of it.
    #[must_use]
    pub fn unnoted(&self) -> Option<&str> {
        let of = &self.contents;
        let lists = [&of.tables, &of.elements, &of.leases];
        let mut objects = lists.into_iter().flat_map(|list| list.iter());
        let object = objects.find(|object| !self.module.notes(**object))?;
        let info = self.module.objects().get(*object);
        info.map(|info| info.name.as_str())
    }
}

/// What is at a place, beside its bytes.
#[derive(Clone, Copy)]
struct Head {
    bucket: u32,
    /// of the bucket, when it was filed
    age: u32,
    stamp: u64,
}

const NOTHING: Head = Head {
    bucket: NONE,
    age: 0,
    stamp: 0,
};

/// How often each bucket began anew: what was filed before is there no more, without a look at all places.
struct Buckets {
    /// by bucket: its age, and entries
    each: Vec<(u32, u64)>,
    /// entries of all
    entries: u64,
}

impl Buckets {
    /// Whether there is something.
    fn has(&self, head: &Head) -> bool {
        let bucket = self.each.get(head.bucket as usize);
        bucket.is_some_and(|(age, _)| *age == head.age)
    }

    /// An entry has gone, if there was one.
    fn remove(&mut self, head: &Head) {
        if self.has(head)
            && let Some((_, entries)) = self.each.get_mut(head.bucket as usize)
        {
            *entries -= 1;
            self.entries -= 1;
        }
    }

    /// An entry of a bucket has come.
    fn add(&mut self, bucket: u32, stamp: u64) -> Head {
        let Some((age, entries)) = self.each.get_mut(bucket as usize) else {
            return NOTHING;
        };
        *entries += 1;
        self.entries += 1;
        let age = *age;
        Head { bucket, age, stamp }
    }

    /// Forgets what there is of a bucket.
    fn renew(&mut self, bucket: u64) {
        let bucket = usize::try_from(bucket).ok();
        if let Some((age, entries)) = bucket.and_then(|b| self.each.get_mut(b)) {
            *age = age.wrapping_add(1);
            self.entries -= std::mem::take(entries);
        }
    }
}

/// The places of one worker's object.
#[derive(Default)]
struct Places {
    /// by place: what is there
    heads: Vec<Head>,
    /// key and value of each
    bytes: Vec<u8>,
}

/// One worker of the other machine.
#[derive(Default)]
struct Part {
    /// by object
    objects: BTreeMap<usize, Places>,
    /// version of the table under which the copy began, and under which it was whole
    begun: u64,
    whole: u64,
}

/// A copy of another machine's buckets.
pub struct Mirror {
    of: Content,
    parts: Vec<Part>,
    buckets: Buckets,
    /// rows for which there was no room
    full: u64,
    /// by bucket, once the copy has ended
    left: Option<BTreeMap<u32, Vec<(usize, Stamped)>>>,
}

impl Mirror {
    /// An empty one.
    #[must_use]
    pub fn new(of: &Content) -> Self {
        Self {
            of: of.clone(),
            parts: (0..of.workers.max(1)).map(|_| Part::default()).collect(),
            buckets: Buckets {
                each: vec![(0, 0); of.buckets as usize],
                entries: 0,
            },
            full: 0,
            left: None,
        }
    }

    /// Forgets all, as for a connection that begins.
    pub fn begin_anew(&mut self) {
        *self = Self::new(&self.of.clone());
    }

    /// Entries that it has.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.buckets.entries
    }

    /// Rows for which there was no room here: the other machine has room for more.
    #[must_use]
    pub fn full(&self) -> u64 {
        self.full
    }

    /// Whether all of its buckets are here, but for what the other machine did since its last rows.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.parts.iter().all(|p| p.begun > 0 && p.whole == p.begun)
    }

    /// Files the rows of a frame; how many there were. Once the copy has ended, none.
    ///
    /// # Errors
    /// They are no rows of this function. Those before have been filed; the copy is to be thrown away.
    pub fn apply(&mut self, frame: &[u8]) -> Result<u64, RowError> {
        let mut reader = Reader(frame);
        let (worker, clock) = reader.begin()?;
        let workers = self.parts.len();
        let part = self.parts.get_mut(worker);
        let part = part.ok_or(RowError::Worker { worker, workers })?;
        if self.left.is_some() {
            return Ok(0);
        }
        let mut rows = 0;
        while !reader.is_empty() {
            let (object, kind) = reader.head()?;
            match kind {
                Kind::Begins => (part.begun, part.whole) = (reader.number()?, 0),
                Kind::Whole => part.whole = reader.number()?,
                Kind::Void => {
                    for places in std::mem::take(part).objects.values() {
                        places.heads.iter().for_each(|h| self.buckets.remove(h));
                    }
                }
                // Of all workers: which of them had it is not the other machine's to know.
                Kind::Anew => self.buckets.renew(reader.number()?),
                Kind::Nothing | Kind::Value | Kind::Entry => {
                    rows += 1;
                    let found = Filed::read(&self.of, (object, kind, clock), &mut reader)?;
                    let places = part.objects.entry(found.object).or_default();
                    if !places.file(&found, &mut self.buckets) {
                        self.full += 1;
                    }
                }
            }
        }
        Ok(rows)
    }

    /// The entries of a bucket, the one that was refreshed last behind the others. The copy ends with it: no row is filed any more.
    pub fn take(&mut self, bucket: u32) -> Vec<(usize, Stamped)> {
        if self.left.is_none() {
            let mut left = BTreeMap::<u32, Vec<(usize, Stamped)>>::new();
            for part in std::mem::take(&mut self.parts) {
                for (object, places) in part.objects {
                    let key = self.of.module.objects().get(object);
                    places.each(
                        (key.map_or(0, |o| o.key_bytes), &self.buckets),
                        |bucket, entry| {
                            left.entry(bucket).or_default().push((object, entry));
                        },
                    );
                }
            }
            left.values_mut()
                .for_each(|all| all.sort_by_key(|(_, entry)| entry.stamp));
            self.left = Some(left);
        }
        let left = self.left.as_mut();
        left.and_then(|left| left.remove(&bucket))
            .unwrap_or_default()
    }
}

/// What a row says of a place.
struct Filed<'a> {
    object: usize,
    place: u64,
    /// places and bytes of an entry, as the function here has them
    room: (u64, usize, usize),
    what: What<'a>,
}

enum What<'a> {
    Nothing,
    Value(u64, &'a [u8]),
    Entry(u32, u64, [&'a [u8]; 2]),
}

impl<'a> Filed<'a> {
    fn read(
        of: &Content,
        (object, kind, clock): (u64, Kind, u64),
        reader: &mut Reader<'a>,
    ) -> Result<Self, RowError> {
        let known = usize::try_from(object).map_err(|_| RowError::Object { object })?;
        let Contents {
            tables,
            elements,
            leases,
            buckets,
        } = &of.contents;
        let keyed = tables.contains(&known) || elements.contains(&known);
        let info = of.module.objects().get(known);
        let info = info.filter(|_| keyed || leases.contains(&known));
        let info = info.ok_or(RowError::Object { object })?;
        let object = known;
        let place = reader.number()?;
        let what = match kind {
            Kind::Entry => {
                let bucket = reader.number()?;
                let stamp = reader.stamp(clock)?;
                let key = reader.bytes(info.key_bytes)?;
                let value = reader.bytes(info.value_bytes)?;
                let right = u32::try_from(bucket).ok().filter(|b| *b < of.buckets);
                // Which bucket a number comes home to only the allocator knows.
                let right = right.filter(|b| !keyed || buckets.entry(object, key) == Some(*b));
                let bucket = right.ok_or(RowError::Bucket { object, bucket })?;
                What::Entry(bucket, stamp, [key, value])
            }
            Kind::Value => What::Value(reader.stamp(clock)?, reader.bytes(info.value_bytes)?),
            _ => What::Nothing,
        };
        Ok(Self {
            object,
            place,
            room: (info.capacity, info.key_bytes, info.value_bytes),
            what,
        })
    }
}

impl Places {
    /// Files what a row says; whether there is room for it.
    fn file(&mut self, row: &Filed<'_>, buckets: &mut Buckets) -> bool {
        let (capacity, key_bytes, value_bytes) = row.room;
        let stride = key_bytes + value_bytes;
        let place = usize::try_from(row.place).unwrap_or(usize::MAX);
        if row.place >= capacity {
            return false;
        }
        if let What::Entry(..) = row.what
            && self.heads.len() <= place
        {
            self.heads.resize(place + 1, NOTHING);
            self.bytes.resize((place + 1) * stride, 0);
        }
        let head = self.heads.get_mut(place);
        let at = place * stride;
        match (&row.what, head) {
            (What::Nothing, None) => {}
            (What::Nothing, Some(head)) => buckets.remove(&std::mem::replace(head, NOTHING)),
            (What::Value(stamp, value), Some(head)) if buckets.has(head) => {
                head.stamp = *stamp;
                if let Some(to) = self.bytes.get_mut(at + key_bytes..at + stride) {
                    to.copy_from_slice(value);
                }
            }
            // The entry had no room.
            (What::Value(..), _) | (What::Entry(..), None) => return false,
            (What::Entry(bucket, stamp, [key, value]), Some(head)) => {
                buckets.remove(head);
                *head = buckets.add(*bucket, *stamp);
                for (from, range) in [
                    (key, at..at + key_bytes),
                    (value, at + key_bytes..at + stride),
                ] {
                    if let Some(to) = self.bytes.get_mut(range) {
                        to.copy_from_slice(from);
                    }
                }
            }
        }
        true
    }

    /// All entries, with their buckets.
    fn each(&self, (key_bytes, buckets): (usize, &Buckets), mut to: impl FnMut(u32, Stamped)) {
        if self.heads.is_empty() {
            return;
        }
        let stride = self.bytes.len() / self.heads.len();
        for (at, head) in self.heads.iter().enumerate() {
            let bytes = self.bytes.get(at * stride..(at + 1) * stride);
            let parts = bytes.and_then(|bytes| bytes.split_at_checked(key_bytes));
            if let Some((key, value)) = parts.filter(|_| buckets.has(head)) {
                to(
                    head.bucket,
                    Stamped {
                        key: key.to_vec(),
                        value: value.to_vec(),
                        stamp: head.stamp,
                        rest: Rest::refreshed(at as u64),
                    },
                );
            }
        }
    }
}
