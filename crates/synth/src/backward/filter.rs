//! Filters: conditions over fields, and patterns of bytes, as choices among the diagrams behind them.

use std::cmp::Ordering;
use std::collections::HashMap;

use millrace_click::filter::{self, Compare, Condition, Test};
use millrace_click::meaning::Clause;

use super::{Backward, Made, Shape};
use crate::diagram::{Full, Id, output};
use crate::field::Base;
use crate::sets::{Part, compared, parts};

/// Rules above which a filter becomes a diagram of its own.
pub(super) const MANY: usize = 16;

impl Backward<'_> {
    pub(super) fn filter(
        &mut self,
        id: usize,
        shape: Shape,
        rules: &[(Option<usize>, Condition)],
    ) -> Made {
        if rules.len() <= MANY {
            return self.rules(id, shape, rules);
        }
        // The first output stands for packets that the filter drops.
        let mut behind = vec![self.dropped(id)];
        let mut outputs: Vec<usize> = rules.iter().filter_map(|r| r.0).collect();
        outputs.sort_unstable();
        outputs.dedup();
        for output in &outputs {
            behind.push(self.next(id, *output, shape)?);
        }
        let nowhere = self.store.nowhere();
        let mut all = Vec::with_capacity(rules.len());
        for (to, condition) in rules {
            let number = to.and_then(|to| outputs.iter().position(|o| *o == to));
            let leaf = self.store.leaf(output(number.map_or(0, |n| n + 1)));
            all.push(self.condition(id, shape, condition, leaf, nowhere)?);
        }
        let dropped = self.store.leaf(output(0));
        self.long = true;
        let filter = match self.lists {
            true => Err(Full),
            false => self.store.first(&all, dropped),
        };
        match filter {
            Ok(filter) => Ok(self.store.compose(filter, &behind)?),
            Err(Full) => {
                let names = std::iter::once(None).chain(outputs.into_iter().map(Some));
                let behind: Vec<_> = names.zip(behind).collect();
                self.listed(id, all, &behind, &mut HashMap::new())
            }
        }
    }

    pub(super) fn rules(
        &mut self,
        id: usize,
        shape: Shape,
        rules: &[(Option<usize>, Condition)],
    ) -> Made {
        let mut node = self.dropped(id);
        for (output, condition) in rules.iter().rev() {
            let to = match output {
                Some(port) => self.next(id, *port, shape)?,
                None => self.dropped(id),
            };
            node = self.condition(id, shape, condition, to, node)?;
        }
        Ok(node)
    }

    pub(super) fn condition(
        &mut self,
        id: usize,
        shape: Shape,
        condition: &Condition,
        yes: Id,
        no: Id,
    ) -> Made {
        if yes == no {
            return Ok(yes);
        }
        match condition {
            Condition::Constant(answer) => Ok(if *answer { yes } else { no }),
            Condition::Not(inner) => self.condition(id, shape, inner, no, yes),
            Condition::All(all) => all.iter().rev().try_fold(yes, |node, condition| {
                self.condition(id, shape, condition, node, no)
            }),
            Condition::Any(any) => any.iter().rev().try_fold(no, |node, condition| {
                self.condition(id, shape, condition, yes, node)
            }),
            Condition::If(three) => {
                let [condition, then, other] = &**three;
                let then = self.condition(id, shape, then, yes, no)?;
                let other = self.condition(id, shape, other, yes, no)?;
                self.condition(id, shape, condition, then, other)
            }
            Condition::Test(test) => self.test(id, shape, test, yes, no),
        }
    }

    pub(super) fn test(&mut self, id: usize, shape: Shape, test: &Test, yes: Id, no: Id) -> Made {
        let from = match test.base {
            filter::Base::Network => match shape.ip() {
                Some(at) => i32::from(at),
                None => return Ok(no),
            },
            filter::Base::Transport => 0,
            // It is there also where it was stripped.
            filter::Base::Link => match shape.link {
                Some(at) => at,
                None => match shape.network {
                    Some(at) if at - 14 >= shape.head => at - 14,
                    _ => shape.head,
                },
            },
        };
        let bytes = test.bytes.min(8);
        let cut = |number: u64| -> Vec<u8> {
            number
                .to_be_bytes()
                .get(8 - bytes..)
                .unwrap_or(&[])
                .to_vec()
        };
        let width = u64::MAX >> (64 - 8 * bytes as u32);
        let beyond = test.value > width;
        let (mask, value) = (cut(test.mask), cut(test.value));
        let first = from + test.offset as i32;
        let (base, first) = match test.base {
            filter::Base::Transport => match shape.ip() {
                Some(at) => (Base::Upper(at), test.offset as u32),
                None => return Ok(no),
            },
            _ if first < 0 => return Ok(no),
            _ => (Base::Frame, first as u32),
        };
        let node = match beyond {
            true => match test.compare {
                Compare::Unequal | Compare::Less | Compare::AtMost => yes,
                _ => no,
            },
            false => {
                let parts = parts(base, shape.layout(), first, &mask, &value);
                self.compare(id, &parts, test.compare, yes, no)?
            }
        };
        match base {
            Base::Frame => {
                let end = first as i32 + bytes as i32;
                let shape = match test.base {
                    filter::Base::Link => Shape {
                        short: false,
                        ..shape
                    },
                    _ => shape,
                };
                self.present(id, shape, end, node, no)
            }
            Base::Upper(_) => {
                let end = u64::from(first) + bytes as u64;
                self.room(id, shape, end, node, no)
            }
        }
    }

    /// `yes` where some fields, the most significant first, compare with their values as is asked.
    pub(super) fn compare(
        &mut self,
        id: usize,
        parts: &[Part],
        how: Compare,
        yes: Id,
        no: Id,
    ) -> Made {
        let (less, equal, greater) = match how {
            Compare::Equal => (no, yes, no),
            Compare::Unequal => (yes, no, yes),
            Compare::Less => (yes, no, no),
            Compare::AtMost => (yes, yes, no),
            Compare::Greater => (no, no, yes),
            Compare::AtLeast => (no, yes, yes),
        };
        let mut node = equal;
        for part in parts.iter().rev() {
            let Some(intervals) = compared(*part) else {
                return Ok(self.unsaid(id, "a mask has too many holes"));
            };
            let scattered = part.mask.trailing_zeros() + 16 < 64 - part.var.most().leading_zeros()
                && part.mask
                    != part.var.most() >> part.mask.trailing_zeros() << part.mask.trailing_zeros();
            if scattered && less != greater {
                return Ok(self.unsaid(id, "a mask with holes is compared by size"));
            }
            let kids: Vec<_> = intervals
                .iter()
                .map(|(first, order)| {
                    let kid = match order {
                        Ordering::Less => less,
                        Ordering::Equal => node,
                        Ordering::Greater => greater,
                    };
                    (*first, kid)
                })
                .collect();
            for (first, _) in &kids {
                self.origins.entry((part.var, *first)).or_insert(id);
            }
            node = self.store.select(part.var, kids)?;
        }
        Ok(node)
    }

    pub(super) fn patterns(&mut self, id: usize, shape: Shape, patterns: &[Vec<Clause>]) -> Made {
        let mut node = self.dropped(id);
        for (port, clauses) in patterns.iter().enumerate().rev() {
            let mut fits = self.next(id, port, shape)?;
            for clause in clauses.iter().rev() {
                fits = match clause.negated {
                    false => self.bytes(id, shape, clause, fits, node)?,
                    true => self.bytes(id, shape, clause, node, fits)?,
                };
            }
            node = fits;
        }
        Ok(node)
    }

    pub(super) fn bytes(
        &mut self,
        id: usize,
        shape: Shape,
        clause: &Clause,
        yes: Id,
        no: Id,
    ) -> Made {
        let Ok(first) = u32::try_from(shape.head + clause.offset as i32) else {
            return Ok(no);
        };
        let parts = parts(
            Base::Frame,
            shape.layout(),
            first,
            &clause.mask,
            &clause.value,
        );
        let node = self.compare(id, &parts, Compare::Equal, yes, no)?;
        let end = first as i32 + clause.mask.len() as i32;
        self.present(id, shape, end, node, no)
    }
}
