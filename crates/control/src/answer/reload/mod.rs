//! A reload: the chain becomes what its file says now, with the least change.
//!
//! Everything is made beside the chain first. What then has to be done between two bursts is one job of the worker: new
//! elements take over what they keep, parameters and entries are set, and the chain is changed. Until the last of these
//! the job can undo what it has done, and the last one cannot fail.

mod difference;
mod edits;

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use millrace_dataplane::mailbox::Desk;
use millrace_dataplane::worker::change::{self, Changed, Departed};
use millrace_object::program::Param;
use millrace_topology::Rearranged;
use serde_json::{Value, json};

use difference::{difference, planned_edits, told};
use edits::{differs, edited, gone, reloaded, set, undone};

use super::chain::{ONE, Seen, ended, together};
use super::{Result, Session};
use crate::chain::Kept;
use crate::edit::{self, Change, Done};
use crate::elements::Target;
use crate::exposed::Exposed;
use crate::protocol::Request;
use crate::reload::{How, Wanted};
use crate::trouble::Trouble;

/// What is set in the state of one element.
#[derive(Clone)]
struct Edits {
    /// its number in the run
    id: u64,
    name: String,
    exposed: Arc<Exposed>,
    params: Arc<Vec<(Param, Vec<u8>)>>,
    changes: Arc<Vec<Change>>,
}

/// A parameter that is set: its name, its value before and now.
type Shown = (String, String, String);

/// What was set in it.
#[derive(Clone, Default)]
struct Outcome {
    params: Vec<Shown>,
    /// of objects that all workers have alike
    done: Done,
    /// of those of which each worker has a part
    parts: Done,
}

impl Edits {
    fn target(&self) -> Target {
        Target {
            id: self.id,
            exposed: self.exposed.clone(),
            prefix: None,
        }
    }
}

/// What was set on all workers together, by element: what all have alike counts once.
fn whole(workers: Vec<Vec<Outcome>>) -> Vec<Outcome> {
    let mut workers = workers.into_iter();
    let mut all = workers.next().unwrap_or_default();
    for own in workers {
        for (all, own) in all.iter_mut().zip(own) {
            all.parts.set += own.parts.set;
            all.parts.deleted += own.parts.deleted;
        }
    }
    for outcome in &mut all {
        let parts = std::mem::take(&mut outcome.parts);
        outcome.done.set += parts.set;
        outcome.done.deleted += parts.deleted;
    }
    all
}

/// A chain between what it is and what it is to be.
struct Difference {
    arranged: Rearranged,
    /// elements by their names, and why they are new
    added: Vec<(String, String)>,
    replaced: Vec<(String, String)>,
    removed: Vec<String>,
    /// whether elements that stay are connected otherwise
    connected: bool,
}

impl Difference {
    /// Whether the chain is another one.
    fn any(&self) -> bool {
        let lists = self.added.is_empty() && self.replaced.is_empty() && self.removed.is_empty();
        !lists || self.connected
    }
}

impl Session {
    pub(super) fn reload(&self, request: &Request) -> Result<Value> {
        let elements = &self.context.elements;
        let source = elements.source.get().ok_or_else(|| {
            Trouble::new(
                "refused",
                "the run was started without a chain file, its elements are linked, or the kernel runs it",
            )
            .help("describe it in a file (docs/chains.md): `millrace run FILE.toml`")
        })?;
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen()?;
        let began = Instant::now();
        let wanted = source.wanted(&seen.list, request.check)?;
        let difference = difference(&seen, &wanted)?;
        if difference.any() {
            self.changes().map_err(|t| Trouble {
                what: format!("{}: {}", told(&difference), t.what),
                ..t
            })?;
        }
        // All that may fail for what the file says fails before anything is made.
        let mut kept = Vec::new();
        for planned in &wanted.elements {
            kept.push(planned_edits(&seen, planned)?);
        }
        if request.check {
            let all: Vec<_> = kept.into_iter().filter_map(|k| k.edits).collect();
            let outcomes = self.look(&all)?;
            let none = Applied::default();
            return Ok(answer(&difference, &all, &outcomes, &none, request.check));
        }
        self.apply(&seen, wanted, &difference, kept, began)
    }

    /// What would be set, in the state that the first worker has.
    fn look(&self, all: &[Edits]) -> Result<Vec<Outcome>> {
        let all = all.to_vec();
        self.first(move |desk| {
            let now = desk.now;
            let outcomes = all.iter().map(|edits| {
                let mut outcome = Outcome::default();
                if let Some(instance) = desk.state(edits.id) {
                    for (param, value) in edits.params.iter() {
                        let changed = differs(instance, &edits.exposed, param, value, now)?;
                        outcome.params.extend(changed.map(|(shown, _)| shown));
                    }
                }
                for change in edits.changes.iter() {
                    match change {
                        Change::Set { .. } | Change::Put { .. } => outcome.done.set += 1,
                        Change::Delete { .. } | Change::Clear { .. } => outcome.done.deleted += 1,
                        Change::Rules { rules, .. } => {
                            let count = rules.as_ref().map_or(0, |r| r.rules().len());
                            outcome.done.set += count as u64;
                        }
                        Change::Load { .. } | Change::Text { .. } => {}
                    }
                }
                Ok(outcome)
            });
            outcomes.collect::<Result<Vec<_>>>()
        })?
    }

    /// Makes what is new, and has the workers change all of it.
    fn apply(
        &self,
        seen: &Seen,
        wanted: Wanted,
        difference: &Difference,
        kept: Vec<Keeps>,
        began: Instant,
    ) -> Result<Value> {
        let mut list = Vec::new();
        let (mut fresh, mut keep, mut all, mut lost) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut names = Vec::new();
        for (planned, keeps) in wanted.elements.into_iter().zip(kept) {
            let old = seen.list.iter().position(|e| e.name == planned.name);
            let mut edits = keeps.edits;
            match planned.how {
                How::Stays => {
                    let mut element = old
                        .and_then(|at| seen.list.get(at).cloned())
                        .ok_or_else(|| gone(&planned.name))?;
                    element.recipe = Some(planned.recipe);
                    list.push(element);
                }
                How::New { made, .. } => {
                    let made = made.ok_or_else(|| gone(&planned.name))?;
                    let (new, mut element) = self.fresh(*made, planned.name.clone(), seen)?;
                    element.recipe = Some(planned.recipe);
                    if let Some(edits) = &mut edits {
                        edits.id = element.id;
                    }
                    if let (Some(from), Some(kept)) = (old, keeps.kept) {
                        names.push((planned.name.clone(), keeps.names));
                        lost.extend(kept.lost.into_iter().map(|l| (planned.name.clone(), l)));
                        keep.push(change::Keep {
                            from,
                            to: fresh.len(),
                            objects: kept.pairs,
                        });
                    }
                    fresh.push(new);
                    list.push(element);
                }
            }
            all.extend(edits);
        }
        let made = began.elapsed();
        let staying = |e: &Edits| seen.list.iter().any(|s| s.id == e.id);
        let done = match (self.context.mailboxes.len(), difference.any()) {
            (1, _) | (_, true) => {
                self.beside(&list)?;
                let several = self.context.mailboxes.len() > 1;
                for edits in all.iter_mut().filter(|_| several) {
                    match staying(edits) {
                        true => self.owning(edits)?,
                        false => self.placing(edits),
                    }
                }
                let change = change::Change {
                    arranged: difference.arranged.clone(),
                    fresh,
                    keep,
                };
                let succession = self.succession(&list);
                let done = self.at_once(change, all.clone())?;
                succession.done();
                done
            }
            _ => {
                for edits in &mut all {
                    self.owning(edits)?;
                }
                self.on_each(&all)?
            }
        };
        self.context.elements.now(list.clone());
        let applied = Applied {
            elements: list.iter().map(|e| e.name.clone()).collect(),
            made,
            paused: done.paused,
            kept: names
                .into_iter()
                .zip(done.kept)
                .map(|((element, objects), counts)| {
                    (element, objects.into_iter().zip(counts).collect())
                })
                .collect(),
            lost,
            facts: ended(done.departed),
        };
        Ok(answer(difference, &all, &done.outcomes, &applied, false))
    }

    /// As [`Self::owned`], of what is set in an element.
    fn owning(&self, edits: &mut Edits) -> Result<()> {
        let owned = self.owned(&edits.target(), &edits.changes);
        edits.changes = owned.map_err(|t| Trouble {
            what: format!("{}: {}", edits.name, t.what),
            ..t
        })?;
        Ok(())
    }

    /// The same in an element that comes with the change: what no worker is known to have is set where it is.
    fn placing(&self, edits: &mut Edits) {
        edits.changes = Arc::new(self.placed(&edits.target(), &edits.changes).0);
    }

    /// One job of all workers: all or nothing.
    fn at_once(&self, change: change::Change, all: Vec<Edits>) -> Result<Finished> {
        let all_edits = Arc::new(all);
        let all = all_edits.clone();
        let done = self.meet(change, move |desk, part, seat| {
            let began = Instant::now();
            (reloaded(desk, part, seat, &all), began.elapsed())
        })?;
        let paused = done.iter().map(|(_, paused)| *paused).max();
        let (mut changed, mut outcomes, mut why) = (Vec::new(), Vec::new(), None);
        for (done, _) in done {
            match done {
                Ok((own, said)) => {
                    changed.push(Ok(own));
                    outcomes.push(said);
                }
                // What was to come in ends here, and not while packets wait.
                Err(failed) => {
                    drop(failed.fresh);
                    if why.as_ref().is_none_or(|(_, elsewhere)| *elsewhere) {
                        why = Some((failed.trouble, failed.elsewhere));
                    }
                }
            }
        }
        if let Some((why, _)) = why {
            return Err(why);
        }
        for edits in all_edits.iter() {
            edit::told(&edits.changes, &edits.exposed);
        }
        let Changed { departed, kept } = together(changed).map_err(super::refused)?;
        Ok(Finished {
            departed,
            kept,
            outcomes: whole(outcomes),
            paused: paused.unwrap_or_default(),
        })
    }

    /// A job of each of several workers. What some have done is undone where another one fails.
    fn on_each(&self, all: &[Edits]) -> Result<Finished> {
        let edits = all.to_vec();
        let began = Instant::now();
        if let Some(group) = self.replicas()? {
            if self.context.elements.list().len() > 1 {
                return Err(Trouble::new(
                    "refused",
                    "a chain of which one function is replicated does not change as a whole while it runs",
                )
                .help("change entries and parameters one by one (`millrace map`, `millrace ctl set`), or end it and start it again"));
            }
            let done = self.together(&group, true, move |instance, now| {
                let mut undo = Vec::new();
                let mut outcomes = Vec::new();
                for edits in &edits {
                    let mut outcome = Outcome::default();
                    if let Err(trouble) = set((instance, 0), edits, now, &mut undo, &mut outcome) {
                        edit::undo(instance, std::mem::take(&mut undo), now);
                        return Err(trouble);
                    }
                    outcomes.push(outcome);
                }
                Ok(outcomes)
            })?;
            let outcomes = done.into_iter().next().transpose()?;
            let outcomes = whole(outcomes.into_iter().collect());
            return Ok(Finished {
                outcomes,
                paused: began.elapsed(),
                departed: Vec::new(),
                kept: Vec::new(),
            });
        }
        let done = self.each(move |desk| {
            let mut undo = Vec::new();
            match edited(desk, &edits, &mut undo, None) {
                Ok(outcomes) => Ok((outcomes, undo)),
                Err(trouble) => {
                    undone(desk, undo, None);
                    Err(trouble)
                }
            }
        })?;
        if let Some(trouble) = done.iter().find_map(|d| d.as_ref().err().cloned()) {
            let mailboxes = self.context.mailboxes.iter().zip(done);
            for (mailbox, done) in mailboxes {
                if let Ok((_, undo)) = done {
                    let mut undo = Some(undo);
                    let job = move |desk: &mut Desk<'_>| {
                        undone(desk, undo.take().unwrap_or_default(), None);
                    };
                    crate::pending::Pending::post(mailbox, job)?.wait()?;
                }
            }
            return Err(trouble);
        }
        for edits in all {
            edit::told(&edits.changes, &edits.exposed);
        }
        let done = done.into_iter().flatten().map(|(outcomes, _)| outcomes);
        Ok(Finished {
            outcomes: whole(done.collect()),
            paused: began.elapsed(),
            departed: Vec::new(),
            kept: Vec::new(),
        })
    }
}

/// What the workers have done.
struct Finished {
    departed: Vec<Departed>,
    kept: Vec<Vec<u64>>,
    outcomes: Vec<Outcome>,
    paused: Duration,
}

/// What there is to tell of a reload that was made.
#[derive(Default)]
struct Applied {
    elements: Vec<String>,
    made: Duration,
    paused: Duration,
    /// by element, object and entries
    kept: Vec<(String, Vec<(String, u64)>)>,
    /// element, object and why
    lost: Vec<(String, (String, String))>,
    facts: Vec<String>,
}

/// What is set in an element, and what it keeps of the one that it replaces.
struct Keeps {
    edits: Option<Edits>,
    kept: Option<Kept>,
    /// names of the objects that are kept
    names: Vec<String>,
}

fn answer(
    difference: &Difference,
    all: &[Edits],
    outcomes: &[Outcome],
    applied: &Applied,
    check: bool,
) -> Value {
    let whys = |list: &[(String, String)]| {
        let each = list.iter();
        let each = each.map(|(element, why)| json!({ "element": element, "why": why }));
        each.collect::<Vec<_>>()
    };
    let each = || all.iter().zip(outcomes);
    let params = each().flat_map(|(edits, outcome)| {
        let params = outcome.params.iter();
        params.map(|(name, before, now)| {
            json!({ "element": edits.name, "name": name, "before": before, "now": now })
        })
    });
    let params: Vec<_> = params.collect();
    let edited = each().filter(|(_, outcome)| outcome.done != Done::default());
    let edited = edited.map(|(edits, outcome)| {
        let done = outcome.done;
        json!({ "element": edits.name, "set": done.set, "deleted": done.deleted })
    });
    let edited: Vec<_> = edited.collect();
    let kept = applied.kept.iter().flat_map(|(element, objects)| {
        let objects = objects.iter();
        objects.map(move |(object, entries)| {
            json!({ "element": element, "object": object, "entries": entries })
        })
    });
    let lost = applied.lost.iter().map(
        |(element, (object, why))| json!({ "element": element, "object": object, "why": why }),
    );
    json!({
        "changed": difference.any() || !params.is_empty() || !edited.is_empty(),
        "applied": !check,
        "elements": applied.elements,
        "added": whys(&difference.added),
        "replaced": whys(&difference.replaced),
        "removed": difference.removed,
        "connected": difference.connected,
        "params": params,
        "entries": edited,
        "kept": kept.collect::<Vec<_>>(),
        "lost": lost.collect::<Vec<_>>(),
        "facts": applied.facts,
        "made_ms": applied.made.as_secs_f64() * 1e3,
        "paused_us": applied.paused.as_secs_f64() * 1e6,
    })
}
