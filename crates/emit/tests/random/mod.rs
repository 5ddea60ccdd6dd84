//! Random programs: what is emitted of them against the reference interpreter.

pub mod generate;
mod sums;
use crate::support;

use millrace_check::{Options, check};
use millrace_object::insn::Insn;
use millrace_object::program::FunctionId;
use millrace_object::program::{LINKED, Program, Role};
use millrace_reference::{End, Machine};
use millrace_turns::of_today;
use support::random::Random;
use support::{Bench, Packet, Way, function, program};

/// Programs a module.
const BATCH: u64 = 40;
/// Packets a program.
const PACKETS: u64 = 12;

/// What programs and packets are like.
#[derive(Clone, Copy)]
struct Shape {
    /// an entry and the function it may call (number 1)
    program: fn(&mut Random) -> (Vec<Insn>, Vec<Insn>),
    /// bits that bytes of a packet may have
    masks: &'static [u8],
    /// every byte that is not 0 has all of them
    full: bool,
    /// as if linked: common packets have steps of their own
    linked: bool,
}

/// The headers of a common packet: UDP over IPv4.
const COMMON: [u8; 42] = [
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, // Ethernet
    0x45, 0, 0, 114, 0, 1, 0, 0, 64, 17, 0x46, 0x45, 10, 0, 0, 1, 198, 51, 100, 1, // IPv4
    0x9c, 0x40, 0, 53, 0, 94, 0, 0, // UDP
];

/// Small numbers as often as large ones: both sides of branches are taken.
const ANY: Shape = Shape {
    program: generate::program,
    masks: &[0x01, 0x0f, 0xff],
    full: false,
    linked: false,
};
/// Sums, and words that are zeros of one's complement.
const SUMS: Shape = Shape {
    program: sums::program,
    masks: &[0x01, 0xff, 0xff],
    full: true,
    linked: false,
};

/// The programs of a seed that the checker admits, as entries of one.
fn admitted(seed: u64, shape: Shape) -> Program {
    let mut random = Random(seed);
    let mut bodies = Vec::new();
    for _ in 0..BATCH {
        let (entry, callee) = (shape.program)(&mut random);
        let one = program(
            vec![
                function("entry", entry.clone()),
                function("callee", callee.clone()),
            ],
            1,
        );
        match check(&one, &Options::default()) {
            Ok(_) => bodies.push((entry, callee)),
            Err(refusals) => eprintln!(
                "refused: {} at {}: {}",
                refusals[0].rule, refusals[0].text, refusals[0].reason
            ),
        }
    }
    let entries = bodies.len();
    assert!(
        entries as u64 * 10 > BATCH * 9,
        "most are admitted: {entries} of {BATCH}"
    );
    let mut functions = Vec::new();
    for (index, (entry, _)) in bodies.iter().enumerate() {
        let mut entry = entry.clone();
        for insn in &mut entry {
            if let Insn::CallLocal { function } = insn {
                *function = FunctionId(entries + index);
            }
        }
        let mut entry = function(&format!("entry{index}"), entry);
        if shape.linked {
            entry.section = LINKED.to_owned();
        }
        functions.push(entry);
    }
    functions.extend(
        bodies
            .into_iter()
            .map(|(_, callee)| function("callee", callee)),
    );
    program(functions, entries)
}

fn compare(seed: u64, sanitize: bool, shape: Shape) {
    let program = admitted(seed, shape);
    let mut random = Random(!seed);
    let mut packets = Vec::new();
    for index in 0..program.entries.len() as u32 {
        for _ in 0..PACKETS {
            let mask = random.of(shape.masks);
            let full = shape.full && random.below(2) == 0;
            let byte = |byte: u8| match full && byte & 1 != 0 {
                true => 0xff,
                false if full => 0,
                false => byte & mask,
            };
            let mut bytes: Vec<u8> = (0..generate::PACKET)
                .map(|_| byte(random.next() as u8))
                .collect();
            if shape.linked && random.below(3) > 0 {
                bytes.fill(0);
                bytes[..COMMON.len()].copy_from_slice(&COMMON);
                // It may leave the way of such a packet somewhere.
                for _ in 0..random.below(3) {
                    let at = random.below(generate::PACKET) as usize;
                    bytes[at] = random.next() as u8;
                }
            }
            packets.push(Packet {
                program: index,
                port: 0,
                time: 1,
                bytes,
            });
        }
    }
    let bench = Bench::new();
    let module = bench.module(&program, sanitize);
    let way = Way {
        sanitize,
        plain: false,
        burst: 32,
    };
    let (outcomes, _) = bench.run(&program, &module, way, &packets);
    for (packet, outcome) in packets.iter().zip(&outcomes) {
        let entry = FunctionId(packet.program as usize);
        let end = Machine::new(&program, &packet.bytes, 0).run(entry, Role::Xdp, 100_000);
        let found = u64::from_le_bytes(outcome.bytes[..8].try_into().unwrap());
        if end != Ok(End::Verdict(found)) {
            for (at, _) in program.functions[entry.0].insns.iter().enumerate() {
                eprintln!("{at}: {}", program.text(entry, at));
            }
            panic!(
                "seed {seed}, program {}: emitted code gives {found:#x}, the interpreter {end:?}",
                entry.0
            );
        }
    }
}

#[test]
fn emitted_code_agrees_with_the_interpreter() {
    for seed in of_today("modules of random programs", 0..6, 3) {
        compare(seed, false, ANY);
    }
}

#[test]
fn and_under_sanitizers() {
    compare(100, true, ANY);
}

/// Packets that take the common packets' way, and such as leave it somewhere.
#[test]
fn the_way_of_common_packets_agrees() {
    let mut apart = 0;
    let shapes = (20..).zip([ANY, SUMS, ANY, SUMS]);
    for (seed, shape) in of_today("modules with the way of common packets", shapes, 2) {
        let linked = Shape {
            linked: true,
            ..shape
        };
        let lines = |shape: Shape| {
            let program = admitted(seed, shape);
            let checked = check(&program, &Options::default()).unwrap();
            let text = millrace_emit::alone::emit(&program, &checked, "ways.c").unwrap();
            text.lines().count()
        };
        apart += lines(linked) - lines(shape);
        compare(seed, seed < 22, linked);
    }
    println!("{apart} lines are of steps of their own");
    assert!(apart > 1000, "{apart}");
}

#[test]
fn checksums_of_several_updates_agree() {
    let mut merged = 0;
    for seed in of_today("modules of random sums", 0..6, 3) {
        let program = admitted(seed, SUMS);
        let checked = check(&program, &Options::default()).unwrap();
        let text = millrace_emit::alone::emit(&program, &checked, "sums.c").unwrap();
        merged += text.matches("MR_MERGED(").count();
        compare(seed, false, SUMS);
    }
    println!("{merged} sums of several updates are folded once");
    assert!(merged > 40, "{merged}");
    compare(100, true, SUMS);
}
