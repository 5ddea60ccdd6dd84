//! The hand-written functions do what their namesakes do, whatever the packet: else they would not be what
//! emitted code is measured against.

use millrace_dataplane::packet::Fate;
use millrace_emit::cache::Cache;
use millrace_tests::command::captures;
use millrace_tests::packets::with_variants;
use millrace_turns::of_today;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::contender::{BURST, FUNCTIONS, Table, by_hand, emitted};

/// Reasons have a number of their own in each program.
fn plain(fate: Fate) -> Fate {
    match fate {
        Fate::Dropped(_) => Fate::Dropped(0),
        other => other,
    }
}

#[test]
fn references_do_what_they_stand_for() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    for function in of_today("functions by hand", FUNCTIONS, 3) {
        for table in [Table::Bucketed, Table::Open] {
            let mut compared = 0;
            let mut ways = [
                emitted(&cache, function, 1 << 16, true).unwrap(),
                by_hand(&cache, function, 1 << 16, table).unwrap(),
            ];
            for capture in captures() {
                let frames = with_variants(&capture, &mut random).unwrap();
                // A burst is of one port.
                for (number, chunk) in frames.chunks(BURST).enumerate() {
                    let port = (number % 2) as u32;
                    let burst: Vec<(u32, Vec<u8>)> =
                        chunk.iter().map(|frame| (port, frame.clone())).collect();
                    let [ours, theirs] = ways.each_mut().map(|way| way.burst(&burst).unwrap());
                    for (at, (a, b)) in ours.iter().zip(&theirs).enumerate() {
                        assert!(
                            plain(a.0) == plain(b.0) && a.1 == b.1,
                            "{} over {}, frame {}: emitted {:?}, by hand {:?}: {:02x?}",
                            function.name,
                            capture.display(),
                            number * BURST + at,
                            a.0,
                            b.0,
                            chunk[at]
                        );
                    }
                    compared += ours.len();
                }
            }
            println!("{} {table:?}: {compared} packets", function.name);
        }
    }
}
