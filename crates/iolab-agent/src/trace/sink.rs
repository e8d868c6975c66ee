//! Use of the events: written into a file, or summed up second by second.

use iolab_trace::Event;
use iolab_trace::source::Facts;

use super::tally::Tally;
use super::trace_file::TraceFile;
use crate::protocol::{LiveSecond, RecordingSoFar};

/// Receiver of events in the order of time.
pub enum Sink {
    /// The user's file.
    File(Box<TraceFile>),
    /// Sums of each second.
    Live(Box<Tally>),
}

impl Sink {
    /// Takes an event.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        match self {
            Self::File(file) => file.push(event),
            Self::Live(tally) => tally.push(event),
        }
    }

    /// True if there is somewhere to put more.
    pub fn may_grow(&self) -> bool {
        match self {
            Self::File(file) => file.may_grow(),
            Self::Live(_) => true,
        }
    }

    /// A round of reading is over: all events before `now_ns` have come.
    pub fn end_round(&mut self, now_ns: u64) {
        match self {
            Self::File(file) => file.write_pieces(),
            Self::Live(tally) => tally.reach(now_ns),
        }
    }

    /// Ends a block of the file; what is in it so far.
    pub fn end_block(&mut self, lost: u64) -> Option<RecordingSoFar> {
        let Self::File(file) = self else { return None };
        file.end_block();
        file.look_at_space();
        Some(RecordingSoFar { events: file.events, bytes: file.bytes, lost })
    }

    /// Takes the seconds that have ended.
    pub fn take_seconds(&mut self) -> Vec<LiveSecond> {
        match self {
            Self::File(_) => Vec::new(),
            Self::Live(tally) => tally.take_done(),
        }
    }

    /// Ends it; events and bytes of a file, and what went wrong with it.
    pub fn finish(self, facts: &Facts) -> (u64, u64, Option<String>) {
        match self {
            Self::File(file) => file.finish(facts),
            Self::Live(tally) => (tally.events, 0, None),
        }
    }
}
