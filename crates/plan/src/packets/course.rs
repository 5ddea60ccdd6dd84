//! How the packets of a path can lie in memory: with how many tags, IP of which version, which headers behind.

use std::collections::BTreeMap;
use std::rc::Rc;

use millrace_model::expr::sets::Set;
use millrace_model::expr::{Arena, ExprId};
use millrace_model::known::{Known, Of};
use millrace_wire::ethernet::TAGS;

use super::guard::conditions;
use super::{Family, View};
use crate::memo::{Bytes, Memo, furthest};

/// As many VLAN tags as crates/steer steps over.
const MOST_TAGS: usize = 4;

/// More EtherTypes that a guard leaves beside those of IP and tags are taken for possible without a look.
const MOST_TYPES: usize = 16;

/// Identity of a path: its guard, and all else that it computes in any case.
#[derive(Clone)]
pub(crate) struct Course {
    /// what the guard says of the packet
    pub guard: Rc<Vec<ExprId>>,
    /// keys of its accesses
    pub done: Rc<Vec<ExprId>>,
    pub memo: Rc<Memo>,
}

impl Course {
    pub(super) fn view(
        &self,
        arena: &mut Arena,
        family: Option<Family>,
        at: i64,
        bytes: &Bytes,
    ) -> View {
        let memo = &self.memo;
        let guard = self.told(arena);
        let known = memo.known.all(arena, &guard);
        let (mut length, mut read) = (0, Vec::new());
        for e in guard.iter() {
            for last in &memo.parts(arena, *e).last {
                if last.terms.is_empty() {
                    length = length.max(last.at.saturating_add(1));
                } else {
                    furthest(&mut read, last);
                }
            }
        }
        let mut all: Vec<ExprId> = guard.iter().chain(self.done.iter()).copied().collect();
        // Where a place is chosen by what the guard says, it is chosen now.
        if self.done.iter().any(|e| memo.parts(arena, *e).chooses) {
            let done = memo.given(arena, &self.done, bytes);
            let conditions = conditions(arena, &guard);
            all.extend(memo.decided(arena, &done, &conditions));
        }
        for e in &all {
            let parts = memo.parts(arena, *e);
            parts.sure.iter().for_each(|o| furthest(&mut read, o));
        }
        let single = known.iter().filter_map(|(of, set)| match of {
            Of::Byte(place) => Some((*place, set.only()?)),
            Of::Port => None,
        });
        let mut view = View {
            family,
            at,
            fixed: Rc::new(single.collect()),
            known,
            told: Rc::default(),
            read: Rc::new(read),
            memo: memo.clone(),
            length,
            guard,
            any: false,
            extended: false,
            carries_extended: false,
            echo: None,
            odd: None,
        };
        view.tell(bytes.iter().map(|(place, v)| (*place, Set::one(*v))));
        view
    }

    /// The guard, and what it says once its own conditions have decided what they choose: where paths merged, a place
    /// that a later condition speaks of is chosen by what an earlier one tells.
    fn told(&self, arena: &mut Arena) -> Rc<Vec<ExprId>> {
        let chosen = |e: &&ExprId| self.memo.parts(arena, **e).chosen;
        let chosen: Vec<ExprId> = self.guard.iter().filter(chosen).copied().collect();
        if chosen.is_empty() {
            return self.guard.clone();
        }
        let mut guard = self.guard.to_vec();
        let conditions = conditions(arena, &guard);
        let decided = self.memo.decided(arena, &chosen, &conditions);
        guard.extend(
            decided
                .into_iter()
                .filter(|e| arena.constant(*e) != Some(1)),
        );
        guard.sort_unstable();
        guard.dedup();
        Rc::new(guard)
    }

    /// The same of packets that have these bytes; none if there are no such packets on the path.
    pub(super) fn with(&self, arena: &mut Arena, bytes: &Bytes) -> Option<Self> {
        let guard = self.memo.given(arena, &self.guard, bytes);
        let possible = !guard.iter().any(|e| arena.constant(*e) == Some(0));
        possible.then(|| Self {
            done: Rc::new(self.memo.given(arena, &self.done, bytes)),
            guard: Rc::new(guard),
            memo: self.memo.clone(),
        })
    }

    /// Whether it looks at the EtherType at an offset, or at anything behind it.
    fn looks_behind(&self, arena: &Arena, from: i64) -> bool {
        let mut all = self.guard.iter().chain(self.done.iter());
        all.any(|e| self.memo.parts(arena, *e).looks_behind(from))
    }
}

/// How the packets of a path can lie in memory.
pub(crate) fn views(arena: &mut Arena, path: &Course) -> Vec<View> {
    let known = path.memo.known.all(arena, &path.guard);
    let only = |at: i64| known.get(&Of::Byte((None, at))).and_then(Set::only);
    let word = |at: i64| Some(u16::from_be_bytes([only(at)?, only(at + 1)?]));
    let none = BTreeMap::new();
    let mut at = 12;
    while let Some(kind) = word(at) {
        let family = match kind {
            0x0800 => Family::V4,
            0x86dd => Family::V6,
            tag if TAGS.contains(&tag) && at < 12 + 4 * MOST_TAGS as i64 => {
                at += 4;
                continue;
            }
            _ => return vec![path.view(arena, None, at, &none)],
        };
        let view = path.view(arena, Some(family), at + 2, &none);
        return by_next(arena, view);
    }
    let mut out = Vec::new();
    let mut todo = vec![(12_i64, none, path.clone())];
    while let Some((at, bytes, path)) = todo.pop() {
        if !path.looks_behind(arena, at) {
            let mut view = path.view(arena, None, at, &bytes);
            view.any = true;
            out.push(view);
            continue;
        }
        let mut next: Vec<u16> = vec![0x0800, 0x86dd];
        if at < 12 + 4 * MOST_TAGS as i64 {
            next.extend(TAGS);
        }
        let known = path.memo.known.all(arena, &path.guard);
        if let Some(bytes) = any_other(arena, &known, &path, at, (&bytes, &next)) {
            out.push(path.view(arena, None, at, &bytes));
        }
        let mut behind: Vec<Course> = Vec::new();
        for kind in next {
            let [high, low] = kind.to_be_bytes();
            let admits = |place: i64, v: u8| {
                let set = known.get(&Of::Byte((None, place)));
                set.is_none_or(|s| s.values().any(|x| x == v))
            };
            if !admits(at, high) || !admits(at + 1, low) {
                continue;
            }
            let mut bytes = bytes.clone();
            bytes.extend([((None, at), high), ((None, at + 1), low)]);
            let Some(path) = path.with(arena, &bytes) else {
                continue;
            };
            match kind {
                0x0800 => out.push(path.view(arena, Some(Family::V4), at + 2, &bytes)),
                0x86dd => {
                    let view = path.view(arena, Some(Family::V6), at + 2, &bytes);
                    out.extend(by_next(arena, view));
                }
                // Tags that the path does not tell apart are one.
                _ => {
                    let same = |o: &Course| o.guard == path.guard && o.done == path.done;
                    if !behind.iter().any(same) {
                        behind.push(path.clone());
                        todo.push((at + 4, bytes, path));
                    }
                }
            }
        }
    }
    out
}

/// Facts common to the packets that have none of these EtherTypes at an offset; none if there are no such.
pub(super) fn any_other(
    arena: &mut Arena,
    known: &Known,
    path: &Course,
    at: i64,
    (bytes, types): (&Bytes, &[u16]),
) -> Option<Bytes> {
    let set = |at: i64| known.get(&Of::Byte((None, at))).cloned();
    let (Some(high), Some(low)) = (set(at), set(at + 1)) else {
        return Some(bytes.clone());
    };
    let pairs = high
        .values()
        .flat_map(|h| low.values().map(move |l| (h, l)));
    let others: Vec<(u8, u8)> = pairs
        .filter(|(h, l)| !types.contains(&u16::from_be_bytes([*h, *l])))
        .take(MOST_TYPES + 1)
        .collect();
    if others.len() > MOST_TYPES {
        return Some(bytes.clone());
    }
    let possible = others.into_iter().any(|(h, l)| {
        let mut bytes = bytes.clone();
        bytes.extend([((None, at), h), ((None, at + 1), l)]);
        path.with(arena, &bytes).is_some()
    });
    possible.then(|| bytes.clone())
}

/// IPv6 with and without extension headers.
pub(super) fn by_next(arena: &Arena, view: View) -> Vec<View> {
    if view.family != Some(Family::V6) {
        return vec![view];
    }
    let place = view.network().plus(6);
    let [plain, mut extended] = [false, true].map(|e| view.extends(arena, &place, e));
    extended.iter_mut().for_each(|v| v.extended = true);
    plain.into_iter().chain(extended).collect()
}
