//! Programs that others wrote, in emitted code and by the interpreter: the same packets and entries, and
//! after each packet the same fate, bytes and records; in the end the same state.
//!
//! The objects are those in the folder $MILLRACE_OBJECTS; none is part of this repository.

use std::path::Path;

use millrace_dataplane::packet::{Fate, HEADROOM, SLOT, TAILROOM};
use millrace_object::program::{FunctionId, Nesting, ObjectId, Role};
use millrace_object::state::{StateKind, array_of_maps};
use millrace_reference::{End, Machine, Target};
use millrace_tests::command::root;
use millrace_tests::emitted::Emitted;
use millrace_tests::public::{CAPACITY, LISTED, entries, objects, packets, programs};
use millrace_tests::random::Random;

/// More than any admitted program here executes.
const STEPS: u64 = 4_000_000;

const PORTS: u32 = 3;

fn fate(verdict: u64, target: Option<Target>) -> Fate {
    match (verdict as u32, target) {
        (1, _) => Fate::Dropped(0),
        (2, _) => Fate::Passed,
        (3, _) => Fate::Forwarded(0),
        // A redirect to no interface's port: the host aborts it.
        (4, None) => Fate::Forwarded(u32::MAX),
        (4, Some(Target::Port(port))) => Fate::Forwarded(port),
        (4, Some(Target::Others)) => Fate::Flooded,
        (4, Some(Target::Host)) => Fate::Passed,
        (4, Some(Target::Socket)) => Fate::Consumed,
        (4, Some(Target::Nobody)) => Fate::Dropped(0),
        _ => Fate::Aborted,
    }
}

/// Whether a difference of state would be one of the object.
fn is_compared(kind: &StateKind) -> bool {
    !kind.holds_records() && !kind.holds_programs()
}

/// Runs one program in both ways on the packets. The inner error is why that cannot be compared.
fn compare(
    ours: &mut Emitted,
    name: &str,
    function: FunctionId,
    packets: &[Vec<u8>],
) -> Result<Result<(), String>, String> {
    let program = ours.program.clone();
    let mut machine = Machine::exact(&program);
    machine.ports(PORTS);
    for (object, key, value) in entries(&program, packets) {
        ours.set(&program.objects[object.0].name, &key, &value)?;
        machine.set(object, &key, &value);
    }
    // The first place of each array of maps gets a map, as that of the first CPU would.
    for (i, object) in program.objects.iter().enumerate() {
        let key = vec![0; object.key_bytes as usize];
        let empty = machine.inner(ObjectId(i), &key).is_none();
        if *object.kind == array_of_maps::KIND && empty {
            ours.set(&object.name, &key, &u32::MAX.to_le_bytes())?;
            machine.nest(ObjectId(i), &key, None);
        }
    }
    // A buffer grows with the longest packet it has held, and with it the tailroom of all.
    let mut buffer = SLOT;
    for (number, packet) in packets.iter().enumerate() {
        buffer = buffer.max(HEADROOM + packet.len() + TAILROOM);
        machine.packet(packet, HEADROOM, 0);
        machine.tailroom(buffer - HEADROOM - packet.len());
        let verdict = match machine.run(function, Role::Xdp, STEPS) {
            Ok(End::Verdict(verdict)) => verdict,
            Ok(End::OutOfSteps) => return Err("does not end".into()),
            Err(e) if e.0.contains("exact meaning") => return Ok(Err(e.0)),
            Err(violation) => return Err(format!("packet {number}: {}", violation.0)),
        };
        let expected = fate(verdict, machine.target());
        let outcome = ours.run(packet)?;
        if outcome.fate != expected {
            return Err(format!(
                "{name}, packet {number}: {:?} in emitted code, {expected:?} by the interpreter\n{packet:02x?}",
                outcome.fate
            ));
        }
        if outcome.packet != machine.packet_bytes() {
            return Err(format!("{name}, packet {number}: bytes differ"));
        }
        let records: Vec<_> = (machine.take_records().into_iter())
            .map(|(id, bytes)| (program.objects[id.0].name.clone(), bytes))
            .collect();
        if ours.records() != records {
            return Err(format!("{name}, packet {number}: records differ"));
        }
    }
    for (i, object) in program.objects.iter().enumerate() {
        if object.read_only && object.kind.is_global() || !is_compared(object.kind) {
            continue;
        }
        if object.kind.holds_maps() {
            continue;
        }
        if object.capacity > LISTED {
            println!(
                "skipped: entries of {}, of {} places",
                object.name, object.capacity
            );
            continue;
        }
        let Ok(mine) = ours.entries(&object.name) else {
            continue;
        };
        let theirs = match object.nesting {
            // Those of all maps in the holder, by both keys.
            Some(Nesting::Shape(holder)) => {
                let maps = machine.inner_maps(holder).into_iter();
                let maps = maps.filter(|(_, map)| map.0 >= program.objects.len());
                maps.flat_map(|(outer, map)| {
                    let entries = machine.entries(map).into_iter();
                    entries.map(move |(key, value)| ([outer.clone(), key].concat(), value))
                })
                .collect()
            }
            _ => machine.entries(ObjectId(i)),
        };
        if mine != theirs {
            return Err(format!("{name}: the state of {} differs", object.name));
        }
    }
    Ok(Ok(()))
}

/// Compares every program of an object: how many agree, and what differs or cannot be compared.
fn object(
    cache: &Path,
    file: &Path,
    packets: &[Vec<u8>],
    differences: &mut Vec<String>,
) -> Result<usize, String> {
    let capacities = [("*".to_owned(), u64::from(CAPACITY))];
    let first = Emitted::of(cache, file, PORTS, &capacities).map_err(|_| "is refused here")?;
    let mut agreed = 0;
    for (index, name) in programs(&first.program).iter().enumerate() {
        // Fresh state for each.
        let mut ours = Emitted::of(cache, file, PORTS, &capacities)?;
        ours.select(name)?;
        let function = ours.program.entries[index].function;
        match compare(&mut ours, name, function, packets) {
            Ok(Ok(())) => agreed += 1,
            Ok(Err(why)) => println!("skipped: {}: {name}: {why}", file.display()),
            Err(difference) => differences.push(format!("{}: {difference}", file.display())),
        }
    }
    Ok(agreed)
}

#[test]
fn tail_calls_and_redirects_are_the_interpreters() {
    let cache = tempfile::tempdir().unwrap();
    let source = root().join("tests/programs/onward.c");
    let mut differences = Vec::new();
    let packets = packets().unwrap();
    let agreed = object(
        &cache.path().join("cache"),
        &source,
        &packets,
        &mut differences,
    );
    assert_eq!(differences, [""; 0]);
    assert!(agreed.unwrap() > 1);
}

#[test]
fn public_objects_do_what_they_do_in_the_interpreter() {
    let Some(files) = objects().unwrap() else {
        println!("skipped: public objects, MILLRACE_OBJECTS names no folder of them");
        return;
    };
    let cache = tempfile::tempdir().unwrap();
    let packets = packets().unwrap();
    let mut differences = Vec::new();
    let (mut compared, mut agreed) = (0, 0);
    for file in &files {
        match object(
            &cache.path().join("cache"),
            file,
            &packets,
            &mut differences,
        ) {
            Ok(programs) => {
                compared += usize::from(programs > 0);
                agreed += programs;
            }
            Err(why) => println!("skipped: {}: {why}", file.display()),
        }
    }
    println!(
        "{compared} objects with {agreed} programs agree with the interpreter on {} packets each, {} differ",
        packets.len(),
        differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 0, "no object was compared");
}

#[test]
fn full_lru_maps_and_draws_are_the_interpreters() {
    let cache = tempfile::tempdir().unwrap();
    let source = root().join("tests/programs/full.c");
    let mut ours = Emitted::of(&cache.path().join("cache"), &source, 1, &[]).unwrap();
    let function = ours.program.entries[0].function;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let packets: Vec<Vec<u8>> = (0..20_000)
        .map(|_| (0..60).map(|_| random.below(256) as u8).collect())
        .collect();
    compare(&mut ours, "full", function, &packets)
        .unwrap()
        .unwrap();
    for (map, capacity) in [("recent", 5), ("mine", 70)] {
        assert_eq!(ours.entries(map).unwrap().len(), capacity, "{map}");
    }
    println!("full: {} packets agree", packets.len());
}
