//! The worker behind every tenant: lays out its file, waits for the others, touches records.
//!
//! Its life is a fixed list of stages: *layout* (make sure the file exists), *open*, the timed
//! region,
//! *finish* (what a stonewall cut off and later phases need), *close*. Between them it passes the
//! gates of [`crate::group`]. Only ops of the timed region are counted.
//!
//! Left out: several files per worker, and namespace ops inside the timed region (file-set
//! dialects).

use iolab_model::error::Errno;
use iolab_model::op::{Durability, Handle, Op, OpClass, OpenHow, PathId, Submission, Token};
use iolab_model::seed::Stream;
use iolab_model::{Bytes, Completion, Ns, Seed};

use crate::generator::{Generator, Records};
use crate::group::{Gate, GroupState};
use crate::report::StreamReport;
use crate::spec::{Direction, FsyncPolicy, Limit, Opening, Tenant};
use crate::worker::{Step, Worker};

const FILE: Handle = Handle(0);
const PATH: PathId = PathId(0);
/// Layout writes are at least this large, so that laying out small records does not take for ever.
const LAYOUT_BYTES: Bytes = Bytes(128 << 10);

/// Where in its life a worker is; ops of a stage are all complete before the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Probe,
    Unlink,
    Create,
    Fill { at: u64 },
    FlushLayout,
    CloseLayout,
    WaitLayout,
    Open,
    FlushOpened,
    Prime,
    ArriveStart,
    WaitStart,
    Timed,
    FlushTimed,
    ArriveEnd,
    WaitEnd,
    Finish,
    FlushAfter,
    Close,
    Done,
}

/// One worker of a tenant.
pub struct StreamWorker<G> {
    group: G,
    tenant: Tenant,
    is_stonewalled: bool,
    is_owner: bool,
    stage: Stage,
    generator: Generator,
    random: Stream,
    free: Vec<u32>,
    /// Per slot: class and length of what is in flight.
    slots: Vec<(OpClass, u64)>,
    /// What the last untimed op answered.
    answer: Result<Bytes, Errno>,
    budget: u64,
    issued: u64,
    writes_since_sync: u64,
    started: Ns,
    ended: Ns,
    earliest: Ns,
    deadline: Ns,
    /// Nanoseconds between intended starts, or 0.
    pace_ns: f64,
    report: StreamReport,
}

impl<G: GroupState> StreamWorker<G> {
    /// Worker number `index` of `tenant`, in a phase whose workers share `group`.
    pub fn new(tenant: &Tenant, index: u32, is_stonewalled: bool, seed: Seed, group: G) -> Self {
        let stream_seed = Seed(seed.stream(&tenant.name, u64::from(index)).next_u64());
        let budget = match tenant.limit {
            Limit::Once => tenant.records(),
            Limit::Ops { ops } => ops,
            Limit::Time { .. } => u64::MAX,
        };
        let is_owner = !tenant.is_file_shared || index == 0;
        let stage = match tenant.opening {
            _ if !is_owner => Stage::WaitLayout,
            Opening::Create => Stage::Unlink,
            Opening::LaidOut => Stage::Probe,
            Opening::Existing => Stage::WaitLayout,
        };
        if stage == Stage::WaitLayout {
            group.arrive(Gate::Layout);
        }
        Self {
            group,
            is_stonewalled,
            is_owner,
            stage,
            generator: Generator::new(tenant.pattern, tenant.records(), stream_seed),
            random: stream_seed.stream("direction", 0),
            free: (0..tenant.depth).rev().collect(),
            slots: vec![(OpClass::Other, 0); tenant.depth as usize],
            answer: Ok(Bytes(0)),
            budget,
            issued: 0,
            writes_since_sync: 0,
            started: Ns(0),
            ended: Ns(0),
            earliest: Ns(0),
            deadline: Ns::MAX,
            pace_ns: tenant.rate_ops_per_s.map_or(0.0, |rate| 1e9 / rate),
            report: StreamReport { worker: index, ..StreamReport::default() },
            tenant: tenant.clone(),
        }
    }

    /// Size of buffer this worker's lane needs.
    pub fn buffer_bytes(tenant: &Tenant) -> Bytes {
        if tenant.opening == Opening::LaidOut {
            tenant.io_size_bytes.max(LAYOUT_BYTES)
        } else {
            tenant.io_size_bytes
        }
    }

    /// What it counted.
    pub fn report(&self) -> StreamReport {
        let elapsed_ns = self.ended.since(self.started).0;
        StreamReport { elapsed_ns, started_ns: self.started.0, ..self.report.clone() }
    }

    /// Whether it got stuck before or in the timed region.
    pub fn has_failed(&self) -> bool {
        self.report.errors > 0
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn how(&self) -> OpenHow {
        OpenHow {
            access: self.tenant.access,
            durability: if self.tenant.writes() {
                self.tenant.durability
            } else {
                Durability::None
            },
            is_readable: true,
            is_writable: self.tenant.writes(),
            is_truncating: false,
            stream_buffer_bytes: Bytes(0),
        }
    }

    #[inline]
    fn submit(&mut self, intended: Ns, is_timed: bool, op: Op) -> Step {
        let slot = self.free.pop().expect("a stage submits only when a slot is free");
        let length = match op {
            Op::Read(transfer) | Op::Write(transfer) => transfer.length.0,
            _ => 0,
        };
        self.slots[slot as usize] = (op.class(), length);
        Step::Submit(Submission { token: Token(slot), intended, is_timed, op })
    }

    #[inline]
    fn next_timed(&mut self, now: Ns) -> Step {
        if self.group.is_stopped() || self.issued == self.budget || now >= self.deadline {
            return self.end_timed(now);
        }
        if self.free.is_empty() {
            return Step::Await;
        }
        let mut intended = now;
        if self.pace_ns > 0.0 {
            intended = self.started + Ns((self.issued as f64 * self.pace_ns) as u64);
            if intended >= self.deadline {
                return self.end_timed(now);
            }
        }
        let not_before = intended.max(self.earliest);
        if now < not_before {
            return Step::SleepUntil(not_before);
        }
        if let FsyncPolicy::Every { ops } = self.tenant.fsync
            && self.writes_since_sync >= ops
        {
            self.writes_since_sync = 0;
            return self.submit(now, true, Op::Fsync { handle: FILE });
        }
        self.issued += 1;
        let io = self.tenant.io_size_bytes;
        let at = Bytes(self.generator.next() * io.0);
        let is_read = match self.tenant.direction {
            Direction::Read => true,
            Direction::Write => false,
            Direction::Mixed { read_share } => self.random.unit() < read_share,
        };
        if is_read {
            self.submit(intended, true, Op::read(FILE, at, io))
        } else {
            self.writes_since_sync += 1;
            self.submit(intended, true, Op::write(FILE, at, io))
        }
    }

    /// The timed region is over for this worker as soon as nothing is in flight.
    fn end_timed(&mut self, now: Ns) -> Step {
        if self.is_stonewalled && !self.group.is_stopped() {
            self.group.stop();
        }
        if self.in_flight() > 0 {
            return Step::Await;
        }
        self.stage = Stage::FlushTimed;
        self.next_untimed(now)
    }

    /// Stages around the timed region: one op at a time, all of it off the fast path.
    fn next_untimed(&mut self, now: Ns) -> Step {
        loop {
            if self.in_flight() > 0 {
                return Step::Await;
            }
            if self.has_failed() && self.stage != Stage::Done {
                return self.give_up();
            }
            let step = match self.stage {
                Stage::Probe
                | Stage::Unlink
                | Stage::Create
                | Stage::Fill { .. }
                | Stage::FlushLayout
                | Stage::CloseLayout => self.lay_out(now),
                Stage::WaitLayout
                | Stage::Open
                | Stage::FlushOpened
                | Stage::Prime
                | Stage::ArriveStart => self.open(now),
                Stage::WaitStart => self.start(now),
                Stage::Timed => return self.next_timed(now),
                Stage::FlushTimed | Stage::ArriveEnd | Stage::WaitEnd => self.end(now),
                Stage::Finish | Stage::FlushAfter | Stage::Close => self.close(now),
                Stage::Done => Some(Step::Finished),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn go(&mut self, stage: Stage) -> Option<Step> {
        self.stage = stage;
        None
    }

    #[allow(clippy::unnecessary_wraps, reason = "the arms of a stage agree on their type")]
    fn then(&mut self, stage: Stage, now: Ns, op: Op) -> Option<Step> {
        self.stage = stage;
        Some(self.submit(now, false, op))
    }

    fn lay_out(&mut self, now: Ns) -> Option<Step> {
        let size = self.tenant.records() * self.tenant.io_size_bytes.0;
        match self.stage {
            Stage::Probe => self.then(Stage::Unlink, now, Op::Stat { path: PATH }),
            Stage::Unlink => {
                let is_there = matches!(self.answer, Ok(found) if found.0 >= size && size > 0);
                if self.tenant.opening == Opening::LaidOut && is_there {
                    self.group.arrive(Gate::Layout);
                    return self.go(Stage::WaitLayout);
                }
                self.then(Stage::Create, now, Op::Unlink { path: PATH })
            }
            Stage::Create => {
                let how = OpenHow { is_writable: true, durability: Durability::None, ..self.how() };
                self.then(Stage::Fill { at: 0 }, now, Op::Create { path: PATH, handle: FILE, how })
            }
            // Stopped (no space left, no time left, interrupted): nobody will read this file.
            Stage::Fill { .. } if self.group.is_stopped() => self.go(Stage::CloseLayout),
            Stage::Fill { at } if self.tenant.opening == Opening::LaidOut && at < size => {
                let length = Self::buffer_bytes(&self.tenant).0.min(size - at);
                let next = Stage::Fill { at: at + length };
                self.then(next, now, Op::write(FILE, Bytes(at), Bytes(length)))
            }
            Stage::Fill { .. } => self.go(Stage::FlushLayout),
            Stage::FlushLayout => self.then(Stage::CloseLayout, now, Op::Fsync { handle: FILE }),
            _ => {
                self.group.arrive(Gate::Layout);
                self.then(Stage::WaitLayout, now, Op::Close { handle: FILE })
            }
        }
    }

    fn open(&mut self, now: Ns) -> Option<Step> {
        match self.stage {
            Stage::WaitLayout if !self.group.is_open(Gate::Layout) => Some(Step::Await),
            Stage::WaitLayout => self.go(Stage::Open),
            Stage::Open => {
                let op = Op::Open { path: PATH, handle: FILE, how: self.how() };
                self.then(Stage::FlushOpened, now, op)
            }
            Stage::FlushOpened => self.then(Stage::Prime, now, Op::Fsync { handle: FILE }),
            Stage::Prime if self.tenant.primes_first_record => {
                let op = Op::read(FILE, Bytes(0), self.tenant.io_size_bytes);
                self.then(Stage::ArriveStart, now, op)
            }
            Stage::Prime => self.go(Stage::ArriveStart),
            _ => {
                self.group.arrive(Gate::Start);
                self.go(Stage::WaitStart)
            }
        }
    }

    fn start(&mut self, now: Ns) -> Option<Step> {
        if !self.group.is_open(Gate::Start) {
            return Some(Step::Await);
        }
        self.stage = Stage::Timed;
        (self.started, self.ended, self.earliest) = (now, now, now);
        if let Limit::Time { duration_ns } = self.tenant.limit {
            self.deadline = now + duration_ns;
        }
        None
    }

    fn end(&mut self, now: Ns) -> Option<Step> {
        match self.stage {
            Stage::FlushTimed if self.tenant.fsync == FsyncPolicy::Timed => {
                self.stage = Stage::ArriveEnd;
                Some(self.submit(now, true, Op::Fsync { handle: FILE }))
            }
            Stage::FlushTimed => self.go(Stage::ArriveEnd),
            Stage::ArriveEnd => {
                self.group.arrive(Gate::End);
                self.go(Stage::WaitEnd)
            }
            _ if self.group.is_open(Gate::End) => self.go(Stage::Finish),
            _ => Some(Step::Await),
        }
    }

    fn close(&mut self, now: Ns) -> Option<Step> {
        match self.stage {
            // A stonewalled writer still completes its file: later phases need it.
            Stage::Finish if self.must_complete_file() => {
                self.issued += 1;
                let io = self.tenant.io_size_bytes;
                let at = Bytes(self.generator.next() * io.0);
                Some(self.submit(now, false, Op::write(FILE, at, io)))
            }
            Stage::Finish => self.go(Stage::FlushAfter),
            Stage::FlushAfter => {
                if self.tenant.fsync == FsyncPolicy::After {
                    self.then(Stage::Close, now, Op::Fsync { handle: FILE })
                } else {
                    self.go(Stage::Close)
                }
            }
            _ => self.then(Stage::Done, now, Op::Close { handle: FILE }),
        }
    }

    fn must_complete_file(&self) -> bool {
        self.is_stonewalled
            && self.is_owner
            && self.tenant.direction == Direction::Write
            && self.tenant.limit == Limit::Once
            && self.issued < self.budget
    }

    /// After a failure: let nobody wait for this worker, close, end.
    fn give_up(&mut self) -> Step {
        self.group.stop();
        for gate in Gate::ALL {
            if !self.has_arrived(gate) {
                self.group.arrive(gate);
            }
        }
        self.stage = Stage::Done;
        Step::Finished
    }

    fn has_arrived(&self, gate: Gate) -> bool {
        match gate {
            Gate::Layout => !matches!(
                self.stage,
                Stage::Probe
                    | Stage::Unlink
                    | Stage::Create
                    | Stage::Fill { .. }
                    | Stage::FlushLayout
                    | Stage::CloseLayout
            ),
            Gate::Start => {
                self.has_arrived(Gate::Layout)
                    && !matches!(
                        self.stage,
                        Stage::WaitLayout
                            | Stage::Open
                            | Stage::FlushOpened
                            | Stage::Prime
                            | Stage::ArriveStart
                    )
            }
            Gate::End => matches!(
                self.stage,
                Stage::WaitEnd | Stage::Finish | Stage::FlushAfter | Stage::Close | Stage::Done
            ),
        }
    }

    fn fail(&mut self, errno: Errno, what: &str) {
        self.report.errors += 1;
        self.report.first_error.get_or_insert_with(|| {
            let reason = std::io::Error::from_raw_os_error(errno.0);
            format!("{what} of file {}: {reason}", self.tenant.file_name(self.report.worker))
        });
    }

    /// The end of an untimed op; a missing file is an answer to stat and unlink, not a failure.
    fn complete_untimed(&mut self, completion: &Completion) {
        self.answer = completion.outcome;
        let is_question = matches!(self.stage, Stage::Unlink | Stage::Create);
        if let Err(errno) = completion.outcome
            && !(is_question && errno == Errno::ENOENT)
        {
            let what = format!("preparing or closing ({:?})", self.stage);
            self.fail(errno, &what);
        }
    }
}

impl<G: GroupState> Worker for StreamWorker<G> {
    #[inline]
    fn next(&mut self, now: Ns) -> Step {
        if self.stage == Stage::Timed && self.report.errors == 0 {
            self.next_timed(now)
        } else {
            self.next_untimed(now)
        }
    }

    #[inline]
    fn complete(&mut self, completion: &Completion) -> bool {
        let slot = completion.token.0;
        let (class, length) = self.slots[slot as usize];
        self.free.push(slot);
        let is_timed_sync = self.stage == Stage::ArriveEnd;
        if self.stage != Stage::Timed && !is_timed_sync {
            self.complete_untimed(completion);
            return false;
        }
        let moved = match completion.outcome {
            Ok(moved) => moved.0,
            Err(errno) => {
                self.fail(errno, class_name(class));
                return false;
            }
        };
        // The op in flight when a stonewall falls is not counted, as in IOzone.
        let is_cut_off =
            self.is_stonewalled && self.group.is_stopped() && self.issued < self.budget;
        if is_cut_off && !is_timed_sync {
            return false;
        }
        self.ended = completion.completed;
        if self.tenant.think_ns.0 > 0 {
            self.earliest = completion.completed + self.tenant.think_ns;
        }
        match class {
            OpClass::Read if moved < length => {
                self.fail(Errno::EIO, "reading (end of the file before the record's end)");
                return false;
            }
            OpClass::Read => self.report.read_bytes += moved,
            OpClass::Write => self.report.write_bytes += moved,
            OpClass::Sync | OpClass::Other => return true,
        }
        self.report.ops += 1;
        self.report.bytes += moved;
        true
    }
}

fn class_name(class: OpClass) -> &'static str {
    match class {
        OpClass::Read => "reading",
        OpClass::Write => "writing",
        OpClass::Sync => "flushing",
        OpClass::Other => "an operation",
    }
}
