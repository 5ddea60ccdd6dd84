//! Alternatives of bytes that merged paths left as choices.

use millrace_model::expr::{ExprId, Node};

use super::Printer;
use crate::layout::Layout;
use crate::names::Member;

/// Most steps in which choices are taken apart.
const STEPS: usize = 400;
/// Most alternatives that are printed.
const MOST: usize = 6;

/// One of the alternatives.
pub struct Way {
    /// the bytes
    pub bytes: Vec<ExprId>,
    /// what decided for it
    pub because: Vec<(ExprId, bool)>,
}

impl Printer<'_> {
    /// The alternatives of bytes; one where there is no choice. None where they are too many.
    #[must_use]
    pub fn ways(&self, bytes: &[ExprId]) -> Option<Vec<Way>> {
        let mut done: Vec<Way> = Vec::new();
        let mut todo = vec![Way {
            bytes: bytes.to_vec(),
            because: Vec::new(),
        }];
        for _ in 0..STEPS {
            let Some(way) = todo.pop() else {
                return Some(done);
            };
            let condition = way.bytes.iter().find_map(|e| match *self.arena.node(*e) {
                Node::Ite(c, ..) if self.along(*e).is_none() => Some(c),
                _ => None,
            });
            let Some(c) = condition else {
                if !done.iter().any(|d| d.bytes == way.bytes) {
                    done.push(way);
                }
                continue;
            };
            for holds in [false, true] {
                let side = |e: &ExprId| match *self.arena.node(*e) {
                    // The number of the header behind all others is the same in every alternative.
                    _ if self.along(*e).is_some() => *e,
                    Node::Ite(d, x, y) if d == c => {
                        if holds {
                            x
                        } else {
                            y
                        }
                    }
                    _ => *e,
                };
                let mut because = way.because.clone();
                because.push((c, holds));
                let bytes = way.bytes.iter().map(side).collect();
                todo.push(Way { bytes, because });
            }
        }
        None
    }

    /// The layout under the conditions of an alternative.
    pub fn layout_of(&self, way: &Way) -> Layout {
        self.layout.given(self.arena, &way.because, self.memory)
    }

    /// The members of a key, those together in which the alternatives differ. None where that says no more.
    pub(super) fn key_by_ways(&self, key: &[ExprId], members: &[Member]) -> Option<Vec<String>> {
        let ways = self.ways(key).filter(|w| w.len() > 1)?;
        let mut all: Vec<Vec<String>> = Vec::new();
        for way in &ways {
            let layout = self.layout_of(way);
            let printer = Printer {
                layout: &layout,
                ..*self
            };
            let members = members.iter().filter_map(|m| {
                let bytes = way
                    .bytes
                    .get(m.from as usize..(m.from + m.bytes) as usize)?;
                Some(printer.member(m, bytes))
            });
            let texts: Vec<String> = members.collect();
            if !all.contains(&texts) {
                all.push(texts);
            }
        }
        let long = all.iter().flatten().any(|t| t.contains("f("));
        if all.is_empty() || all.len() > MOST || long {
            return None;
        }
        Some(together(&all))
    }
}

/// The members of a key in one or more alternatives, those together in which they differ.
pub(super) fn together(all: &[Vec<String>]) -> Vec<String> {
    let first = all.first().cloned().unwrap_or_default();
    let differs = |i: &usize| all.iter().any(|t| t.get(*i) != first.get(*i));
    let from = (0..first.len()).find(differs);
    let Some((from, to)) = from.zip((0..first.len()).rfind(differs)) else {
        return first;
    };
    let mut each: Vec<String> = all
        .iter()
        .map(|t| t.get(from..=to).unwrap_or(&[]).join(" ++ "))
        .collect();
    each.sort();
    let mut out = first.get(..from).unwrap_or(&[]).to_vec();
    out.push(format!("one of {{{}}}", each.join(", ")));
    out.extend(first.get(to + 1..).unwrap_or(&[]).iter().cloned());
    out
}
