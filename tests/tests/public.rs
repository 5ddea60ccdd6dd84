//! Programs that others wrote, and ours with the features that only those have, against the kernel: the
//! same packets, and after each the same verdict and bytes; in the end the same maps.
//!
//! The objects of others are those in the folder $MILLRACE_OBJECTS; none is part of this repository.

use std::path::Path;

use libbpf_rs::MapType;
use millrace_dataplane::packet::Fate;
use millrace_object::helper::{GET_SMP_PROCESSOR_ID, PERF_EVENT_OUTPUT};
use millrace_object::state::{hash, lpm_trie};
use millrace_tests::command::root;
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Kernel, unavailable};
use millrace_tests::public::{CAPACITY, LISTED, entries, helpers, objects, packets, programs};
use millrace_tests::random::Random;

/// Every verdict of the kernel that this fate may stand for; port 0 is where all packets come in, and
/// the interface that the kernel knows.
fn verdicts(fate: Fate) -> &'static [u32] {
    match fate {
        // A verdict that does not exist, and a redirect to a port that does not, abort too.
        Fate::Aborted => &[0, 4, 5, 6, 7, u32::MAX],
        Fate::Dropped(_) => &[1, 4],
        Fate::Passed => &[2, 4],
        Fate::Forwarded(0) => &[3, 4],
        Fate::Forwarded(_) | Fate::Flooded | Fate::Consumed => &[4],
    }
}

/// Runs one program of both on the packets; says how often each verdict was given.
fn compare(
    name: &str,
    ours: &mut Emitted,
    kernel: &mut Kernel,
    packets: &[Vec<u8>],
) -> Result<[usize; 5], String> {
    let mut counts = [0; 5];
    for (number, packet) in packets.iter().enumerate() {
        let theirs = kernel.run(packet)?;
        let outcome = ours.run(packet)?;
        if !verdicts(outcome.fate).contains(&theirs.verdict) {
            return Err(format!(
                "{name}, packet {number} of {} bytes: {:?} here, {} in the kernel\n{packet:02x?}",
                packet.len(),
                outcome.fate,
                theirs.verdict
            ));
        }
        // What the test run gives back begins with the metadata.
        if !theirs.packet.ends_with(&outcome.packet) {
            return Err(format!("{name}, packet {number}: bytes differ"));
        }
        if let Some(count) = counts.get_mut(theirs.verdict as usize) {
            *count += 1;
        }
    }
    for (map, kind) in kernel.maps() {
        if !matches!(kind, MapType::Array | MapType::Hash | MapType::LpmTrie) {
            continue;
        }
        let declared = ours.program.objects.iter().find(|o| o.name == map);
        if declared.is_some_and(|o| o.capacity > LISTED) {
            println!("skipped: entries of {map}, too many to list");
            continue;
        }
        // A map that no program uses is left out here.
        let Ok(mine) = ours.entries(&map) else {
            continue;
        };
        if mine != kernel.entries(&map)? {
            return Err(format!("{name}: entries of {map} differ"));
        }
    }
    Ok(counts)
}

#[test]
fn tail_calls_in_functions_are_the_kernels() {
    if let Some(why) = unavailable() {
        println!("skipped: comparison with the kernel, {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let source = root().join("tests/programs/away.c");
    let mut ours = Emitted::of(&cache.path().join("cache"), &source, 1, &[]).unwrap();
    ours.select("first").unwrap();
    let mut kernel = Kernel::load(&ours.object).unwrap().program("first");
    let mut random = Random(11);
    let packets: Vec<Vec<u8>> = (0..2000)
        .map(|_| (0..60).map(|_| random.below(40) as u8).collect())
        .collect();
    let counts = compare("away", &mut ours, &mut kernel, &packets).unwrap();
    println!("away: {} packets agree, verdicts {counts:?}", packets.len());
    assert!(
        counts[..4].iter().all(|n| *n >= 10),
        "{counts:?}: shows nothing"
    );
    let entries = ours.entries("counts").unwrap();
    for at in 8_u32..12 {
        assert_ne!(entries[&at.to_le_bytes().to_vec()], [0; 8], "{at}");
    }
}

#[test]
fn tail_calls_and_redirects_are_the_kernels() {
    if let Some(why) = unavailable() {
        println!("skipped: comparison with the kernel, {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let source = root().join("tests/programs/onward.c");
    let mut ours = Emitted::of(&cache.path().join("cache"), &source, 2, &[]).unwrap();
    ours.select("first").unwrap();
    let mut kernel = Kernel::load(&ours.object).unwrap().program("first");
    // The loopback interface, which every machine has, is number 1: port 0.
    for index in [1_u32, 3] {
        let (key, value) = (index.to_le_bytes(), 1_u32.to_le_bytes());
        ours.set("ports", &key, &value).unwrap();
        kernel.set("ports", &key, &value).unwrap();
    }
    let mut random = Random(7);
    let packets: Vec<Vec<u8>> = (0..3000)
        .map(|_| (0..60).map(|_| random.below(40) as u8).collect())
        .collect();
    let counts = compare("onward", &mut ours, &mut kernel, &packets).unwrap();
    println!(
        "onward: {} packets agree, verdicts {counts:?}",
        packets.len()
    );
    assert!(counts.iter().all(|n| *n >= 10), "{counts:?}: shows nothing");
    let entries = ours.entries("counts").unwrap();
    let count = |at: u32| {
        let value = &entries[&at.to_le_bytes().to_vec()];
        u64::from_le_bytes(value.as_slice().try_into().unwrap())
    };
    assert_eq!(count(0), 3000);
    assert!(
        count(2) > 33 * 20,
        "the limit was not reached: {} tail calls",
        count(2)
    );
}

#[test]
fn calls_that_a_compiler_joined_are_the_kernels() {
    if let Some(why) = unavailable() {
        println!("skipped: comparison with the kernel, {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let source = root().join("tests/programs/joined.c");
    let mut ours = Emitted::of(&cache.path().join("cache"), &source, 2, &[]).unwrap();
    let mut kernel = Kernel::load(&ours.object).unwrap().program("joined");
    for (map, index) in [("ports", 1_u32), ("ports", 3), ("others", 2), ("others", 3)] {
        let (key, value) = (index.to_le_bytes(), 1_u32.to_le_bytes());
        ours.set(map, &key, &value).unwrap();
        kernel.set(map, &key, &value).unwrap();
    }
    let mut random = Random(5);
    let packets: Vec<Vec<u8>> = (0..3000)
        .map(|_| (0..60).map(|_| random.below(40) as u8).collect())
        .collect();
    let counts = compare("joined", &mut ours, &mut kernel, &packets).unwrap();
    println!(
        "joined: {} packets agree, verdicts {counts:?}",
        packets.len()
    );
    assert!(
        [1, 2, 4].iter().all(|v| counts[*v] >= 100),
        "{counts:?}: shows nothing"
    );
    for map in ["left", "right"] {
        let entries = ours.entries(map).unwrap();
        let counted = entries.values().filter(|v| **v != [0; 8]);
        assert!(counted.count() >= 8, "{map}");
    }
}

/// Whether what it does depends on nothing but the packets.
fn is_deterministic(ours: &Emitted) -> bool {
    helpers(&ours.program).all(|h| {
        !(h.effects.time
            || h.effects.random
            || *h == GET_SMP_PROCESSOR_ID
            || *h == PERF_EVENT_OUTPUT)
    })
}

/// Sets the same entries in both, in the maps whose entries are written alike.
fn fill(ours: &mut Emitted, kernel: &Kernel, packets: &[Vec<u8>]) -> Result<(), String> {
    for (object, key, value) in entries(&ours.program, packets) {
        let object = &ours.program.objects[object.0];
        let name = object.name.clone();
        if [&hash::KIND, &lpm_trie::KIND].contains(&object.kind) {
            kernel.set(&name, &key, &value)?;
            ours.set(&name, &key, &value)?;
        }
    }
    Ok(())
}

/// Programs of one object that agreed, or why it was not compared. A difference is a panic.
fn object(cache: &Path, file: &Path, packets: &[Vec<u8>]) -> Result<usize, String> {
    let capacities = [("*".to_owned(), u64::from(CAPACITY))];
    let mut ours = Emitted::of(cache, file, 2, &capacities).map_err(|_| "is refused here")?;
    if !is_deterministic(&ours) {
        return Err("depends on the clock, on chance, or on a reader of its events".into());
    }
    let names = programs(&ours.program);
    let mut agreed = 0;
    for name in &names {
        // Fresh maps for each.
        ours = Emitted::of(cache, file, 2, &capacities)?;
        ours.select(name)?;
        let kernel = Kernel::load_public(file, &names, CAPACITY);
        let mut kernel = kernel
            .map_err(|e| format!("is refused by the kernel or libbpf: {e}"))?
            .program(name);
        // A program that the kernel does not run in a test is no difference.
        kernel.run(&packets[0])?;
        let kernel = Kernel::load_public(file, &names, CAPACITY);
        let mut kernel = kernel?.program(name);
        fill(&mut ours, &kernel, packets)?;
        let counts = compare(name, &mut ours, &mut kernel, packets);
        let counts = counts.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        println!("{}: {name}: verdicts {counts:?}", file.display());
        agreed += 1;
    }
    Ok(agreed)
}

#[test]
fn public_objects_do_what_they_do_in_the_kernel() {
    let Some(files) = objects().unwrap() else {
        println!("skipped: public objects, MILLRACE_OBJECTS names no folder of them");
        return;
    };
    if let Some(why) = unavailable() {
        println!("skipped: comparison with the kernel, {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let packets = packets().unwrap();
    let (mut objects, mut programs) = (0, 0);
    for file in &files {
        match object(&cache.path().join("cache"), file, &packets) {
            Ok(agreed) => {
                objects += 1;
                programs += agreed;
            }
            Err(why) => println!("skipped: {}: {why}", file.display()),
        }
    }
    println!(
        "{objects} objects with {programs} programs agree with the kernel on {} packets each, of {} objects; none differs",
        packets.len(),
        files.len()
    );
    assert!(objects > 0, "no object was compared");
}
