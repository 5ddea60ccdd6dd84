//! The kinds of packets as which a NIC classifies the packets of a view.

use millrace_model::expr::Arena;
use millrace_model::expr::sets::Set;
use millrace_steer::Kind;

use super::{Course, Family, TRANSPORTS, View, Way, transport_of};
use crate::offset::Offset;

pub(crate) const FRAGMENT: usize = 3;

const OTHER: usize = 4;

/// Possible kinds of another packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pieces {
    /// all of it
    pub whole: bool,
    /// its first fragment
    pub first: bool,
    /// a later one
    pub later: bool,
}

impl Pieces {
    const WHOLE: Self = Self {
        whole: true,
        first: false,
        later: false,
    };
}

/// TCP, UDP, SCTP, fragment, other.
pub(crate) fn kinds_of(family: Family) -> [Kind; 5] {
    match family {
        Family::V4 => [
            Kind::Ipv4Tcp,
            Kind::Ipv4Udp,
            Kind::Ipv4Sctp,
            Kind::Ipv4Fragment,
            Kind::Ipv4,
        ],
        Family::V6 => [
            Kind::Ipv6Tcp,
            Kind::Ipv6Udp,
            Kind::Ipv6Sctp,
            Kind::Ipv6Fragment,
            Kind::Ipv6,
        ],
    }
}

impl View {
    /// Whether there are packets of a kind among these: where the guard is about several kinds, it is asked.
    pub fn has(&self, arena: &mut Arena, kind: Kind, way: Way) -> bool {
        let several = self.protocols(arena).len() > 1;
        let Some(family) = self
            .family
            .filter(|_| several && !self.extended && !self.any)
        else {
            return true;
        };
        let (icmp, errors) = family.icmp();
        let number = match way {
            Way::Answer => Some(icmp),
            _ => transport_of(kind),
        };
        let Some(number) = number else { return true };
        let view = self.with(arena, &self.protocol(), number);
        if way != Way::Answer {
            return view.possible(arena);
        }
        let Some(transport) = self.transport(arena) else {
            return true;
        };
        let types = self.set(arena, &transport);
        let mut types = types.values().filter(|t| errors.contains(t));
        types.any(|t| view.with(arena, &transport, t).possible(arena))
    }

    /// Possible kinds of the packets, and those as which they are classified; `Way::Answer` stands with the kind of the
    /// ICMP error itself.
    pub fn kinds(&self, arena: &mut Arena, course: &Course) -> Vec<(Kind, Way)> {
        if self.any {
            let all = Kind::ALL.into_iter().filter(|kind| !kind.is_odd());
            return all.map(|kind| (kind, Way::Plain)).collect();
        }
        let Some(family) = self.family else {
            return vec![(Kind::NotIp, Way::Plain)];
        };
        let mut out = Vec::new();
        let first = self.set(arena, &self.network());
        let (header, well) = match family {
            Family::V4 => (20, first.values().all(|v| v >> 4 == 4 && v & 15 >= 5)),
            Family::V6 => (40, first.values().all(|v| v >> 4 == 6)),
        };
        if !well || !self.reaches(&self.network().plus(header - 1)) {
            out.push((Kind::NotIp, Way::Plain));
        }
        let kinds = kinds_of(family);
        if self.extended {
            out.extend(kinds.map(|kind| (kind, Way::Plain)));
            return out;
        }
        let pieces = match family {
            Family::V4 => self.pieces(arena, &self.network()),
            Family::V6 => Pieces::WHOLE,
        };
        let fragment = kinds[FRAGMENT];
        if pieces.later && self.later(arena, &self.network()) {
            out.push((fragment, Way::Plain));
        }
        for (kind, error) in self.whole(arena, course, family, kinds) {
            if pieces.whole {
                out.push((kind, if error { Way::Answer } else { Way::Plain }));
                if error {
                    out.push((kind, Way::Rough));
                }
            }
            if pieces.first {
                out.push((kind, if error { Way::Answer } else { Way::Whole }));
                out.push((fragment, Way::Rough));
            }
        }
        out
    }

    /// The kinds of packets that are whole, and whether they are ICMP errors.
    pub(super) fn whole(
        &self,
        arena: &mut Arena,
        course: &Course,
        family: Family,
        kinds: [Kind; 5],
    ) -> Vec<(Kind, bool)> {
        let mut out = Vec::new();
        let mut protocols = self.protocols(arena);
        for (number, kind) in TRANSPORTS.into_iter().zip(kinds) {
            if protocols.contains(&number) {
                out.push((kind, false));
                if self.cut(arena, course, number) {
                    out.push((kinds[OTHER], false));
                }
            }
        }
        protocols.retain(|p| !TRANSPORTS.contains(p));
        if protocols.is_empty() {
            return out;
        }
        let (icmp, errors) = family.icmp();
        let types = match self.transport(arena) {
            Some(place) if protocols.contains(&icmp) => self.set(arena, &place),
            _ => Set::all(),
        };
        let is_error = |t: u8| errors.contains(&t);
        if protocols.contains(&icmp) && types.values().any(is_error) {
            out.push((kinds[OTHER], true));
        }
        if protocols.iter().any(|p| *p != icmp) || types.values().any(|t| !is_error(t)) {
            out.push((kinds[OTHER], false));
        }
        out
    }

    /// The protocols that IPv4 or IPv6 can name.
    pub(super) fn protocols(&self, arena: &Arena) -> Vec<u8> {
        self.set(arena, &self.protocol()).values().collect()
    }

    /// Fragments that an IPv4 packet can be, if its header is present.
    pub fn pieces(&self, arena: &Arena, header: &Offset) -> Pieces {
        let (high, low) = (
            self.set(arena, &header.plus(6)),
            self.set(arena, &header.plus(7)),
        );
        let some = |set: &Set, is: &dyn Fn(u8) -> bool| set.values().any(is);
        let zero = some(&low, &|v| v == 0);
        Pieces {
            whole: zero && some(&high, &|v| v & 0x3f == 0),
            first: zero && some(&high, &|v| v & 0x3f == 0x20),
            later: some(&low, &|v| v != 0) || some(&high, &|v| v & 0x1f != 0),
        }
    }
}
