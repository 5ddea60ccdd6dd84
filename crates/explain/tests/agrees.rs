//! An explanation agrees with the interpreter that has executed all packets itself, and with emitted code, on every packet:
//! the path, what was found in state and is there afterwards, the verdict, the bytes; and its words are what the numbers
//! were.

use std::collections::BTreeSet;
use std::sync::Mutex;

use millrace_dataplane::runner::Timers;
use millrace_explain::{Element, execute};
use millrace_object::contract::Holds;
use millrace_object::program::{Program, Role};
use millrace_reference::{End, Machine, Touch};
use millrace_topology::Topology;
use millrace_turns::of_today;
use millrace_verify::{Given, Packet, Trace};

use crate::common::{Built, few, root, traffic};

const STEPS: u64 = 4_000_000;

/// Accesses without the addresses of what was found, which are each machine's own.
fn alike(touches: &[Touch]) -> Vec<Touch> {
    let own = |t: &Touch| Touch {
        result: if t.result >> 40 == 0 || t.result >> 63 == 1 {
            t.result
        } else {
            1
        },
        ..t.clone()
    };
    touches.iter().map(own).collect()
}

/// How far the words of the model went.
#[derive(Default, Debug)]
struct Followed {
    packets: u64,
    branches: u64,
    /// of which nothing says the condition
    unsaid: u64,
    ended: BTreeSet<String>,
}

/// The interpreter on its own, from the first packet on.
struct Alone<'a> {
    machine: Machine<'a>,
    program: &'a Program,
    timers: Timers,
    every: Vec<usize>,
}

impl<'a> Alone<'a> {
    fn new(built: &'a Built, time: u64) -> Self {
        let mut machine = Machine::exact(&built.program);
        machine.advance(time, STEPS).unwrap();
        let entries = built.program.entries.iter().enumerate();
        let every = entries.filter(|(_, e)| matches!(e.role, Role::Every { .. }));
        let mut alone = Self {
            machine,
            program: &built.program,
            timers: Timers::new(built.module.timers(), time),
            every: every.map(|e| e.0).collect(),
        };
        for e in built
            .program
            .entries
            .iter()
            .filter(|e| e.role == Role::OnStart)
        {
            alone.handler(e.function, e.role);
        }
        alone
    }

    fn handler(&mut self, function: millrace_object::program::FunctionId, role: Role) {
        self.machine.ports(2);
        let end = self.machine.run(function, role, STEPS);
        assert!(matches!(end, Ok(End::Verdict(_))), "{end:?}");
    }

    fn until(&mut self, time: u64) {
        for (moment, timer) in self.timers.take(time) {
            self.machine.advance(moment, STEPS).unwrap();
            let entry = &self.program.entries[self.every[timer]];
            self.handler(entry.function, entry.role);
        }
        self.machine.advance(time, STEPS).unwrap();
    }
}

/// Executes every packet three times: by the interpreter on its own, by the one that takes the state of emitted code
/// over, and by emitted code.
fn compare(built: &Built, trace: &mut dyn Trace, most: u64) -> Followed {
    let part = built.part();
    let parts = [part];
    let topology = Topology::alone(parts[0].ports.len());
    let mut walk = millrace_explain::Walk::new(&parts, &topology);
    let mut alone: Option<Alone<'_>> = None;
    // A sketch counts exactly here and may count more there; what a program draws is drawn from the packet's number.
    let counts = built
        .program
        .objects
        .iter()
        .any(|o| o.kind.holds == Holds::Estimates);
    let mut followed = Followed::default();
    let mut pass = trace.open().unwrap();
    let mut number = 0;
    while let Some((port, time, wire, frame)) = pass.next().unwrap() {
        if number == most {
            break;
        }
        let time = walk.comes(time);
        let packet = Packet {
            number,
            port,
            time,
            wire,
            frame: frame.to_vec(),
        };
        let alone = alone.get_or_insert_with(|| Alone::new(built, time));
        alone.until(time);
        let mut expected = None;
        walk.pass(&packet, &mut |hop, element: &mut Element<'_>| {
            let name = &built.name;
            let Some((fate, bytes)) = hop.done else {
                let done = execute(element, hop.packet)
                    .unwrap_or_else(|e| panic!("{name}: {number}: {e}"));
                let entry = &built.program.entries[element.part.running().unwrap()];
                let machine = &mut alone.machine;
                machine.ports(element.part.ports.len() as u32);
                machine.packet(&packet.frame, 256, packet.port);
                machine.tailroom(256);
                machine.record();
                let end = machine.run(entry.function, entry.role, STEPS);
                assert!(
                    matches!(end, Ok(End::Verdict(_))),
                    "{name}: {number}: {end:?}"
                );
                let trail = machine.trail().to_vec();
                let log = machine.take_log();
                if !counts {
                    assert_eq!(
                        done.trail, trail,
                        "{name}: packet {number} took another path"
                    );
                    assert_eq!(
                        alike(&done.log.touches),
                        alike(&log.touches),
                        "{name}: packet {number}"
                    );
                    assert_eq!(
                        done.log.before, log.before,
                        "{name}: packet {number} found another state"
                    );
                    assert_eq!(
                        done.bytes,
                        machine.packet_bytes(),
                        "{name}: packet {number}"
                    );
                    for (object, key) in log.before.keys() {
                        let (a, b) = (machine.peek(*object, key), done.machine.peek(*object, key));
                        assert_eq!(a, b, "{name}: packet {number} leaves another state");
                    }
                }
                let flow = &element.part.checked.flows[element.part.running().unwrap()];
                let along = millrace_explain::follow_along(element.part, flow, hop.packet, &done);
                followed.branches += done.log.branches.len() as u64;
                for d in &along.decisions {
                    assert!(
                        d.agrees || d.condition.is_none() || !along.unsure.is_empty(),
                        "{name}: packet {number}: a condition is not what it was"
                    );
                    followed.unsaid += u64::from(!d.agrees && d.condition.is_some());
                }
                followed.ended.extend(along.ended);
                expected = Some(done);
                return Ok(());
            };
            let done = expected.take().unwrap();
            assert_eq!(done.fate, fate, "{name}: packet {number}");
            assert_eq!(done.bytes, bytes, "{name}: packet {number}");
            for (object, key) in done.log.before.keys() {
                if let Ok(theirs) = element.instance.get(object.0, key, time) {
                    assert_eq!(
                        done.machine.peek(*object, key),
                        theirs,
                        "{name}: packet {number} leaves another state"
                    );
                }
            }
            Ok(())
        })
        .unwrap();
        alone.machine.take_records();
        number += 1;
    }
    followed.packets = number;
    followed
}

/// The packets of a capture; those from 10.0.0.0/8 come in at the first port.
fn captured(file: &str) -> Vec<Packet> {
    let mut reader = millrace_traffic::capture::Reader::open(root().join(file)).unwrap();
    let mut packets: Vec<Packet> = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        packets.push(Packet {
            number: packets.len() as u64,
            port: u32::from(record.data.get(26) != Some(&10)),
            time: record.time_ns,
            wire: record.original_length,
            frame: record.data.to_vec(),
        });
    }
    packets
}

/// `MILLRACE_EXPLAINED` says which capture each function has; otherwise packets are made, with `MILLRACE_LONG` many.
#[test]
fn every_function_on_every_packet() {
    let capture = std::env::var("MILLRACE_EXPLAINED").ok();
    let capture = capture.map(|file| captured(&file));
    let most = match (&capture, std::env::var_os("MILLRACE_LONG")) {
        (Some(packets), _) => packets.len() as u64,
        (None, Some(_)) => 20_000,
        (None, None) => 96,
    };
    let mut functions: Vec<String> = std::fs::read_dir(root().join("nfs"))
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.path().is_dir())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    functions.sort();
    assert!(functions.len() > 12, "{functions:?}");
    let functions = of_today("functions that are explained", functions, 3);
    let waiting = Mutex::new(functions);
    let next = || waiting.lock().unwrap().pop();
    let work = || {
        std::iter::from_fn(next)
            .map(|name| {
                let built = Built::named(&name);
                let followed = match &capture {
                    Some(packets) => compare(&built, &mut Given(packets.clone()), most),
                    None => compare(&built, &mut traffic(most), most),
                };
                (name, followed)
            })
            .collect::<Vec<_>>()
    };
    let all = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut all = work();
        all.extend(other.join().unwrap());
        all
    });
    for (name, followed) in all {
        assert_eq!(followed.packets, most, "{name}");
        // Each branch of ours is told in words.
        assert!(
            followed.ended.is_empty() && followed.unsaid == 0,
            "{name}: {followed:?}"
        );
        println!("{name}: {followed:?}");
    }
}

/// Programs of XDP: those of tests/programs, and, where $MILLRACE_OBJECTS names a folder of public objects, these.
fn strangers() -> Vec<std::path::PathBuf> {
    let folder = root().join("tests/programs");
    let mut all: Vec<std::path::PathBuf> = match std::env::var_os("MILLRACE_LONG") {
        Some(_) => std::fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect(),
        None => [
            "timers.c",
            "rounds.c",
            "sequences.c",
            "onward.c",
            "nested.c",
        ]
        .map(|f| folder.join(f))
        .into(),
    };
    if let Some(objects) = std::env::var_os("MILLRACE_OBJECTS") {
        all.extend(
            std::fs::read_dir(objects)
                .unwrap()
                .map(|e| e.unwrap().path()),
        );
    }
    all.retain(|p| p.extension().is_some_and(|e| e == "c" || e == "o"));
    all.sort();
    all
}

#[test]
fn strangers_programs_on_every_packet() {
    let mut compared = 0;
    for path in strangers() {
        let Some(built) = Built::try_of(&path, &[("*", 64)]) else {
            continue;
        };
        let filters = built.program.objects.iter().any(|o| o.kind.membership());
        if filters || built.part().running().is_none() {
            continue;
        }
        let followed = compare(&built, &mut traffic(48), 48);
        compared += 1;
        println!("{}: {followed:?}", path.display());
    }
    assert!(compared >= 4, "{compared}");
}

#[test]
fn little_room_and_chance() {
    // Leases end and are given again, in the order in which they became free.
    let nat = root().join("nfs/nat/nat.c");
    let nat = Built::of(&nat, &[], &[("leases", 4)]);
    compare(&nat, &mut few(400, 4, 4.0), 400);
    // Tables that are full.
    let firewall = root().join("nfs/firewall/firewall.c");
    let firewall = Built::of(&firewall, &[], &[("flows", 5)]);
    compare(&firewall, &mut traffic(200), 200);
    let numbers = root().join("crates/explain/tests/programs/numbers.c");
    let numbers = Built::of(&numbers, &[], &[]);
    compare(&numbers, &mut traffic(200), 200);
    // Prefixes that packets add, below others and above them.
    let prefixes = root().join("crates/explain/tests/programs/prefixes.c");
    let prefixes = Built::of(&prefixes, &[], &[]);
    compare(&prefixes, &mut traffic(400), 400);
    // Draws, and eviction.
    let chance = Built::of(
        &root().join("crates/explain/tests/programs/chance.c"),
        &[],
        &[],
    );
    let followed = compare(&chance, &mut traffic(400), 400);
    assert!(
        followed.ended.is_empty() && followed.unsaid == 0,
        "{followed:?}"
    );
}
