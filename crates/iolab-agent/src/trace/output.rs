//! The file that a recording is written to: the user's, made by the front end before.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};

use crate::error::{Error, Result};
use crate::identity::on_behalf;
use crate::protocol::{OutputFile, RunAs};

/// Opens the file with the rights of the user for whom root works.
///
/// # Errors
///
/// It cannot be opened, or is not the empty file that the front end made.
pub fn open(output: &OutputFile, user: Option<&RunAs>) -> Result<File> {
    if !output.path.is_absolute() {
        let what = format!("{} is no absolute path", output.path.display());
        return Err(Error::refused(what, "write it from / on"));
    }
    on_behalf(user, || {
        let fail = |error| Error::io("open", &output.path, error);
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(&output.path).map_err(fail)?;
        let found = file.metadata().map_err(fail)?;
        let is_it = (found.dev(), found.ino()) == (output.device, output.inode);
        if found.is_file() && is_it && found.len() == 0 {
            return Ok(file);
        }
        let what = format!("{} was replaced or written meanwhile", output.path.display());
        Err(Error::refused(what, "see who writes there; name another file"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_empty_file_that_was_made_is_opened() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t.iotrace");
        std::fs::write(&path, "").unwrap();
        let found = std::fs::metadata(&path).unwrap();
        let output = OutputFile { path: path.clone(), device: found.dev(), inode: found.ino() };
        open(&output, None).unwrap();
        let other = OutputFile { inode: found.ino() + 1, ..output.clone() };
        assert!(matches!(open(&other, None), Err(Error::Refused { .. })));
        std::fs::write(&path, "somebody's").unwrap();
        assert!(matches!(open(&output, None), Err(Error::Refused { .. })));
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(open(&OutputFile { path: link, ..output.clone() }, None).is_err());
        assert!(open(&OutputFile { path: "t.iotrace".into(), ..output }, None).is_err());
    }
}
