//! What the tests of the command share.
#![allow(dead_code)]

pub mod live;
pub mod openmetrics;
pub mod stream;
pub mod terminal;
pub mod typed;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use millrace_traffic::capture::{Reader, Writer};
use serde_json::Value;

/// A captured packet: stamp in ns, bytes.
pub type Packet = (u64, Vec<u8>);

/// The folder of a test's own function.
pub const GATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gate");

/// The command, with a cache that the tests share and modules that are not optimised, which takes a third of the time.
pub fn millrace() -> Command {
    let mut command = optimised();
    command.env("MILLRACE_UNOPTIMISED", "1");
    command
}

/// The same with modules as users have them: for tests of what several threads do at once.
pub fn optimised() -> Command {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command
        .env("MILLRACE_CACHE", cache)
        .env("XDG_RUNTIME_DIR", runtime())
        .current_dir(root());
    command
}

/// Where the tests' runs have their sockets: not where services have theirs, which every command looks into, so that
/// a test that counts runs would find those of the tests beside it. Its path is short, as those of sockets must be.
fn runtime() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("millrace-tests-{user}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The words of a command line, none of which has a space.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The LAN's prefixes in captures/talk.pcap.
pub const SPLIT: &str = "lan=10.0.0.0/24,fd00::/8";

/// A verb that runs a function over captures/talk.pcap.
pub fn over(verb: &str, nf: &str, words: &[&str]) -> Command {
    let mut command = millrace();
    command
        .args([verb, nf, "--in", "captures/talk.pcap", "--split", SPLIT])
        .args(words);
    command
}

/// The one of this name in a list of a document.
pub fn named<'a>(all: &'a Value, name: &str) -> &'a Value {
    let mut all = all.as_array().unwrap().iter();
    all.find(|one| one["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

/// A steering under whose key, of a period of 16 bits, both directions of a flow have one hash (Woo and Park, 2012).
pub fn symmetric() -> String {
    format!("key={}", "6d5a".repeat(20))
}

/// A compiler that plants faults in modules: clang, with a macro of fastpath defined otherwise.
pub struct Faulty {
    clang: PathBuf,
    path: String,
    dir: tempfile::TempDir,
}

impl Faulty {
    const NAME: &str = "clang-19";

    /// None, and a line that says so, where there is no compiler into whose place another one could be put.
    pub fn new() -> Option<Self> {
        let path = std::env::var("PATH").unwrap();
        let mut places = path.split(':').map(|at| Path::new(at).join(Self::NAME));
        let Some(clang) = places.find(|file| file.is_file()) else {
            eprintln!(
                "skipped: no {}, into whose place one with a fault could be put",
                Self::NAME
            );
            return None;
        };
        Some(Self {
            clang,
            path,
            dir: tempfile::tempdir().unwrap(),
        })
    }

    /// Runs a verb that compares, on modules in which `macro_name(n)` is true of this fault alone: it has to find a difference.
    pub fn is_found(&self, command: &mut Command, macro_name: &str, fault: &str) {
        let options = format!("'-D{macro_name}(n)=((n)=={fault})'");
        self.compiles(command, fault, &options);
        let (found, status) = json(command);
        assert_eq!(
            (status, &found["equal"]),
            (1, &false.into()),
            "{fault}: {found}"
        );
    }

    /// Has the modules of a command compiled with more options, as a shell has them, in a folder of that name.
    pub fn compiles(&self, command: &mut Command, name: &str, options: &str) {
        use std::os::unix::fs::PermissionsExt;

        let folder = self.dir.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let script = format!(
            "#!/bin/sh\nexec {} {options} \"$@\"\n",
            self.clang.display()
        );
        let wrapper = folder.join(Self::NAME);
        std::fs::write(&wrapper, script).unwrap();
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
        command
            .env("PATH", format!("{}:{}", folder.display(), self.path))
            .env("MILLRACE_CACHE", folder.join("cache"));
    }
}

/// Between two looks at what others do: a command for each look, one after the other, would take the processor that they need.
pub fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(20));
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

/// Runs it with --json; it must succeed. Gives the document.
pub fn success(command: &mut Command) -> Value {
    let (document, status) = json(command);
    assert_eq!(status, 0, "{command:?}: {document:#}");
    document
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

/// The line above the part of a document that a test generates.
pub const GENERATED: &str = "<!-- generated below -->\n";

/// Holds the generated part of a document of docs/ against what it must be, line by line: of each line what
/// `steady` gives must be equal, and there are as many. MILLRACE_BLESS=1 writes it instead.
pub fn generated(document: &str, expected: &str, steady: fn(&str) -> String) {
    let path = root().join("docs").join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let (words, shown) = text.split_at(text.find(GENERATED).unwrap());
    if std::env::var_os("MILLRACE_BLESS").is_some() {
        std::fs::write(&path, format!("{words}{expected}")).unwrap();
        return;
    }
    for (shown, expected) in shown.split('\n').zip(expected.split('\n')) {
        assert_eq!(steady(shown), steady(expected), "MILLRACE_BLESS=1 mends it");
    }
    let lines = |text: &str| text.split('\n').count();
    assert_eq!(lines(shown), lines(expected), "MILLRACE_BLESS=1 mends it");
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

/// A packet of UDP over IPv4, with a right header checksum (RFC 791).
pub fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46];
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(from.0.into_iter().chain(to.0));
    let words = frame[14..].chunks(2);
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend(from.1.to_be_bytes().into_iter().chain(to.1.to_be_bytes()));
    frame.extend([0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}
