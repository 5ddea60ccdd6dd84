//! Buckets of the indirection table that change their workers at drawn moments, with their state; the number of workers that have any, and the
//! key of the hash, which change, too.
//!
//! A seed that shows a difference can be used again. Moves take the bucket of the packet at hand half of the time, so that those that packets
//! use move most; some are announced some packets before, so that the worker looks for the entries between its packets
//! (`millrace_dataplane::moved`), and others are made at once.

use millrace_dataplane::Share;
use millrace_dataplane::module::Stamped;
use millrace_dataplane::moved::Contents;
use millrace_dataplane::replica::Listing;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::copy::Copy;
use crate::findings::Moves;
use crate::trace::Packet;

/// What changes at drawn moments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moving {
    /// what moments and buckets are drawn from
    pub seed: u64,
    /// packets between two moves, on average; at least 1
    pub every: u64,
    /// moves between two changes of the number of workers that have buckets, on average; 0: it stays
    pub cores: u64,
    /// moves between two changes of the key of the hash, on average; 0: it stays
    pub keys: u64,
}

impl Moving {
    /// All that there is, from this seed: a move every 20 packets.
    #[must_use]
    pub fn all(seed: u64) -> Self {
        Self {
            seed,
            every: 20,
            cores: 60,
            keys: 90,
        }
    }
}

/// A move that is announced.
struct Announced {
    bucket: u32,
    to: usize,
    /// before which packet, by its number
    at: u64,
}

/// Where the buckets of a lane are.
pub struct Table {
    contents: Contents,
    /// by bucket
    workers: Vec<u32>,
    moving: Moving,
    random: ChaCha8Rng,
    next: u64,
    announced: Option<Announced>,
    /// by worker: what it looks for
    listings: Vec<Listing>,
    /// workers that have buckets: the first ones
    used: usize,
    /// what elements held before the first packet
    pub shares: Vec<Share>,
    /// what was done
    pub seen: Moves,
}

impl Table {
    /// With each bucket at its first worker.
    pub fn new(contents: Contents, workers: Vec<u32>, moving: Moving, copies: usize) -> Self {
        let mut table = Self {
            contents,
            workers,
            random: ChaCha8Rng::seed_from_u64(moving.seed),
            moving,
            next: 0,
            announced: None,
            listings: (0..copies).map(|_| Listing::default()).collect(),
            used: copies,
            shares: Vec::new(),
            seen: Moves::default(),
        };
        table.draw_next(0);
        table
    }

    fn draw_next(&mut self, now: u64) {
        let apart = self.moving.every.max(1).saturating_mul(2);
        self.next = now.saturating_add(self.random.random_range(1..=apart));
    }

    fn once_in(&mut self, moves: u64) -> bool {
        moves > 0 && self.random.random_range(0..moves) == 0
    }

    /// The worker of a packet.
    pub fn worker(&self, packet: &Packet) -> u32 {
        let bucket = self.contents.buckets.packet(packet.port, &packet.frame);
        self.workers.get(bucket as usize).copied().unwrap_or(0)
    }

    /// The bucket of an entry, and the worker that has it.
    pub fn lies(&self, object: usize, key: &[u8]) -> Option<(u32, u32)> {
        let bucket = self.contents.buckets.entry(object, key)?;
        Some((bucket, self.workers.get(bucket as usize).copied()?))
    }

    /// Whether something changes before this packet.
    pub fn due(&self, packet: &Packet) -> bool {
        let announced = self.announced.as_ref();
        packet.number >= self.next || announced.is_some_and(|a| packet.number >= a.at)
    }

    /// Workers that have to be through with all packets before this one, for what changes now; none: nothing is done with them yet.
    pub fn change(&mut self, packet: &Packet) -> Change {
        if let Some(due) = self.announced.take_if(|a| packet.number >= a.at) {
            return self.moved(due.bucket, due.to);
        }
        self.draw_next(packet.number);
        if self.once_in(self.moving.keys) {
            return Change::Key;
        }
        if self.once_in(self.moving.cores) {
            self.used = self.random.random_range(1..=self.listings.len());
            return Change::Cores;
        }
        let own = self.random.random_range(0..2) == 0;
        let bucket = match own {
            true => self.contents.buckets.packet(packet.port, &packet.frame),
            false => self.random.random_range(0..self.contents.buckets.count()),
        };
        let to = self.random.random_range(0..self.used);
        if self.announced.is_none() && self.random.random_range(0..2) == 0 {
            let at = packet.number + self.random.random_range(1..=2 * self.moving.every);
            self.announced = Some(Announced { bucket, to, at });
            return Change::Announce { bucket };
        }
        if (self.announced.as_ref()).is_some_and(|a| a.bucket == bucket) {
            // It is on its way; where it goes first, it leaves from.
            return Change::None;
        }
        self.moved(bucket, to)
    }

    fn moved(&self, bucket: u32, to: usize) -> Change {
        let from = self.workers.get(bucket as usize).copied().unwrap_or(0) as usize;
        match from == to || to >= self.used {
            true => Change::None,
            false => Change::Move { bucket, from, to },
        }
    }

    /// The worker of a bucket begins to look for its entries.
    pub fn announce(&mut self, bucket: u32, copies: &mut [Copy]) {
        let from = self.workers.get(bucket as usize).copied().unwrap_or(0) as usize;
        if let (Some(copy), Some(listing)) = (copies.get_mut(from), self.listings.get_mut(from)) {
            self.contents.begin(copy.instance(), listing, [bucket]);
        }
    }

    /// A worker is through with a packet, and looks further.
    pub fn step(&mut self, worker: usize, copy: &mut Copy) {
        if let Some(listing) = self.listings.get_mut(worker).filter(|l| l.any()) {
            self.contents.step(copy.instance(), listing);
        }
    }

    /// Moves a bucket; who gives it up is through with all packets before `now`, ns. Where there is no room it stays.
    pub fn make(&mut self, (bucket, from, to): (u32, usize, usize), copies: &mut [Copy], now: u64) {
        let (Some(giver), Some(listing)) = (copies.get_mut(from), self.listings.get_mut(from))
        else {
            return;
        };
        let ahead = listing.any();
        let of = (bucket, self.shares.as_slice());
        let entries = self.contents.take(giver.instance(), listing, of);
        self.seen.foreseen += u64::from(ahead && !listing.any());
        let put = copies
            .get_mut(to)
            .map(|taker| self.contents.put(taker.instance(), &entries, now));
        if put == Some(Ok(())) {
            self.seen.moves += 1;
            self.seen.entries += entries.iter().filter(|(_, e)| !e.rest.free).count() as u64;
            if let Some(worker) = self.workers.get_mut(bucket as usize) {
                *worker = to as u32;
            }
            return;
        }
        self.seen.refused += 1;
        if let Some(giver) = copies.get_mut(from) {
            // It fits there, where it was a moment ago.
            let back = self.contents.put(giver.instance(), &entries, now);
            self.seen.lost += if back.is_err() {
                entries.len() as u64
            } else {
                0
            };
        }
    }

    /// Buckets of workers that are to have none go to the others, and workers that had none get some.
    pub fn cores(&mut self, copies: &mut [Copy], now: u64) {
        self.seen.cores += 1;
        for bucket in 0..self.workers.len() as u32 {
            let to = self.random.random_range(0..self.used);
            let from = self.workers.get(bucket as usize).copied().unwrap_or(0) as usize;
            // The least that must, and a few more.
            if from != to && (from >= self.used || bucket.is_multiple_of(4)) {
                self.make((bucket, from, to), copies, now);
            }
        }
    }

    /// Another key of the hash: all entries go where the new one leads.
    pub fn key(&mut self, copies: &mut [Copy], now: u64) {
        let mut secret = [0; 32];
        secret.iter_mut().for_each(|b| *b = self.random.random());
        let Some(drawn) = self.contents.buckets.draw(secret) else {
            return;
        };
        let mut all = Vec::new();
        for (from, copy) in copies.iter_mut().enumerate() {
            let own = self.contents.take_all(copy.instance(), &self.shares);
            all.extend(own.into_iter().map(|e| (from, e)));
        }
        all.sort_by_key(|(_, (_, e))| e.rest.turn());
        let before = std::mem::replace(&mut self.contents.buckets, drawn.buckets);
        let to = |table: &Self, entry: &(usize, Stamped)| {
            let lies = table.lies(entry.0, &entry.1.key);
            lies.map_or(0, |(_, to)| to as usize)
        };
        let fits = all.iter().all(|(_, entry)| {
            let copy = copies.get_mut(to(self, entry));
            let one = std::slice::from_ref(entry);
            copy.is_some_and(|c| self.contents.put(c.instance(), one, now).is_ok())
        });
        if fits {
            self.seen.keys += 1;
            self.listings = copies.iter().map(|_| Listing::default()).collect();
            self.announced = None;
            return;
        }
        // It fits where it was a moment ago.
        self.seen.refused += 1;
        for copy in copies.iter_mut() {
            self.contents.take_all(copy.instance(), &self.shares);
        }
        self.contents.buckets = before;
        for (from, entry) in &all {
            let copy = copies.get_mut(*from);
            let one = std::slice::from_ref(entry);
            let back = copy.map(|c| self.contents.put(c.instance(), one, now));
            self.seen.lost += u64::from(back != Some(Ok(())));
        }
    }
}

/// What changes before a packet.
pub enum Change {
    /// nothing
    None,
    /// a worker looks for the entries of a bucket
    Announce {
        /// which
        bucket: u32,
    },
    /// a bucket moves
    Move {
        /// which
        bucket: u32,
        /// the worker that has it
        from: usize,
        /// the worker that gets it
        to: usize,
    },
    /// the number of workers that have buckets
    Cores,
    /// the key of the hash
    Key,
}
