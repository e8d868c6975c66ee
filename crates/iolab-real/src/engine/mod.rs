//! Ways of submitting I/O to the running kernel: one file per engine, one row in the list.

mod api;
mod io_uring;
mod io_uring_fixed;
mod io_uring_poll;
mod io_uring_sqpoll;
mod libaio;
mod mmap;
mod posixaio;
mod psync;
mod pvsync;
mod pvsync2;
mod refusal;
mod ring;
mod ring_setup;
mod slot;
mod splice;
mod stdio;
mod sync;
mod synchronous;
mod vsync;

pub use api::EngineVisitor;
pub use refusal::Unavailable;

api::engines! {
    /// lseek(2) where needed, then read(2) or write(2): `IOzone`'s way.
    Sync = "sync" => sync::target(),
    /// pread(2) and pwrite(2).
    Psync = "psync" => psync::target(),
    /// lseek(2) where needed, then readv(2) or writev(2).
    Vsync = "vsync" => vsync::target(),
    /// preadv(2) and pwritev(2).
    Pvsync = "pvsync" => pvsync::target(),
    /// preadv2(2) and pwritev2(2), with flags.
    Pvsync2 = "pvsync2" => pvsync2::target(),
    /// splice(2) through a pipe.
    Splice = "splice" => splice::target(),
    /// Streams of the C library.
    Stdio = "stdio" => stdio::target(),
    /// Mapped files.
    Mmap = "mmap" => mmap::target(),
    /// Submission and completion rings shared with the kernel.
    IoUring = "io_uring" => io_uring::target(),
    /// The same with registered buffers and files.
    IoUringFixed = "io_uring_fixed" => io_uring_fixed::target(),
    /// The same with a kernel thread that submits.
    IoUringSqpoll = "io_uring_sqpoll" => io_uring_sqpoll::target(),
    /// The same with polled completion.
    IoUringPoll = "io_uring_poll" => io_uring_poll::target(),
    /// Linux's older asynchronous I/O.
    Libaio = "libaio" => libaio::target(),
    /// POSIX asynchronous I/O of the C library: threads of the process.
    Posixaio = "posixaio" => posixaio::target(),
}
