//! Words of a command line that name ports.

use std::path::Path;

use millrace_steer::Steering;

use super::handover::By;
use super::plain::Choice;
use super::query::Query;
use super::queue::{LiveOptions, LivePort};
use super::{
    Input, InputOptions, KINDS, Kind, Output, PortError, Way, afpacket, afxdp, fault, file,
    handover, mem, plain, tap, vnic, xdp,
};

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
    // One worker gets all packets, but for those of classes that other machines have.
    let elsewhere = options.classes.is_some_and(|c| c.elsewhere().is_some());
    let alone = port.queues.len() < 2 && !elsewhere;
    if alone || options.steering.is_none() && options.classes.is_none() {
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
        port.queues = handover::hand_over(word, port.queues, by, port.table.as_ref())?;
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
        None,
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
pub(super) fn kind_of(word: &str) -> Result<(&'static Kind, &str), PortError> {
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

pub(super) fn forms() -> String {
    forms_of("")
}

/// The kinds of port that go in a direction; of another word, all.
pub(super) fn forms_of(direction: &str) -> String {
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
