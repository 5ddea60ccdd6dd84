//! From rules to a table, within a budget.

use serde::Serialize;

use crate::budget::{Budget, Exceeded, Meter};
use crate::diagram::NONE;
use crate::from_rules::{diagram, order};
use crate::reduce::{Redundant, redundant};
use crate::rules::Rules;
use crate::table::Table;
use crate::trees::Trees;

/// How a classifier is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// an interval decision diagram
    Diagram,
    /// cut trees: the diagram would have passed the budget
    Trees,
}

/// Rules, and the table made of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Classifier {
    rules: Rules,
    redundant: Vec<Redundant>,
    compared: bool,
    form: Form,
    table: Table,
    witnesses: Vec<Option<Vec<u32>>>,
}

/// Keys tried for the witness of each class where no diagram has them.
const TRIED: usize = 4096;

impl Classifier {
    /// The table of rules: of their diagram, or of trees where that passes the budget. Never fails.
    #[must_use]
    pub fn build(rules: Rules, budget: &Budget) -> Self {
        let (redundant, compared) = redundant(&rules, budget);
        let mut keep = vec![true; rules.len()];
        for r in &redundant {
            if let Some(keep) = keep.get_mut(r.index) {
                *keep = false;
            }
        }
        let kept = rules.filtered(&keep);
        // A diagram that is given as such has no other form.
        let budget = &match kept.decisions() {
            Some(_) => Budget {
                bytes: usize::MAX,
                ..*budget
            },
            None => *budget,
        };
        let (form, table, witnesses) = match by_diagram(&kept, budget) {
            Ok((table, witnesses)) => (Form::Diagram, table, witnesses),
            Err(Exceeded) => {
                let trees = Trees::build(&kept, budget);
                let witnesses = search(&kept, &trees);
                let table = Table::of_trees(&kept, used(&kept), &trees);
                (Form::Trees, table, witnesses)
            }
        };
        Self {
            rules,
            redundant,
            compared,
            form,
            table,
            witnesses,
        }
    }

    /// The rules, as they were given.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The rules that cannot change a class, by ascending index.
    #[must_use]
    pub fn redundant(&self) -> &[Redundant] {
        &self.redundant
    }

    /// Whether the budget was enough to compare all rules; else more may be redundant.
    #[must_use]
    pub fn compared(&self) -> bool {
        self.compared
    }

    /// How it is laid out.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The class of a key in words.
    #[must_use]
    pub fn find(&self, words: &[u32]) -> u32 {
        self.table.find(words)
    }

    /// A key of a class, in words. None if no key has it; of trees also where none was found among a few thousand.
    #[must_use]
    pub fn witness(&self, class: u32) -> Option<&[u32]> {
        self.witnesses.get(class as usize)?.as_deref()
    }
}

type Witnesses = Vec<Option<Vec<u32>>>;

fn by_diagram(rules: &Rules, budget: &Budget) -> Result<(Table, Witnesses), Exceeded> {
    let (order, (diagrams, root)) = match rules.decisions() {
        Some(given) => (given.order().to_vec(), given.diagram()),
        None => {
            let order = order(rules);
            let made = diagram(rules, &order, &mut Meter::new(budget.steps))?;
            (order, made)
        }
    };
    let table = Table::of_diagram(
        rules.key(),
        used(rules),
        &diagrams,
        root,
        &order,
        budget.bytes,
    )?;
    let mut witnesses = vec![None; rules.classes() as usize];
    for (terminal, levels) in diagrams.witnesses(root, order.len()) {
        let class = if terminal == NONE {
            Some(0)
        } else {
            terminal.number()
        };
        let mut key = vec![0; rules.words()];
        for (word, x) in order.iter().zip(&levels) {
            if let Some(place) = key.get_mut(*word) {
                *place = *x;
            }
        }
        let place = class.and_then(|c| witnesses.get_mut(c as usize));
        if let Some(place @ None) = place {
            *place = Some(key);
        }
    }
    Ok((table, witnesses))
}

/// One more than the highest class that a rule has: what takes the table must have so many.
fn used(rules: &Rules) -> u32 {
    match rules.decisions() {
        Some(_) => rules.classes(),
        None => 1 + rules.iter().map(|r| r.class).max().unwrap_or(0),
    }
}

/// Keys at the corners of rules, and beside them.
fn search(rules: &Rules, trees: &Trees) -> Witnesses {
    let mut witnesses: Witnesses = vec![None; rules.classes() as usize];
    let mut tried = vec![0; rules.classes() as usize];
    let class = |key: &[u32]| {
        let rule = trees.find(rules, key).and_then(|i| rules.get(i));
        rule.map_or(0, |r| r.class)
    };
    let mut note = |key: Vec<u32>| {
        if let Some(place @ None) = witnesses.get_mut(class(&key) as usize) {
            *place = Some(key);
        }
    };
    let max: Vec<u32> = rules.key().words().iter().map(|w| w.max()).collect();
    note(max.clone());
    note(vec![0; max.len()]);
    for rule in rules.iter() {
        let Some(tried) = tried.get_mut(rule.class as usize).filter(|t| **t < TRIED) else {
            continue;
        };
        *tried += 1;
        note(rule.ranges.iter().map(|r| r.0).collect());
        note(rule.ranges.iter().map(|r| r.1).collect());
        let beside = rule.ranges.iter().zip(&max);
        note(
            beside
                .map(|(r, max)| if r.1 < *max { r.1 + 1 } else { r.0 })
                .collect(),
        );
    }
    witnesses
}
