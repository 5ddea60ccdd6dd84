//! What the tests of guests share: programs compiled, packets read, output caught.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use millrace_guest::port::Packet;
use millrace_guest::{GuestError, Hosted, Over, Spec, Word};
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
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/receiver.c");
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

    /// Plays them to guests in a row, a burst at a time; gives how many of the bursts each took, and how many
    /// packets the last let on.
    pub fn play(&mut self, guests: &mut [&mut Hosted]) -> (Vec<usize>, usize) {
        let mut took = vec![0; guests.len()];
        let mut on = 0;
        for burst in self.0.chunks_mut(BURST) {
            let given = |(data, time, wire): &mut (Vec<u8>, u64, u32)| Packet {
                data: data.as_mut_ptr(),
                time: *time,
                length: data.len() as u32,
                wire: *wire,
                room: data.len() as u32,
                port: 0,
                fate: 0,
            };
            let mut packets: Vec<Packet> = burst.iter_mut().map(given).collect();
            for (guest, took) in guests.iter_mut().zip(&mut took) {
                // SAFETY: each packet lies in a buffer of its own, which is not touched during the call.
                *took += usize::from(unsafe { guest.burst(&mut packets) });
                packets.retain(|p| p.fate == 0);
            }
            on += packets.len();
        }
        (took, on)
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
