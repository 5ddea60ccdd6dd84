//! Checksums that are updated more than once: each update adds to a sum that nobody folded in between.
//!
//! An update (RFC 1624, equation 3) takes the sum apart that an earlier one folded: `~fold(~fold'(s) + d)`, where the earlier one stored the complement of
//! `fold(s)`. Each waits for the one before, four or five operations of it for a fold. Since `fold(fold(s) + d)` is `fold(s + d)` to the bit ([`super::fold`]),
//! what is stored is folded from `s + d` instead: a variable (`sum0`, `sum1`, …) holds `s`, another one `s + d`, and so on. The folds in between are
//! computed only where something else reads them.
//!
//! - Where the first sum is computed, a variable takes its value. That is behind each step whose result is this term, of which one is on every path on
//!   which the term is known.
//! - Where something is added to a fold of a sum, a variable gets the sum of that sum's variable and what is added.
//! - A store of 16 bits that are the fold of a sum, or its complement, folds the variable if folds were left out of that.
//!
//! A sum of variables does not wrap: it is followed only as long as its greatest value is below 2^62. Code for AddressSanitizer compares
//! what is stored with what would have been (`MR_MERGED`, c/codegen.h).

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::StepId;

use super::fold::Low;
use super::value::{Terms, Value};

/// Sums above this are not followed.
const MOST: u64 = 1 << 62;

/// A variable that holds a sum, by its number.
pub type Sum = u32;

/// Where a summand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part<V> {
    /// in the operand's register
    Operand,
    /// in place of it, the sum of which it is a fold
    Sum(V),
}

/// An addition whose variable is a sum of others.
#[derive(Clone, Copy, Debug)]
pub struct Addition {
    /// the variable
    pub to: Sum,
    /// the variable in place of each operand; none: the operand itself
    pub of: [Option<Sum>; 2],
}

/// A store of a fold.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// of this sum
    pub sum: Sum,
    /// its complement
    pub not: bool,
    /// whether the sum has no more than 32 bits
    pub word: bool,
}

/// What the pass over a function finds.
#[derive(Default)]
pub struct Found {
    /// steps of arithmetic by their result
    results: BTreeMap<Value, Vec<StepId>>,
    /// additions to folds
    additions: BTreeMap<StepId, [Part<Value>; 2]>,
    /// sums that leave out folds, and their greatest values
    far: BTreeMap<Value, u64>,
    stores: BTreeMap<StepId, Low>,
}

/// What is done for it, by step.
#[derive(Clone, Default)]
pub struct Merged {
    /// additions of variables, before the step
    pub additions: BTreeMap<StepId, Addition>,
    /// variables that get the step's result, behind it
    pub taken: BTreeMap<StepId, Sum>,
    /// stores of folds
    pub stores: BTreeMap<StepId, Stored>,
}

impl Found {
    /// A step of arithmetic has this result, and not from one of its operands.
    pub fn result(&mut self, id: StepId, value: Value) {
        self.results.entry(value).or_default().push(id);
    }

    /// Its result is the sum of two numbers, and does not wrap.
    pub fn addition(&mut self, terms: &Terms, id: StepId, value: Value, operands: [Value; 2]) {
        let parts = operands.map(|v| self.part(terms, v));
        if parts == [Part::Operand; 2] {
            return;
        }
        let most = parts
            .iter()
            .zip(operands)
            .map(|(part, operand)| match part {
                Part::Operand => terms.facts(operand).most,
                Part::Sum(sum) => self.most(terms, *sum),
            });
        let most = most.fold(0, u64::saturating_add);
        if most < MOST {
            let far = self.far.entry(value).or_default();
            *far = most.max(*far);
            self.additions.insert(id, parts);
        }
    }

    /// A store of 16 bits of a number.
    pub fn store(&mut self, terms: &Terms, id: StepId, value: Value) {
        let low = terms.facts(value).low;
        if let Some(low) = low.filter(|low| self.far.contains_key(&low.sum)) {
            self.stores.insert(id, low);
        }
    }

    fn part(&self, terms: &Terms, operand: Value) -> Part<Value> {
        let facts = terms.facts(operand);
        let folded = facts.low.filter(|low| facts.most <= 0xffff && !low.not);
        let sum = facts.sum.or(folded.map(|low| low.sum));
        let sum = sum.or(Some(operand).filter(|o| self.far.contains_key(o)));
        let sum = sum.filter(|s| terms.computed(*s) && self.results.contains_key(s));
        sum.map_or(Part::Operand, Part::Sum)
    }

    /// The greatest value of a sum's variable.
    fn most(&self, terms: &Terms, sum: Value) -> u64 {
        let far = self.far.get(&sum).copied();
        terms.facts(sum).most.max(far.unwrap_or(0))
    }

    /// What is done where a sum is of use for a store.
    pub fn merged(&self, terms: &Terms) -> Merged {
        let mut merged = Merged::default();
        let mut numbers: BTreeMap<Value, Sum> = BTreeMap::new();
        let mut number = |sum: Value| {
            let next = numbers.len() as Sum;
            *numbers.entry(sum).or_insert(next)
        };
        let mut open: Vec<Value> = self.stores.values().map(|low| low.sum).collect();
        let mut seen = BTreeSet::new();
        while let Some(sum) = open.pop() {
            if !seen.insert(sum) {
                continue;
            }
            let to = number(sum);
            for id in self.results.get(&sum).into_iter().flatten() {
                let Some(parts) = self.additions.get(id) else {
                    merged.taken.insert(*id, to);
                    continue;
                };
                let of = parts.map(|part| match part {
                    Part::Operand => None,
                    Part::Sum(sum) => {
                        open.push(sum);
                        Some(number(sum))
                    }
                });
                merged.additions.insert(*id, Addition { to, of });
            }
        }
        for (id, Low { sum, not }) in &self.stores {
            let stored = Stored {
                sum: number(*sum),
                not: *not,
                word: self.most(terms, *sum) <= u64::from(u32::MAX),
            };
            merged.stores.insert(*id, stored);
        }
        merged
    }
}
