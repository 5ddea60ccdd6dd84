//! Reading the words of a packet one after the other.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::error::Fault;
use super::lex::Word;

/// The words of a packet, read from the front.
pub(super) struct Cursor<'a> {
    pub(super) words: &'a [Word],
    /// The column after the last word.
    pub(super) end: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn column(&self) -> usize {
        self.words.first().map_or(self.end, |word| word.column)
    }

    /// The next word of the layer, unless it is quoted or the layer ends here.
    pub(super) fn peek(&self) -> Option<&'a str> {
        let word = self.words.first()?;
        (!word.quoted && word.text != "/").then_some(word.text.as_str())
    }

    pub(super) fn step(&mut self) {
        self.words = self.words.get(1..).unwrap_or(&[]);
    }

    pub(super) fn at_end_of_layer(&self) -> bool {
        self.words
            .first()
            .is_none_or(|word| !word.quoted && word.text == "/")
    }

    /// What stands where something else is expected.
    pub(super) fn found(&self) -> String {
        match self.words.first() {
            None => "the line ends".to_owned(),
            Some(word) if word.quoted => "here stands a text in quotes".to_owned(),
            Some(word) => format!("here stands `{}`", shorten(&word.text)),
        }
    }

    pub(super) fn expected<T>(&self, what: &str) -> Result<T, Fault> {
        Err(Fault::new(
            self.column(),
            format!("{}; expected {what}", self.found()),
        ))
    }

    pub(super) fn parse<T: FromStr>(&mut self, what: &str) -> Result<T, Fault> {
        match self.peek().and_then(|word| word.parse().ok()) {
            Some(value) => {
                self.step();
                Ok(value)
            }
            None => self.expected(what),
        }
    }

    pub(super) fn literal(&mut self, word: &str) -> Result<(), Fault> {
        if self.peek() == Some(word) {
            self.step();
            return Ok(());
        }
        self.expected(&format!("`{word}`"))
    }

    /// A number of this many bits, decimal or 0x….
    pub(super) fn number(&mut self, word: &str, bits: u32) -> Result<u64, Fault> {
        let most = u64::MAX >> (64 - bits);
        match self.peek().and_then(number) {
            Some(value) if value <= most => {
                self.step();
                Ok(value)
            }
            _ => self.expected(&format!(
                "the number of `{word}`: 0 to {most}, decimal or 0x…"
            )),
        }
    }

    pub(super) fn mac(&mut self) -> Result<[u8; 6], Fault> {
        match self.peek().and_then(mac) {
            Some(mac) => {
                self.step();
                Ok(mac)
            }
            None => self.expected("a MAC address, as in 02:00:00:00:00:01"),
        }
    }

    pub(super) fn v4(&mut self) -> Result<Ipv4Addr, Fault> {
        self.parse("an IPv4 address, as in 10.0.0.1")
    }

    pub(super) fn v6(&mut self) -> Result<Ipv6Addr, Fault> {
        self.parse("an IPv6 address, as in 2001:db8::1")
    }

    pub(super) fn port(&mut self) -> Result<u16, Fault> {
        self.number("the port", 16).map(|port| port as u16)
    }

    /// One word of hex digits, at most this many bytes.
    pub(super) fn hex(&mut self, what: &str, most: usize) -> Result<Vec<u8>, Fault> {
        match self.peek().and_then(hex) {
            Some(bytes) if bytes.len() <= most => {
                self.step();
                Ok(bytes)
            }
            Some(bytes) => Err(Fault::new(
                self.column(),
                format!("{what} of {} bytes; at most {most} fit", bytes.len()),
            )),
            None => self.expected(&format!("{what} in hex, two digits a byte, as in 020405b4")),
        }
    }
}

fn shorten(text: &str) -> String {
    let mut characters = text.chars();
    let short: String = characters.by_ref().take(40).collect();
    if characters.next().is_some() {
        short + "…"
    } else {
        short
    }
}

/// A number, decimal or 0x….
pub(super) fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // A sign is accepted by from_str_radix and not here.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// Bytes in hex, two digits a byte.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}
