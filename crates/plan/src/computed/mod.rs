//! Keys that are computed: sums, products, remainders, choices. Which packets have the same one, no equation over their
//! bits says; so the linear equations that hold of all of them are found by questions to a solver (crates/steer,
//! witness.rs): are there two packets with one key in which the exclusive or of these bits is 1?
//!
//! It is asked only where what is linear of itself leaves an object without keys, and for so long at most as the plan
//! is told; what the solver leaves open makes more packets meet than need.

mod asked;
mod formula;
mod one_to_one;
mod question;
mod rows;
mod same;
mod samples;
mod sums;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use millrace_check::moment::Moment;
use millrace_model::expr::ids::IdSet;
use millrace_model::expr::{Arena, Node};
use millrace_model::{Limits, Model};
use millrace_steer::keys::{Asking, Case, Class, narrowed};
use millrace_steer::{Field, Kind};

use crate::constraints::{Cases, Meeting};
use crate::key::{Bit, Key};
use crate::packets::Packets;
use crate::touch::{Source, Touch, Touches, distinct};

pub use asked::Asked;
use formula::Formula;
use one_to_one::Taken;
use question::{Pair, Solver};
pub(crate) use same::Same;
use samples::Samples;

/// With more formulas than this of one object, what guards say is left out: it makes them many.
const MOST: usize = 24;

/// Factor by which computation without a solver may exceed the limit of the solver's questions, at least.
const GRACE: Duration = Duration::from_secs(1);

/// Findings about the keys of an object.
pub(crate) struct Exact {
    pub meetings: Vec<Meeting>,
    pub asked: Asked,
    /// by port, from which fields keys are computed, and what packets with one key have in common
    pub same: Vec<Same>,
}

/// Packets of a kind, their formula, and the field of theirs that is 0 whatever the key is.
type Use = (Packets, Option<Field>, usize);

/// A formula for packets whose fields, those in it, are so wide, and which field is 0.
type Form = (usize, [usize; 4], Option<Field>);

/// Question and answer; none where no packets have the same key.
type Known = Option<(Arc<Case>, Asking)>;

/// When the work on formulas ends.
struct Until {
    /// of questions, and of simplifying
    end: Moment,
    /// of what takes little for each pair of packets, but of which there may be many
    last: Moment,
    /// and when that of each entry's expressions did
    before: Vec<Option<Moment>>,
}

/// Questions about one plan.
pub(crate) struct Computed {
    time: Duration,
    /// what is left for formulas, which have as long as the solver
    left: Duration,
    arena: Arena,
    solver: Solver,
    formulas: Vec<Rc<Formula>>,
    numbers: HashMap<Rc<Formula>, usize>,
    samples: HashMap<usize, Rc<Samples>>,
    seconds: HashMap<usize, Rc<Formula>>,
    taken: Taken,
    known: HashMap<(Form, Form), Known>,
}

impl Computed {
    /// Nothing yet; of the limits the time for all questions counts, and which solver it is.
    pub fn new(limits: &Limits) -> Self {
        Self {
            time: limits.time,
            left: limits.time,
            arena: Arena::new(),
            solver: Solver::new(limits),
            formulas: Vec::new(),
            numbers: HashMap::new(),
            samples: HashMap::new(),
            seconds: HashMap::new(),
            taken: Taken::default(),
            known: HashMap::new(),
        }
    }

    /// Whether some key of these is more than fields, other bytes and what is read.
    pub fn concerns(model: &Model, own: &[&Touch]) -> bool {
        let mut seen: IdSet<(usize, *const Key)> = IdSet::default();
        distinct(own.iter().copied()).any(|(touch, found)| {
            let key = (touch.at.entry, Rc::as_ptr(&found.key));
            let fresh = seen.insert(key);
            let entry = model.entries.get(touch.at.entry).filter(|_| fresh);
            entry.is_some_and(|e| found.key.iter().any(|bit| is_computed(&e.arena, bit)))
        })
    }

    /// All pairs of packets that touch one place, of which at least one changes it, as exactly as equations say it; none
    /// if no key is computed from fields.
    pub fn meetings(
        &mut self,
        model: &mut Model,
        touches: (&Touches, &[&Touch]),
        cases: &Cases,
    ) -> Option<Exact> {
        let until = self.begin(model)?;
        let exact = self.within(model, touches, cases, &until);
        self.end(model, until);
        exact
    }

    /// All time for questions.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Whether the time is over, so that less is said of keys than could be.
    pub fn late(&self) -> bool {
        self.left.is_zero()
    }

    /// Formulas are built and compared until then, beside the time for questions: what is built of keys that are mixed in
    /// many rounds has no bound in their length. None if no time is left.
    fn begin(&mut self, model: &mut Model) -> Option<Until> {
        let left = Some(self.left).filter(|left| !left.is_zero())?;
        let end = Moment::now() + left + self.solver.left();
        self.arena.simplify_until(Some(end));
        let entries = model.entries.iter_mut();
        let before = entries.map(|e| e.arena.simplify_sooner(end)).collect();
        Some(Until {
            end,
            last: end + left.max(GRACE),
            before,
        })
    }

    fn end(&mut self, model: &mut Model, until: Until) {
        let left = until.end.since(Moment::now());
        self.left = self.left.min(left.saturating_sub(self.solver.left()));
        for (entry, before) in model.entries.iter_mut().zip(until.before) {
            entry.arena.simplify_until(before);
        }
    }

    fn within(
        &mut self,
        model: &mut Model,
        (all, own): (&Touches, &[&Touch]),
        cases: &Cases,
        until: &Until,
    ) -> Option<Exact> {
        let uses = self.uses(model, all, own, until)?;
        let mut exact = Exact {
            meetings: Vec::new(),
            asked: Asked::default(),
            same: Vec::new(),
        };
        let mut counted = BTreeSet::new();
        let list: Vec<(Use, bool)> = uses.into_iter().collect();
        for (i, (a, writes)) in list.iter().enumerate() {
            for (b, also) in list.iter().skip(i) {
                if !writes && !also {
                    continue;
                }
                if Moment::now() >= until.last {
                    return None;
                }
                let sides = (self.form(a), self.form(b));
                let Some((case, asking)) = self.case(sides, (a.0.kind, b.0.kind), cases) else {
                    continue;
                };
                if counted.insert(sides) {
                    exact.asked += asking;
                }
                if a == b {
                    let formula = self.formulas.get(a.2);
                    let same = formula.and_then(|f| Same::of(&self.arena, a.0, f, &case));
                    exact.same.extend(same);
                }
                exact.meetings.push(Meeting {
                    a: a.0,
                    b: b.0,
                    case,
                });
            }
        }
        exact.meetings = cases.unique(exact.meetings);
        Some(exact)
    }
}

/// Whether a bit is of more than that.
fn is_computed(arena: &Arena, bit: &Bit) -> bool {
    match bit {
        Bit::Foreign(e, _) => !matches!(arena.node(*e), Node::Sym(_) | Node::Byte { .. }),
        _ => false,
    }
}

impl Computed {
    /// The part of the packets' kind that matters.
    fn form(&self, (packets, zero, number): &Use) -> Form {
        let formula = self.formulas.get(*number);
        let fields = formula.map_or_else(BTreeSet::new, |f| f.fields(&self.arena));
        let matters = |f: &Field| fields.contains(f) || *zero == Some(*f);
        let width = |f: Field| if matters(&f) { f.bits(packets.kind) } else { 0 };
        (*number, Field::ALL.map(width), *zero)
    }

    /// Packets that reach the object, by formulas, and whether they change it; none if none is computed.
    fn uses(
        &mut self,
        model: &mut Model,
        all: &Touches,
        own: &[&Touch],
        until: &Until,
    ) -> Option<BTreeMap<Use, bool>> {
        let guarded = self.gathered(model, all, own, (true, until))?;
        let formulas: BTreeSet<usize> = guarded.keys().map(|u| u.2).collect();
        let uses = match formulas.len() > MOST {
            true => self.gathered(model, all, own, (false, until))?,
            false => guarded,
        };
        let computed = |u: &Use| {
            let formula = self.formulas.get(u.2);
            formula.is_some_and(|f| f.is_computed(&self.arena))
        };
        uses.keys().any(computed).then_some(uses)
    }

    fn gathered(
        &mut self,
        model: &mut Model,
        all: &Touches,
        own: &[&Touch],
        (guarded, until): (bool, &Until),
    ) -> Option<BTreeMap<Use, bool>> {
        let mut uses = BTreeMap::new();
        let mut done = BTreeSet::new();
        for (touch, _) in distinct(own.iter().copied()) {
            let leased = touch.any(|s| *s == Source::Leased);
            if leased || !done.insert(touch.at) {
                continue;
            }
            let Some(key) = touch.at.access_of(model).map(|a| a.key.clone()) else {
                continue;
            };
            for seen in all.seen(touch.at) {
                if Moment::now() >= until.last {
                    return None;
                }
                let Some(entry) = model.entries.get_mut(touch.at.entry) else {
                    continue;
                };
                let entry = &mut entry.arena;
                let formula = Formula::of(&mut self.arena, entry, seen, &key);
                let Some(mut formula) = formula else { continue };
                if guarded {
                    formula = formula.guarded(&mut self.arena, entry, seen);
                }
                let number = self.number(formula);
                let found = uses.entry((seen.packets, seen.zero(), number));
                *found.or_insert(false) |= touch.writes;
            }
        }
        Some(uses)
    }

    fn number(&mut self, formula: Formula) -> usize {
        if let Some(known) = self.numbers.get(&formula) {
            return *known;
        }
        let formula = Rc::new(formula);
        let next = self.formulas.len();
        self.formulas.push(formula.clone());
        self.numbers.insert(formula, next);
        next
    }

    /// Packets with these formulas that have the same key; none if there are no such.
    fn case(
        &mut self,
        (a, b): (Form, Form),
        kinds: (Kind, Kind),
        cases: &Cases,
    ) -> Option<(Arc<Case>, Asking)> {
        if let Some(known) = self.known.get(&(a, b)) {
            return known.clone();
        }
        let found = self.asked((a, b), kinds).map(|(case, asking)| {
            let case = cases.once(case);
            (case, asking)
        });
        self.known.insert((a, b), found.clone());
        found
    }

    fn asked(
        &mut self,
        (a, b): (Form, Form),
        (kind, other): (Kind, Kind),
    ) -> Option<(Case, Asking)> {
        let (x, y) = (
            self.formulas.get(a.0)?.clone(),
            self.formulas.get(b.0)?.clone(),
        );
        let second = self.second(b.0, &y);
        let (x, y) = Formula::peeled(&mut self.arena, &mut self.taken, &x, &y, &second);
        let (linear, all) = Formula::equal(&self.arena, (&x, kind, a.2), (&y, other, b.2))?;
        if all {
            return Some((linear, Asking::default()));
        }
        let all = Pair::conditions(&mut self.arena, &x, &y)?;
        let class = |kind: Kind, formula: &Formula, arena: &Arena| {
            let fields = formula.fields(arena).into_iter();
            Class {
                port: 0,
                kind,
                hashed: Some(kind),
                fields: fields.filter(|f| f.bits(kind) > 0).collect(),
                spread: false,
            }
        };
        let classes = (class(kind, &x, &self.arena), class(other, &y, &self.arena));
        let samples = (self.samples(a.0), self.samples(b.0));
        let mut pair = Pair {
            arena: &mut self.arena,
            solver: &mut self.solver,
            classes: (&classes.0, &classes.1),
            samples,
            all,
        };
        let found = narrowed((&classes.0, &classes.1), &linear, &mut pair);
        Some(found.unwrap_or_else(|_| {
            // An answer that is none counts as none.
            let asking = Asking {
                asked: 1,
                unknown: 1,
                open: 1,
                gained: 0,
            };
            (linear, asking)
        }))
    }

    /// A formula of the second packet.
    fn second(&mut self, number: usize, formula: &Formula) -> Rc<Formula> {
        if let Some(known) = self.seconds.get(&number) {
            return known.clone();
        }
        let made = Rc::new(formula.of_second(&mut self.arena));
        self.seconds.insert(number, made.clone());
        made
    }

    fn samples(&mut self, number: usize) -> Rc<Samples> {
        if let Some(known) = self.samples.get(&number) {
            return known.clone();
        }
        let (arena, formula) = (&self.arena, self.formulas.get(number).cloned());
        let made = formula.and_then(|f| self.solver.timed(|_| Samples::of(arena, &f)));
        let made = Rc::new(made.unwrap_or_default());
        self.samples.insert(number, made.clone());
        made
    }
}
