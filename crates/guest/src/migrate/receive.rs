//! The receiving end: a guest arrives, gets packets over the connection, and ends.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use millrace_dataplane::packet::MAX_BURST;
use millrace_dataplane::worker::foreign::{Foreign, Given};
use serde::{Deserialize, Serialize};

use super::away::{self, BURST, END, PACKET, Told};
use crate::element::Element;
use crate::snapshot::format::{self, Kind};
use crate::snapshot::restore::Arrival;
use crate::snapshot::{SnapshotError, image::Head};

/// The longest packet, bytes.
const LONGEST: usize = 1 << 18;
/// How long a connection may be silent while a guest arrives.
const SILENCE: Duration = Duration::from_secs(30);

/// The receiver's answer to what has come.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// why not; none: go on
    pub refused: Option<(String, String)>,
}

impl Reply {
    fn of<T>(result: &Result<T, SnapshotError>) -> Self {
        Self {
            refused: result.as_ref().err().map(|e| (e.to_string(), e.help())),
        }
    }
}

/// An event of a receiver.
pub enum Event<'a> {
    /// this guest is arriving
    Arrives(&'a Head),
    /// it is there, and its packets come
    There,
}

/// Files that an arriving guest may open here, instead of what it might where it began: see
/// [`crate::command::Spec::only`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// may be read
    pub read: Vec<PathBuf>,
    /// may be read and written
    pub write: Vec<PathBuf>,
}

/// Takes a guest from a connection, whose other end is known to be the user's own, and runs it until its packets end.
/// Its standard output goes to the host's descriptor `output`; with `only` it may open nothing else. Gives its name, how many packets came, and what
/// became of it.
///
/// # Errors
/// It cannot be gone on with here, which the sender is told; or the connection ends in the middle.
pub fn receive(
    stream: &UnixStream,
    output: i32,
    only: Option<&Only>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(String, u64, Told), SnapshotError> {
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(super::PATIENCE))?;
    let mut input = BufReader::with_capacity(1 << 18, stream);
    let mut body = Vec::new();
    let arriving = (|| {
        format::begins(&mut input)?;
        if format::take(&mut input, &mut body)? != Kind::Head {
            return Err(SnapshotError::broken("it does not begin with who it is"));
        }
        let mut head: Head = format::document(&body)?;
        if let Some(only) = only {
            head.spec.read.clone_from(&only.read);
            head.spec.write.clone_from(&only.write);
            head.spec.only = true;
        }
        tell(Event::Arrives(&head));
        Arrival::new(head, output)
    })();
    away::put(&mut &*stream, &Reply::of(&arriving))?;
    let arrived = arriving?.fill(&mut input, &mut body);
    away::put(&mut &*stream, &Reply::of(&arrived))?;
    let guest = arrived?;
    let name = guest.name().to_owned();
    tell(Event::There);
    // From here on silence is an interface without packets.
    stream.set_read_timeout(None)?;
    let mut element = Element::new(guest);
    let packets = serve(stream, &mut input, &mut element)?;
    let epilogue = element.finish();
    let told = Told {
        facts: epilogue.facts,
        failure: epilogue.failure,
    };
    away::put(&mut &*stream, &told)?;
    Ok((name, packets, told))
}

/// Runs the guest over the bursts that come, until their end; how many packets there were.
fn serve(
    stream: &UnixStream,
    input: &mut impl Read,
    element: &mut Element,
) -> Result<u64, SnapshotError> {
    let mut total = 0;
    let (mut heads, mut bytes, mut answer) = (Vec::new(), Vec::new(), Vec::new());
    let mut given: Vec<Given> = Vec::new();
    loop {
        match away::word(input)? {
            BURST => {}
            END => return Ok(total),
            other => return Err(SnapshotError::broken(format!("a message of kind {other}"))),
        }
        let count = away::word(input)? as usize;
        if count > MAX_BURST {
            return Err(SnapshotError::broken(format!("a burst of {count} packets")));
        }
        heads.resize(count * PACKET, 0);
        input.read_exact(&mut heads)?;
        given.clear();
        let mut length = 0_usize;
        for head in heads.chunks_exact(PACKET) {
            let (time, rest) = head.split_at(8);
            let words: Vec<u32> = rest
                .chunks_exact(4)
                .map(|w| w.try_into().map_or(0, u32::from_le_bytes))
                .collect();
            let [own, wire, port] = words.as_slice() else {
                return Err(SnapshotError::broken("a packet without its lengths"));
            };
            if *own as usize > LONGEST {
                return Err(SnapshotError::broken(format!("a packet of {own} bytes")));
            }
            length += *own as usize;
            given.push(Given {
                data: std::ptr::null_mut(),
                time: time.try_into().map_or(0, u64::from_le_bytes),
                length: *own,
                wire: *wire,
                room: *own,
                port: (*port).min(1) as u16,
                fate: 0,
            });
        }
        bytes.resize(length, 0_u8);
        input.read_exact(&mut bytes)?;
        let mut rest = bytes.as_mut_slice();
        for packet in &mut given {
            let (own, others) = rest.split_at_mut(packet.length as usize);
            packet.data = own.as_mut_ptr();
            rest = others;
        }
        if given.is_empty() {
            element.idle();
        } else {
            // SAFETY: each packet lies in a part of `bytes` of its own, which is not touched during the call.
            unsafe { element.burst(&mut given) };
        }
        total += count as u64;
        answer.clear();
        answer.extend(0_u32.to_le_bytes());
        for packet in &given {
            answer.extend(u32::from(packet.fate).to_le_bytes());
        }
        away::put_sent(&mut answer, &element.take_sent());
        (&mut &*stream).write_all(&answer)?;
    }
}
