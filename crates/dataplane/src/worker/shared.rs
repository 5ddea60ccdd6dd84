//! What the workers of a run share, and what anybody may read while they work.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use millrace_steer::Owners;

use super::Serve;
use super::condition::Watched;
use super::counters::{
    Counters, HOST_REASONS, Host, Ingress, Numbered, OfPort, OfQueue, Once, Places,
};
use super::deliver::Count;
use super::entries::Heaviest;
use super::limit::Limit;
use super::lives::{Life, Lives};
use super::pressure::Pressure;
use super::stage::Stage;
use crate::account::{
    Account, EntryAccount, Failure, Function, LostAccount, PortAccount, QueueAccount,
    TransactionsAccount, WorkerAccount,
};
use crate::classes::Classes;
use crate::classes::away::PeerCounts;
use crate::histogram::Histogram;
use crate::replica::Group;
use crate::runner::{Lane, RecordWriter};

/// The hosts' reasons, in the order of their counters.
const HOST: [Host; HOST_REASONS.len()] = [
    Host::Aborted,
    Host::NoSuchPort,
    Host::NoOtherPort,
    Host::TxFull,
    Host::PortFailed,
    Host::ChainLoop,
    Host::ChainFlood,
    Host::Undeclared,
    Host::Oversize,
    Host::SlowFull,
    Host::NoLease,
    Host::NoOwner,
    Host::PeerMtu,
    Host::PeerFull,
    Host::PeerCircle,
    Host::PeerWaits,
];

/// Counters of all workers, and the names of what they count.
pub struct Shared {
    workers: Vec<Counters>,
    /// which of them have taken their last packet
    ended: Vec<AtomicBool>,
    pub(super) places: Places,
    /// a port failed: all workers end
    pub(super) failed: AtomicBool,
    pub(super) has_records: AtomicBool,
    pub(super) lives: Lives,
    pub(super) limit: Limit,
    pub(super) pressure: Pressure,
    /// of the function whose state is replicated
    group: Option<Arc<Group>>,
    /// packets of some function are transactions
    transacts: bool,
    /// buckets that move
    classes: Option<Arc<Classes>>,
    /// who brings packets to their workers, a port each, where that is known
    pub(super) owners: Arc<Vec<Owners>>,
    ports: Vec<String>,
    words: Vec<String>,
    records: Mutex<Records>,
    /// of a run over captures: packets that no worker gets
    ingress: Option<Arc<Ingress>>,
    /// and reasons that the program did not declare
    numbered: Option<Numbered>,
}

/// Records come now and then, so a lock is cheaper than a writer for each worker.
struct Records {
    writer: Option<RecordWriter>,
    counts: std::collections::BTreeMap<String, u64>,
    whole: bool,
}

impl Shared {
    pub(super) fn new(serve: &mut Serve, ingress: Option<Arc<Ingress>>) -> Self {
        let places = Places::new(serve.ports.len(), serve.words.len());
        let lives = Lives::default();
        let count = serve.workers.len();
        let made = serve.chain.iter();
        let made = made.map(|link| Arc::new(Life::of(lives.number(), link, count)));
        lives.now(made.collect(), count);
        let workers = (0..serve.workers.len()).map(|_| Counters::new(places.count()));
        let objects = serve.chain.iter().flat_map(super::chain::Link::objects);
        Self {
            workers: workers.collect(),
            ended: (0..count).map(|_| AtomicBool::new(false)).collect(),
            failed: AtomicBool::new(false),
            limit: Limit::default(),
            pressure: Pressure::new(&serve.chain, serve.workers.len()),
            has_records: AtomicBool::new(objects.into_iter().any(|o| o.records)),
            lives,
            group: serve.chain.iter().find_map(|l| l.replicas().cloned()),
            classes: serve.moves.as_ref().map(|m| m.classes.clone()),
            transacts: serve.chain.iter().any(super::chain::Link::transacts),
            owners: Arc::new(std::mem::take(&mut serve.owners)),
            ports: serve.ports.clone(),
            words: serve.words.clone(),
            records: Mutex::new(Records {
                writer: serve.records.take(),
                counts: std::collections::BTreeMap::new(),
                whole: true,
            }),
            places,
            numbered: ingress.as_ref().map(|_| Numbered::default()),
            ingress,
        }
    }

    /// Whether this is a run over captures.
    pub(super) fn sequenced(&self) -> bool {
        self.ingress.is_some()
    }

    /// Where a worker counts.
    pub(super) fn count(&self, worker: usize) -> Count<'_> {
        Count {
            worker: Some(worker),
            counters: self.counters(worker),
            places: &self.places,
            numbered: self.numbered.as_ref(),
        }
    }

    /// The counters of a worker. Workers are numbered by those who made them, so there always is one.
    pub(super) fn counters(&self, worker: usize) -> &Counters {
        // A number out of range would count on the first worker's lines.
        &self.workers[worker.min(self.workers.len().saturating_sub(1))]
    }

    /// A worker has taken its last packet.
    pub(super) fn ends(&self, worker: usize) {
        if let Some(ended) = self.ended.get(worker) {
            ended.store(true, Ordering::Relaxed);
        }
    }

    /// Poll iterations of each worker so far; none of one that has taken its last packet. A worker that waits for packets
    /// goes on with them fifty times a second; one that does not is in a function or a guest, or has no processor.
    #[must_use]
    pub fn iterations(&self) -> Vec<Option<u64>> {
        let workers = self.workers.iter().zip(&self.ended);
        let of = |(counters, ended): (&Counters, &AtomicBool)| {
            let count = |what| counters.get(self.places.once(what));
            let iterations = count(Once::Idle).wrapping_add(count(Once::Bursts));
            (!ended.load(Ordering::Relaxed)).then_some(iterations)
        };
        workers.map(of).collect()
    }

    /// How many workers there are.
    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Takes the records of a function; of a run over captures the sequencer writes them.
    pub(super) fn records(&self, stage: &mut Stage, clock: u64, mut lane: Option<&mut Lane>) {
        // The records are read while the stage is lent out.
        let (objects, life) = (std::mem::take(&mut stage.objects), stage.life.clone());
        // Locked by the first record: most turns have none.
        let mut locked = None;
        stage.drain(|record| {
            let Some(records) = locked.get_or_insert_with(|| self.records.lock().ok()) else {
                return;
            };
            let records = &mut **records;
            let name = objects.get(record.object).map_or("", |o| o.name.as_str());
            let name = self.lives.named(&life.name, name);
            if let Some(writer) = &mut records.writer {
                records.whole &= writer.write(&name, clock, &record);
            }
            if let Some(lane) = &mut lane {
                lane.keep(record, clock);
            }
            *records.counts.entry(name).or_default() += 1;
        });
        stage.objects = objects;
        if locked.flatten().is_some_and(|records| !records.whole) {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the output of records: what went wrong with it.
    pub(super) fn finish_records(&self, account: &mut Account) -> Option<Failure> {
        let mut records = self.records.lock().ok()?;
        account.records = std::mem::take(&mut records.counts);
        records.writer.take().and_then(RecordWriter::finish)
    }

    /// Packets read so far, by all workers.
    #[must_use]
    pub fn read(&self) -> u64 {
        let place = self.places.once(Once::Packets);
        self.workers.iter().map(|w| w.get(place)).sum()
    }

    /// The programs that the elements of the chain host.
    #[must_use]
    pub fn guests(&self) -> Vec<Watched> {
        self.lives.guests()
    }

    /// The account so far: a tick is this long (ns), and the run this old.
    #[must_use]
    pub fn account(&self, ns_per_tick: f64, seconds: f64) -> Account {
        self.over(
            0,
            &self.workers,
            self.ingress.as_deref(),
            ns_per_tick,
            seconds,
        )
    }

    /// The account so far of one worker; `each` has what its packets cost it, in ticks.
    pub(super) fn account_of(
        &self,
        worker: usize,
        each: &Histogram,
        ns_per_tick: f64,
        seconds: f64,
    ) -> Account {
        let own = std::slice::from_ref(self.counters(worker));
        // What reaches no worker is nobody's where there are several.
        let ingress = self.ingress.as_deref().filter(|_| self.workers() == 1);
        let mut account = self.over(worker, own, ingress, ns_per_tick, seconds);
        let ns = account.workers.iter().map(|w| w.seconds).sum::<f64>() * 1e9;
        account.function = Function::over(each.total(), ns, each, ns_per_tick);
        account
    }

    /// What a worker has told of its heaviest entry.
    fn entry(&self, worker: usize, told: u64) -> Option<EntryAccount> {
        let Heaviest { port, entry, share } = Heaviest::unpacked(told)?;
        let port = usize::from(port);
        Some(EntryAccount {
            worker: worker as u32,
            port: self.ports.get(port).cloned().unwrap_or_default(),
            entry: u32::from(entry),
            entries: self.owners.get(port).map_or(0, Owners::entries),
            share: f64::from(share),
        })
    }

    /// The account of some workers, which are numbered from `first` on.
    fn over(
        &self,
        first: usize,
        workers: &[Counters],
        ingress: Option<&Ingress>,
        ns_per_tick: f64,
        seconds: f64,
    ) -> Account {
        let sum = |place: usize| {
            let apart = ingress.map_or(0, |i| i.get(place));
            workers.iter().map(|w| w.get(place)).sum::<u64>() + apart
        };
        let mut account = Account {
            seconds,
            created: sum(self.places.once(Once::Created)),
            out_of_order: sum(self.places.once(Once::OutOfOrder)),
            replayed: (self.group.as_ref()).map(|_| sum(self.places.once(Once::Replayed))),
            moved: self.classes.as_ref().map(|c| c.counts()),
            peers: (self.classes.as_ref()).and_then(|c| {
                Some(PeerCounts {
                    buckets: c.table().iter().filter(|w| **w < c.workers().0).count() as u64,
                    ..c.elsewhere()?.counts()
                })
            }),
            transactions: (self.transacts).then(|| {
                let of = |what| sum(self.places.once(what));
                TransactionsAccount {
                    commits: of(Once::Commits),
                    aborts: of(Once::Aborts),
                    holds: of(Once::Holds),
                    alone: of(Once::Alone),
                    graces: of(Once::Graces),
                    reasons: BTreeMap::new(),
                }
            }),
            ..Account::default()
        };
        // What all workers have in common is on the first one's account.
        let group = self.group.as_deref();
        if let Some(group) = group.filter(|_| first == 0) {
            account.rows = Some(group.rows());
            account.elephants = group.elephants();
        }
        for (index, name) in self.ports.iter().enumerate() {
            let of = |what| sum(self.places.port(index, what));
            account.ports.push(PortAccount {
                name: name.clone(),
                read: of(OfPort::Read),
                read_bytes: of(OfPort::ReadBytes),
                forwarded: of(OfPort::Forwarded),
                dropped: of(OfPort::Dropped),
                passed: of(OfPort::Passed),
                consumed: of(OfPort::Consumed),
                aborted: of(OfPort::Aborted),
                sent: of(OfPort::Sent),
                sent_bytes: of(OfPort::SentBytes),
            });
        }
        for port in &account.ports {
            account.read += port.read;
            account.forwarded += port.forwarded;
            account.dropped += port.dropped;
            account.passed += port.passed;
            account.consumed += port.consumed;
            account.aborted += port.aborted;
        }
        let host = HOST.iter().zip(HOST_REASONS);
        let mut reasons: Vec<(String, u64)> = host
            .map(|(reason, name)| (name.to_owned(), sum(self.places.host(*reason))))
            .collect();
        let numbers: Vec<_> = (first..first + workers.len()).collect();
        let told = self.lives.told(&numbers, ns_per_tick);
        // A run over captures is one function, and its queues are no ports.
        let captures = self.sequenced();
        if !captures {
            account.stages = told.stages;
        }
        account.timers_fired += told.timers;
        reasons.extend(told.reasons);
        reasons.extend(self.numbered.iter().flat_map(|n| n.told(&numbers)));
        for (name, packets) in reasons.into_iter().filter(|(_, n)| *n > 0) {
            *account.reasons.entry(name).or_default() += packets;
        }
        for (number, counters) in (first..).zip(workers) {
            let ticks = self.lives.ticks(number);
            account.workers.push(WorkerAccount {
                worker: number as u32,
                packets: counters.get(self.places.once(Once::Packets)),
                bursts: counters.get(self.places.once(Once::Bursts)),
                seconds: ticks as f64 * ns_per_tick / 1e9,
                full: counters.get(self.places.once(Once::Full)),
                behind: group.map(|group| {
                    let applied = counters.get(self.places.once(Once::Applied));
                    group.rows().saturating_sub(applied)
                }),
            });
            let heaviest = counters.get(self.places.once(Once::Heaviest));
            account.entries.extend(self.entry(number, heaviest));
            for (queue, word) in self.words.iter().enumerate().filter(|_| !captures) {
                let of = |what| counters.get(self.places.queue(queue, what));
                account.queues.push(QueueAccount {
                    name: word.clone(),
                    worker: number as u32,
                    missed: of(OfQueue::Missed),
                    unfit: of(OfQueue::Unfit),
                    failed: of(OfQueue::Failed),
                    discarded: of(OfQueue::Discarded),
                    duplicated: of(OfQueue::Duplicated),
                    altered: of(OfQueue::Altered),
                });
            }
        }
        account.lost = LostAccount::of(&account.queues);
        if seconds > 0.0 {
            account.mpps = account.read as f64 / seconds / 1e6;
        }
        account
    }
}
