//! Description of the traffic to generate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::Shape;
use crate::prefix::Prefix;

/// Flows alive at once: 24 bytes each.
pub const MAX_FLOWS: u64 = 1 << 24;

/// Lengths of frames in bytes, as they lie in a capture: without the frame check sequence.
///
/// A length below what a packet's headers need counts as that; the packets that open and close a TCP
/// connection have the length of their headers whatever is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Every frame the same.
    Fixed(u16),
    /// Simple IMIX: IP packets of 40, 576 and 1500 bytes, 7 to 4 to 1.
    Imix,
    /// Every length between the two equally often.
    Range(u16, u16),
}

impl FromStr for Size {
    type Err = SpecError;

    /// `64`, `imix` or `64-1514`.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let error = || SpecError::Size(text.to_owned());
        let number = |text: &str| text.trim().parse().map_err(|_| error());
        match text.split_once('-') {
            _ if text.eq_ignore_ascii_case("imix") => Ok(Self::Imix),
            Some((least, most)) => {
                let (least, most) = (number(least)?, number(most)?);
                if least > most {
                    Err(error())
                } else {
                    Ok(Self::Range(least, most))
                }
            }
            None => Ok(Self::Fixed(number(text)?)),
        }
    }
}

/// How many flows are of which protocol: weights, of any sum.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Mix {
    /// TCP connections.
    pub tcp: f64,
    /// UDP flows.
    pub udp: f64,
    /// Sequences of ICMP echoes.
    pub icmp: f64,
}

impl FromStr for Mix {
    type Err = SpecError;

    /// `tcp`, or `tcp:8,udp:2`: protocols and their weights, 1 where none is given.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut mix = Self {
            tcp: 0.0,
            udp: 0.0,
            icmp: 0.0,
        };
        for part in text.split(',').map(str::trim) {
            let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
            let weight = weight.parse().map_err(|_| SpecError::Mix)?;
            match name {
                "tcp" => mix.tcp = weight,
                "udp" => mix.udp = weight,
                "icmp" => mix.icmp = weight,
                _ => return Err(SpecError::Mix),
            }
        }
        Ok(mix)
    }
}

/// Traffic to make. [`Spec::default`] is a small mixture to begin with.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Spec {
    /// What chance is drawn from.
    pub seed: u64,
    /// Packets to make.
    pub packets: u64,
    /// Flows alive at once, 1 to [`MAX_FLOWS`].
    pub flows: u64,
    /// Exponent of Zipf's law over the flows' popularity; 0: all alike.
    pub zipf: f64,
    /// Popularity by flow sizes of a network, in place of Zipf's law.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// Flows that end and are replaced by new ones, a minute of the capture's time, in turn.
    pub churn: f64,
    /// Packets a second, evenly spaced.
    pub rate: f64,
    /// Lengths of frames.
    pub size: Size,
    /// Protocols.
    pub mix: Mix,
    /// The share of flows that are IPv6, 0 to 1.
    pub ipv6: f64,
    /// Whether answers are made too, from the WAN to the LAN; else only what the LAN sends.
    pub both: bool,
    /// Whether TCP connections are opened and closed. Without it, all their packets carry data.
    pub connections: bool,
    /// Whether every flow has a packet before any has a second, and so exactly `flows` flows appear
    /// (where there are as many packets).
    pub every_flow: bool,
    /// Hosts that open flows, IPv4. At most 65536 of a prefix are used, here and below.
    pub lan: Prefix,
    /// Hosts that answer, IPv4.
    pub wan: Prefix,
    /// Hosts that open flows, IPv6.
    pub lan6: Prefix,
    /// Hosts that answer, IPv6.
    pub wan6: Prefix,
    /// The first packet's stamp, nanoseconds since 1970.
    pub start_ns: u64,
}

impl Default for Spec {
    /// 100,000 packets of 1000 flows with answers, four fifths TCP, IMIX, IPv4, Zipf 1.1, at 100,000
    /// packets a second, between 10.0.0.0/16 and 198.18.0.0/15, the range for benchmarks (RFC 2544,
    /// C.2.2; RFC 5180, 8 for IPv6).
    fn default() -> Self {
        let v4 = |a, b, bits| Prefix::new(IpAddr::V4(Ipv4Addr::new(a, b, 0, 0)), bits);
        let v6 = |a, b, bits| Prefix::new(IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)), bits);
        Self {
            seed: 1,
            packets: 100_000,
            flows: 1000,
            zipf: 1.1,
            shape: None,
            churn: 0.0,
            rate: 100_000.0,
            size: Size::Imix,
            mix: Mix {
                tcp: 8.0,
                udp: 2.0,
                icmp: 0.0,
            },
            ipv6: 0.0,
            both: true,
            connections: true,
            every_flow: false,
            lan: v4(10, 0, 16),
            wan: v4(198, 18, 15),
            lan6: v6(0xfd00, 0, 64),
            wan6: v6(0x2001, 2, 48),
            start_ns: 1_700_000_000_000_000_000,
        }
    }
}

impl Spec {
    /// Traffic for measuring: exactly `flows` flows, one direction, every frame of `size` bytes, no
    /// handshakes; uniform or by Zipf's law.
    pub fn measuring(flows: u64, packets: u64, size: u16, zipf: f64, mix: Mix) -> Self {
        Self {
            flows,
            packets,
            zipf,
            size: Size::Fixed(size),
            mix,
            both: false,
            connections: false,
            every_flow: true,
            rate: 1_000_000.0,
            lan: Prefix::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
            ..Self::default()
        }
    }

    /// Whether it can be made.
    ///
    /// # Errors
    /// What is out of range.
    pub fn validate(&self) -> Result<(), SpecError> {
        if !(1..=MAX_FLOWS).contains(&self.flows) {
            return Err(SpecError::Flows(self.flows));
        }
        if !(self.zipf.is_finite() && (0.0..=10.0).contains(&self.zipf)) {
            return Err(SpecError::Zipf(self.zipf));
        }
        if !(self.rate.is_finite() && (0.001..=1e9).contains(&self.rate)) {
            return Err(SpecError::Rate(self.rate));
        }
        // A connection takes six packets to open and close; a sixth of the packets at most may do so.
        let most = self.rate * 60.0 / 36.0;
        if !(self.churn.is_finite() && (0.0..=most).contains(&self.churn)) {
            return Err(SpecError::Churn {
                churn: self.churn,
                most,
            });
        }
        let weights = [self.mix.tcp, self.mix.udp, self.mix.icmp];
        let sum: f64 = weights.iter().sum();
        if weights.iter().any(|weight| *weight < 0.0) || !sum.is_finite() || sum <= 0.0 {
            return Err(SpecError::Mix);
        }
        if !(0.0..=1.0).contains(&self.ipv6) {
            return Err(SpecError::Ipv6(self.ipv6));
        }
        match self.size {
            Size::Range(least, most) if least > most => {
                return Err(SpecError::Size(format!("{least}-{most}")));
            }
            _ => {}
        }
        for (prefix, v4) in [
            (self.lan, true),
            (self.wan, true),
            (self.lan6, false),
            (self.wan6, false),
        ] {
            if prefix.v4(0).is_some() != v4 {
                return Err(SpecError::Family(prefix));
            }
        }
        Ok(())
    }

    /// The longest frame that it makes.
    pub(super) fn longest(&self) -> usize {
        match self.size {
            Size::Fixed(size) | Size::Range(_, size) => usize::from(size).max(128),
            Size::Imix => 1514,
        }
    }
}

/// Traffic that cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// Too few or too many flows.
    #[error("{0} flows; from 1 to {MAX_FLOWS} can be alive at once")]
    Flows(u64),
    /// Not an exponent.
    #[error("Zipf exponent {0}; it is 0 (all flows alike) to 10")]
    Zipf(f64),
    /// Not a rate.
    #[error("{0} packets a second; a rate is 0.001 to 1000000000")]
    Rate(f64),
    /// More churn than packets.
    #[error("{churn} new flows a minute; at this rate of packets there can be 0 to {most}")]
    Churn {
        /// What was asked for.
        churn: f64,
        /// What is possible.
        most: f64,
    },
    /// Not weights.
    #[error("a mix is protocols with weights, as in tcp:8,udp:2,icmp:1, not negative, not all 0")]
    Mix,
    /// Not a share.
    #[error("a share of {0} IPv6 flows; it is 0 to 1")]
    Ipv6(f64),
    /// Not a size.
    #[error("`{0}` is not a size; write bytes as 64, a range as 64-1514, or imix")]
    Size(String),
    /// A prefix of the wrong family.
    #[error("{0} is of the other address family than this range")]
    Family(Prefix),
}
