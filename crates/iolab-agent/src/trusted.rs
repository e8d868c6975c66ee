//! Check that only root can change what a path leads to.
//!
//! Every directory on the way counts: whoever may rename one of them exchanges what lies below it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Trust in a directory that everybody may write to, such as /tmp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Unsafe: others may put something there first.
    Refused,
    /// Safe if it is sticky: nobody renames or removes there what is root's.
    IfSticky,
}

/// Reason why another user than root could change what `path` leads to; none if nobody can.
pub fn weakness(path: &Path, shared: Shared) -> Option<String> {
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) => return Some(format!("{} cannot be found: {error}", path.display())),
    };
    let places = path.ancestors().chain(real.ancestors());
    let mut named = places.filter(|place| !place.as_os_str().is_empty());
    named.find_map(|place| weakness_of(place, shared))
}

fn weakness_of(place: &Path, shared: Shared) -> Option<String> {
    let shown = place.display();
    let found = match fs::symlink_metadata(place) {
        Ok(found) => found,
        Err(error) => return Some(format!("{shown} cannot be looked at: {error}")),
    };
    if found.uid() != 0 {
        return Some(format!("{shown} belongs to user {}", found.uid()));
    }
    let mode = found.mode() & 0o7777;
    let is_excused = shared == Shared::IfSticky && found.is_dir() && mode & STICKY != 0;
    // The mode of a link says nothing.
    let is_open = !found.is_symlink() && mode & WRITABLE_BY_OTHERS != 0;
    (is_open && !is_excused).then(|| format!("{shown} can be changed by others (mode {mode:o})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    #[test]
    fn needs_root_every_part_of_a_path_counts() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        let place = tempfile::tempdir_in("/run").unwrap();
        let (folder, file) = (place.path().join("a"), place.path().join("a/agent"));
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        assert_eq!(weakness(&file, Shared::Refused), None);
        for bad in [0o775, 0o757, 0o1777] {
            mode(&folder, bad);
            let why = weakness(&file, Shared::Refused).unwrap();
            assert!(why.contains("can be changed by others"), "{bad:o}: {why}");
        }
        assert_eq!(weakness(&file, Shared::IfSticky), None);
        mode(&folder, 0o755);
        mode(&file, 0o664);
        assert!(weakness(&file, Shared::IfSticky).is_some());
        mode(&file, 0o644);
        let link = place.path().join("link");
        symlink(&file, &link).unwrap();
        assert_eq!(weakness(&link, Shared::Refused), None);
        chown(&folder, Some(65534), None).unwrap();
        for path in [&file, &link] {
            assert!(weakness(path, Shared::Refused).unwrap().contains("user 65534"));
        }
        assert!(weakness(&place.path().join("gone"), Shared::Refused).is_some());
    }
}
