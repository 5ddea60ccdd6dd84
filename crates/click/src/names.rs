//! Names of addresses, ports and protocols: those of AddressInfo and PortInfo, and some that are the field's own.

use std::collections::HashMap;

use crate::arguments::{plain_ethernet, prefix};
use crate::language::Graph;
use crate::language::args;

/// Names of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Names {
    addresses: HashMap<String, Address>,
    ports: HashMap<String, u16>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Address {
    ip: Option<([u8; 4], [u8; 4])>,
    ethernet: Option<[u8; 6]>,
}

/// Ports that have a name in filters.
const PORTS: [(&str, u16); 34] = [
    ("echo", 7),
    ("discard", 9),
    ("daytime", 13),
    ("chargen", 19),
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("dns", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("finger", 79),
    ("www", 80),
    ("http", 80),
    ("pop3", 110),
    ("sunrpc", 111),
    ("auth", 113),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("imap", 143),
    ("imap3", 220),
    ("snmp", 161),
    ("bgp", 179),
    ("https", 443),
    ("syslog", 514),
    ("route", 520),
    ("socks", 1080),
    ("nfs", 2049),
    ("irc", 6667),
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
            match element.class.as_str() {
                "AddressInfo" => all.iter().for_each(|a| names.address(a)),
                "PortInfo" => all.iter().for_each(|a| names.port_info(a)),
                _ => {}
            }
        }
        names
    }

    fn address(&mut self, argument: &str) {
        let words = args::words(argument);
        let Some((name, values)) = words.split_first() else {
            return;
        };
        let mut address = Address::default();
        for value in values {
            match plain_ethernet(value) {
                Some(ethernet) => address.ethernet = Some(ethernet),
                None => {
                    if let Some(found) = prefix(value, self) {
                        address.ip = Some(found);
                    }
                    address.ethernet = self.ethernet(value).or(address.ethernet);
                }
            }
        }
        self.addresses.insert(name.clone(), address);
    }

    fn port_info(&mut self, argument: &str) {
        let words = args::words(argument);
        if let [name, port, ..] = words.as_slice()
            && let Some(port) = port.split('/').next().and_then(|p| p.parse().ok())
        {
            self.ports.insert(name.clone(), port);
        }
    }

    fn find<'n>(&self, name: &'n str) -> Option<(&Address, &'n str)> {
        let (base, suffix) = name.split_once(':').unwrap_or((name, ""));
        Some((self.addresses.get(base)?, suffix))
    }

    /// An IPv4 address.
    #[must_use]
    pub fn ip(&self, name: &str) -> Option<[u8; 4]> {
        let (found, suffix) = self.find(name)?;
        let (address, mask) = found.ip?;
        match suffix {
            "" | "ip" | "ip4" => Some(address),
            "bcast" => Some(std::array::from_fn(|i| address[i] | !mask[i])),
            _ => None,
        }
    }

    /// An IPv4 network.
    #[must_use]
    pub fn prefix(&self, name: &str) -> Option<([u8; 4], [u8; 4])> {
        let (found, suffix) = self.find(name)?;
        let (address, mask) = found.ip?;
        match suffix {
            "ipnet" | "net" | "ip4net" => {
                Some((std::array::from_fn(|i| address[i] & mask[i]), mask))
            }
            _ => None,
        }
    }

    /// An Ethernet address.
    #[must_use]
    pub fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        let (found, suffix) = self.find(name)?;
        matches!(suffix, "" | "eth" | "ether").then_some(found.ethernet)?
    }

    /// A port.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<u16> {
        let known = PORTS.iter().find(|p| p.0 == name).map(|p| p.1);
        self.ports.get(name).copied().or(known)
    }
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
