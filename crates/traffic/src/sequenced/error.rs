//! Errors of sequenced captures that are read.

use millrace_steer::sequence::{FormError, Refusal, StepError};

use crate::capture;

/// A sequenced capture could not be read further. The steps before it have been delivered.
#[derive(Debug, thiserror::Error)]
#[error("{capture}: record {record}: {problem}")]
pub struct Error {
    /// The capture, as it was named on opening.
    pub capture: String,
    /// The record with the problem, from 1; the first says the form.
    pub record: u64,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a sequenced capture.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is no capture, or a damaged one.
    #[error("{0}")]
    Capture(#[from] capture::Error),
    /// The first record is not one that says a form.
    #[error(
        "does not say the form of a sequenced capture: this is another capture, which `sequence` makes one of"
    )]
    NoForm,
    /// A form that no sequencer has.
    #[error("{0}")]
    Form(#[from] FormError),
    /// A key is needed.
    #[error("the carriers are tagged: reading them needs the key that they were written with")]
    Tagged,
    /// A key is not needed.
    #[error("the carriers are not tagged, so that a key has nothing to compare: read without one")]
    Untagged,
    /// The capture was made with a snapshot length.
    #[error("the record was cut from {original} to {bytes} bytes: capture whole frames")]
    Cut {
        /// bytes in the capture
        bytes: usize,
        /// bytes of the frame
        original: u32,
    },
    /// No carrier.
    #[error("no carrier of this form: {0}")]
    Refused(#[from] Refusal),
    /// The record is at another time than its stamp.
    #[error("the record is of {time} ns, and its stamp {stamp} ns")]
    Time {
        /// of the record
        time: u64,
        /// of the carrier
        stamp: u64,
    },
    /// There is no such step.
    #[error("no step of a sequencer: {0}")]
    Step(#[from] StepError),
    /// There is a step, and it gives another carrier.
    #[error(
        "the sequencer gives another carrier: its byte {at} is {expected:#04x}, and here it is {found:#04x} ({where_})"
    )]
    Differs {
        /// the first byte that differs
        at: usize,
        /// what `step` gives
        expected: u8,
        /// what the capture has
        found: u8,
        /// the part of the carrier
        where_: &'static str,
    },
    /// The capture ends between the copies of a heartbeat.
    #[error("the capture ends in a heartbeat: it goes to {cores} cores, and {sent} have it")]
    Ended {
        /// cores
        cores: u16,
        /// copies
        sent: u16,
    },
}
