//! SipHash-2-4 (Aumasson, Bernstein: SipHash: a fast short-input PRF, INDOCRYPT 2012), as in fastpath/sync/carrier.h.

/// The tag of `bytes` under `key`.
pub fn tag(key: &[u8; 16], bytes: &[u8]) -> u64 {
    let whole = u128::from_le_bytes(*key);
    let (k0, k1) = (whole as u64, (whole >> 64) as u64);
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut take = |word: u64| {
        v[3] ^= word;
        rounds(&mut v, 2);
        v[0] ^= word;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|w| take(u64::from_le_bytes(*w)));
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(l, b)| *l = *b);
    take(u64::from_le_bytes(last) | (bytes.len() as u64) << 56);
    v[2] ^= 0xff;
    rounds(&mut v, 4);
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn rounds(v: &mut [u64; 4], count: u32) {
    let [a, b, c, d] = v;
    for _ in 0..count {
        *a = a.wrapping_add(*b);
        *c = c.wrapping_add(*d);
        *b = b.rotate_left(13) ^ *a;
        *d = d.rotate_left(16) ^ *c;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*b);
        *a = a.wrapping_add(*d);
        *b = b.rotate_left(17) ^ *c;
        *d = d.rotate_left(21) ^ *a;
        *c = c.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    /// The value of the paper's appendix A.
    #[test]
    fn paper() {
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let input: [u8; 15] = std::array::from_fn(|i| i as u8);
        assert_eq!(super::tag(&key, &input), 0xa129_ca61_49be_45e5);
    }
}
