//! How long it takes to plan each bundled function, its model apart.

use std::collections::BTreeSet;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use millrace_steer::nic::names;
use millrace_tests::command::{millrace, nfs};
use serde_json::Value;

use crate::measure::Figure;
use crate::report::{Row, Section};

/// Milliseconds that a plan may take, whatever the NIC.
const TIME: f64 = 100.0;

/// Plans each function behind every model of a NIC.
pub fn section() -> Result<Section> {
    let mut section = Section::new(
        "plan",
        "The plan of each bundled function, without its model: time / 100 ms",
        "ms over all models of NICs, 16 cores; the slowest counts",
    );
    for nf in nfs() {
        let (mut ms, mut strategies, mut all) = (Vec::new(), BTreeSet::new(), true);
        for nic in names() {
            let document = run(&nf, nic)?;
            ms.push(document["took_ms"].as_f64().context("no `took_ms`")?);
            all &= document["covers"] == true;
            strategies.extend(document["strategy"].as_str().map(str::to_owned));
        }
        let strategies: Vec<String> = strategies.into_iter().collect();
        let strategy = strategies.join(" or ");
        // A plan without paths takes no time, and says nothing.
        let paths = if all { "" } else { "; not all paths are known" };
        let slowest = ms.iter().copied().fold(0.0, f64::max);
        let ms = Figure::of(&ms);
        section.rows.push(Row {
            name: nf,
            flows: 0,
            skew: String::new(),
            ns: vec![
                ("ms".into(), ms),
                ("slowest".into(), Figure::of(&[slowest])),
            ],
            ratio: ms.times(1.0 / TIME),
            bar: format!("{strategy}; under 100 ms{paths}"),
            met: all && slowest < TIME,
        });
    }
    Ok(section)
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
