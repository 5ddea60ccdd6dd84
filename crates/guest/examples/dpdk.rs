//! Measures what hosting a program of DPDK costs: Debian's testpmd, which exchanges the addresses of each packet,
//! hosted, and by itself on the same port without a switch (alone.c). Cycles of the time stamp counter a packet at
//! burst 32, medians over the bursts of each run, runs interleaved. `dpdk [RUNS [BURSTS]]`.

#![allow(unsafe_code, reason = "packets cross to the guest by address")]

use std::process::Command;

use millrace_dataplane::clock;
use millrace_guest::port::Packet;
use millrace_guest::preload::BYTES;
use millrace_guest::{Hosted, Spec};

const BURST: usize = 32;
const PROGRAM: &str = "dpdk-testpmd";
const WORDS: &str =
    "-l 0-1 --log-level=error -- --forward-mode=macswap --total-num-mbufs=4096 --no-flush-rx";

/// A packet's place, where a line of the cache begins. Not a power of two, with which all would compete for two sets
/// of the cache: pools of mbufs are laid out so as well.
#[derive(Clone)]
#[repr(align(64))]
struct Buffer([u8; 2048 + 64]);

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Cycles a packet, hosted.
fn hosted(bursts: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut spec = Spec::parse(&format!("{PROGRAM} {WORDS}"))?;
    spec.output = 2;
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
    let mut took = Vec::with_capacity(bursts);
    for _ in 0..bursts {
        packets.copy_from_slice(&fresh);
        let begin = clock::ticks();
        // SAFETY: the packets lie in `buffers`, which nothing else touches.
        let went = unsafe { guest.burst(&mut packets) };
        took.push(clock::ticks().saturating_sub(begin) as f64);
        if !went
            || packets
                .iter()
                .any(|p| p.fate != millrace_guest::port::OUT + 1)
        {
            return Err("a packet was not forwarded".into());
        }
    }
    guest.finish();
    Ok(median(&mut took) / BURST as f64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |default| words.next().and_then(|w| w.parse().ok()).unwrap_or(default);
    let (runs, bursts): (usize, usize) = (number(5), number(50_000));
    let dir = std::env::temp_dir().join(format!("millrace-dpdk-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let mut libraries = Vec::new();
    for (name, bytes) in ["guest.so", "dpdk.so"].into_iter().zip(BYTES) {
        std::fs::write(dir.join(name), bytes)?;
        libraries.push(dir.join(name).display().to_string());
    }
    let alone = dir.join("alone.so");
    let room = env!("CARGO_MANIFEST_DIR");
    let built = Command::new("cc")
        // The C library's memcpy, which the host has too.
        .args([
            "-std=gnu11",
            "-O2",
            "-fno-builtin-memcpy",
            "-fPIC",
            "-shared",
            "-I",
        ])
        .arg(format!("{room}/preload"))
        .arg("-o")
        .args([&alone, &format!("{room}/examples/alone.c").into()])
        .status()?;
    if !built.success() {
        return Err(format!("alone.c: cc {built}").into());
    }
    libraries.push(alone.display().to_string());
    let mut figures = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        let mut child = Command::new(PROGRAM)
            .args(WORDS.split(' '))
            .env("LD_PRELOAD", libraries.join(" "))
            .env("ROUNDS", bursts.to_string())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()?;
        // It would end with its input.
        let input = child.stdin.take();
        let output = child.wait_with_output()?;
        drop(input);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = text.lines().find_map(|line| line.strip_prefix("alone "));
        let told: f64 = told.ok_or_else(|| text.clone())?.parse()?;
        let [by_itself, guest] = &mut figures;
        by_itself.push(told / BURST as f64);
        guest.push(hosted(bursts)?);
    }
    std::fs::remove_dir_all(&dir)?;
    let [alone, guest] = &mut figures;
    for (what, list) in [("alone ", &alone), ("hosted", &guest)] {
        let text: Vec<String> = list.iter().map(|f| format!("{f:.1}")).collect();
        println!("{what} cycles a packet, each run: {}", text.join(" "));
    }
    let (alone, guest) = (median(alone), median(guest));
    println!(
        "median: alone {alone:.1}, hosted {guest:.1}, {:+.1} %",
        (guest / alone - 1.0) * 100.0
    );
    Ok(())
}
