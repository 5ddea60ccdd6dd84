//! Queues, stacks, Bloom filters and maps of maps: the kernel, the emitted code and the interpreter do the
//! same with the same packets.

use libbpf_rs::MapType;
use millrace_dataplane::packet::Fate;
use millrace_object::Program;
use millrace_object::program::{FunctionId, ObjectId, Role};
use millrace_reference::{End, Machine};
use millrace_tests::command::root;
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Entries, Kernel, Like, unavailable};
use millrace_tests::random::Random;

/// Enough steps for any of these programs.
const STEPS: u64 = 10_000;

fn packets(count: usize) -> Vec<Vec<u8>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut packet = || -> Vec<u8> {
        let most = [3, 16, 256, 256][random.below(4)];
        let mut packet: Vec<u8> = (0..60).map(|_| random.below(most) as u8).collect();
        packet[14] = random.below(256) as u8;
        // Flags: mostly those that there are.
        packet[15] = [0, 0, 2, random.below(256) as u8][random.below(4)];
        packet
    };
    (0..count).map(|_| packet()).collect()
}

fn id(program: &Program, name: &str) -> ObjectId {
    ObjectId(program.objects.iter().position(|o| o.name == name).unwrap())
}

fn emitted(cache: &tempfile::TempDir, name: &str) -> Emitted {
    let source = root().join(format!("tests/programs/{name}.c"));
    Emitted::of(&cache.path().join("cache"), &source, 2, &[]).unwrap()
}

/// The kernel's number for a fate.
fn verdict(fate: Fate) -> u64 {
    match fate {
        Fate::Aborted => 0,
        Fate::Dropped(_) => 1,
        Fate::Passed => 2,
        Fate::Forwarded(_) => 3,
        Fate::Flooded | Fate::Consumed => panic!("{fate:?}"),
    }
}

/// Runs all three on each packet, and prints that they agree; says how often each verdict was given.
fn compare(
    name: &str,
    ours: &mut Emitted,
    machine: &mut Machine,
    entry: FunctionId,
    kernel: Option<&mut Kernel>,
    packets: &[Vec<u8>],
) -> [usize; 5] {
    let mut counts = [0; 5];
    let mut kernel = kernel;
    for (number, packet) in packets.iter().enumerate() {
        let outcome = ours.run(packet).unwrap();
        machine.packet(packet, 0, 0);
        let end = machine.run(entry, Role::Xdp, STEPS).unwrap();
        let at = format!("packet {number}: {packet:02x?}");
        assert_eq!(end, End::Verdict(verdict(outcome.fate)), "{at}");
        assert_eq!(machine.packet_bytes(), outcome.packet, "{at}");
        if let Some(kernel) = &mut kernel {
            let theirs = kernel.run(packet).unwrap();
            assert_eq!(u64::from(theirs.verdict), verdict(outcome.fate), "{at}");
            assert_eq!(theirs.packet, outcome.packet, "{at}");
        }
        counts[verdict(outcome.fate) as usize] += 1;
    }
    println!(
        "{name}: {} packets agree, verdicts {counts:?}",
        packets.len()
    );
    counts
}

/// The entries of a map, which all three have left.
fn left(ours: &mut Emitted, machine: &Machine, kernel: Option<&Kernel>, name: &str) -> Entries {
    let mine = ours.entries(name).unwrap();
    assert_eq!(machine.entries(id(&ours.program, name)), mine, "{name}");
    if let Some(kernel) = kernel {
        assert_eq!(kernel.entries(name).unwrap(), mine, "{name}");
    }
    mine
}

fn kernel(ours: &Emitted) -> Option<Kernel> {
    if let Some(why) = unavailable() {
        println!("skipped: comparison with the kernel, {why}");
        return None;
    }
    Some(Kernel::load(&ours.object).unwrap())
}

#[test]
fn queues_stacks_and_filters_do_the_same_everywhere() {
    let cache = tempfile::tempdir().unwrap();
    let mut ours = emitted(&cache, "sequences");
    let program = ours.program.clone();
    let mut machine = Machine::exact(&program);
    let mut kernel = kernel(&ours);
    let packets = packets(20_000);
    let entry = program.entries[0].function;
    let counts = compare(
        "sequences",
        &mut ours,
        &mut machine,
        entry,
        kernel.as_mut(),
        &packets,
    );
    assert!(counts[1] > 1000 && counts[3] > 1000, "{counts:?}");
    for name in ["queue", "stack"] {
        let mut mine = ours.values(name).unwrap();
        assert_eq!(machine.held(id(&program, name)), mine, "{name}");
        assert!(!mine.is_empty(), "{name} is empty in the end");
        if name == "stack" {
            mine.reverse();
        }
        if let Some(kernel) = &kernel {
            assert_eq!(kernel.take(name).unwrap(), mine, "{name}");
        }
    }
}

#[test]
fn maps_of_maps_do_the_same_everywhere() {
    let cache = tempfile::tempdir().unwrap();
    let mut ours = emitted(&cache, "nested");
    let program = ours.program.clone();
    let mut machine = Machine::exact(&program);
    let mut kernel = kernel(&ours);
    // Tenants 1 and 2 get an array each, as the host would make them; tenant 3 gets one and loses it.
    let tenants = id(&program, "tenants");
    let array = Like {
        kind: MapType::Array,
        key_bytes: 4,
        value_bytes: 4,
        capacity: 4,
    };
    let mut theirs = Vec::new();
    for tenant in [1_u16, 2, 3] {
        let key = tenant.to_le_bytes();
        machine.nest(tenants, &key, None).unwrap();
        ours.set("tenants", &key, &u32::MAX.to_le_bytes()).unwrap();
        if let Some(kernel) = &kernel {
            theirs.push((key, kernel.nest("tenants", &key, &array).unwrap()));
        }
    }
    machine.leave(tenants, &3_u16.to_le_bytes());
    assert!(ours.remove("tenants", &3_u16.to_le_bytes()).unwrap());
    if let Some(kernel) = &kernel {
        kernel.remove("tenants", &3_u16.to_le_bytes()).unwrap();
        theirs.pop();
    }
    for (tenant, index, limit) in [(1_u16, 0_u32, 300_u32), (1, 3, 40), (2, 2, 7)] {
        let (outer, inner) = (tenant.to_le_bytes(), index.to_le_bytes());
        let both = [&outer[..], &inner[..]].concat();
        let value = limit.to_le_bytes();
        ours.set("tenants.maps", &both, &value).unwrap();
        let map = machine.inner(tenants, &outer).unwrap();
        machine.set_entry(map, &inner, &value);
        for (_, map) in theirs.iter().filter(|(key, _)| *key == outer) {
            map.set(&inner, &value).unwrap();
        }
    }
    let packets = packets(20_000);
    let entry = program.entries[0].function;
    let counts = compare(
        "nested",
        &mut ours,
        &mut machine,
        entry,
        kernel.as_mut(),
        &packets,
    );
    assert!(counts[..4].iter().all(|n| *n > 50), "{counts:?}");
    for name in ["red", "green", "blue"] {
        let mine = left(&mut ours, &machine, kernel.as_ref(), name);
        assert!(!mine.is_empty(), "{name} was never written");
    }
    // The inner maps' entries are listed together, the tenant's key before their own.
    let mine = ours.entries("tenants.maps").unwrap();
    let mut expected = Entries::new();
    for tenant in [1_u16, 2] {
        let outer = tenant.to_le_bytes();
        let map = machine.inner(tenants, &outer).unwrap();
        for (inner, value) in machine.entries(map) {
            expected.insert([&outer[..], &inner[..]].concat(), value);
        }
    }
    assert_eq!(mine, expected);
    for (outer, map) in &theirs {
        for (inner, value) in map.entries().unwrap() {
            assert_eq!(expected[&[&outer[..], &inner[..]].concat()], value);
        }
    }
    let colours: Vec<_> = ours.entries("colours").unwrap().into_iter().collect();
    let number = |key: u32, map: u32| (key.to_le_bytes().to_vec(), map.to_le_bytes().to_vec());
    assert_eq!(
        colours,
        [number(0, 1), number(2, 2), number(3, 3), number(4, 1)],
        "an object's number is its place in the program, from 1"
    );
}

#[test]
fn odd_sizes_do_the_same_everywhere() {
    let cache = tempfile::tempdir().unwrap();
    let mut ours = emitted(&cache, "odd");
    let program = ours.program.clone();
    let mut machine = Machine::exact(&program);
    let mut kernel = kernel(&ours);
    let holders = id(&program, "holders");
    let like = Like {
        kind: MapType::Hash,
        key_bytes: 3,
        value_bytes: 7,
        capacity: 3,
    };
    let mut theirs = Vec::new();
    for last in [1_u8, 2] {
        let key = [0, 0, 0, 0, 0, 0, last];
        machine.nest(holders, &key, None).unwrap();
        ours.set("holders", &key, &u32::MAX.to_le_bytes()).unwrap();
        if let Some(kernel) = &kernel {
            theirs.push((key, kernel.nest("holders", &key, &like).unwrap()));
        }
    }
    let packets = packets(20_000);
    let entry = program.entries[0].function;
    let counts = compare(
        "odd",
        &mut ours,
        &mut machine,
        entry,
        kernel.as_mut(),
        &packets,
    );
    assert!(counts[1] > 100 && counts[3] > 100, "{counts:?}");
    for name in ["scratch", "widest", "thirteens", "fives"] {
        let mine = left(&mut ours, &machine, kernel.as_ref(), name);
        assert!(!mine.is_empty(), "{name} was never written");
    }
    let mine = ours.entries("holders.maps").unwrap();
    assert_eq!(mine.len(), 6, "both are full: {mine:02x?}");
    for (outer, map) in &theirs {
        for (inner, value) in map.entries().unwrap() {
            assert_eq!(mine[&[&outer[..], &inner[..]].concat()], value);
        }
    }
}

#[test]
fn calls_on_several_maps_do_the_same_everywhere() {
    let cache = tempfile::tempdir().unwrap();
    let mut ours = emitted(&cache, "either");
    let program = ours.program.clone();
    let mut machine = Machine::exact(&program);
    ours.select("either").unwrap();
    let mut kernel = kernel(&ours).map(|k| k.program("either"));
    let mut random = Random(21);
    let packets: Vec<Vec<u8>> = (0..20_000)
        .map(|_| (0..60).map(|_| random.below(256) as u8).collect())
        .collect();
    let named = |name: &str| program.functions.iter().position(|f| f.name == name);
    let entry = FunctionId(named("either").unwrap());
    let counts = compare(
        "either",
        &mut ours,
        &mut machine,
        entry,
        kernel.as_mut(),
        &packets,
    );
    assert!(counts[..4].iter().all(|n| *n > 100), "{counts:?}");
    for name in ["four", "six", "first", "second", "third"] {
        let mine = left(&mut ours, &machine, kernel.as_ref(), name);
        assert!(mine.len() > 5, "{name}: {mine:02x?}");
    }
}

#[test]
fn calls_on_maps_found_or_declared_do_the_same_everywhere() {
    let cache = tempfile::tempdir().unwrap();
    let mut ours = emitted(&cache, "found");
    let program = ours.program.clone();
    let mut machine = Machine::exact(&program);
    let mut kernel = kernel(&ours);
    let packets = packets(20_000);
    let entry = program.entries[0].function;
    let counts = compare(
        "found",
        &mut ours,
        &mut machine,
        entry,
        kernel.as_mut(),
        &packets,
    );
    assert!(counts[1] > 1000 && counts[3] > 1000, "{counts:?}");
    for name in ["red", "green", "fallback", "last", "sums"] {
        let mine = left(&mut ours, &machine, kernel.as_ref(), name);
        let written = mine.values().filter(|v| v.iter().any(|b| *b != 0));
        assert!(written.count() > 2, "{name} was hardly written: {mine:?}");
    }
}
