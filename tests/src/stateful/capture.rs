//! Captures in the classic form with nanoseconds (libpcap's 0xa1b23c4d), read and written by the tests' own code: what
//! `run` reads and writes is not checked by what `run` uses.

use std::path::Path;

const MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const HEADER: usize = 24;

/// Writes a capture of these packets: stamps in ns, frames.
///
/// # Errors
/// The file cannot be written.
pub fn write<'a>(
    path: &Path,
    packets: impl Iterator<Item = (u64, &'a [u8])>,
) -> Result<(), String> {
    let mut out = Vec::new();
    let word = |out: &mut Vec<u8>, n: u32| out.extend(n.to_le_bytes());
    word(&mut out, MAGIC);
    out.extend([2, 0, 4, 0]);
    for n in [0, 0, 0x4_0000, ETHERNET] {
        word(&mut out, n);
    }
    for (stamp, frame) in packets {
        word(&mut out, (stamp / 1_000_000_000) as u32);
        word(&mut out, (stamp % 1_000_000_000) as u32);
        word(&mut out, frame.len() as u32);
        word(&mut out, frame.len() as u32);
        out.extend(frame);
    }
    std::fs::write(path, out).map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads a capture: stamps in ns, frames.
///
/// # Errors
/// The file cannot be read, or is none.
pub fn read(path: &Path) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let word = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(four.try_into().ok()?))
    };
    if word(0) != Some(MAGIC) || word(20) != Some(ETHERNET) {
        return Err(format!(
            "{}: not a capture of Ethernet frames in nanoseconds: {:x?}",
            path.display(),
            bytes.get(..HEADER)
        ));
    }
    let (mut at, mut out) = (HEADER, Vec::new());
    while at < bytes.len() {
        let record = (|| {
            let stamp = u64::from(word(at)?) * 1_000_000_000 + u64::from(word(at + 4)?);
            let length = word(at + 8)? as usize;
            let frame = bytes.get(at + 16..at + 16 + length)?;
            Some((stamp, frame.to_vec()))
        })();
        let Some(record) = record else {
            return Err(format!("{}: ends within a packet", path.display()));
        };
        at += 16 + record.1.len();
        out.push(record);
    }
    Ok(out)
}
