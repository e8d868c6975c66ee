//! Targets and lanes of any type behind a table of functions.
//!
//! Generic code is compiled for each target, and a pump for each kind of lane and of worker. Where
//! a system call costs far more than a call through a table, or where nobody looks at the cost of
//! an op, the table is cheaper than all that code: [`Erased`] is a [`Target`] like the others.

use std::path::Path;

use crate::completion::Completion;
use crate::error::Error;
use crate::op::{Submission, Token, Transfer};
use crate::target::{Accepted, Capabilities, Lane, LaneRequest, Run, RunEnd, Target};
use crate::units::{Bytes, Ns};

/// [`Target`] without types of its own.
trait AnyTarget<'a> {
    fn name(&self) -> &'static str;
    fn capabilities(&self) -> Capabilities;
    fn survives_forks(&self) -> bool;
    fn takes_runs(&self) -> bool;
    fn facts(&self) -> Vec<(String, String)>;
    fn preferred_bytes(&self, directory: &Path) -> Option<Bytes>;
    fn open(&self, request: &LaneRequest) -> Result<ErasedLane<'a>, Error>;
}

impl<'a, T: Target<Lane: 'a>> AnyTarget<'a> for T {
    fn name(&self) -> &'static str {
        Target::name(self)
    }

    fn capabilities(&self) -> Capabilities {
        Target::capabilities(self)
    }

    fn survives_forks(&self) -> bool {
        Target::survives_forks(self)
    }

    fn takes_runs(&self) -> bool {
        Target::takes_runs(self)
    }

    fn facts(&self) -> Vec<(String, String)> {
        Target::facts(self)
    }

    fn preferred_bytes(&self, directory: &Path) -> Option<Bytes> {
        Target::preferred_bytes(self, directory)
    }

    fn open(&self, request: &LaneRequest) -> Result<ErasedLane<'a>, Error> {
        Ok(ErasedLane(Box::new(Target::open(self, request)?)))
    }
}

/// A target of any type.
#[derive(Clone, Copy)]
pub struct Erased<'a>(&'a (dyn AnyTarget<'a> + Sync));

impl<'a> Erased<'a> {
    /// `target`, whose type is of no account any more.
    pub const fn new<T: Target + Sync>(target: &'a T) -> Self {
        Self(target)
    }
}

impl<'a> Target for Erased<'a> {
    type Lane = ErasedLane<'a>;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn survives_forks(&self) -> bool {
        self.0.survives_forks()
    }

    fn takes_runs(&self) -> bool {
        self.0.takes_runs()
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.0.facts()
    }

    fn preferred_bytes(&self, directory: &Path) -> Option<Bytes> {
        self.0.preferred_bytes(directory)
    }

    fn open(&self, request: &LaneRequest) -> Result<Self::Lane, Error> {
        self.0.open(request)
    }
}

/// [`Run`] without types.
trait AnyRun {
    fn next(&mut self, now: Ns) -> Option<Transfer>;
    fn ended(&mut self, submitted: Ns, completed: Ns, length: Bytes);
}

impl<R: Run> AnyRun for R {
    fn next(&mut self, now: Ns) -> Option<Transfer> {
        Run::next(self, now)
    }

    fn ended(&mut self, submitted: Ns, completed: Ns, length: Bytes) {
        Run::ended(self, submitted, completed, length);
    }
}

/// A run of any type, as a lane wants it.
struct ErasedRun<'a, const WRITES: bool>(&'a mut dyn AnyRun);

impl<const WRITES: bool> Run for ErasedRun<'_, WRITES> {
    const WRITES: bool = WRITES;

    #[inline]
    fn next(&mut self, now: Ns) -> Option<Transfer> {
        self.0.next(now)
    }

    #[inline]
    fn ended(&mut self, submitted: Ns, completed: Ns, length: Bytes) {
        self.0.ended(submitted, completed, length);
    }
}

/// [`Lane`] without types.
trait AnyLane {
    fn takes_runs(&self) -> bool;
    fn run(&mut self, now: Ns, writes: bool, run: &mut dyn AnyRun) -> RunEnd;
    fn now(&self) -> Ns;
    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted;
    fn kick(&mut self) -> Result<(), Error>;
    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error>;
    fn in_flight(&self) -> u32;
    fn buffer(&mut self, token: Token) -> Option<&mut [u8]>;
    fn sleep_until(&mut self, instant: Ns);
    fn time_submissions(&mut self, group: u32);
    fn submission_ns(&self, token: Token) -> Ns;
}

impl<L: Lane> AnyLane for L {
    fn takes_runs(&self) -> bool {
        L::HAS_RUNS && Lane::takes_runs(self)
    }

    fn run(&mut self, now: Ns, writes: bool, run: &mut dyn AnyRun) -> RunEnd {
        if writes {
            Lane::run(self, now, &mut ErasedRun::<true>(run))
        } else {
            Lane::run(self, now, &mut ErasedRun::<false>(run))
        }
    }

    fn now(&self) -> Ns {
        Lane::now(self)
    }

    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        Lane::submit_batch(self, now, batch, done)
    }

    fn kick(&mut self) -> Result<(), Error> {
        Lane::kick(self)
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        Lane::reap(self, min, until, done)
    }

    fn in_flight(&self) -> u32 {
        Lane::in_flight(self)
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        Lane::buffer(self, token)
    }

    fn sleep_until(&mut self, instant: Ns) {
        Lane::sleep_until(self, instant);
    }

    fn time_submissions(&mut self, group: u32) {
        Lane::time_submissions(self, group);
    }

    fn submission_ns(&self, token: Token) -> Ns {
        Lane::submission_ns(self, token)
    }
}

/// A lane of any type.
pub struct ErasedLane<'a>(Box<dyn AnyLane + 'a>);

impl Lane for ErasedLane<'_> {
    const HAS_RUNS: bool = true;
    const IS_ERASED: bool = true;

    fn takes_runs(&self) -> bool {
        self.0.takes_runs()
    }

    fn run<R: Run>(&mut self, now: Ns, run: &mut R) -> RunEnd {
        self.0.run(now, R::WRITES, run)
    }

    fn now(&self) -> Ns {
        self.0.now()
    }

    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        self.0.submit_batch(now, batch, done)
    }

    fn kick(&mut self) -> Result<(), Error> {
        self.0.kick()
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        self.0.reap(min, until, done)
    }

    fn in_flight(&self) -> u32 {
        self.0.in_flight()
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        self.0.buffer(token)
    }

    fn sleep_until(&mut self, instant: Ns) {
        self.0.sleep_until(instant);
    }

    fn time_submissions(&mut self, group: u32) {
        self.0.time_submissions(group);
    }

    fn submission_ns(&self, token: Token) -> Ns {
        self.0.submission_ns(token)
    }
}
