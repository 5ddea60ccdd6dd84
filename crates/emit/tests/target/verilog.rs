//! The sequencer in Verilog, simulated over the golden sequenced captures: every byte that it gives is the capture's.

use std::path::Path;
use std::process::{Command, Output};

use millrace_emit::target::{File, Input, Target, verilog::Verilog};
use millrace_object::Program;

use super::{FUNCTIONS, captures};
use crate::support::{Bench, facts, nf};

/// 40 s, as the golden captures have it.
const PERIOD: u64 = 40_000_000_000;

pub fn files(target: &dyn Target, program: &Program, cores: u16, slots: u16) -> Vec<File> {
    let checked = facts(program);
    let input = Input {
        program,
        checked: &checked,
        cores,
        slots,
        period: PERIOD,
    };
    target.files(&input).unwrap()
}

/// Compiles the files and gives the simulation; none without a simulator.
fn simulation(bench: &Bench, files: &[File], name: &str) -> Option<std::path::PathBuf> {
    let out = bench.path(&format!("{name}.vvp"));
    let mut command = Command::new("iverilog");
    command.args(["-g2005", "-Wall", "-o"]).arg(&out);
    for file in files {
        let path = bench.path(&file.name);
        std::fs::write(&path, &file.text).unwrap();
        command.arg(path);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!(
                "skipped: no simulator of Verilog: iverilog: {error}; apt-get install iverilog"
            );
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    let warnings: Vec<&str> = said.lines().filter(|l| !l.contains("timescale")).collect();
    assert!(warnings.is_empty(), "{name}: {said}");
    Some(out)
}

fn simulate(simulation: &Path, capture: &Path, seed: u32) -> Output {
    let mut command = Command::new("vvp");
    command
        .arg("-n")
        .arg(simulation)
        .arg(format!("+capture={}", capture.display()));
    command.arg(format!("+seed={seed}")).output().unwrap()
}

#[test]
fn the_simulated_sequencer_gives_the_golden_captures() {
    let bench = Bench::new();
    for (name, slots) in FUNCTIONS {
        let program = nf::load(&bench, name);
        let files = files(&Verilog, &program, 3, *slots);
        let Some(simulation) = simulation(&bench, &files, name) else {
            return;
        };
        let capture = captures().join(format!("{name}.pcap"));
        for seed in 1..3 {
            let output = simulate(&simulation, &capture, seed);
            let said = String::from_utf8_lossy(&output.stdout);
            let passed = said.lines().any(|l| l.starts_with("PASS: "));
            assert!(passed && !said.contains("FAIL"), "{name}: {said}");
        }
    }
}

/// The bench can fail: with another byte anywhere in a carrier, another form, another function's rows.
#[test]
fn the_bench_finds_what_differs() {
    let bench = Bench::new();
    let program = nf::load(&bench, "portknock");
    let files = files(&Verilog, &program, 3, 12);
    let Some(simulation) = simulation(&bench, &files, "portknock") else {
        return;
    };
    let path = bench.path("changed.pcap");
    let bytes = std::fs::read(captures().join("portknock.pcap")).unwrap();
    let second = 24 + 16 + 30;
    // Core, flags, index, sequence, a mark, a row, and a byte of the packet that its row has.
    for at in [5, 14, 17, 25, 34, 36, 34 + 2 + 12 * 6 + 29] {
        let mut changed = bytes.clone();
        changed[second + 16 + at] ^= 1;
        std::fs::write(&path, changed).unwrap();
        let said = simulate(&simulation, &path, 1).stdout;
        let said = String::from_utf8_lossy(&said);
        assert!(
            said.contains("FAIL: record 2") && !said.contains("PASS"),
            "{at}: {said}"
        );
    }
    let other = simulate(&simulation, &captures().join("ddos.pcap"), 1).stdout;
    assert!(String::from_utf8_lossy(&other).contains("FAIL: another form"));
}
