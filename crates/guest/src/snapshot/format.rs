//! The format of snapshots, in files and between processes: sections with checksums.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | `MRGUEST` and a zero, once, at the start |
//! | 4, 4 | version, once; zero |
//! | 4, 4 | a section's kind, a letter each; zero |
//! | 8 | its length, bytes |
//! | 32 | SHA-256 of the sixteen bytes before and of what follows |
//! | … | the section |
//!
//! Numbers are little endian. `HEAD` comes first and once, `MAPS` before the pages that lie in what it maps; a
//! snapshot that is taken while its guest runs has several of both, each newer than the one before. `REST`
//! comes last but for `ENDS`, which is empty. HEAD, MAPS and REST are JSON documents; PAGE is an address of 8 bytes
//! and then whole pages.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::SnapshotError;
use crate::slot::PAGE;

/// The version that this program writes and reads: of these sections, of the documents in them, and of what follows them
/// on a connection ([`crate::migrate`]). Whoever changes one of these counts on.
pub const VERSION: u32 = 2;
const MAGIC: &[u8; 8] = b"MRGUEST\0";
/// The most pages in one section.
pub const RUN: usize = 256;
/// The longest section, bytes: one of pages, or a document about [`crate::space`]'s most areas.
const LONGEST: u64 = 4 << 20;

/// Kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`super::image::Head`]
    Head,
    /// [`super::image::Maps`]
    Maps,
    /// pages
    Pages,
    /// [`super::image::Rest`]
    Rest,
    /// nothing more follows
    End,
}

const KINDS: [(Kind, [u8; 4]); 5] = [
    (Kind::Head, *b"HEAD"),
    (Kind::Maps, *b"MAPS"),
    (Kind::Pages, *b"PAGE"),
    (Kind::Rest, *b"REST"),
    (Kind::End, *b"ENDS"),
];

/// Writes what a snapshot begins with.
///
/// # Errors
/// The output's.
pub fn begin(out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 4]);
    out.write_all(&bytes)
}

/// Writes a section.
///
/// # Errors
/// The output's.
pub fn put(out: &mut dyn Write, kind: Kind, body: &[&[u8]]) -> io::Result<()> {
    let name = KINDS.iter().find(|(k, _)| *k == kind).map(|(_, n)| *n);
    let length: usize = body.iter().map(|part| part.len()).sum();
    let mut head = name.unwrap_or_default().to_vec();
    head.extend([0; 4]);
    head.extend((length as u64).to_le_bytes());
    let mut sum = Sha256::new();
    sum.update(&head);
    for part in body {
        sum.update(part);
    }
    head.extend(sum.finalize());
    out.write_all(&head)?;
    for part in body {
        out.write_all(part)?;
    }
    Ok(())
}

/// Writes a section that is a document.
///
/// # Errors
/// The output's, and that a path is no UTF-8.
pub fn put_document(
    out: &mut dyn Write,
    kind: Kind,
    what: &impl Serialize,
) -> Result<(), SnapshotError> {
    let text = serde_json::to_vec(what).map_err(|e| SnapshotError::Guest(e.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(SnapshotError::Guest(
            "there is more to say of it than a section holds".into(),
        ));
    }
    Ok(put(out, kind, &[&text])?)
}

/// Reads what a snapshot begins with.
///
/// # Errors
/// It is none, or of another version.
pub fn begins(input: &mut dyn Read) -> Result<(), SnapshotError> {
    let mut bytes = [0; 16];
    filled(input, &mut bytes)?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, v0, v1, v2, v3, zero @ ..] = bytes;
    if [m0, m1, m2, m3, m4, m5, m6, m7] != *MAGIC {
        return Err(SnapshotError::broken("no snapshot of a guest"));
    }
    let version = u32::from_le_bytes([v0, v1, v2, v3]);
    if version != VERSION {
        return Err(SnapshotError::Release {
            theirs: version,
            ours: VERSION,
        });
    }
    if zero != [0; 4] {
        return Err(SnapshotError::broken("no snapshot of a guest"));
    }
    Ok(())
}

/// Reads a section into `body`, which holds it alone after this.
///
/// # Errors
/// The input ends, or the section is none, too long, or damaged.
pub fn take(input: &mut dyn Read, body: &mut Vec<u8>) -> Result<Kind, SnapshotError> {
    let mut head = [0; 48];
    filled(input, &mut head)?;
    let (plain, sum) = head.split_at(16);
    let name = plain.get(..8).unwrap_or_default();
    let kind = KINDS
        .iter()
        .find(|(_, n)| name == [n.as_slice(), &[0; 4]].concat())
        .map(|(k, _)| *k)
        .ok_or_else(|| SnapshotError::broken("a section of no known kind"))?;
    let length = plain.get(8..).and_then(|b| b.try_into().ok());
    let length = length.map_or(u64::MAX, u64::from_le_bytes);
    if length > LONGEST {
        return Err(SnapshotError::broken(format!(
            "a section of {length} bytes, more than any has"
        )));
    }
    body.clear();
    let got = input.take(length).read_to_end(body)?;
    if got as u64 != length {
        return Err(SnapshotError::broken("cut short within a section"));
    }
    let mut own = Sha256::new();
    own.update(plain);
    own.update(&*body);
    if own.finalize().as_slice() != sum {
        return Err(SnapshotError::broken(
            "damaged: a section is not what its checksum says",
        ));
    }
    Ok(kind)
}

/// A document out of a section.
///
/// # Errors
/// It is not what it should be.
pub fn document<T: DeserializeOwned>(body: &[u8]) -> Result<T, SnapshotError> {
    serde_json::from_slice(body).map_err(|e| SnapshotError::broken(format!("a section: {e}")))
}

/// The address and the bytes of a section of pages.
///
/// # Errors
/// They are no whole pages.
pub fn pages(body: &[u8]) -> Result<(usize, &[u8]), SnapshotError> {
    let parts = body.split_at_checked(8);
    let parts = parts.filter(|(_, bytes)| {
        let pages = bytes.len() / PAGE;
        bytes.len().is_multiple_of(PAGE) && (1..=RUN).contains(&pages)
    });
    let (address, bytes) = parts.ok_or_else(|| SnapshotError::broken("pages that are none"))?;
    let address = address.try_into().map_or(0, usize::from_le_bytes);
    Ok((address, bytes))
}

fn filled(input: &mut dyn Read, bytes: &mut [u8]) -> Result<(), SnapshotError> {
    input.read_exact(bytes).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::broken("cut short"),
        _ => e.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        begin(&mut bytes).unwrap();
        put(&mut bytes, Kind::Pages, &[&8_u64.to_le_bytes(), &[7; PAGE]]).unwrap();
        put(&mut bytes, Kind::End, &[]).unwrap();
        bytes
    }

    fn read(mut bytes: &[u8]) -> Result<Vec<Kind>, SnapshotError> {
        begins(&mut bytes)?;
        let mut body = Vec::new();
        let mut kinds = Vec::new();
        while kinds.last() != Some(&Kind::End) {
            kinds.push(take(&mut bytes, &mut body)?);
        }
        Ok(kinds)
    }

    #[test]
    fn what_was_written_is_read_and_each_changed_or_missing_byte_is_told() {
        let bytes = written();
        assert_eq!(read(&bytes).unwrap(), [Kind::Pages, Kind::End]);
        for at in (0..bytes.len()).filter(|at| *at < 80 || at % 97 == 0 || bytes.len() - at < 60) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            assert!(read(&bad).is_err(), "byte {at}");
            assert!(read(&bytes[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn a_section_that_claims_to_be_long_takes_no_memory() {
        let mut bytes = written();
        bytes[24..32].copy_from_slice(&(LONGEST + 1).to_le_bytes());
        assert!(
            read(&bytes)
                .unwrap_err()
                .to_string()
                .contains("more than any")
        );
        assert!(pages(&[0; 8]).is_err() && pages(&[0; 100]).is_err() && pages(&[]).is_err());
    }
}
