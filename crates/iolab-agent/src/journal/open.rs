//! Opening the journal of somebody else's run: one that is dead, or as soon as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::fcntl::{Flock, FlockArg};

use super::Journal;
use super::place::{run_of, uid_in};
use super::record::{Header, Parsed, parse};
use crate::error::{Error, Result};

impl Journal {
    /// Opens the journal of a dead run; none if its owner lives or it is gone.
    pub fn adopt(path: &Path) -> Result<Option<Self>> {
        Self::open(path, FlockArg::LockExclusiveNonblock)
    }

    /// Opens a journal as soon as its owner is dead; none if it is gone then.
    pub fn inherit(path: &Path) -> Result<Option<Self>> {
        Self::open(path, FlockArg::LockExclusive)
    }

    fn open(path: &Path, how: FlockArg) -> Result<Option<Self>> {
        let nofollow = nix::libc::O_NOFOLLOW;
        let opened = OpenOptions::new().read(true).append(true).custom_flags(nofollow).open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", path, error)),
        };
        let mut file = match Flock::lock(file, how) {
            Ok(file) => file,
            Err((_, nix::Error::EWOULDBLOCK)) => return Ok(None),
            Err((_, error)) => return Err(Error::io("lock", path, error)),
        };
        if !path.exists() {
            return Ok(None); // Its owner finished while we waited.
        }
        let owner = file.metadata().map_err(|error| Error::io("look at", path, error))?.uid();
        if owner != nix::unistd::geteuid().as_raw() {
            return Err(Error::refused(
                format!("the journal {} belongs to user {owner}", path.display()),
                "only journals of one's own are acted on",
            ));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| Error::io("read", path, error))?;
        let Parsed { header, entries, lines } = parse(path, &text)?;
        let whole = text.len() - lines.torn_bytes;
        if lines.torn_bytes > 0 {
            file.set_len(whole as u64).map_err(|error| Error::io("truncate", path, error))?;
        }
        if lines.lacks_end {
            file.write_all(b"\n").map_err(|error| Error::io("append to", path, error))?;
        }
        let is_header_lost = header.is_none();
        let mut header = match header {
            Some(header) => header,
            None => unknown_header(path, &file)?,
        };
        header.uid = uid_in(path).or(header.uid);
        file.seek(SeekFrom::End(0)).map_err(|error| Error::io("seek", path, error))?;
        Ok(Some(Self {
            file: Some(file),
            path: path.to_path_buf(),
            is_owner_lost: is_header_lost && header.uid.is_none(),
            header,
            entries,
            is_adopted: true,
            unnoted: None,
            damaged: lines.damaged,
            #[cfg(test)]
            fuse: None,
        }))
    }
}

/// The first line, if it was never written or cannot be read: a file that was made since this boot
/// is about it.
fn unknown_header(path: &Path, file: &File) -> Result<Header> {
    let found = file.metadata().map_err(|error| Error::io("look at", path, error))?;
    let made = found.created().or_else(|_| found.modified()).ok();
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let uptime = uptime.split(' ').next().and_then(|text| text.parse().ok());
    let booted =
        uptime.and_then(|s| SystemTime::now().checked_sub(Duration::try_from_secs_f64(s).ok()?));
    let is_new = made.zip(booted).is_some_and(|(made, booted)| made >= booted);
    let boot_id = if is_new { crate::restore::boot_id() } else { String::new() };
    Ok(Header::of(&run_of(path), &boot_id))
}
