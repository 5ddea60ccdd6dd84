//! Addresses as they are written: prefixes, MAC addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// An address and how many of its first bits count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Prefix {
    /// bits beyond the length are zero
    pub address: IpAddr,
    /// 0 to 32, or to 128
    pub bits: u8,
}

impl Prefix {
    /// A single address.
    #[must_use]
    pub fn host(address: IpAddr) -> Self {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Self { address, bits }
    }

    /// Every address of a family.
    #[must_use]
    pub fn all(six: bool) -> Self {
        let address = if six {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        };
        Self { address, bits: 0 }
    }

    /// The first `bits` of an address; none when it has fewer.
    #[must_use]
    pub fn of(address: IpAddr, bits: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(a) if bits <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(a.to_bits() & mask))
            }
            IpAddr::V6(a) if bits <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(a.to_bits() & mask))
            }
            _ => return None,
        };
        Some(Self { address, bits })
    }

    /// Whether the address is of this prefix.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        Self::of(address, self.bits).is_some_and(|p| p.address == self.address)
            && self.address.is_ipv4() == address.is_ipv4()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// An address with the length that follows it; without one, all of it.
pub(crate) fn with_length(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong =
        || format!("{text:?} is not an address or prefix, as in 10.0.0.0/8 or 2001:db8::/32");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address = IpAddr::from_str(address).map_err(|_| wrong())?;
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => whole,
        Some(bits) => bits
            .parse()
            .ok()
            // `parse` alone would take a sign.
            .filter(|_| bits.bytes().all(|b| b.is_ascii_digit()))
            .filter(|b| *b <= whole)
            .ok_or_else(wrong)?,
    };
    Ok((address, bits))
}

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mac(pub [u8; 6]);

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a MAC address, as in 02:00:00:00:00:01");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            // Not from_str_radix alone, which takes a sign.
            let hex = |p: &&str| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit());
            let part = parts.next().filter(hex).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        parts
            .next()
            .is_none()
            .then_some(Self(bytes))
            .ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_cut_and_hold() {
        let p = |text: &str| {
            let (address, bits) = with_length(text).unwrap();
            Prefix::of(address, bits).unwrap()
        };
        assert_eq!(p("10.1.2.3/8").to_string(), "10.0.0.0/8");
        assert_eq!(p("::1").to_string(), "::1/128");
        assert_eq!(p("1.2.3.4/0"), Prefix::all(false));
        assert!(p("10.0.0.0/8").holds("10.255.0.1".parse().unwrap()));
        assert!(!p("10.0.0.0/8").holds("11.0.0.1".parse().unwrap()));
        assert!(!p("0.0.0.0/0").holds("::1".parse().unwrap()));
        for wrong in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "x",
            "1.2.3.4/",
        ] {
            assert!(with_length(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mac_addresses() {
        assert_eq!("02:00:00:00:00:ff".parse(), Ok(Mac([2, 0, 0, 0, 0, 255])));
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "2:0:0:0:0:1",
            "+2:00:00:00:00:00",
        ] {
            assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
        }
    }
}
