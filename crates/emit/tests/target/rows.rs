//! The circuit of a row against `extract` of the compiled module, packet by packet.

use std::process::Command;

use millrace_history::History;
use millrace_history::circuit::Circuit;
use millrace_object::Program;

use millrace_check::{Options, check};
use millrace_object::program::StateObject;
use millrace_object::state::{hash, lru_hash};

use crate::random::generate;
use crate::replicate::frames::frames;
use crate::replicate::{compiled, text};
use crate::support::drive::{Input, Output, flags};
use crate::support::random::Random;
use crate::support::{Bench, Packet, facts, function, nf, program};

/// The circuit of a program.
pub fn circuit(program: &Program) -> Result<Circuit, String> {
    let checked = facts(program);
    let history = History::of(program, &checked);
    Circuit::of(program, &checked, &history).map_err(|all| {
        let said = all.iter().map(|r| {
            let line = r.line.as_ref().map_or(0, |l| l.line);
            format!("{line}: {}", r.reason)
        });
        said.collect::<Vec<_>>().join("\n")
    })
}

/// What the module's `extract` gives for each packet; the time is cleared.
fn extracted(bench: &Bench, program: &Program, packets: &[Packet]) -> Vec<Option<Vec<u8>>> {
    let module = compiled(bench, &text(program).unwrap(), false);
    let driver = bench.driver("target/rows.c", flags(false));
    let mut input = Input::of(&[packets.len() as u32]);
    input.objects(program, None);
    packets.iter().for_each(|p| input.packet(p, None));
    let output = input.feed(Command::new(driver).arg(module));
    let output = output.unwrap_or_else(|said| panic!("{said}"));
    let mut output = Output(&output);
    let (row, time) = (output.word() as usize, output.word() as usize / 8);
    let one = |_: &Packet| {
        let has = output.word();
        let mut row = output.take(row).to_vec();
        row[..time].fill(0);
        (has == 1).then_some(row)
    };
    packets.iter().map(one).collect()
}

/// Functions whose row is a circuit, and the largest window of it, bytes of the packet.
const CIRCUITS: &[(&str, usize)] = &[
    ("bridge", 12),
    ("conntrack", 88),
    ("ddos", 30),
    ("heavyhitter", 78),
    ("portknock", 78),
    ("tokenbucket", 78),
];

#[test]
fn circuits_give_the_rows_that_compiled_code_gives() {
    let packets = frames(7, 4000);
    let bench = Bench::new();
    for (name, window) in CIRCUITS {
        let program = nf::load(&bench, name);
        let circuit = circuit(&program).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(circuit.window(), *window, "{name}");
        let mut rows = 0;
        let expected = extracted(&bench, &program, &packets);
        for (n, (p, expected)) in packets.iter().zip(expected).enumerate() {
            let mut row = vec![0; circuit.row_bytes()];
            let has = circuit.extract(&p.bytes, p.port as u16, p.time, &mut row);
            assert_eq!(
                has.then_some(row),
                expected,
                "{name}: packet {n}, {:02x?}",
                p.bytes
            );
            rows += usize::from(has);
        }
        assert!(rows > 1000, "{name}: {rows} rows");
    }
}

/// What is no circuit is refused with the line.
#[test]
fn what_is_no_circuit_is_refused() {
    let bench = Bench::new();
    for (name, line, why) in [
        ("firewall", 13, "a division"),
        ("nop", 0, "no packet touches state"),
        ("cl", 25, "a division"),
    ] {
        let error = circuit(&nf::load(&bench, name)).unwrap_err();
        assert!(
            error.starts_with(&format!("{line}: ")) && error.contains(why),
            "{name}: {error}"
        );
    }
}

/// Random programs whose rows are circuits: how many are compared; `MILLRACE_CIRCUITS=1000` compares so many.
const PROGRAMS: usize = 10;

#[test]
fn circuits_of_random_programs_give_the_same_rows() {
    let wanted = std::env::var("MILLRACE_CIRCUITS").ok();
    let wanted = wanted.map_or(PROGRAMS, |n| n.parse().unwrap());
    let bench = Bench::new();
    let mut random = Random(77);
    let (mut compared, mut rows, mut refused) = (0, 0, std::collections::BTreeMap::new());
    while compared < wanted {
        let (entry, callee) = generate::stateful(&mut random);
        let mut one = program(
            vec![function("entry", entry), function("callee", callee)],
            1,
        );
        one.objects = vec![
            StateObject::new("hash", &hash::KIND, 8, 16, 64),
            StateObject::new("lru", &lru_hash::KIND, 8, 16, 9),
        ];
        let Ok(checked) = check(&one, &Options::default()) else {
            continue;
        };
        let history = History::of(&one, &checked);
        if !history.refusals.is_empty() || !history.touches() {
            continue;
        }
        let circuit = match Circuit::of(&one, &checked, &history) {
            Ok(circuit) => circuit,
            Err(refusals) => {
                *refused.entry(refusals[0].reason.clone()).or_insert(0) += 1;
                continue;
            }
        };
        compared += 1;
        let packets = (0..60).map(|n| {
            let mask = random.of(&[0x01, 0x0f, 0xff]);
            let bytes = (0..generate::PACKET).map(|_| random.next() as u8 & mask);
            Packet {
                program: 0,
                port: 0,
                time: 1_000_000 * n,
                bytes: bytes.collect(),
            }
        });
        let packets: Vec<Packet> = packets.collect();
        let expected = extracted(&bench, &one, &packets);
        for (n, (p, expected)) in packets.iter().zip(expected).enumerate() {
            let mut row = vec![0; circuit.row_bytes()];
            let has = circuit.extract(&p.bytes, 0, p.time, &mut row);
            rows += usize::from(has);
            assert_eq!(
                has.then_some(row),
                expected,
                "program {compared}: packet {n}"
            );
        }
    }
    println!("{compared} programs, {rows} rows; no circuit: {refused:?}");
    assert!(rows > 10 * wanted);
}
