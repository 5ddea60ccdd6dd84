//! A synthesised function against the reference interpreter, packet by packet.

use millrace_dataplane::packet::{Arrival, Burst, Fate};
use millrace_dataplane::{Config, Instance};
use millrace_synth::Synthesis;
use millrace_synth::reference::{Became, Reference};

use crate::{Error, Function};

/// When time begins, ns since the epoch: as the interpreter's does.
pub const BEGIN: u64 = 1_000_000_000_000_000_000;

/// A packet for both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// the port by which it enters
    pub port: u8,
    /// when, ns after [`BEGIN`]
    pub time: u64,
    /// its bytes
    pub bytes: Vec<u8>,
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// packets that both were given
    pub packets: u64,
    /// of these, those that were forwarded, dropped, handed over
    pub fates: [u64; 3],
    /// the first difference
    pub difference: Option<String>,
}

/// Gives packets to both, one after the other, until one of them is treated differently. `same` says whether two frames that
/// leave are to count as equal though they differ.
///
/// # Errors
/// The function cannot be made.
pub fn compare(
    function: &Function,
    of: &Synthesis,
    packets: impl Iterator<Item = Given>,
) -> Result<Compared, Error> {
    let reference = Reference::new(of);
    let config = Config {
        hash_seed: 1,
        time: BEGIN,
        ..function.state(1, Vec::new())
    };
    let mut instance =
        Instance::create(function.module.clone(), &config).map_err(Error::wrong)?;
    instance.start(BEGIN);
    let mut burst = Burst::new(1, of.ports.len() as u32, function.layout);
    let mut found = Compared::default();
    for (number, given) in packets.enumerate() {
        let now = BEGIN + given.time;
        let Some((theirs, outside)) = reference.pass(given.port, now, &given.bytes) else {
            continue;
        };
        let arrival = Arrival {
            number: number as u64,
            port: u32::from(given.port),
            time: now,
            stamp: now,
            wire: given.bytes.len() as u32,
            home: 0,
            place: 0,
        };
        if !burst.push(&given.bytes, arrival) {
            continue;
        }
        instance.burst(function.entry, true, &mut burst);
        let Some(outcome) = burst.outcome(0) else {
            continue;
        };
        found.packets += 1;
        let reason = |n: u32| function.reasons.get(n as usize).cloned();
        let (ours, slot) = match outcome.fate {
            Fate::Forwarded(port) => {
                let left = Became::Left(port as u8, outcome.bytes.to_vec());
                (reference.words(&left), 0)
            }
            // For which reason a rewriter drops, nobody else says.
            Fate::Dropped(_) if !of.options.reasons => {
                (reference.words(&Became::Dropped(usize::MAX)), 1)
            }
            Fate::Dropped(why) => (
                format!("dropped: {}", reason(why).unwrap_or_default()),
                1,
            ),
            Fate::Passed => (reference.words(&Became::Outside), 2),
            other => (format!("{other:?}"), 1),
        };
        let theirs = match slot == 2 && outside {
            true => ours.clone(),
            false => reference.words(&theirs),
        };
        burst.clear();
        if ours != theirs {
            let bytes: Vec<String> = given.bytes.iter().map(|b| format!("{b:02x}")).collect();
            found.difference = Some(format!(
                "packet {number} at {} ns by {}: {}\n  interpreter  {theirs}\n  function     {ours}",
                given.time,
                of.ports
                    .get(usize::from(given.port))
                    .map_or("?", String::as_str),
                bytes.join(" "),
            ));
            break;
        }
        if let Some(count) = found.fates.get_mut(slot) {
            *count += 1;
        }
    }
    Ok(found)
}
