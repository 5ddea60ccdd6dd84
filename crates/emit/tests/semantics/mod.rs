//! Every instruction, emitted, compiled and run, against what RFC 9669 says it does, computed here.
//! The same programs run again under AddressSanitizer and UndefinedBehaviorSanitizer.

use crate::support;

mod arithmetic;
mod control;
mod known;
mod memory;
mod sums;

use millrace_object::insn::Insn;
use millrace_object::program::Function;
use support::asm::around;
use support::{Bench, Packet, Way, function, program};

/// A body that computes `r0` from `r1` and `r2`, and what it must give.
struct Case {
    name: String,
    body: Vec<Insn>,
    /// functions that the body calls: number 1 of `call_local` is the first of them
    callees: Vec<Vec<Insn>>,
    expected: Box<dyn Fn(u64, u64) -> u64>,
}

impl Case {
    fn new(
        name: impl Into<String>,
        body: Vec<Insn>,
        expected: impl Fn(u64, u64) -> u64 + 'static,
    ) -> Case {
        Case {
            name: name.into(),
            body,
            callees: Vec::new(),
            expected: Box::new(expected),
        }
    }
}

/// Operands where arithmetic has its corners.
const CORNERS: &[u64] = &[
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x0123_4567_89ab_cdef,
    0xfedc_ba98_7654_3210,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_8000_0000,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
];

fn run_all(cases: &[Case]) {
    // Entries first: an entry's number is its function's.
    let mut functions: Vec<Function> = cases
        .iter()
        .map(|c| function(&c.name, around(&c.body)))
        .collect();
    for (index, case) in cases.iter().enumerate() {
        let first = functions.len();
        for callee in &case.callees {
            functions.push(function(&format!("{} callee", case.name), callee.clone()));
        }
        for f in std::iter::once(index).chain(first..functions.len()) {
            for insn in &mut functions[f].insns {
                if let Insn::CallLocal { function } = insn {
                    function.0 += first - 1;
                }
            }
        }
    }
    let program = program(functions, cases.len());
    let mut packets = Vec::new();
    for (index, _) in cases.iter().enumerate() {
        for a in CORNERS {
            for b in CORNERS {
                let mut bytes: Vec<u8> = (0..64).map(|n| 0xa0 ^ n).collect();
                bytes[8..16].copy_from_slice(&a.to_le_bytes());
                bytes[16..24].copy_from_slice(&b.to_le_bytes());
                packets.push(Packet {
                    program: index as u32,
                    port: 0,
                    time: 1,
                    bytes,
                });
            }
        }
    }
    let bench = Bench::new();
    for sanitize in [false, true] {
        let module = bench.module(&program, sanitize);
        let (outcomes, _) = bench.run(
            &program,
            &module,
            Way {
                sanitize,
                plain: false,
                burst: 32,
            },
            &packets,
        );
        for (packet, outcome) in packets.iter().zip(outcomes) {
            let word =
                |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let (a, b) = (word(&packet.bytes, 8), word(&packet.bytes, 16));
            let case = &cases[packet.program as usize];
            assert_eq!(
                outcome.fate, 2,
                "{}: the program did not run to its end",
                case.name
            );
            let (found, expected) = (word(&outcome.bytes, 0), (case.expected)(a, b));
            assert_eq!(
                found, expected,
                "{}: r1 = {a:#x}, r2 = {b:#x}, found {found:#x}, expected {expected:#x}",
                case.name
            );
            assert_eq!(
                outcome.bytes[8..],
                packet.bytes[8..],
                "{}: wrote elsewhere",
                case.name
            );
        }
    }
}
