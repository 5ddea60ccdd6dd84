//! Big-endian numbers at an offset.

use std::ops::Range;

/// The number of 16 bits at an offset; none where the bytes end before.
#[inline]
#[must_use]
pub fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*pair))
}

/// Writes a number of 16 bits at an offset; false, and nothing is written, where the bytes end before.
pub fn put(bytes: &mut [u8], at: usize, number: u16) -> bool {
    match bytes.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
        Some(place) => {
            *place = number.to_be_bytes();
            true
        }
        None => false,
    }
}

/// A field of a header that is known to be there.
#[inline]
pub(crate) fn field<const N: usize>(bytes: &[u8], at: Range<usize>) -> [u8; N] {
    let mut copy = [0; N];
    copy.copy_from_slice(&bytes[at]);
    copy
}

/// A number of 16 bits in a header that is known to be there.
#[inline]
pub(crate) fn u16_of(bytes: &[u8], at: Range<usize>) -> u16 {
    u16::from_be_bytes(field(bytes, at))
}

/// A number of 32 bits in a header that is known to be there.
#[inline]
pub(crate) fn u32_of(bytes: &[u8], at: Range<usize>) -> u32 {
    u32::from_be_bytes(field(bytes, at))
}

/// The header's bytes, if there are `length` of them.
pub(crate) fn whole<T: AsRef<[u8]>>(buffer: T, length: usize) -> Result<T, crate::Incomplete> {
    if buffer.as_ref().len() < length {
        return Err(crate::Incomplete);
    }
    Ok(buffer)
}
