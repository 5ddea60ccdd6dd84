//! A running function, and what tests ask it over its socket.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{millrace, root};

/// The most that anything in a test may take: far more than it does.
pub const LONG: Duration = Duration::from_secs(60);

/// A process that goes with the test.
pub struct Live {
    pub child: Child,
    pub socket: PathBuf,
}

impl Live {
    /// Runs tests/programs/blocklist.c with these further words, and waits until its socket is there.
    pub fn start(folder: &Path, words: &[&str]) -> Self {
        let function = root().join("tests/programs/blocklist.c");
        Self::of(folder, &[function.to_str().unwrap()], words)
    }

    /// Runs these elements.
    pub fn of(folder: &Path, elements: &[&str], words: &[&str]) -> Self {
        Self::by(millrace(), folder, elements, words)
    }

    /// The same by a command with an environment of its own.
    pub fn by(mut command: Command, folder: &Path, elements: &[&str], words: &[&str]) -> Self {
        let socket = folder.join("control.sock");
        command.arg("run").args(elements);
        command
            .arg("--json")
            .arg("--control")
            .arg(&socket)
            .args(words);
        let errors = std::fs::File::create(folder.join("stderr")).unwrap();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut live = Self {
            child: command.spawn().unwrap(),
            socket,
        };
        let began = Instant::now();
        while UnixStream::connect(&live.socket).is_err() {
            let ended = live.child.try_wait().unwrap();
            let said = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
            assert!(
                ended.is_none() && began.elapsed() < LONG,
                "no socket: {said}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        live
    }

    /// Loops packets from memory until it is told to stop, or for a minute.
    pub fn looping(folder: &Path, words: &[&str]) -> Self {
        let capture = folder.join("loop.pcap");
        crate::common::capture(
            &capture,
            &(0..64)
                .map(|i| (1000 + i, from([10, 0, 0, 1])))
                .collect::<Vec<_>>(),
        );
        let input = format!("mem:{}", capture.display());
        let more = ["--in", &input, "--out", "null:", "--seconds", "60"];
        let live = Self::start(folder, &[&more[..], words].concat());
        live.until(|stats| stats["read"].as_u64() > Some(0));
        live
    }

    /// Has a packet now and then until it ends, or for a minute: for tests that wait, and look at nothing that many packets do.
    pub fn seldom(folder: &Path) -> Self {
        let words = ["--in", "-", "--out", "null:", "--seconds", "60"];
        let mut live = Self::start(folder, &words);
        let mut input = live.child.stdin.take().unwrap();
        std::thread::spawn(move || {
            let packet = record(1000, &from([10, 0, 0, 1]));
            input.write_all(&header()).unwrap();
            while input.write_all(&packet).is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        live.until(|stats| stats["read"].as_u64() > Some(0));
        live
    }

    /// `millrace map` or `ctl` with these words.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = millrace();
        command.args(words).arg("--control").arg(&self.socket);
        command
    }

    /// The answer's document, for a command that must succeed.
    pub fn ask(&self, words: &[&str]) -> Value {
        let (document, status) = crate::common::json(&mut self.command(words));
        assert_eq!(status, 0, "{words:?}: {document}");
        document
    }

    /// The account of the only worker.
    pub fn stats(&self) -> Value {
        self.ask(&["ctl", "stats"])["accounts"][0].take()
    }

    /// Waits until the account is so.
    pub fn until(&self, enough: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let stats = self.stats();
            if enough(&stats) {
                return stats;
            }
            assert!(began.elapsed() < LONG, "{stats}");
            crate::common::pause();
        }
    }

    /// Its document, once it has ended by itself.
    pub fn end(mut self) -> (Value, i32) {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        let status = self.child.wait().unwrap().code().unwrap();
        (serde_json::from_str(&text).unwrap(), status)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that speaks the protocol, or something else.
pub struct Raw(BufReader<UnixStream>);

impl Raw {
    pub fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// The next answer; none when the connection is closed.
    pub fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(n) if n > 0 => Some(serde_json::from_str(&line).unwrap()),
            _ => None,
        }
    }

    pub fn ask(&mut self, mut request: Value) -> Value {
        request["v"] = json!(1);
        self.send(format!("{request}\n").as_bytes()).unwrap();
        self.receive().unwrap()
    }
}

/// A packet of 60 bytes: Ethernet and IPv4 from this source.
pub fn from(source: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
    packet[26..30].copy_from_slice(&source);
    packet
}

/// The same with a header that is right: length, time to live, a protocol without ports (RFC 3692), checksum (RFC 791).
pub fn whole(source: [u8; 4]) -> Vec<u8> {
    let mut packet = from(source);
    packet[17] = 46;
    packet[22..24].copy_from_slice(&[64, 253]);
    let words = packet[14..34].chunks(2);
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[24..26].copy_from_slice(&folded.to_be_bytes());
    packet
}

/// What a pcap stream begins with, and its records: as bytes, for a pipe.
pub fn header() -> Vec<u8> {
    let words: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65535, 1];
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

pub fn record(ns: u32, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let words = [1, ns, length, length];
    let mut bytes: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
    bytes.extend_from_slice(packet);
    bytes
}
