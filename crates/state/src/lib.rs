//! Saved state of a run: the content of its state objects in pieces, and the file that holds all of it.
//!
//! A piece is what a module's `save` hands out and its `load` takes (`struct mr_saved` of `fastpath/abi.h`). The bytes of
//! a file are untrusted: a reader takes no more memory than the file has bytes, and refuses whatever no writer of this
//! version writes. [`Front`] is what stands before the elements, without them. Whether an object can hold the pieces is for the
//! module to say.

mod bytes;
mod content;
mod file;
#[cfg(test)]
mod tests;

pub use bytes::Malformed;
pub use content::{Content, Form, Piece, Pieces, What};
pub use file::{Element, Front, Identity, Object, State, VERSION, Wrong};

/// The first 64 bits of the SHA-256 of some bytes, in hexadecimal digits: enough to tell programs apart.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    use sha2::{Digest, Sha256};

    let mut out = String::new();
    for byte in Sha256::digest(bytes).iter().take(8) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}
