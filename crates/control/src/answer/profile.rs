//! What holds back what runs: what its workers counted between two requests.
//!
//! Workers count by themselves what costs them nothing: packets, time by element, transactions that did not commit or ran alone by
//! line, rows. Whom packets met they count in modules that are made for it (`run --profile`). Two jobs copy what is counted, and the
//! difference is told; in between a timer looks where each worker is.

use std::collections::BTreeMap;

use millrace_dataplane::account::{Account, ObjectAccount, StageAccount, TransactionsAccount};
use millrace_dataplane::clock::Rate;
use millrace_dataplane::counters::{Counters, Counts};
use millrace_dataplane::mailbox::Desk;
use millrace_dataplane::module::Conflict;
use millrace_dataplane::probe::Probe;
use serde_json::{Value, json};

use super::{Result, Session};
use crate::protocol::Request;
use crate::trouble::Trouble;

/// What is counted up to a moment.
pub(super) struct Counted {
    account: Account,
    /// by element
    met: BTreeMap<u64, Met>,
    rate: Rate,
    /// one a worker, of the moment at which a profile begins
    probes: Vec<Probe>,
    counters: Vec<std::result::Result<Counters, String>>,
}

/// What an element's packets met, over all workers.
#[derive(Clone, Default)]
struct Met {
    alone: BTreeMap<String, u64>,
    conflicts: Vec<(usize, Conflict)>,
    objects: Vec<ObjectAccount>,
}

impl Session {
    pub(super) fn profile(&mut self, request: &Request) -> Result<Value> {
        let malformed =
            |what: &str| Trouble::new("malformed", what).help("see docs/control.md, \"Protocol\"");
        match request.profile.as_deref() {
            Some("begin") => {
                if self.context.elements.profiler.get().is_none() {
                    return Err(Trouble::new("refused", "this run cannot be profiled")
                        .help("the kernel has its packets, or none of its elements is a function with lines"));
                }
                // A signal's frame has no place on a guest's stack, whose memory has a protection key of its own.
                let hosts = self
                    .context
                    .elements
                    .list()
                    .iter()
                    .any(|e| e.exposed.is_none());
                let probes = match hosts {
                    true => Vec::new(),
                    false => self.each(|_: &mut Desk<'_>| Probe::begin())?,
                };
                let counters = self.each(|_: &mut Desk<'_>| Counters::begin())?;
                let mut counted = self.counted()?;
                counted.counters = counters;
                counted.probes = probes.into_iter().flatten().collect();
                self.profile = Some(counted);
                Ok(json!({ "workers": self.context.mailboxes.len() }))
            }
            Some("end") => {
                let before = self.profile.take();
                let mut before = before.ok_or_else(|| malformed("no profile has begun"))?;
                let places = before
                    .probes
                    .drain(..)
                    .flat_map(Probe::end)
                    .collect::<Vec<_>>();
                let after = self.counted()?;
                let counters = Counters::sum(before.counters.drain(..));
                Ok(self.told(&before, &after, (&places, &counters)))
            }
            _ => Err(malformed("profile needs `profile`: begin or end")),
        }
    }

    /// What is counted up to now.
    fn counted(&self) -> Result<Counted> {
        let ids: Vec<u64> = self.context.elements.list().iter().map(|e| e.id).collect();
        let each = self.each(move |desk: &mut Desk<'_>| {
            let met = ids.iter().filter_map(|id| Some((*id, met(desk, *id)?)));
            let met: Vec<_> = met.collect();
            (desk.account(), met)
        })?;
        let mut all = Counted {
            account: Account::default(),
            met: BTreeMap::new(),
            rate: Rate::start(),
            probes: Vec::new(),
            counters: Vec::new(),
        };
        for (number, (account, met)) in each.into_iter().enumerate() {
            join(&mut all.account, account);
            for (id, (alone, conflicts, objects)) in met {
                let of = all.met.entry(id).or_default();
                for (why, packets) in alone {
                    *of.alone.entry(why).or_default() += packets;
                }
                of.conflicts
                    .extend(conflicts.into_iter().map(|c| (number, c)));
                // Of parts the entries of all; of what workers share each says the same.
                for object in objects {
                    match of.objects.iter_mut().find(|o| o.name == object.name) {
                        Some(known) => known.entries = known.entries.max(object.entries),
                        None => of.objects.push(object),
                    }
                }
            }
        }
        Ok(all)
    }

    fn told(
        &self,
        before: &Counted,
        after: &Counted,
        (places, counters): (&[usize], &std::result::Result<Counts, String>),
    ) -> Value {
        let over = difference(&before.account, &after.account);
        let seconds = before.rate.elapsed().as_secs_f64();
        let tick = before.rate.ns_per_tick();
        let none = Met::default();
        let profiler = self.context.elements.profiler.get();
        let told = after.met.iter().filter_map(|(id, met)| {
            let was = before.met.get(id).unwrap_or(&none);
            let mut account = over.clone();
            account.conflicts = met
                .conflicts
                .iter()
                .filter_map(|(worker, c)| Some((*worker, since(c, *worker, &was.conflicts)?)))
                .collect();
            if let Some(of) = &mut account.transactions {
                let counts = met.alone.iter().map(|(why, n)| {
                    let before = was.alone.get(why).copied().unwrap_or(0);
                    (why.clone(), n.saturating_sub(before))
                });
                of.reasons = counts.filter(|(_, n)| *n > 0).collect();
            }
            account.objects.clone_from(&met.objects);
            profiler?.profile(*id, &account, tick, places, counters)
        });
        json!({ "profiles": told.collect::<Vec<_>>(), "seconds": seconds })
    }
}

type OfWorker = (Vec<(String, u64)>, Vec<Conflict>, Vec<ObjectAccount>);

/// What one worker's packets met at an element; none of an element that is no function.
fn met(desk: &mut Desk<'_>, element: u64) -> Option<OfWorker> {
    let instance = desk.state(element)?;
    let counts = instance.ran_alone();
    let alone = instance.module().reasons_alone().into_iter().zip(counts);
    let alone = alone.filter(|(_, n)| *n > 0).collect();
    let conflicts = instance.conflicts();
    let names = instance.module().objects().to_vec();
    let objects = names.into_iter().enumerate().map(|(i, o)| ObjectAccount {
        entries: instance.used(i),
        name: o.name,
        capacity: o.capacity,
        ..ObjectAccount::default()
    });
    Some((alone, conflicts, objects.collect()))
}

/// Adds a worker's account to that of all.
fn join(all: &mut Account, of: Account) {
    all.read += of.read;
    all.dropped += of.dropped;
    all.aborted += of.aborted;
    all.workers.extend(of.workers);
    all.entries.extend(of.entries);
    for stage in of.stages {
        match all.stages.iter_mut().find(|s| s.name == stage.name) {
            Some(known) => {
                known.packets += stage.packets;
                known.bursts += stage.bursts;
                known.seconds += stage.seconds;
            }
            None => all.stages.push(stage),
        }
    }
    if let Some(rows) = of.replayed {
        *all.replayed.get_or_insert(0) += rows;
    }
    if let Some(t) = of.transactions {
        let sum = all
            .transactions
            .get_or_insert_with(TransactionsAccount::default);
        sum.commits += t.commits;
        sum.aborts += t.aborts;
        sum.holds += t.holds;
        sum.alone += t.alone;
        sum.graces += t.graces;
    }
}

/// What was counted in between.
fn difference(before: &Account, after: &Account) -> Account {
    let mut over = after.clone();
    over.read = after.read.saturating_sub(before.read);
    over.dropped = after.dropped.saturating_sub(before.dropped);
    over.aborted = after.aborted.saturating_sub(before.aborted);
    let mut seconds = 0.0;
    for worker in &mut over.workers {
        let was = before.workers.iter().find(|w| w.worker == worker.worker);
        if let Some(was) = was {
            worker.packets = worker.packets.saturating_sub(was.packets);
            worker.bursts = worker.bursts.saturating_sub(was.bursts);
            worker.seconds = (worker.seconds - was.seconds).max(0.0);
        }
        seconds += worker.seconds;
    }
    let mut inside = 0.0;
    for stage in &mut over.stages {
        let same = |s: &&StageAccount| s.name == stage.name;
        if let Some(was) = before.stages.iter().find(same) {
            stage.packets = stage.packets.saturating_sub(was.packets);
            stage.bursts = stage.bursts.saturating_sub(was.bursts);
            stage.seconds = (stage.seconds - was.seconds).max(0.0);
        }
        inside += stage.seconds;
    }
    for stage in &mut over.stages {
        stage.share = if inside > 0.0 {
            stage.seconds / inside
        } else {
            0.0
        };
    }
    over.replayed = after
        .replayed
        .map(|rows| rows.saturating_sub(before.replayed.unwrap_or(0)));
    if let (Some(now), Some(was)) = (&mut over.transactions, &before.transactions) {
        now.commits = now.commits.saturating_sub(was.commits);
        now.aborts = now.aborts.saturating_sub(was.aborts);
        now.holds = now.holds.saturating_sub(was.holds);
        now.alone = now.alone.saturating_sub(was.alone);
        now.graces = now.graces.saturating_sub(was.graces);
    }
    if over.read > 0 {
        over.function.ns_per_packet = seconds * 1e9 / over.read as f64;
    }
    over
}

/// A conflict less what was counted of it before; none where nothing was added.
fn since(c: &Conflict, worker: usize, before: &[(usize, Conflict)]) -> Option<Conflict> {
    let same = |(of, b): &&(usize, Conflict)| {
        *of == worker && b.mine == c.mine && b.theirs == c.theirs && b.what == c.what
    };
    let was = before.iter().find(same).map(|(_, b)| (b.count, b.ticks));
    let (count, ticks) = was.unwrap_or((0, 0));
    let count = c.count.saturating_sub(count);
    (count > 0).then(|| Conflict {
        count,
        ticks: c.ticks.saturating_sub(ticks),
        ..c.clone()
    })
}
