//! Checks of `VxFS` that need no time: extents, requests, modes of the log, options, free space.

use super::VxFs;
use super::options::{MKFS, MOUNT, Mode, SYSTEM};
use crate::api::block::{FileRun, NodeId, Place};
use crate::api::context::{Caller, Context};
use crate::api::file_system::{
    ClosedHandle, Entry, FileSystem, NodeKind, Promise, Step, SyncNeed, Touch, Write,
};
use crate::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris, StripeFacts};
use crate::api::options::FsOptions;
use crate::fs::free_runs::FreeRuns;
use iolab_model::{Bytes, Ns};

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
const B: u64 = 8 * KIB;

fn spec(bytes: u64, mkfs: &str, mount: &str) -> MakeSpec {
    let device = DeviceFacts {
        bytes,
        is_rotational: true,
        io_min_bytes: 512,
        io_opt_bytes: 0,
        stripe: None,
    };
    MakeSpec {
        memory_bytes: 8 << 30,
        map_cost: Ns(3_000),
        devices: vec![device],
        kernel: Kernel::DEFAULT,
        mkfs: FsOptions::mkfs("vxfs", MKFS, &[mkfs.to_owned()]).unwrap(),
        mount: FsOptions::mount("vxfs", MOUNT, &[mount.to_owned()]).unwrap(),
        cpus: 1,
        solaris: Solaris::DEFAULT,
        system: FsOptions::default(),
    }
}

fn made(bytes: u64, mkfs: &str, mount: &str) -> VxFs {
    VxFs::make(&spec(bytes, mkfs, mount)).unwrap()
}

fn at(ms: u64) -> Context {
    Context::new(Ns::from_ms(ms), Caller::default())
}

fn file(fs: &mut VxFs, name: &str) -> NodeId {
    let entry = Entry { directory: fs.root(), name };
    fs.create(&mut at(1), entry, NodeKind::File).unwrap()
}

/// A write through the cache; answers its effects.
fn write(fs: &mut VxFs, node: NodeId, (start, end): (u64, u64), size: u64) -> Context {
    let mut cx = at(2);
    let first = start / KIB;
    let run = FileRun { node, first, count: end.div_ceil(KIB) - first };
    let (start, end) = (Bytes(start), Bytes(end));
    let write = Write { run, size: Bytes(size), start, end, is_direct: false };
    fs.prepare(&mut cx, write).unwrap();
    fs.copied(&mut cx, node, start, end);
    cx
}

/// Writes a file in blocks of 8 KiB; answers what it sends off, in KiB: place, length.
fn mkfile(fs: &mut VxFs, node: NodeId, bytes: u64) -> Vec<(u64, u64)> {
    let mut sent = Vec::new();
    for at in (0..bytes).step_by(B as usize) {
        let cx = write(fs, node, (at, at + B), at);
        sent.extend(cx.effects.push.iter().map(|run| (run.first, run.count)));
    }
    sent
}

fn close(fs: &mut VxFs, node: NodeId) -> Context {
    let mut cx = at(3);
    let closed = ClosedHandle { was_writer: true, writers: 0, handles: 0, dirty_blocks: 0 };
    fs.closed(&mut cx, node, closed);
    cx
}

fn extents(fs: &VxFs, node: NodeId) -> Vec<(u64, u64)> {
    let places = fs.node(node).unwrap().extents.iter();
    places.map(|extent| (extent.place.block().unwrap().1, extent.count)).collect()
}

#[test]
fn extents_double_the_file_until_they_have_2048_blocks() {
    let mut fs = made(4 << 30, "", "nolog");
    let node = file(&mut fs, "testfile");
    mkfile(&mut fs, node, 500 * MIB);
    // 8 KiB, then 8, 16 ... 1024 KiB double it to 2 MiB; every further one has 2 MiB.
    assert_eq!(fs.node(node).unwrap().allocations, 9 + 498 / 2);
    assert_eq!(extents(&fs, node).len(), 1, "neighbours on an empty device are one extent");
    let mut fs = made(4 << 30, "-o initial_extent_size=1024,max_seqio_extent_size=65536", "nolog");
    let node = file(&mut fs, "testfile");
    mkfile(&mut fs, node, 100 * MIB);
    // 1 MiB, then doubled to 2, 4 ... 64 and 128 MiB.
    assert_eq!(fs.node(node).unwrap().allocations, 8);
}

#[test]
fn a_first_write_of_any_size_gets_a_power_of_two() {
    for (bytes, units) in [(1, 8), (B, 8), (9 * KIB, 16), (100 * KIB, 128), (MIB, 1024)] {
        let mut fs = made(256 * MIB, "", "nolog");
        let node = file(&mut fs, "a");
        write(&mut fs, node, (0, bytes), 0);
        assert_eq!(fs.node(node).unwrap().extents.blocks(), units, "{bytes} bytes");
    }
}

#[test]
fn the_last_close_of_a_writer_gives_back_what_was_too_much() {
    let mut fs = made(256 * MIB, "", "log");
    let node = file(&mut fs, "a");
    let free = fs.space().free;
    mkfile(&mut fs, node, 5 * MIB);
    assert!(free - fs.space().free > 5 * 1024);
    close(&mut fs, node);
    assert_eq!(free - fs.space().free, 5 * 1024);
    fs.truncate(&mut at(4), node, Bytes(5 * MIB), Bytes(10)).unwrap();
    assert_eq!(free - fs.space().free, 1);
    fs.evict(&mut at(5), node);
    assert_eq!(fs.space().free, free);
}

#[test]
fn a_write_far_behind_the_end_leaves_a_hole() {
    let mut fs = made(256 * MIB, "", "log");
    let node = file(&mut fs, "a");
    mkfile(&mut fs, node, MIB);
    write(&mut fs, node, (3 * MIB, 3 * MIB + B), MIB);
    let hole = fs.map(FileRun { node, first: 1024, count: 4096 });
    assert_eq!((hole.place, hole.count), (Place::Hole, 2048));
}

#[test]
fn blocks_are_the_least_that_a_file_gets() {
    for (bsize, units) in [(1024, 1), (2048, 2), (4096, 4), (8192, 8)] {
        let mut fs = made(256 * MIB, &format!("-o bsize={bsize}"), "log");
        let node = file(&mut fs, "a");
        let free = fs.space().free;
        write(&mut fs, node, (0, 1), 0);
        close(&mut fs, node);
        assert_eq!(free - fs.space().free, units, "bsize {bsize}");
    }
    let blocks = [4, 8, 16, 32].map(|gib| made(gib << 30, "", "").geometry.block);
    assert_eq!(blocks, [1, 2, 4, 8], "defaults of mkfs");
}

#[test]
fn align_lets_extents_begin_at_multiples() {
    for align in [B, 512 * KIB, 896 * KIB] {
        let mut fs = made(1 << 30, &format!("-o align={align}"), "nolog");
        for name in ["a", "b", "c"] {
            let node = file(&mut fs, name);
            mkfile(&mut fs, node, 3 * MIB);
            close(&mut fs, node);
            let begins = extents(&fs, node);
            assert!(begins.iter().all(|(at, _)| (at * KIB).is_multiple_of(align)), "{begins:?}");
        }
    }
}

#[test]
fn flush_behind_is_write_pref_io_times_write_nstream() {
    let cases = [
        ("", 64, 1),
        ("-o write_pref_io=128k", 128, 1),
        ("-o write_pref_io=64k,write_nstream=7", 64, 7),
        ("-o write_pref_io=896k,write_nstream=1", 896, 1),
    ];
    for (tunables, each, streams) in cases {
        let mut fs = made(1 << 30, tunables, "nolog");
        let node = file(&mut fs, "a");
        let sent = mkfile(&mut fs, node, 14 * MIB);
        let whole: Vec<_> = (0..14 * KIB / each).map(|number| (number * each, each)).collect();
        let full = whole.len() / streams * streams;
        assert_eq!(sent, whole[..full], "{tunables}");
    }
}

#[test]
fn max_diskq_holds_a_writer_back_when_it_has_sent() {
    let mut fs = made(1 << 30, "-o max_diskq=512k", "nolog");
    let node = file(&mut fs, "a");
    let marks: Vec<_> = (0..8)
        .map(|block| write(&mut fs, node, (block * B, (block + 1) * B), block * B))
        .map(|cx| cx.effects.throttle.map(|hold| (hold.above.0, hold.until.0)))
        .collect();
    // No more than what is below 512 KiB may be on its way.
    let held = Some((512 * KIB - 1, 512 * KIB - 1));
    assert_eq!(marks, [None, None, None, None, None, None, None, held]);
}

#[test]
fn write_throttle_sends_off_what_lies_about() {
    let sent = |tunables: &str| {
        let mut fs = made(1 << 30, tunables, "nolog");
        let node = file(&mut fs, "a");
        mkfile(&mut fs, node, MIB);
        // Backwards: nothing follows anything.
        let random = (0..64).rev().map(|block| {
            let cx = write(&mut fs, node, (block * 2 * B, (block * 2 + 1) * B), MIB);
            cx.effects.push.len()
        });
        random.sum::<usize>()
    };
    assert_eq!(sent(""), 0);
    assert_eq!(sent("-o write_throttle=15"), 4);
}

#[test]
fn a_log_makes_extension_synchronous_and_the_other_modes_do_not() {
    let seen = |mount: &str| {
        let mut fs = made(1 << 30, "", mount);
        let node = file(&mut fs, "a");
        let mut waits = 0;
        let mut sent = Vec::new();
        for block in 0..16 {
            let cx = write(&mut fs, node, (block * B, (block + 1) * B), block * B);
            waits += u32::from(cx.effects.wait.is_some());
            sent.extend(cx.effects.push.iter().map(|run| run.count));
        }
        (waits, sent)
    };
    // A record for each write_pref_io of 64 KiB; data in blocks of 8 KiB.
    assert_eq!(seen("log"), (2, vec![8; 16]));
    for mount in ["delaylog", "tmplog", "nolog"] {
        assert_eq!(seen(mount), (0, vec![64; 2]), "{mount}");
    }
    assert_eq!(seen("log,mincache=tmpcache"), (2, vec![64; 2]));
}

#[test]
fn structural_changes_wait_for_the_log_as_the_mode_says() {
    let seen = |mount: &str| {
        let mut fs = made(1 << 30, "", mount);
        let root = fs.root();
        let mut cx = at(1);
        let node = fs.create(&mut cx, Entry { directory: root, name: "a" }, NodeKind::File);
        let (a, b) = (Entry { directory: root, name: "a" }, Entry { directory: root, name: "b" });
        let created = cx.effects.wait.is_some();
        let mut cx = at(2);
        fs.rename(&mut cx, (a, node.unwrap()), b, None).unwrap();
        (created, cx.effects.wait.is_some(), fs.next_timer().0 / 1_000_000)
    };
    assert_eq!((seen("log").0, seen("log").1), (true, true));
    assert_eq!(seen("delaylog"), (false, true, 3001));
    assert_eq!(seen("tmplog"), (false, false, 30_001));
    assert_eq!((seen("nolog").0, seen("nolog").1), (false, false));
}

/// Steps before the first write of the log.
fn before_the_record(fs: &mut VxFs, node: NodeId) -> Vec<Step> {
    let SyncNeed::Commit(_) = fs.sync(&mut at(4), node, Promise::Full) else { panic!() };
    let job = fs.poll(&mut at(4)).unwrap();
    let is_record = |step: &Step| matches!(step, Step::WriteSectors(..));
    job.steps.into_iter().take_while(|step| !is_record(step)).collect()
}

#[test]
fn data_of_extending_writes_go_before_their_record_and_zeros_into_holes() {
    let mut fs = made(1 << 30, "", "delaylog");
    let node = file(&mut fs, "a");
    mkfile(&mut fs, node, MIB);
    let first = before_the_record(&mut fs, node);
    assert_eq!(first, [Step::Data(FileRun { node, first: 0, count: 1024 }), Step::Wait]);
    for mount in ["tmplog", "delaylog,mincache=tmpcache"] {
        let mut fs = made(1 << 30, "", mount);
        let node = file(&mut fs, "a");
        mkfile(&mut fs, node, MIB);
        assert_eq!(before_the_record(&mut fs, node), [], "{mount}");
    }
    let mut fs = made(1 << 30, "", "tmplog,blkclear");
    let node = file(&mut fs, "a");
    write(&mut fs, node, (MIB, MIB + B), 0);
    write(&mut fs, node, (0, B), MIB + B);
    let first = before_the_record(&mut fs, node);
    assert!(matches!(first[..], [Step::Write(run, _), Step::Wait] if run.count == 8), "{first:?}");
}

#[test]
fn sizes_follow_from_the_stripes_of_the_volume() {
    let rules = |has_parity, tunables: &str| {
        let mut spec = spec(1 << 30, tunables, "");
        let stripe = StripeFacts { unit_bytes: 128 * KIB, columns: 7, has_parity };
        spec.devices[0].stripe = Some(stripe);
        let rules = VxFs::make(&spec).unwrap().rules;
        (rules.read, rules.write)
    };
    assert_eq!(rules(false, ""), ((128 * KIB, 7), (128 * KIB, 7)));
    assert_eq!(rules(true, ""), ((128 * KIB, 7), (896 * KIB, 1)));
    assert_eq!(rules(true, "-o read_nstream=2").0, (128 * KIB, 2));
}

#[test]
fn promises_are_converted_as_convosync_and_mincache_say() {
    let promise = |mount: &str, asked| made(256 * MIB, "", mount).promise(asked);
    let (full, data) = (Some(Promise::Full), Some(Promise::Data));
    assert_eq!((promise("", full), promise("", None)), (full, None));
    assert_eq!(promise("convosync=delay", full), None);
    assert_eq!(promise("convosync=dsync", full), data);
    assert_eq!(promise("mincache=dsync", None), data);
    let bypass = |mount: &str| made(256 * MIB, "", mount).facts().clusters.unwrap().bypass;
    let taken = |mount: &str, kib, is_sync| bypass(mount).takes(Bytes(kib * KIB), is_sync);
    assert!(!taken("", 256, true) && taken("", 257, false), "discovered direct I/O");
    assert!(taken("mincache=direct", 8, false) && bypass("mincache=direct").commits);
    assert!(taken("convosync=unbuffered", 8, true) && !taken("convosync=unbuffered", 8, false));
    let mut fs = made(256 * MIB, "", "delaylog,mincache=closesync");
    let node = file(&mut fs, "a");
    mkfile(&mut fs, node, B);
    let cx = close(&mut fs, node);
    assert!(cx.effects.wait.is_some() && cx.effects.throttle.is_some());
}

#[test]
fn the_default_mode_follows_the_release() {
    let mode = |release, mount: &str| {
        let mut spec = spec(256 * MIB, "", mount);
        spec.solaris = Solaris(release);
        VxFs::make(&spec).unwrap().rules.mode
    };
    assert_eq!((mode(8, ""), mode(9, "")), (Mode::Log, Mode::Delayed));
    assert_eq!((mode(8, "nolog"), mode(9, "nolog")), (Mode::Without, Mode::Temporary));
    assert_eq!(mode(8, "nolog,delaylog"), Mode::Delayed, "the last word counts");
}

#[test]
fn refusals_name_the_option_and_its_range() {
    let mkfs =
        |text: &str| FsOptions::mkfs("vxfs", MKFS, &[text.to_owned()]).unwrap_err().to_string();
    let refused = mkfs("-o bsize=3000");
    assert!(refused.contains("bsize=3000: must be 1024 or 2048 or 4096 or 8192"), "{refused}");
    let refused = mkfs("-o read_nstream=0");
    assert!(refused.contains("read_nstream=0: must be 1 to 4096"), "{refused}");
    assert!(mkfs("-o read_nstreams=7").contains("did you mean"));
    let made = |text: &str, mount: &str| {
        VxFs::make(&spec(1 << 30, text, mount)).map(|_| ()).unwrap_err().to_string()
    };
    let refused = made("-o align=1000000,bsize=8192", "");
    assert!(refused.contains("align=1000000: is no multiple of the block"), "{refused}");
    let refused = made("-o logsize=16384,bsize=2048", "");
    assert!(refused.contains("logsize=16384") && refused.contains("32 to 8192"), "{refused}");
    assert!(made("", "nolog,blkclear").contains("contradict"));
    let small = VxFs::make(&spec(300 * KIB, "", "log")).map(|_| ()).unwrap_err().to_string();
    assert!(small.contains("vxfs on 300 KiB: is too small"), "{small}");
    let system = FsOptions::system("vxfs", SYSTEM, [("vol_maxio", 1)]).unwrap_err().to_string();
    assert!(system.contains("vol_maxio=1: must be 16 to"), "{system}");
}

#[test]
fn a_full_file_system_refuses_and_changes_nothing() {
    let mut fs = made(16 * MIB, "", "");
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
    let mut fs = made(32 * MIB, "", "nolog");
    let nodes = [file(&mut fs, "a"), file(&mut fs, "b"), file(&mut fs, "c")];
    let mut sizes = [0; 3];
    'full: loop {
        for (node, size) in nodes.iter().zip(&mut sizes) {
            let run = FileRun { node: *node, first: *size / KIB, count: 8 };
            let (start, end) = (Bytes(*size), Bytes(*size + B));
            let write = Write { run, size: start, start, end, is_direct: false };
            if fs.prepare(&mut at(2), write).is_err() {
                break 'full;
            }
            *size += B;
        }
    }
    assert!(fs.space().free < 8, "{} units are left", fs.space().free);
    let mut owners = std::collections::BTreeMap::new();
    for node in nodes {
        for (first, count) in extents(&fs, node) {
            for unit in first..first + count {
                assert_eq!(owners.insert(unit, node), None, "{unit} has two owners");
            }
        }
    }
}

/// Free runs against a vector of bits, over random takes and gives.
#[test]
fn free_space_agrees_with_a_naive_map() {
    let (first, units) = (16, 4096);
    let mut free = FreeRuns::new(first, units);
    let mut naive = vec![true; (first + units) as usize];
    naive[..first as usize].fill(false);
    let mut held: Vec<(u64, u64)> = Vec::new();
    let mut random = 1_u64;
    let mut found_none = 0;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (draw, count, align) =
            (random >> 33, 1 + (random >> 40) % 64, 1 << ((random >> 50) % 6));
        if draw % 5 < 2 && !held.is_empty() {
            let (first, count) = held.swap_remove(draw as usize % held.len());
            free.give(first, count);
            naive[first as usize..(first + count) as usize].fill(true);
        } else if let Some(place) = free.find(draw % (first + units), count, align) {
            assert!(place.is_multiple_of(align));
            let range = place as usize..(place + count) as usize;
            assert!(naive[range.clone()].iter().all(|free| *free), "{place} is in use");
            free.occupy(place, count);
            naive[range].fill(false);
            held.push((place, count));
        } else {
            let fits = |at: usize| naive.get(at..at + count as usize);
            let all = (0..naive.len()).step_by(align as usize);
            let mut fitting = all.filter(|&at| fits(at).is_some_and(|run| run.iter().all(|f| *f)));
            assert_eq!(fitting.next(), None, "{count} units at a multiple of {align}");
            found_none += 1;
        }
        assert_eq!(free.units(), naive.iter().filter(|free| **free).count() as u64);
        let at = draw % (first + units);
        let run = naive[at as usize..].iter().take_while(|free| **free).count() as u64;
        assert_eq!(free.run_at(at), run);
    }
    assert!(found_none > 100, "{found_none}");
}

#[test]
fn the_log_may_lie_on_a_device_of_its_own() {
    let mut spec = spec(1 << 30, "", "log");
    spec.devices.push(DeviceFacts { bytes: 64 * MIB, ..spec.devices[0] });
    let mut fs = VxFs::make(&spec).unwrap();
    let node = file(&mut fs, "a");
    fs.touch(&mut at(50), node, Touch::Written);
    let job = fs.poll(&mut at(50)).unwrap();
    let device = job.steps.iter().find_map(|step| match step {
        Step::WriteSectors(device, first, ..) => Some((device.0, first.0)),
        _ => None,
    });
    assert_eq!(device, Some((1, 0)));
    assert_eq!(fs.geometry.log.1, 0, "none of the data device is set aside for it");
    spec.mount = FsOptions::mount("vxfs", MOUNT, &["nolog".to_owned()]).unwrap();
    assert!(VxFs::make(&spec).map(|_| ()).unwrap_err().to_string().contains("has no log"));
}
