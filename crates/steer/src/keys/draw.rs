//! Secret keys from the space, the best of some.

use rand::rand_core::Rng;

use super::class::{Class, ClassId};
use super::mixer::Mixer;
use super::score::Score;
use super::space::Space;
use crate::gf2::{Row, word_rank};
use crate::toeplitz;

/// Keys tried by [`Space::draw`].
const TRIED: usize = 64;

/// One key for each port. They are secret: who knows them can aim packets at one core, so that they are
/// drawn afresh at each start and do not show in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// by port
    keys: Vec<(usize, Vec<u8>)>,
    /// by class
    ranks: Vec<Rank>,
    index: usize,
    mixer: Mixer,
}

/// How well a key tells the packets of a class apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rank {
    /// rank of the index that leads to a table entry, in bits
    pub table: usize,
    /// whether no key of the space has more, which is certain where the rank is that of all index bits or
    /// of all input bits that any key lets through; otherwise it is compared with
    /// [`Space::table_rank`] and more keys, and only probable
    pub certified: bool,
    /// rank of the whole 32-bit hash
    pub whole: usize,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ports: Vec<usize> = self.keys.iter().map(|(port, _)| *port).collect();
        f.debug_struct("Keys")
            .field("ports", &ports)
            .field("ranks", &self.ranks)
            .finish_non_exhaustive()
    }
}

impl Keys {
    /// The key of a port; none for a port without classes.
    #[must_use]
    pub fn key(&self, port: usize) -> Option<&[u8]> {
        let mut keys = self.keys.iter();
        keys.find(|(p, _)| *p == port)
            .map(|(_, key)| key.as_slice())
    }

    /// How well a class spreads.
    #[must_use]
    pub fn rank(&self, class: ClassId) -> Option<Rank> {
        self.ranks.get(class).copied()
    }

    /// The index of a hash input of a port: the low bits of the hash, as many as the space uses.
    #[must_use]
    pub fn index(&self, port: usize, input: &[u8]) -> u32 {
        let hash = toeplitz::hash(self.key(port).unwrap_or(&[]), input);
        hash & (u32::MAX >> (32 - self.index))
    }

    /// For each index the queue of `queues`, at least 1, for when no load is known: evenly, by a secret
    /// linear permutation of the indexes that was chosen with the keys. The same for all ports.
    #[must_use]
    pub fn queues(&self, queues: u32) -> Vec<u32> {
        self.mixer.queues(1 << self.index, queues)
    }
}

impl Space {
    /// Keys that spread well, the best of 64: first by the least rank of a class, then by how well the
    /// last bits of addresses, and the ports, reach the index and the queues of [`Keys::queues`], then by how many input
    /// bits the least combination of index bits depends on, then by how many bits reach the index at all.
    ///
    /// `secret` decides everything; for use it must not be guessed.
    pub fn draw(&self, secret: &mut impl Rng) -> Keys {
        let (best, mixer) = self.best(secret);
        self.keys(&best, mixer, secret)
    }

    /// The unknowns of the best of some keys, and the permutation that goes with them.
    pub(super) fn best(&self, secret: &mut impl Rng) -> (Row, Mixer) {
        let candidate = |secret: &mut _| {
            let unknowns = self.uniform(secret);
            (unknowns, Mixer::draw(self.layout.index, secret))
        };
        let mut best = candidate(secret);
        let mut score = Score::of(self, &best);
        for _ in 1..TRIED {
            let other = candidate(secret);
            if score.improved_by(self, &best, &other) {
                best = other;
            }
        }
        best
    }

    /// Of so many draws (at least 1) the one that costs least: for when a trace is there, and its imbalance
    /// under the keys is the cost.
    pub fn draw_for(
        &self,
        secret: &mut impl Rng,
        draws: usize,
        mut cost: impl FnMut(&Keys) -> f64,
    ) -> Keys {
        let mut best = self.draw(secret);
        let mut least = cost(&best);
        for _ in 1..draws {
            let other = self.draw(secret);
            let found = cost(&other);
            if found < least {
                (best, least) = (other, found);
            }
        }
        best
    }

    /// Keys as they come, every one of the space as likely as any other.
    pub fn sample(&self, random: &mut impl Rng) -> Keys {
        let unknowns = self.uniform(random);
        let mixer = Mixer::draw(self.layout.index, random);
        self.keys(&unknowns, mixer, random)
    }

    /// The unknowns of a key, each as likely as any other.
    pub(super) fn uniform(&self, random: &mut impl Rng) -> Row {
        let mut sum = Row::zero(self.layout.unknowns);
        for vectors in self.basis.chunks(64) {
            let mut draw = random.next_u64();
            for vector in vectors {
                if draw & 1 == 1 {
                    sum.add(vector);
                }
                draw >>= 1;
            }
        }
        sum
    }

    /// The keys with these unknowns; the bits that reach no index are random.
    fn keys(&self, unknowns: &Row, mixer: Mixer, random: &mut impl Rng) -> Keys {
        let index = self.layout.index;
        let key = |(port, range): (usize, std::ops::Range<usize>)| {
            let mut key = vec![0; self.target.key_bytes];
            random.fill_bytes(&mut key);
            for (at, unknown) in (32 - index..).zip(range) {
                if let Some(byte) = key.get_mut(at / 8) {
                    let mask = 0x80 >> (at % 8);
                    *byte = *byte & !mask | if unknowns.get(unknown) { mask } else { 0 };
                }
            }
            (port, key)
        };
        let keys: Vec<(usize, Vec<u8>)> = self.layout.ports().map(key).collect();
        let key = |port| keys.iter().find(|(p, _)| *p == port);
        let rank = |(id, class): (ClassId, &Class)| {
            let table = word_rank(self.words(class, unknowns));
            let reaching = (0..class.bits()).filter(|bit| self.reaches(id, *bit));
            let whole = key(class.port).map_or(0, |(_, key)| whole_rank(key, class.bits()));
            Rank {
                table,
                certified: table == index.min(reaching.count()),
                whole,
            }
        };
        let ranks = self.classes.iter().enumerate().map(rank).collect();
        Keys {
            keys,
            ranks,
            index,
            mixer,
        }
    }
}

/// The rank of the 32-bit hash of this many input bits.
fn whole_rank(key: &[u8], bits: usize) -> usize {
    let mut input = vec![0_u8; bits.div_ceil(8)];
    let hashes = (0..bits).map(|at| {
        input.fill(0);
        if let Some(byte) = input.get_mut(at / 8) {
            *byte = 0x80 >> (at % 8);
        }
        u64::from(toeplitz::hash(key, &input))
    });
    word_rank(hashes)
}
