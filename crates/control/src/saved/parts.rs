//! The state that the parts of all workers are, and what each worker takes up of one.

use millrace_dataplane::module::Keeping;
use millrace_dataplane::worker::keep::{Part, StagePart};
use millrace_object::state::{self, StateKind};
use millrace_place::Held;
use millrace_state::{Element, Front, Identity, Object, State};

use super::{Named, unfit};
use crate::exposed::Exposed;
use crate::joined::{self, COPIED};
use crate::trouble::Trouble;

/// The most workers of a run that left a state: what others would need is not read.
pub(super) const MOST_WORKERS: usize = 1024;
/// Bytes of a piece without key and value: what it is, which numbers it has, and 7 numbers.
pub(super) const PIECE: u64 = 2 + 7 * 10;
/// Bytes for the front, for each element, and for its timers on each worker.
pub(super) const BESIDES: u64 = 1 << 16;

/// The most bytes that a state of these elements takes: each place of each object as an entry, free in between, and as an
/// element that held something at start; what is saved as bytes has no more than the object maps.
pub(super) fn most(elements: &[Named<'_>], workers: usize) -> u64 {
    let workers = (workers as u64).max(1);
    let object = |exposed: &Exposed, at: usize| {
        let Ok(info) = exposed.info(at) else { return 0 };
        let entry = (info.key_bytes as u64 + info.value_bytes as u64).saturating_add(PIECE);
        let entries = info.capacity.saturating_add(2).saturating_mul(2);
        let part = entries
            .saturating_mul(entry)
            .saturating_add(info.bytes.saturating_mul(2));
        part.saturating_mul(workers.saturating_add(1))
            .saturating_add(identity(exposed, at).detail.len() as u64 + BESIDES)
    };
    let element = |exposed: &Exposed| {
        let objects = (0..exposed.objects.len()).map(|at| object(exposed, at));
        objects.fold(BESIDES.saturating_mul(workers + 1), u64::saturating_add)
    };
    let all = elements.iter().map(|(_, exposed)| element(exposed));
    all.fold(Front::MOST as u64, u64::saturating_add)
}

/// Refuses a run whose state cannot be kept.
///
/// # Errors
/// An object cannot be, with the reason.
pub fn keepable(elements: &[Named<'_>]) -> Result<(), Trouble> {
    let mut never = Vec::new();
    for (name, exposed) in elements {
        for (at, (info, _)) in exposed.objects.iter().enumerate() {
            if let Keeping::Never(why) = exposed.keeping(at) {
                never.push(format!("{name}: {}: {why}", info.name));
            }
        }
    }
    match never.is_empty() {
        true => Ok(()),
        false => Err(Trouble::new(
            "refused",
            format!("--state: it cannot be kept: {}", never.join("; ")),
        )
        .help("leave --state out")),
    }
}

/// The state that the parts of all workers are.
#[must_use]
pub fn state(parts: Vec<Part>, elements: &[Named<'_>], seed: u64, steering: Vec<u8>) -> State {
    let mut state = State {
        time: parts.iter().map(|p| p.time).max().unwrap_or(0),
        seed,
        numbers: parts.iter().map(|p| p.packets).collect(),
        steering,
        elements: Vec::new(),
    };
    let last = parts.iter().map(|p| p.order).max().unwrap_or(0);
    for (worker, part) in parts.into_iter().enumerate() {
        for stage in part.stages {
            // A run over captures has one element, which needs no name there.
            let named = match elements {
                [one] => Some(one),
                _ => elements.iter().find(|(name, _)| *name == stage.name),
            };
            let Some((name, exposed)) = named else {
                continue;
            };
            if worker == 0 {
                state.elements.push(Element {
                    name: (*name).to_owned(),
                    timers: Vec::new(),
                    objects: objects(exposed, &stage),
                });
            }
            let Some(element) = state.elements.iter_mut().find(|e| e.name == *name) else {
                continue;
            };
            element.timers.push(stage.timers);
            let contents = stage.contents.into_iter().flatten();
            for (object, content) in element.objects.iter_mut().zip(contents) {
                // What all share is as the last worker has it; what all have alike, as any.
                let held = object.identity.held.as_str();
                if held == LOCKED && part.order != last || held == REPLICATED && worker > 0 {
                    continue;
                }
                object.parts.push(content);
            }
        }
    }
    state
}

/// What is said of an object that all workers share.
pub(crate) const LOCKED: &str = "locked";
/// What is said of one that all workers have alike.
pub(crate) const REPLICATED: &str = "replicated";

/// The objects of an element that are kept, without their contents.
pub(super) fn objects(exposed: &Exposed, stage: &StagePart) -> Vec<Object> {
    let kept = stage.contents.iter().enumerate();
    kept.filter(|(_, content)| content.is_some())
        .map(|(at, _)| Object {
            identity: identity(exposed, at),
            parts: Vec::new(),
            before: stage.before.get(at).cloned().unwrap_or_default(),
        })
        .collect()
}

pub(super) fn identity(exposed: &Exposed, at: usize) -> Identity {
    let Ok(info) = exposed.info(at) else {
        return Identity::default();
    };
    let held = match &exposed.share(at).held {
        Held::Copied => "copied",
        Held::Alone => "alone",
        // One for all workers, with the same content whether they lock it or not.
        Held::Locked | Held::Transacted => LOCKED,
        Held::Own { .. } => "own",
        Held::Replicated => REPLICATED,
        Held::Divided => "divided",
        Held::Merged { .. } => "merged",
    };
    let types = exposed.types.get(&info.name);
    let types = types.map_or_else(String::new, |t| format!("{:?} {:?}", t.key, t.value));
    Identity {
        name: info.name.clone(),
        kind: info.kind.name.to_owned(),
        key_bytes: info.key_bytes as u64,
        value_bytes: info.value_bytes as u64,
        capacity: info.capacity,
        held: held.to_owned(),
        detail: [exposed.detail(at), &types].join("; "),
    }
}

/// What each worker takes up of a state. On another number of workers than before, all state is made one, for one worker or
/// for several that share it.
///
/// # Errors
/// The state is that of other elements or objects, or cannot be that of so many workers; all that differs is named.
pub fn parts(state: State, elements: &[Named<'_>], workers: usize) -> Result<Vec<Part>, Trouble> {
    let differs = |what: String| {
        unfit(format!(
            "--state: what was saved does not fit this run: {what}"
        ))
    };
    let before = state.numbers.len();
    // No two packets have one number: those of new workers begin behind all.
    let all = state
        .numbers
        .iter()
        .fold(0_u64, |n, m| n.saturating_add(*m));
    let packets = |worker: usize| match state.numbers.get(worker) {
        Some(own) if before == workers => *own,
        _ => all,
    };
    let mut parts: Vec<_> = (0..workers)
        .map(|worker| Part {
            time: state.time,
            packets: packets(worker),
            ..Part::default()
        })
        .collect();
    let mut wrong = Vec::new();
    for saved in &state.elements {
        if !elements.iter().any(|(name, _)| *name == saved.name) {
            wrong.push(format!("there is no element `{}`", saved.name));
        }
    }
    let mut saved = state.elements;
    for (name, exposed) in elements {
        let found = saved.iter().position(|e| e.name == *name);
        let element = found.map(|at| saved.swap_remove(at));
        let Some(mut element) = element else {
            wrong.push(format!("element `{name}` is new"));
            continue;
        };
        let mut timers = std::mem::take(&mut element.timers);
        if timers.len() != before {
            return Err(differs(format!("timers of {} workers", timers.len())));
        }
        // Each worker's fire at the same moments of the packets' time.
        if before != workers {
            let first = timers.first().cloned().unwrap_or_default();
            timers = vec![first; workers];
        }
        for (part, timers) in parts.iter_mut().zip(timers) {
            part.stages.push(StagePart {
                name: (*name).to_owned(),
                timers,
                ..StagePart::default()
            });
        }
        let mut missing = fits(&mut element, exposed, before, &mut parts);
        wrong.extend(missing.drain(..).map(|why| format!("{name}: {why}")));
    }
    match wrong.is_empty() {
        true => Ok(parts),
        false if before != workers => Err(differs(format!(
            "{before} cores before, {workers} now: {}",
            wrong.join("; ")
        ))
        .help(format!(
            "run it on --cores {before}, as it was saved; what workers had parts of, one core can take up, or several with \
             --strategy lock; or begin without it: --anew replaces it at the end"
        ))),
        false => Err(differs(wrong.join("; "))),
    }
}

/// Puts the objects of an element into the last stage of each part; why that cannot be.
pub(super) fn fits(
    element: &mut Element,
    exposed: &Exposed,
    before: usize,
    parts: &mut [Part],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let workers = parts.len();
    let objects: Vec<_> = (0..exposed.objects.len())
        .filter(|at| exposed.keeping(*at) != Keeping::Nothing)
        .map(|at| identity(exposed, at))
        .collect();
    for saved in &mut element.objects {
        let of = &saved.identity;
        let Some(now) = objects.iter().find(|o| o.name == of.name) else {
            wrong.push(format!("{}: there is no such object", of.name));
            continue;
        };
        // What is one for all workers, or alike on all, stays so.
        let one = |held: &str| held == LOCKED || held == REPLICATED;
        let alike = |held: &str| one(held) || held == COPIED;
        if before != workers || of.held != now.held && alike(&of.held) && alike(&now.held) {
            let same = Identity {
                held: now.held.clone(),
                ..of.clone()
            };
            let fits = unlike(&same, now).map_or(Ok(()), Err);
            match fits.and_then(|()| joined::contents(saved, now, workers)) {
                Ok(contents) => saved.parts = contents,
                Err(why) => wrong.push(format!("{}: {why}", now.name)),
            }
            continue;
        }
        if let Some(why) = unlike(of, now) {
            wrong.push(format!("{}: {why}", of.name));
        }
        let there = if one(&now.held) { 1 } else { workers };
        if saved.parts.len() != there {
            wrong.push(format!(
                "{}: {} parts, and not {there}",
                of.name,
                saved.parts.len()
            ));
        }
    }
    for now in &objects {
        if !element.objects.iter().any(|o| o.identity.name == now.name) {
            wrong.push(format!("{}: this object is new", now.name));
        }
    }
    if !wrong.is_empty() {
        return wrong;
    }
    for at in 0..exposed.objects.len() {
        let name = exposed.info(at).map_or("", |o| o.name.as_str());
        let saved = element.objects.iter_mut().find(|o| o.identity.name == name);
        let saved = saved.filter(|_| exposed.keeping(at) != Keeping::Nothing);
        let (mut contents, before) = match saved {
            Some(saved) => (
                std::mem::take(&mut saved.parts),
                std::mem::take(&mut saved.before),
            ),
            None => (Vec::new(), Vec::new()),
        };
        contents.reverse();
        let one = contents.len() == 1 && workers > 1;
        let copies = exposed.share(at).held == Held::Replicated;
        for (worker, part) in parts.iter_mut().enumerate() {
            let Some(stage) = part.stages.last_mut() else {
                continue;
            };
            // What all share is loaded once, by the first.
            let content = match () {
                () if one && copies => contents.first().cloned(),
                () if one && worker > 0 => None,
                () => contents.pop(),
            };
            stage.contents.push(content);
            stage.before.push(before.clone());
            stage.whole = true;
        }
    }
    Vec::new()
}

/// Why an object is not what another one was; none where it is.
pub(super) fn unlike(saved: &Identity, now: &Identity) -> Option<String> {
    if saved.kind != now.kind {
        return Some(format!("{} before, {} now", saved.kind, now.kind));
    }
    if (saved.key_bytes, saved.value_bytes) != (now.key_bytes, now.value_bytes) {
        return Some(format!(
            "entries of {} + {} bytes before, {} + {} now",
            saved.key_bytes, saved.value_bytes, now.key_bytes, now.value_bytes
        ));
    }
    if now.capacity < saved.capacity {
        return Some(format!(
            "{} entries fit, {} did before",
            now.capacity, saved.capacity
        ));
    }
    if saved.held != now.held {
        return Some(format!(
            "{} on the workers before, {} now",
            saved.held, now.held
        ));
    }
    let variables = state::by_name(&now.kind).is_some_and(StateKind::is_global);
    (saved.detail != now.detail).then(|| match variables {
        true => "variables may lie elsewhere, as the code is another".to_owned(),
        false => "what its keys, values or functions are is declared differently".to_owned(),
    })
}
