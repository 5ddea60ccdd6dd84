//! Views of packets that the program reads otherwise than a NIC does (crates/steer, odd.rs).

use millrace_model::expr::sets::Set;
use millrace_model::expr::{Arena, Node};
use millrace_steer::{Kind, Odd, Ports};

use super::{Course, Family, TRANSPORTS, View, kinds_of};
use crate::offset::Offset;

/// TCP, UDP, ICMP, other.
pub(crate) fn odd_kinds(family: Family) -> [Kind; 4] {
    match family {
        Family::V4 => [
            Kind::Ipv4OddTcp,
            Kind::Ipv4OddUdp,
            Kind::Ipv4OddIcmp,
            Kind::Ipv4Odd,
        ],
        Family::V6 => [
            Kind::Ipv6OddTcp,
            Kind::Ipv6OddUdp,
            Kind::Ipv6OddIcmp,
            Kind::Ipv6Odd,
        ],
    }
}

impl View {
    /// Those of them that no NIC takes for IP, by the protocol that their header names.
    pub fn malformed(&self, arena: &mut Arena, odd: Odd) -> Vec<(Kind, Self)> {
        let Some(family) = self.family else {
            return Vec::new();
        };
        self.by_protocol(arena, family, odd.ports)
    }

    /// All of them where whole packets of TCP, UDP and SCTP alone are what a NIC takes them for.
    pub fn every(&self, arena: &mut Arena, course: &Course, odd: Odd) -> Vec<(Kind, Self)> {
        let Some(family) = self.family else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let mut all_regular = Vec::new();
        if !self.extended {
            for (number, kind) in TRANSPORTS.into_iter().zip(kinds_of(family)) {
                let (view, all) = self.regular(arena, (family, odd.ports), number);
                if let Some(view) = view {
                    // A packet that is cut short has no ports, and is odd.
                    if all && !self.short(arena, course) {
                        all_regular.push(kind);
                    }
                    out.push((kind, view));
                }
            }
        }
        let [tcp, udp, sctp, ..] = kinds_of(family);
        let [odd_tcp, odd_udp, _, other] = odd_kinds(family);
        let mut odd = self.by_protocol(arena, family, odd.ports);
        odd.retain(|(kind, _)| {
            let regular = match *kind {
                k if k == odd_tcp => tcp,
                k if k == odd_udp => udp,
                k if k == other && self.only(arena, 132) => sctp,
                _ => return true,
            };
            !all_regular.contains(&regular)
        });
        out.extend(odd);
        out
    }

    fn only(&self, arena: &Arena, protocol: u8) -> bool {
        self.protocols(arena) == [protocol]
    }

    /// Whole packets of a protocol, as a NIC and the program both read them, and whether all are such, as far as their
    /// headers say.
    fn regular(
        &self,
        arena: &mut Arena,
        (family, ports): (Family, Ports),
        protocol: u8,
    ) -> (Option<Self>, bool) {
        let place = self.protocol();
        if !self.set(arena, &place).values().any(|v| v == protocol) {
            return (None, false);
        }
        let is_first = |v: &u8| match (family, ports) {
            (Family::V4, Ports::Fixed) => *v == 0x45,
            (Family::V4, Ports::Behind) => v >> 4 == 4 && v & 15 >= 5,
            (Family::V6, _) => v >> 4 == 6,
        };
        let mut wanted: Vec<(i64, Set)> = Vec::new();
        let mut all = true;
        let mut narrow = |arena: &Arena, at: i64, is: &dyn Fn(&u8) -> bool| {
            let set = self.set(arena, &self.network().plus(at));
            let narrowed = set.filtered(is);
            all &= set.values().all(|v| is(&v));
            let some = narrowed.values().next().is_some();
            wanted.push((at, narrowed));
            some
        };
        let mut some = narrow(arena, 0, &is_first);
        if family == Family::V4 {
            some &= narrow(arena, 6, &|v| v & 0x3f == 0);
            some &= narrow(arena, 7, &|v| *v == 0);
        }
        if !some {
            return (None, false);
        }
        let mut view = self.with(arena, &place, protocol);
        for (at, set) in wanted {
            view = view.where_it_is(arena, &self.network().plus(at), &set);
        }
        (view.possible(arena).then_some(view), all)
    }

    /// As the program reads them, by the protocol that the header names.
    fn by_protocol(&self, arena: &mut Arena, family: Family, ports: Ports) -> Vec<(Kind, Self)> {
        let place = self.protocol();
        let named = [TRANSPORTS[0], TRANSPORTS[1], family.icmp().0];
        let mut base = self.clone();
        (base.odd, base.extended) = (Some(ports), false);
        let set = self.set(arena, &place);
        let mut out = Vec::new();
        let [.., other] = odd_kinds(family);
        for (number, kind) in named.into_iter().zip(odd_kinds(family)) {
            let view = base.having(arena, &place, number);
            out.extend(view.map(|view| (kind, view)));
        }
        let rest = set.filtered(|v| !named.contains(v));
        if rest.values().next().is_some() {
            let view = base.where_it_is(arena, &place, &rest);
            out.extend(view.not_named(arena, &place, &named).map(|v| (other, v)));
        }
        out
    }

    /// Those whose byte is none of these; none if the guard leaves no such.
    fn not_named(mut self, arena: &mut Arena, place: &Offset, named: &[u8]) -> Option<Self> {
        let mut conditions = std::collections::BTreeMap::new();
        for e in self.guard.iter() {
            let parts = self.memo.parts(arena, *e);
            for (condition, of) in &parts.compared {
                let Node::Cmp(_, _, c) = *arena.node(*condition) else {
                    continue;
                };
                let is_named = |c: u64| named.iter().any(|n| u64::from(*n) == c);
                if of == place && arena.constant(c).is_some_and(is_named) {
                    conditions.insert(*condition, false);
                }
            }
        }
        let mut guard = self.memo.decided(arena, &self.guard, &conditions);
        if guard.iter().any(|e| arena.constant(*e) == Some(0)) {
            return None;
        }
        // What a key is chosen by is known of these packets, too.
        guard.retain(|e| arena.constant(*e) != Some(1));
        guard.extend(conditions.keys().map(|e| arena.not(*e)));
        guard.sort_unstable();
        guard.dedup();
        self.guard = std::rc::Rc::new(guard);
        self.possible(arena).then_some(self)
    }
}
