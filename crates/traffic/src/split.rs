//! One capture over two ports: who sent a packet decides where it enters.

use std::fmt;
use std::net::IpAddr;
use std::ops::Range;
use std::str::FromStr;

use millrace_wire::{Rule, arp, ethernet, ipv4, ipv6, link};

use crate::prefix::{Prefix, PrefixError};

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
    prefixes: Vec<Prefix>,
}

/// A split that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// No `=`, or nothing before or after it.
    #[error("`{0}` is not a split; write PORT=PREFIX[,PREFIX…], as in lan=10.0.0.0/24,fd00::/8")]
    Form(String),
    /// A prefix that is none.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
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
        let prefixes = prefixes.split(',').map(|prefix| prefix.trim().parse());
        let prefixes = prefixes.collect::<Result<_, PrefixError>>()?;
        Ok(Self {
            port: port.to_owned(),
            prefixes,
        })
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes: Vec<_> = self.prefixes.iter().map(Prefix::to_string).collect();
        write!(f, "{}={}", self.port, prefixes.join(","))
    }
}

impl Split {
    /// The name of the port that the prefixes belong to, as written.
    pub fn port(&self) -> &str {
        &self.port
    }

    /// The side that a frame enters at.
    pub fn side(&self, frame: &[u8]) -> Side {
        let inside = |sender| self.prefixes.iter().any(|prefix| prefix.contains(sender));
        if sender(frame).is_some_and(inside) {
            Side::Named
        } else {
            Side::Other
        }
    }
}

/// The address of a frame's sender, where it has one. Nothing else of its header is looked at.
fn sender(frame: &[u8]) -> Option<IpAddr> {
    let link = link(frame, Rule::CAPTURE);
    let packet = frame.get(link.at..)?;
    match link.ethertype? {
        ethernet::IPV4 => address::<4>(packet, ipv4::SOURCE),
        ethernet::IPV6 => address::<16>(packet, ipv6::SOURCE),
        ethernet::ARP if packet.starts_with(&arp::BEGINNING) => address::<4>(packet, arp::SENDER),
        _ => None,
    }
}

fn address<const N: usize>(packet: &[u8], at: Range<usize>) -> Option<IpAddr>
where
    IpAddr: From<[u8; N]>,
{
    let bytes = packet.get(at)?.first_chunk::<N>()?;
    Some(IpAddr::from(*bytes))
}
