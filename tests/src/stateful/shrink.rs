//! Smaller cases that still fail.

use super::case::{Amount, Case, Key, Leak, Source, When};

/// Cases one step smaller than a case, the largest steps first.
#[must_use]
pub fn smaller(case: &Case) -> Vec<Case> {
    let mut out = Vec::new();
    for half in [0, 1] {
        if case.packets.len() > 20 {
            let middle = case.packets.len() / 2;
            let mut packets = case.packets.clone();
            if half == 0 {
                packets.truncate(middle);
            } else {
                packets.drain(..middle);
            }
            out.push(Case {
                packets,
                ..case.clone()
            });
        }
    }
    for i in 0..case.program.blocks.len() {
        out.extend(without(case, i));
    }
    for (i, block) in case.program.blocks.iter().enumerate() {
        let with = |change: &dyn Fn(&mut super::case::Block)| {
            let mut smaller = case.clone();
            if let Some(block) = smaller.program.blocks.get_mut(i) {
                change(block);
            }
            smaller
        };
        if block.leak != Leak::None {
            out.push(with(&|b| b.leak = Leak::None));
        }
        if block.when != When::Always {
            out.push(with(&|b| b.when = When::Always));
        }
        if let Source::Value { amount, .. } = block.source
            && amount != Amount::One
        {
            out.push(with(&|b| {
                if let Source::Value { amount, .. } = &mut b.source {
                    *amount = Amount::One;
                }
            }));
        }
    }
    out
}

/// The case without a block, if no other one needs its number; objects that nobody uses stay.
fn without(case: &Case, block: usize) -> Option<Case> {
    let mut smaller = case.clone();
    if block >= smaller.program.blocks.len() || smaller.program.blocks.len() == 1 {
        return None;
    }
    smaller.program.blocks.remove(block);
    let moved = |n: usize| match n {
        n if n == block => None,
        n if n > block => Some(n - 1),
        n => Some(n),
    };
    for b in &mut smaller.program.blocks {
        if let When::Odd(n) = b.when {
            b.when = moved(n).map_or(When::Always, When::Odd);
        }
        let key = match &mut b.source {
            Source::Value { key, amount, .. } => {
                if let Amount::Of(n) = *amount {
                    *amount = moved(n).map_or(Amount::One, Amount::Of);
                }
                Some(key)
            }
            Source::First { key, .. }
            | Source::Delete { key, .. }
            | Source::Through { key, .. } => Some(key),
            Source::Bloom(key) | Source::Lease(key) | Source::Sketch(key) => Some(key),
            _ => None,
        };
        if let Some(key) = key
            && let Key::Of(n) = *key
        {
            *key = moved(n).map_or(Key::Constant(0), Key::Of);
        }
    }
    Some(smaller)
}

/// The smallest case that `fails` within this many trials.
pub fn shrink(case: &Case, trials: usize, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut left = trials;
    'again: loop {
        for candidate in smaller(&best) {
            if left == 0 {
                return best;
            }
            left -= 1;
            if fails(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}
