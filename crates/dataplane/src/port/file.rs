//! Capture files, pcap and pcapng, and `-`: standard input and output.

use std::io::{self, ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use millrace_traffic::capture::{Problem, Reader, Record, Writer, Written};

use super::{Input, InputOptions, Kind, Output, PortError};

/// Capture files.
pub const KIND: Kind = Kind {
    scheme: "",
    form: "FILE.pcap, FILE.pcapng or -",
    what: "a capture file, or standard input and output",
    input: Some(open),
    output: Some(create),
    live: None,
};

/// What a reader keeps: its window of 1 MiB.
pub const READER_BYTES: u64 = 1 << 20;
/// What a writer keeps: its buffer of two largest packets.
pub const WRITER_BYTES: u64 = 512 << 10;

struct File {
    reader: Reader,
    total: Option<u64>,
    stop: &'static AtomicBool,
}

fn open(word: &str, options: &InputOptions) -> Result<Box<dyn Input>, PortError> {
    let (reader, total) = if word == "-" {
        (Reader::new("standard input", Stdin(options.stop))?, None)
    } else {
        // A pipe or a device has no length worth showing.
        let metadata = std::fs::metadata(word)
            .ok()
            .filter(std::fs::Metadata::is_file);
        (Reader::open(word)?, metadata.map(|m| m.len()))
    };
    Ok(Box::new(File {
        reader,
        total,
        stop: options.stop,
    }))
}

impl Input for File {
    fn advance(&mut self) -> Result<bool, PortError> {
        match self.reader.advance() {
            Ok(more) => Ok(more),
            // Told to stop while it waited inside a record: the end, not damage.
            Err(e)
                if matches!(e.problem, Problem::Truncated { .. })
                    && self.total.is_none()
                    && self.stop.load(Ordering::Relaxed) =>
            {
                Ok(false)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn record(&self) -> Option<Record<'_>> {
        self.reader.record()
    }

    fn progress(&self) -> Option<(u64, u64)> {
        self.total.map(|total| (self.reader.position(), total))
    }

    fn bytes(&self) -> u64 {
        READER_BYTES
    }
}

/// Standard input that ends when the process is asked to stop, even while it waits.
struct Stdin(&'static AtomicBool);

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.load(Ordering::Relaxed) {
            return Ok(0);
        }
        match io::stdin().lock().read(buffer) {
            Err(e) if e.kind() == ErrorKind::Interrupted && self.0.load(Ordering::Relaxed) => Ok(0),
            other => other,
        }
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
