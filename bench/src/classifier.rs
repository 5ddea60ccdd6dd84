//! What classifying a packet costs: the function acl with lists of rules, against itself with one rule that matches all.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use millrace_classify::{Budget, Classifier, Form, Key, Rules};
use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::{Arrival, Burst, Layout};
use millrace_emit::cache::Cache;
use millrace_traffic::generate::{Acl, AclShape, Matched};

use crate::contender::BURST;
use crate::measure::{Figure, per_packet};
use crate::report::{Row, Section};

/// Packets a turn.
const TURN: usize = 1 << 15;
/// Bytes of a frame.
const SIZE: usize = 60;

/// A list, and what it is held to.
struct List {
    name: String,
    rules: Rules,
    budget: Budget,
    /// ns a packet by bursts
    ns: f64,
    /// KiB of the table, if it is a diagram
    kib: f64,
    /// ms to build
    ms: f64,
}

const TREES: Budget = Budget {
    bytes: 64 << 20,
    steps: 0,
    pairs: 1_000_000_000,
};

fn made(shape: AclShape, rules: u32, classes: u32) -> Result<Rules> {
    let text = Acl {
        shape,
        rules,
        classes,
        seed: 1,
    }
    .text();
    Ok(Rules::read(text.as_bytes(), &Key::flow4(), classes + 1, 1 << 20)?.rules)
}

/// A set of ClassBench's, with classes without a pattern; none where the sets are not there (MILLRACE_ACLS).
fn public(name: &str, classes: u32) -> Result<Option<Rules>> {
    let Some(folder) = std::env::var_os("MILLRACE_ACLS") else {
        return Ok(None);
    };
    let path = std::path::Path::new(&folder).join(name);
    let file = File::open(&path).with_context(|| path.display().to_string())?;
    let read = Rules::read(BufReader::new(file), &Key::flow4(), 2, 1 << 20)?.rules;
    let mut rules = Rules::new(Key::flow4(), classes + 1, 1 << 20);
    for (i, r) in (0_u32..).zip(read.iter()) {
        let x = i.wrapping_mul(2_654_435_761);
        rules.push_box(r.ranges, 1 + (x ^ x >> 15) % classes, r.line)?;
    }
    Ok(Some(rules))
}

fn lists() -> Result<Vec<List>> {
    let list = |name: &str, rules, budget, ns, kib, ms| List {
        name: name.into(),
        rules,
        budget,
        ns,
        kib,
        ms,
    };
    let usual = Budget::default();
    let none = f64::INFINITY;
    let mut all = vec![
        list(
            "acl 251",
            made(AclShape::Acl, 251, 2)?,
            usual,
            15.0,
            none,
            none,
        ),
        list(
            "acl 713",
            made(AclShape::Acl, 713, 2)?,
            usual,
            15.0,
            128.0,
            none,
        ),
        list(
            "acl 8550",
            made(AclShape::Acl, 8550, 2)?,
            usual,
            22.0,
            2048.0,
            2000.0,
        ),
        list(
            "fw 9379",
            made(AclShape::Fw, 9379, 2)?,
            usual,
            60.0,
            65_536.0,
            none,
        ),
        list(
            "fw 9379, trees",
            made(AclShape::Fw, 9379, 2)?,
            TREES,
            110.0,
            none,
            none,
        ),
    ];
    for (name, classes, budget, ns) in [
        ("acl1_1k", 2, usual, 15.0),
        ("acl1_10k", 2, usual, 22.0),
        ("fw1_10k", 2, usual, 60.0),
        ("fw1_10k", 2, TREES, 110.0),
        ("acl1_10k", 2, TREES, 110.0),
    ] {
        if let Some(rules) = public(name, classes)? {
            let form = if budget == TREES { ", trees" } else { "" };
            all.push(list(
                &format!("{name}{form}"),
                rules,
                budget,
                ns,
                65_536.0,
                none,
            ));
        }
    }
    Ok(all)
}

struct Contender {
    instance: Instance,
    prefetch: bool,
    burst: Burst,
}

impl Contender {
    fn new(module: &Arc<Module>, rules: &Arc<Classifier>, prefetch: bool) -> Result<Self> {
        let mut instance = Instance::create(module.clone(), &Config::default())?;
        instance.set_rules(0, Some(rules.clone()))?;
        Ok(Self {
            instance,
            prefetch,
            burst: Burst::new(BURST, 2, Layout::Pooled),
        })
    }

    /// ns a packet inside the function.
    fn run(&mut self, frames: &[Vec<u8>], ns_per_tick: f64) -> f64 {
        let mut ticks = Vec::with_capacity(frames.len() / BURST);
        for part in frames.chunks_exact(BURST) {
            self.burst.clear();
            for frame in part {
                self.burst.push(frame, Arrival::default());
            }
            ticks.push(self.instance.burst(0, self.prefetch, &mut self.burst));
        }
        per_packet(ticks) * ns_per_tick
    }
}

/// The figures.
pub fn section(cache: &Cache, turns: usize, ns_per_tick: f64) -> Result<Section> {
    let mut section = Section::new(
        "classifier",
        "ns a packet that classifying by bursts takes / what it is held to",
        "nfs/acl with a list, less the same with one rule that matches all; each rule that a packet can meet first is met alike; \
         lists of `trace acl` (two classes and none), and ClassBench's where MILLRACE_ACLS names them",
    );
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../nfs/acl/acl.c");
    let built = millrace_emit::build(cache, &source, &[], &Default::default(), &mut |_| {})?;
    let module = Arc::new(Module::load(&built.module)?);
    let mut any = Rules::new(Key::flow4(), 2, 1);
    any.push_box(
        &[
            (0, u32::MAX),
            (0, u32::MAX),
            (0, 65535),
            (0, 65535),
            (0, 255),
        ],
        1,
        0,
    )?;
    let any = Arc::new(Classifier::build(any, &Budget::default()));
    for list in lists()? {
        let started = Instant::now();
        let made = Arc::new(Classifier::build(list.rules.clone(), &list.budget));
        let ms = started.elapsed().as_secs_f64() * 1e3;
        let mut packets = Matched::new(list.rules.clone(), 1, SIZE, 0, 1);
        let frames: Vec<Vec<u8>> = (0..TURN)
            .filter_map(|_| Some(packets.next()?.data.to_vec()))
            .collect();
        let mut all = [
            Contender::new(&module, &any, true)?,
            Contender::new(&module, &made, true)?,
            Contender::new(&module, &any, false)?,
            Contender::new(&module, &made, false)?,
        ];
        let (mut bursts, mut singly) = (Vec::new(), Vec::new());
        for turn in 0..=turns {
            let ns: Vec<f64> = all
                .iter_mut()
                .map(|c| c.run(&frames, ns_per_tick))
                .collect();
            // The first warms caches.
            if turn > 0 {
                bursts.push(ns[1] - ns[0]);
                singly.push(ns[3] - ns[2]);
            }
        }
        let (bursts, singly) = (Figure::of(&bursts), Figure::of(&singly));
        let kib = made.table().bytes() as f64 / 1024.0;
        let diagram = made.form() == Form::Diagram;
        section.rows.push(Row {
            name: list.name,
            flows: list.rules.len() as u32,
            skew: format!("{:?}", made.form()).to_lowercase(),
            ns: vec![
                ("bursts".into(), bursts),
                ("one by one".into(), singly),
                ("KiB".into(), Figure::of(&[kib])),
                ("ms".into(), Figure::of(&[ms])),
                (
                    "kept".into(),
                    Figure::of(&[(list.rules.len() - made.redundant().len()) as f64]),
                ),
            ],
            ratio: bursts.times(1.0 / list.ns),
            bar: format!("at most {} ns, {} KiB, {} ms", list.ns, list.kib, list.ms),
            met: bursts.median <= list.ns && (!diagram || kib <= list.kib) && ms <= list.ms,
        });
    }
    Ok(section)
}
