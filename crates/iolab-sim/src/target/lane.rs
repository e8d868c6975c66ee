//! Lanes of a simulated stack: direct I/O on files without a file system, or whatever a file system
//! that lies on it offers ([`super::filed_lane`]).
//!
//! Data are kept if somebody looks at them ([`SimTarget::keeping_data`]); without a file system
//! they move when a transfer is submitted. Left out: locks. Without a file system, buffered access,
//! mapping and streams are declined, too.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use iolab_files::api::file_system::Reshape;
use iolab_files::machine::Machine;
use iolab_model::error::Errno;
use iolab_model::listing::SortedListing;
use iolab_model::op::{
    Access, Deallocation, Durability, Handle, OpenHow, PathId, Position, Token, Transfer,
    TransferFlags,
};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Op, Sector,
    Submission, Target, TraceEvent, VirtualTime,
};

use super::buffers::Buffers;
use super::namespace::FileId;
use super::readings::ReadingsTaken;
use super::simulation::{Piece, Simulation};
use crate::api::bio::{Flags, Operation, ProcessId, Submitter};
use crate::api::layer::WriteCache;

/// Most ops in flight per lane.
const DEPTH_MAX: u32 = 65_536;

/// A simulated stack to which lanes can be opened; clones share it.
#[derive(Clone)]
pub struct SimTarget {
    simulation: Rc<RefCell<Simulation>>,
    facts: Vec<(String, String)>,
    default_access: Access,
}

impl SimTarget {
    /// A target of a fresh simulation; `facts` are stored with every result.
    pub fn new(simulation: Simulation, facts: Vec<(String, String)>) -> Self {
        let simulation = Rc::new(RefCell::new(simulation));
        Self { simulation, facts, default_access: Access::Plain }
    }

    /// The same target for the workers of an engine whose files are this, unless they ask for
    /// something else.
    #[must_use]
    pub fn with_access(&self, default_access: Access) -> Self {
        Self { default_access, ..self.clone() }
    }

    /// Keeps the data of files, so that what is read is what was written. No time depends on it.
    #[must_use]
    pub fn keeping_data(self) -> Self {
        self.simulation.borrow_mut().keep_data();
        self
    }

    /// Removes a file if it is there.
    pub fn forget(&self, path: &PathBuf) {
        if self.inspect(|simulation| simulation.machine().is_some()) {
            // In no timed region, but with all that a removal writes.
            let unlink = Op::Unlink { path: PathId(0) };
            let _ = self.simulation.borrow_mut().do_beside(&unlink, Some(path));
            return;
        }
        // A phase that failed may not have made it.
        let _ = self.simulation.borrow_mut().names.unlink(path);
    }

    /// Runs of neighbouring blocks of a file that is there, on a simulated file system; inside,
    /// `None` while data have no place.
    pub fn extents(&self, path: &Path) -> Option<Option<u64>> {
        self.inspect(|simulation| simulation.machine()?.extents(path).ok())
    }

    /// Brings the page cache into a state; without a file system there is nothing to do.
    ///
    /// Everything is written first; then nothing is cached, or everything as far as memory goes.
    pub fn prepare_cache(&self, is_warm: bool) {
        let mut simulation = self.simulation.borrow_mut();
        let Some(names) = simulation.machine().map(Machine::names) else {
            return;
        };
        let _ = simulation.do_beside(&Op::SyncAll, None);
        simulation.with_machine(|_, machine| machine.drop_caches());
        for path in names.keys().filter(|_| is_warm) {
            simulation.read_beside(path);
        }
    }

    /// Takes the trace events kept since [`Simulation::record_events`].
    pub fn take_events(&self) -> Vec<TraceEvent> {
        self.simulation.borrow_mut().take_events()
    }

    /// Looks at the simulation.
    pub fn inspect<R>(&self, look: impl FnOnce(&Simulation) -> R) -> R {
        look(&self.simulation.borrow())
    }

    /// Begins to read the device's counters now and then.
    /// See [`Simulation::begin_readings`].
    pub fn begin_readings(&self, every: Option<Ns>) {
        self.simulation.borrow_mut().begin_readings(every);
    }

    /// The readings so far, see [`Simulation::end_readings`].
    pub fn end_readings(&self) -> Option<ReadingsTaken> {
        self.simulation.borrow_mut().end_readings()
    }
}

impl VirtualTime for SimTarget {
    fn now(&self) -> Ns {
        self.simulation.borrow().now()
    }

    fn next_event(&self) -> Option<Ns> {
        let next = self.simulation.borrow().next_event();
        (next != Ns::MAX).then_some(next)
    }

    fn advance_to(&self, instant: Ns) {
        self.simulation.borrow_mut().advance_to(instant);
    }
}

impl Target for SimTarget {
    type Lane = SimLane;

    fn name(&self) -> &'static str {
        "simulation"
    }

    fn capabilities(&self) -> Capabilities {
        let simulation = self.simulation.borrow();
        let can_verify = simulation.names.keeps_data();
        let default_access = self.default_access;
        if let Some(machine) = simulation.machine() {
            return Capabilities {
                can_verify,
                default_access,
                has_allocate: machine.can_reshape(Reshape::Allocate),
                has_deallocate: machine.can_reshape(Reshape::Punch),
                has_zeroing: machine.can_reshape(Reshape::Zero),
                ..CAPABILITIES_WITH_FILES
            };
        }
        let has_deallocate = simulation.info().can_discard;
        Capabilities { can_verify, default_access, has_deallocate, ..CAPABILITIES }
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.facts.clone()
    }

    fn preferred_bytes(&self, _: &Path) -> Option<Bytes> {
        self.simulation.borrow().machine().map(Machine::preferred_bytes)
    }

    fn open(&self, request: &LaneRequest) -> Result<SimLane, Error> {
        let lane = self.simulation.borrow_mut().add_lane();
        let priority = request.priority.unwrap_or_default();
        self.simulation.borrow_mut().set_priority(lane, priority);
        Ok(SimLane {
            simulation: Rc::clone(&self.simulation),
            lane,
            depth: request.depth,
            in_flight: 0,
            paths: Arc::clone(&request.paths),
            handles: Vec::new(),
            listing: SortedListing::default(),
            buffers: Buffers::new(request, self.simulation.borrow().names.keeps_data()),
            submitter: Submitter {
                process: ProcessId(lane + 1),
                priority: request.priority.unwrap_or_default(),
                cpu: self.simulation.borrow().cpu_of(lane),
            },
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Opened {
    file: FileId,
    how: OpenHow,
    position: u64,
}

/// One worker's way in: a process of its own.
pub struct SimLane {
    pub(super) simulation: Rc<RefCell<Simulation>>,
    pub(super) lane: u32,
    depth: u32,
    in_flight: u32,
    paths: Arc<[PathBuf]>,
    handles: Vec<Option<Opened>>,
    pub(super) listing: SortedListing,
    pub(super) buffers: Buffers,
    submitter: Submitter,
}

/// Fate of an op at once.
pub(super) enum Begun {
    InFlight,
    Ended(Result<Bytes, Errno>),
}

impl Lane for SimLane {
    fn now(&self) -> Ns {
        self.simulation.borrow().now()
    }

    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        let mut accepted = Accepted::default();
        for submission in batch {
            if self.in_flight >= self.depth {
                break;
            }
            match self.begin(submission) {
                Begun::InFlight => {
                    self.in_flight += 1;
                    accepted.queued += 1;
                }
                Begun::Ended(outcome) => {
                    let token = submission.token;
                    done.push(Completion { token, submitted: now, completed: now, outcome });
                    accepted.done += 1;
                }
            }
        }
        accepted
    }

    fn kick(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        let before = done.len();
        let wanted = min.min(self.in_flight) as usize;
        let mut simulation = self.simulation.borrow_mut();
        loop {
            simulation.collect(self.lane, done);
            let next = simulation.next_event();
            if done.len() - before >= wanted || next > until || next == Ns::MAX {
                break;
            }
            simulation.advance_to(next);
        }
        self.in_flight -= (done.len() - before) as u32;
        drop(simulation);
        for completion in &done[before..] {
            if self.buffers.is_lent(completion.token) {
                self.take_back(completion.token);
            }
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        self.buffers.slot(token)
    }

    fn sleep_until(&mut self, instant: Ns) {
        let mut simulation = self.simulation.borrow_mut();
        while simulation.next_event() <= instant {
            let next = simulation.next_event();
            simulation.advance_to(next);
        }
        if simulation.now() < instant {
            simulation.advance_to(instant);
        }
    }
}

/// Abilities of every simulated stack; [`crate::limits`] says why not more.
pub const CAPABILITIES: Capabilities = Capabilities {
    is_asynchronous: true,
    depth_max: DEPTH_MAX,
    can_verify: true,
    has_namespace: true,
    has_plain: false,
    has_direct: true,
    has_vectors: true,
    has_flags: true,
    flags: DURABLE,
    has_allocate: true,
    has_end: true,
    is_simulated: true,
    ..Capabilities::MINIMAL
};

/// Abilities of a simulated stack with a file system. [`crate::limits`] says why not more.
pub const CAPABILITIES_WITH_FILES: Capabilities = Capabilities {
    has_plain: true,
    has_append: true,
    has_mapping: true,
    has_small_calls: true,
    has_stream: true,
    has_deallocate: true,
    has_zeroing: true,
    has_store: true,
    ..CAPABILITIES
};

/// The flags that mean something here: nothing polls, and no file is cached.
const DURABLE: TransferFlags = TransferFlags::DATA_SYNC.with(TransferFlags::SYNC);

/// A worker's process ends with its phase, as a thread of a real run does.
impl Drop for SimLane {
    fn drop(&mut self) {
        // While the simulation itself unwinds from a panic there is nobody left to tell.
        if let Ok(mut simulation) = self.simulation.try_borrow_mut() {
            simulation.exited(self.submitter.process);
        }
    }
}

impl SimLane {
    pub(super) fn path(&self, id: PathId) -> Result<&PathBuf, Errno> {
        let listed = (id.0 as usize).checked_sub(self.paths.len());
        let found = match listed {
            None => self.paths.get(id.0 as usize),
            Some(place) => self.listing.names().get(place),
        };
        found.ok_or(Errno::ENOENT)
    }

    fn next_names(&mut self, path: PathId, count: u32) -> Result<Bytes, Errno> {
        self.directory(path)?;
        let directory = self.path(path)?.clone();
        let simulation = self.simulation.borrow();
        Ok(self.listing.read_on((path, &directory), count, simulation.names.names()))
    }

    fn opened(&self, handle: Handle) -> Result<Opened, Errno> {
        self.handles.get(handle.0 as usize).copied().flatten().ok_or(Errno::EBADF)
    }

    fn begin(&mut self, submission: &Submission) -> Begun {
        if self.simulation.borrow().machine().is_some() {
            return self.begin_filed(submission);
        }
        let begun = match submission.op {
            Op::Read(transfer) => self.transfer(submission, transfer, false),
            Op::Write(transfer) => self.transfer(submission, transfer, true),
            Op::Fsync { handle } | Op::Fdatasync { handle } => self.opened(handle).map(|opened| {
                let area = self.simulation.borrow().names.area(opened.file);
                self.flush(submission, &[area])
            }),
            // Names are not kept on the device: what is flushed is its cache.
            Op::SyncAll => {
                let areas: Vec<Sector> = self.simulation.borrow().names.areas().collect();
                Ok(self.flush(submission, &areas))
            }
            Op::SyncDirectory { path } => self.sync_directory(submission, path),
            Op::Deallocate { handle, at, length, how } => {
                self.deallocate(submission, handle, (at, length), how)
            }
            Op::Burn { duration } => Ok(self.burn(submission, duration)),
            ref op => self.name(op).map(|bytes| Begun::Ended(Ok(bytes))),
        };
        begun.unwrap_or_else(|errno| Begun::Ended(Err(errno)))
    }

    fn transfer(
        &mut self,
        submission: &Submission,
        transfer: Transfer,
        is_write: bool,
    ) -> Result<Begun, Errno> {
        let opened = self.opened(transfer.handle)?;
        if !TransferFlags::ALL.contains(transfer.flags) {
            return Err(Errno::EINVAL);
        }
        if !DURABLE.contains(transfer.flags) || transfer.call_bytes > 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let at = match transfer.at {
            Position::At(at) => at.0,
            Position::Current => opened.position,
            Position::End if is_write => self.simulation.borrow().names.length(opened.file).0,
            Position::End => return Err(Errno::EINVAL),
        };
        if !(at | transfer.length.0).is_multiple_of(512) {
            return Err(Errno::EINVAL);
        }
        let mut simulation = self.simulation.borrow_mut();
        let length = if is_write {
            let end = Bytes(at + transfer.length.0);
            if simulation.names.length(opened.file) < end {
                simulation.names.set_length(opened.file, end)?;
            }
            transfer.length.0
        } else {
            transfer.length.0.min(simulation.names.length(opened.file).0.saturating_sub(at))
        };
        if let Some(Some(opened)) = self.handles.get_mut(transfer.handle.0 as usize) {
            opened.position = at + length;
        }
        if length == 0 {
            return Ok(Begun::Ended(Ok(Bytes(0))));
        }
        let op = simulation.begin(self.lane, submission.token, Bytes(length));
        let is_durable = is_write
            && (opened.how.durability != Durability::None || transfer.flags.0 & DURABLE.0 != 0);
        let piece = Piece {
            operation: if is_write { Operation::Write } else { Operation::Read },
            sector: Sector(0),
            sectors: 0,
            flags: if is_durable { Flags::SYNC.with(Flags::FUA) } else { Flags::SYNC },
            submitter: self.submitter,
        };
        // Runs are few (an extent is 64 MiB); two fit without asking the heap.
        let mut runs = [(Sector(0), 0_u32); 2];
        let mut count = 0;
        let mut more = Vec::new();
        simulation.names.map(opened.file, Bytes(at), Bytes(length), |sector, sectors| {
            match runs.get_mut(count) {
                Some(run) => *run = (sector, sectors),
                None => more.push((sector, sectors)),
            }
            count += 1;
        });
        if let Some(mut buffer) = self.buffers.lend(submission.token, &submission.op) {
            let count = buffer.len().min(length as usize);
            simulation.names.move_data(opened.file, Bytes(at), &mut buffer[..count], is_write);
            self.buffers.put_back(submission.token, Some(buffer));
        }
        for &(sector, sectors) in runs[..count.min(runs.len())].iter().chain(&more) {
            simulation.send(op, Piece { sector, sectors, ..piece });
        }
        Ok(Begun::InFlight)
    }

    /// Tells the device that nobody needs a range; nothing here writes zeros.
    fn deallocate(
        &mut self,
        submission: &Submission,
        handle: Handle,
        (at, length): (Bytes, Bytes),
        how: Deallocation,
    ) -> Result<Begun, Errno> {
        let opened = self.opened(handle)?;
        let mut simulation = self.simulation.borrow_mut();
        if how == Deallocation::Zero || !simulation.info().can_discard {
            return Err(Errno::EOPNOTSUPP);
        }
        let end = (at.0 + length.0).min(simulation.names.length(opened.file).0);
        let (first, last) = (at.0.next_multiple_of(512), end / 512 * 512);
        if first >= last {
            return Ok(Begun::Ended(Ok(Bytes(0))));
        }
        let op = simulation.begin(self.lane, submission.token, Bytes(0));
        let mut runs = Vec::new();
        let length = Bytes(last - first);
        let mut each = |sector, sectors| runs.push((sector, sectors));
        simulation.names.map(opened.file, Bytes(first), length, &mut each);
        for (sector, sectors) in runs {
            simulation.names.forget_data(sector, u64::from(sectors));
            let (operation, flags) = (Operation::Discard, Flags::SYNC);
            let submitter = self.submitter;
            simulation.send(op, Piece { operation, sector, sectors, flags, submitter });
        }
        Ok(Begun::InFlight)
    }

    /// The worker's processor is busy for a while.
    fn burn(&mut self, submission: &Submission, duration: Ns) -> Begun {
        let mut simulation = self.simulation.borrow_mut();
        simulation.burn(self.lane, submission.token, duration);
        Begun::InFlight
    }

    fn directory(&self, path: PathId) -> Result<(), Errno> {
        self.simulation.borrow().names.directory(self.path(path)?)
    }

    fn sync_directory(&mut self, submission: &Submission, path: PathId) -> Result<Begun, Errno> {
        self.directory(path)?;
        let area = self.simulation.borrow().names.area_at(self.path(path)?);
        Ok(self.flush(submission, &[area]))
    }

    /// Makes durable what the devices behind these sectors hold in their write caches.
    fn flush(&mut self, submission: &Submission, areas: &[Sector]) -> Begun {
        let mut simulation = self.simulation.borrow_mut();
        if simulation.info().write_cache == WriteCache::Through {
            return Begun::Ended(Ok(Bytes(0)));
        }
        let op = simulation.begin(self.lane, submission.token, Bytes(0));
        let piece = Piece {
            operation: Operation::Flush,
            sector: Sector(0),
            sectors: 0,
            flags: Flags::SYNC.with(Flags::PREFLUSH),
            submitter: self.submitter,
        };
        for &sector in areas {
            simulation.send(op, Piece { sector, ..piece });
        }
        Begun::InFlight
    }

    /// Everything that takes no time here.
    fn name(&mut self, op: &Op) -> Result<Bytes, Errno> {
        match *op {
            Op::Create { path, handle, how } | Op::Open { path, handle, how } => {
                let is_new = matches!(op, Op::Create { .. });
                self.open_file(path, handle, how, is_new)
            }
            Op::Close { handle } => {
                self.opened(handle)?;
                self.handles[handle.0 as usize] = None;
                Ok(Bytes(0))
            }
            Op::Truncate { handle, length } => {
                let file = self.opened(handle)?.file;
                let mut simulation = self.simulation.borrow_mut();
                simulation.names.set_length(file, length).map(|()| Bytes(0))
            }
            Op::Allocate { handle, at, length, .. } => {
                let file = self.opened(handle)?.file;
                let mut simulation = self.simulation.borrow_mut();
                simulation.names.reserve(file, at + length).map(|()| Bytes(0))
            }
            Op::NextNames { path, count } => self.next_names(path, count),
            Op::Stat { path } | Op::StatTarget { path } => {
                let path = self.path(path)?;
                let simulation = self.simulation.borrow();
                simulation.names.find(path).map(|file| simulation.names.length(file))
            }
            _ => self.rearrange(op).map(|()| Bytes(0)),
        }
    }

    fn rearrange(&mut self, op: &Op) -> Result<(), Errno> {
        let names = &mut self.simulation.borrow_mut().names;
        let path = |id| self.path(id);
        match *op {
            Op::Unlink { path: id } => names.unlink(path(id)?),
            Op::Rename { from, to } => names.rename(path(from)?, path(to)?.clone()),
            Op::MakeDirectory { path: id } => names.make_directory(path(id)?.clone()),
            Op::ReadDirectory { path: id } => names.directory(path(id)?),
            Op::RemoveDirectory { path: id } => names.remove_directory(path(id)?),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn open_file(
        &mut self,
        path: PathId,
        handle: Handle,
        how: OpenHow,
        is_new: bool,
    ) -> Result<Bytes, Errno> {
        if how.access != Access::Direct {
            return Err(Errno::EOPNOTSUPP);
        }
        let path = self.path(path)?.clone();
        let file = {
            let names = &mut self.simulation.borrow_mut().names;
            let file = if is_new { names.create(path)? } else { names.find(&path)? };
            if how.is_truncating {
                names.set_length(file, Bytes(0))?;
            }
            file
        };
        let slot = handle.0 as usize;
        if self.handles.len() <= slot {
            self.handles.resize(slot + 1, None);
        }
        self.handles[slot] = Some(Opened { file, how, position: 0 });
        Ok(Bytes(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixed::Fixed;
    use crate::queue::{BlockQueue, QueueParameters};
    use crate::sched::SchedulerKind;
    use crate::target::{CpuCost, Placement};

    fn target(scheduler: SchedulerKind) -> SimTarget {
        let device = Fixed::new(Ns::from_us(100), 32, true);
        let parameters = QueueParameters { scheduler, ..QueueParameters::default() };
        let queue = BlockQueue::new(Ns(0), &parameters, Box::new(device)).unwrap();
        let simulation = Simulation::new(Box::new(queue), CpuCost::default(), Placement::Packed);
        SimTarget::new(simulation, Vec::new())
    }

    #[test]
    fn every_scheduler_conforms() {
        for &scheduler in SchedulerKind::ALL {
            for target in [target(scheduler), target(scheduler).keeping_data()] {
                let path = std::path::Path::new("/simulated");
                let failures = iolab_model::conformance::check(&target, path);
                assert!(failures.is_empty(), "{scheduler}: {failures:#?}");
            }
        }
    }

    /// Latency of the first read of the last of `phases` phases: in each, a new worker reads a few
    /// records in sequence, its file far from that of the one before.
    fn last_first_latency(scheduler: SchedulerKind, phases: u32, is_told: bool) -> Ns {
        let target = target(scheduler);
        let mut last = Ns(0);
        for phase in 0..phases {
            let request = LaneRequest {
                worker: 0,
                depth: 1,
                buffer_bytes: Bytes(4096),
                content: iolab_model::target::Content::Zero,
                seed: iolab_model::Seed(7),
                priority: None,
                submitter_cpu: None,
                paths: Arc::from([PathBuf::from(format!("/simulated/{phase}"))]),
            };
            let mut lane = target.open(&request).unwrap();
            let how = OpenHow {
                access: Access::Direct,
                durability: Durability::None,
                is_readable: true,
                is_writable: true,
                is_truncating: false,
                stream_buffer_bytes: Bytes(0),
                permissions: iolab_model::op::Permissions::Group,
                write_life: iolab_model::op::WriteLife::Unsaid,
                is_remembered: false,
            };
            let mut ask = |op: Op| {
                let mut done = Vec::new();
                let token = iolab_model::op::Token(0);
                let submission = Submission { token, op, intended: lane.now(), is_timed: true };
                lane.submit_batch(lane.now(), &[submission], &mut done);
                lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
                done[0].outcome.unwrap();
                done[0].completed - done[0].submitted
            };
            ask(Op::Create { path: PathId(0), handle: Handle(0), how });
            ask(Op::Truncate { handle: Handle(0), length: Bytes(1 << 30) });
            for record in 0..50 {
                let taken = ask(Op::read(Handle(0), Bytes(record * 4096), Bytes(4096)));
                if record == 0 {
                    last = taken;
                }
            }
            if !is_told {
                core::mem::forget(lane);
            }
        }
        last
    }

    /// Symptom: cfq, bfq and anticipatory waited in vain for workers of a phase that was over.
    /// Cause: no process ever ended. 2.6.32 does not stop the anticipatory wait at an exit either,
    /// but learns from a few of them that nobody comes back.
    #[test]
    fn nobody_waits_for_the_workers_of_the_phase_before() {
        for &scheduler in SchedulerKind::ALL {
            let latency = last_first_latency(scheduler, 12, true);
            assert_eq!(latency, Ns(106_000), "{scheduler}");
        }
        let untold = last_first_latency(SchedulerKind::Anticipatory, 12, false);
        assert!(untold > Ns::from_ms(2), "without being told it waits: {untold}");
    }
}
