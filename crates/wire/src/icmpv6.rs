//! ICMPv6 (RFC 4443). The header is that of ICMP, the types are others.

pub use crate::icmpv4::{Echo, HEADER, IDENTIFIER, Message};

/// Type of an echo request
pub const REQUEST: u8 = 128;
/// Type of an echo reply
pub const REPLY: u8 = 129;

/// Whether a type is that of an error that is defined: RFC 4443, 2.1, has errors below 128.
#[inline]
#[must_use]
pub fn is_error(kind: u8) -> bool {
    matches!(kind, 1..=4)
}

/// The echo at the beginning of some bytes; none where there is no echo or less than six bytes of it.
#[must_use]
pub fn echo(bytes: &[u8]) -> Option<Echo> {
    crate::icmpv4::echo_of(bytes, (REQUEST, REPLY))
}
