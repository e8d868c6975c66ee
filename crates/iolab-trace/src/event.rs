//! One event of a block trace, as all readers give it and all writers take it.
//!
//! The fields are those of a blktrace record (Linux `include/uapi/linux/blktrace_api.h`, version
//! 7), because that is the richest of the formats; other readers leave zero what their format
//! lacks. Payloads are kept in one byte order whatever machine was traced: those of block events
//! in big endian, as the kernel writes them, those of notes and the cgroup id in little endian.

use std::fmt;

/// Number of the first action that blktrace does not have.
const OWN_ACTIONS: u16 = 64;
const POINT_CODE: u16 = OWN_ACTIONS + 1;

iolab_model::registry! {
    /// Action of a trace event; the letters are those of blkparse(1).
    pub enum Action as "trace action" {
        /// A bio entered the block layer.
        Queued = "Q",
        /// A bio was merged at the back of a request.
        BackMerged = "M",
        /// A bio was merged at the front of a request.
        FrontMerged = "F",
        /// A request was allocated.
        Got = "G",
        /// A process waits for a request.
        Slept = "S",
        /// A request was put back.
        Requeued = "R",
        /// A request was issued to the driver.
        Issued = "D",
        /// A request was completed.
        Completed = "C",
        /// A plug was set.
        Plugged = "P",
        /// A plug was taken away.
        Unplugged = "U",
        /// A plug was taken away by its timer.
        TimerUnplugged = "UT",
        /// A request was inserted into the scheduler.
        Inserted = "I",
        /// A bio was split.
        Split = "X",
        /// A bio was bounced to low memory.
        Bounced = "B",
        /// A bio was mapped to another device.
        Remapped = "A",
        /// A request was aborted.
        Aborted = "abort",
        /// Data of a driver.
        DriverData = "data",
        /// Note: the name of a process.
        NoteProcess = "process",
        /// Note: the wall clock.
        NoteTime = "clock",
        /// Note: text that a program wrote into the trace.
        Message = "m",
        /// Two requests were joined; the kernel's trace points have it, blktrace has not.
        Joined = "J",
        /// A trace point of another layer: system calls, file systems, write-back, page cache.
        Point = "T",
    }
}

impl Action {
    /// Code in a record: blktrace's `action` without its flags, notes from 0x400 on, others from
    /// 64 on.
    pub const fn code(self) -> u16 {
        match self {
            Self::Queued => 1,
            Self::BackMerged => 2,
            Self::FrontMerged => 3,
            Self::Got => 4,
            Self::Slept => 5,
            Self::Requeued => 6,
            Self::Issued => 7,
            Self::Completed => 8,
            Self::Plugged => 9,
            Self::Unplugged => 10,
            Self::TimerUnplugged => 11,
            Self::Inserted => 12,
            Self::Split => 13,
            Self::Bounced => 14,
            Self::Remapped => 15,
            Self::Aborted => 16,
            Self::DriverData => 17,
            Self::NoteProcess => 0,
            Self::NoteTime => 18,
            Self::Message => 19,
            Self::Joined => OWN_ACTIONS,
            Self::Point => POINT_CODE,
        }
    }

    /// Action of a code, see [`Action::code`].
    #[inline]
    pub const fn of_code(code: u16) -> Option<Self> {
        Some(match code {
            0 => Self::NoteProcess,
            1 => Self::Queued,
            2 => Self::BackMerged,
            3 => Self::FrontMerged,
            4 => Self::Got,
            5 => Self::Slept,
            6 => Self::Requeued,
            7 => Self::Issued,
            8 => Self::Completed,
            9 => Self::Plugged,
            10 => Self::Unplugged,
            11 => Self::TimerUnplugged,
            12 => Self::Inserted,
            13 => Self::Split,
            14 => Self::Bounced,
            15 => Self::Remapped,
            16 => Self::Aborted,
            17 => Self::DriverData,
            18 => Self::NoteTime,
            19 => Self::Message,
            OWN_ACTIONS => Self::Joined,
            POINT_CODE => Self::Point,
            _ => return None,
        })
    }

    /// Tell whether it tells of the trace, not of the device.
    pub const fn is_note(self) -> bool {
        matches!(self, Self::NoteProcess | Self::NoteTime | Self::Message)
    }
}

/// Category bits: the upper half of a record's `action`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Categories(pub u16);

impl Categories {
    /// A read.
    pub const READ: Self = Self(1);
    /// A write.
    pub const WRITE: Self = Self(1 << 1);
    /// The cache is flushed before.
    pub const FLUSH: Self = Self(1 << 2);
    /// Flag of a bio that a task waits for.
    pub const SYNC: Self = Self(1 << 3);
    /// Queue events.
    pub const QUEUE: Self = Self(1 << 4);
    /// Requeue events.
    pub const REQUEUE: Self = Self(1 << 5);
    /// Issue events.
    pub const ISSUE: Self = Self(1 << 6);
    /// Completion events.
    pub const COMPLETE: Self = Self(1 << 7);
    /// Request of a file system.
    pub const FS: Self = Self(1 << 8);
    /// Packet command.
    pub const PC: Self = Self(1 << 9);
    /// A note.
    pub const NOTIFY: Self = Self(1 << 10);
    /// Read-ahead.
    pub const AHEAD: Self = Self(1 << 11);
    /// Metadata.
    pub const META: Self = Self(1 << 12);
    /// Discard.
    pub const DISCARD: Self = Self(1 << 13);
    /// Driver data.
    pub const DRV_DATA: Self = Self(1 << 14);
    /// Forced unit access.
    pub const FUA: Self = Self(1 << 15);

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Tell whether one of the bits is there.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bit of the kind of event that the kernel sets with an action; X and B have none.
    pub const fn of_action(action: Action) -> Self {
        match action {
            Action::Split | Action::Bounced | Action::Joined => Self(0),
            Action::Issued => Self::ISSUE,
            Action::Completed => Self::COMPLETE,
            Action::Requeued => Self::REQUEUE,
            Action::DriverData => Self::DRV_DATA,
            Action::Point => Self::NOTIFY,
            action if action.is_note() => Self::NOTIFY,
            _ => Self::QUEUE,
        }
    }

    /// Bits of the kernel's operation letters, as in `WSM`, `FWFS`, `RA`, `D`, `FF` or `N`.
    pub fn of_letters(bytes: &[u8]) -> Option<Self> {
        let is_preflush = bytes.len() > 1 && bytes[0] == b'F' && b"RWDFN".contains(&bytes[1]);
        let body = &bytes[usize::from(is_preflush)..];
        let mut all = match body.first()? {
            b'R' => Self::READ,
            b'W' => Self::WRITE,
            b'D' => Self::DISCARD.with(Self::WRITE),
            b'F' => Self::FLUSH,
            b'N' => Self(0),
            _ => return None,
        };
        if is_preflush {
            all = all.with(Self::FLUSH);
        }
        for letter in &body[1..] {
            all = all.with(match letter {
                b'F' => Self::FUA,
                b'A' => Self::AHEAD,
                b'S' => Self::SYNC,
                b'M' => Self::META,
                b'E' | b'U' => Self(0),
                _ => return None,
            });
        }
        Some(all)
    }
}

/// A device number as blktrace keeps it: the major number above 20 bits of minor number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device(pub u32);

impl Device {
    /// Device of its two numbers.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self(major << 20 | minor & 0xf_ffff)
    }

    /// Major number.
    pub const fn major(self) -> u32 {
        self.0 >> 20
    }

    /// Minor number.
    pub const fn minor(self) -> u32 {
        self.0 & 0xf_ffff
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{},{}", self.major(), self.minor())
    }
}

/// Device and sector that a remap event tells beside the event's own, which are those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// Device before the remap.
    pub device: Device,
    /// Sector before the remap.
    pub sector: u64,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time in nanoseconds on the clock of the trace.
    pub time_ns: u64,
    /// First sector (512 bytes).
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Action of the event.
    pub action: Action,
    /// Category bits.
    pub categories: Categories,
    /// Process.
    pub pid: u32,
    /// Device.
    pub device: Device,
    /// CPU.
    pub cpu: u32,
    /// Error number as the record has it: a negative errno in 16 bits.
    pub error: u16,
    /// I/O priority as the kernel packs it; 0 if the format does not tell.
    pub priority: u16,
    /// Number of the record on its CPU; 0 if the format does not count.
    pub sequence: u32,
    /// Id of the cgroup, if the record has one.
    pub cgroup: Option<u64>,
    /// Payload, see the module's text.
    pub payload: Vec<u8>,
}

impl Default for Event {
    fn default() -> Self {
        Self {
            time_ns: 0,
            sector: 0,
            bytes: 0,
            action: Action::Queued,
            categories: Categories(0),
            pid: 0,
            device: Device(0),
            cpu: 0,
            error: 0,
            priority: 0,
            sequence: 0,
            cgroup: None,
            payload: Vec::new(),
        }
    }
}

impl Event {
    /// Empties the event, keeping the payload's memory.
    pub fn clear(&mut self) {
        let payload = std::mem::take(&mut self.payload);
        *self = Self { payload, ..Self::default() };
        self.payload.clear();
    }

    /// Length in sectors.
    pub const fn sectors(&self) -> u32 {
        self.bytes >> 9
    }

    /// First sector behind it.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors()))
    }

    /// Tell whether it counts as a write, as in blkparse: discards do.
    pub const fn is_write(&self) -> bool {
        self.categories.has(Categories::WRITE)
    }

    /// Tell whether it is a packet command.
    pub const fn is_packet(&self) -> bool {
        self.categories.has(Categories::PC)
    }

    /// The number in the payload: requests at an unplug, sector behind a split; 0 without one.
    pub fn number(&self) -> u64 {
        self.payload.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// Device and sector before a remap event, if the payload tells.
    pub fn remap(&self) -> Option<Remap> {
        let bytes: &[u8; 16] = self.payload.first_chunk()?;
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let sector = u64::from(word(8)) << 32 | u64::from(word(12));
        Some(Remap { device: Device(word(0)), sector })
    }

    /// Makes the payload that of a remap from another device to this event's.
    pub fn set_remap(&mut self, from: Remap) {
        self.payload.clear();
        self.payload.extend_from_slice(&from.device.0.to_be_bytes());
        self.payload.extend_from_slice(&self.device.0.to_be_bytes());
        self.payload.extend_from_slice(&from.sector.to_be_bytes());
    }

    /// Name and fields of a trace point of another layer: `SYSTEM:NAME`, and `field=value`
    /// separated by blanks; empty of other events.
    pub fn point(&self) -> (&[u8], &[u8]) {
        if self.action != Action::Point {
            return (b"", b"");
        }
        let split = self.payload.iter().position(|byte| *byte == b' ');
        match split {
            Some(at) => (&self.payload[..at], &self.payload[at + 1..]),
            None => (&self.payload, b""),
        }
    }

    /// Name in a note of a process: up to the first NUL.
    pub fn name(&self) -> &[u8] {
        let length = self.payload.iter().position(|byte| *byte == 0);
        &self.payload[..length.unwrap_or(self.payload.len())]
    }

    /// The operation's letters in the order of blkparse, and how many they are.
    #[inline]
    pub fn letters(&self) -> ([u8; 6], usize) {
        let has = |bit| self.categories.has(bit);
        let (mut letters, mut length) = ([b' '; 6], 0);
        let mut add = |letter, is_there: bool| {
            if is_there && length < letters.len() {
                letters[length] = letter;
                length += 1;
            }
        };
        add(b'F', has(Categories::FLUSH));
        let direction = match (has(Categories::DISCARD), has(Categories::WRITE)) {
            (true, _) => b'D',
            (false, true) => b'W',
            (false, false) if self.bytes > 0 => b'R',
            (false, false) => b'N',
        };
        add(direction, true);
        add(b'F', has(Categories::FUA));
        add(b'A', has(Categories::AHEAD));
        add(b'S', has(Categories::SYNC));
        add(b'M', has(Categories::META));
        (letters, length)
    }

    /// Makes the event the note of a process's name.
    pub fn set_process(&mut self, pid: u32, name: &[u8]) {
        self.clear();
        self.action = Action::NoteProcess;
        self.categories = Categories::NOTIFY;
        self.pid = pid;
        self.payload.extend_from_slice(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_code_of_its_own() {
        for action in Action::ALL {
            assert_eq!(Action::of_code(action.code()), Some(*action));
        }
    }

    #[test]
    fn letters_are_read_and_written_alike() {
        for letters in ["R", "W", "FWFS", "WSM", "RA", "DS", "RSM", "WFSM"] {
            let categories = Categories::of_letters(letters.as_bytes()).unwrap();
            let event = Event { categories, bytes: 4096, ..Event::default() };
            let (written, length) = event.letters();
            assert_eq!(&written[..length], letters.as_bytes());
        }
        assert_eq!(Categories::of_letters(b"FF"), Some(Categories::FLUSH));
        assert_eq!(Categories::of_letters(b"N"), Some(Categories(0)));
        assert_eq!(Categories::of_letters(b"RX"), None);
        assert_eq!(Categories::of_letters(b""), None);
    }

    #[test]
    fn a_remap_is_read_back() {
        let mut event = Event { device: Device::new(8, 16), ..Event::default() };
        let from = Remap { device: Device::new(8, 17), sector: 64 };
        event.set_remap(from);
        assert_eq!(event.remap(), Some(from));
        assert_eq!(from.device.to_string(), "8,17");
    }
}
