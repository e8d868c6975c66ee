//! Reading back what was written while the rest is still to be written
//! ([`ReadingBack`](crate::spec::ReadingBack)).
//!
//! Facts: the order of the calls of fio 3.33 with `verify_backlog` and `verify_backlog_batch`.

use std::collections::VecDeque;

use iolab_model::op::{Op, Position, Transfer};
use iolab_model::{Bytes, Ns};

use super::{FILE, Role, StreamWorker};
use crate::group::GroupState;
use crate::spec::{ReadingBack, Tenant};
use crate::worker::Step;

/// Records that were written and not yet read back.
#[derive(Debug)]
pub(super) struct Unread {
    rule: ReadingBack,
    /// Places of those whose write has ended, oldest first.
    written: VecDeque<u64>,
    /// Reads that follow before the next write.
    due: u64,
    /// Reads in flight.
    reading: usize,
}

impl Unread {
    /// Nothing yet, of a worker of `tenant`; absent: nothing is read back.
    pub(super) fn of(tenant: &Tenant) -> Option<Box<Self>> {
        let unread = |rule| Self { rule, written: VecDeque::new(), due: 0, reading: 0 };
        tenant.manner.read_back.map(unread).map(Box::new)
    }

    /// Decides whether a read comes next: its place, nothing before a write has ended, or no read.
    fn turn(&mut self, in_flight: usize, is_all_written: bool) -> Turn {
        let writing = in_flight - self.reading;
        let unread = (self.written.len() + writing) as u64;
        if self.due == 0 && is_all_written {
            self.due = unread;
        } else if self.due == 0 && unread >= self.rule.after_ops {
            self.due = self.rule.batch_ops;
        }
        match self.written.front() {
            _ if self.due == 0 => Turn::Write,
            Some(at) => Turn::Read(*at),
            None if writing > 0 => Turn::Await,
            None => Turn::Write,
        }
    }

    fn take(&mut self) {
        self.written.pop_front();
        self.due -= 1;
        self.reading += 1;
    }
}

/// Kind of the op that comes next.
enum Turn {
    Read(u64),
    Await,
    Write,
}

impl<G: GroupState> StreamWorker<G> {
    /// The next read of what was written, or the wait before it, if it is its turn.
    #[cold]
    pub(super) fn next_read_back(&mut self, now: Ns) -> Option<Step> {
        let in_flight = self.in_flight();
        let is_all_written = self.issued == self.budget;
        let has_room = self.free.len() > self.idle_slots as usize;
        let unread = self.read_back.as_mut()?;
        let at = match unread.turn(in_flight, is_all_written) {
            Turn::Write => return None,
            Turn::Read(at) if has_room => at,
            Turn::Read(_) | Turn::Await => return Some(Step::Await),
        };
        unread.take();
        if self.drained_slots > 0 {
            self.idle_slots = 0;
        }
        let record = Transfer {
            vectors: self.tenant.vectors.max(1),
            ..Transfer::plain(FILE, Position::At(Bytes(at)), self.tenant.io_size_bytes)
        };
        Some(self.submit_as(now, Role::ReadBack, Op::Read(record)))
    }

    /// A read of what was written has ended.
    pub(super) fn has_read_back(&mut self) {
        if let Some(unread) = &mut self.read_back {
            unread.reading -= 1;
        }
    }

    /// The record at `at` was written.
    #[inline]
    pub(super) fn must_read_back(&mut self, at: u64) {
        if let Some(unread) = &mut self.read_back {
            unread.written.push_back(at);
        }
    }

    /// Leaves unread what has not been read back.
    pub(super) fn forget_unread(&mut self) {
        if let Some(unread) = &mut self.read_back {
            (unread.due, unread.written) = (0, VecDeque::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Order of the calls of a writer of so many records, one after the other.
    fn order(records: u64, after_ops: u64, batch_ops: u64) -> String {
        let rule = ReadingBack { after_ops, batch_ops };
        let mut unread = Unread { rule, written: VecDeque::new(), due: 0, reading: 0 };
        let (mut issued, mut calls) = (0, Vec::new());
        loop {
            match unread.turn(0, issued == records) {
                Turn::Read(at) => {
                    unread.take();
                    unread.reading -= 1;
                    calls.push(format!("R{at}"));
                }
                Turn::Write if issued < records => {
                    calls.push(format!("W{issued}"));
                    unread.written.push_back(issued);
                    issued += 1;
                }
                Turn::Write | Turn::Await => return calls.join(" "),
            }
        }
    }

    #[test]
    fn reads_follow_writes_in_the_order_of_fio() {
        assert_eq!(order(7, 3, 3), "W0 W1 W2 R0 R1 R2 W3 W4 W5 R3 R4 R5 W6 R6");
        assert_eq!(order(8, 4, 2), "W0 W1 W2 W3 R0 R1 W4 W5 R2 R3 W6 W7 R4 R5 R6 R7");
        assert_eq!(order(6, 2, 4), "W0 W1 R0 R1 W2 R2 W3 R3 W4 W5 R4 R5");
        assert_eq!(order(3, 100, 100), "W0 W1 W2 R0 R1 R2");
    }

    #[test]
    fn writes_in_flight_count_and_are_awaited() {
        let rule = ReadingBack { after_ops: 2, batch_ops: 2 };
        let mut unread = Unread { rule, written: VecDeque::new(), due: 0, reading: 0 };
        assert!(matches!(unread.turn(1, false), Turn::Write));
        assert!(matches!(unread.turn(2, false), Turn::Await));
        unread.written.push_back(9);
        assert!(matches!(unread.turn(1, false), Turn::Read(9)));
        unread.take();
        assert!(matches!(unread.turn(2, false), Turn::Await), "one of them still writes");
        unread.written.push_back(8);
        assert!(matches!(unread.turn(1, false), Turn::Read(8)));
    }
}
