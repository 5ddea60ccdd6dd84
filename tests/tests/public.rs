//! Programs that others wrote, and ours with the features that only those have, against the kernel: the
//! same packets, and after each the same verdict and bytes; in the end the same maps.
//!
//! The objects of others are those in the folder $MILLRACE_OBJECTS; none is part of this repository.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use libbpf_rs::MapType;
use millrace_dataplane::packet::Fate;
use millrace_object::Insn;
use millrace_object::helper;
use millrace_tests::command::{captures, root};
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Kernel, unavailable};
use millrace_traffic::capture::Reader;

/// The kernel runs a program on frames of at least an Ethernet header, in a buffer of a page.
const LENGTHS: std::ops::RangeInclusive<usize> = 14..=3000;

/// Frames of each capture, and as many mutants, per program.
const FRAMES: usize = 400;

/// Entries of maps whose authors left that open.
const CAPACITY: u32 = 64;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

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

/// Frames of the captures and mutants of them.
fn packets() -> Vec<Vec<u8>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut packets = Vec::new();
    for capture in captures() {
        let mut reader = Reader::open(capture.to_str().unwrap()).unwrap();
        let mut taken = 0;
        while let Some(record) = reader.next().unwrap() {
            let frame = record.data.to_vec();
            let mut mutant = frame.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(mutant.len().min(60));
                mutant[at] = random.below(256) as u8;
            }
            mutant.truncate(14 + random.below(mutant.len()));
            packets.extend([frame, mutant]);
            taken += 1;
            if taken == FRAMES {
                break;
            }
        }
    }
    packets.retain(|p| LENGTHS.contains(&p.len()));
    packets
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

/// Whether what it does depends on nothing but the packets.
fn is_deterministic(ours: &Emitted) -> bool {
    let calls = ours.program.functions.iter().flat_map(|f| &f.insns);
    calls
        .filter_map(|insn| match insn {
            Insn::Call { helper } => helper::by_number(*helper),
            _ => None,
        })
        .all(|h| {
            !(h.effects.time
                || h.effects.random
                || h.name == "get_smp_processor_id"
                || h.kinds.contains(&"perf_event_array"))
        })
}

/// Programs of one object that agreed, or why it was not compared. A difference is a panic.
fn object(cache: &Path, file: &Path, packets: &[Vec<u8>]) -> Result<usize, String> {
    let capacities = [("*".to_owned(), u64::from(CAPACITY))];
    let mut ours = Emitted::of(cache, file, 2, &capacities).map_err(|_| "is refused here")?;
    if !is_deterministic(&ours) {
        return Err("depends on the clock, on chance, or on a reader of its events".into());
    }
    let names: Vec<String> = (ours.program.entries.iter())
        .filter_map(|e| ours.program.functions.get(e.function.0))
        .map(|f| f.name.clone())
        .collect();
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
        let counts = compare(name, &mut ours, &mut kernel, packets);
        let counts = counts.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        println!("{}: {name}: verdicts {counts:?}", file.display());
        agreed += 1;
    }
    Ok(agreed)
}

#[test]
fn public_objects_do_what_they_do_in_the_kernel() {
    let Some(folder) = std::env::var_os("MILLRACE_OBJECTS") else {
        println!("skipped: public objects, MILLRACE_OBJECTS names no folder of them");
        return;
    };
    if let Some(why) = unavailable() {
        println!("skipped: comparison with the kernel, {why}");
        return;
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "o"))
        .collect();
    files.sort();
    let cache = tempfile::tempdir().unwrap();
    let packets = packets();
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
        "{objects} objects with {programs} programs agree with the kernel on {} packets each",
        packets.len()
    );
    assert!(objects > 0, "no object was compared");
}
