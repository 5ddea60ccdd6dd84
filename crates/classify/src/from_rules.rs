//! A diagram from rules: halves merged, with the order of words chosen on a sample.

use crate::budget::{Exceeded, Meter};
use crate::diagram::{Diagrams, First, NONE, Ref};
use crate::rules::Rules;

/// Rules of the sample on which orders are compared.
const SAMPLE: usize = 256;
/// Steps that may be spent on one order of it.
const TRY: u64 = 200_000;
/// Fields up to which all orders are tried: 24 of them.
const MOST_PERMUTED: usize = 4;
/// Edges from which on an arena is swept between two rounds.
const SWEEP: usize = 1 << 20;

/// The diagram of rules whose words come in `order`: their classes as terminals, and [`NONE`] where no rule says anything.
///
/// # Errors
/// [`Exceeded`] when the meter runs out.
pub fn diagram(
    rules: &Rules,
    order: &[usize],
    meter: &mut Meter,
) -> Result<(Diagrams, Ref), Exceeded> {
    let mut diagrams = Diagrams::new();
    let words = rules.key().words();
    let max: Vec<u32> = order
        .iter()
        .map(|w| words.get(*w).map_or(0, |w| w.max()))
        .collect();
    let mut roots = Vec::with_capacity(rules.len());
    for rule in rules.iter() {
        meter.spend(order.len() as u64)?;
        let of = |w: &usize| rule.ranges.get(*w).copied().unwrap_or((0, 0));
        let ranges: Vec<(u32, u32)> = order.iter().map(of).collect();
        let class = Ref::terminal(rule.class);
        roots.push(diagrams.cube(&ranges, &max, class, NONE));
    }
    let mut kept = 0;
    while roots.len() > 1 {
        let mut merged = Vec::with_capacity(roots.len().div_ceil(2));
        for pair in roots.chunks(2) {
            merged.push(match *pair {
                [f, g] => diagrams.merge(&First, f, g, meter)?,
                _ => pair.first().copied().unwrap_or(NONE),
            });
        }
        roots = merged;
        // What the rounds before made is of no use any more.
        if diagrams.size().1 > SWEEP.max(4 * kept) || roots.len() == 1 {
            diagrams.keep(&mut roots);
            kept = diagrams.size().1;
        }
    }
    let root = roots.first().copied().unwrap_or(NONE);
    Ok((diagrams, root))
}

/// An order of words with a small diagram: of a sample of the rules, all orders of up to four fields behind those of one
/// byte are tried, else fields come as they are in the key. Words of a field stay together.
#[must_use]
pub fn order(rules: &Rules) -> Vec<usize> {
    let key = rules.key();
    let fields: Vec<usize> = (0..key.fields().len()).collect();
    let short = |f: &usize| key.fields().get(*f).is_some_and(|f| f.bytes == 1);
    let (first, others): (Vec<usize>, Vec<usize>) = fields.into_iter().partition(short);
    let words = |order: &[usize]| {
        let of = |f: &usize| {
            let f = *f;
            let words = key.words().iter().enumerate();
            words.filter(move |(_, w)| w.field == f).map(|(i, _)| i)
        };
        first
            .iter()
            .chain(order)
            .flat_map(of)
            .collect::<Vec<usize>>()
    };
    if others.len() > MOST_PERMUTED {
        return words(&others);
    }
    let step = rules.len().div_ceil(SAMPLE).max(1);
    let keep: Vec<bool> = (0..rules.len()).map(|i| i % step == 0).collect();
    let sample = rules.filtered(&keep);
    let cost = |order: &Vec<usize>| {
        let made = diagram(&sample, order, &mut Meter::new(TRY));
        made.map_or(usize::MAX, |(d, _)| d.size().1 + 8 * d.size().0)
    };
    let all = permutations(&others).into_iter().map(|o| words(&o));
    all.min_by_key(cost).unwrap_or_else(|| words(&others))
}

/// All orders of some numbers, beginning with the one given.
fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (i, first) in of.iter().enumerate() {
        let mut rest = of.to_vec();
        rest.remove(i);
        for tail in permutations(&rest) {
            all.push([&[*first], tail.as_slice()].concat());
        }
    }
    all
}
