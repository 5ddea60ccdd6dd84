//! Elements of the Ethernet header, and of what stands beside the packet: for whom it is, and how long.

use millrace_click::meaning::Clause;
use millrace_click::packet::Kind;

use super::{Backward, Made, Shape, plain};
use crate::action::Value;
use crate::diagram::Id;
use crate::field::Var;

/// Bytes of an Ethernet address.
const ADDRESS: usize = 6;

fn number(kind: Kind) -> u64 {
    match kind {
        Kind::Host => 0,
        Kind::Broadcast => 1,
        Kind::Multicast => 2,
        Kind::Other => 3,
    }
}

impl Backward<'_> {
    /// The packet's type is written.
    pub(super) fn kind(&mut self, id: usize, inner: Id, kind: Kind) -> Made {
        let write = plain(Value::Constant(number(kind)));
        self.written(id, inner, Var::Kind, write)
    }

    /// The type by the destination; what is others' to output 1.
    pub(super) fn addressed(
        &mut self,
        id: usize,
        shape: Shape,
        mine: [u8; ADDRESS],
        (own, other): (bool, bool),
    ) -> Made {
        let hand = self.hand(id);
        if shape.short {
            return Ok(hand);
        }
        let address = |offset: usize, mask: &[u8], value: &[u8]| Clause {
            offset,
            mask: mask.to_vec(),
            value: value.to_vec(),
            negated: false,
        };
        // By the destination, with outputs for hosts, groups and others.
        let by_destination = |work: &mut Self, to: usize, strange: usize| -> Made {
            let behind = work.next(id, to, shape)?;
            let strange = work.next(id, strange, shape)?;
            let mut node = work.kind(id, strange, Kind::Other)?;
            for (kind, mask, value) in [
                (Kind::Host, &[0xff; ADDRESS][..], &mine[..]),
                (Kind::Multicast, &[1], &[1]),
                (Kind::Broadcast, &[0xff; ADDRESS], &[0xff; ADDRESS]),
            ] {
                let is = work.kind(id, behind, kind)?;
                node = work.bytes(id, shape, &address(0, mask, value), is, node)?;
            }
            Ok(node)
        };
        let mut node = by_destination(self, 0, usize::from(other))?;
        if own {
            let from = by_destination(self, 1, 1)?;
            let clause = address(ADDRESS, &[0xff; ADDRESS], &mine);
            node = self.bytes(id, shape, &clause, from, node)?;
        }
        self.present(id, shape, shape.head + 2 * ADDRESS as i32, node, hand)
    }

    /// Packets of more bytes to output 1.
    pub(super) fn long(&mut self, id: usize, shape: Shape, most: usize) -> Made {
        let fits = self.next(id, 0, shape)?;
        let long = self.next(id, 1, shape)?;
        if shape.short {
            return Ok(self.hand(id));
        }
        if shape.cut.is_some() {
            return Ok(self.unsaid(id, "how long a packet is without its padding is no field"));
        }
        let most = i32::try_from(most).unwrap_or(i32::MAX);
        self.present(
            id,
            shape,
            shape.head.saturating_add(most).saturating_add(1),
            long,
            fits,
        )
    }
}
