//! Elements that write: Ethernet headers, addresses, annotations, and those that write only some packets.

use millrace_click::meaning::{Address, Route};

use super::{Backward, Made, Shape, plain};
use crate::action::{Sums, Value, Write};
use crate::diagram::Id;
use crate::field::{Base, Var, bit, ip, of_frame};
use crate::sets::parts;

impl Backward<'_> {
    pub(super) fn lookup(&mut self, id: usize, shape: Shape, routes: &[Route]) -> Made {
        // The longest mask first: laid over the shorter ones, from the last to the first.
        let mut sorted: Vec<&Route> = routes.iter().collect();
        sorted.sort_by_key(|r| r.mask);
        let mut node = self.dropped(id);
        for route in sorted {
            let size = u64::from(!route.mask);
            if (size + 1).count_ones() != 1 {
                return Ok(self.unsaid(id, "a route's mask has holes"));
            }
            let inner = self.next(id, route.output, shape)?;
            let inner = match route.gateway {
                Some(gateway) => {
                    let gateway = u64::from(u32::from_be_bytes(gateway));
                    self.written(id, inner, Var::Destination, plain(Value::Constant(gateway)))?
                }
                None => inner,
            };
            let low = u64::from(route.address);
            self.origins.entry((Var::Destination, low)).or_insert(id);
            // The gateway replaces the annotation behind the choice: what was written is no longer a test of it.
            let range = [(low, low + size)];
            node = self.store.within(Var::Destination, &range, inner, node)?;
        }
        Ok(node)
    }

    pub(super) fn overwrite(
        &mut self,
        id: usize,
        inner: Id,
        at: i32,
        bytes: &[u8],
        shape: Shape,
    ) -> Made {
        let Ok(first) = u32::try_from(at) else {
            return Ok(self.unsaid(id, "it writes in front of the frame"));
        };
        let end = first + bytes.len() as u32;
        // Nor one that was checked, where nothing is marked any more.
        let checked = shape.right.map(|r| r.0).or(shape.cut);
        let headers = shape.ip().into_iter().chain(checked);
        if headers.into_iter().any(|at| end > u32::from(at)) || end > 14 {
            return Ok(self.unsaid(id, "it writes bytes of the IP header without its sum"));
        }
        let ones = vec![0xff; bytes.len()];
        let mut node = inner;
        for part in parts(Base::Frame, shape.layout(), first, &ones, bytes) {
            if part.mask != part.var.most() {
                return Ok(self.unsaid(id, "it writes a part of a field"));
            }
            let write = plain(Value::Constant(part.value));
            node = self.written(id, node, part.var, write)?;
        }
        Ok(node)
    }

    pub(super) fn get_destination(&mut self, id: usize, shape: Shape, place: Address) -> Made {
        let inner = self.next(id, 0, shape)?;
        let at = match place {
            Address::Front(at) => shape.head + at as i32,
            Address::Network(offset) => match shape.ip() {
                Some(at) => i32::from(at) + offset as i32,
                None => return Ok(inner),
            },
        };
        if shape.short {
            return Ok(inner);
        }
        let Ok(first) = u32::try_from(at) else {
            return Ok(self.unsaid(id, "it reads in front of the frame"));
        };
        // Not marked yet: its place says where the IP header is meant to be.
        let layout = match shape.network {
            Some(_) => shape.layout(),
            None => first.saturating_sub(16) as u16,
        };
        let var = of_frame(layout, first * 8);
        if !matches!(var, Var::Bits(_, start, 32) if start == first * 8) {
            return Ok(self.unsaid(
                id,
                "the bytes that it reads are no address of the IP header",
            ));
        }
        let got = self.written(id, inner, Var::Destination, plain(Value::Field(var, 0)))?;
        self.present(id, shape, at + 4, got, inner)
    }

    /// `yes` for packets whose IP header can be written with its sums.
    pub(super) fn writable(&mut self, id: usize, shape: Shape, at: u16, yes: Id, no: Id) -> Made {
        let yes = match shape.right {
            Some((right, _)) if right == at => yes,
            _ => self.store.within(ip(at, bit::IHL), &[(5, 15)], yes, no)?,
        };
        self.present(id, shape, i32::from(at) + 20, yes, no)
    }

    pub(super) fn store_address(
        &mut self,
        id: usize,
        shape: Shape,
        offset: usize,
        address: Option<[u8; 4]>,
    ) -> Made {
        let inner = self.next(id, 0, shape)?;
        let without = self.next(id, 1, shape)?;
        let Some(at) = shape.ip() else {
            return Ok(without);
        };
        let value = match address {
            Some(address) => Value::Constant(u64::from(u32::from_be_bytes(address))),
            None => Value::Field(Var::Destination, 0),
        };
        let node = self.by_transport(id, shape, at, &mut |work, upper| {
            let write = Write {
                value,
                sums: Sums {
                    header: Some(at),
                    upper,
                },
                again: false,
            };
            work.written(id, inner, ip(at, offset as u32 * 8), write)
        })?;
        self.writable(id, shape, at, node, without)
    }

    /// Different diagrams by the sum that covers addresses: TCP's, UDP's, or none, which are the packets that have no such
    /// header, or not all of it.
    pub(super) fn by_transport(
        &mut self,
        id: usize,
        shape: Shape,
        at: u16,
        make: &mut dyn FnMut(&mut Self, u8) -> Made,
    ) -> Made {
        let none = make(self, 0)?;
        let mut node = none;
        for (protocol, bytes) in [(6, 18), (17, 8)] {
            let covered = make(self, protocol)?;
            let covered = self.room(id, shape, bytes, covered, none)?;
            let protocol = u64::from(protocol);
            let range = [(protocol, protocol)];
            node = self
                .store
                .within(ip(at, bit::PROTOCOL), &range, covered, node)?;
        }
        Ok(self
            .store
            .within(ip(at, bit::OFFSET), &[(0, 0)], node, none)?)
    }

    pub(super) fn service(&mut self, id: usize, shape: Shape, mask: u8, value: u8) -> Made {
        let unchecked = |at: u16| shape.right.is_none_or(|r| r.0 != at);
        let Some(at) = shape.ip() else {
            return self.next(id, 0, shape);
        };
        let inner = self.next(
            id,
            0,
            Shape {
                risky: shape.risky || unchecked(at),
                ..shape
            },
        )?;
        if mask != 0xfc {
            return Ok(self.unsaid(id, "it writes a part of a field"));
        }
        let write = Write {
            value: Value::Constant(u64::from(value >> 2)),
            sums: Sums {
                header: Some(at),
                upper: 0,
            },
            again: false,
        };
        let node = self.written(id, inner, ip(at, 8), write)?;
        // Two bytes are enough for the interpreter; with fewer than the header there is no sum to follow.
        let rest = self.next(id, 0, shape)?;
        let partial = self.hand(id);
        let node = self.present(id, shape, i32::from(at) + 20, node, partial)?;
        self.present(id, shape, i32::from(at) + 2, node, rest)
    }

    pub(super) fn fragment(&mut self, id: usize, shape: Shape, mtu: usize, honor: bool) -> Made {
        let fits = self.next(id, 0, shape)?;
        let Some(at) = shape.ip() else {
            return Ok(fits);
        };
        let hand = self.hand(id);
        let refused = self.next(id, 1, shape)?;
        let long = match honor {
            true => self
                .store
                .within(ip(at, bit::DF), &[(1, 1)], refused, hand)?,
            false => hand,
        };
        let long = match shape.right {
            Some((right, _)) if right == at => long,
            // A header that nobody checked decides more than this.
            _ => hand,
        };
        self.present(id, shape, i32::from(at) + mtu as i32 + 1, long, fits)
    }
}
