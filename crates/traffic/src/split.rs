//! One capture over two ports: who sent a packet decides where it enters.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The side of a network function that a packet enters at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The port that the split names.
    Named,
    /// The other port.
    Other,
}

/// `PORT=CIDR[,CIDR…]`: packets whose sender is in one of the prefixes enter at that port.
///
/// The sender is the source address of IPv4 and IPv6, behind any VLAN tags, and the sender's protocol
/// address in ARP. Everything else (other protocols, headers too short to hold an address) enters at
/// the other port: a rule without memory, so that a packet's port depends on nothing but the packet.
/// With `lan=`, the other port is the WAN.
///
/// ```
/// use millrace_traffic::split::Split;
/// let split: Split = "lan=10.0.0.0/24,fd00::/8".parse()?;
/// assert_eq!(split.port(), "lan");
/// # Ok::<(), millrace_traffic::split::SplitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    port: String,
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

/// A split that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// No `=`, or nothing before or after it.
    #[error("`{0}` is not a split; write PORT=PREFIX[,PREFIX…], as in lan=10.0.0.0/24,fd00::/8")]
    Form(String),
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

impl FromStr for Split {
    type Err = SplitError;

    fn from_str(text: &str) -> Result<Self, SplitError> {
        let form = || SplitError::Form(text.to_owned());
        let (port, prefixes) = text.split_once('=').ok_or_else(form)?;
        let port = port.trim();
        if port.is_empty() || prefixes.trim().is_empty() {
            return Err(form());
        }
        let mut split = Self {
            port: port.to_owned(),
            v4: Vec::new(),
            v6: Vec::new(),
        };
        for prefix in prefixes.split(',').map(str::trim) {
            let (address, bits) = match prefix.split_once('/') {
                Some((address, bits)) => (address, Some(bits)),
                None => (prefix, None),
            };
            let address: IpAddr = address
                .parse()
                .map_err(|_| SplitError::Address(prefix.to_owned()))?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits = match bits {
                None => most,
                Some(text) => text
                    .parse()
                    .ok()
                    .filter(|&bits| bits <= most)
                    .ok_or_else(|| SplitError::Bits {
                        bits: text.to_owned(),
                        prefix: prefix.to_owned(),
                        most,
                    })?,
            };
            match address {
                IpAddr::V4(address) => {
                    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                    split.v4.push((address.to_bits() & mask, mask));
                }
                IpAddr::V6(address) => {
                    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                    split.v6.push((address.to_bits() & mask, mask));
                }
            }
        }
        Ok(split)
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v4 = self.v4.iter().map(|&(address, mask)| {
            format!(
                "{}/{}",
                std::net::Ipv4Addr::from_bits(address),
                mask.count_ones()
            )
        });
        let v6 = self.v6.iter().map(|&(address, mask)| {
            format!(
                "{}/{}",
                std::net::Ipv6Addr::from_bits(address),
                mask.count_ones()
            )
        });
        write!(
            f,
            "{}={}",
            self.port,
            v4.chain(v6).collect::<Vec<_>>().join(",")
        )
    }
}

impl Split {
    /// The name of the port that the prefixes belong to, as written.
    pub fn port(&self) -> &str {
        &self.port
    }

    /// The side that a frame enters at.
    pub fn side(&self, frame: &[u8]) -> Side {
        match sender(frame) {
            Some(IpAddr::V4(address))
                if self
                    .v4
                    .iter()
                    .any(|&(prefix, mask)| address.to_bits() & mask == prefix) =>
            {
                Side::Named
            }
            Some(IpAddr::V6(address))
                if self
                    .v6
                    .iter()
                    .any(|&(prefix, mask)| address.to_bits() & mask == prefix) =>
            {
                Side::Named
            }
            _ => Side::Other,
        }
    }
}

/// The address of a frame's sender, where it has one.
fn sender(frame: &[u8]) -> Option<IpAddr> {
    let mut at = 12;
    let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let mut kind = word(at)?;
    // Each tag is four bytes and is stepped over once, so the frame's length bounds this.
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
        at += 4;
        kind = word(at)?;
    }
    let network = frame.get(at + 2..)?;
    let v4 = |at: usize| {
        network
            .get(at..)?
            .first_chunk::<4>()
            .map(|address| IpAddr::from(*address))
    };
    match kind {
        0x0800 => v4(12),
        0x86dd => network
            .get(8..)?
            .first_chunk::<16>()
            .map(|address| IpAddr::from(*address)),
        // ARP for IPv4 over Ethernet: hardware type 1, 6-byte and 4-byte addresses (RFC 826).
        0x0806 if network.starts_with(&[0, 1, 8, 0, 6, 4]) => v4(14),
        _ => None,
    }
}
