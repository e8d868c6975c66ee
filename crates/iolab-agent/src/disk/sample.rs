//! A digest of parts of a device: whether anything was written there since iolab left it.
//!
//! Read in full: the first and the last 16 MiB, but for the mebibyte at each end, which are looked
//! at byte by byte anyway. Between them: 256 blocks of 4 KiB at places that follow from a number
//! drawn for each run, so that no layout misses them all. Such places tell, too, whether a device
//! with blank ends stores something between them. Left out: the rest; what somebody wrote only
//! there is not seen. XXH64 is no defence against an adversary; root is none.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use iolab_drive::verify::hash::xxh64;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::content::EDGE_BYTES;

const BLOCK_BYTES: u64 = 4096;
/// Near each end, where labels and the first data of almost everything lie.
const DENSE_BYTES: u64 = 16 << 20;
const SPREAD_BLOCKS: u64 = 256;
const CHUNK_BYTES: u64 = 1 << 20;

/// Digest of the sampled parts of a device, in hexadecimal digits; `seed` says which are sampled.
pub fn digest(device: &File, size_bytes: u64, seed: &str) -> io::Result<String> {
    // Another program may have written past the cache of this node.
    posix_fadvise(device, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    let mut digests = xxh64(seed.as_bytes()).to_le_bytes().to_vec();
    for (offset, length) in places(size_bytes, seed) {
        let mut bytes = vec![0; length as usize];
        device.read_exact_at(&mut bytes, offset)?;
        digests.extend(xxh64(&bytes).to_le_bytes());
    }
    Ok(format!("{:016x}", xxh64(&digests)))
}

/// Result of samples of a device between its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Parts that were read.
    pub samples: usize,
    /// Those with a byte that is not zero.
    pub not_blank: usize,
}

impl Survey {
    /// Reads samples at places that follow from `seed`.
    pub fn of(device: &File, size_bytes: u64, seed: &str) -> io::Result<Self> {
        let mut found = Self { samples: 0, not_blank: 0 };
        for (offset, length) in places(size_bytes, seed) {
            let mut bytes = vec![0; length as usize];
            device.read_exact_at(&mut bytes, offset)?;
            found.samples += 1;
            found.not_blank += usize::from(bytes.iter().any(|&byte| byte != 0));
        }
        Ok(found)
    }

    /// A warning if something is stored there; `marker_run` left its marker at the begin.
    pub fn warning(self, marker_run: Option<&str>) -> Option<String> {
        let Self { samples, not_blank } = self;
        let verb = if not_blank == 1 { "is" } else { "are" };
        let whose = match marker_run {
            Some(run) => format!("iolab's run {run} was here last, so that it may be of that run"),
            None => "its ends are blank, and iolab was not here: raw volumes of databases look \
                     like that"
                .to_owned(),
        };
        (not_blank > 0).then(|| {
            format!(
                "{not_blank} of {samples} samples {verb} not blank: something is stored here \
                 ({whose})"
            )
        })
    }
}

/// Offsets and lengths.
fn places(size_bytes: u64, seed: &str) -> Vec<(u64, u64)> {
    let (begin, end) = (EDGE_BYTES, size_bytes.saturating_sub(EDGE_BYTES));
    let dense = DENSE_BYTES - EDGE_BYTES;
    let (left, right) = ((begin + dense).min(end), end.saturating_sub(dense).max(begin));
    let mut found = Vec::new();
    for (start, stop) in [(begin, left), (right.max(left), end)] {
        let mut offset = start;
        while offset < stop {
            let length = CHUNK_BYTES.min(stop - offset);
            found.push((offset, length));
            offset += length;
        }
    }
    let blocks = right.saturating_sub(left) / BLOCK_BYTES;
    for index in 0..SPREAD_BLOCKS.min(blocks) {
        let drawn = xxh64(format!("{seed}/{index}").as_bytes()) % blocks;
        found.push((left + drawn * BLOCK_BYTES, BLOCK_BYTES));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 200 << 20;

    #[test]
    fn a_byte_at_a_sampled_place_changes_the_digest() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        let before = digest(&file, SIZE, "one").unwrap();
        assert_eq!(digest(&file, SIZE, "one").unwrap(), before);
        assert_ne!(digest(&file, SIZE, "two").unwrap(), before);
        let drawn = places(SIZE, "one").last().unwrap().0;
        for offset in [EDGE_BYTES, 5 << 20, DENSE_BYTES - 1, drawn, SIZE - EDGE_BYTES - 1] {
            file.write_all_at(b"x", offset).unwrap();
            assert_ne!(digest(&file, SIZE, "one").unwrap(), before, "{offset}");
            file.write_all_at(&[0], offset).unwrap();
            assert_eq!(digest(&file, SIZE, "one").unwrap(), before, "{offset}");
        }
    }

    #[test]
    fn what_lies_between_blank_ends_is_told() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        let survey = |seed| Survey::of(&file, SIZE, seed).unwrap();
        let samples = places(SIZE, "one").len();
        assert_eq!(survey("one"), Survey { samples, not_blank: 0 });
        assert_eq!(survey("one").warning(None), None);
        file.write_all_at(&[1; 4096], 2 << 20).unwrap();
        let text = survey("one").warning(None).unwrap();
        assert!(text.starts_with("1 of 286 samples is not blank: something is stored"), "{text}");
        file.write_all_at(&vec![1; 100 << 20], 50 << 20).unwrap();
        let found = survey("two");
        assert!((100..220).contains(&found.not_blank), "half of what is drawn: {found:?}");
        assert!(found.warning(Some("run-7")).unwrap().contains("run-7 was here last"));
    }

    #[test]
    fn places_lie_between_the_ends_whatever_the_size() {
        for size in [64 << 20, (64 << 20) + 512, 32 << 20, 3 << 20, SIZE, 1 << 42] {
            let found = places(size, "seed");
            let is_inside = |&(offset, length): &(u64, u64)| {
                offset >= EDGE_BYTES && offset + length <= size - EDGE_BYTES
            };
            assert!(found.iter().all(is_inside), "{size}");
            let is_large = size >= 64 << 20;
            assert_eq!(found.len() == 30 + SPREAD_BLOCKS as usize, is_large, "{size}");
        }
    }
}
