//! Packets to run: those of a capture, and what could be sent in their place.

use std::path::Path;

use millrace_traffic::capture::Reader;
use rand::{Rng, RngExt};

/// Every frame of a capture, followed by a variant of it: bits flipped in its headers, tags put before them,
/// its end cut off; in half of the variants the IPv4 header's checksum is right again.
///
/// # Errors
/// When the capture cannot be read.
pub fn with_variants(capture: &Path, random: &mut impl Rng) -> Result<Vec<Vec<u8>>, String> {
    let mut frames = Vec::new();
    let mut reader = Reader::open(capture).map_err(|e| e.to_string())?;
    while let Some(record) = reader.next().map_err(|e| e.to_string())? {
        let mut frame = record.data.to_vec();
        frames.push(frame.clone());
        for _ in 0..random.random_range(0..=2) {
            let below = frame.len().min(80);
            if let Some(byte) = frame.get_mut(random.random_range(0..below.max(1))) {
                *byte ^= 1 << random.random_range(0..8);
            }
        }
        for _ in 0..random.random_range(0_u32..12).saturating_sub(9) {
            if frame.len() >= 14 {
                frame.splice(12..12, [0x81, 0, 0, random.random()]);
            }
        }
        if random.random() {
            fix_checksum(&mut frame);
        }
        if random.random_range(0..6) == 0 {
            frame.truncate(random.random_range(0..=frame.len().min(120)));
        }
        frames.push(frame);
    }
    Ok(frames)
}

/// Writes the checksum of an IPv4 header behind the tags, if there is one.
fn fix_checksum(frame: &mut [u8]) {
    let mut at = 14;
    while at <= 22 && frame.get(at - 2..at) == Some(&[0x81, 0]) {
        at += 4;
    }
    if frame.get(at - 2..at) != Some(&[8, 0]) {
        return;
    }
    let Some(header) = frame.get_mut(at..) else {
        return;
    };
    let bytes = usize::from(header.first().copied().unwrap_or(0) & 15) * 4;
    let Some(header) = header.get_mut(..bytes).filter(|_| bytes >= 20) else {
        return;
    };
    if let Some(checksum) = header.get_mut(10..12) {
        checksum.fill(0);
    }
    let sum: u32 = (header.chunks(2))
        .map(|w| w.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    if let Some(checksum) = header.get_mut(10..12) {
        checksum.copy_from_slice(&(!(folded as u16)).to_be_bytes());
    }
}
