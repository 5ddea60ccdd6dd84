//! `SourceIPHashMapper(NODES SEED, SADDR SPORT DADDR DPORT FOUT ROUT ID, …)`: a mapper for rewriters: each new flow takes the pattern that its
//! source address leads to, so that all flows of a source have the same. Each pattern has NODES places on a ring, by its ID; a source has
//! the next one behind its own place (consistent hashing: Karger et al., STOC 1997), so that it keeps its pattern while others come and go.
//! Where the places are is by a hash of this project's; which pattern a source has is not what Click's libc draws.

use super::prelude::*;
use crate::rewriter::{Mapper, Order, Specification};

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("SourceIPHashMapper", "0/0", "a/a", make)];

/// Places on a ring, at most.
const MOST: usize = 1 << 16;

/// Mixes the bits of a number, so that each depends on all (the finaliser of SplitMix64: Steele et al., OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    let all = args.all();
    let (first, servers) = all.split_first().ok_or("too few arguments: NODES SEED")?;
    let words = crate::language::args::words(first);
    let [nodes, seed] = words.as_slice() else {
        return Err("the first argument is NODES SEED".into());
    };
    let number = |text: &str| crate::arguments::integer(text);
    let nodes = number(nodes).and_then(|n| usize::try_from(n).ok());
    let nodes = nodes.filter(|n| *n > 0 && n.saturating_mul(servers.len()) <= MOST);
    let nodes = nodes.ok_or(format!(
        "NODES: a number of places, at most {MOST} together"
    ))?;
    let seed = number(seed).ok_or("SEED: a number")? as u64;
    if servers.is_empty() {
        return Err("too few arguments: a pattern".into());
    }
    let (mut patterns, mut ring) = (Vec::new(), Vec::new());
    for (at, text) in servers.iter().enumerate() {
        let (text, id) = text
            .trim()
            .rsplit_once(char::is_whitespace)
            .unwrap_or(("", ""));
        let id = number(id).and_then(|n| u32::try_from(n).ok());
        let id = id.ok_or(format!("pattern {at}: its ID is no number"))?;
        let text = format!("pattern {}", text.trim());
        let none = |_: &str| None;
        patterns.push(Specification::read(
            &text,
            true,
            args.names,
            &|_| None,
            none,
        )?);
        let place = |node| mixed(mixed(seed ^ u64::from(id) << 32) ^ node as u64);
        ring.extend((0..nodes).map(|node| (place(node), at)));
    }
    ring.sort_unstable();
    Ok(Box::new(Hashed {
        mapper: Mapper {
            patterns,
            order: Order::BySource(Box::new(move |source| {
                let place = mixed(u64::from(u32::from_be_bytes(source)));
                let next = ring.partition_point(|(at, _)| *at < place);
                let found = ring.get(next).or(ring.first());
                found.map_or(0, |f| f.1)
            })),
        },
    }))
}

struct Hashed {
    mapper: Mapper,
}

impl Element for Hashed {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Silent)
    }

    fn mapper(&mut self) -> Option<&mut Mapper> {
        Some(&mut self.mapper)
    }
}
