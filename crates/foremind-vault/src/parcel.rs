//! A stream of bytes sealed by a passphrase, in frames, for an export: docs/FORMAT.md, "Export".

use core::fmt;

use foremind_seal::{Cipher, NONCE_BYTES, TAG_BYTES};
use zeroize::Zeroizing;

use crate::entropy::Draws;
use crate::{Passphrase, PassphraseCost, VaultError};

const MAGIC: [u8; 4] = *b"FMEX";
const FORMAT: u16 = 1;
const FORMAT_AT: usize = MAGIC.len();
const RESERVED_AT: usize = FORMAT_AT + 2;
const MEMORY_KIB_AT: usize = RESERVED_AT + 2;
const PASSES_AT: usize = MEMORY_KIB_AT + 4;
const LANES_AT: usize = PASSES_AT + 4;
const SALT_AT: usize = LANES_AT + 4;
const SALT_BYTES: usize = 16;
const HEADER_BYTES: usize = SALT_AT + SALT_BYTES;
/// Of a frame: whether it is the last, and how long its ciphertext and tag are.
const FRAME_HEAD_BYTES: usize = 1 + 4;
const CONTEXT: &str = "foremind export 1";

/// Most bytes of plaintext in one frame.
pub const PARCEL_FRAME_BYTES: usize = 256 * 1024;

/// Why a sealed export cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParcelError {
    /// It does not begin as one, or was altered or put together anew.
    Altered,
    /// It ends before its end.
    Cut,
    /// Written by a newer foremind.
    NewerFormat(u16),
    /// The passphrase is another one.
    WrongKey,
}

/// Seals.
pub struct ParcelWriter {
    cipher: Cipher,
    header: [u8; HEADER_BYTES],
    next: u64,
}

/// Unseals what comes in pieces of any size.
pub struct ParcelReader {
    passphrase: Passphrase,
    opened: Option<(Cipher, [u8; HEADER_BYTES])>,
    held: Vec<u8>,
    next: u64,
    ended: bool,
}

impl ParcelWriter {
    /// Derives the key; [`ParcelWriter::header`] stands at the beginning of the file.
    ///
    /// # Errors
    /// [`VaultError::Passphrase`] for costs out of their bounds.
    pub fn new(
        passphrase: &Passphrase,
        cost: PassphraseCost,
        draws: &mut Draws,
    ) -> Result<Self, VaultError> {
        let salt: [u8; SALT_BYTES] = draws.bytes();
        let mut header = [0; HEADER_BYTES];
        header[..FORMAT_AT].copy_from_slice(&MAGIC);
        header[FORMAT_AT..RESERVED_AT].copy_from_slice(&FORMAT.to_le_bytes());
        header[MEMORY_KIB_AT..PASSES_AT].copy_from_slice(&cost.memory_kib.to_le_bytes());
        header[PASSES_AT..LANES_AT].copy_from_slice(&cost.passes.to_le_bytes());
        header[LANES_AT..SALT_AT].copy_from_slice(&cost.lanes.to_le_bytes());
        header[SALT_AT..].copy_from_slice(&salt);
        Ok(Self {
            cipher: cipher(passphrase, &header, cost)?,
            header,
            next: 0,
        })
    }

    /// The first bytes of the file.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The next frame, of at most [`PARCEL_FRAME_BYTES`].
    ///
    /// # Errors
    /// [`VaultError::Unstorable`] when `plain` is longer.
    pub fn frame(&mut self, plain: &[u8], last: bool) -> Result<Vec<u8>, VaultError> {
        let unstorable = || VaultError::Unstorable {
            what: "a frame of an export",
        };
        if plain.len() > PARCEL_FRAME_BYTES {
            return Err(unstorable());
        }
        let nonce = nonce(self.next, last);
        let sealed = self.cipher.seal(&nonce, &self.header, plain);
        let sealed = sealed.ok_or_else(unstorable)?;
        self.next += 1;
        let length = u32::try_from(sealed.len()).map_err(|_| unstorable())?;
        Ok([&[u8::from(last)], &length.to_le_bytes()[..], &sealed].concat())
    }
}

impl ParcelReader {
    /// Whether a file that begins so is a sealed export; `None` when there are too few bytes to tell.
    #[must_use]
    pub fn recognises(beginning: &[u8]) -> Option<bool> {
        let length = beginning.len().min(MAGIC.len());
        if beginning[..length] != MAGIC[..length] {
            return Some(false);
        }
        (length == MAGIC.len()).then_some(true)
    }

    /// Nothing read yet.
    #[must_use]
    pub fn new(passphrase: Passphrase) -> Self {
        Self {
            passphrase,
            opened: None,
            held: Vec::new(),
            next: 0,
            ended: false,
        }
    }

    /// Takes a piece of the file and gives what it completes. Never holds more than a frame beside the piece.
    ///
    /// # Errors
    /// [`ParcelError`].
    pub fn feed(&mut self, piece: &[u8]) -> Result<Zeroizing<Vec<u8>>, ParcelError> {
        self.held.extend_from_slice(piece);
        let mut plain = Zeroizing::new(Vec::new());
        let mut at = 0;
        loop {
            let rest = &self.held[at..];
            let Some((cipher, header)) = &self.opened else {
                let Some(header) = rest.first_chunk::<HEADER_BYTES>() else {
                    break;
                };
                let opened = open(&self.passphrase, header)?;
                self.opened = Some((opened, *header));
                at += HEADER_BYTES;
                continue;
            };
            let Some((head, sealed)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() else {
                break;
            };
            let mut length = [0; 4];
            length.copy_from_slice(&head[1..]);
            let length = u32::from_le_bytes(length) as usize;
            if self.ended || head[0] > 1 || length > PARCEL_FRAME_BYTES + TAG_BYTES {
                return Err(ParcelError::Altered);
            }
            let Some(sealed) = sealed.get(..length) else {
                break;
            };
            let last = head[0] == 1;
            let opened = cipher.open(&nonce(self.next, last), header, sealed);
            let opened = opened.ok_or({
                // The header cannot be told from the key; only what follows a good frame is surely damage.
                if self.next == 0 {
                    ParcelError::WrongKey
                } else {
                    ParcelError::Altered
                }
            })?;
            plain.extend_from_slice(&opened);
            self.next += 1;
            self.ended = last;
            at += FRAME_HEAD_BYTES + length;
        }
        if self.ended && at < self.held.len() {
            return Err(ParcelError::Altered);
        }
        self.held.drain(..at);
        Ok(plain)
    }

    /// Says that the file ends here.
    ///
    /// # Errors
    /// [`ParcelError::Cut`].
    pub fn finish(&self) -> Result<(), ParcelError> {
        if self.ended && self.held.is_empty() {
            Ok(())
        } else {
            Err(ParcelError::Cut)
        }
    }
}

fn open(passphrase: &Passphrase, header: &[u8; HEADER_BYTES]) -> Result<Cipher, ParcelError> {
    let number = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&header[at..at + 4]);
        u32::from_le_bytes(bytes)
    };
    let format = u16::from_le_bytes([header[FORMAT_AT], header[FORMAT_AT + 1]]);
    if header[..FORMAT_AT] != MAGIC || format == 0 {
        return Err(ParcelError::Altered);
    }
    if format > FORMAT {
        return Err(ParcelError::NewerFormat(format));
    }
    if header[RESERVED_AT..MEMORY_KIB_AT] != [0, 0] {
        return Err(ParcelError::Altered);
    }
    let cost = PassphraseCost {
        memory_kib: number(MEMORY_KIB_AT),
        passes: number(PASSES_AT),
        lanes: number(LANES_AT),
    };
    cipher(passphrase, header, cost).map_err(|_| ParcelError::Altered)
}

fn cipher(
    passphrase: &Passphrase,
    header: &[u8; HEADER_BYTES],
    cost: PassphraseCost,
) -> Result<Cipher, VaultError> {
    let secret = passphrase.derive(&header[SALT_AT..], cost)?;
    let key = Zeroizing::new(blake3::derive_key(CONTEXT, &*secret));
    Ok(Cipher::new(&key))
}

/// Every export has a key of its own, so that counting gives no nonce twice. The last frame has another nonce than
/// it would have in the middle: a cut is noticed.
fn nonce(number: u64, last: bool) -> [u8; NONCE_BYTES] {
    let mut bytes = [0; NONCE_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8] = u8::from(last);
    bytes
}

impl fmt::Debug for ParcelWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParcelWriter")
    }
}

impl fmt::Debug for ParcelReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParcelReader")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on")]
mod tests {
    use super::*;

    fn phrase(text: &str) -> Passphrase {
        Passphrase::new(text.as_bytes().to_vec()).unwrap()
    }

    fn sealed(frames: &[&[u8]]) -> Vec<u8> {
        let cost = PassphraseCost {
            memory_kib: 64,
            passes: 1,
            lanes: 1,
        };
        let mut draws = Draws::new(&[4; 32], 1, 1);
        let mut writer = ParcelWriter::new(&phrase("open sesame"), cost, &mut draws).unwrap();
        let mut file = writer.header().to_vec();
        for (at, frame) in frames.iter().enumerate() {
            file.extend(writer.frame(frame, at + 1 == frames.len()).unwrap());
        }
        file
    }

    fn read(file: &[u8], piece: usize, words: &str) -> Result<Vec<u8>, ParcelError> {
        let mut reader = ParcelReader::new(phrase(words));
        let mut plain = Vec::new();
        for piece in file.chunks(piece) {
            plain.extend_from_slice(&reader.feed(piece)?);
        }
        reader.finish().map(|()| plain)
    }

    #[test]
    fn it_comes_back_in_pieces_of_any_size() {
        let file = sealed(&[b"one, ", b"two", b""]);
        for piece in [1, 3, 36, 1000] {
            assert_eq!(read(&file, piece, "open sesame").unwrap(), b"one, two");
        }
        assert_eq!(read(&file, 9, "open barley"), Err(ParcelError::WrongKey));
    }

    #[test]
    fn every_flip_and_every_cut_is_noticed() {
        let file = sealed(&[b"one, ", b"two"]);
        for at in 0..file.len() {
            let mut altered = file.clone();
            altered[at] ^= 1 << (at % 8);
            // A flip in the costs can ask for more work than a test should do, within the bounds.
            if !(MEMORY_KIB_AT..SALT_AT).contains(&at) {
                assert!(read(&altered, 64, "open sesame").is_err(), "byte {at}");
            }
            assert!(read(&file[..at], 64, "open sesame").is_err(), "cut at {at}");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert_eq!(read(&longer, 64, "open sesame"), Err(ParcelError::Altered));
        let mut swapped = sealed(&[b"same", b"size", b"last"]);
        let frame = FRAME_HEAD_BYTES + 4 + TAG_BYTES;
        let (first, second) = swapped[HEADER_BYTES..].split_at_mut(frame);
        first.swap_with_slice(&mut second[..frame]);
        assert!(read(&swapped, 64, "open sesame").is_err());
    }

    #[test]
    fn a_length_of_gigabytes_asks_for_no_memory() {
        let mut file = sealed(&[b"one"]);
        file[HEADER_BYTES + 1..HEADER_BYTES + 5].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(read(&file, 64, "open sesame"), Err(ParcelError::Altered));
        let mut file = sealed(&[b"one"]);
        file[MEMORY_KIB_AT..PASSES_AT].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(read(&file, 64, "open sesame"), Err(ParcelError::Altered));
        let mut file = sealed(&[b"one"]);
        file[FORMAT_AT] = 2;
        assert_eq!(
            read(&file, 64, "open sesame"),
            Err(ParcelError::NewerFormat(2))
        );
    }
}
