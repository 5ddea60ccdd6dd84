//! The Toeplitz hash, as Microsoft's specification of receive side scaling defines it ("RSS Hashing
//! Functions", Windows driver documentation): with the bits of key and input numbered from the most
//! significant of the first byte, every set input bit `i` contributes the 32 key bits from `i` on, by
//! exclusive or.

/// The key of the specification's verification suite, which most drivers use when none is given.
pub const MICROSOFT_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The hash of `input` under `key`. Bits behind the key's end are zero; a key for `n` bytes of input
/// has `n + 4` bytes.
#[must_use]
pub fn hash(key: &[u8], input: &[u8]) -> u32 {
    let byte = |index: usize| u64::from(key.get(index).copied().unwrap_or(0));
    // The key bits from the current input byte on: 32 of them, and 8 more to shift in.
    let mut window = (0..4).fold(0, |window, index| window << 8 | byte(index));
    let mut hash = 0;
    for (index, value) in input.iter().enumerate() {
        window = (window << 8 | byte(index + 4)) & 0xff_ffff_ffff;
        for bit in 0..8 {
            if value & (0x80 >> bit) != 0 {
                hash ^= (window >> (8 - bit)) as u32;
            }
        }
    }
    hash
}

/// The hash under one key, with what each half of a byte contributes worked out beforehand: the hash is
/// linear over GF(2), so an input's is the exclusive or of its halves'. 64 bytes for each half.
#[derive(Clone, PartialEq, Eq)]
pub struct Table(Vec<[u32; 16]>);

impl std::fmt::Debug for Table {
    /// The key can be read from the contributions, so they do not show.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("bytes", &(self.0.len() / 2))
            .finish_non_exhaustive()
    }
}

impl Table {
    /// For inputs of at most so many bytes; what is longer is hashed as far as that.
    #[must_use]
    pub fn new(key: &[u8], bytes: usize) -> Self {
        let mut halves = Vec::with_capacity(2 * bytes);
        for place in 0..bytes {
            let mut input = vec![0; place + 1];
            for shift in [4, 0] {
                halves.push(std::array::from_fn(|value| {
                    if let Some(last) = input.last_mut() {
                        *last = (value as u8) << shift;
                    }
                    hash(key, &input)
                }));
            }
        }
        Self(halves)
    }

    /// The hash.
    #[inline]
    #[must_use]
    pub fn hash(&self, input: &[u8]) -> u32 {
        self.part(0, input)
    }

    /// Contribution of bytes that stand in the input from byte `at` on.
    #[inline]
    #[must_use]
    pub fn part(&self, at: usize, bytes: &[u8]) -> u32 {
        let halves = self.0.get(2 * at..).unwrap_or_default().chunks_exact(2);
        halves.zip(bytes).fold(0, |hash, (pair, byte)| match pair {
            [high, low] => hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 15)],
            _ => hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    /// Source and destination with their ports, the hash of the addresses, the hash with ports.
    type Vector = (&'static str, u16, &'static str, u16, u32, u32);

    /// "Verifying the RSS Hash Calculation", Windows driver documentation; also 82599 datasheet 7.1.2.8.3.
    const SUITE: [Vector; 8] = [
        (
            "66.9.149.187",
            2794,
            "161.142.100.80",
            1766,
            0x323e_8fc2,
            0x51cc_c178,
        ),
        (
            "199.92.111.2",
            14230,
            "65.69.140.83",
            4739,
            0xd718_262a,
            0xc626_b0ea,
        ),
        (
            "24.19.198.95",
            12898,
            "12.22.207.184",
            38024,
            0xd2d0_a5de,
            0x5c2b_394a,
        ),
        (
            "38.27.205.30",
            48228,
            "209.142.163.6",
            2217,
            0x8298_9176,
            0xafc7_327f,
        ),
        (
            "153.39.163.191",
            44251,
            "202.188.127.2",
            1303,
            0x5d18_09c5,
            0x10e8_28a2,
        ),
        (
            "3ffe:2501:200:1fff::7",
            2794,
            "3ffe:2501:200:3::1",
            1766,
            0x2cc1_8cd5,
            0x4020_7d3d,
        ),
        (
            "3ffe:501:8::260:97ff:fe40:efab",
            14230,
            "ff02::1",
            4739,
            0x0f0c_461c,
            0xdde5_1bbf,
        ),
        (
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            "fe80::200:f8ff:fe21:67cf",
            38024,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    #[test]
    fn the_verification_suite_of_the_specification() {
        for (source, sport, destination, dport, addresses, all) in SUITE {
            let mut input = Vec::new();
            for address in [source, destination] {
                match address.parse().unwrap() {
                    IpAddr::V4(a) => input.extend_from_slice(&a.octets()),
                    IpAddr::V6(a) => input.extend_from_slice(&a.octets()),
                }
            }
            assert_eq!(hash(&MICROSOFT_KEY, &input), addresses, "{source}");
            input.extend_from_slice(&sport.to_be_bytes());
            input.extend_from_slice(&dport.to_be_bytes());
            assert_eq!(hash(&MICROSOFT_KEY, &input), all, "{source}");
        }
    }

    /// The definition, bit by bit.
    fn by_definition(key: &[u8], input: &[u8]) -> u32 {
        let bit =
            |bytes: &[u8], i: usize| bytes.get(i / 8).is_some_and(|b| b & (0x80 >> (i % 8)) != 0);
        let mut hash = 0_u32;
        for i in (0..input.len() * 8).filter(|i| bit(input, *i)) {
            for b in 0..32 {
                hash ^= u32::from(bit(key, i + b)) << (31 - b);
            }
        }
        hash
    }

    proptest::proptest! {
        #[test]
        fn equals_the_definition(
            key in proptest::collection::vec(0_u8.., 0..60),
            input in proptest::collection::vec(0_u8.., 0..60),
        ) {
            proptest::prop_assert_eq!(hash(&key, &input), by_definition(&key, &input));
            proptest::prop_assert_eq!(Table::new(&key, 60).hash(&input), hash(&key, &input));
            let table = Table::new(&key, 60);
            let (head, tail) = input.split_at(input.len() / 3);
            let parts = table.hash(head) ^ table.part(head.len(), tail);
            proptest::prop_assert_eq!(parts, hash(&key, &input));
            let first = &input[..input.len().min(12)];
            proptest::prop_assert_eq!(Table::new(&key, 12).hash(&input), hash(&key, first));
        }
    }
}
