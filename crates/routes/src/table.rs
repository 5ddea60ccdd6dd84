//! A routing table as it is meant, whatever it was read from.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::prefix::{Mac, Prefix};

/// Routing table `main`.
pub const MAIN: u32 = 254;
/// Routing table `local`: the system's own addresses.
pub const LOCAL: u32 = 255;

/// Ports, routes and neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// interfaces; a program calls them by their number and 1
    pub ports: Vec<Port>,
    /// at most one for each table and prefix
    pub routes: Vec<Route>,
    /// who is reachable at which MAC address
    pub neighbours: Vec<Neighbour>,
    /// what was left out, and why: a line each, for the user
    pub notes: Vec<String>,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// what it is called
    pub name: String,
    /// the port, from 0
    pub number: usize,
    /// its own address
    pub mac: Mac,
    /// bytes of the longest packet, its Ethernet header not counted
    pub mtu: u32,
    /// the same for IPv6
    pub mtu6: u32,
    /// whether IPv4 packets that come in by it are forwarded
    pub forwarding: bool,
    /// whether IPv6 packets are
    pub forwarding6: bool,
    /// addresses that it has
    pub addresses: Vec<Address>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// the address
    pub ip: IpAddr,
    /// bits of its subnet's prefix
    pub bits: u8,
    /// not valid beyond the link
    pub link: bool,
}

/// Type of a route; the numbers are those of linux/rtnetlink.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// sends them to a next hop
    Unicast = 1,
    /// they are for this machine
    Local = 2,
    /// they are for every machine on the link
    Broadcast = 3,
    /// they are for this machine and others
    Anycast = 4,
    /// they are for a group
    Multicast = 5,
    /// drops them silently
    Blackhole = 6,
    /// answers that there is no way
    Unreachable = 7,
    /// answers that it is forbidden
    Prohibit = 8,
    /// as if the table had no route
    Throw = 9,
}

/// A route of a table to a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// the table's number
    pub table: u32,
    /// where to
    pub to: Prefix,
    /// what becomes of packets
    pub kind: Kind,
    /// among routes to one prefix the lowest counts
    pub metric: u32,
    /// bytes of the longest packet that may take it, whatever the port's is; 0: the port's
    pub mtu: u32,
    /// it puts packets into a tunnel, which no program can
    pub encapsulated: bool,
    /// at least one for unicast
    pub hops: Vec<Hop>,
    /// routes to the same prefix that count less, for lookups that say which port a packet leaves by
    pub others: Vec<Route>,
}

/// One way on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// the port's number
    pub port: usize,
    /// the router; none when the destination is on the link
    pub via: Option<IpAddr>,
    /// its share among the hops
    pub weight: u32,
    /// source address of packets that this machine sends that way
    pub source: Option<IpAddr>,
}

/// A machine on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// the port's number
    pub port: usize,
    /// its address
    pub ip: IpAddr,
    /// where frames for it go
    pub mac: Mac,
}

impl Table {
    /// Keeps of several routes to one prefix the one that counts: this machine's own addresses first, then
    /// the lowest metric, then the first. The kernel falls back to another only where the port is given
    /// (`fib_table_lookup`, and for IPv6 `find_rr_leaf`, among routes of the same metric).
    pub(crate) fn settle(&mut self) {
        let mut groups: BTreeMap<(u32, Prefix), Vec<Route>> = BTreeMap::new();
        for route in self.routes.drain(..) {
            // Without rules of somebody's own the kernel keeps IPv4's `local` and `main` in one table.
            let table = match (route.table, route.to.address) {
                (LOCAL, IpAddr::V4(_)) => MAIN,
                (table, _) => table,
            };
            groups.entry((table, route.to)).or_default().push(route);
        }
        for mut routes in groups.into_values() {
            // The sort is stable: among equals the first stays first.
            routes.sort_by_key(|r| (r.table != LOCAL, r.metric));
            let mut routes = routes.into_iter();
            let Some(mut best) = routes.next() else {
                continue;
            };
            let falls_back = |r: &Route| r.to.address.is_ipv4() || r.metric == best.metric;
            let others = routes
                .filter(|r| !r.hops.is_empty() && falls_back(r))
                .collect();
            best.others = if best.hops.is_empty() {
                Vec::new()
            } else {
                others
            };
            self.routes.push(best);
        }
    }
}
