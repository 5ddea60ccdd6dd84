//! Source addresses of routes that name none.

use std::net::IpAddr;

use crate::prefix::Prefix;
use crate::table::{Address, Hop, Port, Route, Table};

impl Table {
    /// Gives every unicast hop without one the source address that this machine would use.
    ///
    /// IPv4, as in net/ipv4/devinet.c `inet_select_addr`: an address of the port in whose subnet the
    /// router is, else the port's first, else another port's. IPv6: the address of the port whose subnet's
    /// prefix has most bits in common with the route's (RFC 6724, rules 2, 5 and 8; the kernel compares with
    /// the packet's destination), the first of several, else another port's.
    pub(crate) fn find_sources(&mut self) {
        let ports = &self.ports;
        for route in &mut self.routes {
            give(ports, route);
            for other in &mut route.others {
                give(ports, other);
            }
        }
    }
}

fn give(ports: &[Port], route: &mut Route) {
    for hop in &mut route.hops {
        if hop.source.is_none() && route.kind == crate::Kind::Unicast {
            hop.source = pick(ports, route.to, hop);
        }
    }
}

fn pick(ports: &[Port], to: Prefix, hop: &Hop) -> Option<IpAddr> {
    let own = ports.iter().filter(|p| p.number == hop.port);
    let own = own.flat_map(|p| &p.addresses);
    let others = ports.iter().filter(|p| p.number != hop.port);
    let others = others.flat_map(|p| &p.addresses);
    let fits = |a: &&Address| a.ip.is_ipv4() == to.address.is_ipv4();
    let (own, others): (Vec<_>, Vec<_>) =
        (own.filter(fits).collect(), others.filter(fits).collect());
    let beyond = |list: &[&Address]| list.iter().find(|a| !a.link).map(|a| a.ip);
    let found = if to.address.is_ipv4() {
        let near = |a: &&&Address| {
            let subnet = Prefix::of(a.ip, a.bits);
            hop.via
                .is_some_and(|via| subnet.is_some_and(|s| s.holds(via)))
        };
        own.iter().find(near).or(own.first()).map(|a| a.ip)
    } else {
        // The first of those that are equally near.
        let global = own.iter().filter(|a| !a.link).rev();
        global
            .max_by_key(|a| common(a.ip, to.address).min(u32::from(a.bits)))
            .map(|a| a.ip)
    };
    found
        .or_else(|| beyond(&others))
        .or_else(|| own.first().map(|a| a.ip))
}

/// How many first bits two IPv6 addresses share.
fn common(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    }
}

/// Routes that an interface's addresses alone bring into the table, as when the kernel is given them: a local
/// route, and one to the subnet.
pub(crate) fn connected(port: usize, address: Address) -> [Option<Route>; 2] {
    let route = |kind, table, to, metric| Route {
        table,
        to,
        kind,
        metric,
        mtu: 0,
        encapsulated: false,
        hops: vec![Hop {
            port,
            via: None,
            weight: 1,
            source: Some(address.ip),
        }],
        others: Vec::new(),
    };
    let host = Prefix::host(address.ip);
    let metric = if address.ip.is_ipv4() { 0 } else { 256 };
    let subnet = Prefix::of(address.ip, address.bits).filter(|s| s.bits < host.bits);
    [
        Some(route(crate::Kind::Local, crate::table::LOCAL, host, 0)),
        subnet.map(|s| route(crate::Kind::Unicast, crate::table::MAIN, s, metric)),
    ]
}
