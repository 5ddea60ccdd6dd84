//! Random configurations: the function that each becomes, with its slow path, does what the reference interpreter does, on packets of all
//! classes and random ones, and with rewriters in sessions with answers.

use std::fmt::Write;
use std::path::Path;

use millrace::Make;
use millrace::click::compare::{Both, Given};
use millrace::click::joined::Joined;
use millrace_synth::{Options, Synthesis, reference};
use millrace_turns::its_turn;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[path = "../../synth/tests/it/generate.rs"]
mod generate;

/// Configurations of a test run, each of which is compiled; `MILLRACE_SYNTH_SEEDS` asks for more.
const SEEDS: u64 = 3;
/// Packets of each.
const PACKETS: usize = 3000;

/// What may stand between two rewriters of a flow: what it drops it drops by the flow's words or by the protocol alone, since a packet that
/// ends between two keeps neither alive (docs/click.md).
fn between(rng: &mut ChaCha8Rng, back: bool) -> String {
    let side = if back { "src" } else { "dst" };
    match rng.random_range(0..9) {
        0 => format!("IPFilter(deny {side} port 53, allow all)"),
        1 => format!(
            "IPFilter(deny {side} host 8.8.8.9, deny {side} net 198.51.100.0/25, allow all)"
        ),
        2 => "IPFilter(allow tcp || udp, deny all)".into(),
        3 => format!("IPFilter(deny udp && {side} port 80 or 443, allow all)"),
        4 => "IPClassifier(tcp or udp)".into(),
        5 => "CheckIPHeader".into(),
        6 => "Paint(3) -> CheckPaint(3)".into(),
        7 => format!(
            "IPFilter(allow {side} port > 60, allow tcp opt syn, allow {side} host 8.8.8.8, deny all)"
        ),
        _ => "Null".into(),
    }
}

/// A row of one to three rewriters between two devices, with filters on both ways.
fn configuration(rng: &mut ChaCha8Rng) -> String {
    let hops = rng.random_range(1..=3);
    let mut text = String::new();
    for hop in 1..=hops {
        let pattern = match rng.random_range(0..4) {
            0 => "keep 0 1".to_owned(),
            1 => format!("pattern 192.0.2.{hop} - - - 0 1"),
            2 => format!("pattern 192.0.2.{hop} 1024-65535 - - 0 1"),
            _ => format!("pattern 192.0.2.{hop} 1000-40000 - - 0 1"),
        };
        let _ = writeln!(text, "rw{hop} :: IPRewriter({pattern}, drop);");
    }
    let enter = "Classifier(12/0800) -> Strip(14) -> CheckIPHeader";
    let _ = writeln!(
        text,
        "FromDevice(in) -> {enter} -> {} -> [0] rw1;",
        between(rng, false)
    );
    let _ = writeln!(
        text,
        "FromDevice(out) -> {enter} -> {} -> [1] rw{hops};",
        between(rng, true)
    );
    for hop in 1..=hops {
        let ttl = |rng: &mut ChaCha8Rng| {
            if rng.random_range(0..3) == 0 {
                "Null"
            } else {
                "DecIPTTL"
            }
        };
        let (first, then) = (ttl(rng), between(rng, false));
        let to = match hop == hops {
            true => {
                "EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> Queue -> ToDevice(out)"
                    .to_owned()
            }
            false => format!("[0] rw{}", hop + 1),
        };
        let _ = writeln!(text, "rw{hop} [0] -> {first} -> {then} -> {to};");
        let (first, then) = (ttl(rng), between(rng, true));
        let to = match hop {
            1 => {
                "EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04) -> Queue -> ToDevice(in)"
                    .to_owned()
            }
            _ => format!("[1] rw{}", hop - 1),
        };
        let _ = writeln!(text, "rw{hop} [1] -> {first} -> {then} -> {to};");
    }
    text
}

#[test]
fn random_rows_of_rewriters_do_what_the_interpreter_does() {
    if !its_turn("random rows of rewriters", 0, 2) {
        return;
    }
    let fates = compared("random", SEEDS, configuration, |both, _, seed| {
        both.sessions(seed, PACKETS);
    });
    assert!(fates[0] > 0 && fates[1] > 0, "{fates:?}");
}

/// Graphs of a test run.
const GRAPHS: u64 = 8;
/// Paths of which packets are made, and random packets, of each configuration.
const PATHS: usize = 500;
const RANDOM: usize = 1500;

#[test]
fn random_graphs_compiled_do_what_the_interpreter_does() {
    let fates = compared(
        "graph",
        GRAPHS,
        generate::configuration,
        |both, of, seed| {
            let made = reference::witnesses(of, PATHS).into_iter();
            let random = reference::random(of, seed).take(RANDOM);
            both.all(made.chain(random).enumerate().map(given));
        },
    );
    assert!(fates[1] > 0, "{fates:?}");
}

/// Rows of a test run.
const ROWS: u64 = 2;

/// Rows of files, two or (where more are asked for) up to five, in turns of rewriters and of graphs: what a chain file makes of them is one function.
#[test]
fn random_rows_of_files_are_one_function() {
    if !its_turn("random rows of files", 1, 2) {
        return;
    }
    let asked = std::env::var("MILLRACE_SYNTH_SEEDS").ok();
    let seeds: u64 = asked.and_then(|s| s.parse().ok()).unwrap_or(ROWS);
    let (mut done, mut fates, mut apart) = (0, [0; 3], Vec::new());
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rewriters = seed % 2 == 0;
        let folder = tempfile::tempdir().unwrap();
        let count = if seeds > ROWS {
            rng.random_range(2..=5)
        } else {
            2
        };
        let (mut chain, mut links) = (String::new(), Vec::new());
        let [first, second] = if rewriters { ["in", "out"] } else { ["a", "b"] };
        let mut n = 0;
        while n < count {
            let text = match rewriters {
                true => configuration(&mut rng),
                false => generate::through(&mut rng),
            };
            let path = folder.path().join(format!("part{n}.click"));
            // One address a part, so that its answers come to it.
            std::fs::write(&path, text.replace("192.0.2.", &format!("192.0.{n}."))).unwrap();
            if millrace::click::read(&path, false, Options::default()).is_err() {
                continue;
            }
            chain += &format!("[[element]]\nclick = \"part{n}.click\"\n");
            if n > 0 {
                links.push(format!("[\"part{}.{second}\", \"part{n}.{first}\"]", n - 1));
            }
            n += 1;
        }
        let file = folder.path().join("row.toml");
        let text = format!(
            "connect = [{}]\nentry = [\"part0.{first}\", \"part{}.{second}\"]\n{chain}",
            links.join(", "),
            n - 1
        );
        std::fs::write(&file, text).unwrap();
        let described = millrace_chain::file::read(&file).unwrap();
        let joined = Joined::of(&described, true);
        let Some(group) = joined.groups.first().filter(|_| joined.apart.is_empty()) else {
            apart.push((seed, joined.apart));
            continue;
        };
        let found = millrace::find(file.to_str().unwrap()).unwrap();
        let function = found.load(&Make::default(), &mut |_| {}).unwrap();
        let of = &group.synthesis;
        assert_eq!(function.ports, of.ports);
        let mut both = Both::new(&function, of).unwrap();
        match of.flows.any() {
            true => both.sessions(seed, PACKETS),
            false => {
                let made = reference::witnesses(of, PATHS).into_iter();
                let random = reference::random(of, seed).take(RANDOM);
                both.all(made.chain(random).enumerate().map(given));
            }
        }
        assert_eq!(both.found.difference, None, "seed {seed}");
        for (all, one) in fates.iter_mut().zip(both.found.fates) {
            *all += one;
        }
        done += 1;
    }
    println!(
        "{done} of {seeds} rows; forwarded, dropped, handed over: {fates:?}; apart: {apart:#?}"
    );
    assert!(
        done * 2 > seeds && fates[0] > 0,
        "{done}, {fates:?}, {apart:#?}"
    );
}

fn given((number, (port, bytes)): (usize, (u8, Vec<u8>))) -> Given {
    Given {
        port,
        time: number as u64 * 1_000_000,
        bytes,
    }
}

/// Compiles configurations that are drawn, and gives packets to each function and the interpreter. How many were forwarded, dropped and
/// handed over.
fn compared(
    name: &str,
    seeds: u64,
    draw: impl Fn(&mut ChaCha8Rng) -> String,
    give: impl Fn(&mut Both<'_>, &Synthesis, u64),
) -> [u64; 3] {
    let asked = std::env::var("MILLRACE_SYNTH_SEEDS").ok();
    let seeds: u64 = asked.and_then(|s| s.parse().ok()).unwrap_or(seeds);
    let folder = tempfile::tempdir().unwrap();
    let (mut done, mut fates, mut refused) = (0, [0; 3], Vec::new());
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = draw(&mut rng);
        let path = folder.path().join(format!("{name}{seed}.click"));
        std::fs::write(&path, &text).unwrap();
        let of = match millrace::click::read(Path::new(&path), false, Options::default()) {
            Ok(of) => of,
            Err(error) => {
                refused.push((seed, error.detail.unwrap_or(error.what)));
                continue;
            }
        };
        let found = millrace::find(path.to_str().unwrap()).unwrap();
        let function = found.load(&Make::default(), &mut |_| {});
        let function = function.unwrap_or_else(|e| panic!("seed {seed}\n{text}\n{e:?}"));
        let mut both = Both::new(&function, &of).unwrap();
        give(&mut both, &of, seed);
        assert_eq!(both.found.difference, None, "seed {seed}\n{text}");
        for (all, one) in fates.iter_mut().zip(both.found.fates) {
            *all += one;
        }
        done += 1;
    }
    println!(
        "{done} of {seeds} configurations; forwarded, dropped, handed over: {fates:?}; refused: {refused:#?}"
    );
    assert!(done * 2 > seeds, "{done}, {fates:?}, {refused:#?}");
    fates
}
