//! What the tests of the command share.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use millrace_traffic::capture::{Reader, Writer};
use serde_json::Value;

/// A captured packet: stamp in ns, bytes.
pub type Packet = (u64, Vec<u8>);

/// The folder of a test's own function.
pub const GATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gate");

/// The command, with a cache that the tests share.
pub fn millrace() -> Command {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.env("MILLRACE_CACHE", cache).current_dir(root());
    command
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs it; it must end by itself, without a panic.
pub fn output(command: &mut Command) -> (Output, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code().is_some() && !text.contains("panicked"),
        "{command:?}:\n{text}"
    );
    (output, text)
}

/// Runs it with --json, and gives the document and the exit status.
pub fn json(command: &mut Command) -> (Value, i32) {
    let (output, text) = output(command.arg("--json"));
    let document = serde_json::from_slice(&output.stdout);
    let document = document.unwrap_or_else(|e| {
        panic!(
            "{command:?}: {e}\n{}\n{text}",
            String::from_utf8_lossy(&output.stdout)
        )
    });
    (document, output.status.code().unwrap())
}

/// Runs it; it must fail with this status, say what was wrong and what to do. Gives what it said.
pub fn refused(command: &mut Command, status: i32) -> String {
    let (output, text) = output(command);
    assert_eq!(output.status.code(), Some(status), "{command:?}:\n{text}");
    assert!(
        text.contains("error: ") && text.contains("help: "),
        "{command:?}:\n{text}"
    );
    text
}

/// Writes a capture.
pub fn capture(path: &Path, packets: &[Packet]) {
    let mut writer = Writer::create(path, &["a"]).unwrap();
    for (time, bytes) in packets {
        writer.write(*time, 0, bytes.len() as u32, bytes).unwrap();
    }
    writer.finish().unwrap();
}

/// Reads a capture: interface, stamp, bytes.
pub fn read(path: &Path) -> Vec<(u32, u64, Vec<u8>)> {
    let mut reader = Reader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        packets.push((record.interface, record.time_ns, record.data.to_vec()));
    }
    packets
}

/// One frame of each byte from 0 to 8, a quarter of a second apart.
pub fn each_byte() -> Vec<Packet> {
    (0..9)
        .map(|byte| {
            (
                1_000_000_000 + u64::from(byte) * 250_000_000,
                vec![byte, 0, 0],
            )
        })
        .collect()
}
