//! File systems on simulated stacks, through the same lanes as everything else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::{Access, Durability, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::trace_event::Action;
use iolab_model::{Bytes, Lane, LaneRequest, Ns, Op, Seed, Submission, Target};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget};

/// Every file system that is offered.
fn names() -> Vec<&'static str> {
    iolab_files::fs::list::FILE_SYSTEMS.iter().map(|row| row.name).collect()
}

fn target(fs: &str, memory: &str) -> SimTarget {
    target_on("fixed-100us", fs, memory)
}

fn target_on(profile: &str, fs: &str, memory: &str) -> SimTarget {
    let text = format!(
        "name = \"x\"\ndevice.profile = {profile:?}\n[files]\nfs = {fs:?}\nmemory = {memory:?}\n"
    );
    let stack = Stack::parse("x.toml", &text).unwrap();
    let mut simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
    simulation.record_events();
    SimTarget::new(simulation, stack.facts().unwrap())
}

/// A worker with one file.
struct Worker {
    lane: SimLane,
}

impl Worker {
    fn new(target: &SimTarget, names: &[&str]) -> Self {
        let paths: Vec<PathBuf> =
            names.iter().map(|name| Path::new("/simulated").join(name)).collect();
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(1 << 20),
            content: Content::Zero,
            seed: Seed(7),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from(paths),
        };
        Self { lane: target.open(&request).unwrap() }
    }

    fn ask(&mut self, op: Op) -> (u64, Ns) {
        let mut done = Vec::new();
        let now = self.lane.now();
        let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
        self.lane.submit_batch(now, &[submission], &mut done);
        self.lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
        let end = done.pop().unwrap_or_else(|| panic!("{op:?} never ended"));
        let bytes = end.outcome.unwrap_or_else(|errno| panic!("{op:?}: errno {}", errno.0));
        (bytes.0, end.completed - end.submitted)
    }

    /// Number of the error with which an op ends.
    fn failure(&mut self, op: Op) -> i32 {
        let mut done = Vec::new();
        let now = self.lane.now();
        let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
        self.lane.submit_batch(now, &[submission], &mut done);
        self.lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
        done.pop().unwrap().outcome.expect_err("it fails").0
    }

    fn open(&mut self, path: u32, access: Access, is_new: bool) {
        let how = OpenHow {
            access,
            durability: Durability::None,
            is_readable: true,
            is_writable: true,
            ..OpenHow::default()
        };
        let (path, handle) = (PathId(path), Handle(path));
        self.ask(if is_new {
            Op::Create { path, handle, how }
        } else {
            Op::Open { path, handle, how }
        });
    }

    /// Writes a file from its beginning on, in records, and flushes it.
    fn fill(&mut self, file: u32, record: u64, records: u64) {
        for index in 0..records {
            let op = Op::write(Handle(file), Bytes(index * record), Bytes(record));
            assert_eq!(self.ask(op).0, record);
        }
        self.ask(Op::Fsync { handle: Handle(file) });
    }
}

fn counter(target: &SimTarget, name: &str) -> u64 {
    let counters = target.inspect(iolab_sim::target::Simulation::counters);
    let found = counters.iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no counter {name}: {counters:?}")).1 as u64
}

#[test]
fn every_file_system_conforms() {
    for name in names() {
        let target = target(name, "64m");
        for target in [target.keeping_data(), self::target(name, "64m")] {
            let failures = iolab_model::conformance::check(&target, Path::new("/simulated"));
            assert!(failures.is_empty(), "{name}: {failures:#?}");
        }
    }
}

#[test]
fn what_was_written_is_cached_until_caches_are_dropped() {
    for name in names() {
        let target = target(name, "64m");
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        worker.fill(0, 65_536, 16);
        let read = counter(&target, "fs.read_bytes");
        for index in 0..256 {
            let op = Op::read(Handle(0), Bytes(index * 4096), Bytes(4096));
            let (bytes, taken) = worker.ask(op);
            assert_eq!((bytes, taken), (4096, Ns(1_000 + 350 + 820)), "{name}: call, page, copy");
        }
        assert_eq!(counter(&target, "fs.read_bytes"), read, "{name}");
        target.prepare_cache(false);
        for index in 0..256 {
            worker.ask(Op::read(Handle(0), Bytes(index * 4096), Bytes(4096)));
        }
        let read = counter(&target, "fs.read_bytes") - read;
        assert!((1 << 20..(1 << 20) + 65_536).contains(&read), "{name}: {read}");
    }
}

#[test]
fn pc_8_direct_reads_read_the_device_and_buffered_ones_read_once() {
    for name in names() {
        let target = target(name, "64m");
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        worker.fill(0, 4096, 1);
        target.prepare_cache(false);
        let requests = || counter(&target, "read_requests");
        let before = requests();
        for _ in 0..100 {
            worker.ask(Op::read(Handle(0), Bytes(0), Bytes(4096)));
        }
        assert_eq!(requests() - before, 1, "{name}");
        let mut direct = Worker::new(&target, &["a"]);
        direct.open(0, Access::Direct, false);
        let before = requests();
        for _ in 0..100 {
            direct.ask(Op::read(Handle(0), Bytes(0), Bytes(4096)));
        }
        assert_eq!(requests() - before, 100, "{name}");
    }
}

#[test]
fn a_file_that_is_deleted_soon_is_never_written() {
    // Clusters of UFS and QFS leave as soon as they are full, flushes of VxFS too.
    for name in names().into_iter().filter(|name| !["ufs", "vxfs", "qfs"].contains(name)) {
        let target = target(name, "64m");
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        for index in 0..16 {
            worker.ask(Op::write(Handle(0), Bytes(index * 65_536), Bytes(65_536)));
        }
        worker.ask(Op::Close { handle: Handle(0) });
        worker.ask(Op::Unlink { path: PathId(0) });
        assert_eq!(counter(&target, "fs.data_bytes_written"), 0, "{name}");
        worker.ask(Op::SyncAll);
    }
}

#[test]
fn a_writer_of_more_than_memory_is_slowed_down_to_the_device() {
    for name in names() {
        let target = target_on("scsi10k-1998", name, "64m");
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        let (mut longest, mut total) = (Ns(0), Ns(0));
        for index in 0..1024 {
            let op = Op::write(Handle(0), Bytes(index << 18), Bytes(1 << 18));
            let (_, taken) = worker.ask(op);
            longest = longest.max(taken);
            total += taken;
        }
        assert!(counter(&target, "cache.throttled_ns") > 0, "{name}");
        let dirty = counter(&target, "cache.nr_dirty_max") * 4096;
        assert!(dirty < 16 << 20, "{name}: {dirty} bytes were dirty at once");
        assert!(longest <= Ns::from_ms(900), "{name}: {longest}");
    }
}

/// Sizes in KiB of the reads that entered the block layer.
fn reads_queued(target: &SimTarget) -> Vec<u32> {
    let is_read = |event: &iolab_model::TraceEvent| {
        event.action.name() == "Q" && event.operation.0 & 1 == 0 && event.sectors > 0
    };
    target.take_events().iter().filter(|event| is_read(event)).map(|e| e.sectors / 2).collect()
}

#[test]
fn pc_1_windows_of_a_sequential_reader_reach_the_device() {
    for name in ["ext4", "xfs"] {
        let target = target(name, "64m");
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        worker.fill(0, 65_536, 16);
        target.prepare_cache(false);
        worker.ask(Op::Close { handle: Handle(0) });
        worker.open(0, Access::Plain, false);
        target.take_events();
        for index in 0..97 {
            worker.ask(Op::read(Handle(0), Bytes(index * 4096), Bytes(4096)));
        }
        let sizes = reads_queued(&target);
        let windows = [16, 32, 16, 32, 32, 64, 64, 128, 128, 128];
        assert!(sizes.ends_with(&windows), "{name}: {sizes:?}");
    }
}

#[test]
fn a_study_changes_the_file_half_by_the_kernels_names() {
    use iolab_sim::files::{FilesMade, FilesOverrides};
    let text = "name = \"x\"\ndevice.profile = \"fixed-100us\"";
    let stack = Stack::parse("x.toml", text).unwrap();
    let made = |fs: &str, mount: &str| {
        let files = FilesOverrides {
            made: Some(FilesMade {
                fs: fs.into(),
                mkfs_options: Vec::new(),
                mount_options: vec![mount.into()],
            }),
            ..FilesOverrides::default()
        };
        let overrides = QueueOverrides { files, ..QueueOverrides::default() };
        stack.build(&overrides, Seed(1)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(made("ext4", "nodelalloc"), Ok(()));
    assert_eq!(made("ext4", "commit=0"), Ok(()));
    assert_eq!(made("ufs", "logging"), Ok(()));
    let unknown = made("ext44", "").unwrap_err();
    assert!(unknown.contains("is not simulated (did you mean `ext4`?)"), "{unknown}");
    let misspelt = made("ext4", "nodelaloc").unwrap_err();
    assert!(misspelt.starts_with("ext4: there is no mount option `nodelaloc`, or"), "{misspelt}");
    let other = made("xfs", "nodelalloc").unwrap_err();
    assert!(other.starts_with("xfs: there is no mount option `nodelalloc`, or"), "{other}");
}

#[test]
fn a_study_that_names_the_file_system_of_the_stack_keeps_its_options() {
    use iolab_sim::files::{FilesMade, FilesOverrides, FilesSpec};
    let own = FilesSpec {
        fs: Some("ext4".into()),
        mkfs_options: vec!["-b 1024".into()],
        mount_options: vec!["nodelalloc".into()],
        ..FilesSpec::default()
    };
    let applied = |fs: &str, mount: &[&str]| {
        let mount_options = mount.iter().map(|&word| word.to_owned()).collect();
        let made = FilesMade { fs: fs.into(), mkfs_options: Vec::new(), mount_options };
        let spec = FilesOverrides { made: Some(made), ..FilesOverrides::default() }.apply(&own);
        (spec.mkfs_options.join(" "), spec.mount_options.join(","))
    };
    assert_eq!(applied("ext4", &[]), ("-b 1024".into(), "nodelalloc".into()));
    assert_eq!(applied("ext4", &["defaults"]), ("-b 1024".into(), "defaults".into()));
    assert_eq!(applied("xfs", &[]), (String::new(), String::new()));
}

#[test]
fn memory_that_is_too_small_or_too_large_is_named_by_its_key() {
    use iolab_sim::files::FilesOverrides;
    let text = "name = \"x\"\ndevice.profile = \"fixed-100us\"\nfiles.fs = \"ext4\"\n";
    let stack = Stack::parse("x.toml", text).unwrap();
    let files = FilesOverrides { memory: Some(Bytes(8 << 20)), ..FilesOverrides::default() };
    let overrides = QueueOverrides { files, ..QueueOverrides::default() };
    let refused = stack.build(&overrides, Seed(1)).map(|_| ()).unwrap_err().to_string();
    assert!(refused.starts_with("memory limit 8m: is too small for a simulation"), "{refused}");
    let stack = Stack::parse("x.toml", &format!("{text}files.memory = \"80t\"")).unwrap();
    let refused = stack.check_memory(1 << 30).unwrap_err().to_string();
    assert!(refused.contains("write a smaller `memory` in [files]"), "{refused}");
}

/// Linux fs/ext4/file.c, `ext4_should_use_dio`: such files are read and written through the cache.
#[test]
fn direct_io_of_journalled_data_goes_through_the_cache() {
    for (mount, is_cached) in [("data=journal", true), ("data=ordered", false)] {
        let text = format!(
            "name = \"x\"\ndevice.profile = \"fixed-100us\"\n[files]\nfs = \"ext4\"\n\
             mount_options = [{mount:?}]\n"
        );
        let stack = Stack::parse("x.toml", &text).unwrap();
        let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
        let target = SimTarget::new(simulation, stack.facts().unwrap());
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Direct, true);
        let (_, took) = worker.ask(Op::write(Handle(0), Bytes(0), Bytes(65_536)));
        assert_eq!(took < Ns::from_us(90), is_cached, "{mount}: {took}");
        worker.ask(Op::Fsync { handle: Handle(0) });
        let (_, took) = worker.ask(Op::read(Handle(0), Bytes(0), Bytes(65_536)));
        assert_eq!(took < Ns::from_us(90), is_cached, "{mount}: {took}");
        let journal = counter(&target, "fs.journal_bytes");
        assert_eq!(journal >= 65_536, is_cached, "{mount}: {journal} bytes in the journal");
    }
}

/// Each part of a `sync_file_range` waits for what it names.
#[test]
fn parts_of_a_sync_file_range_wait_for_what_they_name() {
    use iolab_model::op::RangeSync;
    for name in ["ext2", "ext4", "xfs"] {
        let target = target(name, "64m");
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        worker.fill(0, 65_536, 4);
        let mut part = |waits_before, writes, waits_after| {
            let how = RangeSync { waits_before, writes, waits_after };
            let (at, length) = (Bytes(0), Bytes(262_144));
            worker.ask(Op::write(Handle(0), Bytes(0), Bytes(262_144)));
            let begin = Op::SyncFileRange { handle: Handle(0), at, length, how };
            let (_, took) = worker.ask(begin);
            let rest = RangeSync { waits_before: true, writes: false, waits_after: false };
            let end = Op::SyncFileRange { handle: Handle(0), at, length, how: rest };
            (took >= Ns::from_us(100), worker.ask(end).1 >= Ns::from_us(90))
        };
        assert_eq!(part(false, true, false), (false, true), "{name}: it begins, nobody waits");
        assert_eq!(part(true, true, true), (true, false), "{name}: all of it is waited for");
        assert_eq!(part(false, true, true), (true, false), "{name}: waited for at the end");
        assert_eq!(part(false, false, true), (false, false), "{name}: nothing was on its way");
    }
}

#[test]
fn names_that_no_kernel_takes_are_too_long() {
    let long = "x".repeat(256);
    let deep = "d/".repeat(2_100) + "a";
    let target = target("ext4", "64m");
    let mut worker = Worker::new(&target, &[&long, &deep, &"y".repeat(255)]);
    let how = OpenHow { is_readable: true, is_writable: true, ..OpenHow::default() };
    for path in [PathId(0), PathId(1)] {
        let handle = Handle(0);
        assert_eq!(worker.failure(Op::Create { path, handle, how }), 36, "ENAMETOOLONG");
        assert_eq!(worker.failure(Op::Stat { path }), 36, "ENAMETOOLONG");
    }
    worker.open(2, Access::Plain, true);
}

/// Without the feature `huge_file` a file has no more than 2^32 sectors, its map included.
#[test]
fn files_without_extents_end_below_two_tebibytes() {
    for (fs, too_far) in [("ext2", true), ("ext3", true), ("ext4", false)] {
        let text = format!(
            "name = \"x\"\nfiles.fs = {fs:?}\n[device]\nlike = \"fixed-100us\"\n\
             name = \"x\"\ntitle = \"x\"\nparameters = {{ capacity = 8589934592 }}\n"
        );
        let stack = Stack::parse("x.toml", &text).unwrap();
        let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
        let target = SimTarget::new(simulation, stack.facts().unwrap());
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        let write = |at: u64| Op::write(Handle(0), Bytes(at), Bytes(4096));
        // Where the map of a file of 2 TiB would begin to be too much: 2 GiB before its end.
        worker.ask(write((2 << 40) - (3 << 30)));
        if too_far {
            assert_eq!(worker.failure(write((2 << 40) - (1 << 30))), 27, "{fs}: EFBIG");
        } else {
            worker.ask(write(2500 << 30));
        }
    }
}

/// Each is refused by mke2fs 1.47 or by the mount (Linux fs/ext4/super.c).
#[test]
fn what_mkfs_or_mount_would_refuse_is_refused() {
    let built = |fs: &str, mkfs: &str, mount: &str| {
        let text = format!(
            "name = \"x\"\ndevice.profile = \"fixed-100us\"\n[files]\nfs = {fs:?}\n\
             mkfs_options = [{mkfs:?}]\nmount_options = [{mount:?}]\n"
        );
        let stack = Stack::parse("x.toml", &text).unwrap();
        let built = stack.build(&QueueOverrides::default(), Seed(1));
        built.map(|_| ()).map_err(|error| error.to_string())
    };
    for (fs, mkfs, mount, told) in [
        ("ext4", "-q", "delalloc,nodelalloc", "delalloc and nodelalloc at once"),
        ("ext4", "-q", "dioread_lock,dioread_nolock", "dioread_lock and dioread_nolock at once"),
        ("ext4", "-q", "commit=5,commit=300", "commit=5 and commit=300 at once"),
        ("ext4", "-O ^has_journal", "commit=100", "is about the journal, and there is none"),
        ("ext4", "-O ^has_journal", "journal_async_commit", "is about the journal"),
        ("ext4", "-O ^has_journal -J size=64", "rw", "there is no journal"),
        ("ext2", "-J size=64", "rw", "there is no journal"),
        ("ext3", "-O extent", "rw", "does not mount as ext3"),
        ("ext2", "-O metadata_csum", "rw", "does not mount as ext2"),
        ("ext4", "-I 1024 -N 4000000000", "rw", "so many inodes are larger than the device"),
    ] {
        let refused = built(fs, mkfs, mount).unwrap_err();
        assert!(refused.contains(told), "{fs} {mkfs} {mount}: {refused}");
    }
    for (fs, mkfs, mount) in [
        ("ext4", "-O ^has_journal", "commit=5"),
        ("ext2", "-O has_journal -J size=8", "rw"),
        ("ext4", "-O extent", "barrier,lazytime,commit=5,commit=5"),
    ] {
        assert_eq!(built(fs, mkfs, mount), Ok(()), "{fs} {mkfs} {mount}");
    }
}

#[test]
fn keys_of_another_kernel_and_without_a_file_system_are_refused() {
    let built = |files: &str| {
        let text = format!("name = \"x\"\ndevice.profile = \"fixed-100us\"\n[files]\n{files}\n");
        let stack = Stack::parse("x.toml", &text).unwrap();
        stack
            .build(&QueueOverrides::default(), Seed(1))
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let alone = built("system = { ufs_HW = 1 }").unwrap_err();
    assert!(alone.contains("belongs to a file system, and the stack names none"), "{alone}");
    let misspelt = built("fs = \"ufs\"\nsystem = { ufs_HV = 1 }").unwrap_err();
    assert!(
        misspelt.contains("`ufs_HV`, or it is not modelled (did you mean `ufs_HW`?)"),
        "{misspelt}"
    );
    let linux = built("fs = \"ufs\"\nkernel = \"6.18\"").unwrap_err();
    assert!(linux.contains("ufs belongs to Solaris"), "{linux}");
    let solaris = built("fs = \"ext4\"\nkernel = \"solaris-8\"").unwrap_err();
    assert!(solaris.contains("ext4 belongs to Linux"), "{solaris}");
}

/// A device of one command at a time that takes 128 pieces of memory, like a loop device.
fn like_a_loop_device(fs: &str) -> SimTarget {
    on_a_stack(&format!(
        "name = \"x\"\n[queue]\nmax_segments = 128\n[device]\nlike = \"fixed-100us\"\n\
         name = \"x\"\ntitle = \"x\"\nparameters = {{ depth = 1, latency = 20 }}\n\
         [files]\n{fs}\n"
    ))
}

fn on_a_stack(text: &str) -> SimTarget {
    let stack = Stack::parse("x.toml", text).unwrap();
    let mut simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
    simulation.record_events();
    SimTarget::new(simulation, stack.facts().unwrap())
}

/// Sizes in KiB of the requests with data that were issued since the last look, by their letter.
fn data_requests(target: &SimTarget, letter: char) -> Vec<u32> {
    let issued = target.take_events().into_iter().filter(|event| event.action == Action::Issued);
    let data = issued.filter(|event| {
        let letters = event.rwbs();
        letters.contains(letter) && !letters.contains('M') && event.sectors > 0
    });
    data.map(|event| event.sectors / 2).collect()
}

/// As Linux 6.18 does on a loop device (`iolab sim against-kernel write-64k write-4k`).
#[test]
fn written_data_leave_in_the_requests_of_the_kernel() {
    // The blocks of 8 MiB get their place together, and leave before the next ones do.
    let of_8_mib = [1280, 1280, 1280, 1280, 1280, 1280, 512];
    for (fs, kib, expected) in [
        ("fs = 'ext4'", 64, of_8_mib.repeat(2)),
        ("fs = 'ext4'", 1024, of_8_mib.repeat(2)),
        ("fs = 'ext4'", 4, vec![512; 32]),
        ("fs = 'xfs'", 4, vec![512; 32]),
        // A bio of 256 folios of 64 KiB is as long as the file.
        ("fs = 'xfs'", 64, [vec![1280; 12], vec![1024]].concat()),
        // Writes make large folios since 6.6 (xfs) and 6.16 (ext4).
        ("fs = 'xfs'\nkernel = '6.5'", 64, vec![512; 32]),
        ("fs = 'ext4'\nkernel = '6.15'", 64, vec![512; 32]),
    ] {
        let target = like_a_loop_device(fs);
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        worker.fill(0, kib << 10, (16 << 10) / kib);
        assert_eq!(data_requests(&target, 'W'), expected, "{fs}, {kib} KiB");
    }
}

#[test]
fn members_of_a_volume_know_the_pieces_of_memory_too() {
    let target = on_a_stack(
        "name = \"x\"\n[volume]\nmembers = 2\nparameters = { layout = \"raid1\" }\n\
         [volume.member]\n\
         device.profile = \"fixed-100us\"\n\
         queue = { max_segments = 128, max_sectors_kb = 1280 }\n[files]\nfs = \"xfs\"\n",
    );
    let mut worker = Worker::new(&target, &["a"]);
    worker.open(0, Access::Plain, true);
    worker.fill(0, 65_536, 256);
    let sizes = data_requests(&target, 'W');
    let whole = sizes.iter().filter(|size| **size == 1280).count();
    assert_eq!(whole, 24, "{sizes:?}");
}

/// As Linux 6.18 does (`iolab sim against-kernel write-allocated`): what was reserved is mapped at
/// write-back with delayed allocation, 8 MiB at a time, and at once without.
#[test]
fn reserved_blocks_are_written_ones_from_the_write_on_without_delayed_allocation() {
    let of_8_mib = [1280, 1280, 1280, 1280, 1280, 1280, 512];
    for (mount, expected) in
        [("delalloc", of_8_mib.repeat(2)), ("nodelalloc", [vec![1280; 12], vec![1024]].concat())]
    {
        let target = like_a_loop_device(&format!("fs = 'ext4'\nmount_options = ['{mount}']"));
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        let (at, length) = (Bytes(0), Bytes(16 << 20));
        worker.ask(Op::Allocate { handle: Handle(0), at, length, keeps_length: false });
        worker.fill(0, 64 << 10, 256);
        assert_eq!(data_requests(&target, 'W'), expected, "{mount}");
    }
}

/// Blocks that a write gets are new: what it leaves of them is zero and not read, whether they were
/// reserved before or not.
#[test]
fn a_part_of_a_new_block_is_written_without_a_read() {
    for mount in ["delalloc", "nodelalloc"] {
        let target = like_a_loop_device(&format!("fs = 'ext4'\nmount_options = ['{mount}']"));
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        let (at, length) = (Bytes(0), Bytes(1 << 20));
        worker.ask(Op::Allocate { handle: Handle(0), at, length, keeps_length: false });
        worker.ask(Op::Truncate { handle: Handle(0), length: Bytes(2 << 20) });
        target.take_events();
        for page in 0..512 {
            worker.ask(Op::write(Handle(0), Bytes(page * 4096 + 1024), Bytes(2048)));
        }
        assert_eq!(data_requests(&target, 'R'), Vec::<u32>::new(), "{mount}");
        worker.ask(Op::Fsync { handle: Handle(0) });
        target.prepare_cache(false);
        target.take_events();
        worker.ask(Op::write(Handle(0), Bytes(5 * 4096 + 1024), Bytes(2048)));
        assert_eq!(data_requests(&target, 'R'), vec![4], "{mount}: it holds data now");
    }
}

/// As Linux 6.18 does (`iolab sim against-kernel mapped-read`): pages around a fault are mapped,
/// but not the one with the marker, so that its fault reads ahead.
#[test]
fn a_mapped_file_is_read_ahead_of_its_reader() {
    for fs in ["fs = 'ext4'", "fs = 'xfs'"] {
        let target = like_a_loop_device(fs);
        let mut worker = Worker::new(&target, &["a"]);
        worker.open(0, Access::Plain, true);
        worker.fill(0, 65_536, 64);
        target.prepare_cache(false);
        target.take_events();
        worker.ask(Op::Map { handle: Handle(0), length: Bytes(4 << 20) });
        for page in 0..1024 {
            let (at, length) = (Bytes(page * 4096), Bytes(4096));
            worker.ask(Op::Touch { handle: Handle(0), at, length, is_write: false });
        }
        assert_eq!(data_requests(&target, 'R'), vec![128; 32], "{fs}");
    }
}

/// The rest of a folio after a truncation is single pages, as those that are appended.
#[test]
fn a_folio_that_is_cut_is_none_any_more() {
    let target = like_a_loop_device("fs = 'ext4'");
    let mut worker = Worker::new(&target, &["a"]);
    worker.open(0, Access::Plain, true);
    worker.fill(0, 1 << 20, 1);
    worker.ask(Op::Truncate { handle: Handle(0), length: Bytes(4096) });
    target.take_events();
    for page in 1..257 {
        worker.ask(Op::write(Handle(0), Bytes(page * 4096), Bytes(4096)));
    }
    worker.ask(Op::Fsync { handle: Handle(0) });
    assert_eq!(data_requests(&target, 'W'), vec![512, 512]);
}

/// As Linux 6.18 writes to the log of xfs for each of 300 files that are made in one directory
/// and made durable one by one: what was logged of a block is logged again with each change.
#[test]
fn the_log_of_xfs_grows_with_its_directory() {
    let target = like_a_loop_device("fs = 'xfs'");
    let names: Vec<String> = (0..300).map(|index| format!("{index:05}abcdefgh")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut worker = Worker::new(&target, &names);
    let mut records = Vec::new();
    let mut before = counter(&target, "fs.journal_bytes");
    for file in 0..300 {
        worker.open(file, Access::Plain, true);
        worker.ask(Op::Fsync { handle: Handle(file) });
        worker.ask(Op::Close { handle: Handle(file) });
        let now = counter(&target, "fs.journal_bytes");
        records.push(now - before);
        before = now;
    }
    // `xfs_logprint`, lengths of the records; their heads of 512 bytes are not in them.
    let of_the_kernel = 1_501_696 + 300 * 512;
    let sum: u64 = records.iter().sum();
    assert!(sum.abs_diff(of_the_kernel) * 4 < of_the_kernel, "{sum} of {of_the_kernel}");
    let growth =
        records[270..].iter().sum::<u64>() as f64 / records[..30].iter().sum::<u64>() as f64;
    assert!((1.5..4.0).contains(&growth), "the last files take {growth} times what the first did");
}
