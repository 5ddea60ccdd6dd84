//! Cost of hosting a program of DPDK: Debian's testpmd, which exchanges the addresses of each packet, hosted, and by
//! itself on the same port, which does the same work without a host (bench/guest/alone.c).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use millrace_dataplane::clock;
use millrace_guest::port::{OUT, Packet};
use millrace_guest::preload::BYTES;
use millrace_guest::{Hosted, Spec};

use super::{compile, room, row};
use crate::contender::BURST;
use crate::measure::Figure;
use crate::report::Section;

const PROGRAM: &str = "dpdk-testpmd";
const WORDS: &str =
    "-l 0-1 --log-level=emergency -- --forward-mode=macswap --total-num-mbufs=4096 --no-flush-rx";
/// Bursts a turn.
const BURSTS: usize = 20_000;
/// What it may take of what the program takes by itself.
const MOST: f64 = 1.05;

/// A packet's place, where a line of the cache begins. Not a power of two, with which all would compete for two sets
/// of the cache: pools of mbufs are laid out so as well.
#[derive(Clone)]
#[repr(align(64))]
struct Buffer([u8; 2048 + 64]);

/// Of testpmd, both, in turns.
pub fn rows(section: &mut Section, folder: &Path, turns: usize) -> Result<Option<String>> {
    let there = Spec::parse(PROGRAM).is_ok() && BYTES.iter().all(|bytes| !bytes.is_empty());
    if !there {
        return Ok(Some(format!(
            "{PROGRAM}: DPDK is not installed (scripts/setup.sh test)"
        )));
    }
    let mut libraries = Vec::new();
    for (name, bytes) in ["guest.so", "dpdk.so"].into_iter().zip(BYTES) {
        let file = folder.join(name);
        std::fs::write(&file, bytes)?;
        libraries.push(file.display().to_string());
    }
    let stands_in = folder.join("alone.so");
    // The C library's memcpy, which the host has too.
    let words = ["-fPIC", "-shared", "-fno-builtin-memcpy"];
    compile(&room().join("alone.c"), &stands_in, &words)?;
    libraries.push(stands_in.display().to_string());
    let (mut by_itself, mut guest) = (Vec::new(), Vec::new());
    for _ in 0..turns.min(9) {
        by_itself.push(alone(&libraries.join(" "))?);
        guest.push(hosted()?);
    }
    let ratios: Vec<f64> = guest.iter().zip(&by_itself).map(|(g, a)| g / a).collect();
    section.rows.push(row(
        "testpmd",
        vec![
            ("by itself".into(), Figure::of(&by_itself)),
            ("hosted".into(), Figure::of(&guest)),
        ],
        Figure::of(&ratios),
        format!("at most {MOST} times the program by itself"),
        MOST,
    ));
    Ok(None)
}

/// Cycles a packet, by itself: its threads where this one is.
fn alone(libraries: &str) -> Result<f64> {
    let mut child = Command::new(PROGRAM)
        .args(WORDS.split(' '))
        .env("LD_PRELOAD", libraries)
        .env("ROUNDS", BURSTS.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    // It would end with its input.
    let input = child.stdin.take();
    let output = child.wait_with_output()?;
    drop(input);
    let text = String::from_utf8_lossy(&output.stderr);
    let told = text.lines().find_map(|line| line.strip_prefix("alone "));
    let told: f64 = told.with_context(|| text.to_string())?.parse()?;
    Ok(told / BURST as f64)
}

/// Cycles a packet, hosted.
fn hosted() -> Result<f64> {
    let mut spec = Spec::parse(&format!("{PROGRAM} {WORDS}"))?;
    let null = File::options().write(true).open("/dev/null")?;
    spec.output = null.as_raw_fd();
    let mut guest = Hosted::start(spec)?;
    let mut buffers = vec![Buffer([0; 2048 + 64]); BURST];
    let packet = |b: &mut Buffer| Packet {
        data: b.0.as_mut_ptr(),
        time: 1,
        length: 64,
        wire: 64,
        room: 1500,
        port: 0,
        fate: 0,
    };
    let fresh: Vec<Packet> = buffers.iter_mut().map(packet).collect();
    let mut packets = fresh.clone();
    let mut took = Vec::with_capacity(BURSTS);
    for _ in 0..BURSTS {
        packets.copy_from_slice(&fresh);
        let begin = clock::ticks();
        // SAFETY: the packets lie in `buffers`, which nothing else touches.
        let went = unsafe { guest.burst(&mut packets) };
        took.push(clock::ticks().saturating_sub(begin) as f64);
        if !went || packets.iter().any(|p| p.fate != OUT + 1) {
            bail!("a packet was not forwarded");
        }
    }
    guest.finish();
    Ok(Figure::of(&took).median / BURST as f64)
}
