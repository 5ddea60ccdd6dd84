//! A worker's part in copies: tells what has changed of its buckets.

use std::sync::Arc;

use super::row::{self, Kind};
use super::{Copies, ELSEWHERE, FULL, Following, PERIOD};
use crate::classes::Classes;
use crate::classes::away::Whose;
use crate::clock;
use crate::module::{Changed, ChangedEntry, Instance};
use crate::worker::Moves;

/// Places that are looked at after a burst for what was not told: some microseconds.
const STEP: usize = 1024;
/// Rows after which a worker goes back to its packets.
const MOST: u64 = 4096;
/// Rounds in which a worker that ends tells what is left: as many as a million places take.
const LAST: u32 = 1024;
/// Bytes of room from which on a connection that had none is told what it has missed: several frames.
const RESUMES: usize = 8 * FULL;
/// A worker tells at most for one in so many parts of its time; where there is more to tell, later, and each place once for more of its changes.
const SHARE: u64 = 9;
/// Bytes of a row before what stands in it of an entry, about.
const HEAD: usize = 8;
/// No step of connections: they are looked for again.
const NEVER: u64 = u64::MAX;
/// Periods after which another [`Following`] is taken up, so that many changes of it begin few searches.
const REST: u32 = 16;

/// What the machine that keeps a copy was told of a place.
#[derive(Clone, Copy, Default)]
struct Told {
    /// the connection; 0: nothing
    to: u32,
    bucket: u16,
    /// what changed last was not told there: it may have something older, or nothing
    late: bool,
    /// the bucket is that of the key which had the place when it was looked at last
    hashed: bool,
}

/// Which places are looked at, and from which one on.
#[derive(Clone, Copy)]
struct Search {
    /// all of which not was told what should have been; else those that were deferred
    all: bool,
    object: usize,
    place: usize,
}

/// A worker's.
pub struct Copier {
    copies: Arc<dyn Copies>,
    moves: Moves,
    worker: usize,
    /// of the connections
    step: u64,
    following: Arc<Following>,
    /// by bucket: arrivals that were told
    arrivals: Vec<u32>,
    /// objects that are copied, and what was told of their places
    told: Vec<(usize, Vec<Told>)>,
    search: Option<Search>,
    /// by connection: bytes that it takes
    room: Vec<(u32, usize)>,
    /// connections that were not told something for want of room since it was looked for last
    late: Vec<u32>,
    /// frames that are being written, with their connections and rows
    frames: Vec<(u32, Vec<u8>, u64)>,
    /// ticks of the clock at which it tells again, and how many make a period
    next: u64,
    period: u64,
    periods: u32,
    /// packets came since
    busy: bool,
    /// how many versions of the function ran before the one whose places were told
    generation: u64,
    /// another one runs; at which step of the connections it was looked for, of which there are no copies before
    other: Option<u64>,
}

/// What was told of the places of a version: nothing yet.
fn untold(moves: &Moves) -> Vec<(usize, Vec<Told>)> {
    let contents = &moves.contents;
    let lists = [&contents.tables, &contents.elements, &contents.leases];
    let objects = lists.into_iter().flat_map(|list| list.iter());
    let noted = objects.filter(|o| moves.module.notes(**o));
    let places = |o: &usize| {
        let info = moves.module.objects().get(*o);
        info.map_or(0, |info| info.capacity)
    };
    noted
        .map(|o| (*o, vec![Told::default(); places(o) as usize]))
        .collect()
}

impl Copier {
    /// Of worker `worker`.
    pub fn new(copies: &Arc<dyn Copies>, moves: &Moves, worker: usize) -> Self {
        Self {
            copies: copies.clone(),
            worker,
            step: 0,
            following: Arc::default(),
            arrivals: vec![0; moves.classes.count()],
            told: untold(moves),
            search: None,
            room: Vec::new(),
            late: Vec::new(),
            frames: Vec::new(),
            next: 0,
            period: period(),
            periods: 0,
            busy: false,
            generation: 0,
            other: None,
            moves: moves.clone(),
        }
    }

    /// Packets came.
    #[inline]
    pub fn received(&mut self) {
        self.busy = true;
    }

    /// Whether there is something that it has not told yet.
    #[inline]
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let owes = self.search.is_some() || !self.late.is_empty();
        let taken_up = self.other.unwrap_or(self.step);
        self.busy || owes || self.copies.step() != taken_up
    }

    /// Tells what there is to tell, between two bursts, where a period has passed.
    #[inline]
    pub fn act(&mut self, instance: &mut Instance) {
        let now = clock::ticks();
        if now >= self.next {
            self.next = now + self.period;
            self.tell(instance);
            let spent = clock::ticks().saturating_sub(now);
            self.next = self.next.max(now + spent * SHARE);
        }
    }

    /// The worker ends: tells what is left, as far as there is room.
    pub fn end(&mut self, instance: &mut Instance) {
        self.busy = true;
        for _ in 0..LAST {
            if !self.is_busy() {
                return;
            }
            self.tell(instance);
        }
    }

    #[cold]
    fn tell(&mut self, instance: &mut Instance) {
        if !self.tells_of(instance) {
            self.busy = false;
            return;
        }
        self.periods = self.periods.wrapping_add(1);
        if self.periods.is_multiple_of(REST) && self.copies.step() != self.step {
            self.follow();
        }
        self.room.clear();
        self.copies.room(&mut self.room);
        self.resume();
        self.search(instance);
        let (mut left, mut deferred) = (0, 0);
        let clock = clock::now();
        for at in 0..self.told.len() {
            let Some((object, mut told)) = self.told.get_mut(at).map(std::mem::take) else {
                continue;
            };
            let telling = &mut Telling {
                classes: &self.moves.classes,
                contents: &self.moves.contents,
                following: &self.following,
                frames: &mut self.frames,
                room: &mut self.room,
                late: &mut self.late,
                deferred: &mut deferred,
                worker: self.worker,
                object,
                clock,
            };
            // An object that has no such function was left out.
            let done = instance.changes(object, 0..0, MOST, &mut |changed| {
                telling.change(&changed, &mut told);
            });
            left += done.ok().flatten().unwrap_or(0);
            if let Some(place) = self.told.get_mut(at) {
                *place = (object, told);
            }
        }
        if deferred > 0 {
            self.copies.deferred(deferred);
        }
        self.busy = left > 0;
        if left > 0 {
            // As soon as it may: there is more than a period's.
            self.next = 0;
        } else if self.search.is_some_and(|s| s.object >= self.told.len()) {
            self.search = None;
            let version = self.following.version;
            let late = std::mem::take(&mut self.late);
            self.write_each(&late, |frame| {
                row::head(frame, 0, Kind::Whole);
                row::number(frame, version);
            });
            self.late = late;
        }
        self.send();
    }

    /// Whether what was told is of the version of the function that runs. Of another one the copies end, and begin anew once it runs on all workers.
    fn tells_of(&mut self, instance: &Instance) -> bool {
        let runs = |module: &Arc<_>| std::ptr::eq(instance.module(), Arc::as_ptr(module));
        if runs(&self.moves.module) {
            // Also where the one before has come back.
            self.other = None;
            return true;
        }
        let step = self.copies.step();
        match self.other {
            Some(looked) if looked == step => return false,
            Some(_) => {}
            None => {
                self.search = None;
                self.late.clear();
                self.write_each(&[], |frame| row::head(frame, 0, Kind::Void));
                self.send();
                self.told
                    .iter_mut()
                    .for_each(|(_, told)| told.fill(Told::default()));
                self.step = NEVER;
            }
        }
        self.other = Some(step);
        let (next, generation) = self.moves.classes.runs();
        let Some(next) = next.filter(|next| runs(&next.module)) else {
            return false;
        };
        self.moves.module = next.module.clone();
        self.moves.contents = next.contents.clone();
        self.generation = generation;
        self.told = untold(&self.moves);
        self.other = None;
        true
    }

    /// Looks again for what was deferred, once there is room for it.
    fn resume(&mut self) {
        if self.search.is_some() || self.late.is_empty() {
            return;
        }
        let (late, room) = (self.late.len(), &self.room);
        self.late.retain(|to| room_of(room, *to) < RESUMES);
        if self.late.len() < late {
            self.search = Some(Search {
                all: false,
                object: 0,
                place: 0,
            });
        }
    }

    /// Takes up where copies are by now.
    fn follow(&mut self) {
        self.step = self.copies.step();
        let mut following = self.copies.following();
        if following.generation != self.generation {
            // Connections of another version take no rows of this one.
            following = Arc::new(Following {
                to: vec![0; following.to.len()],
                ..Following::clone(&following)
            });
        }
        self.following = following.clone();
        let mut anew = Vec::new();
        for (bucket, arrivals) in self.arrivals.iter_mut().enumerate() {
            let now = following.arrivals.get(bucket).copied().unwrap_or(0);
            let came = std::mem::replace(arrivals, now) != now;
            let here = self.moves.classes.whose(bucket as u16) == Whose::Worker(self.worker);
            anew.push(came && here);
        }
        let mut forgets = Vec::new();
        for (_, told) in &mut self.told {
            for told in told.iter_mut().filter(|told| told.to != 0) {
                let bucket = usize::from(told.bucket);
                let to = following.to.get(bucket).copied().unwrap_or(0);
                if to == ELSEWHERE || anew.get(bucket) == Some(&true) {
                    forgets.push((told.to, told.bucket));
                    *told = Told::default();
                }
            }
        }
        // What came here begins anew also where this worker has told nothing of it.
        for (bucket, _) in anew.iter().enumerate().filter(|(_, anew)| **anew) {
            let to = following.to.get(bucket).copied().unwrap_or(0);
            forgets.push((to, bucket as u16));
        }
        forgets.sort_unstable();
        forgets.dedup();
        for (to, bucket) in forgets {
            if is_connection(to) {
                let frame = frame(&mut self.frames, to, self.worker, clock::now());
                row::head(frame.0, 0, Kind::Anew);
                row::number(frame.0, u64::from(bucket));
            }
        }
        self.late.retain(|to| following.to.contains(to));
        let version = following.version;
        self.write_each(&[], |frame| begins(frame, version));
        self.search = Some(Search {
            all: true,
            object: 0,
            place: 0,
        });
    }

    /// Notes places that were not told where they should be.
    fn search(&mut self, instance: &mut Instance) {
        let Some(search) = self.search else {
            return;
        };
        let Some((object, told)) = self.told.get(search.object) else {
            return;
        };
        let first = search.place;
        // Of those that were deferred few are noted.
        let step = if search.all { STEP } else { 16 * STEP };
        let last = (first + step).min(told.len());
        for (place, told) in told.iter().enumerate().take(last).skip(first) {
            let to = self.following.to.get(usize::from(told.bucket)).copied();
            // What there is no room for yet is looked for when there is.
            let owed = told.late && !self.late.contains(&told.to);
            if owed || search.all && (told.to == 0 || to != Some(told.to)) {
                let place = place as u64;
                let _ = instance.changes(*object, place..place + 1, 0, &mut |_| ());
            }
        }
        let (object, place) = if last == told.len() {
            (search.object + 1, 0)
        } else {
            (search.object, last)
        };
        self.search = Some(Search {
            object,
            place,
            ..search
        });
    }

    /// Writes a row for each connection but some.
    fn write_each(&mut self, but: &[u32], write: impl Fn(&mut Vec<u8>)) {
        let mut all: Vec<u32> = self.following.to.clone();
        all.sort_unstable();
        all.dedup();
        let wanted = |to: &u32| is_connection(*to) && !but.contains(to);
        for to in all.into_iter().filter(wanted) {
            write(frame(&mut self.frames, to, self.worker, clock::now()).0);
        }
    }

    fn send(&mut self) {
        for (to, bytes, rows) in self.frames.drain(..) {
            self.copies.send(to, bytes, rows);
        }
    }
}

fn is_connection(to: u32) -> bool {
    to != 0 && to != ELSEWHERE
}

/// Bytes that a connection takes. What is for one that has ended goes nowhere.
fn room_of(room: &[(u32, usize)], to: u32) -> usize {
    let found = room.iter().find(|(connection, _)| *connection == to);
    found.map_or(usize::MAX, |(_, free)| *free)
}

/// A copy begins, or is not whole any more.
fn begins(frame: &mut Vec<u8>, version: u64) {
    row::head(frame, 0, Kind::Begins);
    row::number(frame, version);
}

/// Ticks of a period.
fn period() -> u64 {
    static NS: std::sync::OnceLock<f64> = std::sync::OnceLock::new();
    let ns = *NS.get_or_init(|| {
        let rate = clock::Rate::start();
        std::thread::sleep(PERIOD);
        rate.ns_per_tick()
    });
    (PERIOD.as_nanos() as f64 / ns.max(0.01)) as u64
}

/// The frame for a connection, with the number of its rows.
fn frame(
    frames: &mut Vec<(u32, Vec<u8>, u64)>,
    to: u32,
    worker: usize,
    clock: u64,
) -> (&mut Vec<u8>, &mut u64) {
    // One that is full goes as it is, and its rows before those of another.
    let open = |(other, bytes, _): &(u32, Vec<u8>, u64)| *other == to && bytes.len() < FULL;
    let at = frames.iter().position(open);
    let at = at.unwrap_or_else(|| {
        frames.push((to, row::begin(worker, clock), 0));
        frames.len() - 1
    });
    let (_, bytes, rows) = &mut frames[at];
    (bytes, rows)
}

/// What has changed of an object, as it is told.
struct Telling<'a> {
    classes: &'a Classes,
    contents: &'a crate::moved::Contents,
    following: &'a Following,
    frames: &'a mut Vec<(u32, Vec<u8>, u64)>,
    room: &'a mut Vec<(u32, usize)>,
    late: &'a mut Vec<u32>,
    deferred: &'a mut u64,
    worker: usize,
    object: usize,
    clock: u64,
}

impl Telling<'_> {
    fn change(&mut self, changed: &Changed<'_>, told: &mut [Told]) {
        let Some(told) = told.get_mut(changed.place as usize) else {
            return;
        };
        let before = *told;
        let now = changed
            .entry
            .and_then(|entry| Some((entry, self.target(&entry, before)?)));
        let goes = before.to != 0 && self.is_here(before.bucket);
        let to = now.map_or(before.to, |(_, now)| now.to);
        if goes && before.to != to {
            // Also without room, as nothing says later that it was there: once for each place that was told.
            self.row(before.to, Kind::Nothing, changed.place);
        }
        *told = match now {
            // Nothing was told, or the bucket has left: whether its copy is to be forgotten the table says.
            None if !goes => Told {
                late: false,
                hashed: false,
                ..before
            },
            _ if room_of(self.room, to) == 0 => {
                self.defer(to);
                let late = now.map_or(before, |(_, now)| now);
                Told { late: true, ..late }
            }
            None => {
                self.row(to, Kind::Nothing, changed.place);
                Told::default()
            }
            Some((entry, now)) => {
                let known = entry.same && !before.late;
                let same = known && (before.to, before.bucket) == (now.to, now.bucket);
                self.entry(&entry, (changed.place, &now), same);
                now
            }
        };
    }

    /// Tells an entry; its value alone where the rest is the `same`.
    fn entry(&mut self, entry: &ChangedEntry<'_>, (place, now): (u64, &Told), same: bool) {
        let clock = self.clock;
        let kind = if same { Kind::Value } else { Kind::Entry };
        let frame = self.row(now.to, kind, place);
        let before = frame.len();
        if !same {
            row::number(frame, u64::from(now.bucket));
        }
        row::stamp(frame, clock, entry.stamp);
        if !same {
            frame.extend_from_slice(entry.key);
        }
        frame.extend_from_slice(entry.value);
        let written = frame.len() - before;
        self.spend(now.to, written);
    }

    /// What changed is not told to a connection, which has no room for it.
    fn defer(&mut self, to: u32) {
        *self.deferred += 1;
        if !self.late.contains(&to) {
            self.late.push(to);
            let (bytes, _) = frame(self.frames, to, self.worker, self.clock);
            begins(bytes, self.following.version);
        }
    }

    fn spend(&mut self, to: u32, bytes: usize) {
        if let Some((_, free)) = self.room.iter_mut().find(|(c, _)| *c == to) {
            *free = free.saturating_sub(bytes);
        }
    }

    /// Where the copy of an entry is; none: nowhere, or its bucket is not this worker's.
    fn target(&self, entry: &ChangedEntry<'_>, before: Told) -> Option<Told> {
        let bucket = match self.contents.leases.contains(&self.object) {
            true => u16::try_from(entry.home).ok()?,
            // A key is hashed once.
            false if entry.same && before.hashed => before.bucket,
            false => {
                let bucket = self.contents.buckets.entry(self.object, entry.key)?;
                u16::try_from(bucket).ok()?
            }
        };
        let to = self.following.to.get(usize::from(bucket)).copied()?;
        let own = self.classes.whose(bucket) == Whose::Worker(self.worker);
        (own && is_connection(to)).then_some(Told {
            to,
            bucket,
            late: false,
            hashed: true,
        })
    }

    /// Whether a bucket is at some worker of this machine: what has gone of another one is on its way elsewhere, with it, or this machine may
    /// not act any more. Its copy stays as it was.
    fn is_here(&self, bucket: u16) -> bool {
        matches!(self.classes.whose(bucket), Whose::Worker(_))
    }

    fn row(&mut self, to: u32, kind: Kind, place: u64) -> &mut Vec<u8> {
        self.spend(to, HEAD);
        let (bytes, rows) = frame(self.frames, to, self.worker, self.clock);
        *rows += 1;
        row::head(bytes, self.object, kind);
        row::number(bytes, place);
        bytes
    }
}
