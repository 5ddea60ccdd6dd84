//! A guest in another process: its packets go there over a connection, and their fates come back.
//!
//! | question | answer |
//! | --- | --- |
//! | 1 (`BURST`), how many packets; of each its time, length, length on the wire and port; then their bytes | 0, fates, how many packets it sent of its own; of each its port, 1 if it leaves behind the burst, its length, its bytes; or 1, it does not run any more |
//! | 2 (`END`) | the length of a document, and the document: what became of it |
//!
//! Numbers are 4 bytes, times 8, all little endian. A burst without packets is an idle moment.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use millrace_dataplane::worker::foreign::{DROP, Epilogue, Given, ON};
use serde::{Deserialize, Serialize};

use crate::sent::Sent;

/// A burst.
pub const BURST: u32 = 1;
/// No packets will come any more.
pub const END: u32 = 2;
/// Bytes of what stands before each packet's bytes.
pub const PACKET: usize = 20;
/// The most packets that a guest sends of its own in one answer, and the longest of them, bytes.
const SENT: u32 = 1 << 16;
const LONGEST_SENT: u32 = 0xffff;
/// The longest document, bytes.
const LONGEST: u32 = 1 << 20;

/// Outcome of the guest, as reported.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Told {
    /// as [`Epilogue::facts`]
    pub facts: Vec<String>,
    /// as [`Epilogue::failure`]
    pub failure: Option<(String, String)>,
}

/// The sender's end.
pub struct Away {
    stream: UnixStream,
    buffer: Vec<u8>,
    /// what it sent of its own, until somebody takes it
    pub sent: Vec<Sent>,
    /// why the connection is no more
    pub lost: Option<String>,
    /// where it went, for reports
    pub to: String,
}

impl Away {
    /// Over a connection on which a guest has arrived. A burst may take it `limit`.
    ///
    /// # Errors
    /// The system's.
    pub fn new(stream: UnixStream, to: String, limit: Duration) -> io::Result<Self> {
        let patience = limit.saturating_add(super::PATIENCE);
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
            sent: Vec::new(),
            lost: None,
            to,
        })
    }

    /// Gives it packets. False when it does not run any more, or its process has gone; then all packets go on.
    ///
    /// # Safety
    /// Each packet's bytes are valid, and nobody else's, during the call.
    pub unsafe fn burst(&mut self, packets: &mut [Given]) -> bool {
        if self.lost.is_some() {
            return false;
        }
        let bytes = &mut self.buffer;
        bytes.clear();
        bytes.extend(BURST.to_le_bytes());
        bytes.extend((packets.len() as u32).to_le_bytes());
        for packet in packets.iter() {
            bytes.extend(packet.time.to_le_bytes());
            for word in [packet.length, packet.wire, u32::from(packet.port)] {
                bytes.extend(word.to_le_bytes());
            }
        }
        for packet in packets.iter() {
            // SAFETY: as the caller promises.
            let data = unsafe { std::slice::from_raw_parts(packet.data, packet.length as usize) };
            bytes.extend_from_slice(data);
        }
        match self.exchange(packets) {
            Ok(runs) => runs,
            Err(error) => {
                self.lost = Some(format!(
                    "the process that it was moved to has gone: {error}"
                ));
                false
            }
        }
    }

    fn exchange(&mut self, packets: &mut [Given]) -> io::Result<bool> {
        self.stream.write_all(&self.buffer)?;
        if word(&mut self.stream)? != 0 {
            return Ok(false);
        }
        self.buffer.resize(packets.len() * 4, 0);
        self.stream.read_exact(&mut self.buffer)?;
        for (packet, fate) in packets.iter_mut().zip(self.buffer.chunks_exact(4)) {
            let fate = fate.try_into().map_or(0, u32::from_le_bytes);
            packet.fate = if fate == u32::from(ON) { ON } else { DROP };
        }
        let count = word(&mut self.stream)?;
        if count > SENT {
            return Err(io::Error::other(format!("{count} packets of its own")));
        }
        for _ in 0..count {
            let [port, after] = [word(&mut self.stream)?, word(&mut self.stream)?];
            let length = word(&mut self.stream)?;
            if length > LONGEST_SENT {
                return Err(io::Error::other(format!("a packet of {length} bytes")));
            }
            let mut bytes = vec![0; length as usize];
            self.stream.read_exact(&mut bytes)?;
            self.sent.push(Sent {
                port: port.min(1) as u16,
                after: after != 0,
                bytes,
            });
        }
        Ok(true)
    }

    /// No packets will come any more: what became of it.
    pub fn finish(&mut self) -> Epilogue {
        let told = match &self.lost {
            Some(why) => Err(why.clone()),
            None => self.end().map_err(|e| e.to_string()),
        };
        let told = told.unwrap_or_else(|why| Told {
            facts: Vec::new(),
            failure: Some((why, "look at what `millrace receive` says".into())),
        });
        Epilogue {
            facts: told.facts,
            failure: told.failure,
            memory: 0,
        }
    }

    fn end(&mut self) -> io::Result<Told> {
        self.stream.write_all(&END.to_le_bytes())?;
        // The program may work on for a while before it ends.
        self.stream
            .set_read_timeout(Some(Duration::from_secs(60)))?;
        document(&mut self.stream)
    }
}

/// Packets that a guest has sent of its own, as [`Away`] reads them.
pub fn put_sent(answer: &mut Vec<u8>, sent: &[Sent]) {
    let sent = sent.get(..SENT as usize).unwrap_or(sent);
    answer.extend((sent.len() as u32).to_le_bytes());
    for packet in sent {
        let words = [
            u32::from(packet.port),
            u32::from(packet.after),
            packet.bytes.len() as u32,
        ];
        answer.extend(words.into_iter().flat_map(u32::to_le_bytes));
        answer.extend_from_slice(&packet.bytes);
    }
}

/// Reads a number of 4 bytes.
///
/// # Errors
/// The connection's.
pub fn word(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Reads a document.
///
/// # Errors
/// The connection's; or it is too long, or not what it should be.
pub fn document<T: serde::de::DeserializeOwned>(input: &mut impl Read) -> io::Result<T> {
    let length = word(input)?;
    if length > LONGEST {
        return Err(io::Error::other("an answer that is too long"));
    }
    let mut text = Vec::new();
    let got = input.take(u64::from(length)).read_to_end(&mut text)?;
    if got != length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// Writes one.
///
/// # Errors
/// The connection's.
pub fn put(out: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(what)?;
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend(text);
    out.write_all(&bytes)
}
