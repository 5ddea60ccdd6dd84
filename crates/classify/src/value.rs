//! Intervals of a field as rules write them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::key::Field;
use crate::rules::Interval;

/// `*`, `N`, `N-M`, `0xN`, an address, `ADDRESS/BITS`, `ADDRESS-ADDRESS`. Addresses of IPv4 are numbers of 4 bytes, of IPv6
/// of 16.
///
/// # Errors
/// What is wrong with it, and what to write.
pub fn interval(text: &str, field: &Field) -> Result<Interval, (String, String)> {
    let max = field.max();
    let interval = if text == "*" || text == "any" {
        Interval {
            first: 0,
            last: max,
        }
    } else if let Some((address, bits)) = text.split_once('/') {
        prefix(number(address, field)?, bits, field)?
    } else if let Some((first, last)) = text.split_once('-') {
        Interval {
            first: number(first, field)?,
            last: number(last, field)?,
        }
    } else {
        let number = number(text, field)?;
        Interval {
            first: number,
            last: number,
        }
    };
    bounded(interval, field)
}

/// An interval that the field can have.
///
/// # Errors
/// As [`interval`].
pub fn bounded(interval: Interval, field: &Field) -> Result<Interval, (String, String)> {
    let Interval { first, last } = interval;
    if first > last {
        return Err((
            format!("`{}` from {first} to {last} is empty", field.name),
            "write the lower end first".into(),
        ));
    }
    if last > field.max() {
        return Err((
            format!("`{}` is at most {}, not {last}", field.name, field.max()),
            format!("it is a field of {} bits", 8 * field.bytes),
        ));
    }
    Ok(interval)
}

fn prefix(address: u128, bits: &str, field: &Field) -> Result<Interval, (String, String)> {
    let width = 8 * field.bytes;
    let Some(bits) = bits.parse::<u32>().ok().filter(|b| *b <= width) else {
        return Err((
            format!("`{}`: a prefix of `{bits}` bits", field.name),
            format!("write a length from 0 to {width}"),
        ));
    };
    // Bits behind the prefix do not count, as in routing tables and in ClassBench's sets.
    let below = field.max().checked_shr(bits).unwrap_or(0);
    Ok(Interval {
        first: address & !below,
        last: address | below,
    })
}

/// A number, or an address of the field's size.
///
/// # Errors
/// As [`interval`].
pub fn number(text: &str, field: &Field) -> Result<u128, (String, String)> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_hexdigit());
    let found = match hex {
        Some(hex) if digits(hex) => u128::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        None => match (text.parse::<Ipv4Addr>(), text.parse::<Ipv6Addr>()) {
            (Ok(four), _) if field.bytes == 4 => Some(u128::from(u32::from(four))),
            (_, Ok(six)) if field.bytes == 16 => Some(u128::from(six)),
            (Ok(_), _) | (_, Ok(_)) => {
                return Err((
                    format!(
                        "`{}` has {} bytes, `{text}` is an address of another size",
                        field.name, field.bytes
                    ),
                    "IPv4 addresses are fields of 4 bytes, IPv6 addresses of 16".into(),
                ));
            }
            _ => None,
        },
    };
    found.ok_or_else(|| {
        (
            format!("`{text}` is no value of `{}`", field.name),
            "write a number, N-M, ADDRESS/BITS or *".into(),
        )
    })
}
