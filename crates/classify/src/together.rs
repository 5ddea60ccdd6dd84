//! Rules that several others together keep from changing the class of any key.
//!
//! A rule decides the keys that no earlier one contains. It can go if each of these has its class without it, too: from the first later
//! rule that contains it, or as a key in none. What of a rule's box is left is divided at each rule that meets it into boxes beside
//! that rule (at most two a word), depth first: a rule that is needed shows that at the first key found that needs it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::budget::Budget;
use crate::reduce::Redundant;
use crate::rules::{Rule, Rules};

/// Comparisons for one rule, at most; a rule that takes more is kept.
const MOST_OF_ONE: u64 = 2_000_000;

/// A rule that can go because of several others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Together {
    /// its index
    pub index: usize,
    /// the others, by ascending index: earlier ones that contain its keys, later ones of its class
    pub among: Vec<usize>,
}

/// The rules that can go beside those of [`crate::redundant`], all together, by ascending index; and whether the budget was enough. Without
/// them no rule can go that is left.
#[must_use]
pub fn together(rules: &Rules, gone: &[Redundant], budget: &Budget) -> (Vec<Together>, bool) {
    let all: Vec<Rule<'_>> = rules.iter().collect();
    let mut kept = vec![true; all.len()];
    for one in gone {
        if let Some(kept) = kept.get_mut(one.index) {
            *kept = false;
        }
    }
    let (mut left, mut enough) = (budget.pairs, true);
    let mut found = Vec::new();
    for (index, rule) in all.iter().enumerate().rev() {
        if kept.get(index) != Some(&true) {
            continue;
        }
        let others = all.len() as u64;
        if left < others {
            enough = false;
            break;
        }
        left -= others;
        let others = all.iter().zip(&kept).enumerate();
        let meeting = others.filter(|(i, (r, kept))| **kept && *i != index && r.meets(*rule));
        let meeting: Vec<(usize, Rule<'_>)> = meeting.map(|(i, (r, _))| (i, *r)).collect();
        let mut own = left.min(MOST_OF_ONE);
        let before = own;
        match covered(index, *rule, &meeting, &mut own) {
            Some(Some(among)) => {
                if let Some(kept) = kept.get_mut(index) {
                    *kept = false;
                }
                found.push(Together {
                    index,
                    among: among.into_iter().collect(),
                });
            }
            Some(None) => {}
            None => enough = false,
        }
        left -= before - own;
    }
    found.reverse();
    (found, enough)
}

/// The others that decide all keys of a rule as it does; `Some(None)` if it is needed, none if the budget is spent.
fn covered(
    index: usize,
    rule: Rule<'_>,
    meeting: &[(usize, Rule<'_>)],
    left: &mut u64,
) -> Option<Option<BTreeSet<usize>>> {
    let mut among = BTreeSet::new();
    // What is left of its box, and the first rule that it was not held against.
    let mut open = vec![(rule.ranges.to_vec(), 0)];
    while let Some((mut ranges, from)) = open.pop() {
        let next = meeting
            .get(from..)
            .unwrap_or(&[])
            .iter()
            .position(|(_, other)| {
                *left = left.saturating_sub(1);
                let mut words = other.ranges.iter().zip(&ranges);
                *left == 0 || words.all(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
            });
        if *left == 0 {
            return None;
        }
        let Some((at, (by, other))) = next.and_then(|n| Some((from + n, meeting.get(from + n)?)))
        else {
            // Keys in none of the others have class 0.
            if rule.class == 0 {
                continue;
            }
            return Some(None);
        };
        if *by > index && other.class != rule.class {
            return Some(None);
        }
        among.insert(*by);
        for word in 0..ranges.len() {
            let (Some(&(low, high)), Some(&(first, last))) =
                (ranges.get(word), other.ranges.get(word))
            else {
                continue;
            };
            let mut beside = |part: (u32, u32)| {
                let mut apart = ranges.clone();
                if let Some(range) = apart.get_mut(word) {
                    *range = part;
                }
                open.push((apart, at + 1));
            };
            if low < first {
                beside((low, first - 1));
            }
            if last < high {
                beside((last + 1, high));
            }
            if let Some(range) = ranges.get_mut(word) {
                *range = (low.max(first), high.min(last));
            }
        }
    }
    Some(Some(among))
}
