//! Directories as they are read, part by part, and names as seen from other directories.
//!
//! Names stay in memory until the next part is read; memory of a part is used again for the next.

use std::fs::ReadDir;
use std::io;
use std::path::{Component, Path, PathBuf};

use iolab_model::Bytes;
use iolab_model::op::PathId;

/// A directory that is being read.
pub struct Listing {
    path: PathId,
    directory: PathBuf,
    entries: ReadDir,
    /// Paths of the part that was read last, and of longer parts before it.
    names: Vec<PathBuf>,
    /// Number of them in that part.
    count: usize,
    /// The part had fewer names than asked for: the next one begins anew.
    is_over: bool,
}

impl Listing {
    /// Opens a directory; the memory of `before` is used again.
    ///
    /// # Errors
    ///
    /// The error of opendir(3).
    pub fn begin(path: PathId, directory: &Path, before: Option<Self>) -> io::Result<Self> {
        let names = before.map_or_else(Vec::new, |before| before.names);
        let (entries, directory) = (std::fs::read_dir(directory)?, directory.to_owned());
        Ok(Self { path, directory, entries, names, count: 0, is_over: false })
    }

    /// Tell whether the next part of `path` follows the one that was read.
    pub fn goes_on(&self, path: PathId) -> bool {
        self.path == path && !self.is_over
    }

    /// Reads up to `count` further names; answers how many there were.
    ///
    /// # Errors
    ///
    /// The error of readdir(3).
    pub fn read_on(&mut self, count: u32) -> io::Result<Bytes> {
        self.count = 0;
        while self.count < count as usize {
            let Some(entry) = self.entries.next() else { break };
            let name = entry?.file_name();
            if self.names.len() == self.count {
                self.names.push(PathBuf::new());
            }
            let path = &mut self.names[self.count];
            path.clear();
            path.push(&self.directory);
            path.push(name);
            self.count += 1;
        }
        self.is_over = self.count < count as usize;
        Ok(Bytes(self.count as u64))
    }

    /// A path of the part that was read last.
    pub fn name(&self, place: usize) -> Option<&PathBuf> {
        self.names[..self.count].get(place)
    }
}

/// Text that a symbolic link `link` must hold to lead to `file`: both are seen from the same
/// directory.
pub fn seen_from(file: &Path, link: &Path) -> PathBuf {
    if file.is_absolute() {
        return file.to_owned();
    }
    let plain = |path: &Path| -> Vec<PathBuf> {
        let parts = path.components().filter(|part| *part != Component::CurDir);
        parts.map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let (file, place) = (plain(file), plain(link.parent().unwrap_or(Path::new(""))));
    let common = file.iter().zip(&place).take_while(|(one, other)| one == other).count();
    let up = place[common..].iter().map(|_| PathBuf::from(".."));
    up.chain(file[common..].iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_part_by_part_and_then_from_the_front() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "d", "e"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let mut listing = Listing::begin(PathId(3), folder.path(), None).unwrap();
        let mut seen = Vec::new();
        for expected in [2, 2, 1] {
            assert!(listing.goes_on(PathId(3)) && !listing.goes_on(PathId(4)));
            assert_eq!(listing.read_on(2).unwrap(), Bytes(expected));
            seen.extend((0..2).filter_map(|place| listing.name(place).cloned()));
        }
        seen.sort();
        let names = ["a", "b", "c", "d", "e"].map(|name| folder.path().join(name));
        assert_eq!(seen, names);
        assert!(!listing.goes_on(PathId(3)), "the end was seen");
    }

    #[test]
    fn a_link_leads_to_its_file_from_wherever_it_is() {
        let seen = |file: &str, link: &str| seen_from(Path::new(file), Path::new(link));
        assert_eq!(seen("./set/a", "./set/b"), Path::new("a"));
        assert_eq!(seen("./set/0/a", "./set/1/b"), Path::new("../0/a"));
        assert_eq!(seen("./set/a", "set/1/b"), Path::new("../a"));
        assert_eq!(seen("/set/a", "/set/1/b"), Path::new("/set/a"));
    }
}
