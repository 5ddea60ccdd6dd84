//! Arguments of an element, by keyword or position, and the values that they stand for.

use std::collections::HashMap;

use crate::language::args;
use crate::names::Names;

/// Arguments of one element.
pub struct Args<'a> {
    words: HashMap<&'static str, String>,
    rest: std::collections::VecDeque<String>,
    /// names of addresses and ports
    pub names: &'a Names,
}

/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000_000_000;

impl<'a> Args<'a> {
    /// Splits a configuration string.
    #[must_use]
    pub fn new(config: &str, names: &'a Names) -> Self {
        Self {
            words: HashMap::new(),
            rest: args::split(config).into(),
            names,
        }
    }

    /// The words that may stand before arguments, blanks between them; called first. An argument whose word is not asked for afterwards is ignored.
    pub fn keywords(&mut self, keywords: &'static str) -> &mut Self {
        let mut rest = std::collections::VecDeque::new();
        for argument in std::mem::take(&mut self.rest) {
            let (word, value) = args::first_word(&argument);
            match keywords.split_whitespace().find(|k| *k == word) {
                Some(keyword) if !value.is_empty() => {
                    self.words.insert(keyword, value.to_owned());
                }
                _ => rest.push_back(argument),
            }
        }
        self.rest = rest;
        self
    }

    /// The next argument without a keyword.
    pub fn positional(&mut self) -> Option<String> {
        self.rest.pop_front()
    }

    /// All further arguments without a keyword.
    pub fn all(&mut self) -> Vec<String> {
        std::mem::take(&mut self.rest).into()
    }

    /// The argument with a keyword.
    pub fn keyword(&mut self, keyword: &str) -> Option<String> {
        self.words.remove(keyword)
    }

    /// The argument with a keyword, or the next without one.
    pub fn take(&mut self, keyword: &str) -> Option<String> {
        self.keyword(keyword).or_else(|| self.positional())
    }

    /// An argument that has to be there, by keyword or position; `all` are the arguments that the element needs.
    ///
    /// # Errors
    /// It is not there.
    pub fn needed(&mut self, keyword: &str, all: &str) -> Result<String, String> {
        self.take(keyword)
            .ok_or_else(|| format!("too few arguments: {all}"))
    }

    /// A text as an IPv4 address.
    ///
    /// # Errors
    /// It is none.
    pub fn ip(&self, text: &str) -> Result<[u8; 4], String> {
        ip(text, self.names).ok_or_else(|| format!("bad address '{text}'"))
    }

    /// A text as an Ethernet address.
    ///
    /// # Errors
    /// It is none.
    pub fn ethernet(&self, text: &str) -> Result<[u8; 6], String> {
        ethernet(text, self.names).ok_or_else(|| format!("bad address '{text}'"))
    }

    /// An argument as some value; `none` where it is not given.
    ///
    /// # Errors
    /// It is no such value.
    pub fn value<T>(
        &self,
        what: &str,
        argument: Option<String>,
        none: T,
        read: impl FnOnce(&str, &Names) -> Option<T>,
    ) -> Result<T, String> {
        match argument {
            None => Ok(none),
            Some(text) => read(&text, self.names)
                .ok_or_else(|| format!("{what}: `{text}` is not a value of the right type")),
        }
    }

    /// A number, by keyword or position.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&mut self, keyword: &str, none: i64) -> Result<i64, String> {
        let argument = self.take(keyword);
        self.value(keyword, argument, none, |t, _| integer(t))
    }

    /// A number by keyword alone.
    ///
    /// # Errors
    /// It is none.
    pub fn number_word(&mut self, keyword: &str, none: i64) -> Result<i64, String> {
        let argument = self.keyword(keyword);
        self.value(keyword, argument, none, |t, _| integer(t))
    }

    /// Yes or no, by keyword alone.
    ///
    /// # Errors
    /// It is neither.
    pub fn flag(&mut self, keyword: &str, none: bool) -> Result<bool, String> {
        let argument = self.keyword(keyword);
        self.value(keyword, argument, none, |t, _| boolean(t))
    }

    /// Yes or no, by keyword or position.
    ///
    /// # Errors
    /// It is neither.
    pub fn flag_or_next(&mut self, keyword: &str, none: bool) -> Result<bool, String> {
        let argument = self.take(keyword);
        self.value(keyword, argument, none, |t, _| boolean(t))
    }

    /// An annotation's place, by keyword or position: its first byte, and its bytes if it has a name.
    ///
    /// # Errors
    /// There is none such.
    pub fn annotation(
        &mut self,
        keyword: &str,
        none: usize,
        bytes: usize,
    ) -> Result<usize, String> {
        let argument = self.take(keyword);
        self.value(keyword, argument, none, |t, _| annotation(t, bytes))
    }

    /// An annotation of some bytes by keyword alone; none where it is not given.
    ///
    /// # Errors
    /// There is none such.
    pub fn annotation_word(
        &mut self,
        keyword: &str,
        bytes: usize,
    ) -> Result<Option<usize>, String> {
        let argument = self.keyword(keyword);
        self.value(keyword, argument, None, |t, _| {
            annotation(t, bytes).map(Some)
        })
    }

    /// A duration in nanoseconds by keyword alone.
    ///
    /// # Errors
    /// It is none.
    pub fn duration_word(&mut self, keyword: &str, none: i64) -> Result<i64, String> {
        let argument = self.keyword(keyword);
        self.value(keyword, argument, none, |t, _| duration(t))
    }

    /// After all are taken.
    ///
    /// # Errors
    /// Some are left.
    pub fn done(&mut self) -> Result<(), String> {
        match self.rest.front() {
            None => Ok(()),
            Some(argument) => Err(format!("too many arguments: `{argument}`")),
        }
    }
}

/// An annotation's first byte.
#[must_use]
pub fn annotation(text: &str, bytes: usize) -> Option<usize> {
    let named = crate::packet::NAMES.iter().find(|n| n.0 == text.trim());
    let at = match named {
        Some((_, at, _)) => *at,
        None => usize::try_from(integer(text)?).ok()?,
    };
    (at + bytes <= crate::packet::ANNOTATIONS).then_some(at)
}

/// A whole number: decimal, `0x…`, octal with a leading 0.
#[must_use]
pub fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16).ok()? as i64
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()?
    } else if digits.starts_with(|c: char| c.is_ascii_digit()) {
        digits.parse::<u64>().ok()? as i64
    } else {
        return None;
    };
    Some(number.wrapping_mul(sign))
}

/// `true`, `false` and their other names.
#[must_use]
pub fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "yes" | "1" | "t" | "y" => Some(true),
        "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// A decimal number in units of `1/scale`, without rounding errors.
#[must_use]
pub fn decimal(text: &str, scale: i64) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut number = match whole {
        "" => 0,
        whole if whole.bytes().all(|b| b.is_ascii_digit()) => {
            whole.parse::<i64>().ok()?.checked_mul(scale)?
        }
        _ => return None,
    };
    let mut unit = scale;
    for digit in part.bytes() {
        unit /= 10;
        number = number.checked_add(i64::from(digit - b'0') * unit)?;
    }
    number.checked_mul(sign)
}

/// A duration in nanoseconds: seconds, or with a unit.
#[must_use]
pub fn duration(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let scale = match unit.trim() {
        "" | "s" | "sec" | "second" | "seconds" => SECOND,
        "ms" | "msec" => SECOND / 1000,
        "us" | "usec" => SECOND / 1_000_000,
        "ns" | "nsec" => 1,
        "m" | "min" | "minute" | "minutes" => SECOND.checked_mul(60)?,
        "h" | "hr" | "hour" | "hours" => SECOND.checked_mul(3600)?,
        "d" | "day" | "days" => SECOND.checked_mul(86_400)?,
        _ => return None,
    };
    decimal(number, scale)
}

/// Bytes a second: `100kb/s`, `200Bps`, `10Mbps`, or a bare number of bytes.
#[must_use]
pub fn bandwidth(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit
        .trim()
        .strip_suffix("ps")
        .or(unit.trim().strip_suffix("/s"));
    let unit = unit.unwrap_or("B");
    let (prefix, bits) = match unit.strip_suffix('B') {
        Some(prefix) => (prefix, 1),
        None => (unit.strip_suffix("bit").or(unit.strip_suffix('b'))?, 8),
    };
    let scale = match prefix {
        "" => 1,
        "k" | "K" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return None,
    };
    decimal(number, scale).map(|n| n / bits)
}

/// An IPv4 address.
#[must_use]
pub fn ip(text: &str, names: &Names) -> Option<[u8; 4]> {
    let text = text.trim();
    match dotted(text) {
        Some((address, 4)) => Some(address),
        _ => names.ip(text),
    }
}

/// Four bytes with dots between them, and how many were written.
fn dotted(text: &str) -> Option<([u8; 4], usize)> {
    let (mut address, mut count) = ([0; 4], 0);
    for part in text.split('.') {
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *address.get_mut(count)? = part.parse().ok()?;
        count += 1;
    }
    Some((address, count))
}

/// Address and mask: `10.0.0.0/8`, `204.152/16`, `10.0.0.0/255.0.0.0`; an address alone has all bits. A name is an address before it is
/// a network.
#[must_use]
pub fn prefix(text: &str, names: &Names) -> Option<([u8; 4], [u8; 4])> {
    let text = text.trim();
    let Some((address, mask)) = text.split_once('/') else {
        let address = ip(text, names).map(|a| (a, [255; 4]));
        return address.or_else(|| names.prefix(text));
    };
    let address = address.trim();
    let address = dotted(address).map(|d| d.0).or_else(|| names.ip(address))?;
    let mask = match mask.trim().parse::<u32>() {
        Ok(bits @ 0..=32) => mask_of(bits),
        Ok(_) => return None,
        Err(_) => match dotted(mask.trim())? {
            (mask, 4) => mask,
            _ => return None,
        },
    };
    Some((address, mask))
}

/// A mask of some leading ones.
#[must_use]
pub fn mask_of(bits: u32) -> [u8; 4] {
    let ones = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
    ones.to_be_bytes()
}

/// An Ethernet address.
#[must_use]
pub fn ethernet(text: &str, names: &Names) -> Option<[u8; 6]> {
    plain_ethernet(text.trim()).or_else(|| names.ethernet(text.trim()))
}

/// An Ethernet address that is written out.
#[must_use]
pub fn plain_ethernet(text: &str) -> Option<[u8; 6]> {
    let (mut address, mut count) = ([0; 6], 0);
    for part in text.split([':', '-']) {
        if part.is_empty() || part.len() > 2 {
            return None;
        }
        *address.get_mut(count)? = u8::from_str_radix(part, 16).ok()?;
        count += 1;
    }
    (count == 6).then_some(address)
}

/// An address as text.
#[must_use]
pub fn dots(address: [u8; 4]) -> String {
    std::net::Ipv4Addr::from(address).to_string()
}
