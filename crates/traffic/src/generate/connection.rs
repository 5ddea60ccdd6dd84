//! A flow that is alive, and TCP's way through a connection (RFC 9293, 3.5 and 3.6).

use super::flow::spread;
use super::frame::{ACK, FIN, PSH, SYN, Saying};

/// Where a TCP connection stands. Other flows go from `New` to `Open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    SynSent,
    SynAnswered,
    Open,
    FinSent,
    FinAnswered,
}

/// A flow that is alive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) number: u64,
    /// The next sequence number of the opener, and of who answers. ICMP: echoes, answers.
    pub(super) client: u32,
    pub(super) server: u32,
    pub(super) phase: Phase,
}

/// Why a flow is the one to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Talk,
    /// It is to end; other flows wait until it has.
    End,
}

impl Flow {
    pub(super) fn new(number: u64, seed: u64) -> Self {
        // Initial sequence numbers spread over their whole range, as RFC 9293, 3.4.1 asks of hosts.
        let draw = spread(number.wrapping_mul(3) ^ seed);
        Self {
            number,
            client: draw as u32,
            server: (draw >> 32) as u32,
            phase: Phase::New,
        }
    }

    /// Packets that it takes to close a connection from where it stands.
    pub(super) fn left_to_close(&self, both: bool) -> u64 {
        match (self.phase, both) {
            (Phase::New, _) => 0,
            (Phase::SynSent, true) => 5,
            (Phase::SynAnswered, true) => 4,
            (Phase::SynSent | Phase::SynAnswered, false) | (Phase::Open, true) => 3,
            (Phase::Open, false) | (Phase::FinSent, true) => 2,
            (Phase::FinSent, false) | (Phase::FinAnswered, _) => 1,
        }
    }

    /// The next packet of a connection, where it stands then (`New`: it is closed), and whether the
    /// packet carries data. Where both may speak, `answer` says that the server does; `both`: its
    /// packets are made too.
    pub(super) fn go_on(
        &self,
        turn: Turn,
        answer: bool,
        both: bool,
        number: u16,
    ) -> (Saying, Self, bool) {
        let flow = self;
        let mut next = *flow;
        // What the side says, with all acknowledged that the other has sent.
        let from = |answer: bool, flow: &Flow, flags: u8| {
            let (sequence, acknowledgement) = if answer {
                (flow.server, flow.client)
            } else {
                (flow.client, flow.server)
            };
            Saying {
                answer,
                sequence,
                acknowledgement,
                flags,
                number,
            }
        };
        let mut data = false;
        let saying = match flow.phase {
            Phase::New => {
                next.client = flow.client.wrapping_add(1);
                next.phase = if both {
                    Phase::SynSent
                } else {
                    Phase::SynAnswered
                };
                // Unseen where only one direction is made, the answer counts all the same.
                next.server = flow.server.wrapping_add(u32::from(!both));
                Saying {
                    acknowledgement: 0,
                    ..from(false, flow, SYN)
                }
            }
            Phase::SynSent => {
                next.server = flow.server.wrapping_add(1);
                next.phase = Phase::SynAnswered;
                from(true, flow, SYN | ACK)
            }
            Phase::SynAnswered => {
                next.phase = Phase::Open;
                from(false, flow, ACK)
            }
            Phase::Open if turn == Turn::Talk => {
                data = true;
                from(answer, flow, ACK | PSH)
            }
            Phase::Open => {
                next.client = flow.client.wrapping_add(1);
                next.phase = Phase::FinSent;
                from(false, flow, FIN | ACK)
            }
            Phase::FinSent if both => {
                next.server = flow.server.wrapping_add(1);
                next.phase = Phase::FinAnswered;
                from(true, flow, FIN | ACK)
            }
            Phase::FinSent => {
                next.phase = Phase::New;
                next.server = flow.server.wrapping_add(1);
                from(false, &next, ACK)
            }
            Phase::FinAnswered => {
                next.phase = Phase::New;
                from(false, flow, ACK)
            }
        };
        (saying, next, data)
    }
}
