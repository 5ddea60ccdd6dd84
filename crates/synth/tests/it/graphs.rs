//! Random configurations: each synthesis does what the interpreter does.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::compare::{compare, synthesis};
use crate::generate::configuration;

/// A row of elements is walked by recursion: a long one is refused, whatever stack a thread has.
#[test]
fn a_row_without_end_is_refused() {
    let row = |elements: usize| {
        let row = vec!["Paint(1)"; elements].join(" -> ");
        synthesis(&format!("FromDevice(a) -> {row} -> ToDevice(a);"), false)
    };
    assert!(row(900).is_ok());
    let why = row(20_000).err().unwrap_or_default();
    assert!(
        why.contains("too many elements are behind each other"),
        "{why}"
    );
}

/// Configurations of a test run; MILLRACE_SYNTH_SEEDS asks for more.
const SEEDS: u64 = 40;

#[test]
fn random_configurations_do_what_the_interpreter_does() {
    let asked = std::env::var("MILLRACE_SYNTH_SEEDS").ok();
    let seeds: u64 = asked.and_then(|s| s.parse().ok()).unwrap_or(SEEDS);
    let (mut done, mut packets, mut refused) = (0, 0, std::collections::BTreeMap::new());
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = configuration(&mut rng);
        let of = match synthesis(&text, seed % 2 == 0) {
            Ok(of) => of,
            Err(why) => {
                let why = why.lines().next().unwrap_or("").to_owned();
                let why = why
                    .split_once("synthesised: ")
                    .map_or(why.clone(), |w| w.1.to_owned());
                *refused.entry(why).or_insert(0) += 1;
                continue;
            }
        };
        match compare(&of, &mut rng, 100) {
            Ok(count) => packets += count,
            Err(why) => panic!("seed {seed}\n{text}\n{why}"),
        }
        done += 1;
    }
    println!("{done} of {seeds} configurations, {packets} packets; refused: {refused:#?}");
    assert!(done * 5 > seeds * 4, "{done} of {seeds}: {refused:#?}");
}
