//! Plain names of interfaces: `eth0` becomes the best kind of port that the machine allows, which is told.
//!
//! That is `afxdp:` where its program runs in the driver (in the stack it is no faster than `afpacket:`, and loses what the
//! stack has merged), and where the host has no address on the interface: the host's own stack sees nothing of what
//! `afxdp:` receives, so a machine would cut off who is logged in over it. Otherwise it is `afpacket:`, with the reason.

use super::device::{address, exists};
use super::{LiveOptions, LivePort, PortError, Query, afpacket, afxdp};

/// Longest name of an interface, bytes (IFNAMSIZ without the final zero).
const LONGEST: usize = 15;

/// Whether a word may be the name of an interface, with options: it has no scheme and names no path.
pub fn may_be(word: &str) -> bool {
    let name = word.split('?').next().unwrap_or_default();
    (1..=LONGEST).contains(&name.len())
        && !name.contains(['/', ':'])
        && !name.contains(char::is_whitespace)
        && !matches!(name, "-" | "." | "..")
}

/// Whether a word is the name of an interface rather than of a file.
pub fn names(word: &str) -> bool {
    may_be(word)
        && !std::path::Path::new(word).exists()
        && exists(word.split('?').next().unwrap_or_default())
}

/// What a plain name stands for.
pub struct Choice {
    /// the word of a port, with its kind
    pub word: String,
    /// the choice and its reason, in one line
    pub why: String,
}

/// Opens the port, and gives what its name stands for.
///
/// # Errors
/// There is no such interface, an option belongs to one kind alone, or no kind can be opened.
pub fn open(
    word: &str,
    options: &LiveOptions<'_>,
    open: &dyn Fn(&str, &LiveOptions<'_>) -> Result<LivePort, PortError>,
) -> Result<(Choice, LivePort), PortError> {
    let (name, asked) = word.split_once('?').unwrap_or((word, ""));
    if !may_be(word) || !exists(name) {
        return Err(missing(word, name));
    }
    plain_options(word, name, asked)?;
    let with = |scheme: &str, more: &str| {
        let all: Vec<_> = [more, asked]
            .into_iter()
            .filter(|o| !o.is_empty())
            .collect();
        match all.is_empty() {
            true => format!("{scheme}:{name}"),
            false => format!("{scheme}:{name}?{}", all.join("&")),
        }
    };
    let why = match address(name) {
        Some(address) => format!(
            "the host has the address {address} there, and its own stack sees nothing of what afxdp: receives"
        ),
        None => match open(&with(afxdp::KIND.scheme, "mode=native"), options) {
            Ok(port) => {
                let word = with(afxdp::KIND.scheme, "");
                let why = format!("{name} is served as {word}, the fastest kind for it");
                return Ok((Choice { word, why }, port));
            }
            Err(error @ PortError::Live { .. }) => error.to_string(),
            Err(other) => return Err(other),
        },
    };
    let word = with(afpacket::KIND.scheme, "");
    let port = open(&word, options)?;
    let why = format!("{name} is served as {word}: {why}");
    Ok((Choice { word, why }, port))
}

/// Reads a name without looking whether there is such an interface.
///
/// # Errors
/// It cannot be the name of one, or an option belongs to one kind of port alone.
pub fn spelled(word: &str) -> Result<(), PortError> {
    let (name, asked) = word.split_once('?').unwrap_or((word, ""));
    match is_plain(word) {
        true => plain_options(word, name, asked),
        false => Err(missing(word, name)),
    }
}

/// Whether a word reads as the name of an interface, and not of a capture.
#[must_use]
pub fn is_plain(word: &str) -> bool {
    may_be(word) && !is_capture(word)
}

/// Whether a word reads as the name of a capture.
fn is_capture(word: &str) -> bool {
    let ending = std::path::Path::new(word).extension();
    matches!(
        ending.and_then(|e| e.to_str()),
        Some("pcap" | "pcapng" | "cap")
    )
}

/// Options that each kind of port takes may stand behind a plain name.
fn plain_options(word: &str, name: &str, asked: &str) -> Result<(), PortError> {
    const COMMON: [&str; 8] = [
        "promisc",
        "drop",
        "duplicate",
        "reorder",
        "corrupt",
        "delay",
        "seed",
        "record",
    ];
    let keys = asked.split('&').filter(|o| !o.is_empty());
    let mut keys = keys.map(|o| o.split('=').next().unwrap_or(o));
    match keys.find(|key| !COMMON.contains(key)) {
        None => Query::parse("", &format!("{name}?{asked}")).map(|_| ()),
        Some(key) => Err(PortError::Option {
            word: word.to_owned(),
            option: key.to_owned(),
            what: format!(
                "an option of one kind of port: write afpacket:{name}?… or afxdp:{name}?…"
            ),
        }),
    }
}

/// What is wrong with a word that is neither an interface nor anything else that is live.
fn missing(word: &str, name: &str) -> PortError {
    if word == "-" || std::path::Path::new(word).exists() || is_capture(word) {
        return PortError::Live {
            word: word.to_owned(),
            what: "a capture goes one way, and a port of --ports both".into(),
            help: format!("read it with `--in {word}`, or write it with `--out {word}`"),
        };
    }
    PortError::Live {
        word: word.to_owned(),
        what: format!("there is no interface `{name}` in this network namespace"),
        help: "`ip link` lists those there are; captures are named with --in and --out, other kinds of port as \
               KIND:NAME (docs/ports.md)"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_may_be_an_interface_or_cannot() {
        for word in [
            "eth0",
            "enp0s31f6",
            "eth0.100",
            "br-lan",
            "eth0?record=a.pcapng",
        ] {
            assert!(may_be(word), "{word}");
        }
        for word in [
            "",
            "-",
            ".",
            "..",
            "a/b",
            "dir/x.pcap",
            "afpacket:x",
            "sixteen-letters-",
        ] {
            assert!(!may_be(word), "{word}");
        }
    }

    #[test]
    fn the_loopback_is_an_interface_and_a_file_of_that_name_is_not() {
        assert!(names("lo"));
        assert!(!names("no-such-one"));
    }

    fn never(_: &str, _: &LiveOptions<'_>) -> Result<LivePort, PortError> {
        panic!("opened")
    }

    fn refused(word: &str) -> PortError {
        static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
        let options = LiveOptions::of_one_queue(32, &STOP);
        match open(word, &options, &never) {
            Err(error) => error,
            Ok(_) => panic!("opened"),
        }
    }

    #[test]
    fn what_is_no_interface_is_told_with_what_to_write() {
        let error = refused("nosuch0");
        assert_eq!(
            error.to_string(),
            "nosuch0: there is no interface `nosuch0` in this network namespace"
        );
        let error = refused("talk.pcap");
        assert!(error.help().contains("--in talk.pcap"), "{}", error.help());
        let error = refused("lo?blocks=64");
        let said = error.to_string();
        assert!(
            said.contains("`blocks`") && said.contains("afpacket:lo?"),
            "{said}"
        );
    }
}
