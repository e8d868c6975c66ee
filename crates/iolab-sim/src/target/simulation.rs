//! `Simulation`: a stack, its clock, and the ops that lanes have in flight on it.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use iolab_files::api::block::DeviceId;
use iolab_files::machine::{Machine, MachineEnded, Outgoing, OutgoingId, OutgoingKind, RunBy};
use iolab_model::op::Token;
use iolab_model::trace_event::kernel_thread;
use iolab_model::{Bytes, Completion, Ns, Sector, TraceEvent};
use serde::{Deserialize, Serialize};

use super::filed::Files;
use super::namespace::{Namespace, Placement};
use super::readings::{HostTime, Readings, ReadingsTaken};
use crate::Calendar;
use crate::api::bio::{
    Bio, BioId, Ended, Flags, Operation, Priority, ProcessId, Status, Submitter,
};
use crate::api::layer::{Incident, Info, Layer, WriteCache};
use crate::queue::is_of_the_instant;
use crate::software::ProcessorClocks;

/// Cost of software per op, on the worker's CPU.
///
/// Defaults are assumptions, to be calibrated: 1 us for the system call, 2 us to submit a request,
/// 3 us for its completion and the wake-up; 0.35 us per page of the page cache, 5 GB/s of copying;
/// 3 us to give blocks of ext2, ext3 or ext4 their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuCost {
    /// One system call.
    pub call_ns: u64,
    /// Submission through the block layer.
    pub submit_ns: u64,
    /// Completion and wake-up.
    pub complete_ns: u64,
    /// A page of the page cache that is touched.
    pub page_ns: u64,
    /// Copying of 1 KiB between the page cache and a worker.
    pub copy_ns_per_kib: u64,
    /// Blocks of a file get their place, together: with the handle of the journal.
    pub map_ns: u64,
}

impl Default for CpuCost {
    fn default() -> Self {
        Self {
            call_ns: 1_000,
            submit_ns: 2_000,
            complete_ns: 3_000,
            page_ns: 350,
            copy_ns_per_kib: 205,
            map_ns: 3_000,
        }
    }
}

impl CpuCost {
    /// Software that costs nothing: for tests and for the simulator's own speed.
    pub const FREE: Self = Self {
        call_ns: 0,
        submit_ns: 0,
        complete_ns: 0,
        page_ns: 0,
        copy_ns_per_kib: 0,
        map_ns: 0,
    };
}

/// Index of an op in flight.
type OpId = u32;

#[derive(Clone, Copy, Debug)]
struct InFlight {
    lane: u32,
    token: Token,
    submitted: Ns,
    bytes: Bytes,
    bios: u32,
    /// Result of the first bio that failed, if one did.
    status: Status,
}

/// Owner of a bio.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// An op on the bare device.
    Op(OpId),
    /// A request of the file half.
    File(OutgoingId),
}

#[derive(Debug)]
enum Planned {
    Submit(Bio),
    End(OpId),
}

/// One worker's mailbox.
#[derive(Debug, Default)]
struct Mailbox {
    ended: Vec<Completion>,
}

/// A stack in virtual time.
pub struct Simulation {
    now: Ns,
    stack: Box<dyn Layer>,
    info: Info,
    cost: CpuCost,
    processors: ProcessorClocks,
    cpus: u16,
    ops: Vec<InFlight>,
    free_ops: Vec<OpId>,
    /// Owner of every bio in flight.
    bios: Vec<Owner>,
    free_bios: Vec<u32>,
    planned: Calendar<Planned>,
    lanes: Vec<Mailbox>,
    done: Vec<Ended>,
    pub(super) names: Namespace,
    /// The mounted file system, if there is one.
    files: Option<Box<Files>>,
    /// Bytes of its dirty data, for queues of its own.
    dirty: Rc<Cell<u64>>,
    /// Sector at which the second device of its file system begins, if there is one.
    second_from: Sector,
    /// Readings of the device's counters, while somebody wants them.
    readings: Option<Box<Readings>>,
    /// Time of processors charged to workers past the file half, and what they computed of it.
    worked: Ns,
    computed: Ns,
    /// The same of everything when the readings began.
    worked_before: (Ns, Ns),
    hash: u64,
    bios_done: u64,
}

/// A bio about to be submitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) operation: Operation,
    pub(super) sector: Sector,
    pub(super) sectors: u32,
    pub(super) flags: Flags,
    pub(super) submitter: Submitter,
}

impl Simulation {
    /// A simulation at its beginning: 1000 s after boot, so that "long ago" exists.
    pub const EPOCH: Ns = Ns::from_seconds(1_000);

    /// A simulation of `stack`.
    pub fn new(stack: Box<dyn Layer>, cost: CpuCost, placement: Placement) -> Self {
        let info = stack.info();
        Self {
            now: Self::EPOCH,
            info,
            names: Namespace::new(info.capacity, placement),
            files: None,
            dirty: Rc::default(),
            second_from: Sector(0),
            stack,
            cost,
            processors: ProcessorClocks::default(),
            cpus: 1,
            ops: Vec::new(),
            free_ops: Vec::new(),
            bios: Vec::new(),
            free_bios: Vec::new(),
            planned: Calendar::default(),
            lanes: Vec::new(),
            done: Vec::new(),
            readings: None,
            worked: Ns(0),
            computed: Ns(0),
            worked_before: (Ns(0), Ns(0)),
            hash: 0xcbf2_9ce4_8422_2325,
            bios_done: 0,
        }
    }

    /// Files below a directory have a range of sectors of their own, from a whole extent on.
    #[must_use]
    pub fn with_area(mut self, below: PathBuf, from: Sector, capacity: Sector) -> Self {
        self.names.add_area(below, from, capacity);
        self
    }

    /// The second device of the file system begins here.
    #[must_use]
    pub(crate) fn with_second_at(mut self, from: Sector) -> Self {
        self.second_from = from;
        self
    }

    /// Keeps the data of files from now on.
    pub(super) fn keep_data(&mut self) {
        self.names.keep_data();
        if let Some(files) = &mut self.files {
            files.machine.keep_data();
        }
    }

    /// Tells queues of the file system's own how much of its data is dirty.
    #[must_use]
    pub(crate) fn telling_dirty(mut self, dirty: Rc<Cell<u64>>) -> Self {
        self.dirty = dirty;
        self
    }

    /// Files lie in this file system.
    #[must_use]
    pub fn with_files(mut self, machine: Option<Machine>) -> Self {
        self.files = machine.map(|machine| Box::new(Files::new(machine)));
        self
    }

    /// The mounted file system, if there is one.
    pub fn machine(&self) -> Option<&Machine> {
        self.files.as_ref().map(|files| &files.machine)
    }

    /// Workers are spread over this many processors.
    #[must_use]
    pub fn on_cpus(mut self, cpus: u16) -> Self {
        self.cpus = cpus.max(1);
        self
    }

    /// Workers run on the processors that the stack's queues charge, too.
    #[must_use]
    pub(crate) fn on_processors(mut self, processors: ProcessorClocks) -> Self {
        self.processors = processors;
        self
    }

    /// The processor of a lane.
    pub(crate) fn cpu_of(&self, lane: u32) -> u16 {
        (lane % u32::from(self.cpus)) as u16
    }

    /// Facts that the stack tells of itself.
    pub const fn info(&self) -> Info {
        self.info
    }

    /// Counts, layer by layer.
    pub fn counters(&self) -> Vec<(String, f64)> {
        let mut counters = self.stack.counters();
        counters.retain(|(name, _)| !is_of_the_instant(name));
        counters.extend(self.machine().map(Machine::counters).unwrap_or_default());
        counters
    }

    /// Begins to read the device's counters now and then.
    ///
    /// With a distance (of at least 1 ms) readings are exactly that far apart, all of them are
    /// kept, and the processors' time is taken as well.
    pub fn begin_readings(&mut self, every: Option<Ns>) {
        let counters = self.stack.counters();
        self.readings = Some(Box::new(Readings::begin(self.now, every, &counters)));
        self.worked_before = self.worked();
    }

    /// Readings that are due up to `instant`, before anything happens at it.
    fn read_until(&mut self, instant: Ns) {
        let Some(mut readings) = self.readings.take() else { return };
        if readings.is_exact() {
            let mut from = self.now;
            while readings.next() <= instant {
                let at = readings.next();
                self.pass(&mut readings, from, at);
                readings.look(at, &self.stack.counters());
                from = at;
            }
            self.pass(&mut readings, from, instant);
        } else if readings.next() <= instant {
            readings.look(instant, &self.stack.counters());
        }
        self.readings = Some(readings);
    }

    /// The processors' time between two instants with no event between them.
    fn pass(&self, readings: &mut Readings, from: Ns, until: Ns) {
        let files = self.machine().map_or(Ns(0), |machine| {
            Ns(machine.busy_until().map(|clock| clock.min(until).since(from).0).sum())
        });
        let all = Ns(until.since(from).0 * u64::from(self.cpus));
        let (worked, computed) = self.worked();
        let (worked_before, computed_before) = self.worked_before;
        readings.host.pass(HostTime {
            all,
            busy: (files + self.processors.busy(from, until)).min(all),
            is_waiting: self.bios.len() > self.free_bios.len(),
            worked: worked.since(worked_before),
            computed: computed.since(computed_before),
        });
    }

    /// Time of processors charged to workers, and what they computed of it.
    fn worked(&self) -> (Ns, Ns) {
        let (worked, computed) = self.machine().map_or((Ns(0), Ns(0)), Machine::worked);
        (worked + self.worked, computed + self.computed)
    }

    /// The readings so far, since the first one.
    pub fn end_readings(&mut self) -> Option<ReadingsTaken> {
        let counters = self.stack.counters();
        self.readings.take().map(|readings| readings.end(self.now, &counters))
    }

    /// Incidents in the stack since the beginning, layer by layer.
    pub fn incidents(&self) -> Vec<Incident> {
        let mut list = Vec::new();
        self.stack.incidents(&mut list);
        list
    }

    /// Keeps the trace events of every queue from now on; how many queues there are.
    pub fn record_events(&mut self) -> u16 {
        let mut queues = 0;
        self.stack.record_events(&mut queues);
        queues
    }

    /// Takes the trace events kept so far, in order of time.
    pub fn take_events(&mut self) -> Vec<TraceEvent> {
        let mut events = Vec::new();
        self.stack.take_events(&mut events);
        events.sort_by_key(|event| event.at);
        events
    }

    /// A number that depends on every bio's end and on their order: equal runs have equal hashes.
    pub const fn event_hash(&self) -> u64 {
        self.hash
    }

    /// Bios finished so far.
    pub const fn bios_done(&self) -> u64 {
        self.bios_done
    }

    /// A new lane's number.
    pub(super) fn add_lane(&mut self) -> u32 {
        self.lanes.push(Mailbox::default());
        if let Some(files) = &mut self.files {
            files.machine.add_lane();
        }
        self.lanes.len() as u32 - 1
    }

    /// The process of a lane ends: no scheduler waits for it any longer.
    pub(super) fn exited(&mut self, process: ProcessId) {
        self.stack.exited(self.now, process);
    }

    /// Current virtual time.
    pub(super) const fn now(&self) -> Ns {
        self.now
    }

    /// Time of the next event.
    pub(super) fn next_event(&self) -> Ns {
        let files = self.machine().map_or(Ns::MAX, Machine::next_event);
        self.planned.next_event().min(self.stack.next_event()).min(files)
    }

    /// Lets time pass to `instant` (not beyond the next event) and does what is due.
    pub(super) fn advance_to(&mut self, instant: Ns) {
        debug_assert!(instant >= self.now, "time went back");
        if self.readings.is_some() {
            self.read_until(instant);
        }
        self.now = instant;
        if self.stack.next_event() <= instant {
            let mut done = core::mem::take(&mut self.done);
            self.stack.advance(instant, &mut done);
            for ended in done.drain(..) {
                self.bio_done(ended);
            }
            self.done = done;
        }
        while let Some((_, planned)) = self.planned.take_due(instant) {
            match planned {
                Planned::Submit(bio) => self.stack.submit(instant, &bio),
                Planned::End(op) => self.end(op),
            }
        }
        self.advance_files();
    }

    /// Starts an op on the worker's CPU; its bios follow with [`Simulation::send`].
    pub(super) fn begin(&mut self, lane: u32, token: Token, bytes: Bytes) -> u32 {
        let (submitted, status) = (self.now, Ok(()));
        let op = InFlight { lane, token, submitted, bytes, bios: 0, status };
        self.charge(lane, self.cost.call_ns);
        if let Some(id) = self.free_ops.pop() {
            self.ops[id as usize] = op;
            return id;
        }
        self.ops.push(op);
        self.ops.len() as u32 - 1
    }

    fn charge(&mut self, lane: u32, cost_ns: u64) -> Ns {
        // The process of a lane, see `SimLane`.
        let by = Submitter { process: ProcessId(lane + 1), ..Submitter::default() };
        self.worked += Ns(cost_ns);
        self.processors.charge(by, self.now, Ns(cost_ns))
    }

    /// An op that is nothing but work of the processor.
    pub(super) fn burn(&mut self, lane: u32, token: Token, duration: Ns) {
        let op = self.begin(lane, token, Bytes(0));
        self.computed += duration;
        let at = self.charge(lane, duration.0);
        self.planned.plan(at, Planned::End(op));
    }

    /// Submits one bio of an op.
    pub(super) fn send(&mut self, op: u32, piece: Piece) {
        let lane = self.ops[op as usize].lane;
        self.ops[op as usize].bios += 1;
        let bio = Bio {
            id: self.bio_of(Owner::Op(op)),
            operation: piece.operation,
            sector: piece.sector,
            sectors: piece.sectors,
            flags: piece.flags,
            submitter: piece.submitter,
            segments: 0,
        };
        let at = self.charge(lane, self.cost.submit_ns);
        if at <= self.now {
            self.stack.submit(self.now, &bio);
        } else {
            self.planned.plan(at, Planned::Submit(bio));
        }
    }

    /// A name for a bio.
    fn bio_of(&mut self, owner: Owner) -> BioId {
        if let Some(id) = self.free_bios.pop() {
            self.bios[id as usize] = owner;
            return BioId(id);
        }
        self.bios.push(owner);
        BioId(self.bios.len() as u32 - 1)
    }

    fn bio_done(&mut self, Ended { id, status }: Ended) {
        let owner = self.bios[id.0 as usize];
        self.free_bios.push(id.0);
        self.bios_done += 1;
        for word in [self.now.0, u64::from(id.0)] {
            // FNV-1a over words (Fowler, Noll, Vo; 64-bit parameters).
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let op = match owner {
            Owner::Op(op) => op,
            Owner::File(request) => {
                if let Some(files) = &mut self.files {
                    files.machine.advance_clock(self.now);
                    files.machine.request_done(request, status);
                }
                return;
            }
        };
        let waiting = &mut self.ops[op as usize];
        waiting.bios -= 1;
        waiting.status = waiting.status.and(status);
        if waiting.bios > 0 {
            return;
        }
        let lane = waiting.lane;
        let at = self.charge(lane, self.cost.complete_ns);
        if at <= self.now {
            self.end(op);
        } else {
            self.planned.plan(at, Planned::End(op));
        }
    }

    fn end(&mut self, op: OpId) {
        let InFlight { lane, token, submitted, bytes, status, .. } = self.ops[op as usize];
        self.free_ops.push(op);
        let outcome = status.map(|()| bytes);
        let completion = Completion { token, submitted, completed: self.now, outcome };
        self.lanes[lane as usize].ended.push(completion);
    }

    /// Takes what has ended on a lane.
    pub(super) fn collect(&mut self, lane: u32, done: &mut Vec<Completion>) {
        done.append(&mut self.lanes[lane as usize].ended);
    }

    // --- The file half ---

    /// The lane of a process that prepares and cleans up.
    pub(super) fn lane_beside(&mut self) -> u32 {
        let known = self.files.as_ref().and_then(|files| files.lane_beside);
        let lane = known.unwrap_or_else(|| self.add_lane());
        if let Some(files) = &mut self.files {
            files.lane_beside = Some(lane);
        }
        lane
    }

    /// Gives the file half something to do at this instant, and carries out what it asks for.
    pub(super) fn with_machine<R>(&mut self, act: impl FnOnce(Ns, &mut Machine) -> R) -> Option<R> {
        let now = self.now;
        let answer = act(now, &mut self.files.as_mut()?.machine);
        self.settle_files();
        Some(answer)
    }

    fn advance_files(&mut self) {
        let now = self.now;
        let Some(files) = &mut self.files else { return };
        if files.machine.next_event() <= now {
            files.machine.advance(now);
        }
        self.settle_files();
    }

    /// Sends the requests of the file half, and delivers the ops that have ended.
    fn settle_files(&mut self) {
        let Some(mut files) = self.files.take() else { return };
        loop {
            files.machine.take_requests(&mut files.requests);
            if files.requests.is_empty() {
                break;
            }
            for request in files.requests.drain(..) {
                if request.kind == OutgoingKind::Flush
                    && self.info.write_cache == WriteCache::Through
                {
                    files.machine.request_done(request.id, Ok(()));
                } else {
                    self.send_request(&files.priorities, request);
                }
            }
        }
        self.dirty.set(files.machine.dirty_bytes());
        files.machine.take_ended(&mut files.ended);
        for MachineEnded { lane, token, submitted, outcome } in files.ended.drain(..) {
            let completion = Completion { token, submitted, completed: self.now, outcome };
            self.lanes[lane as usize].ended.push(completion);
        }
        self.files = Some(files);
    }

    fn send_request(&mut self, priorities: &[Priority], request: Outgoing) {
        let flags = [
            (request.is_sync, Flags::SYNC),
            (request.is_preflush, Flags::PREFLUSH),
            (request.is_fua, Flags::FUA),
            (request.is_meta, Flags::META),
            (request.is_background, Flags::BACKGROUND),
        ];
        let set = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag);
        let (process, priority, cpu) = match request.runner {
            RunBy::Lane(lane) => {
                let priority = priorities.get(lane as usize).copied().unwrap_or_default();
                (ProcessId(lane + 1), priority, self.cpu_of(lane))
            }
            // Threads of the kernel: numbers that no lane has.
            RunBy::Flusher => (ProcessId(kernel_thread::FLUSHER), Priority::default(), 0),
            RunBy::FileSystem(thread) => {
                (ProcessId(kernel_thread::of_file_system(thread)), Priority::default(), 0)
            }
        };
        let bio = Bio {
            id: self.bio_of(Owner::File(request.id)),
            operation: match request.kind {
                OutgoingKind::Read => Operation::Read,
                OutgoingKind::Write => Operation::Write,
                OutgoingKind::Discard => Operation::Discard,
                OutgoingKind::Flush => Operation::Flush,
            },
            sector: match request.device {
                DeviceId::MAIN => request.sector,
                _ => Sector(self.second_from.0 + request.sector.0),
            },
            sectors: request.sectors,
            flags: set.fold(Flags::NONE, Flags::with),
            submitter: Submitter { process, priority, cpu },
            segments: request.segments,
        };
        if request.at <= self.now {
            self.stack.submit(self.now, &bio);
        } else {
            self.planned.plan(request.at, Planned::Submit(bio));
        }
    }

    /// Priority of a lane's process, for the requests of the file half.
    pub(super) fn set_priority(&mut self, lane: u32, priority: Priority) {
        if let Some(files) = &mut self.files {
            files.priorities.resize(lane as usize + 1, Priority::default());
            files.priorities[lane as usize] = priority;
        }
    }
}
