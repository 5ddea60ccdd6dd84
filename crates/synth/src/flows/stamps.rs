//! Until when each rewriter on a flow's way knows the flow.

use millrace_click::meaning::Rewriting;

use super::{Flows, Stop, Way, Work};
use crate::diagram::{Id, Node};

/// Rewriters on a way that may have a stamp each: an entry is made on the stack, of which a function has 512 bytes.
pub const MOST_STAMPS: usize = 16;

/// How long a rewriter knows a flow behind a packet, ns; none is shorter than what is guaranteed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ages {
    /// TCP, both sides have sent data
    pub tcp: u64,
    /// TCP, both sides have ended
    pub done: u64,
    /// TCP, one side alone has sent data
    pub nodata: u64,
    /// other protocols
    pub other: u64,
}

impl Ages {
    /// Those of a rewriter.
    #[must_use]
    pub fn of(rewriting: &Rewriting) -> Self {
        let t = &rewriting.timeouts;
        let age = |ns: i64| ns.max(t.guarantee).max(0).unsigned_abs();
        let tcp = |ns| if rewriting.udp { age(t.other) } else { age(ns) };
        Self {
            tcp: tcp(t.tcp),
            done: tcp(t.tcp_done),
            nodata: tcp(t.tcp_nodata),
            other: age(t.other),
        }
    }

    fn longer(self, other: Self) -> Self {
        Self {
            tcp: self.tcp.max(other.tcp),
            done: self.done.max(other.done),
            nodata: self.nodata.max(other.nodata),
            other: self.other.max(other.other),
        }
    }

    /// The longest.
    #[must_use]
    pub fn longest(self) -> u64 {
        { self.tcp.max(self.done) }.max(self.nodata.max(self.other))
    }
}

impl Flows {
    fn all_ways(&self) -> impl Iterator<Item = (Id, &Way)> {
        let variants = self.openings.values().flat_map(|o| &o.variants);
        variants.flat_map(|v| v.ways.iter().map(|(root, way)| (*root, way)))
    }

    /// The longest ages of all rewriters.
    #[must_use]
    pub fn longest(&self) -> Ages {
        let all = self.ages.values().copied();
        all.reduce(Ages::longer).unwrap_or_default()
    }

    /// The ages on a way, as if it had the most rewriters.
    fn ages_on(&self, way: &Way) -> Vec<Ages> {
        let of = |rewriter: &usize| self.ages.get(rewriter).copied().unwrap_or_default();
        let mut ages: Vec<Ages> = way.hops.iter().map(|h| of(&h.rewriter)).collect();
        let last = ages.last().copied().unwrap_or_default();
        ages.resize(self.most_hops, last);
        ages
    }

    /// The number of the ages on a way.
    pub(super) fn stamped(&self, way: &Way) -> usize {
        if self.stamps.is_empty() {
            return 0;
        }
        let ages = self.ages_on(way);
        self.stamps.iter().position(|s| *s == ages).unwrap_or(0)
    }
}

impl Work<'_> {
    /// Decides whether entries have a stamp for each rewriter.
    pub(super) fn stamp(&mut self, flows: &mut Flows) -> Result<(), Stop> {
        let rewriters: Vec<usize> = { flows.all_ways() }
            .flat_map(|(_, way)| way.hops.iter().map(|h| h.rewriter))
            .collect();
        for element in rewriters {
            let rewriting = self.rewriting(element)?;
            if rewriting.timeouts.streaming != rewriting.timeouts.other {
                return Err(Stop::Refused(element, "STREAMING_TIMEOUT is given".into()));
            }
            flows.ages.insert(element, Ages::of(&rewriting));
        }
        flows.most_hops = { flows.all_ways() }
            .map(|(_, way)| way.hops.len())
            .max()
            .unwrap_or(0);
        let early = flows.all_ways().any(|(root, way)| {
            let back = way.back.map_or(Vec::new(), |back| self.programs(back));
            let mut programs = std::iter::once(root).chain(back);
            programs.any(|root| self.ends_early(root, way.hops.len()))
        });
        flows.ends_early = early;
        let first = flows.ages.values().next();
        let other = flows.ages.iter().find(|(_, ages)| Some(*ages) != first);
        let other = other.map(|(element, _)| *element);
        // Without answers nobody is told when a flow is absent.
        if flows.answers.is_empty() || !flows.ends_early && other.is_none() {
            return Ok(());
        }
        if flows.most_hops > MOST_STAMPS || flows.draws() {
            return match other {
                Some(element) if flows.draws() => {
                    let why = "other rewriters have other ages, and patterns are drawn";
                    Err(Stop::Refused(element, why.into()))
                }
                Some(element) => {
                    let why = format!(
                        "other rewriters have other ages, and more than {MOST_STAMPS} are on a way"
                    );
                    Err(Stop::Refused(element, why))
                }
                None => Ok(()),
            };
        }
        let mut stamps: Vec<_> = { flows.all_ways() }
            .map(|(_, way)| flows.ages_on(way))
            .collect();
        stamps.sort_unstable();
        stamps.dedup();
        flows.stamps = stamps;
        Ok(())
    }

    /// Whether a packet may end behind some, but not all, of the rewriters on its way.
    fn ends_early(&self, root: Id, most: usize) -> bool {
        let mut nodes = self.store.reachable(root).into_iter();
        nodes.any(|id| match self.store.node(id) {
            Node::Leaf(number) => self.actions.get(*number).is_some_and(|action| {
                let passed = usize::from(action.hops);
                passed > 0 && passed < most
            }),
            Node::Branch { .. } => false,
        })
    }
}
