//! Mapped files: a transfer is a copy from or to memory, and the page cache does the rest.
//!
//! A tenant that asks for no special access gets mapped files; files are laid out with plain calls
//! (pread, pwrite). Files opened for writing are mapped shared, others private and read-only, as
//! `IOzone` maps them. A page that cannot be had (the file was cut, the file system is full, the
//! device failed) ends the op with EIO. Left out: madvise(2), vectors and flags, and mapped memory
//! beside calls on one file (`IOzone`'s -Z); `O_SYNC` has no meaning for memory, which msync(2)
//! writes back.

use iolab_model::Capabilities;
use iolab_model::op::Access;

use super::psync;
use super::synchronous::{ABILITIES, Call, Method, Synchronous};
use crate::files::Opened;

/// Mapped files.
pub struct Mmap;

/// The target.
pub const fn target() -> Synchronous<Mmap> {
    Synchronous::new()
}

impl Method for Mmap {
    const NAME: &'static str = "mmap";
    const CAPABILITIES: Capabilities = Capabilities {
        default_access: Access::Mapped,
        has_end: false,
        has_small_calls: false,
        ..ABILITIES
    };

    #[inline]
    fn read(file: &mut Opened, call: &Call<'_>) -> isize {
        psync::read(file, call)
    }

    #[inline]
    fn write(file: &mut Opened, call: &Call<'_>) -> isize {
        psync::write(file, call)
    }
}
