//! `Simulation`: a stack, its clock, and the ops that lanes have in flight on it.

use std::path::PathBuf;

use iolab_model::op::Token;
use iolab_model::{Bytes, Completion, Ns, Sector, TraceEvent};
use serde::{Deserialize, Serialize};

use super::namespace::{Namespace, Placement};
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, ProcessId, Status, Submitter};
use crate::api::layer::{Incident, Info, Layer};
use crate::calendar::Calendar;
use crate::software::ProcessorClocks;

/// Cost of software per op, on the worker's CPU.
///
/// Defaults are assumptions, to be calibrated: 1 us for the system call, 2 us to submit a request,
/// 3 us for its completion and the wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuCost {
    /// One system call.
    pub call_ns: u64,
    /// Submission through the block layer.
    pub submit_ns: u64,
    /// Completion and wake-up.
    pub complete_ns: u64,
}

impl Default for CpuCost {
    fn default() -> Self {
        Self { call_ns: 1_000, submit_ns: 2_000, complete_ns: 3_000 }
    }
}

impl CpuCost {
    /// Software that costs nothing: for tests and for the simulator's own speed.
    pub const FREE: Self = Self { call_ns: 0, submit_ns: 0, complete_ns: 0 };
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
    /// Op of every bio in flight.
    bios: Vec<OpId>,
    free_bios: Vec<u32>,
    planned: Calendar<Planned>,
    lanes: Vec<Mailbox>,
    done: Vec<Ended>,
    pub(super) names: Namespace,
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
        self.stack.counters()
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
        self.planned.next_event().min(self.stack.next_event())
    }

    /// Lets time pass to `instant` (not beyond the next event) and does what is due.
    pub(super) fn advance_to(&mut self, instant: Ns) {
        debug_assert!(instant >= self.now, "time went back");
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
        self.processors.charge(by, self.now, Ns(cost_ns))
    }

    /// An op that is nothing but work of the processor.
    pub(super) fn burn(&mut self, lane: u32, token: Token, duration: Ns) {
        let op = self.begin(lane, token, Bytes(0));
        let at = self.charge(lane, duration.0);
        self.planned.plan(at, Planned::End(op));
    }

    /// Submits one bio of an op.
    pub(super) fn send(&mut self, op: u32, piece: Piece) {
        let lane = self.ops[op as usize].lane;
        self.ops[op as usize].bios += 1;
        let id = self.free_bios.pop().unwrap_or_else(|| {
            self.bios.push(op);
            self.bios.len() as u32 - 1
        });
        self.bios[id as usize] = op;
        let bio = Bio {
            id: BioId(id),
            operation: piece.operation,
            sector: piece.sector,
            sectors: piece.sectors,
            flags: piece.flags,
            submitter: piece.submitter,
        };
        let at = self.charge(lane, self.cost.submit_ns);
        if at <= self.now {
            self.stack.submit(self.now, &bio);
        } else {
            self.planned.plan(at, Planned::Submit(bio));
        }
    }

    fn bio_done(&mut self, Ended { id, status }: Ended) {
        let op = self.bios[id.0 as usize];
        self.free_bios.push(id.0);
        self.bios_done += 1;
        for word in [self.now.0, u64::from(id.0)] {
            // FNV-1a over words (Fowler, Noll, Vo; 64-bit parameters).
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
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
}
