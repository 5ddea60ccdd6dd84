//! Object by object: what separates is sharded, what does not is locked, and why.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_model::Model;
use millrace_object::program::Program;
use millrace_steer::Kind;
use millrace_steer::keys::Unsolved;

use crate::computed::{Asked, Computed};
use crate::constraints::{Meeting, by_key};
use crate::key::Key;
use crate::leased;
use crate::packets::Packets;
use crate::pinned;
use crate::placed::{self, Placed};
use crate::plan::{Rule, Treatment};
use crate::rules::derived::Derived;
use crate::rules::homing::{self, Home};
use crate::rules::{Judged, disjoint, equality, incompatible, nothing, per_cpu, subsumption};
use crate::solved::{Answered, Device, Solved, is_six, why};
use crate::touch::{Found, Gathered, Held, Software, Source, Touch, Touches, distinct, touches};
use crate::weakened;
use crate::words;

/// More objects than this are not tried in all combinations.
const MOST: usize = 12;

/// An object that could be sharded, if it were alone.
struct Candidate {
    object: usize,
    meetings: Vec<Meeting>,
    /// objects on which it relies to be sharded, too
    needs: BTreeSet<usize>,
    /// how packets with its numbers come home, if they do by R6
    home: Option<Home>,
    /// entries, all cores together
    capacity: u64,
    judged: Judged,
    /// how much is lost if it is locked
    weight: usize,
    /// it cannot be locked: without it all packets are one core's
    vital: bool,
}

/// What is done with every object, and the keys for what is sharded.
pub(crate) struct Choice {
    pub judged: BTreeMap<usize, Judged>,
    pub solved: Option<Rc<Solved>>,
    pub inside: BTreeSet<usize>,
    /// why IPv6 is all on one core, if an access is to blame for that
    pub pinned: Option<String>,
    /// some object could be sharded by R6, if it were alone
    pub homing: bool,
    /// by object that is sharded by R6
    pub homes: BTreeMap<usize, Home>,
    /// what keys of sharded objects say of where their entries lie
    pub placed: Vec<Placed>,
    /// an object would be sharded by R6 if somebody looked for the identifiers of ICMP echoes
    pub wants_echoes: bool,
    /// an object could be sharded by R6, if it were alone, because somebody looks for them
    pub by_echoes: bool,
    /// some packets of what is locked, or all on one core, are read otherwise by a NIC than by the program
    pub wants_odd: bool,
    /// what whoever steers looks at
    pub software: Software,
    /// what a solver was asked, by object
    pub asked: BTreeMap<usize, Asked>,
}

impl Choice {
    /// What stands in the way of several cores: objects that make all packets one core's, and those that are locked.
    pub fn barred(&self) -> (usize, usize) {
        let of = |t: Treatment| self.judged.values().filter(|j| j.treatment == t).count();
        (of(Treatment::Alone), of(Treatment::Lock))
    }

    /// Whether nothing does.
    pub fn is_free(&self) -> bool {
        self.barred() == (0, 0)
    }

    /// Whether it is better than another: less stands in the way, or more have numbers that come home.
    pub fn is_better(&self, than: &Self) -> bool {
        let (mine, other) = (self.barred(), than.barred());
        mine < other || (mine == other && self.homes.len() > than.homes.len())
    }

    /// How many of the kinds that NICs hash reach state and are all on one core.
    pub fn pinned(&self) -> usize {
        self.solved.as_ref().map_or(0, |s| s.pinned())
    }

    /// What is better comes first: what bars several cores, what is all on one, by how few bits packets are told apart.
    pub fn rank(&self) -> ((usize, usize), usize, Reverse<usize>) {
        let bits = self.solved.as_ref().map_or(usize::MAX, |s| s.bits());
        (self.barred(), self.pinned(), Reverse(bits))
    }
}

/// Decides, with what is held taken for given, and with software that looks at so much.
pub(crate) fn choose(
    model: &mut Model,
    program: &Program,
    device: &Device<'_>,
    held: &Held,
    (gathered, software): (&mut Gathered, Software),
) -> Choice {
    let mut judged = BTreeMap::new();
    let mut open = BTreeSet::new();
    let bounded = bounded(model);
    for (i, declared) in program.objects.iter().enumerate() {
        if let Some(j) = nothing::judge(model, i, declared) {
            judged.insert(i, j);
        } else if let Some(why) = &bounded {
            let j = if declared.kind.per_cpu {
                per_cpu::unknown(model, &declared.name, i, why)
            } else {
                unknown(model, &declared.name, i, why)
            };
            judged.insert(i, j);
        } else if declared.kind.division().is_some() && declared.timer.is_none() {
            open.insert(i);
        } else {
            judged.insert(i, incompatible::kind(&declared.name, declared.kind.name));
        }
    }
    let all = touches(model, program, &open, held, (&mut *gathered, software));
    let mut candidates = Vec::new();
    let mut beside = Beside {
        derived: &mut gathered.derived,
        wants_echoes: false,
        by_echoes: false,
        asked: BTreeMap::new(),
    };
    for object in open {
        let found = candidate(model, program, device, &all, object, &mut beside);
        match found {
            Ok(c) => candidates.push(c),
            Err(j) => drop(judged.insert(object, j)),
        }
    }
    let Beside {
        wants_echoes,
        by_echoes,
        asked,
        ..
    } = beside;
    let homing = candidates.iter().any(|c| c.home.is_some());
    let solved = together(program, device, &mut candidates, &mut judged);
    let sharded = candidates.iter().map(|c| c.object).collect();
    let pinned = pinned::because(model, program, &all, &sharded, is_six);
    let wants_odd = wants_odd(model, (&all, software), &sharded, solved.as_deref());
    let placed = solved.as_ref();
    let placed =
        placed.map(|solved| placed::placed(program, &all.all, &sharded, solved, &all.inside));
    let mut homes = BTreeMap::new();
    for c in candidates {
        homes.extend(c.home.map(|home| (c.object, home)));
        judged.insert(c.object, c.judged);
    }
    for (object, j) in &mut judged {
        let declared = program.objects.get(*object);
        if let Some(declared) =
            declared.filter(|o| o.kind.per_cpu && j.treatment == Treatment::Lock)
        {
            per_cpu::barred(&declared.name, j);
        }
    }
    weakened::judged(&mut judged);
    Choice {
        judged,
        solved,
        inside: all.inside,
        pinned,
        placed: placed.unwrap_or_default(),
        homing,
        homes,
        wants_echoes,
        by_echoes,
        wants_odd,
        software,
        asked,
    }
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
    let mut touches = all.all.iter();
    touches.any(|t| {
        let Some(e) = model.entries.get(t.at.entry) else {
            return false;
        };
        // What is all on one core is so for many reasons; a header that nobody checks is one.
        let counts = |f: &Found| {
            let malformed = software.odd.is_some() || f.packets.kind == Kind::NotIp;
            !sharded.contains(&t.object) || (short && malformed)
        };
        t.by.iter().any(|f| counts(f) && f.is_odd(&e.arena))
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

fn unknown(model: &Model, name: &str, object: usize, why: &str) -> Judged {
    let mut touched = model.entries.iter().flat_map(|e| &e.at_most);
    let at = touched.find(|t| t.object.0 == object);
    Judged {
        treatment: Treatment::Lock,
        rule: Rule::R4,
        reason: format!(
            "not all paths to {name} are known ({why}), so nothing is said of its keys and it is locked"
        ),
        remedy: Some("give the model more time, or make the program simpler".to_owned()),
        line: at.and_then(|t| t.line.as_ref()).map(words::place),
        infeasible: false,
    }
}

/// What is found out on the way.
struct Beside<'a> {
    derived: &'a mut Derived,
    wants_echoes: bool,
    by_echoes: bool,
    asked: BTreeMap<usize, Asked>,
}

/// Whether an object can be sharded by itself.
fn candidate(
    model: &mut Model,
    program: &Program,
    device: &Device<'_>,
    all: &Touches,
    object: usize,
    beside: &mut Beside<'_>,
) -> Result<Candidate, Judged> {
    let declared = program.objects.get(object);
    let name = declared.map_or("", |o| o.name.as_str());
    if let Some((_, at)) = all.others.iter().find(|o| o.0 == object) {
        return Err(incompatible::timer(model, name, *at));
    }
    let mut needs = BTreeSet::new();
    let mut own: Vec<&Touch> = Vec::new();
    let mut weight = 0;
    for t in all.all.iter().filter(|t| t.object == object) {
        match beside.derived.holds(model, program, t) {
            Some(from) => drop(needs.insert(from)),
            None => own.push(t),
        }
        weight += if t.writes { t.by.len() } else { 0 };
    }
    let leases = own.iter().any(|t| t.any(|s| *s == Source::Leased));
    let reached = own.iter().any(|t| t.any(|s| *s != Source::Leased));
    let mut home = None;
    let (mut meetings, mut judged) = if leases && reached {
        let asked = leased::Asked {
            object,
            name,
            all,
            own: &own,
        };
        let found = leased::serving(model, program, device, &asked, &mut beside.wants_echoes)?;
        home = found.home;
        beside.by_echoes |= found.echoes;
        (found.meetings, found.judged)
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
    let capacity = declared.map_or(0, |o| o.capacity);
    let fits = |solved: &Solved| {
        home.as_ref()
            .is_none_or(|h: &Home| h.reaches_all(solved, capacity))
    };
    let mut solved = device.solve(&meetings);
    let mut exact = None;
    if home.is_none() {
        exact = device.exactly(model, (all, &own), &solved);
    }
    // What is said without the exact answer is right, and less than could be said.
    let cut = match (device.ended.get(), &exact) {
        (Some(spent), _) => Some(format!("plan: {spent} is used up; {}", spent.raise())),
        (None, None) if device.computed.late() && Computed::concerns(model, &own) => Some(format!(
            "plan: the {} s for keys that are computed are used up; raise them with `--solver-time SECONDS`",
            device.computed.time().as_secs_f64()
        )),
        _ => None,
    };
    let told = |mut judged: Judged| {
        if let Some(cut) = &cut {
            judged.reason = format!("{}; {cut}", judged.reason);
            judged.infeasible = false;
        }
        judged
    };
    if let Some((exact, again)) = &exact {
        beside.asked.insert(object, exact.asked);
        if again.is_ok() {
            judged = equality::computed(judged, name, exact, &program.ports);
            meetings = exact.meetings.clone();
        }
        solved = again.clone();
    }
    if let (Ok(solved), Some(home)) = (&solved, &home)
        && !fits(solved)
    {
        let bits = solved.space.index_bits();
        return Err(homing::poor(name, home, capacity, bits, judged.line));
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
            && let Some(j) =
                incompatible::computed((model, nic), name, (&own, exact), (proved, &why))
        {
            return Err(told(j));
        }
        if let Some(mut j) = incompatible::access(model, program, name, &own) {
            j.infeasible = proved;
            return Err(told(j));
        }
        let keys = distinct(own.iter().copied());
        let keys: BTreeSet<&Key> = keys.map(|(_, f)| f.key.as_ref()).collect();
        let keys: BTreeSet<String> = keys.into_iter().map(words::key).collect();
        let keys: Vec<String> = keys.into_iter().filter(|k| !k.is_empty()).take(4).collect();
        return Err(told(if keys.len() > 1 {
            disjoint::alone(name, &keys, &why, judged.line, proved)
        } else {
            incompatible::device(name, nic, &why, judged.line, proved)
        }));
    }
    Ok(Candidate {
        object,
        meetings,
        needs,
        home,
        capacity,
        judged,
        weight,
        vital: declared.is_some_and(|o| o.kind.per_cpu),
    })
}

/// Keys for all of these together, under which every index has numbers of those that come home.
fn solve(device: &Device<'_>, all: &[&Candidate]) -> Answered {
    let solved = device.solve(&meetings(device, all))?;
    let poor = |c: &&Candidate| {
        let home = c.home.as_ref();
        home.is_some_and(|h| !h.reaches_all(&solved, c.capacity))
    };
    if all.iter().any(poor) {
        return Err(Unsolved::NotFound.into());
    }
    Ok(solved)
}

fn meetings(device: &Device<'_>, of: &[&Candidate]) -> Vec<Meeting> {
    device
        .cases
        .unique(of.iter().flat_map(|c| c.meetings.clone()).collect())
}

/// The most that can be sharded together; the others are judged and taken out.
fn together(
    program: &Program,
    device: &Device<'_>,
    candidates: &mut Vec<Candidate>,
    judged: &mut BTreeMap<usize, Judged>,
) -> Option<Rc<Solved>> {
    let name = |object: usize| {
        program
            .objects
            .get(object)
            .map_or("", |o| o.name.as_str())
            .to_owned()
    };
    relying(candidates, judged, &name);
    if candidates.is_empty() {
        return None;
    }
    let first = solve(device, &candidates.iter().collect::<Vec<_>>());
    let solved = match first {
        Ok(solved) => Some(solved),
        Err(e) => {
            let (proved, text) = why(&e, &program.ports);
            let kept = largest(device, candidates);
            let all = std::mem::take(candidates);
            let names: Vec<String> = kept.0.iter().map(|o| name(*o)).collect();
            for c in all {
                if kept.0.contains(&c.object) {
                    candidates.push(c);
                } else {
                    let own = name(c.object);
                    judged.insert(
                        c.object,
                        disjoint::judge(&c.judged, &own, &names, &text, proved),
                    );
                }
            }
            kept.1
        }
    };
    subsumed(device, candidates, &name);
    if let Some(solved) = &solved {
        for c in candidates.iter_mut().filter(|c| solved.pins(&c.meetings)) {
            let more = "; beside the others' keys there is none for its packets: all of them are on one core";
            c.judged.reason.push_str(more);
        }
    }
    solved
}

/// Takes out those that rely on what is not sharded.
fn relying(
    candidates: &mut Vec<Candidate>,
    judged: &mut BTreeMap<usize, Judged>,
    name: &dyn Fn(usize) -> String,
) {
    loop {
        let there: BTreeSet<usize> = candidates.iter().map(|c| c.object).collect();
        let lost = candidates.iter().position(|c| !c.needs.is_subset(&there));
        let Some(at) = lost else { return };
        let c = candidates.remove(at);
        let from = c
            .needs
            .difference(&there)
            .next()
            .copied()
            .unwrap_or_default();
        let (own, from) = (name(c.object), name(from));
        judged.insert(
            c.object,
            Judged {
                treatment: Treatment::Lock,
                rule: Rule::R4,
                reason: format!(
                    "the key of {own} is read from {from}, which is not sharded, so the packet does not say \
                     which entry it touches"
                ),
                remedy: Some(format!("what makes {from} shard makes {own} shard")),
                line: c.judged.line,
                infeasible: true,
            },
        );
    }
}

/// The heaviest set that can be sharded together.
fn largest(device: &Device<'_>, candidates: &[Candidate]) -> (BTreeSet<usize>, Option<Rc<Solved>>) {
    let n = candidates.len().min(MOST);
    let members = |set: u32| -> Vec<&Candidate> {
        let inside = |(i, _): &(usize, &Candidate)| set >> i & 1 == 1;
        candidates
            .iter()
            .take(n)
            .enumerate()
            .filter(inside)
            .map(|c| c.1)
            .collect()
    };
    let closed = |set: &[&Candidate]| {
        let there: BTreeSet<usize> = set.iter().map(|c| c.object).collect();
        set.iter().all(|c| c.needs.is_subset(&there))
    };
    let mut sets: Vec<u32> = (1..1_u32 << n).collect();
    let weight = |set: u32| members(set).iter().map(|c| c.weight).sum::<usize>();
    let vital = |set: u32| members(set).iter().filter(|c| c.vital).count();
    // Those without which nothing is gained first, then the largest, the heaviest, and those that come first in the
    // source.
    sets.sort_by_key(|s| {
        (
            Reverse(vital(*s)),
            Reverse(s.count_ones()),
            Reverse(weight(*s)),
            *s,
        )
    });
    for set in sets {
        let chosen = members(set);
        if !closed(&chosen) {
            continue;
        }
        if let Ok(solved) = solve(device, &chosen) {
            return (chosen.iter().map(|c| c.object).collect(), Some(solved));
        }
    }
    (BTreeSet::new(), None)
}

/// Finds those that ask for nothing beyond what others ask for.
fn subsumed(device: &Device<'_>, candidates: &mut [Candidate], name: &dyn Fn(usize) -> String) {
    let size = |of: &[&Candidate]| {
        let solved = device.solve(&meetings(device, of)).ok()?;
        Some((solved.space.index_bits(), solved.space.dimension()))
    };
    let mut gone = BTreeSet::new();
    let order = (0..candidates.len()).rev();
    let mut found = Vec::new();
    for at in order {
        let Some(c) = candidates.get(at).filter(|c| c.judged.rule == Rule::R1) else {
            continue;
        };
        let others: Vec<&Candidate> = candidates
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != at && !gone.contains(i))
            .map(|o| o.1)
            .collect();
        let by = others.iter().find(|o| {
            let alone = size(&[o]);
            alone.is_some() && alone == size(&[o, c])
        });
        if let Some(by) = by {
            found.push((at, name(by.object)));
            gone.insert(at);
        }
    }
    for (at, by) in found {
        if let Some(c) = candidates.get_mut(at) {
            let own = name(c.object);
            c.judged = subsumption::judge(c.judged.clone(), &own, &by);
        }
    }
}
