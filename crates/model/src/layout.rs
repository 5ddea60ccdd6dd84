//! Names of header fields: what the bytes of a packet are, on a path whose guard says which headers
//! there are (IEEE 802.1Q; RFC 791, 8200, 9293, 768, 792). A byte whose header the guard does not tell
//! has no name and is shown as `pkt[offset]`.

use std::collections::BTreeMap;

use crate::expr::walk::cone;
use crate::expr::{Arena, Bin, ExprId, Node, Rel};

/// A field: name, first byte from the header's, bytes.
type Field = (&'static str, i64, i64);

const ETHERNET: &[Field] = &[("eth.dst", 0, 6), ("eth.src", 6, 6), ("eth.type", 12, 2)];
const TAG: &[Field] = &[("vlan.tci", 0, 2), ("vlan.type", 2, 2)];
const IPV4: &[Field] = &[
    ("ip.version_ihl", 0, 1),
    ("ip.tos", 1, 1),
    ("ip.length", 2, 2),
    ("ip.id", 4, 2),
    ("ip.fragment", 6, 2),
    ("ip.ttl", 8, 1),
    ("ip.protocol", 9, 1),
    ("ip.checksum", 10, 2),
    ("ip.src", 12, 4),
    ("ip.dst", 16, 4),
];
const IPV6: &[Field] = &[
    ("ip6.version_class_label", 0, 4),
    ("ip6.length", 4, 2),
    ("ip6.next", 6, 1),
    ("ip6.hops", 7, 1),
    ("ip6.src", 8, 16),
    ("ip6.dst", 24, 16),
];
const TCP: &[Field] = &[
    ("tcp.sport", 0, 2),
    ("tcp.dport", 2, 2),
    ("tcp.seq", 4, 4),
    ("tcp.ack", 8, 4),
    ("tcp.offset", 12, 1),
    ("tcp.flags", 13, 1),
    ("tcp.window", 14, 2),
    ("tcp.checksum", 16, 2),
];
const UDP: &[Field] = &[
    ("udp.sport", 0, 2),
    ("udp.dport", 2, 2),
    ("udp.length", 4, 2),
    ("udp.checksum", 6, 2),
];
const ICMP: &[Field] = &[
    ("icmp.type", 0, 1),
    ("icmp.code", 1, 1),
    ("icmp.checksum", 2, 2),
    ("icmp.id", 4, 2),
    ("icmp.seq", 6, 2),
];
/// TCP or UDP, the guard says not which.
const EITHER: &[Field] = &[("l4.sport", 0, 2), ("l4.dport", 2, 2)];

/// Which headers stand where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// offset of the network header and its EtherType; none where the guard does not say
    network: Option<(i64, u16)>,
    protocol: Option<u8>,
}

/// Bytes whose value the guard fixes.
fn fixed(arena: &Arena, guard: &[ExprId]) -> BTreeMap<i64, u8> {
    let mut known = BTreeMap::new();
    let mut todo = guard.to_vec();
    while let Some(e) = todo.pop() {
        match *arena.node(e) {
            Node::Bin(Bin::And, a, b) if arena.width(e) == 1 => todo.extend([a, b]),
            Node::Cmp(Rel::Eq, a, b) => {
                let Some(mut c) = arena.constant(b) else {
                    continue;
                };
                let parts = match arena.node(a) {
                    Node::Concat(parts) => parts.to_vec(),
                    _ => vec![a],
                };
                for p in parts.iter().rev() {
                    if let (Node::Byte { base: None, at }, 8) = (arena.node(*p), arena.width(*p)) {
                        known.insert(*at, c as u8);
                    }
                    c = c.checked_shr(arena.width(*p)).unwrap_or(0);
                }
            }
            _ => {}
        }
    }
    known
}

impl Layout {
    /// What a guard says.
    #[must_use]
    pub fn of(arena: &Arena, guard: &[ExprId]) -> Self {
        let known = fixed(arena, guard);
        let word = |at: i64| {
            let (high, low) = (known.get(&at)?, known.get(&(at + 1))?);
            Some(u16::from_be_bytes([*high, *low]))
        };
        let tags = [12, 16, 20];
        let network = tags.into_iter().find_map(|at| {
            let kind = word(at)?;
            matches!(kind, 0x0800 | 0x86dd).then_some((at + 2, kind))
        });
        let protocol = network.and_then(|(at, kind)| {
            let at = at + if kind == 0x0800 { 9 } else { 6 };
            known.get(&at).copied()
        });
        Self { network, protocol }
    }

    /// Whether a base is four times the IPv4 header length: what follows is the transport header.
    fn is_transport(&self, arena: &Arena, base: ExprId) -> bool {
        let Some((network, 0x0800)) = self.network else {
            return false;
        };
        let Node::Concat(parts) = arena.node(base) else {
            return false;
        };
        let [high, length, low] = parts.as_ref() else {
            return false;
        };
        let is_length = match arena.node(*length) {
            Node::Extract { of, low: 0 } => {
                matches!(arena.node(*of), Node::Byte { base: None, at } if *at == network)
            }
            _ => false,
        };
        is_length
            && arena.width(*length) == 4
            && (arena.constant(*high), arena.constant(*low)) == (Some(0), Some(0))
            && arena.width(*low) == 2
    }

    /// The name of a field, where in it a byte is, and how long it is.
    #[must_use]
    pub fn field(
        &self,
        arena: &Arena,
        base: Option<ExprId>,
        at: i64,
    ) -> Option<(String, i64, i64)> {
        let find = |fields: &[Field], from: i64| {
            let hit = fields
                .iter()
                .find(|f| (f.1..f.1 + f.2).contains(&(at - from)));
            hit.map(|f| (f.0.to_owned(), at - from - f.1, f.2))
        };
        let transport = match self.protocol {
            Some(6) => TCP,
            Some(17) => UDP,
            Some(1) => ICMP,
            _ => EITHER,
        };
        if let Some(b) = base {
            let (network, _) = self.network?;
            return if self.is_transport(arena, b) {
                find(transport, network)
            } else {
                None
            };
        }
        if at < 14 {
            return find(ETHERNET, 0);
        }
        let (network, kind) = self.network?;
        if at < network {
            return find(TAG, 14 + (at - 14) / 4 * 4);
        }
        if kind == 0x0800 {
            return find(IPV4, network);
        }
        find(IPV6, network).or_else(|| match self.protocol {
            Some(6 | 17) => find(transport, network + 40),
            _ => None,
        })
    }

    /// Where a byte of a source field has its like in the destination field, and the other way round.
    #[must_use]
    pub fn swapped(&self, arena: &Arena, base: Option<ExprId>, at: i64) -> Option<i64> {
        let (name, _, bytes) = self.field(arena, base, at)?;
        if name.ends_with("src") || name.ends_with("sport") {
            let by = if name.starts_with("eth") {
                -bytes
            } else {
                bytes
            };
            Some(at + by)
        } else if name.ends_with("dst") || name.ends_with("dport") {
            let by = if name.starts_with("eth") {
                bytes
            } else {
                -bytes
            };
            Some(at + by)
        } else {
            None
        }
    }

    /// The fields that an expression is made of, by name, and other symbols.
    #[must_use]
    pub fn sources(&self, arena: &Arena, e: ExprId) -> Vec<String> {
        let mut names = Vec::new();
        for id in cone(arena, &[e], |_| false) {
            match arena.node(id) {
                Node::Byte { base, at } => {
                    names.push(match (self.field(arena, *base, *at), base) {
                        (Some((name, ..)), _) => name,
                        (None, None) => format!("pkt[{at}]"),
                        (None, Some(_)) => "pkt[…]".to_owned(),
                    });
                }
                Node::Sym(s) => names.push(arena.symbol(*s).name.clone()),
                _ => {}
            }
        }
        names.sort();
        names.dedup();
        names
    }
}
