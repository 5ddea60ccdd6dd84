//! Keys of every length, from the packet and from the stack: each of their bytes counts and no other.

use crate::support;

use millrace_object::insn::{Condition, Imm64, Insn, Size, Width};
use millrace_object::program::{ObjectId, StateObject};
use millrace_object::state;
use millrace_turns::of_today;
use support::asm::*;
use support::{Bench, Packet, Way, function, program};

const LENGTHS: &[u32] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 20, 40, 63, 64, 65, 72,
];
const MAP_UPDATE_ELEM: u32 = 2;
/// Where keys begin in a packet, and how many bytes of it the programs check.
const AT: i16 = 8;
const PACKET: usize = 96;

/// Stores a value under the key of `bytes` bytes in the packet, or copied to the stack first.
fn store_key(object: usize, bytes: u32, copied: bool) -> Vec<Insn> {
    let mut insns = vec![
        load(Size::B4, R6, R1, 0),
        load(Size::B4, R7, R1, 4),
        mov(R2, R6),
        addi(R2, PACKET as i64),
        branch(Condition::Le, Width::W64, R2, R7, 7),
        movi(R0, 0),
        exit(),
        storei(Size::B8, R10, -8, 1),
        mov(R2, R6),
        addi(R2, i64::from(AT)),
    ];
    if copied {
        for n in 0..bytes as i16 {
            insns.extend([
                load(Size::B1, R3, R6, AT + n),
                store(Size::B1, R10, n - 88, R3),
            ]);
        }
        insns.extend([mov(R2, R10), addi(R2, -88)]);
    }
    insns.extend([
        Insn::LoadImm {
            dst: R1,
            value: Imm64::Object(ObjectId(object)),
        },
        mov(R3, R10),
        addi(R3, -8),
        movi(R4, 0),
        call(MAP_UPDATE_ELEM),
        movi(R0, 2),
        exit(),
    ]);
    insns
}

#[test]
fn every_byte_of_a_key_counts() {
    let kind = &state::hash::KIND;
    let ways: Vec<(u32, bool)> = LENGTHS
        .iter()
        .flat_map(|n| [(*n, false), (*n, true)])
        .collect();
    let functions = (ways.iter().enumerate())
        .map(|(object, (bytes, copied))| function("store", store_key(object, *bytes, *copied)))
        .collect();
    let mut program = program(functions, ways.len());
    for (bytes, _) in &ways {
        program.objects.push(StateObject::new(
            format!("keys_of_{bytes}"),
            kind,
            *bytes,
            8,
            256,
        ));
    }
    let mut packets = Vec::new();
    for index in 0..ways.len() as u32 {
        for changed in 0..PACKET {
            let mut bytes: Vec<u8> = (0..PACKET as u8).collect();
            bytes[changed] ^= 0x80;
            packets.push(Packet {
                program: index,
                port: 0,
                time: 1,
                bytes,
            });
        }
    }
    let bench = Bench::new();
    let text = millrace_emit::alone::emit(&program, &support::facts(&program), "module.c").unwrap();
    for sanitize in of_today("builds of keys of every length", [false, true], 2) {
        // Every table counts as larger than the cache: prefetch passes run.
        let module = bench.compile(
            &format!("#define MR_CACHE_BYTES 0\n#define MR_FEW 0u\n{text}"),
            sanitize,
        );
        for plain in [false, true] {
            let way = Way {
                sanitize,
                plain,
                burst: 32,
            };
            let (outcomes, counts) = bench.run(&program, &module, way, &packets);
            assert!(outcomes.iter().all(|o| o.fate == 2));
            // The key as it is, and one for each of its bytes that differs.
            let expected: Vec<u64> = ways
                .iter()
                .map(|(bytes, _)| u64::from(*bytes) + 1)
                .collect();
            assert_eq!(counts, expected, "{way:?}");
        }
    }
}
