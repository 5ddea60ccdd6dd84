//! Support of the tests of guests: compiled programs, packets, captured output.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use millrace_guest::port::Packet;
use millrace_guest::{GuestError, Hosted, Over, Spec, Word, describe};
use millrace_traffic::capture::Reader;

/// Packets a burst.
pub const BURST: usize = 32;

pub fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../captures/talk.pcap")
        .canonicalize()
        .unwrap()
}

/// Compiles the test's program into a folder.
pub fn compile(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    compile_of("receiver", folder, name, flags)
}

/// The same with another of tests/programs.
pub fn compile_of(source: &str, folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{source}.c"));
    let out = folder.join(name);
    let preload = concat!(env!("CARGO_MANIFEST_DIR"), "/preload");
    let status = Command::new("cc")
        .args([
            "-std=gnu11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-fstack-protector-strong",
            "-I",
            preload,
        ])
        .args(flags)
        .arg("-o")
        .arg(&out)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success());
    out
}

/// Whether a program is there; says so when it is not.
pub fn installed(program: &str) -> bool {
    let there = Spec::parse(program).is_ok();
    if !there {
        println!("skipped: {program} is not installed (scripts/setup.sh test)");
    }
    there
}

/// Packets of a capture: bytes, time, length on the wire.
pub struct Packets(Vec<(Vec<u8>, u64, u32)>);

impl Packets {
    pub fn read() -> Self {
        let mut reader = Reader::open(capture()).unwrap();
        let mut packets = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            packets.push((record.data.to_vec(), record.time_ns, record.original_length));
        }
        Self(packets)
    }

    /// Packets of the test's own, of 60 to 315 bytes.
    pub fn made(count: usize) -> Self {
        let packet = |n: usize| {
            (
                vec![n as u8 | 1; 60 + n % 256],
                n as u64,
                60 + n as u32 % 256,
            )
        };
        Self((0..count).map(packet).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn sum(&self) -> u64 {
        self.0
            .iter()
            .flat_map(|(data, ..)| data)
            .map(|b| u64::from(*b))
            .sum()
    }

    /// Their bytes.
    pub fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(data, ..)| data.as_slice())
    }

    /// Plays them to guests in a row, a burst at a time; gives how many of the bursts each took, and how many
    /// packets the last let on.
    pub fn play(&mut self, guests: &mut [&mut Hosted]) -> (Vec<usize>, usize) {
        let all = 0..self.len();
        self.part(all, guests)
    }

    /// The same with some of them.
    pub fn part(
        &mut self,
        which: std::ops::Range<usize>,
        guests: &mut [&mut Hosted],
    ) -> (Vec<usize>, usize) {
        let mut took = vec![0; guests.len()];
        let mut on = 0;
        each(&mut self.0[which], |packets| {
            for (guest, took) in guests.iter_mut().zip(&mut took) {
                // SAFETY: each packet lies in a buffer of its own, which is not touched during the call.
                *took += usize::from(unsafe { guest.burst(packets) });
                packets.retain(|p| p.fate == 0);
            }
            on += packets.len();
        });
        (took, on)
    }

    /// Each burst. Each packet lies in a buffer of its own, which is not touched during the call.
    pub fn bursts(&mut self, mut burst: impl FnMut(&mut Vec<Packet>)) {
        each(&mut self.0, &mut burst);
    }
}

fn each(packets: &mut [(Vec<u8>, u64, u32)], mut play: impl FnMut(&mut Vec<Packet>)) {
    for burst in packets.chunks_mut(BURST) {
        let given = |(data, time, wire): &mut (Vec<u8>, u64, u32)| Packet::of(data, *time, *wire);
        play(&mut burst.iter_mut().map(given).collect());
    }
}

/// A guest whose output is caught.
pub struct Caught {
    pub guest: Hosted,
    output: File,
}

impl Caught {
    /// Starts it in a folder.
    pub fn start(folder: &Path, word: &str) -> Result<Self, GuestError> {
        Self::with(folder, word, |_| {})
    }

    pub fn with(
        folder: &Path,
        word: &str,
        change: impl FnOnce(&mut Spec),
    ) -> Result<Self, GuestError> {
        let output = tempfile::tempfile().unwrap();
        let mut spec = Word::of(word).unwrap().spec()?;
        spec.directory = folder.canonicalize().unwrap();
        spec.output = output.as_raw_fd();
        change(&mut spec);
        let guest = Hosted::start(spec)?;
        Ok(Self { guest, output })
    }

    /// Ends it; gives why it ended and what it has printed.
    pub fn finish(mut self) -> (Over, String) {
        self.guest.finish();
        let over = self.guest.over().cloned().unwrap();
        (over, self.printed())
    }

    pub fn printed(&mut self) -> String {
        use std::io::Seek;
        self.output.rewind().unwrap();
        let mut bytes = Vec::new();
        self.output.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What a program prints by itself.
pub fn native(folder: &Path, command: &str) -> String {
    let spec = Spec::parse(command).unwrap();
    let output = Command::new(&spec.program)
        .args(&spec.arguments[1..])
        .current_dir(folder)
        .env(
            "TZ",
            std::env::var("TZ").unwrap_or(":/etc/localtime".into()),
        )
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every fault there is, each in a guest between two others: it ends its guest in the second burst; packets go on, and
/// the guests before and behind it see all.
pub fn faults(folder: &Path, program: &Path, packets: &mut Packets) {
    let expected = format!("{} packets, sum {}\n", packets.len(), packets.sum());
    let faults = [
        ("null", "a null pointer"),
        ("wild", "not in its slot"),
        ("jump", "segmentation fault"),
        ("divide", "division by zero"),
        ("stack", "the stack is full"),
        ("abort", "aborted"),
        ("illegal", "illegal instruction"),
        ("trap", "breakpoint"),
        ("double-free", "aborted"),
        ("exit", "status 3"),
        ("loop", "too long"),
        ("blocked", "too long"),
        ("signal", "signal 9"),
        ("memory", "status 4"),
        ("masked", "too long"),
        ("hog", "too long"),
        ("careless", "a null pointer"),
        ("smash", "aborted"),
        ("garbage", "no pointer"),
    ];
    for (how, told) in faults {
        let word = |options: &str, how: &str| format!("guest{options}:{} {how}", program.display());
        let mut before = Caught::start(folder, &word("", "count")).unwrap();
        // Patience with those that fail by themselves: an emulated machine is slow.
        let limit = if told == "too long" { "0.3" } else { "20" };
        let options = format!(",limit={limit},memory=32");
        let mut faulty = Caught::start(folder, &word(&options, how)).unwrap();
        let mut behind = Caught::start(folder, &word("", "thread")).unwrap();
        let (took, on) =
            packets.play(&mut [&mut before.guest, &mut faulty.guest, &mut behind.guest]);
        assert_eq!(on, packets.len(), "{how}");
        assert_eq!(took[1], 1, "{how}: one burst before that with packet 40");
        let (over, _) = faulty.finish();
        let said = describe(&over);
        assert!(said.contains(told), "{how}: {said}");
        if let Over::Fault(fault) = &over
            && how != "jump"
        {
            assert!(fault.at.file.is_some(), "{how}: {said}");
        }
        if how == "null" {
            let Over::Fault(fault) = &over else {
                panic!("{said}")
            };
            let callers: Vec<String> = fault.callers.iter().map(ToString::to_string).collect();
            assert!(fault.at.to_string().contains("/receiver+0x"), "{said}");
            assert!(
                callers.iter().any(|c| c.contains("libc.so.6+0x")),
                "{callers:?}"
            );
        }
        for caught in [before, behind] {
            assert_eq!(caught.finish().1, expected, "{how}");
        }
    }
}

/// Page faults of this thread so far that needed no reading of a file.
pub fn page_faults() -> u64 {
    // SAFETY: zeroes are a valid rusage, which the call writes to.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        usage.ru_minflt as u64
    }
}
