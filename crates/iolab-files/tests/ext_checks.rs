//! Named checks of ext2, ext3 and ext4: extents, mapping blocks, commits, journal sizes.

mod pattern;

use iolab_files::api::block::{BlockRun, DeviceId, FileRun, NodeId};
use iolab_files::api::context::{Caller, Context};
use iolab_files::api::file_system::{
    Entry, FileSystem, FsJob, NodeKind, Promise, Step, SyncNeed, Touch, Write, WriteFlags,
};
use iolab_files::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use iolab_files::api::options::FsOptions;
use iolab_files::fs::list::find;
use iolab_model::{Bytes, Ns};
use pattern::Pattern;
use pattern::small::Small;

const MIB: u64 = 1 << 20;

fn made(name: &str, mount: &str, kernel: Kernel) -> Box<dyn FileSystem> {
    let row = find(name).unwrap();
    let device = DeviceFacts {
        bytes: 2304 * MIB,
        is_rotational: true,
        io_min_bytes: 512,
        io_opt_bytes: 0,
        stripe: None,
    };
    let spec = MakeSpec {
        memory_bytes: 8 << 30,
        map_cost: Ns(3_000),
        devices: vec![device],
        kernel,
        mkfs: FsOptions::default(),
        mount: FsOptions::mount(row.name, row.mount, &[mount.to_owned()]).unwrap(),
        cpus: 2,
        solaris: Solaris::DEFAULT,
        system: FsOptions::default(),
    };
    (row.make)(&spec).unwrap()
}

fn at(ms: u64) -> Context {
    Context::new(Ns::from_ms(ms), Caller::default())
}

fn file(fs: &mut dyn FileSystem, name: &str) -> NodeId {
    let mut cx = at(1);
    let entry = Entry { directory: fs.root(), name };
    let node = fs.create(&mut cx, entry, NodeKind::File).unwrap();
    fs.opened(&mut cx, node, true);
    node
}

/// A write through the cache, at a time.
fn write(fs: &mut dyn FileSystem, node: NodeId, (offset, end): (u64, u64), size: u64, ms: u64) {
    let mut cx = at(ms);
    let run = FileRun { node, first: offset / 4096, count: (end - offset) / 4096 };
    fs.touch(&mut cx, node, Touch::Written);
    let (start, end) = (Bytes(offset), Bytes(end));
    let write = Write { run, size: Bytes(size), start, end, is_direct: false };
    fs.prepare(&mut cx, write).unwrap();
}

/// Places for a range, and its data on the device.
fn write_back(fs: &mut dyn FileSystem, run: FileRun, size: u64, ms: u64) {
    let mut cx = at(ms);
    let mut done = run.first;
    while done < run.end() {
        let rest = FileRun { node: run.node, first: done, count: run.end() - done };
        done += fs.allocate(&mut cx, rest).unwrap().count;
    }
    fs.written(&mut cx, run, Bytes(size));
}

fn commit(fs: &mut dyn FileSystem, node: NodeId, ms: u64) -> Option<FsJob> {
    let mut cx = at(ms);
    let SyncNeed::Commit(tid) = fs.sync(&mut cx, node, Promise::Full) else { return None };
    let job = fs.poll(&mut cx).unwrap();
    fs.job_done(&mut cx, job.id);
    assert!(fs.durable() >= tid);
    Some(job)
}

fn writes(job: &FsJob) -> Vec<(u64, WriteFlags)> {
    let write = |step: &Step| match step {
        Step::Write(BlockRun { count, .. }, flags) => Some((*count, *flags)),
        _ => None,
    };
    job.steps.iter().filter_map(write).collect()
}

const PLAIN: WriteFlags = WriteFlags { is_preflush: false, is_fua: false };
const LAST: WriteFlags = WriteFlags { is_preflush: true, is_fua: true };

#[test]
fn ext_1_a_contiguous_file_of_1_gib_needs_a_tree_block() {
    let mut fs = made("ext4", "defaults", Kernel::DEFAULT);
    let node = file(fs.as_mut(), "a");
    let free = fs.space().free;
    write(fs.as_mut(), node, (0, 1 << 30), 0, 10);
    write_back(fs.as_mut(), FileRun { node, first: 0, count: 1 << 18 }, 1 << 30, 20);
    let used = free - fs.space().free;
    assert_eq!(used, (1 << 18) + 1, "the data, and one leaf for more than four records");
}

#[test]
fn ext_2_indirect_blocks_of_1_gib() {
    let mut fs = made("ext3", "defaults", Kernel::DEFAULT);
    let node = file(fs.as_mut(), "a");
    let free = fs.space().free;
    for i in 0..64 {
        write(fs.as_mut(), node, (i << 24, (i + 1) << 24), i << 24, 10);
    }
    assert_eq!(free - fs.space().free, (1 << 18) + 257);
}

/// Linux fs/buffer.c, `sync_mapping_buffers`: what was changed since the last one, and no more.
#[test]
fn an_fsync_without_a_journal_writes_the_changed_mapping_blocks() {
    let mut fs = made("ext2", "defaults", Kernel::DEFAULT);
    let node = file(fs.as_mut(), "a");
    let written = |job: Option<FsJob>| {
        let steps = job.map_or(Vec::new(), |job| job.steps);
        steps.iter().filter(|step| matches!(step, Step::Dirtied(_))).count()
    };
    write(fs.as_mut(), node, (0, 64 * MIB), 0, 10);
    // Inode, 16 blocks of addresses, and one above 15 of them.
    assert_eq!(written(commit(fs.as_mut(), node, 20)), 18);
    write(fs.as_mut(), node, (64 * MIB, 64 * MIB + 4096), 64 * MIB, 30);
    // Inode, and the last block of addresses.
    assert_eq!(written(commit(fs.as_mut(), node, 40)), 2);
    assert_eq!(written(commit(fs.as_mut(), node, 50)), 0);
    let mut cx = at(60);
    fs.truncate(&mut cx, node, Bytes(64 * MIB + 4096), Bytes(0)).unwrap();
    // What the file no longer has is not written.
    assert_eq!(written(commit(fs.as_mut(), node, 70)), 1);
}

fn extents_of(text: &str, fs: Box<dyn FileSystem>, name: &str) -> usize {
    let mut small = Small::new(fs);
    small.run(&Pattern::read(text));
    let rows = small.rows();
    rows.iter().filter(|row| row.starts_with(&format!("{name},"))).count()
}

const IN_TURN: &str = "open a\nopen b\nfor i 2048\nwrite a 4k*i 4k\nwrite b 4k*i 4k\nend\nsync\n";

#[test]
fn ext_3_two_files_in_turn_with_delayed_allocation() {
    let fs = || made("ext4", "delalloc", Kernel::DEFAULT);
    assert_eq!([extents_of(IN_TURN, fs(), "a"), extents_of(IN_TURN, fs(), "b")], [1, 1]);
}

#[test]
fn ext_4_two_files_in_turn_without() {
    let old = |mount| made("ext3", mount, Kernel::new(4, 2));
    assert_eq!(extents_of(IN_TURN, old("reservation"), "a"), 11, "9 windows, 2 indirect blocks");
    assert_eq!(extents_of(IN_TURN, old("noreservation"), "a"), 2048);
    let new = made("ext4", "nodelalloc", Kernel::DEFAULT);
    assert_eq!(extents_of(IN_TURN, new, "a"), 23);
}

#[test]
fn ext_5_requests_of_an_append_and_of_an_overwrite() {
    let mut fs = made("ext4", "defaults", Kernel::DEFAULT);
    let node = file(fs.as_mut(), "a");
    for block in 0..3 {
        let (start, end) = (block * 4096, (block + 1) * 4096);
        let ms = 100 * (block + 1);
        write(fs.as_mut(), node, (start, end), start, ms);
        write_back(fs.as_mut(), FileRun { node, first: block, count: 1 }, end, ms);
        let job = commit(fs.as_mut(), node, ms).unwrap();
        if block > 0 {
            // Descriptor, inode, bitmap, group descriptor; then the commit block.
            assert_eq!(writes(&job), [(4, PLAIN), (1, LAST)]);
        }
    }
    write(fs.as_mut(), node, (0, 4096), 3 * 4096, 900);
    let mut cx = at(900);
    fs.written(&mut cx, FileRun { node, first: 0, count: 1 }, Bytes(3 * 4096));
    let flush = SyncNeed::Flush(DeviceId::MAIN);
    assert_eq!(fs.sync(&mut cx, node, Promise::Data), flush, "nothing that fdatasync needs");
    let job = commit(fs.as_mut(), node, 900).unwrap();
    assert_eq!(writes(&job), [(2, PLAIN), (1, LAST)], "descriptor and inode");
    assert_eq!(fs.sync(&mut cx, node, Promise::Full), flush, "committed already");
}

#[test]
fn ext_6_a_short_life_without_a_place() {
    let mut fs = made("ext4", "defaults", Kernel::DEFAULT);
    let free = fs.space().free;
    let node = file(fs.as_mut(), "a");
    write(fs.as_mut(), node, (0, MIB), 0, 10);
    assert_eq!(fs.space().delayed, 256);
    let mut cx = at(20);
    let entry = Entry { directory: fs.root(), name: "a" };
    fs.unlink(&mut cx, entry, node).unwrap();
    fs.evict(&mut cx, node);
    assert_eq!((fs.space().delayed, fs.space().free), (0, free));
}

#[test]
fn ext_7_data_in_the_journal_are_written_twice() {
    let mut fs = made("ext4", "data=journal", Kernel::DEFAULT);
    let node = file(fs.as_mut(), "a");
    for i in 0..100 {
        write(fs.as_mut(), node, (i * MIB, (i + 1) * MIB), i * MIB, 10 + i);
        let mut cx = at(10 + i);
        while let Some(job) = fs.poll(&mut cx) {
            fs.job_done(&mut cx, job.id);
        }
    }
    commit(fs.as_mut(), node, 200);
    let counters = fs.counters();
    let bytes = counters.iter().find(|(name, _)| name == "journal_bytes").unwrap().1;
    let mib = bytes / MIB as f64;
    assert!((100.0..102.0).contains(&mib), "{mib} MiB in the journal beside 100 MiB in place");
}

#[test]
fn x4_11_data_of_others_in_a_commit() {
    let ordered = |mount: &str, kernel| {
        let mut fs = made("ext4", mount, kernel);
        let (a, b) = (file(fs.as_mut(), "a"), file(fs.as_mut(), "b"));
        write(fs.as_mut(), b, (0, 100 * MIB), 0, 10);
        write(fs.as_mut(), a, (0, 4096), 0, 20);
        let run = FileRun { node: a, first: 0, count: 1 };
        if !mount.starts_with("nodelalloc") {
            write_back(fs.as_mut(), run, 4096, 30);
        }
        let job = commit(fs.as_mut(), a, 40).unwrap();
        let of_b = |step: &Step| match step {
            Step::Data(run) if run.node == b => run.count,
            _ => 0,
        };
        job.steps.iter().map(of_b).sum::<u64>()
    };
    assert_eq!(ordered("delalloc", Kernel::DEFAULT), 0);
    assert_eq!(ordered("delalloc,dioread_lock", Kernel::DEFAULT), 0, "B has no places yet");
    assert_eq!(ordered("nodelalloc", Kernel::DEFAULT), 25_600);
    assert_eq!(ordered("nodelalloc,data=writeback", Kernel::DEFAULT), 0);
}

#[test]
fn x4_12_commits_come_with_the_full_second() {
    let mut fs = made("ext4", "defaults", Kernel::DEFAULT);
    let mut cx = at(300);
    let entry = Entry { directory: fs.root(), name: "a" };
    fs.create(&mut cx, entry, NodeKind::File).unwrap();
    assert_eq!(fs.next_timer(), Ns::from_ms(6000));
    assert!(fs.poll(&mut at(5999)).is_none());
    let job = fs.poll(&mut at(6000)).unwrap();
    assert!(!job.is_sync, "no caller waits for it");
}

#[test]
fn contradictions_and_unknown_words_are_refused() {
    let row = find("ext4").unwrap();
    let mount = |text: &str| FsOptions::mount(row.name, row.mount, &[text.to_owned()]);
    let error = mount("nodelaloc").unwrap_err().to_string();
    assert!(error.contains("did you mean `nodelalloc`"), "{error}");
    assert!(mount("logbufs=8").is_err(), "an option of xfs");
    let spec = |bytes, text: &str| MakeSpec {
        memory_bytes: 8 << 30,
        map_cost: Ns(3_000),
        devices: vec![DeviceFacts {
            bytes,
            is_rotational: false,
            io_min_bytes: 512,
            io_opt_bytes: 0,
            stripe: None,
        }],
        kernel: Kernel::DEFAULT,
        mkfs: FsOptions::default(),
        mount: mount(text).unwrap(),
        cpus: 1,
        solaris: Solaris::DEFAULT,
        system: FsOptions::default(),
    };
    for text in ["data=journal,delalloc", "journal_async_commit", "data=journal,dioread_nolock"] {
        assert!((row.make)(&spec(1 << 30, text)).is_err(), "{text}");
    }
    let error = (row.make)(&spec(8 << 10, "")).err().unwrap().to_string();
    assert!(error.contains("too small"), "{error}");
}
