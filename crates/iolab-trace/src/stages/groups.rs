//! Histograms of the stages, kept apart by device and by what the user asks for.

use iolab_model::histogram::Histogram;

use crate::event::{Categories, Event};

iolab_model::registry! {
    /// A part of the way of a bio: from one event to another.
    pub enum Stage as "stage" {
        /// Between two bios that enter the queue.
        Q2Q = "Q2Q",
        /// From entering the queue to being mapped to another device.
        Q2A = "Q2A",
        /// From entering the queue to a request.
        Q2G = "Q2G",
        /// From waiting for a request to a request.
        S2G = "S2G",
        /// From the request to the scheduler.
        G2I = "G2I",
        /// From entering the queue to being merged into a request.
        Q2M = "Q2M",
        /// In the scheduler.
        I2D = "I2D",
        /// From being merged to the driver.
        M2D = "M2D",
        /// From entering the queue to the driver.
        Q2D = "Q2D",
        /// In the driver and the device.
        D2C = "D2C",
        /// The whole way.
        Q2C = "Q2C",
        /// Flush of the device's cache: in the driver and the device.
        Flush = "flush",
    }
}

iolab_model::registry! {
    /// Property by which groups are told apart.
    pub enum By as "group" {
        /// Devices only.
        Device = "device",
        /// The process that asked for it.
        Process = "process",
        /// Read, write, discard or flush.
        Direction = "direction",
        /// Powers of two of the size.
        Size = "size",
    }
}

/// Number of the direction of discards.
pub const DISCARD: u32 = 2;

/// Tell whether the bytes of an event go to or from the device: those of a discard do not.
pub const fn is_transfer(event: &Event) -> bool {
    direction_of(event) != DISCARD
}

/// Names of directions, by their number.
pub const DIRECTIONS: [&str; 4] = ["read", "write", "discard", "flush"];

/// Number of an event's direction.
pub const fn direction_of(event: &Event) -> u32 {
    let categories = event.categories;
    if categories.has(Categories::DISCARD) {
        DISCARD
    } else if categories.has(Categories::WRITE) {
        1
    } else if event.bytes == 0 && categories.has(Categories::FLUSH) {
        3
    } else {
        0
    }
}

/// Number of the size class: the power of two of KiB that the size does not exceed.
pub const fn size_class_of(bytes: u32) -> u32 {
    let kib = bytes.div_ceil(1024);
    if kib <= 1 { 0 } else { kib.next_power_of_two().ilog2() }
}

/// `<= 4 KiB` and the like.
pub fn size_class_name(class: u32) -> String {
    match class {
        0..10 => format!("<= {} KiB", 1_u64 << class),
        10..20 => format!("<= {} MiB", 1_u64 << (class - 10)),
        _ => format!("<= {} GiB", 1_u64 << (class - 20)),
    }
}

/// One histogram per stage, made when there is something to count.
#[derive(Clone, Default)]
pub struct StageSet([Option<Box<Histogram>>; Stage::ALL.len()]);

impl StageSet {
    /// Counts a duration.
    #[inline]
    pub fn record(&mut self, stage: Stage, ns: u64) {
        let slot = &mut self.0[stage as usize];
        slot.get_or_insert_with(|| Box::new(Histogram::new())).record(ns);
    }

    /// Durations of a stage, if there was any.
    pub fn get(&self, stage: Stage) -> Option<&Histogram> {
        self.0[stage as usize].as_deref()
    }

    /// Adds the counts of another set.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) => mine.merge(theirs),
                (None, Some(theirs)) => *mine = Some(theirs.clone()),
                (_, None) => {}
            }
        }
    }
}

/// Requests and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "TraceAmount")]
pub struct Amount {
    /// Number of them.
    pub count: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Amount {
    /// Counts one more.
    pub const fn add(&mut self, bytes: u32) {
        self.count += 1;
        self.bytes += bytes as u64;
    }

    /// Adds another amount.
    pub const fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// Group of a device: the bios with one value of what was asked for.
#[derive(Clone, Default)]
pub struct Group {
    /// Stages; Q2Q is counted elsewhere, because it goes from one group to another.
    pub stages: StageSet,
    /// Bios that entered the queue.
    pub queued: Amount,
    /// Bios that were completed.
    pub completed: Amount,
    /// Bytes of those that were completed and are no discards.
    pub transferred_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_class_that_holds_them() {
        let classes = [512, 1024, 1025, 4096, 4097, 1 << 20, (1 << 20) + 1, u32::MAX];
        let names = classes.map(|bytes| size_class_name(size_class_of(bytes)));
        let expected = [
            "<= 1 KiB", "<= 1 KiB", "<= 2 KiB", "<= 4 KiB", "<= 8 KiB", "<= 1 MiB", "<= 2 MiB",
            "<= 4 GiB",
        ];
        assert_eq!(names, expected);
    }
}
