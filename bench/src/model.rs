//! Time and memory to follow every path of each bundled function.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use millrace_tests::command::{millrace, nfs, root};
use serde_json::Value;

use crate::measure::Figure;
use crate::report::{Row, Section};

/// What was recorded: `NF outcome paths questions`, a line each.
const RECORD: &str = "bench/model.txt";
/// Seconds that one function may take.
const TIME: f64 = 2.0;
/// MiB that the process and its solver may take at their largest.
const MEMORY: f64 = 500.0;

/// Whether the paths are all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// and each is possible
    All,
    /// every execution takes one of them
    Covering,
    /// there may be others
    Some,
}

impl Outcome {
    const EACH: [(Self, &str, &str); 3] = [
        (Self::All, "all", "all paths"),
        (Self::Covering, "covering", "covers all executions"),
        (Self::Some, "some", "falls back"),
    ];

    fn words(self) -> (&'static str, &'static str) {
        let found = Self::EACH.into_iter().find(|e| e.0 == self);
        found.map_or(("some", "falls back"), |e| (e.1, e.2))
    }
}

/// A function's figures that no machine changes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Counts {
    outcome: Outcome,
    paths: usize,
    questions: u64,
}

/// Times the command, and compares paths and questions with the record.
pub fn section(turns: usize, record: bool) -> Result<Section> {
    let mut section = Section::new(
        "model",
        "Every path of each bundled function: time of the model / 2 s",
        "ms of the model alone; MiB of the process and its solver at their largest; counts must be those of bench/model.txt",
    );
    let recorded = read()?;
    let mut now = BTreeMap::new();
    for nf in nfs() {
        let (mut ms, mut mib) = (Vec::new(), Vec::new());
        let mut counts = None;
        for _ in 0..turns.clamp(1, 3) {
            let (document, peak) = run(&nf)?;
            let took = document["took"].as_object().context("no `took`")?;
            let sum = |field: &str| took.values().filter_map(|t| t[field].as_f64()).sum::<f64>();
            ms.push(sum("ms"));
            mib.push(peak);
            counts = Some(Counts {
                outcome: match (&document["exhaustive"], &document["covers"]) {
                    (Value::Bool(true), _) => Outcome::All,
                    (_, Value::Bool(true)) => Outcome::Covering,
                    _ => Outcome::Some,
                },
                paths: document["paths"].as_array().map_or(0, Vec::len),
                questions: sum("asked") as u64,
            });
        }
        let Some(counts) = counts else { continue };
        let (ms, mib) = (Figure::of(&ms), Figure::of(&mib));
        let before = recorded.get(&nf);
        // Where the time ran out, the counts say how fast the machine is.
        let fall_back = |c: &Counts| c.outcome == Outcome::Some;
        let same = before.is_none_or(|b| b == &counts || (fall_back(b) && fall_back(&counts)));
        let outcome = counts.outcome.words().1;
        let change = match before {
            None => "not recorded".to_owned(),
            Some(_) if same => "as recorded".to_owned(),
            Some(b) => format!(
                "recorded: {}, {} paths, {} questions",
                b.outcome.words().1,
                b.paths,
                b.questions
            ),
        };
        section.rows.push(Row {
            name: nf.clone(),
            flows: 0,
            skew: String::new(),
            ns: vec![
                ("ms".into(), ms),
                ("MiB".into(), mib),
                ("paths".into(), Figure::of(&[counts.paths as f64])),
                ("questions".into(), Figure::of(&[counts.questions as f64])),
            ],
            ratio: ms.times(1e-3 / TIME),
            bar: format!("{outcome}; under 2 s and 500 MiB; {change}"),
            met: !fall_back(&counts) && ms.median < TIME * 1e3 && mib.median < MEMORY && same,
        });
        now.insert(nf, counts);
    }
    if record {
        write(&now)?;
    }
    Ok(section)
}

/// The command's document, and the MiB that it and its solver took at their largest.
fn run(nf: &str) -> Result<(Value, f64)> {
    let mut command = millrace();
    command
        .args(["model", nf, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut out = child.stdout.take().context("no output")?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        out.read_to_end(&mut text).map(|_| text)
    });
    let peak = watch(&mut child)?;
    let Ok(text) = reader.join() else {
        bail!("{nf}: its output could not be read");
    };
    let document = serde_json::from_slice(&text?).with_context(|| format!("{nf}: no document"))?;
    Ok((document, peak))
}

/// Waits for a process, and gives the most memory that it and its children had, in MiB: the kernel keeps
/// the mark, so that looking now and then is enough.
fn watch(child: &mut Child) -> Result<f64> {
    let until = Instant::now() + Duration::from_secs(120);
    let mut peaks: BTreeMap<u32, f64> = BTreeMap::new();
    loop {
        let parent = child.id();
        let children = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let ids = children.split_whitespace().filter_map(|id| id.parse().ok());
        for id in ids.chain([parent]) {
            if let Some(mib) = high_water(id) {
                peaks.insert(id, mib);
            }
        }
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("the model's command failed");
            }
            // The compiler and solvers come one after another.
            let own = peaks.remove(&parent).unwrap_or(0.0);
            return Ok(own + peaks.values().copied().fold(0.0, f64::max));
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            bail!("the model's command took more than 120 s");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn high_water(id: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024.0)
}

fn read() -> Result<BTreeMap<String, Counts>> {
    let text = match std::fs::read_to_string(root().join(RECORD)) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(e).context(RECORD),
    };
    let mut all = BTreeMap::new();
    for (i, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.starts_with('#'))
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [nf, outcome, paths, questions] = words.as_slice() else {
            bail!(
                "{RECORD}:{}: a line is NF, outcome, paths, questions",
                i + 1
            );
        };
        let counts = Counts {
            outcome: (Outcome::EACH.into_iter())
                .find(|e| e.1 == *outcome)
                .with_context(|| format!("{RECORD}:{}: no outcome", i + 1))?
                .0,
            paths: paths
                .parse()
                .with_context(|| format!("{RECORD}:{}", i + 1))?,
            questions: questions
                .parse()
                .with_context(|| format!("{RECORD}:{}", i + 1))?,
        };
        all.insert((*nf).to_owned(), counts);
    }
    Ok(all)
}

fn write(all: &BTreeMap<String, Counts>) -> Result<()> {
    let mut text = String::from(
        "# What `scripts/bench.sh --only model --record` found: function, `all` paths, `covering` ones or `some`, paths, questions\n",
    );
    for (nf, c) in all {
        let outcome = c.outcome.words().0;
        text.push_str(&format!("{nf} {outcome} {} {}\n", c.paths, c.questions));
    }
    std::fs::write(root().join(RECORD), text).context(RECORD)
}
