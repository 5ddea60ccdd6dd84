//! What state-compute replication costs a core and what it gives (docs/replication.md): the five programs of Xu et al., each
//! alone and as a replica, measured by bench/replicate/turns.c, whose head says what is timed.

pub mod hybrid;
mod traffic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain;
use millrace_history::effects::replicated;
use millrace_object::Program;
use millrace_object::program::ObjectId;
use millrace_place::{Held, Placement};

use crate::contender::root;
use crate::measure::{self, Figure};
use crate::report::{Row, Section};
use traffic::Traffic;

struct Function {
    name: &'static str,
    traffic: Traffic,
    settings: &'static [(&'static str, &'static str)],
    /// bytes of a row
    row: u32,
    /// c2 by passes over row by row at 60,000 flows; rate of eight cores over one at 100 ns, one flow
    bars: (Option<f64>, Option<f64>),
}

const NEVER: &[(&str, &str)] = &[("threshold", "0xffffffffffffffff")];

const FUNCTIONS: [Function; 5] = [
    Function {
        name: "ddos",
        traffic: Traffic::Udp,
        settings: NEVER,
        row: 4,
        bars: (None, None),
    },
    Function {
        name: "portknock",
        traffic: Traffic::Knocked,
        settings: &[],
        row: 6,
        bars: (None, None),
    },
    Function {
        name: "heavyhitter",
        traffic: Traffic::Udp,
        settings: NEVER,
        row: 15,
        bars: (Some(0.6), Some(5.0)),
    },
    Function {
        name: "tokenbucket",
        traffic: Traffic::Udp,
        settings: &[("rate", "50000000")],
        row: 18,
        bars: (None, None),
    },
    Function {
        name: "conntrack",
        traffic: Traffic::Connections,
        settings: &[],
        row: 29,
        bars: (Some(0.55), Some(3.5)),
    },
];

/// Flows: one elephant, and as many as outgrow the second-level cache.
const FLOWS: [u32; 2] = [1, 60_000];
/// Receiving and sending a packet, ns.
const DISPATCH: [f64; 3] = [20.0, 60.0, 100.0];
/// Replicas of which one's share is measured.
const REPLICAS: u32 = 16;

/// The modules of a function, and what they are fed.
struct Made {
    program: PathBuf,
    alone: PathBuf,
    replica: PathBuf,
    initial: PathBuf,
}

/// Every turn of every variant, ns.
type Turns = BTreeMap<String, Vec<f64>>;

fn made(cache: &Cache, folder: &Path, function: &Function) -> Result<Made> {
    let source = root().join(format!("nfs/{0}/{0}.c", function.name));
    let settings: Vec<(String, String)> = function
        .settings
        .iter()
        .map(|(n, v)| ((*n).into(), (*v).into()))
        .collect();
    let options = millrace_emit::Options::default();
    let alone = millrace_emit::build(cache, &source, &settings, &options, &mut |_| {})?;
    let objects = &alone.program.objects;
    let held = |at: usize| match replicated(&alone.program, ObjectId(at)) {
        true => Held::Replicated,
        false => Held::Copied,
    };
    let placement = Placement::even(objects, 1, (0..objects.len()).map(held).collect());
    let options = millrace_emit::Options {
        placement: Some(Arc::new(placement)),
        ..options
    };
    let replica = millrace_emit::build(cache, &source, &settings, &options, &mut |_| {})?;
    let initial = folder.join(format!("{}.initial", function.name));
    let mut bytes = initials(&alone.program);
    bytes.extend(initials(&replica.program));
    std::fs::write(&initial, bytes)?;
    let tools = toolchain::find(cache)?;
    let program = folder.join(format!("turns-{}", function.row));
    if !program.exists() {
        let output = Command::new(&tools.clang)
            .args(["-std=gnu11", "-O3", "-march=native", "-Wall", "-Wextra"])
            .arg(format!("-DROW_BYTES={}u", function.row))
            .arg(format!(
                "-DHISTORY_ROW_BYTES={}u",
                function.row.next_power_of_two().max(8)
            ))
            .arg("-I")
            .arg(cache.headers()?.join("fastpath"))
            .arg("-o")
            .arg(&program)
            .arg(root().join("bench/replicate/turns.c"))
            .arg("-ldl")
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "bench/replicate/turns.c: {said}");
    }
    Ok(Made {
        program,
        alone: alone.module,
        replica: replica.module,
        initial,
    })
}

fn initials(program: &Program) -> Vec<u8> {
    let mut out = Vec::new();
    for object in &program.objects {
        let initial = object.initial.as_deref().unwrap_or_default();
        out.extend((initial.len() as u32).to_le_bytes());
        out.extend(initial);
    }
    out
}

impl Made {
    fn run(&self, frames: &Path, turns: usize, words: &[&str]) -> Result<Turns> {
        let output = Command::new(&self.program)
            .args([&self.alone, &self.replica])
            .arg(frames)
            .arg(&self.initial)
            .arg(turns.to_string())
            .args(words)
            .output()
            .context("bench/replicate/turns.c")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {said}", output.status);
        let mut all = Turns::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Some((name, ns)) = line.split_once(' ') else {
                bail!("not a figure: {line}");
            };
            all.entry(name.to_owned()).or_default().push(ns.parse()?);
        }
        Ok(all)
    }
}

/// Of a variant, or a function of several turn by turn.
fn figure(turns: &Turns, names: &[&str], of: impl Fn(&[f64]) -> f64) -> Result<Figure> {
    let all: Vec<&Vec<f64>> = (names.iter())
        .map(|n| turns.get(*n).with_context(|| format!("no {n}")))
        .collect::<Result<_>>()?;
    let turns = all.iter().map(|v| v.len()).min().unwrap_or(0);
    ensure!(turns > 0, "no turn");
    let one = |t: usize| of(&all.iter().map(|v| v[t]).collect::<Vec<_>>());
    Ok(Figure::of(&(0..turns).map(one).collect::<Vec<_>>()))
}

/// The same, with the quietest tenth of each variant's turns in place of the middle: what other work on the machine
/// takes of the cache costs those most that wait for it most.
fn lows(turns: &Turns, names: &[&str], of: impl Fn(&[f64]) -> f64) -> Result<Figure> {
    let low = |name: &&str| Ok(figure(turns, &[name], |v| v[0])?.low);
    let all: Vec<f64> = names.iter().map(low).collect::<Result<_>>()?;
    Ok(Figure {
        median: of(&all),
        ..figure(turns, names, of)?
    })
}

fn ns(turns: &Turns, names: &[&str]) -> Result<Vec<(String, Figure)>> {
    let one = |name: &&str| Ok(((*name).to_owned(), figure(turns, &[name], |v| v[0])?));
    names.iter().map(one).collect()
}

/// All comparisons.
pub fn section(cache: &Cache, only: &[&str], turns: usize) -> Result<Section> {
    let mut section = Section::new(
        "replicate",
        "Replication: rows by passes / row by row; shares of k replicas; rates over one core's, and over the formula's",
        "ns a packet or row, one thread; T(k): a packet of its own and k - 1 rows, taken from a ring that outgrows the cache; d spun or added",
    );
    let folder = tempfile::tempdir()?;
    for function in &FUNCTIONS {
        if !only.is_empty() && !only.contains(&function.name) {
            continue;
        }
        let made = made(cache, folder.path(), function)?;
        for flows in FLOWS {
            let frames = folder.path().join("frames");
            std::fs::write(&frames, function.traffic.file(flows))?;
            let rows = rows(function, &made, &frames, flows, turns)
                .with_context(|| function.name.to_owned())?;
            section.rows.extend(rows);
        }
    }
    Ok(section)
}

fn row(
    name: String,
    flows: u32,
    ns: Vec<(String, Figure)>,
    ratio: Figure,
    bar: (&str, bool),
) -> Row {
    Row {
        name,
        flows,
        skew: "uniform".into(),
        ns,
        ratio,
        bar: bar.0.into(),
        met: bar.1,
    }
}

fn rows(
    function: &Function,
    made: &Made,
    frames: &Path,
    flows: u32,
    turns: usize,
) -> Result<Vec<Row>> {
    let name = |what: &str| format!("{} {what}", function.name);
    let most = REPLICAS.to_string();
    let one = made.run(frames, turns, &["one", &most])?;
    let mut out = Vec::new();
    for (what, names) in [
        ("c2", ["replay", "replay-plain"]),
        ("c2, ring", ["replay-ring", "replay-ring-plain"]),
    ] {
        let ratio = lows(&one, &names, |v| v[0] / v[1])?;
        let bar = function.bars.0.filter(|_| flows > 1 && what == "c2");
        let text = bar.map_or("no bar".to_owned(), |b| format!("at most {b}"));
        let met = bar.is_none_or(|b| ratio.median <= b);
        out.push(row(
            name(what),
            flows,
            ns(&one, &names)?,
            ratio,
            (&text, met),
        ));
    }
    // Shares, and how far they are from a straight line through the first and the second.
    let shares: Vec<String> = (1..=REPLICAS).map(|k| format!("T{k}")).collect();
    let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
    let line = figure(&one, &["T8", "T1", "replay-ring"], |v| {
        v[0] / (v[1] + 7.0 * v[2])
    })?;
    let mut all = ns(&one, &["alone"])?;
    all.extend(ns(&one, &shares)?);
    out.push(row(name("T(8)/line"), flows, all, line, ("no bar", true)));
    for k in [2, 8, 16] {
        let names = [
            format!("T{k}"),
            format!("P{k}"),
            format!("S{k}"),
            format!("M{k}"),
        ];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ratio = figure(&one, &names[..3], |v| v[0] / v[2])?;
        let text = "no bar";
        out.push(row(
            name(&format!("groups, k={k}")),
            flows,
            ns(&one, &names)?,
            ratio,
            (text, true),
        ));
    }
    for d in DISPATCH {
        let ratio = figure(&one, &["alone", "T8"], |v| 8.0 * (d + v[0]) / (d + v[1]))?;
        let bar = function.bars.1.filter(|_| flows == 1 && d == 100.0);
        let text = bar.map_or("no bar".to_owned(), |b| format!("at least {b}"));
        let met = bar.is_none_or(|b| ratio.median >= b);
        out.push(row(
            name(&format!("k=8, d={d}")),
            flows,
            ns(&one, &["alone", "T8"])?,
            ratio,
            (&text, met),
        ));
    }
    if measure::processors()? >= 2 {
        measure::unpin()?;
        let words: Vec<String> = DISPATCH.iter().map(f64::to_string).collect();
        let mut all = vec!["two"];
        all.extend(words.iter().map(String::as_str));
        let two = made.run(frames, 3 * turns, &all);
        measure::pin()?;
        let two = two?;
        for d in DISPATCH {
            let names = ["unrelated", "own", "rows", "related"].map(|n| format!("{n}-{d}"));
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            // Twice the packets in the time of a related one, against twice those of unrelated ones. `own` is d + c1.
            let measured = figure(&two, &[names[0], names[3]], |v| v[0] / v[1])?;
            let formula = figure(&two, &names[..3], |v| v[0] / (v[1] + v[2]))?;
            let ratio = figure(&two, &names[1..], |v| (v[0] + v[1]) / v[2])?;
            let met = (0.9..=1.1).contains(&ratio.median);
            let mut all = ns(&two, &names)?;
            all.push(("over unrelated".into(), measured));
            all.push(("formula".into(), formula));
            out.push(row(
                name(&format!("two, d={d}")),
                flows,
                all,
                ratio,
                ("within 0.1 of 1", met),
            ));
        }
    }
    let k = "8";
    let recovery = made.run(frames, turns, &["recover", k])?;
    let d = 100.0;
    let ratio = figure(&recovery, &["recover", "gather"], |v| {
        (d + v[0]) / (d + v[1])
    })?;
    let losses = ["gather", "recover", "lost-0.01", "lost-0.1", "lost-1"];
    out.push(row(
        name("recovery, k=8"),
        flows,
        ns(&recovery, &losses)?,
        ratio,
        ("at most 1.15", ratio.median <= 1.15),
    ));
    Ok(out)
}
