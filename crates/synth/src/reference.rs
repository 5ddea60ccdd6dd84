//! What the reference interpreter says of a packet that enters by a port: what a synthesis has to do.

use std::collections::BTreeSet;

use millrace_click::interpreter::Outcome;
use millrace_click::meaning::Meaning;
use millrace_click::packet::Packet;

use crate::Synthesis;
use crate::action::{Value, Verdict};
use crate::diagram::{Id, Node};
use crate::field::Var;
use crate::interpreter::Gates;

/// What became of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Became {
    /// it left by the port of a device
    Left(u8, Vec<u8>),
    /// an element dropped it
    Dropped(usize),
    /// it is handed to the host: it came to an element whose work is not synthesised
    Outside,
    /// it is given to the host
    Given(Vec<u8>),
    /// something else: it is held, or became several
    Other(usize),
}

/// The interpreter beside a synthesis.
pub struct Reference<'a> {
    of: &'a Synthesis,
    gates: Gates,
    /// elements whose work is not synthesised
    outside: BTreeSet<usize>,
}

/// What the interpreter did with a packet.
pub struct Passed {
    /// what became of it
    pub became: Became,
    /// whether it came to an element whose work is not synthesised, so that it may be handed over
    pub outside: bool,
    /// all packets that left, in order, those among them that elements held before: port and bytes
    pub left: Vec<(u8, Vec<u8>)>,
}

impl<'a> Reference<'a> {
    /// Looks for where packets enter and leave.
    #[must_use]
    pub fn new(of: &'a Synthesis) -> Self {
        let outside = of.actions.all().filter_map(|action| match action.verdict {
            Verdict::Hand(id) => Some(id),
            _ => None,
        });
        Self {
            of,
            gates: Gates::of(&of.router, &of.ports),
            outside: outside.collect(),
        }
    }

    /// Gives a packet to the interpreter at a time, ns. None if no element receives from the port.
    #[must_use]
    pub fn pass(&self, port: u8, time: u64, frame: &[u8]) -> Option<Passed> {
        let from = (*self.gates.enters.get(usize::from(port))?)?;
        let seen = || -> u64 {
            let counts = self.of.router.counts();
            let of = |id: &usize| counts.get(*id).map_or(0, |c| c.inputs.iter().sum::<u64>());
            self.outside.iter().map(of).sum()
        };
        let before = if self.outside.is_empty() { 0 } else { seen() };
        let time = i64::try_from(time).unwrap_or(i64::MAX);
        let mut outcomes = match self.of.router.next_timer() {
            Some(due) if due <= time => self.of.router.pass_time(time),
            _ => {
                self.of.router.advance(time);
                Vec::new()
            }
        };
        let released = outcomes.len();
        // A packet that is dropped does nothing to flows: what it has done is taken back.
        let rewriters = match self.of.options.early_discard {
            true => self.of.rewriters.as_slice(),
            false => &[],
        };
        self.of.router.tables(rewriters, |table| table.begin());
        outcomes.extend(self.of.router.enter(from, 0, Packet::new(frame)));
        let outside = !self.outside.is_empty() && seen() > before;
        let became = match outcomes.get(released..).unwrap_or(&[]) {
            [one] if one.left => match self.gates.port(one) {
                Some(port) => Became::Left(port, one.packet.data().to_vec()),
                None => match self.of.router.meaning(one.element) {
                    Some(Meaning::Host) => Became::Given(one.packet.data().to_vec()),
                    _ => Became::Other(1),
                },
            },
            [one] if self.of.options.reasons => Became::Dropped(one.element),
            [_] => Became::Dropped(usize::MAX),
            several => Became::Other(several.len()),
        };
        let traceless = matches!(became, Became::Dropped(_));
        self.of.router.tables(rewriters, |table| match traceless {
            true => table.undo(),
            false => table.keep(),
        });
        let left = |o: &Outcome| Some((self.gates.port(o)?, o.packet.data().to_vec()));
        Some(Passed {
            became,
            outside,
            left: outcomes.iter().filter_map(left).collect(),
        })
    }

    /// The element that an outcome names, in words.
    #[must_use]
    pub fn words(&self, became: &Became) -> String {
        match became {
            Became::Left(port, bytes) => {
                let name = self.of.ports.get(usize::from(*port));
                let name = name.map_or("?", String::as_str);
                format!("leaves by {name}: {}", hex(bytes))
            }
            Became::Given(bytes) => format!("given to the host: {}", hex(bytes)),
            Became::Dropped(id) => format!("dropped: {}", crate::emit::reason(self.of, *id)),
            Became::Outside => "handed over".into(),
            Became::Other(count) => format!("became {count} packets"),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    hex.join(" ")
}

/// Frames for the paths of a synthesis, at both ends of each interval, as many paths as are asked for.
#[must_use]
pub fn witnesses(of: &Synthesis, most: usize) -> Vec<(u8, Vec<u8>)> {
    let (paths, _) = crate::classes::paths(of, of.root, most);
    let mut frames = Vec::new();
    for (path, _) in &paths {
        for high in [false, true] {
            let values: Vec<_> = path
                .iter()
                .map(|(var, low, top)| (*var, if high { *top } else { *low }))
                .collect();
            frames.push(crate::witness::frame(&values));
        }
    }
    let asked = asked(of);
    let each = most / asked.len().max(1);
    for (way, answer) in &asked {
        let Some((question, list)) = of.actions.lists.of(*answer) else {
            continue;
        };
        let step = list.rules.len().div_ceil(each.max(1)).max(1);
        for rule in list.rules.iter().step_by(step) {
            for high in [false, true] {
                let corner = rule.ranges.iter().map(|r| if high { r.1 } else { r.0 });
                frames.push(in_list(way, &question.words, corner));
            }
        }
    }
    frames
}

/// Intervals of fields on a way.
type Way = Vec<(Var, u64, u64)>;

/// Answers of lists on which something depends, each with a way to a choice by it.
fn asked(of: &Synthesis) -> Vec<(Way, Var)> {
    let mut found: Vec<(Way, Var)> = Vec::new();
    let mut each = |root: Id, before: &Way| {
        for id in of.store.reachable(root) {
            let answer = of.store.top(id);
            let answer = answer.filter(|var| matches!(var, Var::Listed(..)));
            if let Some(answer) = answer.filter(|a| found.iter().all(|f| f.1 != *a))
                && let Some(way) = crate::operations::way(of, root, &|at| at == id)
            {
                found.push((before.iter().copied().chain(way).collect(), answer));
            }
        }
    };
    each(of.root, &Vec::new());
    let openings: std::collections::BTreeMap<_, _> = of.flows.openings.iter().collect();
    for (border, opening) in openings {
        if let Some(came) = crate::operations::way(of, of.root, &|at| at == *border) {
            let variants = opening.variants.iter();
            variants.for_each(|variant| each(variant.root, &came));
        }
    }
    found
}

/// A frame that comes to a list by a way, and has there these words where it can.
fn in_list(way: &Way, words: &[Value], point: impl Iterator<Item = u32>) -> (u8, Vec<u8>) {
    let (_, usual) = crate::witness::frame(&[]);
    let mut values: Vec<(Var, u64)> = { way.iter() }
        .filter(|(var, low, high)| {
            // What is right anyhow stays as it is, so that frames are ordinary ones.
            !(*low..=*high).contains(&crate::packet::value(&usual, 0, *var))
        })
        .map(|(var, low, _)| (*var, *low))
        .collect();
    for (word, value) in words.iter().zip(point) {
        if let Value::Field(var, more) = *word {
            let came = u64::from(value).wrapping_add_signed(-more) & var.most();
            values.push((var, came));
        }
    }
    crate::witness::frame(&values)
}

/// Values of fields at which something changes, with those beside them: for random packets that mean something.
#[must_use]
pub fn interesting(of: &Synthesis) -> Vec<(crate::field::Var, Vec<u64>)> {
    let mut all: std::collections::BTreeMap<_, Vec<u64>> = std::collections::BTreeMap::new();
    let mut roots = vec![of.root];
    for asked in of.actions.all_asked() {
        roots.extend(asked.then.iter().map(|t| t.1));
    }
    for id in roots.into_iter().flat_map(|root| of.store.reachable(root)) {
        if let Node::Branch { var, kids } = of.store.node(id) {
            let values = all.entry(*var).or_default();
            for (first, _) in kids {
                values.extend([first.saturating_sub(1), *first, (first + 1).min(var.most())]);
            }
            values.push(var.most());
        }
    }
    all.into_iter().collect()
}

/// Random frames, without end: fields have values at which something changes, or any; the same for the same seed.
pub fn random(of: &Synthesis, seed: u64) -> impl Iterator<Item = (u8, Vec<u8>)> + '_ {
    use rand::{RngExt, SeedableRng};
    let interesting = interesting(of);
    let ports = of.ports.len() as u64;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let asked = asked(of);
    std::iter::repeat_with(move || {
        // Packets of all kinds meet few rules of a long list.
        let list = asked.get(rng.random_range(0..2 * asked.len().max(1)));
        if let Some((way, answer)) = list
            && let Some((question, list)) = of.actions.lists.of(*answer)
            && let Some(rule) = list.rules.get(rng.random_range(0..list.rules.len().max(1)))
        {
            let point = rule.ranges.iter().map(|r| rng.random_range(r.0..=r.1));
            return in_list(way, &question.words, point.collect::<Vec<_>>().into_iter());
        }
        let mut values = vec![(crate::field::Var::Port, rng.random_range(0..ports.max(1)))];
        for (var, some) in &interesting {
            match rng.random_range(0..6) {
                0 | 1 => {}
                2 => values.push((*var, rng.random_range(0..=var.most()))),
                _ => {
                    let at = rng.random_range(0..some.len().max(1));
                    values.extend(some.get(at).map(|value| (*var, *value)));
                }
            }
        }
        values.retain(|(var, value)| {
            // Lengths of frames stay below what ports take.
            !matches!(var, crate::field::Var::Length | crate::field::Var::Room(..)) || *value < 2000
        });
        let (port, mut frame) = crate::witness::frame(&values);
        let padding = rng.random_range(0..8_usize);
        frame.extend_from_slice([0xaa; 5].get(..padding).unwrap_or(&[]));
        (port, frame)
    })
}

/// Packets of flows and answers to what was sent: sessions of a few hosts, whose ports are all different, so that a rewriter that
/// prefers a packet's own port gives each its own.
pub struct Sessions {
    rng: rand_chacha::ChaCha8Rng,
    ports: u8,
    destinations: Vec<u32>,
    services: Vec<u16>,
    /// words of flows that the configuration treats in a way of its own, and the port by which they come: by another one
    /// they would be looked for among other flows (`flows`)
    classes: Vec<(u8, Words)>,
    sent: Vec<(u8, Vec<u8>)>,
    time: u64,
    /// every packet goes all its way: where rewriters are merged, one that does not may be told apart
    whole: bool,
    /// half of the packets have a time to live from 1 to this; none if 0
    short: u8,
    /// stretches of packets come by one port only, this far apart on average, ns; none if 0
    apart: u64,
    drawn: u64,
    /// whether what was drawn last answers something
    pub answer: bool,
}

/// Source, destination, ports and protocol of a packet.
type Words = ([u8; 4], [u8; 4], [u8; 4], u8);

/// Paths of which sessions are made, and how many of these sessions there are.
const MOST_CLASSES: usize = 20_000;
const MOST_OF_CLASSES: usize = 1_000;
/// Sessions of which packets are drawn.
const SESSIONS: u16 = 300;
/// The same where packets are far apart, so that flows live on.
const SESSIONS_APART: u16 = 8;
/// Packets in a row that come by one port.
const STRETCH: u64 = 200;
/// Frames that may be answered.
const MOST_SENT: usize = 256;

impl Sessions {
    /// Sessions for a configuration.
    #[must_use]
    pub fn new(of: &Synthesis, seed: u64) -> Self {
        use rand::SeedableRng;
        let (mut destinations, mut services) = (vec![0x0808_0808], vec![80]);
        for (var, values) in interesting(of) {
            if var.is_address() {
                destinations.extend(values.iter().map(|v| *v as u32));
            }
            if matches!(
                var,
                crate::field::Var::Bits(crate::field::Base::Upper(_), 16, 16)
            ) {
                services.extend(values.iter().map(|v| *v as u16));
            }
        }
        let frames = witnesses(of, MOST_CLASSES).into_iter();
        let words = |(port, frame): (u8, Vec<u8>)| Some((port, words(&frame)?));
        let mut classes: Vec<(u8, Words)> = frames.filter_map(words).collect();
        classes.sort_unstable();
        classes.dedup();
        let step = classes.len().div_ceil(MOST_OF_CLASSES).max(1);
        let classes: Vec<(u8, Words)> = classes.into_iter().step_by(step).collect();
        Self {
            rng: rand_chacha::ChaCha8Rng::seed_from_u64(seed),
            ports: of.ports.len() as u8,
            destinations,
            services,
            // Few classes are those of the addresses and services, which flows of all hosts have anyway.
            classes: if classes.len() < 200 {
                Vec::new()
            } else {
                classes
            },
            sent: Vec::new(),
            time: 0,
            whole: of.flows.most_hops > 1,
            short: 0,
            apart: 0,
            drawn: 0,
            answer: false,
        }
    }

    /// Whether packets end at any hop.
    #[must_use]
    pub fn is_dying(&self) -> bool {
        self.short > 0
    }

    /// Half of the packets have a time to live from 1 to this: they end at any hop.
    #[must_use]
    pub fn dying(self, short: u8) -> Self {
        Self { short, ..self }
    }

    /// Few sessions, whose packets in turns come by all ports, close together, and by one only, this far apart on average, ns.
    #[must_use]
    pub fn apart(self, apart: u64) -> Self {
        Self { apart, ..self }
    }

    /// Notes a frame that left by a port: it may be answered there.
    pub fn sent(&mut self, port: u8, frame: &[u8]) {
        use rand::RngExt;
        if self.sent.len() < MOST_SENT {
            self.sent.push((port, frame.to_vec()));
        } else {
            let at = self.rng.random_range(0..MOST_SENT);
            if let Some(slot) = self.sent.get_mut(at) {
                *slot = (port, frame.to_vec());
            }
        }
    }

    /// The next packet: its time in ns, port, bytes.
    pub fn draw(&mut self) -> (u64, u8, Vec<u8>) {
        use rand::RngExt;
        let rng = &mut self.rng;
        let stretch = self.drawn / STRETCH % (u64::from(self.ports) + 1);
        self.drawn += 1;
        let only = u8::try_from(stretch).ok();
        let only = only.filter(|port| self.apart > 0 && *port < self.ports);
        self.time += match rng.random_range(0..2000) {
            _ if only.is_some() => rng.random_range(0..=2 * self.apart),
            0 => 310_000_000_000,
            1 => 241_000_000_000,
            _ => 1_000_000,
        };
        let ttl = match rng.random_range(0..10) {
            0..5 if self.short > 0 => rng.random_range(1..=self.short),
            0 if !self.whole && self.short == 0 => rng.random_range(1..=12_u8),
            _ => 64,
        };
        let flags = [0x02, 0x10, 0x10, 0x18, 0x11, 0x04];
        // Flows are to live on where packets are far apart: few end them.
        let flags = match self.apart > 0 && rng.random_range(0..50) > 0 {
            true => 0x10,
            false => { flags.get(rng.random_range(0..6_usize)) }.map_or(0, |f| *f),
        };
        let payload = rng.random_range(0..20_usize);
        let answered = self
            .sent
            .iter()
            .filter(|s| only.is_none_or(|port| s.0 == port));
        let answered: Vec<_> = answered.collect();
        let answer = !answered.is_empty() && rng.random_range(0..2) == 0;
        self.answer = answer;
        let (port, words) = if answer {
            let at = rng.random_range(0..answered.len());
            let (port, frame) = answered.get(at).copied().cloned().unwrap_or_default();
            let quad = |at: usize| -> [u8; 4] {
                let bytes = frame.get(at..at + 4);
                bytes.and_then(|b| b.try_into().ok()).unwrap_or_default()
            };
            let protocol = frame.get(23).copied().unwrap_or(17);
            let ports = quad(34);
            let mut destination = quad(26);
            // Some answers are to nobody.
            if rng.random_range(0..20) == 0 {
                destination[3] ^= 1;
            }
            let back = [ports[2], ports[3], ports[0], ports[1]];
            (port, (quad(30), destination, back, protocol))
        } else {
            let port = only.unwrap_or_else(|| rng.random_range(0..self.ports));
            let session = match self.apart {
                0 => rng.random_range(0..SESSIONS + self.classes.len() as u16),
                _ => rng.random_range(0..SESSIONS_APART),
            };
            let index = usize::from(session);
            let of = |list: &[u32]| list.get(index % list.len().max(1)).copied().unwrap_or(0);
            // What two ports send at the same time goes to different hosts.
            let destination = of(&self.destinations) ^ u32::from(port) << 4;
            let service = self.services.get(index % self.services.len().max(1));
            let [a, b] = (1024 + session).to_be_bytes();
            let [c, d] = service.copied().unwrap_or(80).to_be_bytes();
            let protocol = if session % 2 == 0 { 6 } else { 17 };
            let source = [10, 0, 0, 1 + (session % 40) as u8];
            let class = usize::from(session).checked_sub(usize::from(SESSIONS));
            match class.and_then(|class| self.classes.get(class)) {
                // The source port is the session's, which no two share.
                Some((by, (from, to, [.., high, low], protocol))) => {
                    (*by, (*from, *to, [a, b, *high, *low], *protocol))
                }
                _ => (
                    port,
                    (source, destination.to_be_bytes(), [a, b, c, d], protocol),
                ),
            }
        };
        let (source, destination, ports, protocol) = words;
        (
            self.time,
            port,
            frame(source, destination, ports, protocol, ttl, flags, payload),
        )
    }
}

/// The words of a frame of TCP or UDP.
fn words(frame: &[u8]) -> Option<Words> {
    let four = |at: usize| -> Option<[u8; 4]> { frame.get(at..at + 4)?.try_into().ok() };
    let protocol = *frame.get(23)?;
    if frame.get(14) != Some(&0x45) || !matches!(protocol, 6 | 17) {
        return None;
    }
    Some((four(26)?, four(30)?, four(34)?, protocol))
}

fn frame(
    source: [u8; 4],
    destination: [u8; 4],
    ports: [u8; 4],
    protocol: u8,
    ttl: u8,
    flags: u8,
    payload: usize,
) -> Vec<u8> {
    let upper = if protocol == 6 { 20 } else { 8 };
    let total = 20 + upper + payload;
    let mut frame = vec![0; 14 + total];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(to) = frame.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    };
    put(0, &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, 0x45]);
    put(16, &(total as u16).to_be_bytes());
    put(22, &[ttl, protocol]);
    put(26, &source);
    put(30, &destination);
    put(34, &ports);
    match protocol {
        6 => {
            put(46, &[0x50, flags]);
            put(50, &[0x12, 0x34]);
        }
        _ => {
            put(38, &((8 + payload) as u16).to_be_bytes());
            // Without a sum, or with one.
            put(
                40,
                &if payload.is_multiple_of(3) {
                    [0, 0]
                } else {
                    [0x43, 0x21]
                },
            );
        }
    }
    if let Some(ip) = frame.get_mut(14..)
        && let Ok(mut header) = millrace_wire::ipv4::Header::new_checked(ip)
    {
        header.fill_checksum();
    }
    frame
}
