//! What is known at a place of the code: which pointers lead to how many bytes, whichever path leads there.

use super::Emitter;
use crate::diagram::{Id, Node};
use crate::field::{self, Base, Var, ip, is_of_ip};

/// What is known at a place of the code: which pointers lead to how many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Known {
    /// bytes from the frame's first on
    pub(super) frame: u32,
    /// where the IP header begins that `ip` leads to, 20 bytes
    pub(super) ip: Option<u16>,
    /// bytes of the transport header that `upper` leads to
    pub(super) upper: u32,
    /// the byte where the IP header begins that it is behind
    pub(super) behind: Option<u16>,
    /// where an IP header begins that is right, so that the frame has all bytes of its length
    pub(super) right: Option<u16>,
    /// where an IP header begins, and bytes that it has with its packet, by its length
    pub(super) total: Option<(u16, u32)>,
}

impl Known {
    fn meet(self, other: Self) -> Self {
        Self {
            frame: self.frame.min(other.frame),
            ip: self.ip.filter(|at| other.ip == Some(*at)),
            upper: self.upper.min(other.upper),
            behind: self.behind.filter(|at| other.behind == Some(*at)),
            right: self.right.filter(|at| other.right == Some(*at)),
            total: self
                .total
                .zip(other.total)
                .and_then(|(own, other)| (own.0 == other.0).then_some((own.0, own.1.min(other.1)))),
        }
    }

    /// Bytes that the frame has by the length of its IP header, whether or not a pointer leads to them.
    pub(super) fn within(self) -> u32 {
        match (self.right, self.total) {
            (Some(right), Some((at, bytes))) if right == at => u32::from(at) + bytes,
            _ => 0,
        }
    }
}

impl Emitter<'_> {
    /// What is known at each node, whichever path leads there.
    pub(super) fn prove(&mut self, root: Id, known: Known) {
        self.known.insert(root, known);
        for id in self.of.store.reachable(root) {
            let known = self.known.get(&id).copied().unwrap_or_default();
            if let Node::Branch { var, kids } = self.of.store.node(id) {
                for (first, kid) in kids {
                    let after = Self::after(known, *var, *first);
                    let old = self.known.get(kid).copied();
                    let both = old.map_or(after, |old| old.meet(after));
                    self.known.insert(*kid, both);
                }
            }
        }
    }

    /// What is known behind a branch, for the interval that begins at a value.
    pub(super) fn after(mut known: Known, var: Var, first: u64) -> Known {
        match var {
            Var::Length => known.frame = known.frame.max(first as u32),
            Var::Checked(at, _) if first == 1 => {
                known.frame = known.frame.max(u32::from(at) + 20);
                known.ip = Some(at);
                known.right = Some(at);
            }
            Var::Room(at, _) => {
                known.upper = known.upper.max(first as u32);
                known.behind = Some(at);
                if known.frame >= u32::from(at) + 20 {
                    known.ip = Some(at);
                }
            }
            Var::Bits(Base::Frame, bit, width) if bit >= 112 => {
                let at = (bit / 8)
                    .checked_sub(2)
                    .and_then(|at| u16::try_from(at).ok());
                if let Some(at) = at.filter(|at| ip(*at, field::bit::LENGTH) == var) {
                    let before = known.total.filter(|t| t.0 == at).map_or(0, |t| t.1);
                    known.total = Some((at, before.max(first as u32)));
                }
                known.ip = Self::header(known, bit, width).or(known.ip);
            }
            _ => {}
        }
        known
    }

    /// Where the IP header begins of which these bits of the frame are a field, if they may be read as one.
    pub(super) fn header(known: Known, bit: u32, width: u8) -> Option<u16> {
        let inside = |at: u16| {
            let within = bit.checked_sub(u32::from(at) * 8);
            within.is_some_and(|bit| is_of_ip(bit, width))
        };
        known.ip.filter(|at| inside(*at)).or_else(|| {
            [14, 18, 22]
                .into_iter()
                .find(|at| inside(*at) && known.frame >= u32::from(*at) + 20)
        })
    }

    /// Several paths meet here. Each proved that the transport header is there, at a place of its own: what follows needs one
    /// proof.
    pub(super) fn again(&mut self, known: Known) {
        let bytes = known.upper;
        let Some(at) = known.ip else {
            // The frame may end within the header (`rooms`).
            if let (Some(at), true) = (known.behind, bytes > 0) {
                let place = format!("{at} + (frame[{at}] & 15) * 4u");
                self.say(1, &format!("upper = packet_bytes(p, {place}, {bytes});"));
                self.say(1, "if (!upper)\n\t\treturn DROP;");
            }
            return;
        };
        if bytes > 0 {
            self.say(1, &format!("ip = packet_at(p, {at}, struct ipv4);"));
            self.say(1, "if (!ip)\n\t\treturn DROP;");
            self.say(
                1,
                &format!("upper = packet_bytes(p, {at} + ipv4_header_bytes(ip), {bytes});"),
            );
            self.say(1, "if (!upper)\n\t\treturn DROP;");
        }
    }

    /// Lets `ip` lead to the IP header at a byte.
    pub(super) fn lead_to_header(&mut self, at: u16, known: Known, depth: usize) {
        if known.ip != Some(at) {
            self.locals.insert("*ip".into(), "struct ipv4");
            self.say(depth, &format!("ip = (struct ipv4 *)(frame + {at});"));
        }
    }
}
