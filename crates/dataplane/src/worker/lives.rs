//! The elements that a run has had: those in the chain, and those that have left it.
//!
//! A chain can change while it runs (`change.rs`), so each element brings counters of its own. What it counted stays
//! in the account when it has gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chain::Link;
use super::condition::{Condition, Watched};
use super::counters::{Counters, OfStage};
use super::foreign::Epilogue;
use super::slow::SlowPaths;
use super::tables::Tables;
use crate::account::{StageAccount, TableAccount};

/// Different names of elements that have left that an account keeps apart; the others are counted together.
const MOST_LEFT: usize = 256;
/// What is kept of how elements ended; of the others it is known that they did.
const MOST_EPILOGUES: usize = 64;
/// The name under which the others are counted.
const OTHERS: &str = "others";

/// An element of a chain, from when it is put in.
pub struct Life {
    /// unlike that of any other in the run
    pub id: u64,
    /// what it is called
    pub name: String,
    /// names of its drop reasons, by index
    pub reasons: Vec<String>,
    /// its objects and drop reasons have names of several elements already
    linked: bool,
    /// the programs that it hosts, one for each packet class
    guests: Vec<Arc<Condition>>,
    /// whether there is one for each class
    classed: bool,
    /// how full its objects are
    pub(super) tables: Tables,
    /// what runs packets that it hands over
    slow: Option<Arc<dyn SlowPaths>>,
    /// one a worker
    counters: Vec<Counters>,
}

impl Life {
    /// Of an element on this many workers.
    #[must_use]
    pub fn new(id: u64, name: &str, reasons: &[String], workers: usize) -> Self {
        let count = OfStage::COUNT + reasons.len();
        Self {
            id,
            name: name.to_owned(),
            reasons: reasons.to_vec(),
            linked: false,
            guests: Vec::new(),
            classed: false,
            slow: None,
            tables: Tables::default(),
            counters: (0..workers.max(1)).map(|_| Counters::new(count)).collect(),
        }
    }

    /// Of a link that no worker has taken yet.
    #[must_use]
    pub fn of(id: u64, link: &Link, workers: usize) -> Self {
        Self {
            guests: link.conditions(),
            classed: link.classed(),
            linked: link.linked,
            slow: link.slow.clone(),
            tables: Tables::of(link, workers),
            ..Self::new(id, &link.name, &link.reasons, workers)
        }
    }

    /// The programs that it hosts, with their packet classes where there are some.
    pub fn guests(&self) -> impl Iterator<Item = (Option<u32>, &Arc<Condition>)> {
        let class = |class| self.classed.then_some(class);
        (0..).map(class).zip(&self.guests)
    }

    /// Adds to a count; only this worker may.
    #[inline]
    pub(super) fn add(&self, worker: usize, what: OfStage, value: u64) {
        if let Some(counters) = self.counters.get(worker) {
            counters.add(what as usize, value);
        }
    }

    /// Counts a packet that was dropped for a reason, where it is on a worker's account; false when the element has no
    /// such reason.
    #[inline]
    pub(super) fn dropped(&self, worker: Option<usize>, reason: usize) -> bool {
        let there = reason < self.reasons.len();
        if there && let Some(counters) = worker.and_then(|w| self.counters.get(w)) {
            counters.add(OfStage::COUNT + reason, 1);
        }
        there
    }

    /// What a worker has counted.
    pub fn get(&self, worker: usize, what: OfStage) -> u64 {
        self.counters
            .get(worker)
            .map_or(0, |c| c.get(what as usize))
    }

    fn sum(&self, workers: &[usize]) -> Sums {
        let of = |what| workers.iter().map(|w| self.get(*w, what)).sum();
        let reason = |index: usize| {
            let counters = workers.iter().filter_map(|w| self.counters.get(*w));
            counters.map(|c| c.get(OfStage::COUNT + index)).sum()
        };
        Sums {
            packets: of(OfStage::Packets),
            bursts: of(OfStage::Bursts),
            ticks: of(OfStage::Ticks),
            timers: of(OfStage::Timers),
            refused: { self.tables.account(workers).into_iter() }
                .map(|table| (table.name, table.refused))
                .collect(),
            reasons: self
                .reasons
                .iter()
                .enumerate()
                .map(|(i, name)| (name.clone(), reason(i)))
                .collect(),
        }
    }
}

#[derive(Clone, Default)]
struct Sums {
    packets: u64,
    bursts: u64,
    ticks: u64,
    timers: u64,
    reasons: BTreeMap<String, u64>,
    /// insertions that found an object full, by its name
    refused: BTreeMap<String, u64>,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bursts += other.bursts;
        self.ticks += other.ticks;
        self.timers += other.timers;
        for (name, packets) in other.reasons {
            *self.reasons.entry(name).or_default() += packets;
        }
        for (name, times) in other.refused {
            *self.refused.entry(name).or_default() += times;
        }
    }
}

#[derive(Default)]
struct Inside {
    present: Vec<Arc<Life>>,
    /// by name, and by worker: what objects refused is on the first one's account
    left: BTreeMap<String, Vec<Sums>>,
    /// elements, in the chain or not any more, that were linked from several
    linked: BTreeSet<String>,
    epilogues: Vec<(String, Epilogue)>,
    /// how many more there were
    untold: u64,
}

impl Inside {
    fn named(&self, element: &str, name: &str) -> String {
        let several = self.present.len() + self.left.len() > 1;
        match several && !self.linked.contains(element) {
            true => format!("{element}:{name}"),
            false => name.to_owned(),
        }
    }
}

/// All elements of a run.
#[derive(Default)]
pub struct Lives {
    inside: Mutex<Inside>,
    next: AtomicUsize,
    /// elements that have been taken out and have not ended yet
    leaving: AtomicUsize,
}

/// What an account says of elements.
pub struct Told {
    /// those in the chain, in its order, then those that have left
    pub stages: Vec<StageAccount>,
    /// packets dropped, by reason
    pub reasons: Vec<(String, u64)>,
    /// times that timers fired
    pub timers: u64,
}

impl Lives {
    /// A number for an element that is being made.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) as u64
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // Counts that a panicking thread has left are as whole as any.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chain has these elements now, on all of so many workers. What those that were in it and are not any more have counted is kept;
    /// they are about to end.
    pub fn now(&self, present: Vec<Arc<Life>>, workers: usize) {
        let mut inside = self.lock();
        let all: Vec<_> = (0..workers).collect();
        let linked = present.iter().filter(|l| l.linked);
        inside.linked.extend(linked.map(|l| l.name.clone()));
        let before = std::mem::replace(&mut inside.present, present);
        for life in before {
            if inside.present.iter().any(|l| l.id == life.id) {
                continue;
            }
            self.leaving.fetch_add(1, Ordering::AcqRel);
            let known = inside.left.len() < MOST_LEFT || inside.left.contains_key(&life.name);
            let name = if known { life.name.as_str() } else { OTHERS };
            let left = inside.left.entry(name.to_owned()).or_default();
            left.resize_with(left.len().max(workers), Sums::default);
            for (worker, left) in left.iter_mut().enumerate() {
                let mut own = life.sum(&[worker]);
                own.refused = match worker {
                    0 => life.sum(&all).refused,
                    _ => BTreeMap::new(),
                };
                left.add(own);
            }
        }
    }

    /// The elements of the chain.
    pub fn present(&self) -> Vec<Arc<Life>> {
        self.lock().present.clone()
    }

    /// The programs that the elements of the chain host.
    pub fn guests(&self) -> Vec<Watched> {
        let inside = self.lock();
        let each = inside.present.iter().flat_map(|life| {
            life.guests().map(|(class, condition)| Watched {
                element: life.id,
                name: life.name.clone(),
                class,
                condition: condition.clone(),
            })
        });
        each.collect()
    }

    /// An element that was taken out has ended, and this became of it.
    pub fn ended(&self, life: &Life, epilogue: Option<Epilogue>, timers: u64) {
        let mut inside = self.lock();
        let left = inside.left.get_mut(&life.name);
        if let Some(first) = left.and_then(|left| left.first_mut()) {
            first.timers += timers;
        }
        if let Some(epilogue) = epilogue {
            if inside.epilogues.len() < MOST_EPILOGUES {
                inside.epilogues.push((life.name.clone(), epilogue));
            } else {
                inside.untold += 1;
            }
        }
        self.leaving.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether elements that were taken out have not ended yet.
    pub fn leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire) > 0
    }

    /// What became of the elements that have left, and of how many more that is not known.
    pub fn epilogues(&self) -> (Vec<(String, Epilogue)>, u64) {
        let mut inside = self.lock();
        (std::mem::take(&mut inside.epilogues), inside.untold)
    }

    /// What an object or a reason of an element is called: with the element's name where the run has had several.
    pub fn named(&self, element: &str, name: &str) -> String {
        self.lock().named(element, name)
    }

    /// Ticks that a worker has spent in elements.
    pub fn ticks(&self, worker: usize) -> u64 {
        let inside = self.lock();
        let present = inside.present.iter().map(|l| l.get(worker, OfStage::Ticks));
        let left = inside.left.values().filter_map(|left| left.get(worker));
        present.sum::<u64>() + left.map(|s| s.ticks).sum::<u64>()
    }

    /// What these workers have counted; a tick is this long.
    pub fn told(&self, workers: &[usize], ns_per_tick: f64) -> Told {
        let inside = self.lock();
        // Programs are no worker's own: the first worker's account has them.
        let first = workers.contains(&0);
        let guests = |life: &Life| -> Vec<_> {
            let all = life.guests().filter(|_| first);
            all.map(|(class, condition)| condition.account(class))
                .collect()
        };
        let present = inside.present.iter();
        let present = present.map(|l| {
            (
                l.name.as_str(),
                l.sum(workers),
                Some((
                    guests(l),
                    l.tables.account(workers),
                    l.slow.as_ref().filter(|_| first).map(|slow| slow.account()),
                )),
            )
        });
        let left = inside.left.iter().map(|(name, left)| {
            let mut sums = Sums::default();
            let own = workers.iter().filter_map(|w| left.get(*w));
            own.for_each(|own| sums.add(own.clone()));
            (name.as_str(), sums, None)
        });
        let all: Vec<_> = present.chain(left).collect();
        let ticks: u64 = all.iter().map(|(_, sums, _)| sums.ticks).sum();
        let mut told = Told {
            stages: Vec::new(),
            reasons: Vec::new(),
            timers: 0,
        };
        for (name, sums, there) in all {
            let left = there.is_none();
            // Of what has left it is known what was refused.
            let (guests, tables, slow) =
                there.unwrap_or_else(|| (Vec::new(), refused(&sums), None));
            told.stages.push(StageAccount {
                name: name.to_owned(),
                packets: sums.packets,
                bursts: sums.bursts,
                seconds: sums.ticks as f64 * ns_per_tick / 1e9,
                cycles_per_packet: sums.ticks as f64 / sums.packets.max(1) as f64,
                share: sums.ticks as f64 / ticks.max(1) as f64,
                reasons: { sums.reasons.iter() }
                    .filter(|(_, packets)| **packets > 0)
                    .map(|(reason, packets)| (reason.clone(), *packets))
                    .collect(),
                guests,
                tables,
                slow,
                left,
                linked: inside.linked.contains(name),
            });
            told.timers += sums.timers;
            for (reason, packets) in sums.reasons {
                told.reasons.push((inside.named(name, &reason), packets));
            }
        }
        told
    }
}

/// Objects that have left, of which one has been full.
fn refused(sums: &Sums) -> Vec<TableAccount> {
    let some = sums.refused.iter().filter(|(_, times)| **times > 0);
    some.map(|(name, times)| TableAccount {
        name: name.clone(),
        refused: *times,
        ..TableAccount::default()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_left_is_still_counted() {
        let lives = Lives::default();
        let life = |name: &str| Arc::new(Life::new(lives.number(), name, &["full".into()], 1));
        let (a, b) = (life("a"), life("b"));
        lives.now(vec![a.clone(), b.clone()], 1);
        a.add(0, OfStage::Packets, 3);
        a.add(0, OfStage::Ticks, 30);
        assert!(a.dropped(Some(0), 0) && !a.dropped(Some(0), 1) && b.dropped(Some(0), 0));
        lives.now(vec![b.clone()], 1);
        assert!(lives.leaving());
        lives.ended(&a, Some(Epilogue::default()), 2);
        assert!(!lives.leaving());
        let again = life("a");
        lives.now(vec![again.clone(), b], 1);
        again.add(0, OfStage::Ticks, 10);
        lives.now(vec![again], 1);
        let told = lives.told(&[0], 1.0);
        let names: Vec<_> = told
            .stages
            .iter()
            .map(|s| (s.name.as_str(), s.packets, s.left))
            .collect();
        assert_eq!(names, [("a", 0, false), ("a", 3, true), ("b", 0, true)]);
        assert_eq!((told.timers, lives.ticks(0)), (2, 40));
        assert_eq!(told.stages.iter().map(|s| s.share).sum::<f64>(), 1.0);
        let reasons: u64 = told.reasons.iter().map(|r| r.1).sum();
        assert_eq!(reasons, 2, "{:?}", told.reasons);
        assert_eq!(lives.named("a", "x"), "a:x");
        assert_eq!(lives.epilogues().0.len(), 1);
    }

    #[test]
    fn what_several_were_linked_into_has_their_names_already() {
        let lives = Lives::default();
        let plain = Arc::new(Life::new(lives.number(), "tap", &["full".into()], 1));
        let linked = Arc::new(Life {
            linked: true,
            ..Life::new(lives.number(), "fw+nat", &["nat:full".into()], 1)
        });
        lives.now(vec![linked.clone(), plain.clone()], 1);
        assert!(plain.dropped(Some(0), 0) && linked.dropped(Some(0), 0));
        let told = lives.told(&[0], 1.0);
        let reasons: Vec<_> = told.reasons.iter().map(|r| r.0.as_str()).collect();
        assert_eq!(reasons, ["nat:full", "tap:full"]);
        assert!(told.stages[0].linked && !told.stages[1].linked);
        assert_eq!(lives.named("fw+nat", "fw:flows"), "fw:flows");
        // Also when it has left.
        lives.now(vec![plain], 1);
        assert_eq!(lives.told(&[0], 1.0).reasons[1].0, "nat:full");
    }

    #[test]
    fn what_has_left_is_on_the_account_of_the_worker_that_counted_it() {
        let lives = Lives::default();
        let life = Arc::new(Life::new(lives.number(), "a", &["full".into()], 2));
        lives.now(vec![life.clone()], 2);
        for (worker, packets) in [(0, 3), (1, 5)] {
            life.add(worker, OfStage::Packets, packets);
            life.add(worker, OfStage::Ticks, 10 * packets);
            assert!(life.dropped(Some(worker), 0));
        }
        lives.now(Vec::new(), 2);
        lives.ended(&life, None, 7);
        let of = |workers: &[usize]| {
            let told = lives.told(workers, 1.0);
            (told.stages[0].packets, told.reasons[0].1, told.timers)
        };
        assert_eq!(of(&[0]), (3, 1, 7));
        assert_eq!(of(&[1]), (5, 1, 0));
        assert_eq!(of(&[0, 1]), (8, 2, 7));
        assert_eq!((lives.ticks(0), lives.ticks(1)), (30, 50));
    }
}
