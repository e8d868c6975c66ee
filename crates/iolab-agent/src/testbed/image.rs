//! The image file under a loop device: made anew, full of noise, gone from its folder once
//! attached.
//!
//! It is written in full because unwritten extents and holes would make the first writes of a trial
//! pay for the allocation, and with noise because a device below may compress.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::statvfs::statvfs;

use crate::control::{Control, Urgency};
use crate::error::{Error, Result};
use crate::protocol::Progress;

const CHUNK_BYTES: usize = 4 << 20;
const MIB: u64 = 1 << 20;

/// Rule R10: what a testbed must leave free on a disk of the user.
pub const RESERVE_BYTES: u64 = 5 << 30;

/// On a small file system this share of it is enough, so that a 4 GiB disk can be measured, too.
const RESERVE_PERCENT: u64 = 5;

/// Rule R10: the largest share of the free space that a testbed may take, in percent.
pub const SHARE_MAX_PERCENT: u64 = 80;

/// Refuses images that would fill the disk.
pub fn check_space(folder: &Path, needed_bytes: u64) -> Result<()> {
    let free = free_bytes(folder)?;
    let reserve = reserve_of(folder, RESERVE_BYTES)?;
    let limit = (free / 100 * SHARE_MAX_PERCENT).min(free.saturating_sub(reserve));
    if needed_bytes <= limit {
        return Ok(());
    }
    Err(Error::refused(
        format!(
            "{} MiB of images in {} would use more than {SHARE_MAX_PERCENT} % of its {} MiB free \
             space or leave less than {} MiB",
            needed_bytes / MIB,
            folder.display(),
            free / MIB,
            reserve / MIB
        ),
        "use a smaller testbed, such as --on loop:512m, or another --image-dir",
    ))
}

/// Bytes that must stay free on the file system of `folder`, if `wanted_bytes` is wished for.
pub fn reserve_of(folder: &Path, wanted_bytes: u64) -> Result<u64> {
    let status = statvfs(folder).map_err(|error| Error::io("look at", folder, error))?;
    Ok(reserve_of_size(status.blocks() * status.fragment_size(), wanted_bytes))
}

/// The same on a file system of so many bytes.
pub fn reserve_of_size(size_bytes: u64, wanted_bytes: u64) -> u64 {
    wanted_bytes.min(size_bytes / 100 * RESERVE_PERCENT)
}

/// Space that is free for ordinary users.
pub fn free_bytes(folder: &Path) -> Result<u64> {
    let status = statvfs(folder).map_err(|error| Error::io("look at", folder, error))?;
    Ok(status.blocks_available() * status.fragment_size())
}

/// Makes the file, which must not exist, and writes all of it.
pub fn create(path: &Path, bytes: u64, control: &mut dyn Control) -> Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Error::io("create", path, error))?;
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15 ^ bytes);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut written = 0;
    while written < bytes {
        if control.urgency() > Urgency::Calm {
            return Err(Error::Interrupted);
        }
        noise.fill(&mut chunk);
        let count = (bytes - written).min(chunk.len() as u64);
        file.write_all(&chunk[..count as usize])
            .map_err(|error| Error::io("write", path, error))?;
        written += count;
        if written % (64 * MIB) == 0 {
            let share = written as f64 / bytes as f64;
            control.progress(Progress {
                phase: "image".to_owned(),
                message: "writing the image".to_owned(),
                share: Some(share),
                ..Progress::default()
            });
        }
    }
    file.sync_all().map_err(|error| Error::io("sync", path, error))?;
    // Its pages would only take the memory that the trials need.
    let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    Ok(file)
}

/// Xorshift64* (Vigna 2016): fast, and nothing compresses it.
struct Noise(u64);

impl Noise {
    fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_exact_mut(8) {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            word.copy_from_slice(&self.0.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_fits_is_refused_with_both_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let error = check_space(folder.path(), u64::MAX).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }));
        assert!(error.to_string().contains("80 %"), "{error}");
    }

    #[test]
    fn noise_does_not_repeat() {
        let mut noise = Noise(1);
        let (mut first, mut second) = ([0; 64], [0; 64]);
        noise.fill(&mut first);
        noise.fill(&mut second);
        assert_ne!(first, second);
    }
}
