//! Reading sequenced captures.

use std::fmt;
use std::io::Read;
use std::path::Path;

use millrace_steer::sequence::prefix::FIXED;
use millrace_steer::sequence::{
    Arrival, Carrier, Core, Form, Header, Key, Kind, Prefix, Row, State, step,
};

use super::{Error, Problem, form};
use crate::capture;

/// One step of the sequencer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// the record of its first carrier, from 1
    pub record: u64,
    /// what the sequencer said
    pub header: Header,
    /// the row, if it has one
    pub row: Option<Row>,
    /// the packet; empty in a heartbeat
    pub frame: Vec<u8>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header {
            sequence,
            stamp,
            core,
            port,
            kind,
        } = self.header;
        write!(f, "{}: {stamp} ns, sequence {sequence}, ", self.record)?;
        match (core, kind) {
            (Core::All, _) | (_, Kind::Beat) => f.write_str("heartbeat to all cores")?,
            (Core::One(core), _) => write!(
                f,
                "{} bytes by port {port} to core {core}",
                self.frame.len()
            )?,
        }
        match &self.row {
            None => f.write_str(", no row"),
            Some(row) => write!(f, ", {row:?}"),
        }
    }
}

/// A sequenced capture, read step by step.
pub struct Reader {
    input: capture::Reader,
    state: State,
    prefix: Prefix,
    record: u64,
    expected: Vec<u8>,
    ended: bool,
}

impl Reader {
    /// Opens a file; `-` is standard input. `key` is that of the tags.
    ///
    /// # Errors
    /// [`Problem::Capture`], and those of a form.
    pub fn open(path: impl AsRef<Path>, key: Option<Key>) -> Result<Self, Error> {
        let name = path.as_ref().display().to_string();
        match capture::Reader::open(path) {
            Ok(input) => Self::start(input, key),
            Err(error) => Err(Error {
                capture: name,
                record: 0,
                problem: error.into(),
            }),
        }
    }

    /// Reads from a stream; `capture` names it in errors.
    ///
    /// # Errors
    /// [`Problem::Capture`], and those of a form.
    pub fn new(
        capture: impl Into<String>,
        read: impl Read + Send + 'static,
        key: Option<Key>,
    ) -> Result<Self, Error> {
        let capture = capture.into();
        match capture::Reader::new(capture.clone(), read) {
            Ok(input) => Self::start(input, key),
            Err(error) => Err(Error {
                capture,
                record: 0,
                problem: error.into(),
            }),
        }
    }

    fn start(mut input: capture::Reader, key: Option<Key>) -> Result<Self, Error> {
        let first = match input.next() {
            Ok(Some(record)) => form::read(record.data, key),
            Ok(None) => Err(Problem::NoForm),
            Err(error) => Err(error.into()),
        };
        match first {
            Ok((form, state)) => Ok(Self {
                input,
                state,
                prefix: Prefix::new(form),
                record: 1,
                expected: Vec::new(),
                ended: false,
            }),
            Err(problem) => Err(Error {
                capture: input.capture().to_owned(),
                record: 1,
                problem,
            }),
        }
    }

    /// The form of the carriers.
    pub fn form(&self) -> &Form {
        self.prefix.form()
    }

    /// The sequencer after the steps read so far.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The next step; none at the end, and after an error.
    ///
    /// # Errors
    /// [`Error`]: the record is not what `step` gives.
    #[expect(
        clippy::should_implement_trait,
        reason = "as capture::Reader: errors end it"
    )]
    pub fn next(&mut self) -> Result<Option<Step>, Error> {
        if self.ended {
            return Ok(None);
        }
        let before = self.state.clone();
        let step = self.take();
        if !matches!(step, Ok(Some(_))) {
            self.ended = true;
            self.state = before;
        }
        step.map_err(|problem| Error {
            capture: self.input.capture().to_owned(),
            record: self.record,
            problem,
        })
    }

    fn take(&mut self) -> Result<Option<Step>, Problem> {
        let form = self.prefix.form().clone();
        let found = match self.input.next()? {
            None => return Ok(None),
            Some(record) => {
                self.record += 1;
                whole(&record)?;
                found(&form, &record)?
            }
        };
        let (header, row, frame) = found;
        let arrival = match header.kind {
            Kind::Beat => Arrival::Idle,
            _ => Arrival::Packet {
                frame: &frame,
                port: header.port,
            },
        };
        let rows = (
            form.shape(),
            |_: &[u8], _: u16, _: u64, place: &mut [u8]| {
                let bytes = row.as_ref().map_or(&[][..], Row::bytes);
                place.iter_mut().zip(bytes).for_each(|(p, b)| *p = *b);
                header.kind == Kind::Touch
            },
        );
        let (given, row) = step(&mut self.state, &rows, arrival, header.stamp)?;
        if let Some(row) = &row {
            self.prefix.push(row);
        }
        let first = self.record;
        let cores = match given.core {
            Core::One(core) => core..core + 1,
            Core::All => 0..form.cores(),
        };
        for (sent, core) in cores.enumerate() {
            let one = Header {
                core: Core::One(core),
                ..given
            };
            self.prefix
                .write(&one, &frame, &mut self.expected, |_, _| ());
            if sent > 0 {
                let record = self.input.advance()?;
                if !record {
                    return Err(Problem::Ended {
                        cores: form.cores(),
                        sent: sent as u16,
                    });
                }
                self.record += 1;
            }
            if let Some(record) = self.input.record() {
                whole(&record)?;
                same(&form, &self.expected, record.data)?;
                time(record.time_ns, given.stamp)?;
            }
        }
        Ok(Some(Step {
            record: first,
            header: given,
            row,
            frame,
        }))
    }
}

/// The parts of a carrier that `step` is asked about.
fn found(
    form: &Form,
    record: &capture::Record<'_>,
) -> Result<(Header, Option<Row>, Vec<u8>), Problem> {
    let carrier = Carrier::new_checked(record.data, form)?;
    time(record.time_ns, carrier.stamp())?;
    let row = match carrier.kind() {
        Kind::Plain => None,
        _ => carrier.row(carrier.sequence()),
    };
    Ok((carrier.header(), row, carrier.packet().to_vec()))
}

fn whole(record: &capture::Record<'_>) -> Result<(), Problem> {
    let bytes = record.data.len();
    match record.original_length as usize == bytes {
        true => Ok(()),
        false => Err(Problem::Cut {
            bytes,
            original: record.original_length,
        }),
    }
}

fn time(time: u64, stamp: u64) -> Result<(), Problem> {
    match time == stamp {
        true => Ok(()),
        false => Err(Problem::Time { time, stamp }),
    }
}

/// Compares a record with the carrier that `step` gives.
fn same(form: &Form, expected: &[u8], found: &[u8]) -> Result<(), Problem> {
    let differs = |at: &usize| expected.get(*at) != found.get(*at);
    let Some(at) = (0..expected.len().max(found.len())).find(differs) else {
        return Ok(());
    };
    let where_ = match at {
        0..6 => "destination: the core",
        6..12 => "source: the port",
        12..18 => "form and kind",
        18..26 => "sequence",
        26..FIXED => "stamp",
        _ if at < form.prefix_bytes() => "rows",
        _ => "packet",
    };
    Err(Problem::Differs {
        at,
        expected: expected.get(at).copied().unwrap_or(0),
        found: found.get(at).copied().unwrap_or(0),
        where_,
    })
}
