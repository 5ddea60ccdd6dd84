//! What the reference interpreter says of a packet that enters by a port: what a synthesis has to do.

use std::collections::BTreeSet;

use millrace_click::meaning::Meaning;
use millrace_click::packet::Packet;

use crate::Synthesis;
use crate::action::Verdict;
use crate::diagram::Node;

/// What became of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Became {
    /// it left by the port of a device
    Left(u8, Vec<u8>),
    /// an element dropped it
    Dropped(usize),
    /// it is handed to the host: it came to an element whose work is not synthesised
    Outside,
    /// something else: it is held, or became several
    Other(usize),
}

/// The interpreter beside a synthesis.
pub struct Reference<'a> {
    of: &'a Synthesis,
    /// elements where packets enter, by port
    enters: Vec<Option<usize>>,
    /// ports of elements where packets leave
    leaves: Vec<Option<u8>>,
    /// elements whose work is not synthesised
    outside: BTreeSet<usize>,
}

impl<'a> Reference<'a> {
    /// Looks for where packets enter and leave.
    #[must_use]
    pub fn new(of: &'a Synthesis) -> Self {
        let count = of.router.graph().elements.len();
        let number = |name: &String| of.ports.iter().position(|p| p == name);
        let mut enters = vec![None; of.ports.len()];
        let mut leaves = vec![None; count];
        for id in 0..count {
            match of.router.meaning(id) {
                Some(Meaning::Enter(name)) => {
                    if let Some(slot) = number(&name).and_then(|n| enters.get_mut(n)) {
                        *slot = Some(id);
                    }
                }
                Some(Meaning::Leave(name)) => {
                    if let Some(slot) = leaves.get_mut(id) {
                        *slot = number(&name).map(|n| n as u8);
                    }
                }
                _ => {}
            }
        }
        let outside = of.actions.all().filter_map(|action| match action.verdict {
            Verdict::Hand(id) => Some(id),
            _ => None,
        });
        Self {
            of,
            enters,
            leaves,
            outside: outside.collect(),
        }
    }

    /// Gives a packet to the interpreter at a time, ns: what became of it, and whether it came to an element whose work is not
    /// synthesised, so that it may be handed over. None if no element receives from the port.
    #[must_use]
    pub fn pass(&self, port: u8, time: u64, frame: &[u8]) -> Option<(Became, bool)> {
        let from = (*self.enters.get(usize::from(port))?)?;
        let seen = || -> u64 {
            let counts = self.of.router.counts();
            let of = |id: &usize| counts.get(*id).map_or(0, |c| c.inputs.iter().sum::<u64>());
            self.outside.iter().map(of).sum()
        };
        let before = if self.outside.is_empty() { 0 } else { seen() };
        self.of.router.advance(i64::try_from(time).unwrap_or(i64::MAX));
        let outcomes = self.of.router.enter(from, 0, Packet::new(frame));
        let outside = !self.outside.is_empty() && seen() > before;
        let became = match outcomes.as_slice() {
            [one] if one.left => match self.leaves.get(one.element).copied().flatten() {
                Some(port) => Became::Left(port, one.packet.data().to_vec()),
                None => Became::Other(1),
            },
            [one] if self.of.options.reasons => Became::Dropped(one.element),
            [_] => Became::Dropped(usize::MAX),
            several => Became::Other(several.len()),
        };
        Some((became, outside))
    }

    /// The element that an outcome names, in words.
    #[must_use]
    pub fn words(&self, became: &Became) -> String {
        match became {
            Became::Left(port, bytes) => {
                let name = self.of.ports.get(usize::from(*port));
                let name = name.map_or("?", String::as_str);
                let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
                format!("leaves by {name}: {}", hex.join(" "))
            }
            Became::Dropped(id) => format!("dropped: {}", crate::emit::reason(self.of, *id)),
            Became::Outside => "handed over".into(),
            Became::Other(count) => format!("became {count} packets"),
        }
    }
}

/// Frames for the paths of a synthesis, at both ends of each interval, as many paths as are asked for.
#[must_use]
pub fn witnesses(of: &Synthesis, most: usize) -> Vec<(u8, Vec<u8>)> {
    let (paths, _) = crate::classes::paths(of, of.root, most);
    let mut frames = Vec::new();
    for (path, _) in &paths {
        for high in [false, true] {
            let values: Vec<_> = path
                .iter()
                .map(|(var, low, top)| (*var, if high { *top } else { *low }))
                .collect();
            frames.push(crate::witness::frame(&values));
        }
    }
    frames
}

/// Values of fields at which something changes, with those beside them: for random packets that mean something.
#[must_use]
pub fn interesting(of: &Synthesis) -> Vec<(crate::field::Var, Vec<u64>)> {
    let mut all: std::collections::BTreeMap<_, Vec<u64>> = std::collections::BTreeMap::new();
    let mut roots = vec![of.root];
    for asked in of.actions.all_asked() {
        roots.extend(asked.then.iter().map(|t| t.1));
    }
    for id in roots.into_iter().flat_map(|root| of.store.reachable(root)) {
        if let Node::Branch { var, kids } = of.store.node(id) {
            let values = all.entry(*var).or_default();
            for (first, _) in kids {
                values.extend([first.saturating_sub(1), *first, (first + 1).min(var.most())]);
            }
            values.push(var.most());
        }
    }
    all.into_iter().collect()
}

/// Random frames, without end: fields have values at which something changes, or any; the same for the same seed.
pub fn random(of: &Synthesis, seed: u64) -> impl Iterator<Item = (u8, Vec<u8>)> {
    use rand::{RngExt, SeedableRng};
    let interesting = interesting(of);
    let ports = of.ports.len() as u64;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    std::iter::repeat_with(move || {
        let mut values = vec![(crate::field::Var::Port, rng.random_range(0..ports.max(1)))];
        for (var, some) in &interesting {
            match rng.random_range(0..6) {
                0 | 1 => {}
                2 => values.push((*var, rng.random_range(0..=var.most()))),
                _ => {
                    let at = rng.random_range(0..some.len().max(1));
                    values.extend(some.get(at).map(|value| (*var, *value)));
                }
            }
        }
        values.retain(|(var, value)| {
            // Lengths of frames stay below what ports take.
            !matches!(var, crate::field::Var::Length | crate::field::Var::Room(..)) || *value < 2000
        });
        let (port, mut frame) = crate::witness::frame(&values);
        let padding = rng.random_range(0..8_usize);
        frame.extend_from_slice([0xaa; 5].get(..padding).unwrap_or(&[]));
        (port, frame)
    })
}
