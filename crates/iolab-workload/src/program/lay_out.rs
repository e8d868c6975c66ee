//! The worker that makes the files of a phase's sets, and loads its keys, before anybody is
//! measured.

use iolab_model::error::Errno;
use iolab_model::op::{
    Access, Durability, Handle, KeyValueKind, Op, OpenHow, PathId, Permissions, Submission, Token,
    WriteLife,
};
use iolab_model::{Bytes, Completion, Ns, Seed};

use super::files::Fill;
use super::stage::{Making, Stage};
use crate::group::GroupState;
use crate::layout::{FILL_BYTES, LayoutFailure};
use crate::worker::{Step, Worker};

const FILE: Handle = Handle(0);
/// Sectors are the unit of direct I/O.
const SECTOR: u64 = 512;

/// Next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Directory(usize),
    Leaf(u32),
    /// Directories beside the tree that are there at the beginning.
    Standing(usize),
    /// Look at a file, to see what is to be done about it.
    Look(u32),
    /// Its length is known, or that it is not there.
    Seen(u32),
    Create(u32),
    Created(u32),
    Fill(u32, u64),
    Cut(u32, u64),
    Close(u32),
    Closed(u32),
    SetOver,
    Keys(u64),
    Flush,
    Over,
}

/// Part of what a stage needs that one worker makes: the files are divided into so many ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MakerShare {
    /// Ordinal of the worker. The first one makes what is not divided: directories before the
    /// others begin, keys, and the flush at the end.
    pub index: u32,
    /// Number of workers.
    pub of: u32,
    /// Step of the work.
    pub round: Round,
}

/// Step of the making, where several workers share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Everything: one worker is alone.
    Whole,
    /// Directories only.
    Directories,
    /// Files of its range only.
    Files,
    /// Work that comes after the files.
    Rest,
}

impl MakerShare {
    /// One worker that makes everything.
    pub const ALL: Self = Self { index: 0, of: 1, round: Round::Whole };

    /// Range of so many files.
    fn range(self, count: u64) -> std::ops::Range<u32> {
        let cut = |index: u32| (count * u64::from(index) / u64::from(self.of)) as u32;
        cut(self.index)..cut(self.index + 1)
    }

    fn has(self, round: Round) -> bool {
        self.round == Round::Whole || self.round == round
    }
}

/// Names of a set that were found or made.
#[derive(Clone, Debug, Default)]
struct FoundNames {
    files: Vec<bool>,
    leafs: Vec<bool>,
}

/// Makes what a stage needs, one after the other.
pub struct StageWorker<'a, G> {
    stage: &'a Stage,
    group: G,
    share: MakerShare,
    /// Files of the set at hand that it makes.
    range: std::ops::Range<u32>,
    /// Names of the sets that it has gone through.
    names: Vec<FoundNames>,
    /// Through the page cache, or not.
    access: Access,
    set: usize,
    next: Next,
    paths: Vec<PathId>,
    exists: Vec<bool>,
    leafs: Vec<bool>,
    is_in_flight: bool,
    answer: Result<Bytes, Errno>,
    doing: (&'static str, PathId),
    failure: Option<LayoutFailure>,
    random: iolab_model::seed::Stream,
    has_all_sync: bool,
}

impl<'a, G: GroupState> StageWorker<'a, G> {
    /// A worker that makes what `stage` needs, unless `group` is stopped; `access`: how files are
    /// written.
    pub fn new(stage: &'a Stage, seed: Seed, access: Access, group: G) -> Self {
        Self::sharing(stage, seed, (access, MakerShare::ALL), group)
    }

    /// The same with a share of the work.
    pub fn sharing(
        stage: &'a Stage,
        seed: Seed,
        (access, share): (Access, MakerShare),
        group: G,
    ) -> Self {
        let mut worker = Self {
            stage,
            group,
            share,
            range: 0..0,
            names: Vec::new(),
            access,
            set: 0,
            next: Next::SetOver,
            paths: Vec::new(),
            exists: Vec::new(),
            leafs: Vec::new(),
            is_in_flight: false,
            answer: Ok(Bytes(0)),
            doing: ("making", PathId(0)),
            failure: None,
            random: seed.stream("values", 0),
            has_all_sync: access != Access::Direct,
        };
        worker.begin_set();
        worker
    }

    /// Reason why it ended early.
    pub fn failure(&self) -> Option<&LayoutFailure> {
        self.failure.as_ref()
    }

    /// Tell whether it was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.group.is_stopped()
    }

    /// Number of workers that may share the making of files at once.
    pub fn makers(stage: &Stage) -> u32 {
        stage.sets.iter().map(|set| set.makers).max().unwrap_or(1)
    }

    /// Settles what all workers that shared the files have found, in the order of their shares.
    pub fn settle_shared(stage: &Stage, workers: &[Self]) {
        for (index, set) in stage.sets.iter().enumerate() {
            let mut found = FoundNames::default();
            for worker in workers {
                let Some(names) = worker.names.get(index) else { return };
                let range = worker.share.range(set.exists.len() as u64);
                found.files.extend(&names.files[range.start as usize..range.end as usize]);
                if found.leafs.is_empty() {
                    found.leafs.clone_from(&names.leafs);
                }
            }
            set.found(&found.files, &found.leafs);
        }
    }

    /// Bytes of a buffer that it needs.
    pub fn buffer_bytes(stage: &Stage) -> Bytes {
        let values = stage.spaces.iter().map(|space| Bytes(space.value_bytes().most()));
        values.max().unwrap_or_default().max(FILL_BYTES)
    }

    fn begin_set(&mut self) {
        let Some(set) = self.stage.sets.get(self.set) else {
            self.next = if self.share.has(Round::Rest) { Next::Keys(0) } else { Next::Over };
            return;
        };
        if self.share.round == Round::Rest {
            (self.set, self.next) = (self.stage.sets.len(), Next::Keys(0));
            return;
        }
        let makes_directories = self.share.has(Round::Directories);
        self.paths = if makes_directories { set.tree().collect() } else { Vec::new() };
        self.range = self.share.range(set.exists.len() as u64);
        (self.exists, self.leafs) = (set.exists.clone(), Vec::new());
        if self.stage.keeps_nothing && set.making == Making::Looked {
            // What an earlier phase made cannot be looked for: every file counts as made.
            self.exists.fill(true);
            for (number, size) in (0..).zip(&set.nominal) {
                set.resize(number, *size);
            }
            self.next = Next::SetOver;
            return;
        }
        self.next = Next::Directory(0);
    }

    /// State in which the files of the set at hand are found.
    fn making(&self) -> Making {
        match self.stage.sets[self.set].making {
            // Nothing is there, whatever is asked.
            _ if self.stage.keeps_nothing => Making::Fresh,
            making => making,
        }
    }

    fn ask(&mut self, doing: (&'static str, PathId), op: Op, next: Next, now: Ns) -> Step {
        (self.doing, self.next, self.is_in_flight) = (doing, next, true);
        Step::Submit(Submission { token: Token(0), intended: now, is_timed: false, op })
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
            is_remembered: self.stage.sets[self.set].is_flat,
        }
    }

    /// Size of a file as it is made: direct I/O writes whole sectors.
    fn size(&self, file: u32) -> u64 {
        let size = self.stage.sets[self.set].nominal[file as usize];
        if self.access == Access::Direct { size.next_multiple_of(SECTOR) } else { size }
    }

    fn step(&mut self, now: Ns) -> Option<Step> {
        match self.next {
            Next::Directory(index) if index < self.paths.len() => {
                let path = self.paths[index];
                let op = Op::MakeDirectory { path };
                Some(self.ask(("making the directory", path), op, Next::Directory(index + 1), now))
            }
            Next::Directory(_) if self.share.round == Round::Directories => {
                let leafs = self.stage.sets[self.set].leafs_exist.clone();
                self.paths = self.standing_leafs(&leafs);
                self.go(Next::Standing(0))
            }
            Next::Directory(_) if self.share.round == Round::Files => {
                self.leafs.clone_from(&self.stage.sets[self.set].leafs_exist);
                self.go(Next::Look(self.range.start))
            }
            Next::Directory(_) => self.go(Next::Leaf(0)),
            Next::Standing(index) if index < self.paths.len() => {
                let path = self.paths[index];
                let op = Op::MakeDirectory { path };
                Some(self.ask(("making the directory", path), op, Next::Standing(index + 1), now))
            }
            Next::Standing(_) if self.share.round == Round::Directories => {
                self.set += 1;
                self.begin_set();
                None
            }
            Next::Standing(_) => self.go(Next::Look(self.range.start)),
            Next::Leaf(number) => self.leaf(number, now),
            Next::SetOver => {
                if self.share.round == Round::Whole {
                    self.stage.sets[self.set].found(&self.exists, &self.leafs);
                } else {
                    let (files, leafs) = (self.exists.clone(), self.leafs.clone());
                    self.names.push(FoundNames { files, leafs });
                }
                self.set += 1;
                self.begin_set();
                None
            }
            Next::Keys(number) => self.load(number, now),
            Next::Flush if self.has_all_sync && !self.stage.sets.is_empty() => {
                Some(self.ask(("flushing", PathId(0)), Op::SyncAll, Next::Over, now))
            }
            Next::Flush | Next::Over => self.go(Next::Over),
            next => self.file(next, now),
        }
    }

    fn go(&mut self, next: Next) -> Option<Step> {
        self.next = next;
        None
    }

    /// Directories beside the tree: later phases look whether they are there.
    fn leaf(&mut self, number: u32, now: Ns) -> Option<Step> {
        let set = &self.stage.sets[self.set];
        if number > 0 && self.making() == Making::Looked {
            self.leafs.push(self.answer.is_ok());
        }
        if number >= set.count(true) {
            if self.making() == Making::Looked {
                return self.go(Next::Look(self.range.start));
            }
            self.leafs.clone_from(&set.leafs_exist);
            self.paths = self.standing_leafs(&set.leafs_exist);
            return self.go(Next::Standing(0));
        }
        if self.making() != Making::Looked {
            return self.go(Next::Leaf(set.count(true)));
        }
        let path = set.path(number, true);
        Some(self.ask(("looking for", path), Op::Stat { path }, Next::Leaf(number + 1), now))
    }

    /// Paths of the directories beside the tree of the set at hand that are there.
    fn standing_leafs(&self, leafs: &[bool]) -> Vec<PathId> {
        let set = &self.stage.sets[self.set];
        let standing = (0..).zip(leafs).filter(|(_, exists)| **exists);
        standing.map(|(number, _)| set.path(number, true)).collect()
    }

    fn file(&mut self, next: Next, now: Ns) -> Option<Step> {
        let set = &self.stage.sets[self.set];
        match next {
            Next::Look(file) if file >= self.range.end => self.go(Next::SetOver),
            Next::Look(file) => {
                let path = set.path(file, false);
                let shall_be = set.exists[file as usize];
                match self.making() {
                    Making::Found | Making::Kept | Making::Looked | Making::Untouched => {
                        let op = Op::Stat { path };
                        Some(self.ask(("looking for", path), op, Next::Seen(file), now))
                    }
                    Making::Anew => {
                        let next = if shall_be { Next::Create(file) } else { Next::Closed(file) };
                        set.resize(file, 0);
                        Some(self.ask(("removing", path), Op::Unlink { path }, next, now))
                    }
                    Making::Fresh if shall_be => self.go(Next::Create(file)),
                    Making::Fresh => self.go(Next::Closed(file)),
                }
            }
            Next::Seen(file) => self.seen(file, now),
            Next::Create(file) => {
                let path = set.path(file, false);
                let op = Op::Create { path, handle: FILE, how: self.how() };
                Some(self.ask(("creating", path), op, Next::Created(file), now))
            }
            Next::Created(file) => self.filling(file, now),
            Next::Fill(file, at) => self.fill(file, at, now),
            Next::Cut(file, length) => {
                let path = set.path(file, false);
                set.resize(file, length);
                let op = Op::Truncate { handle: FILE, length: Bytes(length) };
                Some(self.ask(("setting the length of", path), op, Next::Close(file), now))
            }
            Next::Close(file) => {
                let path = set.path(file, false);
                let op = Op::Close { handle: FILE };
                Some(self.ask(("closing", path), op, Next::Closed(file), now))
            }
            Next::Closed(file) => self.go(Next::Look(file + 1)),
            _ => self.go(Next::Over),
        }
    }

    /// A file was looked for: what is missing of it?
    fn seen(&mut self, file: u32, now: Ns) -> Option<Step> {
        let set = &self.stage.sets[self.set];
        let (found, shall_be) = (self.answer, set.exists[file as usize]);
        let is_looked_only = self.making() == Making::Looked;
        if is_looked_only || !shall_be {
            self.exists[file as usize] = found.is_ok();
            set.resize(file, found.map_or(0, |length| length.0));
            return self.go(Next::Closed(file));
        }
        if self.making() == Making::Untouched {
            return self.found_whole(file, found);
        }
        let Ok(length) = found else { return self.go(Next::Create(file)) };
        set.resize(file, length.0);
        let is_long = length.0 > self.size(file) && self.making() == Making::Kept;
        if length.0 == self.size(file) || is_long {
            return self.go(Next::Closed(file));
        }
        let next = if length.0 > self.size(file) {
            Next::Cut(file, self.size(file))
        } else {
            Next::Fill(file, 0)
        };
        let path = set.path(file, false);
        let op = Op::Open { path, handle: FILE, how: self.how() };
        Some(self.ask(("opening", path), op, next, now))
    }

    /// A file that must not be written was looked for: it is there, and long enough, or it fails.
    fn found_whole(&mut self, file: u32, found: Result<Bytes, Errno>) -> Option<Step> {
        let set = &self.stage.sets[self.set];
        let errno = match found {
            Ok(length) if length.0 >= set.nominal[file as usize] => {
                set.resize(file, length.0);
                return self.go(Next::Closed(file));
            }
            Ok(_) => Errno::EINVAL,
            Err(errno) => errno,
        };
        self.fail(("finding all bytes of", set.path(file, false)), errno);
        None
    }

    /// A file was made: what goes into it?
    fn filling(&mut self, file: u32, now: Ns) -> Option<Step> {
        let (size, filling) = (self.size(file), self.stage.sets[self.set].fill);
        let path = self.stage.sets[self.set].path(file, false);
        match filling {
            _ if size == 0 => self.go(Next::Close(file)),
            Fill::Data => self.go(Next::Fill(file, 0)),
            Fill::Sparse => self.go(Next::Cut(file, size)),
            Fill::Allocated => {
                self.stage.sets[self.set].resize(file, size);
                let length = Bytes(size);
                let op = Op::Allocate { handle: FILE, at: Bytes(0), length, keeps_length: false };
                Some(self.ask(("allocating", path), op, Next::Cut(file, size), now))
            }
        }
    }

    fn fill(&mut self, file: u32, at: u64, now: Ns) -> Option<Step> {
        let size = self.size(file);
        let set = &self.stage.sets[self.set];
        let path = set.path(file, false);
        if at < size {
            let length = FILL_BYTES.0.min(size - at);
            let op = Op::write(FILE, Bytes(at), Bytes(length));
            return Some(self.ask(("writing", path), op, Next::Fill(file, at + length), now));
        }
        set.resize(file, size);
        if self.has_all_sync {
            return self.go(Next::Close(file));
        }
        let op = Op::Fsync { handle: FILE };
        Some(self.ask(("flushing", path), op, Next::Close(file), now))
    }

    fn load(&mut self, number: u64, now: Ns) -> Option<Step> {
        let space = self.stage.spaces.first().filter(|space| space.is_to_load);
        let Some(space) = space.filter(|space| number < space.space.records) else {
            return self.go(Next::Flush);
        };
        let length = Bytes(space.value_bytes().draw(&mut self.random));
        let (kind, key) = (KeyValueKind::Put, space.space.key(number));
        let op = Op::KeyValue { kind, key, length };
        Some(self.ask(("loading the records into", PathId(0)), op, Next::Keys(number + 1), now))
    }

    fn fail(&mut self, (what, path): (&'static str, PathId), errno: Errno) {
        let paths = self.stage.paths();
        let file = paths.get(path.0 as usize);
        let file = file.map_or("the store".to_owned(), |path| path.display().to_string());
        self.failure = Some(LayoutFailure { file, what, errno });
    }

    /// Tell whether an answer is none of those that are as good as success.
    fn is_failure(&self, errno: Errno) -> bool {
        match self.next {
            Next::Directory(_) | Next::Standing(_) => errno != Errno::EEXIST,
            Next::Leaf(_) | Next::Seen(_) => errno != Errno::ENOENT,
            Next::Create(_) | Next::Closed(_) if self.doing.0 == "removing" => {
                errno != Errno::ENOENT
            }
            // ext2 and ext3 cannot allocate without writing: the length alone is made then.
            Next::Cut(..) if self.doing.0 == "allocating" => errno != Errno::EOPNOTSUPP,
            // A target that cannot flush everything has nothing to flush, or flushed each file.
            Next::Over => errno != Errno::EOPNOTSUPP,
            _ => true,
        }
    }
}

impl<G: GroupState> Worker for StageWorker<'_, G> {
    fn next(&mut self, now: Ns) -> Step {
        loop {
            if self.is_in_flight {
                return Step::Await;
            }
            if self.failure.is_some() || self.group.is_stopped() || self.next == Next::Over {
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
        if let Err(errno) = completion.outcome
            && self.is_failure(errno)
        {
            self.fail(self.doing, errno);
        }
        false
    }
}
