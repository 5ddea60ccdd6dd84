//! Capture files, pcap and pcapng, and `-`: standard input and output.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millrace_traffic::capture::{Error as CaptureError, Problem, Reader, Record, Writer, Written};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Input, InputOptions, Kind, Output, PortError};

/// Capture files.
pub const KIND: Kind = Kind {
    scheme: "",
    form: "FILE.pcap, FILE.pcapng or -",
    what: "a capture file, or standard input and output",
    input: Some(open),
    output: Some(create),
    live: None,
    spelled: |_| Ok(()),
};

/// What a reader keeps: its window of 1 MiB.
pub const READER_BYTES: u64 = 1 << 20;
/// What a writer keeps: its buffer of two largest packets.
pub const WRITER_BYTES: u64 = 512 << 10;

struct File {
    reader: Reader,
    total: Option<u64>,
    /// of a pipe or a device
    pipe: Option<Arc<Pipe>>,
    /// a step that [`Input::ready`] has taken
    ahead: Option<Result<bool, CaptureError>>,
}

fn open(word: &str, options: &InputOptions) -> Result<Box<dyn Input>, PortError> {
    let unreadable = |error| CaptureError {
        capture: word.to_owned(),
        offset: 0,
        packets: 0,
        problem: Problem::Open(error),
    };
    let metadata = std::fs::metadata(word).ok().filter(|_| word != "-");
    let regular = metadata.as_ref().filter(|m| m.is_file() || m.is_dir());
    if let Some(metadata) = regular {
        return Ok(Box::new(File {
            reader: Reader::open(word)?,
            total: Some(metadata.len()),
            pipe: None,
            ahead: None,
        }));
    }
    let (name, file) = if word == "-" {
        ("standard input", None)
    } else {
        (word, Some(fs::File::open(word).map_err(unreadable)?))
    };
    let pipe = Arc::new(Pipe {
        file,
        stop: options.stop,
        drained: AtomicBool::new(false),
    });
    Ok(Box::new(File {
        reader: Reader::later(name, Tap(pipe.clone())),
        total: None,
        pipe: Some(pipe),
        ahead: None,
    }))
}

impl File {
    /// A step, which does not wait where the input is a pipe: [`waits`] is its error then.
    fn step(&mut self) -> Result<bool, CaptureError> {
        match self.reader.advance() {
            // Told to stop inside a record: the end, not damage.
            Err(e)
                if matches!(
                    e.problem,
                    Problem::Truncated { .. } | Problem::Empty | Problem::NotACapture
                ) && self.pipe.as_ref().is_some_and(|p| p.ended()) =>
            {
                Ok(false)
            }
            other => other,
        }
    }
}

/// Whether a step found nothing yet, rather than something wrong.
fn waits(step: &Result<bool, CaptureError>) -> bool {
    matches!(step, Err(CaptureError { problem: Problem::Read(e), .. }) if e.kind() == ErrorKind::WouldBlock)
}

impl Input for File {
    fn advance(&mut self) -> Result<bool, PortError> {
        while !self.ready(PATIENCE) {}
        let step = self.ahead.take();
        Ok(step.unwrap_or_else(|| self.step())?)
    }

    fn record(&self) -> Option<Record<'_>> {
        self.reader.record()
    }

    fn live(&self) -> bool {
        self.pipe.is_some()
    }

    fn ready(&mut self, patience: Duration) -> bool {
        let Some(pipe) = self.pipe.clone() else {
            return true;
        };
        if self.ahead.is_none() {
            let mut step = self.step();
            if waits(&step) && pipe.readable(patience) {
                step = self.step();
            }
            self.ahead = Some(step).filter(|step| !waits(step));
        }
        self.ahead.is_some()
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.pipe.as_ref()?.fd().as_raw_fd())
    }

    fn drain(&mut self) -> bool {
        if let Some(pipe) = &self.pipe {
            pipe.drained.store(true, Ordering::Relaxed);
        }
        self.pipe.is_some()
    }

    fn progress(&self) -> Option<(u64, u64)> {
        self.total.map(|total| (self.reader.position(), total))
    }

    fn bytes(&self) -> u64 {
        READER_BYTES
    }
}

/// How long a step waits before it looks whether it should still wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// A pipe or a device: packets come when their sender sends them. It ends when the process is asked to
/// stop, even while it waits.
struct Pipe {
    /// none: standard input
    file: Option<fs::File>,
    stop: &'static AtomicBool,
    /// only what is in the window is still to be given
    drained: AtomicBool,
}

impl Pipe {
    fn fd(&self) -> BorrowedFd<'_> {
        match &self.file {
            Some(file) => file.as_fd(),
            None => rustix::stdio::stdin(),
        }
    }

    /// Told to end, by a signal or a request.
    fn ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.drained.load(Ordering::Relaxed)
    }

    /// Whether a read would not wait; it may end at once, or give an error.
    fn readable(&self, patience: Duration) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)];
        let timeout = Timespec::try_from(patience).ok();
        // A signal counts as nothing to read: the caller looks whether it should end.
        self.ended() || matches!(poll(&mut fds, timeout.as_ref()), Ok(n) if n > 0)
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.ended() {
                return Ok(0);
            }
            if !self.readable(Duration::ZERO) {
                return Err(ErrorKind::WouldBlock.into());
            }
            match rustix::io::read(self.fd(), &mut *buffer) {
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                other => return Ok(other?),
            }
        }
    }
}

/// The reader's end of a pipe.
struct Tap(Arc<Pipe>);

impl Read for Tap {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

struct Capture(Writer);

fn create(word: &str, ports: &[&str]) -> Result<Box<dyn Output>, PortError> {
    Ok(Box::new(Capture(Writer::create(word, ports)?)))
}

impl Output for Capture {
    fn write(&mut self, port: u32, stamp: u64, wire: u32, frame: &[u8]) -> Result<(), PortError> {
        Ok(self.0.write(stamp, port, wire, frame)?)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(self.0.flush()?)
    }

    fn finish(self: Box<Self>) -> Result<Written, PortError> {
        Ok(self.0.finish()?)
    }

    fn written(&self) -> Written {
        self.0.written()
    }

    fn bytes(&self) -> u64 {
        WRITER_BYTES
    }
}
