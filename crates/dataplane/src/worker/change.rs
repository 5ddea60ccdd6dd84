//! Changes of a chain while it runs, on one worker.
//!
//! What is new is made beside the chain, by whoever asks: a module is loaded and its state is mapped, a guest is
//! started until it asks for packets. Then a job is left in the worker's mailbox ([`crate::mailbox`]), which puts it in
//! between two bursts: no packet is inside of the chain then, so none is lost, doubled or overtaken. What was taken out
//! goes back to who asked, and ends there: a program may write for long what it has found.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millrace_topology::{Rearranged, Topology};

use super::Shared;
use super::chain::{self, Chain, Code, Link};
use super::counters::OfStage;
use super::lives::Life;
use super::stage::Stage;
use super::watch::Watch;
use crate::module::{Entry, Instance, ModuleError};

/// The chain of a run, between two bursts.
pub struct Live<'a> {
    pub(super) chain: &'a mut Chain,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) clock: u64,
}

/// An element that has been made and is in no chain yet.
pub struct Fresh {
    stage: Stage,
    records: bool,
    /// what its objects hold beside what they take up of others
    entries: Vec<Entry>,
}

/// An element that has been taken out of a chain. It must be told to end: [`Departed::finish`].
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

/// Objects whose entries a new element keeps.
pub struct Keep {
    /// the place in the chain of the element that has them
    pub from: usize,
    /// the place of the new one in [`Change::fresh`]
    pub to: usize,
    /// for each object its index there, and here
    pub objects: Vec<(usize, usize)>,
}

/// A change whose new elements have what they keep: it can be made, and cannot fail any more.
pub struct Prepared {
    arranged: Rearranged,
    fresh: Vec<Fresh>,
    kept: Vec<Vec<u64>>,
}

/// Why a chain was not changed, and the elements that were to come into it: whoever asked lets them end, since that may
/// take long.
pub struct Refused {
    /// why
    pub why: ModuleError,
    /// the new elements
    pub fresh: Vec<Fresh>,
}

/// What has been changed.
#[derive(Default)]
pub struct Changed {
    /// elements that are in the chain no more
    pub departed: Vec<Departed>,
    /// entries that were kept, by member of [`Change::keep`] and its objects
    pub kept: Vec<Vec<u64>>,
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
    pub fn given_up(self) -> Vec<Fresh> {
        self.fresh
    }
}

impl Fresh {
    /// Makes an element for a run of one worker; `start` is a time of its packets, ns since the epoch. `ON_START` and
    /// timers begin when it is put in.
    ///
    /// # Errors
    /// [`ModuleError::Create`] when its state cannot be made.
    pub fn make(link: &Link, id: u64, start: u64) -> Result<Self, ModuleError> {
        let common = chain::common(std::slice::from_ref(link), 1)?;
        let shared = common.first().and_then(Option::as_ref);
        let life = Arc::new(Life::of(id, link, 1));
        let entries = match &link.code {
            Code::Module(code) => code.config.entries.clone(),
            Code::Foreign(_) | Code::Classed(_) => Vec::new(),
        };
        Ok(Self {
            entries,
            records: link.objects().iter().any(|o| o.records),
            stage: Stage::new(link, &life, shared, 0, start)?,
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

    /// Changes the chain, wholly or not at all.
    ///
    /// # Errors
    /// As of [`Live::prepare`].
    pub fn change(&mut self, change: Change) -> Result<Changed, Box<Refused>> {
        self.prepare(change).map(|prepared| self.commit(prepared))
    }

    /// Has new elements begin, with what they keep; the chain is as it was. What is prepared is made in the same job, or
    /// never.
    ///
    /// # Errors
    /// The run has several workers, or a state that was to be kept cannot be.
    pub fn prepare(&mut self, change: Change) -> Result<Prepared, Box<Refused>> {
        let Change {
            arranged,
            mut fresh,
            keep,
        } = change;
        let refused = |what: &str, fresh| {
            let why = ModuleError::Create {
                path: "the chain".into(),
                what: what.into(),
            };
            Box::new(Refused { why, fresh })
        };
        if self.shared.workers() > 1 {
            return Err(refused("that of several workers cannot be changed", fresh));
        }
        let news = arranged.was.iter().filter(|w| w.is_none()).count();
        let old = arranged.was.iter().flatten().max();
        let there = old.is_none_or(|o| *o < self.chain.stages.len());
        if news != fresh.len() || !there || arranged.topology.elements() != arranged.was.len() {
            return Err(refused("it has changed meanwhile", fresh));
        }
        let mut kept: Vec<Vec<u64>> = keep.iter().map(|_| Vec::new()).collect();
        for (at, new) in fresh.iter_mut().enumerate() {
            let took = keep.iter().zip(&mut kept).find(|(k, _)| k.to == at);
            let from = took.as_ref().map(|(k, _)| k.from);
            let from = from.and_then(|from| self.chain.stages.get_mut(from));
            let objects = took.as_ref().map_or(&[][..], |(k, _)| &k.objects);
            // What takes up all of its state does not begin: `ON_START` has run, and timers go on.
            match &from {
                Some(from) if new.stage.lacks(objects).is_empty() => {
                    new.stage.follow(from, self.clock);
                }
                _ => new.stage.begin(self.clock),
            }
            let (Some(from), Some((_, counts))) = (from.filter(|_| !objects.is_empty()), took)
            else {
                continue;
            };
            // Records are the host's before positions are taken over.
            self.shared.records(from, self.clock, None);
            match taken_up(from, new, objects, self.clock) {
                Ok(taken) => *counts = taken,
                Err(why) => return Err(Box::new(Refused { why, fresh })),
            }
        }
        Ok(Prepared {
            arranged,
            fresh,
            kept,
        })
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
        let present = self.chain.stages.iter().map(|s| s.life.clone());
        self.shared.lives.now(present.collect(), 1);
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

/// Has objects take up what those of another element are, exactly; says how many entries of each.
fn taken_up(
    from: &mut Stage,
    fresh: &mut Fresh,
    keep: &[(usize, usize)],
    now: u64,
) -> Result<Vec<u64>, ModuleError> {
    let (Some(from), Some(to)) = (from.instance(), fresh.stage.instance()) else {
        return Ok(Vec::new());
    };
    let each = keep.iter().map(|(old, new)| {
        let content = from.save(*old, now)?;
        to.load(*new, &content, now, 0)
    });
    let counts = each.collect::<Result<_, _>>()?;
    // What is named now counts, after what there was.
    let taken = |e: &&Entry| keep.iter().any(|(_, new)| *new == e.object);
    for entry in fresh.entries.iter().filter(taken) {
        to.set(entry.object, &entry.key, &entry.value, now)?;
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

    /// Has it end: `ON_STOP` of a function, the end of packets of a guest, which may take as long as a guest may.
    /// What there is to know of it.
    pub fn finish(self) -> Vec<String> {
        let name = self.name().to_owned();
        let Self {
            mut stage,
            shared,
            clock,
        } = self;
        stage.stop(clock);
        shared.records(&mut stage, clock, None);
        let timers = stage.alarms_fired().saturating_sub(stage.alarms);
        let epilogue = stage.epilogue.take();
        let mut facts = Vec::new();
        if let Some(epilogue) = &epilogue {
            facts.extend(
                epilogue
                    .failure
                    .iter()
                    .map(|(what, _)| format!("{name}: {what}")),
            );
            facts.extend(epilogue.facts.iter().map(|fact| format!("{name}: {fact}")));
        }
        let packets = stage.life.get(0, OfStage::Packets);
        facts.push(format!("{name}: {packets} packets went through it"));
        shared.lives.ended(&stage.life, epilogue, timers);
        facts
    }
}
