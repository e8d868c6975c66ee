//! Named checks of UFS that need no time: requests, fragments, breaks of contiguity, free space.

use super::UfsFs;
use super::geometry::{Geometry, indirect_path};
use super::groups::Groups;
use crate::api::block::{FileRun, NodeId, Place};
use crate::api::context::{Caller, Context};
use crate::api::file_system::{
    ClosedHandle, Entry, FileSystem, NodeKind, Promise, SyncNeed, Write,
};
use crate::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use crate::api::options::FsOptions;
use crate::fs::list::find;
use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

const MIB: u64 = 1 << 20;
const B: u64 = Geometry::BLOCK;

fn made(bytes: u64, mkfs: &str, mount: &str) -> UfsFs {
    let row = find("ufs").unwrap();
    let device = DeviceFacts {
        bytes,
        is_rotational: true,
        io_min_bytes: 512,
        io_opt_bytes: 0,
        stripe: None,
    };
    UfsFs::make(&MakeSpec {
        memory_bytes: 8 << 30,
        map_cost: Ns(3_000),
        devices: vec![device],
        kernel: Kernel::DEFAULT,
        mkfs: FsOptions::mkfs("ufs", row.mkfs, &[mkfs.to_owned()]).unwrap(),
        mount: FsOptions::mount("ufs", row.mount, &[mount.to_owned()]).unwrap(),
        cpus: 1,
        solaris: Solaris::DEFAULT,
        system: FsOptions::default(),
    })
    .unwrap()
}

fn at(ms: u64) -> Context {
    Context::new(Ns::from_ms(ms), Caller::default())
}

fn file(fs: &mut UfsFs, name: &str) -> NodeId {
    let entry = Entry { directory: fs.root(), name };
    fs.create(&mut at(1), entry, NodeKind::File).unwrap()
}

/// A write through the cache; answers what it sends off, in blocks.
fn write(fs: &mut UfsFs, node: NodeId, (start, end): (u64, u64), size: u64) -> Vec<(u64, u64)> {
    let mut cx = at(2);
    let first = start / Geometry::FRAGMENT;
    let run = FileRun { node, first, count: end.div_ceil(Geometry::FRAGMENT) - first };
    let (start, end) = (Bytes(start), Bytes(end));
    let write = Write { run, size: Bytes(size), start, end, is_direct: false };
    fs.prepare(&mut cx, write).unwrap();
    fs.copied(&mut cx, node, start, end);
    cx.effects.push.iter().map(|run| (run.first / 8, run.count / 8)).collect()
}

/// Pieces of a run that lie together on the device.
fn pieces(fs: &UfsFs, node: NodeId, (first, count): (u64, u64)) -> u64 {
    let (mut at, end, mut number) = (first * 8, (first + count) * 8, 0);
    while at < end {
        let found = fs.map(FileRun { node, first: at, count: end - at });
        assert!(found.place.block().is_some(), "block {at}");
        at += found.count;
        number += 1;
    }
    number
}

#[test]
fn sol_1_and_sol_9w_requests_of_mkfile() {
    let mut fs = made(4 << 30, "-C 16", "");
    let node = file(&mut fs, "testfile");
    let mut sent = Vec::new();
    for block in 0..500 * MIB / B {
        sent.extend(write(&mut fs, node, (block * B, (block + 1) * B), block * B));
    }
    let mut cx = at(3);
    let closed = ClosedHandle { was_writer: true, writers: 0, handles: 0, dirty_blocks: 0 };
    fs.closed(&mut cx, node, closed);
    sent.extend(cx.effects.push.iter().map(|run| (run.first / 8, run.count / 8)));
    assert_eq!(sent.len(), 4000, "SOL-1: clusters of 16 blocks");
    assert!(sent.iter().all(|&(_, count)| count == 16));
    let requests: u64 = sent.iter().map(|&run| pieces(&fs, node, run)).sum();
    assert_eq!(requests, 4032, "SOL-9w: 32 clusters hold a border of the indirect blocks");
}

#[test]
fn doubling_maxcontig_halves_the_clusters() {
    let clusters = |mkfs: &str| {
        let mut fs = made(1 << 30, mkfs, "");
        let node = file(&mut fs, "a");
        let sent = (0..2048)
            .map(|block| write(&mut fs, node, (block * B, (block + 1) * B), block * B).len());
        sent.sum::<usize>() + 1
    };
    assert_eq!(["-C 8", "-C 16", "-a 32", "-C 64"].map(clusters), [256, 128, 64, 32]);
}

#[test]
fn two_writers_of_one_file_send_small_runs() {
    let mut fs = made(256 * MIB, "-C 16", "");
    let node = file(&mut fs, "a");
    let mut sent = Vec::new();
    for block in 0..32 {
        for half in [0, 4096] {
            let at = (half + block) * B;
            let size = if block == 0 && half == 0 { 0 } else { (4096 + block) * B };
            sent.extend(write(&mut fs, node, (at, at + B), size));
        }
    }
    assert!(sent.iter().all(|&(_, count)| count == 1), "{sent:?}");
}

#[test]
fn sol_14_breaks_of_contiguity() {
    let mut fs = made(1 << 30, "-c 16", "");
    let node = file(&mut fs, "a");
    let blocks = 100 * MIB / B;
    for block in 0..blocks {
        write(&mut fs, node, (block * B, (block + 1) * B), block * B);
    }
    // Borders of indirect blocks: behind the 12th and every further 2048th block.
    let borders = (blocks - 12).div_ceil(2048);
    let breaks = pieces(&fs, node, (0, blocks)) - 1;
    assert!(breaks - borders <= 6, "{breaks} breaks, {borders} borders");
}

#[test]
fn fragments_grow_in_place_and_become_a_block() {
    let mut fs = made(256 * MIB, "", "");
    let free = fs.space().free;
    let (a, b) = (file(&mut fs, "a"), file(&mut fs, "b"));
    write(&mut fs, a, (0, 1500), 0);
    assert_eq!(free - fs.space().free, 2);
    write(&mut fs, b, (0, 1), 0);
    assert_eq!(free - fs.space().free, 3, "two files share a block");
    write(&mut fs, a, (1500, 9000), 1500);
    assert_eq!(free - fs.space().free, 8 + 1 + 1, "a block and a fragment, and the other file");
    write(&mut fs, a, (9000, 200_000), 9000);
    // 25 blocks, the indirect block, the other file; no fragments behind the 12th block.
    assert_eq!(free - fs.space().free, 26 * 8 + 1);
    fs.truncate(&mut at(9), a, Bytes(200_000), Bytes(10)).unwrap();
    assert_eq!(free - fs.space().free, 1 + 1);
    fs.evict(&mut at(9), a);
    fs.evict(&mut at(9), b);
    assert_eq!(fs.space().free, free);
}

#[test]
fn a_full_file_system_refuses_and_changes_nothing() {
    let mut fs = made(16 * MIB, "", "");
    let node = file(&mut fs, "a");
    let free = fs.space().free;
    let mut cx = at(2);
    let write = Write {
        run: FileRun { node, first: 0, count: 1 << 20 },
        size: Bytes(0),
        start: Bytes(0),
        end: Bytes(1 << 30),
        is_direct: false,
    };
    assert!(fs.prepare(&mut cx, write).is_err());
    assert_eq!(fs.space().free, free);
    assert_eq!(fs.map(FileRun { node, first: 0, count: 8 }).place, Place::Hole);
}

#[test]
fn a_write_that_fails_frees_no_fragment_that_it_would_have_moved() {
    let mut fs = made(16 * MIB, "-C 16", "");
    let (a, c, rest) = (file(&mut fs, "a"), file(&mut fs, "c"), file(&mut fs, "rest"));
    write(&mut fs, a, (0, 1024), 0);
    write(&mut fs, c, (0, 1024), 0);
    let mut size = 0;
    while fs.groups.free_fragments() >= 2 * 8 {
        let mut cx = at(2);
        fs.give_blocks(&mut cx, rest.0, (size, size + B), size).unwrap();
        size += B;
    }
    let (free, before) = (fs.space().free, fs.map(FileRun { node: a, first: 0, count: 1 }));
    // The first block would move to the last free one, and there is none for the second.
    assert_eq!(fs.give_blocks(&mut at(2), a.0, (B, 2 * B), 1024), Err(Errno::ENOSPC));
    assert_eq!(fs.space().free, free);
    assert_eq!(fs.map(FileRun { node: a, first: 0, count: 1 }), before);
}

#[test]
fn indirect_blocks_are_one_two_and_three_levels_deep() {
    let depths = [0, 11, 12, 2059, 2060, 12 + 2048 + 2048 * 2048].map(|at| indirect_path(at).len());
    assert_eq!(depths, [0, 0, 1, 1, 2, 3]);
    assert_ne!(indirect_path(2060)[1], indirect_path(2060 + 2048)[1]);
    assert_eq!(indirect_path(2060)[0], indirect_path(2060 + 2048)[0]);
}

/// The fast map against a vector of bits, over random takes and gives.
#[test]
fn free_space_agrees_with_a_naive_map() {
    let geometry = Geometry::new(64 * MIB, 16 * MIB, 2048, 0).unwrap();
    let mut groups = Groups::new(&geometry);
    let mut naive = vec![false; geometry.fragments as usize];
    for group in 0..geometry.groups {
        let head = geometry.start(group) * 8..geometry.data_start(group) * 8;
        naive[head.start as usize..head.end as usize].fill(true);
    }
    let mut held: Vec<(u64, u64)> = Vec::new();
    let mut random = 1_u64;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (draw, count) = (random >> 33, 1 + (random >> 40) % 8);
        if draw % 3 == 0 && !held.is_empty() {
            let (first, count) = held.swap_remove(draw as usize % held.len());
            groups.give(first, count);
            naive[first as usize..(first + count) as usize].fill(false);
        } else if let Some(first) = groups.take_fragments(draw % geometry.blocks(), count) {
            assert!(first / 8 == (first + count - 1) / 8, "inside one block");
            let range = first as usize..(first + count) as usize;
            assert!(naive[range.clone()].iter().all(|used| !used), "{first} is in use");
            naive[range].fill(true);
            held.push((first, count));
        }
        let free = naive.iter().filter(|used| !**used).count() as u64;
        assert_eq!(groups.free_fragments(), free);
    }
    assert!(held.len() > 1000);
}

#[test]
fn names_are_written_in_order_without_a_log_and_not_at_all_with_one() {
    let steps = |mount: &str| {
        let mut fs = made(256 * MIB, "", mount);
        let mut cx = at(1);
        let entry = Entry { directory: fs.root(), name: "a" };
        fs.create(&mut cx, entry, NodeKind::File).unwrap();
        let job = fs.poll(&mut at(1));
        (cx.effects.wait.is_some(), job.map_or(0, |job| job.steps.len()))
    };
    assert_eq!(steps("nologging"), (true, 4), "inode, wait, entry, wait");
    assert_eq!(steps("logging"), (false, 0));
}

#[test]
fn a_log_commits_at_fsync_in_sectors() {
    let mut fs = made(256 * MIB, "", "logging");
    let node = file(&mut fs, "a");
    write(&mut fs, node, (0, B), 0);
    fs.written(&mut at(3), FileRun { node, first: 0, count: 8 }, Bytes(B));
    let SyncNeed::Commit(tid) = fs.sync(&mut at(4), node, Promise::Full) else { panic!() };
    let job = fs.poll(&mut at(4)).unwrap();
    fs.job_done(&mut at(5), job.id);
    assert!(fs.durable() >= tid);
    let counters = fs.counters();
    let value = |name: &str| counters.iter().find(|(key, _)| key == name).unwrap().1;
    assert!((0.9..1.1).contains(&value("journal_commits")));
    assert!((1024.0..8192.0).contains(&value("journal_bytes")), "{}", value("journal_bytes"));
}

#[test]
fn wrong_watermarks_are_set_back() {
    let row = find("ufs").unwrap();
    let marks = |high, low, release| {
        let device = DeviceFacts {
            bytes: 1 << 30,
            is_rotational: true,
            io_min_bytes: 512,
            io_opt_bytes: 0,
            stripe: None,
        };
        let set = [("ufs_HW", high), ("ufs_LW", low)];
        let spec = MakeSpec {
            memory_bytes: 8 << 30,
            map_cost: Ns(3_000),
            devices: vec![device],
            kernel: Kernel::DEFAULT,
            mkfs: FsOptions::default(),
            mount: FsOptions::default(),
            cpus: 1,
            solaris: Solaris(release),
            system: FsOptions::system("ufs", row.system, set).unwrap(),
        };
        let throttle = UfsFs::make(&spec).unwrap().rules.throttle.unwrap();
        (throttle.high >> 10, throttle.low >> 10)
    };
    assert_eq!(marks(16 * MIB, 8 * MIB, 8), (16384, 8192));
    assert_eq!(marks(1, 2, 8), (384, 256));
    assert_eq!(marks(1, 2, 9), (16384, 8192));
}
