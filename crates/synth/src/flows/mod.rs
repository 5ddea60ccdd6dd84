//! Rewriters one after the other as one: a flow's entry holds its last words, and what was decided when it was opened.
//!
//! All rewriters on a flow's way are asked by words that follow from the flow's first ones, so one table serves for all: its key
//! is the packet's words with the first rewriter (the origin; the paper's properties 1 and 2), its entry the words behind the last one.
//! Words between are nobody's: no port is leased for them. A test of words behind a rewriter is resolved when the flow is opened,
//! and what is left, tests of what differs between packets, is a program by its number in the entry. So packets of
//! known flows are classified by nothing but their entry.
//!
//! Answers are found by the last words reversed. What their way decides by words is resolved at the opening, too.
//!
//! Where no answers enter the configuration, ports of a range are leased by their numbers alone.
//!
//! # A stamp a rewriter
//! Rewriters that all packets of a flow pass, with the same ages, know the flow until the same moment. A packet that ends between two of
//! them, and ages that differ, tell them apart: then an entry has a stamp for each ([`Flows::stamps`]), and an answer comes as far as
//! the first rewriter at which the flow is absent.
//!
//! # Not merged
//! An input of answers that opens flows or passes them, tests of a port that is chosen from a range, flows whose packets take
//! different rewriters, and several ports by which answers come: refused, with the rewriter's place.
//!
//! # What differs from the rewriters one by one
//! Which port of a range a flow gets is any free one (`lease`), and the words of a flow that has ended are free when its entry
//! goes, the longest age after its last packet; ranges of hidden rewriters never run out (`capacity`); a mapper's next
//! pattern is drawn at random rather than in turn (`lease`). A packet that comes by an input of flows is looked for among flows
//! alone, one by an input of answers among answers alone.

use std::collections::{BTreeMap, HashMap};

use millrace_click::interpreter::Router;
use millrace_click::meaning::{Meaning, Rewriting};
use millrace_click::rewriter::Specification;

use crate::action::{Actions, Stateful, Value, Verdict};
use crate::backward::{WORDS, word_of};
use crate::diagram::{Full, Id, Node, Store};
use crate::field::{Var, Word};

mod answers;
mod lean;
mod open;
mod rename;
mod stamps;

pub use lean::lean;
pub use stamps::{Ages, MOST_STAMPS};

/// A word of a flow behind a rewriter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Becomes {
    /// a number
    Constant(u64),
    /// a word of the flow's packets as they come
    Word(Word),
    /// one of a range: the first, how many
    Range(u64, u64),
}

/// A rewriter on a flow's way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    /// the element
    pub rewriter: usize,
    /// its number, which names words of entries
    pub number: u8,
    /// the words behind it
    pub words: [Becomes; 4],
    /// whether the packet's own port is preferred
    pub own: bool,
    /// the output of answers
    pub back: usize,
}

/// Flows that one branch opens.
pub struct Opening {
    /// where the IP header begins
    pub header: u16,
    /// the protocol
    pub protocol: u8,
    /// the first rewriter: the origin
    pub origin: u8,
    /// one for each combination of patterns that may be drawn
    pub variants: Vec<Variant>,
}

/// What a new flow becomes.
pub struct Variant {
    /// by words, and then by what differs between packets; leaves have the rewriters that were passed
    pub root: Id,
    /// for each program of `root`: the way, and the diagram by words of what answers do
    pub ways: BTreeMap<Id, Way>,
}

/// A flow's way.
#[derive(Clone, Debug)]
pub struct Way {
    /// rewriters in order
    pub hops: Vec<Hop>,
    /// by words: the program of answers; none if answers come by no port
    pub back: Option<Id>,
}

impl Way {
    /// The range of ports of which one is leased.
    #[must_use]
    pub fn lease(&self) -> Option<(u64, u64)> {
        let last = self.hops.last().filter(|_| self.back.is_none())?;
        match last.words {
            [Becomes::Range(..), ..] => None,
            [_, _, Becomes::Range(low, count), _] => Some((low, count)),
            _ => None,
        }
    }

    /// Whether words have to be kept apart from those of all other flows by what answers would have.
    #[must_use]
    pub fn probes(&self) -> bool {
        let addresses = self
            .hops
            .last()
            .is_some_and(|h| matches!(h.words, [Becomes::Range(..), ..]));
        self.back.is_some() || addresses
    }
}

/// Answers that one branch takes.
pub struct Answers {
    /// where the IP header begins
    pub header: u16,
    /// whether the frame is cut to the IP packet's length
    pub cut: bool,
    /// the protocol
    pub protocol: u8,
    /// the last rewriter
    pub rewriter: usize,
}

/// What packets of a flow do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Program {
    /// by what differs between packets
    pub root: Id,
    /// rewriters on their way
    pub hops: usize,
    /// range of which their port is leased, by its number in [`Flows::leases`]
    pub lease: Option<usize>,
    /// ages at these rewriters, by their number in [`Flows::stamps`]; 0 if there is one stamp
    pub ages: usize,
    /// whether its packets are answers; told apart only where each rewriter has a stamp
    pub back: bool,
}

/// All that is known of flows.
#[derive(Default)]
pub struct Flows {
    /// branches that open flows
    pub openings: HashMap<Id, Opening>,
    /// branches that take answers
    pub answers: HashMap<Id, Answers>,
    /// programs: what packets of a flow do, by the number that its entry holds
    pub programs: Vec<Program>,
    /// the most rewriters on a way
    pub most_hops: usize,
    /// ages of mappings of rewriters on ways
    pub ages: BTreeMap<usize, Ages>,
    /// where entries have a stamp for each rewriter on their way: the ages on each way, in the order of its rewriters, all of one
    /// length; empty where one stamp is enough
    pub stamps: Vec<Vec<Ages>>,
    /// flows, at most
    pub capacity: usize,
    /// whether a packet that is dropped behind a rewriter leaves no trace
    pub early: bool,
    /// whether a packet may end between two rewriters on its way
    pub ends_early: bool,
}

/// The number of the words of a flow's entry, in the place of a rewriter's.
pub const FLOW: u8 = u8::MAX;

/// Why flows cannot be merged.
pub enum Stop {
    /// the budget is spent
    Full,
    /// the element, and why
    Refused(usize, String),
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

/// The work on flows.
pub struct Work<'a> {
    /// elements
    pub router: &'a Router,
    /// all diagrams
    pub store: &'a mut Store,
    /// all actions
    pub actions: &'a mut Actions,
    /// rewriters by their numbers
    pub rewriters: &'a [usize],
    /// packets that are dropped leave no trace
    pub early: bool,
}

/// Branches below which only words of flows and what differs between their packets are tested, that ask rewriters.
fn borders(store: &Store, actions: &Actions, root: Id) -> Vec<(Id, Vec<u32>)> {
    let below = store.below(root, Var::of_shape).into_iter();
    let asking = below.map(|id| (id, asked(store, actions, id)));
    asking.filter(|(_, asked)| !asked.is_empty()).collect()
}

/// Askings of rewriters in a diagram.
fn asked(store: &Store, actions: &Actions, id: Id) -> Vec<u32> {
    let mut found: Vec<u32> = store
        .reachable(id)
        .into_iter()
        .filter_map(|id| match store.node(id) {
            Node::Leaf(number) => match actions.get(*number)?.verdict {
                Verdict::State(asked) => Some(asked),
                _ => None,
            },
            Node::Branch { .. } => None,
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

impl Flows {
    /// Whether patterns of flows are drawn at random.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.openings.values().any(|o| o.variants.len() > 1)
    }

    /// Ranges of ports that are leased: those of flows whose answers do not enter, so that nothing but the range has to keep
    /// them apart.
    #[must_use]
    pub fn leases(&self) -> Vec<(u64, u64)> {
        if !self.answers.is_empty() {
            return Vec::new();
        }
        let variants = self.openings.values().flat_map(|o| &o.variants);
        let mut found: Vec<_> = variants
            .flat_map(|v| v.ways.values())
            .filter_map(Way::lease)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Ranges of source ports, the first and how many: where a flow's own is outside or taken, one is drawn at random.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let variants = self.openings.values().flat_map(|o| &o.variants);
        let hops = variants.flat_map(|v| v.ways.values()).flat_map(|w| &w.hops);
        hops.filter_map(|hop| match hop.words {
            [_, _, Becomes::Range(low, count), _] => Some((low, count)),
            _ => None,
        })
    }

    /// The program of a flow's packets, given what they do.
    #[must_use]
    pub fn program(&self, root: Id, way: &Way) -> Program {
        let (lease, leases) = (way.lease(), self.leases());
        Program {
            root,
            hops: way.hops.len(),
            lease: lease.and_then(|l| leases.iter().position(|o| *o == l)),
            ages: self.stamped(way),
            back: false,
        }
    }

    /// The program of a flow's answers.
    #[must_use]
    pub fn answer(&self, root: Id, way: &Way) -> Program {
        Program {
            root,
            hops: way.hops.len(),
            lease: None,
            ages: self.stamped(way),
            back: !self.stamps.is_empty(),
        }
    }

    /// Whether any answers enter.
    #[must_use]
    pub fn answered(&self) -> bool {
        let variants = self.openings.values().flat_map(|o| &o.variants);
        !self.answers.is_empty() || variants.flat_map(|v| v.ways.values()).any(Way::probes)
    }

    /// Whether packets that end between two rewriters are not noted.
    #[must_use]
    pub fn forgets(&self) -> bool {
        self.stamps.is_empty() && !self.answers.is_empty() && self.ends_early
    }

    /// What may differ from the rewriters one by one: which, and when.
    #[must_use]
    pub fn relaxations(&self) -> Vec<(&'static str, &'static str)> {
        let ways = || {
            let variants = self.openings.values().flat_map(|o| &o.variants);
            variants.flat_map(|v| v.ways.values())
        };
        let ranged = |hop: &Hop| hop.words.iter().any(|w| matches!(w, Becomes::Range(..)));
        let mut found = Vec::new();
        if ways().any(|w| w.hops.last().is_some_and(ranged)) {
            found.push(("lease", "a flow gets any free port of its range; those of a flow that has ended are free when its entry goes"));
        }
        if self.draws() {
            found.push(("lease", "a mapper's pattern is drawn, not taken in turn"));
        }
        if ways().any(|w| w.hops.len() > 1) {
            found.push((
                "capacity",
                "ranges of rewriters whose words another one replaces never run out",
            ));
        }
        if self.forgets() {
            found.push((
                "early-discard",
                "a packet that ends between two rewriters of its flow does nothing to it: it keeps neither alive, and ends neither",
            ));
        }
        if !self.answers.is_empty() {
            found.push((
                "direction",
                "a packet that comes by an input of flows is looked for among flows alone, one by an input of answers among answers",
            ));
        }
        if self.any() && self.early {
            found.push((
                "early-discard",
                "a packet that is dropped behind a rewriter opens no flow there, and keeps none alive",
            ));
        }
        if self.any() {
            found.push((
                "capacity",
                "a full table refuses new flows; Click's evicts old ones",
            ));
        }
        found
    }

    /// Whether there are any.
    #[must_use]
    pub fn any(&self) -> bool {
        !self.openings.is_empty()
    }
}

impl Work<'_> {
    /// Merges what can be merged.
    ///
    /// # Errors
    /// Why not: the rewriter, or the budget is spent.
    pub fn all(&mut self, root: Id) -> Result<Flows, Stop> {
        self.merge(root)
    }

    fn rewriting(&self, id: usize) -> Result<Rewriting, Stop> {
        match self.router.meaning(id) {
            Some(Meaning::Rewrite(rewriting)) => Ok(*rewriting),
            _ => Err(Stop::Refused(id, "it is no rewriter".into())),
        }
    }

    /// Patterns that a new flow by an input may have; none for an input of answers.
    fn patterns(&self, asked: &Stateful) -> Result<Vec<Specification>, Stop> {
        let id = asked.at.element;
        let rewriting = self.rewriting(id)?;
        match rewriting.inputs.get(asked.at.port) {
            Some(Specification::Drop) | None => Ok(Vec::new()),
            Some(Specification::Pass(_)) => Err(Stop::Refused(
                id,
                "packets without a mapping pass it, so that their words are not the flow's".into(),
            )),
            Some(Specification::Mapper(mapper)) => match self.router.meaning(*mapper) {
                Some(Meaning::Mapper(patterns)) => Ok(patterns),
                _ => Err(Stop::Refused(*mapper, "its patterns are not known".into())),
            },
            Some(one) => Ok(vec![one.clone()]),
        }
    }

    fn merge(&mut self, root: Id) -> Result<Flows, Stop> {
        let mut flows = Flows {
            early: self.early,
            ..Flows::default()
        };
        let mut opening = Vec::new();
        for (id, asked) in borders(self.store, self.actions, root) {
            let all: Vec<Stateful> = asked
                .iter()
                .filter_map(|n| self.actions.asked(*n).cloned())
                .collect();
            let Some(first) = all.first().cloned() else {
                continue;
            };
            let element = first.at.element;
            if all.iter().any(|s| s.at.element != element) {
                let why = "packets go to it or to another rewriter by their words alone";
                return Err(Stop::Refused(element, why.into()));
            }
            let own = WORDS.map(|word| Value::Field(word_of(first.header, word), 0));
            if all.iter().any(|s| s.key != own) {
                let why = "an element before it writes addresses or ports";
                return Err(Stop::Refused(element, why.into()));
            }
            let rewriting = self.rewriting(element)?;
            flows.capacity = rewriting.capacity;
            let patterns = self.patterns(&first)?;
            match patterns.is_empty() {
                false => opening.push((id, first)),
                true => {
                    flows.answers.insert(
                        id,
                        Answers {
                            header: first.header,
                            cut: first.cut,
                            protocol: first.upper,
                            rewriter: element,
                        },
                    );
                }
            }
        }
        if let Some(answers) = flows.answers.values().next().filter(|_| opening.is_empty()) {
            let why = "none of its inputs opens flows, so that there are no answers";
            return Err(Stop::Refused(answers.rewriter, why.into()));
        }
        for (id, first) in opening {
            let made = self.opening(id, &first, &flows)?;
            self.answerable(root, (id, first.at.element), (&made, &flows))?;
            flows.openings.insert(id, made);
        }
        self.stamp(&mut flows)?;
        // Programs are numbered, and the longest way is known.
        let mut programs = Vec::new();
        for opening in flows.openings.values() {
            for variant in &opening.variants {
                for (root, way) in &variant.ways {
                    programs.push(flows.program(*root, way));
                    let back = way.back.map_or(Vec::new(), |back| self.programs(back));
                    let answers = back.into_iter().map(|root| flows.answer(root, way));
                    programs.extend(answers);
                }
            }
        }
        programs.sort_unstable();
        programs.dedup();
        flows.programs = programs;
        Ok(flows)
    }

    /// Answers to flows come by an input of answers: refused is where none leads to their rewriter, and flows are opened by packets of a
    /// device by which such flows leave. A packet of theirs is looked for among flows alone.
    fn answerable(
        &self,
        root: Id,
        (border, element): (Id, usize),
        (opening, flows): (&Opening, &Flows),
    ) -> Result<(), Stop> {
        let taken = |way: &Way| {
            let last = way.hops.last().map(|h| h.rewriter);
            flows.answers.values().any(|a| Some(a.rewriter) == last)
        };
        let opens = |port: &u8| {
            let inner = self.store.at(root, Var::Port, u64::from(*port));
            self.store.reachable(inner).contains(&border)
        };
        let from: Vec<u8> = (0..crate::MOST_PORTS as u8).filter(opens).collect();
        let ways = opening.variants.iter().flat_map(|v| &v.ways);
        for (program, _) in ways.filter(|(_, way)| !taken(way)) {
            for id in self.store.reachable(*program) {
                let Node::Leaf(number) = self.store.node(id) else {
                    continue;
                };
                let verdict = self.actions.get(*number).map(|a| a.verdict);
                let Some(Verdict::Leave { port, .. }) = verdict else {
                    continue;
                };
                if from.contains(&port) {
                    let why = "answers to its flows come by an input that opens flows";
                    return Err(Stop::Refused(element, why.into()));
                }
            }
        }
        Ok(())
    }

    /// Diagrams behind the last test of a flow's words.
    pub fn programs(&self, root: Id) -> Vec<Id> {
        programs(self.store, root)
    }
}

/// Diagrams behind the last test of a flow's words.
#[must_use]
pub fn programs(store: &Store, root: Id) -> Vec<Id> {
    store.below(root, Var::of_flow)
}
