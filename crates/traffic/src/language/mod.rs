//! The language of packet tests (docs/packet-tests.md): packets as text, and whole cases.
//!
//! [`Packet`] goes both ways: from text to bytes, and from any bytes to text that gives the same bytes
//! again. [`Case`] is a `.pkt` file.

mod case;
mod cursor;
mod decode;
mod encode;
mod error;
mod layer;
mod lex;
mod read;
mod show;
mod statement;
mod steps;

pub use case::{Action, Case, Expectation, Fate, Port, Ports, Setting, Step};
pub use error::Error;
pub use layer::Packet;
pub use steps::Steps;

/// The bytes of a packet written in the language, as in `eth / ip 10.0.0.1 > 192.0.2.1 / udp 1 > 53`.
///
/// # Errors
/// Where and what is wrong, and what is allowed there.
pub fn packet(text: &str) -> Result<Vec<u8>, Error> {
    text.parse::<Packet>().map(|packet| packet.bytes().to_vec())
}

/// A packet in the language, on one line. The text gives the same bytes again, whatever they are.
pub fn describe(bytes: &[u8]) -> String {
    Packet::decode(bytes).to_string()
}

/// As [`describe`], but a payload of more than 24 bytes is cut short and its length given: for people.
pub fn summarise(bytes: &[u8]) -> String {
    format!("{:#}", Packet::decode(bytes))
}
