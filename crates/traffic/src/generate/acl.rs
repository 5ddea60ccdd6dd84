//! Access control lists in the manner of ClassBench (Taylor and Turner, Transactions on Networking 15(3), 2007).
//!
//! ClassBench draws rules from seeds: measured distributions of prefix lengths, of kinds of port ranges and of protocols, and
//! of how many addresses share a network. The tables here are counted over sets that it made of its seeds acl1, fw1 and
//! ipc1, rounded to percents; correlations between columns beyond that of the two port kinds are left out.

use std::fmt::Write as _;

use rand::rand_core::Rng;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Most rules of a list.
pub const MOST_RULES: u32 = 1 << 20;

/// The seed after which a list is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AclShape {
    /// an access control list of an Internet provider (acl1): long prefixes on both sides, any source port
    Acl,
    /// a firewall (fw1): wildcards on one side, and source ports
    Fw,
    /// an IP chain (ipc1): prefixes of all lengths
    Ipc,
}

impl std::str::FromStr for AclShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "acl" => Ok(Self::Acl),
            "fw" => Ok(Self::Fw),
            "ipc" => Ok(Self::Ipc),
            other => Err(format!("`{other}` is not acl, fw or ipc")),
        }
    }
}

/// A list to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Acl {
    /// after which seed
    pub shape: AclShape,
    /// rules, 1 to 2^20
    pub rules: u32,
    /// classes, from 1 on: each rule has one of them, all alike
    pub classes: u32,
    /// what chance is drawn from
    pub seed: u64,
}

/// Kinds of port ranges, as ClassBench names them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// any
    Wc,
    /// 1024 to 65535
    Hi,
    /// some range
    Ar,
    /// one port
    Em,
}

type Weighted<T> = &'static [(T, u32)];

struct Table {
    source: Weighted<u32>,
    destination: Weighted<u32>,
    /// kinds of the source's and the destination's ports
    ports: Weighted<(Ports, Ports)>,
    protocol: Weighted<u8>,
    /// distinct prefixes for a hundred rules: sources, destinations
    distinct: (u32, u32),
}

use Ports::{Ar, Em, Hi, Wc};

const ACL: Table = Table {
    source: &[
        (32, 54),
        (31, 25),
        (23, 7),
        (30, 5),
        (24, 5),
        (22, 2),
        (29, 1),
        (25, 1),
    ],
    destination: &[
        (32, 51),
        (31, 20),
        (22, 7),
        (30, 5),
        (23, 4),
        (24, 2),
        (21, 2),
        (25, 2),
        (16, 1),
        (17, 1),
    ],
    ports: &[((Wc, Em), 60), ((Wc, Wc), 28), ((Wc, Ar), 12)],
    protocol: &[(6, 87), (0, 8), (1, 3), (17, 2)],
    distinct: (41, 7),
};

const FW: Table = Table {
    source: &[
        (0, 41),
        (1, 20),
        (32, 13),
        (31, 9),
        (30, 3),
        (2, 3),
        (28, 2),
        (29, 2),
        (27, 2),
        (21, 1),
    ],
    destination: &[
        (32, 33),
        (31, 28),
        (0, 18),
        (1, 9),
        (30, 6),
        (2, 1),
        (28, 1),
        (22, 1),
        (21, 1),
        (29, 1),
    ],
    ports: &[
        ((Wc, Em), 58),
        ((Wc, Wc), 18),
        ((Em, Wc), 11),
        ((Hi, Hi), 6),
        ((Em, Em), 3),
        ((Em, Hi), 2),
        ((Hi, Em), 2),
    ],
    protocol: &[(6, 57), (17, 33), (47, 5), (1, 4), (0, 1)],
    distinct: (36, 71),
};

const IPC: Table = Table {
    source: &[
        (32, 20),
        (24, 15),
        (23, 12),
        (31, 8),
        (0, 8),
        (25, 8),
        (1, 5),
        (22, 5),
        (17, 4),
        (26, 4),
    ],
    destination: &[
        (32, 27),
        (24, 13),
        (31, 11),
        (25, 10),
        (23, 7),
        (16, 5),
        (0, 5),
        (26, 4),
        (27, 3),
        (15, 3),
    ],
    ports: &[
        ((Wc, Wc), 38),
        ((Wc, Em), 34),
        ((Em, Wc), 16),
        ((Wc, Hi), 6),
        ((Wc, Ar), 3),
        ((Ar, Wc), 2),
        ((Em, Em), 1),
    ],
    protocol: &[(17, 38), (0, 33), (6, 27), (1, 1), (51, 1)],
    distinct: (28, 48),
};

/// Ports of services, the most frequent first.
const SERVICES: [u16; 24] = [
    80, 22, 25, 53, 443, 123, 1521, 21, 514, 69, 135, 1433, 544, 2105, 1526, 1221, 23, 110, 161,
    389, 1711, 8080, 9003, 137,
];

struct Rule {
    source: (u32, u32),
    destination: (u32, u32),
    ports: [(u16, u16); 2],
    protocol: u8,
    class: u32,
}

impl Acl {
    /// The list in ClassBench's form with a class, a rule a line; more specific rules come first, and none comes twice.
    #[must_use]
    pub fn text(&self) -> String {
        let table = match self.shape {
            AclShape::Acl => &ACL,
            AclShape::Fw => &FW,
            AclShape::Ipc => &IPC,
        };
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let count = self.rules.clamp(1, MOST_RULES);
        let pool = |share: u32| (u64::from(count) * u64::from(share) / 100).max(4) as usize;
        let sources = prefixes(&mut random, table.source, pool(table.distinct.0));
        let destinations = prefixes(&mut random, table.destination, pool(table.distinct.1));
        let mut rules = Vec::with_capacity(count as usize);
        let mut seen = std::collections::HashSet::new();
        let mut tries = 0;
        while rules.len() < count as usize {
            tries += 1;
            // Small pools may not have so many rules: ports of all numbers then tell them apart.
            let rule = draw(
                &mut random,
                table,
                &sources,
                &destinations,
                self.classes,
                tries > 4 * count,
            );
            if seen.insert((rule.source, rule.destination, rule.ports, rule.protocol)) {
                rules.push(rule);
            }
        }
        // Stable, so that the order among equals is the drawn one.
        rules.sort_by_key(|r| {
            let ports = r
                .ports
                .iter()
                .filter(|p| p.0 != 0 || p.1 != u16::MAX)
                .count() as u32;
            std::cmp::Reverse(r.source.1 + r.destination.1 + 8 * ports + u32::from(r.protocol > 0))
        });
        let mut out = String::new();
        for r in &rules {
            line(&mut out, r);
        }
        out
    }
}

fn line(out: &mut String, r: &Rule) {
    let address = |a: u32| std::net::Ipv4Addr::from(a);
    let mask = if r.protocol == 0 { 0 } else { 0xff };
    let [s, d] = r.ports;
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "@{}/{}\t{}/{}\t{} : {}\t{} : {}\t0x{:02x}/0x{mask:02X}\tclass {}",
        address(r.source.0),
        r.source.1,
        address(r.destination.0),
        r.destination.1,
        s.0,
        s.1,
        d.0,
        d.1,
        r.protocol,
        r.class
    );
}

fn pick<T: Copy>(random: &mut impl Rng, table: &[(T, u32)]) -> Option<T> {
    let sum: u32 = table.iter().map(|t| t.1).sum();
    let mut at = random.random_range(0..sum.max(1));
    for (value, weight) in table {
        if at < *weight {
            return Some(*value);
        }
        at -= weight;
    }
    None
}

/// Distinct prefixes, most of them under a few networks of 16 bits.
fn prefixes(random: &mut impl Rng, lengths: Weighted<u32>, count: usize) -> Vec<(u32, u32)> {
    let networks: Vec<u32> = (0..(count / 40).clamp(2, 64))
        .map(|_| random.random_range(1..224) << 24 | random.random_range(0..256) << 16)
        .collect();
    let mut all = Vec::with_capacity(count);
    let mut seen = std::collections::HashSet::new();
    // Of short prefixes there are not so many; what comes again is drawn again, a few times.
    for _ in 0..8 * count {
        let length = pick(random, lengths).unwrap_or(32);
        let network = networks[random.random_range(0..networks.len())];
        // Hosts crowd at the beginning of their network, as real ones do.
        let bits = random.random_range(8..=16_u32);
        let host = random.random_range(0..1_u32 << bits);
        let address = match length {
            0..16 => random.next_u32(),
            _ => network | host << 4 & 0xffff | random.random_range(0..16),
        };
        let address = match length {
            0 => 0,
            n => address & (u32::MAX << (32 - n)),
        };
        if seen.insert((address, length)) || length < 4 {
            all.push((address, length));
        }
        if all.len() == count {
            break;
        }
    }
    all
}

fn draw(
    random: &mut impl Rng,
    table: &Table,
    sources: &[(u32, u32)],
    destinations: &[(u32, u32)],
    classes: u32,
    anywhere: bool,
) -> Rule {
    let protocol = pick(random, table.protocol).unwrap_or(6);
    let (source, destination) = match protocol {
        // Others have no ports.
        6 | 17 => pick(random, table.ports).unwrap_or((Wc, Em)),
        _ if anywhere => (Wc, Em),
        _ => (Wc, Wc),
    };
    let of = |all: &[(u32, u32)], random: &mut dyn Rng| {
        let at = random.random_range(0..all.len().max(1));
        all.get(at).copied().unwrap_or((0, 0))
    };
    let mut range = |kind| match kind {
        Wc => (0, u16::MAX),
        Hi => (1024, u16::MAX),
        Em if anywhere => {
            let port = random.random_range(1..=u16::MAX);
            (port, port)
        }
        Em => {
            let port = SERVICES[random.random_range(0..SERVICES.len())];
            (port, port)
        }
        Ar => {
            let low = random.random_range(1..60_000_u16);
            (low, low.saturating_add(random.random_range(1..4096)))
        }
    };
    let ports = [range(source), range(destination)];
    Rule {
        source: of(sources, random),
        destination: of(destinations, random),
        ports,
        protocol,
        class: random.random_range(1..=classes.max(1)),
    }
}
