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
pub enum PrefixError {
    /// Not an address.
    #[error("`{0}` is not an address; write a prefix as in 10.0.0.0/24 or fd00::/8")]
    Address(String),
    /// Not a number of bits, or too many.
    #[error("`/{bits}` in `{prefix}`: a prefix of this address has 0 to {most} bits")]
    Bits {
        /// What was written after the slash.
        bits: String,
        /// The whole prefix.
        prefix: String,
        /// Bits of the address.
        most: u32,
    },
}

impl Prefix {
    /// The prefix of these bits that holds `address`; more bits than it has count as all.
    pub fn new(address: IpAddr, bits: u32) -> Self {
        match address {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                Self {
                    first: Ipv4Addr::from_bits(address.to_bits() & mask4(bits)).into(),
                    bits,
                }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(128);
                Self {
                    first: Ipv6Addr::from_bits(address.to_bits() & mask6(bits)).into(),
                    bits,
                }
            }
        }
    }

    /// Whether an address is in it; one of the other family never is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits() & mask4(self.bits) == first.to_bits()
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                address.to_bits() & mask6(self.bits) == first.to_bits()
            }
            _ => false,
        }
    }

    /// How many hosts are numbered in it, at most 65536: without the first and the last address, which
    /// are the network's and its broadcast's, where it has others.
    pub(crate) fn hosts(&self) -> u64 {
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
    pub(crate) fn v4(&self, host: u64) -> Option<Ipv4Addr> {
        match self.first {
            IpAddr::V4(first) => {
                let host = host as u32 + u32::from(self.bits < 31);
                Some(Ipv4Addr::from_bits(first.to_bits().wrapping_add(host)))
            }
            IpAddr::V6(_) => None,
        }
    }

    /// As [`Prefix::v4`].
    pub(crate) fn v6(&self, host: u64) -> Option<Ipv6Addr> {
        match self.first {
            IpAddr::V6(first) => {
                let host = u128::from(host) + u128::from(self.bits < 127);
                Some(Ipv6Addr::from_bits(first.to_bits().wrapping_add(host)))
            }
            IpAddr::V4(_) => None,
        }
    }
}

fn mask4(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits).unwrap_or(0)
}

fn mask6(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// `10.0.0.0/24`, or an address alone for all of its bits.
    fn from_str(prefix: &str) -> Result<Self, PrefixError> {
        let (address, bits) = match prefix.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (prefix, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| PrefixError::Address(prefix.to_owned()))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(text) => text
                .parse()
                .ok()
                // `parse` alone would take a sign.
                .filter(|&bits| bits <= most && text.bytes().all(|b| b.is_ascii_digit()))
                .ok_or_else(|| PrefixError::Bits {
                    bits: text.to_owned(),
                    prefix: prefix.to_owned(),
                    most,
                })?,
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
