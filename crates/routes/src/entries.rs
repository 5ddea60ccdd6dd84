//! The table as entries of the state object `.routes` (fastpath/state/routes_table.h).

use std::net::IpAddr;

use crate::table::{Hop, Neighbour, Port, Route, Table};

/// Key and value of an entry, 24 and 64 bytes.
pub type Entry = (Vec<u8>, Vec<u8>);

const PORT: u8 = 1;
const ROUTE: u8 = 2;
const NEIGHBOUR: u8 = 3;
const FORWARD_4: u8 = 1;
const FORWARD_6: u8 = 2;
const ENCAPSULATED: u8 = 4;
/// Most hops of a prefix.
const MOST_HOPS: u8 = 255;

impl Table {
    /// The entries, in the order they are to be set.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let routes = self.routes.iter().flat_map(route);
        self.ports
            .iter()
            .map(port)
            .chain(routes)
            .chain(self.neighbours.iter().map(neighbour))
            .collect()
    }

    /// The capacity that the state object needs: the more of next hops and neighbours, at least 1.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let all =
            |r: &Route| r.hops.len().max(1) + r.others.iter().map(|o| o.hops.len()).sum::<usize>();
        let hops: usize = self.routes.iter().map(all).sum();
        hops.max(self.neighbours.len()).max(1) as u64
    }
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

fn octets(address: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(a) => bytes[..4].copy_from_slice(&a.octets()),
        IpAddr::V6(a) => bytes = a.octets(),
    }
    bytes
}

fn index(port: usize) -> u32 {
    u32::try_from(port).map_or(0, |p| p + 1)
}

#[derive(Default)]
struct Key {
    what: u8,
    family: u8,
    bits: u8,
    hop: u8,
    number: u32,
    address: [u8; 16],
}

impl Key {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.what, self.family, self.bits, self.hop];
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.address);
        bytes
    }
}

#[derive(Default)]
struct Value {
    kind: u8,
    flags: u8,
    via: Option<IpAddr>,
    source: Option<IpAddr>,
    ifindex: u32,
    mtu: u32,
    mtu6: u32,
    metric: u32,
    weight: u32,
    mac: [u8; 6],
}

impl Value {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![
            self.kind,
            self.flags,
            self.via.map_or(0, family),
            self.source.map_or(0, family),
        ];
        for number in [self.ifindex, self.mtu, self.mtu6, self.metric, self.weight] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.mac);
        bytes.extend([0, 0]);
        bytes.extend(self.via.map_or([0; 16], octets));
        bytes.extend(self.source.map_or([0; 16], octets));
        bytes
    }
}

fn port(port: &Port) -> Entry {
    let flags = [(port.forwarding, FORWARD_4), (port.forwarding6, FORWARD_6)];
    let key = Key {
        what: PORT,
        number: index(port.number),
        ..Key::default()
    };
    let value = Value {
        flags: flags.iter().filter(|f| f.0).map(|f| f.1).sum(),
        mtu: port.mtu,
        mtu6: port.mtu6,
        mac: port.mac.0,
        ..Value::default()
    };
    (key.bytes(), value.bytes())
}

fn route(route: &Route) -> Vec<Entry> {
    let main = route;
    let none = Hop {
        port: usize::MAX,
        via: None,
        weight: 1,
        source: None,
    };
    let alone = std::slice::from_ref(&none);
    let own = if route.hops.is_empty() {
        alone
    } else {
        &route.hops
    };
    let own = own.iter().map(|hop| (route, *hop));
    // Of weight 0: no flow takes them by itself.
    let others = route.others.iter().flat_map(|other| {
        let hops = other.hops.iter();
        hops.map(move |hop| (other, Hop { weight: 0, ..*hop }))
    });
    let entry = |(number, (route, hop)): (u8, (&Route, Hop))| {
        let key = Key {
            what: ROUTE,
            family: family(route.to.address),
            bits: route.to.bits,
            hop: number,
            number: main.table,
            address: octets(route.to.address),
        };
        let value = Value {
            kind: route.kind as u8,
            flags: if route.encapsulated { ENCAPSULATED } else { 0 },
            via: hop.via,
            source: hop.source,
            ifindex: index(hop.port),
            mtu: route.mtu,
            metric: route.metric,
            weight: hop.weight,
            ..Value::default()
        };
        (key.bytes(), value.bytes())
    };
    (0..MOST_HOPS).zip(own.chain(others)).map(entry).collect()
}

fn neighbour(neighbour: &Neighbour) -> Entry {
    let key = Key {
        what: NEIGHBOUR,
        family: family(neighbour.ip),
        number: index(neighbour.port),
        address: octets(neighbour.ip),
        ..Key::default()
    };
    let value = Value {
        mac: neighbour.mac.0,
        ..Value::default()
    };
    (key.bytes(), value.bytes())
}
