//! Answers go to where packets came from.
//!
//! A trace was recorded on one side of a function, or made without it, and so its answers are addressed to who
//! sent the packets that they answer. Behind a function that rewrites addresses or ports the answer would be
//! addressed to what the function wrote, and that may be another value on each side (a leased port). So a
//! packet that answers a flow whose packets were rewritten is addressed, on each side, to what that side made
//! of the flow. Functions that rewrite nothing get the trace as it is.

use std::collections::HashMap;

use millrace_dataplane::packet::Fate;

use crate::outcome::{Outcome, Written};
use crate::trace::Packet;
use crate::tuple::{End, Places, Tuple};

/// Flows that are remembered; answers to others stay as they are, on every side alike.
const MOST: usize = 1 << 22;

/// Translation of a flow.
#[derive(Clone, Debug)]
struct Kept {
    /// the flow that an answer is of
    answer: Tuple,
    /// the port where it comes in
    port: u32,
    /// leased numbers in it, which may end
    leases: Vec<Written>,
    /// whose they are
    worker: u32,
}

/// Translations of flows on one side, by the flow that an answer in the trace has.
#[derive(Default)]
pub struct Answers {
    flows: HashMap<Tuple, Kept>,
    /// answers that were sent elsewhere
    pub redirected: u64,
}

/// A packet of the trace, and whether it was readdressed.
pub struct Addressed {
    /// the packet as the side gets it
    pub packet: Packet,
    /// whether it differs from the trace's
    pub anew: bool,
}

/// Of leases of one number by several allocators those that keep the most of the end that was rewritten: the others are
/// other flows', and live and end with those.
fn own_of(leases: &mut Vec<Written>, end: &End) {
    let port = end.port.to_be_bytes();
    let kept = |l: &Written| {
        let has = |part: &[u8]| l.value.windows(part.len().max(1)).any(|w| w == part);
        [has(&end.address), has(&port)]
            .into_iter()
            .filter(|h| *h)
            .count()
    };
    let mut most: HashMap<usize, usize> = HashMap::new();
    for l in leases.iter() {
        let place = most.entry(l.at).or_default();
        *place = kept(l).max(*place);
    }
    leases.retain(|l| most.get(&l.at) == Some(&kept(l)));
}

impl Answers {
    /// The packet as this side gets it. `lives` says whether a worker still has a lease.
    pub fn address(
        &mut self,
        packet: &Packet,
        mut lives: impl FnMut(u32, &Written) -> bool,
    ) -> Addressed {
        let mut own = Addressed {
            packet: packet.clone(),
            anew: false,
        };
        if self.flows.is_empty() {
            return own;
        }
        let Some(places) = Places::of(&packet.frame) else {
            return own;
        };
        let Some(tuple) = places.tuple(&packet.frame) else {
            return own;
        };
        let Some(kept) = self.flows.get(&tuple).filter(|k| k.port == packet.port) else {
            return own;
        };
        if kept.leases.iter().all(|lease| lives(kept.worker, lease)) {
            places.write(&mut own.packet.frame, &kept.answer);
            own.anew = true;
            self.redirected += 1;
        } else {
            // What was leased is somebody else's by now, or nobody's.
            self.flows.remove(&tuple);
        }
        own
    }

    /// Whether a packet answers a flow that is known.
    #[must_use]
    pub fn answered(&self, packet: &Packet) -> bool {
        let tuple = || Places::of(&packet.frame)?.tuple(&packet.frame);
        !self.flows.is_empty()
            && tuple().is_some_and(|t| self.flows.get(&t).is_some_and(|k| k.port == packet.port))
    }

    /// Remembers what was made of a packet that came as the trace has it.
    pub fn learn(&mut self, packet: &Packet, outcome: &Outcome) {
        let Fate::Forwarded(to) = outcome.fate else {
            return;
        };
        if to == packet.port || outcome.bytes == packet.frame {
            return;
        }
        let tuple = |frame: &[u8]| Places::of(frame).and_then(|p| p.tuple(frame));
        let (Some(before), Some(after)) = (tuple(&packet.frame), tuple(&outcome.bytes)) else {
            return;
        };
        let key = before.reversed();
        if before == after {
            self.flows.remove(&key);
            return;
        }
        if self.flows.len() >= MOST && !self.flows.contains_key(&key) {
            return;
        }
        // Other words of the packet may look like leases, but one that was written is one.
        // A single byte may be any number, and in a frame of another length all words are new.
        let mut leases = outcome.leases.clone();
        let kept = packet.frame.len() == outcome.bytes.len();
        leases.retain(|l| kept && l.bytes > 1);
        if leases.iter().any(|l| l.changed) {
            leases.retain(|l| l.changed);
        }
        own_of(&mut leases, &before.source);
        let kept = Kept {
            answer: after.reversed(),
            port: to,
            leases,
            worker: outcome.worker,
        };
        self.flows.insert(key, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_two_allocators_is_of_the_flow_whose_end_it_keeps() {
        let lease = |object, value: &[u8]| Written {
            at: 34,
            bytes: 2,
            object,
            number: 2000,
            value: value.to_vec(),
            changed: true,
        };
        // Address and port, as einat keeps them; another flow's of the same host; one at another place.
        let tcp = lease(0, &[10, 0, 0, 1, 0x13, 0x88, 6, 0]);
        let udp = lease(1, &[10, 0, 0, 1, 0x27, 0x10, 17, 0]);
        let there = Written {
            at: 36,
            ..lease(2, &[1])
        };
        let end = End {
            address: vec![10, 0, 0, 1],
            port: 5000,
        };
        let mut leases = vec![udp.clone(), tcp.clone(), there.clone()];
        own_of(&mut leases, &end);
        assert_eq!(leases, [tcp, there]);
        // Nothing tells these apart.
        let mut alike = vec![udp.clone(), udp];
        own_of(&mut alike, &end);
        assert_eq!(alike.len(), 2);
    }
}
