//! Random programs with state: those that are replicated have replicas that are alike.

use millrace_check::{Options, check};
use millrace_history::History;
use millrace_object::insn::Insn;
use millrace_object::program::{FunctionId, Program, StateObject};
use millrace_object::state::{hash, lru_hash};

use super::{Fault, compiled, run, text};
use crate::random::generate;
use crate::support::random::Random;
use crate::support::{Bench, Packet, function, program};

/// Programs of a seed that are tried.
const TRIED: usize = 100;
/// Of those that are replicated, how many a module has: what its compilation takes.
const BATCH: usize = 16;
/// Packets a program.
const PACKETS: u64 = 40;

fn with_tables(mut program: Program) -> Program {
    program.objects = vec![
        StateObject::new("hash", &hash::KIND, 8, 16, 64),
        StateObject::new("lru", &lru_hash::KIND, 8, 16, 9),
    ];
    program
}

/// The programs of a seed that are admitted and replicated, as entries of one; and how many were admitted.
fn replicated(seed: u64) -> (Program, usize) {
    let mut random = Random(seed);
    let (mut bodies, mut admitted, mut late, mut scratch) = (Vec::new(), 0, 0, 0);
    let mut reasons = std::collections::BTreeMap::<String, u32>::new();
    for _ in 0..TRIED {
        let (entry, callee) = generate::stateful(&mut random);
        let functions = vec![
            function("entry", entry.clone()),
            function("callee", callee.clone()),
        ];
        let one = with_tables(program(functions, 1));
        let Ok(checked) = check(&one, &Options::default()) else {
            continue;
        };
        admitted += 1;
        let history = History::of(&one, &checked);
        match history.refusals.first() {
            // Rows of a module all have the time, the number and the site.
            None if history.touches() && history.bits < 400 && bodies.len() < BATCH => {
                let sites = history.flows.iter().flatten().flat_map(|p| &p.sites);
                late += usize::from(sites.clone().any(|s| !s.late.is_empty()));
                scratch += usize::from(history.flows.iter().flatten().any(|p| p.scratch));
                bodies.push((entry, callee));
            }
            None => {}
            Some(refusal) => *reasons.entry(refusal.reason.clone()).or_default() += 1,
        }
    }
    eprintln!(
        "seed {seed}: {admitted} admitted, {late} read the packet late, {scratch} write it before, refused {reasons:#?}"
    );
    let entries = bodies.len();
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
    let callees = bodies
        .into_iter()
        .map(|(_, callee)| function("callee", callee));
    functions.extend(callees);
    (with_tables(program(functions, entries)), admitted)
}

fn compare(seed: u64, sanitize: bool) {
    let (program, admitted) = replicated(seed);
    assert!(admitted * 10 > TRIED * 9, "most are admitted: {admitted}");
    assert!(program.entries.len() * 2 > BATCH, "enough are replicated");
    let mut random = Random(!seed);
    let mut packets = Vec::new();
    for n in 0..PACKETS * program.entries.len() as u64 {
        let mask = random.of(&[0x01, 0x0f, 0xff]);
        let entry = random.below(program.entries.len() as u64) as u32;
        let bytes = (0..generate::PACKET).map(|_| random.next() as u8 & mask);
        packets.push(Packet {
            program: entry,
            port: 0,
            time: 1_000_000 * n,
            bytes: bytes.collect(),
        });
    }
    let bench = Bench::new();
    let module = compiled(&bench, &text(&program).unwrap(), sanitize);
    let found = run(
        &bench,
        &program,
        &module,
        (sanitize, Fault::default()),
        &packets,
    );
    assert!(found.rows > 0);
    assert_eq!(found.differs, None, "seed {seed}");
}

/// `MILLRACE_REPLICATE_SEEDS=200` goes through so many.
#[test]
fn replicas_of_random_programs_are_alike() {
    let seeds = std::env::var("MILLRACE_REPLICATE_SEEDS").ok();
    for seed in 0..seeds.map_or(2, |s| s.parse().unwrap()) {
        compare(seed, false);
    }
}

#[test]
fn and_under_sanitizers() {
    compare(100, true);
}
