//! Ways of submitting I/O to the running kernel: one file per engine, one row in the list.

mod api;
mod io_uring;
mod psync;
mod sync;
mod synchronous;

pub use api::EngineVisitor;

api::engines! {
    /// lseek(2) where needed, then read(2) or write(2): `IOzone`'s way.
    Sync = "sync" => sync::target(),
    /// pread(2) and pwrite(2).
    Psync = "psync" => psync::target(),
    /// Submission and completion rings shared with the kernel.
    IoUring = "io_uring" => io_uring::target(),
}
