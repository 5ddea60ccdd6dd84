//! How long it takes to plan each bundled function, its model apart.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use millrace_steer::nic::names;
use millrace_tests::command::{millrace, nfs, root};
use serde_json::Value;

use crate::measure::Figure;
use crate::report::{Row, Section};

/// Milliseconds that a plan may take, whatever the NIC, and its keys alone.
const TIME: f64 = 100.0;
const KEYS: f64 = 10.0;
/// What was recorded: `NF plan keys`, milliseconds behind the slowest NIC, a line each.
const RECORD: &str = "bench/plan.txt";

/// Plans each function behind every model of a NIC.
pub fn section(record: bool) -> Result<Section> {
    let mut section = Section::new(
        "plan",
        "The plan of each bundled function, without its model: time / 100 ms",
        "ms over all models of NICs, 16 cores; the slowest counts; keys: of these the time from constraints to the key space",
    );
    let recorded = read()?;
    let mut now = BTreeMap::new();
    for nf in nfs() {
        let (mut ms, mut keys) = (Vec::new(), Vec::new());
        let (mut strategies, mut all) = (BTreeSet::new(), true);
        for nic in names() {
            let document = run(&nf, nic)?;
            ms.push(document["took_ms"].as_f64().context("no `took_ms`")?);
            keys.push(document["keys_ms"].as_f64().context("no `keys_ms`")?);
            all &= document["covers"] == true;
            strategies.extend(document["strategy"].as_str().map(str::to_owned));
        }
        let strategies: Vec<String> = strategies.into_iter().collect();
        let strategy = strategies.join(" or ");
        // A plan without paths takes no time, and says nothing.
        let paths = if all { "" } else { "; not all paths are known" };
        let most = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
        let (slowest, slowest_keys) = (most(&ms), most(&keys));
        // Another machine has other figures: the record is for whoever looks for what has changed.
        let before = match recorded.get(&nf) {
            Some((plan, keys)) => format!("; recorded: {plan}, keys {keys}"),
            None => "; not recorded".to_owned(),
        };
        now.insert(nf.clone(), (slowest, slowest_keys));
        let ms = Figure::of(&ms);
        section.rows.push(Row {
            name: nf,
            flows: 0,
            skew: String::new(),
            ns: vec![
                ("ms".into(), ms),
                ("slowest".into(), Figure::of(&[slowest])),
                ("keys".into(), Figure::of(&keys)),
                ("slowest keys".into(), Figure::of(&[slowest_keys])),
            ],
            ratio: ms.times(1.0 / TIME),
            bar: format!("{strategy}; under 100 ms, keys 10 ms{paths}{before}"),
            met: all && slowest < TIME && slowest_keys < KEYS,
        });
    }
    if record {
        write(&now)?;
    }
    Ok(section)
}

fn read() -> Result<BTreeMap<String, (f64, f64)>> {
    let text = match std::fs::read_to_string(root().join(RECORD)) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(e).context(RECORD),
    };
    let lines = (1..).zip(text.lines()).filter(|(_, l)| !l.starts_with('#'));
    let of = |(number, line): (usize, &str)| {
        let wrong = || format!("{RECORD}:{number}: a line is NF, ms of the plan, ms of the keys");
        let words: Vec<&str> = line.split_whitespace().collect();
        let [nf, plan, keys] = words.as_slice() else {
            bail!(wrong());
        };
        let ms = |word: &str| word.parse().with_context(wrong);
        Ok(((*nf).to_owned(), (ms(plan)?, ms(keys)?)))
    };
    lines.map(of).collect()
}

fn write(all: &BTreeMap<String, (f64, f64)>) -> Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("not known");
    let mut text = format!(
        "# What `scripts/bench.sh --only plan --record` found: function, ms of the plan, ms of its keys, behind the slowest \
         NIC; load {load}\n"
    );
    for (nf, (plan, keys)) in all {
        text.push_str(&format!("{nf} {plan:.1} {keys:.2}\n"));
    }
    std::fs::write(root().join(RECORD), text).context(RECORD)
}

fn run(nf: &str, nic: &str) -> Result<Value> {
    let mut command = millrace();
    command.args(["plan", nf, "--json", "--nic", nic, "--time", "120"]);
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("{nf} behind {nic}: the plan's command failed");
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{nf}: no document"))
}
