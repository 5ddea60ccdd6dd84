//! The stream of packets: which flow is next, and what it says.

use rand::rand_core::Rng;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

use super::connection::{Flow, Phase, Turn};
use super::flow::{Identities, Protocol};
use super::frame::{ACK, Frame, PSH, SYN, Saying};
use super::spec::{Size, Spec, SpecError};
use crate::capture::Record;

/// Sizes of flows are drawn from another stream than packets.
const SIZES: u64 = 0x7369_7a65;

/// Packets to a [`Spec`].
///
/// Every flow is opened by a host of the LAN. Of TCP each packet is the next one that the connection
/// would send: sequence and acknowledgement numbers are those of a connection without loss, also where
/// only one direction is made. Connections that are open when the packets run out are closed with the
/// last of them, except where there are fewer packets than that takes.
pub struct Generator {
    spec: Spec,
    identities: Identities,
    random: ChaCha8Rng,
    zipf: Option<Zipf<f64>>,
    /// popularity by size: sums of the flows' sizes up to each
    sizes: Vec<f64>,
    flows: Vec<Flow>,
    frame: Frame,
    made: u64,
    /// Numbers given to flows so far.
    numbers: u64,
    /// Flows that churn has ended so far, and the one that it is ending.
    churned: u64,
    ending: Option<usize>,
    /// Packets that closing all connections in their present phases takes.
    to_close: u64,
    /// The first flow that may still be open, once the trace is being closed.
    closing: usize,
    /// Thousandths of packets a second.
    millirate: u64,
}

impl Generator {
    /// Begins such traffic.
    ///
    /// # Errors
    /// Those of [`Spec::validate`].
    pub fn new(spec: Spec) -> Result<Self, SpecError> {
        spec.validate()?;
        let zipf = match spec.zipf {
            0.0 => None,
            exponent => Some(
                Zipf::new(spec.flows as f64, exponent).map_err(|_| SpecError::Zipf(exponent))?,
            ),
        };
        let mut sums = ChaCha8Rng::seed_from_u64(spec.seed ^ SIZES);
        let mut sum = 0.0;
        let sizes = spec.shape.map(|shape| {
            let all = (0..spec.flows).map(|_| {
                sum += shape.size(sums.random::<f64>());
                sum
            });
            all.collect()
        });
        let identities = Identities::new(&spec);
        let flows = (0..spec.flows)
            .map(|number| Flow::new(number, spec.seed))
            .collect();
        Ok(Self {
            identities,
            random: ChaCha8Rng::seed_from_u64(spec.seed),
            zipf,
            sizes: sizes.unwrap_or_default(),
            flows,
            frame: Frame::new(spec.longest()),
            made: 0,
            numbers: spec.flows,
            churned: 0,
            ending: None,
            to_close: 0,
            closing: 0,
            millirate: (spec.rate * 1000.0).round() as u64,
            spec,
        })
    }

    /// What it makes.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The next packet; none when all are made. Its interface is 0 for what the LAN sends, 1 for what
    /// the WAN sends.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot lend its items"
    )]
    pub fn next(&mut self) -> Option<Record<'_>> {
        if self.made == self.spec.packets {
            return None;
        }
        let elapsed_ns = u128::from(self.made) * 1_000_000_000_000 / u128::from(self.millirate);
        let elapsed_ns = u64::try_from(elapsed_ns).unwrap_or(u64::MAX);
        let (at, turn) = self.choose(elapsed_ns);
        self.made += 1;
        let time_ns = self.spec.start_ns.saturating_add(elapsed_ns);
        let (mut saying, number, data) = self.go_on(at, turn);
        let identity = self.identities.identity(number);
        // Only data has the length asked for.
        let length = if data { self.draw_length() } else { 0 };
        let headers = Frame::headers(&identity, saying.flags & SYN != 0);
        let length = length.max(headers);
        if length == headers {
            // There is nothing to push.
            saying.flags &= !PSH;
        }
        if data && identity.protocol == Protocol::Tcp {
            self.advance(at, saying.answer, (length - headers) as u32);
        }
        let data = self.frame.make(&identity, saying, length);
        let interface = u32::from(saying.answer);
        Some(Record {
            time_ns,
            original_length: data.len() as u32,
            interface,
            data,
        })
    }

    /// A number below `below`, from one draw: the upper bits of a product (Lemire, "Fast random integer
    /// generation in an interval", 2019, without the rejection that its bias of below / 2^64 would need).
    fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(below)) >> 64) as u64
    }

    fn draw_length(&mut self) -> usize {
        match self.spec.size {
            Size::Fixed(size) => usize::from(size),
            Size::Range(least, most) => {
                let width = u64::from(most - least) + 1;
                usize::from(least) + self.below(width) as usize
            }
            Size::Imix => match self.below(12) {
                0..7 => 14 + 40,
                7..11 => 14 + 576,
                _ => 14 + 1500,
            },
        }
    }

    /// The flow that sends the next packet.
    fn choose(&mut self, elapsed_ns: u64) -> (usize, Turn) {
        let left = self.spec.packets - self.made;
        if self.spec.every_flow && self.made < self.spec.flows {
            return (self.made as usize, Turn::Talk);
        }
        if self.spec.connections
            && left <= self.to_close
            && let Some(at) = self.next_to_close()
        {
            return (at, Turn::End);
        }
        if let Some(at) = self.churn(elapsed_ns) {
            return (at, Turn::End);
        }
        // What would not be closed any more is not opened: six packets are a whole connection.
        let room = left > self.to_close + 6;
        let at = match &self.zipf {
            _ if !self.sizes.is_empty() => {
                let sum = self.sizes.last().copied().unwrap_or(0.0);
                let drawn = self.random.random::<f64>() * sum;
                let at = self.sizes.partition_point(|up| *up <= drawn);
                at.min(self.flows.len() - 1)
            }
            // Ranks begin with 1, and rounding could reach one beyond the last.
            Some(zipf) => {
                let rank = zipf.sample(&mut self.random) as usize;
                rank.clamp(1, self.flows.len()) - 1
            }
            None => self.below(self.spec.flows) as usize,
        };
        if room || !self.opens(at) {
            return (at, Turn::Talk);
        }
        // An open connection takes up the few packets that are left over before the end.
        (self.next_to_close().unwrap_or(at), Turn::Talk)
    }

    /// Whether the flow's next packet opens a connection.
    fn opens(&self, at: usize) -> bool {
        self.spec.connections
            && self.flows.get(at).is_some_and(|flow| {
                flow.phase == Phase::New && self.identities.protocol(flow.number) == Protocol::Tcp
            })
    }

    /// The first connection that is not closed.
    fn next_to_close(&mut self) -> Option<usize> {
        // While traffic goes on, connections before the mark may open; it is set back then.
        while let Some(flow) = self.flows.get(self.closing) {
            if self.closing_cost(flow) > 0 {
                return Some(self.closing);
            }
            self.closing += 1;
        }
        None
    }

    /// The flow whose turn it is to end, if one is due; the churn of flows without a packet passes by.
    fn churn(&mut self, elapsed_ns: u64) -> Option<usize> {
        if self.ending.is_some() {
            return self.ending;
        }
        let due = (self.spec.churn * (elapsed_ns as f64 / 60e9)) as u64;
        while self.churned < due {
            let at = (self.churned % self.spec.flows) as usize;
            self.churned += 1;
            let flow = *self.flows.get(at)?;
            if self.closing_cost(&flow) > 0 {
                self.ending = Some(at);
                return self.ending;
            }
            self.renew(at);
        }
        None
    }

    /// Puts a new flow in the place of one that has ended.
    fn renew(&mut self, at: usize) {
        if let Some(flow) = self.flows.get_mut(at) {
            *flow = Flow::new(self.numbers, self.spec.seed);
            self.numbers += 1;
        }
        if self.ending == Some(at) {
            self.ending = None;
        }
    }

    /// Packets that it takes to close a flow from where it stands.
    fn closing_cost(&self, flow: &Flow) -> u64 {
        if !self.spec.connections || self.identities.protocol(flow.number) != Protocol::Tcp {
            return 0;
        }
        flow.left_to_close(self.spec.both)
    }

    /// The flow's next packet: what it says, the flow's number, and whether it carries data.
    fn go_on(&mut self, at: usize, turn: Turn) -> (Saying, u64, bool) {
        let draw = self.random.next_u64();
        let Some(flow) = self.flows.get(at).copied() else {
            return (Saying::default(), 0, false);
        };
        // Which side speaks when both may: a third of data goes to the server of TCP, half elsewhere.
        let tcp = self.identities.protocol(flow.number) == Protocol::Tcp;
        let answer = self.spec.both && draw % 6 >= if tcp { 2 } else { 3 };
        let identification = (draw >> 32) as u16;
        if !(tcp && self.spec.connections) {
            let first = flow.phase == Phase::New;
            let saying = self.bare(at, flow, answer && !first, identification);
            return (saying, flow.number, true);
        }
        let before = self.closing_cost(&flow);
        let (saying, next, data) = flow.go_on(turn, answer, self.spec.both, identification);
        if let Some(place) = self.flows.get_mut(at) {
            place.client = next.client;
            place.server = next.server;
            place.phase = next.phase;
        }
        let finished = flow.phase != Phase::New && next.phase == Phase::New;
        let after = if finished {
            0
        } else {
            self.closing_cost(&next)
        };
        self.to_close = (self.to_close + after).saturating_sub(before);
        self.closing = self.closing.min(at);
        if finished {
            self.renew(at);
        }
        (saying, flow.number, data)
    }

    /// A packet of UDP, ICMP, or TCP without connections.
    fn bare(&mut self, at: usize, mut flow: Flow, answer: bool, number: u16) -> Saying {
        let protocol = self.identities.protocol(flow.number);
        if protocol == Protocol::Icmp && flow.phase == Phase::New {
            (flow.client, flow.server) = (0, 0);
        }
        // An echo is answered once: an answer for which there is none would be one too many.
        let answer = answer && (protocol != Protocol::Icmp || flow.server < flow.client);
        if let Some(place) = self.flows.get_mut(at) {
            *place = Flow {
                phase: Phase::Open,
                ..flow
            };
            if protocol == Protocol::Icmp {
                place.client = flow.client.wrapping_add(u32::from(!answer));
                place.server = flow.server.wrapping_add(u32::from(answer));
            }
        }
        let (sequence, acknowledgement) = if answer {
            (flow.server, flow.client)
        } else {
            (flow.client, flow.server)
        };
        Saying {
            answer,
            sequence,
            acknowledgement,
            flags: ACK | PSH,
            number,
        }
    }

    /// Counts the data that a segment carried.
    fn advance(&mut self, at: usize, answer: bool, length: u32) {
        if let Some(flow) = self.flows.get_mut(at) {
            let sequence = if answer {
                &mut flow.server
            } else {
                &mut flow.client
            };
            *sequence = sequence.wrapping_add(length);
        }
    }
}
