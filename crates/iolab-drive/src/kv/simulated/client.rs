//! A client in virtual time: the same draws and counts as of a real one, its calls as parts that
//! wait for files, for other writers and for the store.

use std::collections::VecDeque;

use iolab_lsm::{KeyLookup, Ticket, WriterTurn};
use iolab_model::op::{Op, OpClass, Token};
use iolab_model::{Completion, Ns, Submission};
use iolab_workload::kv::{
    KvAction, KvClient, KvCounts, KvEnd, KvRequest, KvSeries, KvStage, KvStatus,
};
use iolab_workload::worker::WholeOperation;
use iolab_workload::{Gate, GroupState, Step, StreamReport, Worker};

use super::files::OpenFiles;
use super::keys::{WORD_BYTES, key_of};
use super::shared::SharedCell;
use crate::kv::client::FAST_PER_S;
use crate::kv::log::KvLog;

/// A part of an operation.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// Look the key up.
    Get,
    /// Put a record, unless it must be there and is not.
    Put { is_update: bool },
    /// Read records from the key on.
    Scan(u32),
    /// End of a call of a series.
    End(KvSeries),
    /// End of a read and an update.
    Both,
    /// End of the operation.
    Whole(OpClass),
}

/// Place of a client in its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Begin,
    Start,
    Between,
    Working,
    End,
    Gone,
}

/// A client.
#[allow(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub struct SimulatedClient<'a> {
    shared: &'a SharedCell,
    stage: &'a KvStage,
    group: &'a dyn GroupState,
    client: KvClient,
    /// Loading before the timed region: no gates.
    is_untimed: bool,
    is_idle: bool,
    operations: u64,
    tick: Option<f64>,
    pub counts: KvCounts,
    pub log: Option<KvLog>,
    pub report: StreamReport,
    pub written: u64,
    pub first_error: Option<String>,
    pub gone: Ns,
    at: At,
    files: OpenFiles,
    changes: u64,
    lookup: KeyLookup,
    parts: VecDeque<Part>,
    ticket: Option<Ticket>,
    is_leading: bool,
    is_busy: bool,
    status: KvStatus,
    /// Number of a key that is inserted.
    inserted: Option<u64>,
    /// Begin of the timed region, of the operation and of the call in it.
    started: Ns,
    begins: Ns,
    began: Ns,
    called: Ns,
    intended: Ns,
    moved: u64,
    last: Ns,
    failures: u64,
    whole: Option<WholeOperation>,
}

/// Work of a client: its number, how many there are, and its operations.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub index: u32,
    pub clients: u32,
    pub operations: u64,
    pub is_untimed: bool,
}

impl<'a> SimulatedClient<'a> {
    /// A client that has done nothing.
    pub fn new(
        shared: &'a SharedCell,
        (stage, group): (&'a KvStage, &'a dyn GroupState),
        client: KvClient,
        share: Share,
        can_allocate: bool,
    ) -> Self {
        let work = client.work();
        let tick = (work.target_per_s > 0.0 && !share.is_untimed)
            .then(|| f64::from(share.clients) / work.target_per_s * 1e9);
        let mut files = OpenFiles::new(can_allocate);
        if share.is_untimed {
            files.make(&shared.borrow().store);
        }
        Self {
            counts: KvCounts::new(&work.measured),
            shared,
            stage,
            group,
            client,
            is_untimed: share.is_untimed,
            is_idle: false,
            operations: share.operations,
            tick: tick.filter(|tick| tick.is_finite()),
            log: None,
            report: StreamReport { worker: share.index, ..StreamReport::default() },
            written: 0,
            first_error: None,
            gone: Ns(0),
            at: At::Begin,
            files,
            changes: 0,
            lookup: KeyLookup::default(),
            parts: VecDeque::new(),
            ticket: None,
            is_leading: false,
            is_busy: false,
            status: KvStatus::Ok,
            inserted: None,
            started: Ns(0),
            begins: Ns(0),
            began: Ns(0),
            called: Ns(0),
            intended: Ns(0),
            moved: 0,
            last: Ns(0),
            failures: 0,
            whole: None,
        }
    }

    /// The same client with nothing to do.
    #[must_use]
    pub fn idle(self) -> Self {
        Self { is_idle: true, ..self }
    }

    /// Operations that ended.
    pub const fn done(&self) -> u64 {
        self.report.ops
    }

    fn submit(&mut self, op: Op, now: Ns) -> Step {
        self.is_busy = true;
        let is_timed = !self.is_untimed && self.at == At::Working;
        Step::Submit(Submission { token: Token(0), op, intended: now, is_timed })
    }

    /// Draws the next operation.
    fn draw(&mut self, now: Ns) {
        let is_load = self.client.work().action == KvAction::Load;
        let (request, number) = if is_load {
            let number = self.stage.fresh();
            self.client.set_key(number);
            (KvRequest::Insert, number)
        } else {
            self.client.next(self.stage)
        };
        self.inserted = (request == KvRequest::Insert && !is_load).then_some(number);
        let update = [Part::Get, Part::Put { is_update: true }, Part::End(KvSeries::Update)];
        let read = [Part::Get, Part::End(KvSeries::Read)];
        match request {
            KvRequest::Read(_) => {
                self.parts.extend(read);
                self.parts.push_back(Part::Whole(OpClass::Read));
            }
            KvRequest::Update(_) => {
                self.parts.extend(update);
                self.parts.push_back(Part::Whole(OpClass::Write));
            }
            KvRequest::Insert => self.parts.extend([
                Part::Put { is_update: false },
                Part::End(KvSeries::Insert),
                Part::Whole(OpClass::Write),
            ]),
            KvRequest::Scan(count, _) => self.parts.extend([
                Part::Scan(count),
                Part::End(KvSeries::Scan),
                Part::Whole(OpClass::Read),
            ]),
            KvRequest::ReadModifyWrite(..) => {
                self.parts.extend(read);
                self.parts.extend(update);
                self.parts.extend([Part::Both, Part::Whole(OpClass::Write)]);
            }
        }
        (self.began, self.called, self.moved) = (now, now, 0);
        if self.tick.is_none() {
            self.intended = now;
        }
    }

    /// Begins a part; ops and tickets say what it waits for.
    fn begin(&mut self, part: Part) {
        let mut shared = self.shared.borrow_mut();
        let key = key_of(self.client.key(), self.client.work());
        debug_assert!(self.client.key().len() >= WORD_BYTES);
        match part {
            Part::Get => {
                shared.store.get(key, &mut self.lookup);
                let is_found = self.lookup.records > 0;
                self.status = if is_found { KvStatus::Ok } else { KvStatus::NotFound };
            }
            Part::Scan(count) => {
                shared.store.scan(key, count, &mut self.lookup);
                self.status = KvStatus::Ok;
            }
            Part::Put { is_update } => {
                if is_update && self.status != KvStatus::Ok {
                    return;
                }
                let (key_bytes, bytes) =
                    (self.client.key().len() as u64, self.client.record_bytes());
                self.status = KvStatus::Ok;
                self.ticket = Some(shared.store.put(key, key_bytes, bytes));
                self.moved += bytes;
                self.report.write_bytes += bytes + key_bytes;
                self.written += bytes + key_bytes;
                return;
            }
            Part::End(_) | Part::Both | Part::Whole(_) => return,
        }
        self.report.read_bytes += self.lookup.value_bytes;
        self.moved += self.lookup.value_bytes;
        self.files.ops.push_back(Op::Burn { duration: self.lookup.work });
        self.files.read(&self.lookup.reads);
    }

    /// Ends of calls that are reached at `now`.
    fn end_parts(&mut self, now: Ns) {
        while let Some(part) = self.parts.front().copied() {
            let mut end = KvEnd {
                status: self.status,
                intended: self.intended,
                began: self.called,
                ended: now,
            };
            end.intended = end.intended.min(end.began);
            match part {
                Part::End(series) => {
                    self.failures += u64::from(end.status != KvStatus::Ok);
                    self.counts.record(series, &end, self.moved);
                    self.note(series, &end);
                    self.called = now;
                }
                Part::Both => {
                    let end = KvEnd { began: self.began, ..end };
                    let series = KvSeries::ReadModifyWrite;
                    self.counts.record_latency(series, &end, 0);
                    self.note(series, &end);
                }
                Part::Whole(class) => {
                    let (began, bytes) = (self.began, self.moved);
                    self.whole = Some(WholeOperation { class, began, ended: now, bytes });
                    self.inserted.take().into_iter().for_each(|n| self.stage.acknowledge(n));
                    self.report.ops += 1;
                    self.last = now;
                    self.at = At::Between;
                }
                Part::Get | Part::Put { .. } | Part::Scan(_) => return,
            }
            self.parts.pop_front();
        }
    }

    fn note(&mut self, series: KvSeries, end: &KvEnd) {
        if let Some(log) = &mut self.log {
            log.latency(series.name(), end);
        }
    }

    /// The next step between two operations.
    fn between(&mut self, now: Ns) -> Option<Step> {
        let work = self.client.work();
        let limit = work.time_limit_s;
        let deadline = if limit == 0 { Ns::MAX } else { self.begins + Ns(limit * 1_000_000_000) };
        let is_over = self.is_idle
            || self.operations > 0 && self.report.ops >= self.operations
            || self.group.is_stopped()
            || now >= deadline;
        if is_over {
            self.at = At::End;
            return None;
        }
        if let Some(tick) = self.tick {
            let turn = self.begins + Ns((self.report.ops as f64 * tick) as u64);
            if now < turn {
                return Some(Step::SleepUntil(turn.min(deadline)));
            }
            self.intended = turn;
        }
        self.at = At::Working;
        self.draw(now);
        None
    }

    /// The next step of an operation.
    fn work(&mut self, now: Ns) -> Option<Step> {
        if let Some(op) = self.files.ops.pop_front() {
            return Some(self.submit(op, now));
        }
        if let Some(ticket) = self.ticket {
            let turn = self.shared.borrow_mut().store.turn(ticket, now);
            match turn {
                WriterTurn::Wait => return Some(Step::Await),
                WriterTurn::Until(instant) => return Some(Step::SleepUntil(instant)),
                WriterTurn::Logged => {
                    self.ticket = None;
                    let duration = self.shared.borrow().store.cost().put;
                    self.files.ops.push_back(Op::Burn { duration });
                }
                WriterTurn::Lead(write) => {
                    self.files.log(&write);
                    if self.files.ops.is_empty() {
                        self.shared.borrow_mut().store.commit();
                    } else {
                        self.is_leading = true;
                    }
                }
            }
            return None;
        }
        let part = self.parts.pop_front()?;
        self.begin(part);
        if self.ticket.is_none() && self.files.ops.is_empty() {
            self.end_parts(now);
        }
        None
    }

    /// Passes a gate, or waits at it.
    fn pass(&mut self, gate: Gate, now: Ns) -> Option<Step> {
        if !self.is_untimed && !self.group.is_open(gate) {
            return Some(Step::Await);
        }
        if gate == Gate::End {
            self.at = At::Gone;
            self.gone = now;
            self.shared.borrow_mut().clients -= 1;
            return None;
        }
        (self.started, self.begins, self.last) = (now, now, now);
        self.report.started_ns = now.0;
        self.counts.origin = now;
        self.at = At::Between;
        // Clients with a slow target do not begin together.
        if let Some(tick) = self.tick.filter(|tick| *tick >= 1e9 / FAST_PER_S) {
            self.begins = now + Ns((self.client.unit() * tick) as u64);
            return Some(Step::SleepUntil(self.begins));
        }
        None
    }

    /// Its report, when it has gone.
    pub fn report(&mut self) -> StreamReport {
        let report = &mut self.report;
        report.elapsed_ns = self.last.since(self.started).0;
        report.bytes = report.read_bytes + report.write_bytes;
        report.tolerated = (self.failures > 0).then(|| iolab_workload::report::Tolerated {
            errors: self.failures,
            first_errno: 0,
            first: "no record has the key".into(),
        });
        report.clone()
    }
}

impl Worker for SimulatedClient<'_> {
    fn next(&mut self, now: Ns) -> Step {
        if self.is_busy {
            return Step::Await;
        }
        if self.shared.borrow().failure.is_some() && !matches!(self.at, At::End | At::Gone) {
            self.at = At::Gone;
        }
        loop {
            let step = match self.at {
                At::Begin => {
                    if let Some(op) = self.files.ops.pop_front() {
                        return self.submit(op, now);
                    }
                    if !self.is_untimed {
                        self.group.arrive(Gate::Start);
                    }
                    self.at = At::Start;
                    None
                }
                At::Start => self.pass(Gate::Start, now),
                At::Between => {
                    let changes = self.shared.borrow().changes;
                    if changes != self.changes {
                        self.changes = changes;
                        self.files.close_stale(&self.shared.borrow().store);
                    }
                    if let Some(op) = self.files.ops.pop_front() {
                        return self.submit(op, now);
                    }
                    let step = self.between(now);
                    if self.at == At::End && !self.is_untimed {
                        self.group.arrive(Gate::End);
                    }
                    step
                }
                At::Working => self.work(now),
                At::End => self.pass(Gate::End, now),
                At::Gone => return Step::Finished,
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        self.is_busy = false;
        if let Err(errno) = completion.outcome {
            let mut shared = self.shared.borrow_mut();
            shared.failure.get_or_insert(("using a file of the store", errno));
            return false;
        }
        if self.at != At::Working || !self.files.ops.is_empty() {
            return false;
        }
        if self.is_leading {
            self.is_leading = false;
            self.shared.borrow_mut().store.commit();
            return false;
        }
        if self.ticket.is_none() {
            self.shared.borrow_mut().store.release(&mut self.lookup);
            self.end_parts(completion.completed);
        }
        false
    }

    fn whole_operation(&mut self) -> Option<WholeOperation> {
        self.whole.take()
    }
}
