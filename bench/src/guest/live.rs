//! Programs of libpcap hosted, against the same on a live interface: packets a second of what each can take. The
//! interface is a veth in a namespace of its own, and its sender, on another processor, sends as fast as it can. It is the
//! capture's packets both times, and the same processor.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use millrace_guest::port::Packet;
use millrace_guest::{Hosted, Spec, Word};
use millrace_tests::command::root;
use millrace_traffic::capture::Reader;

use super::{compile, room, row};
use crate::contender::BURST;
use crate::measure::{self, Figure};
use crate::report::Section;

/// Seconds that each turn's sender sends.
const SECONDS: &str = "1";
/// Times that the hosted program gets the capture.
const TIMES: usize = 40;
/// How many of the live rate a hosted one is to be at least.
const FASTER: f64 = 2.0;

type Frame = (Vec<u8>, u64, u32);

/// Of each program, both.
pub fn rows(section: &mut Section, folder: &Path, turns: usize) -> Result<Option<String>> {
    let (sender, count) = (folder.join("send"), folder.join("count"));
    for (name, out) in [("send.c", &sender), ("count.c", &count)] {
        let source = room().join(name);
        if let Err(error) = compile(&source, out, &["-Wall", "-Wextra", "-lpcap"]) {
            return Ok(Some(format!("{name}: {error} (apt install libpcap-dev)")));
        }
    }
    let namespace = Command::new("unshare").args(["--net", "true"]).output();
    if !namespace.is_ok_and(|made| made.status.success()) {
        return Ok(Some("live: network namespaces cannot be made here".into()));
    }
    if measure::processors()? < 2 {
        return Ok(Some("live: the sender needs a processor of its own".into()));
    }
    if Spec::parse("tcpdump").is_err() {
        return Ok(Some(
            "live: tcpdump is not installed (scripts/setup.sh test)".into(),
        ));
    }
    let capture = root().join("captures/talk.pcap");
    let mut frames: Vec<Frame> = Vec::new();
    let mut reader = Reader::open(&capture)?;
    while let Some(record) = reader.next()? {
        frames.push((record.data.to_vec(), record.time_ns, record.original_length));
    }
    let programs = [
        ("counts", format!("{} @", count.display())),
        ("tcpdump -w", "tcpdump -n -Z root -i @ -w /dev/null".into()),
        ("tcpdump", "tcpdump -n -Z root -i @".to_owned()),
    ];
    for (name, words) in programs {
        let (mut live, mut hosted) = (Vec::new(), Vec::new());
        for _ in 0..turns.min(5) {
            live.push(on_interface(&sender, &capture, &words.replace('@', "mr1"))?);
            hosted.push(in_chain(&words, &mut frames)?);
        }
        let ratios: Vec<f64> = live.iter().zip(&hosted).map(|(l, h)| l / h).collect();
        let ratio = Figure::of(&ratios);
        section.rows.push(row(
            name,
            vec![
                ("live Mpps".into(), Figure::of(&live).times(1e-6)),
                ("hosted Mpps".into(), Figure::of(&hosted).times(1e-6)),
            ],
            ratio.times(FASTER),
            format!("live rate at most 1/{FASTER} of the hosted one"),
            1.0,
        ));
    }
    Ok(None)
}

/// Packets a second that it has captured, on the interface.
fn on_interface(sender: &Path, capture: &Path, words: &str) -> Result<f64> {
    let output: Output = Command::new("unshare")
        .args(["--net", "sh"])
        .arg(room().join("live.sh"))
        .args([sender, capture])
        .args([SECONDS, "0"])
        .args(words.split(' '))
        .output()
        .context("unshare")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words} on an interface: {told}");
    let captured = told
        .lines()
        .find_map(|line| line.strip_suffix(" packets captured"))
        .with_context(|| format!("{words} does not say what it has captured: {told}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let time = printed.lines().last().and_then(|line| line.split_once(' '));
    let (_, seconds) = time.context("the sender does not say how long it sent")?;
    Ok(captured.trim().parse::<f64>()? / seconds.trim().parse::<f64>()?)
}

/// Packets a second, hosted.
fn in_chain(words: &str, frames: &mut [Frame]) -> Result<f64> {
    let null = File::options().write(true).open("/dev/null")?;
    let mut spec = Word::of(&format!("guest:{words}"))
        .context("no guest")?
        .spec()?;
    spec.output = null.as_raw_fd();
    let mut guest = Hosted::start(spec)?;
    let each = |(data, time, wire): &mut Frame| Packet::of(data, *time, *wire);
    let mut packets: Vec<Packet> = frames.iter_mut().map(each).collect();
    let begin = Instant::now();
    for _ in 0..TIMES {
        for burst in packets.chunks_mut(BURST) {
            // SAFETY: each packet lies in a buffer of its own in `frames`, which is not touched meanwhile.
            ensure!(unsafe { guest.burst(burst) }, "{words} has ended");
        }
    }
    let took = begin.elapsed().as_secs_f64();
    guest.finish();
    Ok((TIMES * packets.len()) as f64 / took)
}
