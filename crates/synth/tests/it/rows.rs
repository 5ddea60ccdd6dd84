//! Rows of configurations as one: what the configurations do one after the other.

use std::cell::RefCell;
use std::rc::Rc;

use millrace_click::interpreter::Memory;
use millrace_synth::join::{Connections, Part, join};
use millrace_synth::reference::{Reference, random, witnesses};
use millrace_synth::{Options, Synthesis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::compare::{differ, synthesis};
use crate::generate::through;

const NAMES: [&str; 5] = ["one", "two", "three", "four", "five"];

/// A row: the second port of each leads to the first of the next.
fn row(parts: &[Synthesis]) -> Result<Synthesis, String> {
    let all: Vec<Part> = NAMES
        .iter()
        .zip(parts)
        .map(|(name, of)| Part { name, of })
        .collect();
    let mut connections = Connections::default();
    for at in 1..parts.len() {
        let (left, right) = (ports(&parts[at - 1]), ports(&parts[at]));
        let ends = ((at - 1, left[1]), (at, right[0]));
        connections.between.insert(ends.0, ends.1);
        connections.between.insert(ends.1, ends.0);
    }
    let last = parts.len() - 1;
    connections.outer = vec![
        ((0, ports(&parts[0])[0]), "left".into()),
        ((last, ports(&parts[last])[1]), "right".into()),
    ];
    let host = Rc::new(RefCell::new(Memory::default()));
    join("row", &all, &connections, host, Options::default())
}

/// The numbers of the ports `a` and `b`.
fn ports(of: &Synthesis) -> [usize; 2] {
    ["a", "b"].map(|name| of.ports.iter().position(|p| p == name).unwrap())
}

/// Packets that leave a row of interpreters, one after the other, each with the end of the row: a packet that enters one, and what
/// comes of it.
fn one_after_the_other(
    parts: &[(Reference, [usize; 2])],
    (mut at, mut end): (usize, usize),
    frame: &[u8],
    left: &mut Vec<(usize, Vec<u8>)>,
) {
    let mut waiting = vec![(at, end, frame.to_vec())];
    while let Some(next) = waiting.pop() {
        (at, end) = (next.0, next.1);
        let (reference, ports) = &parts[at];
        let Some(passed) = reference.pass(ports[end] as u8, 0, &next.2) else {
            continue;
        };
        for (port, bytes) in passed.left {
            let out = ports.iter().position(|p| *p == usize::from(port)).unwrap();
            match out {
                0 if at == 0 => left.push((0, bytes)),
                1 if at + 1 == parts.len() => left.push((1, bytes)),
                0 => waiting.push((at - 1, 1, bytes)),
                _ => waiting.push((at + 1, 0, bytes)),
            }
        }
    }
}

/// Compares rows with what became of them, over packets of all classes and random ones.
fn compare(parts: &[Synthesis], one: &Synthesis, seed: u64, each: usize) -> Result<usize, String> {
    let apart: Vec<_> = parts
        .iter()
        .map(|p| (Reference::new(p), ports(p)))
        .collect();
    let reference = Reference::new(one);
    let mut count = 0;
    let frames = witnesses(one, each).into_iter();
    for (port, frame) in frames.chain(random(one, seed).take(each)) {
        if let Some(why) = differ(&reference, one, port, &frame) {
            return Err(why);
        }
        // The interpreter of the whole has met this packet once, as those of the row will.
        let Some(passed) = reference.pass(port, 0, &frame) else {
            continue;
        };
        let mut whole: Vec<(usize, Vec<u8>)> = { passed.left.into_iter() }
            .map(|(port, bytes)| (usize::from(port), bytes))
            .collect();
        let mut row = Vec::new();
        let first = [0, apart.len() - 1][usize::from(port)];
        for _ in 0..2 {
            row.clear();
            one_after_the_other(&apart, (first, usize::from(port)), &frame, &mut row);
        }
        // What one packet becomes several of leaves in one order or another.
        whole.sort_unstable();
        row.sort_unstable();
        if whole != row {
            return Err(format!(
                "port {port}, {frame:02x?}\n  as one: {whole:02x?}\n  in a row: {row:02x?}"
            ));
        }
        count += 1;
    }
    Ok(count)
}

/// Rows of a test run; MILLRACE_SYNTH_SEEDS asks for more.
const SEEDS: u64 = 24;

#[test]
fn random_rows_as_one_do_what_they_do_one_after_the_other() {
    let asked = std::env::var("MILLRACE_SYNTH_SEEDS").ok();
    let seeds: u64 = asked.and_then(|s| s.parse().ok()).unwrap_or(SEEDS);
    let (mut done, mut packets) = (0, 0);
    let mut apart = std::collections::BTreeMap::new();
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let count = rng.random_range(2..=5);
        let mut texts = Vec::new();
        let mut parts = Vec::new();
        while parts.len() < count {
            let text = through(&mut rng);
            if let Ok(of) = synthesis(&text, false) {
                texts.push(text);
                parts.push(of);
            }
        }
        match row(&parts) {
            Ok(one) => {
                assert_eq!(one.ports, ["left", "right"]);
                match compare(&parts, &one, seed, 60) {
                    Ok(count) => packets += count,
                    Err(why) => panic!("seed {seed}\n{}\n{why}", texts.join("\n")),
                }
                done += 1;
            }
            Err(why) => *apart.entry(why).or_insert(0) += 1,
        }
    }
    println!("{done} of {seeds} rows, {packets} packets; apart: {apart:#?}");
    assert!(done * 3 > seeds, "{done} of {seeds}: {apart:#?}");
}
