//! Data of simulated files: whatever happens to them, they are those of plain vectors of bytes; and
//! a file system that is wrong is found out.

mod twins;

use twins::broken::{Broken, FAULTS, Fault};
use twins::bytes::Twin;
use twins::lanes::Lanes;
use twins::mounted::{Mount, made};

/// File systems with options of mkfs and mount that change what becomes of data.
const MOUNTS: [Mount; 18] = [
    ("ext2", "", ""),
    ("ext2", "-b 1024", ""),
    ("ext3", "", ""),
    ("ext3", "-b 1024", "data=journal"),
    ("ext4", "", ""),
    ("ext4", "-b 1024", ""),
    ("ext4", "-b 2048", "nodelalloc"),
    ("ext4", "", "data=journal"),
    ("ext4", "", "nodelalloc,data=writeback"),
    ("xfs", "", ""),
    ("ufs", "", ""),
    ("ufs", "", "forcedirectio"),
    ("vxfs", "", ""),
    ("vxfs", "", "mincache=direct"),
    ("qfs", "", ""),
    ("zfs", "", ""),
    ("zfs", "-O recordsize=8k", ""),
    ("zfs", "-O recordsize=1m", ""),
];

/// Steps for each seed.
const STEPS: u64 = 400;

/// First difference of a run, after so many steps.
fn difference(mount: Mount, fault: Fault, seed: u64) -> Result<(), String> {
    let mut twin = Twin::new(Box::new(Broken { inner: made(mount), fault }), seed);
    for step in 0..STEPS {
        twin.step().map_err(|what| format!("step {step}: {what}"))?;
    }
    twin.read_all().map_err(|what| format!("at the end: {what}"))
}

/// Lists what is wrong on these mounts at these values: seeds, or sizes of records.
fn assert_right(mounts: &[Mount], values: &[u64], run: impl Fn(Mount, u64) -> Result<(), String>) {
    let all = mounts.iter().flat_map(|mount| values.iter().map(move |value| (*mount, *value)));
    let wrong: Vec<_> = all
        .filter_map(|(mount, value)| {
            run(mount, value).err().map(|what| format!("{mount:?} at {value}: {what}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// So many seeds for each that `IOLAB_TWINS` asks for.
fn seeds(share: u64) -> Vec<u64> {
    let asked = std::env::var("IOLAB_TWINS").ok().and_then(|text| text.parse().ok());
    (0..share * asked.unwrap_or(4)).collect()
}

#[test]
fn files_hold_what_was_written_to_them() {
    assert_right(&MOUNTS, &seeds(1), |mount, seed| difference(mount, Fault::Nothing, seed));
}

/// Flushed data survive power cuts, byte by byte, where unwritten blocks are known as such on the
/// device and data need no log.
#[test]
fn flushed_data_survive_power_cuts() {
    let mounts = [
        ("ext3", "", ""),
        ("ext4", "", ""),
        ("ext4", "-b 1024", ""),
        ("ext4", "-b 2048", "nodelalloc"),
        ("xfs", "", ""),
    ];
    assert_right(&mounts, &seeds(10), |mount, seed| {
        let mut twin = Twin::new(made(mount), seed);
        (0..3).try_for_each(|_| {
            (0..20).try_for_each(|_| twin.step())?;
            twin.lose_power()
        })
    });
}

/// Processes work on one file at the same time, through the cache, past it and by mappings: each
/// finds what is there, and changes nothing else.
#[test]
fn processes_that_share_a_file_find_what_is_there() {
    assert_right(&MOUNTS, &seeds(1), |mount, seed| Lanes::new(made(mount), seed).go(150));
}

/// A file that is larger than memory, written record by record in random order, and read.
#[test]
fn random_records_of_a_file_that_is_larger_than_memory_come_back() {
    assert_right(&MOUNTS, &[1024, 2048, 3072, 4096], |mount, record| {
        twins::bytes::larger_than_memory(made(mount), record)
    });
}

/// A mapped file that is larger than memory, written again and again, and read.
#[test]
fn a_mapped_file_that_is_larger_than_memory_holds_what_was_stored_last() {
    assert_right(&MOUNTS, &[4 << 10, 16 << 10], |mount, record| {
        twins::bytes::mapped_and_larger_than_memory(made(mount), record)
    });
}

/// A test that finds nothing wrong must be able to: each fault is found by some seed, except where
/// there is nothing to be wrong about.
#[test]
fn a_wrong_file_system_is_found_out() {
    let cannot_be = |(name, mkfs, _): Mount, fault| match fault {
        // No block is given before it is written.
        Fault::Unwritten => ["ext2", "ext3", "zfs"].contains(&name),
        // No record lies wholly in what is given back, or nothing is given back at all.
        Fault::Kept => mkfs == "-O recordsize=1m" || name == "ufs",
        _ => false,
    };
    for mount in MOUNTS {
        for fault in FAULTS {
            let is_found = (0..30).any(|seed| difference(mount, fault, seed).is_err());
            assert_ne!(is_found, cannot_be(mount, fault), "{mount:?} {fault:?}");
        }
    }
}
