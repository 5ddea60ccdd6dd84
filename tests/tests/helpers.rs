//! Helpers about texts and parts of packets: the kernel, the emitted code and the interpreter, called with
//! the same arguments, give the same results and the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use millrace_object::program::Role;
use millrace_reference::{End, Machine};
use millrace_tests::command::root;
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Kernel, unavailable};
use millrace_tests::random::Random;

/// Runs the frames, and counts results by the number at `result` of the frame.
fn compare(cache: &Path, name: &str, result: usize, frames: &[Vec<u8>]) -> BTreeMap<i64, u32> {
    let source = root().join("tests/programs/text.c");
    let mut emitted = Emitted::of(cache, &source, 1, &[]).unwrap();
    emitted.select(name).unwrap();
    let mut kernel = Kernel::load(&emitted.object).unwrap().program(name);
    let program = emitted.program.clone();
    let is = |e: &&millrace_object::program::Entry| program.functions[e.function.0].name == name;
    let entry = program.entries.iter().find(is).unwrap().function;
    let mut results = BTreeMap::new();
    for frame in frames {
        let theirs = kernel.run(frame).unwrap();
        let ours = emitted.run(frame).unwrap();
        assert_eq!(theirs.verdict, 2, "{name}: {frame:02x?}");
        assert_eq!(ours.packet, theirs.packet, "{name}: {frame:02x?}");
        let mut machine = Machine::exact(&program);
        machine.packet(frame, 0, 0);
        let end = machine.run(entry, Role::Xdp, 100_000).unwrap();
        assert_eq!(end, End::Verdict(2), "{name}: {frame:02x?}");
        assert_eq!(
            machine.packet_bytes(),
            theirs.packet,
            "{name}, interpreter: {frame:02x?}"
        );
        let found = i64::from_le_bytes(theirs.packet[result..result + 8].try_into().unwrap());
        *results.entry(found).or_default() += 1;
    }
    results
}

/// Numbers at every edge, and what is nearly one.
const NUMBERS: [&str; 28] = [
    "0",
    "-0",
    "00",
    "7",
    "08",
    "-8",
    "0x",
    "0x1f",
    "-0XfF",
    "0xg",
    "x",
    "-",
    "--1",
    "+1",
    "0777",
    "abc",
    "12ab",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "0xffffffffffffffff",
    "0x10000000000000000",
    "01777777777777777777777",
    "02000000000000000000000",
    "",
];
const WORDS: [&str; 9] = [
    "millrace",
    "millracE",
    "millracf",
    "mill",
    "millraces",
    "",
    "\u{e9}",
    "n",
    "millrace\0x",
];

fn texts(draw: &mut Random) -> Vec<Vec<u8>> {
    let call = |draw: &mut Random| {
        let which = draw.below(3);
        let mut text: Vec<u8> = Vec::new();
        if which < 2 {
            for _ in 0..draw.below(3) {
                text.push(draw.of(b" \t\n\x0b\r\xa0"));
            }
            let number = draw.of(&NUMBERS);
            let zeros = if draw.below(6) == 0 {
                draw.below(60)
            } else {
                0
            };
            text.extend("0".repeat(zeros).bytes());
            text.extend(number.bytes());
        } else {
            text.extend(draw.of(&WORDS).bytes());
        }
        text.truncate(64);
        let length = match draw.below(4) {
            0 => 64,
            1 => 1 + draw.below(64),
            _ => text.len().max(1),
        };
        for _ in 0..draw.below(3) {
            text.push(draw.of(b" x7\0-"));
        }
        if draw.below(3) == 0 {
            text.resize(64, b'1');
        }
        text.resize(64, 0);
        let flags = draw.of(&[0_u64, 0, 8, 10, 16, 16, 2, 1 << 5, 1 << 40]);
        let mut frame = vec![0; 14];
        frame.extend([length as u8 - 1, which as u8]);
        frame.extend(flags.to_le_bytes());
        frame.extend([0; 16]);
        frame.extend(text);
        frame
    };
    (0..8000).map(|_| call(draw)).collect()
}

fn parts(draw: &mut Random) -> Vec<Vec<u8>> {
    let call = |draw: &mut Random| {
        let mut frame = vec![0; 14];
        frame.extend([draw.below(64) as u8, draw.below(3) as u8]);
        let whole = 96 + draw.below(400);
        let near = (whole + 3).saturating_sub(draw.below(70)) as u32;
        let offset = draw.of(&[0, 96, near, near, 0xffff, 0x10000, 0x7fff_ffff, u32::MAX]);
        frame.extend(offset.to_le_bytes());
        frame.extend((0..whole).map(|_| draw.below(256) as u8));
        frame
    };
    (0..4000).map(|_| call(draw)).collect()
}

#[test]
fn helpers_answer_what_the_kernel_answers() {
    if let Some(why) = unavailable() {
        println!("skipped: helpers against the kernel, {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path().join("cache");
    let mut draw = Random(0x9e37_79b9_7f4a_7c15);
    let results = compare(&cache, "text", 24, &texts(&mut draw));
    println!("texts: 8000 calls agree, results {results:?}");
    for wanted in [-34, -22, -1, 0, 1, 4, 20] {
        assert!(
            results.contains_key(&wanted),
            "{wanted} was never the result"
        );
    }
    let results = compare(&cache, "part", 24, &parts(&mut draw));
    let errors: BTreeMap<_, _> = results.iter().filter(|(r, _)| **r <= 0).collect();
    println!("parts of packets: 4000 calls agree, {errors:?}");
    for wanted in [-22, -14, 0] {
        assert!(
            results.contains_key(&wanted),
            "{wanted} was never the result"
        );
    }
}
