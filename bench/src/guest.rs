//! What hosting somebody else's program costs: the switch alone, a packet of a trivial program against a direct call,
//! several guests in a row, and what a heap that is there before the program begins spares.

#![allow(unsafe_code, reason = "packets cross to guests by address")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use millrace_dataplane::clock;
use millrace_guest::port::Packet;
use millrace_guest::protect::Protection;
use millrace_guest::{Hosted, Word};

use crate::contender::BURST;
use crate::measure::Figure;
use crate::report::{Row, Section};

/// Switches in a row for the figure of the switch alone, and bursts for those of packets.
const SWITCHES: u32 = 2000;
const BURSTS: usize = 500;
/// Cycles that a switch there and back may take, with protection keys and without; cycles a packet that a guest may
/// take more than a direct call.
const KEYS: f64 = 250.0;
const PLAIN: f64 = 130.0;
const MORE: f64 = 8.0;
/// How much more each of several guests may take than one alone.
const LINEAR: f64 = 1.25;
/// Packets of the program that keeps 16 KiB for each.
const KEPT: usize = 2048;

/// Compiles a program of the guests' tests.
fn program(folder: &Path) -> Result<PathBuf> {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/guest");
    let out = folder.join("trivial");
    let built = Command::new("cc")
        .args(["-O2", "-I"])
        .arg(room.join("preload"))
        .arg("-o")
        .arg(&out)
        .arg(room.join("tests/programs/trivial.c"))
        .status()
        .context("cc")?;
    ensure!(built.success(), "cc of {}: {built}", out.display());
    Ok(out)
}

fn start(program: &Path, options: &str, how: &str) -> Result<Hosted> {
    let word = format!("guest{options}:{} {how}", program.display());
    let spec = Word::of(&word).context("no guest")?.spec()?;
    Ok(Hosted::start(spec)?)
}

/// Cycles of the time stamp counter that something takes.
fn cycles(work: impl FnOnce()) -> f64 {
    let begin = clock::ticks();
    work();
    clock::ticks().saturating_sub(begin) as f64
}

#[inline(never)]
fn direct(packets: &mut [Packet], sum: &mut u64) {
    for packet in packets {
        // SAFETY: each points into a buffer of the caller's.
        *black_box(&mut *sum) += u64::from(unsafe { *packet.data });
    }
}

/// A burst through guests in a row.
fn through(guests: &mut [Hosted], packets: &mut [Packet]) {
    for guest in guests {
        // SAFETY: the packets lie in buffers that nothing else touches.
        unsafe { guest.burst(packets) };
    }
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
pub fn section(turns: usize) -> Result<Section> {
    let mut section = Section::new(
        "guest",
        "Hosted programs: cycles of the time stamp counter / what they may take",
        "trivial program at burst 32; direct: the same in a function that is not inlined",
    );
    let folder = tempfile::tempdir()?;
    let program = program(folder.path())?;
    let mut guests = Vec::new();
    for _ in 0..8 {
        guests.push(start(&program, "", "")?);
    }
    let mut buffers = vec![[1_u8; 64]; BURST];
    let packet = |bytes: &mut [u8; 64]| Packet::of(bytes, 1, 64);
    let mut packets: Vec<Packet> = buffers.iter_mut().map(packet).collect();
    let counts = [1, 3, 8];
    let (mut alone, mut called, mut hosted) = (Vec::new(), Vec::new(), [const { Vec::new() }; 3]);
    let each = (BURSTS * BURST) as f64;
    let mut sum = 0;
    for _ in 0..turns {
        let first = guests.first_mut().context("no guest")?;
        let mut done = 0;
        alone.push(cycles(|| done = first.switches(SWITCHES)) / f64::from(SWITCHES));
        ensure!(done == SWITCHES, "the guest has ended");
        called.push(cycles(|| (0..BURSTS).for_each(|_| direct(&mut packets, &mut sum))) / each);
        for (count, hosted) in counts.into_iter().zip(&mut hosted) {
            let line = guests.get_mut(..count).unwrap_or(&mut []);
            let all = cycles(|| (0..BURSTS).for_each(|_| through(line, &mut packets)));
            hosted.push(all / each);
        }
    }
    black_box(sum);
    let keys = guests
        .first()
        .is_some_and(|g| g.protection() != Protection::None);
    let (most, how) = if keys {
        (KEYS, "with protection keys")
    } else {
        (PLAIN, "without protection keys")
    };
    let switch = Figure::of(&alone);
    section.rows.push(row(
        "switch",
        vec![("there and back".into(), switch)],
        switch.times(1.0 / most),
        format!("{how} at most {most} cycles"),
        1.0,
    ));
    let [one, ..] = &hosted;
    let more: Vec<f64> = one
        .iter()
        .zip(&called)
        .map(|(h, c)| (h - c) / MORE)
        .collect();
    section.rows.push(row(
        "one guest",
        vec![
            ("direct".into(), Figure::of(&called)),
            ("hosted".into(), Figure::of(one)),
        ],
        Figure::of(&more),
        format!("at most {MORE} cycles a packet more than a direct call"),
        1.0,
    ));
    for (count, line) in counts.into_iter().zip(&hosted).skip(1) {
        let share = line.iter().zip(one).map(|(l, o)| l / o / count as f64);
        section.rows.push(row(
            &format!("{count} guests"),
            vec![("a packet".into(), Figure::of(line))],
            Figure::of(&share.collect::<Vec<_>>()),
            format!("each at most {LINEAR} times one alone"),
            LINEAR,
        ));
    }
    section
        .rows
        .push(heap(&program, turns.min(7), &mut packets)?);
    Ok(section)
}

/// The program that keeps more and more, with a heap that grows and with one that is there.
fn heap(program: &Path, turns: usize, packets: &mut [Packet]) -> Result<Row> {
    let mut taken = [const { Vec::new() }; 2];
    for _ in 0..turns {
        for (options, taken) in [",memory=256", ",memory=256,heap=64"]
            .into_iter()
            .zip(&mut taken)
        {
            let mut line = [start(program, options, "grow")?];
            let bursts = KEPT / BURST;
            let all = cycles(|| (0..bursts).for_each(|_| through(&mut line, packets)));
            taken.push(all / KEPT as f64);
        }
    }
    let [grown, ready] = &taken;
    let ratios: Vec<f64> = ready.iter().zip(grown).map(|(r, g)| r / g).collect();
    Ok(row(
        "heap=64",
        vec![
            ("grown".into(), Figure::of(grown)),
            ("ready".into(), Figure::of(ready)),
        ],
        Figure::of(&ratios),
        "16 KiB kept a packet, less than without".into(),
        1.0,
    ))
}
