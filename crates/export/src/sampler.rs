//! Every N-th packet of a worker: count-based, so that a run over the same captures samples the same packets.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use millrace_dataplane::module::Instance;
use millrace_dataplane::packet::Fate;
use millrace_dataplane::worker::watch::{Decided, Follow, Observer, Sight};

use crate::exporter::Feed;
use crate::sample::{Headers, Key, Sample};

/// One part in so many of a live worker's time goes into lines, at most.
const SHARE: u64 = 100;
/// What may be taken at once, ns.
const CREDIT: i64 = 20_000_000;

/// Who knows which line will drop a packet.
pub trait Lines: Send {
    /// `FILE:LINE` of the decision of an element to drop a packet that comes to it in this state.
    fn line(&mut self, element: u64, state: &mut Instance, packet: &Sight<'_>) -> Option<Arc<str>>;
}

/// A packet on its way through the elements.
struct OnWay {
    number: u64,
    headers: Headers,
    port: u32,
    time: u64,
    frame: u64,
    line: Option<Arc<str>>,
}

/// The names of an element, which its samples share.
struct Names {
    element: Arc<str>,
    reasons: Vec<Arc<str>>,
}

/// Samples the packets of one worker.
pub struct Sampler {
    every: usize,
    /// packets before the next sample
    left: usize,
    feed: Feed,
    lines: Box<dyn Lines>,
    /// none: lines may take as long as they need, since no port waits
    credit: Option<i64>,
    seen: Instant,
    on_way: Vec<OnWay>,
    names: HashMap<u64, Names>,
    aborted: Arc<str>,
    /// the element of a run of one function, which has no name of its own
    alone: Arc<str>,
}

impl Sampler {
    /// Of one packet in `every`, from 1. `name` is that of the function, where the run has one alone. `live`: packets come by ports, and lines get one part in a hundred of the time.
    #[must_use]
    pub fn new(every: u32, name: &str, feed: Feed, lines: Box<dyn Lines>, live: bool) -> Self {
        let every = every.max(1) as usize;
        Self {
            every,
            left: every - 1,
            feed,
            lines,
            credit: live.then_some(CREDIT),
            seen: Instant::now(),
            on_way: Vec::new(),
            names: HashMap::new(),
            aborted: "aborted".into(),
            alone: name.into(),
        }
    }
}

impl Observer for Sampler {
    #[inline]
    fn burst(&mut self, packets: usize) -> bool {
        self.on_way.clear();
        if self.left >= packets {
            self.left -= packets;
            return false;
        }
        if let Some(credit) = &mut self.credit {
            let now = Instant::now();
            let passed = now.saturating_duration_since(self.seen).as_nanos() / u128::from(SHARE);
            self.seen = now;
            let passed = i64::try_from(passed).unwrap_or(i64::MAX);
            *credit = credit.saturating_add(passed).min(CREDIT);
        }
        true
    }

    fn follows(&mut self, packet: &Sight<'_>) -> Follow {
        if self.left > 0 {
            self.left -= 1;
            return Follow::No;
        }
        self.left = self.every - 1;
        self.on_way.push(OnWay {
            number: packet.number,
            headers: Headers::of(packet),
            port: packet.port,
            time: packet.time,
            frame: u64::from(packet.wire),
            line: None,
        });
        match self.credit {
            Some(..=0) => Follow::End,
            _ => Follow::Apart,
        }
    }

    fn comes(&mut self, element: u64, state: Option<&mut Instance>, packet: &Sight<'_>) {
        let place = self.on_way.iter_mut().find(|p| p.number == packet.number);
        let (Some(way), Some(state)) = (place, state) else {
            return;
        };
        // Another observer may have asked for the state of a packet that this one has no time for.
        if matches!(self.credit, Some(..=0)) {
            return;
        }
        let since = Instant::now();
        way.line = self.lines.line(element, state, packet);
        if let Some(credit) = &mut self.credit {
            let spent = i64::try_from(since.elapsed().as_nanos()).unwrap_or(i64::MAX);
            *credit = credit.saturating_sub(spent);
        }
    }

    fn leaves(&mut self, _: u64, _: &Sight<'_>, _: Fate) {}

    fn ends(&mut self, number: u64, fate: Fate, decided: &Decided<'_>) {
        let Some(at) = self.on_way.iter().position(|p| p.number == number) else {
            return;
        };
        let way = self.on_way.swap_remove(at);
        let names = self.names.entry(decided.id).or_insert_with(|| Names {
            element: match decided.name {
                "" => self.alone.clone(),
                name => name.into(),
            },
            reasons: decided.reasons.iter().map(|r| r.as_str().into()).collect(),
        });
        let dropped = matches!(fate, Fate::Dropped(_) | Fate::Aborted);
        let reason = match fate {
            Fate::Dropped(index) => names.reasons.get(index as usize).cloned(),
            Fate::Aborted => Some(self.aborted.clone()),
            _ => None,
        };
        let line = way.line.filter(|_| dropped);
        let untold = dropped && line.is_none();
        let headers = way.headers;
        let sample = Sample {
            key: Key {
                ends: headers.ends,
                protocol: headers.protocol,
                class: headers.class,
                ports: headers.ports,
                ingress: way.port,
                fate,
                element: names.element.clone(),
                reason,
                line,
            },
            octets: headers.octets,
            frame: way.frame,
            time: way.time,
            flags: headers.flags,
        };
        let missed = self.feed.ring.push(sample).is_err();
        let counters = &self.feed.counters;
        counters.add_sampled(1, u64::from(missed), u64::from(untold));
    }

    fn changed(&mut self) -> bool {
        // Elements have new numbers where they are new.
        true
    }
}
