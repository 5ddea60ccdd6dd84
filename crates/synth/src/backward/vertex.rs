//! Elements by what they mean: each kind of vertex.

use std::collections::BTreeMap;

use millrace_click::language::Port;
use millrace_click::meaning::Meaning;

use super::{Backward, Made, Shape, plain};
use crate::action::{Action, Value, Verdict};
use crate::field::{Var, bit, ip};

/// Bytes of an Ethernet header.
const ETHERNET: i32 = 14;

impl Backward<'_> {
    pub(super) fn vertex(&mut self, to: Port, shape: Shape) -> Made {
        let id = to.element;
        if self.outside.contains_key(&id) {
            return Ok(self.hand(id));
        }
        let Some(meaning) = self.router.meaning(id) else {
            return Ok(self.without(id, "nothing says what it does to a packet"));
        };
        match meaning {
            Meaning::Pass | Meaning::Shows => self.next(id, 0, shape),
            Meaning::Switch(None) => Ok(self.dropped(id)),
            Meaning::Switch(Some(output)) => self.next(id, output, shape),
            Meaning::Enter(_) | Meaning::Silent | Meaning::Says | Meaning::Mapper(_) => {
                Ok(self.without(id, "packets come to it from inside"))
            }
            Meaning::Leave(name) => self.leave(id, &name, shape),
            Meaning::Wire if shape.short => Ok(self.hand(id)),
            Meaning::Wire => {
                let shape = shape.received();
                let inner = self.next(id, 0, shape)?;
                self.received(id, inner, shape)
            }
            Meaning::Drop => Ok(self.dropped(id)),
            Meaning::Function(decided) => self.function(to, shape, &decided),
            Meaning::Host => self.passed(id, shape),
            Meaning::Outside(_) => Ok(self.hand(id)),
            Meaning::Strip(bytes) => {
                let gone = shape.head + bytes as i32;
                if shape.short {
                    return self.next(id, 0, shape);
                }
                let whole = self.next(
                    id,
                    0,
                    Shape {
                        head: gone,
                        ..shape
                    },
                )?;
                let nothing = self.next(
                    id,
                    0,
                    Shape {
                        short: true,
                        ..shape
                    },
                )?;
                self.present(id, shape, gone, whole, nothing)
            }
            Meaning::Unstrip(_) if shape.short => Ok(self.hand(id)),
            Meaning::Unstrip(bytes) => {
                let head = shape.head - bytes as i32;
                match head < shape.floor {
                    true => Ok(self.unsaid(id, "it goes back beyond the frame's first byte")),
                    false => self.next(id, 0, Shape { head, ..shape }),
                }
            }
            Meaning::StripToNetwork => match shape.network {
                Some(at) if !shape.short => {
                    let whole = self.next(id, 0, Shape { head: at, ..shape })?;
                    let short = Shape {
                        short: true,
                        ..shape
                    };
                    let nothing = self.next(id, 0, short)?;
                    self.present(id, shape, at, whole, nothing)
                }
                Some(_) => Ok(self.hand(id)),
                None => self.next(id, 0, shape),
            },
            Meaning::Mark(offset) => {
                let network = Some(shape.head + offset as i32);
                self.next(id, 0, Shape { network, ..shape })
            }
            Meaning::MarkLink(offset) => {
                let link = Some(shape.head + offset as i32);
                self.next(id, 0, Shape { link, ..shape })
            }
            Meaning::Check {
                offset,
                bad,
                good,
                checksum,
            } => self.check(id, shape, offset, (&bad, &good), checksum),
            Meaning::Ttl { multicast } => self.ttl(id, shape, multicast),
            Meaning::Filter(rules) => self.filter(id, shape, &rules),
            Meaning::Bytes(patterns) => self.patterns(id, shape, &patterns),
            Meaning::Lookup(routes) => self.lookup(id, shape, &routes),
            Meaning::Prepend(bytes) => {
                if shape.short {
                    return Ok(self.hand(id));
                }
                let head = shape.head - bytes.len() as i32;
                if head < 0 {
                    return Ok(self.unsaid(id, "the frame becomes longer than it came"));
                }
                let link = Some(head);
                let inner = self.next(
                    id,
                    0,
                    Shape {
                        head,
                        link,
                        floor: shape.floor.min(head),
                        ..shape
                    },
                )?;
                self.overwrite(id, inner, head, &bytes, shape)
            }
            Meaning::OverwriteLink(bytes) => {
                let at = shape.link.unwrap_or(shape.head);
                let rest = self.next(id, 0, shape)?;
                let inner = self.overwrite(id, rest, at, &bytes, shape)?;
                let short = shape.short && shape.link.is_none();
                let shape = Shape { short, ..shape };
                self.present(id, shape, at + bytes.len() as i32, inner, rest)
            }
            Meaning::Broadcasts => {
                let dropped = self.dropped(id);
                let inner = self.next(id, 0, shape)?;
                Ok(self.store.within(Var::Kind, &[(1, 2)], dropped, inner)?)
            }
            Meaning::GetDestination(place) => self.get_destination(id, shape, place),
            Meaning::SetDestination(address) => {
                let inner = self.next(id, 0, shape)?;
                let address = u64::from(u32::from_be_bytes(address));
                self.written(id, inner, Var::Destination, plain(Value::Constant(address)))
            }
            Meaning::StoreAddress(at, address) => self.store_address(id, shape, at, address),
            Meaning::Service { mask, value } => self.service(id, shape, mask, value),
            Meaning::Write { .. } if shape.short => Ok(self.hand(id)),
            Meaning::Write { at, bytes } => {
                let at = shape
                    .head
                    .saturating_add(i32::try_from(at).unwrap_or(i32::MAX));
                let inner = self.next(id, 0, shape)?;
                let inner = self.overwrite(id, inner, at, &bytes, shape)?;
                let without = self.next(id, 1, shape)?;
                let end = at.saturating_add(bytes.len() as i32);
                self.present(id, shape, end, inner, without)
            }
            Meaning::Long(most) => self.long(id, shape, most),
            Meaning::Kind(kind) => {
                let inner = self.next(id, 0, shape)?;
                self.kind(id, inner, kind)
            }
            Meaning::Addressed { mine, own, other } => {
                self.addressed(id, shape, mine, (own, other))
            }
            Meaning::Paint(at, colour) => {
                let inner = self.next(id, 0, shape)?;
                let Some(var) = self.annotation(id, at) else {
                    return Ok(inner);
                };
                self.written(id, inner, var, plain(Value::Constant(u64::from(colour))))
            }
            Meaning::CheckPaint(at, colour) => {
                let Some(var) = self.annotation(id, at) else {
                    return Ok(self.hand(id));
                };
                let same = self.next(id, 0, shape)?;
                let other = self.next(id, 1, shape)?;
                let colour = u64::from(colour);
                Ok(self.store.within(var, &[(colour, colour)], same, other)?)
            }
            Meaning::PaintTee(at, colour) => {
                let Some(var) = self.annotation(id, at) else {
                    return Ok(self.hand(id));
                };
                let copied = self.hand(id);
                let other = self.next(id, 0, shape)?;
                let colour = u64::from(colour);
                Ok(self.store.within(var, &[(colour, colour)], copied, other)?)
            }
            Meaning::PaintSwitch(at) => {
                let Some(var) = self.annotation(id, at) else {
                    return Ok(self.hand(id));
                };
                let mut kids = Vec::new();
                for colour in 0..255 {
                    kids.push((colour as u64, self.next(id, colour, shape)?));
                }
                // Copies to all outputs.
                kids.push((255, self.hand(id)));
                Ok(self.store.select(var, kids)?)
            }
            Meaning::Fragment { mtu, honor } => self.fragment(id, shape, mtu, honor),
            Meaning::Options => {
                let inner = self.next(id, 0, shape)?;
                let Some(at) = shape.ip() else {
                    return Ok(inner);
                };
                let hand = self.hand(id);
                let long = self
                    .store
                    .within(ip(at, bit::IHL), &[(6, 15)], hand, inner)?;
                self.present(id, shape, i32::from(at) + 20, long, inner)
            }
            Meaning::FixSource => {
                let inner = self.next(id, 0, shape)?;
                let hand = self.hand(id);
                let var = Var::Anno(millrace_click::packet::FIX_SOURCE as u8);
                Ok(self.store.within(var, &[(1, 255)], hand, inner)?)
            }
            Meaning::Rewrite(rewriting) => self.rewrite(to, shape, &rewriting),
        }
    }

    pub(super) fn annotation(&mut self, id: usize, at: usize) -> Option<Var> {
        match u8::try_from(at) {
            Ok(at) if at >= 4 => Some(Var::Anno(at)),
            _ => {
                self.unsaid(id, "it uses bytes of the destination annotation");
                None
            }
        }
    }

    pub(super) fn leave(&mut self, id: usize, name: &str, shape: Shape) -> Made {
        if shape.short {
            return Ok(self.hand(id));
        }
        let port = self.ports.iter().position(|p| p == name).unwrap_or(0);
        let verdict = Verdict::Leave {
            element: id,
            port: port as u8,
        };
        self.ended(id, verdict, shape)
    }

    /// A packet that ends here with what was written into it.
    pub(super) fn ended(&mut self, id: usize, verdict: Verdict, shape: Shape) -> Made {
        if shape.short {
            return Ok(self.hand(id));
        }
        let action = self.actions.number(Action {
            verdict,
            writes: BTreeMap::new(),
            head: shape.head,
            cut: shape.cut,
            hops: 0,
        });
        let leaf = self.store.leaf(action);
        if shape.head <= 0 {
            return Ok(leaf);
        }
        // A frame that bytes are taken from keeps those of an Ethernet header (`packet_pull`).
        let hand = self.hand(id);
        self.present(id, shape, shape.head + ETHERNET, leaf, hand)
    }
}
