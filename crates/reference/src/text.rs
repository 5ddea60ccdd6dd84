//! Helpers about texts, for comparison with other implementations, after kernel/bpf/helpers.c.

use super::{Machine, Violation};

const EINVAL: i64 = -22;
const ERANGE: i64 = -34;

/// Sign, value and bytes taken of `text`, or the error.
fn integer(text: &[u8], flags: u64) -> Result<(bool, u64, usize), i64> {
    if ![0, 8, 10, 16].contains(&flags) {
        return Err(EINVAL);
    }
    let space = |b: &&u8| matches!(b, 9..=13 | b' ' | 0xa0);
    let mut from = text.iter().take_while(space).count();
    let negative = text.get(from) == Some(&b'-');
    from += usize::from(negative);
    let digits: Vec<char> = text[from..]
        .iter()
        .take(63)
        .map(|b| char::from(*b))
        .collect();
    let hexadecimal = matches!(digits.get(..2), Some(['0', 'x' | 'X']));
    let base = match flags {
        0 if hexadecimal && digits.get(2).is_some_and(char::is_ascii_hexdigit) => 16,
        0 if digits.first() == Some(&'0') => 8,
        0 => 10,
        base => base as u32,
    };
    let prefix = if base == 16 && hexadecimal { 2 } else { 0 };
    let values: Vec<u32> = digits[prefix..]
        .iter()
        .map_while(|c| c.to_digit(base))
        .collect();
    if values.is_empty() {
        return Err(EINVAL);
    }
    let value = values.iter().try_fold(0_u64, |sum, digit| {
        sum.checked_mul(base.into())?.checked_add((*digit).into())
    });
    Ok((negative, value.ok_or(ERANGE)?, from + prefix + values.len()))
}

impl Machine<'_> {
    /// `strtol`, or `strtoul`.
    pub(super) fn string_to_number(&mut self, a: [u64; 5], signed: bool) -> Result<u64, Violation> {
        let text = self.bytes_at(a[0], a[1] as u32)?;
        let read = integer(&text, a[2]).and_then(|(negative, value, taken)| {
            let number = if negative {
                -i128::from(value)
            } else {
                i128::from(value)
            };
            match (signed, i64::try_from(number)) {
                (true, Ok(number)) => Ok((number as u64, taken)),
                (true, Err(_)) => Err(ERANGE),
                (false, _) if negative => Err(EINVAL),
                (false, _) => Ok((value, taken)),
            }
        });
        let (number, result) = match read {
            Ok((number, taken)) => (number, taken as u64),
            Err(error) => (0, error as u64),
        };
        self.put(a[3], &number.to_le_bytes())?;
        Ok(result)
    }

    pub(super) fn compare_strings(&mut self, a: [u64; 5]) -> Result<u64, Violation> {
        let until_zero = |bytes: Vec<u8>| -> Vec<u8> {
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            bytes[..end].to_vec()
        };
        let most = a[1] as usize;
        let left = until_zero(self.bytes_at(a[0], a[1] as u32)?);
        let right: Vec<u8> = self.text(a[2])?.into_iter().take(most).collect();
        Ok(left.cmp(&right) as i64 as u64)
    }
}
