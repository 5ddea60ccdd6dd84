//! How long RSS keys take, and how evenly they spread.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, anyhow};
use millrace_steer::fields::Field;
use millrace_steer::keys::{Space, Target, solve_for};
use millrace_steer::table::{imbalance, loads};
use rand::SeedableRng;
use rand::rand_core::Rng;
use rand_chacha::ChaCha8Rng;

use crate::measure::Figure;
use crate::report::{Row, Section};

#[path = "../../crates/steer/src/keys/tests/known.rs"]
#[allow(dead_code, reason = "the tests of the keys use all of it")]
mod known;

use known::Known;

/// Milliseconds that a key space may take.
const TIME: f64 = 10.0;
/// Entries of the table, queues, flows.
const ENTRIES: usize = 512;
const QUEUES: u32 = 16;
const FLOWS: usize = 50_000;
/// How uneven the queues may be, most loaded over mean; by chance it is 1.03.
const UNEVEN: f64 = 1.06;

/// Solves for each known function and draws keys.
pub fn section(turns: usize) -> Result<Section> {
    let mut section = Section::new(
        "keys",
        "RSS keys of known functions: time of the key space / 10 ms",
        "constraints by hand, table of 512 entries, 16 queues; imbalance: most loaded queue / mean, in percent, \
         50,000 flows, users in one /16 or /24",
    );
    let target = Target {
        key_bytes: 52,
        entries: ENTRIES,
        cores: QUEUES,
    };
    let mut all = known::all();
    all.push(("two counters", known::two_counters()));
    all.push(("policer, both IP", known::policer_of_both_versions()));
    for (name, known) in all {
        let solve = || solve_for(&known.classes, &known.constraints, target);
        let ms = time(turns, solve);
        let mut row = Row {
            name: name.to_owned(),
            flows: 0,
            skew: String::new(),
            ns: vec![("ms".into(), ms)],
            ratio: Figure {
                median: ms.median / TIME,
                low: ms.low / TIME,
                high: ms.high / TIME,
            },
            bar: "under 10 ms".to_owned(),
            met: ms.median < TIME,
        };
        match solve() {
            Ok(space) => spread(&mut row, &known, &space, turns)?,
            Err(no) => row.bar.push_str(&format!("; {no}")),
        }
        section.rows.push(row);
    }
    Ok(section)
}

/// What the space's keys do.
fn spread(row: &mut Row, known: &Known, space: &Space, turns: usize) -> Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let keys: Vec<_> = (0..turns.max(1)).map(|_| space.draw(&mut random)).collect();
    let mut add = |name: &str, figure| row.ns.push((name.to_owned(), figure));
    add("draw ms", time(turns, || space.draw(&mut random)));
    add("attack ms", time(turns.min(3), || space.exposures()));
    add("dimension", Figure::of(&[space.dimension() as f64]));
    let rank = keys.iter().filter_map(|keys| keys.rank(0));
    let rank = rank
        .min_by_key(|rank| rank.table)
        .ok_or_else(|| anyhow!("no keys"))?;
    add("rank", Figure::of(&[rank.table as f64]));
    row.met &= rank.certified;
    row.bar.push_str(", rank certified");
    // The user is the address that counts.
    let counting = space.counting(0);
    let user = [Field::SourceAddress, Field::DestinationAddress];
    let user = user.into_iter().find(|field| counting.contains(field));
    let user = user
        .and_then(|field| known.classes[0].offset(field))
        .unwrap_or(0)
        / 8;
    let narrow = space.reach(0).iter().all(|r| r.reaching <= 8);
    for prefix in [2, 3] {
        let mut uneven = Vec::new();
        for keys in &keys {
            let indexes = (0..FLOWS).map(|_| {
                let mut input = vec![0; known.classes[0].bits() / 8];
                random.fill_bytes(&mut input);
                input[user..user + prefix].copy_from_slice(&[10, 7, 3][..prefix]);
                keys.index(known.classes[0].port, &input)
            });
            let loads = loads(space.indexes(), indexes);
            uneven.push(imbalance(&loads, &keys.queues(QUEUES), QUEUES));
        }
        let percent: Vec<f64> = uneven.iter().map(|uneven| 100.0 * uneven).collect();
        let figure = Figure::of(&percent);
        row.ns.push((format!("/{} %", 8 * prefix), figure));
        // One /16 is one group to a function that counts by /8.
        if !narrow {
            row.met &= figure.median <= 100.0 * UNEVEN;
        }
    }
    if !narrow {
        row.bar.push_str(", 106%");
    }
    Ok(())
}

fn time<T>(turns: usize, mut run: impl FnMut() -> T) -> Figure {
    let once = || {
        let started = Instant::now();
        black_box(run());
        started.elapsed().as_secs_f64() * 1e3
    };
    let all: Vec<f64> = std::iter::repeat_with(once).take(turns.max(1)).collect();
    Figure::of(&all)
}
