//! Fingerprints of what packets are sharded by: which packets and entries of state a heavy key has.
//!
//! Packets that must meet have one index of the indirection table under every key of the space (`steer::keys`). So the indexes
//! under several keys, drawn independently, are a fingerprint that such packets share, and an entry of state has that of the
//! packets that make it (`placed.rs`). Other packets have another one: with at least 100 bits, two of a million keys share theirs with a
//! probability below 2^-60 where all bits are told apart (`KindPlan::table_rank`). Two keys that share it are moved together,
//! which is as right as moving each.

use std::sync::Arc;

use millrace_object::program::Program;
use millrace_steer::hybrid::{Key, Keys};
use millrace_steer::{Owners, Parsed, RssError, Steering};

use crate::placed_reader::Reader;
use crate::plan::Plan;

/// Fingerprints under keys that were drawn.
#[derive(Debug)]
pub struct Fingerprints {
    /// by port: who owns a packet
    owners: Vec<Owners>,
    /// the same under other keys
    draws: Vec<Vec<Owners>>,
    /// of an index
    bits: u32,
    /// by object: what its keys say of packets
    placed: Vec<Vec<Reader>>,
}

impl Plan {
    /// Fingerprints of a program's packets and entries between ports with this steering, which [`Plan::steering`] gave; `secret` is
    /// what it was drawn from.
    ///
    /// # Errors
    /// As [`Plan::steering`].
    pub fn fingerprints(
        &self,
        program: &Program,
        steering: &[Steering],
        secret: [u8; 32],
    ) -> Result<Arc<Fingerprints>, RssError> {
        let bits = (self.solved.space.index_bits() as u32).clamp(1, 31);
        let mut draws = Vec::new();
        for draw in 1..=u128::BITS / bits {
            let mut other = secret;
            for (to, from) in other.iter_mut().zip(draw.to_le_bytes()) {
                *to ^= from;
            }
            let drawn = self.steering(steering.len(), other)?;
            draws.push(drawn.iter().map(Steering::owners).collect());
        }
        let of = |object: usize| -> Vec<Reader> {
            let all = self.placed.iter().filter(|p| p.is_of(object));
            all.map(Reader::of).collect()
        };
        Ok(Arc::new(Fingerprints {
            owners: steering.iter().map(Steering::owners).collect(),
            draws,
            bits,
            placed: (0..program.objects.len()).map(of).collect(),
        }))
    }

    /// Whether the key of each entry of an object says which packets make it, under this steering.
    #[must_use]
    pub fn tells(&self, object: usize, steering: &[Steering]) -> bool {
        let mut all = self.placed.iter().filter(|p| p.is_of(object)).peekable();
        all.peek().is_some()
            && all.all(|p| {
                let port = steering.get(p.port());
                p.is_bound() && port.is_some_and(|s| p.tells(&s.owners()))
            })
    }
}

impl Fingerprints {
    /// The key of a packet and its index in the indirection table, and bits of an index.
    #[must_use]
    pub fn read(&self, port: u32, frame: &[u8]) -> (Key, u32, u32) {
        let port = port as usize;
        let Some(owners) = self.owners.get(port).or(self.owners.last()) else {
            return (Key::default(), 0, self.bits);
        };
        let packet = owners.read(frame);
        let index = self.index(&self.owners, port, &packet) as u32;
        (self.key(port, &packet), index, self.bits)
    }

    fn index(&self, owners: &[Owners], port: usize, packet: &Parsed) -> u128 {
        let owners = owners.get(port).or(owners.last());
        let index = owners.map_or(0, |o| o.place_of(packet).0);
        u128::from(index & ((1 << self.bits) - 1))
    }

    fn key(&self, port: usize, packet: &Parsed) -> Key {
        let one =
            |key: u128, owners: &Vec<Owners>| key << self.bits | self.index(owners, port, packet);
        Key(self.draws.iter().fold(0, one))
    }
}

impl Keys for Fingerprints {
    fn packet(&self, port: u32, frame: &[u8]) -> (Key, u32) {
        let port = port as usize;
        let Some(owners) = self.owners.get(port).or(self.owners.last()) else {
            return (Key::default(), 0);
        };
        let packet = owners.read(frame);
        (self.key(port, &packet), owners.place_of(&packet).1)
    }

    fn owner(&self, port: u32, frame: &[u8]) -> u32 {
        let owners = self.owners.get(port as usize).or(self.owners.last());
        owners.map_or(0, |o| o.owner(frame))
    }

    fn belongs(&self, object: usize, bytes: &[u8], key: Key) -> bool {
        // Packets of several kinds may make it; all of them meet.
        let all = self.placed.get(object).map_or(&[][..], Vec::as_slice);
        let packet = all.iter().find_map(|p| Some((p.port(), p.packet(bytes)?)));
        packet.is_some_and(|(port, packet)| {
            // Nearly all are told apart by one index.
            let last = self.draws.last().map(|o| self.index(o, port, &packet));
            last == Some(key.0 & ((1 << self.bits) - 1)) && self.key(port, &packet) == key
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use millrace_steer::{Field, Rss, nic};

    use super::*;
    use crate::placed;

    /// A NIC that hashes the source address under one of several keys.
    fn owners(draw: u8) -> Vec<Owners> {
        let device = nic::named("software").unwrap();
        let key: Vec<u8> = (0..52_u8)
            .map(|i| i.wrapping_mul(73).wrapping_add(draw.wrapping_mul(i | 1)) ^ draw)
            .collect();
        let rss = Rss::new(&device, 4).with_key(&device, &key).unwrap();
        let steering = Steering {
            nic: rss.with_only(&device, &[Field::SourceAddress]).unwrap(),
            software: BTreeMap::new(),
            inside: false,
            echoes: false,
            odd: None,
        };
        vec![steering.owners()]
    }

    #[test]
    fn a_packet_and_its_entry_have_one_fingerprint() {
        let all = Fingerprints {
            owners: owners(0),
            draws: (1..19).map(owners).collect(),
            bits: 7,
            placed: vec![vec![Reader::of(&placed::of_source(0))]],
        };
        let frame = |last: u8, port: u8| {
            let mut frame = vec![0; 60];
            frame[12..15].copy_from_slice(&[8, 0, 0x45]);
            frame[17] = 46;
            frame[23] = 17;
            frame[26..30].copy_from_slice(&[10, 0, 0, last]);
            frame[35] = port;
            frame
        };
        let (one, owner) = all.packet(0, &frame(1, 1));
        assert_eq!(all.packet(0, &frame(1, 9)), (one, owner));
        assert_eq!(all.owner(0, &frame(1, 9)), owner);
        for other in 2..255 {
            assert_ne!(all.packet(0, &frame(other, 1)).0, one);
            assert!(!all.belongs(0, &[7, 10, 0, 0, other], one));
        }
        assert!(all.belongs(0, &[7, 10, 0, 0, 1], one));
        // A key that no packet makes, and an object that is not there.
        assert!(!all.belongs(0, &[8, 10, 0, 0, 1], one));
        assert!(!all.belongs(1, &[7, 10, 0, 0, 1], one));
    }
}
