//! Which worker owns a packet: receive side scaling, and what stands beside it for packets that a NIC
//! cannot steer.
//!
//! Where a function's state is divided over workers, all packets that touch an entry must come to one of
//! them. The hash of a NIC does that for the kinds of packets whose fields it takes. For the others there
//! are rules: a kind may be hashed in software over fields of its own, with the same key and table and as
//! a NIC would that takes these fields, or go to one worker; an ICMP error may be hashed as the packet that
//! answers the one it carries ([`crate::carried`]).

use std::collections::BTreeMap;

use crate::carried::answered;
use crate::fields::{Field, Kind, Parsed, parse};
use crate::rss::{Lookup, Rss};

/// How packets of a kind are steered that the NIC's own hash does not serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// to this worker
    Worker(u32),
    /// by a hash of these fields in software, in the order of [`Field::ALL`]; those that the kind does not
    /// have count as nothing
    Fields(Vec<Field>),
}

/// How the packets of one port are steered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steering {
    rss: Rss,
    rules: BTreeMap<Kind, Rule>,
    carried: bool,
}

impl Steering {
    /// As a NIC does it alone.
    #[must_use]
    pub fn new(rss: Rss) -> Self {
        Self {
            rss,
            rules: BTreeMap::new(),
            carried: false,
        }
    }

    /// With a rule for a kind, in place of the NIC's.
    #[must_use]
    pub fn with_rule(mut self, kind: Kind, rule: Rule) -> Self {
        self.rules.insert(kind, rule);
        self
    }

    /// With ICMP errors steered as the packets that answer those they carry.
    #[must_use]
    pub fn with_carried(mut self, carried: bool) -> Self {
        self.carried = carried;
        self
    }

    /// What a NIC is told.
    #[must_use]
    pub fn rss(&self) -> &Rss {
        &self.rss
    }

    /// Whether a NIC that is told [`Self::rss`] does all of it.
    #[must_use]
    pub fn by_nic_alone(&self) -> bool {
        self.rules.is_empty() && !self.carried
    }

    /// The largest number of a worker that packets go to.
    #[must_use]
    pub fn last_worker(&self) -> u32 {
        let of_rules = self.rules.values().filter_map(|rule| match rule {
            Rule::Worker(worker) => Some(*worker),
            Rule::Fields(_) => None,
        });
        let table = self.rss.table().iter().copied();
        table.chain(of_rules).max().unwrap_or(0)
    }

    /// The part of the table that leads to the worker it leads to most often, 0 to 1.
    #[must_use]
    pub fn largest_share(&self) -> f64 {
        let table = self.rss.table();
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for worker in table {
            *counts.entry(*worker).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or(0);
        most as f64 / table.len().max(1) as f64
    }

    /// The same, worked out for the rate of packets.
    #[must_use]
    pub fn owners(&self) -> Owners {
        let rules = Kind::ALL.map(|kind| self.rules.get(&kind).map(ordered));
        Owners {
            lookup: self.rss.lookup(),
            rules: rules.into(),
            carried: self.carried,
        }
    }
}

/// A rule whose fields are in the order in which they enter the hash.
fn ordered(rule: &Rule) -> Rule {
    match rule {
        Rule::Worker(worker) => Rule::Worker(*worker),
        Rule::Fields(fields) => {
            let all = Field::ALL.into_iter();
            Rule::Fields(all.filter(|f| fields.contains(f)).collect())
        }
    }
}

/// [`Steering`] at the rate of packets.
#[derive(Clone, Debug)]
pub struct Owners {
    lookup: Lookup,
    /// in the order of [`Kind::ALL`]
    rules: Vec<Option<Rule>>,
    carried: bool,
}

impl Owners {
    /// The worker that owns a frame.
    #[inline]
    #[must_use]
    pub fn owner(&self, frame: &[u8]) -> u32 {
        let parsed = parse(frame);
        self.exception_of(&parsed, frame)
            .unwrap_or_else(|| self.lookup.queue_of(&parsed))
    }

    /// The worker that owns a frame that a NIC which was told the hash has not brought there; none for
    /// those that it has.
    #[inline]
    #[must_use]
    pub fn exception(&self, frame: &[u8]) -> Option<u32> {
        self.exception_of(&parse(frame), frame)
    }

    fn exception_of(&self, parsed: &Parsed, frame: &[u8]) -> Option<u32> {
        if self.carried
            && matches!(parsed.kind, Kind::Ipv4 | Kind::Ipv6)
            && let Some(inner) = answered(frame)
        {
            let ruled = self.ruled(&inner);
            return Some(ruled.unwrap_or_else(|| self.lookup.queue_of(&inner)));
        }
        self.ruled(parsed)
    }

    fn ruled(&self, parsed: &Parsed) -> Option<u32> {
        match self.rules.get(parsed.kind as usize)? {
            Some(Rule::Worker(worker)) => Some(*worker),
            Some(Rule::Fields(fields)) => Some(self.lookup.queue_over(parsed, fields)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::nic::named;
    use crate::toeplitz;
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
        let owners = Steering::new(rss(16)).with_carried(true).owners();
        let alone = Steering::new(rss(16)).owners();
        let mut elsewhere = 0;
        for port in 1000..1100 {
            let (client, server) = (([10, 0, 0, 1], port), ([198, 51, 100, 7], 53));
            let (there, back) = (udp(client, server), udp(server, client));
            let error = unreachable(&there);
            assert_eq!(owners.owner(&there), owners.owner(&back));
            assert_eq!(owners.owner(&error), owners.owner(&back));
            assert_eq!(owners.exception(&error), Some(owners.owner(&back)));
            assert_eq!(owners.exception(&there), None);
            elsewhere += u32::from(alone.owner(&error) != alone.owner(&back));
        }
        // The NIC alone would have sent nearly all of them to another worker.
        assert!(elsewhere > 80, "{elsewhere}");
    }

    #[test]
    fn a_kind_may_have_fields_of_its_own_or_one_worker() {
        let steering = Steering::new(rss(8))
            .with_rule(Kind::Ipv4Udp, Rule::Fields(vec![Field::DestinationAddress]))
            .with_rule(Kind::NotIp, Rule::Worker(5));
        let owners = steering.owners();
        let hash = toeplitz::hash(&SYMMETRIC.repeat(20), &[10, 0, 0, 1]);
        let expected = steering.rss().table()[hash as usize & 127];
        for port in 0..50 {
            let frame = udp(([192, 0, 2, port as u8], port), ([10, 0, 0, 1], 9));
            assert_eq!(owners.owner(&frame), expected);
        }
        assert_eq!(owners.owner(&[0; 60]), 5);
        assert!(!steering.by_nic_alone() && Steering::new(rss(8)).by_nic_alone());
        let far = Steering::new(rss(2)).with_rule(Kind::NotIp, Rule::Worker(9));
        assert_eq!((steering.last_worker(), far.last_worker()), (7, 9));
    }

    #[test]
    fn the_largest_share_is_that_of_the_table() {
        assert!((Steering::new(rss(4)).largest_share() - 0.25).abs() < 1e-9);
        // 128 entries over 3 workers: 43, 43, 42.
        assert!((Steering::new(rss(3)).largest_share() - 43.0 / 128.0).abs() < 1e-9);
    }
}
