//! Against the kernel's own JIT: the same program, its own hash map, `BPF_PROG_TEST_RUN`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use millrace_emit::cache::Cache;
use millrace_tests::kernel::{Kernel, unavailable};

use crate::contender::{Contender, FUNCTIONS, Function, emitted, root};
use crate::measure::{Figure, per_packet};
use crate::report::{Row, Section};
use crate::workload::{Frame, Order, Skew};

/// What bench/kernel/rotate.c rotates through.
const FLOWS: u32 = 1 << 16;
/// Runs of the program in one turn.
const RUNS: u32 = 1 << 19;

/// Functions whose source is a program for the kernel.
const XDP: &[&str] = &["portknock", "heavyhitter"];

/// Measures the kernel and the emitted program in turns.
pub fn section(cache: &Cache, turns: usize, ns_per_tick: f64) -> Result<Section> {
    let mut section = Section::new(
        "kernel",
        "Emitted code against the kernel's JIT, 64K flows, uniform: kernel / emitted",
        "the kernel's time is that of BPF_PROG_TEST_RUN net of a program that only picks the flow \
         (bench/kernel/rotate.c)",
    );
    if let Some(why) = unavailable() {
        section.skipped(&why);
        return Ok(section);
    }
    for function in FUNCTIONS.iter().filter(|f| XDP.contains(&f.name)) {
        section.rows.push(row(cache, function, turns, ns_per_tick)?);
    }
    Ok(section)
}

fn row(cache: &Cache, function: &Function, turns: usize, ns_per_tick: f64) -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let load = |name: &str, flags: &[&str]| -> Result<Kernel> {
        let object = folder.path().join(name);
        compile(function, &object, flags)?;
        Ok(Kernel::load(&object)
            .map_err(|e| anyhow!(e))?
            .program("rotate"))
    };
    let mut full = load("full.o", &[])?;
    let mut empty = load("empty.o", &["-DEMPTY"])?;
    let time = |kernel: &mut Kernel, frame: &Frame, runs: u32| -> Result<f64> {
        let ns = kernel.time(&frame.bytes, runs).map_err(|e| anyhow!(e))?;
        Ok(ns as f64)
    };
    for frame in function.traffic.opening(0) {
        time(&mut full, &frame, FLOWS)?;
    }
    let mut ours = emitted(cache, function, u64::from(FLOWS), true)?;
    open(function, &mut ours);
    let frame = function.traffic.frame(0, false);
    let mut order = Order::new(FLOWS, Skew::Uniform);
    let (mut kernel_ns, mut our_ns, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..turns {
        let net = time(&mut full, &frame, RUNS)? - time(&mut empty, &frame, RUNS)?;
        let frames: Vec<Frame> = (0..RUNS / 8)
            .map(|_| function.traffic.frame(order.next().0, false))
            .collect();
        // The kernel's runs come round to each flow many times, so its table is warm.
        ours.run(&frames);
        let ns = per_packet(ours.run(&frames)) * ns_per_tick;
        kernel_ns.push(net);
        our_ns.push(ns);
        ratios.push(net / ns);
    }
    Ok(Row {
        name: function.name.into(),
        flows: FLOWS,
        skew: Skew::Uniform.name(),
        ns: vec![
            ("kernel".into(), Figure::of(&kernel_ns)),
            ("emitted".into(), Figure::of(&our_ns)),
        ],
        ratio: Figure::of(&ratios),
        bar: "at least 3".into(),
        met: Figure::of(&ratios).median >= 3.0,
    })
}

fn open(function: &Function, contender: &mut Contender) {
    for flow in 0..FLOWS {
        contender.run(&function.traffic.opening(flow));
    }
}

fn compile(function: &Function, object: &Path, flags: &[&str]) -> Result<()> {
    let source = root().join(format!("nfs/{0}/{0}.c", function.name));
    let machine = std::env::consts::ARCH;
    let output = Command::new("clang-19")
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c"])
        .arg(format!("-I/usr/include/{machine}-linux-gnu"))
        .arg(format!("-DNF_SOURCE=\"{}\"", source.display()))
        .arg(format!(
            "-D{}=static __always_inline function",
            function.name
        ))
        .args(flags)
        .arg(root().join("bench/kernel/rotate.c"))
        .arg("-o")
        .arg(object)
        .output()
        .context("clang-19 does not start")?;
    if !output.status.success() {
        bail!(
            "bench/kernel/rotate.c: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}
