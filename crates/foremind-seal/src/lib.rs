//! XChaCha20-Poly1305 (RFC 8439 with the nonce of draft-irtf-cfrg-xchacha-03), the one cipher of all that foremind seals.
//!
//! A crate of its own, because the cipher's generic code is compiled where it is first used, with that crate's optimisation: beside code
//! that is compiled for size it took twice the time.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use core::fmt;
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 24;
/// Bytes that sealing adds.
pub const TAG_BYTES: usize = 16;

/// The cipher under one key, which is zeroed when it is dropped.
pub struct Cipher(XChaCha20Poly1305);

impl Cipher {
    /// Under a key. The caller zeroes its own copy.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        // Zeroed on drop by the crate's feature `zeroize`.
        Self(XChaCha20Poly1305::new(key.into()))
    }

    /// Ciphertext and tag, [`TAG_BYTES`] longer than `plain`. A nonce must never be used twice under one key. `None` only if the cipher
    /// refuses, which it does beyond 256 GB.
    #[must_use]
    pub fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        plain: &[u8],
    ) -> Option<Vec<u8>> {
        let payload = Payload {
            msg: plain,
            aad: associated,
        };
        self.0.encrypt(&XNonce::from(*nonce), payload).ok()
    }

    /// What was sealed with this key, nonce and associated data; `None` if it was not.
    #[must_use]
    pub fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        sealed: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let payload = Payload {
            msg: sealed,
            aad: associated,
        };
        let plain = self.0.decrypt(&XNonce::from(*nonce), payload);
        plain.ok().map(Zeroizing::new)
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_nonce_and_associated_data_only() {
        let cipher = Cipher::new(&[1; KEY_BYTES]);
        let nonce = [2; NONCE_BYTES];
        let sealed = cipher
            .seal(&nonce, b"name", b"a statement")
            .unwrap_or_default();
        assert_eq!(sealed.len(), 11 + TAG_BYTES);
        let opened = |cipher: &Cipher, nonce, name: &[u8], sealed: &[u8]| {
            cipher.open(nonce, name, sealed).map(|plain| plain.to_vec())
        };
        assert_eq!(
            opened(&cipher, &nonce, b"name", &sealed).as_deref(),
            Some(&b"a statement"[..])
        );
        assert_eq!(opened(&cipher, &nonce, b"named", &sealed), None);
        assert_eq!(opened(&cipher, &[3; NONCE_BYTES], b"name", &sealed), None);
        assert_eq!(
            opened(&Cipher::new(&[4; KEY_BYTES]), &nonce, b"name", &sealed),
            None
        );
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert_eq!(
                opened(&cipher, &nonce, b"name", &altered),
                None,
                "byte {at}"
            );
        }
    }

    #[test]
    fn the_cipher_is_that_of_the_draft() {
        // draft-irtf-cfrg-xchacha-03, A.3.1: the first bytes of ciphertext, and the tag.
        let key: [u8; 32] = core::array::from_fn(|at| 0x80 + at as u8);
        let nonce: [u8; 24] = core::array::from_fn(|at| 0x40 + at as u8);
        let associated = [
            0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
        ];
        let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.";
        let sealed = Cipher::new(&key)
            .seal(&nonce, &associated, plain)
            .unwrap_or_default();
        assert_eq!(
            sealed[..8],
            [0xbd, 0x6d, 0x17, 0x9d, 0x3e, 0x83, 0xd4, 0x3b]
        );
        assert_eq!(
            sealed[plain.len()..],
            [
                0xc0, 0x87, 0x59, 0x24, 0xc1, 0xc7, 0x98, 0x79, 0x47, 0xde, 0xaf, 0xd8, 0x78, 0x0a,
                0xcf, 0x49
            ]
        );
    }
}
