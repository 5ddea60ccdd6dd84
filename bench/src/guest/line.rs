//! The switch alone, a packet of a trivial program against a direct call, several guests in a row, and what a heap that
//! is there before the program begins spares.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use millrace_guest::Hosted;
use millrace_guest::port::Packet;
use millrace_guest::protect::Protection;

use super::{cycles, row, start};
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

/// Cycles a packet of a direct call and of one guest, turn by turn.
pub struct Turns {
    pub called: Vec<f64>,
    pub hosted: Vec<f64>,
}

/// Measures all of it, in turns.
pub fn rows(section: &mut Section, program: &Path, turns: usize) -> Result<Turns> {
    let mut guests = Vec::new();
    for _ in 0..8 {
        guests.push(start(program, "", "")?);
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
        .push(heap(program, turns.min(7), &mut packets)?);
    let [one, ..] = hosted;
    Ok(Turns {
        called,
        hosted: one,
    })
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
