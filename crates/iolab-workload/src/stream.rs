//! The worker behind every tenant: opens its file, waits for the others, touches records.
//!
//! Its life is a fixed list of stages: *open*, the timed region, *finish* (what a stonewall cut off
//! and later phases need), *close*. Between them it passes the gates of [`crate::group`]. Only ops
//! of the timed region are counted. Its file was made by [`crate::layout`], or by an earlier phase.
//!
//! Left out: several files per worker, and namespace ops inside the timed region (file-set
//! dialects).

mod manner;
mod read_back;
mod rules;
mod run;
mod timed;
mod untimed;

use iolab_model::error::Errno;
use iolab_model::op::{
    Durability, FlagName, Handle, Op, OpClass, OpenHow, PathId, Permissions, Position, Submission,
    Token, Transfer, WriteLife,
};
use iolab_model::seed::Stream;
use iolab_model::{Bytes, Completion, Ns, Seed};

use crate::bursting::Bursting;
use crate::following::Following;
use crate::generator::Generator;
use crate::group::{Gate, GroupState};
use crate::program::OperationCount;
use crate::report::StreamReport;
use crate::spec::{Direction, Limit, LockPolicy, Pattern, Tenant};
use crate::worker::{RunKind, Step, Worker};
use timed::{Chain, Unflushed};

const FILE: Handle = Handle(0);
const PATH: PathId = PathId(0);

/// State in the life of a worker, in order; ops of a stage are all complete before the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Open,
    Extend,
    /// Blocks cannot be allocated: how long is the file?
    Measure,
    Lengthen,
    DropCached,
    Map,
    Advise,
    FlushOpened,
    Prime,
    LockFile,
    ArriveStart,
    WaitStart,
    Timed,
    UnlockFile,
    FlushTimed,
    CloseTimed,
    ArriveEnd,
    WaitEnd,
    Finish,
    FlushAfter,
    Unmap,
    Close,
    Done,
}

/// Op of a slot.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    class: OpClass,
    at: u64,
    length: u64,
    role: Role,
}

/// Part that an op has in the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Of the work.
    Own,
    /// Reads what was written ([`read_back`]).
    ReadBack,
    /// Only disturbs: not counted, and it may reach beyond the end of the file.
    Aside,
}

/// One worker of a tenant.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct StreamWorker<G> {
    group: G,
    tenant: Tenant,
    is_stonewalled: bool,
    is_owner: bool,
    stage: Stage,
    generator: Generator,
    /// Order of its writes, where they have a position of their own.
    writes: Option<Generator>,
    random: Stream,
    free: Vec<u32>,
    /// Per slot: what is in flight.
    slots: Vec<InFlight>,
    /// The last op outside the timed region, for messages.
    untimed: Option<Op>,
    /// Length of the file that it told.
    found: Bytes,
    /// Ops of a record that must follow each other.
    chain: Chain,
    unflushed: Unflushed,
    /// Ops of the chain that only disturb.
    asides: u8,
    /// Ops begun when the cached pages of the file were dropped last.
    dropped_at: u64,
    /// Transfers that were issued when a pass was flushed last.
    flushed_at: u64,
    /// Pauses between bursts, if it makes any.
    bursting: Option<Box<Bursting>>,
    budget: u64,
    issued: u64,
    started: Ns,
    ended: Ns,
    earliest: Ns,
    /// Begin of its part of the file.
    origin: u64,
    /// Since when a call has been under way, as far as completions tell.
    busy_from: Option<Ns>,
    deadline: Ns,
    /// Time at which it was found to be out of time, at most the deadline.
    out_of_time: Option<Ns>,
    /// The file was closed inside the timed region.
    is_closed: bool,
    /// Nanoseconds between intended starts, or 0.
    pace_ns: f64,
    /// Changes of the work that follow from measurements.
    following: Option<Box<Following>>,
    /// Records that are still to be read back, if any are.
    read_back: Option<Box<read_back::Unread>>,
    /// Slots that stay empty.
    idle_slots: u32,
    /// Slots that must be empty, but for one, before they are filled again; 0: none.
    drained_slots: u32,
    /// True if it pauses between ops: thinks, replays pauses, or works in bursts.
    has_pauses: bool,
    /// Its ops are transfers of the pattern's records, one after the other ([`run`]).
    is_plain: bool,
    /// Its ops are transfers of the pattern's records, each as soon as a slot is free.
    is_unhindered: bool,
    /// Transfer of a run, but for its place.
    of_a_run: Transfer,
    /// State that is put back when a rehearsal is over.
    rehearsing: Option<run::Kept>,
    report: StreamReport,
}

impl<G: GroupState> StreamWorker<G> {
    /// Worker number `index` of `tenant`, in a phase whose workers share `group`.
    pub fn new(tenant: &Tenant, index: u32, is_stonewalled: bool, seed: Seed, group: G) -> Self {
        let stream_seed = Seed(seed.stream(&tenant.name, u64::from(index)).next_u64());
        let following = Following::of(tenant);
        let budget = match tenant.limit {
            Limit::Once => tenant.ops_of_a_pass(),
            Limit::Ops { ops, .. } => ops,
            Limit::Time { .. } => u64::MAX,
        };
        let tickets = tenant.draws.as_ref().filter(|_| tenant.pattern == Pattern::Uniform);
        let budget = tickets.map_or(budget, |d| d.share(index, tenant.workers).min(budget));
        let is_unhindered = run::is_unhindered(tenant) && following.is_none();
        let generator = match tickets {
            Some(draws) => {
                Generator::of_tickets(draws.dealt(index, tenant.workers, tenant.records()))
            }
            None => Generator::new(tenant.pattern, tenant.records(), stream_seed),
        };
        Self {
            group,
            is_stonewalled,
            is_owner: !tenant.is_file_shared || index == 0,
            stage: Stage::Open,
            generator,
            writes: tenant
                .has_two_positions()
                .then(|| Generator::new(tenant.pattern, tenant.records(), stream_seed)),
            random: stream_seed.stream("direction", 0),
            free: (0..tenant.depth).rev().collect(),
            slots: vec![
                InFlight { class: OpClass::Other, at: 0, length: 0, role: Role::Own };
                tenant.slots() as usize
            ],
            untimed: None,
            found: Bytes(0),
            chain: Chain::default(),
            unflushed: Unflushed::default(),
            asides: 0,
            dropped_at: 0,
            flushed_at: 0,
            bursting: tenant.manner.burst.map(|rule| Box::new(Bursting::new(rule))),
            budget,
            issued: 0,
            started: Ns(0),
            ended: Ns(0),
            earliest: Ns(0),
            origin: tenant.region.map_or(0, |region| region.begins_at(index).0),
            busy_from: None,
            deadline: Ns::MAX,
            out_of_time: None,
            is_closed: false,
            pace_ns: tenant.period_ns().unwrap_or(0.0),
            idle_slots: idle_at_first(following.as_deref(), tenant),
            drained_slots: tenant
                .manner
                .refill_at
                .map_or(0, |at| tenant.depth.saturating_sub(at + 1)),
            following,
            read_back: read_back::Unread::of(tenant),
            has_pauses: tenant.has_pauses(),
            is_plain: run::is_plain(tenant),
            is_unhindered,
            of_a_run: run::transfer_of(tenant),
            rehearsing: None,
            report: StreamReport { worker: index, ..StreamReport::default() },
            tenant: tenant.clone(),
        }
    }

    /// Counts of the worker.
    pub fn report(&self) -> StreamReport {
        // Who was out of time had all of it, also what lies behind the last completion.
        let ended = match self.out_of_time {
            // A stonewall ends with what was done before it fell.
            Some(end) if end == self.deadline || !self.is_stonewalled => self.ended.max(end),
            _ => self.ended,
        };
        let mut report = StreamReport {
            elapsed_ns: ended.since(self.started).0,
            started_ns: self.started.0,
            gap_ns_max: self.report.gap_ns_max.max(ended.since(self.ended).0),
            missed_ops: (self.pace_ns > 0.0).then(|| self.missed()),
            ..self.report.clone()
        };
        if let Some(following) = &self.following {
            following.add_to(&mut report);
        }
        report
    }

    /// Ops that were due before it was out of time, and that it had not begun.
    fn missed(&self) -> u64 {
        let Some(end) = self.out_of_time else { return 0 };
        let due = (end.since(self.started + self.delayed()).0 as f64 / self.pace_ns).ceil() as u64;
        due.min(self.budget).saturating_sub(self.issued)
    }

    /// Tell whether it got stuck before or in the timed region.
    pub fn has_failed(&self) -> bool {
        self.report.errors > 0
    }

    /// A stonewall has fallen while it still had work.
    #[inline]
    fn is_cut_off(&self) -> bool {
        self.is_stonewalled && self.group.is_stopped() && self.issued < self.budget
    }

    /// Something of its timed region has ended.
    #[inline]
    fn ended_at(&mut self, submitted: Ns, completed: Ns) {
        let from = self.busy_from.map_or(submitted, |from| from.min(submitted));
        if self.in_flight() == 0 {
            self.report.call_ns += completed.since(from).0;
            self.busy_from = None;
        } else {
            self.busy_from = Some(from);
        }
        self.report.gap_ns_max = self.report.gap_ns_max.max(completed.since(self.ended).0);
        self.ended = completed;
    }

    fn in_flight(&self) -> usize {
        self.tenant.depth as usize - self.free.len()
    }

    fn how(&self) -> OpenHow {
        let writes = self.tenant.writes();
        OpenHow {
            access: self.tenant.access,
            durability: if writes { self.tenant.durability } else { Durability::None },
            is_readable: true,
            // Only who may write may keep readers out (fcntl(2)).
            is_writable: writes || self.tenant.lock == LockPolicy::Exclusive,
            is_truncating: false,
            stream_buffer_bytes: self.tenant.stream_buffer_bytes,
            permissions: Permissions::Group,
            write_life: if writes { self.tenant.manner.write_life } else { WriteLife::Unsaid },
            is_remembered: true,
        }
    }

    #[inline(never)]
    fn submit(&mut self, intended: Ns, is_timed: bool, op: Op) -> Step {
        self.submission(intended, is_timed, op)
    }

    // Nearly every op comes from one place, and a call would copy it twice more.
    #[allow(clippy::inline_always, reason = "counted in instructions, see docs/design/0010")]
    #[inline(always)]
    fn submission(&mut self, intended: Ns, is_timed: bool, op: Op) -> Step {
        let slot = self.free.pop().expect("a stage submits only when a slot is free");
        let (at, length) = match op {
            Op::Read(Transfer { at: Position::At(at), length, .. })
            | Op::Write(Transfer { at: Position::At(at), length, .. }) => (at.0, length.0),
            Op::Read(transfer) | Op::Write(transfer) => (0, transfer.length.0),
            _ => (0, 0),
        };
        let role = Role::Own;
        self.slots[slot as usize] = InFlight { class: op.class(), at, length, role };
        if !is_timed {
            self.untimed = Some(op);
        }
        Step::Submit(Submission { token: Token(slot), intended, is_timed, op })
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
            Gate::Start => self.stage > Stage::ArriveStart,
            Gate::End => self.stage > Stage::ArriveEnd,
        }
    }

    /// A read found the end of the file, which is no failure of the storage.
    #[cold]
    fn fell_short(&mut self, at: u64, length: u64, moved: u64) {
        self.report.errors += 1;
        let file = self.tenant.file_name(self.report.worker);
        self.report.first_error.get_or_insert_with(|| {
            format!(
                "reading {length} bytes at offset {at} of file {file} gave {moved} bytes: the file \
                 ends there; use a file of at least {}, or read less of it",
                in_words(self.tenant.file_bytes)
            )
        });
    }

    fn fail(&mut self, errno: Errno, what: &str) {
        self.report.errors += 1;
        self.report.first_error.get_or_insert_with(|| {
            let reason = std::io::Error::from_raw_os_error(errno.0);
            let file = self.tenant.file_name(self.report.worker);
            let flags: Vec<FlagName> = self.tenant.flags.into();
            let advice = match (errno, flags.is_empty()) {
                (Errno::EOPNOTSUPP, false) => {
                    let names: Vec<&str> = flags.iter().map(|flag| flag.name()).collect();
                    format!(
                        "; this file does not take the flags {}: leave them out, or use direct I/O",
                        names.join(", ")
                    )
                }
                _ => advice(errno).to_owned(),
            };
            format!("{what} of file {file}: {reason}{advice}")
        });
    }

    /// The end of a whole transfer of a worker that nothing hinders.
    #[inline]
    fn complete_unhindered(&mut self, completion: &Completion, moved: Bytes) -> bool {
        let slot = completion.token.0;
        let InFlight { class, at, length, .. } = self.slots[slot as usize];
        self.free.push(slot);
        // The op in flight when a stonewall falls is not counted, as in IOzone.
        if self.is_cut_off() {
            return false;
        }
        self.ended_at(completion.submitted, completion.completed);
        if class == OpClass::Write {
            self.report.write_bytes += moved.0;
        } else if moved.0 < length {
            self.fell_short(at, length, moved.0);
            return false;
        } else {
            self.report.read_bytes += moved.0;
        }
        self.report.ops += 1;
        self.report.bytes += moved.0;
        true
    }

    /// The end of any op.
    #[inline(never)]
    fn complete_any(&mut self, completion: &Completion) -> bool {
        let slot = completion.token.0;
        let InFlight { class, at, length, role } = self.slots[slot as usize];
        if self.drained_slots > 0 && self.free.is_empty() {
            self.idle_slots = self.drained_slots;
        }
        self.free.push(self.next_buffer(slot));
        if role == Role::ReadBack {
            self.has_read_back();
        }
        // A stage is left when its op is sent: these sent the unlocking, the flush and the close.
        let is_timed_end =
            matches!(self.stage, Stage::FlushTimed | Stage::CloseTimed | Stage::ArriveEnd);
        if self.stage != Stage::Timed && !is_timed_end {
            self.complete_untimed(completion);
            return false;
        }
        let moved = match completion.outcome {
            Ok(moved) => moved.0,
            Err(errno) => {
                let place = match class {
                    OpClass::Read | OpClass::Write => format!(" {length} bytes at offset {at}"),
                    OpClass::Sync | OpClass::Other => String::new(),
                };
                if self.following.is_some() && self.tolerates(class, errno, &place) {
                    self.ended_at(completion.submitted, completion.completed);
                    return false;
                }
                self.fail(errno, &format!("{}{place}", class_name(class)));
                return false;
            }
        };
        // The op in flight when a stonewall falls is not counted, as in IOzone.
        if self.is_cut_off() && !is_timed_end {
            return false;
        }
        self.ended_at(completion.submitted, completion.completed);
        if role == Role::Aside {
            return false;
        }
        // Reading back does not delay the next write.
        if self.has_pauses && role == Role::Own {
            self.pause_after(completion, class);
        }
        match class {
            OpClass::Read if moved < length => {
                self.fell_short(at, length, moved);
                return false;
            }
            OpClass::Read => self.report.read_bytes += moved,
            OpClass::Write => {
                self.report.write_bytes += moved;
                self.must_read_back(at);
                // The second half of an update: the op was counted when it had read.
                if matches!(self.tenant.direction, Direction::Update { .. }) {
                    return true;
                }
            }
            OpClass::Sync => {
                return self.following.is_none() || self.obey(completion, class, moved);
            }
            OpClass::Other => return false,
        }
        self.report.ops += 1;
        self.report.bytes += moved;
        self.following.is_none() || self.obey(completion, class, moved)
    }

    /// The end of an op that is not measured.
    fn complete_untimed(&mut self, completion: &Completion) {
        match (completion.outcome, self.untimed) {
            // ext2 and ext3 cannot allocate without writing.
            (Err(Errno::EOPNOTSUPP), Some(Op::Allocate { .. })) => {
                self.stage = Stage::Measure;
                return;
            }
            (Ok(found), Some(Op::Stat { .. })) => self.found = found,
            _ => {}
        }
        if let Err(errno) = completion.outcome {
            let when = if self.stage <= Stage::WaitStart { "before" } else { "after" };
            let what = self.untimed.as_ref().map_or("an operation", untimed_name);
            self.fail(errno, &format!("{what}, {when} the timed region,"));
        }
    }
}

impl<G: GroupState> Worker for StreamWorker<G> {
    fn so_far(&self) -> Option<(StreamReport, Vec<OperationCount>)> {
        Some((self.report(), Vec::new()))
    }

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
        match completion.outcome {
            Ok(moved) if self.is_unhindered && self.stage == Stage::Timed => {
                self.complete_unhindered(completion, moved)
            }
            _ => self.complete_any(completion),
        }
    }

    #[inline]
    fn begun_anew(&mut self) -> Option<Ns> {
        if self.following.is_some() { self.take_anew() } else { None }
    }

    #[inline]
    fn run_kind(&mut self, now: Ns) -> Option<RunKind> {
        if self.stage == Stage::WaitStart {
            self.begin_run(now);
        }
        let may_run = self.is_plain && self.stage == Stage::Timed && self.report.errors == 0;
        may_run.then(|| self.kind())
    }

    #[cold]
    fn rehearsal(&mut self) -> Option<RunKind> {
        self.begin_rehearsal()
    }

    #[cold]
    fn rehearsed(&mut self) {
        self.end_rehearsal();
    }

    #[inline]
    fn next_of_run<const WRITES: bool>(&mut self, now: Ns) -> Option<Transfer> {
        self.next_plain::<WRITES>(now)
    }

    #[inline]
    fn ended_in_run(&mut self, submitted: Ns, completed: &[Ns], length: Bytes) -> bool {
        self.plain_ended(submitted, completed, length)
    }

    fn leave_run(&mut self, transfer: &Transfer, now: Ns) -> Option<Submission> {
        self.submit_plain(transfer, now)
    }
}

/// Slots that stay empty until a search for a depth wants them.
fn idle_at_first(following: Option<&Following>, tenant: &Tenant) -> u32 {
    following.and_then(|rules| rules.idle_slots(tenant.depth)).unwrap_or(0)
}

pub(crate) fn class_name(class: OpClass) -> &'static str {
    match class {
        OpClass::Read => "reading",
        OpClass::Write => "writing",
        OpClass::Sync => "flushing",
        OpClass::Other => "an operation",
    }
}

/// Name of an op outside the timed region.
fn untimed_name(op: &Op) -> &'static str {
    match op {
        Op::Open { .. } | Op::Create { .. } => "opening",
        Op::Close { .. } => "closing",
        Op::Truncate { .. } => "setting the length",
        Op::Map { .. } | Op::Unmap { .. } => "mapping",
        Op::Advise { .. } => "advice",
        Op::Lock { .. } => "locking",
        other => class_name(other.class()),
    }
}

/// A size for people: `64 KiB`, `4097 bytes`.
fn in_words(size: Bytes) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let found = units.iter().find(|(power, _)| size.0 != 0 && size.0.is_multiple_of(1 << power));
    found.map_or_else(
        || format!("{} bytes", size.0),
        |(power, unit)| format!("{} {unit}", size.0 >> power),
    )
}

/// Advice about an errno that says something about the storage.
pub(crate) fn advice(errno: Errno) -> &'static str {
    const READ_ONLY: Errno = Errno(30);
    match errno {
        Errno::EIO => {
            "; the storage below failed: see the kernel's log (dmesg), or [[faults]] of a \
             simulated stack; or a mapped file was cut"
        }
        Errno::ENOSPC => "; free some space, or use smaller files",
        READ_ONLY => {
            "; the file system protects itself after an error: see the kernel's log (dmesg), \
             unmount it and run fsck (in simulation see [[faults]] of the stack file)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
