//! Prefixes of a handler's `LPM` as people write them: `10.0.0.0/8`, `2001:db8::/32`, of other keys any form of a key with `/` and the bits
//! that count. An address alone is a whole one.
//!
//! In bytes the number of bits (`u32`, in the machine's order) stands before the address, as in a key of BPF's tables. IPv4 addresses in 16 bytes
//! are `::ffff:a.b.c.d`, and have 96 bits more than written.

use std::net::{Ipv4Addr, Ipv6Addr};

use millrace_object::types::Type;
use serde_json::Value;

use crate::value;

/// Bits before an IPv4 address in an IPv6 one.
const MAPPED: u32 = 96;

/// The bytes of a prefix, of a key of `bytes` bytes. Bits behind it are zero.
///
/// # Errors
/// No key, or more bits than that has.
pub fn read(text: &Value, bytes: usize, ty: Option<&Type>) -> Result<Vec<u8>, String> {
    let most = 8 * bytes as u32;
    let split = text.as_str().and_then(|text| text.rsplit_once('/'));
    let Some((address, bits)) = split else {
        let v4 = text.as_str().and_then(|text| mapped(text, bytes));
        return match v4 {
            Some(address) => Ok(joined(most, address)),
            None => Ok(joined(most, value::read(text, bytes, ty)?)),
        };
    };
    let plain = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    let bits = bits.parse::<u32>().ok().filter(|_| plain);
    let bits = bits.ok_or_else(|| "the length of a prefix is a number of bits".to_owned())?;
    let (address, before) = match mapped(address, bytes) {
        Some(address) => (address, MAPPED),
        None => (value::read(&Value::from(address.trim()), bytes, ty)?, 0),
    };
    match bits.checked_add(before) {
        Some(all) if all <= most => Ok(joined(all, address)),
        _ => Err(format!(
            "a prefix of {bits} bits, where {} are the most",
            most - before
        )),
    }
}

/// An IPv4 address as one of 16 bytes, where keys have as many.
fn mapped(text: &str, bytes: usize) -> Option<Vec<u8>> {
    let text = text.trim();
    let v4: Ipv4Addr = text.strip_prefix("address:").unwrap_or(text).parse().ok()?;
    (bytes == 16).then(|| v4.to_ipv6_mapped().octets().to_vec())
}

/// The other way round.
#[must_use]
pub fn show(key: &[u8]) -> Option<String> {
    let (bits, address) = key.split_first_chunk::<4>()?;
    let bits = u32::from_ne_bytes(*bits);
    if let Ok(v4) = <[u8; 4]>::try_from(address) {
        return Some(format!("{}/{bits}", Ipv4Addr::from(v4)));
    }
    let Ok(v6) = <[u8; 16]>::try_from(address) else {
        let hex = millrace_dataplane::runner::hex(address);
        return Some(format!("hex:{hex}/{bits}"));
    };
    let v6 = Ipv6Addr::from(v6);
    match (v6.to_ipv4_mapped(), bits.checked_sub(MAPPED)) {
        (Some(v4), Some(bits)) => Some(format!("{v4}/{bits}")),
        // Its text would be read as that of an IPv4 address.
        (Some(_), None) => Some(format!(
            "hex:{}/{bits}",
            millrace_dataplane::runner::hex(address)
        )),
        (None, _) => Some(format!("{v6}/{bits}")),
    }
}

/// Bits that do not count are zero, so that one prefix has one key.
fn joined(bits: u32, mut address: Vec<u8>) -> Vec<u8> {
    for (byte, first) in address.iter_mut().zip((0_u32..).step_by(8)) {
        let kept = bits.saturating_sub(first).min(8);
        *byte &= !(0xff_u16 >> kept) as u8;
    }
    [&bits.to_ne_bytes()[..], &address].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for (text, bytes, shown) in [
            ("10.1.2.3/8", 4, "10.0.0.0/8"),
            ("10.1.2.3", 4, "10.1.2.3/32"),
            ("0.0.0.0/0", 4, "0.0.0.0/0"),
            ("10.1.2.3/8", 16, "10.0.0.0/8"),
            ("10.1.2.3", 16, "10.1.2.3/32"),
            ("address:10.1.2.3/31", 16, "10.1.2.2/31"),
            ("2001:db8:ffff::/33", 16, "2001:db8:8000::/33"),
            ("::/0", 16, "::/0"),
            ("hex:ff01/9", 2, "hex:ff00/9"),
        ] {
            let key = read(&text.into(), bytes, None).unwrap();
            assert_eq!(show(&key).as_deref(), Some(shown), "{text}");
            assert_eq!(read(&shown.into(), bytes, None).unwrap(), key, "{text}");
        }
        for (text, bytes) in [
            ("10.0.0.0/33", 4),
            ("10.0.0.0/33", 16),
            ("10.0.0.0/", 4),
            ("10.0.0.0/+1", 4),
            ("::/129", 16),
            ("::/4294967295", 16),
        ] {
            assert!(read(&text.into(), bytes, None).is_err(), "{text}");
        }
    }
}
