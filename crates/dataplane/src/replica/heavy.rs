//! The sequencer's choice of heavy keys: which packets have rows, and which go to their owners.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use millrace_steer::Field;
use millrace_steer::fields::parse;
use millrace_steer::hybrid::{Elephants, Heavy, Key, Keys, Move, MoveError, Moving};

use super::moves::Heavies;
use super::{Came, Counted};
use crate::packet::MAX_FRAME;

/// Keys of which is told what became of them.
const TOLD: usize = 1024;
/// Packets after which readers from outside are told again.
const TELL: u32 = 1 << 14;

/// How keys are chosen.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Choice {
    /// as their packets come (`millrace_steer::hybrid::Heavy`)
    #[default]
    Measured,
    /// any key at any moment, drawn from this seed: for verification
    Seeded(u64),
}

/// What became of a heavy key.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Elephant {
    /// a packet of it: addresses, ports, protocol
    pub flow: String,
    /// its packets while it was replicated
    pub packets: u64,
    /// the number of the row that promoted it
    pub promoted: u64,
    /// and of the one that demoted it; none if it was replicated to the end, where its owner has it again
    pub demoted: Option<u64>,
}

/// Heavy keys of a group.
pub(super) struct Chooser {
    keys: Arc<dyn Keys>,
    slots: Elephants<Key>,
    heavy: Heavy,
    seeded: Option<u64>,
    /// periods between a choice and its promotion, while the owner looks for the key's entries
    ahead: u32,
    /// chosen keys with their owners, and the periods (of a seeded choice: packets) until they are promoted
    pending: Vec<(u32, Key, u32)>,
    /// pending keys that came (true) or went, which owners have not been told
    news: Vec<(bool, Key, u32)>,
    /// a bit for each core: it owns a replicated key
    owning: u64,
    /// with their owners, and places in `told`
    replicated: Vec<(Key, u32, Option<usize>)>,
    told: Vec<Elephant>,
    /// promotions and demotions
    moves: (u64, u64),
    /// packets that were counted
    counted: u32,
}

/// Where a packet goes.
pub(super) enum Goes {
    /// to the owner of its key
    To(u32),
    /// to the core whose turn it is
    Around,
}

impl Chooser {
    /// `ahead`: periods between a choice and its promotion.
    pub fn new(heavies: &Heavies, workers: u16, (choice, ahead): (Choice, u32)) -> Self {
        Self {
            keys: heavies.keys.clone(),
            slots: Elephants::new(workers, 0),
            heavy: Heavy::new(workers, heavies.row),
            seeded: match choice {
                Choice::Measured => None,
                Choice::Seeded(seed) => Some(seed | 1),
            },
            ahead,
            pending: Vec::new(),
            news: Vec::new(),
            owning: 0,
            replicated: Vec::new(),
            told: Vec::new(),
            moves: (0, 0),
            counted: 0,
        }
    }

    /// The next number that is drawn.
    fn draw(seed: &mut u64) -> u64 {
        // Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014).
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Counts a packet, and says which keys are to be moved before it.
    pub fn count(&mut self, came: &Came<'_>) -> Vec<(Move, Key, u32)> {
        self.counted = self.counted.wrapping_add(1);
        if let Some(seed) = &mut self.seeded {
            let drawn = Self::draw(seed);
            let mut due = self.due();
            due.extend(match drawn % 16 {
                0 => {
                    let (key, owner) = self.packet(came);
                    let known = self.slots.slot(&key).is_some();
                    let waits = self.pending.iter().any(|p| p.1 == key);
                    match (known, waits) {
                        (true, _) => vec![(Move::Demote, key, owner)],
                        (_, true) => Vec::new(),
                        // Some at once, others while packets come and go.
                        _ if drawn >> 40 & 3 == 0 => vec![(Move::Promote, key, owner)],
                        _ => {
                            self.wait(1 + (drawn >> 48) as u32 % 200, key, owner);
                            Vec::new()
                        }
                    }
                }
                1 if drawn >> 32 & 3 == 0 && !self.replicated.is_empty() => {
                    let at = (drawn >> 8) as usize % self.replicated.len();
                    let all = self.replicated.get(at);
                    all.map(|r| (Move::Demote, r.0, r.1)).into_iter().collect()
                }
                _ => Vec::new(),
            });
            return due;
        }
        let owner = self.owner(came);
        let over = if self.heavy.samples() || self.owns(owner) {
            let (key, _) = self.packet(came);
            match self.slots.slot(&key) {
                Some(_) => self.heavy.replicated(key),
                None => self.heavy.sharded(owner, Some(key)),
            }
        } else {
            self.heavy.sharded(owner, None)
        };
        if over { self.decide() } else { Vec::new() }
    }

    /// Ends a period: what is to be moved now.
    fn decide(&mut self) -> Vec<(Move, Key, u32)> {
        let due = self.due();
        due.iter().for_each(|d| self.heavy.begins(d.1));
        let chosen = self.heavy.decide();
        let mut moves = Vec::new();
        for of in chosen {
            match of.0 {
                Move::Promote if self.ahead > 0 => {
                    self.heavy.waits(of.1);
                    self.wait(self.ahead, of.1, of.2);
                }
                Move::Promote | Move::Demote => moves.push(of),
            }
        }
        // Those that are demoted make room.
        moves.extend(due);
        moves
    }

    /// A key will be promoted when so much is over.
    fn wait(&mut self, left: u32, key: Key, owner: u32) {
        self.pending.push((left, key, owner));
        self.news.push((true, key, owner));
    }

    /// Keys whose time has come.
    fn due(&mut self) -> Vec<(Move, Key, u32)> {
        let mut due = Vec::new();
        self.pending.retain_mut(|(left, key, owner)| {
            *left -= 1;
            if *left == 0 {
                due.push((Move::Promote, *key, *owner));
            }
            *left > 0
        });
        due
    }

    /// Keys that will be promoted (true), or will not after all, of which this has not told yet.
    pub fn news(&mut self) -> Vec<(bool, Key, u32)> {
        std::mem::take(&mut self.news)
    }

    /// The same of what several threads have counted; `frame` gives a packet of a key.
    pub fn period<'a>(
        &mut self,
        counted: &Counted,
        frame: &dyn Fn(Key) -> &'a [u8],
    ) -> Vec<(Move, Key, u32)> {
        let Counted {
            loads,
            sampled,
            replicated,
        } = counted;
        // At a device's rates every sixteenth period is often enough.
        self.counted = self.counted.wrapping_add(TELL / 16);
        for (key, packets) in replicated {
            self.tell(*key, *packets, frame);
        }
        self.heavy.merge(loads, sampled, replicated);
        self.decide()
    }

    /// The replicated keys.
    pub fn keys(&self) -> Vec<Key> {
        self.replicated.iter().map(|r| r.0).collect()
    }

    /// A packet's key, and its owner. What is longer than a packet may be has no place in either.
    fn packet(&self, came: &Came<'_>) -> (Key, u32) {
        let frame = came.frame.get(..MAX_FRAME).unwrap_or(came.frame);
        self.keys.packet(came.port, frame)
    }

    fn owner(&self, came: &Came<'_>) -> u32 {
        let frame = came.frame.get(..MAX_FRAME).unwrap_or(came.frame);
        self.keys.owner(came.port, frame)
    }

    fn owns(&self, owner: u32) -> bool {
        self.owning >> (owner % 64) & 1 != 0
    }

    /// Moves a key behind row `last`; none if it stays, because it is there already or there is no room.
    pub fn shift(&mut self, of: (Move, Key, u32), last: u64) -> Option<Moving<Key>> {
        let (direction, key, owner) = of;
        self.slots.numbered(last);
        let moved: Result<Moving<Key>, MoveError> = match direction {
            Move::Promote => self.slots.promote(&key, owner as u16),
            Move::Demote => self.slots.demote(&key, owner as u16),
        };
        let Ok(moving) = moved else {
            self.heavy.refused(of);
            if direction == Move::Promote {
                self.news.push((false, key, owner));
            }
            return None;
        };
        let number = moving.number;
        match direction {
            Move::Promote => {
                self.moves.0 += 1;
                let told = (self.told.len() < TOLD).then_some(self.told.len());
                if told.is_some() {
                    self.told.push(Elephant {
                        flow: String::new(),
                        packets: 0,
                        promoted: number,
                        demoted: None,
                    });
                }
                self.replicated.push((key, owner, told));
            }
            Move::Demote => {
                self.moves.1 += 1;
                if let Some(at) = self.replicated.iter().position(|r| r.0 == key) {
                    let (_, _, told) = self.replicated.swap_remove(at);
                    if let Some(told) = told.and_then(|at| self.told.get_mut(at)) {
                        told.demoted = Some(number);
                    }
                }
            }
        }
        self.owning = (self.replicated.iter()).fold(0, |bits, r| bits | 1 << (r.1 % 64));
        Some(moving)
    }

    /// Gives the next replicated key back to its owner at the end, behind row `last`; none where there is none any more.
    pub fn home(&mut self, last: u64) -> Option<Moving<Key>> {
        let (key, owner, _) = self.replicated.pop()?;
        self.slots.numbered(last);
        self.slots.demote(&key, owner as u16).ok()
    }

    /// Where a packet goes.
    pub fn goes(&self, came: &Came<'_>) -> Goes {
        let owner = self.owner(came);
        if !self.owns(owner) {
            return Goes::To(owner);
        }
        let (key, owner) = self.packet(came);
        match self.slots.slot(&key) {
            None => Goes::To(owner),
            Some(_) => Goes::Around,
        }
    }

    /// Counts a packet of a replicated key that has its place.
    pub fn placed(&mut self, came: &Came<'_>) {
        let (key, _) = self.packet(came);
        self.tell(key, 1, &|_| came.frame);
    }

    /// Counts packets of a replicated key.
    fn tell<'a>(&mut self, key: Key, packets: u64, frame: &dyn Fn(Key) -> &'a [u8]) {
        let found = self.replicated.iter().find(|r| r.0 == key);
        let Some(told) = found.and_then(|r| r.2) else {
            return;
        };
        if let Some(told) = self.told.get_mut(told) {
            if told.flow.is_empty() && packets > 0 {
                told.flow = flow(frame(key));
            }
            told.packets += packets;
        }
    }

    /// How many promotions and demotions there were.
    pub fn moves(&self) -> (u64, u64) {
        self.moves
    }

    /// Whether readers from outside should be told of keys again, beside when one is moved.
    pub fn tells(&self) -> bool {
        self.counted.is_multiple_of(TELL) && !self.told.is_empty()
    }

    /// What became of keys that were replicated.
    pub fn told(&self) -> &[Elephant] {
        &self.told
    }
}

/// A packet's addresses and ports, as far as it has them.
fn flow(frame: &[u8]) -> String {
    let packet = parse(frame);
    let end = |address: Field, port: Field| {
        let bytes = packet.field(address);
        let address: Option<IpAddr> = (<[u8; 4]>::try_from(bytes)
            .map(|b| Ipv4Addr::from(b).into()))
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(|b| Ipv6Addr::from(b).into()))
        .ok();
        let port = <[u8; 2]>::try_from(packet.field(port)).map(u16::from_be_bytes);
        match (address, port) {
            (Some(IpAddr::V6(address)), Ok(port)) => format!("[{address}]:{port}"),
            (Some(address), Ok(port)) => format!("{address}:{port}"),
            (Some(address), Err(_)) => address.to_string(),
            (None, _) => "?".to_owned(),
        }
    };
    let from = end(Field::SourceAddress, Field::SourcePort);
    let to = end(Field::DestinationAddress, Field::DestinationPort);
    format!("{} {from} > {to}", packet.kind.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_written_as_far_as_they_go() {
        assert_eq!(flow(&[]), "not-ip ? > ?");
        let mut frame = vec![0; 60];
        for (at, byte) in [
            (12, 8),
            (14, 0x45),
            (17, 46),
            (23, 17),
            (26, 10),
            (33, 7),
            (37, 53),
        ] {
            frame[at] = byte;
        }
        assert_eq!(flow(&frame), "ipv4-udp 10.0.0.0:0 > 0.0.0.7:53");
    }
}
