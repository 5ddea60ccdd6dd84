//! `aead_seal` and `aead_open`, by another implementation of RFC 8439 than emitted code has.

use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce, Tag};

use super::super::{Machine, Violation};
use super::{EINVAL, error};

const EBADMSG: i64 = 74;
/// Bytes of the tag.
const TAG: usize = 16;

/// Key, nonce and additional data (include/millrace/aead.h).
struct With {
    cipher: ChaCha20Poly1305,
    nonce: Nonce,
    additional: [u8; 8],
}

impl With {
    fn of(bytes: &[u8]) -> Option<Self> {
        let (key, rest) = bytes.split_at_checked(32)?;
        let (nonce, additional) = rest.split_at_checked(12)?;
        Some(Self {
            cipher: ChaCha20Poly1305::new_from_slice(key).ok()?,
            nonce: Nonce::clone_from_slice(nonce),
            additional: additional.try_into().ok()?,
        })
    }
}

impl Machine<'_> {
    /// What is sealed, in the frame, and the bytes with room for the tag; none where the frame ends before.
    fn sealed(&self, a: [u64; 5]) -> Option<(usize, Vec<u8>)> {
        let from = usize::try_from(a[1]).ok()?;
        let bytes = usize::try_from(a[2]).ok()?;
        let end = from.checked_add(bytes)?.checked_add(TAG)?;
        Some((from, self.packet_bytes().get(from..end)?.to_vec()))
    }

    fn store(&mut self, from: usize, bytes: &[u8]) -> Result<(), Violation> {
        let at = self.frame() + from as u64;
        self.note_store(at, bytes.to_vec());
        self.put(at, bytes)
    }

    pub(super) fn seal(&mut self, a: [u64; 5]) -> Result<u64, Violation> {
        let with = With::of(&self.bytes_at(a[3], 52)?);
        let (Some(with), Some((from, mut bytes))) = (with, self.sealed(a)) else {
            return Ok(error(EINVAL));
        };
        let plain = bytes.len() - TAG;
        let (data, tag) = bytes.split_at_mut(plain);
        let made = with
            .cipher
            .encrypt_in_place_detached(&with.nonce, &with.additional, data);
        let Ok(made) = made else {
            return Ok(error(EINVAL));
        };
        tag.copy_from_slice(&made);
        self.store(from, &bytes)?;
        Ok(0)
    }

    pub(super) fn open(&mut self, a: [u64; 5]) -> Result<u64, Violation> {
        let with = With::of(&self.bytes_at(a[3], 52)?);
        let (Some(with), Some((from, mut bytes))) = (with, self.sealed(a)) else {
            return Ok(error(EINVAL));
        };
        let tag = Tag::clone_from_slice(&bytes.split_off(bytes.len() - TAG));
        let opened =
            with.cipher
                .decrypt_in_place_detached(&with.nonce, &with.additional, &mut bytes, &tag);
        if opened.is_err() {
            bytes.fill(0);
        }
        self.store(from, &bytes)?;
        Ok(opened.map_or(error(EBADMSG), |()| 0))
    }
}
