//! Protocol, addresses and ports of a flow, a function of its number and the seed.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::spec::Spec;

/// Source ports that are used: above those of services.
const PORTS: u64 = 65_536 - 1024;

/// A prime above every factor of hosts × ports, hence without a common factor with their product:
/// multiplying by it modulo that product is a bijection.
const STRIDE: u64 = 2_654_435_761;

const TCP_SERVICES: [u16; 8] = [443, 443, 443, 80, 80, 22, 8080, 5201];
const UDP_SERVICES: [u16; 4] = [53, 53, 443, 123];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
    Icmp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

/// A flow as its opener in the LAN sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) protocol: Protocol,
    pub(super) addresses: Addresses,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
}

/// Spreads a number over 64 bits: the output function of SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014, figure 15).
pub(super) fn spread(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What the numbers of one [`Spec`] turn into.
pub(super) struct Identities {
    seed: u64,
    /// Below these of 2^32 a flow is TCP, UDP.
    tcp: u64,
    udp: u64,
    /// Below this of 2^16 it is IPv6.
    v6: u64,
    spec: Spec,
    hosts: [u64; 4],
}

impl Identities {
    pub(super) fn new(spec: &Spec) -> Self {
        let sum = spec.mix.tcp + spec.mix.udp + spec.mix.icmp;
        let below = |share: f64| (share / sum * 4_294_967_296.0).round() as u64;
        Self {
            seed: spread(spec.seed),
            tcp: below(spec.mix.tcp),
            udp: below(spec.mix.tcp + spec.mix.udp),
            v6: (spec.ipv6 * 65_536.0).round() as u64,
            hosts: [&spec.lan, &spec.lan6, &spec.wan, &spec.wan6].map(|prefix| prefix.hosts()),
            spec: spec.clone(),
        }
    }

    pub(super) fn protocol(&self, number: u64) -> Protocol {
        match spread(number ^ self.seed) & 0xffff_ffff {
            draw if draw < self.tcp => Protocol::Tcp,
            draw if draw < self.udp => Protocol::Udp,
            _ => Protocol::Icmp,
        }
    }

    /// The flow of this number. Two numbers that differ by less than hosts × 64512 (of the smaller LAN)
    /// are two flows, for no two of them share source address and source port.
    pub(super) fn identity(&self, number: u64) -> Identity {
        let draw = spread(number ^ self.seed);
        let protocol = self.protocol(number);
        let six = draw >> 48 < self.v6;
        let [lan4, lan6, wan4, wan6] = self.hosts;
        let (lan, wan) = if six { (lan6, wan6) } else { (lan4, wan4) };
        let product = lan * PORTS;
        let place = (number % product * STRIDE + self.seed % product) % product;
        let (host, port) = (place % lan, place / lan);
        let server = ((draw >> 32 & 0xffff) * wan) >> 16;
        let (source, destination) = (&self.spec.lan, &self.spec.wan);
        let v4 = || Some(Addresses::V4(source.v4(host)?, destination.v4(server)?));
        let (source6, destination6) = (&self.spec.lan6, &self.spec.wan6);
        let v6 = || Some(Addresses::V6(source6.v6(host)?, destination6.v6(server)?));
        let addresses = if six { v6() } else { v4() };
        let service = (draw >> 44) as usize;
        let destination_port = match protocol {
            Protocol::Tcp => TCP_SERVICES[service % TCP_SERVICES.len()],
            Protocol::Udp => UDP_SERVICES[service % UDP_SERVICES.len()],
            Protocol::Icmp => 0,
        };
        Identity {
            protocol,
            // A validated spec has prefixes of their families.
            addresses: addresses
                .unwrap_or(Addresses::V4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED)),
            source_port: (1024 + port) as u16,
            destination_port,
        }
    }
}
