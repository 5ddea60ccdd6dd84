//! Rules that cannot change the class of any key.
//!
//! A rule can go if an earlier one covers it; or if a later one of its class covers it and no rule of another class that
//! meets it stands between; or if it gives the class of keys in no rule, and no later rule of another class meets it. Each
//! is taken out of what the others left, so all may go together. Rules that only several others cover together
//! stay ([`crate::together`] finds them): the diagram takes them out by itself.

use serde::Serialize;

use crate::budget::Budget;
use crate::rules::{Rule, Rules};

/// Reason for which a rule cannot change a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// an earlier rule, at this index, contains all of it
    Shadowed(usize),
    /// a later rule of the same class, at this index, contains all of it, and none of another class meets it before
    Repeated(usize),
    /// it gives class 0, as no rule does, and no later rule of another class meets it
    Default,
}

/// A rule that can go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Redundant {
    /// its index
    pub index: usize,
    /// the reason
    pub why: Why,
}

/// The rules that can go, all together, by ascending index; and whether the budget was enough to compare all.
#[must_use]
pub fn redundant(rules: &Rules, budget: &Budget) -> (Vec<Redundant>, bool) {
    let all: Vec<Rule<'_>> = rules.iter().collect();
    let mut left = budget.pairs;
    let mut found = Vec::new();
    let mut kept: Vec<usize> = Vec::new();
    for (index, rule) in all.iter().enumerate() {
        let earlier = shadow(&all, &kept, *rule, &mut left);
        match earlier {
            Some(by) => found.push(Redundant {
                index,
                why: Why::Shadowed(by),
            }),
            None => kept.push(index),
        }
    }
    // From the last on: what is behind a rule has been decided. `behind` has the last first.
    let mut behind: Vec<usize> = Vec::new();
    for &index in kept.iter().rev() {
        match all
            .get(index)
            .and_then(|r| repeat(&all, &behind, *r, &mut left))
        {
            Some(why) => found.push(Redundant { index, why }),
            None => behind.push(index),
        }
    }
    found.sort_by_key(|r| r.index);
    (found, left > 0)
}

fn shadow(all: &[Rule<'_>], kept: &[usize], rule: Rule<'_>, left: &mut u64) -> Option<usize> {
    *left = left.checked_sub(kept.len() as u64).unwrap_or_default();
    if *left == 0 {
        return None;
    }
    let mut earlier = kept.iter().copied();
    earlier.find(|i| all.get(*i).is_some_and(|r| r.covers(rule)))
}

fn repeat(all: &[Rule<'_>], behind: &[usize], rule: Rule<'_>, left: &mut u64) -> Option<Why> {
    for &index in behind.iter().rev() {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return None;
        }
        let later = all.get(index)?;
        if later.class == rule.class {
            if later.covers(rule) {
                return Some(Why::Repeated(index));
            }
        } else if later.meets(rule) {
            return None;
        }
    }
    (rule.class == 0).then_some(Why::Default)
}
