//! A synthesised function against the reference interpreter, packet by packet.

use std::collections::HashMap;

use millrace_dataplane::packet::{Arrival, Burst, Fate};
use millrace_dataplane::{Config, Instance};
use millrace_synth::Synthesis;
use millrace_synth::interpreter::Interpreter;
use millrace_synth::reference::{Became, Reference, Sessions};

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
    /// packets that left because of packets that were handed over, then or later
    pub made: u64,
    /// of the packets, answers to a flow that one of the two does not know any more, because packets that ended at a hop have kept
    /// single hops of it alive, or ended them (`early-discard`); only where entries have one stamp
    pub relaxed: u64,
    /// the first difference
    pub difference: Option<String>,
}

/// The two, side by side.
pub struct Both<'a> {
    function: &'a Function,
    of: &'a Synthesis,
    reference: Reference<'a>,
    instance: Instance,
    burst: Burst,
    number: u64,
    /// what runs packets that are handed over
    slow: Option<Interpreter>,
    /// whether the packet answers something, where packets may end at any hop
    answer: bool,
    /// by flow: the ports that the two have drawn for it
    ports: HashMap<Vec<u8>, [u16; 2]>,
    /// what was found so far
    pub found: Compared,
}

impl<'a> Both<'a> {
    /// A fresh copy of the function beside the configuration, which has seen no packet yet.
    ///
    /// # Errors
    /// The function cannot be made.
    pub fn new(function: &'a Function, of: &'a Synthesis) -> Result<Self, Error> {
        let config = Config {
            hash_seed: 1,
            time: BEGIN,
            ..function.state(1, Vec::new())
        };
        let mut instance =
            Instance::create(function.module.clone(), &config).map_err(Error::wrong)?;
        instance.start(BEGIN);
        Ok(Self {
            function,
            of,
            reference: Reference::new(of),
            instance,
            burst: Burst::new(1, of.ports.len() as u32, function.layout),
            number: 0,
            slow: { function.slow.as_ref() }
                .map(|slow| slow.interpreter())
                .transpose()
                .map_err(Error::wrong)?,
            answer: false,
            ports: HashMap::new(),
            found: Compared::default(),
        })
    }

    /// Gives packets to both, one after the other, until one of them is treated differently.
    pub fn all(&mut self, packets: impl Iterator<Item = Given>) {
        for given in packets {
            self.one(&given);
            if self.found.difference.is_some() {
                return;
            }
        }
    }

    /// Sessions of flows, with answers to what was sent.
    pub fn sessions(&mut self, seed: u64, packets: usize) {
        self.all_of(Sessions::new(self.of, seed), packets);
    }

    /// The same, where half of the packets have a time to live from 1 to `most`, and so end at any hop. Where that is not noted by hop
    /// (`early-discard`), answers that only one of the two lets in because of it are counted ([`Compared::relaxed`]), and no difference.
    pub fn dying(&mut self, seed: u64, packets: usize, most: u8) {
        self.all_of(Sessions::new(self.of, seed).dying(most), packets);
    }

    /// The same, of few flows whose packets are `apart` ns apart on average, and for long stretches come by one port only.
    pub fn apart(&mut self, seed: u64, packets: usize, most: u8, apart: u64) {
        let sessions = Sessions::new(self.of, seed).dying(most).apart(apart);
        self.all_of(sessions, packets);
    }

    fn all_of(&mut self, mut sessions: Sessions, packets: usize) {
        for _ in 0..packets {
            let (time, port, bytes) = sessions.draw();
            self.answer = sessions.answer && sessions.is_dying();
            let left = self.one(&Given { port, time, bytes });
            if self.found.difference.is_some() {
                return;
            }
            if let Some((port, bytes)) = left {
                sessions.sent(port, &bytes);
            }
        }
    }

    fn differs(&mut self, given: &Given, theirs: &str, ours: &str) {
        let name = self.of.ports.get(usize::from(given.port));
        self.found.difference = Some(format!(
            "packet {} at {} ns by {}: {}\n  interpreter  {theirs}\n  function     {ours}",
            self.number - 1,
            given.time,
            name.map_or("?", String::as_str),
            hex(&given.bytes),
        ));
    }

    /// One packet; where it left, if both let it.
    fn one(&mut self, given: &Given) -> Option<(u8, Vec<u8>)> {
        let now = BEGIN + given.time;
        let passed = self.reference.pass(given.port, now, &given.bytes)?;
        let (theirs, outside) = (passed.became, passed.outside);
        let arrival = Arrival {
            number: self.number,
            port: u32::from(given.port),
            time: now,
            stamp: now,
            wire: given.bytes.len() as u32,
            home: 0,
            place: 0,
        };
        if !self.burst.push(&given.bytes, arrival) {
            return None;
        }
        self.instance
            .burst(self.function.entry, true, &mut self.burst);
        let (fate, bytes, purpose) = match self.burst.outcome(0) {
            Some(outcome) => (outcome.fate, outcome.bytes.to_vec(), outcome.purpose),
            None => return None,
        };
        self.burst.clear();
        self.number += 1;
        self.found.packets += 1;
        if let Some(slow) = &self.slow {
            let mut left = Vec::new();
            let mut each = |port: u8, bytes: &[u8]| left.push((port, bytes.to_vec()));
            let handed = fate == Fate::Passed && purpose > 0;
            match handed {
                true => slow.enter(given.port, now, &bytes, &mut each),
                false => slow.pass_time(now, &mut each),
            };
            if handed || !left.is_empty() {
                if let (false, Fate::Forwarded(port)) = (handed, fate) {
                    left.push((port as u8, bytes.clone()));
                }
                if let Some(count) = self.found.fates.get_mut(if handed { 2 } else { 0 }) {
                    *count += 1;
                }
                self.found.made += left.len() as u64;
                if left != passed.left {
                    self.differs(given, &several(&passed.left), &several(&left));
                    return None;
                }
                let last = left.pop();
                return last.filter(|_| handed);
            }
        }
        let words = |became: &Became| self.reference.words(became);
        let (ours, slot) = match fate {
            Fate::Forwarded(port) => (words(&Became::Left(port as u8, bytes.clone())), 0),
            // For which reason a rewriter drops, nobody else says.
            Fate::Dropped(_) if !self.of.options.reasons => {
                (words(&Became::Dropped(usize::MAX)), 1)
            }
            Fate::Dropped(why) => {
                let reason = self.function.reasons.get(why as usize).cloned();
                (format!("dropped: {}", reason.unwrap_or_default()), 1)
            }
            Fate::Passed if matches!(theirs, Became::Given(_)) => {
                (words(&Became::Given(bytes.clone())), 0)
            }
            Fate::Passed => (words(&Became::Outside), 2),
            other => (format!("{other:?}"), 1),
        };
        let drawn = match (&theirs, fate) {
            (Became::Left(to, wanted), Fate::Forwarded(port))
                if self.of.flows.draws() || !self.of.flows.leases().is_empty() =>
            {
                u32::from(*to) == port && but_for_drawn(wanted) == but_for_drawn(&bytes)
            }
            (Became::Left(to, wanted), Fate::Forwarded(port)) if u32::from(*to) == port => {
                let drawn = drawn(&given.bytes, wanted, &bytes).filter(|ports| {
                    let ranges = || self.of.flows.ranges();
                    let within = |port| ranges().any(|(low, n)| (low..low + n).contains(&port));
                    ports.iter().all(|port| within(u64::from(*port)))
                });
                drawn.is_some_and(|drawn| stays(&mut self.ports, given, drawn))
            }
            _ => false,
        };
        let ways = (&theirs, fate);
        let known = matches!(
            ways,
            (Became::Left(..), Fate::Dropped(_)) | (Became::Dropped(_), Fate::Forwarded(_))
        );
        if self.answer && known && self.of.flows.forgets() {
            self.found.relaxed += 1;
            return None;
        }
        let same = ours == words(&theirs) || drawn || slot == 2 && outside;
        if !same {
            let theirs = words(&theirs);
            self.differs(given, &theirs, &ours);
            return None;
        }
        if let Some(count) = self.found.fates.get_mut(slot) {
            *count += 1;
        }
        match fate {
            Fate::Forwarded(port) => Some((port as u8, bytes)),
            _ => None,
        }
    }
}

/// Whether the packet's flow keeps what each of the two has drawn for it (`ports`); one that draws again does in both.
fn stays(ports: &mut HashMap<Vec<u8>, [u16; 2]>, given: &Given, [t, o]: [u16; 2]) -> bool {
    let mut flow = vec![given.port];
    flow.extend(given.bytes.get(23..24).into_iter().flatten());
    flow.extend(given.bytes.get(26..38).into_iter().flatten());
    let before = ports.insert(flow, [t, o]);
    before.is_none_or(|[t0, o0]| (t0 == t) == (o0 == o))
}

/// The source ports of two frames that differ by nothing else, each another one than the packet's own: it is not in the range, so that both were drawn at
/// random.
fn drawn(given: &[u8], theirs: &[u8], ours: &[u8]) -> Option<[u16; 2]> {
    let word = |frame: &[u8], at: usize| {
        let bytes = frame.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_be_bytes(bytes))
    };
    let (own, t, o) = (word(given, 34)?, word(theirs, 34)?, word(ours, 34)?);
    let upper = if ours.get(23) == Some(&6) { 50 } else { 40 };
    let (sum_t, sum_o) = (word(theirs, upper)?, word(ours, upper)?);
    // RFC 1071: sums of words that differ in one differ by that; UDP without a sum has none.
    let fold = |sum: u16, port: u16| (u32::from(sum) + u32::from(port)) % 0xffff;
    let sums = (sum_t, sum_o) == (0, 0) || fold(sum_t, t) == fold(sum_o, o);
    let rest = |frame: &[u8]| {
        let mut rest = frame.to_vec();
        for at in [34, upper] {
            if let Some(word) = rest.get_mut(at..at + 2) {
                word.fill(0);
            }
        }
        rest
    };
    let plain = theirs.get(12..15) == Some(&[8, 0, 0x45]);
    let both = own != t && own != o && t != o;
    (plain && both && sums && rest(theirs) == rest(ours)).then_some([t, o])
}

/// Packets that leave, in words.
fn several(left: &[(u8, Vec<u8>)]) -> String {
    let one = |(port, bytes): &(u8, Vec<u8>)| format!("port {port}: {}", hex(bytes));
    match left {
        [] => "nothing leaves".into(),
        left => left
            .iter()
            .map(one)
            .collect::<Vec<_>>()
            .join("\n               "),
    }
}

fn hex(bytes: &[u8]) -> String {
    let each: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    each.join(" ")
}

/// A frame without its destination address, its source port, and the sums that cover them: a mapper's pattern is drawn and a port
/// leased, so that the two may send a flow to different servers, from different ports. The header's sum is held against the header
/// instead.
pub(crate) fn but_for_drawn(frame: &[u8]) -> (bool, Vec<u8>) {
    let ip = frame.get(14..).unwrap_or(&[]);
    let header = millrace_wire::ipv4::Header::new_checked(ip);
    let holds = header.is_ok_and(|h| h.sum().holds());
    let upper = match frame.get(23) {
        Some(6) => 50..52,
        _ => 40..42,
    };
    let hidden = [24..26, 30..36, upper];
    let rest = frame
        .iter()
        .enumerate()
        .filter(|(at, _)| !hidden.iter().any(|h| h.contains(at)));
    (holds, rest.map(|b| *b.1).collect())
}

#[cfg(test)]
mod tests {
    use super::drawn;

    /// A frame of UDP from this port, with this sum.
    fn frame(port: u16, sum: u16) -> Vec<u8> {
        let mut frame = vec![0; 50];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[23] = 17;
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[40..42].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    #[test]
    fn ports_that_both_draw_are_told_from_others() {
        let given = frame(21, 0x1000);
        let (theirs, ours) = (frame(0x9fe2, 0xf7ae), frame(0xa705, 0xf08b));
        assert_eq!(drawn(&given, &theirs, &ours), Some([0x9fe2, 0xa705]));
        let bare = [frame(0x9fe2, 0), frame(0xa705, 0)];
        assert!(drawn(&given, &bare[0], &bare[1]).is_some());
        // A sum that does not hold, a port that one of them kept, another byte.
        assert_eq!(drawn(&given, &theirs, &frame(0xa705, 0xf08c)), None);
        assert_eq!(drawn(&given, &theirs, &frame(0xa705, 0)), None);
        assert_eq!(drawn(&theirs, &theirs, &ours), None);
        assert_eq!(drawn(&ours, &theirs, &ours), None);
        let mut other = ours;
        other[49] = 1;
        assert_eq!(drawn(&given, &theirs, &other), None);
    }
}
