//! The packets of one thread of the device, in their order.

use super::dealt::Dealt;
use super::schedule::{Next, Order};

/// Where a thread's packets come from.
#[derive(Debug)]
pub enum Packets {
    /// which they are is known before anything comes
    Known {
        /// in which order
        order: Order,
        /// so many are behind
        index: u64,
    },
    /// heavy keys are chosen while packets come
    Dealt(Box<Dealt>),
}

impl Packets {
    /// The number of the next packet, or of one before it; none where there is none.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Known { order, index } => order.at(*index).map(|turn| turn.number),
            Self::Dealt(dealt) => Some(dealt.number()),
        }
    }

    /// Looks for the next packet before number `due`, where `period` periods of the choice of heavy keys are over.
    #[inline]
    pub fn find(&mut self, due: u64, period: u64) -> Next {
        match self {
            Self::Known { order, index } => match order.at(*index) {
                None => Next::End,
                Some(turn) if turn.number < due => Next::Packet(turn),
                Some(_) => Next::Later,
            },
            Self::Dealt(dealt) => dealt.find(due, period),
        }
    }

    /// The packet that was found is dealt with.
    #[inline]
    pub fn pass(&mut self) {
        match self {
            Self::Known { index, .. } => *index += 1,
            Self::Dealt(dealt) => dealt.pass(),
        }
    }
}
