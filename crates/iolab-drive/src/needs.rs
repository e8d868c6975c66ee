//! What a tenant needs of its target, compared with what the target says it can do.
//!
//! Asked before anything is opened, so that a missing ability is a sentence with a remedy and not
//! an errno in the middle of a phase.

use iolab_model::op::{Access, Durability};
use iolab_model::{Error, Target};
use iolab_workload::spec::{LockPolicy, Tenant};
use iolab_workload::verify::Verify;

/// Refuses a tenant that `target` cannot serve.
///
/// # Errors
///
/// [`Error::Unsupported`] with the first missing ability.
pub fn check<T: Target>(target: &T, tenant: &Tenant, verify: Verify) -> Result<(), Error> {
    let can = target.capabilities();
    let can_access = match tenant.access {
        Access::Plain => (can.has_plain, "go through a page cache; use direct I/O"),
        Access::Direct => (can.has_direct, "do direct I/O; leave out direct, or change the engine"),
        Access::Append => (can.has_append, "append"),
        Access::Mapped => (can.has_mapping, "map files; use the engine mmap"),
        Access::Stdio => (can.has_stream, "open streams; use the engine stdio"),
    };
    let is_in_memory = matches!(tenant.access, Access::Mapped | Access::Stdio);
    let needs = [
        can_access,
        (
            tenant.vectors <= 1 || can.has_vectors,
            "move several buffers in one call; use the engine vsync, pvsync, pvsync2 or io_uring",
        ),
        (
            tenant.flags.is_empty() || can.has_flags,
            "pass flags with a transfer; use the engine pvsync2 or io_uring",
        ),
        (
            tenant.manner.call_bytes == 0 || can.has_small_calls,
            "make several calls for one record; use the engine sync, psync or pvsync",
        ),
        (tenant.lock == LockPolicy::None || can.has_lock, "lock files; leave out lock"),
        (
            tenant.durability == Durability::None || !is_in_memory,
            "make each write durable: what goes to a mapped file or a stream is durable only \
             after a flush; use fsync_every",
        ),
        (
            !verify.is_on() || can.can_verify,
            "give back what was written; use verify none, or a testbed on the running kernel",
        ),
        (
            !tenant.is_preallocated || can.has_allocate,
            "allocate blocks without writing them; leave out preallocate",
        ),
    ];
    let is_many = tenant.file_set.is_some();
    let makes_files = (!is_many, "make and remove many files; use a testbed with a file system");
    match needs.into_iter().chain([makes_files]).find(|(is_met, _)| !is_met) {
        Some((_, what)) => Err(Error::Unsupported { target: target.name(), what: what.to_owned() }),
        None => Ok(()),
    }
}
