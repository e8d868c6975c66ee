//! Checks of QFS that need no time: DAUs, requests, throttle, options, free space.

use super::QfsFs;
use super::geometry::{Family, Geometry};
use super::options::{MKFS, MOUNT};
use super::pools::Pools;
use crate::api::block::{DeviceId, FileRun, NodeId, Place};
use crate::api::context::{Caller, Context};
use crate::api::file_system::{
    ClosedHandle, Entry, FileSystem, Lock, NodeKind, Promise, Step, SyncNeed, Touch, Use, Write,
};
use crate::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use crate::api::options::FsOptions;
use iolab_model::{Bytes, Ns};

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
const B: u64 = 8 * KIB;
/// Words of sammkfs for one device of data and metadata together, and of the release.
const EARLY: Solaris = Solaris(8);
const LATE: Solaris = Solaris(9);

/// Two devices: of data, and 16 MiB of metadata.
fn spec(release: Solaris, mkfs: &str, mount: &str) -> MakeSpec {
    let device = |bytes| DeviceFacts {
        bytes,
        is_rotational: true,
        io_min_bytes: 512,
        io_opt_bytes: 0,
        stripe: None,
    };
    MakeSpec {
        memory_bytes: 128 * MIB,
        map_cost: Ns(3_000),
        devices: vec![device(1 << 30), device(16 * MIB)],
        kernel: Kernel::DEFAULT,
        mkfs: FsOptions::mkfs("qfs", MKFS, &[mkfs.to_owned()]).unwrap(),
        mount: FsOptions::mount("qfs", MOUNT, &[mount.to_owned()]).unwrap(),
        cpus: 1,
        solaris: release,
        system: FsOptions::default(),
    }
}

fn made(mkfs: &str, mount: &str) -> QfsFs {
    QfsFs::make(&spec(EARLY, mkfs, mount)).unwrap()
}

/// Metadata among the data (`ms`).
fn together(mkfs: &str, bytes: u64) -> QfsFs {
    let mut spec = spec(EARLY, mkfs, "");
    spec.devices.truncate(1);
    spec.devices[0].bytes = bytes;
    QfsFs::make(&spec).unwrap()
}

fn refused(release: Solaris, mkfs: &str, mount: &str) -> String {
    QfsFs::make(&spec(release, mkfs, mount)).map(|_| ()).unwrap_err().to_string()
}

fn at(ms: u64) -> Context {
    Context::new(Ns::from_ms(ms), Caller::default())
}

fn file(fs: &mut QfsFs, name: &str) -> NodeId {
    let entry = Entry { directory: fs.root(), name };
    fs.create(&mut at(1), entry, NodeKind::File).unwrap()
}

/// A write through the cache; answers its effects.
fn write(fs: &mut QfsFs, node: NodeId, (start, end): (u64, u64), size: u64) -> Context {
    let mut cx = at(2);
    let first = start / KIB;
    let run = FileRun { node, first, count: end.div_ceil(KIB) - first };
    let (start, end) = (Bytes(start), Bytes(end));
    let write = Write { run, size: Bytes(size), start, end, is_direct: false };
    fs.prepare(&mut cx, write).unwrap();
    fs.copied(&mut cx, node, start, end);
    cx
}

/// Writes a file in blocks of 8 KiB and closes it; answers what it sends off, in KiB: place,
/// length.
fn mkfile(fs: &mut QfsFs, node: NodeId, bytes: u64) -> Vec<(u64, u64)> {
    let mut sent = Vec::new();
    for at in (0..bytes).step_by(B as usize) {
        let cx = write(fs, node, (at, at + B), at);
        sent.extend(cx.effects.push.iter().map(|run| (run.first, run.count)));
    }
    let mut cx = at(3);
    let closed = ClosedHandle { was_writer: true, writers: 0, handles: 0, dirty_blocks: 0 };
    fs.closed(&mut cx, node, closed);
    sent.extend(cx.effects.push.iter().map(|run| (run.first, run.count)));
    sent
}

/// Places of a file, in KiB, with lengths.
fn extents(fs: &QfsFs, node: NodeId) -> Vec<(u64, u64)> {
    let places = fs.node(node).unwrap().extents.iter();
    places.map(|extent| (extent.place.block().unwrap().1, extent.count)).collect()
}

#[test]
fn writes_leave_in_requests_of_maxcontig_or_writebehind() {
    for (release, mount, kib) in [
        (EARLY, "maxcontig=112", 896),
        (EARLY, "maxcontig=64,wr_throttle=16384", 512),
        (EARLY, "", 128),
        (LATE, "writebehind=896", 896),
        (LATE, "", 512),
    ] {
        let mut fs = QfsFs::make(&spec(release, "-a 512", mount)).unwrap();
        let node = file(&mut fs, "testfile");
        let sent = mkfile(&mut fs, node, 14 * MIB);
        let whole: Vec<_> = (0..14 * KIB / kib).map(|number| (number * kib, kib)).collect();
        assert_eq!(sent, whole, "{mount}");
        let rest = 14 * KIB % kib;
        assert_eq!(rest, 0);
    }
}

#[test]
fn a_writer_that_jumps_sends_off_what_waited() {
    let mut fs = made("-a 512", "maxcontig=64");
    let node = file(&mut fs, "a");
    mkfile(&mut fs, node, MIB);
    let sent = |cx: Context| -> Vec<_> {
        cx.effects.push.iter().map(|run| (run.first, run.count)).collect()
    };
    assert_eq!(sent(write(&mut fs, node, (0, B), MIB)), []);
    assert_eq!(sent(write(&mut fs, node, (B, 2 * B), MIB)), []);
    assert_eq!(sent(write(&mut fs, node, (64 * B, 65 * B), MIB)), [(0, 16)]);
}

#[test]
fn reads_go_ahead_by_maxcontig_or_readahead() {
    let clusters = |release, mount: &str| {
        let fs = QfsFs::make(&spec(release, "", mount)).unwrap();
        let clusters = fs.facts().clusters.unwrap();
        (clusters.bytes / KIB, clusters.read_bytes.map(|bytes| bytes / KIB))
    };
    assert_eq!(clusters(EARLY, "maxcontig=112"), (896, None));
    assert_eq!(clusters(EARLY, ""), (128, None));
    assert_eq!(clusters(LATE, ""), (1024, Some(1024)));
    assert_eq!(clusters(LATE, "readahead=448"), (448, Some(448)));
    assert_eq!(clusters(LATE, "readahead=0"), (0, Some(0)));
}

#[test]
fn every_dau_begins_at_a_multiple_of_its_length() {
    for kib in [8, 64, 512, 896, 65_528] {
        let mut fs = made(&format!("-a {kib}"), "");
        let nodes = ["a", "b", "c"].map(|name| file(&mut fs, name));
        // In turn, so that DAUs of different files are neighbours.
        for part in 0..2 {
            for node in nodes {
                let from = part * kib * KIB;
                write(&mut fs, node, (from, from + kib * KIB), from);
            }
        }
        let mut all: Vec<_> = nodes.iter().flat_map(|node| extents(&fs, *node)).collect();
        assert!(all.iter().all(|(at, count)| at % kib == 0 && count % kib == 0), "{all:?}");
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{all:?}");
    }
}

#[test]
fn the_least_that_a_file_gets_is_a_dau() {
    for (mkfs, bytes, kib) in [
        ("-a 512", 1, 512),
        ("-a 512", 512 * KIB + 1, 1024),
        ("", 1, 64),
        ("-t md", 1, 4),
        ("-t md -a 16", 33 * KIB, 32 + 16),
        ("-t md", 32 * KIB, 32),
    ] {
        let mut fs = made(mkfs, "");
        let node = file(&mut fs, "a");
        let free = fs.space().free;
        for at in (0..bytes).step_by(B as usize) {
            write(&mut fs, node, (at, (at + B).min(bytes)), at);
        }
        assert_eq!(free - fs.space().free, kib, "{mkfs}: {bytes} bytes");
        fs.truncate(&mut at(4), node, Bytes(bytes), Bytes(0)).unwrap();
        assert_eq!(fs.space().free, free, "{mkfs}: all of it comes back");
    }
}

#[test]
fn a_file_that_begins_with_a_large_dau_has_no_small_ones() {
    let blocks = |first: u64| {
        let mut fs = made("-t md -a 64", "");
        let node = file(&mut fs, "a");
        write(&mut fs, node, (0, first), 0);
        fs.node(node).unwrap().extents.blocks()
    };
    assert_eq!([4 * KIB, 32 * KIB, 60 * KIB, 64 * KIB].map(blocks), [4, 32, 96, 64]);
    // 33 KiB after 8 KiB: the beginning is small already.
    let mut fs = made("-t md -a 64", "");
    let node = file(&mut fs, "a");
    write(&mut fs, node, (0, B), 0);
    write(&mut fs, node, (B, 128 * KIB), B);
    assert_eq!(fs.node(node).unwrap().extents.blocks(), 32 + 2 * 64);
}

#[test]
fn the_throttle_is_looked_at_by_each_write_and_has_one_mark() {
    let held = |release, mount: &str| {
        let mut fs = QfsFs::make(&spec(release, "", mount)).unwrap();
        let node = file(&mut fs, "a");
        let cx = write(&mut fs, node, (0, B), 0);
        cx.effects.throttle.map(|hold| (hold.above.0 / KIB, hold.until.0 / KIB))
    };
    assert_eq!(held(EARLY, ""), Some((16_384, 16_384)));
    assert_eq!(held(EARLY, "wr_throttle=256"), Some((256, 256)));
    // 2 % of 128 MiB are 2.56 MiB.
    assert_eq!(held(LATE, ""), Some((3072, 3072)));
    assert_eq!(held(LATE, "wr_throttle=524288"), Some((524_288, 524_288)));
    assert_eq!(held(LATE, "wr_throttle=0"), None);
}

#[test]
fn qwrite_lets_writers_in_together() {
    for (mount, lock) in [("", Lock::Exclusive), ("qwrite", Lock::Shared)] {
        let fs = made("", mount);
        for usage in [Use::Write, Use::DirectWrite, Use::DirectOverwrite] {
            assert_eq!(fs.lock(usage), lock, "{usage:?} {mount}");
        }
        assert_eq!(fs.lock(Use::Read), Lock::Shared);
    }
}

#[test]
fn options_of_mount_reach_their_rules() {
    let bypass = |mount: &str| made("", mount).facts().clusters.unwrap().bypass;
    assert!(bypass("forcedirectio").takes(Bytes(512), false));
    assert!(!bypass("").takes(Bytes(1 << 30), true));
    for (mount, changes) in [("", true), ("noatime", false)] {
        let mut fs = made("", mount);
        let node = file(&mut fs, "a");
        let mut cx = at(50);
        fs.touch(&mut cx, node, Touch::Read);
        assert_eq!(!cx.effects.dirtied.is_empty(), changes, "{mount}");
    }
    made("-i 1000 -P", "stripe=0,mm_stripe=1,high=80,low=70,nosam,rw,largefiles,defaults");
}

/// Devices of all metadata that creating, growing, renaming and removing files touches.
fn metadata_devices(fs: &mut QfsFs) -> Vec<u8> {
    let mut all = Vec::new();
    let root = fs.root();
    let mut gather = |cx: Context| {
        all.extend(cx.effects.reads.iter().chain(&cx.effects.dirtied).map(|run| run.device.0));
    };
    for number in 0..200 {
        let name = format!("file{number}");
        let mut cx = at(number);
        let node = fs.create(&mut cx, Entry { directory: root, name: &name }, NodeKind::File);
        gather(cx);
        let node = node.unwrap();
        gather(write(fs, node, (0, 640 * KIB), 0));
        gather(write(fs, node, (640 * KIB, 2 * MIB), 640 * KIB));
        let mut cx = at(number);
        fs.map_cost(&mut cx, FileRun { node, first: 1024, count: 8 });
        if number % 3 == 0 {
            fs.unlink(&mut cx, Entry { directory: root, name: &name }, node).unwrap();
            fs.evict(&mut cx, node);
        }
        gather(cx);
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn all_metadata_lie_on_their_own_device_if_there_is_one() {
    assert_eq!(metadata_devices(&mut made("-a 64", "")), [1]);
    assert_eq!(metadata_devices(&mut made("-a 16 -t md", "")), [1]);
    assert_eq!(metadata_devices(&mut together("-a 16", 1 << 30)), [0]);
}

#[test]
fn indirect_blocks_begin_behind_eight_large_daus() {
    let count = |mkfs: &str, bytes: u64| {
        let mut fs = made(mkfs, "");
        let node = file(&mut fs, "a");
        write(&mut fs, node, (0, bytes), 0);
        fs.node(node).unwrap().indirect.len()
    };
    assert_eq!(count("-a 8", 64 * KIB), 0);
    assert_eq!(count("-a 8", 72 * KIB), 1);
    assert_eq!(count("-a 8", (8 + 2048) * B), 1);
    assert_eq!(count("-a 8", (8 + 2049) * B), 2);
    let mut fs = made("-a 8", "");
    let node = file(&mut fs, "a");
    write(&mut fs, node, (0, 20 * MIB), 0);
    fs.truncate(&mut at(4), node, Bytes(20 * MIB), Bytes(B)).unwrap();
    assert!(fs.node(node).unwrap().indirect.is_empty());
}

#[test]
fn metadata_wait_in_memory_and_with_sync_meta_they_are_written_in_order() {
    let created = |mount: &str| {
        let mut fs = QfsFs::make(&spec(LATE, "", mount)).unwrap();
        let mut cx = at(1);
        let entry = Entry { directory: fs.root(), name: "a" };
        let node = fs.create(&mut cx, entry, NodeKind::File).unwrap();
        let steps = fs.poll(&mut at(1)).map(|job| job.steps);
        (fs, node, cx.effects.wait.is_some(), steps)
    };
    let (mut fs, node, waits, steps) = created("");
    assert!(!waits && steps.is_none());
    let SyncNeed::Commit(tid) = fs.sync(&mut at(2), node, Promise::Full) else { panic!() };
    let job = fs.poll(&mut at(2)).unwrap();
    assert!(matches!(job.steps[0], Step::Dirtied(run) if run.device == DeviceId(1)));
    fs.job_done(&mut at(3), job.id);
    assert!(fs.durable() >= tid);
    let (fs, node, waits, steps) = created("sync_meta=1");
    let inode = fs.inode_block(node.0);
    let steps = steps.unwrap();
    // The inode is there before the entry that points at it.
    assert!(waits && steps[..2] == [Step::Dirtied(inode), Step::Wait], "{steps:?}");
    assert!(matches!(steps[2..], [Step::Dirtied(_), Step::Wait]), "{steps:?}");
}

#[test]
fn a_hole_is_whole_daus_that_nothing_was_written_to() {
    let mut fs = made("-a 64", "");
    let node = file(&mut fs, "a");
    mkfile(&mut fs, node, MIB);
    write(&mut fs, node, (3 * MIB, 3 * MIB + B), MIB);
    let hole = fs.map(FileRun { node, first: 1024, count: 4096 });
    assert_eq!((hole.place, hole.count), (Place::Hole, 2048));
    let free = fs.space().free;
    let punched = FileRun { node, first: 32, count: 200 };
    fs.reshape(&mut at(4), punched, crate::api::file_system::Reshape::Punch, Bytes(MIB)).unwrap();
    assert_eq!(fs.space().free - free, 2 * 64, "DAUs that the range covers in part stay");
    assert!(fs.map(FileRun { node, first: 32, count: 8 }).place.block().is_some());
}

#[test]
fn refusals_name_the_option_and_its_range() {
    let mkfs =
        |text: &str| FsOptions::mkfs("qfs", MKFS, &[text.to_owned()]).unwrap_err().to_string();
    assert!(mkfs("-a 524288").contains("-a=524288: must be 8 to 65528"), "{}", mkfs("-a 524288"));
    assert!(mkfs("-a 512k").contains("must be a number from 8 to 65528"));
    assert!(mkfs("-t mm").contains("must be mr or md"));
    let told = refused(EARLY, "-a 20", "");
    assert!(
        told.contains("-a 20: is no multiple of 8 KiB") && told.contains("16 and 24"),
        "{told}"
    );
    let told = refused(EARLY, "-a 512 -t md", "");
    assert!(told.contains("16, 32 or 64 KiB") && told.contains("-t mr"), "{told}");
    let told = refused(LATE, "", "maxcontig=112");
    assert!(told.contains("maxcontig=112 on solaris-9: is of early releases"), "{told}");
    assert!(told.contains("writebehind"), "{told}");
    let told = refused(EARLY, "", "writebehind=512");
    assert!(told.contains("writebehind=512 on solaris-8: is of later releases"), "{told}");
    assert!(refused(LATE, "", "readahead=20").contains("next are 16 and 24"));
    let told = refused(EARLY, "", "wr_throttle=65536");
    assert!(told.contains("256 to 32768 KiB, the default is 16384"), "{told}");
    assert!(refused(EARLY, "", "wr_throttle=0").contains("256 to 32768"));
    let told = FsOptions::mount("qfs", MOUNT, &["wr_throtle=1".into()]).unwrap_err().to_string();
    assert!(told.contains("did you mean"), "{told}");
    let mut small = spec(EARLY, "-a 8", "");
    small.devices[1].bytes = 64 * KIB;
    let told = QfsFs::make(&small).map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("qfs with a meta_device of 64 KiB: is too small"), "{told}");
    let mut small = spec(EARLY, "-a 65528", "");
    small.devices[0].bytes = 64 * MIB;
    let told = QfsFs::make(&small).map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("qfs on 65536 KiB: is too small"), "{told}");
    let mut alone = spec(EARLY, "-t mr", "");
    alone.devices.truncate(1);
    let told = QfsFs::make(&alone).map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("-t mr: needs a device of metadata"), "{told}");
    alone.mkfs = FsOptions::mkfs("qfs", MKFS, &["-a 512".to_owned()]).unwrap();
    let told = QfsFs::make(&alone).map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("add meta_device"), "{told}");
}

#[test]
fn a_full_file_system_refuses_and_changes_nothing() {
    let mut fs = together("-a 16", 16 * MIB);
    let node = file(&mut fs, "a");
    let free = fs.space().free;
    let run = FileRun { node, first: 0, count: 1 << 20 };
    let (size, end) = (Bytes(0), Bytes(1 << 30));
    let write = Write { run, size, start: Bytes(0), end, is_direct: false };
    assert!(fs.prepare(&mut at(2), write).is_err());
    assert_eq!(fs.space().free, free);
    assert_eq!(fs.map(FileRun { node, first: 0, count: 8 }).place, Place::Hole);
}

#[test]
fn all_of_a_device_can_be_filled_by_files_that_grow_in_turn() {
    for (mkfs, kib) in [("-a 16", 8), ("-a 64", 64), ("-a 32", 24)] {
        let mut fs = together(mkfs, 32 * MIB);
        let nodes = [file(&mut fs, "a"), file(&mut fs, "b"), file(&mut fs, "c")];
        let mut sizes = [0; 3];
        let bytes = kib * KIB;
        'full: loop {
            for (node, size) in nodes.iter().zip(&mut sizes) {
                let run = FileRun { node: *node, first: *size / KIB, count: kib };
                let (start, end) = (Bytes(*size), Bytes(*size + bytes));
                let write = Write { run, size: start, start, end, is_direct: false };
                if fs.prepare(&mut at(2), write).is_err() {
                    break 'full;
                }
                *size += bytes;
            }
        }
        // Less than a DAU, and what small ones and metadata have left of another.
        assert!(fs.space().free < 128 + 64, "{mkfs}: {} units are left", fs.space().free);
        let mut owners = std::collections::BTreeMap::new();
        for node in nodes {
            for (first, count) in extents(&fs, node) {
                for unit in first..first + count {
                    assert_eq!(owners.insert(unit, node), None, "{mkfs}: {unit} has two owners");
                }
            }
        }
    }
}

/// Free DAUs against a vector of bits, over random takes and gives.
#[test]
fn pools_agree_with_a_naive_map() {
    let geometry = Geometry::new(4 * MIB, (32, true), Family::Together).unwrap();
    let mut pools = Pools::new(&geometry);
    let mut free = vec![false; geometry.units as usize];
    free[geometry.data as usize..].fill(true);
    let end = (geometry.data + (geometry.units - geometry.data) / 32 * 32) as usize;
    free[end..].fill(false);
    let mut held: Vec<(u64, u64)> = Vec::new();
    let mut random = 1_u64;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let draw = random >> 33;
        if draw % 5 < 2 && !held.is_empty() {
            let (first, count) = held.swap_remove(draw as usize % held.len());
            pools.give(DeviceId::MAIN, first, count);
            free[first as usize..(first + count) as usize].fill(true);
        } else {
            let count = [4, 16, 32][draw as usize % 3];
            let taken = match count {
                32 => pools.take_large(draw % 4096),
                4 => pools.take_small(draw % 4096, 4),
                _ => pools.take_meta(16).map(|(_, first)| first),
            };
            let Some(first) = taken else { continue };
            let range = first as usize..(first + count) as usize;
            assert!(free[range.clone()].iter().all(|free| *free), "{first} is in use");
            assert!(first.is_multiple_of(count));
            free[range].fill(false);
            held.push((first, count));
        }
        assert_eq!(pools.units(), free.iter().filter(|free| **free).count() as u64);
    }
    for (first, count) in held {
        pools.give(DeviceId::MAIN, first, count);
    }
    // Everything is whole again.
    let mut whole = 0;
    while pools.take_large(0).is_some() {
        whole += 32;
    }
    assert_eq!((whole, pools.units()), (end as u64 - geometry.data, 0));
}
