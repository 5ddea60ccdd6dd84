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

/// Each element leads on, back, and elsewhere, by a byte of its own: there are exponentially many ways through the loops.
#[test]
fn loops_in_loops_are_refused() {
    let count = 30;
    let mut text = String::from("out :: Queue; out -> Unqueue -> ToDevice(b);\n");
    for at in 0..count {
        let (on, back) = (60 + 2 * at, 61 + 2 * at);
        text += &format!("e{at} :: Classifier({on}/01, {back}/02, -);\n");
    }
    text += "FromDevice(a) -> e0;\n";
    for at in 0..count {
        let next = match at + 1 {
            next if next < count => format!("e{next}"),
            _ => "out".to_owned(),
        };
        let (back, elsewhere) = (at.max(1) - 1, (7 * at + 3) % count);
        text += &format!("e{at}[0] -> {next}; e{at}[1] -> e{back}; e{at}[2] -> e{elsewhere};\n");
    }
    let why = synthesis(&text, false).err().unwrap_or_default();
    assert!(why.contains("ways through loops"), "{why}");
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
