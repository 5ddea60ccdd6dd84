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
mod plain;
mod query;
#[allow(unsafe_code, reason = "frames are lent as addresses")]
mod queue;
pub mod rights;
mod rss;
#[allow(unsafe_code, reason = "the border to the kernel")]
mod tap;
#[allow(unsafe_code, reason = "device and driver share packet memory")]
pub mod vnic;
pub mod xdp;

pub use ahead::{Behind, ahead};
pub use buffers::Buffers;
pub use captures::{CaptureIn, CaptureOut, SharedOut};
pub use oneway::SendOnly;
pub use plain::{Choice, is_plain};
pub use query::Query;
pub use queue::{
    Departure, Frame, LiveOptions, LivePort, OpenLive, Pool, Queue, QueueCounts, Sequenced,
};
pub use rss::RssOptions;

use std::os::fd::RawFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use handover::By;
use millrace_steer::Steering;
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

/// Opens a port to read from.
///
/// # Errors
/// [`PortError`] when the word names no kind, or the port cannot be opened.
pub fn input(word: &str, options: &InputOptions) -> Result<Box<dyn Input>, PortError> {
    let (kind, rest) = kind_of(word)?;
    match kind.input {
        Some(open) => open(rest, options),
        None => Err(PortError::Direction {
            word: word.to_owned(),
            direction: "read from",
        }),
    }
}

/// Opens a port to write to; `ports` are the names of the function's ports that lead there.
///
/// # Errors
/// As [`input`].
pub fn output(word: &str, ports: &[&str]) -> Result<Box<dyn Output>, PortError> {
    let (kind, rest) = kind_of(word)?;
    match kind.output {
        Some(open) => open(rest, ports),
        None => Err(PortError::Direction {
            word: word.to_owned(),
            direction: "written to",
        }),
    }
}

/// The interface of the kernel that a word names: that of `afpacket:`, `afxdp:`, `xdp:` and `tap:`.
#[must_use]
pub fn interface(word: &str) -> Option<&str> {
    let kinds = [&afpacket::KIND, &afxdp::KIND, &xdp::KIND, &tap::KIND];
    if plain::names(word) {
        return word.split('?').next();
    }
    let (kind, rest) = kind_of(word).ok()?;
    let named = kinds.iter().any(|k| k.scheme == kind.scheme);
    named.then(|| rest.split('?').next().unwrap_or(rest))
}

/// Reads a word without opening anything.
///
/// # Errors
/// [`PortError`] when the word names no kind, packets do not go that way, or an option is wrong.
pub fn spelled(word: &str, way: Way) -> Result<(), PortError> {
    let (kind, rest) = kind_of(word)?;
    if kind.scheme == file::KIND.scheme && matches!(way, Way::Both) {
        return plain::spelled(word);
    }
    let live = kind.live.is_some();
    let (goes, direction) = match way {
        Way::In => (kind.input.is_some() || live, "read from"),
        Way::Out => (kind.output.is_some() || live, "written to"),
        Way::Both => (live || xdp::names(word), "served by a worker"),
    };
    if !goes {
        return Err(PortError::Direction {
            word: word.to_owned(),
            direction,
        });
    }
    if !live {
        return (kind.spelled)(rest);
    }
    let mut query = Query::parse(kind.scheme, rest)?;
    fault::Faults::take(&mut query)?;
    (kind.spelled)(&query.rest())
}

/// Whether this port is served by workers, both directions at once. A word without a scheme is, where it names an
/// interface and no file.
#[must_use]
pub fn is_live(word: &str) -> bool {
    kind_of(word).is_ok_and(|(kind, _)| kind.live.is_some()) || plain::names(word)
}

/// Opens a live port, and gives what a plain name of an interface stands for.
///
/// # Errors
/// As [`input`]; also where the kind is not a live one.
pub fn live(word: &str, options: &LiveOptions) -> Result<(Option<Choice>, LivePort), PortError> {
    let (kind, _) = kind_of(word)?;
    match kind.scheme == file::KIND.scheme {
        true => plain::open(word, options, &of_kind).map(|(choice, port)| (Some(choice), port)),
        false => of_kind(word, options).map(|port| (None, port)),
    }
}

/// Opens a live port whose word has its kind.
fn of_kind(word: &str, options: &LiveOptions<'_>) -> Result<LivePort, PortError> {
    let (kind, rest) = kind_of(word)?;
    match kind.live {
        Some(open) => {
            let mut query = Query::parse(kind.scheme, rest)?;
            let faults = fault::Faults::take(&mut query)?;
            let port = faults.around(open(&query.rest(), options)?, word)?;
            steered(word, port, options)
        }
        None => Err(PortError::Direction {
            word: word.to_owned(),
            direction: BOTH,
        }),
    }
}

/// A port whose packets come to the workers that own them.
///
/// # Errors
/// Its packets carry their own time, or the system gives no descriptors to wait by.
pub fn steered(
    word: &str,
    mut port: LivePort,
    options: &LiveOptions,
) -> Result<LivePort, PortError> {
    if port.queues.len() < 2 || options.steering.is_none() && options.classes.is_none() {
        return Ok(port);
    }
    if port.queues.iter().any(|q| q.keeps_time()) {
        return Err(PortError::Live {
            word: word.to_owned(),
            what: "its packets carry their own time, in which workers cannot hand them over".into(),
            help: "read the capture with --in FILE, or use --cores 1".into(),
        });
    }
    if let Some(classes) = options.classes {
        port.facts.push(format!(
            "{word}: packets are handed to the workers that have their classes"
        ));
        let by = By::Class {
            classes: classes.clone(),
            port: options.port as usize,
        };
        port.queues = handover::hand_over(word, port.queues, by)?;
        return Ok(port);
    }
    let Some(steering) = options.steering else {
        return Ok(port);
    };
    if port.told && steering.iter().all(Steering::by_nic_alone) {
        return Ok(port);
    }
    let how = if port.told {
        "what it cannot steer is hashed in software and handed over"
    } else {
        "packets are hashed in software and handed to their owners"
    };
    port.facts.push(format!("{word}: {how}"));
    let owners = steering.iter().map(Steering::owners).collect();
    port.queues = handover::hand_over(
        word,
        port.queues,
        By::Owner {
            owners,
            told: port.told,
        },
    )?;
    Ok(port)
}

/// Whether the packets of this port begin again after the last one, so that a run needs a limit.
#[must_use]
pub fn loops(word: &str) -> bool {
    kind_of(word)
        .is_ok_and(|(kind, _)| [mem::KIND.scheme, vnic::KIND.scheme].contains(&kind.scheme))
}

/// Words of a list that was split at its commas, the arguments of a `dpdk:` port's driver put back to it:
/// what looks like `name=value` behind such a word, up to its options.
#[must_use]
pub fn joined(words: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for word in words {
        let open = |w: &&mut String| w.starts_with("dpdk:") && !w.contains('?');
        let argument = word.split_once('=').is_some_and(|(name, _)| {
            let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            !name.is_empty() && name.bytes().all(letter)
        });
        match joined.last_mut().filter(open) {
            Some(last) if argument => {
                last.push(',');
                last.push_str(word);
            }
            _ => joined.push(word.clone()),
        }
    }
    joined
}

/// The same port with its paths begun at a folder, where they are relative: of a capture, of one in memory, of a
/// recording.
#[must_use]
pub fn beside(word: &str, folder: &Path) -> String {
    let full = |path: &str| folder.join(path).display().to_string();
    let Ok((kind, rest)) = kind_of(word) else {
        return word.to_owned();
    };
    let reads = [mem::KIND.scheme, vnic::KIND.scheme].contains(&kind.scheme);
    let word = match rest {
        "" | "-" => word.to_owned(),
        path if kind.scheme == file::KIND.scheme => full(path),
        path if reads => format!("{}:{}", kind.scheme, full(path)),
        _ => word.to_owned(),
    };
    match kind.live {
        Some(_) => fault::beside(&word, full),
        None => word,
    }
}

/// The kind of a word, and what stands behind its colon.
fn kind_of(word: &str) -> Result<(&'static Kind, &str), PortError> {
    // Something that looks like `scheme:`; a path with a colon in it can be written `./a:b`.
    let scheme = word.split_once(':').filter(|(scheme, _)| {
        scheme.len() > 1
            && scheme
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    });
    let Some((scheme, rest)) = scheme else {
        return Ok((&file::KIND, word));
    };
    let kind = KINDS.iter().find(|k| k.scheme == scheme);
    kind.map(|k| (*k, rest)).ok_or_else(|| PortError::Unknown {
        scheme: scheme.to_owned(),
    })
}

/// Direction of a port that workers serve.
const BOTH: &str = "served in both directions";

fn forms() -> String {
    forms_of("")
}

/// The kinds of port that go in a direction; of another word, all.
fn forms_of(direction: &str) -> String {
    let goes = |kind: &&&Kind| match direction {
        "read from" => kind.input.is_some() || kind.live.is_some(),
        "written to" => kind.output.is_some() || kind.live.is_some(),
        BOTH => kind.live.is_some(),
        _ => true,
    };
    let forms: Vec<_> = KINDS
        .iter()
        .filter(goes)
        .map(|k| format!("{} ({})", k.form, k.what))
        .collect();
    forms.join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    static STOP: AtomicBool = AtomicBool::new(false);
    const OPTIONS: InputOptions = InputOptions {
        loops: Some(1),
        stop: &STOP,
    };

    #[test]
    fn an_unknown_kind_lists_those_there_are() {
        let Err(error) = input("pigeon:eth0", &OPTIONS) else {
            panic!("opened")
        };
        assert_eq!(error.to_string(), "there is no port of kind `pigeon:`");
        for kind in KINDS {
            assert!(error.help().contains(kind.form), "{}", error.help());
        }
    }

    #[test]
    fn a_word_is_a_file_unless_it_has_a_scheme() {
        for word in ["a.pcap", "-", "./a:b.pcap", "C:x", "dir/mem:x"] {
            assert_eq!(kind_of(word).unwrap().0.scheme, "", "{word}");
        }
        assert_eq!(kind_of("mem:a.pcap").unwrap().1, "a.pcap");
    }

    #[test]
    fn arguments_of_a_driver_stay_with_their_port() {
        let split = |list: &str| joined(&list.split(',').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(
            split("dpdk:net_pcap0,rx_pcap=a,tx_pcap=b?ring=64,dpdk:net_ring0,c.pcap,x=y"),
            [
                "dpdk:net_pcap0,rx_pcap=a,tx_pcap=b?ring=64",
                "dpdk:net_ring0",
                "c.pcap",
                "x=y"
            ]
        );
        assert_eq!(split("a.pcap,b=c"), ["a.pcap", "b=c"]);
        assert_eq!(split("dpdk:net_ring0,./b=c"), ["dpdk:net_ring0", "./b=c"]);
    }

    #[test]
    fn paths_of_a_word_begin_at_a_folder() {
        let folder = Path::new("/srv/edge");
        for (word, full) in [
            ("a.pcap", "/srv/edge/a.pcap"),
            ("/tmp/a.pcap", "/tmp/a.pcap"),
            ("-", "-"),
            ("mem:x/a.pcap", "mem:/srv/edge/x/a.pcap"),
            ("null:", "null:"),
            ("vnic:a.pcap?rate=1M", "vnic:/srv/edge/a.pcap?rate=1M"),
            ("afpacket:eth0?blocks=8", "afpacket:eth0?blocks=8"),
            (
                "tap:t0?record=r.pcapng&drop=0.5",
                "tap:t0?record=/srv/edge/r.pcapng&drop=0.5",
            ),
            ("pigeon:x", "pigeon:x"),
        ] {
            assert_eq!(beside(word, folder), full);
        }
    }

    #[test]
    fn a_word_is_read_without_opening_anything() {
        for (word, way) in [
            ("afpacket:nothing0?blocks=8&drop=0.5", Way::Both),
            ("afxdp:nothing0?ring=64", Way::In),
            ("tap:t0?mtu=1400", Way::Out),
            ("vnic:nothing.pcap?rate=1M", Way::Both),
            ("xdp:nothing0?mode=native", Way::Both),
            ("mem:nothing.pcap", Way::In),
            ("nothing.pcap", Way::Out),
            ("null:", Way::Out),
        ] {
            assert!(spelled(word, way).is_ok(), "{word}");
        }
        for (word, way, what) in [
            ("pigeon:x", Way::In, "no port of kind"),
            ("afpacket:x?block=8", Way::Both, "no such option"),
            ("afpacket:x?blocks=1", Way::Both, "from 2 to 4096"),
            ("afxdp:x?ring=65", Way::Both, "a power of two"),
            ("tap:a-name-of-an-interface", Way::Both, "no name"),
            ("tap:x?drop=2", Way::Both, "a share"),
            ("vnic:", Way::Both, "names no file"),
            ("mem:", Way::In, "names no file"),
            ("mem:x.pcap", Way::Out, "cannot be written to"),
            ("null:", Way::In, "cannot be read from"),
            ("x.pcap", Way::Both, "a capture goes one way"),
            ("xdp:x?mode=fast", Way::Both, "mode"),
        ] {
            let error = spelled(word, way).unwrap_err().to_string();
            assert!(error.contains(what), "{word}: {error}");
        }
    }

    #[test]
    fn packets_go_one_way_only() {
        assert!(matches!(
            input("null:", &OPTIONS),
            Err(PortError::Direction { .. })
        ));
        assert!(matches!(
            output("mem:a.pcap", &[]),
            Err(PortError::Direction { .. })
        ));
    }
}
