//! Hosting against what is usual where functions are to be kept apart: a process each, with rings in shared memory.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::line::Turns;
use super::{compile, room, row};
use crate::measure::{self, Figure};
use crate::report::Section;

/// What the guest's overhead may be of that of a process on the same processor, and on another.
const SAME: f64 = 0.1;
const OTHER: f64 = 0.2;

/// How packets reach the processes, bursts a turn, and turns of which each is one of the benchmark's.
struct How {
    name: &'static str,
    word: &'static str,
    functions: usize,
    rounds: usize,
    turns: usize,
    /// processors that are busy with it
    processors: f64,
    most: f64,
}

const HOWS: [How; 5] = [
    on_one("yield", "yield", 1),
    on_one("yield, 3", "yield", 3),
    on_one("futex", "futex", 1),
    on_one("futex, 3", "futex", 3),
    How {
        name: "spin, 2 cores",
        word: "spin",
        functions: 1,
        // Short, so that some turns have both processors to themselves on a machine with other work.
        rounds: 200,
        turns: 200,
        processors: 2.0,
        most: OTHER,
    },
];

const fn on_one(name: &'static str, word: &'static str, functions: usize) -> How {
    How {
        name,
        word,
        functions,
        rounds: 500,
        turns: 1,
        processors: 1.0,
        most: SAME,
    }
}

/// Each against one guest's overhead; `more` has that of the same run.
pub fn rows(section: &mut Section, folder: &Path, more: &Turns, turns: usize) -> Result<()> {
    let program = folder.join("rings");
    compile(&room().join("rings.c"), &program, &["-Wall", "-Wextra"])?;
    let over = |(hosted, called): (&f64, &f64)| hosted - called;
    let guest: Vec<f64> = more.hosted.iter().zip(&more.called).map(over).collect();
    let (guest, called) = (Figure::of(&guest), Figure::of(&more.called));
    let processors = measure::processors()? as f64;
    for how in HOWS.iter().filter(|how| how.processors <= processors) {
        let mut took = Vec::new();
        for _ in 0..turns.min(9) {
            took.push(turn(&program, how)?);
        }
        // Of each function: what it takes beyond looking at the packets.
        let each = |all: &f64| how.processors * all / how.functions as f64 - called.median;
        let over = Figure::of(&took.iter().map(each).collect::<Vec<_>>());
        let ratio = Figure {
            median: guest.median / over.median,
            low: guest.median / over.high,
            high: guest.median / over.low,
        };
        section.rows.push(row(
            how.name,
            vec![
                ("a packet".into(), Figure::of(&took)),
                ("overhead of each".into(), over),
                ("guest's".into(), guest),
            ],
            ratio,
            format!("guest's overhead at most {} of a process's", how.most),
            how.most,
        ));
    }
    Ok(())
}

/// Cycles a packet: the median of one turn, and of many short ones the tenth that was disturbed least.
fn turn(program: &Path, how: &How) -> Result<f64> {
    let words = [how.functions, how.rounds, how.turns].map(|n| n.to_string());
    let output = Command::new(program)
        .arg(how.word)
        .args(&words)
        .output()
        .context("rings")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut told = text
        .lines()
        .map(str::parse)
        .collect::<Result<Vec<f64>, _>>()?;
    ensure!(
        output.status.success() && told.len() == how.turns,
        "rings {}: {}",
        how.word,
        output.status
    );
    told.sort_by(f64::total_cmp);
    told.get(told.len() / 10).copied().context("no turn")
}
