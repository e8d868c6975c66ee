//! Abilities that a simulated stack lacks, and settings that change nothing on one, in words.
//!
//! The only place of these facts. [`crate::target::CAPABILITIES`] says the same of single
//! operations as data; `make docs` writes both for the front end, which refuses a study before
//! anything runs.

use iolab_model::target::Limit;
use serde::Serialize;

const fn limit(code: &'static str, reason: &'static str, hint: &'static str) -> Limit {
    Limit { code, reason, hint }
}

/// Reasons, by the codes of `iolab_drive::needs` and of [`LEVELS`].
pub const LIMITS: &[Limit] = &[
    limit(
        "page_cache",
        "a simulation has no buffered files without a file system",
        "use --direct, or a file system: --fs ext4 of compare, or [files] of a stack file",
    ),
    limit(
        "mapping",
        "a simulation has no buffered files, and so no mapped ones, without a file system",
        "use another engine, or a file system: --fs ext4 of compare, or [files] of a stack file",
    ),
    limit(
        "streams",
        "a simulation has no buffered files, and so no streams, without a file system",
        "leave these tests out, or use a file system: --fs ext4 of compare, or [files] of a stack \
         file",
    ),
    limit(
        "engine",
        "a simulation has no buffered files, and so no mappings and streams, without a file system",
        "use another engine, or a file system: --fs ext4 of compare, or [files] of a stack file",
    ),
    limit(
        "append",
        "files without a file system are written at offsets",
        "use a file system: --fs ext4 of compare, or [files] of a stack file",
    ),
    limit(
        "idle_flags",
        "in simulation nothing polls, waits or is cached, so that they mean nothing",
        "use dsync or sync, or --on loop:1g",
    ),
    limit(
        "small_calls",
        "a simulated record is one call without a file system",
        "use a file system: --fs ext4 of compare, or [files] of a stack file",
    ),
    limit("lock", "simulated files have no locks", "leave out lock, or use --on loop:1g"),
    limit(
        "verify",
        "a simulated store keeps no records that could be compared",
        "leave dataintegrity out, or use --on loop:1g",
    ),
    limit(
        "links",
        "files in simulation have one name",
        "make files in place of links, or use --on loop:1g",
    ),
    limit(
        "key_value",
        "a simulated store keeps its files in a file system",
        "use a file system: --fs ext4 of compare, or [files] of a stack file, or --on loop:1g",
    ),
    limit(
        "store",
        "a simulated store is RocksDB's model",
        "use the store rocksdb, or --on dir:PATH",
    ),
    limit(
        "warm_cache",
        "a simulation has no page cache without a file system",
        "leave it out: direct I/O is cold; or use a file system: --fs ext4 of compare, or [files] \
         of a stack file",
    ),
    limit(
        "external_journal",
        "a file system lies on one device in simulation",
        "leave external_journal out, or use --on loop:1g",
    ),
    limit(
        "memory_limit",
        "a simulation has no memory that could be limited without a file system",
        "leave it out, or use a file system: --fs ext4 of compare, or [files] of a stack file",
    ),
    limit(
        "allocate",
        "room is allocated without writing where files have extents alone",
        "leave the step out, or use --fs ext4 or xfs",
    ),
    limit(
        "deallocate",
        "blocks are given back by a device that discards, or by a file system that can: not by \
         ext2 and ext3 of kernels up to 4.2",
        "leave the step out, or use --fs ext4 or xfs",
    ),
    limit(
        "zero",
        "a range is cleared without writing on ext4 and xfs alone",
        "write zeros, or use --fs ext4 or xfs",
    ),
    limit(
        "control_groups",
        "control groups are not simulated yet",
        "leave cgroup, cgroup_weight and limits out; priority is simulated",
    ),
    limit(
        "changes",
        "a simulated queue keeps its settings while a workload runs",
        "leave the changes out, or use --on loop:1g",
    ),
];

/// Levels of a factor that a simulated stack can do.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "PossibleLevels")]
pub struct Possible {
    /// The factor.
    pub factor: &'static str,
    /// Its levels; absent: engines that can do direct I/O.
    pub levels: Option<&'static [&'static str]>,
    /// Code of the limit that explains why not others.
    pub limit: &'static str,
    /// True if that holds only without a file system.
    pub is_without_files: bool,
}

const fn possible(
    factor: &'static str,
    levels: Option<&'static [&'static str]>,
    limit: &'static str,
    is_without_files: bool,
) -> Possible {
    Possible { factor, levels, limit, is_without_files }
}

/// Factors of which a simulated stack cannot do every level.
pub const LEVELS: &[Possible] = &[
    possible("external_journal", Some(&["false"]), "external_journal", false),
    possible("engine", None, "engine", true),
    possible("direct", Some(&["true"]), "page_cache", true),
    possible("cache", Some(&["cold", "as_is"]), "warm_cache", true),
    possible("memory_limit", Some(&["none"]), "memory_limit", true),
    possible("lock", Some(&["none"]), "lock", false),
];

/// A factor whose levels are all the same on a simulated stack.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "AlikeLevels")]
pub struct Alike {
    /// The factor.
    pub factor: &'static str,
    /// The levels that are the same; none: all of them.
    pub levels: &'static [&'static str],
    /// Reason.
    pub reason: &'static str,
    /// Advice: a workload to use instead.
    pub hint: &'static str,
    /// True if that holds only without a file system.
    pub is_without_files: bool,
}

const fn alike(factor: &'static str, reason: &'static str, is_without_files: bool) -> Alike {
    let hint = "hold it at one level, or use --on loop:1g";
    Alike { factor, levels: &[], reason, hint, is_without_files }
}

/// Engines whose files are plain ones (`iolab_real::Engine`).
const ENGINES_ALIKE: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "splice",
    "io_uring",
    "io_uring_fixed",
    "io_uring_sqpoll",
    "io_uring_poll",
    "io_uring_fixed_sqpoll",
    "io_uring_fixed_poll",
    "io_uring_sqpoll_poll",
    "io_uring_fixed_sqpoll_poll",
    "libaio",
    "posixaio",
];

/// Factors that are accepted at one level and cannot be compared.
pub const ALIKE: &[Alike] = &[
    Alike {
        factor: "engine",
        levels: ENGINES_ALIKE,
        reason: "all engines that neither map files nor open streams submit alike",
        hint: "compare one of them with mmap, hold it at one level, or use --on loop:1g",
        is_without_files: false,
    },
    alike("workers_as", "threads and processes are alike", false),
    alike("verify", "comparing what was read takes no simulated time", false),
    alike("vectors", "parts of a record cost nothing", false),
    alike("preallocate", "there is no file system that would allocate", true),
    alike(
        "wbt_lat_usec",
        "files are direct, and write-back throttling holds back buffered writes only",
        true,
    ),
    Alike {
        factor: "flush",
        levels: &["fsync", "fdatasync"],
        reason: "files have no metadata of their own",
        hint: "compare one of them with sync_file_range, or use --on loop:1g",
        is_without_files: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_that_is_not_possible_has_its_reason() {
        for Possible { factor, limit, .. } in LEVELS {
            assert!(LIMITS.iter().any(|known| known.code == *limit), "{factor}: {limit}");
        }
        for (index, Limit { code, reason, hint }) in LIMITS.iter().enumerate() {
            assert!(!reason.ends_with('.') && !hint.is_empty(), "{code}");
            assert!(LIMITS[..index].iter().all(|other| other.code != *code), "{code} twice");
        }
    }
}
