//! Writing captures, so that what is written is always whole records.
//!
//! The same packets give the same bytes: nothing of the machine, the moment or the run is in the file.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use super::{ETHERNET, MAX_PACKET};

/// Bytes gathered before they are handed to the output; at least one largest record.
const BUFFER: usize = 2 * MAX_PACKET;

const NS_PER_S: u64 = 1_000_000_000;

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap with nanosecond stamps: every tool reads it; it does not keep ports apart.
    Pcap,
    /// pcapng with nanosecond stamps and an interface a port.
    Pcapng,
}

impl Format {
    /// The format for a file name: `.pcapng` and `.ntar` are pcapng, all else pcap.
    pub fn of(path: impl AsRef<Path>) -> Self {
        match path
            .as_ref()
            .extension()
            .and_then(|extension| extension.to_str())
        {
            Some("pcapng" | "ntar") => Self::Pcapng,
            _ => Self::Pcap,
        }
    }
}

/// What has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Written {
    /// Packets that are whole in the output.
    pub packets: u64,
    /// Bytes up to the end of the last of them, the header included.
    pub bytes: u64,
}

/// An output could not be written further.
#[derive(Debug, thiserror::Error)]
#[error(
    "{output}: {problem}; {} packets ({} bytes) before it are intact{}",
    written.packets,
    written.bytes,
    if *cut { ", followed by a part of the next one" } else { "" }
)]
pub struct WriteError {
    /// The output, as it was named on creation.
    pub output: String,
    /// What is intact.
    pub written: Written,
    /// Whether a part of a further record stands after what is intact: an output that cannot be
    /// shortened, such as a pipe.
    pub cut: bool,
    /// What is wrong.
    pub problem: WriteProblem,
}

/// What can be wrong with writing.
#[derive(Debug, thiserror::Error)]
pub enum WriteProblem {
    /// The file cannot be created.
    #[error("cannot be created: {0}")]
    Create(#[source] io::Error),
    /// The output does not take more: a full disk, a closed pipe.
    #[error("cannot be written: {0}")]
    Write(#[source] io::Error),
    /// A packet longer than [`MAX_PACKET`].
    #[error("a packet of {0} bytes; a capture holds at most {MAX_PACKET}")]
    TooLarge(usize),
    /// A stamp that pcap cannot express.
    #[error("time {0} ns is after 2106, which pcap cannot express; write a .pcapng instead")]
    Time(u64),
    /// A port that was not named on creation.
    #[error("port {0} is not one of the output's ports")]
    Port(u32),
    /// An earlier error ended this output.
    #[error("was ended by an earlier error")]
    Ended,
}

enum Output {
    File(File),
    Stream(Box<dyn Write + Send>),
}

impl Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    /// Shortens the output to its first `length` bytes, if it is something that can be shortened.
    fn shorten(&mut self, length: u64) -> bool {
        match self {
            Self::File(file) => {
                file.metadata().is_ok_and(|metadata| metadata.is_file())
                    && file.set_len(length).is_ok()
            }
            Self::Stream(_) => false,
        }
    }
}

/// A capture being written.
///
/// Records are gathered and handed on only whole. Where the output fails in the middle of one, a file
/// is shortened to its last whole record. [`Writer::finish`] hands on the rest and reports; a writer
/// that is dropped instead hands it on too, but cannot report.
pub struct Writer {
    name: String,
    output: Output,
    format: Format,
    ports: u32,
    buffer: Vec<u8>,
    /// Where the first record begins in `buffer`: after the file header, the first time.
    records_at: usize,
    written: Written,
    ended: bool,
}

impl Writer {
    /// Creates (or empties) the file at `path`, in the format of its name; `-` is standard output, as pcap.
    ///
    /// `ports` are the ports' names, the interfaces of a pcapng file.
    ///
    /// # Errors
    /// [`WriteProblem::Create`].
    pub fn create(path: impl AsRef<Path>, ports: &[&str]) -> Result<Self, WriteError> {
        let path = path.as_ref();
        let format = Format::of(path);
        let (name, output) = if path.as_os_str() == "-" {
            // The descriptor itself: what std buffers before it would blur what is intact. A stream, not
            // a file, for where it is redirected with `>>` this capture does not begin at byte 0.
            let descriptor = io::stdout().as_fd().try_clone_to_owned();
            let output = descriptor.map(|fd| Output::Stream(Box::new(File::from(fd))));
            ("standard output".to_owned(), output)
        } else {
            (
                path.display().to_string(),
                File::create(path).map(Output::File),
            )
        };
        match output {
            Ok(output) => Ok(Self::start(name, output, format, ports)),
            Err(error) => Err(WriteError {
                output: name,
                written: Written::default(),
                cut: false,
                problem: WriteProblem::Create(error),
            }),
        }
    }

    /// Writes a capture to a stream; `name` names it in errors. What a stream that buffers by itself has
    /// accepted counts as written.
    pub fn new(
        name: impl Into<String>,
        stream: impl Write + Send + 'static,
        format: Format,
        ports: &[&str],
    ) -> Self {
        Self::start(name.into(), Output::Stream(Box::new(stream)), format, ports)
    }

    fn start(name: String, output: Output, format: Format, ports: &[&str]) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER);
        match format {
            Format::Pcap => pcap_header(&mut buffer),
            Format::Pcapng => pcapng_header(&mut buffer, ports),
        }
        Self {
            name,
            output,
            format,
            ports: ports.len().max(1) as u32,
            records_at: buffer.len(),
            buffer,
            written: Written::default(),
            ended: false,
        }
    }

    /// Appends a packet that left at `port` (ignored in pcap) at `time_ns` nanoseconds since 1970.
    ///
    /// `original_length` is its length on the wire; a value below the data's length counts as that.
    ///
    /// # Errors
    /// Any [`WriteProblem`] but [`WriteProblem::Create`]. After one of the output itself, each further
    /// call is [`WriteProblem::Ended`]; after one of the packet, the output goes on without it.
    #[inline]
    pub fn write(
        &mut self,
        time_ns: u64,
        port: u32,
        original_length: u32,
        data: &[u8],
    ) -> Result<(), WriteError> {
        if data.len() > MAX_PACKET {
            return Err(self.refuse(WriteProblem::TooLarge(data.len())));
        }
        if self.buffer.len() + data.len() + 64 > BUFFER {
            self.flush()?;
        }
        let length = data.len() as u32;
        let original_length = original_length.max(length);
        match self.format {
            Format::Pcap => {
                let Ok(seconds) = u32::try_from(time_ns / NS_PER_S) else {
                    return Err(self.refuse(WriteProblem::Time(time_ns)));
                };
                let fraction = (time_ns % NS_PER_S) as u32;
                let mut header = [0; 16];
                words(&mut header, &[seconds, fraction, length, original_length]);
                self.buffer.extend_from_slice(&header);
                self.buffer.extend_from_slice(data);
            }
            Format::Pcapng => {
                if port >= self.ports {
                    return Err(self.refuse(WriteProblem::Port(port)));
                }
                let padding = data.len().wrapping_neg() % 4;
                let block = 32 + length + padding as u32;
                let (high, low) = ((time_ns >> 32) as u32, time_ns as u32);
                let mut header = [0; 28];
                words(
                    &mut header,
                    &[6, block, port, high, low, length, original_length],
                );
                self.buffer.extend_from_slice(&header);
                self.buffer.extend_from_slice(data);
                self.buffer
                    .extend_from_slice([0; 3].get(..padding).unwrap_or(&[]));
                self.buffer.extend_from_slice(&block.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Hands what is gathered to the output.
    ///
    /// # Errors
    /// [`WriteProblem::Write`], [`WriteProblem::Ended`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.ended {
            return Err(self.refuse(WriteProblem::Ended));
        }
        let mut done = 0;
        let mut failure = None;
        while let Some(rest) = self.buffer.get(done..).filter(|rest| !rest.is_empty()) {
            match self.output.write(rest) {
                Ok(0) => failure = Some(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => failure = Some(error),
            }
            if failure.is_some() {
                break;
            }
        }
        if failure.is_none()
            && let Output::Stream(stream) = &mut self.output
        {
            failure = stream.flush().err();
        }
        let (packets, whole) = self.whole_records(done);
        self.written.packets += packets;
        self.written.bytes += whole as u64;
        self.buffer.clear();
        self.records_at = 0;
        let Some(error) = failure else { return Ok(()) };
        self.ended = true;
        let cut = done > whole && !self.output.shorten(self.written.bytes);
        Err(WriteError {
            output: self.name.clone(),
            written: self.written,
            cut,
            problem: WriteProblem::Write(error),
        })
    }

    /// How many records of the buffer are whole in its first `done` bytes, and where they end.
    fn whole_records(&self, done: usize) -> (u64, usize) {
        if done < self.records_at {
            return (0, 0);
        }
        let (mut packets, mut end) = (0, self.records_at);
        // Each record's length stands in its header, written by this type.
        while let Some(header) = self.buffer.get(end..) {
            let word = |at: usize| {
                header
                    .get(at..)
                    .and_then(|word| word.first_chunk())
                    .map(|word| u32::from_le_bytes(*word))
            };
            let length = match self.format {
                Format::Pcap => word(8).map(|captured| 16 + captured as usize),
                Format::Pcapng => word(4).map(|block| block as usize),
            };
            match length {
                Some(length) if end + length <= done => end += length,
                _ => break,
            }
            packets += 1;
        }
        (packets, end)
    }

    fn refuse(&self, problem: WriteProblem) -> WriteError {
        WriteError {
            output: self.name.clone(),
            written: self.written,
            cut: false,
            problem,
        }
    }

    /// Hands on the rest and says what was written.
    ///
    /// # Errors
    /// Those of [`Writer::flush`].
    pub fn finish(mut self) -> Result<Written, WriteError> {
        self.flush()?;
        self.ended = true;
        Ok(self.written)
    }

    /// What the output has taken so far; what is still gathered does not count.
    pub fn written(&self) -> Written {
        self.written
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.ended {
            // Whoever wants to know calls `finish`.
            let _ = self.flush();
        }
    }
}

/// Lays 32-bit numbers, little endian, into a header of exactly their size.
#[inline]
fn words(header: &mut [u8], values: &[u32]) {
    for (place, value) in header.chunks_exact_mut(4).zip(values) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

fn pcap_header(buffer: &mut Vec<u8>) {
    let mut header = [0; 24];
    // Version 2.4 is two 16-bit numbers in one word.
    words(
        &mut header,
        &[0xa1b2_3c4d, 4 << 16 | 2, 0, 0, MAX_PACKET as u32, ETHERNET],
    );
    buffer.extend_from_slice(&header);
}

fn pcapng_header(buffer: &mut Vec<u8>, ports: &[&str]) {
    let mut header = [0; 28];
    // Version 1.0; a section of unknown length, since it streams.
    words(
        &mut header,
        &[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28],
    );
    buffer.extend_from_slice(&header);
    let unnamed: &[&str] = &["0"];
    for name in if ports.is_empty() { unnamed } else { ports } {
        let name = name.as_bytes();
        let name = name.get(..256).unwrap_or(name);
        let padded = name.len().next_multiple_of(4);
        // 16 bytes of header, two options with 4 each, the end of options, and the length again.
        let block = 16 + (4 + padded) + (4 + 4) + 4 + 4;
        let mut header = [0; 16];
        words(&mut header, &[1, block as u32, ETHERNET, MAX_PACKET as u32]);
        buffer.extend_from_slice(&header);
        buffer.extend_from_slice(&2_u16.to_le_bytes());
        buffer.extend_from_slice(&(name.len() as u16).to_le_bytes());
        buffer.extend_from_slice(name);
        buffer.extend(std::iter::repeat_n(0, padded - name.len()));
        // if_tsresol 9: nanoseconds.
        buffer.extend_from_slice(&[9, 0, 1, 0, 9, 0, 0, 0]);
        buffer.extend_from_slice(&[0; 4]);
        buffer.extend_from_slice(&(block as u32).to_le_bytes());
    }
}
