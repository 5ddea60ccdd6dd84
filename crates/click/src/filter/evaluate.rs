//! What a condition says of a packet.

use super::{Base, Compare, Condition, Test};
use crate::packet::Packet;

impl Condition {
    /// Whether it holds for a packet.
    #[must_use]
    pub fn holds(&self, packet: &Packet) -> bool {
        match self {
            Self::Constant(answer) => *answer,
            Self::Test(test) => test.holds(packet),
            Self::All(all) => all.iter().all(|c| c.holds(packet)),
            Self::Any(any) => any.iter().any(|c| c.holds(packet)),
            Self::Not(inner) => !inner.holds(packet),
            Self::If(three) => {
                let [condition, then, other] = &**three;
                match condition.holds(packet) {
                    true => then.holds(packet),
                    false => other.holds(packet),
                }
            }
        }
    }
}

impl Test {
    /// Whether it holds; false for bytes that the packet does not have.
    #[must_use]
    pub fn holds(&self, packet: &Packet) -> bool {
        let bytes = match self.base {
            Base::Network => packet.ip(),
            Base::Transport => packet.upper(),
            // It is there also where it was stripped.
            Base::Link => match packet.link() {
                Some(bytes) => Some(bytes),
                // Without a mark the frame's header is in front of the network header.
                None => match packet.network().map(|n| usize::try_from(n - 14)) {
                    Some(Ok(at)) => packet.data().get(at..),
                    _ => Some(packet.data()),
                },
            },
        };
        let bytes = bytes.and_then(|b| b.get(self.offset..self.offset + self.bytes));
        let Some(bytes) = bytes else {
            return false;
        };
        let number = bytes.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b)) & self.mask;
        match self.compare {
            Compare::Equal => number == self.value,
            Compare::Unequal => number != self.value,
            Compare::Less => number < self.value,
            Compare::AtMost => number <= self.value,
            Compare::Greater => number > self.value,
            Compare::AtLeast => number >= self.value,
        }
    }
}
