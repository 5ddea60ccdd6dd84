//! A pseudo terminal, and what tests type at it.
#![allow(dead_code)]

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::live::LONG;

/// A program asks with this where the cursor is.
const WHERE: &str = "\x1b[6n";

/// A terminal of the test's own: what was written to it, and the other end to type at.
pub struct Terminal {
    typed: std::fs::File,
    seen: Arc<Mutex<String>>,
    theirs: std::fs::File,
}

impl Terminal {
    /// One of 40 lines of 120 characters.
    pub fn open() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&ours).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(&name, flags, Mode::empty()).unwrap();
        let size = Winsize {
            ws_row: 40,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&theirs, size).unwrap();
        let mut reader = std::fs::File::from(ours.try_clone().unwrap());
        let seen = Arc::new(Mutex::new(String::new()));
        let to = seen.clone();
        let answers = ours.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                let text = String::from_utf8_lossy(bytes.get(..n).unwrap_or(&[])).into_owned();
                // Who asks where the cursor is (DSR, ECMA-48) waits for the answer.
                for _ in text.matches(WHERE) {
                    rustix::io::write(&answers, b"\x1b[1;1R").unwrap();
                }
                to.lock().unwrap().push_str(&text);
            }
        });
        Self {
            typed: ours.into(),
            seen,
            theirs: theirs.into(),
        }
    }

    /// Has a command run at it.
    pub fn attach(&self, command: &mut Command) {
        let end = || Stdio::from(self.theirs.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
    }

    /// Types.
    pub fn press(&self, keys: &str) {
        rustix::io::write(&self.typed, keys.as_bytes()).unwrap();
    }

    /// Waits until this is on the terminal, written after the last wait.
    pub fn until(&self, part: &str) {
        let began = Instant::now();
        loop {
            let mut seen = self.seen.lock().unwrap();
            if let Some(at) = seen.find(part) {
                seen.drain(..at + part.len());
                return;
            }
            assert!(began.elapsed() < LONG, "no {part:?} in {seen:?}");
            drop(seen);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// How it is set.
    pub fn modes(&self) -> String {
        format!("{:?}", rustix::termios::tcgetattr(&self.theirs).unwrap())
    }
}
