//! What guests print, line by line with the element's name in front of each line.
//!
//! A guest writes into a pipe, and a thread takes lines from it. Output that is no text (it begins with a NUL among its
//! first bytes, as the captures do that `tcpdump -w -` writes) passes as it is.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use millrace_guest::Spec;
use millrace_guest::command::Pipes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use crate::failure::Failure;
use crate::log;

/// A line that is longer is cut in several, bytes.
const LONGEST: usize = 8 << 10;
/// How often a thread looks whether the run is over, when nothing is printed.
const LOOK: Duration = Duration::from_millis(100);

/// The threads that take what guests print; dropping it prints what is left.
#[derive(Default)]
pub struct Printed {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Where lines go.
#[derive(Clone, Copy)]
enum Stream {
    Output,
    Errors,
}

impl Printed {
    /// Gives a guest pipes in the place of the run's standard output and standard error.
    ///
    /// # Errors
    /// Descriptors or threads are short.
    pub fn of(&mut self, spec: &mut Spec, element: &str) -> Result<(), Failure> {
        let output = match spec.output {
            2 => Stream::Errors,
            _ => Stream::Output,
        };
        // Those of guests that have gone have ended.
        self.threads.retain(|thread| !thread.is_finished());
        spec.pipes = Some(Pipes {
            output: Arc::new(self.pipe(element, output, "stdout")?),
            errors: Arc::new(self.pipe(element, Stream::Errors, "stderr")?),
        });
        Ok(())
    }

    fn pipe(
        &mut self,
        element: &str,
        to: Stream,
        stream: &'static str,
    ) -> Result<OwnedFd, Failure> {
        let failed = |e: std::io::Error| {
            Failure::wrong(format!("{element}: no pipe for its output: {e}"))
                .help("raise the limit of open files: `ulimit -n`")
        };
        let (read, write) = ends(to).map_err(failed)?;
        rustix::io::ioctl_fionbio(&read, true).map_err(|e| failed(e.into()))?;
        let (over, name) = (self.over.clone(), element.to_owned());
        let thread = std::thread::Builder::new().name("printed".into());
        let take = move || take(File::from(read), &over, &mut Lines::new(&name, to, stream));
        self.threads.push(thread.spawn(take).map_err(failed)?);
        Ok(write)
    }
}

/// The end to read from and the end to write to: a terminal where the run's own stream is one, since C libraries write a
/// line at once to terminals only; else a pipe.
fn ends(to: Stream) -> std::io::Result<(OwnedFd, OwnedFd)> {
    let size = match to {
        Stream::Output => tcgetwinsize(std::io::stdout()),
        Stream::Errors => tcgetwinsize(std::io::stderr()),
    };
    let Ok(size) = size else {
        return Ok(pipe_with(PipeFlags::CLOEXEC)?);
    };
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let terminal = ioctl_tiocgptpeer(&master, flags)?;
    let mut settings = tcgetattr(&terminal)?;
    // What is written comes as it is, without carriage returns.
    settings.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &settings)?;
    tcsetwinsize(&terminal, size)?;
    Ok((master, terminal))
}

impl Drop for Printed {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Takes what comes until the run is over and nothing is left, or nobody can write any more.
fn take(mut from: File, over: &AtomicBool, lines: &mut Lines) {
    let mut part = [0; LONGEST];
    loop {
        let ending = over.load(Ordering::Relaxed);
        match from.read(&mut part) {
            Ok(0) => break,
            Ok(count) => lines.add(part.get(..count).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock && !ending => {
                let wait = Timespec::try_from(LOOK).ok();
                let _ = poll(&mut [PollFd::new(&from, PollFlags::IN)], wait.as_ref());
            }
            Err(_) => break,
        }
    }
    lines.rest();
}

/// Bytes that have come and are no whole line yet.
struct Lines {
    element: String,
    to: Stream,
    stream: &'static str,
    waiting: Vec<u8>,
    /// whether it is text; not known before something has come
    text: Option<bool>,
}

impl Lines {
    fn new(element: &str, to: Stream, stream: &'static str) -> Self {
        Self {
            element: element.to_owned(),
            to,
            stream,
            waiting: Vec::new(),
            text: None,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if !*self.text.get_or_insert_with(|| !bytes.contains(&0)) {
            self.write(bytes);
            return;
        }
        self.waiting.extend_from_slice(bytes);
        while let Some(end) = end(&self.waiting) {
            let line: Vec<u8> = self.waiting.drain(..end).collect();
            self.line(&line);
        }
    }

    fn rest(&mut self) {
        let line = std::mem::take(&mut self.waiting);
        if !line.is_empty() {
            self.line(&line);
        }
    }

    fn line(&self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let text = String::from_utf8_lossy(line);
        if let Some(document) = log::printed(&self.element, self.stream, &text) {
            document.say();
            return;
        }
        self.write(format!("{}: {text}\n", self.element).as_bytes());
    }

    /// A reader that has gone away is no error.
    fn write(&self, bytes: &[u8]) {
        let _ = match self.to {
            Stream::Output => std::io::stdout().lock().write_all(bytes),
            Stream::Errors => std::io::stderr().lock().write_all(bytes),
        };
        if matches!(self.to, Stream::Output) {
            let _ = std::io::stdout().lock().flush();
        }
    }
}

/// Where the first line ends, if it does.
fn end(bytes: &[u8]) -> Option<usize> {
    match bytes.iter().position(|b| *b == b'\n') {
        Some(at) if at < LONGEST => Some(at + 1),
        _ => (bytes.len() >= LONGEST).then_some(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_they_end_or_are_too_long() {
        assert_eq!(end(b"ab\nc"), Some(3));
        assert_eq!(end(b"abc"), None);
        assert_eq!(end(&[b'x'; LONGEST + 5]), Some(LONGEST));
        let mut lines = Lines::new("tap", Stream::Errors, "stderr");
        lines.add(b"");
        assert_eq!(lines.text, Some(true));
        lines.add(b"half a li");
        assert_eq!(lines.waiting, b"half a li");
        lines.add(b"ne\nnext");
        assert_eq!(lines.waiting, b"next");
        let mut binary = Lines::new("tap", Stream::Errors, "stderr");
        binary.text = Some(false);
        assert!(binary.waiting.is_empty());
    }
}
