//! Object by object what separates packets, and what is done then with all of them together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_model::Model;
use millrace_model::weaken::{NUMBERS_APART, weak};
use millrace_object::program::{ObjectId, Program};
use millrace_steer::Kind;

use crate::computed::{Asked, Computed};
use crate::constraints::by_key;
use crate::key::Key;
use crate::leased;
use crate::packets::Packets;
use crate::pinned;
use crate::placed::{self, Placed};
use crate::plan::ObjectPlan;
use crate::rules::derived::Derived;
use crate::rules::homing::{self, Home};
use crate::rules::{
    Answer, Barred, Constraints, Said, disjoint, equality, incompatible, nothing, replication,
    unknown,
};
use crate::solved::{Answered, Device, Solved, is_six, why};
use crate::together;
use crate::touch::{Found, Gathered, Held, Software, Source, Touch, Touches, distinct, touches};
use crate::treatments::{self, Subject};
use crate::words;
use millrace_place::Treatment;

/// An object whose packets could be separated, if it were alone.
pub(crate) struct Candidate {
    pub object: usize,
    pub by: Constraints,
    pub said: Said,
    /// entries, all cores together
    pub capacity: u64,
    /// how much is lost if they are not separated
    pub weight: usize,
    /// all packets are one core's then
    pub vital: bool,
}

/// The treatment of every object, and the keys for sharded ones.
pub(crate) struct Choice {
    pub objects: Vec<ObjectPlan>,
    pub solved: Option<Rc<Solved>>,
    pub inside: BTreeSet<usize>,
    /// why IPv6 is all on one core, if an access is to blame for that
    pub pinned: Option<String>,
    /// some object could be sharded by R6, if it were alone
    pub homing: bool,
    /// by allocator that is sharded: by what its numbers are told apart, if they are
    pub homes: BTreeMap<usize, Home>,
    /// what keys of sharded objects say of where their entries lie
    pub placed: Vec<Placed>,
    /// some packets of what is locked, or all on one core, are read otherwise by a NIC than by the program
    pub wants_odd: bool,
    /// what whoever steers looks at
    pub software: Software,
}

impl Choice {
    /// Obstacles to several cores: objects that make all packets one core's, and those that are locked.
    pub fn barred(&self) -> (usize, usize) {
        let of = |t: Treatment| self.objects.iter().filter(|o| o.treatment == t).count();
        (of(Treatment::Alone), of(Treatment::Lock))
    }

    /// Whether nothing does.
    pub fn is_free(&self) -> bool {
        self.barred() == (0, 0)
    }

    /// Whether it is better than another: less stands in the way, or more have numbers that come home.
    pub fn is_better(&self, than: &Self) -> bool {
        let (mine, other) = (self.barred(), than.barred());
        mine < other || (mine == other && self.carried() > than.carried())
    }

    /// How many allocators' numbers come home by R6.
    pub fn carried(&self) -> usize {
        let carried = |h: &&Home| matches!(h, Home::Carried(_));
        self.homes.values().filter(carried).count()
    }

    /// How many of the kinds that NICs hash reach state and are all on one core.
    pub fn pinned(&self) -> usize {
        self.solved.as_ref().map_or(0, |s| s.pinned())
    }

    /// Order of preference: obstacles to several cores, objects on one core, bits that tell packets apart.
    pub fn rank(&self) -> ((usize, usize), usize, Reverse<usize>) {
        let bits = self.solved.as_ref().map_or(usize::MAX, |s| s.bits());
        (self.barred(), self.pinned(), Reverse(bits))
    }
}

/// A choice as far as is found out without asking which objects go together where not all do: that takes as long as all
/// the rest, and where something else is chosen in the end nobody asks.
pub(crate) struct Draft {
    /// of what no constraints separate
    answers: BTreeMap<usize, Answer>,
    /// what constraints could separate, each by itself
    candidates: Vec<Candidate>,
    /// whether all of these can be together; none if there are none
    together: Option<Answered>,
    all: Touches,
    pub beside: Beside,
    homing: bool,
    /// some packets are read otherwise by a NIC than by the program
    odd: bool,
    software: Software,
}

/// Looks at each object by itself, with what is held taken for given, and with software that looks at so much; and
/// whether all that could be sharded can be together.
pub(crate) fn draft(
    model: &mut Model,
    program: &Program,
    device: &Device<'_>,
    held: &Held,
    (gathered, software): (&mut Gathered, Software),
) -> Draft {
    let mut answers = BTreeMap::new();
    let mut open = BTreeSet::new();
    let bounded = bounded(model);
    for (i, declared) in program.objects.iter().enumerate() {
        let name = &declared.name;
        let answer = if let Some(answer) = nothing::judge(model, i, declared) {
            answer
        } else if let Some(why) = &bounded {
            Answer::Not(unknown::judge(model, name, i, why))
        } else if treatments::divides(declared) {
            open.insert(i);
            continue;
        } else if declared.kind.holds_records() {
            Answer::Not(incompatible::records(name))
        } else {
            Answer::Not(incompatible::kind(name, declared.kind.name))
        };
        answers.insert(i, answer);
    }
    let all = touches(model, program, &open, held, (&mut *gathered, software));
    let mut candidates = Vec::new();
    let mut beside = Beside::default();
    for object in open {
        let known = (&mut gathered.derived, &mut beside);
        match candidate(model, program, device, &all, object, known) {
            Ok(c) => candidates.push(c),
            Err(barred) => drop(answers.insert(object, Answer::Not(barred))),
        }
    }
    let carried = |home: &Option<Home>| matches!(home, Some(Home::Carried(_)));
    let homing = candidates.iter().any(|c| carried(&c.by.home));
    let together = together::all(program, device, &mut candidates, &mut answers);
    let odd = distinct(&all.all).any(|(t, f)| is_odd(model, t, f));
    Draft {
        odd,
        answers,
        candidates,
        together,
        all,
        beside,
        homing,
        software,
    }
}

impl Draft {
    /// Whether nothing stands in the way of several cores.
    pub fn is_free(&self) -> bool {
        let separate = self.answers.values().all(|a| a.barred().is_none());
        separate && !matches!(self.together, Some(Err(_)))
    }

    /// Whether the choice may be one that [`Choice::wants_odd`].
    pub fn may_want_odd(&self) -> bool {
        self.odd
    }

    /// Decides over all objects.
    pub fn settle(self, model: &Model, program: &Program, device: &Device<'_>) -> Choice {
        let Self {
            mut answers,
            mut candidates,
            all,
            homing,
            software,
            ..
        } = self;
        let solved = self.together.and_then(|together| {
            together::most(program, device, (&mut candidates, together), &mut answers)
        });
        let sharded = candidates.iter().map(|c| c.object).collect();
        let pinned = pinned::because(model, program, &all, &sharded, is_six);
        let wants_odd = self.odd && wants_odd(model, (&all, software), &sharded, solved.as_deref());
        let placed = solved.as_ref();
        let placed =
            placed.map(|solved| placed::placed(program, &all.all, &sharded, solved, &all.inside));
        let separated = candidates.into_iter();
        answers.extend(separated.map(|c| (c.object, Answer::By(c.by, c.said))));
        let homes = answers.iter().filter_map(|(object, answer)| match answer {
            Answer::By(by, _) => Some((*object, by.home.clone()?)),
            _ => None,
        });
        let objects = answers.iter().filter_map(|(object, answer)| {
            let declared = program.objects.get(*object)?;
            let subject = Subject {
                declared,
                answer,
                visited: treatments::is_visited(model, program, ObjectId(*object)),
                unreplicated: replication::bar(device.history, program, ObjectId(*object)),
            };
            let plan = subject.planned(ObjectId(*object), treatments::by_order);
            Some(ObjectPlan {
                asked: self.beside.asked.get(object).copied(),
                ..plan
            })
        });
        Choice {
            objects: objects.collect(),
            solved,
            inside: all.inside,
            pinned,
            placed: placed.unwrap_or_default(),
            homing,
            homes: homes.collect(),
            wants_odd,
            software,
        }
    }
}

/// Whether a NIC reads packets of an access otherwise than the program.
fn is_odd(model: &Model, touch: &Touch, found: &Found) -> bool {
    let entry = model.entries.get(touch.at.entry);
    entry.is_some_and(|e| found.is_odd(&e.arena))
}

/// Whether packets of some kind that reaches what is locked, or is all on one core, have keys of bytes that nobody who
/// steers takes for the fields of such packets.
fn wants_odd(
    model: &Model,
    (all, software): (&Touches, Software),
    sharded: &BTreeSet<usize>,
    solved: Option<&Solved>,
) -> bool {
    // Where odd packets are read already, another way to read them may tell more fields apart.
    let short = software.odd.is_some() || solved.is_some_and(|s| s.pinned() > 0);
    distinct(&all.all).any(|(t, f)| {
        // What is all on one core is so for many reasons; a header that nobody checks is one.
        let malformed = software.odd.is_some() || f.packets.kind == Kind::NotIp;
        (!sharded.contains(&t.object) || (short && malformed)) && is_odd(model, t, f)
    })
}

/// Why the model's paths are not all, if they are not.
fn bounded(model: &Model) -> Option<String> {
    use millrace_model::model::Outcome;
    model.entries.iter().find_map(|e| match &e.outcome {
        Outcome::Exhaustive | Outcome::Covering { .. } => None,
        Outcome::Bounded { why } => Some(format!("{}: {why}", e.function)),
    })
}

/// Intermediate results.
#[derive(Default)]
pub(crate) struct Beside {
    /// an object would be sharded by R6 if somebody looked for the identifiers of ICMP echoes
    pub wants_echoes: bool,
    /// an object could be sharded by R6, if it were alone, because somebody looks for them
    pub by_echoes: bool,
    /// what a solver was asked, by object
    asked: BTreeMap<usize, Asked>,
}

/// Whether constraints separate the packets of an object by itself.
fn candidate(
    model: &mut Model,
    program: &Program,
    device: &Device<'_>,
    all: &Touches,
    object: usize,
    (derived, beside): (&mut Derived, &mut Beside),
) -> Result<Candidate, Barred> {
    let declared = program.objects.get(object);
    let name = declared.map_or("", |o| o.name.as_str());
    if let Some((_, at)) = all.others.iter().find(|o| o.0 == object) {
        return Err(incompatible::timer(model, name, *at));
    }
    let mut needs = BTreeSet::new();
    let mut own: Vec<&Touch> = Vec::new();
    let mut weight = 0;
    for t in all.all.iter().filter(|t| t.object == object) {
        match derived.holds(model, program, t) {
            Some(from) => drop(needs.insert(from)),
            None => own.push(t),
        }
        weight += if t.writes { t.by.len() } else { 0 };
    }
    let leases = own.iter().any(|t| t.any(|s| *s == Source::Leased));
    let reached = own.iter().any(|t| t.any(|s| *s != Source::Leased));
    let mut home = None;
    let (mut meetings, mut said) = if leases && reached {
        let (object, echoes) = ((object, name), &mut beside.wants_echoes);
        let found = leased::serving(model, program, device, object, (all, &own), echoes)?;
        home = found.home;
        beside.by_echoes |= found.echoes;
        (found.meetings, found.said)
    } else {
        let constant = |s: &Source| *s == Source::Constant;
        let constant = own.iter().any(|t| t.writes && t.any(constant))
            || !own.iter().any(|t| t.any(|s| !constant(s)));
        let state = |s: &Source| matches!(s, Source::Value { .. });
        let state = own.iter().any(|t| t.any(state));
        if (constant || state) && !own.is_empty() {
            let refused = incompatible::access(model, program, name, &own);
            return Err(refused.unwrap_or_else(|| incompatible::kind(name, "object")));
        }
        let fields = distinct(own.iter().copied());
        (
            by_key(
                fields.filter(|(_, f)| f.source != Source::Leased),
                &device.cases,
            ),
            equality::judge(model, name, &own, &program.ports),
        )
    };
    if declared.is_some_and(|o| o.kind.leases()) && !reached && !weak(NUMBERS_APART) {
        home = Some(Home::Dealt);
    }
    let capacity = declared.map_or(0, |o| o.capacity);
    let fits = |solved: &Solved| {
        home.as_ref()
            .is_none_or(|h: &Home| h.reaches_all(solved, capacity))
    };
    let mut solved = device.solve(&meetings);
    let mut exact = None;
    if !matches!(home, Some(Home::Carried(_))) {
        exact = device.exactly(model, (all, &own), &solved);
    }
    // What is said without the exact answer is right, and less than could be said.
    let cut = match (device.ended.get(), &exact) {
        (Some(spent), _) => Some(format!("plan: {spent} is used up; {}", spent.raise())),
        (None, None) if device.computed.borrow().late() && Computed::concerns(model, &own) => {
            Some(format!(
                "plan: the {} s for keys that are computed are used up; raise them with `--solver-time SECONDS`",
                device.computed.borrow().time().as_secs_f64()
            ))
        }
        _ => None,
    };
    let told = |mut barred: Barred| {
        if let Some(cut) = &cut {
            barred.said.reason = format!("{}; {cut}", barred.said.reason);
            barred.proved = false;
        }
        barred
    };
    if let Some((exact, again)) = &exact {
        beside.asked.insert(object, exact.asked);
        if again.is_ok() {
            said = equality::computed(said, name, exact, &program.ports);
            meetings = exact.meetings.clone();
        }
        solved = again.clone();
    }
    if let (Ok(solved), Some(home)) = (&solved, &home)
        && !fits(solved)
    {
        let bits = solved.space.index_bits();
        return Err(homing::poor(name, home, capacity, bits, said.line));
    }
    if let Err(e) = solved {
        let (proved, mut why) = why(&e, &program.ports);
        let without = |p: Packets| {
            let mut rest = meetings.clone();
            rest.retain(|m| m.a != p && m.b != p);
            !rest.is_empty() && device.solve(&rest).is_ok()
        };
        if let Some(blocked) = pinned::blocking((model, program), name, &own, without) {
            why = format!("{why}; {blocked}");
        }
        let nic = device.nic.title.as_str();
        if let Some((exact, _)) = &exact
            && let Some(barred) =
                incompatible::computed((model, nic), name, (&own, exact), (proved, &why))
        {
            return Err(told(barred));
        }
        if let Some(barred) = incompatible::access(model, program, name, &own) {
            return Err(told(Barred { proved, ..barred }));
        }
        let keys = distinct(own.iter().copied());
        let keys: BTreeSet<&Key> = keys.map(|(_, f)| f.key.as_ref()).collect();
        let keys: BTreeSet<String> = keys.into_iter().map(words::key).collect();
        let keys: Vec<String> = keys.into_iter().filter(|k| !k.is_empty()).take(4).collect();
        return Err(told(if keys.len() > 1 {
            disjoint::alone(name, &keys, &why, said.line, proved)
        } else {
            incompatible::device(name, nic, &why, said.line, proved)
        }));
    }
    Ok(Candidate {
        object,
        by: Constraints {
            meetings,
            needs,
            home,
        },
        said,
        capacity,
        weight,
        vital: declared.is_some_and(treatments::is_vital),
    })
}
