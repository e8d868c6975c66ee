//! Reading of the files that a command line names: no more of them than a limit.
//!
//! The length that a file tells is no limit: files of `/proc` have none and may be endless, and
//! others grow while they are read.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

/// Bytes of a regular file; `None` if it has more than `most`.
///
/// # Errors
///
/// It cannot be opened or read, or is no regular file (which might have no end).
pub fn read_limited(path: &Path, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    // A pipe is never opened: that would wait for its writer.
    if !path.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_limited(&path, 5).unwrap().as_deref(), Some(&b"12345"[..]));
        assert_eq!(read_limited(&path, 4).unwrap(), None);
        let error = read_limited(folder.path(), 9).unwrap_err();
        assert_eq!(error.to_string(), "it is no regular file");
    }

    #[test]
    fn a_length_of_nothing_is_no_promise() {
        // Symptom: a file that says it has no bytes was read to its end, wherever that is.
        let path = Path::new("/proc/self/maps");
        assert_eq!(path.metadata().unwrap().len(), 0);
        assert_eq!(read_limited(path, 100).unwrap(), None);
    }
}
