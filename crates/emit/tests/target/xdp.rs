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
struct Frame {
    copy: u32,
    time: u64,
    tick: bool,
    bytes: Vec<u8>,
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
fn driven(command: &mut Command, frames: &[Frame]) -> Option<Vec<Done>> {
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
    Some(done)
}

/// Runs frames through copies of an object, without interfaces.
fn kernel(
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

const BEAT: u8 = 2;
const DROP: u32 = 1;
const REDIRECT: u32 = 4;

#[test]
fn the_kernels_sequencer_gives_the_golden_captures() {
    let bench = Bench::new();
    for (name, slots) in FUNCTIONS {
        let program = nf::load(&bench, name);
        let files = files(&Xdp, &program, 3, *slots);
        let object = compiled(&bench, &format!("{name}-sequencer"), &files[0].text);
        let carriers = carriers(&captures().join(format!("{name}.pcap")));
        let frames = carriers.iter().map(|c| Frame {
            copy: 0,
            time: c.stamp,
            tick: c.flags == BEAT,
            bytes: if c.flags == BEAT {
                vec![0; 14]
            } else {
                c.packet.clone()
            },
        });
        let frames: Vec<Frame> = frames.collect();
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
fn strict(bench: &Bench, name: &str) -> Program {
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
fn alone(bench: &Bench, program: &Program, stamps: &[u64]) -> Vec<Outcome> {
    let text = millrace_emit::alone::emit(program, &facts(program), "module.c").unwrap();
    let module = crate::replicate::compiled(bench, &text, false);
    let way = Way {
        sanitize: false,
        plain: true,
        burst: 1,
    };
    let all = packets().into_iter().zip(stamps);
    let all = all.map(|((_, bytes), time)| Packet {
        program: 0,
        port: 0,
        time: *time,
        bytes,
    });
    let all: Vec<Packet> = all.collect();
    bench.run(program, &module, way, &all).0
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
fn carried(carriers: &[Carrier]) -> Vec<Frame> {
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
    // Core 0 misses five of its packets, more than twelve rows heal: from there on it drops all.
    let kept: Vec<Frame> = carried(&carriers);
    let mine: Vec<usize> = (0..carriers.len())
        .filter(|n| carriers[*n].core == 0)
        .collect();
    let kept: Vec<Frame> = kept
        .into_iter()
        .enumerate()
        .filter(|(n, _)| !mine[2..7].contains(n))
        .map(|(_, f)| f)
        .collect();
    let done = kernel(&bench, "replica", 3, &object, &kept).unwrap();
    let first: Vec<u32> = (kept.iter().zip(&done))
        .filter(|(f, _)| f.copy == 0)
        .map(|(_, d)| d.0)
        .collect();
    assert!(first[2..].iter().all(|v| *v == DROP), "{first:?}");
    let others = kept.iter().zip(&done).filter(|(f, _)| f.copy != 0);
    assert!(others.filter(|(_, d)| d.0 == 3).count() > 5);
}

/// On interfaces: what comes back by each replica's interface is what the program alone forwards.
#[test]
fn on_interfaces_the_replicas_forward_what_the_program_alone_does() {
    let bench = Bench::new();
    let pass = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nSEC(\"xdp\") int pass(struct xdp_md *ctx) { return XDP_PASS; }\n";
    let pass = compiled(&bench, "pass", pass);
    for (name, slots) in [("tokenbucket", 9)] {
        let program = strict(&bench, name);
        let files = files(&Xdp, &program, 3, slots);
        let sequencer = compiled(&bench, &format!("{name}-sequencer"), &files[0].text);
        let replica = compiled(&bench, &format!("{name}-replica"), &files[1].text);
        let carriers = carriers(&captures().join(format!("{name}.pcap")));
        let frames = carriers.iter().map(|c| Frame {
            copy: u32::from(c.core),
            time: c.stamp,
            tick: c.flags == BEAT,
            bytes: if c.flags == BEAT {
                vec![0; 14]
            } else {
                c.packet.clone()
            },
        });
        let frames: Vec<Frame> = frames.collect();
        let mut command = Command::new(driver(&bench, "veth"));
        command.arg("3").arg(sequencer).arg(replica).arg(&pass);
        let Some(done) = driven(&mut command, &frames) else {
            return;
        };
        let own: Vec<usize> = (0..carriers.len())
            .filter(|n| carriers[*n].flags != BEAT)
            .collect();
        let stamps: Vec<u64> = own.iter().map(|n| carriers[*n].stamp).collect();
        for (n, expected) in own.iter().zip(alone(&bench, &program, &stamps)) {
            let expected = match expected.fate {
                3 => (3, expected.bytes),
                _ => (DROP, Vec::new()),
            };
            assert_eq!(done[*n], expected, "{name}: record {n}");
        }
        let forwarded = done.iter().filter(|d| d.0 == 3).count();
        assert!(
            forwarded > 2 && forwarded < own.len(),
            "{name}: {forwarded}"
        );
    }
}
