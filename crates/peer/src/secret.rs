//! The secret of a cluster, and what is derived from it.

use millrace_wire::geneve::{Forwarded, TAG};
use ring::{digest, hmac};

/// The secret that all nodes of a cluster share: 32 bytes.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// From its bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// From 64 hexadecimal digits; none where it is something else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Option<Vec<u8>> = text
            .chars()
            .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
            .collect();
        let digits = digits.filter(|d| d.len() == 64)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
        }
        Some(Self(bytes))
    }

    /// What the keys of the hash are drawn from, on every node alike.
    #[must_use]
    pub fn draw(&self) -> [u8; 32] {
        self.derived(b"millrace: keys of the hash")
    }

    /// What tells this cluster's packets from another's; 24 bits.
    #[must_use]
    pub fn network(&self) -> u32 {
        let [a, b, c, ..] = self.derived(b"millrace: network");
        u32::from_be_bytes([0, a, b, c])
    }

    /// What only a holder of the secret can say of these bytes.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.derived(b"millrace: hand-over"));
        let mut context = hmac::Context::with_key(&key);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        of_32(context.sign().as_ref())
    }

    /// Whether a tag is that of these bytes, in a time that does not depend on it.
    #[must_use]
    pub fn verifies(&self, parts: &[&[u8]], tag: &[u8; 32]) -> bool {
        let own = self.tag(parts);
        let differ = own.iter().zip(tag).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differ) == 0
    }

    /// What signs datagrams.
    #[must_use]
    pub(crate) fn signer(&self) -> Signer {
        let key = self.derived(b"millrace: datagrams");
        Signer(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    fn derived(&self, what: &[u8]) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        of_32(hmac::sign(&key, what).as_ref())
    }
}

/// Signs datagrams: HMAC-SHA256, of which as many bytes go as RFC 2104 (section 5) leaves at least.
pub(crate) struct Signer(hmac::Key);

impl Signer {
    /// What only a holder of the secret can say of these bytes.
    pub fn tag(&self, parts: [&[u8]; 2]) -> [u8; TAG] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.into_iter().for_each(|part| context.update(part));
        let tag = context.sign();
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// Whether a datagram is signed, looked at in a time that does not depend on its tag.
    pub fn verifies(&self, datagram: &[u8]) -> bool {
        let Some((parts, tag)) = Forwarded::signed(datagram) else {
            return false;
        };
        let own = self.tag(parts);
        let differ = own.iter().zip(tag).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differ) == 0
    }
}

/// SHA-256 of these parts, each behind its length.
#[must_use]
pub fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    of_32(context.finish().as_ref())
}

fn of_32(bytes: &[u8]) -> [u8; 32] {
    // SHA-256 and its HMAC have 32 bytes.
    bytes.first_chunk().copied().unwrap_or_default()
}
