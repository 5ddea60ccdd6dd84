//! Messages of ICMP: those about another packet, and echoes, whose identifier counts as a port.

use millrace_model::expr::Arena;
use millrace_steer::Field;

use super::{Course, Family, TRANSPORTS, View};
use crate::offset::Offset;

/// Echo request and reply (RFC 792), and the port of UDP that their identifier counts as.
const ECHOES: [(u8, Field); 2] = [(8, Field::SourcePort), (0, Field::DestinationPort)];

impl View {
    /// The ICMP errors among these packets, one view for each type of error.
    pub fn errors(&self, arena: &mut Arena, course: &Course) -> Vec<View> {
        let (Some(family), Some(transport)) = (self.family, self.transport(arena)) else {
            return vec![self.clone()];
        };
        let (icmp, errors) = family.icmp();
        let types = self.set(arena, &transport);
        let types: Vec<u8> = types.values().filter(|t| errors.contains(t)).collect();
        let base = self.with(arena, &self.protocol(), icmp);
        let mut out: Vec<View> = Vec::new();
        for t in types {
            let bytes = base.with(arena, &transport, t).fixed;
            let Some(refined) = self.narrowed(arena, course, &bytes) else {
                continue;
            };
            // Types that the path does not tell apart are one.
            if !out.iter().any(|o| o.guard == refined.guard) {
                out.push(refined.view(arena, Some(family), self.at, &bytes));
            }
        }
        out
    }

    /// The packets whose header names a protocol without ports there: ICMP, and all others if there are such.
    pub fn without_ports(&self, arena: &mut Arena, protocol: &Offset) -> Vec<View> {
        let (icmp, _) = self.family.unwrap_or(Family::V6).icmp();
        let set = self.set(arena, protocol);
        let mut out: Vec<View> = self.having(arena, protocol, icmp).into_iter().collect();
        let mut others = set
            .values()
            .filter(|v| *v != icmp && !TRANSPORTS.contains(v));
        if others.next().is_some() && self.unnamed(arena, protocol) {
            out.push(self.clone());
        }
        out
    }

    /// The ICMP echoes among these packets, whose header is there: requests, and replies.
    pub fn echoes(&self, arena: &mut Arena, header: &Offset) -> Vec<View> {
        let icmp = self.is_icmp(arena, header);
        let of = |(number, field)| {
            let mut view = self.having(arena, header, number)?;
            view.echo = Some(field);
            Some(view)
        };
        ECHOES.into_iter().filter(|_| icmp).filter_map(of).collect()
    }

    /// All others of them, if there are such.
    pub fn no_echoes(&self, arena: &mut Arena, header: &Offset) -> Option<View> {
        if !self.is_icmp(arena, header) {
            return Some(self.clone());
        }
        let is_echo = |v: u8| ECHOES.iter().any(|(number, _)| *number == v);
        let set = self.set(arena, header).filtered(|v| !is_echo(*v));
        let mut view = self.clone();
        self.memo.at(arena, header, |places| {
            view.tell(places.iter().map(|place| (*place, set.clone())));
        });
        // One by one: compilers turn "0 or 8" into a mask, of which nothing else is read off.
        view.any_possible(arena, header, &set).then_some(view)
    }

    /// Whether a transport header behind an IPv4 header of these packets, their own or that of a carried one, is that
    /// of ICMP; [`Self::without_ports`] tells ICMP apart.
    pub fn is_icmp(&self, arena: &Arena, header: &Offset) -> bool {
        let Some(own) = self.transport(arena) else {
            return false;
        };
        let ip = if own == *header {
            self.network()
        } else {
            own.plus(8)
        };
        let protocol = ip.plus(Family::V4.protocol());
        self.set(arena, &protocol).only() == Some(Family::V4.icmp().0)
    }
}
