//! Keys whose fields lie behind headers that merged paths left open, as behind VLAN tags or in the packet that an ICMP error
//! carries: one alternative for each way in which the open conditions can be decided.

use std::collections::{BTreeMap, BTreeSet};

use millrace_model::expr::given::{Facts, Given};
use millrace_model::expr::sets::Set;
use millrace_model::expr::walk::cone_within;
use millrace_model::expr::{Arena, ExprId, Node};
use millrace_model::known::{self, Known, Of};

use super::Printer;
use crate::layout::Layout;
use crate::names::Member;

/// Most decisions, over all alternatives.
const STEPS: usize = 300;
/// Most nodes of a key in which open conditions are looked for.
const NODES: usize = 4096;
/// Most alternatives that are printed whole; of more, those of each member.
const WHOLE: usize = 4;
/// Most alternatives of a member.
const MOST: usize = 8;

/// A key where some conditions are decided.
struct Alternative {
    bytes: Vec<ExprId>,
    /// what holds, and what does not
    guard: Guard,
    /// values that follow from that, or from what led here
    known: Known,
}

impl Alternative {
    /// The first condition that is open: those of outer headers have smaller numbers. None where there is none, an error where
    /// that is not found out.
    fn open(&self, arena: &Arena) -> Result<Option<ExprId>, ()> {
        let all = cone_within(arena, &self.bytes, |_| false, NODES).ok_or(())?;
        let choices = all.iter().filter_map(|e| match arena.node(*e) {
            Node::Ite(c, ..) => Some(*c),
            _ => None,
        });
        Ok(choices.min())
    }

    /// The same where this condition holds, or does not; none where it cannot be so.
    fn decided(
        &self,
        arena: &mut Arena,
        memory: &known::Memory,
        (condition, holds): (ExprId, bool),
    ) -> Option<Self> {
        let mut given = Given::new(Facts {
            conditions: [(condition, holds)].into(),
            ..Facts::default()
        });
        let conditions: Vec<_> = self.guard.iter().map(|(e, _)| *e).collect();
        let conditions = given.of(arena, &conditions);
        let mut guard = Vec::new();
        for (e, (_, holds)) in conditions.into_iter().zip(&self.guard) {
            match arena.constant(e) {
                Some(c) if (c == 1) == *holds => {}
                Some(_) => return None,
                None => guard.push((e, *holds)),
            }
        }
        guard.push((condition, holds));
        let mut now = self.known.clone();
        known::both(&mut now, &memory.each(arena, &guard));
        // A byte that can have no value.
        let empty =
            |(of, set): (&Of, &Set)| matches!(of, Of::Byte(_)) && set.values().next().is_none();
        if now.iter().any(empty) {
            return None;
        }
        Some(Self {
            bytes: given.of(arena, &self.bytes),
            guard,
            known: now,
        })
    }
}

/// Conditions, each of which holds or does not.
type Guard = Vec<(ExprId, bool)>;

/// Alternatives by their bytes. Of ways that lead to the same bytes, the conditions and values that hold in each.
#[derive(Default)]
struct Waiting {
    open: BTreeMap<(ExprId, Vec<ExprId>), (Guard, Known)>,
    /// no condition is open
    decided: BTreeMap<Vec<ExprId>, (Guard, Known)>,
}

impl Waiting {
    fn put(&mut self, condition: Option<ExprId>, alternative: Alternative) {
        let Alternative {
            bytes,
            guard,
            known,
        } = alternative;
        let join = |there: &mut (Guard, Known)| {
            there.0.retain(|c| guard.contains(c));
            there.1 = known::either(&there.1, &known);
        };
        let new = || (guard.clone(), known.clone());
        match condition {
            Some(c) => self
                .open
                .entry((c, bytes))
                .and_modify(join)
                .or_insert_with(new),
            None => self
                .decided
                .entry(bytes)
                .and_modify(join)
                .or_insert_with(new),
        };
    }

    fn take(&mut self) -> Option<(ExprId, Alternative)> {
        let ((condition, bytes), (guard, known)) = self.open.pop_first()?;
        Some((
            condition,
            Alternative {
                bytes,
                guard,
                known,
            },
        ))
    }
}

impl Printer<'_> {
    /// The members of a key, by the headers that its fields are in. None where that says no more.
    pub(super) fn key_by_headers(&self, key: &[ExprId], members: &[Member]) -> Option<Vec<String>> {
        let known = (
            self.arena.identity(),
            key.to_vec(),
            self.layout.guard().len(),
        );
        if let Some(found) = self.memory.headers.borrow().get(&known) {
            return found.clone();
        }
        let found = self.by_headers(key, members);
        self.memory
            .headers
            .borrow_mut()
            .insert(known, found.clone());
        found
    }

    fn by_headers(&self, key: &[ExprId], members: &[Member]) -> Option<Vec<String>> {
        let mut arena = self.arena.clone();
        let whole = Alternative {
            bytes: key.to_vec(),
            guard: self.layout.guard().to_vec(),
            known: self.memory.known.each(self.arena, self.layout.guard()),
        };
        // By the condition that is decided next, so that alternatives that come to the same bytes have met before.
        let mut todo = Waiting::default();
        todo.put(whole.open(&arena).ok()?, whole);
        let mut steps = 0;
        let mut all: Vec<Vec<String>> = Vec::new();
        while let Some((condition, next)) = todo.take() {
            steps += 1;
            if steps > STEPS {
                return None;
            }
            for holds in [false, true] {
                let decided = next.decided(&mut arena, &self.memory.known, (condition, holds));
                if let Some(alternative) = decided {
                    todo.put(alternative.open(&arena).ok()?, alternative);
                }
            }
        }
        for (bytes, (guard, known)) in todo.decided {
            let layout = Layout::with(&arena, guard, &known, self.memory);
            let printer = Printer {
                arena: &arena,
                layout: &layout,
                ..*self
            };
            let texts = members.iter().filter_map(|m| {
                let place = m.from as usize..(m.from + m.bytes) as usize;
                Some(printer.member(m, bytes.get(place)?))
            });
            let texts: Vec<String> = texts.collect();
            if !all.contains(&texts) {
                all.push(texts);
            }
        }
        if all.iter().flatten().any(|t| t.contains("f(")) {
            return None;
        }
        all.sort();
        let first = all.first()?;
        if all.len() <= WHOLE {
            return Some(super::ways::together(&all));
        }
        let member = |at: usize| {
            let each: BTreeSet<&String> = all.iter().filter_map(|t| t.get(at)).collect();
            let each: Vec<&str> = each.into_iter().map(String::as_str).collect();
            match each.as_slice() {
                [one] => Some((*one).to_owned()),
                several if several.len() > MOST => None,
                several => Some(format!("one of {{{}}}", several.join(", "))),
            }
        };
        (0..first.len()).map(member).collect()
    }
}
