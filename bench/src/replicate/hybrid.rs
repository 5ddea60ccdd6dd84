//! Heavy keys replicated and others sharded (docs/replication.md), against the better of `shard` and `replicate`, on traffic with the
//! flow sizes of the three traces of Xu et al. and on a mixed one. Times are those of bench/replicate/turns.c in the same run; how
//! packets are divided over cores, the choice of heavy keys says that `--strategy hybrid` makes. Rates are computed from these
//! shares.

use anyhow::Result;
use millrace_emit::cache::Cache;
use millrace_steer::hybrid::{Divided, Key, ROW, divide};
use millrace_traffic::generate::{Generator, Shape, Spec};

use super::{DISPATCH, FLOWS, FUNCTIONS, REPLICAS, Turns, figure, made, ns, row};
use crate::report::Section;

/// Numbers of cores.
const CORES: [u16; 4] = [2, 4, 8, 16];
/// Bits of an index of the indirection table.
const BITS: u32 = 9;
/// Of the mixed traffic: packets of one flow, in a hundred.
const HEAVY: usize = 40;

/// Packets by flow, as sharding reads them.
fn packets(shape: Option<Shape>) -> Result<Vec<(Key, u32)>> {
    let spec = Spec {
        packets: 150_000,
        flows: if shape.is_some() { 1000 } else { 20_000 },
        shape,
        zipf: 0.0,
        both: false,
        connections: false,
        seed: 3,
        ..Spec::default()
    };
    let heavy = if shape.is_some() { 0 } else { HEAVY };
    let mut packets = Generator::new(spec)?;
    let mut all = Vec::new();
    while let Some(record) = packets.next() {
        // Addresses and ports.
        let flow = match all.len() * 37 % 100 < heavy {
            true => [7; 12],
            false => record
                .data
                .get(26..38)
                .map_or(Ok([0; 12]), TryInto::try_into)?,
        };
        let key = flow.iter().fold(0_u128, |k, b| k << 8 | u128::from(*b));
        let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        all.push((Key(key), (mixed >> 40) as u32));
    }
    Ok(all)
}

/// All comparisons.
pub fn section(cache: &Cache, only: &[&str], turns: usize) -> Result<Section> {
    let mut section = Section::new(
        "hybrid",
        "Heavy keys replicated: rate over the better of shard and replicate",
        "computed from ns of one thread (heavy: at one flow, others at 60,000) and the choice of keys over the trace; d added",
    );
    let mut traffic: Vec<(&str, Vec<Divided>)> = Vec::new();
    let shapes = Shape::ALL.map(|s| (s.name(), Some(s)));
    for (name, shape) in shapes.into_iter().chain([("mixed", None)]) {
        let packets = packets(shape)?;
        let of = |cores: &u16| divide(&packets, BITS, *cores, ROW);
        traffic.push((name, CORES.iter().map(of).collect()));
    }
    let folder = tempfile::tempdir()?;
    for function in &FUNCTIONS {
        if !only.is_empty() && !only.contains(&function.name) {
            continue;
        }
        let made = made(cache, folder.path(), function)?;
        let mut all = Turns::new();
        for flows in FLOWS {
            let frames = folder.path().join("frames");
            std::fs::write(&frames, function.traffic.file(flows))?;
            let measured = made.run(&frames, turns, &["one", &REPLICAS.to_string()])?;
            let named = measured
                .into_iter()
                .map(|(n, v)| (format!("{n}/{flows}"), v));
            all.extend(named);
        }
        let names = [
            "alone/60000",
            "T1/60000",
            "replay-ring/60000",
            "T1/1",
            "replay-ring/1",
        ];
        for (name, divided) in &traffic {
            for (cores, parts) in CORES.iter().zip(divided) {
                for d in DISPATCH {
                    let n = f64::from(*cores);
                    let ratio = figure(&all, &names, |v| {
                        let shard = parts.without * (d + v[0]);
                        let replicate = (d + v[1] + (n - 1.0) * v[2]) / n;
                        let heavy = (d + v[3] + (n - 1.0) * v[4]) / n;
                        let hybrid = parts.sharded * (d + v[0]) + parts.replicated * heavy;
                        shard.min(replicate) / hybrid
                    })?;
                    let bar = match (*name, *cores) {
                        _ if d < 100.0 => None,
                        ("mixed", 16) => Some(1.2),
                        ("mixed", _) => None,
                        _ => Some(0.97),
                    };
                    let text = bar.map_or("no bar".to_owned(), |b| format!("at least {b}"));
                    let met = bar.is_none_or(|b| ratio.median >= b);
                    let what = format!("{} {name} n={cores} d={d}", function.name);
                    section
                        .rows
                        .push(row(what, 0, ns(&all, &names)?, ratio, (&text, met)));
                }
            }
        }
    }
    Ok(section)
}
