//! Writing sequenced captures.

use std::io::Write;
use std::path::Path;

use millrace_steer::sequence::{Extract, Form, Header, Prefix, Row, Sequencer, State, StepError};

use super::form;
use crate::capture::{self, Format, WriteError, Written};

/// Writes what a sequencer gives.
pub struct Writer {
    output: capture::Writer,
    prefix: Prefix,
    carrier: Vec<u8>,
}

impl Writer {
    /// Creates (or empties) a file; `-` is standard output. The sequencer starts in `state`, before its first row.
    ///
    /// # Errors
    /// As [`capture::Writer::create`] and [`capture::Writer::write`].
    pub fn create(path: impl AsRef<Path>, form: Form, state: &State) -> Result<Self, WriteError> {
        Self::start(capture::Writer::create(path, &[])?, form, state)
    }

    /// Writes to a stream; `name` names it in errors.
    ///
    /// # Errors
    /// As [`capture::Writer::write`].
    pub fn new(
        name: impl Into<String>,
        stream: impl Write + Send + 'static,
        form: Form,
        state: &State,
    ) -> Result<Self, WriteError> {
        let output = capture::Writer::new(name, stream, Format::Pcap, &[]);
        Self::start(output, form, state)
    }

    fn start(mut output: capture::Writer, form: Form, state: &State) -> Result<Self, WriteError> {
        let record = form::write(&form, state);
        output.write(0, 0, 0, &record)?;
        Ok(Self {
            output,
            prefix: Prefix::new(form),
            carrier: Vec::new(),
        })
    }

    /// Appends the carriers of one step: of a packet one, of a heartbeat one for each core.
    ///
    /// # Errors
    /// As [`capture::Writer::write`].
    pub fn write(
        &mut self,
        header: &Header,
        row: Option<&Row>,
        frame: &[u8],
    ) -> Result<(), WriteError> {
        if let Some(row) = row {
            self.prefix.push(row);
        }
        let mut done = Ok(());
        let output = &mut self.output;
        self.prefix
            .write(header, frame, &mut self.carrier, |_, carrier| {
                if done.is_ok() {
                    done = output.write(header.stamp, 0, 0, carrier);
                }
            });
        done
    }

    /// Hands on what is left and says what was written; the first record counts as a packet.
    ///
    /// # Errors
    /// As [`capture::Writer::finish`].
    pub fn finish(self) -> Result<Written, WriteError> {
        self.output.finish()
    }
}

/// A capture could not be sequenced.
#[derive(Debug, thiserror::Error)]
pub enum SequenceError {
    /// The form does not fit the sequencer.
    #[error(
        "a form for {form} cores and rows of {form_row} bytes, and a sequencer for {cores} cores and rows of {row} bytes"
    )]
    Form {
        /// cores of the form
        form: u16,
        /// bytes of its rows
        form_row: usize,
        /// cores of the sequencer
        cores: u16,
        /// bytes of its rows
        row: usize,
    },
    /// The capture cannot be read.
    #[error(transparent)]
    Read(#[from] capture::Error),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A packet cannot be sequenced.
    #[error("packet {packet} (from 1): {error}")]
    Step {
        /// its place in the capture
        packet: u64,
        /// why
        error: StepError,
    },
}

/// Sequences a whole capture; the interface of a record is the packet's port. Gives the state after it.
///
/// # Errors
/// [`SequenceError`].
pub fn sequence<E: Extract>(
    from: &mut capture::Reader,
    rows: E,
    state: State,
    form: Form,
    to: impl FnOnce(Form, &State) -> Result<Writer, WriteError>,
) -> Result<(State, Written), SequenceError> {
    let shape = rows.shape();
    if (form.cores(), form.shape()) != (state.cores(), shape) {
        return Err(SequenceError::Form {
            form: form.cores(),
            form_row: form.shape().row_bytes(),
            cores: state.cores(),
            row: shape.row_bytes(),
        });
    }
    let mut writer = to(form, &state)?;
    let mut sequencer = Sequencer::new(state, rows);
    let mut packet = 0;
    while let Some(record) = from.next()? {
        packet += 1;
        let mut done = Ok(());
        let port = u16::try_from(record.interface).unwrap_or(u16::MAX);
        let step = sequencer.packet(record.data, port, record.time_ns, |header, row| {
            if done.is_ok() {
                done = writer.write(&header, row.as_ref(), record.data);
            }
        });
        step.map_err(|error| SequenceError::Step { packet, error })?;
        done?;
    }
    Ok((sequencer.state().clone(), writer.finish()?))
}
