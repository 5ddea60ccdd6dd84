//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

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
    #[must_use]
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum to store.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// The sum with the two representations of zero as one: equal for messages whose checksums are equally right.
    #[must_use]
    pub fn residue(self) -> u16 {
        self.folded() % 0xffff
    }

    /// Whether a message that contains its checksum, and anything that is not zero, sums to all ones.
    #[must_use]
    pub fn holds(self) -> bool {
        self.folded() == 0xffff
    }
}

/// The checksum to store where zero says that there is none (UDP, RFC 768): a computed zero is written as all ones,
/// its other representation.
#[must_use]
pub fn nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// The checksum after a word that it covers changed: RFC 1624, equation 3, HC' = ~(~HC + ~m + m'). One that was wrong
/// stays as wrong.
#[must_use]
pub fn replace(checksum: u16, from: u16, to: u16) -> u16 {
    Sum::default()
        .word(!checksum)
        .word(!from)
        .word(to)
        .checksum()
}

/// The same of UDP: a checksum of zero stays zero, as there is none, and one that comes out as zero is all ones.
#[must_use]
pub fn replace_udp(checksum: u16, from: u16, to: u16) -> u16 {
    if checksum == 0 {
        return 0;
    }
    nonzero(replace(checksum, from, to))
}

/// Finishes a checksum that a sender left to a device: the field at `start + offset` holds the sum of the pseudo
/// header, and the checksum is over everything from `start`. False when the place is outside of the frame.
pub fn finish(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(place) = start.checked_add(offset) else {
        return false;
    };
    let Some(over) = frame.get(start..) else {
        return false;
    };
    // The field itself is part of the sum, which is how the pseudo header gets in.
    let checksum = Sum::default().bytes(over).checksum();
    crate::put(frame, place, nonzero(checksum))
}
