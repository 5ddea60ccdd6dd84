//! Paths cut where they meet: what is followed where following every path to its end is more than a budget allows.
//!
//! N questions that a program asks one behind the other make 2^N paths and 2N ways through single questions. So where
//! more than a few states meet they end as paths that go on ([`Verdict::Onward`]), and behind the join goes on one state
//! that stands for all that look alike: what they have in common stays, what they differ in is any number. A packet takes
//! a sequence of such paths, and each speaks of the state as it is when the packet comes to it. So whatever is so of
//! every path by itself (which entries are touched under which keys, that what is left is a sum, that something does not
//! show) is so of every packet; what is said of a whole packet (that it does nothing but end) is said of none that goes
//! on.
//!
//! State that a path has read and that passes behind the cut is recorded ([`tell`](super::tell)): questions about what
//! depends on state find it among what is observable.

mod exact;
mod joint;
mod likeness;
mod turns;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::state::{State, Value};
use super::{Engine, tell};
use crate::expr::ExprId;
use crate::model::Verdict;
use likeness::Level;

/// So often paths come to a join in a loop before those of all turns are taken together, and twice as often before
/// those are that read the packet at another computed place in each.
const TURNS: usize = 8;

/// More states than this behind a join are taken together though they read the packet at different computed places.
const PLACES: usize = 64;

/// Facts about a join at which paths are cut.
#[derive(Default)]
pub(in crate::exec) struct Joints {
    /// how often paths have come to it together
    visits: usize,
    /// states that stand for all that look so, with the numbers of their cuts
    known: BTreeMap<Vec<u64>, (u32, State)>,
}

impl Engine<'_> {
    /// Cuts the paths that have come to a join, where they are more than a few.
    pub(in crate::exec) fn cut_at_join(&mut self, block: usize, states: Vec<State>) -> Vec<State> {
        let joins = self.blocks.before.get(block).is_some_and(|b| b.len() > 1);
        let turns = (0..self.loops.all.len()).any(|l| self.loops.contains(l, block));
        let Some(most) = self.cutting.filter(|_| joins) else {
            return states;
        };
        let known = self.joints.entry(block).or_default();
        known.visits += 1;
        // After some turns of a loop those that follow look alike.
        let least = match known.visits {
            _ if !turns => Level::State,
            visits if visits > 2 * TURNS => Level::Offsets,
            _ => Level::Kind,
        };
        let turns = turns && known.visits > TURNS;
        if !turns && states.len() <= most {
            return states;
        }
        let start = self.blocks.starts.get(block).copied();
        let (mut whole, mut movable) = (Vec::new(), Vec::new());
        for mut s in states {
            self.settle(&mut s, block);
            // A call splits paths in the middle of a block: those have passed the join.
            match Some(s.at) != start || self.goes_apart(&s) {
                true => whole.push(s),
                false => movable.push(s),
            }
        }
        let levels = [
            Level::State,
            Level::Fields,
            Level::Kind,
            Level::Pointers,
            Level::Offsets,
        ];
        let mut groups: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
        for level in levels.into_iter().filter(|l| *l >= least) {
            groups.clear();
            for (i, s) in movable.iter().enumerate() {
                let likeness = self.likeness(s, block, level);
                groups.entry(likeness).or_default().push(i);
            }
            let few = match level {
                Level::Pointers => most.max(PLACES),
                _ => most,
            };
            if groups.len() <= few {
                break;
            }
        }
        for (likeness, members) in groups {
            let members: Vec<State> = members
                .into_iter()
                .filter_map(|i| movable.get(i).cloned())
                .collect();
            if !turns {
                match members.as_slice() {
                    [_] => whole.extend(members),
                    _ => whole.push(self.joint(&members, false).1),
                }
                continue;
            }
            let joints = self.joints.entry(block).or_default();
            let (members, wide) = match joints.known.remove(&likeness) {
                Some((cut, joint)) => {
                    let left = members.iter().map(|s| self.left_for(&joint, s));
                    if let Some(left) = left.collect::<Option<Vec<_>>>() {
                        for (s, left) in members.into_iter().zip(left) {
                            self.ends(s, cut, left);
                        }
                        let joints = self.joints.entry(block).or_default();
                        joints.known.insert(likeness, (cut, joint));
                        continue;
                    }
                    let mut all = members;
                    all.push(joint);
                    (all, true)
                }
                None => (members, false),
            };
            let (cut, onward) = self.joint(&members, wide);
            let joints = self.joints.entry(block).or_default();
            joints.known.insert(likeness, (cut, onward.clone()));
            whole.push(onward);
        }
        whole
    }

    /// Ends a path that goes on behind a cut with these numbers.
    pub(super) fn ends(&mut self, mut s: State, cut: u32, left: Vec<(usize, ExprId)>) {
        let mut h = DefaultHasher::new();
        (s.tells, &left).hash(&mut h);
        s.tells = tell::numbered(h.finish(), u64::from(cut));
        let told: Vec<ExprId> = left
            .into_iter()
            .map(|(_, e)| e)
            .filter(|e| self.depends_on_state(*e))
            .collect();
        self.tell(&mut s, &told);
        let mut path = self.path(s, Value::Unset);
        path.verdict = Verdict::Onward(cut);
        self.left.push(path);
    }
}
