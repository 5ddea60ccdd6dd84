//! The Internet checksum (RFC 1071).

/// A sum of 16-bit words in one's complement arithmetic, not yet complemented.
///
/// Words are added in network order; a slice of odd length counts as if a zero byte followed, so only
/// the last slice of a message may be odd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        // RFC 1071, 2(B) and 2(C): the sum may be taken over wider words and folded at the end. 32-bit
        // words leave 32 bits for carries: enough for 16 GiB.
        let mut chunks = bytes.chunks_exact(4);
        let mut sum = self.0;
        for chunk in &mut chunks {
            if let Some(word) = chunk.first_chunk() {
                sum += u64::from(u32::from_be_bytes(*word));
            }
        }
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(chunks.remainder()) {
            *to = *from;
        }
        Self(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// Adds a number of 16 bits.
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word))
    }

    /// Adds the pseudo header of TCP (RFC 9293, 3.1), UDP (RFC 768) and, for IPv6, of all upper layers
    /// (RFC 8200, 8.1): both addresses, the protocol and the length of the upper-layer packet.
    #[must_use]
    pub fn pseudo(self, source: &[u8], destination: &[u8], protocol: u8, length: u32) -> Self {
        let sum = self
            .bytes(source)
            .bytes(destination)
            .bytes(&length.to_be_bytes());
        sum.word(u16::from(protocol))
    }

    /// The sum folded to 16 bits: 0xffff over a message that contains its right checksum.
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum to store.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}
