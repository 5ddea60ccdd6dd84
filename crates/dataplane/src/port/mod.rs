//! Ports: where packets come from and where they go.
//!
//! A port is named by a URL-like word. Its kind is what stands before the colon; a word without one
//! is a capture file, or the plain name of an interface. Adding a kind is a file here and a line in [`KINDS`].

#[allow(unsafe_code, reason = "the border to the kernel")]
mod afpacket;
#[allow(unsafe_code, reason = "the border to the kernel")]
mod afxdp;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod ahead;
mod buffers;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod captures;
pub mod claim;
#[allow(unsafe_code, reason = "the border to the kernel")]
mod device;
#[allow(unsafe_code, reason = "the border to DPDK")]
pub mod dpdk;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod fault;
mod file;
#[allow(
    unsafe_code,
    reason = "frames are handed from worker to worker as addresses"
)]
mod handover;
mod mem;
mod null;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod oneway;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod peers;
mod plain;
mod query;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod queue;
pub mod rights;
mod rss;
#[allow(unsafe_code, reason = "the border to the kernel")]
mod tap;
#[cfg(test)]
mod tests;
#[allow(unsafe_code, reason = "device and driver share packet memory")]
pub mod vnic;
mod word;
pub mod xdp;

pub use ahead::{Behind, ahead};
pub use buffers::Buffers;
pub use captures::{CaptureIn, CaptureOut, SharedOut};
pub use device::overflows;
pub use oneway::SendOnly;
pub use peers::{Arrival, Arrivals, peers};
pub use plain::{Choice, is_plain};
pub use query::Query;
pub use queue::{
    Departure, Frame, LiveOptions, LivePort, OpenLive, Pool, Queue, QueueCounts, Sequenced,
};
pub use rss::RssOptions;

pub use word::{beside, input, interface, is_live, joined, live, loops, output, spelled, steered};
use word::{forms, forms_of};

use std::os::fd::RawFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use millrace_traffic::capture::{Error as CaptureError, Record, WriteError, Written};

use crate::runner::{Entry, Intake};

/// Bytes that a capture read from a file and one written to a file keep resident together.
pub const CAPTURE_BYTES: u64 = file::READER_BYTES + file::WRITER_BYTES;

/// What a kind of port offers.
pub struct Kind {
    /// what stands before the colon; empty for capture files
    pub scheme: &'static str,
    /// how the word looks, e.g. `mem:FILE.pcap`
    pub form: &'static str,
    /// one phrase: what it is
    pub what: &'static str,
    /// opens it to read from; none when nothing comes out of it
    pub input: Option<OpenInput>,
    /// opens it to write to; none when nothing goes into it
    pub output: Option<OpenOutput>,
    /// opens it for workers, both directions at once; none for ports that are read or written by the
    /// packet
    pub live: Option<OpenLive>,
    /// reads what stands behind the colon, and opens nothing
    pub spelled: fn(&str) -> Result<(), PortError>,
}

/// Which way packets go through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// they come out of it
    In,
    /// they go into it
    Out,
    /// both
    Both,
}

/// Opens a port to read from: the word behind the colon.
pub type OpenInput = fn(&str, &InputOptions) -> Result<Box<dyn Input>, PortError>;

/// Opens a port to write to: the word behind the colon, and the names of the ports that lead there.
pub type OpenOutput = fn(&str, &[&str]) -> Result<Box<dyn Output>, PortError>;

/// Every kind there is.
pub const KINDS: &[&Kind] = &[
    &file::KIND,
    &mem::KIND,
    &null::KIND,
    &afpacket::KIND,
    &afxdp::KIND,
    &dpdk::KIND,
    &tap::KIND,
    &vnic::KIND,
    &xdp::KIND,
];

/// What a port needs to know beyond its word.
#[derive(Clone, Copy)]
pub struct InputOptions {
    /// how often a port that can begin again does so: none, without end
    pub loops: Option<u64>,
    /// raised when the process is asked to stop; a port that waits looks at it
    pub stop: &'static AtomicBool,
}

/// Why a port cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Nobody knows this kind of port.
    #[error("there is no port of kind `{scheme}:`")]
    Unknown {
        /// what stood before the colon
        scheme: String,
    },
    /// The kind exists, but packets do not go that way.
    #[error("`{word}` cannot be {direction}")]
    Direction {
        /// the word
        word: String,
        /// `read from`, `written to` or `served in both directions`
        direction: &'static str,
    },
    /// Nothing stands behind the colon.
    #[error("`{word}` names no file")]
    Nameless {
        /// the word
        word: String,
    },
    /// The port would hold no packet, which cannot be looped.
    #[error("`{word}` holds no packets to loop over")]
    Hollow {
        /// the word
        word: String,
    },
    /// An option of the port's word makes no sense.
    #[error("`{word}`: option `{option}`: {what}")]
    Option {
        /// the word
        word: String,
        /// the option
        option: String,
        /// what it should be
        what: String,
    },
    /// The system refused something that a live port needs.
    #[error("{word}: {what}")]
    Live {
        /// the word
        word: String,
        /// what was tried, and what the system said
        what: String,
        /// what to do
        help: String,
    },
    /// A capture that cannot be read.
    #[error(transparent)]
    Read(#[from] CaptureError),
    /// An output that cannot be created or written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl PortError {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Unknown { .. } => format!("the kinds of port are {}", forms()),
            Self::Direction { direction, .. } => {
                format!("use another kind: {}", forms_of(direction))
            }
            Self::Nameless { .. } => "write the file's name behind the colon".into(),
            Self::Hollow { .. } => "give a capture with at least one packet".into(),
            Self::Option { .. } => "docs/ports.md lists the options of each kind of port".into(),
            Self::Live { help, .. } => help.clone(),
            Self::Read(_) => "packets before this place were processed and are accounted".into(),
            Self::Write(_) => "make room or choose another --out".into(),
        }
    }
}

/// Something packets come out of. It stands on a packet, steps to the next, and lends it.
pub trait Input: Send {
    /// Steps to the next packet; false at the end.
    ///
    /// # Errors
    /// Once, where the port fails; after that it is at its end.
    fn advance(&mut self) -> Result<bool, PortError>;

    /// The packet it stands on: stamp in ns since the epoch, length on the wire, bytes.
    fn record(&self) -> Option<Record<'_>>;

    /// Hands packets on from the one that it stands on, as long as `into` takes them; `entry` says at which port each enters.
    /// It is compiled for each kind of input, so that no call through a table stands between two packets.
    ///
    /// # Errors
    /// As [`Self::advance`].
    fn pour(&mut self, entry: &Entry, into: &mut Intake) -> Result<(), PortError> {
        while into.wants()
            && let Some(record) = self.record()
        {
            let port = entry.port(record.data);
            if !into.take(&record, port) {
                break;
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Whether packets arrive when somebody else sends them, so that [`Self::advance`] may wait.
    fn live(&self) -> bool {
        false
    }

    /// Whether [`Self::advance`] has something to go to now, a packet or the end; a live port waits for
    /// it up to `patience`. Ends the loan of the packet that it stands on.
    fn ready(&mut self, _patience: Duration) -> bool {
        true
    }

    /// What becomes readable when more of a live input may be there; none where nothing tells.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// From here on nothing more is taken from outside; false where nothing taken from there is left.
    fn drain(&mut self) -> bool {
        false
    }

    /// How far it is, and how far it goes, in units of its own; none when that cannot be known.
    fn progress(&self) -> Option<(u64, u64)>;

    /// Bytes of memory that it keeps resident.
    fn bytes(&self) -> u64;
}

/// Something packets go into.
pub trait Output: Send {
    /// Takes a packet that left at `port` (of the function); stamp in ns since the epoch.
    ///
    /// # Errors
    /// When the port takes no more. What it took before stays.
    fn write(&mut self, port: u32, stamp: u64, wire: u32, frame: &[u8]) -> Result<(), PortError>;

    /// Hands on what it has gathered: there is nothing to do just now.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    /// Completes it and says what it has taken.
    ///
    /// # Errors
    /// When something that was taken could not be kept after all.
    fn finish(self: Box<Self>) -> Result<Written, PortError>;

    /// What is known to be kept so far.
    fn written(&self) -> Written;

    /// Bytes of memory that it keeps resident.
    fn bytes(&self) -> u64;
}
