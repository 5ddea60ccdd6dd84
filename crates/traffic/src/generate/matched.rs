//! Packets that match rules: each rule that some packet can meet first is met alike often, and one in as many packets as
//! there are rules meets none.

use std::net::Ipv4Addr;

use millrace_classify::{Budget, Classifier, Key, Rules, Trees};
use millrace_wire::checksum::{Sum, nonzero};
use millrace_wire::protocol;
use rand::rand_core::Rng;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::capture::Record;

/// Keys drawn for each rule until one meets it first.
const TRIES: usize = 64;
/// Bytes of the headers: Ethernet, IPv4, TCP.
const HEADERS: usize = 14 + 20 + 20;

/// What a packet is drawn from.
#[derive(Clone, Copy)]
enum Goal {
    /// a rule, by its index
    Rule(usize),
    /// this key, which has a class that no rule was met for
    Key([u32; 5]),
    /// a key in no rule
    None,
}

/// Packets to rules over the five fields of [`Key::flow4`].
pub struct Matched {
    rules: Rules,
    trees: Trees,
    goals: Vec<Goal>,
    /// classes that packets have
    classes: Vec<u32>,
    random: ChaCha8Rng,
    frame: Vec<u8>,
    at: usize,
    made: u64,
    start_ns: u64,
    gap_ns: u64,
}

impl Matched {
    /// Frames of `size` bytes, at least those of the headers, `gap_ns` apart from `start_ns` on.
    #[must_use]
    pub fn new(rules: Rules, seed: u64, size: usize, start_ns: u64, gap_ns: u64) -> Self {
        let trees = Trees::build(&rules, &Budget::default());
        let mut matched = Self {
            goals: Vec::new(),
            classes: Vec::new(),
            random: ChaCha8Rng::seed_from_u64(seed),
            frame: vec![0; size.max(HEADERS)],
            at: 0,
            made: 0,
            start_ns,
            gap_ns,
            rules,
            trees,
        };
        let mut classes = std::collections::BTreeSet::new();
        for index in 0..matched.rules.len() {
            if matched.key_of(Goal::Rule(index)).is_some() {
                matched.goals.push(Goal::Rule(index));
                classes.extend(matched.rules.get(index).map(|r| r.class));
            }
        }
        if matched.key_of(Goal::None).is_some() {
            matched.goals.push(Goal::None);
            classes.insert(0);
        }
        // Rules that chance did not meet may be the only ones of their class.
        let mut wanted: std::collections::BTreeSet<u32> =
            matched.rules.iter().map(|r| r.class).collect();
        wanted.insert(0);
        if !wanted.is_subset(&classes) {
            let made = Classifier::build(matched.rules.clone(), &Budget::default());
            for class in wanted.difference(&classes).copied().collect::<Vec<_>>() {
                let witness = made
                    .witness(class)
                    .and_then(|w| <[u32; 5]>::try_from(w).ok());
                if let Some(key) = witness.filter(carries) {
                    matched.goals.push(Goal::Key(key));
                    classes.insert(class);
                }
            }
        }
        matched.classes = classes.into_iter().collect();
        // An order in which neighbours have nothing in common.
        for i in (1..matched.goals.len()).rev() {
            let j = matched.random.random_range(0..=i);
            matched.goals.swap(i, j);
        }
        matched
    }

    /// Makes packets of one class alone, from now on; none if no rule of it is met.
    pub fn only(&mut self, class: u32) {
        let goals = std::mem::take(&mut self.goals);
        let of = |goal: &Goal| match goal {
            Goal::Rule(index) => self.rules.get(*index).map_or(0, |r| r.class),
            Goal::Key(key) => {
                let rule = self.trees.find(&self.rules, key);
                rule.and_then(|i| self.rules.get(i)).map_or(0, |r| r.class)
            }
            Goal::None => 0,
        };
        self.goals = goals.into_iter().filter(|g| of(g) == class).collect();
        self.classes.retain(|c| *c == class);
        self.at = 0;
    }

    /// The key that rules are over.
    #[must_use]
    pub fn key() -> Key {
        Key::flow4()
    }

    /// Rules that are met, and classes that packets have.
    #[must_use]
    pub fn met(&self) -> (usize, &[u32]) {
        let rules = self.goals.iter().filter(|g| matches!(g, Goal::Rule(_)));
        (rules.count(), &self.classes)
    }

    /// The next packet; none if there is no rule that a packet can meet.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend its items"
    )]
    pub fn next(&mut self) -> Option<Record<'_>> {
        let goal = *self.goals.get(self.at)?;
        self.at = (self.at + 1) % self.goals.len();
        let key = self.key_of(goal)?;
        let time_ns = self
            .start_ns
            .saturating_add(self.made.saturating_mul(self.gap_ns));
        self.made += 1;
        fill(&mut self.frame, key);
        Some(Record {
            time_ns,
            original_length: self.frame.len() as u32,
            interface: 0,
            data: &self.frame,
        })
    }

    /// A key that meets a goal, and that a packet can carry.
    fn key_of(&mut self, goal: Goal) -> Option<[u32; 5]> {
        for attempt in 0..TRIES {
            let mut key = [0; 5];
            let wanted = match goal {
                Goal::Key(key) => return Some(key),
                Goal::Rule(index) => {
                    let rule = self.rules.get(index)?;
                    for (x, (lo, hi)) in key.iter_mut().zip(rule.ranges) {
                        // Both corners first.
                        *x = match attempt {
                            0 => *lo,
                            1 => *hi,
                            _ => self.random.random_range(*lo..=*hi),
                        };
                    }
                    // Where it may be any, a protocol that hosts speak.
                    let (lo, hi) = *rule.ranges.get(4)?;
                    for usual in [u32::from(protocol::TCP), u32::from(protocol::UDP)] {
                        if lo < hi
                            && (lo..=hi).contains(&usual)
                            && (attempt + usual as usize).is_multiple_of(3)
                        {
                            key[4] = usual;
                        }
                    }
                    Some(index)
                }
                Goal::None => {
                    key = [
                        self.random.next_u32(),
                        self.random.next_u32(),
                        self.random.next_u32() >> 16,
                        self.random.next_u32() >> 16,
                        u32::from([protocol::TCP, protocol::UDP][attempt % 2]),
                    ];
                    None
                }
            };
            if carries(&key) && self.trees.find(&self.rules, &key) == wanted {
                return Some(key);
            }
        }
        None
    }
}

/// Whether a packet can have this key: only TCP and UDP have ports.
fn carries(key: &[u32; 5]) -> bool {
    let ports = key[4] == u32::from(protocol::TCP) || key[4] == u32::from(protocol::UDP);
    ports || (key[2] == 0 && key[3] == 0)
}

/// An IPv4 packet of this key in all of the frame.
fn fill(frame: &mut [u8], key: [u32; 5]) {
    frame.fill(0);
    let length = frame.len();
    let [src, dst, sport, dport, number] = key;
    let number = number as u8;
    let (src, dst) = (Ipv4Addr::from(src).octets(), Ipv4Addr::from(dst).octets());
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = frame.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    put(14, &[0x45, 0]);
    put(16, &((length - 14) as u16).to_be_bytes());
    put(20, &[0x40, 0, 64, number]);
    put(26, &src);
    put(30, &dst);
    let upper = length - 34;
    if number == protocol::TCP || number == protocol::UDP {
        put(34, &(sport as u16).to_be_bytes());
        put(36, &(dport as u16).to_be_bytes());
    }
    if number == protocol::TCP {
        put(46, &[5 << 4, 16, 0xff, 0xff]);
    } else if number == protocol::UDP {
        put(38, &(upper as u16).to_be_bytes());
    }
    if number == protocol::ICMP {
        // An echo request.
        put(34, &[8]);
    }
    let network = Sum::default()
        .bytes(frame.get(14..34).unwrap_or(&[]))
        .checksum();
    let pseudo = Sum::default().pseudo(&src, &dst, number, upper as u32);
    let echo = Sum::default()
        .bytes(frame.get(34..).unwrap_or(&[]))
        .checksum();
    let transport = pseudo.bytes(frame.get(34..).unwrap_or(&[])).checksum();
    let mut put = |at: usize, number: u16| {
        if let Some(place) = frame.get_mut(at..at + 2) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    };
    put(24, network);
    if number == protocol::TCP {
        put(50, transport);
    } else if number == protocol::UDP {
        put(40, nonzero(transport));
    } else if number == protocol::ICMP {
        put(36, echo);
    }
}
