//! Counts of the events of one device.

use super::groups::{Amount, DISCARD, direction_of};
use super::pairing::Rules;
use crate::event::{Action, Categories, Event};

/// Counts of events, over all directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "TraceCounts")]
pub struct Counts {
    /// Bios that entered the queue, by direction.
    pub queued: [Amount; 4],
    /// Requests issued to the driver, without flushes.
    pub issued: Amount,
    /// Completions as the trace has them: requests, or bios where there are none; without flushes.
    pub completed: Amount,
    /// The same by direction.
    pub completed_of: [Amount; 4],
    /// Bios merged behind a request.
    pub back_merges: Amount,
    /// Bios merged before a request.
    pub front_merges: Amount,
    /// Requests joined.
    pub joined: u64,
    /// Bios split.
    pub splits: u64,
    /// Requests put back.
    pub requeues: u64,
    /// Bios that flush the device's cache before they do anything else.
    pub flushes: u64,
    /// Flushes that the device was given.
    pub flushes_issued: u64,
    /// Flushes that the device has done.
    pub flushes_completed: u64,
    /// Completions with an error.
    pub errors: u64,
    /// Plugs set.
    pub plugs: u64,
    /// Plugs taken away.
    pub unplugs: u64,
    /// Plugs taken away by their timer.
    pub timer_unplugs: u64,
    /// Completions with bytes of which no bio is known.
    pub completed_unknown: u64,
    /// Bios that were given up: too many were waiting, or events were lost.
    pub forgotten: u64,
}

impl Counts {
    /// Counts an event. By our own rules what has no bytes is a flush of the device, or the second
    /// end of a write whose data were told of before; btt counts all alike.
    pub fn add(&mut self, event: &Event, rules: Rules) {
        let bytes = event.bytes;
        let is_request = bytes > 0 || rules == Rules::Btt;
        match event.action {
            Action::Queued => {
                self.queued[direction_of(event) as usize].add(bytes);
                self.flushes += u64::from(event.categories.has(Categories::FLUSH));
            }
            Action::Issued if is_request => self.issued.add(bytes),
            Action::Issued => self.flushes_issued += u64::from(is_flush(event)),
            Action::Completed => {
                self.errors += u64::from(event.error != 0);
                if is_request {
                    self.completed.add(bytes);
                    self.completed_of[direction_of(event) as usize].add(bytes);
                } else {
                    self.flushes_completed += u64::from(is_flush(event));
                }
            }
            Action::BackMerged => self.back_merges.add(bytes),
            Action::FrontMerged => self.front_merges.add(bytes),
            Action::Split => self.splits += 1,
            Action::Requeued => self.requeues += 1,
            Action::Joined => self.joined += 1,
            Action::Plugged => self.plugs += 1,
            Action::Unplugged => self.unplugs += 1,
            Action::TimerUnplugged => self.timer_unplugs += 1,
            _ => {}
        }
    }

    /// Bytes that were discarded.
    pub const fn discarded_bytes(&self) -> u64 {
        self.completed_of[DISCARD as usize].bytes
    }

    /// Bytes completed that went to or from the device.
    pub fn transferred_bytes(&self) -> u64 {
        self.completed.bytes - self.discarded_bytes()
    }
}

/// Tell whether an event is of a flush of the device's cache, which moves no bytes.
pub const fn is_flush(event: &Event) -> bool {
    event.bytes == 0
        && event.categories.has(Categories::FLUSH)
        && !event.categories.has(Categories::WRITE)
}
