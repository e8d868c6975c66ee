//! Ways of submitting I/O to the running kernel: one file per engine, one row in the list.

mod api;
mod combinations;
mod io_uring;
mod io_uring_fixed;
mod io_uring_fixed_poll;
mod io_uring_fixed_sqpoll;
mod io_uring_fixed_sqpoll_poll;
mod io_uring_poll;
mod io_uring_sqpoll;
mod io_uring_sqpoll_poll;
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
    Sync = "sync" => typed sync::target(),
    /// pread(2) and pwrite(2).
    Psync = "psync" => typed psync::target(),
    /// lseek(2) where needed, then readv(2) or writev(2).
    Vsync = "vsync" => erased vsync::target(),
    /// preadv(2) and pwritev(2).
    Pvsync = "pvsync" => erased pvsync::target(),
    /// preadv2(2) and pwritev2(2), with flags.
    Pvsync2 = "pvsync2" => erased pvsync2::target(),
    /// splice(2) through a pipe.
    Splice = "splice" => erased splice::target(),
    /// Streams of the C library.
    Stdio = "stdio" => typed stdio::target(),
    /// Mapped files.
    Mmap = "mmap" => typed mmap::target(),
    /// Submission and completion rings shared with the kernel.
    IoUring = "io_uring" => typed io_uring::target(),
    /// The same with registered buffers and files.
    IoUringFixed = "io_uring_fixed" => erased io_uring_fixed::target(),
    /// The same with a kernel thread that submits.
    IoUringSqpoll = "io_uring_sqpoll" => erased io_uring_sqpoll::target(),
    /// The same with polled completion.
    IoUringPoll = "io_uring_poll" => erased io_uring_poll::target(),
    /// The same with registered buffers and files, and a kernel thread that submits.
    IoUringFixedSqpoll = "io_uring_fixed_sqpoll" => erased io_uring_fixed_sqpoll::target(),
    /// The same with registered buffers and files, and polled completion.
    IoUringFixedPoll = "io_uring_fixed_poll" => erased io_uring_fixed_poll::target(),
    /// The same with a kernel thread that submits and polls.
    IoUringSqpollPoll = "io_uring_sqpoll_poll" => erased io_uring_sqpoll_poll::target(),
    /// The same with all three.
    IoUringFixedSqpollPoll = "io_uring_fixed_sqpoll_poll"
        => erased io_uring_fixed_sqpoll_poll::target(),
    /// Linux's older asynchronous I/O.
    Libaio = "libaio" => typed libaio::target(),
    /// POSIX asynchronous I/O of the C library: threads of the process.
    Posixaio = "posixaio" => erased posixaio::target(),
}
