//! Identity of a recording: size and digest of its file, by which it is known again.
//!
//! The digest is FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923). It finds recordings that were
//! replaced, written anew or cut, not those that somebody forges.

use std::io::{BufRead, Read};

use iolab_model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// FNV-1a: offset basis and prime.
const FNV: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x0100_0000_01b3);

/// Size and digest of the file of a recorded stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedIdentity {
    /// Bytes of the file.
    pub file_bytes: Bytes,
    /// FNV-1a of the file's bytes, 64 bits as 16 hexadecimal digits.
    pub digest: String,
}

impl RecordedIdentity {
    /// Identity of a whole file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn of(from: impl BufRead) -> std::io::Result<Self> {
        let mut summed = Summed::new(from);
        loop {
            let length = summed.fill_buf()?.len();
            if length == 0 {
                return Ok(summed.identity());
            }
            summed.consume(length);
        }
    }
}

impl core::fmt::Display for RecordedIdentity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} bytes, digest {}", self.file_bytes.0, self.digest)
    }
}

/// A file whose bytes are counted and summed up as they are read.
#[derive(Debug)]
pub(super) struct Summed<R> {
    from: R,
    bytes: u64,
    digest: u64,
}

impl<R> Summed<R> {
    pub(super) const fn new(from: R) -> Self {
        Self { from, bytes: 0, digest: FNV.0 }
    }

    /// Identity of what was read so far.
    pub(super) fn identity(&self) -> RecordedIdentity {
        let digest = format!("{:016x}", self.digest);
        RecordedIdentity { file_bytes: Bytes(self.bytes), digest }
    }
}

impl<R: BufRead> Read for Summed<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let found = self.fill_buf()?;
        let length = found.len().min(into.len());
        into[..length].copy_from_slice(&found[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Summed<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.from.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        // The bytes are at hand: nothing is read here.
        let found = self.from.fill_buf().unwrap_or_default();
        for byte in &found[..length.min(found.len())] {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(FNV.1);
        }
        self.bytes += length as u64;
        self.from.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_size_and_digest_however_it_is_read() {
        // RFC 9923, test vector of FNV-1a, 64 bits, of "foobar".
        let found = RecordedIdentity::of(&b"foobar"[..]).unwrap();
        assert_eq!((found.file_bytes, &*found.digest), (Bytes(6), "85944171f73967e8"));
        let mut slowly = Summed::new(&b"foobar"[..]);
        let mut byte = [0; 1];
        while slowly.read(&mut byte).unwrap() > 0 {}
        assert_eq!(slowly.identity(), found);
        assert_eq!(found.to_string(), "6 bytes, digest 85944171f73967e8");
    }
}
