//! `bpf_snprintf`, after kernel/bpf/helpers.c and lib/vsprintf.c, by way of strings.

use super::exact::{EINVAL, error};
use super::{APART, Machine, Violation, violation};

/// The text of one conversion, or none if there is no such.
fn convert(flags: &str, width: usize, wide: bool, conversion: char, value: u64) -> Option<String> {
    let (mut sign, mut zero) = ("", flags.contains('0'));
    let digits = match conversion {
        'd' | 'i' => {
            let number = if wide {
                value as i64
            } else {
                i64::from(value as i32)
            };
            sign = match number {
                ..0 => "-",
                _ if flags.contains('+') => "+",
                _ if flags.contains(' ') => " ",
                _ => "",
            };
            number.unsigned_abs().to_string()
        }
        'u' | 'x' | 'X' => {
            let number = if wide { value } else { u64::from(value as u32) };
            match conversion {
                'u' => number.to_string(),
                'x' => format!("{number:x}"),
                _ => format!("{number:X}"),
            }
        }
        'c' if !wide => {
            zero = false;
            char::from(value as u8).to_string()
        }
        _ => return None,
    };
    let used = sign.chars().count() + digits.chars().count();
    let pad = width.saturating_sub(used);
    Some(match (flags.contains('-'), zero) {
        (true, _) => format!("{sign}{digits}{}", " ".repeat(pad)),
        (false, true) => format!("{sign}{}{digits}", "0".repeat(pad)),
        (false, false) => format!("{}{sign}{digits}", " ".repeat(pad)),
    })
}

/// The whole text, one character a byte, or none for a format that is not taken.
fn render(format: &[u8], values: &[u64]) -> Option<String> {
    let legal = |b: &u8| matches!(b, 9..=13 | 0x20..=0x7e);
    if !format.iter().all(legal) {
        return None;
    }
    let mut text = String::new();
    let mut rest = std::str::from_utf8(format).ok()?;
    let mut values = values.iter();
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let after = rest.trim_start_matches(['0', '+', '-', ' ']);
        let flags = &rest[..rest.len() - after.len()];
        let width = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (width, after) = after.split_at(width);
        let width = if width.is_empty() {
            0
        } else {
            width.parse().unwrap_or(usize::MAX)
        };
        let plain = after.strip_prefix("ll").or_else(|| after.strip_prefix('l'));
        let (wide, after) = (plain.is_some(), plain.unwrap_or(after));
        let conversion = after.chars().next()?;
        let value = *values.next()?;
        text.push_str(&convert(
            flags,
            width.min(0x7f_ffff),
            wide,
            conversion,
            value,
        )?);
        rest = &after[1..];
    }
    text.push_str(rest);
    Some(text)
}

/// The 64-bit words that these bytes are.
fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |c: &[u8]| c.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    bytes.chunks(8).map(word).collect()
}

/// Whether some conversion takes its value for an address.
fn reads_memory(format: &[u8]) -> bool {
    let text: String = format.iter().map(|b| char::from(*b)).collect();
    let plain = text.replace("%%", "");
    let conversions = plain.split('%').skip(1);
    conversions
        .map(|c| c.trim_start_matches(|c: char| "0123456789+- ".contains(c)))
        .any(|c| c.starts_with(['s', 'p']))
}

impl Machine<'_> {
    /// The result of printing a line, which nobody sees: its length. Where values are not at hand, or memory is
    /// read, it is the format's.
    pub(super) fn line(
        &mut self,
        at: u64,
        size: u64,
        values: Option<(u64, u64)>,
    ) -> Result<u64, Violation> {
        let format = self.bytes_at(at, size as u32)?;
        let (from, bytes) = values.unwrap_or((0, 24));
        if bytes % 8 != 0 || bytes > 96 {
            return Ok(error(EINVAL));
        }
        let numbers = match values {
            Some(_) => self.bytes_at(from, bytes as u32)?,
            None => vec![0; bytes as usize],
        };
        let Some(end) = format.iter().position(|b| *b == 0) else {
            return Ok(error(EINVAL));
        };
        let format = &format[..end];
        if reads_memory(format) {
            return Ok(end as u64);
        }
        let conversions = String::from_utf8_lossy(format)
            .replace("%%", "")
            .contains('%');
        Ok(match render(format, &words(&numbers)) {
            None => error(EINVAL),
            Some(_) if values.is_none() && conversions => end as u64,
            Some(text) => text.chars().count() as u64,
        })
    }

    pub(super) fn print(&mut self, a: [u64; 5]) -> Result<u64, Violation> {
        let (at, size, bytes) = (a[0], a[1] as usize, a[4]);
        if self.memory.get(&(at / APART)).is_some_and(|m| m.stack) {
            self.put(at, &vec![0; size])?;
        }
        if bytes % 8 != 0 || bytes > 96 {
            return Ok(error(EINVAL));
        }
        let values = self.bytes_at(a[3], bytes as u32)?;
        let values = words(&values);
        let format = self.text(a[2])?;
        if reads_memory(&format) {
            return violation("a format that reads memory");
        }
        let Some(text) = render(&format, &values) else {
            return Ok(error(EINVAL));
        };
        let text: Vec<u8> = text.chars().map(|c| c as u8).collect();
        if size > 0 {
            let written = text.len().min(size - 1);
            self.put(at, &text[..written])?;
            self.put(at + written as u64, &[0])?;
        }
        Ok(text.len() as u64 + 1)
    }
}
