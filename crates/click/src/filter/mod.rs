//! The language of IPFilter and IPClassifier: a condition on the headers of a packet.
//!
//! Operators, from the loosest: `?:`, `or` (`||`), `and` (`&&`), juxtaposition (which is `and`), `not` (`!`). A test is words, an operator,
//! and a value; a protocol among the words is a part of it: `tcp src host A`, `not udp dst port 53`.
//!
//! | test | holds for |
//! | --- | --- |
//! | `true`, `all`, `any`, `-`; `false`, `none` | all packets; none |
//! | `[src] host A`, `[dst] net A/N`, `[dst] net A mask M`, `src A` | an address, of IPv4 or of Ethernet; without `src` or `dst` either |
//! | `[tcp] [src] port P` | TCP and UDP, first fragments |
//! | `[ip] proto P`, `tcp`, `udp`, `icmp`, `tcpudp`, … | the protocol |
//! | `icmp type T`, `tcp opt F`, `syn`, `tcp win N` | first fragments |
//! | `ip vers`, `hl`, `id`, `tos`, `dscp`, `ttl`, `len` N | the field of the header |
//! | `ip frag`, `ip unfrag`, `ip ect [N]`, `ip ce` | fragments, others; congestion marks |
//! | `ip[O:L]`, `tcp[O:L]`, `transp[O:L]`, `[FIRST,LAST]` | L bytes (1 to 4, of one word of four) at O |
//!
//! `src or dst` is either, `src and dst` both; `!=`, `<` and `<=` are the opposites of `=`, `>=` and `>`, so that `port < 1024` holds where
//! both ports are low. A number may follow `=`, `==`, `!=`, `<`, `<=`, `>`, `>=`, and a field may be masked: `ip[6:2] & 0x3fff != 0`;
//! the mask holds for the number, too. Values without words have those of the test before them: `src port 80 or 81`.
//! What a comparison says of all numbers (`ip ttl >= 0`) it says of all packets; a number that is equal to none is refused.
//!
//! # Short packets
//! A test of bytes beyond the packet's end is false, whatever its comparison; so `not (…)` of it is true.

mod evaluate;
mod parse;
mod primitive;
mod vocabulary;

pub use parse::parse;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// for all packets, or for none
    Constant(bool),
    /// one test
    Test(Test),
    /// all of them
    All(Vec<Condition>),
    /// one of them
    Any(Vec<Condition>),
    /// not that
    Not(Box<Condition>),
    /// if the first, the second, else the third
    If(Box<[Condition; 3]>),
}

/// Where a test's bytes are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// the network header
    Network,
    /// the transport header
    Transport,
    /// the link header
    Link,
}

/// How a number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// Compares the masked bytes at a place with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// where bytes are counted from
    pub base: Base,
    /// the first byte
    pub offset: usize,
    /// how many, 1 to 6
    pub bytes: usize,
    /// the bits that count
    pub mask: u64,
    /// how they are compared
    pub compare: Compare,
    /// with what
    pub value: u64,
}
