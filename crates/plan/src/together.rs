//! Choice of the objects, each shardable alone, that are sharded together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use millrace_object::program::Program;
use millrace_steer::keys::Unsolved;

use crate::choose::Candidate;
use crate::constraints::Meeting;
use crate::plan::Rule;
use crate::rules::{Answer, disjoint, incompatible, subsumption};
use crate::solved::{Answered, Device, NoKeys, Solved, why};

/// More objects than this are not tried in all combinations.
const MOST: usize = 12;

/// Keys for all of these together, under which every index has numbers of those that come home.
fn solve(device: &Device<'_>, all: &[&Candidate]) -> Answered {
    let solved = device.solve(&meetings(device, all))?;
    let poor = |c: &&Candidate| {
        let home = c.by.home.as_ref();
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
        .unique(of.iter().flat_map(|c| c.by.meetings.clone()).collect())
}

/// Keys under which all that could be sharded one by one is sharded together, if there are any; what relies on others
/// that are not sharded is judged and taken out. None if nothing could be sharded.
pub(crate) fn all(
    program: &Program,
    device: &Device<'_>,
    candidates: &mut Vec<Candidate>,
    answers: &mut BTreeMap<usize, Answer>,
) -> Option<Answered> {
    relying(candidates, answers, &|object| name(program, object));
    let every: Vec<&Candidate> = candidates.iter().collect();
    (!every.is_empty()).then(|| solve(device, &every))
}

/// The most that can be sharded together, where it was found out whether all can; the others are judged and taken out.
pub(crate) fn most(
    program: &Program,
    device: &Device<'_>,
    (candidates, all): (&mut Vec<Candidate>, Answered),
    answers: &mut BTreeMap<usize, Answer>,
) -> Option<Rc<Solved>> {
    let solved = match all {
        Ok(solved) => Some(solved),
        Err(e) => without(program, device, (candidates, &e), answers),
    };
    subsumed(device, candidates, &|object| name(program, object));
    if let Some(solved) = &solved {
        for c in candidates
            .iter_mut()
            .filter(|c| solved.pins(&c.by.meetings))
        {
            let more = "; beside the others' keys there is none for its packets: all of them are on one core";
            c.said.reason.push_str(more);
        }
    }
    solved
}

/// The heaviest set, where not all can; the others are judged and taken out.
fn without(
    program: &Program,
    device: &Device<'_>,
    (candidates, no): (&mut Vec<Candidate>, &NoKeys),
    answers: &mut BTreeMap<usize, Answer>,
) -> Option<Rc<Solved>> {
    let (proved, text) = why(no, &program.ports);
    let (kept, solved) = largest(device, candidates);
    let names: Vec<String> = kept.iter().map(|o| name(program, *o)).collect();
    for c in std::mem::take(candidates) {
        if kept.contains(&c.object) {
            candidates.push(c);
            continue;
        }
        let own = name(program, c.object);
        let barred = disjoint::judge(c.said, &own, &names, &text, proved);
        answers.insert(c.object, Answer::Not(barred));
    }
    solved
}

fn name(program: &Program, object: usize) -> String {
    let declared = program.objects.get(object);
    declared.map_or_else(String::new, |o| o.name.clone())
}

/// Takes out those that rely on what is not sharded.
fn relying(
    candidates: &mut Vec<Candidate>,
    answers: &mut BTreeMap<usize, Answer>,
    name: &dyn Fn(usize) -> String,
) {
    loop {
        let there: BTreeSet<usize> = candidates.iter().map(|c| c.object).collect();
        let lost = candidates
            .iter()
            .position(|c| !c.by.needs.is_subset(&there));
        let Some(at) = lost else { return };
        let c = candidates.remove(at);
        let from = c.by.needs.difference(&there).next();
        let (own, from) = (name(c.object), from.map_or_else(String::new, |f| name(*f)));
        let barred = incompatible::relying(&own, &from, c.said.line);
        answers.insert(c.object, Answer::Not(barred));
    }
}

/// The heaviest set that can be sharded together.
fn largest(device: &Device<'_>, candidates: &[Candidate]) -> (BTreeSet<usize>, Option<Rc<Solved>>) {
    let n = candidates.len().min(MOST);
    let members = |set: u32| -> Vec<&Candidate> {
        let all = candidates.iter().enumerate().take(n);
        let inside = all.filter(|(i, _)| set >> i & 1 == 1);
        inside.map(|c| c.1).collect()
    };
    let closed = |set: &[&Candidate]| {
        let there: BTreeSet<usize> = set.iter().map(|c| c.object).collect();
        set.iter().all(|c| c.by.needs.is_subset(&there))
    };
    let mut sets: Vec<u32> = (1..1_u32 << n).collect();
    let weight = |set: u32| members(set).iter().map(|c| c.weight).sum::<usize>();
    let vital = |set: u32| members(set).iter().filter(|c| c.vital).count();
    // Those without which nothing is gained first, then the largest, the heaviest, and those that come first in the
    // source.
    sets.sort_by_cached_key(|s| {
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
        let Some(c) = candidates.get(at).filter(|c| c.said.rule == Rule::R1) else {
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
            subsumption::judge(&mut c.said, &own, &by);
        }
    }
}
