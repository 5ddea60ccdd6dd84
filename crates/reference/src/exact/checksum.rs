//! `csum_diff`: the Internet checksum (RFC 1071) of some bytes, less that of others.

/// One's complement sum in 32 bits; bytes that lack to a whole word are zeros.
fn sum(bytes: &[u8], seed: u32) -> u32 {
    bytes.chunks(4).fold(seed, |sum, chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        add(sum, u32::from_le_bytes(word))
    })
}

fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    // At most one carry comes back: the sum is then less than both.
    sum + u32::from(carry)
}

/// The kernel's result (net/core/filter.c bpf_csum_diff): folded to 16 bits, not complemented. Taking
/// away is adding the complement, at the place where the kernel does.
pub(super) fn difference(from: &[u8], to: &[u8], seed: u32) -> u64 {
    let sum = match (from, to) {
        ([], []) => seed,
        ([], to) => sum(to, seed),
        (from, []) => !sum(from, !seed),
        (from, to) => add(sum(to, seed), !sum(from, 0)),
    };
    let folded = (sum & 0xffff) + (sum >> 16);
    u64::from((folded & 0xffff) + (folded >> 16))
}
