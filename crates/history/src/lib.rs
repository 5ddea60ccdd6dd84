//! What of a packet reaches replicated state: the row that stands for it on every other core.
//!
//! State-compute replication (Xu et al., "State-Compute Replication: Parallelizing High-Speed Stateful Packet Processing",
//! appendix C) gives each core a copy of the state and tells it, of the packets of other cores, only what the state depends
//! on. [`History::of`] finds that for any admitted program:
//!
//! - steps that change replicated state are the roots of a backward slice ([`needs`](mod@needs)) over values ([`values`]) and control;
//! - a *site* is the first step of a path that touches state. What comes before it depends on the packet, the time and
//!   settings alone, so that a sequencer can run it without any state: `extract`. A path that comes to no site leaves
//!   state as it is, and gets no row;
//! - what the slice still needs at the site is cut with least bits ([`cut`]): joins of constants are one selector, what
//!   can be computed from other fields or from settings takes none;
//! - what the slice reads of the packet behind the site is read before it, wherever its address is known there;
//! - `replay` is the slice from the site on, over a row.
//!
//! A program of which this is not possible is refused, with the author's line and the reason.

pub mod circuit;
pub mod cut;
pub mod effects;
pub mod expr;
pub mod graph;
pub mod needs;
pub mod places;
mod row;
pub mod text;
pub mod values;

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::Checked;
use millrace_check::facts::{Flow, Op, StepId};
use millrace_object::Program;
use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::{Line, ObjectId, Role};
use serde::Serialize;

use effects::{Effect, effect};
use expr::Expr;
use graph::Graph;
use needs::{Question, jumps, needs};
use places::{Place, Places};
pub use row::Set;
use row::{Row, is_leaf};
use values::{Maker, Origin, Values};

/// Bits of the time in a row; the rest is the carrier's, so that rows must be younger than 2^39 ns against it.
pub const TIME_BITS: u32 = 40;
/// Bits of the packet's number in a row, for random draws.
pub const NUMBER_BITS: u32 = 40;
/// Most bytes of a row.
pub const MOST_BYTES: u32 = 64;

/// What of a program's packets reaches replicated state.
#[derive(Clone, Debug, Serialize)]
pub struct History {
    /// bits of the longest row
    pub bits: u32,
    /// bytes of every row
    pub bytes: u32,
    /// bits of it that are the packet's time, 0 or [`TIME_BITS`]
    pub time_bits: u32,
    /// bits of it that are the packet's number, 0 or [`NUMBER_BITS`]
    pub number_bits: u32,
    /// all fields, site by site
    pub fields: Vec<Field>,
    /// why it cannot be replicated; where there is one, `fields` and sizes are those of the rest
    pub refusals: Vec<Refusal>,
    /// by entry of the program; none for those that take no packets
    #[serde(skip)]
    pub flows: Vec<Option<Part>>,
}

/// A field of a row.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// what it is
    pub name: String,
    /// how many bits
    pub bits: u32,
    /// the first bit, from the row's start
    pub at: u32,
    /// the author's line that it is for
    pub line: Option<Line>,
    /// number of the site, from 0
    pub site: usize,
    /// the function
    pub function: String,
    /// the bits of the number that are kept
    #[serde(skip)]
    pub mask: u64,
    /// what it is filled from
    #[serde(skip)]
    pub from: Expr,
}

/// Why a program cannot be replicated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Refusal {
    /// the object that it is about, where it is about one
    pub object: Option<String>,
    /// the author's line
    pub line: Option<Line>,
    /// what stands against it
    pub reason: String,
}

/// The parts of one packet program.
#[derive(Clone, Debug)]
pub struct Part {
    /// where state is first touched
    pub sites: Vec<Site>,
    /// steps that fill a row
    pub extract: Steps,
    /// steps behind the sites that state depends on
    pub replay: Steps,
    /// `extract` writes the packet, so that it needs a copy of it
    pub scratch: bool,
    /// steps whose results are kept for a row
    pub kept: Vec<StepId>,
}

/// A part of a flow.
#[derive(Clone, Debug)]
pub struct Steps {
    /// the steps that run
    pub runs: Vec<bool>,
    /// branches that do not matter, and where control goes on behind them; none: the part ends
    pub jumps: BTreeMap<StepId, Option<StepId>>,
}

/// A step that is the first to touch state on some paths.
#[derive(Clone, Debug)]
pub struct Site {
    /// the step
    pub step: StepId,
    /// its fields, in the row's order
    pub fields: Vec<Field>,
    /// what is set there from a row
    pub sets: Vec<(Set, Expr)>,
    /// steps behind it whose results are fields
    pub late: BTreeMap<StepId, Expr>,
    /// steps that may come from there on
    pub behind: Vec<bool>,
}

impl History {
    /// The history of a program, all of whose state is replicated.
    #[must_use]
    pub fn of(program: &Program, checked: &Checked) -> Self {
        Self::beside(program, checked, &BTreeSet::new())
    }

    /// The history of a program of whose objects each core has a part of these, and all others are replicated. What is replicated
    /// must not depend on what a core finds in its parts.
    #[must_use]
    pub fn beside(program: &Program, checked: &Checked, parted: &BTreeSet<ObjectId>) -> Self {
        let mut history = History {
            bits: 0,
            bytes: 0,
            time_bits: 0,
            number_bits: 0,
            fields: Vec::new(),
            refusals: Vec::new(),
            flows: Vec::new(),
        };
        let mut uses = Uses::default();
        for (entry, flow) in program.entries.iter().zip(&checked.flows) {
            let takes = matches!(entry.role, Role::Xdp | Role::OnPacket);
            let part = takes.then(|| {
                let made = Flowing::new((program, parted), flow, &mut uses).part();
                made.unwrap_or_else(|refusals| {
                    history.refusals.extend(refusals);
                    None
                })
            });
            history.flows.push(part.flatten());
        }
        // What a handler leaves must not differ between replicas.
        for running in checked.running(program) {
            if !matches!(running.role, Role::Xdp | Role::OnPacket) {
                let refusals = Flowing::new((program, parted), running.flow, &mut uses).alike();
                history.refusals.extend(refusals);
            }
        }
        history.refusals.dedup();
        history.lay_out(program, &uses);
        history
    }

    /// Whether packets of this program touch state that is replicated.
    #[must_use]
    pub fn touches(&self) -> bool {
        self.flows.iter().flatten().any(|p| !p.sites.is_empty())
    }

    fn lay_out(&mut self, program: &Program, uses: &Uses) {
        self.time_bits = if uses.time { TIME_BITS } else { 0 };
        self.number_bits = if uses.random { NUMBER_BITS } else { 0 };
        let sites: usize = self.flows.iter().flatten().map(|p| p.sites.len()).sum();
        // Which program and which site of it.
        let selector = self.selector_bits();
        let head = self.time_bits + self.number_bits + selector;
        let mut longest = head;
        for (entry, part) in self.flows.iter_mut().enumerate() {
            let Some(part) = part else { continue };
            for (number, site) in part.sites.iter_mut().enumerate() {
                let mut at = head;
                for field in &mut site.fields {
                    field.at = at;
                    field.site = number;
                    at += field.bits;
                }
                longest = longest.max(at);
                if at.div_ceil(8) > MOST_BYTES {
                    let flow = program.entries.get(entry).map(|e| e.function);
                    let name = flow.and_then(|f| program.functions.get(f.0));
                    self.refusals.push(Refusal {
                        object: None,
                        line: site.fields.last().and_then(|f| f.line.clone()),
                        reason: format!(
                            "a row of {} needs {} bytes of a packet, more than {MOST_BYTES}",
                            name.map_or("?", |f| f.name.as_str()),
                            at.div_ceil(8)
                        ),
                    });
                }
                self.fields.extend(site.fields.iter().cloned());
            }
        }
        if sites > 0 {
            self.bits = longest;
            // A row that says nothing but that a packet came is one byte.
            self.bytes = longest.div_ceil(8).max(1);
        }
    }

    /// Bits that say which site of which program a row is of.
    #[must_use]
    pub fn selector_bits(&self) -> u32 {
        let sites: usize = self.flows.iter().flatten().map(|p| p.sites.len()).sum();
        usize::BITS - sites.saturating_sub(1).leading_zeros()
    }
}

/// What rows carry besides fields.
#[derive(Default)]
struct Uses {
    time: bool,
    random: bool,
}

struct Flowing<'a, 'u> {
    program: &'a Program,
    flow: &'a Flow,
    uses: &'u mut Uses,
    effects: Vec<Effect>,
    graph: Graph,
    places: Places,
}

impl<'a, 'u> Flowing<'a, 'u> {
    fn new(
        (program, parted): (&'a Program, &BTreeSet<ObjectId>),
        flow: &'a Flow,
        uses: &'u mut Uses,
    ) -> Self {
        let effects = (flow.steps.iter())
            .map(|s| effect(program, parted, s))
            .collect();
        Flowing {
            program,
            flow,
            uses,
            effects,
            graph: Graph::of(flow),
            places: Places::of(flow),
        }
    }

    fn refusal(&self, at: usize, object: Option<ObjectId>, reason: &str) -> Refusal {
        let name = object.and_then(|o| self.program.objects.get(o.0));
        let step = self.flow.steps.get(at);
        Refusal {
            object: name.map(|o| o.name.clone()),
            line: step.and_then(|s| s.line.clone()),
            reason: reason.into(),
        }
    }

    /// What runs without a packet runs on every replica as a whole: it must read nothing that differs between them.
    fn alike(&mut self) -> Vec<Refusal> {
        let maker = Maker {
            program: self.program,
            flow: self.flow,
            places: &self.places,
        };
        let Some(values) = Values::of(&maker, &self.graph) else {
            return vec![self.refusal(0, None, LARGE)];
        };
        let needed = needs(self.flow, &self.graph, &values, &self.effects, &|_| false).steps;
        if self.expires(&needed) {
            self.uses.time = true;
        }
        self.obstacles(&needed)
    }

    /// Refusals of steps that state depends on.
    fn obstacles(&self, needed: &[bool]) -> Vec<Refusal> {
        let mut all = Vec::new();
        for (at, &needed) in needed.iter().enumerate() {
            if self.graph.of[at].is_none() {
                continue;
            }
            match self.effects[at] {
                Effect::Never(object, why) => all.push(self.refusal(at, object, why)),
                Effect::Output(object, why) if needed => {
                    all.push(self.refusal(at, object, why));
                }
                _ => {}
            }
            if needed && self.helper(at).is_some_and(|h| h.effects.moves_packet) {
                all.push(self.refusal(at, None, MOVED));
            }
        }
        all.dedup();
        all
    }

    fn helper(&self, at: usize) -> Option<&'static helper::Helper> {
        match self.flow.steps.get(at)?.op {
            Op::Plain(Insn::Call { helper }) => helper::by_number(helper),
            _ => None,
        }
    }

    /// Whether a step that runs depends on the time beside what it computes with.
    fn expires(&self, runs: &[bool]) -> bool {
        (0..self.flow.steps.len()).filter(|&at| runs[at]).any(|at| {
            if let Effect::Reads(o) | Effect::Writes(o) = self.effects[at]
                && let Some(object) = self.program.objects.get(o.0)
            {
                return object.expire_after > 0 || object.window > 0 || object.timer.is_some();
            }
            false
        })
    }

    fn part(&mut self) -> Result<Option<Part>, Vec<Refusal>> {
        let maker = Maker {
            program: self.program,
            flow: self.flow,
            places: &self.places,
        };
        let Some(mut values) = Values::of(&maker, &self.graph) else {
            return Err(vec![self.refusal(0, None, LARGE)]);
        };
        let (flow, graph) = (self.flow, &self.graph);
        let all = needs(flow, graph, &values, &self.effects, &|_| false).steps;
        let obstacles = self.obstacles(&all);
        if !obstacles.is_empty() {
            return Err(obstacles);
        }
        let touches =
            |at: usize| all[at] && matches!(self.effects[at], Effect::Reads(_) | Effect::Writes(_));
        let before = Graph::reach(flow, &[0], &touches);
        let sites: Vec<usize> = (0..flow.steps.len())
            .filter(|&at| before[at] && touches(at) && graph.of[at].is_some())
            .collect();
        let beyond = Graph::reach(flow, &sites, &|_| false);
        let leaf = |at: usize| beyond[at] && is_leaf(&maker, at);
        let needed = needs(flow, graph, &values, &self.effects, &leaf).steps;
        let roots = |at: usize| {
            needed[at]
                && (matches!(flow.steps[at].op, Op::Branch { .. })
                    || matches!(self.effects[at], Effect::Reads(_) | Effect::Writes(_)))
        };
        let question = Question {
            flow,
            graph,
            values: &values,
            places: &self.places,
            part: &|at| beyond[at],
            roots: &roots,
            leaf: &leaf,
            ends: &|_| None,
        };
        let mut live = question.solve();
        let at_site: Vec<Vec<Place>> = (sites.iter())
            .map(|&s| question.before(&mut live, s))
            .collect();
        let replay = Steps {
            jumps: jumps(flow, graph, &needed, &live.runs),
            runs: live.runs,
        };
        for at in (0..flow.steps.len()).filter(|&at| beyond[at] && replay.runs[at]) {
            let Some(helper) = self.helper(at) else {
                let clock = values
                    .origins
                    .iter()
                    .position(|o| *o == Origin::Step(StepId(at)));
                self.uses.time |= clock.is_some_and(|v| maker.is_time(&values, v));
                continue;
            };
            self.uses.time |= helper.effects.time && !helper.takes_object();
            self.uses.random |= helper.effects.random;
        }
        if self.expires(&replay.runs) {
            self.uses.time = true;
        }
        let (mut made, mut refusals, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut ends: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
        for (&site, live) in sites.iter().zip(&at_site) {
            let behind = Graph::reach(flow, &[site], &|_| false);
            let leaves: Vec<usize> = (0..flow.steps.len())
                .filter(|&at| behind[at] && leaf(at) && replay.runs[at])
                .collect();
            let mut row = Row::new((&maker, graph), &mut values, &self.effects, site, &behind);
            let row_made = match row.make(live, &leaves) {
                Ok(made) => made,
                Err((step, why)) => {
                    let object = match self.effects[site] {
                        Effect::Reads(o) | Effect::Writes(o) => Some(o),
                        _ => None,
                    };
                    refusals.push(self.refusal(step.0, object, why));
                    continue;
                }
            };
            self.uses.time |= row.time;
            let mut fields: Vec<row::Draft> = row_made.fields;
            let mut order: Vec<usize> = (0..fields.len()).collect();
            // Keys first, then whole bytes, then the rest.
            order.sort_by_key(|&f| {
                let bits = fields[f].mask.count_ones();
                (
                    fields[f].key.is_none(),
                    fields[f].key,
                    !bits.is_multiple_of(8),
                    std::cmp::Reverse(bits),
                    f,
                )
            });
            let place: Vec<usize> = {
                let mut place = vec![0; order.len()];
                order
                    .iter()
                    .enumerate()
                    .for_each(|(to, &from)| place[from] = to);
                place
            };
            let mut read = Vec::new();
            for field in &fields {
                field.from.walk(&mut |e| match *e {
                    Expr::Register(frame, reg) | Expr::Pointer(frame, reg) => {
                        read.push(self.places.register(frame, reg));
                    }
                    Expr::Stack(frame, at) => read.extend(self.places.stack(frame, at, at + 1)),
                    Expr::Kept(id) => kept.push(id),
                    Expr::Packet(..) => read.push(self.places.packet()),
                    _ => {}
                });
            }
            ends.insert(site, read);
            let function = |at: StepId| {
                let step = flow.steps.get(at.0);
                let frame = step.and_then(|s| flow.frames.get(s.frame.0));
                let function = frame.and_then(|f| self.program.functions.get(f.function.0));
                function.map_or_else(String::new, |f| f.name.clone())
            };
            let mut out = Vec::new();
            for &f in &order {
                let draft = &mut fields[f];
                out.push(Field {
                    name: std::mem::take(&mut draft.name),
                    bits: draft.mask.count_ones(),
                    at: 0,
                    line: flow.steps.get(draft.step.0).and_then(|s| s.line.clone()),
                    site: 0,
                    function: function(draft.step),
                    mask: draft.mask,
                    from: draft.from.clone(),
                });
            }
            let renumber = |e: Expr| renumbered(e, &place);
            made.push(Site {
                step: StepId(site),
                fields: out,
                sets: row_made
                    .sets
                    .into_iter()
                    .map(|(s, e)| (s, renumber(e)))
                    .collect(),
                late: row_made
                    .late
                    .into_iter()
                    .map(|(s, e)| (s, renumber(e)))
                    .collect(),
                behind,
            });
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        kept.sort_unstable();
        kept.dedup();
        let wanted = |at: usize| {
            all[at] && matches!(flow.steps[at].op, Op::Branch { .. })
                || kept.binary_search(&StepId(at)).is_ok()
        };
        let ahead = Graph::reach(flow, &[0], &|at| ends.contains_key(&at));
        let question = Question {
            flow,
            graph,
            values: &values,
            places: &self.places,
            part: &|at| ahead[at] && !ends.contains_key(&at),
            roots: &wanted,
            leaf: &|_| false,
            ends: &|at| ends.get(&at).cloned(),
        };
        let live = question.solve();
        let scratch = (0..flow.steps.len()).any(|at| {
            let writes = values.written(at).1.contains(&self.places.packet());
            ahead[at] && live.runs[at] && writes
        });
        for at in (0..flow.steps.len()).filter(|&at| ahead[at] && live.runs[at]) {
            if self.helper(at).is_some_and(|h| h.effects.random) {
                refusals.push(self.refusal(at, None, DRAW));
            }
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        Ok(Some(Part {
            sites: made,
            extract: Steps {
                jumps: jumps(flow, graph, &all, &live.runs),
                runs: live.runs,
            },
            replay,
            scratch,
            kept,
        }))
    }
}

const LARGE: &str = "the program is too large to be cut into rows";
const MOVED: &str =
    "the packet's borders are moved before state has read what it needs of it; read it before";
const DRAW: &str = "a random number is drawn before the first access to state; draw it behind";

fn renumbered(e: Expr, place: &[usize]) -> Expr {
    let go = |e: Box<Expr>| Box::new(renumbered(*e, place));
    match e {
        Expr::Field(f) => Expr::Field(place.get(f).copied().unwrap_or(f)),
        Expr::Packet(e, s, g) => Expr::Packet(go(e), s, g),
        Expr::Constant(e, s, g) => Expr::Constant(go(e), s, g),
        Expr::Byte(e, at) => Expr::Byte(go(e), at),
        Expr::Bytes(all) => Expr::Bytes(all.into_iter().map(|e| renumbered(e, place)).collect()),
        Expr::Alu(o, w, a, b) => Expr::Alu(o, w, go(a), go(b)),
        Expr::Neg(w, e) => Expr::Neg(w, go(e)),
        Expr::Extend(w, s, e) => Expr::Extend(w, s, go(e)),
        Expr::Order(o, n, e) => Expr::Order(o, n, go(e)),
        Expr::Compare(c, w, a, b) => Expr::Compare(c, w, go(a), go(b)),
        Expr::Select(a, b, c) => Expr::Select(go(a), go(b), go(c)),
        Expr::Index(e, l) => Expr::Index(go(e), l),
        Expr::Pick(e, l) => Expr::Pick(go(e), l),
        other => other,
    }
}
