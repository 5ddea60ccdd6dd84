//! Random programs: what is emitted of them against the reference interpreter.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod generate;
use crate::support;

use millrace_check::{Options, check};
use millrace_object::insn::Insn;
use millrace_object::program::FunctionId;
use millrace_object::program::{Program, Role};
use millrace_reference::{End, Machine};
use millrace_turns::of_today;
use support::random::Random;
use support::{Bench, Packet, Way, function, program};

/// Programs a module.
const BATCH: u64 = 40;
/// Packets a program.
const PACKETS: u64 = 12;

/// The programs of a seed that the checker admits, as entries of one.
fn admitted(seed: u64) -> Program {
    let mut random = Random(seed);
    let mut bodies = Vec::new();
    for _ in 0..BATCH {
        let (entry, callee) = generate::program(&mut random);
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
        functions.push(function(&format!("entry{index}"), entry));
    }
    functions.extend(
        bodies
            .into_iter()
            .map(|(_, callee)| function("callee", callee)),
    );
    program(functions, entries)
}

fn compare(seed: u64, sanitize: bool) {
    let program = admitted(seed);
    let mut random = Random(!seed);
    let mut packets = Vec::new();
    for index in 0..program.entries.len() as u32 {
        for _ in 0..PACKETS {
            // Small numbers as often as large ones: both sides of branches are taken.
            let mask = random.of(&[0x01, 0x0f, 0xff]);
            let bytes = (0..generate::PACKET)
                .map(|_| random.next() as u8 & mask)
                .collect();
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
        compare(seed, false);
    }
}

#[test]
fn and_under_sanitizers() {
    compare(100, true);
}
