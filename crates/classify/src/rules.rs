//! Rules: boxes over the words of a key, in order of priority.

use std::sync::Arc;

use serde::Serialize;

use crate::decisions::Decisions;
use crate::key::Key;

/// The most boxes of a list of rules: a rule is one, unless an interval of a field of more than 32 bits is no prefix.
pub const MOST_RULES: usize = 1 << 20;

/// The most classes.
pub const MOST_CLASSES: u32 = 1 << 16;

/// The numbers from `first` to `last`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Interval {
    /// the least
    pub first: u128,
    /// the greatest
    pub last: u128,
}

/// Why a rule is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RuleError {
    /// the intervals are not one a field
    #[error("{got} intervals for {want} fields")]
    Fields {
        /// intervals given
        got: usize,
        /// fields of the key
        want: usize,
    },
    /// an interval that is empty
    #[error("{first} is greater than {last}")]
    Backwards {
        /// its begin
        first: u128,
        /// its end
        last: u128,
    },
    /// a number that the field cannot have
    #[error("{value} is more than a field of {bits} bits holds")]
    Large {
        /// the number
        value: u128,
        /// bits of the field
        bits: u32,
    },
    /// a class that does not exist
    #[error("class {class} of {classes}: they are 0 to {}", classes - 1)]
    Class {
        /// the class
        class: u32,
        /// how many there are
        classes: u32,
    },
    /// too many rules
    #[error("more than {0} rules")]
    Many(usize),
    /// a diagram decides
    #[error("keys are classified by a decision diagram, which takes no rules")]
    Decided,
}

/// One box of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// an interval a word of the key, both ends included
    pub ranges: &'a [(u32, u32)],
    /// its class
    pub class: u32,
    /// the line that it comes from, from 1; 0: none
    pub line: u32,
}

impl Rule<'_> {
    /// Whether it contains a key.
    #[must_use]
    pub fn contains(&self, words: &[u32]) -> bool {
        let mut pairs = self.ranges.iter().zip(words);
        pairs.all(|((lo, hi), x)| lo <= x && x <= hi)
    }

    /// Whether it contains all of another one.
    #[must_use]
    pub fn covers(&self, other: Rule<'_>) -> bool {
        let mut pairs = self.ranges.iter().zip(other.ranges);
        pairs.all(|(a, b)| a.0 <= b.0 && b.1 <= a.1)
    }

    /// Whether some key is in both.
    #[must_use]
    pub fn meets(&self, other: Rule<'_>) -> bool {
        let mut pairs = self.ranges.iter().zip(other.ranges);
        pairs.all(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    }
}

/// A list of rules: the first that contains a key gives its class, and a key in none has class 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    key: Key,
    classes: u32,
    most: usize,
    ranges: Vec<(u32, u32)>,
    class: Vec<u32>,
    line: Vec<u32>,
    decisions: Option<Arc<Decisions>>,
}

impl Rules {
    /// No rules yet, over a key, with classes 0 to `classes` - 1 (1 to [`MOST_CLASSES`] of them) and room for `most` boxes.
    #[must_use]
    pub fn new(key: Key, classes: u32, most: usize) -> Self {
        Self {
            key,
            classes: classes.clamp(1, MOST_CLASSES),
            most: most.min(MOST_RULES),
            ranges: Vec::new(),
            class: Vec::new(),
            line: Vec::new(),
            decisions: None,
        }
    }

    /// No rules, and a diagram that says the class of each key.
    #[must_use]
    pub fn decided(key: Key, classes: u32, decisions: Decisions) -> Self {
        Self {
            decisions: Some(Arc::new(decisions)),
            ..Self::new(key, classes, 0)
        }
    }

    /// The diagram, if one decides in place of rules.
    #[must_use]
    pub fn decisions(&self) -> Option<&Decisions> {
        self.decisions.as_deref()
    }

    /// Adds a rule of the lowest priority: an interval a field.
    ///
    /// # Errors
    /// [`RuleError`] where it is none; nothing is added then.
    pub fn push(&mut self, fields: &[Interval], class: u32, line: u32) -> Result<(), RuleError> {
        self.admit(fields, class)?;
        let boxes = self.boxes(fields);
        if self.len() + boxes.len() > self.most {
            return Err(RuleError::Many(self.most));
        }
        for ranges in boxes {
            self.ranges.extend(ranges);
            self.class.push(class);
            self.line.push(line);
        }
        Ok(())
    }

    /// Adds a box over the key's words.
    ///
    /// # Errors
    /// [`RuleError`] where it is none; nothing is added then.
    pub fn push_box(
        &mut self,
        ranges: &[(u32, u32)],
        class: u32,
        line: u32,
    ) -> Result<(), RuleError> {
        if ranges.len() != self.words() {
            return Err(RuleError::Fields {
                got: ranges.len(),
                want: self.words(),
            });
        }
        for (word, range) in self.key.words().iter().zip(ranges) {
            let (first, last) = (u128::from(range.0), u128::from(range.1));
            fits(first, last, u128::from(word.max()), 8 * word.bytes)?;
        }
        self.known(class)?;
        if self.len() == self.most {
            return Err(RuleError::Many(self.most));
        }
        self.ranges.extend(ranges);
        self.class.push(class);
        self.line.push(line);
        Ok(())
    }

    fn known(&self, class: u32) -> Result<(), RuleError> {
        if self.decisions.is_some() {
            return Err(RuleError::Decided);
        }
        if class < self.classes {
            return Ok(());
        }
        Err(RuleError::Class {
            class,
            classes: self.classes,
        })
    }

    fn admit(&self, fields: &[Interval], class: u32) -> Result<(), RuleError> {
        if fields.len() != self.key.fields().len() {
            return Err(RuleError::Fields {
                got: fields.len(),
                want: self.key.fields().len(),
            });
        }
        for (field, i) in self.key.fields().iter().zip(fields) {
            fits(i.first, i.last, field.max(), 8 * field.bytes)?;
        }
        self.known(class)
    }

    /// The product of the fields' parts.
    fn boxes(&self, fields: &[Interval]) -> Vec<Vec<(u32, u32)>> {
        let mut boxes = vec![Vec::new()];
        for (index, interval) in fields.iter().enumerate() {
            let words = self.key.words().iter().filter(|w| w.field == index);
            let max: Vec<u32> = words.map(|w| w.max()).collect();
            let parts = parts(interval.first, interval.last, &max);
            let with = |b: &Vec<(u32, u32)>| {
                let b = b.clone();
                parts
                    .iter()
                    .map(move |p| [b.as_slice(), p].concat())
                    .collect::<Vec<_>>()
            };
            boxes = boxes.iter().flat_map(with).collect();
        }
        boxes
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// How many words the key has.
    #[must_use]
    pub fn words(&self) -> usize {
        self.key.words().len()
    }

    /// How many classes there are.
    #[must_use]
    pub fn classes(&self) -> u32 {
        self.classes
    }

    /// How many boxes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.class.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.class.is_empty()
    }

    /// The box at an index, from 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Rule<'_>> {
        let words = self.words();
        Some(Rule {
            ranges: self.ranges.get(index * words..(index + 1) * words)?,
            class: *self.class.get(index)?,
            line: *self.line.get(index)?,
        })
    }

    /// All boxes, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Rule<'_>> + ExactSizeIterator + Clone {
        let boxes = self.ranges.chunks_exact(self.words().max(1));
        let named = boxes.zip(self.class.iter().zip(&self.line));
        named.map(|(ranges, (class, line))| Rule {
            ranges,
            class: *class,
            line: *line,
        })
    }

    /// Those at which `keep` is true, in the same order.
    #[must_use]
    pub fn filtered(&self, keep: &[bool]) -> Self {
        let mut some = Self::new(self.key.clone(), self.classes, self.most);
        some.decisions.clone_from(&self.decisions);
        for (rule, _) in self.iter().zip(keep).filter(|(_, keep)| **keep) {
            some.ranges.extend(rule.ranges);
            some.class.push(rule.class);
            some.line.push(rule.line);
        }
        some
    }

    /// The class of a key by a scan of all rules: what every other form of a classifier is held against.
    #[must_use]
    pub fn scan(&self, words: &[u32]) -> u32 {
        if let Some(decisions) = &self.decisions {
            return decisions.find(words);
        }
        let found = self.iter().find(|r| r.contains(words));
        found.map_or(0, |r| r.class)
    }
}

fn fits(first: u128, last: u128, max: u128, bits: u32) -> Result<(), RuleError> {
    if first > last {
        return Err(RuleError::Backwards { first, last });
    }
    if last > max {
        return Err(RuleError::Large { value: last, bits });
    }
    Ok(())
}

/// An interval of a field as boxes over its words, the most significant first: one for a prefix, or for a field of one word;
/// at most 2 n - 1 for n words.
fn parts(first: u128, last: u128, max: &[u32]) -> Vec<Vec<(u32, u32)>> {
    let Some((&top, rest)) = max.split_first() else {
        return vec![Vec::new()];
    };
    let below = 32 * rest.len() as u32;
    let (low, high) = ((first >> below) as u32, (last >> below) as u32);
    debug_assert!(high <= top);
    let (mask, all) = if below == 0 {
        (0, Vec::new())
    } else {
        (
            u128::MAX >> (128 - below),
            rest.iter().map(|m| (0, *m)).collect::<Vec<_>>(),
        )
    };
    let under = |range: (u32, u32), tails: Vec<Vec<(u32, u32)>>| {
        let with = move |t: Vec<(u32, u32)>| [&[range], t.as_slice()].concat();
        tails.into_iter().map(with).collect::<Vec<_>>()
    };
    let (from, to) = (first & mask, last & mask);
    if low == high {
        return under((low, low), parts(from, to, rest));
    }
    let mut out = Vec::new();
    let (mut begin, mut end) = (low, high);
    if from > 0 {
        out.extend(under((low, low), parts(from, mask, rest)));
        begin += 1;
    }
    if to < mask {
        out.extend(under((high, high), parts(0, to, rest)));
        end -= 1;
    }
    if begin <= end {
        out.extend(under((begin, end), vec![all]));
    }
    out
}
