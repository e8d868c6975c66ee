//! Requests that fail below a file system: every call is answered, time goes on, who was promised
//! something hears of it, and what was promised without an error is there after a power cut.

#[allow(dead_code, reason = "each test uses a part")]
mod twins;

use std::collections::BTreeMap;

use iolab_files::machine::OutgoingKind;
use iolab_model::error::Errno;
use iolab_model::op::{Access, Durability, Handle, OpenHow, PathId, RangeSync};
use iolab_model::{Bytes, Ns, Op};
use twins::mounted::{Failing, Mount, Mounted, made};

/// File systems, and whether the machine brings back all data of theirs after a power cut.
const MOUNTS: [(Mount, bool); 15] = [
    (("ext2", "", ""), true),
    (("ext2", "-b 1024", ""), true),
    (("ext3", "", ""), true),
    (("ext3", "-b 1024", "data=journal"), false),
    (("ext4", "", ""), true),
    (("ext4", "", "nodelalloc"), true),
    (("ext4", "", "data=journal"), false),
    (("xfs", "", ""), true),
    (("ufs", "", ""), true),
    (("ufs", "", "forcedirectio"), true),
    (("ufs", "", "nologging"), true),
    (("vxfs", "", ""), true),
    (("vxfs", "", "mincache=direct"), true),
    (("qfs", "", ""), true),
    (("zfs", "", ""), false),
];
const KINDS: [OutgoingKind; 3] = [OutgoingKind::Write, OutgoingKind::Flush, OutgoingKind::Read];
/// Requests of the kind before the one that fails.
const AFTER: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50];
const TIMES: [u32; 2] = [1, u32::MAX];
/// Read-only file system (asm-generic/errno-base.h).
const EROFS: Errno = Errno(30);
const RECORD: u64 = 4096;
/// Time after the last call: the log worker and the age of dirty pages come round.
const REST: Ns = Ns(200_000_000_000);
/// Events of it.
const EVENTS_MAX: u32 = 200_000;

type Workload = fn(&mut Run);

const WORKLOADS: [(&str, Workload); 7] = [
    ("fsync after each write", flushed),
    ("fsync at the end", buffered),
    ("more than memory", plenty),
    ("names", names),
    ("mapped", mapped),
    ("direct", direct),
    ("reads", reads),
];

/// A file system while some of its requests fail.
struct Run {
    mounted: Mounted,
    rule: Failing,
    /// Content of files now.
    files: BTreeMap<u32, Vec<u8>>,
    /// Bytes that were flushed without an error, where no call has touched them since.
    kept: BTreeMap<u32, Vec<Option<u8>>>,
    /// Files of which a call has failed: what they hold is not known any more.
    failed: BTreeMap<u32, Errno>,
    wrong: Vec<String>,
    next: u8,
}

impl Run {
    fn new(mount: Mount, rule: Failing) -> Self {
        Self {
            mounted: Mounted::new(made(mount), 2 << 20),
            rule,
            files: BTreeMap::new(),
            kept: BTreeMap::new(),
            failed: BTreeMap::new(),
            wrong: Vec::new(),
            next: 0,
        }
    }

    /// Lets requests fail from now on.
    fn arm(&mut self) {
        self.mounted.failing = Some(self.rule);
    }

    fn hits(&self) -> u32 {
        self.mounted.failing.map_or(0, |rule| rule.hits)
    }

    fn ask(&mut self, op: Op, path: Option<&str>, buffer: &mut [u8]) -> Result<u64, Errno> {
        let result = self.mounted.ask(op, path, buffer);
        if let Err(errno) = result
            && errno != Errno::EIO
            && errno != EROFS
        {
            self.wrong.push(format!("{op:?} ends with errno {}", errno.0));
        }
        result
    }

    /// A call about a file: its failure is remembered.
    fn of_file(&mut self, file: u32, op: Op, buffer: &mut [u8]) -> bool {
        match self.ask(op, None, buffer) {
            Ok(_) => true,
            Err(errno) => {
                self.failed.insert(file, errno);
                false
            }
        }
    }

    fn open(&mut self, file: u32, access: Access, durability: Durability, is_new: bool) -> bool {
        let how = OpenHow {
            access,
            durability,
            is_readable: true,
            is_writable: true,
            ..OpenHow::default()
        };
        let (path, handle) = (PathId(0), Handle(file));
        let op =
            if is_new { Op::Create { path, handle, how } } else { Op::Open { path, handle, how } };
        self.ask(op, Some(&format!("file{file}")), &mut []).is_ok()
    }

    /// A file with some records, on the device.
    fn prepared(&mut self, file: u32, records: u64) {
        assert!(self.open(file, Access::Plain, Durability::None, true));
        for record in 0..records {
            self.write(file, record * RECORD, RECORD);
        }
        assert!(self.fsync(file));
        assert!(self.ask(Op::SyncAll, None, &mut []).is_ok());
        self.mounted.settle();
    }

    fn write(&mut self, file: u32, at: u64, length: u64) -> bool {
        self.touch(file, at, length);
        self.next = self.next % 250 + 1;
        let mut data = vec![self.next; length as usize];
        let is_right =
            self.of_file(file, Op::write(Handle(file), Bytes(at), Bytes(length)), &mut data);
        if is_right {
            self.note(file, at, &data);
        }
        is_right
    }

    /// Notes what a file holds.
    fn note(&mut self, file: u32, at: u64, data: &[u8]) {
        let (at, content) = (at as usize, self.files.entry(file).or_default());
        content.resize(content.len().max(at + data.len()), 0);
        content[at..at + data.len()].copy_from_slice(data);
    }

    /// Everything of a file was promised: it must be there, if no call about it has failed.
    fn promised(&mut self, file: u32) {
        if !self.failed.contains_key(&file) {
            let content = self.files.get(&file).map_or(&[][..], |content| content);
            self.kept.insert(file, content.iter().copied().map(Some).collect());
        }
    }

    /// A call changes bytes: whatever comes of it, the old ones were not promised for longer.
    fn touch(&mut self, file: u32, at: u64, length: u64) {
        let kept = self.kept.entry(file).or_default();
        kept.iter_mut().skip(at as usize).take(length as usize).for_each(|byte| *byte = None);
    }

    fn fsync(&mut self, file: u32) -> bool {
        let is_right = self.of_file(file, Op::Fsync { handle: Handle(file) }, &mut []);
        if is_right {
            self.promised(file);
        }
        is_right
    }

    fn read(&mut self, file: u32, at: u64, length: u64) {
        let mut found = vec![0; length as usize];
        let op = Op::read(Handle(file), Bytes(at), Bytes(length));
        let Ok(length) = self.ask(op, None, &mut found) else { return };
        let (from, end) = (at as usize, (at + length) as usize);
        if !self.failed.contains_key(&file) && self.files[&file][from..end] != found[..end - from] {
            self.wrong.push(format!("a read at {at} finds something else"));
        }
    }

    /// Lets time pass, with the failures that still come.
    fn rest(&mut self) {
        let until = self.mounted.now + REST;
        for _ in 0..EVENTS_MAX {
            if !self.mounted.happens() || self.mounted.now >= until {
                return;
            }
        }
        self.wrong.push(format!("something happens again and again at {}", self.mounted.now));
    }

    /// Cuts power, and looks for what was promised.
    fn lose_power(&mut self) {
        self.mounted.failing = None;
        let mut is_cut = false;
        for _ in 0..EVENTS_MAX {
            self.mounted.settle();
            is_cut = self.mounted.machine.cut_power();
            if is_cut || !self.mounted.happens() {
                break;
            }
        }
        if !is_cut {
            return self.wrong.push("a call or a request never ends".to_owned());
        }
        for (file, kept) in core::mem::take(&mut self.kept) {
            let mut found = vec![0; kept.len()];
            let length = Bytes(kept.len() as u64);
            let op = Op::read(Handle(file), Bytes(0), length);
            let read = self.mounted.ask(op, None, &mut found);
            let length = read.unwrap_or(0) as usize;
            let is_there = |(at, byte): (usize, &Option<u8>)| {
                byte.is_none_or(|byte| at < length && found[at] == byte)
            };
            if let Some(at) = kept.iter().enumerate().position(|one| !is_there(one)) {
                self.wrong.push(format!("byte {at} of {file}, which was promised, is gone"));
            }
        }
    }
}

fn flushed(run: &mut Run) {
    run.prepared(0, 1);
    run.arm();
    for record in 1..13 {
        run.write(0, record * RECORD, RECORD);
        run.fsync(0);
    }
}

fn buffered(run: &mut Run) {
    (0..3).for_each(|file| run.prepared(file, 1));
    run.arm();
    for record in 1..17 {
        for file in 0..3 {
            run.write(file, record * RECORD, RECORD);
        }
    }
    for file in 0..3 {
        run.fsync(file);
    }
}

fn plenty(run: &mut Run) {
    run.prepared(0, 1);
    run.arm();
    for part in 0..48 {
        run.write(0, RECORD + part * 16 * RECORD, 16 * RECORD);
    }
    run.fsync(0);
    run.fsync(0);
}

fn names(run: &mut Run) {
    run.prepared(100, 1);
    run.arm();
    for file in 0..8 {
        if !run.open(file, Access::Plain, Durability::None, true) {
            continue;
        }
        run.write(file, 0, 1000);
        if file % 2 == 0 {
            run.of_file(file, Op::Fsync { handle: Handle(file) }, &mut []);
        }
        assert_eq!(run.ask(Op::Close { handle: Handle(file) }, None, &mut []), Ok(0));
        if file % 3 == 0 {
            let _ = run.ask(Op::Unlink { path: PathId(0) }, Some(&format!("file{file}")), &mut []);
        }
    }
    let _ = run.ask(Op::MakeDirectory { path: PathId(0) }, Some("directory"), &mut []);
    run.touch(100, 10, u64::MAX);
    let _ = run.ask(Op::Truncate { handle: Handle(100), length: Bytes(10) }, None, &mut []);
    assert!(run.ask(Op::SyncAll, None, &mut []).is_ok(), "sync(2) has no failures");
}

fn mapped(run: &mut Run) {
    run.prepared(0, 32);
    run.mounted.machine.drop_caches();
    run.arm();
    let (handle, length) = (Handle(0), Bytes(32 * RECORD));
    if !run.of_file(0, Op::Map { handle, length }, &mut []) {
        return;
    }
    for page in 0..16 {
        let (at, length) = (Bytes(page * 2 * RECORD), Bytes(RECORD));
        let data = [page as u8 + 1; RECORD as usize];
        let op = Op::Touch { handle, at, length, is_write: true };
        run.touch(0, at.0, length.0);
        if run.of_file(0, op, &mut data.clone()) {
            run.note(0, at.0, &data);
        }
    }
    if run.of_file(0, Op::Msync { is_async: false, handle, at: Bytes(0), length }, &mut []) {
        run.promised(0);
    }
    run.fsync(0);
}

fn direct(run: &mut Run) {
    run.prepared(0, 16);
    run.ask(Op::Close { handle: Handle(0) }, None, &mut []).unwrap();
    let access = if run.open(0, Access::Direct, Durability::DataSync, false) {
        Access::Direct
    } else {
        run.wrong.clear();
        Access::Plain
    };
    if access == Access::Plain {
        run.open(0, access, Durability::DataSync, false);
    }
    run.arm();
    for record in 0..24 {
        if run.write(0, record * RECORD, RECORD) {
            run.promised(0);
        }
        run.read(0, record * RECORD, RECORD);
    }
}

fn reads(run: &mut Run) {
    run.prepared(0, 256);
    run.mounted.machine.drop_caches();
    run.arm();
    (0..16).for_each(|part| run.read(0, part * 8 * RECORD, 8 * RECORD));
    for part in 16..32 {
        run.write(0, part * 8 * RECORD + 100, 100);
    }
    run.touch(0, 200 * RECORD + 100, u64::MAX);
    let op = Op::Truncate { handle: Handle(0), length: Bytes(200 * RECORD + 100) };
    if run.of_file(0, op, &mut []) {
        run.files.get_mut(&0).expect("it was made").truncate(200 * RECORD as usize + 100);
    }
    run.fsync(0);
}

/// All that is wrong with a file system when these requests fail.
fn faults_of(
    (mount, comes_back): (Mount, bool),
    rule: Failing,
    of: (&str, Workload),
) -> Vec<String> {
    let mut run = Run::new(mount, rule);
    of.1(&mut run);
    let is_told = !run.failed.is_empty();
    let concerns = rule.kind != OutgoingKind::Read && of.0.contains("fsync");
    if concerns && run.hits() > 0 && !is_told {
        run.wrong.push("nobody was told".to_owned());
    }
    run.rest();
    if !comes_back {
        run.kept.clear();
    }
    run.lose_power();
    let what = |wrong: String| format!("{mount:?}, {}, {rule:?}: {wrong}", of.0);
    run.wrong.into_iter().map(what).collect()
}

#[test]
fn every_call_is_answered_and_promises_are_kept_or_failures_told() {
    let mut wrong = Vec::new();
    for mount in MOUNTS {
        for kind in KINDS {
            for (after, times) in
                AFTER.into_iter().flat_map(|after| TIMES.map(|times| (after, times)))
            {
                let rule = Failing { kind, after, times, hits: 0 };
                for of in WORKLOADS {
                    wrong.extend(faults_of(mount, rule, of));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {:#?}", wrong.len(), &wrong[..wrong.len().min(40)]);
}

/// A write that fails is told to every open file, once, and to a new one if nobody was told before.
#[test]
fn each_open_file_is_told_once() {
    let rule = Failing { kind: OutgoingKind::Write, after: 0, times: 1, hits: 0 };
    let mut run = Run::new(("ext4", "", ""), rule);
    let how = OpenHow { is_readable: true, is_writable: true, ..OpenHow::default() };
    run.prepared(0, 1);
    run.mounted.open("file0", 1, how, false);
    run.arm();
    run.write(0, 0, RECORD);
    let range = RangeSync { waits_before: false, writes: true, waits_after: false };
    let (handle, at, length) = (Handle(0), Bytes(0), Bytes(0));
    run.ask(Op::SyncFileRange { handle, at, length, how: range }, None, &mut []).unwrap();
    run.mounted.settle();
    assert_eq!(run.hits(), 1);
    let fsync = |run: &mut Run, file| run.ask(Op::Fsync { handle: Handle(file) }, None, &mut []);
    // Nobody was told when this one was opened.
    run.mounted.open("file0", 2, how, false);
    assert_eq!(fsync(&mut run, 2), Err(Errno::EIO));
    run.mounted.open("file0", 3, how, false);
    for file in 0..4 {
        let told = if file < 2 { Err(Errno::EIO) } else { Ok(0) };
        assert_eq!(fsync(&mut run, file), told, "{file}");
        assert_eq!(fsync(&mut run, file), Ok(0), "{file}");
    }
}

/// A direct write that fails does not make its file longer.
#[test]
fn a_direct_write_that_fails_leaves_the_length() {
    for fs in ["ext2", "ext3", "ext4", "xfs", "ufs", "vxfs", "qfs"] {
        let rule = Failing { kind: OutgoingKind::Write, after: 0, times: 1, hits: 0 };
        let mut run = Run::new((fs, "", ""), rule);
        run.prepared(0, 3);
        let how = OpenHow {
            access: Access::Direct,
            is_readable: true,
            is_writable: true,
            ..OpenHow::default()
        };
        run.mounted.open("file0", 1, how, false);
        run.arm();
        let write = Op::write(Handle(1), Bytes(3 * RECORD), Bytes(8 * RECORD));
        let stat = Op::Stat { path: PathId(0) };
        let mut data = vec![7; 8 * RECORD as usize];
        let length = |run: &mut Run| run.ask(stat, Some("file0"), &mut []);
        // Where it goes through the cache, it is the flush that fails.
        if run.ask(write, None, &mut data).is_err() {
            assert_eq!(length(&mut run), Ok(3 * RECORD), "{fs}");
        }
        let _ = run.ask(Op::Fsync { handle: Handle(1) }, None, &mut []);
        assert_eq!(run.hits(), 1, "{fs}");
        run.ask(write, None, &mut data).unwrap();
        assert_eq!(length(&mut run), Ok(11 * RECORD), "{fs}");
        assert!(run.wrong.is_empty(), "{:?}", run.wrong);
    }
}

/// Metadata that xfs cannot write in place are written again and again, at intervals, and nobody is
/// told.
#[test]
fn xfs_tries_metadata_again() {
    let rule = Failing { kind: OutgoingKind::Write, after: 0, times: 3, hits: 0 };
    let mut run = Run::new(("xfs", "", ""), rule);
    run.prepared(0, 4);
    run.arm();
    let began = run.mounted.now;
    run.rest();
    assert_eq!(run.hits(), 3, "the log worker has written blocks in place");
    assert!(run.mounted.now.since(began) > Ns(60_000_000_000), "at intervals");
    assert!(run.write(0, 0, RECORD) && run.fsync(0), "the file system goes on");
    run.lose_power();
    assert!(run.wrong.is_empty(), "{:?}", run.wrong);
}
