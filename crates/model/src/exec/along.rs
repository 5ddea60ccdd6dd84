//! Symbolic execution along one execution on numbers: each branch goes as it went, each call answers as it answered, and
//! what is said of it (conditions, keys, values, writes) is said as expressions over the packet and the state before.
//!
//! Nobody is asked whether a way is possible, nothing merges, and a loop is followed iteration by iteration, so that the
//! effort is that of the execution. A number that decides where memory lies is taken for what it was (concolic execution:
//! Godefroid, Klarlund and Sen: DART, PLDI 2005, section 2.3). Symbols are bound to numbers as they come up; each branch
//! is evaluated under them, and one that the numbers would have taken otherwise says so ([`Decision::agrees`]).

use millrace_check::moment::Moment;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use millrace_check::facts::{Flow, Op, StepId};
use millrace_object::insn::Insn;
use millrace_object::program::{Dialect, ObjectId, Program, Role};

use super::state::{State, Value};
use super::step::Next;
use super::{Engine, Gap};
use crate::expr::eval::Assignment;
use crate::expr::ids::IdMap;
use crate::expr::{ExprId, Origin, SymId};
use crate::model::{Entry, Outcome, Path, Took, Verdict};
use crate::solver::{self, Answer, Oracle, conjuncts};
use crate::{LONGEST, Limits};

/// A function and an instruction in it, as the program numbers them.
pub type Place = (usize, usize);

/// The value under a key of an object.
pub type Lookup<'h> = dyn Fn(ObjectId, &[u8]) -> Option<Vec<u8>> + 'h;

/// A conditional branch of the execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch {
    /// where
    pub insn: Place,
    /// whether its condition held
    pub taken: bool,
}

/// A helper call of the execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// where
    pub insn: Place,
    /// the helper's name
    pub helper: &'static str,
    /// whether there was an entry of the key
    pub there: bool,
    /// its answer
    pub result: u64,
}

/// An execution on numbers.
pub struct Happened<'h> {
    /// the packet as it came in
    pub frame: &'h [u8],
    /// its ingress port
    pub port: u32,
    /// how many ports there are
    pub ports: u32,
    /// its time, ns
    pub time: u64,
    /// bytes that it may grow by in front and at its end
    pub room: (u64, u64),
    /// its branches, in order
    pub branches: &'h [Branch],
    /// its helper calls, in order
    pub calls: &'h [Call],
    /// the value under a key before it; of a global under no key
    pub before: &'h Lookup<'h>,
}

/// A branch in words of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// which of the execution's branches
    pub branch: usize,
    /// the condition that held; none where nothing symbolic decided
    pub condition: Option<ExprId>,
    /// how many conditions of the path stand before it
    pub before: usize,
    /// the condition is what the numbers say
    pub agrees: bool,
}

/// What an execution did, in expressions.
pub struct Along {
    /// an entry whose only path is that of the execution, as far as it could be followed
    pub entry: Entry,
    /// its branches in order
    pub decisions: Vec<Decision>,
    /// the instruction of each access of the path
    pub accesses: Vec<Place>,
    /// numbers of the symbols
    pub under: Assignment,
    /// symbols whose number nobody knows
    pub unsure: HashSet<SymId>,
    /// why it was not followed to its end
    pub ended: Option<String>,
}

/// Where an execution is.
pub(super) struct Guide<'h> {
    happened: &'h Happened<'h>,
    branches: VecDeque<(usize, Branch)>,
    calls: VecDeque<Call>,
    /// the call of this step
    call: Option<Call>,
    under: Assignment,
    bound: usize,
    unsure: HashSet<SymId>,
    /// conditions of the path
    holds: HashSet<ExprId>,
    decisions: Vec<Decision>,
    accesses: Vec<Place>,
}

/// Follows an execution of an entry.
#[must_use]
pub fn along(
    program: &Program,
    flow: &Flow,
    role: Role,
    limits: &Limits,
    happened: &Happened<'_>,
) -> Along {
    let mut most = limits.steps;
    let mut why: Option<String> = None;
    loop {
        let until = Moment::now() + limits.time.min(LONGEST);
        let oracle = Oracle::new(solver::of(limits), until);
        let engine = Engine::new(program, flow, role, limits, until, oracle);
        match engine.follow(happened, most) {
            Ok(mut along) => {
                // The first time it came further, and said why it ended.
                if let Some(why) = why {
                    along.ended = Some(why);
                }
                return along;
            }
            // Once more, to the step before the one that has no meaning.
            Err((at, Gap(what))) => {
                most = at.min(most.saturating_sub(1));
                why.get_or_insert(what);
            }
        }
    }
}

impl<'a> Engine<'a> {
    fn follow(mut self, happened: &'a Happened<'a>, most: u64) -> Result<Along, (u64, Gap)> {
        let role = self.role;
        let mut s = self.begin();
        self.guide = Some(Box::new(Guide {
            happened,
            branches: happened.branches.iter().copied().enumerate().collect(),
            calls: happened.calls.iter().cloned().collect(),
            call: None,
            under: Assignment::new(
                IdMap::default(),
                (0..)
                    .zip(happened.frame.iter().copied())
                    .collect::<BTreeMap<u64, u8>>(),
            ),
            bound: 0,
            unsure: HashSet::new(),
            holds: s.guard.iter().copied().collect(),
            decisions: Vec::new(),
            accesses: Vec::new(),
        }));
        let mut steps = 0;
        let mut ended = None;
        let path = loop {
            if steps >= most || self.spent().is_some() {
                ended = Some(
                    self.spent()
                        .unwrap_or_else(|| format!("more than {most} steps")),
                );
                break self.path(s, Value::Unset);
            }
            let at = s.at;
            let insn = self.place_of(at);
            if let Some(guide) = &mut self.guide {
                guide.call = None;
                let calls = matches!(
                    self.flow.steps.get(at).map(|s| s.op),
                    Some(Op::Plain(Insn::Call { .. }))
                );
                if calls && insn.is_some() && guide.calls.front().map(|c| c.insn) == insn {
                    guide.call = guide.calls.pop_front();
                }
            }
            let accesses = s.accesses.len();
            match self.step(s) {
                Ok(Next::On(mut next)) => match (next.pop(), next.is_empty()) {
                    (Some(one), true) => s = one,
                    // A tail call: another program goes on, and is not followed.
                    (None, _) => match self.left.pop() {
                        Some(path) => {
                            ended = Some("another program goes on".to_owned());
                            break path;
                        }
                        None => return Err((steps, Gap("no packet does this".to_owned()))),
                    },
                    (Some(_), false) => {
                        return Err((steps, Gap("what a call did is not known".to_owned())));
                    }
                },
                Ok(Next::End(s, verdict)) => {
                    self.bind(&s);
                    break self.path(*s, verdict);
                }
                Err(gap) => return Err((steps, self.placed(at, gap))),
            }
            self.bind(&s);
            let place = insn.unwrap_or((usize::MAX, 0));
            if let Some(guide) = &mut self.guide {
                guide
                    .accesses
                    .extend((accesses..s.accesses.len()).map(|_| place));
            }
            steps += 1;
        };
        self.steps = steps;
        Ok(self.told(path, role, ended))
    }

    fn placed(&self, at: usize, Gap(what): Gap) -> Gap {
        let line = self.flow.steps.get(at).and_then(|s| s.line.as_ref());
        Gap(match line {
            Some(line) => format!("{what}, at {}", line.place()),
            None => what,
        })
    }

    fn told(mut self, mut path: Path, role: Role, ended: Option<String>) -> Along {
        let guide = self.guide.take();
        let (decisions, mut accesses, under, unsure) = match guide {
            Some(g) => (g.decisions, g.accesses, g.under, g.unsure),
            None => Default::default(),
        };
        accesses.resize(path.accesses.len(), (usize::MAX, 0));
        if ended.is_some() && !matches!(path.verdict, Verdict::GoesOn(..)) {
            path.verdict = Verdict::None;
        }
        let flow = self.flow;
        let function = flow.frames.first().map(|f| f.function.0);
        let function = function.and_then(|f| self.program.functions.get(f));
        Along {
            entry: Entry {
                function: function.map_or(String::new(), |f| f.name.clone()),
                role,
                paths: vec![path],
                outcome: match &ended {
                    Some(why) => Outcome::Bounded { why: why.clone() },
                    None => Outcome::Exhaustive,
                },
                at_most: Vec::new(),
                took: Took {
                    steps: self.steps,
                    expressions: self.arena.len(),
                    time: Duration::ZERO,
                    ..Took::default()
                },
                arena: self.arena,
            },
            decisions,
            accesses,
            under,
            unsure,
            ended,
        }
    }

    /// Function and instruction of a step; none of what a call was laid out as.
    fn place_of(&self, at: usize) -> Option<Place> {
        let step = self.flow.steps.get(at)?;
        let frame = self.flow.frames.get(step.frame.0)?;
        frame
            .expansion
            .is_none()
            .then_some((frame.function.0, step.pc))
    }

    /// A branch of the execution that is followed.
    pub(super) fn branch_along(
        &mut self,
        mut s: State,
        condition: Option<ExprId>,
        only: Option<bool>,
        target: StepId,
    ) -> Result<Next, Gap> {
        self.bind(&s);
        // What a call was laid out as has branches that are none of the program's: rounds of what it calls back, and which
        // of several objects it is on.
        let written = |(function, pc): Place| {
            let insns = self.program.functions.get(function).map(|f| &f.insns);
            let insn = insns.and_then(|i| i.get(pc));
            matches!(insn, Some(Insn::Branch { .. })).then_some((function, pc))
        };
        let insn = self.place_of(s.at).and_then(written);
        let Some(guide) = &mut self.guide else {
            return Err(Gap("nothing is followed".to_owned()));
        };
        let value = condition.map(|e| guide.under.value(&self.arena, e) == 1);
        let (branch, taken) = match (insn, guide.branches.pop_front()) {
            (None, back) => {
                if let Some(back) = back {
                    guide.branches.push_front(back);
                }
                let Some(value) = value.or(only) else {
                    return Err(Gap("how often a call calls back is not known".to_owned()));
                };
                (None, value)
            }
            (Some(here), Some((n, b))) if b.insn == here => (Some(n), b.taken),
            _ => return Err(Gap("the execution went another way".to_owned())),
        };
        let before = s.guard.len();
        let held = condition.map(|e| if taken { e } else { self.arena.not(e) });
        let held = held.filter(|e| self.arena.constant(*e).is_none());
        if let Some(e) = held {
            self.holds_now(&mut s, e);
        }
        if let (Some(branch), Some(guide)) = (branch, &mut self.guide) {
            guide.decisions.push(Decision {
                branch,
                condition: held,
                before,
                agrees: value.or(only) == Some(taken),
            });
        }
        s.at = if taken { target.0 } else { s.at + 1 };
        Ok(Next::On(vec![s]))
    }

    fn holds_now(&mut self, s: &mut State, e: ExprId) {
        for e in conjuncts(&self.arena, &[e]) {
            let Some(guide) = &mut self.guide else { return };
            if guide.holds.insert(e) {
                s.guard.push(e);
            }
        }
    }

    /// The way that the execution went, of two.
    pub(super) fn decided(
        &mut self,
        mut s: State,
        condition: ExprId,
    ) -> (Option<State>, Option<State>) {
        let yes = match self.arena.constant(condition) {
            Some(c) => c == 1,
            None => {
                self.bind(&s);
                let value = self
                    .guide
                    .as_ref()
                    .map(|g| g.under.value(&self.arena, condition));
                let yes = value == Some(1);
                let held = if yes {
                    condition
                } else {
                    self.arena.not(condition)
                };
                self.holds_now(&mut s, held);
                yes
            }
        };
        if yes {
            (Some(s), None)
        } else {
            (None, Some(s))
        }
    }

    /// Whether a condition held.
    pub(super) fn was(&mut self, s: &State, condition: ExprId) -> Answer {
        self.bind(s);
        match self.number_was(s, condition) {
            1 => Answer::Holds(Rc::new(Assignment::default())),
            _ => Answer::Fails,
        }
    }

    /// What a number was.
    pub(super) fn number_was(&mut self, s: &State, e: ExprId) -> u64 {
        self.bind(s);
        self.guide
            .as_ref()
            .map_or(0, |g| g.under.value(&self.arena, e))
    }

    /// Binds the symbols that have come up since.
    fn bind(&mut self, s: &State) {
        let Some(mut guide) = self.guide.take() else {
            return;
        };
        for n in guide.bound..self.arena.symbol_count() {
            let symbol = SymId(n as u32);
            let value = self.stands(&guide, s, symbol);
            if value.is_none() {
                guide.unsure.insert(symbol);
            }
            guide.under.symbols.insert(symbol, value.unwrap_or(0));
        }
        guide.bound = self.arena.symbol_count();
        self.guide = Some(guide);
    }

    /// The number that a symbol stands for.
    fn stands(&self, guide: &Guide<'_>, s: &State, symbol: SymId) -> Option<u64> {
        let (happened, call) = (guide.happened, guide.call.as_ref());
        let symbol = self.arena.symbol(symbol);
        let name = symbol.name.as_str();
        let xdp = self.program.dialect == Dialect::Xdp;
        match symbol.origin {
            Origin::Length => Some(happened.frame.len() as u64),
            Origin::Port => match name {
                "port" => Some(u64::from(happened.port) + u64::from(xdp)),
                "ports" => Some(u64::from(happened.ports)),
                "queue" => Some(0),
                "headroom" => Some(happened.room.0),
                "tailroom" => Some(happened.room.1),
                _ => None,
            },
            Origin::Time => Some(happened.time),
            Origin::Param => {
                let param = self.program.params.iter().find(|p| p.name == name);
                param.map(|p| p.declared(self.program))
            }
            Origin::Helper if name == "cpu" => Some(0),
            // A symbol of several words is what a call wrote somewhere.
            Origin::Random | Origin::Helper if !name.ends_with(']') => call.map(|c| c.result),
            Origin::State(object) => self.of_state(guide, s, ObjectId(object), name),
            Origin::Random | Origin::Helper | Origin::Turn => None,
        }
    }

    fn of_state(&self, guide: &Guide<'_>, s: &State, object: ObjectId, name: &str) -> Option<u64> {
        let call = guide.call.as_ref();
        let full = |c: &Call| match c.helper {
            "allocator_lease" => c.result == u64::MAX,
            "map_put" | "lpm_put" | "ringbuf_reserve" => c.result == 0,
            _ => c.result != 0,
        };
        let place = s.places.iter().find_map(|p| {
            let rest = name.strip_prefix(p.stem.as_str())?;
            (p.object == object && rest.starts_with(['.', '['])).then_some((p, rest))
        });
        let Some((place, rest)) = place else {
            return match () {
                () if name.contains(".full") => call.map(|c| u64::from(full(c))),
                () if name.ends_with(']') => None,
                () => call.map(|c| c.result),
            };
        };
        let before = || {
            let key: Vec<u8> = place
                .key
                .iter()
                .map(|e| guide.under.value(&self.arena, *e) as u8)
                .collect();
            (guide.happened.before)(object, &key)
        };
        if let Some(doubts) = rest.strip_prefix(".present") {
            // An entry that may have gone since is as the call found it.
            return match doubts {
                "" => Some(u64::from(before().is_some())),
                _ => call.map(|c| u64::from(c.there)),
            };
        }
        if rest.starts_with(".full") {
            return call.map(|c| u64::from(full(c)));
        }
        let range = rest.strip_prefix('[')?.strip_suffix(']')?;
        let (from, to) = range.split_once("..")?;
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        let value = before()?;
        let bytes = value.get(from.min(value.len())..to.min(value.len()))?;
        Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }
}
