//! Changes of a chain while it runs.
//!
//! What is new is made beside the chain, by whoever asks: a module is loaded and its state is mapped, a guest is
//! started until it asks for packets. Then a job is left in the mailbox of each worker ([`crate::mailbox`]), which puts it in
//! between two bursts: no packet is inside of the chain then, so none is lost, doubled or overtaken. What was taken out
//! goes back to who asked, and ends there: a program may write for long what it has found.
//!
//! Several workers meet for that ([`Seat`]): all of them stand between two bursts from before the first one changes
//! something until the last one could still have refused. A worker keeps what it has: packets of a flow come to the same one before and behind it.
//! What all workers have in common is the first one's to take up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millrace_topology::{Rearranged, Topology};

use super::Shared;
use super::chain::{self, Chain, Code, Link};
use super::counters::OfStage;
use super::foreign::Epilogue;
use super::lives::Life;
use super::meeting::Seat;
use super::stage::Stage;
use super::watch::Watch;
use crate::module::{Entry, Instance, ModuleError};
use crate::share::Share;

/// The chain of a run, between two bursts of a worker.
pub struct Live<'a> {
    pub(super) chain: &'a mut Chain,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) clock: u64,
    pub(super) worker: usize,
}

/// An element that has been made for each worker and is in no chain yet.
pub struct Fresh {
    /// by worker
    stages: Vec<Stage>,
    records: bool,
    /// what its objects hold beside what they take up of others
    entries: Vec<Entry>,
}

/// One worker's part of a new element.
pub struct Own {
    stage: Stage,
    records: bool,
    entries: Vec<Entry>,
}

/// A worker's part of an element that has been taken out of a chain. All parts of it must be told to end: [`finish`].
pub struct Departed {
    stage: Stage,
    shared: Arc<Shared>,
    clock: u64,
}

/// What is to be changed.
pub struct Change {
    /// the chain as it is to be
    pub arranged: Rearranged,
    /// the elements that are new in it, in its order
    pub fresh: Vec<Fresh>,
    /// what new elements keep of those that go
    pub keep: Vec<Keep>,
}

/// What one worker is to change.
pub struct Part {
    arranged: Rearranged,
    fresh: Vec<Own>,
    keep: Vec<Keep>,
}

/// Objects whose entries a new element keeps.
#[derive(Clone)]
pub struct Keep {
    /// the place in the chain of the element that has them
    pub from: usize,
    /// the place of the new one in [`Change::fresh`]
    pub to: usize,
    /// for each object its index there, and here
    pub objects: Vec<(usize, usize)>,
}

/// A worker's part of a change, whose new elements have what they keep: it can be made, and cannot fail any more.
pub struct Prepared {
    arranged: Rearranged,
    fresh: Vec<Own>,
    kept: Vec<Vec<u64>>,
}

/// Why a chain was not changed, and the elements that were to come into it: whoever asked lets them end, since that may
/// take long.
pub struct Refused {
    /// why
    pub why: ModuleError,
    /// it is another worker that refuses
    pub elsewhere: bool,
    /// the new elements
    pub fresh: Vec<Own>,
}

/// What has been changed.
#[derive(Default)]
pub struct Changed {
    /// elements that are in the chain no more
    pub departed: Vec<Departed>,
    /// entries that were kept, by member of [`Change::keep`] and its objects; of what all workers have alike, the first one's say
    pub kept: Vec<Vec<u64>>,
}

impl Change {
    /// The part of each of so many workers, for which the new elements were made.
    #[must_use]
    pub fn parts(self, workers: usize) -> Vec<Part> {
        let Self {
            arranged,
            fresh,
            keep,
        } = self;
        let part = |_| Part {
            arranged: arranged.clone(),
            fresh: Vec::new(),
            keep: keep.clone(),
        };
        let mut parts: Vec<_> = (0..workers).map(part).collect();
        for Fresh {
            stages,
            records,
            entries,
        } in fresh
        {
            for ((part, stage), worker) in parts.iter_mut().zip(stages).zip(0..) {
                let own = |entry: &&Entry| entry.worker.is_none_or(|w| w == worker);
                part.fresh.push(Own {
                    stage,
                    records,
                    entries: entries.iter().filter(own).cloned().collect(),
                });
            }
        }
        parts
    }
}

impl Part {
    /// The new elements, of a change that is not made.
    #[must_use]
    pub fn given_up(self) -> Vec<Own> {
        self.fresh
    }
}

impl Prepared {
    /// The state of one of the new elements; none when there is no such, or it is no function.
    pub fn state(&mut self, element: u64) -> Option<&mut Instance> {
        let mut fresh = self.fresh.iter_mut();
        let found = fresh.find(|f| f.stage.life.id == element)?;
        found.stage.instance()
    }

    /// The new elements, of a change that is not made.
    #[must_use]
    pub fn given_up(self) -> Vec<Own> {
        self.fresh
    }
}

impl Fresh {
    /// Makes an element for a run of so many workers; `start` is a time of its packets, ns since the epoch. `ON_START` and
    /// timers begin when it is put in.
    ///
    /// # Errors
    /// [`ModuleError::Create`] when its state cannot be made.
    pub fn make(link: &Link, id: u64, start: u64, workers: usize) -> Result<Self, ModuleError> {
        let workers = workers.max(1);
        let common = chain::common(std::slice::from_ref(link), workers)?;
        let shared = common.first().and_then(Option::as_ref);
        let life = Arc::new(Life::of(id, link, workers));
        let entries = match &link.code {
            Code::Module(code) => code.config.entries.clone(),
            Code::Foreign(_) | Code::Classed(_) => Vec::new(),
        };
        let stages = (0..workers).map(|worker| Stage::new(link, &life, shared, worker, start));
        Ok(Self {
            entries,
            records: link.objects().iter().any(|o| o.records),
            stages: stages.collect::<Result<_, _>>()?,
        })
    }
}

impl Live<'_> {
    /// The state of an element; none when there is no such, or it is no function.
    pub fn state(&mut self, element: u64) -> Option<&mut Instance> {
        let mut stages = self.chain.stages.iter_mut();
        stages.find(|s| s.life.id == element)?.instance()
    }

    /// The first worker's replica of an element's heavy keys, where only these are replicated; none at other workers.
    pub fn heavy(&mut self, element: u64) -> Option<&mut Instance> {
        let mut stages = self.chain.stages.iter_mut();
        stages.find(|s| s.life.id == element)?.heavy()
    }

    /// Who watches the packets.
    pub(crate) fn watch(&mut self) -> &mut Watch {
        &mut self.chain.watch
    }

    /// Whether the state of one of the elements is replicated.
    #[must_use]
    pub fn is_replicated(&self) -> bool {
        self.chain.stages.iter().any(|s| s.replica().is_some())
    }

    /// How the elements are connected.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.chain.topology
    }

    /// The numbers of the elements, in their order.
    #[must_use]
    pub fn elements(&self) -> Vec<u64> {
        self.chain.stages.iter().map(|s| s.life.id).collect()
    }

    /// A number for a new element.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.shared.lives.number()
    }

    /// Changes the chain, wholly or not at all, and as all other workers do.
    ///
    /// # Errors
    /// As of [`Live::prepare`].
    pub fn change(&mut self, part: Part, seat: Seat) -> Result<Changed, Box<Refused>> {
        let prepared = self.prepare(part, &seat)?;
        let changed = self.commit(prepared);
        seat.leave();
        Ok(changed)
    }

    /// Has new elements begin, with what they keep; the chain is as it was. What is prepared is made in the same job, or
    /// never; by all workers, which all have prepared behind this, or by none.
    ///
    /// # Errors
    /// A state that was to be kept cannot be, at this worker or another one; or another one has not come.
    pub fn prepare(&mut self, part: Part, seat: &Seat) -> Result<Prepared, Box<Refused>> {
        let Part {
            arranged,
            mut fresh,
            keep,
        } = part;
        let refused = |what: &str, elsewhere, fresh| {
            let why = ModuleError::Create {
                path: "the chain".into(),
                what: what.into(),
            };
            Box::new(Refused {
                why,
                elsewhere,
                fresh,
            })
        };
        const LATE: &str =
            "a worker did not come to change it with the others, and nothing was changed";
        const OTHER: &str = "another worker cannot change it";
        let news = arranged.was.iter().filter(|w| w.is_none()).count();
        let old = arranged.was.iter().flatten().max();
        let there = old.is_none_or(|o| *o < self.chain.stages.len());
        let fits =
            news == fresh.len() && there && arranged.topology.elements() == arranged.was.len();
        // From here on no worker runs packets.
        match seat.meet(fits) {
            Some(true) => {}
            Some(false) => return Err(refused("it has changed meanwhile", false, fresh)),
            None => return Err(refused(LATE, true, fresh)),
        }
        let mut kept: Vec<Vec<u64>> = keep.iter().map(|_| Vec::new()).collect();
        for (at, new) in fresh.iter_mut().enumerate() {
            let took = keep.iter().find(|k| k.to == at);
            let from = took.and_then(|k| self.chain.stages.get_mut(k.from));
            let objects = took.map_or(&[][..], |k| &k.objects);
            // What takes up all of its state does not begin: `ON_START` has run, and timers go on.
            match &from {
                Some(from) if new.stage.lacks(objects).is_empty() => {
                    new.stage.follow(from, self.clock);
                }
                _ => new.stage.begin(self.clock),
            }
        }
        // What all workers have in common is taken up behind the last `ON_START`.
        if seat.meet(true).is_none() {
            return Err(refused(LATE, true, fresh));
        }
        let mut failed = None;
        for (keep, counts) in keep.iter().zip(&mut kept) {
            let from = self.chain.stages.get_mut(keep.from);
            let (Some(from), Some(new)) = (from, fresh.get_mut(keep.to)) else {
                continue;
            };
            if keep.objects.is_empty() {
                continue;
            }
            // Records are the host's before positions are taken over.
            self.shared.records(from, self.clock, None);
            match taken_up(from, new, &keep.objects, self.clock) {
                Ok(taken) => *counts = taken,
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        match (seat.meet(failed.is_none()), failed) {
            (Some(true), _) => Ok(Prepared {
                arranged,
                fresh,
                kept,
            }),
            (_, Some(why)) => Err(Box::new(Refused {
                why,
                elsewhere: false,
                fresh,
            })),
            (Some(false), None) => Err(refused(OTHER, true, fresh)),
            (None, None) => Err(refused(LATE, true, fresh)),
        }
    }

    /// Makes a change that was prepared in this job.
    pub fn commit(&mut self, prepared: Prepared) -> Changed {
        let Prepared {
            arranged,
            fresh,
            kept,
        } = prepared;
        if fresh.iter().any(|f| f.records) {
            self.shared.has_records.store(true, Ordering::Relaxed);
        }
        let stages = fresh.into_iter().map(|f| f.stage).collect();
        let departed = self
            .chain
            .rearrange(arranged.topology, &arranged.was, stages);
        if self.worker == 0 {
            let present = self.chain.stages.iter().map(|s| s.life.clone());
            let workers = self.shared.workers();
            self.shared.lives.now(present.collect(), workers);
        }
        let departed = departed.into_iter().map(|stage| Departed {
            stage,
            shared: self.shared.clone(),
            clock: self.clock,
        });
        Changed {
            departed: departed.collect(),
            kept,
        }
    }
}

/// Has objects take up what those of another element are at this worker, exactly; says how many entries of each.
fn taken_up(
    from: &mut Stage,
    fresh: &mut Own,
    keep: &[(usize, usize)],
    now: u64,
) -> Result<Vec<u64>, ModuleError> {
    let (before, shares) = (from.shares.clone(), fresh.stage.shares.clone());
    let (Some(from), Some(to)) = (from.instance(), fresh.stage.instance()) else {
        return Ok(Vec::new());
    };
    let first = to.worker() == 0;
    let mut counts = Vec::with_capacity(keep.len());
    for (old, new) in keep {
        let mine = first || !to.module().is_shared(*new);
        let taken = match mine {
            true => {
                let content = from.save(*old, now)?;
                to.load(*new, &content, now, 0)?
            }
            false => 0,
        };
        // Of what all have alike the first one's count, as elements that all have do.
        let kind = to.module().objects().get(*new).map(|o| o.kind);
        let own = shares.get(*new).is_some_and(Share::divided);
        let counts_here = first || (own && kind.is_some_and(|kind| !kind.has_all()));
        counts.push(if counts_here { taken } else { 0 });
        if let (true, Some(old), Some(new)) = (first, before.get(*old), shares.get(*new)) {
            new.before.clear();
            for (key, value) in old.before.all() {
                new.before.set(&key, &value);
            }
        }
    }
    // What is named now counts, after what there was.
    let taken = |e: &&Entry| keep.iter().any(|(_, new)| *new == e.object);
    for entry in fresh.entries.iter().filter(taken) {
        if first || !to.module().is_shared(entry.object) {
            to.set(entry.object, &entry.key, &entry.value, now)?;
        }
    }
    // Timers that have fired are counted where they did.
    fresh.stage.alarms = fresh.stage.alarms_fired();
    Ok(counts)
}

impl Departed {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.stage.life.name
    }

    /// Its number in the run.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.stage.life.id
    }
}

/// Has an element end, of which these are the parts of all workers, in their order: `ON_STOP` of a function, the end of packets of a
/// guest, which may take as long as a guest may. What there is to know of it.
#[must_use]
pub fn finish(parts: Vec<Departed>) -> Vec<String> {
    let mut facts = Vec::new();
    let mut first: Option<(Arc<Life>, Arc<Shared>)> = None;
    let (mut epilogue, mut all): (Option<Epilogue>, u64) = (None, 0);
    let workers = parts.len();
    for Departed {
        mut stage,
        shared,
        clock,
    } in parts
    {
        stage.stop(clock);
        shared.records(&mut stage, clock, None);
        all += stage.alarms_fired().saturating_sub(stage.alarms);
        if let Some(own) = stage.epilogue.take() {
            let whole = epilogue.get_or_insert_default();
            whole.memory += own.memory;
            whole.facts.extend(own.facts);
            whole.failure = whole.failure.take().or(own.failure);
        }
        first.get_or_insert_with(|| (stage.life.clone(), shared));
    }
    let Some((life, shared)) = first else {
        return facts;
    };
    let name = &life.name;
    if let Some(epilogue) = &epilogue {
        let failure = epilogue.failure.iter();
        facts.extend(failure.map(|(what, _)| format!("{name}: {what}")));
        facts.extend(epilogue.facts.iter().map(|fact| format!("{name}: {fact}")));
    }
    let packets: u64 = (0..workers).map(|w| life.get(w, OfStage::Packets)).sum();
    facts.push(format!("{name}: {packets} packets went through it"));
    shared.lives.ended(&life, epilogue, all);
    facts
}
