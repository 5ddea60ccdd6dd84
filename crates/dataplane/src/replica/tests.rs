//! Replicas of a module written by hand, whose state shows the order of everything that was done to it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use millrace_steer::sequence::ring::Next;

use super::{Batch, Came, Edit, Effect, Fault, Group, Place, Replica, Sequencing, Wait};
use crate::module::{Config, Instance, Module, ModuleError};
use crate::packet::{Arrival, Burst, Fate, Layout};
use crate::testing;

const START: u64 = 1_000_000;

fn source() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replica.c")
}

fn module() -> Arc<Module> {
    static MODULE: OnceLock<Arc<Module>> = OnceLock::new();
    MODULE
        .get_or_init(|| {
            let path = testing::compile_module("replica", &source(), &[]);
            Arc::new(Module::load(&path).unwrap())
        })
        .clone()
}

/// A group with its replicas.
struct Rig {
    sequencing: Sequencing,
    group: Arc<Group>,
    all: Vec<(Replica, Instance)>,
    /// what each worker has not run
    waiting: Vec<Vec<(Vec<u8>, Arrival)>>,
    came: u64,
}

impl Rig {
    fn new(workers: usize, rows: usize) -> Self {
        let module = module();
        let group = Group::new(&module, workers, rows, START).unwrap();
        let config = Config {
            time: START,
            ..Config::default()
        };
        let one = |worker: usize| {
            let instance = Instance::create(module.clone(), &config).unwrap();
            (Replica::new(&group, &instance, worker as u32), instance)
        };
        Self {
            sequencing: Sequencing::new(&group, &module, &config, (0, 2)).unwrap(),
            all: (0..workers).map(one).collect(),
            waiting: vec![Vec::new(); workers],
            came: 0,
            group,
        }
    }

    /// A packet comes; whose turn it is.
    fn comes(&mut self, bytes: &[u8], time: u64) -> usize {
        let number = self.came;
        self.came += 1;
        let (place, worker) = self.sequencing.packet(bytes, 0, number, time).unwrap();
        self.sequencing.publish();
        let arrival = Arrival {
            number,
            time,
            place: place.word(),
            ..Arrival::default()
        };
        self.waiting[worker as usize].push((bytes.to_vec(), arrival));
        worker as usize
    }

    /// A worker runs what waits for it; the fates and answers of its packets.
    fn runs(&mut self, worker: usize) -> Vec<(Fate, Vec<u8>)> {
        let mut burst = Burst::new(64, 2, Layout::Exact);
        let mut done = Vec::new();
        for (bytes, arrival) in self.waiting[worker].drain(..) {
            assert!(burst.push(&bytes, arrival));
        }
        let (replica, instance) = &mut self.all[worker];
        replica.burst(instance, 0, &mut burst);
        for at in 0..burst.len() {
            let outcome = burst.outcome(at).unwrap();
            done.push((outcome.fate, outcome.bytes.to_vec()));
        }
        done
    }

    fn ends(&mut self, time: u64) {
        let last = self.sequencing.beat(time).unwrap();
        self.sequencing.end();
        assert_eq!(self.group.last(), Some(last));
        for (replica, instance) in &mut self.all {
            replica.follow(instance, last).unwrap();
        }
    }

    fn states(&mut self) -> Vec<u64> {
        let all = self.all.iter_mut();
        all.map(|(_, instance)| state(instance)).collect()
    }

    fn records(&mut self, worker: usize) -> Vec<u64> {
        let (replica, instance) = &mut self.all[worker];
        let mut all: Vec<_> = replica.records().collect();
        instance.drain(|r| all.push(r));
        let number = |r: crate::module::Record| u64::from_ne_bytes(r.bytes.try_into().unwrap());
        all.into_iter().map(number).collect()
    }
}

fn state(instance: &mut Instance) -> u64 {
    let value = instance.get(0, &0_u32.to_ne_bytes(), 0).unwrap().unwrap();
    u64::from_ne_bytes(value.try_into().unwrap())
}

fn bytes(n: u64) -> Vec<u8> {
    let mut all = n.to_ne_bytes().to_vec();
    all.extend([0; 8]);
    all
}

#[test]
fn replicas_that_run_at_any_moment_are_alike_and_answer_as_one_does() {
    let mut answers: Vec<Vec<Vec<u8>>> = Vec::new();
    for workers in [1, 2, 3, 14] {
        let mut rig = Rig::new(workers, 1024);
        let mut owners = Vec::new();
        let mut by_worker = vec![Vec::new(); workers];
        for n in 0..200_u64 {
            // Every fifth touches no state, and answers nothing.
            let packet = if n % 5 == 4 { vec![0; 7] } else { bytes(n) };
            owners.push(rig.comes(&packet, START + n * 37));
            // Now this one, now that one falls behind.
            if n % 11 == 3 || n == 199 {
                let who = (n as usize * 7) % workers;
                by_worker[who].extend(rig.runs(who));
            }
        }
        for (worker, done) in by_worker.iter_mut().enumerate() {
            done.extend(rig.runs(worker));
        }
        rig.ends(START + 10_000);
        let states = rig.states();
        assert!(states.iter().all(|s| *s == states[0]), "{states:?}");
        assert!(
            rig.all
                .iter()
                .all(|(r, _)| r.fired() == rig.all[0].0.fired())
        );
        let mut by_worker: Vec<_> = by_worker.into_iter().map(Vec::into_iter).collect();
        let in_order = owners.iter().map(|w| {
            let (fate, bytes) = by_worker[*w].next().unwrap();
            assert_eq!(fate, Fate::Forwarded(0));
            bytes
        });
        answers.push(in_order.collect());
        // 160 rows, 8 timers on the way, and the last heartbeat.
        let applied = rig.all[0].0.applied();
        let replayed: u64 = rig.all.iter().map(|(r, _)| r.replayed()).sum();
        assert_eq!((applied, replayed), (168, 160 * (workers as u64 - 1)));
    }
    assert!(answers.iter().all(|a| *a == answers[0]));
}

#[test]
fn what_happens_without_a_packet_leaves_records_once() {
    let mut rig = Rig::new(3, 1024);
    for n in 0..90 {
        rig.comes(&bytes(if n % 9 == 0 { 8 } else { 1 }), START + n * 100);
        if n % 4 == 0 {
            rig.runs(n as usize % 3);
        }
    }
    (0..3).for_each(|w| drop(rig.runs(w)));
    rig.ends(START + 9_000);
    let mut all: Vec<u64> = (0..3).flat_map(|w| rig.records(w)).collect();
    all.sort_unstable();
    let timers: Vec<u64> = (1..=9).map(|n| START + n * 1000).collect();
    assert_eq!(all, [vec![8; 10], timers].concat());
}

#[test]
fn edits_have_a_place_in_the_order_and_settings_are_the_sequencers_too() {
    let mut rig = Rig::new(4, 1024);
    let made = Arc::new(AtomicUsize::new(0));
    let edit = |key: u32, value: u64, settings: bool| {
        let made = made.clone();
        Edit {
            make: Arc::new(move |instance: &mut Instance, _| {
                instance
                    .set(0, &key.to_ne_bytes(), &value.to_ne_bytes(), 0)
                    .unwrap();
                made.fetch_add(1, Ordering::Relaxed);
            }),
            effect: match settings {
                true => Effect::Settings,
                false => Effect::State,
            },
        }
    };
    for n in 0..40 {
        rig.comes(&bytes(n), START);
        if n == 10 || n == 25 {
            assert!(rig.group.edit(edit(0, 77, false)).is_some());
        }
        if n == 20 {
            assert!(rig.group.edit(edit(1, 0xff00, true)).is_some());
        }
        if n % 3 == 0 {
            rig.runs(n as usize % 4);
        }
    }
    // One that is taken back is not made.
    let asked = rig.group.edit(edit(0, 1, false)).unwrap();
    assert!(rig.group.withdraw(asked) && !rig.group.withdraw(asked));
    (0..4).for_each(|w| drop(rig.runs(w)));
    rig.ends(START);
    assert_eq!(made.load(Ordering::Relaxed), 4 + 4 + 5);
    let states = rig.states();
    assert!(states.iter().all(|s| *s == states[0]), "{states:?}");
    // The same by one instance in that order.
    let mut one = Instance::create(module(), &Config::default()).unwrap();
    one.set(0, &0_u32.to_ne_bytes(), &77_u64.to_ne_bytes(), 0)
        .unwrap();
    for n in 26..40_u64 {
        // 26 packets and three edits are before it.
        assert!(one.replay(&(n ^ 0xff00).to_ne_bytes(), n + 3, 0, 0));
    }
    assert_eq!(state(&mut one), states[0]);
    rig.group.close();
    assert!(rig.group.edit(edit(0, 1, false)).is_none());
}

/// Threads number packets together, each for a worker, at times that are not in order, while settings change: each packet
/// has a row made with the settings of its place, its worker finds it there, and all replicas are alike.
#[test]
fn threads_that_number_together_keep_one_order() {
    const WORKERS: usize = 3;
    const BATCHES: u64 = 200;
    let mut rig = Rig::new(WORKERS, 1 << 12);
    let module = module();
    let config = Config {
        time: START,
        ..Config::default()
    };
    let sequencing = Sequencing::new(&rig.group, &module, &config, (0, 2)).unwrap();
    let shared = Arc::new(Mutex::new(sequencing));
    let wait = Wait {
        pinned: false,
        over: &|| false,
    };
    let number = |worker: usize, batch: &mut Batch| {
        let mut taken = Vec::new();
        for round in 0..BATCHES {
            let packets: Vec<Vec<u8>> = (0..round % 6)
                // Some touch no state.
                .map(|n| match (round + n) % 4 {
                    3 => vec![0; 7],
                    _ => bytes(1000 * round + 10 * n + worker as u64),
                })
                .collect();
            let came = |at: usize| Came {
                frame: &packets[at],
                port: 0,
                number: at as u64,
            };
            assert!(batch.begin(START + round * 20 + worker as u64 * 7, wait));
            (0..packets.len()).for_each(|at| batch.add(came(at), false));
            let numbered = batch.number(came, wait).unwrap();
            assert!(batch.publish(numbered, wait));
            let (time, places) = batch.places();
            for (at, place) in places.iter().enumerate() {
                let arrival = Arrival {
                    time,
                    place: place.word(),
                    ..Arrival::default()
                };
                taken.push((packets[at].clone(), arrival));
            }
            batch.handed(numbered, wait);
            if round == 50 {
                let edit = Edit {
                    make: Arc::new(move |instance: &mut Instance, _| {
                        let value = 0xff00_u64 << worker;
                        let set = instance.set(0, &1_u32.to_ne_bytes(), &value.to_ne_bytes(), 0);
                        set.unwrap();
                    }),
                    effect: Effect::Settings,
                };
                assert!(rig.group.edit(edit).is_some());
            }
            if round % 16 == 0 {
                batch.idle(START + round * 20, false, wait);
                std::thread::yield_now();
            }
        }
        taken
    };
    let mut batches: Vec<Batch> = (0..WORKERS).map(|_| Batch::new(&shared).unwrap()).collect();
    let waiting: Vec<_> = std::thread::scope(|threads| {
        let started: Vec<_> = batches
            .iter_mut()
            .enumerate()
            .map(|(worker, batch)| threads.spawn(move || number(worker, batch)))
            .collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    });
    rig.group.seal();
    batches[0].idle(START + 5000, true, wait);
    let last = rig.group.last().unwrap();
    assert_eq!(rig.group.handed(), last);
    // Every other number of a row is a packet's own, once.
    let places = waiting.iter().flatten().map(|(_, a)| Place::of(a.place));
    let mut own: Vec<u64> = places.filter(|p| p.own()).map(Place::sequence).collect();
    own.sort_unstable();
    let touched = own.len();
    own.dedup();
    assert_eq!((own.len(), *own.last().unwrap() < last), (touched, true));

    let taken = waiting.clone();
    rig.waiting = waiting;
    for worker in 0..WORKERS {
        while !rig.waiting[worker].is_empty() {
            let most = rig.waiting[worker].len().min(64);
            let rest = rig.waiting[worker].split_off(most);
            assert!(
                rig.runs(worker)
                    .iter()
                    .all(|(fate, _)| *fate == Fate::Forwarded(0))
            );
            rig.waiting[worker] = rest;
        }
        let (replica, instance) = &mut rig.all[worker];
        assert_eq!(replica.fault(), None);
        replica.follow(instance, last).unwrap();
    }
    let states = rig.states();
    assert!(states.iter().all(|s| *s == states[0]), "{states:?}");
    let all = rig.all.iter().map(|(r, _)| r.replayed()).sum::<u64>();
    assert_eq!(all, touched as u64 * (WORKERS as u64 - 1));

    // Each row is of its packet, and once settings have changed no row is made with those before.
    let mut rows = std::collections::BTreeMap::new();
    let mut applied = 0;
    while let Next::Given(row) = rig.group.ring.next(&mut applied, last) {
        rows.insert(
            row.number,
            u64::from_ne_bytes(row.bytes().try_into().unwrap()),
        );
    }
    let mut settings = std::collections::BTreeMap::new();
    for (packet, arrival) in taken.iter().flatten() {
        let place = Place::of(arrival.place);
        if place.own() {
            let value = u64::from_ne_bytes(packet[..8].try_into().unwrap());
            settings.insert(place.sequence(), rows[&place.sequence()] ^ value);
        }
    }
    let mut found: Vec<u64> = settings.into_values().collect();
    found.dedup();
    let known = |s: &u64| [0xff00, 0xff00 << 1, 0xff00 << 2].contains(s);
    assert!(found[0] == 0 && found[1..].iter().all(known), "{found:x?}");
    assert!((2..=1 + WORKERS).contains(&found.len()), "{found:x?}");
}

#[test]
fn a_replica_that_stalls_stops_with_the_reason() {
    let mut rig = Rig::new(2, 8);
    for n in 0..24 {
        rig.comes(&bytes(n), START);
        if n % 2 == 0 {
            let done = rig.runs(0);
            assert!(done.iter().all(|(fate, _)| *fate == Fate::Forwarded(0)));
        }
    }
    let done = rig.runs(1);
    assert!(done.len() == 12 && done.iter().all(|(fate, _)| *fate == Fate::Aborted));
    let fault = rig.all[1].0.fault().unwrap();
    assert_eq!(
        fault,
        Fault::Overrun {
            worker: 1,
            row: 1,
            rows: 8
        }
    );
    assert!(fault.to_string().contains("replica 1 has stalled: row 1"));
    // Told once, and it never goes on.
    assert_eq!(rig.all[1].0.fault(), None);
    let before = state(&mut rig.all[1].1);
    rig.comes(&bytes(1), START);
    rig.comes(&bytes(1), START);
    assert!(rig.runs(1).iter().all(|(fate, _)| *fate == Fate::Aborted));
    assert_eq!(state(&mut rig.all[1].1), before);
    assert!(rig.all[0].0.fault().is_none());
}

#[test]
fn descriptors_that_no_sequencer_gives_stop_a_replica() {
    let run = |rig: &mut Rig, place: Place| {
        let arrival = Arrival {
            time: START,
            place: place.word(),
            ..Arrival::default()
        };
        rig.waiting[0] = vec![(bytes(1), arrival)];
        let fate = rig.runs(0)[0].0;
        (fate, rig.all[0].0.fault())
    };
    let mut ahead = Rig::new(2, 8);
    let fault = Fault::Ahead { worker: 0, row: 2 };
    let found = run(&mut ahead, Place::new(3, true));
    assert_eq!(found, (Fate::Aborted, Some(fault)));

    let mut late = Rig::new(2, 8);
    late.comes(&bytes(1), START);
    assert_eq!(late.runs(0)[0].0, Fate::Forwarded(0));
    let found = run(&mut late, Place::new(1, true));
    let fault = Fault::Late {
        worker: 0,
        row: 1,
        applied: 1,
    };
    assert_eq!(found, (Fate::Aborted, Some(fault)));

    // A row that the module takes for none.
    let mut malformed = Rig::new(2, 8);
    malformed.comes(&bytes(u64::MAX), START);
    malformed.comes(&bytes(1), START);
    assert_eq!(malformed.runs(1)[0].0, Fate::Aborted);
    let fault = Fault::Malformed { worker: 1, row: 1 };
    assert_eq!(malformed.all[1].0.fault(), Some(fault));
}

#[test]
fn what_cannot_be_replicated_is_refused() {
    let fixture = testing::fixture();
    assert!(Group::new(&fixture, 2, 8, 0).is_err());
    assert!(Group::new(&module(), 65, 8, 0).is_err() && Group::new(&module(), 0, 8, 0).is_err());
    for (row, wrong) in [(0, true), (65, true), (64, false)] {
        let define = format!("-DFIXTURE_ROW={row}");
        let path = testing::compile_module(&format!("row{row}"), &source(), &[&define]);
        let refused = matches!(Module::load(&path), Err(ModuleError::Unfit { .. }));
        assert_eq!(refused, wrong, "{row}");
    }
}

#[test]
fn a_place_says_whether_its_key_is_replicated() {
    let last = (1 << 61) - 1;
    for (sequence, own) in [(0, false), (5, true), (last, true)] {
        let place = Place::new(sequence, own);
        let heavy = place.of_heavy();
        assert!(!place.heavy() && heavy.heavy());
        for place in [place, heavy, Place::of(heavy.word())] {
            assert_eq!((place.sequence(), place.own()), (sequence, own));
        }
        // The bit above belongs to descriptors of `vnic:`.
        assert_eq!(heavy.word() >> 63, 0);
    }
}
