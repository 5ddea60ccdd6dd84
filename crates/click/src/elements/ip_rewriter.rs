//! `IPRewriter(INPUT, …)`: rewrites addresses and ports of TCP and UDP by flows, an input a specification: `drop`, `pass OUTPUT`,
//! `keep FOUT ROUT`, `pattern SADDR SPORT DADDR DPORT FOUT ROUT`, or the name of a mapper. `TCPRewriter` and `UDPRewriter` take the
//! same. The table, ages and patterns: `rewriter.rs`. Other packets are dropped unless the input says `pass`.
//!
//! `TCPRewriter` has flows of TCP alone. `IPAddrRewriter` (source addresses alone), `IPAddrPairRewriter` (both addresses) and `ICMPPingRewriter` (identifiers of echo
//! messages as ports) have patterns `SADDR DADDR`, the last `SADDR DADDR IDS`.
//!
//! Keywords: MAPPING_CAPACITY (a number, or a rewriter whose capacity is shared), GUARANTEE, TIMEOUT, TCP_TIMEOUT, UDP_TIMEOUT,
//! TCP_DONE_TIMEOUT, TCP_NODATA_TIMEOUT, STREAMING_TIMEOUT, REPLY_ANNO (this byte of annotations comes back with answers),
//! SET_AGGREGATE (the flow's number), DST_ANNO; and of the Click that SNF's authors changed, DEC_IP_TTL (the time to live is lowered
//! before all else, and a packet whose is 1 or less dropped), CALC_CHECKSUM (true: sums follow). Handlers: `patterns`, `patternN` (written), `size`, `capacity` (written), `nmappings`,
//! `mapping_failures`, `tcp_table`, `udp_table`, `table`, `tcp_lookup`, `udp_lookup`.

use super::prelude::*;
use crate::headers;
use crate::packet::AGGREGATE;
use crate::rewriter::{Direction, Key, New, Order, Rewriter, Specification};

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("IPRewriter", "1-/1-", "h/h", make),
    Class::new("TCPRewriter", "1-/1-", "h/h", make),
    Class::new("UDPRewriter", "1-/1-", "h/h", make),
    Class::new("IPAddrRewriter", "1-/1-", "h/h", source),
    Class::new("IPAddrPairRewriter", "1-/1-", "h/h", pair),
    Class::new("ICMPPingRewriter", "1-/1-", "h/h", ping),
];

fn make(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    rewriter(args, setup, What::Flows)
}

fn source(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    rewriter(args, setup, What::Source)
}

fn pair(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    rewriter(args, setup, What::Pair)
}

fn ping(args: &mut Args<'_>, setup: &mut Setup<'_>) -> Made {
    rewriter(args, setup, What::Ping)
}

/// Which words of a packet name its flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Flows,
    Source,
    Pair,
    Ping,
}

const KEYWORDS: &str = "MAPPING_CAPACITY CAPACITY GUARANTEE TCP_GUARANTEE UDP_GUARANTEE TIMEOUT TCP_TIMEOUT \
    UDP_TIMEOUT TCP_DONE_TIMEOUT TCP_NODATA_TIMEOUT STREAMING_TIMEOUT UDP_STREAMING_TIMEOUT \
    REPLY_ANNO SET_AGGREGATE DST_ANNO REAP_INTERVAL REAP_TIME HINT MAX_MAPPINGS_PER_THREAD \
    IGNORE_ANNO LATENCY INFLOW_ANNO DEC_IP_TTL CALC_CHECKSUM";

/// The patterns of the IPRewriterPatterns elements.
fn named(setup: &Setup<'_>, name: &str) -> Option<Vec<String>> {
    let all = setup
        .graph
        .elements
        .iter()
        .filter(|e| e.class == "IPRewriterPatterns");
    for argument in all.flat_map(|e| crate::language::args::split(&e.config)) {
        let words = crate::language::args::words(&argument);
        if let Some((first, rest)) = words.split_first()
            && first == name
        {
            return Some(rest.to_vec());
        }
    }
    None
}

fn specification(
    text: &str,
    what: What,
    names: &crate::names::Names,
    setup: &Setup<'_>,
) -> Result<Specification, String> {
    let text = match what {
        // The last word before the outputs is the range of identifiers.
        What::Ping => {
            let mut words = crate::language::args::words(text);
            let pattern = words.first().is_some_and(|w| w == "pattern");
            if words.len() == 5 && pattern {
                words.insert(3, "-".into());
            }
            if words.len() == 6 && pattern {
                let ids = words.remove(3);
                words.insert(2, ids);
                words.insert(4, "-".into());
            }
            words.join(" ")
        }
        _ => text.to_owned(),
    };
    let ports = matches!(what, What::Flows | What::Ping);
    let mapper = |name: &str| {
        let id = setup.find(name)?;
        let class = setup.class(id);
        let maps = matches!(class, "RoundRobinIPMapper" | "SourceIPHashMapper");
        maps.then_some(id)
    };
    Specification::read(&text, ports, names, &|name| named(setup, name), mapper)
}

fn rewriter(args: &mut Args<'_>, setup: &mut Setup<'_>, what: What) -> Made {
    args.keywords(KEYWORDS);
    let mut inputs = Vec::new();
    let mut wrong = Vec::new();
    for (number, text) in args.all().iter().enumerate() {
        match specification(text, what, args.names, setup) {
            Ok(input) => inputs.push(input),
            Err(why) => wrong.push(format!("input spec {number}: {why}")),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join("\n  "));
    }
    if inputs.len() < setup.ports.0 {
        return Err(format!(
            "{} input specs for {} inputs",
            inputs.len(),
            setup.ports.0
        ));
    }
    let mut table = Rewriter::new(inputs, matches!(what, What::Flows | What::Ping));
    let mut shared = None;
    if let Some(text) = args
        .keyword("MAPPING_CAPACITY")
        .or(args.keyword("CAPACITY"))
    {
        match text.parse() {
            Ok(capacity) => table.capacity = capacity,
            Err(_) => shared = Some(setup.find(&text).ok_or(format!("no element '{text}'"))?),
        }
    }
    let mut times = table.timeouts;
    let mut time = |words: &[&str], of: &mut [&mut i64]| -> Result<(), String> {
        for word in words {
            if let Some(text) = args.keyword(word) {
                let time = crate::arguments::duration(&text)
                    .ok_or(format!("{word}: bad time '{text}'"))?;
                of.iter_mut().for_each(|slot| **slot = time);
            }
        }
        Ok(())
    };
    time(
        &["GUARANTEE", "TCP_GUARANTEE", "UDP_GUARANTEE"],
        &mut [&mut times.guarantee],
    )?;
    time(
        &["TIMEOUT", "UDP_TIMEOUT"],
        &mut [&mut times.other, &mut times.streaming],
    )?;
    time(&["TCP_TIMEOUT"], &mut [&mut times.tcp])?;
    time(&["TCP_DONE_TIMEOUT"], &mut [&mut times.tcp_done])?;
    time(&["TCP_NODATA_TIMEOUT"], &mut [&mut times.tcp_nodata])?;
    time(
        &["STREAMING_TIMEOUT", "UDP_STREAMING_TIMEOUT"],
        &mut [&mut times.streaming],
    )?;
    table.timeouts = times;
    let annotation = args.annotation_word("REPLY_ANNO", 1)?;
    let aggregate = args.flag("SET_AGGREGATE", false)?;
    let destination = args.flag("DST_ANNO", true)?;
    let lowers = args.flag("DEC_IP_TTL", false)?;
    if !args.flag("CALC_CHECKSUM", true)? {
        return Err("CALC_CHECKSUM false is not supported: sums always follow".into());
    }
    args.done()?;
    let class = setup.class(setup.id);
    let (udp, tcp) = (class == "UDPRewriter", class == "TCPRewriter");
    Ok(Box::new(Rewriting {
        table,
        what,
        shared,
        annotation,
        aggregate,
        destination,
        udp,
        tcp,
        lowers,
    }))
}

/// New words and outputs of both directions; or the output of a packet that stays as it is.
type Mapped = Result<(Key, (usize, usize)), usize>;

struct Rewriting {
    table: Rewriter,
    what: What,
    /// the element whose capacity is used
    shared: Option<usize>,
    annotation: Option<usize>,
    aggregate: bool,
    destination: bool,
    /// all flows age as those of UDP
    udp: bool,
    /// only TCP has flows
    tcp: bool,
    /// the time to live is lowered
    lowers: bool,
}

impl Rewriting {
    /// The flow's key as the packet comes, for both directions where they differ.
    fn keys(&self, packet: &Packet) -> Option<Vec<Key>> {
        match self.what {
            What::Flows => headers::key(packet)
                .filter(|key| !self.tcp || key.protocol == 6)
                .map(|k| vec![k]),
            What::Ping => headers::echo_key(packet).map(|k| vec![k]),
            What::Pair => headers::addresses(packet).map(|(source, destination)| {
                vec![Key {
                    source,
                    destination,
                    ..Key::default()
                }]
            }),
            What::Source => headers::addresses(packet).map(|(source, destination)| {
                // An answer is known by its destination alone.
                let zero = Key::default();
                vec![
                    Key { source, ..zero },
                    Key {
                        destination,
                        ..zero
                    },
                ]
            }),
        }
    }

    /// Gives a packet its new words, and sends it on.
    fn send(
        &self,
        mut packet: Packet,
        (words, direction): (Key, Direction),
        output: usize,
        cx: &Context<'_>,
    ) {
        let mut words = words;
        if self.what == What::Source {
            let Some((source, destination)) = headers::addresses(&packet) else {
                return cx.drop(packet);
            };
            // The other address stays.
            match direction {
                Direction::Forward => words.destination = destination,
                Direction::Reply => words.source = source,
            }
        }
        // A TCP header that ends before its sum keeps its ports.
        let short = words.protocol == 6 && packet.upper().is_some_and(|u| u.len() < 18);
        let ports = self.table.ports && (self.udp || !short);
        headers::apply(&mut packet, words, ports);
        if self.destination {
            packet.set_destination(words.destination);
        }
        cx.push(output, packet);
    }

    /// Takes mappings away until all fit that share the capacity; whether the new one is still there.
    fn fit(&mut self, new: u64, cx: &Context<'_>) -> bool {
        let now = cx.now();
        let other = |id: usize, f: &mut dyn FnMut(&mut Rewriter)| {
            cx.with(id, |e, _| e.rewriter().map(f));
        };
        let (mut capacity, mut others) = (self.table.capacity, self.table.sharers.clone());
        if let Some(owner) = self.shared {
            others.clear();
            other(owner, &mut |r| {
                capacity = r.capacity;
                others.clone_from(&r.sharers);
            });
            others.push(owner);
        }
        loop {
            let mut count = self.table.len();
            let mut first = self.table.first_loose(now).map(|f| (f, None));
            for id in &others {
                other(*id, &mut |r| {
                    count += r.len();
                    let loose = r.first_loose(now).map(|f| (f, Some(*id)));
                    first = first.into_iter().chain(loose).min_by_key(|f| f.0);
                });
            }
            if count <= capacity {
                return self.table.holds(new);
            }
            match first {
                Some(((_, id), None)) => self.table.remove(id),
                Some(((_, id), Some(element))) => other(element, &mut |r| r.remove(id)),
                None => self.table.remove(new),
            }
        }
    }

    /// What becomes of a new flow by a specification; none drops it.
    fn map(&mut self, port: usize, key: Key, cx: &Context<'_>) -> Option<Mapped> {
        let now = cx.now();
        let mut inputs = std::mem::take(&mut self.table.inputs);
        let table = &self.table;
        let free = |to: Key| table.free(to, now);
        let mut one = |input: &mut Specification| match input {
            Specification::Drop | Specification::Mapper(_) => None,
            Specification::Pass(output) => Some(Err(*output)),
            Specification::Keep(forward, reply) => Some(Ok((key, (*forward, *reply)))),
            Specification::Pattern(pattern, forward, reply) => {
                let to = pattern.rewrite(key, &|| cx.random(), &free)?;
                Some(Ok((to, (*forward, *reply))))
            }
        };
        let done = match inputs.get_mut(port) {
            Some(Specification::Mapper(id)) => cx
                .with(*id, |element, _| {
                    let mapper = element.mapper()?;
                    let count = mapper.patterns.len();
                    let next = match &mut mapper.order {
                        Order::InTurn(next) => next,
                        Order::BySource(of) => {
                            let own = of(key.source);
                            return mapper.patterns.get_mut(own).and_then(&mut one);
                        }
                    };
                    for n in 0..count {
                        let at = (*next + n) % count;
                        if let Some(found) = mapper.patterns.get_mut(at).and_then(&mut one) {
                            *next = (at + 1) % count;
                            return Some(found);
                        }
                    }
                    None
                })
                .flatten(),
            Some(input) => one(input),
            None => None,
        };
        self.table.inputs = inputs;
        done
    }
}

impl Element for Rewriting {
    fn meaning(&self) -> Option<Meaning> {
        let mapper = |input: &Specification| match input {
            Specification::Mapper(id) => Some(*id),
            _ => None,
        };
        let unusual = match () {
            () if self.what != What::Flows => Some("it does not rewrite by ports"),
            () if self.shared.is_some() => Some("its capacity is another rewriter's"),
            () if self.annotation.is_some() => Some("REPLY_ANNO is given"),
            () if self.aggregate => Some("SET_AGGREGATE is given"),
            () if self.lowers => Some("DEC_IP_TTL is given"),
            () => None,
        };
        Some(Meaning::Rewrite(Box::new(crate::meaning::Rewriting {
            inputs: self.table.inputs.clone(),
            mappers: self.table.inputs.iter().map(mapper).collect(),
            timeouts: self.table.timeouts,
            capacity: self.table.capacity,
            udp: self.udp,
            tcp: self.tcp,
            destination: self.destination,
            unusual,
        })))
    }

    fn start(&mut self, cx: &Context<'_>) -> Result<(), String> {
        if let Some(owner) = self.shared {
            let own = cx.find(cx.name());
            cx.with(owner, |e, _| e.rewriter().map(|r| r.sharers.extend(own)));
        }
        Ok(())
    }

    fn push(&mut self, port: usize, mut packet: Packet, cx: &Context<'_>) {
        if self.lowers && !super::dec_ip_ttl::lower(&mut packet) {
            return cx.drop(packet);
        }
        let Some(keys) = self.keys(&packet) else {
            return match self.table.inputs.get(port) {
                Some(Specification::Pass(output)) => cx.push(*output, packet),
                _ => cx.drop(packet),
            };
        };
        let now = cx.now();
        let tcp = if self.udp {
            None
        } else {
            headers::tcp_state(&packet)
        };
        let timeouts = self.table.timeouts;
        for key in &keys {
            let Some((flow, direction)) = self.table.find(*key, now) else {
                continue;
            };
            flow.touch(direction, tcp, &timeouts, now);
            let (words, output, number) =
                (flow.words(direction), flow.output(direction), flow.number);
            if let Some(slot) = self.annotation.and_then(|at| packet.anno.get_mut(at)) {
                match direction {
                    Direction::Reply => *slot = flow.annotation,
                    Direction::Forward => {}
                }
            }
            if self.aggregate {
                packet.set_quad(AGGREGATE, number.to_be_bytes());
            }
            return self.send(packet, (words, direction), output, cx);
        }
        let answer =
            self.what == What::Ping && packet.upper().is_some_and(|u| u.first() == Some(&0));
        let Some(key) = keys.first().copied().filter(|_| !answer) else {
            // An answer to nothing opens no flow.
            return match self.table.inputs.get(port) {
                Some(Specification::Pass(output)) => cx.push(*output, packet),
                _ => cx.drop(packet),
            };
        };
        let (to, outputs) = match self.map(port, key, cx) {
            None => return cx.drop(packet),
            Some(Err(output)) => return cx.push(output, packet),
            Some(Ok(found)) => found,
        };
        let new = New {
            from: key,
            to,
            outputs,
            input: port,
            annotation: self.annotation.map_or(0, |at| packet.anno[at]),
        };
        let id = self.table.add(&new, tcp, now);
        if !self.fit(id, cx) {
            self.table.failures += 1;
            return cx.drop(packet);
        }
        if self.aggregate {
            packet.set_quad(AGGREGATE, (id as u32).to_be_bytes());
        }
        self.send(packet, (to, Direction::Forward), outputs.0, cx);
    }

    fn rewriter(&mut self) -> Option<&mut Rewriter> {
        Some(&mut self.table)
    }

    fn read(&mut self, name: &str, argument: &str, cx: &Context<'_>) -> Read {
        let text = match name {
            "patterns" => self.table.patterns(),
            "size" | "nmappings" => self.table.len().to_string(),
            "capacity" => self.table.capacity.to_string(),
            "mapping_failures" => self.table.failures.to_string(),
            "tcp_table" => self.table.show(6),
            "udp_table" => self.table.show(17),
            "table" => self.table.show(0),
            "tcp_lookup" | "udp_lookup" => {
                let words = crate::language::args::words(argument);
                let ip = |at: usize| crate::arguments::ip(words.get(at)?, &cx.names());
                let port = |at: usize| words.get(at)?.parse().ok();
                let (Some(source), Some(sport), Some(destination), Some(dport)) =
                    (ip(0), port(1), ip(2), port(3))
                else {
                    return Some(Err(format!("bad flow '{argument}'")));
                };
                let protocol = if name == "tcp_lookup" { 6 } else { 17 };
                let key = Key {
                    source,
                    sport,
                    destination,
                    dport,
                    protocol,
                };
                let found = self
                    .table
                    .find(key, cx.now())
                    .map(|(flow, direction)| flow.words(direction));
                found.map_or(String::new(), |k| {
                    let dots = crate::arguments::dots;
                    format!(
                        "{} {} {} {}",
                        dots(k.source),
                        k.sport,
                        dots(k.destination),
                        k.dport
                    )
                })
            }
            _ => return None,
        };
        Some(Ok(text))
    }

    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) -> Written {
        if name == "capacity" {
            let Ok(capacity) = value.trim().parse() else {
                return Some(Err(format!("bad capacity '{value}'")));
            };
            self.table.capacity = capacity;
            self.table.shrink(cx.now());
            return Some(Ok(()));
        }
        let number: usize = name.strip_prefix("pattern")?.parse().ok()?;
        let ports = self.table.ports;
        let read = Specification::read(value, ports, &cx.names(), &|_| None, |_| None);
        Some(match (read, self.table.inputs.get_mut(number)) {
            (Ok(new), Some(slot)) => {
                *slot = new;
                self.table.clear(number);
                Ok(())
            }
            (Err(why), _) => Err(why),
            (_, None) => Err(format!("no input {number}")),
        })
    }
}
