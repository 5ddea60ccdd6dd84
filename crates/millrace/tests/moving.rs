//! Buckets that move between workers of live ports while packets come: no packet is lost, overtakes another one of its flow or comes to a worker
//! that has not its state. A firewall over the software NIC drops an answer whose flow is elsewhere, so that it drops none.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use millrace::{Account, Asked, Job, Make, Ports, place};
use millrace_dataplane::classes::{Classes, Counts, MoveError};
use millrace_dataplane::module::Instance;
use millrace_dataplane::moved::Contents;
use millrace_dataplane::replica::Listing;
use millrace_traffic::capture::Writer;
use millrace_traffic::generate::{Generator, Spec};
use millrace_turns::its_turn;

use super::of_repository;

/// A capture of connections whose answers come behind what they answer.
fn trace(folder: &Path) -> String {
    let file = folder.join("flows.pcap");
    let spec = Spec {
        packets: 20_000,
        flows: 1500,
        rate: 20_000.0,
        ..Spec::default()
    };
    let mut generator = Generator::new(spec).unwrap();
    let mut writer = Writer::create(&file, &["a"]).unwrap();
    while let Some(record) = generator.next() {
        let (time, wire) = (record.time_ns, record.original_length);
        writer.write(time, 0, wire, record.data).unwrap();
    }
    writer.finish().unwrap();
    file.display().to_string()
}

/// Runs a function over the software NIC on this many workers until `act` returns.
fn while_packets_come(
    nf: &str,
    workers: usize,
    stop: &'static AtomicBool,
    act: impl FnOnce(&Arc<Classes>) + Send + 'static,
) -> (Account, Counts) {
    let folder = tempfile::tempdir().unwrap();
    let make = Make::default();
    let found = millrace::find(&of_repository(nf)).unwrap();
    let written = found.read(&make).unwrap();
    let proved = written.check(make.begin()).unwrap();
    let asked = Asked {
        cores: workers,
        ..Asked::default()
    };
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let arranged = proved.arrange(&mut model, &asked).unwrap();
    let arranged = arranged.several(workers).unwrap();
    let function = found.load(&arranged.divided(&make), &mut |_| {}).unwrap();
    let placement = function.placement.as_deref();
    let found = place::buckets(&function.name, placement, &function.module, workers);
    let (classes, contents) = found.unwrap();
    // Fewer buffers, of both rings and beside them, than a ring between two workers has places, so that none fills; the device waits.
    let word = format!(
        "vnic:{}?split=lan=10.0.0.0/16&measure=off&depth=256&txdepth=256",
        trace(folder.path())
    );
    let ports = Ports {
        both: vec![word],
        ..Ports::default()
    };
    let job = Job {
        classes: Some(classes.clone()),
        contents: Some(contents),
        loops: None,
        busy: true,
        ..Job::of(&function, &ports).unwrap()
    };
    let opened = job.open(&ports, stop).unwrap();
    let moving = classes.clone();
    let thread = std::thread::spawn(move || {
        act(&moving);
        stop.store(true, Ordering::Relaxed);
    });
    let account = opened.run(stop, &mut |_| {}).unwrap();
    // A panic of its own ends the test.
    thread.join().unwrap();
    (account, classes.counts())
}

fn long() -> bool {
    std::env::var_os("MILLRACE_LONG").is_some()
}

/// The next of numbers that look random (Marsaglia, Xorshift RNGs, 2003).
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 33) as usize
}

#[test]
fn a_firewall_drops_no_answer_while_buckets_move_and_the_key_changes() {
    if !its_turn("answers while buckets move", 0, 2) {
        return;
    }
    static STOP: AtomicBool = AtomicBool::new(false);
    let moves = if long() { 1000 } else { 150 };
    let (account, seen) = while_packets_come("nfs/firewall", 3, &STOP, move |classes| {
        let mut random = 7;
        for turn in 0..moves {
            let (bucket, to) = (next(&mut random) % classes.count(), next(&mut random) % 3);
            match classes.assign(bucket, to) {
                Ok(moved) => assert_eq!((usize::from(moved.class), moved.to), (bucket, to)),
                Err(error) => assert_eq!(error, MoveError::Late),
            }
            if turn % 50 == 20 {
                let mut secret = [0; 32];
                secret.iter_mut().for_each(|b| *b = next(&mut random) as u8);
                assert!(classes.rotate(secret).is_ok());
            }
        }
        assert!(classes.cores(1).is_ok_and(|moved| moved > 200));
        assert!(classes.table().iter().all(|worker| *worker == 0));
        assert_eq!(classes.cores(4), Err(MoveError::Workers { most: 3 }));
    });
    assert!(account.errors.is_empty(), "{:?}", account.errors);
    assert!(account.read > 10_000, "{}", account.read);
    assert_eq!(account.read, account.forwarded + account.dropped);
    // The device sends no more than it can; the function drops nothing.
    assert!(
        account.reasons.keys().all(|why| why == "tx_full"),
        "{:?}",
        account.reasons
    );
    assert!(
        account.lost.is_none_or(|l| l.missed == 0),
        "{:?}",
        account.lost
    );
    println!("{seen:?}");
    assert!(
        seen.moves > moves / 2 && seen.keys > moves / 60 && seen.entries > 500,
        "{seen:?}"
    );
    assert_eq!((seen.lost, account.moved), (0, Some(seen)));
}

/// Each flow has one lease and each lease one flow, wherever they are; and what was leased stays so.
#[test]
fn a_nat_keeps_its_leases_while_buckets_move() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let moves = if long() { 1000 } else { 100 };
    let (account, seen) = while_packets_come("nfs/nat", 2, &STOP, move |classes| {
        let mut random = 3;
        for _ in 0..moves {
            let (bucket, to) = (next(&mut random) % classes.count(), next(&mut random) % 2);
            let moved = classes.assign(bucket, to);
            assert!(matches!(moved, Ok(_) | Err(MoveError::Late)), "{moved:?}");
        }
        assert_eq!(classes.rotate([1; 32]), Err(MoveError::OneKey));
    });
    println!("{seen:?}");
    assert!(account.errors.is_empty(), "{:?}", account.errors);
    // Answers of the capture are addressed to the hosts behind it, so that none comes from outside to a lease.
    let own = |why: &String| why != "tx_full" && why != "no_flow";
    assert!(!account.reasons.keys().any(own), "{:?}", account.reasons);
    let entries = |name: &str| {
        let object = account.objects.iter().find(|o| o.name == name);
        object.and_then(|o| o.entries).unwrap()
    };
    assert!(entries("flows") > 500);
    assert_eq!(entries("flows"), entries("leases"));
    assert!(
        seen.moves > moves / 4 && seen.entries > 100 && seen.lost == 0,
        "{seen:?}"
    );
}

/// A firewall on two workers, whose instances are empty.
struct Pair {
    contents: Contents,
    instances: Vec<Instance>,
    flows: usize,
    /// bytes of a key, and a value
    key_bytes: usize,
    value: Vec<u8>,
    random: u64,
}

impl Pair {
    fn new() -> Self {
        let make = Make::default();
        let found = millrace::find(&of_repository("nfs/firewall")).unwrap();
        let written = found.read(&make).unwrap();
        let proved = written.check(make.begin()).unwrap();
        let asked = Asked::default();
        let within = (millrace::model::SECONDS, make.begin());
        let mut model = proved.model_for(asked.purpose(), within, &mut || {});
        let arranged = proved
            .arrange(&mut model, &asked)
            .unwrap()
            .several(2)
            .unwrap();
        let function = found.load(&arranged.divided(&make), &mut |_| {}).unwrap();
        let (placement, module) = (function.placement.as_deref().unwrap(), &function.module);
        let create = |_| Instance::create(module.clone(), &function.state(1, Vec::new())).unwrap();
        let objects = module.objects();
        let flows = objects.iter().position(|o| o.name == "flows").unwrap();
        Self {
            contents: Contents::of(placement, module).unwrap(),
            instances: (0..2).map(create).collect(),
            flows,
            key_bytes: objects[flows].key_bytes,
            value: vec![0; objects[flows].value_bytes],
            random: 5,
        }
    }

    /// As packets of UDP over IPv4 make it: addresses in their IPv6 form, ports, a protocol.
    fn key(&mut self) -> Vec<u8> {
        let mut key = vec![0; self.key_bytes];
        let mut random = || next(&mut self.random) as u32;
        for at in [0, 16] {
            key[at + 10..at + 12].fill(0xff);
            key[at + 12..at + 16].copy_from_slice(&random().to_be_bytes());
        }
        key[32..36].copy_from_slice(&random().to_be_bytes());
        (key[36], key[37]) = (17, 4);
        key
    }

    fn bucket(&self, key: &[u8]) -> u32 {
        self.contents.buckets.entry(self.flows, key).unwrap()
    }

    fn set(&mut self, key: &[u8]) {
        self.instances[0]
            .set(self.flows, key, &self.value, 1)
            .unwrap();
    }
}

/// What comes and goes between the steps of the walk, too.
#[test]
fn one_walk_finds_what_many_buckets_have() {
    let mut pair = Pair::new();
    let mut all = std::collections::BTreeMap::<Vec<u8>, u32>::new();
    let add = |pair: &mut Pair, all: &mut std::collections::BTreeMap<_, _>, many: usize| {
        for _ in 0..many {
            let key = pair.key();
            pair.set(&key);
            all.insert(key.clone(), pair.bucket(&key));
        }
    };
    add(&mut pair, &mut all, 20_000);
    let mut listing = Listing::default();
    let wanted = || (0..128).step_by(3);
    let contents = pair.contents.clone();
    contents.begin(&mut pair.instances[0], &mut listing, wanted());
    let mut steps = 0;
    while !contents.step(&mut pair.instances[0], &mut listing) {
        assert!(!contents.looked(&listing, 3) && !contents.looked(&listing, 1));
        steps += 1;
        // More now and then than a table remembers.
        add(&mut pair, &mut all, if steps == 7 { 300 } else { 20 });
        let old: Vec<Vec<u8>> = all.keys().step_by(997).cloned().collect();
        for key in old {
            pair.instances[0].remove(pair.flows, &key, 1).unwrap();
            all.remove(&key);
        }
    }
    assert!(steps > 10, "{steps}");
    assert!(wanted().all(|bucket| contents.looked(&listing, bucket)));
    for bucket in wanted() {
        // They are asked for one after another, and the table goes on changing.
        add(&mut pair, &mut all, 5);
        let taken = contents.take(&mut pair.instances[0], &mut listing, (bucket, &[]));
        let taken: std::collections::BTreeSet<_> = taken.into_iter().map(|(_, e)| e.key).collect();
        let has = all.iter().filter(|(_, b)| **b == bucket);
        assert_eq!(
            taken,
            has.map(|(key, _)| key.clone()).collect(),
            "bucket {bucket}"
        );
        all.retain(|_, b| *b != bucket);
    }
    assert!(!listing.any());
    let left = contents.take_all(&mut pair.instances[0], &[]);
    assert_eq!(left.len(), all.len());
}

/// Prints what it takes to move a thousand entries of one bucket, the least of ten times: packets of the bucket wait as long, and for queues to look.
#[test]
fn a_bucket_of_a_thousand_entries_goes_at_once() {
    const ENTRIES: usize = 1000;
    let mut pair = Pair::new();
    // A table that is a third full, and a thousand entries of bucket 0 among the rest.
    let (mut own, mut others) = (0, 0);
    while own < ENTRIES || others < 20_000 {
        let key = pair.key();
        let bucket = pair.bucket(&key);
        let wanted = if bucket == 0 {
            own < ENTRIES
        } else {
            others < 20_000
        };
        if wanted {
            pair.set(&key);
            *if bucket == 0 { &mut own } else { &mut others } += 1;
        }
    }
    let Pair {
        contents,
        mut instances,
        flows,
        ..
    } = pair;
    let mut times = Vec::new();
    for turn in 0..10 {
        let [a, b] = &mut instances[..] else {
            unreachable!();
        };
        let (from, to) = if turn % 2 == 0 { (a, b) } else { (b, a) };
        let mut listing = Listing::default();
        contents.begin(from, &mut listing, [0]);
        let began = Instant::now();
        let mut steps = 1;
        while !contents.step(from, &mut listing) {
            steps += 1;
        }
        let listed = began.elapsed();
        let entries = contents.take(from, &mut listing, (0, &[]));
        contents.put(to, &entries, 2).unwrap();
        let moved = began.elapsed() - listed;
        assert_eq!(
            (entries.len(), to.count(flows, 2).unwrap() as usize % 20_000),
            (ENTRIES, ENTRIES)
        );
        times.push((moved.as_micros(), listed.as_micros() / steps));
    }
    times.sort_unstable();
    let (wait, step) = times[0];
    println!(
        "{ENTRIES} of 21000 entries: {wait} µs out and in, {step} µs a step of looking for them"
    );
    assert!(contents.take_all(&mut instances[0], &[]).len() == 21_000);
}
