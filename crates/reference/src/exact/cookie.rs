//! SYN cookies (RFC 4987, section 3.6) as fastpath/helpers/syncookie.h defines them, at time 0 and with the
//! seed 0: code 0 of a connection, plus the client's sequence number, plus in the lower 24 bits code 1 and
//! the index of a segment size. In the upper 8 stands the minute, which is 0.

use super::{EINVAL, Machine, Violation, draw, error};

const EACCES: i64 = 13;

/// The bits of a cookie that do not hold the minute.
const LOW: u32 = 0xff_ffff;

/// A TCP header without options.
const TCP: usize = 20;

/// SipHash-2-4 of whole words (Aumasson, Bernstein: SipHash, INDOCRYPT 2012, section 2).
fn siphash(key: [u64; 2], words: &[u64]) -> u64 {
    let constants = *b"somepseudorandomlygeneratedbytes";
    let mut v = [0; 4];
    for (i, (v, bytes)) in v.iter_mut().zip(constants.chunks(8)).enumerate() {
        let constant = (bytes.iter()).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        *v = key[i % 2] ^ constant;
    }
    let rounds = |v: &mut [u64; 4], count: u32| {
        for _ in 0..count {
            let [a, b, c, d] = *v;
            let (a, c) = (a.wrapping_add(b), c.wrapping_add(d));
            let (b, d) = (b.rotate_left(13) ^ a, d.rotate_left(16) ^ c);
            let (a, c) = (a.rotate_left(32).wrapping_add(d), c.wrapping_add(b));
            let (b, d) = (b.rotate_left(17) ^ c, d.rotate_left(21) ^ a);
            *v = [a, b, c.rotate_left(32), d];
        }
    };
    // The last word holds the message's length in bytes, at its top.
    let end = (8 * words.len() as u64) << 56;
    for word in words.iter().chain(&[end]) {
        v[3] ^= word;
        rounds(&mut v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    rounds(&mut v, 4);
    v.iter().fold(0, |sum, v| sum ^ v)
}

fn draw(n: u64) -> u64 {
    draw::of(0, n)
}

/// A code of the connection between these addresses and ports.
fn code(which: u64, addresses: &[u8], ports: [u8; 4], minute: u32) -> u32 {
    let ports = u64::from(u32::from_le_bytes(ports));
    let mut words = vec![ports << 32 | u64::from(minute)];
    for chunk in addresses.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(word));
    }
    siphash([draw(2 * which), draw(2 * which + 1)], &words) as u32
}

/// The largest segment that the options name (RFC 9293, section 3.2); options that are malformed end the
/// list.
fn segment(options: &[u8]) -> Option<u16> {
    match *options {
        [] | [0, ..] => None,
        [1, ref rest @ ..] => segment(rest),
        [kind, length, ..] => {
            let option = options.get(..usize::from(length)).filter(|_| length >= 2)?;
            let rest = segment(&options[usize::from(length)..]);
            match *option {
                // The last one counts; 0 is none.
                [_, _, high, low] if kind == 2 && (high, low) != (0, 0) => {
                    rest.or(Some(u16::from_be_bytes([high, low])))
                }
                _ => rest,
            }
        }
        [_] => None,
    }
}

fn field(tcp: &[u8], at: usize) -> u32 {
    let bytes = tcp.get(at..at + 4).and_then(|b| b.try_into().ok());
    u32::from_be_bytes(bytes.unwrap_or_default())
}

/// The addresses in an IP header, and the ports in a TCP header.
fn connection<'a>(ip: &'a [u8], tcp: &[u8]) -> (&'a [u8], [u8; 4]) {
    let from = if ip.len() == 40 { 8 } else { 12 };
    (&ip[from..], field(tcp, 0).to_be_bytes())
}

fn make(ip: &[u8], tcp: &[u8]) -> u64 {
    let sizes: [u16; 4] = match ip.len() {
        40 => [1220, 1420, 1440, 8940],
        _ => [536, 1300, 1440, 1460],
    };
    if tcp.len() < TCP || tcp.len() != 4 * usize::from(tcp[12] >> 4) {
        return error(EINVAL);
    }
    let wanted = segment(&tcp[TCP..]).unwrap_or(sizes[0]);
    let index = sizes.iter().rposition(|s| wanted >= *s).unwrap_or(0);
    let (addresses, ports) = connection(ip, tcp);
    let low = code(1, addresses, ports, 0).wrapping_add(index as u32) & LOW;
    let cookie = code(0, addresses, ports, 0)
        .wrapping_add(field(tcp, 4))
        .wrapping_add(low);
    u64::from(cookie) | u64::from(sizes[index]) << 32
}

fn check(ip: &[u8], tcp: &[u8]) -> u64 {
    let (addresses, ports) = connection(ip, tcp);
    // The ACK is one beyond the cookie and its sequence number one beyond the SYN's.
    let cookie = field(tcp, 8).wrapping_sub(field(tcp, 4));
    let found = cookie.wrapping_sub(code(0, addresses, ports, 0));
    // Good are this minute, 0, and the one before, 255 in 8 bits.
    let minute = match found >> 24 {
        0 => 0,
        255 => u32::MAX,
        _ => return error(EACCES),
    };
    let index = found.wrapping_sub(code(1, addresses, ports, minute)) & LOW;
    if index < 4 { 0 } else { error(EACCES) }
}

impl Machine<'_> {
    /// `tcp_raw_gen_syncookie_…`, of an IP header of this many bytes.
    pub(super) fn make_cookie(&mut self, a: [u64; 5], ip: u32) -> Result<u64, Violation> {
        let (ip, tcp) = (self.bytes_at(a[0], ip)?, self.bytes_at(a[1], a[2] as u32)?);
        Ok(make(&ip, &tcp))
    }

    /// `tcp_raw_check_syncookie_…`, of an IP header of this many bytes.
    pub(super) fn check_cookie(&mut self, a: [u64; 5], ip: u32) -> Result<u64, Violation> {
        let (ip, tcp) = (self.bytes_at(a[0], ip)?, self.bytes_at(a[1], TCP as u32)?);
        Ok(check(&ip, &tcp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siphash_of_its_authors_vector() {
        // Key 00..0f; the 8 bytes 00..07 (the reference implementation's vectors, number 8).
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(siphash(key, &[key[0]]), 0x93f5_f579_9a93_2462);
    }

    #[test]
    fn segments() {
        assert_eq!(segment(&[1, 1, 2, 4, 5, 180]), Some(1460));
        assert_eq!(segment(&[2, 4, 5, 180, 2, 4, 1, 0]), Some(256));
        for none in [&[0, 2, 4, 5, 180][..], &[2, 4, 0, 0], &[8, 0, 2], &[2]] {
            assert_eq!(segment(none), None, "{none:?}");
        }
    }
}
