//! Sequencer and replicas in the kernel, by test runs without interfaces: the sequencer gives the golden captures byte for
//! byte, and replicas that receive these give each packet what the program alone gives it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millrace_emit::target::xdp::Xdp;

use super::verilog::files;
use super::{Carrier, FUNCTIONS, captures, carriers, packets};
use millrace_object::Program;

use crate::support::{Bench, Outcome, Packet, Way, facts, nf};

/// A frame for the kernel.
pub(super) struct Frame {
    pub(super) copy: u32,
    pub(super) time: u64,
    pub(super) tick: bool,
    pub(super) bytes: Vec<u8>,
}

/// What the kernel made of it: verdict, bytes.
type Done = (u32, Vec<u8>);

pub fn compiled(bench: &Bench, name: &str, text: &str) -> PathBuf {
    let (source, object) = (
        bench.path(&format!("{name}.c")),
        bench.path(&format!("{name}.o")),
    );
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(&bench.toolchain.clang);
    command.args([
        "-target", "bpf", "-mcpu=v4", "-O2", "-g", "-Wall", "-Werror",
    ]);
    command.arg(format!(
        "-I/usr/include/{}-linux-gnu",
        std::env::consts::ARCH
    ));
    let output = command
        .arg("-c")
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    object
}

/// Compiles a driver, once.
pub fn driver(bench: &Bench, name: &str) -> PathBuf {
    let driver = bench.path(name);
    if !driver.exists() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/target");
        let mut command = Command::new(&bench.toolchain.clang);
        command.args(["-O1", "-Wall", "-Wextra", "-Werror"]);
        command
            .arg("-o")
            .arg(&driver)
            .arg(folder.join(format!("{name}.c")));
        let output = command.arg("-lbpf").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    driver
}

/// Runs frames through a driver; none where the kernel or the rights do not allow it.
pub(super) fn driven(command: &mut Command, frames: &[Frame]) -> Option<Vec<Done>> {
    counted(command, frames, 0).map(|(done, _)| done)
}

/// What replicas count, in the order of `enum count`.
const COUNTS: usize = 19;
pub(super) const LATE: usize = 3;
pub(super) const LOST: usize = 4;
pub(super) const STOPPED: usize = 5;
pub(super) const NUMBER: usize = 11;
pub(super) const RECOVERED: usize = 15;
const GONE: usize = 16;
const WAITING: usize = 17;
pub(super) const CONTRADICTED: usize = 18;

/// The same, and what so many replicas have counted, all together.
pub(super) fn counted(
    command: &mut Command,
    frames: &[Frame],
    copies: u32,
) -> Option<(Vec<Done>, [u64; COUNTS])> {
    let mut input = (frames.len() as u32).to_le_bytes().to_vec();
    for f in frames {
        input.extend(f.copy.to_le_bytes());
        input.extend(f.time.to_le_bytes());
        input.extend(u32::from(f.tick).to_le_bytes());
        input.extend((f.bytes.len() as u32).to_le_bytes());
        input.extend(&f.bytes);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may end before it reads all.
    let writer = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        eprintln!("skipped: no XDP program runs here: {said}");
        return None;
    }
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    let mut bytes = &output.stdout[..];
    let mut take = |n: usize| {
        let (head, rest) = bytes.split_at(n);
        bytes = rest;
        head.to_vec()
    };
    let mut done = Vec::new();
    for _ in frames {
        let mut word = || u32::from_le_bytes(take(4).try_into().unwrap());
        let (verdict, length) = (word(), word());
        done.push((verdict, take(length as usize)));
    }
    let mut counts = [0; COUNTS];
    for _ in 0..copies {
        for count in &mut counts {
            *count += u64::from_le_bytes(take(8).try_into().unwrap());
        }
    }
    Some((done, counts))
}

/// Runs frames through copies of an object, without interfaces.
pub(super) fn kernel(
    bench: &Bench,
    mode: &str,
    copies: u32,
    object: &Path,
    frames: &[Frame],
) -> Option<Vec<Done>> {
    let mut command = Command::new(driver(bench, "kernel"));
    driven(
        command.args([mode, &copies.to_string()]).arg(object),
        frames,
    )
}

pub(super) const BEAT: u8 = 2;
pub(super) const DROP: u32 = 1;
const REDIRECT: u32 = 4;

/// What a sequencer got for a carrier.
pub(super) fn came(carrier: &Carrier, copy: u32) -> Frame {
    let tick = carrier.flags == BEAT;
    let bytes = if tick {
        vec![0; 14]
    } else {
        carrier.packet.clone()
    };
    Frame {
        copy,
        time: carrier.stamp,
        tick,
        bytes,
    }
}

#[test]
fn the_kernels_sequencer_gives_the_golden_captures() {
    let bench = Bench::new();
    for (name, slots) in FUNCTIONS {
        let program = nf::load(&bench, name);
        let files = files(&Xdp, &program, 3, *slots);
        let object = compiled(&bench, &format!("{name}-sequencer"), &files[0].text);
        let carriers = carriers(&captures().join(format!("{name}.pcap")));
        let frames: Vec<Frame> = carriers.iter().map(|c| came(c, 0)).collect();
        let Some(done) = kernel(&bench, "sequencer", 1, &object, &frames) else {
            return;
        };
        for (n, (carrier, (verdict, bytes))) in carriers.iter().zip(done).enumerate() {
            // No interface is behind the redirect here.
            assert!(
                [REDIRECT, DROP].contains(&verdict),
                "{name}: record {n}: {verdict}"
            );
            assert_eq!(bytes, carrier.whole, "{name}: record {n}");
        }
    }
}

/// A function with settings by which some of the packets are dropped.
pub(super) fn strict(bench: &Bench, name: &str) -> Program {
    let mut program = nf::load(bench, name);
    let settings: &[(&str, u64)] = match name {
        "ddos" => &[("threshold", 4)],
        "tokenbucket" => &[("rate", 100), ("burst", 2)],
        _ => &[],
    };
    for (setting, value) in settings {
        let param = program.params.iter().find(|p| p.name == *setting).unwrap();
        let (object, at) = (param.object, param.offset as usize);
        let global = program.objects[object.0].initial.as_mut().unwrap();
        global[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    program
}

/// What the program alone gives each packet of the capture: verdict and bytes.
pub(super) fn alone(bench: &Bench, program: &Program, stamps: &[u64]) -> Vec<Outcome> {
    let all = packets().into_iter().zip(stamps);
    let module = module_of(bench, program);
    let all = all.map(|((_, bytes), time)| (*time, bytes));
    alone_of(bench, (program, &module), all)
}

/// The program alone, compiled.
fn module_of(bench: &Bench, program: &Program) -> PathBuf {
    let text = millrace_emit::alone::emit(program, &facts(program), "module.c").unwrap();
    crate::replicate::compiled(bench, &text, false)
}

/// The same of these packets, with their times.
fn alone_of(
    bench: &Bench,
    (program, module): (&Program, &Path),
    packets: impl Iterator<Item = (u64, Vec<u8>)>,
) -> Vec<Outcome> {
    let way = Way {
        sanitize: false,
        plain: true,
        burst: 1,
    };
    let all = packets.map(|(time, bytes)| Packet {
        program: 0,
        port: 0,
        time,
        bytes,
    });
    let all: Vec<Packet> = all.collect();
    bench.run(program, module, way, &all).0
}

#[test]
fn the_kernels_replicas_do_what_the_program_alone_does() {
    let bench = Bench::new();
    for (name, slots) in FUNCTIONS {
        let program = strict(&bench, name);
        let files = files(&Xdp, &program, 3, *slots);
        let object = compiled(&bench, &format!("{name}-replica"), &files[1].text);
        let carriers = carriers(&captures().join(format!("{name}.pcap")));
        let frames = carriers.iter().map(|c| Frame {
            copy: u32::from(c.core),
            time: 0,
            tick: false,
            bytes: c.whole.clone(),
        });
        let frames: Vec<Frame> = frames.collect();
        let Some(done) = kernel(&bench, "replica", 3, &object, &frames) else {
            return;
        };
        let own: Vec<usize> = (0..carriers.len())
            .filter(|n| carriers[*n].flags != BEAT)
            .collect();
        let stamps: Vec<u64> = own.iter().map(|n| carriers[*n].stamp).collect();
        let expected = alone(&bench, &program, &stamps);
        assert_eq!(expected.len(), own.len());
        let mut verdicts = std::collections::BTreeMap::new();
        for (n, expected) in own.iter().zip(expected) {
            let (verdict, bytes) = &done[*n];
            *verdicts.entry(*verdict).or_insert(0) += 1;
            // Fates have the numbers of the kernel's verdicts, XDP_TX that of a packet that goes out.
            assert_eq!(
                (*verdict, bytes),
                (expected.fate, &expected.bytes),
                "{name}: record {n}"
            );
        }
        println!("{name}: {verdicts:?}");
        for (n, carrier) in carriers.iter().enumerate().filter(|(_, c)| c.flags == BEAT) {
            assert_eq!(
                done[n],
                (DROP, carrier.whole.clone()),
                "{name}: heartbeat {n}"
            );
        }
    }
}

/// A frame of each carrier.
pub(super) fn carried(carriers: &[Carrier]) -> Vec<Frame> {
    let frame = |c: &Carrier| Frame {
        copy: u32::from(c.core),
        time: 0,
        tick: false,
        bytes: c.whole.clone(),
    };
    carriers.iter().map(frame).collect()
}

/// What is no carrier, what is not the row's packet, what comes twice, and what comes behind a loss.
#[test]
fn a_replica_drops_what_no_sequencer_sends() {
    let bench = Bench::new();
    let program = strict(&bench, "ddos");
    let files = files(&Xdp, &program, 3, 12);
    let object = compiled(&bench, "ddos-replica", &files[1].text);
    let carriers = carriers(&captures().join("ddos.pcap"));
    let frames = carried(&carriers);
    let Some(expected) = kernel(&bench, "replica", 3, &object, &frames) else {
        return;
    };
    // Another type, version, number of slots, size of a row, index, flags, sequence, mark: each before the right one.
    let mut noisy = Vec::new();
    for (n, frame) in carried(&carriers).into_iter().enumerate() {
        let at = [12, 14, 15, 16, 17, 18, 35][n % 7];
        let mut wrong = frame.bytes.clone();
        wrong[at] ^= 0x80;
        noisy.push(Frame {
            bytes: wrong,
            ..frame
        });
        noisy.push(Frame {
            bytes: frame.bytes[..80].to_vec(),
            ..frame
        });
        noisy.push(frame);
    }
    let done = kernel(&bench, "replica", 3, &object, &noisy).unwrap();
    for (n, expected) in expected.iter().enumerate() {
        assert_eq!(
            (done[3 * n].0, done[3 * n + 1].0),
            (DROP, DROP),
            "record {n}"
        );
        assert_eq!(&done[3 * n + 2], expected, "record {n}");
    }
    // Twice: late. A source that is not the row's: aborted, and state goes the row's way, as the others show.
    let mut odd = Vec::new();
    for (n, mut frame) in carried(&carriers).into_iter().enumerate() {
        if n % 5 == 0 && carriers[n].flags == 1 {
            let prefix = frame.bytes.len() - carriers[n].packet.len();
            frame.bytes[prefix + 29] ^= 1;
        }
        odd.push(Frame {
            bytes: frame.bytes.clone(),
            ..frame
        });
        odd.push(frame);
    }
    let done = kernel(&bench, "replica", 3, &object, &odd).unwrap();
    let mut aborted = 0;
    for (n, expected) in expected.iter().enumerate() {
        if carriers[n].flags != 0 {
            assert_eq!(done[2 * n + 1].0, DROP, "record {n}");
        }
        match n % 5 == 0 && carriers[n].flags == 1 {
            true => assert_eq!(done[2 * n].0, 0, "record {n}"),
            false => assert_eq!(&done[2 * n], expected, "record {n}"),
        }
        aborted += usize::from(done[2 * n].0 == 0);
    }
    assert!(aborted > 4);
}

/// A carrier's sequence.
pub(super) fn sequence(carrier: &Carrier) -> u64 {
    u64::from_be_bytes(carrier.whole[18..26].try_into().unwrap())
}

/// Replicas that get the carriers that are kept, by a driver that takes them.
struct Losing<'a> {
    bench: &'a Bench,
    program: &'a Program,
    /// the program alone, and the kernel's replica
    module: &'a Path,
    object: &'a Path,
    carriers: &'a [Carrier],
    slots: u64,
}

impl Losing<'_> {
    /// Each packet that comes has the outcome that it has on one core that sees the rows which any core saw, or its replica still waits
    /// for a row; what was counted. None where the kernel does not allow it.
    fn held(&self, kept: &[usize]) -> Option<[u64; COUNTS]> {
        let kept_of: Vec<Carrier> = kept.iter().map(|n| self.carriers[*n].clone()).collect();
        let frames = carried(&kept_of);
        let mut command = Command::new(driver(self.bench, "kernel"));
        command.args(["replica", "3"]).arg(self.object);
        let (done, counts) = counted(&mut command, &frames, 3)?;
        let seen: std::collections::BTreeSet<u64> = (kept_of.iter())
            .flat_map(|c| (sequence(c) + 1).saturating_sub(self.slots).max(1)..=sequence(c))
            .collect();
        // Packets without a row change nothing: all of them may run.
        let runs = |c: &&Carrier| c.flags == 0 || c.flags == 1 && seen.contains(&sequence(c));
        let own: Vec<&Carrier> = self.carriers.iter().filter(runs).collect();
        let packets = own.iter().map(|c| (c.stamp, c.packet.clone()));
        let expected = alone_of(self.bench, (self.program, self.module), packets);
        let mut waited = 0;
        for (carrier, (verdict, bytes)) in kept_of.iter().zip(&done) {
            let Some(at) = own.iter().position(|c| c.whole == carrier.whole) else {
                continue;
            };
            let expected = (expected[at].fate, &expected[at].bytes);
            if (*verdict, bytes) != expected {
                assert_eq!(
                    (*verdict, bytes),
                    (DROP, &carrier.whole),
                    "row {}",
                    sequence(carrier)
                );
                waited += 1;
            }
        }
        assert!(waited <= counts[WAITING]);
        assert_eq!(counts[STOPPED] + counts[LOST] + counts[CONTRADICTED], 0);
        Some(counts)
    }
}

/// Rows that a core lost come from another core's log; those that all lost are left out by all. `MILLRACE_KERNEL_LOSSES=200` tries so
/// many patterns of losses.
#[test]
fn the_kernels_replicas_recover_rows() {
    let bench = Bench::new();
    let seeds = std::env::var("MILLRACE_KERNEL_LOSSES").ok();
    let seeds = seeds.map_or(3, |s| s.parse().unwrap());
    let mut gone = 0;
    for (name, slots) in FUNCTIONS {
        let program = strict(&bench, name);
        let files = files(&Xdp, &program, 3, *slots);
        let object = compiled(&bench, &format!("{name}-replica"), &files[1].text);
        let carriers = carriers(&captures().join(format!("{name}.pcap")));
        let module = module_of(&bench, &program);
        let losing = Losing {
            bench: &bench,
            program: &program,
            module: &module,
            object: &object,
            carriers: &carriers,
            slots: u64::from(*slots),
        };
        let mut all = [0; COUNTS];
        for seed in 0..seeds {
            let mut random = crate::support::random::Random(seed + 1);
            // One core alone loses; all do; hardly a packet comes.
            let (alone, lost) = [(true, 6), (false, 5), (false, 9)][seed as usize % 3];
            let loses = |random: &mut crate::support::random::Random, c: &Carrier| {
                (!alone || c.core == 0) && random.below(10) < lost
            };
            let kept = (0..carriers.len()).filter(|n| !loses(&mut random, &carriers[*n]));
            let kept: Vec<usize> = kept.collect();
            let Some(counts) = losing.held(&kept) else {
                return;
            };
            all.iter_mut().zip(counts).for_each(|(a, c)| *a += c);
        }
        println!(
            "{name}: {} recovered, {} gone, {} waited",
            all[RECOVERED], all[GONE], all[WAITING]
        );
        assert!(all[RECOVERED] > 0, "{name}");
        gone += all[GONE];
    }
    assert!(gone > 0, "nothing was lost by all");
}
