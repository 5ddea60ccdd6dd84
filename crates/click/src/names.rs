//! Names of addresses, ports and protocols: those of AddressInfo and PortInfo, and some that are the field's own.

use std::collections::HashMap;
use std::rc::Rc;

use crate::arguments::{ip, plain_ethernet, prefix};
use crate::language::Graph;
use crate::language::args;

/// Names of a configuration, as an element sees them: those of its own compound element hide those of the ones around it.
#[derive(Clone, Debug, Default)]
pub struct Names {
    all: Rc<Tables>,
    /// the names of the compound elements around it
    scope: String,
}

/// Names by the compound element in which they are defined.
#[derive(Clone, Debug, Default)]
struct Tables {
    addresses: HashMap<(String, String), Address>,
    ports: HashMap<(String, String), u16>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Address {
    ip: Option<[u8; 4]>,
    /// address and mask, as written
    network: Option<([u8; 4], [u8; 4])>,
    ethernet: Option<[u8; 6]>,
}

/// Ports that have a name in filters.
const PORTS: [(&str, u16); 40] = [
    ("auth", 113),
    ("bgp", 179),
    ("bootpc", 68),
    ("bootps", 67),
    ("chargen", 19),
    ("daytime", 13),
    ("discard", 9),
    ("dns", 53),
    ("domain", 53),
    ("echo", 7),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("http", 80),
    ("https", 443),
    ("imap", 143),
    ("imap3", 220),
    ("imaps", 993),
    ("irc", 194),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("nfs", 2049),
    ("nntp", 119),
    ("ntp", 123),
    ("pop3", 110),
    ("pop3s", 995),
    ("pptp", 1723),
    ("rip", 520),
    ("route", 520),
    ("smtp", 25),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("socks", 1080),
    ("ssh", 22),
    ("sunrpc", 111),
    ("syslog", 514),
    ("telnet", 23),
    ("tftp", 69),
    ("www", 80),
];

/// Protocols that have a name.
pub const PROTOCOLS: [(&str, u8); 16] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("ospf", 89),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("sctp", 132),
    ("udplite", 136),
];

impl Names {
    /// The names that the elements of a graph give.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        let mut names = Self::default();
        for element in &graph.elements {
            let all = args::split(&element.config);
            let scope = scope(&element.name);
            names.scope.clear();
            names.scope.push_str(scope);
            match element.class.as_str() {
                "AddressInfo" => all.iter().for_each(|a| names.address(a)),
                "PortInfo" => all.iter().for_each(|a| names.port_info(a)),
                _ => {}
            }
        }
        names.scope.clear();
        names
    }

    /// The same names as an element sees them.
    #[must_use]
    pub fn seen_by(&self, element: &str) -> Self {
        Self {
            all: self.all.clone(),
            scope: scope(element).to_owned(),
        }
    }

    /// An address with host bits is one, a prefix without them is a network alone.
    fn address(&mut self, argument: &str) {
        let words = args::words(argument);
        let Some((name, values)) = words.split_first() else {
            return;
        };
        let mut address = Address::default();
        for value in values {
            let written = value.contains('/');
            if let Some(found) = ip(value, self).filter(|_| !written) {
                address.ip = Some(found);
            } else if let Some((found, mask)) = prefix(value, self) {
                address.network = Some((found, mask));
                let hosts = found.iter().zip(mask).any(|(byte, mask)| byte & !mask != 0);
                address.ip = address.ip.or(hosts.then_some(found));
            }
            let found = plain_ethernet(value).or_else(|| self.ethernet(value));
            address.ethernet = found.or(address.ethernet);
        }
        let key = (self.scope.clone(), name.clone());
        Rc::make_mut(&mut self.all).addresses.insert(key, address);
    }

    fn port_info(&mut self, argument: &str) {
        let words = args::words(argument);
        if let [name, port, ..] = words.as_slice()
            && let Some(port) = port.split('/').next().and_then(|p| p.parse().ok())
        {
            let key = (self.scope.clone(), name.clone());
            Rc::make_mut(&mut self.all).ports.insert(key, port);
        }
    }

    /// The first of its kind among the names of its own compound element, then of those around it.
    fn find<V, T>(
        &self,
        all: &HashMap<(String, String), V>,
        name: &str,
        of: impl Fn(&V) -> Option<T>,
    ) -> Option<T> {
        if all.is_empty() {
            return None;
        }
        let mut scope = self.scope.as_str();
        loop {
            let found = all.get(&(scope.to_owned(), name.to_owned()));
            if let Some(value) = found.and_then(&of) {
                return Some(value);
            }
            if scope.is_empty() {
                return None;
            }
            scope = self::scope(scope);
        }
    }

    /// An IPv4 address.
    #[must_use]
    pub fn ip(&self, name: &str) -> Option<[u8; 4]> {
        let (base, suffix) = name.rsplit_once(':').unwrap_or((name, ""));
        let network = || self.find(&self.all.addresses, base, |a| a.network);
        match suffix.to_ascii_lowercase().as_str() {
            "" | "ip" | "ip4" => self.find(&self.all.addresses, base, |a| a.ip),
            "bcast" => network().map(|(a, mask)| std::array::from_fn(|i| a[i] | !mask[i])),
            "gw" => network().map(|(a, mask)| {
                let first = std::array::from_fn(|i| a[i] & mask[i]);
                (u32::from_be_bytes(first) | 1).to_be_bytes()
            }),
            _ => None,
        }
    }

    /// An IPv4 network.
    #[must_use]
    pub fn prefix(&self, name: &str) -> Option<([u8; 4], [u8; 4])> {
        let (base, suffix) = name.rsplit_once(':').unwrap_or((name, ""));
        match suffix.to_ascii_lowercase().as_str() {
            "" | "ipnet" | "net" | "ip4net" => self
                .find(&self.all.addresses, base, |a| a.network)
                .map(|(a, mask)| (std::array::from_fn(|i| a[i] & mask[i]), mask)),
            _ => None,
        }
    }

    /// An Ethernet address.
    #[must_use]
    pub fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        let (base, suffix) = name.rsplit_once(':').unwrap_or((name, ""));
        match suffix.to_ascii_lowercase().as_str() {
            "" | "eth" | "ether" => self.find(&self.all.addresses, base, |a| a.ethernet),
            _ => None,
        }
    }

    /// A port.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<u16> {
        let known = || PORTS.iter().find(|p| p.0 == name).map(|p| p.1);
        self.find(&self.all.ports, name, |p| Some(*p))
            .or_else(known)
    }
}

/// The compound elements around an element, by its name in the flat graph.
fn scope(element: &str) -> &str {
    element.rsplit_once('/').map_or("", |parts| parts.0)
}

/// A protocol's number.
#[must_use]
pub fn protocol(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|p| p.0 == name).map(|p| p.1)
}

/// A protocol's name.
#[must_use]
pub fn protocol_name(number: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|p| p.1 == number).map(|p| p.0)
}
