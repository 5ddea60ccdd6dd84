//! Every reader over changed seeds, for a bounded number of inputs.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace_control::contents;
use millrace_control::server::Conversation;
use millrace_dataplane::Mailbox;
use millrace_readers::{READERS, map_file, seeds};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Of each reader, unless it takes longer than `LONGEST` for them.
const INPUTS: usize = 5_000;
const LONGEST: Duration = Duration::from_secs(1);

/// Numbers at which lengths and offsets go wrong.
const ODD: [u64; 8] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// Pieces that mean something in one of the languages.
const PIECES: [&str; 24] = [
    "\"default\"",
    "\"0.0.0.0/0\"",
    "\"10.0.0.0/24\"",
    "\"::/0\"",
    "\"ff00::/8\"",
    "-1",
    "0",
    "1023",
    "1024",
    "4294967296",
    "1e99",
    "null",
    "[]",
    "{}",
    "\"lan\"",
    "\"02:00:00:00:00:01\"",
    "'",
    "=",
    "#",
    "\"",
    "-",
    "0x",
    "\0",
    "$i",
];

/// One change as libFuzzer makes them: bits, bytes, numbers, pieces taken out, doubled or brought from another seed.
fn change(data: &mut Vec<u8>, other: &[u8], random: &mut ChaCha8Rng) {
    let at = random.random_range(0..=data.len());
    let length = random.random_range(0..=(data.len() - at).min(64));
    match random.random_range(0..8) {
        0 if at < data.len() => data[at] ^= 1 << random.random_range(0..8),
        1 if at < data.len() => data[at] = random.random(),
        2 => {
            let wide = [1, 2, 4, 8].choose(random).unwrap();
            let wide = (data.len() - at).min(*wide);
            let number = ODD.choose(random).unwrap().to_le_bytes();
            let mut number = number[..wide].to_vec();
            if random.random() {
                number.reverse();
            }
            data[at..at + wide].copy_from_slice(&number);
        }
        3 => drop(data.drain(at..at + length)),
        4 => {
            let piece = data[at..at + length].to_vec();
            data.splice(at..at, piece);
        }
        // A whole word or number goes, and another takes its place.
        5 => {
            let word = |b: &&u8| !b" ,:{}[]\n".contains(b);
            let end = at + data[at..].iter().take_while(word).count();
            let begin = at - data[..at].iter().rev().take_while(word).count();
            let piece = PIECES.choose(random).unwrap();
            data.splice(begin..end, piece.bytes());
        }
        6 if !other.is_empty() => {
            let from = random.random_range(0..other.len());
            let piece = &other[from..(from + 64).min(other.len())];
            data.splice(at..at + length, piece.iter().copied());
        }
        _ => data.truncate(at),
    }
}

#[test]
fn no_reader_panics_over_changed_seeds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for reader in READERS {
        let mut seeds: Vec<_> = seeds::of(reader.name, &root)
            .unwrap()
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect();
        for seed in &seeds {
            (reader.run)(seed);
        }
        let mut random = ChaCha8Rng::seed_from_u64(1);
        seeds.push((0..64).map(|_| random.random()).collect());
        let (start, mut inputs) = (Instant::now(), 0);
        while inputs < INPUTS && start.elapsed() < LONGEST {
            let mut data = seeds.choose(&mut random).unwrap().clone();
            let other = seeds.choose(&mut random).unwrap();
            for _ in 0..1 << random.random_range(0..5) {
                change(&mut data, other, &mut random);
            }
            (reader.run)(&data);
            inputs += 1;
        }
        println!("{}: {inputs} inputs", reader.name);
        assert!(inputs > 100, "{}: {inputs} inputs", reader.name);
    }
}

/// Seeds are understood to the end: what is made from them is not all refused at the first byte.
#[test]
fn seeds_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let texts = |reader: &str| {
        let seeds = seeds::of(reader, &root).unwrap().into_iter();
        let texts = seeds.map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned()));
        texts.collect::<Vec<_>>()
    };
    let exposed = map_file::exposed();
    for ((name, text), (object, entries)) in
        texts("map_file")
            .iter()
            .zip([("flows", 1), ("outer", 2), ("routes", 1)])
    {
        let first = &contents::parse(text).unwrap()[0];
        let index = exposed.index(object).unwrap();
        let read = exposed.entries(index, first.key.as_ref(), &first.value);
        assert_eq!(read.map(|e| e.len()), Ok(entries), "{name}");
    }
    let mailbox = Arc::new(Mailbox::default());
    mailbox.close();
    let mut client = Conversation::new(Arc::new(map_file::exposed()), vec![mailbox]);
    let mut say = |line: &[u8]| client.say(line).0;
    assert!(say(b"{\"v\":1,\"do\":\"hello\"}").ok.is_some());
    let stats = say(b"{\"v\":1,\"do\":\"stats\"}");
    assert_eq!(stats.error.unwrap().code, "ended");
    for (name, text) in texts("routes") {
        assert!(millrace_routes::Table::parse(&text).is_ok(), "{name}");
    }
    for (name, bytes) in seeds::of("state", &root).unwrap() {
        let read = millrace_state::State::read(&bytes);
        assert_eq!(read.is_ok(), name == "file", "{name}");
    }
    for (name, text) in texts("click") {
        let limits = millrace_click::language::Limits::default();
        let mut library = |_: &str, name: &str| Ok((name.to_owned(), String::new()));
        let read = millrace_click::language::parse(&text, &name, &limits, &mut library);
        let flat = read.and_then(|file| millrace_click::language::flatten(&file, &limits));
        assert!(flat.is_ok(), "{name}: {flat:?}");
    }
    for (name, text) in texts("chain") {
        assert!(millrace_chain::file::parse(&text, None).is_ok(), "{name}");
    }
}

/// A target without a reader in the table, or the other way round, would be run by one of the two only.
#[test]
fn every_reader_is_a_fuzz_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut targets: Vec<_> = std::fs::read_dir(root.join("fuzz_targets"))
        .unwrap()
        .map(|e| {
            e.unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    targets.sort();
    assert_eq!(targets, READERS.iter().map(|r| r.name).collect::<Vec<_>>());
}
