//! The worker that makes, reads, removes or extends the files of a set: passive, as every worker.
//!
//! Its ops are the calls of bonnie++ 2.00 and of Solaris's mkfile, as traced, in their order; one
//! file (one transfer, where a file is extended) is one operation, with a latency from its first
//! call to its last. Making the directories is not timed, flushing everything at the end is. What a
//! target cannot do through a page cache is done in whole sectors.
//!
//! Left out: more than one op under way.

use iolab_model::error::Errno;
use iolab_model::op::{
    Access, Handle, Op, OpClass, OpenHow, PathId, Permissions, Position, Submission, Token,
    Transfer,
};
use iolab_model::{Bytes, Completion, Ns};

use super::plan::PlannedFile;
use super::{FileAction, FileSetPlan, LinkKind};
use crate::group::{Gate, GroupState};
use crate::report::StreamReport;
use crate::worker::{Step, WholeOperation, Worker};

const FILE: Handle = Handle(0);
/// Sectors are the unit of direct I/O.
const SECTOR: u64 = 512;
/// Names that are read from a directory at once.
const NAMES_AT_ONCE: u32 = 1024;

/// Next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Make a directory, or remove what has the name of the file to extend.
    Prepare(u32),
    ArriveStart,
    WaitStart,
    /// The next file in line, or the end.
    File,
    /// The next names of a directory.
    List,
    /// As many names as were answered.
    Listed,
    Begin,
    /// Its length was answered.
    Looked,
    Open,
    /// The last byte, of a file that is extended.
    Tail,
    Data,
    Sync,
    SyncParent,
    Close,
    FileOver,
    RemoveDirectory(u32),
    SyncAll,
    ArriveEnd,
    WaitEnd,
    /// Close and remove the file that could not be extended.
    Abandon,
    Forget,
    Over,
}

/// Ways to the files.
#[derive(Clone, Copy, Debug)]
pub struct FileMeans {
    /// Through the page cache, or not.
    pub access: Access,
    /// The target keeps no names that could be listed.
    pub keeps_nothing: bool,
    /// The first worker that ends stops the others.
    pub is_stonewalled: bool,
}

/// One worker with a set of files.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct FileSetWorker<G> {
    group: G,
    plan: FileSetPlan,
    means: FileMeans,
    next: Next,
    /// Next file in line, or next one of the names that were read.
    at: usize,
    /// Names that were read last.
    listed: usize,
    /// Directory that is being read.
    directory: u32,
    /// The directory has no more names.
    is_read: bool,
    file: PlannedFile,
    /// Bytes of the file that were moved.
    moved: u64,
    began: Option<Ns>,
    is_timed: bool,
    is_in_flight: bool,
    is_counted: bool,
    /// Bytes that the op under way shall move of the file's data.
    asked: Option<u64>,
    answer: Result<Bytes, Errno>,
    failed: Option<String>,
    whole: Option<WholeOperation>,
    ended: Ns,
    arrived: [bool; 2],
    report: StreamReport,
}

impl<G: GroupState> FileSetWorker<G> {
    /// Worker number `index`, which does what `plan` says.
    pub fn new(plan: FileSetPlan, index: u32, means: FileMeans, group: G) -> Self {
        let directory = *plan.holding().start();
        Self {
            group,
            plan,
            means,
            next: Next::Prepare(0),
            at: 0,
            listed: 0,
            directory,
            is_read: false,
            file: PlannedFile { path: PathId(0), parent: PathId(0), bytes: 0 },
            moved: 0,
            began: None,
            is_timed: false,
            is_in_flight: false,
            is_counted: false,
            asked: None,
            answer: Ok(Bytes(0)),
            failed: None,
            whole: None,
            ended: Ns(0),
            arrived: [false; 2],
            report: StreamReport { worker: index, ..StreamReport::default() },
        }
    }

    /// Counts of the worker.
    pub fn report(&self) -> StreamReport {
        self.report.clone()
    }

    fn action(&self) -> FileAction {
        self.plan.work.action
    }

    #[allow(clippy::unnecessary_wraps, reason = "what comes next is to be asked again")]
    fn go(&mut self, next: Next) -> Option<Step> {
        self.next = next;
        None
    }

    #[allow(clippy::unnecessary_wraps, reason = "as every part of what comes next")]
    fn ask(&mut self, op: Op, next: Next, now: Ns) -> Option<Step> {
        (self.next, self.is_in_flight) = (next, true);
        let (token, is_timed) = (Token(0), self.is_timed);
        Some(Step::Submit(Submission { token, intended: now, is_timed, op }))
    }

    /// Length of what is moved where `bytes` are wanted: whole sectors past the page cache.
    fn padded(&self, bytes: u64) -> u64 {
        let is_direct = self.means.access == Access::Direct;
        if is_direct { bytes.next_multiple_of(SECTOR) } else { bytes }
    }

    fn step(&mut self, now: Ns) -> Option<Step> {
        match self.next {
            Next::Prepare(number) => self.prepare(number, now),
            Next::ArriveStart => {
                self.arrive(Gate::Start);
                self.go(Next::WaitStart)
            }
            Next::WaitStart if self.group.is_open(Gate::Start) => {
                self.is_timed = true;
                (self.report.started_ns, self.ended) = (now.0, now);
                self.go(Next::File)
            }
            Next::ArriveEnd => {
                self.is_timed = false;
                self.report.elapsed_ns = self.ended.since(Ns(self.report.started_ns)).0;
                if self.means.is_stonewalled && !self.group.is_stopped() {
                    self.group.stop();
                }
                self.arrive(Gate::End);
                self.go(Next::WaitEnd)
            }
            Next::WaitEnd if self.group.is_open(Gate::End) => self.go(Next::Over),
            Next::WaitStart | Next::WaitEnd => Some(Step::Await),
            Next::RemoveDirectory(number) => self.remove_directory(number, now),
            Next::SyncAll => self.ask(Op::SyncAll, Next::ArriveEnd, now),
            Next::Over => Some(Step::Finished),
            _ => self.of_file(now),
        }
    }

    fn arrive(&mut self, gate: Gate) {
        self.arrived[gate as usize] = true;
        self.group.arrive(gate);
    }

    fn prepare(&mut self, number: u32, now: Ns) -> Option<Step> {
        let path = PathId(number);
        match self.action() {
            FileAction::Create if number <= self.plan.subdirectories => {
                self.ask(Op::MakeDirectory { path }, Next::Prepare(number + 1), now)
            }
            FileAction::Extend if number == 0 && !self.plan.takes_only_free_names => {
                self.ask(Op::Unlink { path }, Next::Prepare(1), now)
            }
            _ => self.go(Next::ArriveStart),
        }
    }

    /// Step that is timed after the last file.
    fn end(&mut self) -> Option<Step> {
        self.go(match self.action() {
            FileAction::Create => Next::SyncAll,
            FileAction::Remove => Next::RemoveDirectory(1),
            FileAction::Read | FileAction::Extend => Next::ArriveEnd,
        })
    }

    /// The subdirectories go first, the set's own directory last.
    fn remove_directory(&mut self, number: u32, now: Ns) -> Option<Step> {
        let is_last = number > self.plan.subdirectories;
        let path = if is_last { PathId(0) } else { PathId(number) };
        let next = if is_last { Next::SyncAll } else { Next::RemoveDirectory(number + 1) };
        self.ask(Op::RemoveDirectory { path }, next, now)
    }

    fn of_file(&mut self, now: Ns) -> Option<Step> {
        let (path, parent) = (self.file.path, self.file.parent);
        let is_flushed = self.plan.work.is_flushed;
        match self.next {
            Next::File if self.group.is_stopped() => self.go(Next::ArriveEnd),
            Next::File => self.next_file(),
            Next::List => {
                let (path, count) = (PathId(self.directory), NAMES_AT_ONCE);
                self.ask(Op::NextNames { path, count }, Next::Listed, now)
            }
            Next::Listed => self.listed(),
            Next::Begin => self.begin(now),
            Next::Open => {
                self.ask(Op::Open { path, handle: FILE, how: self.how() }, Next::Data, now)
            }
            Next::Tail => self.tail(now),
            Next::Data => self.data(now),
            Next::Sync if is_flushed => {
                let is_alone = self.action() == FileAction::Extend;
                let next = if is_alone { Next::Close } else { Next::SyncParent };
                self.ask(Op::Fsync { handle: FILE }, next, now)
            }
            Next::Sync => self.go(Next::Close),
            Next::SyncParent => {
                let is_open = self.action() == FileAction::Create;
                let next = if is_open { Next::Close } else { Next::FileOver };
                self.ask(Op::SyncDirectory { path: parent }, next, now)
            }
            Next::Close => self.ask(Op::Close { handle: FILE }, Next::FileOver, now),
            Next::Abandon => self.ask(Op::Close { handle: FILE }, Next::Forget, now),
            Next::Forget => self.ask(Op::Unlink { path }, Next::Over, now),
            _ => self.go(Next::File),
        }
    }

    /// Step for the next file in line.
    fn next_file(&mut self) -> Option<Step> {
        (self.moved, self.began) = (0, None);
        if !self.plan.is_listed() {
            let Some(file) = self.plan.files.get(self.at) else { return self.end() };
            self.file = *file;
            return self.go(Next::Begin);
        }
        if self.at < self.listed {
            let parent = PathId(self.directory);
            let behind = self.plan.paths().len() + self.at;
            self.file = PlannedFile { path: PathId(behind as u32), parent, bytes: 0 };
            return self.go(Next::Begin);
        }
        if self.is_read {
            if self.directory == *self.plan.holding().end() {
                return self.end();
            }
            (self.directory, self.is_read) = (self.directory + 1, false);
        }
        self.go(Next::List)
    }

    /// Names were read.
    fn listed(&mut self) -> Option<Step> {
        let count = self.answer.map_or(0, |count| count.0);
        (self.at, self.listed) = (0, count as usize);
        self.is_read = count < u64::from(NAMES_AT_ONCE);
        if self.means.keeps_nothing {
            (self.listed, self.is_read) = (self.plan.dealt(self.directory) as usize, true);
        }
        self.go(Next::File)
    }

    /// The first call of a file.
    fn begin(&mut self, now: Ns) -> Option<Step> {
        let path = self.file.path;
        let is_flushed = self.plan.work.is_flushed;
        let is_link = self.plan.is_link(self.at);
        self.at += 1;
        match self.action() {
            FileAction::Create if is_link => {
                let is_symbolic = self.plan.work.link == LinkKind::Symbolic;
                let from = self.plan.files[0].path;
                self.ask(Op::Link { from, to: path, is_symbolic }, Next::FileOver, now)
            }
            FileAction::Create | FileAction::Extend => {
                let next =
                    if self.action() == FileAction::Extend { Next::Tail } else { Next::Data };
                self.ask(Op::Create { path, handle: FILE, how: self.how() }, next, now)
            }
            FileAction::Read => self.ask(Op::StatTarget { path }, Next::Looked, now),
            FileAction::Remove => {
                let next = if is_flushed { Next::SyncParent } else { Next::FileOver };
                self.ask(Op::Unlink { path }, next, now)
            }
        }
    }

    fn how(&self) -> OpenHow {
        let is_extended = self.action() == FileAction::Extend;
        OpenHow {
            access: self.means.access,
            is_readable: self.action() != FileAction::Create,
            is_writable: self.action() != FileAction::Read,
            permissions: if is_extended { Permissions::OwnerSticky } else { Permissions::Owner },
            is_remembered: is_extended,
            ..OpenHow::default()
        }
    }

    /// One byte at the end gives the file its length.
    fn tail(&mut self, now: Ns) -> Option<Step> {
        let size = self.padded(self.file.bytes);
        let length = self.padded(1);
        let next = if self.plan.work.is_sparse { Next::Sync } else { Next::Data };
        if size == 0 {
            return self.go(next);
        }
        self.is_counted = true;
        self.ask(Op::write(FILE, Bytes(size - length), Bytes(length)), next, now)
    }

    /// The next part of a file's data.
    fn data(&mut self, now: Ns) -> Option<Step> {
        let is_extended = self.action() == FileAction::Extend;
        let is_cut = is_extended && self.group.is_stopped();
        let left = self.padded(self.file.bytes).saturating_sub(self.moved);
        if left == 0 || is_cut {
            let is_read = self.action() == FileAction::Read;
            return self.go(if is_read { Next::Close } else { Next::Sync });
        }
        let length = Bytes(left.min(self.padded(self.plan.chunk)));
        let at = if is_extended { Position::At(Bytes(self.moved)) } else { Position::Current };
        let transfer = Transfer::plain(FILE, at, length);
        (self.is_counted, self.asked) = (is_extended, Some(length.0));
        let is_read = self.action() == FileAction::Read;
        let op = if is_read { Op::Read(transfer) } else { Op::Write(transfer) };
        self.ask(op, Next::Data, now)
    }

    /// Counts a file, or a transfer of the one that is extended.
    fn count(&mut self, completion: &Completion, bytes: u64) {
        let report = &mut self.report;
        report.ops += 1;
        report.bytes += bytes;
        match self.plan.work.action {
            FileAction::Read => report.read_bytes += bytes,
            FileAction::Create | FileAction::Extend => report.write_bytes += bytes,
            FileAction::Remove => {}
        }
        let gap = completion.completed.since(self.ended).0;
        report.gap_ns_max = report.gap_ns_max.max(gap);
    }

    /// A file is over.
    fn file_over(&mut self, completion: &Completion) {
        self.next = Next::File;
        if self.action() == FileAction::Extend {
            return;
        }
        self.count(completion, self.moved);
        let is_read = self.action() == FileAction::Read;
        self.whole = Some(WholeOperation {
            class: if is_read { OpClass::Read } else { OpClass::Write },
            began: self.began.unwrap_or(completion.submitted),
            ended: completion.completed,
            bytes: self.moved,
        });
    }

    /// A call has ended well.
    fn call_ended(&mut self, completion: &Completion, moved: u64) {
        self.began.get_or_insert(completion.submitted);
        if let Some(asked) = self.asked.take() {
            self.moved += moved;
            if moved < asked {
                let (name, at, size) = (self.report.ops, self.moved, self.file.bytes);
                self.failed = Some(format!("file number {name}: {at} of {size} bytes are there"));
                self.next = Next::Over;
                return;
            }
        }
        match self.next {
            // The answer to what is asked next: a length, or how many names.
            Next::Looked => {
                self.file.bytes = if self.means.keeps_nothing { self.file.bytes } else { moved };
                self.next = Next::Open;
                if self.file.bytes == 0 {
                    self.file_over(completion);
                }
            }
            Next::FileOver => self.file_over(completion),
            _ => {}
        }
    }

    /// Tell whether an error is one that is as good as success.
    fn is_harmless(&self, errno: Errno) -> bool {
        match self.next {
            Next::Prepare(_) if self.action() == FileAction::Create => errno == Errno::EEXIST,
            Next::Prepare(_) => errno == Errno::ENOENT,
            // The file is removed all the same; what else is in the set's own directory stays, and
            // it does, too.
            Next::Forget | Next::SyncAll => true,
            // A target that cannot flush everything has nothing to flush.
            Next::ArriveEnd => errno == Errno::EOPNOTSUPP,
            _ => false,
        }
    }

    fn call_failed(&mut self, errno: Errno) {
        let error = std::io::Error::from_raw_os_error(errno.0);
        if let Some(message) = &mut self.failed {
            // The file that could not be extended could not be removed either.
            message.push_str("; the incomplete file is still there");
            self.next = Next::Over;
            return;
        }
        let (name, size) = (&self.plan.name, self.file.bytes);
        let is_open = matches!(self.next, Next::Data | Next::Sync | Next::Close | Next::FileOver);
        self.failed = Some(match (self.action(), self.next) {
            (FileAction::Extend, _) if self.asked.is_some() => {
                format!("{name}: initialized {} of {size} bytes: {error}", self.moved)
            }
            (FileAction::Extend, _) => format!("{name}: {error}"),
            (_, Next::Prepare(_)) => format!("cannot make the directory {name}: {error}"),
            _ => format!("file number {}: {error}", self.report.ops),
        });
        let is_ours = self.action() == FileAction::Extend && is_open;
        self.next = if is_ours { Next::Abandon } else { Next::Over };
    }

    /// After a failure: let nobody wait for this worker, end.
    fn give_up(&mut self, message: String) {
        self.report.errors += 1;
        self.report.first_error.get_or_insert(message);
        self.report.elapsed_ns = self.ended.since(Ns(self.report.started_ns)).0;
        self.group.stop();
        for gate in Gate::ALL {
            if !self.arrived[gate as usize] {
                self.arrive(gate);
            }
        }
    }
}

impl<G: GroupState> Worker for FileSetWorker<G> {
    fn next(&mut self, now: Ns) -> Step {
        loop {
            if self.is_in_flight {
                return Step::Await;
            }
            if self.next == Next::Over
                && let Some(message) = self.failed.take()
            {
                self.give_up(message);
            }
            if let Some(step) = self.step(now) {
                return step;
            }
        }
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        self.is_in_flight = false;
        let is_counted = std::mem::replace(&mut self.is_counted, false);
        self.answer = completion.outcome;
        if self.is_timed {
            self.report.call_ns += completion.completed.since(completion.submitted).0;
        }
        match completion.outcome {
            Err(errno) if !self.is_harmless(errno) => self.call_failed(errno),
            _ if self.failed.is_some() => {
                if let (Next::Over, Some(message)) = (self.next, &mut self.failed) {
                    message.push_str("; the incomplete file was removed");
                }
            }
            outcome => {
                let moved = outcome.map_or(0, |moved| moved.0);
                if is_counted {
                    self.count(completion, moved);
                }
                self.call_ended(completion, moved);
            }
        }
        if self.is_timed {
            self.ended = completion.completed;
        }
        is_counted && completion.outcome.is_ok()
    }

    fn whole_operation(&mut self) -> Option<WholeOperation> {
        self.whole.take()
    }
}
