//! Events of a block as columns: one stream of bytes per field, each of which packs well.
//!
//! Most events of a trace tell again of sectors that an event shortly before told of. Such an event
//! says how many events ago that was, and takes sector, length and process from it.

use crate::event::{Action, Categories, Device, Event};

/// Columns, in the order in which they stand in a block.
const COLUMNS: usize = 11;
const FLAGS: usize = 0;
const KINDS: usize = 1;
const TIMES: usize = 2;
const REFERENCES: usize = 3;
const SECTORS: usize = 4;
const BYTES: usize = 5;
const PIDS: usize = 6;
const CPUS: usize = 7;
const DEVICES: usize = 8;
const SEQUENCES: usize = 9;
const EXTRAS: usize = 10;

/// Flags of an event: what is told and not taken from others.
const HAS_REFERENCE: u8 = 1;
const HAS_BYTES: u8 = 2;
const HAS_PID: u8 = 4;
const HAS_CPU: u8 = 8;
const HAS_DEVICE: u8 = 16;
const HAS_SEQUENCE: u8 = 32;
const HAS_EXTRA: u8 = 64;

/// Kinds of a block that have a number of one byte; the number behind them means "told here".
const KINDS_MAX: usize = 255;
/// CPUs whose latest sequence number is known.
const CPU_PLACES: usize = 64;
const HASH_BITS: u32 = 14;

type Kind = (Action, Categories, u16);

/// State that both sides share after an event.
struct Known {
    kinds: Vec<Kind>,
    time_ns: u64,
    sector: u64,
    pid: u32,
    cpu: u32,
    device: Device,
    sequences: [(u32, u32); CPU_PLACES],
    /// Device, sector, length and process of every event of the block.
    events: Vec<(Device, u64, u32, u32)>,
}

impl Known {
    fn new() -> Self {
        Self {
            kinds: Vec::new(),
            time_ns: 0,
            sector: 0,
            pid: 0,
            cpu: 0,
            device: Device(0),
            sequences: [(0, 0); CPU_PLACES],
            events: Vec::new(),
        }
    }

    fn clear(&mut self) {
        let (mut kinds, mut events) =
            (std::mem::take(&mut self.kinds), std::mem::take(&mut self.events));
        kinds.clear();
        events.clear();
        *self = Self { kinds, events, ..Self::new() };
    }

    /// The sequence number that the next event of a CPU has if none is lost.
    #[inline]
    fn expected_sequence(&self, cpu: u32) -> u32 {
        match self.sequences[cpu as usize % CPU_PLACES] {
            (known, last) if known == cpu && last != 0 => last.wrapping_add(1),
            _ => 0,
        }
    }

    #[inline]
    fn keep(&mut self, event: &Event) {
        self.time_ns = event.time_ns;
        self.pid = event.pid;
        self.cpu = event.cpu;
        self.device = event.device;
        self.sequences[event.cpu as usize % CPU_PLACES] = (event.cpu, event.sequence);
        self.events.push((event.device, event.sector, event.bytes, event.pid));
    }
}

#[inline]
fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

const fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Packs events.
pub struct Encoder {
    columns: [Vec<u8>; COLUMNS],
    known: Known,
    /// Number of the event behind the latest with a sector, by a hash of that.
    places: Box<[u32]>,
    /// Earliest and latest time.
    pub span_ns: (u64, u64),
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            columns: Default::default(),
            known: Known::new(),
            places: vec![0; 1 << HASH_BITS].into_boxed_slice(),
            span_ns: (u64::MAX, 0),
        }
    }
}

impl Encoder {
    /// Events so far.
    pub fn len(&self) -> usize {
        self.known.events.len()
    }

    /// Bytes so far, roughly.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    /// Adds an event.
    pub fn push(&mut self, event: &Event) {
        let mut flags = 0;
        self.push_kind(event);
        let columns = &mut self.columns;
        let known = &mut self.known;
        push_varint(&mut columns[TIMES], zigzag(event.time_ns.wrapping_sub(known.time_ns)));
        let key = event.sector.wrapping_add(u64::from(event.device.0) << 40);
        let hash = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HASH_BITS)) as usize;
        let number = known.events.len();
        let place = std::mem::replace(&mut self.places[hash], number as u32 + 1) as usize;
        let before = place.checked_sub(1).and_then(|at| known.events.get(at).copied());
        let (mut bytes, mut pid) = (0, known.pid);
        match before {
            Some((device, sector, told, asked))
                if device == event.device && sector == event.sector =>
            {
                flags |= HAS_REFERENCE;
                (bytes, pid) = (told, asked);
                push_varint(&mut columns[REFERENCES], (number + 1 - place) as u64);
            }
            _ => {
                let difference = event.sector.wrapping_sub(known.sector);
                push_varint(&mut columns[SECTORS], zigzag(difference));
                known.sector = event.sector;
            }
        }
        let mut tell = |flag, column: usize, value: u32, is_known: bool| {
            if !is_known {
                flags |= flag;
                push_varint(&mut columns[column], u64::from(value));
            }
        };
        tell(HAS_BYTES, BYTES, event.bytes, event.bytes == bytes);
        tell(HAS_PID, PIDS, event.pid, event.pid == pid);
        tell(HAS_CPU, CPUS, event.cpu, event.cpu == known.cpu);
        tell(HAS_DEVICE, DEVICES, event.device.0, event.device == known.device);
        let is_next = event.sequence == known.expected_sequence(event.cpu);
        tell(HAS_SEQUENCE, SEQUENCES, event.sequence, is_next);
        if event.error != 0 || event.cgroup.is_some() || !event.payload.is_empty() {
            flags |= HAS_EXTRA;
            push_extra(&mut columns[EXTRAS], event);
        }
        columns[FLAGS].push(flags);
        known.keep(event);
        self.span_ns = (self.span_ns.0.min(event.time_ns), self.span_ns.1.max(event.time_ns));
    }

    #[inline]
    fn push_kind(&mut self, event: &Event) {
        let kind = (event.action, event.categories, event.priority);
        let found = self.known.kinds.iter().position(|known| *known == kind);
        let column = &mut self.columns[KINDS];
        if let Some(found) = found {
            return column.push(found as u8);
        }
        column.push(self.known.kinds.len().min(KINDS_MAX) as u8);
        column.push(event.action.code() as u8);
        column.extend_from_slice(&event.categories.0.to_le_bytes());
        column.extend_from_slice(&event.priority.to_le_bytes());
        if self.known.kinds.len() < KINDS_MAX {
            self.known.kinds.push(kind);
        }
    }

    /// Takes the block: lengths of all columns, then the columns.
    pub fn take(&mut self, block: &mut Vec<u8>) {
        block.clear();
        for column in &self.columns {
            push_varint(block, column.len() as u64);
        }
        for column in &mut self.columns {
            block.extend_from_slice(column);
            column.clear();
        }
        self.known.clear();
        self.places.fill(0);
        self.span_ns = (u64::MAX, 0);
    }
}

fn push_extra(column: &mut Vec<u8>, event: &Event) {
    column.push(u8::from(event.cgroup.is_some()));
    push_varint(column, u64::from(event.error));
    if let Some(cgroup) = event.cgroup {
        push_varint(column, cgroup);
    }
    push_varint(column, event.payload.len() as u64);
    column.extend_from_slice(&event.payload);
}

/// Unpacks events one by one.
pub struct Decoder {
    /// The block as it was taken.
    pub block: Vec<u8>,
    /// Places in the block: what is next of each column, and its end.
    columns: [(usize, usize); COLUMNS],
    known: Known,
    left: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { block: Vec::new(), columns: [(0, 0); COLUMNS], known: Known::new(), left: 0 }
    }
}

impl Decoder {
    /// Begins with a block that has been put into `block`; `None` if its columns do not fit.
    pub fn begin(&mut self, events: u32) -> Option<()> {
        self.left = 0;
        self.known.clear();
        let mut lengths = [0_usize; COLUMNS];
        let mut head = (0, self.block.len());
        for length in &mut lengths {
            *length = usize::try_from(varint(&self.block, &mut head)?).ok()?;
        }
        let mut at = head.0;
        for (column, length) in self.columns.iter_mut().zip(lengths) {
            let end = at.checked_add(length).filter(|end| *end <= self.block.len())?;
            *column = (at, end);
            at = end;
        }
        self.left = events;
        (at == self.block.len()).then_some(())
    }

    /// Tell whether all events have been given.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Gives up what is left.
    pub const fn stop(&mut self) {
        self.left = 0;
    }

    #[inline]
    fn number(&mut self, column: usize) -> Option<u64> {
        varint(&self.block, &mut self.columns[column])
    }

    #[inline]
    fn small(&mut self, column: usize) -> Option<u32> {
        u32::try_from(self.number(column)?).ok()
    }

    #[inline]
    fn byte(&mut self, column: usize) -> Option<u8> {
        let (at, end) = &mut self.columns[column];
        let byte = self.block[..*end].get(*at)?;
        *at += 1;
        Some(*byte)
    }

    fn half(&mut self, column: usize) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte(column)?, self.byte(column)?]))
    }

    /// Fills the next event; `None` if the block is damaged.
    pub fn next(&mut self, event: &mut Event) -> Option<()> {
        self.left = self.left.saturating_sub(1);
        let flags = self.byte(FLAGS)?;
        event.payload.clear();
        (event.action, event.categories, event.priority) = self.kind()?;
        event.time_ns = self.known.time_ns.wrapping_add(unzigzag(self.number(TIMES)?));
        let has = |flag| flags & flag != 0;
        (event.bytes, event.pid) = (0, self.known.pid);
        if has(HAS_REFERENCE) {
            let distance = usize::try_from(self.number(REFERENCES)?).ok()?;
            let at = self.known.events.len().checked_sub(distance)?;
            let (_, sector, bytes, pid) = *self.known.events.get(at)?;
            (event.sector, event.bytes, event.pid) = (sector, bytes, pid);
        } else {
            event.sector = self.known.sector.wrapping_add(unzigzag(self.number(SECTORS)?));
            self.known.sector = event.sector;
        }
        if has(HAS_BYTES) {
            event.bytes = self.small(BYTES)?;
        }
        if has(HAS_PID) {
            event.pid = self.small(PIDS)?;
        }
        event.cpu = if has(HAS_CPU) { self.small(CPUS)? } else { self.known.cpu };
        event.device =
            if has(HAS_DEVICE) { Device(self.small(DEVICES)?) } else { self.known.device };
        let expected = self.known.expected_sequence(event.cpu);
        event.sequence = if has(HAS_SEQUENCE) { self.small(SEQUENCES)? } else { expected };
        (event.error, event.cgroup) = (0, None);
        if has(HAS_EXTRA) {
            self.extra(event)?;
        }
        self.known.keep(event);
        Some(())
    }

    #[inline]
    fn kind(&mut self) -> Option<Kind> {
        let number = usize::from(self.byte(KINDS)?);
        if let Some(kind) = self.known.kinds.get(number) {
            return Some(*kind);
        }
        let action = Action::of_code(u16::from(self.byte(KINDS)?))?;
        let kind = (action, Categories(self.half(KINDS)?), self.half(KINDS)?);
        if self.known.kinds.len() < KINDS_MAX {
            self.known.kinds.push(kind);
        }
        Some(kind)
    }

    fn extra(&mut self, event: &mut Event) -> Option<()> {
        let has_cgroup = self.byte(EXTRAS)? == 1;
        event.error = u16::try_from(self.number(EXTRAS)?).ok()?;
        event.cgroup = if has_cgroup { Some(self.number(EXTRAS)?) } else { None };
        let length = usize::try_from(self.number(EXTRAS)?).ok()?;
        let (at, end) = &mut self.columns[EXTRAS];
        let upto = at.checked_add(length).filter(|upto| *upto <= *end)?;
        event.payload.extend_from_slice(&self.block[*at..upto]);
        *at = upto;
        Some(())
    }
}

/// A number of 7 bits per byte, the lowest first.
#[inline]
fn varint(bytes: &[u8], (at, end): &mut (usize, usize)) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        if *at >= *end {
            return None;
        }
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
