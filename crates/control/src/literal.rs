//! Keys and values as people write them (docs/maps.md), and the bytes that they are.

use std::net::{IpAddr, Ipv6Addr};

/// The bytes of a key or value of `size` bytes: one number, or parts that together are so long.
///
/// # Errors
/// What is wrong with the text, in words.
pub fn bytes(text: &str, size: usize) -> Result<Vec<u8>, String> {
    let mut words = text.split_whitespace();
    if let (Some(word), None) = (words.next(), words.next())
        && let Some(number) = number(word)
    {
        return host_order(number, size).ok_or_else(|| match size {
            1 | 2 | 4 | 8 => format!("{word} does not fit {size} bytes"),
            _ => format!(
                "{word} could be of any width, and {size} bytes are wanted; say which, as in u32:{word}"
            ),
        });
    }
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        // Only what was given can make it longer, and that is bounded by the file.
        part(word, size, &mut bytes)?;
        if bytes.len() > size {
            return Err(format!("`{text}` has more than {size} bytes"));
        }
    }
    if bytes.len() < size {
        let got = bytes.len();
        return Err(format!("`{text}` has {got} bytes, {size} are wanted"));
    }
    Ok(bytes)
}

/// A decimal or hexadecimal number.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits),
        None => decimal(word),
    }
}

fn hexadecimal(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| plain)
}

fn decimal(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// A number in the byte order of the machine that runs the program, little-endian.
fn host_order(number: u64, size: usize) -> Option<Vec<u8>> {
    if !matches!(size, 1 | 2 | 4 | 8) {
        return None;
    }
    let mut low = number.to_le_bytes().to_vec();
    let high = low.split_off(size);
    high.iter().all(|b| *b == 0).then_some(low)
}

/// Adds the bytes of one part; none of them is more than `most` long.
fn part(word: &str, most: usize, bytes: &mut Vec<u8>) -> Result<(), String> {
    if let Ok(address) = word.parse::<IpAddr>() {
        match address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
        return Ok(());
    }
    if let Some(address) = mac(word) {
        bytes.extend(address);
        return Ok(());
    }
    let unknown = || {
        format!(
            "`{word}` is no part of a key or value; write a number with its type (u8: u16: u32: \
             u64: be16: be32: be64:), an IPv4, IPv6 or MAC address, address:A, hex:BYTES or zeros:N"
        )
    };
    let (kind, rest) = word.split_once(':').ok_or_else(unknown)?;
    let (width, network) = match kind {
        "u8" => (1, false),
        "u16" => (2, false),
        "u32" => (4, false),
        "u64" => (8, false),
        "be16" => (2, true),
        "be32" => (4, true),
        "be64" => (8, true),
        "hex" => {
            bytes.extend(hex(rest).ok_or_else(|| format!("`{rest}` is not whole bytes in hex"))?);
            return Ok(());
        }
        "zeros" => {
            let count = decimal(rest).and_then(|n| usize::try_from(n).ok());
            let count = count.filter(|n| *n <= most);
            let count =
                count.ok_or_else(|| format!("`{word}`: at most {most} bytes are wanted"))?;
            bytes.resize(bytes.len() + count, 0);
            return Ok(());
        }
        // `struct address` of include/millrace/ipv6.h: IPv4 as ::ffff:a.b.c.d.
        "address" => {
            let address = match rest.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => address.to_ipv6_mapped(),
                Ok(IpAddr::V6(address)) => address,
                Err(_) => return Err(format!("`{rest}` is not an IPv4 or IPv6 address")),
            };
            bytes.extend(Ipv6Addr::octets(&address));
            return Ok(());
        }
        _ => return Err(unknown()),
    };
    let fits = number(rest).and_then(|n| host_order(n, width));
    let mut number = fits.ok_or_else(|| format!("`{rest}` is not a number of {width} bytes"))?;
    if network {
        number.reverse();
    }
    bytes.extend(number);
    Ok(())
}

/// Six bytes, as in 02:00:00:00:00:01.
fn mac(word: &str) -> Option<Vec<u8>> {
    let parts: Vec<&str> = word.split(':').collect();
    if parts.len() != 6 || parts.iter().any(|p| p.len() != 2) {
        return None;
    }
    parts
        .iter()
        .map(|p| hexadecimal(p).and_then(|n| u8::try_from(n).ok()))
        .collect()
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            hexadecimal(pair).and_then(|n| u8::try_from(n).ok())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_is_as_wide_as_what_it_is_for() {
        assert_eq!(bytes("1", 4).unwrap(), [1, 0, 0, 0]);
        assert_eq!(bytes("0x1234", 2).unwrap(), [0x34, 0x12]);
        assert_eq!(bytes("255", 1).unwrap(), [255]);
        assert!(bytes("256", 1).unwrap_err().contains("does not fit"));
        assert!(bytes("1", 6).unwrap_err().contains("say which"));
        assert!(bytes("-1", 4).is_err());
        assert!(bytes("+1", 4).is_err());
        assert!(bytes("0x+1", 4).is_err());
    }

    #[test]
    fn parts_stand_one_after_another() {
        assert_eq!(bytes("02:00:00:00:00:0a", 6).unwrap(), [2, 0, 0, 0, 0, 10]);
        assert_eq!(bytes("10.0.0.1", 4).unwrap(), [10, 0, 0, 1]);
        assert_eq!(
            bytes("10.0.0.1 be16:80 u8:6 zeros:1", 8).unwrap(),
            [10, 0, 0, 1, 0, 80, 6, 0]
        );
        assert_eq!(bytes("u16:258 hex:Ff00", 4).unwrap(), [2, 1, 255, 0]);
        let mapped = bytes("address:10.0.0.1", 16).unwrap();
        assert_eq!(mapped, bytes("::ffff:10.0.0.1", 16).unwrap());
        assert_eq!(mapped[10..], [255, 255, 10, 0, 0, 1]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, size, what) in [
            ("", 4, "has 0 bytes"),
            ("10.0.0.1", 6, "has 4 bytes, 6 are wanted"),
            ("10.0.0.1 u8:1", 4, "more than 4 bytes"),
            ("hex:123", 2, "whole bytes"),
            ("hex:é", 2, "whole bytes"),
            ("zeros:99999999999", 4, "at most 4"),
            ("u8:300", 1, "not a number of 1 bytes"),
            ("port:80", 2, "no part"),
            ("02:00:00:00:00:0g", 6, "no part"),
            ("two words", 2, "no part"),
        ] {
            let error = bytes(text, size).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
