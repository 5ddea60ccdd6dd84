//! Rules as bytes: to keep them over a restart. They may come from a file that somebody has written.

use crate::decisions::{DecisionError, Decisions};
use crate::diagram::{Edge, Ref};
use crate::key::{Field, Key, KeyError, Order};
use crate::rules::{MOST_RULES, RuleError, Rules};

/// Why bytes are no rules.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SavedError {
    /// they end too early, or go on behind the last rule
    #[error("saved rules are cut short or too long")]
    Length,
    /// no key
    #[error("saved rules: {0}")]
    Key(#[from] KeyError),
    /// no rule
    #[error("saved rules: {0}")]
    Rule(#[from] RuleError),
    /// no diagram
    #[error("saved rules: {0}")]
    Decision(#[from] DecisionError),
    /// a field that is none
    #[error("saved rules: a field that is none")]
    Field,
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], SavedError> {
        let (part, rest) = self.0.split_at_checked(n).ok_or(SavedError::Length)?;
        self.0 = rest;
        Ok(part)
    }

    fn number(&mut self) -> Result<u32, SavedError> {
        let part = self.take(4)?;
        let mut bytes = [0; 4];
        bytes.copy_from_slice(part);
        Ok(u32::from_le_bytes(bytes))
    }
}

impl Rules {
    /// The key, the number of classes and all rules or the diagram, in numbers of 32 bits, the least significant byte first.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let put = |out: &mut Vec<u8>, number: u32| out.extend(number.to_le_bytes());
        put(&mut out, self.key().bytes());
        put(&mut out, self.key().fields().len() as u32);
        put(&mut out, self.classes());
        put(&mut out, self.len() as u32);
        for field in self.key().fields() {
            for number in [
                field.offset,
                field.bytes,
                u32::from(field.order == Order::Host),
                field.name.len() as u32,
            ] {
                put(&mut out, number);
            }
            out.extend(field.name.as_bytes());
        }
        for rule in self.iter() {
            put(&mut out, rule.class);
            put(&mut out, rule.line);
            for range in rule.ranges {
                put(&mut out, range.0);
                put(&mut out, range.1);
            }
        }
        let Some(decisions) = self.decisions() else {
            return out;
        };
        put(&mut out, decisions.order().len() as u32);
        for word in decisions.order() {
            put(&mut out, *word as u32);
        }
        put(&mut out, decisions.nodes().len() as u32);
        for (level, edges) in decisions.nodes() {
            put(&mut out, u32::from(level));
            put(&mut out, edges.len() as u32);
            for edge in edges {
                put(&mut out, edge.last);
                // Classes are odd, places of nodes even.
                let class = edge.to.number().map(|class| class << 1 | 1);
                put(&mut out, class.unwrap_or((edge.to.index() as u32) << 1));
            }
        }
        out
    }

    /// The rules that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// [`SavedError`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SavedError> {
        let mut from = Bytes(bytes);
        let (size, fields, classes, len) = (
            from.number()?,
            from.number()? as usize,
            from.number()?,
            from.number()? as usize,
        );
        let key = Self::key_from(&mut from, size, fields)?;
        if len > MOST_RULES {
            return Err(RuleError::Many(MOST_RULES).into());
        }
        let words = key.words().len();
        let mut rules = Self::new(key, classes, MOST_RULES);
        let mut ranges = vec![(0, 0); words];
        for _ in 0..len {
            let (class, line) = (from.number()?, from.number()?);
            for range in &mut ranges {
                *range = (from.number()?, from.number()?);
            }
            rules.push_box(&ranges, class, line)?;
        }
        if from.0.is_empty() {
            return Ok(rules);
        }
        if len > 0 {
            return Err(SavedError::Length);
        }
        let decisions = decisions_from(&mut from, words, classes)?;
        Ok(Self::decided(rules.key().clone(), classes, decisions))
    }

    fn key_from(from: &mut Bytes<'_>, bytes: u32, fields: usize) -> Result<Key, SavedError> {
        let mut all = Vec::new();
        for _ in 0..fields {
            let (offset, size, host, length) = (
                from.number()?,
                from.number()?,
                from.number()?,
                from.number()? as usize,
            );
            let name = from.take(length)?;
            all.push(Field {
                name: std::str::from_utf8(name)
                    .map_err(|_| SavedError::Field)?
                    .to_owned(),
                offset,
                bytes: size,
                order: if host == 0 {
                    Order::Network
                } else {
                    Order::Host
                },
            });
        }
        Ok(Key::new(bytes, all)?)
    }
}

fn decisions_from(
    from: &mut Bytes<'_>,
    words: usize,
    classes: u32,
) -> Result<Decisions, SavedError> {
    let mut order = Vec::new();
    for _ in 0..from.number()? {
        order.push(from.number()? as usize);
    }
    let mut decisions = Decisions::new(order, words, classes)?;
    for _ in 0..from.number()? {
        let (level, count) = (from.number()?, from.number()?);
        let level = u8::try_from(level).map_err(|_| DecisionError::Order)?;
        let mut edges = Vec::new();
        for _ in 0..count {
            let (last, to) = (from.number()?, from.number()?);
            let to = match to & 1 {
                1 => Ref::terminal(to >> 1),
                _ => Ref::node(to >> 1),
            };
            edges.push(Edge { last, to });
        }
        decisions.push(level, edges)?;
    }
    match from.0.is_empty() {
        true => Ok(decisions),
        false => Err(SavedError::Length),
    }
}
