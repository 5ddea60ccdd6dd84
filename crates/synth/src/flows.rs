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

use millrace_click::error::Error;
use millrace_click::interpreter::Router;
use millrace_click::meaning::{Meaning, Rewriting};
use millrace_click::rewriter::{Pattern, Specification, Timeouts};

use crate::action::{Actions, Stateful, Value, Verdict};
use crate::backward::{WORDS, word_of};
use crate::diagram::{Full, Id, Node, Store};
use crate::field::{Var, Word};
use crate::refusal;

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
    /// the protocol
    pub protocol: u8,
    /// the last rewriter
    pub rewriter: usize,
}

/// All that is known of flows.
#[derive(Default)]
pub struct Flows {
    /// branches that open flows
    pub openings: HashMap<Id, Opening>,
    /// branches that take answers
    pub answers: HashMap<Id, Answers>,
    /// programs: what packets of a flow do, by the number that its entry holds; with the rewriters on their way
    pub programs: Vec<(Id, usize)>,
    /// the most rewriters on a way
    pub most_hops: usize,
    /// ages of mappings
    pub timeouts: Timeouts,
    /// flows, at most
    pub capacity: usize,
    /// whether all flows age as those of UDP
    pub udp: bool,
}

/// The number of the words of a flow's entry, in the place of a rewriter's.
pub const FLOW: u8 = u8::MAX;

/// Combinations of patterns of mappers.
const MOST_VARIANTS: usize = 64;

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

    /// Whether any answers enter.
    #[must_use]
    pub fn answered(&self) -> bool {
        let variants = self.openings.values().flat_map(|o| &o.variants);
        !self.answers.is_empty() || variants.flat_map(|v| v.ways.values()).any(Way::probes)
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
            found.push((
                "early-discard",
                "a packet that ends between two rewriters of its flow keeps neither alive",
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
    /// Why not, at the rewriter.
    pub fn all(&mut self, root: Id) -> Result<Flows, Vec<Error>> {
        self.merge(root).map_err(|stop| match stop {
            Stop::Refused(id, why) => match self.router.graph().elements.get(id) {
                Some(element) => vec![refusal::at(element, &why)],
                None => Vec::new(),
            },
            Stop::Full => vec![refusal::full()],
        })
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
        let mut flows = Flows::default();
        let mut opening = Vec::new();
        let mut known: Option<Timeouts> = None;
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
            if rewriting.timeouts.streaming != rewriting.timeouts.other {
                return Err(Stop::Refused(element, "STREAMING_TIMEOUT is given".into()));
            }
            let ages = |t: &Timeouts| (t.tcp, t.tcp_done, t.tcp_nodata, t.other, t.guarantee);
            if known
                .as_ref()
                .is_some_and(|k| ages(k) != ages(&rewriting.timeouts))
            {
                return Err(Stop::Refused(
                    element,
                    "other rewriters have other ages".into(),
                ));
            }
            known = Some(rewriting.timeouts);
            flows.timeouts = rewriting.timeouts;
            flows.capacity = rewriting.capacity;
            flows.udp = rewriting.udp;
            let patterns = self.patterns(&first)?;
            match patterns.is_empty() {
                false => opening.push((id, first)),
                true => {
                    flows.answers.insert(
                        id,
                        Answers {
                            header: first.header,
                            protocol: first.upper,
                            rewriter: element,
                        },
                    );
                }
            }
        }
        for (id, first) in opening {
            let made = self.opening(id, &first, &flows)?;
            flows.openings.insert(id, made);
        }
        // Programs are numbered, and the longest way is known.
        let mut programs = Vec::new();
        for opening in flows.openings.values() {
            for variant in &opening.variants {
                for (program, way) in &variant.ways {
                    programs.push((*program, way.hops.len()));
                    flows.most_hops = flows.most_hops.max(way.hops.len());
                    if let Some(back) = way.back {
                        for program in self.programs(back) {
                            programs.push((program, way.hops.len()));
                        }
                    }
                }
            }
        }
        programs.sort_unstable();
        programs.dedup();
        flows.programs = programs;
        Ok(flows)
    }

    /// Diagrams behind the last test of a flow's words.
    pub fn programs(&self, root: Id) -> Vec<Id> {
        programs(self.store, root)
    }

    fn opening(&mut self, id: Id, first: &Stateful, flows: &Flows) -> Result<Opening, Stop> {
        let mut variants = Vec::new();
        let mut draws = vec![Vec::new()];
        // Each draw is a choice for every mapper, by rewriter; more are found while ways are followed.
        while let Some(draw) = draws.pop() {
            let mut ways = Vec::new();
            match self.open(id, &draw, &mut Vec::new(), &mut ways) {
                Ok(root) => {
                    let ways = self.ways(root, &ways, flows, first)?;
                    variants.push(Variant { root, ways });
                }
                Err(Undone::Draw(rewriter, count)) => {
                    for n in (0..count).rev() {
                        let mut more = draw.clone();
                        more.push((rewriter, n));
                        draws.push(more);
                    }
                }
                Err(Undone::Stop(stop)) => return Err(stop),
            }
            if variants.len() + draws.len() > MOST_VARIANTS {
                let why =
                    format!("flows may have more than {MOST_VARIANTS} combinations of patterns");
                return Err(Stop::Refused(first.at.element, why));
            }
        }
        Ok(Opening {
            header: first.header,
            protocol: first.upper,
            origin: first.hop,
            variants,
        })
    }

    /// A diagram with each asking replaced by what follows for a new flow. `hops` are the rewriters before, `ways` all ways.
    fn open(
        &mut self,
        id: Id,
        draw: &[(usize, usize)],
        hops: &mut Vec<Hop>,
        ways: &mut Vec<Vec<Hop>>,
    ) -> Result<Id, Undone> {
        let asked = asked(self.store, self.actions, id);
        let mut replaced = HashMap::new();
        for number in asked {
            let Some(state) = self.actions.asked(number).cloned() else {
                continue;
            };
            let element = state.at.element;
            if hops.iter().any(|h| h.rewriter == element) {
                return Err(refused(element, "flows come to it twice"));
            }
            let patterns = self.patterns(&state).map_err(Undone::Stop)?;
            if patterns.is_empty() {
                // An input of answers: a flow that is opened elsewhere comes to nothing here.
                let drop = self.actions.plain(Verdict::Drop(usize::MAX));
                replaced.insert(number, self.store.leaf(drop));
                continue;
            }
            let one = match patterns.as_slice() {
                [one] => one,
                several => match draw.iter().find(|d| d.0 == element) {
                    Some((_, n)) => several.get(*n).unwrap_or(&several[0]),
                    None => return Err(Undone::Draw(element, several.len())),
                },
            };
            let (hop, out) = self.hop(&state, one, hops.last()).map_err(Undone::Stop)?;
            let then = state.then.iter().find(|t| t.0 == out).map(|t| t.1);
            let Some(then) = then else {
                return Err(refused(element, "an output of its pattern leads nowhere"));
            };
            let known = self
                .behind(then, &state, &hop)
                .map_err(|_| Undone::Stop(Stop::Full))?;
            hops.push(hop);
            ways.push(hops.clone());
            let inner = self.open(known, draw, hops, ways)?;
            hops.pop();
            let inner = self.passed(inner).map_err(|_| Undone::Stop(Stop::Full))?;
            replaced.insert(number, inner);
        }
        self.replace(id, &replaced)
            .map_err(|_| Undone::Stop(Stop::Full))
    }

    /// What a rewriter makes of a flow, and the output of its packets.
    fn hop(
        &self,
        state: &Stateful,
        one: &Specification,
        before: Option<&Hop>,
    ) -> Result<(Hop, usize), Stop> {
        let came = before.map_or(WORDS.map(Becomes::Word), |hop| hop.words);
        let [source, destination, sport, dport] = came;
        let (words, own, out, back) = match one {
            Specification::Keep(out, back) => (came, true, *out, *back),
            Specification::Pattern(pattern, out, back) => {
                let words = [
                    range(pattern.source().map(|(a, n)| (u64::from(a), n)), source),
                    pattern
                        .destination()
                        .map_or(destination, |a| Becomes::Constant(u64::from(a))),
                    range(pattern.sport().map(|(a, n)| (u64::from(a), n)), sport),
                    pattern
                        .dport()
                        .map_or(dport, |p| Becomes::Constant(u64::from(p))),
                ];
                (words, Pattern::own(pattern), *out, *back)
            }
            _ => {
                let why = "a pattern of its mapper is none";
                return Err(Stop::Refused(state.at.element, why.into()));
            }
        };
        let hop = Hop {
            rewriter: state.at.element,
            number: state.hop,
            words,
            own,
            back,
        };
        Ok((hop, out))
    }

    /// A diagram behind a rewriter with its words replaced by what they are for a new flow: tests are resolved, writes are
    /// those of the entry.
    fn behind(&mut self, then: Id, state: &Stateful, hop: &Hop) -> Result<Id, Full> {
        let mut node = self.in_entry(then, hop.number)?;
        for (word, becomes) in WORDS.into_iter().zip(hop.words) {
            let var = Var::Entry(hop.number, word);
            node = self.resolve(node, var, becomes, state.header)?;
        }
        Ok(node)
    }

    /// Writes of a rewriter's words are those of the flow's entry.
    fn in_entry(&mut self, id: Id, number: u8) -> Result<Id, Full> {
        self.leaves(id, &mut |action| {
            for write in action.writes.values_mut() {
                if let Value::Field(Var::Entry(own, word), 0) = write.value
                    && own == number
                {
                    write.value = Value::Field(Var::Entry(FLOW, word), 0);
                    write.again = true;
                }
            }
        })
    }

    /// One more rewriter was passed.
    fn passed(&mut self, id: Id) -> Result<Id, Full> {
        let early = self.early;
        self.leaves(id, &mut |action| {
            if !(early && matches!(action.verdict, Verdict::Drop(_))) {
                action.hops += 1;
            }
        })
    }

    fn leaves(
        &mut self,
        id: Id,
        change: &mut dyn FnMut(&mut crate::action::Action),
    ) -> Result<Id, Full> {
        let actions = &mut *self.actions;
        self.store.rebuild(
            id,
            &mut HashMap::new(),
            &mut |store, number| {
                let Some(mut action) = actions.get(number).cloned() else {
                    return Ok(store.leaf(number));
                };
                if matches!(action.verdict, Verdict::State(_)) {
                    return Ok(store.leaf(number));
                }
                change(&mut action);
                let number = actions.number(action);
                Ok(store.leaf(number))
            },
            &mut |store, var, kids| store.select(var, kids),
        )
    }

    /// A diagram in which a variable is a number, another one, or one of a range.
    fn resolve(&mut self, id: Id, var: Var, becomes: Becomes, header: u16) -> Result<Id, Full> {
        let new = match becomes {
            Becomes::Constant(number) => Value::Constant(number),
            Becomes::Word(word) => Value::Field(word_of(header, word), 0),
            Becomes::Range(low, count) => {
                return self.store.known(id, var, low, low + count - 1);
            }
        };
        self.renamed(id, &[(var, new)])
    }

    /// A diagram in which variables are other values, all at once; in askings, too.
    fn renamed(&mut self, id: Id, new: &[(Var, Value)]) -> Result<Id, Full> {
        let mut states: HashMap<u32, u32> = HashMap::new();
        for number in asked(self.store, self.actions, id) {
            let Some(mut state) = self.actions.asked(number).cloned() else {
                continue;
            };
            for (_, then) in &mut state.then {
                *then = self.renamed(*then, new)?;
            }
            for value in &mut state.key {
                if let Value::Field(read, _) = *value
                    && let Some((_, to)) = new.iter().find(|n| n.0 == read)
                {
                    *value = *to;
                }
            }
            states.insert(number, self.actions.state(state));
        }
        let actions = &mut *self.actions;
        self.store.rebuild(
            id,
            &mut HashMap::new(),
            &mut |store, number| {
                let Some(mut action) = actions.get(number).cloned() else {
                    return Ok(store.leaf(number));
                };
                if let Verdict::State(asked) = action.verdict
                    && let Some(to) = states.get(&asked)
                {
                    action.verdict = Verdict::State(*to);
                }
                let number = actions.number(action);
                Ok(store.leaf(number))
            },
            &mut |store, var, kids| match new.iter().find(|n| n.0 == var) {
                Some((_, Value::Constant(number))) => {
                    let n = kids.partition_point(|k| k.0 <= *number);
                    let kid = kids.get(n.saturating_sub(1)).map(|k| k.1);
                    Ok(kid.unwrap_or(id))
                }
                Some((_, Value::Field(from, _))) => store.select(*from, kids),
                None => store.select(var, kids),
            },
        )
    }

    fn replace(&mut self, id: Id, replaced: &HashMap<u32, Id>) -> Result<Id, Full> {
        let actions = &*self.actions;
        self.store.rebuild(
            id,
            &mut HashMap::new(),
            &mut |store, number| {
                let state = actions.get(number).and_then(|a| match a.verdict {
                    Verdict::State(asked) => replaced.get(&asked).copied(),
                    _ => None,
                });
                Ok(state.unwrap_or_else(|| store.leaf(number)))
            },
            &mut |store, var, kids| store.select(var, kids),
        )
    }

    /// The way of each program of a variant, and what its answers do.
    fn ways(
        &mut self,
        root: Id,
        all: &[Vec<Hop>],
        flows: &Flows,
        first: &Stateful,
    ) -> Result<BTreeMap<Id, Way>, Stop> {
        let mut ways = BTreeMap::new();
        for id in self.store.reachable(root) {
            if let Node::Branch {
                var: Var::Entry(hop, _),
                ..
            } = self.store.node(id)
            {
                let element = self.rewriters.get(usize::from(*hop)).copied();
                let why = "what follows depends on which port or address of its range a flow gets";
                return Err(Stop::Refused(element.unwrap_or(0), why.into()));
            }
        }
        for program in self.programs(root) {
            let hops = self.store.reachable(program).into_iter();
            let hops = hops.filter_map(|id| match self.store.node(id) {
                Node::Leaf(number) => self.actions.get(*number).map(|a| usize::from(a.hops)),
                Node::Branch { .. } => None,
            });
            let most = hops.max().unwrap_or(0);
            if most == 0 {
                continue;
            }
            let early =
                self.store
                    .reachable(program)
                    .into_iter()
                    .any(|id| match self.store.node(id) {
                        Node::Leaf(number) => self.actions.get(*number).is_some_and(|a| {
                            usize::from(a.hops) < most && matches!(a.verdict, Verdict::Leave { .. })
                        }),
                        Node::Branch { .. } => false,
                    });
            if early {
                let why = "packets of a flow take it or not by what differs between them";
                return Err(Stop::Refused(first.at.element, why.into()));
            }
            // Ways of the same length may differ in their rewriters: those that lead to this program are known by it.
            let mut found: Vec<&Vec<Hop>> = all.iter().filter(|w| w.len() == most).collect();
            found.dedup();
            let [hops] = found.as_slice() else {
                let why = "flows take different rewriters behind it, by tests that are merged";
                return Err(Stop::Refused(first.at.element, why.into()));
            };
            let hops = (*hops).clone();
            let back = self.back(&hops, flows, first)?;
            ways.insert(program, Way { hops, back });
        }
        Ok(ways)
    }

    /// What answers to a flow do, by the flow's words.
    fn back(&mut self, hops: &[Hop], flows: &Flows, first: &Stateful) -> Result<Option<Id>, Stop> {
        let Some(last) = hops.last() else {
            return Ok(None);
        };
        let mut borders = flows
            .answers
            .iter()
            .filter(|(_, a)| a.rewriter == last.rewriter && a.protocol == first.upper);
        let Some((border, answers)) = borders.next().map(|(id, a)| (*id, a.header)) else {
            return Ok(None);
        };
        if borders.next().is_some() {
            let why = "answers come to it by several ports, or in several shapes";
            return Err(Stop::Refused(last.rewriter, why.into()));
        }
        let mut node = border;
        for (n, hop) in hops.iter().enumerate().rev() {
            node = self.answered(node, hop, n, hops, answers)?;
        }
        // Askings of others are answered by nobody.
        let rest = asked(self.store, self.actions, node);
        let drop = self.actions.plain(Verdict::Drop(usize::MAX));
        let drop = self.store.leaf(drop);
        let rest: HashMap<u32, Id> = rest.into_iter().map(|n| (n, drop)).collect();
        node = self.replace(node, &rest)?;
        // The answer's own words are the last ones, reversed.
        let [source, destination, sport, dport] = last.words;
        let mut new: Vec<(Var, Value)> = WORDS
            .into_iter()
            .map(|word| {
                let own = Value::Field(word_of(first.header, word), 0);
                (Var::Entry(FLOW, word), own)
            })
            .collect();
        for (word, becomes) in WORDS.into_iter().zip([destination, source, dport, sport]) {
            let var = word_of(answers, word);
            match becomes {
                Becomes::Constant(number) => new.push((var, Value::Constant(number))),
                Becomes::Word(word) => {
                    new.push((var, Value::Field(word_of(first.header, word), 0)));
                }
                Becomes::Range(low, count) => {
                    node = self.store.known(node, var, low, low + count - 1)?;
                    if self
                        .store
                        .reachable(node)
                        .iter()
                        .any(|id| self.store.top(*id) == Some(var))
                    {
                        let why = "what answers do depends on which port or address of its range a flow gets";
                        return Err(Stop::Refused(last.rewriter, why.into()));
                    }
                }
            }
        }
        Ok(Some(self.renamed(node, &new)?))
    }

    /// Replaces the asking of a hop in a diagram of answers by what follows for a flow that is known.
    fn answered(
        &mut self,
        node: Id,
        hop: &Hop,
        n: usize,
        hops: &[Hop],
        header: u16,
    ) -> Result<Id, Stop> {
        let mut replaced = HashMap::new();
        let came = match n.checked_sub(1).and_then(|b| hops.get(b)) {
            Some(before) => before.words,
            None => WORDS.map(Becomes::Word),
        };
        let [source, destination, sport, dport] = came;
        for number in asked(self.store, self.actions, node) {
            let Some(state) = self.actions.asked(number).cloned() else {
                continue;
            };
            if state.at.element != hop.rewriter {
                continue;
            }
            let then = state.then.iter().find(|t| t.0 == hop.back).map(|t| t.1);
            let Some(then) = then else {
                continue;
            };
            let mut inner = self.in_entry(then, hop.number)?;
            for (word, becomes) in WORDS.into_iter().zip([destination, source, dport, sport]) {
                let var = Var::Entry(hop.number, word);
                // Words of the flow are not those of the answer: they have names of their own until the end.
                inner = match becomes {
                    Becomes::Word(word) => {
                        self.renamed(inner, &[(var, Value::Field(Var::Entry(FLOW, word), 0))])?
                    }
                    other => self.resolve(inner, var, other, header)?,
                };
            }
            // The rewriters behind this one were passed before.
            for _ in n..hops.len() {
                inner = self.passed(inner)?;
            }
            replaced.insert(number, inner);
        }
        Ok(self.replace(node, &replaced)?)
    }
}

enum Undone {
    /// a mapper's pattern has to be drawn: the rewriter, and of how many
    Draw(usize, usize),
    Stop(Stop),
}

fn refused(element: usize, why: &str) -> Undone {
    Undone::Stop(Stop::Refused(element, why.into()))
}

fn range(given: Option<(u64, u64)>, came: Becomes) -> Becomes {
    match given {
        None => came,
        Some((low, 1)) => Becomes::Constant(low),
        Some((low, count)) => Becomes::Range(low, count),
    }
}

/// Diagrams behind the last test of a flow's words.
#[must_use]
pub fn programs(store: &Store, root: Id) -> Vec<Id> {
    store.below(root, Var::of_flow)
}
