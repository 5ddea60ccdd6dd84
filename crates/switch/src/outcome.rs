//! Outcomes: what a switch itself can do with the packets of a class, or that a server has to.

use std::collections::{BTreeMap, HashMap};

use millrace_synth::Synthesis;
use millrace_synth::action::{Action, Value, Verdict};
use millrace_synth::field::{Base, Var, bit, ip};

use crate::openflow::{Do, Field};

// Where Ethernet's header ends: the only place of an IP header that a switch reads.
pub(crate) use millrace_synth::rows::IP;
/// Routers in a row whose packets a switch forwards: each lowers the time to live by an action of its own.
const MOST_LOWER: i64 = 64;

/// In the place of a device: the one by which the packet came.
pub(crate) const BACK: u8 = u8::MAX;

/// What becomes of a packet in a switch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Outcome {
    /// a server decides
    Server,
    /// it is dropped
    Drop,
    /// fields are written, and it leaves by a device
    Forward(u8, Vec<Do>),
}

/// All outcomes, numbered: leaves of projected diagrams.
#[derive(Default)]
pub(crate) struct Outcomes {
    all: Vec<Outcome>,
    numbers: HashMap<Outcome, u32>,
    /// why servers get packets, with the number of classes for which it is so
    pub(crate) reasons: BTreeMap<String, usize>,
    seen: HashMap<(u32, u64, bool), u32>,
}

/// The leaf of packets that a server decides on.
pub(crate) const SERVER: u32 = 0;

impl Outcomes {
    pub(crate) fn new() -> Self {
        let mut made = Self::default();
        made.number(Outcome::Server);
        made.number(Outcome::Drop);
        made
    }

    fn number(&mut self, outcome: Outcome) -> u32 {
        if let Some(number) = self.numbers.get(&outcome) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(outcome.clone());
        self.numbers.insert(outcome, number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> &Outcome {
        self.all.get(number as usize).unwrap_or(&Outcome::Server)
    }

    /// The leaf for packets that came by a device: a switch does not send a frame back by the port's number (OpenFlow 1.3.5, A.2.1).
    pub(crate) fn back(&mut self, leaf: u32, port: u8) -> u32 {
        match self.get(leaf).clone() {
            Outcome::Forward(to, does) if to == port => self.number(Outcome::Forward(BACK, does)),
            _ => leaf,
        }
    }

    /// The leaf for an action, of packets of a protocol (256: not known) that have an IP header or not.
    pub(crate) fn of(
        &mut self,
        of: &Synthesis,
        number: u32,
        protocol: u64,
        padding: bool,
        has_ip: bool,
    ) -> u32 {
        if let Some(known) = self.seen.get(&(number, protocol, has_ip)) {
            return *known;
        }
        let Some(action) = of.actions.get(number) else {
            return SERVER;
        };
        let title = |id: usize| {
            let element = of.router.graph().elements.get(id);
            element.map_or_else(|| "an element".to_owned(), |e| e.title())
        };
        let outcome = match action.verdict {
            Verdict::Drop(_) => Ok(Outcome::Drop),
            Verdict::Leave { port, .. } => {
                written(action, protocol, padding, has_ip).map(|w| Outcome::Forward(port, w))
            }
            Verdict::State(asked) => {
                let at = of.actions.asked(asked).map_or(usize::MAX, |s| s.at.element);
                Err(format!("{} keeps flows", title(at)))
            }
            Verdict::Pass(id) => Err(format!("{} gives packets to the host", title(id))),
            Verdict::Hand(id) | Verdict::Again(id) => {
                Err(format!("{} makes, copies or holds packets", title(id)))
            }
        };
        let outcome = outcome.unwrap_or_else(|why| {
            *self.reasons.entry(why).or_default() += 1;
            Outcome::Server
        });
        let leaf = self.number(outcome);
        self.seen.insert((number, protocol, has_ip), leaf);
        leaf
    }
}

/// The actions that write what a class writes, or what a switch cannot write.
fn written(action: &Action, protocol: u64, padding: bool, has_ip: bool) -> Result<Vec<Do>, String> {
    if action.head != 0 {
        return Err("bytes at the front come or go".into());
    }
    if action.cut.is_some() && !padding {
        return Err("padding behind the IP packet is cut".into());
    }
    let mut does = Vec::new();
    let mut ethernet = [(0_u64, 0_u32); 2];
    for (var, write) in &action.writes {
        let no = || Err(format!("no action writes {var} so"));
        if write.value == Value::Field(*var, 0) {
            continue;
        }
        let constant = match write.value {
            Value::Constant(number) => Some(number),
            Value::Field(..) => None,
        };
        if let Var::Bits(Base::Frame, first, width) = *var
            && first < 96
        {
            let (at, start) = if first < 48 { (0, 0) } else { (1, 48) };
            let (Some(value), Some(slot)) = (constant, ethernet.get_mut(at)) else {
                return no();
            };
            slot.0 |= value << (48 - (first - start) - u32::from(width));
            slot.1 += u32::from(width);
            continue;
        }
        // The type is what the case says, so that writing the same is nothing.
        if matches!(*var, Var::Bits(Base::Frame, 96, 16)) {
            if constant == Some(0x0800) && has_ip {
                continue;
            }
            return no();
        }
        if !has_ip || write.sums.header.is_some_and(|at| at != IP) {
            return no();
        }
        let header = write.sums.header == Some(IP);
        // Sums of addresses, as a switch has them follow (OpenFlow 1.3.5, 5.12).
        let upper = match protocol {
            6 | 17 => u64::from(write.sums.upper) == protocol,
            0..256 => write.sums.upper == 0,
            _ => false,
        };
        let field = match *var {
            v if v == ip(IP, bit::TTL) => match write.value {
                Value::Field(from, less) if from == v && header => {
                    if !(-MOST_LOWER..0).contains(&less) {
                        return no();
                    }
                    does.extend((0..-less).map(|_| Do::LowerTtl));
                    continue;
                }
                _ => return no(),
            },
            v if v == ip(IP, 8) && header => Field::IpDscp,
            v if v == ip(IP, 14) && header => Field::IpEcn,
            v if v == ip(IP, bit::SOURCE) && header && upper => Field::Ipv4Src,
            v if v == ip(IP, bit::DESTINATION) && header && upper => Field::Ipv4Dst,
            _ => return no(),
        };
        // A sum that two elements write may be written as the other zero of ones' complement.
        match constant {
            Some(value) if !write.again => does.push(Do::Set(field, value)),
            _ => return no(),
        }
    }
    for (n, (value, bits)) in ethernet.into_iter().enumerate() {
        let field = if n == 0 { Field::EthDst } else { Field::EthSrc };
        match bits {
            0 => {}
            48 => does.push(Do::Set(field, value)),
            _ => return Err("a part of an Ethernet address is written".into()),
        }
    }
    Ok(does)
}
