//! The system calls that are understood: one row each.

use crate::access::StableWait;
use crate::text::scan;

/// Arguments of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// True of a write.
    pub is_write: bool,
    /// Index of the offset; None: the description's position.
    pub offset: Option<usize>,
    /// True if the second argument is a list of buffers.
    pub is_vector: bool,
}

/// Effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEffect {
    /// Opens a path; indices of the path and of the flags, if it has any.
    Open(usize, Option<usize>),
    /// Makes descriptors that are no files.
    MakeOther,
    /// Closes a descriptor.
    Close,
    /// Closes a range of descriptors.
    CloseRange,
    /// Another descriptor of the same description.
    Duplicate,
    /// The same, or settings of a descriptor.
    Control,
    /// A new process or thread.
    Fork,
    /// Another program in the same process.
    Execute,
    /// A transfer between memory and a file.
    Transfer(Transfer),
    /// A transfer between two descriptors; indices of input, its offset, output, its offset.
    Copy(usize, Option<usize>, usize, Option<usize>),
    /// Sets the position.
    Seek,
    /// Sets the size of an open file.
    Truncate,
    /// Sets the size of the file of a path.
    TruncatePath,
    /// Allocates room, or clears a range.
    Allocate,
    /// Removes a path; its index.
    Remove(usize),
    /// Gives a file another name; indices of the name that it has, and of the other one.
    Link(usize, usize),
    /// Waits for stable storage.
    Sync(StableWait),
    /// Waits for stable storage of all that was written.
    SyncAll,
    /// The same for a part of memory that a file is mapped to; index of the flags.
    SyncMapped(usize),
    /// Maps a file.
    Map,
    /// Submits requests to a queue of the kernel.
    Submit,
    /// Takes completions out of it.
    Reap,
    /// A request of Solaris' own queue.
    SolarisQueue,
    /// Sets up a queue whose requests no trace of calls shows.
    Ring,
}

impl CallEffect {
    /// True of calls about files that move nothing: a program that is in one of them does not
    /// pause.
    pub const fn is_aside(self) -> bool {
        matches!(
            self,
            Self::Open(..)
                | Self::Close
                | Self::CloseRange
                | Self::Truncate
                | Self::TruncatePath
                | Self::Allocate
                | Self::Remove(_)
                | Self::Link(..)
                | Self::Sync(_)
                | Self::SyncAll
                | Self::SyncMapped(_)
                | Self::Reap
        )
    }
}

const fn transfer(is_write: bool, offset: Option<usize>, is_vector: bool) -> CallEffect {
    CallEffect::Transfer(Transfer { is_write, offset, is_vector })
}

/// Names of the calls with their effects; man pages, section 2, of both systems.
const CALLS: &[(&str, CallEffect)] = &[
    ("_llseek", CallEffect::Seek),
    ("accept", CallEffect::MakeOther),
    ("accept4", CallEffect::MakeOther),
    ("clone", CallEffect::Fork),
    ("clone3", CallEffect::Fork),
    ("close", CallEffect::Close),
    ("close_range", CallEffect::CloseRange),
    ("copy_file_range", CallEffect::Copy(0, Some(1), 2, Some(3))),
    ("creat", CallEffect::Open(0, None)),
    ("creat64", CallEffect::Open(0, None)),
    ("dup", CallEffect::Duplicate),
    ("dup2", CallEffect::Duplicate),
    ("dup3", CallEffect::Duplicate),
    ("epoll_create", CallEffect::MakeOther),
    ("epoll_create1", CallEffect::MakeOther),
    ("eventfd", CallEffect::MakeOther),
    ("eventfd2", CallEffect::MakeOther),
    ("execve", CallEffect::Execute),
    ("execveat", CallEffect::Execute),
    ("fallocate", CallEffect::Allocate),
    ("fcntl", CallEffect::Control),
    ("fcntl64", CallEffect::Control),
    ("fdatasync", CallEffect::Sync(StableWait::Fdatasync)),
    ("fdsync", CallEffect::Sync(StableWait::Fdatasync)),
    ("fork", CallEffect::Fork),
    ("fork1", CallEffect::Fork),
    ("forkall", CallEffect::Fork),
    ("fsync", CallEffect::Sync(StableWait::Fsync)),
    ("ftruncate", CallEffect::Truncate),
    ("ftruncate64", CallEffect::Truncate),
    ("inotify_init", CallEffect::MakeOther),
    ("inotify_init1", CallEffect::MakeOther),
    ("io_getevents", CallEffect::Reap),
    ("io_pgetevents", CallEffect::Reap),
    ("io_submit", CallEffect::Submit),
    ("io_uring_setup", CallEffect::Ring),
    ("kaio", CallEffect::SolarisQueue),
    ("link", CallEffect::Link(0, 1)),
    ("linkat", CallEffect::Link(1, 3)),
    ("llseek", CallEffect::Seek),
    ("lseek", CallEffect::Seek),
    ("lseek64", CallEffect::Seek),
    ("memfd_create", CallEffect::MakeOther),
    ("mmap", CallEffect::Map),
    ("mmap2", CallEffect::Map),
    ("mmap64", CallEffect::Map),
    ("msync", CallEffect::SyncMapped(2)),
    ("open", CallEffect::Open(0, Some(1))),
    ("open64", CallEffect::Open(0, Some(1))),
    ("openat", CallEffect::Open(1, Some(2))),
    ("openat2", CallEffect::Open(1, Some(2))),
    ("openat64", CallEffect::Open(1, Some(2))),
    ("pidfd_open", CallEffect::MakeOther),
    ("pipe", CallEffect::MakeOther),
    ("pipe2", CallEffect::MakeOther),
    ("pread", transfer(false, Some(3), false)),
    ("pread64", transfer(false, Some(3), false)),
    ("preadv", transfer(false, Some(3), true)),
    ("preadv2", transfer(false, Some(3), true)),
    ("pwrite", transfer(true, Some(3), false)),
    ("pwrite64", transfer(true, Some(3), false)),
    ("pwritev", transfer(true, Some(3), true)),
    ("pwritev2", transfer(true, Some(3), true)),
    ("read", transfer(false, None, false)),
    ("readv", transfer(false, None, true)),
    ("sendfile", CallEffect::Copy(1, Some(2), 0, None)),
    ("sendfile64", CallEffect::Copy(1, Some(2), 0, None)),
    ("signalfd", CallEffect::MakeOther),
    ("signalfd4", CallEffect::MakeOther),
    ("so_socket", CallEffect::MakeOther),
    ("socket", CallEffect::MakeOther),
    ("socketpair", CallEffect::MakeOther),
    ("splice", CallEffect::Copy(0, Some(1), 2, Some(3))),
    ("sync", CallEffect::SyncAll),
    ("sync_file_range", CallEffect::Sync(StableWait::Range)),
    ("syncfs", CallEffect::SyncAll),
    ("timerfd_create", CallEffect::MakeOther),
    ("truncate", CallEffect::TruncatePath),
    ("truncate64", CallEffect::TruncatePath),
    ("unlink", CallEffect::Remove(0)),
    ("unlinkat", CallEffect::Remove(1)),
    ("userfaultfd", CallEffect::MakeOther),
    ("vfork", CallEffect::Fork),
    ("write", transfer(true, None, false)),
    ("writev", transfer(true, None, true)),
];

/// Names of the calls that are understood.
pub fn names() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(name, _)| *name)
}

/// Effect of a call; None if it is of no interest.
pub fn effect_of(name: &[u8]) -> Option<CallEffect> {
    let found = CALLS.binary_search_by(|(row, _)| row.as_bytes().cmp(name)).ok()?;
    Some(CALLS[found].1)
}

/// Flags of an open file.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// Writes go to the end.
    pub is_append: bool,
    /// Emptied when it was opened.
    pub is_truncated: bool,
    /// Around the page cache.
    pub is_direct: bool,
    /// Way in which every write waits for stable storage, if it does.
    pub waits: Option<StableWait>,
    /// Another program does not inherit it.
    pub is_closed_on_exec: bool,
}

impl OpenFlags {
    /// Flags as the kernel has them: include/uapi/asm-generic/fcntl.h, with x86's `O_DIRECT`.
    pub const fn of_number(number: i64) -> Self {
        Self {
            is_append: number & 0x400 != 0,
            is_truncated: number & 0x200 != 0,
            is_direct: number & 0x4000 != 0,
            // O_SYNC has the bit of O_DSYNC and one of its own.
            waits: match number & 0x10_1000 {
                0 => None,
                0x1000 => Some(StableWait::DataWrite),
                _ => Some(StableWait::Write),
            },
            is_closed_on_exec: number & 0x80000 != 0,
        }
    }

    /// Flags by name, or as the number that `-X raw` prints.
    pub fn parse(text: &[u8]) -> Self {
        if let Some(number) = scan::number(text) {
            return Self::of_number(number);
        }
        let has = |name: &[u8]| scan::find(text, name).is_some();
        Self {
            is_append: has(b"O_APPEND"),
            is_truncated: has(b"O_TRUNC"),
            is_direct: has(b"O_DIRECT|") || text.ends_with(b"O_DIRECT"),
            waits: match () {
                () if has(b"O_SYNC") => Some(StableWait::Write),
                () if has(b"O_DSYNC") => Some(StableWait::DataWrite),
                () => None,
            },
            is_closed_on_exec: has(b"O_CLOEXEC"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(CALLS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(effect_of(b"lseek"), Some(CallEffect::Seek));
        assert_eq!(effect_of(b"getpid"), None);
    }

    #[test]
    fn flags_are_read_as_names_and_as_numbers() {
        let named = OpenFlags::parse(b"O_WRONLY|O_APPEND|O_CLOEXEC");
        assert_eq!(named, OpenFlags::parse(b"0x80401"));
        assert!(named.is_append && named.is_closed_on_exec && !named.is_direct);
        assert!(!OpenFlags::parse(b"O_RDONLY|O_DIRECTORY").is_direct);
        assert!(OpenFlags::parse(b"O_RDWR|O_DIRECT").is_direct);
        for (name, number, waits) in [
            ("O_WRONLY", "0x1", None),
            ("O_WRONLY|O_DSYNC", "0x1001", Some(StableWait::DataWrite)),
            ("O_WRONLY|O_SYNC", "0x101001", Some(StableWait::Write)),
        ] {
            assert_eq!(OpenFlags::parse(name.as_bytes()).waits, waits);
            assert_eq!(OpenFlags::parse(number.as_bytes()).waits, waits);
        }
    }
}
