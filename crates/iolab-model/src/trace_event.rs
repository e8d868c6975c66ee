//! `TraceEvent`: what the block layer did with a bio or request, observed or simulated.
//!
//! The letters are those of the Linux block tracer (blktrace(8), "ACTION IDENTIFIERS"), so that
//! everything said of a real trace can be said of a simulated one.

use crate::units::{Ns, Sector};

crate::registry! {
    /// Action of a trace event.
    pub enum Action as "trace action" {
        /// A bio entered the block layer.
        Queued = "Q",
        /// A request slot was allocated.
        Got = "G",
        /// A request was inserted into the scheduler.
        Inserted = "I",
        /// A request was issued to the driver.
        Issued = "D",
        /// A request was completed.
        Completed = "C",
        /// A bio was merged at the back of a request.
        BackMerged = "M",
        /// A bio was merged at the front of a request.
        FrontMerged = "F",
        /// Two requests became one. The kernel's tracer writes `M` here, too, and only the trace
        /// point tells the difference; its `A` is a bio that was mapped to another device.
        RequestMerged = "rq_merge",
        /// A task opened a plug.
        Plugged = "P",
        /// A plug was flushed.
        Unplugged = "U",
        /// A bio was split: the piece that was cut off its beginning. A bio in n pieces has n - 1.
        Split = "X",
        /// A request was put back because the device was busy.
        Requeued = "R",
    }
}

impl Action {
    /// The block tracer's letter, which two of them share.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::RequestMerged => "M",
            other => other.name(),
        }
    }

    /// Name of the kernel's trace point, without `block_` (Linux include/trace/events/block.h).
    pub const fn point(self) -> &'static str {
        match self {
            Self::Queued => "bio_queue",
            Self::Got => "getrq",
            Self::Inserted => "rq_insert",
            Self::Issued => "rq_issue",
            Self::Completed => "rq_complete",
            Self::BackMerged => "bio_backmerge",
            Self::FrontMerged => "bio_frontmerge",
            Self::RequestMerged => "rq_merge",
            Self::Plugged => "plug",
            Self::Unplugged => "unplug",
            Self::Split => "split",
            Self::Requeued => "rq_requeue",
        }
    }

    /// The action of a trace point; `None` if there is no such point here.
    pub fn of_point(point: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.point() == point)
    }
}

/// One thing that happened in the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time of the event.
    pub at: Ns,
    /// Action.
    pub action: Action,
    /// First sector of the bio or request.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// The kernel's operation letters: `R`, `W`, `D` or `F`, then `F` (FUA), `A` (read-ahead), `S`
    /// (sync), `M` (metadata), in the kernel's order; see [`TraceEvent::rwbs`].
    pub operation: Operation,
    /// Process or I/O context.
    pub process: u32,
    /// CPU.
    pub cpu: u16,
    /// I/O priority as the kernel packs it: class times 8192 plus level.
    pub priority: u16,
    /// Number of the queue in its stack, from 0, members of volumes in order.
    pub device: u16,
    /// Number of the request on its device, from 1, never used twice; the one merged into, where
    /// something is merged, and the one that is gone, where two become one. 0: none yet. Where a
    /// plug is flushed it is the count of requests in it.
    pub request: u64,
}

/// Processes that are threads of the simulated kernel; those of workloads count from 1.
pub mod kernel_thread {
    /// Writes dirty pages in the background.
    pub const FLUSHER: u32 = u32::MAX;
    /// Threads of a file system, as of its journal.
    const OF_FILE_SYSTEM: u32 = 14;
    /// Submits after the end of another request.
    pub const INTERRUPT: u32 = u32::MAX - 16;
    /// Submits what a file system queues for itself.
    pub const ISSUE: u32 = u32::MAX - 17;

    /// Number of a file system's thread.
    #[must_use]
    pub const fn of_file_system(thread: u8) -> u32 {
        assert!((thread as u32) < OF_FILE_SYSTEM, "threads of file systems are few");
        FLUSHER - 1 - thread as u32
    }

    /// Name of a process, simulated as it is, in the records of a trace.
    #[must_use]
    pub fn name(process: u32) -> String {
        match FLUSHER - process {
            0 => "simulated flusher".to_owned(),
            thread @ 1..=OF_FILE_SYSTEM => format!("simulated fs-{}", thread - 1),
            16 => "simulated interrupt".to_owned(),
            17 => "simulated issue".to_owned(),
            _ => format!("simulated {process}"),
        }
    }
}

/// Operation and flags of a trace event, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation(pub u8);

impl Operation {
    /// A read.
    pub const READ: Self = Self(0);
    /// A write.
    pub const WRITE: Self = Self(1);
    /// A discard.
    pub const DISCARD: Self = Self(2);
    /// A flush.
    pub const FLUSH: Self = Self(3);
    /// Flag of a bio that a task waits for.
    pub const SYNC: Self = Self(4);
    /// Forced unit access.
    pub const FUA: Self = Self(8);
    /// Metadata.
    pub const META: Self = Self(16);
    /// The cache is flushed before.
    pub const PREFLUSH: Self = Self(32);

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl TraceEvent {
    /// The kernel's letters, as in the `rwbs` field of its trace events.
    pub fn rwbs(&self) -> String {
        let mut text = String::with_capacity(5);
        if self.operation.has(Operation::PREFLUSH) {
            text.push('F');
        }
        text.push(match self.operation.0 & 3 {
            0 => 'R',
            1 => 'W',
            2 => 'D',
            _ => 'F',
        });
        let letters = [(Operation::FUA, 'F'), (Operation::SYNC, 'S'), (Operation::META, 'M')];
        text.extend(letters.iter().filter(|(bit, _)| self.operation.has(*bit)).map(|(_, c)| c));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_merges_share_a_letter_and_points_are_told_apart() {
        for &action in Action::ALL {
            assert_eq!(Action::of_point(action.point()), Some(action));
            let alike = Action::ALL.iter().filter(|other| other.letter() == action.letter());
            assert_eq!(alike.count(), if action.letter() == "M" { 2 } else { 1 }, "{action}");
        }
        assert!(Action::ALL.iter().all(|action| action.letter() != "A"), "A is a remap");
    }

    #[test]
    fn letters_are_in_the_kernels_order() {
        let operation = Operation::WRITE
            .with(Operation::SYNC)
            .with(Operation::FUA)
            .with(Operation::META)
            .with(Operation::PREFLUSH);
        let event = TraceEvent {
            at: Ns(0),
            action: Action::Queued,
            sector: Sector(0),
            sectors: 8,
            operation,
            process: 1,
            cpu: 0,
            priority: 0x4004,
            device: 0,
            request: 0,
        };
        assert_eq!(event.rwbs(), "FWFSM");
    }
}
