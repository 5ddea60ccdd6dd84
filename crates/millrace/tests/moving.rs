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

/// Prints what it takes to move a thousand entries of one bucket, the least of ten times: packets of the bucket wait as long, and for queues to look.
#[test]
fn a_bucket_of_a_thousand_entries_goes_at_once() {
    const ENTRIES: usize = 1000;
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
    let contents = Contents::of(placement, module).unwrap();
    let mut instances: Vec<Instance> = (0..2)
        .map(|_| Instance::create(module.clone(), &function.state(1, Vec::new())).unwrap())
        .collect();
    let flows = module
        .objects()
        .iter()
        .position(|o| o.name == "flows")
        .unwrap();
    let (bytes, value) = (
        &module.objects()[flows],
        vec![0; module.objects()[flows].value_bytes],
    );
    let mut random = 5;
    // Keys as packets of UDP over IPv4 make them: addresses in their IPv6 form, ports, a protocol.
    let mut key = || {
        let mut key = vec![0; bytes.key_bytes];
        for at in [0, 16] {
            key[at + 10..at + 12].fill(0xff);
            key[at + 12..at + 16].copy_from_slice(&(next(&mut random) as u32).to_be_bytes());
        }
        key[32..36].copy_from_slice(&(next(&mut random) as u32).to_be_bytes());
        (key[36], key[37]) = (17, 4);
        key
    };
    // A table that is a third full, and a thousand entries of bucket 0 among the rest.
    let (mut own, mut others) = (0, 0);
    while own < ENTRIES || others < 20_000 {
        let key = key();
        let bucket = contents.buckets.entry(flows, &key).unwrap();
        let wanted = if bucket == 0 {
            own < ENTRIES
        } else {
            others < 20_000
        };
        if wanted {
            instances[0].set(flows, &key, &value, 1).unwrap();
            *if bucket == 0 { &mut own } else { &mut others } += 1;
        }
    }
    let mut times = Vec::new();
    for turn in 0..10 {
        let [a, b] = &mut instances[..] else {
            unreachable!();
        };
        let (from, to) = if turn % 2 == 0 { (a, b) } else { (b, a) };
        let mut listing = Listing::default();
        contents.begin(from, &mut listing, 0);
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
