//! The worker that makes a phase's files before anybody is measured.
//!
//! It is an actor of its own on a lane of its own. To the kernel, and to a simulated scheduler, the
//! one who writes the files is then not one of those who are measured: a scheduler that judges a
//! process by its past (BFQ raises the weight of one that has been idle) judges what is measured.
//! Files are made one after the other, so that they do not interleave on the device.
//!
//! Left out: directories, and many small files (file-set dialects).

use iolab_model::error::Errno;
use iolab_model::op::{
    Access, Durability, Handle, Op, OpenHow, PathId, Permissions, Submission, Token, WriteLife,
};
use iolab_model::target::Content;
use iolab_model::{Bytes, Completion, Ns};

use crate::group::GroupState;
use crate::spec::{Opening, Phase, Preallocation, Tenant};
use crate::worker::{Step, Worker};

const FILE: Handle = Handle(0);
const SLOT: Token = Token(0);
/// Bytes per write: large enough for any device, small enough to be stopped between two.
pub const FILL_BYTES: Bytes = Bytes(1 << 20);

/// A file to be made, or to be left alone if it is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    name: String,
    bytes: Bytes,
    access: Access,
    opening: Opening,
    preallocation: Option<Preallocation>,
    /// Content that it is made of; absent: the workload's.
    content: Option<Content>,
    /// Its length must be there before it is written to.
    is_mapped: bool,
}

/// The files that a phase needs and does not expect to find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutPlan {
    files: Vec<File>,
}

impl LayoutPlan {
    /// Files that must be made before `phase`.
    pub fn of(phase: &Phase) -> Self {
        let mut files: Vec<File> = Vec::new();
        // The files of a program or of a set of small files are made otherwise.
        let streams = phase
            .tenants
            .iter()
            .filter(|t| t.program.is_none() && t.file_set.is_none() && t.kv.is_none());
        let made = streams.filter(|tenant| tenant.opening != Opening::Existing);
        for (tenant, name) in made.flat_map(|t| t.file_names().map(move |name| (t, name))) {
            let file = File::new(tenant, name);
            // Tenants may share a file: the one who needs most of it decides. Who takes it as it is
            // decides nothing for one who needs its data: both have their turn.
            let is_one = |known: &File| {
                let is_mixed = known.is_kept() && file.is_filled();
                known.name == file.name && !is_mixed && !(known.is_filled() && file.is_kept())
            };
            match files.iter_mut().find(|known| is_one(known)) {
                Some(known) if known.bytes < file.bytes => *known = file,
                Some(_) => {}
                None => files.push(file),
            }
        }
        Self { files }
    }

    /// Tell whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Tell whether room is filled or allocated; otherwise files are only made.
    pub fn has_data(&self) -> bool {
        self.files.iter().any(|file| file.is_filled() || file.preallocation.is_some())
    }

    /// Content of each file, in the order of `names`: its tenant's, if it has one, else the usual.
    pub fn contents(&self, usual: Content) -> impl Iterator<Item = Content> {
        self.files.iter().map(move |file| file.content.unwrap_or(usual))
    }

    /// Names of the files; [`PathId`] counts in this order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.name.as_str())
    }
}

impl File {
    fn new(tenant: &Tenant, name: String) -> Self {
        Self {
            name,
            bytes: tenant.used_bytes(),
            access: match tenant.access {
                Access::Direct => Access::Direct,
                _ => Access::Plain,
            },
            opening: tenant.opening,
            preallocation: Some(tenant.manner.preallocation).filter(|_| tenant.is_preallocated),
            content: tenant.manner.content,
            is_mapped: tenant.access == Access::Mapped,
        }
    }

    fn is_filled(&self) -> bool {
        self.opening == Opening::LaidOut
    }

    fn is_kept(&self) -> bool {
        self.opening == Opening::Keep
    }

    fn how(&self) -> OpenHow {
        OpenHow {
            access: self.access,
            durability: Durability::None,
            is_readable: true,
            is_writable: true,
            is_truncating: false,
            stream_buffer_bytes: Bytes(0),
            permissions: Permissions::Group,
            write_life: WriteLife::Unsaid,
            is_remembered: true,
        }
    }
}

/// Next step for the file at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Probe,
    Unlink,
    Create,
    Allocate,
    /// The file system cannot allocate without writing: the length alone.
    Lengthen,
    Fill {
        at: u64,
    },
    Close,
}

/// Makes the files of a plan, one after the other.
#[derive(Debug)]
pub struct LayoutWorker<G> {
    group: G,
    plan: LayoutPlan,
    current: usize,
    stage: Stage,
    is_in_flight: bool,
    is_allocating: bool,
    answer: Result<Bytes, Errno>,
    failure: Option<LayoutFailure>,
}

/// A file that could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutFailure {
    /// Its name.
    pub file: String,
    /// Action that was under way.
    pub what: &'static str,
    /// The kernel's answer.
    pub errno: Errno,
}

impl<G: GroupState> LayoutWorker<G> {
    /// A worker that makes the files of `plan` unless `group` is stopped.
    pub fn new(plan: LayoutPlan, group: G) -> Self {
        let (current, is_in_flight, answer, failure) = (0, false, Ok(Bytes(0)), None);
        let (stage, is_allocating) = (Stage::Probe, false);
        Self { group, plan, current, stage, is_in_flight, is_allocating, answer, failure }
    }

    /// Reason why it ended early, if a file could not be made.
    pub fn failure(&self) -> Option<&LayoutFailure> {
        self.failure.as_ref()
    }

    /// Tell whether it was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.group.is_stopped()
    }

    fn then(&mut self, stage: Stage, now: Ns, op: Op) -> Step {
        self.stage = stage;
        self.is_in_flight = true;
        self.is_allocating = matches!(op, Op::Allocate { .. });
        Step::Submit(Submission { token: SLOT, intended: now, is_timed: false, op })
    }

    fn step(&mut self, now: Ns) -> Option<Step> {
        let path = PathId(self.current as u32);
        let file = &self.plan.files[self.current];
        let (bytes, how, is_filled) = (file.bytes, file.how(), file.is_filled());
        let (is_kept, is_asked) = (file.is_kept(), is_filled || file.is_kept());
        match self.stage {
            _ if self.group.is_stopped() && !matches!(self.stage, Stage::Close) => None,
            Stage::Probe if is_asked => Some(self.then(Stage::Unlink, now, Op::Stat { path })),
            Stage::Unlink
                if is_asked && self.answer.is_ok_and(|found| is_kept || found >= bytes) =>
            {
                self.current += 1;
                self.stage = Stage::Probe;
                None
            }
            Stage::Probe if file.opening == Opening::New => {
                self.stage = Stage::Create;
                self.step(now)
            }
            Stage::Probe | Stage::Unlink => {
                Some(self.then(Stage::Create, now, Op::Unlink { path }))
            }
            Stage::Create => {
                let is_room_made = file.preallocation.is_some();
                let next = if is_room_made { Stage::Allocate } else { Stage::Fill { at: 0 } };
                Some(self.then(next, now, Op::Create { path, handle: FILE, how }))
            }
            Stage::Allocate => {
                let allocate = |keeps_length| Op::Allocate {
                    handle: FILE,
                    at: Bytes(0),
                    length: bytes,
                    keeps_length,
                };
                let op = match file.preallocation.unwrap_or_default() {
                    Preallocation::Extended => allocate(false),
                    Preallocation::Reserved => allocate(true),
                    Preallocation::Length => Op::Truncate { handle: FILE, length: bytes },
                };
                Some(self.then(Stage::Fill { at: 0 }, now, op))
            }
            Stage::Lengthen => {
                let op = Op::Truncate { handle: FILE, length: bytes };
                Some(self.then(Stage::Fill { at: 0 }, now, op))
            }
            Stage::Fill { at } if is_filled && at < bytes.0 => {
                let length = FILL_BYTES.0.min(bytes.0 - at);
                let op = Op::write(FILE, Bytes(at), Bytes(length));
                Some(self.then(Stage::Fill { at: at + length }, now, op))
            }
            Stage::Fill { .. } => Some(self.then(Stage::Close, now, Op::Fsync { handle: FILE })),
            Stage::Close => {
                let step = self.then(Stage::Probe, now, Op::Close { handle: FILE });
                self.current += 1;
                Some(step)
            }
        }
    }

    /// Words for the op in flight; its successor's stage is set already.
    fn doing(&self) -> &'static str {
        match self.stage {
            Stage::Unlink => "looking for",
            Stage::Create => "removing an old copy of",
            Stage::Allocate | Stage::Lengthen | Stage::Fill { at: 0 } => "creating",
            Stage::Fill { .. } => "laying out",
            Stage::Close => "flushing",
            Stage::Probe => "closing",
        }
    }
}

impl<G: GroupState> Worker for LayoutWorker<G> {
    fn next(&mut self, now: Ns) -> Step {
        loop {
            if self.is_in_flight {
                return Step::Await;
            }
            let is_over = self.current == self.plan.files.len() || self.group.is_stopped();
            if is_over || self.failure.is_some() {
                return Step::Finished;
            }
            if let Some(step) = self.step(now) {
                return step;
            }
        }
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        self.is_in_flight = false;
        self.answer = completion.outcome;
        if self.is_allocating && completion.outcome == Err(Errno::EOPNOTSUPP) {
            // ext2 and ext3: fio goes on without a word, and so do others that ask in advance.
            if self.plan.files[self.current].is_mapped {
                self.stage = Stage::Lengthen;
            }
            return false;
        }
        // A file that is not there answers a question, it fails nothing.
        let is_question = matches!(self.stage, Stage::Unlink | Stage::Create);
        if let Err(errno) = completion.outcome
            && !(is_question && errno == Errno::ENOENT)
        {
            let done = if self.stage == Stage::Probe { self.current - 1 } else { self.current };
            let file = self.plan.files[done].name.clone();
            self.failure = Some(LayoutFailure { file, what: self.doing(), errno });
        }
        false
    }
}
