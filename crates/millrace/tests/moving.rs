//! Buckets that move between workers of live ports while packets come: no packet is lost, overtakes another one of its flow or comes to a worker
//! that has not its state. A firewall over the software NIC drops an answer whose flow is elsewhere, so that it drops none.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millrace::{Account, Asked, Job, Make, Ports, place};
use millrace_dataplane::classes::{Classes, Counts, MoveError};
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
    // Fewer buffers than a ring between two workers has places, so that none fills; the device waits.
    let word = format!("vnic:{}?split=lan=10.0.0.0/16&measure=off&depth=256", trace(folder.path()));
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
    assert!(account.reasons.keys().all(|why| why == "tx_full"), "{:?}", account.reasons);
    assert!(account.lost.is_none_or(|l| l.missed == 0), "{:?}", account.lost);
    println!("{seen:?}");
    assert!(seen.moves > moves / 2 && seen.keys > moves / 60 && seen.entries > 500, "{seen:?}");
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
    assert!(seen.moves > moves / 4 && seen.entries > 100 && seen.lost == 0, "{seen:?}");
}
