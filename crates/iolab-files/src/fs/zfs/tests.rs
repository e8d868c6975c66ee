//! `ZFS` without a machine: limits, options, space, what a group writes.

use std::collections::BTreeMap;

use iolab_model::{Bytes, Ns};

use super::Zfs;
use super::intent_log::log_blocks;
use super::metaslab::Metaslabs;
use super::options::{BLOCK, MKFS, MOUNT, SYSTEM, device_queue};
use crate::api::block::{FileRun, NodeId, Place};
use crate::api::context::{Caller, Context};
use crate::api::file_system::{CacheKind, Entry, FileSystem, NodeKind, Promise, Step, Write};
use crate::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use crate::api::options::FsOptions;
use crate::api::own_cache::{Admission, QueueOrder};

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const OLD: Kernel = Kernel::new(2, 6);

fn spec(kernel: Kernel, mkfs: &str, system: &[(&str, u64)]) -> MakeSpec {
    let device = DeviceFacts {
        bytes: 256 * MIB,
        is_rotational: false,
        io_min_bytes: 512,
        io_opt_bytes: 0,
        stripe: None,
    };
    MakeSpec {
        devices: vec![device],
        kernel,
        mkfs: FsOptions::mkfs("zfs", MKFS, &[mkfs.to_owned()]).unwrap(),
        mount: FsOptions::mount("zfs", MOUNT, &[]).unwrap(),
        cpus: 1,
        memory_bytes: 8 * GIB,
        map_cost: Ns(3_000),
        solaris: Solaris::DEFAULT,
        system: FsOptions::system("zfs", SYSTEM, system.iter().copied()).unwrap(),
    }
}

fn made(kernel: Kernel, mkfs: &str) -> Zfs {
    Zfs::make(&spec(kernel, mkfs, &[])).unwrap()
}

fn at(ms: u64) -> Context {
    Context::new(Ns::from_ms(ms), Caller::default())
}

fn file(fs: &mut Zfs, name: &str) -> NodeId {
    let directory = fs.root();
    fs.create(&mut at(1), Entry { directory, name }, NodeKind::File).unwrap()
}

fn write(fs: &mut Zfs, node: NodeId, (start, end): (u64, u64), size: u64) {
    let first = start / BLOCK;
    let run = FileRun { node, first, count: end.div_ceil(BLOCK) - first };
    let (size, start, end) = (Bytes(size), Bytes(start), Bytes(end));
    fs.prepare(&mut at(2), Write { run, size, start, end, is_direct: false }).unwrap();
}

/// Runs jobs until there is none; answers the sizes of what they wrote, in blocks.
fn run(fs: &mut Zfs, ms: u64) -> Vec<u64> {
    let mut written = Vec::new();
    while let Some(job) = fs.poll(&mut at(ms)) {
        for step in &job.steps {
            match *step {
                Step::Data(run) => {
                    let mut at_block = run.first;
                    while at_block < run.end() {
                        let rest = FileRun { first: at_block, count: run.end() - at_block, ..run };
                        if fs.map(rest).place == Place::Delayed {
                            let given = fs.allocate(&mut at(ms), rest).unwrap();
                            written.push(given.count);
                            at_block += given.count;
                        } else {
                            at_block += fs.map(rest).count;
                        }
                    }
                }
                Step::Write(run, _) | Step::Dirtied(run) => written.push(run.count),
                _ => {}
            }
        }
        fs.job_done(&mut at(ms), job.id);
    }
    written
}

/// Every block is free, or belongs to one thing.
fn check_space(fs: &Zfs) {
    let mut owners: BTreeMap<u64, String> = BTreeMap::new();
    let mut own = |first: u64, count: u64, owner: String| {
        for block in first..first + count {
            let other = owners.insert(block, owner.clone());
            assert_eq!(other, None, "block {block} belongs to {owner}, too");
        }
    };
    for (number, node) in &fs.nodes {
        for extent in node.state.places.iter() {
            own(extent.place.block().unwrap().1, extent.count, format!("file {number}"));
        }
    }
    for (key, places) in &fs.metadata {
        for &place in places {
            own(place, 1, format!("{key:?}"));
        }
    }
    let syncing = fs.syncing.as_ref().map(|syncing| &syncing.group);
    for group in [Some(&fs.open), fs.closed.as_ref(), syncing].into_iter().flatten() {
        for &(first, count) in &group.freed {
            own(first, count, "freed".into());
        }
    }
    assert_eq!(owners.len() as u64 + fs.slabs.free(), fs.slabs.blocks());
}

#[test]
fn zfs_3_delays_of_transactions() {
    let fs = made(Kernel::new(5, 4), "");
    let most = 8 * GIB / 10;
    let delay = |percent| fs.throttle.delay(most * percent / 100).0;
    assert_eq!([delay(50), delay(60)], [0, 0]);
    assert!(delay(80).abs_diff(500_000) < 10, "{}", delay(80));
    assert!(delay(90).abs_diff(1_500_000) < 100, "{}", delay(90));
    assert_eq!(delay(100), 100_000_000);
}

#[test]
fn zfs_4_limits_of_8_gib() {
    let arc = |kernel| match made(kernel, "").facts().cache {
        CacheKind::Own(own) => own.bytes,
        _ => 0,
    };
    let kernels = [OLD, Kernel::new(5, 4), Kernel::new(6, 6), Kernel::new(6, 18)];
    assert_eq!(kernels.map(arc).map(|bytes| bytes / GIB), [4, 4, 4, 7]);
    assert_eq!(made(Kernel::new(5, 4), "").throttle.limit(), 8 * GIB / 10, "819.2 MiB");
}

#[test]
fn the_old_limit_is_inflated_and_measured() {
    let mut fs = made(OLD, "");
    assert_eq!(fs.throttle.limit(), 32 * MIB / 24);
    fs.throttle.measure(100 * KIB, Ns::from_ms(500));
    assert_eq!(fs.throttle.limit(), 32 * MIB / 24, "too little to be measured");
    fs.throttle.measure(30_000_000, Ns::from_ms(500));
    assert_eq!(fs.throttle.limit(), 60_000_000);
    fs.throttle.measure(100_000_000, Ns::from_ms(1000));
    assert_eq!(fs.throttle.limit(), 70_000_000, "three quarters of the old value");
    fs.throttle.measure(1 << 40, Ns::from_ms(10));
    assert_eq!(fs.throttle.limit(), GIB, "an eighth of memory");
}

#[test]
fn a_full_group_lets_its_writer_wait_for_the_next_one() {
    let mut fs = made(OLD, "");
    let node = file(&mut fs, "a");
    run(&mut fs, 6000);
    let mut size = 0;
    while fs.admit(Ns::from_ms(6001), Bytes(128 * KIB), false) == Admission::Go {
        write(&mut fs, node, (size, size + 128 * KIB), size);
        size += 128 * KIB;
    }
    assert_eq!(size, 11 * 128 * KIB, "1.33 MiB; half of the next one counts");
    let job = fs.poll(&mut at(6001)).expect("it is written at once");
    assert!(!job.is_sync);
    assert_eq!(fs.admit(Ns::from_ms(6001), Bytes(128 * KIB), false), Admission::Go);
}

#[test]
fn a_group_writes_its_records_then_what_leads_to_them() {
    let mut fs = made(OLD, "-O recordsize=8k");
    let node = file(&mut fs, "a");
    for block in 0..300 {
        write(&mut fs, node, (block * 8 * KIB, (block + 1) * 8 * KIB), block * 8 * KIB);
    }
    let written = run(&mut fs, 6000);
    assert_eq!(written.iter().filter(|&&count| count == 2).count(), 300);
    // Three blocks of pointers, one above, dnodes, a leaf, each twice; eight of the pool thrice.
    let dnodes = 1;
    let expected = 2 * (3 + 1 + dnodes + 1) + 24;
    assert_eq!(written.iter().filter(|&&count| count == 1).count(), expected);
    check_space(&fs);
    assert_eq!(fs.next_timer(), Ns::MAX, "nothing to do without changes");
}

#[test]
fn space_is_conserved_over_random_changes() {
    for recordsize in ["8k", "128k"] {
        let mut fs = made(OLD, &format!("-O recordsize={recordsize}"));
        let nodes: Vec<_> = (0..4).map(|number| file(&mut fs, &format!("f{number}"))).collect();
        let mut sizes = [0_u64; 4];
        let mut random = 1_u64;
        for step in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let which = (random >> 60) as usize % 4;
            let (draw, place) = (random >> 33, (random >> 20) % 512 * 4 * KIB);
            match draw % 10 {
                0 => {
                    let (node, size) = (nodes[which], Bytes(sizes[which]));
                    fs.truncate(&mut at(step), node, size, Bytes(place)).unwrap();
                    sizes[which] = place;
                }
                1 => {
                    let _ = fs.sync(&mut at(step), nodes[which], Promise::Full);
                    run(&mut fs, step);
                }
                2 => {
                    let _ = fs.sync_all(&mut at(step));
                    run(&mut fs, step);
                }
                _ => {
                    let end = place + (1 + draw % 64) * 4 * KIB;
                    write(&mut fs, nodes[which], (place, end), sizes[which]);
                    sizes[which] = sizes[which].max(end);
                }
            }
            if step % 50 == 0 {
                check_space(&fs);
            }
        }
        for node in nodes {
            fs.evict(&mut at(4000), node);
        }
        let _ = fs.sync_all(&mut at(4001));
        run(&mut fs, 10_000);
        check_space(&fs);
        fs.crash();
        check_space(&fs);
    }
}

/// Free space of metaslabs against a vector of bits, over random takes and gives.
#[test]
fn metaslabs_agree_with_a_naive_map() {
    let (first, blocks) = (1024, 64 * 1024);
    let mut slabs = Metaslabs::new((first, blocks), BLOCK, true);
    let mut naive = vec![true; (first + blocks) as usize];
    let mut held: Vec<(u64, u64)> = Vec::new();
    let mut random = 9_u64;
    for _ in 0..30_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let count = 1 + (random >> 40) % 64;
        if (random >> 33) % 20 < 9 && !held.is_empty() {
            let (first, count) = held.swap_remove((random >> 45) as usize % held.len());
            slabs.give(first, count);
            naive[first as usize..(first + count) as usize].fill(true);
        } else if let Some(place) = slabs.take(count) {
            let range = place as usize..(place + count) as usize;
            assert!(naive[range.clone()].iter().all(|free| *free), "{place} is in use");
            naive[range].fill(false);
            held.push((place, count));
        }
        let used: u64 = held.iter().map(|(_, count)| count).sum();
        assert_eq!(slabs.free() + used, slabs.blocks());
    }
}

#[test]
fn sequential_writes_fill_one_metaslab_after_the_other_from_the_front() {
    let mut slabs = Metaslabs::new((0, 64 * 1024), BLOCK, true);
    let places: Vec<u64> = (0..200).map(|_| slabs.take(32).unwrap()).collect();
    let expected: Vec<u64> = (0..200).map(|number| number * 32).collect();
    assert_eq!(places, expected);
}

#[test]
fn sizes_of_log_blocks_are_4_12_36_and_128_kib() {
    let kib = |bytes| log_blocks(bytes).into_iter().map(|size| size / KIB).collect::<Vec<_>>();
    assert_eq!(kib(100), [4]);
    assert_eq!(kib(4 * KIB + 192), [12]);
    assert_eq!(kib(32 * KIB), [36]);
    assert_eq!(kib(40 * KIB), [128]);
    assert_eq!(kib(300 * KIB), [128, 128, 128]);
}

#[test]
fn refusals_name_the_parameter_its_range_and_its_release() {
    let mkfs =
        |text: &str| FsOptions::mkfs("zfs", MKFS, &[text.to_owned()]).unwrap_err().to_string();
    assert!(mkfs("-O compression=lz4").contains("compression=lz4: must be off"));
    assert!(
        mkfs("-O recordsise=8k").contains("did you mean `-O recordsize`"),
        "{}",
        mkfs("-O recordsise=8k")
    );
    let system = FsOptions::system("zfs", SYSTEM, [("zfs_vdev_max_pendin", 1)]).unwrap_err();
    assert!(system.to_string().contains("did you mean `zfs_vdev_max_pending`"), "{system}");
    let made = |kernel, mkfs: &str, system: &[(&str, u64)]| {
        Zfs::make(&spec(kernel, mkfs, system)).map(|_| ()).map_err(|error| error.to_string())
    };
    let new = made(OLD, "", &[("zfs_dirty_data_max", MIB)]).unwrap_err();
    assert!(new.contains("is no parameter of 0.6.0-rc11, the module of kernel 2.6"), "{new}");
    let old = made(Kernel::new(5, 4), "", &[("zfs_vdev_max_pending", 10)]).unwrap_err();
    assert!(old.contains("is no parameter of 0.8.6"), "{old}");
    let large = made(OLD, "-O recordsize=256k", &[]).unwrap_err();
    assert!(large.contains("is no power of two up to 128 KiB in 0.6.0-rc11"), "{large}");
    assert_eq!(made(Kernel::new(5, 4), "-O recordsize=256k", &[]), Ok(()));
    let pending = [("zfs_vdev_min_pending", 12)];
    let refused = device_queue(&spec(OLD, "", &pending)).unwrap_err().to_string();
    assert!(refused.contains("is more than zfs_vdev_max_pending=10"), "{refused}");
}

#[test]
fn parameters_of_the_queue_are_those_of_the_release() {
    let order =
        |kernel, system: &[(&str, u64)]| device_queue(&spec(kernel, "", system)).unwrap().order;
    let QueueOrder::Deadline { min_pending, max_pending, .. } = order(OLD, &[]) else { panic!() };
    assert_eq!((min_pending, max_pending), (4, 10));
    let set = [("zfs_vdev_async_write_max_active", 5)];
    let QueueOrder::Classes { active, .. } = order(Kernel::new(5, 4), &set) else { panic!() };
    assert_eq!(active, [(10, 10), (10, 10), (1, 3), (2, 5)]);
}

#[test]
fn promises_follow_the_property_sync() {
    let promise = |mkfs: &str, asked| made(OLD, mkfs).promise(asked);
    assert_eq!(promise("", None), None);
    assert_eq!(promise("-O sync=always", None), Some(Promise::Full));
    assert_eq!(promise("-O sync=disabled", Some(Promise::Full)), None);
}
