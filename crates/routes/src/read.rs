//! From the document to the table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::value::RawValue;

use crate::document::{
    self, AddressInfo, HopText, Interface, NeighbourText, RouteText, Source, To, Word,
};
use crate::prefix::Prefix;
use crate::source::connected;
use crate::table::{Address, Hop, Kind, LOCAL, MAIN, Neighbour, Port, Route, Table};
use crate::{Error, MOST_BYTES, MOST_ENTRIES, MOST_PORTS};

/// Most hops of one route, as in the kernel's dumps.
const MOST_HOPS: usize = 255;

/// The metric of an IPv6 route that says none, as in the kernel.
const METRIC_6: u32 = 1024;

/// Neighbours in these states are used (NUD_VALID of include/net/neighbour.h).
const VALID: [&str; 6] = ["PERMANENT", "NOARP", "REACHABLE", "PROBE", "STALE", "DELAY"];

impl Table {
    /// Reads a document (docs/routes.md).
    ///
    /// # Errors
    /// It is no such document; the error names the line.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() as u64 > MOST_BYTES {
            return Err(Error::Whole(format!(
                "{} bytes, at most {MOST_BYTES} are read",
                text.len()
            )));
        }
        let source = Source(text);
        let document = source.document()?;
        let lists = [&document.routes, &document.routes6, &document.neighbours];
        if lists.iter().map(|l| l.len()).sum::<usize>() > MOST_ENTRIES {
            return Err(Error::Whole(format!(
                "more than {MOST_ENTRIES} routes and neighbours"
            )));
        }
        let mut reader = Reader::new(source, &document)?;
        for element in document.routes {
            reader.route(element, false)?;
        }
        for element in document.routes6 {
            reader.route(element, true)?;
        }
        for element in document.neighbours {
            reader.neighbour(element)?;
        }
        Ok(reader.finish())
    }
}

struct Reader<'a> {
    source: Source<'a>,
    table: Table,
    numbers: BTreeMap<String, usize>,
    notes: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    /// The ports: numbers that the document gives, and the lowest free ones for the others in their order.
    fn new(source: Source<'a>, document: &document::Document<'a>) -> Result<Self, Error> {
        let mut interfaces = Vec::new();
        for element in &document.ports {
            interfaces.push((*element, source.element::<Interface>(element)?));
        }
        let mut taken = BTreeSet::new();
        for (element, interface) in &interfaces {
            let Some(number) = interface.port else {
                continue;
            };
            if number >= MOST_PORTS {
                let what = format!("port {number}; ports are 0 to {}", MOST_PORTS - 1);
                return Err(source.error(element, what));
            }
            if !taken.insert(number) {
                let what = format!("port {number} is there twice; give each its own number");
                return Err(source.error(element, what));
            }
        }
        let mut reader = Self {
            source,
            table: Table::default(),
            numbers: BTreeMap::new(),
            notes: BTreeSet::new(),
        };
        for (element, interface) in interfaces {
            let free = || (0..MOST_PORTS).find(|n| !taken.contains(n));
            let Some(number) = interface.port.or_else(free) else {
                let what = format!("more than {MOST_PORTS} ports");
                return Err(source.error(element, what));
            };
            taken.insert(number);
            if reader
                .numbers
                .insert(interface.ifname.clone(), number)
                .is_some()
            {
                let what = format!("port {:?} is there twice", interface.ifname);
                return Err(source.error(element, what));
            }
            let forwarding = interface.forwarding.or(document.forwarding).unwrap_or(true);
            let mut addresses: Vec<Address> =
                interface.addr_info.iter().filter_map(address).collect();
            for written in &interface.addresses {
                let at = Address {
                    ip: written.0,
                    bits: written.1,
                    link: is_link(written.0),
                };
                reader
                    .table
                    .routes
                    .extend(connected(number, at).into_iter().flatten());
                addresses.push(at);
            }
            reader.table.ports.push(Port {
                name: interface.ifname,
                number,
                mac: interface.address,
                mtu: interface.mtu,
                mtu6: interface.mtu6.unwrap_or(interface.mtu),
                forwarding,
                forwarding6: interface.forwarding6.unwrap_or(forwarding),
                addresses,
            });
        }
        Ok(reader)
    }

    fn port(&self, element: &RawValue, dev: &Word) -> Result<usize, Error> {
        let found = match dev {
            Word::Text(name) => self.numbers.get(name).copied(),
            Word::Number(number) => {
                let number = usize::try_from(*number).ok();
                number.filter(|n| self.numbers.values().any(|known| known == n))
            }
        };
        found.ok_or_else(|| {
            let what = format!("there is no port {dev}; name one of \"ports\"");
            self.source.error(element, what)
        })
    }

    fn route(&mut self, element: &'a RawValue, six: bool) -> Result<(), Error> {
        let text: RouteText = self.source.element(element)?;
        for name in document::unknown_members(element) {
            self.notes
                .insert(format!("routes: the member {name:?} is ignored"));
        }
        let kind = self.kind(element, text.kind.as_deref())?;
        let via = text.gateway.or(text.via.as_ref().map(|v| v.host));
        let to = match text.dst {
            To::Prefix(prefix) => prefix,
            To::Default => Prefix::all(six || text.gateway.is_some_and(|g| g.is_ipv6())),
        };
        let left_out = [
            (text.from.is_some(), "which depends on the source"),
            (text.tos.is_some(), "which depends on the type of service"),
            (text.flags.iter().any(|f| f == "dead"), "whose link is down"),
        ];
        if let Some((_, why)) = left_out.iter().find(|(is, _)| *is) {
            self.notes
                .insert(format!("the route to {to}, {why}, is left out"));
            return Ok(());
        }
        let encapsulated = text.encap.is_some() || text.nexthops.iter().any(|h| h.encap.is_some());
        let mut hops = Vec::new();
        if reaches(kind) {
            let single = HopText {
                gateway: via,
                via: None,
                dev: text.dev,
                weight: None,
                encap: None,
                flags: Vec::new(),
            };
            let single = text.nexthops.is_empty().then_some(single);
            for hop in single.iter().chain(&text.nexthops) {
                if !hop.flags.iter().any(|f| f == "dead") {
                    hops.push(self.hop(element, to, hop, text.prefsrc)?);
                }
            }
            if hops.is_empty() {
                self.notes.insert(format!(
                    "the route to {to}, whose links are down, is left out"
                ));
                return Ok(());
            }
            if hops.len() > MOST_HOPS {
                let what = format!("{} next hops; at most {MOST_HOPS} are possible", hops.len());
                return Err(self.source.error(element, what));
            }
        }
        let table = self.table_number(element, text.table.as_ref())?;
        let metric = if to.address.is_ipv4() { 0 } else { METRIC_6 };
        let mtu = text.metrics.iter().filter(|m| m.lock).find_map(|m| m.mtu);
        self.table.routes.push(Route {
            table,
            to,
            kind,
            metric: text.metric.unwrap_or(metric),
            mtu: mtu.unwrap_or(0),
            encapsulated,
            hops,
            others: Vec::new(),
        });
        Ok(())
    }

    fn hop(
        &self,
        element: &RawValue,
        to: Prefix,
        hop: &HopText,
        source: Option<IpAddr>,
    ) -> Result<Hop, Error> {
        let wrong = |what: String| Err(self.source.error(element, what));
        let via = hop.gateway.or(hop.via.as_ref().map(|v| v.host));
        let Some(dev) = &hop.dev else {
            return wrong(format!(
                "the route to {to} has no \"dev\", the port it leaves by"
            ));
        };
        if let (IpAddr::V6(_), Some(via @ IpAddr::V4(_))) = (to.address, via) {
            return wrong(format!("the IPv6 route to {to} has the IPv4 gateway {via}"));
        }
        if source.is_some_and(|s| s.is_ipv4() != to.address.is_ipv4()) {
            return wrong(format!(
                "the route to {to} has a source of the other family"
            ));
        }
        match hop.weight {
            Some(0) => wrong("a weight of 0; weights are at least 1".into()),
            Some(weight @ 257..) => wrong(format!("a weight of {weight}; 1 to 256 are possible")),
            weight => Ok(Hop {
                port: self.port(element, dev)?,
                via,
                weight: weight.unwrap_or(1),
                source,
            }),
        }
    }

    fn kind(&self, element: &RawValue, word: Option<&str>) -> Result<Kind, Error> {
        Ok(match word {
            None | Some("unicast") => Kind::Unicast,
            Some("local") => Kind::Local,
            Some("broadcast") => Kind::Broadcast,
            Some("anycast") => Kind::Anycast,
            Some("multicast") => Kind::Multicast,
            Some("blackhole") => Kind::Blackhole,
            Some("unreachable") => Kind::Unreachable,
            Some("prohibit") => Kind::Prohibit,
            Some("throw") => Kind::Throw,
            Some(other) => {
                let what = format!(
                    "a route of type {other:?}; there are unicast, local, broadcast, anycast, multicast, \
                     blackhole, unreachable, prohibit and throw"
                );
                return Err(self.source.error(element, what));
            }
        })
    }

    fn table_number(&self, element: &RawValue, word: Option<&Word>) -> Result<u32, Error> {
        let number = match word {
            None => Some(MAIN),
            Some(Word::Number(number)) => u32::try_from(*number).ok(),
            Some(Word::Text(text)) => match &**text {
                "main" => Some(MAIN),
                "local" => Some(LOCAL),
                "default" => Some(253),
                other => other.parse().ok(),
            },
        };
        number.filter(|n| *n > 0).ok_or_else(|| {
            let what = "\"table\" is main, local, default or a number from 1 to 4294967295";
            self.source.error(element, what)
        })
    }

    fn neighbour(&mut self, element: &'a RawValue) -> Result<(), Error> {
        let text: NeighbourText = self.source.element(element)?;
        let valid = text.state.is_empty() || text.state.iter().any(|s| VALID.contains(&&**s));
        let Some(mac) = text.lladdr.filter(|_| valid) else {
            return Ok(());
        };
        let mac = mac
            .parse()
            .map_err(|e: String| self.source.error(element, e))?;
        let port = self.port(element, &text.dev)?;
        self.table.neighbours.push(Neighbour {
            port,
            ip: text.dst,
            mac,
        });
        Ok(())
    }

    fn finish(mut self) -> Table {
        self.table.settle();
        self.table.find_sources();
        self.table.notes = self.notes.into_iter().collect();
        self.table
    }
}

/// Whether packets of such a route go by a port.
fn reaches(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Blackhole | Kind::Unreachable | Kind::Prohibit | Kind::Throw
    )
}

fn address(info: &AddressInfo) -> Option<Address> {
    let ip = info.local?;
    Some(Address {
        ip,
        bits: info.prefixlen,
        link: info.scope == "link" || info.scope == "host" || is_link(ip),
    })
}

fn is_link(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.is_loopback(),
    }
}
