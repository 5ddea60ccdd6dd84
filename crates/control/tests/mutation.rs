//! The code of the fuzz targets `map_file` and `control` over mutated seeds, bounded, in every test run and without a
//! fuzzer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../../fuzz/src/control.rs"]
mod control;
#[path = "../../../fuzz/src/map_file.rs"]
mod map_file;

use std::sync::Arc;

use millrace_control::contents;
use millrace_control::server::Conversation;
use millrace_dataplane::Mailbox;

const FILES: [&[u8]; 4] = [
    br#"[{"key": {"source": "10.0.0.1", "port": 80, "words": [1, 2, 3]}, "value": -1}, {"key": [1, "0x02"], "value": "be16:80 zeros:6"}]"#,
    br#"[{"key": 1, "value": [{"key": 2, "value": 7}]}, {"key": 3, "value": "inner"}, {"key": 4, "value": "new"}]"#,
    b"key,value\n192.0.2.0/24,10.0.0.1 be16:80 02:00:00:00:00:0a u32:1 zeros:8\n1,second\n# x\n",
    b"\x0a\0\0\x01\0\x50\x02\0\0\0\0\x0a\xff\xff\xff\xff\x01\0\x02\0\x03\0\0\0\x07\0\0\0\0\0\0\0",
];

const REQUESTS: [&[u8]; 3] = [
    b"{\"v\":1,\"id\":7,\"do\":\"hello\"}\n{\"v\":1,\"do\":\"get\",\"object\":\"routes\",\"key\":\"192.0.2.0/24\"}\n",
    b"{\"v\":1,\"do\":\"edit\",\"more\":true,\"edits\":[{\"object\":\"next\",\"op\":\"set\",\"key\":1,\"value\":\"second\"}]}\n{\"v\":1,\"do\":\"edit\"}\n",
    b"{\"v\":1,\"do\":\"entries\",\"object\":\"flows\",\"cursor\":3,\"limit\":9}\n{\"v\":1,\"do\":\"set\",\"setting\":\"a=1\"}\n{\"v\":1,\"do\":\"stop\"}\n",
];

/// Bytes that mean something in one of the languages, or are not UTF-8.
const SYNTAX: &[u8] = b"\0 ,:\"[]{}\n-0x9f\xc3/";

/// Runs `target` over `rounds` mutations of the seeds; the same ones every time.
fn mutate(seeds: &[&[u8]], rounds: usize, target: fn(&[u8])) {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below.max(1)
    };
    for round in 0..rounds {
        let mut bytes = seeds[round % seeds.len()].to_vec();
        for _ in 0..draw(6) {
            let at = draw(bytes.len());
            match draw(4) {
                0 => drop(bytes.drain(at..(at + draw(8)).min(bytes.len()))),
                1 => {
                    let piece = seeds[draw(seeds.len())];
                    let from = draw(piece.len());
                    let to = (from + draw(12)).min(piece.len());
                    bytes.splice(at..at, piece[from..to].iter().copied());
                }
                2 => bytes[at] = SYNTAX[draw(SYNTAX.len())],
                _ => bytes[at] = draw(256) as u8,
            }
            if bytes.is_empty() {
                break;
            }
        }
        target(&bytes);
    }
}

#[test]
fn no_file_of_entries_makes_it_panic() {
    // The seeds are understood to the end: their mutations are not all refused at the first byte.
    let exposed = map_file::exposed();
    for (seed, object, entries) in [(0, "flows", 1), (1, "outer", 2), (2, "routes", 1)] {
        let text = std::str::from_utf8(FILES[seed]).unwrap();
        let first = &contents::parse(text).unwrap()[0];
        let index = exposed.index(object).unwrap();
        let read = exposed.entries(index, first.key.as_ref(), &first.value);
        assert_eq!(read.map(|e| e.len()), Ok(entries), "{object}");
    }
    mutate(&FILES, 30_000, map_file::run);
}

#[test]
fn no_request_makes_it_panic() {
    let mailbox = Arc::new(Mailbox::default());
    mailbox.close();
    let mut conversation = Conversation::new(Arc::new(map_file::exposed()), vec![mailbox]);
    let mut say = |line: &[u8]| conversation.say(line).0;
    assert!(say(b"{\"v\":1,\"do\":\"hello\"}").ok.is_some());
    let code = |answer: millrace_control::protocol::Answer| answer.error.unwrap().code;
    assert_eq!(code(say(b"{\"v\":1,\"do\":\"stats\"}")), "ended");
    mutate(&REQUESTS, 30_000, control::run);
}
