//! The outputs of a run: which port leads where, and what went wrong there.

use std::io::Write;

use crate::account::{Failure, OutputAccount};
use crate::module::Record;
use crate::packet::{Fate, Outcome};
use crate::port::{Output, PortError};

/// An output and the word that named it.
pub struct Sink {
    word: String,
    output: Box<dyn Output>,
    error: Option<PortError>,
}

impl Sink {
    /// An output, under the word that named it.
    #[must_use]
    pub fn new(word: &str, output: Box<dyn Output>) -> Self {
        Self {
            word: word.to_owned(),
            output,
            error: None,
        }
    }

    /// Hands it a packet that leaves at `port`. After an error it takes nothing more; false then.
    pub(super) fn write(&mut self, port: u32, packet: &Outcome<'_>) -> bool {
        if self.error.is_some() {
            return false;
        }
        let written = self
            .output
            .write(port, packet.stamp, packet.wire, packet.bytes);
        // Not stored where it is none: an error is large.
        match written {
            Ok(()) => true,
            Err(error) => {
                self.error = Some(error);
                false
            }
        }
    }

    /// Hands on what it has gathered; false when it takes nothing more.
    pub(super) fn flush(&mut self) -> bool {
        if self.error.is_none() {
            self.error = self.output.flush().err();
        }
        self.error.is_none()
    }

    /// Bytes of memory that it keeps.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.output.bytes()
    }

    /// Completes it.
    pub(super) fn finish(self) -> (OutputAccount, Option<Failure>) {
        let before = self.output.written();
        // After an error, what was intact is what counts; a second attempt would only fail again.
        let (written, error) = match self.error {
            Some(error) => (intact(&error).unwrap_or(before), Some(error)),
            None => match self.output.finish() {
                Ok(written) => (written, None),
                Err(error) => (intact(&error).unwrap_or(before), Some(error)),
            },
        };
        let failure = error.as_ref().map(|e| Failure {
            error: e.to_string(),
            help: e.help(),
        });
        (
            OutputAccount::new(&self.word, written, error.map(|e| e.to_string())),
            failure,
        )
    }
}

/// What an output says is intact when it fails.
fn intact(error: &PortError) -> Option<millrace_traffic::capture::Written> {
    match error {
        PortError::Write(e) => Some(e.written),
        _ => None,
    }
}

/// Where the function's ports lead.
#[derive(Default)]
pub struct Sinks {
    /// the outputs
    pub sinks: Vec<Sink>,
    /// for each port, the index of its output; none: what is sent there is counted and gone
    pub of_port: Vec<Option<usize>>,
}

impl Sinks {
    /// Hands over a packet where it goes; false when an output takes no more.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        packet: &Outcome<'_>,
        ports: u32,
        pass: Option<&mut Sink>,
    ) -> bool {
        let from = packet.port;
        match packet.fate {
            Fate::Forwarded(port) => self.write(port, packet),
            Fate::Flooded => {
                let mut whole = true;
                for port in (0..ports).filter(|p| *p != from) {
                    whole &= self.write(port, packet);
                }
                whole
            }
            Fate::Passed => pass.is_none_or(|pass| pass.write(from, packet)),
            Fate::Dropped(_) | Fate::Consumed | Fate::Aborted => true,
        }
    }

    /// Hands over a packet that leaves at `port`; false when its output takes no more.
    #[inline]
    fn write(&mut self, port: u32, packet: &Outcome<'_>) -> bool {
        let index = self.of_port.get(port as usize).copied().flatten();
        match index.and_then(|i| self.sinks.get_mut(i)) {
            Some(sink) => sink.write(port, packet),
            None => true,
        }
    }
}

/// Writes records as JSON lines: `{"object":…,"time":…,"bytes":"hex"}`, `time` in ns since the epoch
/// being that of the last packet before they were collected.
pub struct RecordWriter {
    name: String,
    output: Box<dyn Write + Send>,
    error: Option<std::io::Error>,
}

impl RecordWriter {
    /// Writes to `output`, which errors call `name`.
    #[must_use]
    pub fn new(name: &str, output: Box<dyn Write + Send>) -> Self {
        Self {
            name: name.to_owned(),
            output,
            error: None,
        }
    }

    /// Writes a record of an object, stamped in ns since the epoch; false once it takes no more.
    pub fn write(&mut self, object: &str, time: u64, record: &Record) -> bool {
        if self.error.is_none() {
            self.error = self.line(object, time, record).err();
        }
        self.error.is_none()
    }

    fn line(&mut self, object: &str, time: u64, record: &Record) -> std::io::Result<()> {
        #[derive(serde::Serialize)]
        struct Line<'a> {
            object: &'a str,
            time: u64,
            bytes: String,
        }
        let line = Line {
            object,
            time,
            bytes: hex(&record.bytes),
        };
        let text = serde_json::to_string(&line)?;
        writeln!(self.output, "{text}")
    }

    /// Completes it; what went wrong, if anything did.
    #[must_use]
    pub fn finish(mut self) -> Option<Failure> {
        let error = self.error.take().or_else(|| self.output.flush().err())?;
        Some(Failure {
            error: format!("{}: cannot be written: {error}", self.name),
            help: "make room or choose another --records".into(),
        })
    }
}

/// Lower-case hexadecimal digits of some bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
