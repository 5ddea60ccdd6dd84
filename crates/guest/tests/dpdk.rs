//! Programs of DPDK: what leaves them when hosted is what leaves them on ports of their own.

#![allow(unsafe_code)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::{BURST, Caught, capture, installed};
use millrace_guest::port::{OUT, Packet};
use millrace_guest::{Over, describe};
use millrace_traffic::capture::Reader;
use millrace_turns::its_turn;

const EXAMPLES: &str = "/usr/share/dpdk/examples";
/// What DPDK's capture ports call themselves: 02, the letters `pcap`, and the number of the port.
const MAC: &str = "02-70-63-61-70-00";
/// How long a native run may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Native runs would fight for the machine's two cores, which each of them fills.
static ALONE: Mutex<()> = Mutex::new(());

type Frames = Vec<Vec<u8>>;

fn read(path: &Path) -> Frames {
    let mut reader = Reader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        frames.push(record.data.to_vec());
    }
    frames
}

/// The capture, and for each of its packets the port that it comes in at.
fn arrivals(both: bool) -> Vec<(u16, Vec<u8>)> {
    let port = |index: usize| u16::from(both && index % 3 == 2);
    let frames = read(&capture()).into_iter().enumerate();
    frames.map(|(index, frame)| (port(index), frame)).collect()
}

fn write(path: &Path, frames: impl Iterator<Item = Vec<u8>>) {
    let mut bytes = Vec::new();
    // The classic format, little endian, Ethernet.
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0xffff, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for frame in frames {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    std::fs::write(path, bytes).unwrap();
}

/// What leaves a program at ports 0 and 1 that is run by itself, on DPDK's own ports for captures. It is ended when
/// nothing has left it for a while.
fn native(folder: &Path, program: &Path, cores: &str, words: &str, both: bool) -> [Frames; 2] {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let arrivals = arrivals(both);
    let file = |what: &str, port: u16| folder.join(format!("{what}{port}.pcap"));
    let mut arguments: Vec<String> = format!(
        "-l {cores} --no-huge --no-shconf --no-pci --no-telemetry -m 512 --log-level=error"
    )
    .split(' ')
    .map(str::to_owned)
    .collect();
    for port in 0..2_u16 {
        let own = arrivals.iter().filter(|(p, _)| *p == port);
        write(&file("in", port), own.map(|(_, frame)| frame.clone()));
        let _ = std::fs::remove_file(file("out", port));
        arguments.push(format!(
            "--vdev=net_pcap{port},rx_pcap={},tx_pcap={}",
            file("in", port).display(),
            file("out", port).display()
        ));
    }
    arguments.push("--".into());
    arguments.extend(shell_words::split(words).unwrap());
    let mut child = Command::new(program)
        .args(&arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let size = |port| std::fs::metadata(file("out", port)).map_or(0, |m| m.len());
    let begin = Instant::now();
    let (mut last, mut since) = (0, Instant::now());
    // Files are written as the buffers of the C library fill: what is in them comes at the end.
    while begin.elapsed() < LIMIT && child.try_wait().unwrap().is_none() {
        let now = size(0) + size(1);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if last > 48 && since.elapsed() > Duration::from_secs(2) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(child.stdin.take());
    std::thread::sleep(Duration::from_millis(500));
    if child.try_wait().unwrap().is_none() {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    }
    let end = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(end.elapsed() < LIMIT, "{} does not end", program.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    [0, 1].map(|port| read(&file("out", port)))
}

/// The same of a program that is hosted.
fn hosted(folder: &Path, word: &str, both: bool) -> [Frames; 2] {
    let mut caught = Caught::start(folder, word).unwrap();
    let mut left = [Vec::new(), Vec::new()];
    let mut arrivals = arrivals(both);
    for burst in arrivals.chunks_mut(BURST) {
        // Buffers in which a packet may grow.
        for (_, frame) in &mut *burst {
            frame.reserve(64);
        }
        let given = |(port, frame): &mut (u16, Vec<u8>)| Packet {
            data: frame.as_mut_ptr(),
            time: 1,
            length: frame.len() as u32,
            wire: frame.len() as u32,
            room: frame.capacity() as u32,
            port: *port,
            fate: 0,
        };
        let mut packets: Vec<Packet> = burst.iter_mut().map(given).collect();
        // SAFETY: each packet lies in a buffer of its own, which is not touched during the call.
        assert!(unsafe { caught.guest.burst(&mut packets) }, "{word}");
        let leave = |left: &mut [Frames; 2], after: bool, caught: &mut Caught| {
            for sent in caught.guest.sent.iter().filter(|sent| sent.after == after) {
                left[usize::from(sent.port)].push(sent.bytes.clone());
            }
        };
        leave(&mut left, false, &mut caught);
        for packet in packets {
            let Some(left) = packet
                .fate
                .checked_sub(OUT)
                .and_then(|port| left.get_mut(usize::from(port)))
            else {
                continue;
            };
            // SAFETY: its buffer is still there, and has as much room as the packet was given.
            let bytes = unsafe { std::slice::from_raw_parts(packet.data, packet.length as usize) };
            left.push(bytes.to_vec());
        }
        leave(&mut left, true, &mut caught);
        caught.guest.sent.clear();
    }
    // What it has gathered it sends when nothing comes for a while.
    let begin = Instant::now();
    while caught.guest.holds() && begin.elapsed() < Duration::from_secs(1) {
        caught.guest.idle();
    }
    for sent in &caught.guest.sent {
        left[usize::from(sent.port)].push(sent.bytes.clone());
    }
    let (over, printed) = caught.finish();
    assert!(
        matches!(over, Over::Exit(0)),
        "{word}: {}\n{printed}",
        describe(&over)
    );
    left
}

fn same(what: &str, native: &[Frames; 2], hosted: &[Frames; 2]) {
    for (port, (native, hosted)) in native.iter().zip(hosted).enumerate() {
        assert_eq!(
            native.len(),
            hosted.len(),
            "{what}: packets that left at {port}"
        );
        let differs = native.iter().zip(hosted).position(|(n, h)| n != h);
        assert_eq!(differs, None, "{what}: port {port}");
    }
}

/// Compiles one of DPDK's examples, as Debian ships them, with a change of its main file.
fn example(folder: &Path, name: &str, change: impl Fn(String) -> String) -> Option<PathBuf> {
    let from = Path::new(EXAMPLES).join(name);
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "libdpdk"])
        .output();
    let flags = flags.ok().filter(|flags| flags.status.success());
    let (Some(flags), true) = (flags, from.is_dir()) else {
        println!("skipped: {name} of DPDK's examples cannot be built (scripts/setup.sh test)");
        return None;
    };
    let to = folder.join(name);
    std::fs::create_dir_all(&to).unwrap();
    let main = to.join("main.c");
    let text = std::fs::read_to_string(from.join("main.c")).unwrap();
    std::fs::write(&main, change(text)).unwrap();
    // The make file says which of the sources are compiled by themselves.
    let make = std::fs::read_to_string(from.join("Makefile")).unwrap();
    let sources = make
        .lines()
        .filter_map(|line| line.strip_prefix("SRCS-y"))
        .flat_map(str::split_whitespace)
        .filter(|word| word.ends_with(".c") && *word != "main.c");
    let objects = folder.join(format!("{name}.o"));
    let compiler = || {
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-w", "-DALLOW_EXPERIMENTAL_API", "-I"]);
        cc.arg(&from)
            .arg("-I")
            .arg(Path::new(EXAMPLES).join("common"));
        cc
    };
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let sources: Vec<PathBuf> = sources.map(|name| from.join(name)).collect();
    // All but the main file, which differs, are compiled once.
    if !sources.is_empty() && !objects.exists() {
        let done = compiler()
            .args(["-r", "-nostdlib", "-o"])
            .arg(&objects)
            .args(&sources)
            .args(
                flags
                    .split_whitespace()
                    .filter(|f| !f.starts_with("-l") && !f.starts_with("-Wl")),
            )
            .status()
            .unwrap();
        assert!(done.success());
    }
    let out = to.join("program");
    let status = compiler()
        .arg("-o")
        .arg(&out)
        .arg(&main)
        .args(objects.exists().then_some(&objects))
        .args(flags.split_whitespace())
        .status()
        .unwrap();
    assert!(status.success());
    Some(out)
}

/// Its first thread empties the ports and then waits for input; another forwards.
#[test]
fn testpmd_forwards_the_same() {
    if !its_turn("testpmd as a guest", 1, 3) {
        return;
    }
    if !installed("dpdk-testpmd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = Path::new("/usr/bin/dpdk-testpmd");
    for (mode, both) in [("io", true), ("mac", false), ("macswap", true)] {
        let words = format!("--forward-mode={mode} --total-num-mbufs=4096");
        let expected = native(
            dir.path(),
            program,
            "0-1",
            &format!("{words} --no-flush-rx"),
            both,
        );
        assert_eq!(expected[0].len() + expected[1].len(), arrivals(both).len());
        // Copies of packets are what a guest gets where it cannot write to the host's memory.
        for options in ["", ",isolate"] {
            let word = format!("guest,mac={MAC}{options}:dpdk-testpmd -l 0-1 -- {words}");
            same(&word, &expected, &hosted(dir.path(), &word, both));
        }
    }
}

/// Its threads take turns on the worker, which no snapshot knows of.
#[test]
fn a_program_of_dpdk_is_not_saved() {
    if !installed("dpdk-testpmd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let word = "guest:dpdk-testpmd -l 0-1 -- --total-num-mbufs=4096";
    let caught = Caught::start(dir.path(), word).unwrap();
    let mut bytes = Vec::new();
    let told = caught.guest.snapshot(&mut bytes).unwrap_err().to_string();
    assert!(told.contains("a program of DPDK"), "{told}");
    assert!(bytes.is_empty());
}

/// One thread polls both ports; or two do, one each, which the worker runs in turn.
#[test]
fn l2fwd_forwards_the_same() {
    if !its_turn("l2fwd as a guest", 2, 3) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = example(dir.path(), "l2fwd", |text| text) else {
        return;
    };
    let expected = native(dir.path(), &program, "0", "-p 3 -q 2 -T 0", true);
    assert_eq!(expected[0].len() + expected[1].len(), arrivals(true).len());
    for (cores, queues) in [("0", 2), ("0-1", 1)] {
        let word = format!(
            "guest,mac={MAC}:{} -l {cores} -- -p 3 -q {queues} -T 0",
            program.display()
        );
        same(&word, &expected, &hosted(dir.path(), &word, true));
    }
}

#[test]
fn l3fwd_forwards_the_same() {
    if !its_turn("l3fwd as a guest", 0, 3) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // DPDK's ports for captures check no checksums, which the example insists on: what runs natively does not.
    let without = |text: String| text.replace("RTE_ETH_RX_OFFLOAD_CHECKSUM", "0");
    let Some(built) = example(dir.path(), "l3fwd", without) else {
        return;
    };
    let plain = dir.path().join("plain");
    std::fs::rename(built, &plain).unwrap();
    let program = example(dir.path(), "l3fwd", |text| text).unwrap();
    std::fs::write(
        dir.path().join("v4.cfg"),
        "R192.0.2.0/24 1\nR198.51.100.0/24 0\nR0.0.0.0/1 0\nR128.0.0.0/1 1\n",
    )
    .unwrap();
    std::fs::write(
        dir.path().join("v6.cfg"),
        "R2001:0db8:0000:0000:0000:0000:0000:0000/32 1\nRfe80:0000:0000:0000:0000:0000:0000:0000/16 0\n",
    )
    .unwrap();
    let words = "-p 3 --config='(0,0,0),(1,0,0)' --parse-ptype -P --lookup=lpm --rule_ipv4=v4.cfg --rule_ipv6=v6.cfg";
    let expected = native(dir.path(), &plain, "0", words, false);
    assert!(expected[0].len() + expected[1].len() > 100);
    let word = format!("guest,mac={MAC}:{} -l 0 -- {words}", program.display());
    same("l3fwd", &expected, &hosted(dir.path(), &word, false));
}
