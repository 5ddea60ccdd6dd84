//! Address ranges.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A prefix of addresses of either family, as in `10.0.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    first: IpAddr,
    bits: u32,
}

/// Not a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a prefix; write one as 10.0.0.0/16 or fd00::/64")]
pub struct PrefixError(String);

impl Prefix {
    /// The prefix of these bits that holds `address`; more bits than it has count as all.
    pub fn new(address: IpAddr, bits: u32) -> Self {
        match address {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                Self {
                    first: Ipv4Addr::from_bits(address.to_bits() & mask).into(),
                    bits,
                }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                Self {
                    first: Ipv6Addr::from_bits(address.to_bits() & mask).into(),
                    bits,
                }
            }
        }
    }

    /// How many hosts are numbered in it, at most 65536: without the first and the last address, which
    /// are the network's and its broadcast's, where it has others.
    pub(super) fn hosts(&self) -> u64 {
        let free = if self.first.is_ipv4() {
            32 - self.bits
        } else {
            128 - self.bits
        };
        match free {
            0 => 1,
            1 => 2,
            free if free < 17 => (1 << free) - 2,
            _ => 65_536,
        }
    }

    /// The host of this number, below [`Prefix::hosts`]; none if the prefix is of the other family.
    pub(super) fn v4(&self, host: u64) -> Option<Ipv4Addr> {
        match self.first {
            IpAddr::V4(first) => {
                let host = host as u32 + u32::from(self.bits < 31);
                Some(Ipv4Addr::from_bits(first.to_bits().wrapping_add(host)))
            }
            IpAddr::V6(_) => None,
        }
    }

    /// As [`Prefix::v4`].
    pub(super) fn v6(&self, host: u64) -> Option<Ipv6Addr> {
        match self.first {
            IpAddr::V6(first) => {
                let host = u128::from(host) + u128::from(self.bits < 127);
                Some(Ipv6Addr::from_bits(first.to_bits().wrapping_add(host)))
            }
            IpAddr::V4(_) => None,
        }
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let error = || PrefixError(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|bits| *bits <= most)
                .ok_or_else(error)?,
        };
        Ok(Self::new(address, bits))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

impl serde::Serialize for Prefix {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
