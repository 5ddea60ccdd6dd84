//! Drivers in C: compiled once a process, and fed by their standard input. `host.h` is the other side.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use millrace_emit::cache::key;
use millrace_object::Program;

use super::{Bench, Outcome, Packet};

/// What a driver reads.
#[derive(Default)]
pub struct Input(Vec<u8>);

impl Input {
    /// Begins with these words.
    pub fn of(words: &[u32]) -> Self {
        let mut input = Self::default();
        words.iter().for_each(|word| input.word(*word));
        input
    }

    pub fn word(&mut self, word: u32) {
        self.bytes(&word.to_le_bytes());
    }

    pub fn long(&mut self, long: u64) {
        self.bytes(&long.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// The initial values of objects; before each, where there is a `mark`, what that says of it.
    pub fn objects(&mut self, program: &Program, mark: Option<&dyn Fn(usize) -> bool>) {
        for (at, object) in program.objects.iter().enumerate() {
            let initial = object.initial.as_deref().unwrap_or_default();
            if let Some(mark) = mark {
                self.word(u32::from(mark(at)));
            }
            self.word(initial.len() as u32);
            self.bytes(initial);
        }
    }

    /// A packet without its program; `more` stands before its bytes.
    pub fn packet(&mut self, packet: &Packet, more: Option<u32>) {
        self.word(packet.port);
        self.long(packet.time);
        self.word(packet.bytes.len() as u32);
        more.into_iter().for_each(|more| self.word(more));
        self.bytes(&packet.bytes);
    }

    /// Feeds a driver, and gives what it writes. The error is how it ended, and what it or a sanitizer said.
    pub fn feed(self, command: &mut Command) -> Result<Vec<u8>, String> {
        let mut child = command
            .env("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
            .env("TSAN_OPTIONS", "halt_on_error=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&self.0));
        let output = child.wait_with_output().unwrap();
        let written = writer.join().unwrap();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}\n{said}", output.status));
        }
        written.unwrap();
        Ok(output.stdout)
    }
}

/// What a driver wrote, piece by piece.
pub struct Output<'a>(pub &'a [u8]);

impl<'a> Output<'a> {
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head
    }

    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    pub fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    /// What became of a packet.
    pub fn outcome(&mut self) -> Outcome {
        let (fate, out, length) = (self.word(), self.word(), self.word());
        let bytes = self.take(length as usize).to_vec();
        Outcome { fate, out, bytes }
    }
}

/// Flags of a driver without and with sanitizers.
pub fn flags(sanitize: bool) -> &'static [&'static str] {
    match sanitize {
        true => &["-O1", "-fsanitize=address,undefined"],
        false => &["-O1"],
    }
}

impl Bench {
    /// A driver, compiled at the first call for this source and these flags; the source is named from the folder of the
    /// tests.
    pub fn driver(&self, source: &str, flags: &[&str]) -> PathBuf {
        static MADE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
        let what = key(&[source.as_bytes(), flags.join(" ").as_bytes()]);
        let mut made = MADE.lock().unwrap();
        let driver = made
            .entry(what.clone())
            .or_insert_with(|| self.compile_driver(&what, source, flags));
        driver.clone()
    }

    /// The file is named by `what` it is: a process beside this one has another for another.
    fn compile_driver(&self, what: &str, source: &str, flags: &[&str]) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let driver = folder.join(format!("driver-{what}"));
        let made = driver.with_extension(std::process::id().to_string());
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests")
            .join(source);
        let fastpath = self.cache.headers().unwrap().join("fastpath");
        let mut command = Command::new(&self.toolchain.clang);
        command.args(["-Wall", "-Wextra", "-Werror", "-rdynamic"]);
        command.args(flags).arg("-I").arg(fastpath);
        command.arg("-o").arg(&made).arg(source).arg("-ldl");
        assert!(command.status().unwrap().success());
        std::fs::rename(made, &driver).unwrap();
        driver
    }
}
