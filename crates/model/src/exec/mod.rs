//! Symbolic execution of one entry, to the last path or to the end of a budget.
//!
//! The work list is kept by basic block and taken in an order in which all ways that meet at a join have
//! arrived before it is left, so that `merge` sees them together. Each path carries an assignment under
//! which its guard holds: at a branch it says for nothing which way is possible, and only the other way
//! is asked for.

pub mod along;
mod answer;
mod array;
mod below;
mod call;
mod calls;
mod checkpoint;
mod cut;
mod entries;
mod explore;
mod limits;
mod memory;
mod merge;
mod offset;
mod order;
mod pick;
mod quiet;
mod state;
mod step;
mod tell;
mod turns;
mod wide;

use millrace_check::moment::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_check::budget::Watch;
use millrace_check::facts::{Flow, FrameId};
use millrace_check::flow::backward::{AtStart, Backward};
use millrace_check::flow::graph::Blocks;
use millrace_check::flow::loops::Loops;
use millrace_check::flow::points::points;
use millrace_object::insn::REGISTERS;
use millrace_object::program::{Dialect, LINKED, ObjectId, Program, Role};

use crate::expr::eval::Assignment;
use crate::expr::{Arena, ExprId, Node, Origin, Rel, SymId};
use crate::model::{Outcome, Path, Verdict};
use crate::solver::{Answer, Oracle, conjuncts};
use crate::{Limits, facts};
use order::reach;

pub(crate) use memory::before;
pub use state::{Access, Borders, Place, Presence, Region, State, Target, Value, Written};
use turns::Changes;

/// Why a path cannot be followed.
#[derive(Clone, Debug)]
pub struct Gap(pub String);

/// One execution under way.
pub struct Engine<'a> {
    program: &'a Program,
    flow: &'a Flow,
    /// the expressions
    pub arena: Arena,
    /// who says what is possible
    pub oracle: Oracle,
    limits: &'a Limits,
    until: Moment,
    hurry: Moment,
    blocks: Blocks,
    live: AtStart,
    reach: Vec<Vec<u64>>,
    /// objects that the entry may change
    changed: BTreeSet<ObjectId>,
    /// paths that ended where another program goes on
    left: Vec<Path>,
    steps: u64,
    loops: Loops,
    /// of each loop what says whether it is taken for any number of turns
    turning: Vec<wide::Turning>,
    /// heads of the loops that are taken for any number of turns
    summed: BTreeMap<usize, Changes>,
    /// how many states came to the head of a loop from outside it
    entered: BTreeMap<usize, usize>,
    /// how many states have left a loop turn by turn, by its head
    gone: BTreeMap<usize, usize>,
    /// how many states had come to the head of a loop from outside it, and how many turns were followed since
    rounds: BTreeMap<usize, (usize, usize)>,
    /// heads of loops of which one turn has been followed to see how many ways go on
    looked_at: BTreeSet<usize>,
    /// the head of a loop whose turns each multiply the ways through it
    widens: Option<usize>,
    /// paths that wrote different numbers do not merge
    strict: bool,
    /// so many states wait that a computed offset, and a field at one, keeps none of them apart
    crowded: bool,
    /// whether that has come about; none: it no longer counts
    crowds: Option<bool>,
    /// this many states at most leave a join; where more meet, paths are cut
    cutting: Option<usize>,
    /// how many cuts there are
    cuts: u32,
    /// at which blocks
    cut_at: BTreeMap<u32, usize>,
    /// what symbols are any of behind a cut
    stood: BTreeMap<SymId, (u32, Vec<ExprId>)>,
    /// numbers that are one of an array's elements: the offset that says which, and the elements
    selected: BTreeMap<ExprId, array::Selected>,
    /// those that are any of numbers which are not made of state
    of_packets: BTreeSet<SymId>,
    /// what is known of the joins at which they are cut
    joints: BTreeMap<usize, cut::Joints>,
    /// numbers that stay what they are behind a cut: by block, where they are
    exact: BTreeSet<(usize, String)>,
    /// one more was found, which a path could not be followed without
    refines: bool,
    /// over what is left of the object's budget
    watch: Watch,
    /// the execution that is followed, if one is
    guide: Option<Box<along::Guide<'a>>>,
    /// what makes the entry run
    role: Role,
    /// the program is several that were linked
    linked: bool,
    /// what conditions say of numbers
    said: BTreeMap<ExprId, Rc<limits::Limits>>,
}

/// Result of an execution.
pub struct Executed {
    /// the paths
    pub paths: Vec<Path>,
    /// whether these are all
    pub outcome: Outcome,
    /// steps taken
    pub steps: u64,
    /// a budget was spent before all was followed
    pub spent: bool,
}

impl<'a> Engine<'a> {
    /// Before the first step.
    #[must_use]
    pub fn new(
        program: &'a Program,
        flow: &'a Flow,
        role: Role,
        limits: &'a Limits,
        until: Moment,
        oracle: Oracle,
    ) -> Self {
        let blocks = Blocks::of(flow);
        let (touches, _) = points(program, flow, &blocks);
        let live = Backward {
            flow,
            blocks: &blocks,
            touches: &touches,
            role,
        }
        .live();
        let reach = reach(&blocks);
        let loops = Loops::of(&blocks);
        let turning = loops.all.iter();
        let turning = turning.map(|l| wide::of_loop(flow, &blocks, &touches, l));
        let turning = turning.collect();
        let linked = program.functions.iter().any(|f| f.section == LINKED);
        Engine {
            program,
            flow,
            arena: Arena::telling_congruent_sums(linked),
            oracle,
            limits,
            until,
            hurry: until - until.since(Moment::now()) / 8,
            blocks,
            live,
            reach,
            changed: facts::changed(program, flow),
            left: Vec::new(),
            steps: 0,
            loops,
            turning,
            summed: BTreeMap::new(),
            entered: BTreeMap::new(),
            gone: BTreeMap::new(),
            rounds: BTreeMap::new(),
            looked_at: BTreeSet::new(),
            widens: None,
            strict: false,
            crowded: false,
            crowds: Some(false),
            cutting: None,
            cuts: 0,
            cut_at: BTreeMap::new(),
            stood: BTreeMap::new(),
            selected: BTreeMap::new(),
            of_packets: BTreeSet::new(),
            joints: BTreeMap::new(),
            exact: BTreeSet::new(),
            refines: false,
            watch: Watch::new(limits.budget.unwrap_or_default()),
            guide: None,
            role,
            linked,
            said: BTreeMap::new(),
        }
    }

    /// The same, with paths cut where more than this many meet.
    #[must_use]
    pub fn cut_at(mut self, most: usize) -> Self {
        self.cutting = Some(most);
        self
    }

    pub(crate) fn object_name(&self, id: ObjectId) -> String {
        let name = self.program.objects.get(id.0).map(|o| o.name.clone());
        name.unwrap_or_else(|| format!("object{}", id.0))
    }

    fn begin(&mut self) -> State {
        let zero = self.arena.number(0, 64);
        let mut regs = [Value::Unset; REGISTERS];
        regs[1] = Value::Ptr(Region::Context, zero);
        regs[10] = Value::Ptr(Region::Stack(FrameId(0)), zero);
        // What the host promises: a port that there is.
        let mut guard = Vec::new();
        if self.program.dialect == Dialect::Handlers && !self.program.ports.is_empty() {
            let n = self.program.ports.len() as u64;
            let port = self.arena.sym("port", 32, Origin::Port);
            let most = self.arena.number(n, 32);
            guard.push(self.arena.compare(Rel::Less, port, most));
            let ports = self.arena.sym("ports", 32, Origin::Port);
            guard.push(self.arena.compare(Rel::Eq, ports, most));
        }
        if self.program.dialect == Dialect::Xdp {
            // Interfaces are numbered from 1.
            let port = self.arena.sym("port", 32, Origin::Port);
            let zero = self.arena.number(0, 32);
            let none = self.arena.compare(Rel::Eq, port, zero);
            guard.push(self.arena.not(none));
        }
        let model = match self.oracle.holds(&self.arena, &guard) {
            Answer::Holds(m) => Some(Rc::new(self.as_declared(&m))),
            _ => None,
        };
        State {
            at: 0,
            frames: vec![(FrameId(0), regs)],
            stack: BTreeMap::new(),
            places: Vec::new(),
            globals: BTreeMap::new(),
            packet: Vec::new(),
            guard,
            model,
            undecided: false,
            accesses: Vec::new(),
            target: None,
            borders: Borders {
                // No packet has metadata before it when it comes in.
                meta: zero,
                start: zero,
                end: self.length(),
                changed: None,
            },
            loose: None,
            tail_calls: 0,
            steps: 0,
            draws: 0,
            turns: 0,
            segment: 0,
            turned: BTreeSet::new(),
            told: BTreeSet::new(),
            tells: 0,
            random: 0,
            drawn: Vec::new(),
        }
    }

    /// The same with the parameters as the program declares them: what is likely to be asked of them holds.
    fn as_declared(&mut self, from: &Assignment) -> Assignment {
        let mut symbols = from.symbols.clone();
        let program = self.program;
        for p in &program.params {
            let e = self.arena.sym(&p.name, 8 * p.bytes, Origin::Param);
            if let Node::Sym(s) = self.arena.node(e) {
                symbols.insert(*s, p.declared(program));
            }
        }
        Assignment::new(symbols, from.packet.clone())
    }

    /// Whether the time is over.
    fn late(&self) -> bool {
        Moment::now() > self.until
    }

    /// The budget that is spent, but for that of paths.
    fn spent(&mut self) -> Option<String> {
        let limits = self.limits;
        if let Some(spent) = self.watch.spent() {
            return Some(format!("model: {spent}; {}", spent.raise()));
        }
        if self.steps > limits.steps {
            Some(format!("more than {} steps", limits.steps))
        } else if self.arena.len() > limits.expressions {
            Some(format!("more than {} expressions", limits.expressions))
        } else if self.late() {
            Some(format!("more than {} ms", limits.time.as_millis()))
        } else {
            None
        }
    }

    /// Whether a condition can hold on a path; nobody is asked when the time is over.
    pub(crate) fn asked(&mut self, s: &State, condition: ExprId) -> Answer {
        if self.guide.is_some() {
            return self.was(s, condition);
        }
        if self.late() {
            return Answer::Unknown("the time is over".to_owned());
        }
        self.oracle
            .and(&self.arena, &s.guard, condition, s.model.as_ref())
    }

    pub(crate) fn path(&mut self, s: State, verdict: Value) -> Path {
        let verdict = match verdict {
            Value::Num(e) => Verdict::Number(self.arena.extract(e, 0, 32)),
            _ => Verdict::None,
        };
        Path {
            guard: s.guard,
            accesses: s.accesses,
            places: s.places,
            rewrites: s.packet,
            target: s.target,
            borders: s.borders,
            verdict,
            segment: s.segment,
            told: s.told.into_iter().collect(),
            tells: s.tells,
            random: s.random,
            drawn: s.drawn,
            undecided: s.undecided,
            loose: s.loose,
            witness: s.model,
        }
    }

    /// The two ways of a condition; none for one that is impossible.
    pub(crate) fn split(&mut self, s: State, condition: ExprId) -> (Option<State>, Option<State>) {
        if self.guide.is_some() {
            return self.decided(s, condition);
        }
        let negated = self.arena.not(condition);
        match self.arena.constant(condition) {
            Some(1) => return (Some(s), None),
            Some(_) => return (None, Some(s)),
            None if s.guard.contains(&condition) => return (Some(s), None),
            None if s.guard.contains(&negated) => return (None, Some(s)),
            None => {}
        }
        let now = s
            .model
            .as_ref()
            .map(|m| m.value(&self.arena, condition) == 1);
        let mut with = |e: ExprId, known: bool| -> Option<State> {
            let mut t = s.clone();
            t.guard.extend(conjuncts(&self.arena, &[e]));
            if known {
                return Some(t);
            }
            match self.asked(&s, e) {
                Answer::Holds(m) => {
                    t.model = Some(m);
                    Some(t)
                }
                Answer::Fails => None,
                Answer::Unknown(_) => {
                    t.model = None;
                    t.undecided = true;
                    Some(t)
                }
            }
        };
        let yes = with(condition, now == Some(true));
        let no = with(negated, now == Some(false));
        // If one way is impossible the other's guard says nothing new. In a linked program it says apart what alternatives of an
        // earlier function's paths say together, which is what questions and fields of headers are found by.
        match (yes, no) {
            (Some(t), None) if self.linked && now == Some(true) => (Some(t), None),
            (None, Some(t)) if self.linked && now == Some(false) => (None, Some(t)),
            (Some(_), None) if now == Some(true) => (Some(s), None),
            (None, Some(_)) if now == Some(false) => (None, Some(s)),
            both => both,
        }
    }

    /// A fresh symbol's name on this path.
    pub(crate) fn fresh(&self, s: &mut State, what: &str) -> String {
        s.draws += 1;
        format!("{what}#{}", s.draws)
    }

    /// The assignment that a path ends with, for those who would run it.
    #[must_use]
    pub fn witness(path: &Path) -> Option<Rc<Assignment>> {
        path.witness.clone()
    }
}
