//! Errors, with the values that say where.

use thiserror::Error as ThisError;

use crate::nearest::did_you_mean;

/// A positive errno value, as the kernel's headers number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// I/O error.
    pub const EIO: Self = Self(5);
    /// Bad file descriptor: the handle is not open.
    pub const EBADF: Self = Self(9);
    /// Busy: the lane's queue is full.
    pub const EBUSY: Self = Self(16);
    /// Invalid argument: misaligned direct I/O, for one.
    pub const EINVAL: Self = Self(22);
    /// No space left.
    pub const ENOSPC: Self = Self(28);
    /// Between two file systems.
    pub const EXDEV: Self = Self(18);
    /// No such file.
    pub const ENOENT: Self = Self(2);
    /// The file exists already.
    pub const EEXIST: Self = Self(17);
    /// Data read that are not those written (fio's choice of an errno for it).
    pub const EILSEQ: Self = Self(84);
    /// This target cannot do that.
    pub const EOPNOTSUPP: Self = Self(95);
}

/// An operating error of a target or a workload.
#[non_exhaustive]
#[derive(Debug, ThisError)]
pub enum Error {
    /// Text that is not a size.
    #[error("`{text}` is not a size: write a whole number with an optional k, m, g or t, as in 4k")]
    BadSize {
        /// Text that was typed.
        text: String,
    },
    /// A name that is in no list.
    #[error("unknown {kind} `{name}`{}; known: {known}", did_you_mean(.name, .known.split(", ")))]
    UnknownName {
        /// Sort of the named thing (engine, pattern, ...).
        kind: &'static str,
        /// Name that was typed.
        name: String,
        /// The names that exist, comma separated.
        known: String,
    },
    /// A system call failed.
    #[error("{call} {subject}: {}", std::io::Error::from_raw_os_error(.errno.0))]
    System {
        /// Name of the call.
        call: &'static str,
        /// Path or device it was made on.
        subject: String,
        /// Answer of the kernel.
        errno: Errno,
    },
    /// The target cannot do what the workload needs.
    #[error("target {target} cannot {what}")]
    Unsupported {
        /// Name of the target or engine.
        target: &'static str,
        /// The missing ability.
        what: String,
    },
    /// A workload that contradicts itself.
    #[error("workload: {problem}; {remedy}")]
    BadWorkload {
        /// Fault, with the offending values.
        problem: String,
        /// Advice: the next thing to do.
        remedy: String,
    },
    /// A fault of a model, and no user's.
    #[error("{problem}; report this: {fault}")]
    Internal {
        /// Fault, as a user meets it.
        problem: String,
        /// Fault, as whoever mends it knows it.
        fault: &'static str,
    },
    /// The user stopped what would have gone on for ever.
    #[error("stopped, and nobody could end what was under way")]
    Stopped,
}
