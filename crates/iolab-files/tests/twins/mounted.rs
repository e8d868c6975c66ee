//! A mounted file system on a device that does one request after the other, and a process.

use std::path::{Path, PathBuf};

use iolab_files::api::block::DeviceId;
use iolab_files::api::file_system::{CacheKind, FileSystem};
use iolab_files::api::frame::Replacement;
use iolab_files::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use iolab_files::api::options::FsOptions;
use iolab_files::api::write_back::Throttle;
use iolab_files::fs::list::find;
use iolab_files::machine::{Call, Deciders, Machine, MachineSettings, Outgoing, OutgoingKind};
use iolab_files::reclaim::{Adaptive, TwoLists};
use iolab_files::writeback::{DirtyControl, Unlimited, Writer};
use iolab_model::error::Errno;
use iolab_model::op::{Handle, Op, PathId, Token};
use iolab_model::{Bytes, Ns};

use super::chance::Chance;

/// Events of an op that has no end.
const EVENTS_MAX: u32 = 1_000_000;
/// Time of a request.
const LATENCY: Ns = Ns(20_000);

/// Name of a file system, and its options of mkfs and mount.
pub type Mount = (&'static str, &'static str, &'static str);

/// A file system with these options.
pub fn made((name, mkfs, mount): Mount) -> Box<dyn FileSystem> {
    let row = find(name).unwrap();
    let device = DeviceFacts {
        bytes: 512 << 20,
        is_rotational: true,
        io_min_bytes: 512,
        io_opt_bytes: 0,
        stripe: None,
    };
    let listed = |text: &str| -> Vec<String> {
        if text.is_empty() { Vec::new() } else { vec![text.to_owned()] }
    };
    let spec = MakeSpec {
        memory_bytes: 16 << 20,
        map_cost: Ns(3_000),
        devices: vec![device],
        kernel: Kernel::DEFAULT,
        mkfs: FsOptions::mkfs(row.name, row.mkfs, &listed(mkfs)).unwrap(),
        mount: FsOptions::mount(row.name, row.mount, &listed(mount)).unwrap(),
        cpus: 1,
        solaris: Solaris::DEFAULT,
        system: FsOptions::default(),
    };
    (row.make)(&spec).unwrap()
}

/// Requests of a kind that fail: those after so many, so many times.
#[derive(Clone, Copy, Debug)]
pub struct Failing {
    pub kind: OutgoingKind,
    pub after: u32,
    pub times: u32,
    /// Requests that have failed.
    pub hits: u32,
}

impl Failing {
    /// Outcome of a request.
    fn outcome(&mut self, request: &Outgoing) -> Result<(), Errno> {
        let flushes = self.kind == OutgoingKind::Flush && request.is_preflush;
        if request.kind != self.kind && !flushes {
            return Ok(());
        }
        if self.after > 0 {
            self.after -= 1;
            return Ok(());
        }
        if self.hits == self.times {
            return Ok(());
        }
        self.hits += 1;
        Err(Errno::EIO)
    }
}

/// A machine with one process.
pub struct Mounted {
    pub machine: Machine,
    lane: u32,
    pub now: Ns,
    /// Requests on the device, each with the time of its end, in their order.
    queue: Vec<(Ns, Outgoing)>,
    free_at: Ns,
    /// Requests end in any order.
    scattered: Option<Chance>,
    pub failing: Option<Failing>,
}

impl Mounted {
    /// A file system in a memory of so many bytes.
    pub fn new(file_system: Box<dyn FileSystem>, memory_bytes: u64) -> Self {
        let settings = MachineSettings { memory_bytes, ..MachineSettings::default() };
        let (vm, kernel) = (settings.vm, settings.kernel);
        let facts = file_system.facts();
        let replacement: Box<dyn Replacement> = match facts.cache {
            CacheKind::Own(own) => Box::new(Adaptive::new(own.bytes / 4096)),
            CacheKind::Pages | CacheKind::Bypass => Box::new(TwoLists::new()),
        };
        let throttle: Box<dyn Throttle> = match facts.clusters {
            Some(_) => Box::new(Unlimited),
            None => Box::new(DirtyControl::new(vm, 1, kernel)),
        };
        let flusher = Box::new(Writer::new(vm, kernel));
        let deciders = Deciders { file_system, throttle, flusher, replacement };
        let mut machine = Machine::new(Ns(0), settings, deciders, PathBuf::from("/m"));
        machine.keep_data();
        let lane = machine.add_lane();
        Self {
            machine,
            lane,
            now: Ns(0),
            queue: Vec::new(),
            free_at: Ns(0),
            scattered: None,
            failing: None,
        }
    }

    /// Lets requests end in any order from now on.
    pub fn scatter(&mut self, seed: u64) {
        self.scattered = Some(Chance(seed));
    }

    /// Another process.
    pub fn add_lane(&mut self) -> u32 {
        self.machine.add_lane()
    }

    /// Begins an op of a process, with this buffer.
    pub fn begin(&mut self, lane: u32, op: Op, buffer: Vec<u8>) -> Result<(), Errno> {
        let token = Token(0);
        self.machine.lend(lane, token, buffer);
        let call = Call { lane, token, op: &op, path: None, other: None, answer: None };
        let begun = self.machine.submit(self.now, call);
        if begun.is_err() {
            self.machine.give_back(lane, token);
        }
        self.take();
        begun
    }

    /// Ops that have ended: process, outcome, buffer.
    pub fn ended(&mut self) -> Vec<(u32, Result<u64, Errno>, Vec<u8>)> {
        let mut ended = Vec::new();
        self.machine.take_ended(&mut ended);
        let each = ended.into_iter().map(|end| {
            let buffer = self.machine.give_back(end.lane, end.token).expect("a buffer was lent");
            (end.lane, end.outcome.map(|bytes| bytes.0), buffer)
        });
        each.collect()
    }

    /// Opens a file for a process.
    pub fn open_by(
        &mut self,
        lane: u32,
        name: &str,
        handle: Handle,
        how: iolab_model::op::OpenHow,
    ) -> Result<u64, Errno> {
        self.ask_by(lane, Op::Open { path: PathId(0), handle, how }, Some(name))
    }

    /// Does an op of a process to its end.
    pub fn ask_by(&mut self, lane: u32, op: Op, path: Option<&str>) -> Result<u64, Errno> {
        let own = core::mem::replace(&mut self.lane, lane);
        let result = self.ask(op, path, &mut []);
        self.lane = own;
        result
    }

    /// Does an op to its end, with this buffer.
    pub fn ask(&mut self, op: Op, path: Option<&str>, buffer: &mut [u8]) -> Result<u64, Errno> {
        let path = path.map(|name| Path::new("/m").join(name));
        let token = Token(0);
        self.machine.lend(self.lane, token, buffer.to_vec());
        let path = path.as_deref();
        let call = Call { lane: self.lane, token, op: &op, path, other: None, answer: None };
        let result = match self.machine.submit(self.now, call) {
            Ok(()) => self.wait(),
            Err(errno) => Err(errno),
        };
        let back = self.machine.give_back(self.lane, token).expect("a buffer was lent");
        buffer.copy_from_slice(&back);
        result.map(|bytes| bytes.0)
    }

    fn wait(&mut self) -> Result<Bytes, Errno> {
        let mut ended = Vec::new();
        for _ in 0..EVENTS_MAX {
            self.take();
            self.machine.take_ended(&mut ended);
            if let Some(end) = ended.pop() {
                return end.outcome;
            }
            assert!(self.happens(), "nobody ends the op");
        }
        panic!("the op does not end");
    }

    /// Takes what goes to the device.
    fn take(&mut self) {
        let mut requests = Vec::new();
        self.machine.take_requests(&mut requests);
        for request in requests {
            assert_eq!(request.device, DeviceId::MAIN);
            let begin = request.at.max(self.now);
            let end = match &mut self.scattered {
                Some(chance) => begin + Ns(1 + chance.below(10 * LATENCY.0)),
                None => self.free_at.max(begin) + LATENCY,
            };
            self.free_at = self.free_at.max(end);
            let place = self.queue.partition_point(|(at, _)| *at <= end);
            self.queue.insert(place, (end, request));
        }
    }

    /// Lets the next thing happen, if there is one.
    pub fn happens(&mut self) -> bool {
        self.take();
        let device = self.queue.first().map_or(Ns::MAX, |(at, _)| *at);
        let next = device.min(self.machine.next_event());
        if next == Ns::MAX {
            return false;
        }
        self.now = self.now.max(next);
        self.machine.advance_clock(self.now);
        if device <= self.now {
            let (_, request) = self.queue.remove(0);
            let outcome = self.failing.as_mut().map_or(Ok(()), |rule| rule.outcome(&request));
            self.machine.request_done(request.id, outcome);
        }
        self.machine.advance(self.now);
        true
    }

    /// Lets time pass until nothing is on its way.
    pub fn settle(&mut self) {
        self.take();
        while !self.queue.is_empty() {
            self.happens();
            self.take();
        }
    }

    /// Opens a file, or makes it.
    pub fn open(&mut self, name: &str, handle: u32, how: iolab_model::op::OpenHow, is_new: bool) {
        let (path, handle) = (PathId(0), Handle(handle));
        let op =
            if is_new { Op::Create { path, handle, how } } else { Op::Open { path, handle, how } };
        self.ask(op, Some(name), &mut []).unwrap();
    }
}
