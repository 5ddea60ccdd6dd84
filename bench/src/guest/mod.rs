//! Cost of hosting an unmodified program, and of running it without a host: by itself, in a process of its own, on
//! a live interface.

#![allow(unsafe_code, reason = "packets cross to guests by address")]

mod dpdk;
mod line;
mod live;
mod migration;
mod processes;
mod quiet;
mod ready;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use millrace_dataplane::clock;
use millrace_guest::{Hosted, Word};

use crate::measure::Figure;
use crate::report::{Row, Section};

/// Where the C of this section lies.
fn room() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guest")
}

/// Compiles a file of C.
fn compile(source: &Path, out: &Path, words: &[&str]) -> Result<()> {
    let preload = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/guest/preload");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-I"])
        .arg(preload)
        .arg("-o")
        .args([out, source])
        .args(words)
        .status()
        .context("cc")?;
    ensure!(built.success(), "cc of {}: {built}", source.display());
    Ok(())
}

/// The trivial program of the guests' tests.
fn trivial(folder: &Path) -> Result<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/guest/tests/programs");
    let out = folder.join("trivial");
    compile(&tests.join("trivial.c"), &out, &[])?;
    Ok(out)
}

fn start(program: &Path, options: &str, how: &str) -> Result<Hosted> {
    hosted(&format!("guest{options}:{} {how}", program.display()))
}

fn hosted(word: &str) -> Result<Hosted> {
    Ok(Hosted::start(Word::of(word).context("no guest")?.spec()?)?)
}

/// Cycles of the time stamp counter that something takes.
fn cycles(work: impl FnOnce()) -> f64 {
    let begin = clock::ticks();
    work();
    clock::ticks().saturating_sub(begin) as f64
}

fn row(name: &str, ns: Vec<(String, Figure)>, ratio: Figure, bar: String, most: f64) -> Row {
    Row {
        name: name.to_owned(),
        flows: 0,
        skew: String::new(),
        ns,
        ratio,
        bar,
        met: ratio.median <= most,
    }
}

/// Measures all of it, in turns.
pub fn section(turns: usize, record: bool) -> Result<Section> {
    let mut section = Section::new(
        "guest",
        "Hosted programs: what they take / what they may take",
        "cycles are those of the time stamp counter; bursts of 32; direct: the same in a function that is not inlined",
    );
    // What guests say on standard error is theirs.
    let _quiet = quiet::Quiet::begin()?;
    let folder = tempfile::tempdir()?;
    let program = trivial(folder.path())?;
    let more = line::rows(&mut section, &program, turns)?;
    processes::rows(&mut section, folder.path(), &more, turns)?;
    // What is not installed is told, and the rest measured.
    let mut skipped = Vec::new();
    type Part = fn(&mut Section, &Path, usize) -> Result<Option<String>>;
    let parts: [Part; 4] = [dpdk::rows, live::rows, ready::rows, migration::rows];
    for part in parts {
        skipped.extend(part(&mut section, folder.path(), turns)?);
    }
    if !skipped.is_empty() {
        section.skipped(&skipped.join("; "));
    }
    if record {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest.txt");
        let text = format!("{}\n{}", machine(turns)?, section.table());
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    Ok(section)
}

/// Where the figures come from.
fn machine(turns: usize) -> Result<String> {
    let processor = std::fs::read_to_string("/proc/cpuinfo")?;
    let fact = |name: &str| {
        let line = processor.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": "))
            .map_or("", |(_, what)| what)
    };
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let has = |flag| fact("flags").split(' ').any(|f| f == flag);
    Ok(format!(
        "{}, {} processors, {:.1} GHz time stamp counter{}{}; load {load}; {turns} turns at most",
        fact("model name"),
        crate::measure::processors()?,
        fact("cpu MHz").parse::<f64>().unwrap_or(0.0) / 1e3,
        if has("fsgsbase") { ", FSGSBASE" } else { "" },
        if has("ospke") {
            ", protection keys"
        } else {
            ", no protection keys"
        },
    ))
}
