//! QFS on simulated stacks: requests, throttle, alignment, devices, locks.

mod solaris_worker;

use iolab_model::op::{Access, Handle, Token};
use iolab_model::{Bytes, Lane, Ns, Op, Seed, Submission};
use iolab_sim::files::{FilesMade, FilesOverrides};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimTarget, Simulation};
use proptest::prelude::*;
use solaris_worker::worker::{
    BLOCK, KIB, MIB, Worker, active, built, data_seeks, queue_and_files, requests, sizes,
};

/// A device of metadata of its own: its rows stand in front of the tables.
const META: &str = "meta_device.device.profile = \"atlas3\"\n\
                    meta_device.queue = { scheduler = \"noop\" }\n";

/// A QFS with a device of metadata, on a device that sorts and merges nothing.
fn qfs(device: &str, max_sectors_kb: u32, files: &str) -> SimTarget {
    let depth = if device == "fixed-100us" { 32 } else { 64 };
    let rest = queue_and_files(max_sectors_kb, depth, "qfs", files);
    built(&format!("device.profile = {device:?}\n{META}{rest}"))
}

/// Sizes of the requests of 256 KiB and more of a file of 16 MiB, in KiB: of its writes, and of
/// its reads.
fn long_requests(files: &str) -> (Vec<u64>, Vec<u64>) {
    let target = qfs("fixed-100us", 1024, &format!("memory = \"128m\"\n{files}"));
    let mut worker = Worker::new(&target);
    worker.make(16 * MIB);
    let long = |is_write| -> Vec<u64> {
        sizes(&target, is_write).into_iter().filter(|&kib| kib >= 256).collect()
    };
    let writes = long(true);
    target.prepare_cache(false);
    worker.open(1, Access::Plain, false);
    target.take_events();
    worker.read(1, 0, 16 * MIB / BLOCK);
    (writes, long(false))
}

#[test]
fn requests_are_as_long_as_the_release_has_them() {
    // 112 blocks of 8 KiB: 18 requests of 896 KiB, and the rest.
    let (writes, reads) = long_requests("mount_options = [\"maxcontig=112\"]");
    let whole = |all: &[u64], kib| all.iter().filter(|&&size| size == kib).count();
    assert_eq!(whole(&writes, 896), 18, "{writes:?}");
    assert!(whole(&reads, 896) >= 17, "{reads:?}");
    let nine = "kernel = \"solaris-9\"";
    let (writes, reads) = long_requests(nine);
    assert_eq!(whole(&writes, 512), 32, "{writes:?}");
    assert!(whole(&reads, 1024) >= 14, "{reads:?}");
    let tuned = "mount_options = [\"readahead=448,writebehind=896\"]";
    let (writes, reads) = long_requests(&format!("{nine}\n{tuned}"));
    assert_eq!(whole(&writes, 896), 18, "{writes:?}");
    assert!(whole(&reads, 448) >= 34, "{reads:?}");
}

#[test]
fn wr_throttle_bounds_the_bytes_on_their_way() {
    for (kib, clusters) in [(256, 3.0), (1024, 9.0), (4096, 33.0)] {
        let files = format!("memory = \"64m\"\nmount_options = [\"wr_throttle={kib}\"]");
        let target = qfs("scsi7200-1995", 128, &files);
        Worker::new(&target).make(32 * MIB);
        let mut seen = requests(&target, true);
        seen.retain(|&(.., kib)| kib > 8);
        let (lowest, mean, highest) = active(&seen);
        // More than the mark is looked for before each write of 8 KiB: one cluster above it.
        assert!(highest <= clusters && highest > clusters - 1.0, "{kib} KiB: {highest}");
        // One mark: a completion that goes below it lets the writer go on at once.
        assert!(lowest >= clusters - 2.1 && mean > clusters - 1.6, "{kib} KiB: {lowest}, {mean}");
    }
}

/// Reads and writes of 8 KiB that writes of so many bytes at random blocks cost.
fn at_random_blocks(bytes: u64) -> (usize, usize) {
    let target = qfs("fixed-100us", 128, "memory = \"64m\"");
    let mut worker = Worker::new(&target);
    worker.make(16 * MIB);
    target.prepare_cache(false);
    worker.open(1, Access::Plain, false);
    target.take_events();
    for step in 0..1000 {
        // 771 and 1024 have no common divisor: every second block, each once.
        let block = step * 771 % 1024 * 2;
        worker.ask(Op::write(Handle(1), Bytes(block * BLOCK), Bytes(bytes)));
    }
    worker.ask(Op::Fsync { handle: Handle(1) });
    let events = target.take_events();
    let number = |write: u8| {
        let is_one = |event: &&iolab_model::TraceEvent| {
            event.action.name() == "D"
                && event.device == 0
                && event.operation.0 & 1 == write
                && event.sectors == 16
        };
        events.iter().filter(is_one).count()
    };
    (number(0), number(1))
}

#[test]
fn a_part_of_a_block_is_read_before_it_is_written() {
    assert_eq!(at_random_blocks(4 * KIB), (1000, 1000));
    assert_eq!(at_random_blocks(8 * KIB), (0, 1000));
}

/// Rows of a RAID 5 of 4 + 1 disks with units of 64 KiB that a mkfile of 8 MiB writes: whole ones,
/// and ones in part.
fn rows(dau_kib: u64) -> (f64, f64) {
    let files = format!(
        "memory = \"64m\"\nmkfs_options = [\"-a {dau_kib}\"]\nmount_options = [\"maxcontig=32\"]"
    );
    let rest = queue_and_files(2048, 64, "qfs", &files);
    let target = built(&format!(
        "{META}{rest}[volume]\nmembers = 5\n\
         parameters = {{ layout = \"raid5\", unit_bytes = 65536 }}\n\
         member.device.profile = \"fixed-100us\"\n"
    ));
    Worker::new(&target).make(8 * MIB);
    let counters = target.inspect(Simulation::counters);
    let sum = |part: &str| -> f64 {
        counters.iter().filter(|(name, _)| name.ends_with(part)).map(|(_, count)| count).sum()
    };
    (sum("rows_full"), sum("rows_rmw") + sum("rows_rcw"))
}

#[test]
fn an_allocation_unit_of_a_stripe_writes_whole_stripes() {
    assert_eq!(rows(256), (32.0, 0.0), "-a 256 is the stripe");
    let (_, partial) = rows(64);
    assert!(partial >= 32.0, "{partial} rows in part: data begin at 64 KiB");
}

#[test]
fn the_device_of_metadata_gets_all_of_them() {
    let target = qfs("atlas3", 128, "memory = \"64m\"");
    let mut worker = Worker::new(&target);
    worker.make(8 * MIB);
    worker.ask(Op::SyncAll);
    let events = target.take_events();
    let kib = |device| -> u64 {
        let is_one = |event: &&iolab_model::TraceEvent| {
            event.action.name() == "D" && event.device == device && event.operation.0 & 1 == 1
        };
        events.iter().filter(is_one).map(|event| u64::from(event.sectors) / 2).sum()
    };
    assert_eq!(kib(0), 8 * KIB, "data alone");
    assert!(kib(1) > 0, "inodes, maps, entries");
}

#[test]
fn qwrite_lets_two_writers_into_a_file() {
    let overlap = |mount: &str| {
        let files = format!("memory = \"64m\"\nmount_options = [\"forcedirectio{mount}\"]");
        let target = qfs("fixed-100us", 128, &files);
        let mut worker = Worker::new(&target);
        worker.make(MIB);
        let mut worker = Worker::deep(&target, 2);
        worker.open(1, Access::Plain, false);
        target.take_events();
        let now = worker.lane.now();
        let batch = [0_u64, 64].map(|block| Submission {
            token: Token(block as u32),
            op: Op::write(Handle(1), Bytes(block * BLOCK), Bytes(BLOCK)),
            intended: now,
            is_timed: true,
        });
        let mut done = Vec::new();
        worker.lane.submit_batch(now, &batch, &mut done);
        while done.len() < 2 {
            worker.lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
        }
        let mut all = requests(&target, true);
        all.retain(|&(.., kib)| kib == 8);
        all.sort();
        assert_eq!(all.len(), 2, "{all:?}");
        all[1].0 < all[0].1
    };
    assert!(!overlap(""), "one writer at a time");
    assert!(overlap(",qwrite"), "both at once");
}

#[test]
fn a_device_of_metadata_is_refused_where_it_has_no_meaning() {
    let built = |head: &str, files: &str| {
        let text = format!("name = \"x\"\ndevice.profile = \"atlas3\"\n{head}[files]\n{files}\n");
        let stack = Stack::parse("x.toml", &text).unwrap();
        stack.build(&QueueOverrides::default(), Seed(1)).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(built(META, "fs = \"qfs\""), Ok(()));
    // A study without a file system leaves the device of metadata alone.
    let text = format!("name = \"x\"\ndevice.profile = \"atlas3\"\n{META}[files]\nfs = \"qfs\"\n");
    let made = FilesMade { fs: "none".into(), ..FilesMade::default() };
    let files = FilesOverrides { made: Some(made), ..FilesOverrides::default() };
    let bare = QueueOverrides { files, ..QueueOverrides::default() };
    assert!(Stack::parse("x.toml", &text).unwrap().build(&bare, Seed(1)).is_ok());
    let told = built(META, "fs = \"ufs\"").unwrap_err();
    assert!(told.contains("meta_device with fs \"ufs\"") && told.contains("it: qfs"), "{told}");
    let log = META.replace("meta", "log");
    let told = built(&log, "fs = \"qfs\"").unwrap_err();
    assert!(told.contains("log_device with fs \"qfs\"") && told.contains("ufs, vxfs"), "{told}");
    let told = built(&format!("{META}{log}"), "fs = \"qfs\"").unwrap_err();
    assert!(told.contains("log_device and meta_device"), "{told}");
    let told = built(META, "").unwrap_err();
    assert!(told.contains("the stack names none"), "{told}");
    let told = built("", "fs = \"qfs\"\nmkfs_options = [\"-a 512\"]").unwrap_err();
    assert!(told.contains("add meta_device to the stack"), "{told}");
    let told = built("", "fs = \"qfs\"\nkernel = \"6.18\"").unwrap_err();
    assert!(told.contains("qfs belongs to Solaris"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Metadata on a device of their own never add seeks to the data disk.
    #[test]
    fn a_device_of_metadata_takes_seeks_from_the_data_disk(
        mount in prop::sample::select(vec!["rw", "sync_meta=1"]),
        steps in prop::collection::vec((0_u32..6, 0_u64..64, 1_u64..9), 5..60),
    ) {
        // The same units of allocation: those of devices of type md.
        let files = format!("mkfs_options = [\"-t md\"]\nmount_options = [{mount:?}]");
        let among = data_seeks("qfs", "", &files, &steps);
        let beside = data_seeks("qfs", META, &files, &steps);
        prop_assert!(beside <= among, "{beside} seeks with meta_device, {among} without");
    }
}
