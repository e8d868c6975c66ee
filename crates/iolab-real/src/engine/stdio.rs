//! fread(3) and fwrite(3): the C library's streams, with a buffer of a known size.
//!
//! A tenant that asks for no special access gets streams; files are laid out with plain calls
//! (pread, pwrite). A write is in the stream's buffer when it returns, and reaches the file with
//! what overflows, with a flush or with the close, whose errors are reported. The stream is moved
//! (fseeko) only where the next transfer starts elsewhere. Left out: vectors and flags.

use iolab_model::Capabilities;
use iolab_model::op::Access;

use super::psync;
use super::synchronous::{ABILITIES, Call, Method, Synchronous};
use crate::files::Opened;

/// Streams of the C library.
pub struct Stdio;

/// The target.
pub const fn target() -> Synchronous<Stdio> {
    Synchronous::new()
}

impl Method for Stdio {
    const NAME: &'static str = "stdio";
    const CAPABILITIES: Capabilities = Capabilities {
        default_access: Access::Stdio,
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
