//! Internet checksums (RFC 1071), recognised by their values and not by their form: an expression is evaluated for random
//! packets and compared with the definition. A wrong guess would have to agree in 16 bits with each of several of them.

use std::collections::BTreeMap;

use millrace_model::exec::Written;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::walk::cone;
use millrace_model::expr::{ExprId, Node};

use super::Printer;

/// Packets that are tried.
const TRIALS: u64 = 8;
/// Bytes of a packet that are drawn.
const DRAWN: u64 = 400;
/// Expressions of more nodes are not tried.
const MOST: usize = 20_000;
/// Most fields of which some may be covered.
const FIELDS: usize = 8;
/// Sums are equal if they leave the same remainder by this.
const ONES: u64 = 0xffff;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same draws in every run.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn drawn(trial: u64) -> BTreeMap<u64, u8> {
    (0..DRAWN)
        .map(|at| (at, mix(trial << 32 | at) as u8))
        .collect()
}

/// A checksum that follows what else is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adjusted {
    /// the fields whose change it accounts for
    pub fields: Vec<String>,
    /// one of zero, which says that there is none, stays
    pub unless_zero: bool,
}

impl Printer<'_> {
    /// In words, if a condition says that the IPv4 header's checksum holds, or that it does not.
    pub(super) fn holds(&self, e: ExprId, holds: bool) -> Option<String> {
        let (network, "ip") = self.layout.network()? else {
            return None;
        };
        let key = (self.arena.identity(), e, network);
        let known = self.memory.checksums.borrow().get(&key).copied();
        let says = match known {
            Some(k) => k,
            None => {
                let says = self.says(e, network);
                self.memory.checksums.borrow_mut().insert(key, says);
                says
            }
        };
        Some(if says? == holds {
            "ip.checksum holds".to_owned()
        } else {
            "ip.checksum does not hold".to_owned()
        })
    }

    fn says(&self, e: ExprId, network: i64) -> Option<bool> {
        let a = self.arena;
        let cone = cone(a, &[e], |_| false);
        if cone.len() < 16 || cone.len() > MOST {
            return None;
        }
        let sum_field = network + 10;
        let mut sums = false;
        for id in &cone {
            match a.node(*id) {
                Node::Sym(_) => return None,
                Node::Byte { base: None, at } if (network..network + 60).contains(at) => {
                    sums |= *at == sum_field;
                }
                Node::Byte { .. } => return None,
                _ => {}
            }
        }
        if !sums {
            return None;
        }
        let network = network as u64;
        let agrees = |words: Option<u64>, holds: bool| {
            (0..2 * TRIALS).all(|trial| {
                let mut packet = drawn(trial);
                let words = words.unwrap_or(5 + mix(trial) % 11);
                packet.insert(network, 0x40 | words as u8);
                let sum = |packet: &BTreeMap<u64, u8>| {
                    (0..4 * words).fold(0_u64, |n, i| {
                        let byte = packet.get(&(network + i)).copied().unwrap_or(0);
                        n + (u64::from(byte) << (8 * (1 - i % 2)))
                    }) % ONES
                };
                if trial % 2 == 0 {
                    packet.insert(network + 10, 0);
                    packet.insert(network + 11, 0);
                    let [high, low] = ((ONES - sum(&packet)) as u16).to_be_bytes();
                    packet.insert(network + 10, high);
                    packet.insert(network + 11, low);
                }
                let right = sum(&packet) == 0;
                let value = Assignment::new(IdMap::default(), packet).value(a, e) == 1;
                value == (right == holds)
            })
        };
        // Of any length, or, on a path that knows it, of one.
        let lengths = std::iter::once(None).chain((5..16).map(Some));
        for words in lengths {
            for holds in [true, false] {
                if agrees(words, holds) {
                    return Some(holds);
                }
            }
        }
        None
    }

    /// Whether a byte, or a few bits, are the lowest of a number, as far as random packets and symbols tell.
    pub(super) fn is_low(&self, whole: ExprId, low: ExprId) -> bool {
        let key = (self.arena.identity(), whole, low);
        if let Some(known) = self.memory.lows.borrow().get(&key) {
            return *known;
        }
        let a = self.arena;
        let mask = millrace_model::expr::mask(a.width(low));
        let cone = cone(a, &[whole, low], |_| false);
        let same = |trial: u64| {
            let symbols = cone.iter().filter_map(|id| match a.node(*id) {
                Node::Sym(s) => Some((*s, mix(trial ^ u64::from(s.0) << 20 ^ 1 << 60))),
                _ => None,
            });
            let with = Assignment::new(symbols.collect(), drawn(trial));
            with.value(a, whole) & mask == with.value(a, low)
        };
        let is = cone.len() <= MOST && (0..TRIALS).all(same);
        self.memory.lows.borrow_mut().insert(key, is);
        is
    }

    /// Fields that the two bytes written to a checksum follow, if they are the old checksum brought up to date
    /// for other bytes that the path writes (RFC 1624).
    #[must_use]
    pub fn adjusted(
        &self,
        sum: [&Written; 2],
        others: &[(String, Vec<Written>)],
    ) -> Option<Adjusted> {
        let mut bytes = vec![sum[0].byte, sum[1].byte];
        bytes.extend(others.iter().flat_map(|o| o.1.iter().map(|w| w.byte)));
        let names: Vec<String> = others.iter().map(|o| o.0.clone()).collect();
        let key = (self.arena.identity(), bytes, names);
        let known = self.memory.adjusted.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let found = self.follows(sum, others);
            self.memory.adjusted.borrow_mut().insert(key, found.clone());
            found
        })
    }

    fn follows(&self, sum: [&Written; 2], others: &[(String, Vec<Written>)]) -> Option<Adjusted> {
        let a = self.arena;
        let bytes = [sum[0].byte, sum[1].byte];
        let cone = cone(a, &bytes, |_| false);
        if cone.len() > MOST || others.is_empty() || others.len() > FIELDS {
            return None;
        }
        let all: Vec<ExprId> = others
            .iter()
            .flat_map(|o| o.1.iter().map(|w| w.byte))
            .chain(bytes)
            .collect();
        let symbols: Vec<_> = millrace_model::expr::walk::cone(a, &all, |_| false)
            .into_iter()
            .filter_map(|id| match a.node(id) {
                Node::Sym(s) => Some(*s),
                _ => None,
            })
            .collect();
        let header = self.layout.network().map(|n| n.0 as u64);
        let assignment = |trial: u64, zero: bool| {
            let mut packet = drawn(trial);
            if let Some(at) = header {
                packet.insert(at, 0x45);
            }
            let values = symbols
                .iter()
                .map(|s| (*s, mix(trial ^ u64::from(s.0) << 20 ^ 1 << 60)))
                .collect();
            let first = Assignment::new(values, packet);
            if !zero {
                return first;
            }
            let at = sum.map(|w| offset(&first, self, w));
            let mut packet = first.packet.clone();
            packet.extend(at.map(|at| (at, 0)));
            Assignment::new(first.symbols, packet)
        };
        let mut left: Vec<u32> = (1..1_u32 << others.len()).collect();
        for trial in 0..TRIALS {
            let now = assignment(trial, false);
            let at = offset(&now, self, sum[0]);
            let change = |w: &Written| {
                let offset = offset(&now, self, w);
                let shift = 8 * (1 - (offset ^ at) % 2);
                let old = now.packet.get(&(offset & 0xffff)).copied().unwrap_or(0);
                let new = now.value(a, w.byte);
                // What is more than before, as a remainder.
                (ONES + (new << shift) % ONES - (u64::from(old) << shift) % ONES) % ONES
            };
            let more = sum.iter().map(|w| change(w)).sum::<u64>() % ONES;
            let changes: Vec<u64> = others
                .iter()
                .map(|o| o.1.iter().map(&change).sum::<u64>() % ONES)
                .collect();
            left.retain(|set| {
                let covered: u64 = changes
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| set >> i & 1 == 1)
                    .map(|c| *c.1)
                    .sum();
                (more + covered).is_multiple_of(ONES)
            });
            if left.is_empty() {
                return None;
            }
        }
        let set = *left.first()?;
        let fields = others.iter().enumerate();
        let fields = fields.filter(|(i, _)| set >> i & 1 == 1);
        let zero = assignment(TRIALS, true);
        Some(Adjusted {
            fields: fields.map(|(_, o)| o.0.clone()).collect(),
            unless_zero: bytes.iter().all(|b| zero.value(a, *b) == 0),
        })
    }
}

fn offset(now: &Assignment, printer: &Printer<'_>, w: &Written) -> u64 {
    let base = w.base.map_or(0, |b| now.value(printer.arena, b));
    base.wrapping_add(w.at as u64)
}
