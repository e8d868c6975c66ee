//! Stages around the timed region: one op at a time, all of it off the fast path.

use iolab_model::op::{Access, Advice, LockKind, Op};
use iolab_model::{Bytes, Ns};

use super::{FILE, PATH, Stage, StreamWorker};
use crate::group::{Gate, GroupState};
use crate::spec::{Direction, FsyncPolicy, Limit, LockPolicy, Opening};
use crate::worker::Step;

impl<G: GroupState> StreamWorker<G> {
    pub(super) fn next_untimed(&mut self, now: Ns) -> Step {
        loop {
            if self.in_flight() > 0 {
                return Step::Await;
            }
            if self.has_failed() && self.stage != Stage::Done {
                return self.give_up();
            }
            let step = match self.stage {
                Stage::Open
                | Stage::Extend
                | Stage::Measure
                | Stage::Lengthen
                | Stage::Map
                | Stage::DropCached
                | Stage::Advise
                | Stage::FlushOpened => self.open(now),
                Stage::Prime | Stage::LockFile | Stage::ArriveStart => self.get_ready(now),
                Stage::WaitStart => self.start(now),
                Stage::Timed => return self.next_timed(now),
                Stage::UnlockFile
                | Stage::FlushTimed
                | Stage::CloseTimed
                | Stage::ArriveEnd
                | Stage::WaitEnd => self.end(now),
                Stage::Finish | Stage::FlushAfter | Stage::Unmap | Stage::Close => self.close(now),
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

    fn is_mapped(&self) -> bool {
        self.tenant.access == Access::Mapped
    }

    /// Makes everything written so far durable.
    pub(super) fn flush_all(&self) -> Op {
        if self.is_mapped() {
            let length = self.tenant.used_bytes();
            return Op::Msync { handle: FILE, at: Bytes(0), length, is_async: false };
        }
        Op::Fsync { handle: FILE }
    }

    fn open(&mut self, now: Ns) -> Option<Step> {
        let length = self.tenant.used_bytes();
        match self.stage {
            Stage::Open => {
                let op = Op::Open { path: PATH, handle: FILE, how: self.how() };
                self.then(Stage::Extend, now, op)
            }
            // A mapping cannot grow a file: a new one gets its length first.
            Stage::Extend
                if self.is_mapped()
                    && matches!(self.tenant.opening, Opening::Create | Opening::New) =>
            {
                self.then(Stage::DropCached, now, Op::Truncate { handle: FILE, length })
            }
            // One that is kept must not become shorter.
            Stage::Extend if self.is_mapped() && self.tenant.opening == Opening::Keep => {
                let op = Op::Allocate { handle: FILE, at: Bytes(0), length, keeps_length: false };
                self.then(Stage::DropCached, now, op)
            }
            Stage::Measure => self.then(Stage::Lengthen, now, Op::Stat { path: PATH }),
            Stage::Lengthen if self.found < length => {
                self.then(Stage::DropCached, now, Op::Truncate { handle: FILE, length })
            }
            Stage::Extend | Stage::Lengthen => self.go(Stage::DropCached),
            // Pages that are mapped cannot be dropped any more.
            Stage::DropCached if self.drops_cached() => {
                let op = Op::Advise { handle: FILE, advice: Advice::DontNeed };
                self.then(Stage::Map, now, op)
            }
            Stage::DropCached => self.go(Stage::Map),
            Stage::Map if self.is_mapped() => {
                self.then(Stage::Advise, now, Op::Map { handle: FILE, length })
            }
            Stage::Map => self.go(Stage::Advise),
            Stage::Advise => match self.tenant.manner.advice {
                Some(advice) if matches!(self.tenant.access, Access::Plain | Access::Mapped) => {
                    self.then(Stage::FlushOpened, now, Op::Advise { handle: FILE, advice })
                }
                _ => self.go(Stage::FlushOpened),
            },
            _ => self.then(Stage::Prime, now, Op::Fsync { handle: FILE }),
        }
    }

    /// Tell whether the pages of its file are dropped first.
    fn drops_cached(&self) -> bool {
        let is_cached = matches!(self.tenant.access, Access::Plain | Access::Mapped);
        self.tenant.manner.drops_cache_first && is_cached
    }

    fn get_ready(&mut self, now: Ns) -> Option<Step> {
        match self.stage {
            Stage::Prime if self.tenant.primes_first_record => {
                let op = Op::read(FILE, Bytes(0), self.tenant.io_size_bytes);
                self.then(Stage::LockFile, now, op)
            }
            Stage::Prime => self.go(Stage::LockFile),
            Stage::LockFile if self.tenant.lock == LockPolicy::WholeFile => {
                let is_writing = self.tenant.writes();
                let kind = if is_writing { LockKind::Exclusive } else { LockKind::Shared };
                self.then(Stage::ArriveStart, now, whole_file(kind))
            }
            Stage::LockFile => self.go(Stage::ArriveStart),
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
        self.begin(now);
        None
    }

    /// The timed region begins now, or as much later as it shall.
    pub(super) fn begin(&mut self, now: Ns) {
        self.stage = Stage::Timed;
        let begin = now + self.tenant.begins_of(self.report.worker);
        (self.started, self.ended, self.earliest) = (begin, begin, begin);
        self.bursting.iter_mut().for_each(|burst| burst.begin(begin));
        if let Some(first) = self.tenant.manner.replay.first() {
            self.earliest = begin + first.pause_ns;
        }
        let lasting = match self.tenant.limit {
            Limit::Time { duration_ns } => Some(duration_ns),
            Limit::Ops { within_ns, .. } => within_ns,
            Limit::Once => None,
        };
        self.deadline = lasting.map_or(Ns::MAX, |duration| begin + duration);
    }

    fn end(&mut self, now: Ns) -> Option<Step> {
        match self.stage {
            Stage::UnlockFile if self.tenant.lock == LockPolicy::WholeFile => {
                self.stage = Stage::FlushTimed;
                Some(self.submit(now, true, whole_file(LockKind::Release)))
            }
            Stage::UnlockFile => self.go(Stage::FlushTimed),
            Stage::FlushTimed if self.tenant.fsync == FsyncPolicy::Timed => {
                self.stage = Stage::CloseTimed;
                let op = self.flush_all();
                Some(self.submit(now, true, op))
            }
            Stage::FlushTimed
                if matches!(self.tenant.fsync, FsyncPolicy::Between { is_ended: true, .. }) =>
            {
                self.stage = Stage::CloseTimed;
                let op = self.flush_all();
                self.asides = 1;
                Some(self.submit_aside(now, op))
            }
            Stage::FlushTimed => self.go(Stage::CloseTimed),
            Stage::CloseTimed if self.tenant.is_close_timed && !self.must_complete_file() => {
                (self.stage, self.is_closed) = (Stage::ArriveEnd, true);
                Some(self.submit(now, true, Op::Close { handle: FILE }))
            }
            Stage::CloseTimed => self.go(Stage::ArriveEnd),
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
            _ if self.is_closed => self.go(Stage::Done),
            // A stonewalled writer still completes its file: later phases need it.
            Stage::Finish if self.must_complete_file() => {
                self.issued += 1;
                let transfer = self.record(false);
                Some(self.submit(now, false, Op::Write(transfer)))
            }
            Stage::Finish => self.go(Stage::FlushAfter),
            // What came after the last of the flushes in between is made durable, too.
            Stage::FlushAfter
                if matches!(self.tenant.fsync, FsyncPolicy::After | FsyncPolicy::Every { .. }) =>
            {
                let op = self.flush_all();
                self.then(Stage::Unmap, now, op)
            }
            Stage::FlushAfter => self.go(Stage::Unmap),
            Stage::Unmap if self.is_mapped() => {
                self.then(Stage::Close, now, Op::Unmap { handle: FILE })
            }
            Stage::Unmap => self.go(Stage::Close),
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
}

/// Length 0 is everything to the end of the file, wherever that will be (fcntl(2)).
fn whole_file(kind: LockKind) -> Op {
    Op::Lock { handle: FILE, kind, at: Bytes(0), length: Bytes(0) }
}
