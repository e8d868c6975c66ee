//! Trace points of other layers than block devices, and where each of them is recorded.
//!
//! Source: Linux `include/trace/events/` (4.18 to 6.18). Names differ between kernels: those that a
//! kernel does not have are passed over. Left out: points that tell addresses only, and those of
//! single extents and buffers, which are as many as there are blocks.

use std::fs;
use std::path::Path;

use iolab_trace::ring::{DEVICE_FIELDS, DEVICE_NAME_FIELDS, Description, FieldForm, RecordDecoder};

use super::device::Traced;
use super::order::Order;
use crate::error::{Error, Result};
use crate::protocol::KernelLayer;

const SYSCALLS: &str = "syscalls";
/// System calls whose beginning and end are recorded.
const CALLS: &[&str] = &[
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "sync_file_range",
    "msync",
    "fallocate",
    "ftruncate",
    "truncate",
    "copy_file_range",
    "sendfile64",
    "splice",
    "readahead",
    "fadvise64",
    "io_submit",
    "io_getevents",
    "io_pgetevents",
    "io_uring_enter",
];
const WRITEBACK: &[&str] = &[
    "writeback_dirty_folio",
    "writeback_dirty_page",
    "writeback_queue",
    "writeback_start",
    "writeback_written",
    "writeback_wait",
    "writeback_single_inode_start",
    "writeback_single_inode",
    "balance_dirty_pages",
    "folio_wait_writeback",
    "wait_on_page_writeback",
];
const EXT4: &[&str] = &[
    "ext4_write_begin",
    "ext4_da_write_begin",
    "ext4_write_end",
    "ext4_da_write_end",
    "ext4_journalled_write_end",
    "ext4_writepages",
    "ext4_writepages_result",
    "ext4_direct_IO_enter",
    "ext4_direct_IO_exit",
    "ext4_sync_file_enter",
    "ext4_sync_file_exit",
    "ext4_sync_fs",
    "ext4_allocate_blocks",
    "ext4_free_blocks",
    "ext4_discard_blocks",
    "ext4_truncate_enter",
    "ext4_truncate_exit",
    "ext4_fallocate_enter",
    "ext4_fallocate_exit",
    "ext4_unlink_enter",
    "ext4_unlink_exit",
    "ext4_read_folio",
    "ext4_readpage",
    "ext4_fc_commit_start",
    "ext4_fc_commit_stop",
];
const JBD2: &[&str] = &[
    "jbd2_start_commit",
    "jbd2_commit_locking",
    "jbd2_commit_flushing",
    "jbd2_commit_logging",
    "jbd2_end_commit",
    "jbd2_run_stats",
    "jbd2_checkpoint",
    "jbd2_checkpoint_stats",
    "jbd2_submit_inode_data",
    "jbd2_update_log_tail",
    "jbd2_write_superblock",
    "jbd2_lock_buffer_stall",
];
const PAGE_CACHE: &[&str] = &[
    "mm_filemap_add_to_page_cache",
    "mm_filemap_delete_from_page_cache",
    "mm_filemap_fault",
    "mm_filemap_get_pages",
    "file_check_and_advance_wb_err",
    "filemap_set_wb_err",
];
const READ_AHEAD: &[&str] = &[
    "page_cache_ra_unbounded",
    "page_cache_ra_order",
    "page_cache_sync_ra",
    "page_cache_async_ra",
];

/// System calls by which files are opened, moved in and closed: those that `iolab-pattern` follows.
const FILE_CALLS: &[&str] = &[
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "lseek",
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "sync_file_range",
    "msync",
    "fallocate",
    "ftruncate",
    "copy_file_range",
    "sendfile64",
    "splice",
    "open",
    "openat",
    "openat2",
    "creat",
    "close",
    "close_range",
    // Where relative paths begin.
    "chdir",
    "fchdir",
    "chroot",
    "pivot_root",
    "setns",
    "unshare",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "mmap",
    "execve",
    "execveat",
    "io_submit",
    "io_getevents",
    "io_pgetevents",
    "io_uring_setup",
];

/// Trace points of a layer: the kernel's name of a system, and of a point of it.
fn points_of(layer: KernelLayer) -> Vec<(&'static str, String)> {
    let of = |system, names: &[&str]| {
        names.iter().map(|name| (system, (*name).to_owned())).collect::<Vec<_>>()
    };
    let calls = |names: &[&str]| {
        let both = names.iter().flat_map(|call| ["enter", "exit"].map(|end| (end, *call)));
        both.map(|(end, call)| (SYSCALLS, format!("sys_{end}_{call}"))).collect::<Vec<_>>()
    };
    match layer {
        KernelLayer::Syscalls => calls(CALLS),
        KernelLayer::FileCalls => {
            let mut points = calls(FILE_CALLS);
            // Who has whose descriptors.
            points.extend(of("task", &["task_newtask"]));
            points.extend(of("sched", &["sched_process_exit"]));
            points
        }
        KernelLayer::Writeback => of("writeback", WRITEBACK),
        KernelLayer::Ext4 => of("ext4", EXT4),
        KernelLayer::Jbd2 => of("jbd2", JBD2),
        KernelLayer::PageCache => of("filemap", PAGE_CACHE),
        KernelLayer::ReadAhead => of("readahead", READ_AHEAD),
    }
}

/// A trace point that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its directory below the instance.
    pub folder: String,
    /// The kernel's number of it.
    pub id: u16,
    /// The kernel's filter; empty: none.
    pub filter: String,
    /// True if only the processes that were named are recorded.
    pub is_of_processes: bool,
}

/// True if a kernel has a layer.
pub fn has(root: &Path, layer: KernelLayer) -> bool {
    let events = root.join("events");
    points_of(layer).iter().any(|(system, name)| events.join(system).join(name).exists())
}

/// True if a layer is recorded in the instance of processes, given whether root works for others.
pub fn is_of_processes(layer: KernelLayer, is_bounded: bool) -> bool {
    matches!(layer, KernelLayer::Syscalls | KernelLayer::FileCalls) || is_bounded
}

/// Learns the trace points of all layers that are asked for, and says what is switched on.
///
/// # Errors
///
/// The kernel's own description is not understood.
pub fn learn(root: &Path, order: &Order, decoder: &mut RecordDecoder) -> Result<Vec<Chosen>> {
    let mut chosen = Vec::<Chosen>::new();
    for layer in &order.layers {
        for (system, name) in points_of(*layer) {
            let folder = format!("events/{system}/{name}");
            if chosen.iter().any(|point| point.folder == folder) {
                continue;
            }
            let Ok(text) = fs::read_to_string(root.join(&folder).join("format")) else { continue };
            let description = Description::parse(&format!("{folder}/format"), &text)
                .map_err(|error| unknown(&error))?;
            decoder.learn_point(system, &description);
            let is_of_processes =
                order.has_processes() && is_of_processes(*layer, order.bound_uid.is_some());
            let filter = filter_of(&description, order, is_of_processes);
            chosen.push(Chosen { folder, id: description.id, filter, is_of_processes });
        }
    }
    if order.wants_processes() {
        chosen.extend(learn_names(root, decoder));
    }
    Ok(chosen)
}

/// The event of new names, so that a process that is short-lived has one, too.
fn learn_names(root: &Path, decoder: &mut RecordDecoder) -> Option<Chosen> {
    let folder = "events/task/task_rename".to_owned();
    let text = fs::read_to_string(root.join(&folder).join("format")).ok()?;
    let description = Description::parse(&folder, &text).ok()?;
    let is_known = decoder.learn_rename(&description);
    let id = description.id;
    is_known.then_some(Chosen { folder, id, filter: String::new(), is_of_processes: true })
}

/// An event whose form is not known.
pub fn unknown(error: &iolab_trace::Error) -> Error {
    Error::failed(
        format!("this kernel's trace points are not understood: {error}"),
        "record with blktrace, and let `iolab trace` read that; please report it",
    )
}

/// The kernel's filter of a trace point: by device, if it tells one; of system calls of all
/// processes, those of the recorder are left out, or it would record what it writes.
fn filter_of(description: &Description, order: &Order, is_of_processes: bool) -> String {
    let form = |name: &str| description.fields.get(name).map(|field| field.form);
    let any = |tests: Vec<String>| tests.join(" || ");
    let numbers = &order.file_systems;
    if let Some(name) = DEVICE_FIELDS.into_iter().find(|name| form(name).is_some()) {
        return any(numbers.iter().map(|(a, b)| format!("{name} == {}", a << 20 | b)).collect());
    }
    let named = DEVICE_NAME_FIELDS.into_iter().find(|name| form(name) == Some(FieldForm::Text));
    if let Some(name) = named {
        return any(numbers.iter().map(|(a, b)| format!("{name} == \"{a}:{b}\"")).collect());
    }
    if is_of_processes {
        return String::new();
    }
    let own = [std::process::id(), nix::unistd::getppid().as_raw().cast_unsigned()];
    own.map(|pid| format!("common_pid != {pid}")).join(" && ")
}

/// Numbers by which file systems on devices are known: those of the devices, of their partitions,
/// and of what is mapped onto them.
pub fn file_systems_on(devices: &[Traced]) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let class = Path::new("/sys/class/block");
    let mut names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
    while let Some(name) = names.pop() {
        let folder = class.join(&name);
        let Some(number) = number_of(&folder) else { continue };
        if found.contains(&number) {
            continue;
        }
        found.push(number);
        names.extend(entries(&folder.join("holders")));
        let inner = entries(&folder);
        names.extend(inner.into_iter().filter(|it| folder.join(it).join("partition").exists()));
    }
    found
}

fn number_of(folder: &Path) -> Option<(u32, u32)> {
    let text = fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn entries(folder: &Path) -> Vec<String> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    listing.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::EventSet;

    const DIRTY: &str = "name: writeback_start\nID: 9\nformat:\n\
        \tfield:char name[32];\toffset:8;\tsize:32;\tsigned:0;\n\
        \tfield:dev_t sb_dev;\toffset:48;\tsize:4;\tsigned:0;\n";

    fn order(pids: Vec<u32>) -> Order {
        Order {
            instance: String::new(),
            process_instance: None,
            devices: Vec::new(),
            events: EventSet::Full,
            layers: Vec::new(),
            pids,
            awaits_process: false,
            bound_uid: None,
            file_systems: vec![(7, 3), (259, 1)],
            backend: crate::protocol::Backend::Auto,
            buffer_bytes: 1,
            bytes_max: None,
            is_live: false,
            facts: std::collections::BTreeMap::new(),
        }
    }

    fn filter(text: &str, is_of_processes: bool) -> String {
        let description = Description::parse("format", text).unwrap();
        filter_of(&description, &order(Vec::new()), is_of_processes)
    }

    #[test]
    fn points_are_filtered_by_what_they_tell() {
        assert_eq!(filter(DIRTY, true), "sb_dev == 7340035 || sb_dev == 271581185");
        let text = DIRTY.replace("dev_t sb_dev", "int reason");
        assert_eq!(filter(&text, true), "name == \"7:3\" || name == \"259:1\"");
        let text = text.replace("char name[32]", "int fd");
        assert_eq!(filter(&text, true), "");
        let own = format!("common_pid != {}", std::process::id());
        assert!(filter(&text, false).starts_with(&own));
    }

    #[test]
    fn the_layer_of_file_calls_has_the_name_by_which_readers_know_it() {
        assert_eq!(KernelLayer::FileCalls.typed(), iolab_trace::native::FILE_CALLS);
    }

    #[test]
    fn every_layer_has_points_with_names_of_their_own() {
        let mut all: Vec<String> = KernelLayer::ALL
            .iter()
            .filter(|layer| **layer != KernelLayer::FileCalls)
            .flat_map(|layer| points_of(*layer))
            .map(|(_, name)| name)
            .collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert!(all.len() == count && count > 80, "{count}");
    }
}
