//! Command queue: what the drive knows and has not started.
//!
//! Models first come first served and shortest positioning time first. A waiting command's
//! positioning time counts less the longer it waits, and past a limit the oldest one is next.
//! Left out: ordered and head-of-queue tags, priorities.
//!
//! Source: Worthington, Ganger, Patt (1994) for shortest positioning time and ageing.

use iolab_model::Ns;

use super::geometry::Place;
use super::mechanism::Mechanism;
use super::parameters::{Parameters, QueuePolicy};
use crate::api::bio::BioId;

/// The command before another one, as far as that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A read, or nothing.
    Read,
    /// A write somewhere else.
    Write,
    /// A write that ends where this one, also a write, starts.
    Continued,
}

impl Before {
    /// Index of the overhead of a cached read.
    pub const fn hit(self) -> usize {
        match self {
            Self::Read => 0,
            Self::Write | Self::Continued => 1,
        }
    }

    /// Index of the overhead of a write.
    pub const fn write(self) -> usize {
        self as usize
    }
}

/// A command that needs the media.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The submitter's token.
    pub id: BioId,
    /// Writes.
    pub is_write: bool,
    /// First media sector.
    pub start: u64,
    /// First media sector after it.
    pub end: u64,
    /// Time of arrival.
    pub arrived: Ns,
    /// Place of its begin on the media.
    pub place: Place,
    /// Angle of the start.
    pub angle: u64,
    /// Order of arrival.
    pub sequence: u64,
    /// Command before it.
    pub before: Before,
}

/// Commands that need no positioning at this instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Free {
    /// Reads that start in here pass under the head soon: first sector and the one after.
    pub stream: Option<(u64, u64)>,
    /// A write that starts here and was there before this instant continues the last write.
    pub write: Option<(u64, Ns)>,
}

impl Free {
    fn covers(&self, command: &Command) -> bool {
        if command.is_write {
            self.write.is_some_and(|(at, end)| command.start == at && command.arrived < end)
        } else {
            self.stream.is_some_and(|(from, to)| from <= command.start && command.start < to)
        }
    }
}

/// Commands in no particular order.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    commands: Vec<Command>,
}

impl Queue {
    /// Adds a command.
    pub fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Number of commands.
    pub const fn len(&self) -> usize {
        self.commands.len()
    }

    /// Tell whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Tell whether a command needs no positioning.
    pub fn is_free(&self, index: usize, free: &Free) -> bool {
        free.covers(&self.commands[index])
    }

    /// Tell whether a command waits that is no read of these sectors, nor of those behind the reads
    /// that continue them.
    pub fn has_other(&self, (from, to): (u64, u64)) -> bool {
        let mut to = to;
        loop {
            let is_part = |c: &&Command| !c.is_write && from <= c.start && c.start <= to;
            let parts = || self.commands.iter().filter(is_part);
            let end = parts().map(|c| c.end).fold(to, u64::max);
            if end == to {
                return parts().count() < self.len();
            }
            to = end;
        }
    }

    /// Takes a command out.
    pub fn take(&mut self, index: usize) -> Command {
        self.commands.swap_remove(index)
    }

    /// The next command and its cost (positioning time less the credit for waiting).
    pub fn pick(
        &self,
        parameters: &Parameters,
        mechanism: &Mechanism,
        free: &Free,
        now: Ns,
    ) -> Option<(usize, i64)> {
        let oldest = (0..self.len()).min_by_key(|&index| self.commands[index].sequence)?;
        let waited = now.since(self.commands[oldest].arrived).0;
        if parameters.policy == QueuePolicy::Fcfs || waited > parameters.age_limit {
            return Some((oldest, i64::MIN));
        }
        // The rotation at which reads and writes can start to move, taken once.
        let period = mechanism.geometry.period().0 as u32;
        let starts = [parameters.overhead_read, parameters.overhead_write[0]]
            .map(|overhead| mechanism.rotation(now + Ns(overhead)) as u32);
        let mut best = (oldest, i64::MAX);
        for (index, command) in self.commands.iter().enumerate() {
            let credit = (now.since(command.arrived).0 * parameters.ageing) >> 20;
            let place = &command.place;
            let travel = mechanism.travel(place.cylinder, place.head, command.is_write);
            let is_free = free.covers(command);
            let floor = if is_free { 0 } else { travel as i64 } - credit as i64;
            if floor > best.1 {
                continue;
            }
            let cost = if is_free {
                floor
            } else {
                let there = (starts[usize::from(command.is_write)] + travel as u32) % period;
                let angle = command.angle as u32;
                let wait = if angle >= there { angle - there } else { angle + period - there };
                floor + i64::from(wait)
            };
            let is_older = command.sequence < self.commands[best.0].sequence;
            if cost < best.1 || (cost == best.1 && is_older) {
                best = (index, cost);
            }
        }
        Some(best)
    }
}
