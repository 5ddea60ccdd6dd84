//! Numbers that stay what they are behind a cut, because paths cannot be followed without: offsets into values and stack.
//! They are found by following all once more.

use std::collections::BTreeSet;

use millrace_check::facts::FrameId;

use super::super::Engine;
use super::super::state::{Cell, State, Value};
use super::likeness::{register, word};
use crate::expr::walk::each_of;
use crate::expr::{ExprId, Node};

/// Most numbers that stay what they are.
const EXACT: usize = 64;

impl Engine<'_> {
    /// Of numbers that stay what they are: those that a path's conditions leave one value are that value.
    pub(super) fn settle(&mut self, s: &mut State, block: usize) {
        if self
            .exact
            .range((block, String::new())..(block + 1, String::new()))
            .next()
            .is_none()
        {
            return;
        }
        let refines = self.refines;
        for depth in 0..s.frames.len() {
            for reg in 0..10 {
                let value = s.frames.get(depth).and_then(|f| f.1.get(reg)).copied();
                let Some(Value::Num(e)) = value else { continue };
                let exact = self.exact.contains(&(block, register(depth, reg)));
                if !exact || !self.depends_on_state(e) {
                    continue;
                }
                if let Ok(n) = self.fixed(s, e) {
                    let n = self.arena.number(n as u64, self.arena.width(e));
                    if let Some(slot) = s.frames.get_mut(depth).and_then(|f| f.1.get_mut(reg)) {
                        *slot = Value::Num(n);
                    }
                }
            }
        }
        let cells: Vec<((FrameId, i64), ExprId)> = { s.stack.iter() }
            .filter_map(|(k, c)| match c {
                Cell::Byte(e) => Some((*k, *e)),
                Cell::Part(..) => None,
            })
            .collect();
        for (k, e) in cells {
            let exact = self.exact.contains(&(block, word(k.0, k.1)));
            if !exact || !self.depends_on_state(e) {
                continue;
            }
            if let Ok(n) = self.fixed(s, e) {
                let n = self.arena.number(n as u64, 8);
                s.stack.insert(k, Cell::Byte(n));
            }
        }
        self.refines = refines;
    }

    /// Notes that a path cannot be followed because of a number that may be any behind a cut, so that it stays what it is
    /// when all is followed once more.
    pub(in crate::exec) fn blame(&mut self, e: ExprId) {
        // What one of these is any of may have been any behind a cut before.
        let (mut todo, mut seen) = (vec![e], BTreeSet::new());
        while let Some(e) = todo.pop() {
            let mut symbols = Vec::new();
            each_of(
                &self.arena,
                &[e],
                |_| false,
                |e| {
                    if let Node::Sym(s) = self.arena.node(e) {
                        symbols.push(*s);
                    }
                },
            );
            for s in symbols {
                if !seen.insert(s) || self.exact.len() >= EXACT {
                    continue;
                }
                let Some((cut, from)) = self.stood.get(&s) else {
                    continue;
                };
                todo.extend(from);
                let name = self.arena.symbol(s).name.split_once('.');
                let block = self.cut_at.get(cut).copied();
                if let (Some((_, slot)), Some(block)) = (name, block) {
                    self.refines |= self.exact.insert((block, slot.to_owned()));
                }
            }
        }
    }

    /// Notes of which numbers a symbol is any.
    pub(super) fn stands_behind(&mut self, any: ExprId, cut: u32, all: &[ExprId]) {
        if let Node::Sym(s) = self.arena.node(any) {
            let known = self.stood.entry(*s).or_insert_with(|| (cut, Vec::new()));
            known.1.extend(all);
        }
    }
}
