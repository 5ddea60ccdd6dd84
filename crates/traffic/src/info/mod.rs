//! Description of a capture: its packets, flows, sizes and bursts, in one pass and bounded memory.

mod description;
mod flows;
mod histogram;
mod packet;
mod show;

use std::collections::BTreeMap;

use crate::capture::Record;
pub use description::{
    Bin, Bursts, Description, Flows, ProtocolShare, Quantiles, Sizes, WrongChecksums,
};
use flows::FlowTable;
use histogram::Histogram;
use packet::Facts;

/// Flows that are counted unless another limit is asked for: some 150 MB when all are there.
pub const DEFAULT_FLOW_LIMIT: usize = 8 * 1024 * 1024;

const NS_PER_MS: u64 = 1_000_000;

/// Takes packets in and describes them at the end.
///
/// ```no_run
/// use millrace_traffic::{capture::Reader, info::{DEFAULT_FLOW_LIMIT, Describer}};
/// let mut reader = Reader::open("talk.pcap")?;
/// let mut describer = Describer::new(DEFAULT_FLOW_LIMIT);
/// while let Some(record) = reader.next()? {
///     describer.add(&record);
/// }
/// println!("{}", describer.finish());
/// # Ok::<(), millrace_traffic::capture::Error>(())
/// ```
pub struct Describer {
    packets: u64,
    bytes: u64,
    captured_bytes: u64,
    truncated: u64,
    times: Option<Times>,
    backwards: u64,
    sizes: Histogram,
    gaps: Histogram,
    flows: FlowTable,
    protocols: BTreeMap<&'static str, (u64, u64)>,
    vlan: u64,
    ipv4: u64,
    ipv6: u64,
    fragments: u64,
    malformed: u64,
    wrong: WrongChecksums,
}

/// Stamps seen so far.
struct Times {
    first: u64,
    earliest: u64,
    latest: u64,
    previous: u64,
    millisecond: u64,
    in_millisecond: u64,
    most_in_millisecond: u64,
}

impl Describer {
    /// Nothing so far; at most `flow_limit` flows are told apart.
    pub fn new(flow_limit: usize) -> Self {
        Self {
            packets: 0,
            bytes: 0,
            captured_bytes: 0,
            truncated: 0,
            times: None,
            backwards: 0,
            sizes: Histogram::default(),
            gaps: Histogram::default(),
            flows: FlowTable::new(flow_limit),
            protocols: BTreeMap::new(),
            vlan: 0,
            ipv4: 0,
            ipv6: 0,
            fragments: 0,
            malformed: 0,
            wrong: WrongChecksums::default(),
        }
    }

    /// Takes a packet in.
    pub fn add(&mut self, record: &Record<'_>) {
        let length = u64::from(record.original_length).max(record.data.len() as u64);
        self.packets += 1;
        self.bytes += length;
        self.captured_bytes += record.data.len() as u64;
        self.truncated += u64::from(length > record.data.len() as u64);
        self.sizes.add(length);
        self.time(record.time_ns);

        let facts = Facts::of(record.data);
        let share = self.protocols.entry(facts.protocol).or_default();
        share.0 += 1;
        share.1 += length;
        self.vlan += u64::from(facts.vlan);
        self.ipv4 += u64::from(facts.ipv4);
        self.ipv6 += u64::from(facts.ipv6);
        self.fragments += u64::from(facts.fragment);
        self.malformed += u64::from(facts.malformed);
        self.wrong.ipv4 += u64::from(facts.wrong_ipv4);
        match facts.protocol {
            "tcp" => self.wrong.tcp += u64::from(facts.wrong_transport),
            "udp" => self.wrong.udp += u64::from(facts.wrong_transport),
            _ => self.wrong.icmp += u64::from(facts.wrong_transport),
        }
        if let Some(flow) = facts.flow {
            self.flows.count(flow);
        }
    }

    fn time(&mut self, now: u64) {
        let millisecond = now / NS_PER_MS;
        let Some(times) = &mut self.times else {
            self.times = Some(Times {
                first: now,
                earliest: now,
                latest: now,
                previous: now,
                millisecond,
                in_millisecond: 1,
                most_in_millisecond: 1,
            });
            return;
        };
        match now.checked_sub(times.previous) {
            Some(gap) => self.gaps.add(gap),
            None => self.backwards += 1,
        }
        times.previous = now;
        times.earliest = times.earliest.min(now);
        times.latest = times.latest.max(now);
        if millisecond != times.millisecond {
            times.millisecond = millisecond;
            times.in_millisecond = 0;
        }
        times.in_millisecond += 1;
        times.most_in_millisecond = times.most_in_millisecond.max(times.in_millisecond);
    }

    /// Describes what was taken in.
    pub fn finish(self) -> Description {
        let times = self.times.as_ref();
        let seconds = times.map_or(0.0, |times| (times.latest - times.earliest) as f64 / 1e9);
        // A capture of one moment has no rate.
        let rate = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        let per_ms = rate(self.packets) / 1000.0;
        let peak = times.map_or(0, |times| times.most_in_millisecond);
        let mut protocols: Vec<_> = self
            .protocols
            .iter()
            .map(|(name, &(packets, bytes))| ProtocolShare {
                name,
                packets,
                bytes,
            })
            .collect();
        protocols.sort_by_key(|share| std::cmp::Reverse(share.packets));
        Description {
            packets: self.packets,
            bytes: self.bytes,
            captured_bytes: self.captured_bytes,
            truncated: self.truncated,
            first_ns: times.map(|times| times.first),
            seconds,
            packets_per_second: rate(self.packets),
            bits_per_second: rate(self.bytes) * 8.0,
            backwards: self.backwards,
            vlan: self.vlan,
            ipv4: self.ipv4,
            ipv6: self.ipv6,
            fragments: self.fragments,
            malformed: self.malformed,
            wrong_checksums: self.wrong,
            protocols,
            sizes: Sizes {
                mean: if self.packets > 0 {
                    self.bytes as f64 / self.packets as f64
                } else {
                    0.0
                },
                quantiles: self.sizes.quantiles(),
                bins: self.sizes.bins(&SIZE_BINS),
            },
            flows: self.flows.describe(),
            bursts: Bursts {
                gap_ns: self.gaps.quantiles(),
                most_in_a_millisecond: peak,
                peak_to_mean: if per_ms > 0.0 {
                    peak as f64 / per_ms.max(1e-9)
                } else {
                    0.0
                },
            },
        }
    }
}

/// First bytes of the bins of sizes: those of RMON's Ethernet statistics (RFC 2819, 5) without the four
/// bytes of the frame check sequence, which captures lack, and one for what offloading makes.
const SIZE_BINS: [u64; 8] = [0, 61, 124, 252, 508, 1020, 1515, 8192];
