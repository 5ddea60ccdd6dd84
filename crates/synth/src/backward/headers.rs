//! Which bytes of a packet are there, and checks of its IP header.

use super::{Backward, Made, Shape, plain};
use crate::action::{Sums, Value, Write};
use crate::diagram::Id;
use crate::field::{Var, bit, ip};

impl Backward<'_> {
    /// `yes` where the packet has all bytes of the frame before one.
    pub(super) fn present(&mut self, id: usize, shape: Shape, end: i32, yes: Id, no: Id) -> Made {
        if shape.short || end < 0 {
            return Ok(no);
        }
        let end = end as u64;
        if end == 0 {
            return Ok(yes);
        }
        if let Some((at, _)) = shape.right
            && end <= u64::from(at) + 20
        {
            return Ok(yes);
        }
        let (var, least) = match shape.cut {
            None => (Var::Length, end),
            Some(at) => (ip(at, bit::LENGTH), end.saturating_sub(u64::from(at))),
        };
        if least > var.most() {
            return Ok(no);
        }
        self.origins.entry((var, least)).or_insert(id);
        Ok(self.store.within(var, &[(least, var.most())], yes, no)?)
    }

    /// `yes` where the packet has so many bytes of its transport header.
    pub(super) fn room(&mut self, id: usize, shape: Shape, bytes: u64, yes: Id, no: Id) -> Made {
        let Some(at) = shape.ip() else {
            return Ok(no);
        };
        if shape.cut.is_some_and(|cut| cut != at) {
            return Ok(self.unsaid(id, "a header within the payload of another is read"));
        }
        let var = Var::Room(at, shape.cut.is_some());
        self.origins.entry((var, bytes)).or_insert(id);
        let yes = match shape.risky {
            true => {
                let hand = self.hand(id);
                self.store.within(ip(at, bit::IHL), &[(0, 4)], hand, yes)?
            }
            false => yes,
        };
        let node = self.store.within(var, &[(bytes, 65_535)], yes, no)?;
        // Without a byte there is no header behind it, either.
        self.present(id, shape, i32::from(at) + 1, node, no)
    }

    pub(super) fn check(
        &mut self,
        id: usize,
        shape: Shape,
        offset: usize,
        (bad, good): (&[[u8; 4]], &[[u8; 4]]),
        checksum: bool,
    ) -> Made {
        let wrong = self.next(id, 1, shape)?;
        let Ok(at) = u16::try_from(shape.head + offset as i32) else {
            return Ok(wrong);
        };
        if shape.short {
            return Ok(wrong);
        }
        if shape.cut.is_some_and(|cut| cut != at) {
            return Ok(self.unsaid(id, "a header within the payload of another is checked"));
        }
        let known = shape.right.filter(|r| r.0 == at);
        let after = Shape {
            network: Some(i32::from(at)),
            cut: Some(at),
            right: Some((at, checksum || known.is_some_and(|k| k.1))),
            risky: false,
            ..shape
        };
        let inner = self.next(id, 0, after)?;
        let mut node = self.written(
            id,
            inner,
            Var::Destination,
            plain(Value::Field(ip(at, bit::DESTINATION), 0)),
        )?;
        let right = node;
        for address in bad {
            let source = ip(at, bit::SOURCE);
            let number = u64::from(u32::from_be_bytes(*address));
            self.origins.entry((source, number)).or_insert(id);
            node = self
                .store
                .within(source, &[(number, number)], wrong, node)?;
        }
        for address in good.iter().filter(|_| !bad.is_empty()) {
            let destination = ip(at, bit::DESTINATION);
            let number = u64::from(u32::from_be_bytes(*address));
            self.origins.entry((destination, number)).or_insert(id);
            let range = [(number, number)];
            node = self.store.within(destination, &range, right, node)?;
        }
        if known.is_some_and(|k| k.1 || !checksum) {
            return Ok(node);
        }
        // What the check tells of fields.
        node = self.store.known(node, ip(at, bit::IHL), 5, 15)?;
        node = self.store.known(node, ip(at, 0), 4, 4)?;
        node = self.store.known(node, ip(at, bit::LENGTH), 20, 65_535)?;
        let var = Var::Checked(at, checksum);
        self.origins.entry((var, 1)).or_insert(id);
        Ok(self.store.within(var, &[(1, 1)], node, wrong)?)
    }

    pub(super) fn ttl(&mut self, id: usize, shape: Shape, multicast: bool) -> Made {
        let Some(at) = shape.ip() else {
            return self.next(id, 1, shape);
        };
        let expired = self.next(id, 1, shape)?;
        let unchecked = shape.right.is_none_or(|r| r.0 != at);
        let inner = self.next(
            id,
            0,
            Shape {
                risky: shape.risky || unchecked,
                ..shape
            },
        )?;
        let var = ip(at, bit::TTL);
        let write = Write {
            value: Value::Field(var, -1),
            sums: Sums {
                header: Some(at),
                upper: 0,
            },
            again: false,
        };
        let lowered = self.written(id, inner, var, write)?;
        self.origins.entry((var, 2)).or_insert(id);
        let node = self.store.within(var, &[(2, 255)], lowered, expired)?;
        let node = self.present(id, shape, i32::from(at) + 20, node, expired)?;
        if multicast {
            return Ok(node);
        }
        let spared = self.next(id, 0, shape)?;
        let groups = (0xe000_0000, 0xefff_ffff);
        let destination = ip(at, bit::DESTINATION);
        self.origins.entry((destination, groups.0)).or_insert(id);
        let spared = self.store.within(destination, &[groups], spared, node)?;
        self.present(id, shape, i32::from(at) + 17, spared, node)
    }
}
