//! What a tenant needs of its target, compared with what the target says it can do.
//!
//! Asked before anything is opened, so that a missing ability is a sentence with a remedy and not
//! an errno in the middle of a phase.

use iolab_model::op::{Access, Durability};
use iolab_model::{Capabilities, Error, Target};
use iolab_workload::program::{DataPath, Deed, Group, Node, Positioned};
use iolab_workload::spec::{LockPolicy, Phase, Tenant};
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

/// Refuses programs that `target` cannot run.
///
/// # Errors
///
/// [`Error::Unsupported`] with the first missing ability, and the step that needs it.
pub fn check_programs<T: Target>(target: &T, phase: &Phase) -> Result<(), Error> {
    let can = target.capabilities();
    for tenant in &phase.tenants {
        let Some(program) = &tenant.program else { continue };
        for node in program.all_nodes() {
            if let Some(what) = missing(&can, node) {
                let what = format!("{what} (step {} of tenant {})", node.name(), tenant.name);
                return Err(Error::Unsupported { target: target.name(), what });
            }
        }
    }
    Ok(())
}

/// What a node needs and a target does not have.
fn missing(can: &Capabilities, node: &Node) -> Option<&'static str> {
    let does = node.does;
    let opens = matches!(does, Deed::Open | Deed::Create) || node.file.is_some();
    let is_on_file = matches!(does.group(), Group::Transfer(_) | Group::Sync | Group::Name);
    let is_key = matches!(does.group(), Group::KeyValue(..));
    let needs = [
        (!is_on_file || can.has_namespace, "open and name files; use a testbed with files"),
        (!is_key || can.has_key_value, "get and put keys; use the engine memory"),
        (
            node.position != Some(Positioned::Append) || can.has_end,
            "write to the end of a file; use the engine psync or io_uring",
        ),
        (node.vectors <= 1 || can.has_vectors, "move several buffers in one call"),
        (node.flags.is_empty() || can.has_flags, "pass flags with a transfer"),
        (does != Deed::Allocate || can.has_allocate, "allocate blocks"),
        (
            !matches!(does, Deed::Punch | Deed::Zero | Deed::Discard) || can.has_deallocate,
            "give blocks back",
        ),
        (
            !matches!(does, Deed::Link | Deed::SymbolicLink | Deed::Copy | Deed::SyncDirectory)
                || can.has_links,
            "link or copy files, or make a directory durable",
        ),
        (!matches!(does, Deed::SyncFileRange) || can.has_plain, "start the write-back of a range"),
    ];
    let accesses = node.path.unwrap_or_default();
    let access = match accesses {
        DataPath::Cached => (can.has_plain, "go through a page cache; use path = \"direct\""),
        DataPath::Direct => (can.has_direct, "do direct I/O; leave out path = \"direct\""),
        DataPath::Mapped => (can.has_mapping, "map files"),
        DataPath::Stdio => (can.has_stream, "open streams"),
    };
    let is_opening = opens && (matches!(does, Deed::Open | Deed::Create) || node.uses_handle());
    let access = is_opening.then_some(access);
    needs.into_iter().chain(access).find(|(is_met, _)| !is_met).map(|(_, what)| what)
}
