//! Data of simulated files: whatever happens to them, they are those of plain vectors of bytes; and
//! a file system that is wrong is found out.

mod twins;

use twins::broken::{Broken, FAULTS, Fault};
use twins::bytes::Twin;
use twins::lanes::Lanes;
use twins::mounted::made;

/// File systems with options of mkfs and mount that change what becomes of data.
const MOUNTS: [(&str, &str, &str); 18] = [
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

/// Number of seeds for each mount (`IOLAB_TWINS`), and of steps for each seed.
fn effort() -> (u64, u64) {
    let text = std::env::var("IOLAB_TWINS").ok();
    (text.and_then(|text| text.parse().ok()).unwrap_or(4), 400)
}

/// First difference of a run, after so many steps.
fn difference(
    (name, mkfs, mount): (&str, &str, &str),
    fault: Fault,
    seed: u64,
) -> Result<(), String> {
    let mut twin = Twin::new(Box::new(Broken { inner: made(name, mkfs, mount), fault }), seed);
    for step in 0..effort().1 {
        let told = |what| format!("{name} {mkfs} {mount} seed {seed} step {step}: {what}");
        twin.step().map_err(told)?;
    }
    twin.read_all().map_err(|what| format!("{name} {mkfs} {mount} seed {seed} at the end: {what}"))
}

#[test]
fn files_hold_what_was_written_to_them() {
    let mut found = Vec::new();
    for mount in MOUNTS {
        for seed in 0..effort().0 {
            found.extend(difference(mount, Fault::Nothing, seed).err());
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Flushed data survive power cuts, byte by byte, where unwritten blocks are known as such on the
/// device and data need no log.
#[test]
fn flushed_data_survive_power_cuts() {
    let mut found = Vec::new();
    let mounts = [
        ("ext3", "", ""),
        ("ext4", "", ""),
        ("ext4", "-b 1024", ""),
        ("ext4", "-b 2048", "nodelalloc"),
        ("xfs", "", ""),
    ];
    for (name, mkfs, mount) in mounts {
        for seed in 0..10 * effort().0 {
            let mut twin = Twin::new(made(name, mkfs, mount), seed);
            let cuts = (0..3).try_for_each(|_| {
                (0..20).try_for_each(|_| twin.step())?;
                twin.lose_power()
            });
            let told = |what| format!("{name} {mkfs} {mount} seed {seed}: {what}");
            found.extend(cuts.map_err(told).err());
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Processes work on one file at the same time, through the cache, past it and by mappings: each
/// finds what is there, and changes nothing else.
#[test]
fn processes_that_share_a_file_find_what_is_there() {
    let mut found = Vec::new();
    for (name, mkfs, mount) in MOUNTS {
        for seed in 0..effort().0 {
            let what = Lanes::new(made(name, mkfs, mount), seed).go(150);
            let told = |what| format!("{name} {mkfs} {mount} seed {seed}: {what}");
            found.extend(what.map_err(told).err());
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A file that is larger than memory, written record by record in random order, and read.
#[test]
fn random_records_of_a_file_that_is_larger_than_memory_come_back() {
    let mut found = Vec::new();
    for (name, mkfs, mount) in MOUNTS {
        for record in [1024, 2048, 3072, 4096] {
            let what = twins::bytes::larger_than_memory(made(name, mkfs, mount), record);
            let told = |what| format!("{name} {mkfs} {mount} {record}: {what}");
            found.extend(what.map_err(told).err());
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A mapped file that is larger than memory, written again and again, and read.
#[test]
fn a_mapped_file_that_is_larger_than_memory_holds_what_was_stored_last() {
    let mut found = Vec::new();
    for (name, mkfs, mount) in MOUNTS {
        let what = twins::bytes::mapped_and_larger_than_memory(made(name, mkfs, mount));
        found.extend(what.map_err(|what| format!("{name} {mkfs} {mount}: {what}")).err());
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A test that finds nothing wrong must be able to: each fault is found by some seed, except where
/// there is nothing to be wrong about.
#[test]
fn a_wrong_file_system_is_found_out() {
    let cannot_be = |(name, mkfs, _): (&str, &str, &str), fault| match fault {
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
