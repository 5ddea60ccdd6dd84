//! The worker that owns a packet, computed at the rate of packets.

use crate::fields::{Kind, Parsed, parse};
use crate::odd::Odd;
use crate::rss::Lookup;
use crate::steering::{Steering, closer, taken_for};

/// [`Steering`], with the tables of its hashes made.
#[derive(Clone, Debug)]
pub struct Owners {
    nic: Lookup,
    /// in the order of [`Kind::ALL`], which is that of its values
    software: Vec<Option<Lookup>>,
    inside: bool,
    echoes: bool,
    odd: Option<Odd>,
    /// [`Steering::by_nic_alone`]
    by_nic_alone: bool,
}

impl Owners {
    /// The worker that owns a frame, as [`Steering::queue`].
    #[inline]
    #[must_use]
    pub fn owner(&self, frame: &[u8]) -> u32 {
        self.queue_of(&self.taken(frame))
    }

    /// The place in the indirection table under which a frame comes to its worker.
    #[inline]
    #[must_use]
    pub fn index(&self, frame: &[u8]) -> u32 {
        let parsed = self.taken(frame);
        let lookup = self.software_of(&parsed).unwrap_or(&self.nic);
        lookup.index_of(&parsed)
    }

    /// The same of a frame of which a NIC that was told [`Steering::nic`] gave this hash.
    #[inline]
    #[must_use]
    pub fn index_of_hash(&self, hash: u32, frame: &[u8]) -> u32 {
        if self.by_nic_alone {
            return self.nic.index_of_hash(hash);
        }
        let own = parse(frame);
        let taken = self.as_program(frame, closer(frame, own, self.inside, self.echoes));
        match self.software_of(&taken) {
            None if taken == own => self.nic.index_of_hash(hash),
            lookup => lookup.unwrap_or(&self.nic).index_of(&taken),
        }
    }

    /// The place in the indirection table of a packet that was read before, and the worker that it leads to.
    #[must_use]
    pub fn place_of(&self, parsed: &Parsed) -> (u32, u32) {
        let lookup = self.software_of(parsed).unwrap_or(&self.nic);
        (lookup.index_of(parsed), lookup.queue_of(parsed))
    }

    /// How many entries the indirection table has; where tables differ, the longest.
    #[must_use]
    pub fn entries(&self) -> u32 {
        let software = self.software.iter().flatten();
        let all = software.chain([&self.nic]).map(Lookup::entries);
        all.max().unwrap_or(0)
    }

    /// The worker that owns a frame which a NIC may have brought elsewhere; none where the NIC has brought it
    /// to its owner.
    #[inline]
    #[must_use]
    pub fn exception(&self, frame: &[u8]) -> Option<u32> {
        let own = parse(frame);
        let taken = self.as_program(frame, closer(frame, own, self.inside, self.echoes));
        let elsewhere = taken != own || self.software_of(&own).is_some();
        elsewhere.then(|| self.queue_of(&taken))
    }

    /// The part of a frame that decides its owner, as [`Steering::read`].
    #[must_use]
    pub fn read(&self, frame: &[u8]) -> Parsed {
        self.taken(frame)
    }

    /// The part of a frame that decides its owner.
    fn taken(&self, frame: &[u8]) -> Parsed {
        let own = taken_for(frame, self.inside, self.echoes);
        self.as_program(frame, own)
    }

    /// A packet that a NIC takes for `own`, as the program reads it.
    fn as_program(&self, frame: &[u8], own: Parsed) -> Parsed {
        let odd = self.odd.and_then(|odd| odd.read(frame, &own));
        let counts = |p: &Parsed| self.software_of(p).is_some();
        odd.filter(counts).unwrap_or(own)
    }

    fn queue_of(&self, parsed: &Parsed) -> u32 {
        let lookup = self.software_of(parsed).unwrap_or(&self.nic);
        lookup.queue_of(parsed)
    }

    fn software_of(&self, parsed: &Parsed) -> Option<&Lookup> {
        self.software.get(parsed.kind as usize)?.as_ref()
    }
}

impl Steering {
    /// The same, worked out for the rate of packets.
    #[must_use]
    pub fn owners(&self) -> Owners {
        let software = Kind::ALL.map(|kind| self.software.get(&kind).map(|rss| rss.lookup()));
        Owners {
            nic: self.nic.lookup(),
            software: software.into(),
            inside: self.inside,
            echoes: self.echoes,
            odd: self.odd,
            by_nic_alone: self.by_nic_alone(),
        }
    }

    /// Whether a NIC that is told [`Self::nic`] does all of it.
    #[must_use]
    pub fn by_nic_alone(&self) -> bool {
        self.software.is_empty() && !self.inside && !self.echoes && self.odd.is_none()
    }

    /// The largest number of a queue that packets go to.
    #[must_use]
    pub fn last_queue(&self) -> u32 {
        let all = self.software.values().chain([&self.nic]);
        let queues = all.flat_map(|rss| rss.table().iter().copied());
        queues.max().unwrap_or(0)
    }

    /// The part of a table that leads to the queue it leads to most often, 0 to 1.
    #[must_use]
    pub fn largest_share(&self) -> f64 {
        let all = self.software.values().chain([&self.nic]);
        let shares = all.map(|rss| {
            let table = rss.table();
            let mut counts = std::collections::BTreeMap::new();
            for queue in table {
                *counts.entry(*queue).or_insert(0_usize) += 1;
            }
            let most = counts.values().copied().max().unwrap_or(0);
            most as f64 / table.len().max(1) as f64
        });
        shares.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::named;
    use crate::rss::Rss;
    use crate::{Field, toeplitz};
    use etherparse::PacketBuilder;

    /// Swapping both addresses and both ports leaves the hash of a key with a period of 16 bits as it is:
    /// they stand 32 and 16 bits apart (Woo and Park, Scalable TCP session monitoring with symmetric
    /// receive-side scaling, 2012).
    const SYMMETRIC: [u8; 2] = [0x6d, 0x5a];

    fn rss(queues: u32) -> Rss {
        let nic = named("generic").unwrap();
        Rss::new(&nic, queues)
            .with_key(&nic, &SYMMETRIC.repeat(20))
            .unwrap()
    }

    fn steering(queues: u32, inside: bool) -> Steering {
        Steering {
            nic: rss(queues),
            software: std::collections::BTreeMap::new(),
            inside,
            echoes: false,
            odd: None,
        }
    }

    fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(from.0, to.0, 64)
            .udp(from.1, to.1);
        builder.write(&mut frame, b"").unwrap();
        frame
    }

    fn unreachable(carries: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([192, 0, 2, 1], [10, 0, 0, 1], 64)
            .icmpv4_raw(3, 3, [0; 4]);
        builder.write(&mut frame, &carries[14..]).unwrap();
        frame
    }

    #[test]
    fn an_error_comes_to_the_owner_of_the_flow_that_it_is_about() {
        let (with, alone) = (steering(16, true), steering(16, false));
        let (owners, without) = (with.owners(), alone.owners());
        let mut elsewhere = 0;
        for port in 1000..1100 {
            let (client, server) = (([10, 0, 0, 1], port), ([198, 51, 100, 7], 53));
            let (there, back) = (udp(client, server), udp(server, client));
            let error = unreachable(&there);
            for frame in [&there, &back, &error] {
                assert_eq!(owners.owner(frame), with.queue(frame));
                assert_eq!(owners.owner(frame), owners.owner(&back));
                // A hash of the NIC is that of the error itself.
                let hash = with.nic.hash(frame).hash.unwrap_or(0);
                assert_eq!(owners.index_of_hash(hash, frame), owners.index(frame));
                assert_eq!(without.index_of_hash(hash, frame), without.index(frame));
            }
            assert_eq!(owners.exception(&error), Some(owners.owner(&back)));
            assert_eq!(owners.exception(&there), None);
            elsewhere += u32::from(without.owner(&error) != without.owner(&back));
        }
        // The NIC alone would have sent nearly all of them to another worker.
        assert!(elsewhere > 80, "{elsewhere}");
    }

    #[test]
    fn a_kind_may_be_hashed_in_software_over_fields_of_its_own() {
        let device = named("connectx5").unwrap();
        let only = Rss::new(&device, 8)
            .with_key(&device, &SYMMETRIC.repeat(20))
            .and_then(|r| r.with_only(&device, &[Field::DestinationAddress]))
            .unwrap();
        let mut steering = steering(8, false);
        steering.software.insert(Kind::Ipv4Udp, only.clone());
        let owners = steering.owners();
        let hash = toeplitz::hash(&SYMMETRIC.repeat(20), &[10, 0, 0, 1]);
        let expected = only.table()[hash as usize % only.table().len()];
        for port in 0..50 {
            let frame = udp(([192, 0, 2, port as u8], port), ([10, 0, 0, 1], 9));
            assert_eq!(owners.owner(&frame), expected);
            assert_eq!(owners.exception(&frame), Some(expected));
            assert_eq!(owners.index_of_hash(1, &frame), owners.index(&frame));
        }
        assert!(!steering.by_nic_alone());
        assert_eq!(steering.last_queue(), 7);
    }

    #[test]
    fn the_largest_share_is_that_of_the_table() {
        assert!((steering(4, false).largest_share() - 0.25).abs() < 1e-9);
        // 128 entries over 3 workers: 43, 43, 42.
        assert!((steering(3, false).largest_share() - 43.0 / 128.0).abs() < 1e-9);
    }
}
