//! Which packets: by their headers, the port that they came in at, and what became of them.

use std::net::IpAddr;

use millrace_wire::{Rule, Stop, Version, walk, word as word_at};

/// Why a filter is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct FilterError {
    /// what is wrong
    pub what: String,
}

/// Words of the language, for those who have mistaken one.
pub const WORDS: &str = "`drop [REASON]`, `forward [PORT]`, `pass`, `flood`, `consume`, `abort`, `in PORT`, `host ADDRESS`, \
`src ADDRESS`, `dst ADDRESS`, `port N`, `sport N`, `dport N`, `ip`, `ip6`, `tcp`, `udp`, `icmp`, `icmp6`, `any`, joined by `and`, \
with `not` before a word";

/// A condition on one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// its fate begins with this word, and names this
    Fate(&'static str, Option<String>),
    In(String),
    Address(Side, IpAddr),
    Port(Side, u16),
    Protocol(u8),
    Version(u8),
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
    Either,
}

/// Conditions that all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    words: Vec<(bool, Word)>,
}

/// What a filter asks of a packet.
pub struct Seen<'s> {
    /// the frame as it came in
    pub frame: &'s [u8],
    /// the name of its ingress port
    pub port: &'s str,
    /// what became of it, in words; none where that is not known yet
    pub fate: Option<&'s str>,
}

fn error<T>(what: String) -> Result<T, FilterError> {
    Err(FilterError { what })
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// A word that is none, or one that lacks what it is about.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut words = Vec::new();
        for part in text
            .split_whitespace()
            .collect::<Vec<_>>()
            .split(|w| *w == "and")
        {
            let (holds, part) = match part {
                ["not", rest @ ..] => (false, rest),
                all => (true, all),
            };
            words.push((holds, word(part, text)?));
        }
        Ok(Self { words })
    }

    /// Whether it asks what became of a packet.
    #[must_use]
    pub fn asks_fate(&self) -> bool {
        self.words.iter().any(|(_, w)| matches!(w, Word::Fate(..)))
    }

    /// Whether a packet fits. What asks for a fate that is not known fits.
    #[must_use]
    pub fn fits(&self, seen: &Seen<'_>) -> bool {
        self.words
            .iter()
            .all(|(holds, word)| match (word, seen.fate) {
                (Word::Fate(..), None) => true,
                _ => word.fits(seen) == *holds,
            })
    }
}

fn word(part: &[&str], text: &str) -> Result<Word, FilterError> {
    let address = |side, text: &str| match text.parse() {
        Ok(address) => Ok(Word::Address(side, address)),
        Err(_) => error(format!("`{text}` is no address")),
    };
    let port = |side, text: &str| match text.parse() {
        Ok(port) => Ok(Word::Port(side, port)),
        Err(_) => error(format!("`{text}` is no port: a number up to 65535")),
    };
    let named = |fate, rest: &[&str]| Ok(Word::Fate(fate, rest.first().map(|r| (*r).to_owned())));
    match part {
        ["drop" | "dropped", rest @ ..] if rest.len() < 2 => named("dropped", rest),
        ["forward" | "forwarded", rest @ ..] if rest.len() < 2 => named("forwarded", rest),
        ["pass" | "passed"] => named("passed", &[]),
        ["flood" | "flooded"] => named("flooded", &[]),
        ["consume" | "consumed"] => named("consumed", &[]),
        ["abort" | "aborted"] => named("aborted", &[]),
        ["in", name] => Ok(Word::In((*name).to_owned())),
        ["host", a] => address(Side::Either, a),
        ["src", a] => address(Side::Source, a),
        ["dst", a] => address(Side::Destination, a),
        ["port", p] => port(Side::Either, p),
        ["sport", p] => port(Side::Source, p),
        ["dport", p] => port(Side::Destination, p),
        ["tcp"] => Ok(Word::Protocol(6)),
        ["udp"] => Ok(Word::Protocol(17)),
        ["icmp"] => Ok(Word::Protocol(1)),
        ["icmp6"] => Ok(Word::Protocol(58)),
        ["ip"] => Ok(Word::Version(4)),
        ["ip6"] => Ok(Word::Version(6)),
        ["any"] => Ok(Word::Any),
        [] => error(format!("`{text}`: a word is missing")),
        other => error(format!("`{}` is no word of a filter", other.join(" "))),
    }
}

impl Word {
    fn fits(&self, seen: &Seen<'_>) -> bool {
        match self {
            Self::Any => return true,
            Self::In(name) => return name.eq_ignore_ascii_case(seen.port),
            Self::Fate(fate, name) => {
                let Some(is) = seen.fate else { return true };
                let begins = is == *fate
                    || is.starts_with(&format!("{fate} "))
                    || is.starts_with(&format!("{fate}:"));
                let last = is.rsplit(' ').next().unwrap_or_default();
                return begins && name.as_ref().is_none_or(|n| n.eq_ignore_ascii_case(last));
            }
            _ => {}
        }
        let Some(headers) = Headers::of(seen.frame) else {
            return false;
        };
        let sides = |side: Side, source: bool, destination: bool| match side {
            Side::Source => source,
            Side::Destination => destination,
            Side::Either => source || destination,
        };
        match self {
            Self::Address(side, a) => sides(*side, headers.source == *a, headers.destination == *a),
            Self::Port(side, p) => headers
                .ports
                .is_some_and(|(s, d)| sides(*side, s == *p, d == *p)),
            Self::Protocol(p) => headers.protocol == *p,
            Self::Version(4) => headers.source.is_ipv4(),
            Self::Version(_) => headers.source.is_ipv6(),
            Self::Any | Self::In(_) | Self::Fate(..) => true,
        }
    }
}

struct Headers {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ports: Option<(u16, u16)>,
}

impl Headers {
    fn of(frame: &[u8]) -> Option<Self> {
        let layers = walk(frame, Rule::NIC);
        let ip = layers.ip?;
        let address = |at: usize, bytes: usize| frame.get(at..at + bytes);
        let (source, destination) = match ip.version {
            Version::V4 => (
                four(address(ip.at + 12, 4)?)?,
                four(address(ip.at + 16, 4)?)?,
            ),
            Version::V6 => (
                six(address(ip.at + 8, 16)?)?,
                six(address(ip.at + 24, 16)?)?,
            ),
        };
        let upper = ip.upper?;
        let has_ports = matches!(upper.protocol, 6 | 17) && layers.stop == Stop::Transport;
        let ports =
            has_ports.then(|| Some((word_at(frame, upper.at)?, word_at(frame, upper.at + 2)?)));
        Some(Self {
            source,
            destination,
            protocol: upper.protocol,
            ports: ports.flatten(),
        })
    }
}

fn four(bytes: &[u8]) -> Option<IpAddr> {
    Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?))
}

fn six(bytes: &[u8]) -> Option<IpAddr> {
    Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_they_say() {
        let frame = millrace_traffic::language::packet(
            "eth 02:00:00:00:00:01 > 02:00:00:00:00:02 / ip 10.0.0.1 > 192.0.2.1 / udp 5 > 53",
        )
        .unwrap();
        let fits = |text: &str, fate| {
            let seen = Seen {
                frame: &frame,
                port: "lan",
                fate,
            };
            Filter::parse(text).unwrap().fits(&seen)
        };
        for yes in [
            "any",
            "udp and dport 53",
            "src 10.0.0.1 and not tcp",
            "host 192.0.2.1 and in lan",
            "port 5 and ip",
            "drop no_flow",
            "drop and udp",
        ] {
            assert!(fits(yes, Some("dropped: no_flow")), "{yes}");
        }
        for no in [
            "tcp",
            "sport 53",
            "ip6",
            "in wan",
            "dst 10.0.0.1",
            "forward",
            "drop full",
            "not drop",
            "not udp",
        ] {
            assert!(!fits(no, Some("dropped: no_flow")), "{no}");
        }
        assert!(fits("forward wan", Some("forwarded to wan")));
        assert!(!fits("forward lan", Some("forwarded to wan")));
        // Before it is known, a fate may be any.
        assert!(fits("not drop", None) && fits("drop no_flow", None));
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for wrong in [
            "",
            "and",
            "udp and",
            "host",
            "host 10.0.0",
            "port 70000",
            "drop a b",
            "tcp udp",
            "not",
        ] {
            assert!(Filter::parse(wrong).is_err(), "{wrong}");
        }
    }
}
