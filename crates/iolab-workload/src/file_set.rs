//! Many small files: what they are called, how large they are, and in which order they are touched.
//!
//! The scheme is bonnie++'s (2.00): a number of ten hexadecimal digits and up to twelve random
//! letters and digits, number first where order matters (`Sequential`), last where it must not;
//! files are dealt to directories in runs. Names, sizes and shuffles are functions of one sequence
//! of numbers ([`Draws`]), so that the phases which make, read and remove a set agree on it, and
//! the program itself on the same numbers makes the same files.
//!
//! [`FileSetPlan`] makes paths of it, and [`FileSetWorker`] performs it.

use iolab_model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::draws::{Draws, Numbers};

mod plan;
mod worker;

pub use plan::FileSetPlan;
pub use worker::{FileMeans, FileSetWorker};

/// Random characters at most (facts of the program, as are all constants here).
const TAIL_MAX: u64 = 12;
const TAIL: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Files at most: ten digits hold more, memory does not.
const FILES_MAX: u64 = 64 << 20;
/// Directories at most: their names have five digits.
const DIRECTORIES_MAX: u64 = 99_999;

/// Work on a set of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSetWork {
    /// The deed.
    pub action: FileAction,
    /// Order of names and of touching.
    pub order: FileOrder,
    /// Number of files.
    pub files: u64,
    /// Subdirectories that they are dealt to; 1 = none.
    pub directories: u64,
    /// Smallest size; the same as the largest: all are of that size.
    #[serde(default)]
    pub size_min_bytes: Bytes,
    /// Largest size; 0 = empty files.
    #[serde(default)]
    pub size_max_bytes: Bytes,
    /// Instead of files.
    #[serde(default)]
    pub link: LinkKind,
    /// After each creation the file, and after each change the directory, is flushed.
    #[serde(default)]
    pub is_flushed: bool,
    /// Of [`FileAction::Extend`]: only the length is set, and no block but the last is allocated.
    #[serde(default)]
    pub is_sparse: bool,
}

/// Action on the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// Made and written; sync(2) at the end is timed.
    Create,
    /// Asked for their attributes and, unless empty, read.
    Read,
    /// Removed; sync(2) at the end is timed.
    Remove,
    /// One file, under the name of the set, is given its length and then written, as Solaris's
    /// mkfile does; it stays.
    Extend,
}

/// In which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// Numbered names; read and removed in the directory's own order.
    Sequential,
    /// Names in random order; read and removed in another one.
    Random,
}

/// Links instead of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Files.
    #[default]
    None,
    /// The first is a file, the others hard links to it.
    Hard,
    /// The first is a file, the others symbolic links to it.
    Symbolic,
}

impl FileSetWork {
    /// Fault and advice.
    pub fn problem(&self) -> Option<(String, &'static str)> {
        let Self { files, directories, .. } = *self;
        if files == 0 || files > FILES_MAX {
            return Some((format!("{files} files"), "use 1 to 67108864"));
        }
        if directories == 0 || directories > DIRECTORIES_MAX || directories > files {
            return Some((format!("{directories} directories"), "use 1 to 99999, a file for each"));
        }
        if self.size_min_bytes > self.size_max_bytes {
            let problem = format!("files from {} to {}", self.size_min_bytes, self.size_max_bytes);
            return Some((problem, "name the smaller size as the smallest"));
        }
        if self.action == FileAction::Extend && files != 1 {
            return Some((format!("{files} files to extend"), "name them one by one"));
        }
        let is_sized = self.size_max_bytes.0 > 0;
        (self.link != LinkKind::None && is_sized)
            .then(|| ("links of a size".into(), "leave out the sizes"))
    }

    /// Directory of file number `index`.
    pub fn directory_of(&self, index: u64) -> u64 {
        index / (self.files / self.directories + 1)
    }

    /// Name of a subdirectory.
    pub fn directory_name(&self, directory: u64) -> Option<String> {
        (self.directories > 1).then(|| format!("{directory:05}"))
    }

    /// Names, sizes and order of the files. What the set in order drew stands before what the one
    /// in random order draws, as the program makes them one after the other.
    pub fn drawn(&self, draws: &Draws) -> DrawnSet {
        let mut numbers = draws.behind_tickets();
        if self.order == FileOrder::Random {
            self.names_and_sizes(FileOrder::Sequential, &mut numbers);
        }
        let (names, sizes) = self.names_and_sizes(self.order, &mut numbers);
        let mut order: Vec<u64> = (0..self.files).collect();
        let shuffles = match (self.order, self.action) {
            (FileOrder::Sequential, _) | (_, FileAction::Create | FileAction::Extend) => 0,
            (_, FileAction::Read) => 1,
            (_, FileAction::Remove) => 2,
        };
        for _ in 0..shuffles {
            for place in 0..order.len() {
                order.swap(place, numbers.below(self.files) as usize);
            }
        }
        DrawnSet { names, sizes, order }
    }

    fn names_and_sizes(
        &self,
        order: FileOrder,
        numbers: &mut Numbers,
    ) -> (Vec<String>, Vec<Bytes>) {
        let mut name = |index: u64| {
            let length = numbers.below(TAIL_MAX + 1);
            let tail: String = (0..length)
                .map(|_| char::from(TAIL[numbers.below(TAIL.len() as u64) as usize]))
                .collect();
            match order {
                FileOrder::Sequential => format!("{index:010x}{tail}"),
                FileOrder::Random => format!("{tail}{index:010x}"),
            }
        };
        let names = (0..self.files).map(&mut name).collect();
        let span = (self.size_min_bytes, self.size_max_bytes);
        (names, (0..self.files).map(|_| numbers.size(span)).collect())
    }
}

/// Names, sizes and order of a set of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnSet {
    /// All names, in the order in which the files are made.
    pub names: Vec<String>,
    /// Their sizes, in the same order.
    pub sizes: Vec<Bytes>,
    /// Their numbers in the order in which a random phase touches them: each one once.
    pub order: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Source;
    use std::collections::BTreeSet;

    fn work(files: u64, directories: u64) -> FileSetWork {
        FileSetWork {
            action: FileAction::Create,
            order: FileOrder::Sequential,
            files,
            directories,
            size_min_bytes: Bytes(0),
            size_max_bytes: Bytes(0),
            link: LinkKind::None,
            is_flushed: false,
            is_sparse: false,
        }
    }

    #[test]
    fn directories_are_dealt_as_recorded() {
        // 1024 files in 2 directories: 513 and 511, as traced.
        let work = work(1024, 2);
        let first = (0..1024).filter(|&index| work.directory_of(index) == 0).count();
        assert_eq!(first, 513);
        assert_eq!(work.directory_of(1023), 1);
        assert_eq!(work.directory_name(1).as_deref(), Some("00001"));
        let deepest = self::work(2048, 7);
        assert!((0..2048).all(|index| deepest.directory_of(index) < 7));
    }

    fn draws(tickets: u64) -> Draws {
        Draws { source: Source::CLibrary { seed: 42 }, tickets }
    }

    #[test]
    fn names_and_sizes_are_those_of_the_traced_program() {
        // bonnie++ 2.00a -s 0 -n 1:3000:100 -z 42, glibc 2.36.
        let mut work = work(1024, 1);
        (work.size_min_bytes, work.size_max_bytes) = (Bytes(100), Bytes(3000));
        let made = work.drawn(&draws(0));
        let first = ["0000000000k9FkytmJl6r", "0000000001GGoomm1", "0000000002KDNhPZGhwp"];
        assert_eq!(made.names[..3], first);
        assert_eq!(made.sizes[..5], [975, 2545, 164, 1680, 2694].map(Bytes));
        work.order = FileOrder::Random;
        let random = work.drawn(&draws(0));
        let first = ["HOGvoIlLiCss0000000000", "ShIvkFMwFn0000000001", "mf1y0000000002"];
        assert_eq!(random.names[..3], first);
    }

    #[test]
    fn names_are_distinct_and_of_the_scheme() {
        let mut work = work(3000, 1);
        let names = work.drawn(&draws(5)).names;
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 3000);
        assert!(names.is_sorted(), "the number comes first");
        assert!(names.iter().all(|name| (10..=22).contains(&name.len())));
        assert_ne!(names, work.drawn(&draws(6)).names, "they begin behind the tickets");
        work.order = FileOrder::Random;
        let random = work.drawn(&draws(5)).names;
        assert!(!random.is_sorted());
        assert!(random[17].ends_with("0000000011"), "{}", random[17]);
    }

    #[test]
    fn a_shuffle_touches_each_once() {
        let mut work = work(4000, 1);
        (work.order, work.action) = (FileOrder::Random, FileAction::Read);
        let read = work.drawn(&draws(0)).order;
        assert_ne!(read, (0..4000).collect::<Vec<_>>());
        assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), 4000);
        work.action = FileAction::Remove;
        assert_ne!(read, work.drawn(&draws(0)).order, "reading and removing differ");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (files, directories) in [(0, 1), (1, 0), (3, 4), (1 << 40, 1)] {
            assert!(work(files, directories).problem().is_some(), "{files} {directories}");
        }
        let mut wrong = work(1, 1);
        wrong.size_min_bytes = Bytes(2);
        assert!(wrong.problem().unwrap().0.contains("from 2"));
        assert_eq!(work(1024, 3).problem(), None);
    }
}
