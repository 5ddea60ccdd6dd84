//! The code of the fuzz target `routes` over damaged seeds from a fixed start: the same on every machine, with
//! the stable compiler.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../../fuzz/src/routes.rs"]
mod routes;

const SEEDS: [&str; 2] = [
    include_str!("seeds/hand.json"),
    include_str!("seeds/system.json"),
];

/// Pieces that mean something in such a document.
const PIECES: [&str; 16] = [
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
];

#[test]
fn damaged_tables() {
    for seed in SEEDS {
        millrace_routes::Table::parse(seed).unwrap();
        routes::run(seed.as_bytes());
    }
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below.max(1)
    };
    let mut read = 0;
    for round in 0..20_000 {
        let mut text = SEEDS[round % SEEDS.len()].as_bytes().to_vec();
        for _ in 0..=draw(3) {
            let at = draw(text.len());
            match draw(4) {
                // A whole word or number goes, and another takes its place.
                0 | 1 => {
                    let word =
                        |b: &u8| !matches!(b, b' ' | b',' | b':' | b'{' | b'}' | b'[' | b']');
                    let end = at + text[at..].iter().take_while(|b| word(b)).count();
                    let begin = at - text[..at].iter().rev().take_while(|b| word(b)).count();
                    let piece = PIECES[draw(PIECES.len())];
                    text.splice(begin..end, piece.bytes());
                }
                2 => text[at] = draw(256) as u8,
                _ => {
                    let end = (at + draw(80)).min(text.len());
                    let piece = text[at..end].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        let known =
            std::str::from_utf8(&text).is_ok_and(|t| millrace_routes::Table::parse(t).is_ok());
        read += u32::from(known);
        routes::run(&text);
    }
    println!("{read} of 20000 damaged tables are tables");
    assert!(read > 500, "{read}: shows nothing");
}
