//! Frames of a hand-over: a length of 4 bytes in network order, a kind of 1, and the kind's content.
//!
//! ```text
//! receiver                                   sender
//! Hello: fingerprint, a number drawn now
//!                                            Offer: names, bucket, version, time, bytes, digest, a number, tag
//! Go, or No: why
//!                                            Piece: bytes (as often as there are some), End
//! Done: tag, or No: why
//!                                            Go
//! ```
//!
//! Behind the last of these the sender may offer the next bucket over the same stream; its tag is over that of Done in place of the receiver's number. The
//! receiver ends a stream over which nothing more comes.
//!
//! In place of an offer a node may ask to be vouched for (`millrace_cluster::vouch`): Ask, and then Answer. Or it tells what changes of its buckets,
//! for a copy ([`crate::Standby`]): Follow, then Rows as often as there are some, each answered by Go, and End. Or somebody looks at what the machine has
//! counted ([`crate::Viewer`]): Look, and then Figures.
//!
//! A tag is that of the cluster's secret over the numbers of both ends, so that neither a stream of before nor one of somebody else is taken, also
//! where there is no TLS.

use std::io::{Read, Write};

use millrace_cluster::Refused;

/// What all of this is.
pub const MAGIC: &[u8; 8] = b"MR-PEER1";
/// Bytes of a frame.
const MOST: usize = 256 << 10;
// Whatever workers tell fits, behind its kind and its tag.
const _: () = assert!(millrace_dataplane::copies::FRAME + 33 <= MOST);
/// Bytes of entries in a piece.
pub const PIECE: usize = 192 << 10;
/// The kind of its frame.
const PIECES: u8 = 4;
/// Bytes of what a machine has counted, as JSON.
pub const FIGURES: usize = 64 << 10;
/// Bytes of a node's name, and of a reason.
const TEXT: usize = 512;

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// the receiver: its fingerprint, and a number drawn for this connection
    Hello {
        fingerprint: [u8; 32],
        nonce: [u8; 32],
    },
    /// the sender: what it has
    Offer(Box<Offer>),
    /// the receiver: send it
    Go,
    /// entries
    Piece(Vec<u8>),
    /// there are no more
    End,
    /// they are put in
    Done { tag: [u8; 32] },
    /// they are not
    No(String),
    /// another node: does this one vouch for it? JSON
    Ask { text: Vec<u8>, tag: [u8; 32] },
    /// the answer, JSON
    Answer { text: Vec<u8>, tag: [u8; 32] },
    /// another node: it tells what changes of its buckets; the offer's bucket is the number of its workers, its bytes are its life
    Follow(Box<Offer>),
    /// what has changed, answered by [`Message::Go`]
    Rows { tag: [u8; 32], bytes: Vec<u8> },
    /// somebody who knows the secret: what has this machine counted?
    Look { tag: [u8; 32] },
    /// the answer, JSON
    Figures { text: Vec<u8>, tag: [u8; 32] },
}

/// A bucket that is offered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// the sender's name
    pub from: String,
    /// the receiver's
    pub to: String,
    /// what function, plan and buckets this is of
    pub fingerprint: [u8; 32],
    /// which one
    pub bucket: u32,
    /// the table's version
    pub version: u64,
    /// the sender's clock, ns since the epoch
    pub time: u64,
    /// bytes of all entries
    pub bytes: u64,
    /// SHA-256 of these
    pub digest: [u8; 32],
    /// a number drawn for this hand-over
    pub nonce: [u8; 32],
    /// that of the secret over the receiver's number and all before
    pub tag: [u8; 32],
}

impl Offer {
    /// All but the tag, as it is sent.
    pub fn said(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for text in [&self.from, &self.to] {
            bytes.extend((text.len() as u16).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend(self.fingerprint);
        bytes.extend(self.bucket.to_be_bytes());
        for number in [self.version, self.time, self.bytes] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.digest);
        bytes.extend(self.nonce);
        bytes
    }
}

/// Writes a frame.
///
/// # Errors
/// The stream took it not in time, or has ended.
pub fn write(to: &mut dyn Write, message: &Message) -> Result<(), Refused> {
    let (kind, content): (u8, Vec<u8>) = match message {
        Message::Hello { fingerprint, nonce } => {
            (1, [&MAGIC[..], &fingerprint[..], &nonce[..]].concat())
        }
        Message::Offer(offer) => (2, [&offer.said()[..], &offer.tag[..]].concat()),
        Message::Go => (3, Vec::new()),
        Message::Piece(bytes) => (PIECES, bytes.clone()),
        Message::End => (5, Vec::new()),
        Message::Done { tag } => (6, tag.to_vec()),
        Message::No(why) => (7, why.bytes().take(TEXT).collect()),
        Message::Ask { text, tag } => (8, [&tag[..], text].concat()),
        Message::Answer { text, tag } => (9, [&tag[..], text].concat()),
        Message::Follow(offer) => (10, [&offer.said()[..], &offer.tag[..]].concat()),
        Message::Rows { tag, bytes } => (11, [&tag[..], bytes].concat()),
        Message::Look { tag } => (12, tag.to_vec()),
        Message::Figures { text, tag } => (13, [&tag[..], text].concat()),
    };
    frame(to, kind, &content)
}

/// Writes [`Message::Piece`] of at most [`PIECE`] bytes.
///
/// # Errors
/// As of [`write`].
pub fn write_piece(to: &mut dyn Write, bytes: &[u8]) -> Result<(), Refused> {
    frame(to, PIECES, bytes)
}

fn frame(to: &mut dyn Write, kind: u8, content: &[u8]) -> Result<(), Refused> {
    let head = (content.len() as u32 + 1).to_be_bytes();
    let frame = [&head[..], &[kind], content].concat();
    let written = to.write_all(&frame).and_then(|()| to.flush());
    written.map_err(|e| refused(format!("it takes nothing: {e}")))
}

/// Why no frame was read.
pub enum Unread {
    /// the stream ended, within a frame or between two, or gave nothing in time
    Gone(Refused),
    /// it gave what is no frame
    NoFrame(Refused),
}

/// Reads a frame.
///
/// # Errors
/// The stream ends or gives nothing in time, or this is no frame.
pub fn read(from: &mut dyn Read) -> Result<Message, Refused> {
    next(from).map_err(|(Unread::Gone(why) | Unread::NoFrame(why))| why)
}

/// Reads a frame, where it matters whether the other end is gone.
///
/// # Errors
/// As of [`read`].
pub fn next(from: &mut dyn Read) -> Result<Message, Unread> {
    let (mut head, mut kind) = ([0; 4], [0]);
    let gone = |e: std::io::Error| Unread::Gone(refused(format!("it says nothing: {e}")));
    let no_frame = |what: String| {
        Unread::NoFrame(refused(format!(
            "it sent {what}: it is no peer, or of another version"
        )))
    };
    from.read_exact(&mut head).map_err(gone)?;
    let length = u32::from_be_bytes(head) as usize;
    if !(1..=MOST).contains(&length) {
        return Err(no_frame(format!(
            "a frame of {length} bytes, of which there are at most {MOST}"
        )));
    }
    from.read_exact(&mut kind).map_err(gone)?;
    let mut content = vec![0; length - 1];
    from.read_exact(&mut content).map_err(gone)?;
    match kind {
        // As it came: most of what goes between machines.
        [PIECES] => Ok(Message::Piece(content)),
        [kind] => parse(kind, &content).ok_or_else(|| no_frame("what is no frame".to_owned())),
    }
}

fn parse(kind: u8, content: &[u8]) -> Option<Message> {
    let mut rest = Rest(content);
    let message = match kind {
        1 => {
            if rest.array::<8>()? != *MAGIC {
                return None;
            }
            Message::Hello {
                fingerprint: rest.array()?,
                nonce: rest.array()?,
            }
        }
        2 => Message::Offer(Box::new(rest.offer()?)),
        3 => Message::Go,
        5 => Message::End,
        6 => Message::Done { tag: rest.array()? },
        7 => {
            let text = rest.all();
            let text = String::from_utf8_lossy(text.get(..TEXT).unwrap_or(&text));
            // It may end up on a terminal.
            Message::No(text.chars().filter(|c| !c.is_control()).collect())
        }
        8 | 9 => {
            let (tag, text) = (rest.array()?, rest.all());
            let fits = text.len() <= 2 * TEXT;
            match (fits, kind) {
                (true, 8) => Message::Ask { text, tag },
                (true, _) => Message::Answer { text, tag },
                (false, _) => return None,
            }
        }
        10 => Message::Follow(Box::new(rest.offer()?)),
        11 => Message::Rows {
            tag: rest.array()?,
            bytes: rest.all(),
        },
        12 => Message::Look { tag: rest.array()? },
        13 => {
            let (tag, text) = (rest.array()?, rest.all());
            if text.len() > FIGURES {
                return None;
            }
            Message::Figures { text, tag }
        }
        _ => return None,
    };
    rest.0.is_empty().then_some(message)
}

/// What is left to read of a frame.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn offer(&mut self) -> Option<Offer> {
        Some(Offer {
            from: self.text()?,
            to: self.text()?,
            fingerprint: self.array()?,
            bucket: u32::from_be_bytes(self.array()?),
            version: u64::from_be_bytes(self.array()?),
            time: u64::from_be_bytes(self.array()?),
            bytes: u64::from_be_bytes(self.array()?),
            digest: self.array()?,
            nonce: self.array()?,
            tag: self.array()?,
        })
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let text = String::from_utf8(text.to_vec()).ok();
        text.filter(|t| t.len() <= TEXT && !t.chars().any(char::is_control))
    }

    fn all(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }
}

/// That of a machine whose clock is so many nanoseconds from this one's.
pub fn apart_by(ns: u64) -> Refused {
    let apart = std::time::Duration::from_nanos(ns).as_secs_f64();
    refused(format!(
        "the clocks of the two machines are {apart:.1} s apart: have them set by NTP or PTP"
    ))
}

/// A refusal, for a person.
pub fn refused(why: String) -> Refused {
    Refused { why }
}
