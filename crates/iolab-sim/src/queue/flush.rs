//! The flush machinery: PREFLUSH, DATA, POSTFLUSH, and sharing one flush among many.
//!
//! At most one flush is at the device; everybody who needs one shares the next. A new flush waits
//! while data of a sequence are being written, unless the oldest has waited for 5 s.
//!
//! Source: Linux 6.18 block/blk-flush.c (behaviour; `FLUSH_PENDING_TIMEOUT` is 5 s).

use iolab_model::Ns;

use super::chain::Owner;
use crate::api::bio::{Bio, Flags, Operation, Status};
use crate::api::layer::WriteCache;

const PATIENCE: Ns = Ns::from_seconds(5);

/// The steps of a bio on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each step is needed or not, by itself")]
pub struct Steps {
    /// Flush before.
    pub pre: bool,
    /// Move data.
    pub data: bool,
    /// Flush after.
    pub post: bool,
    /// The device is asked for forced unit access.
    pub fua: bool,
}

impl Steps {
    /// Steps that a bio needs on a device with this cache.
    pub fn of(bio: &Bio, cache: WriteCache) -> Self {
        let data = bio.sectors > 0;
        match cache {
            WriteCache::Through => Self { pre: false, data, post: false, fua: false },
            WriteCache::Back { has_fua } => {
                let fua = bio.flags.contains(Flags::FUA);
                let pre = bio.flags.contains(Flags::PREFLUSH) || bio.operation == Operation::Flush;
                Self { pre, data, post: fua && !has_fua, fua: fua && has_fua }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Sequence {
    owner: Owner,
    data: Bio,
    steps: Steps,
    bypasses: bool,
}

/// Next step of the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Send a flush to the device.
    Flush,
    /// Write this data, past the scheduler (owner: [`Owner::Flush`]).
    Data(Owner, Bio),
    /// All steps are done, or one of them has failed.
    Done(Owner, Status),
}

/// All sequences of one queue.
#[derive(Debug, Default)]
pub struct FlushMachine {
    sequences: Vec<Sequence>,
    free: Vec<u32>,
    pending: Vec<u32>,
    running: Vec<u32>,
    is_flushing: bool,
    data_in_flight: u32,
    oldest: Ns,
}

impl FlushMachine {
    /// Starts the sequence of a bio that needs a flush before or after its data. Answers with the
    /// owner under which the data go through the scheduler, if they come first.
    pub fn begin(&mut self, now: Ns, owner: Owner, bio: &Bio, steps: Steps) -> Option<Owner> {
        let mut data = *bio;
        data.operation = Operation::Write;
        data.flags = data.flags.without(Flags::PREFLUSH.with(Flags::FUA));
        if steps.fua {
            data.flags = data.flags.with(Flags::FUA);
        }
        let sequence = Sequence { owner, data, steps, bypasses: steps.pre };
        let index = if let Some(index) = self.free.pop() {
            self.sequences[index as usize] = sequence;
            index
        } else {
            self.sequences.push(sequence);
            self.sequences.len() as u32 - 1
        };
        if steps.pre {
            self.wait(now, index);
            return None;
        }
        Some(Owner::Flush(index))
    }

    fn wait(&mut self, now: Ns, index: u32) {
        if self.pending.is_empty() {
            self.oldest = now;
        }
        self.pending.push(index);
    }

    /// Tell whether a request with this owner went past the scheduler.
    pub fn is_bypassing(&self, owner: Option<Owner>) -> bool {
        match owner {
            Some(Owner::Flush(index)) => {
                self.sequences.get(index as usize).is_none_or(|sequence| sequence.bypasses)
            }
            _ => false,
        }
    }

    /// Starts the next flush if it is time.
    pub fn kick(&mut self, now: Ns, next: &mut Vec<Next>) {
        let is_impatient = now.since(self.oldest) >= PATIENCE;
        if !self.is_flushing
            && !self.pending.is_empty()
            && (self.data_in_flight == 0 || is_impatient)
        {
            core::mem::swap(&mut self.pending, &mut self.running);
            self.is_flushing = true;
            next.push(Next::Flush);
        }
    }

    /// The device has flushed, or could not: then everybody who shared the flush is told, and no
    /// data that were to follow it are written.
    pub fn flush_done(&mut self, now: Ns, status: Status, next: &mut Vec<Next>) {
        self.is_flushing = false;
        for index in core::mem::take(&mut self.running) {
            let sequence = self.sequences[index as usize];
            if status.is_ok() && sequence.steps.pre && sequence.steps.data {
                self.sequences[index as usize].steps.pre = false;
                self.data_in_flight += 1;
                next.push(Next::Data(Owner::Flush(index), sequence.data));
            } else {
                self.end(index, status, next);
            }
        }
        self.kick(now, next);
    }

    /// The data of a sequence are written; after a failure there is nothing to flush.
    pub fn data_done(&mut self, now: Ns, index: u32, status: Status, next: &mut Vec<Next>) {
        let sequence = &mut self.sequences[index as usize];
        self.data_in_flight -= u32::from(sequence.bypasses);
        sequence.steps.data = false;
        if sequence.steps.post && status.is_ok() {
            self.wait(now, index);
        } else {
            self.end(index, status, next);
        }
        self.kick(now, next);
    }

    fn end(&mut self, index: u32, status: Status, next: &mut Vec<Next>) {
        next.push(Next::Done(self.sequences[index as usize].owner, status));
        self.free.push(index);
    }
}
