//! Records of the kernel's block trace points into events.
//!
//! Source: Linux `include/trace/events/block.h`, 4.18 to 6.18, by the kernel's own descriptions.
//! Left out: plugs, which name no device; `block_io_start`, `block_io_done` and `block_rq_error`,
//! which repeat what others say; zones.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::description::{Description, Field};
use super::point::PointPlan;
use crate::error::{Error, Place};
use crate::event::{Action, Categories, Device, Event, Remap};

/// Processes whose names are remembered; one that is forgotten is named again.
const PROCESSES_MAX: usize = 1 << 14;
const SECTOR_BYTES: u32 = 512;

/// A trace point of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    /// Its name below `events/block`.
    pub name: &'static str,
    /// Action at this place.
    pub action: Action,
    /// True if it belongs to the short set: what devices were given, and when they were done.
    pub is_basic: bool,
}

const fn basic(name: &'static str, action: Action) -> TracePoint {
    TracePoint { name, action, is_basic: true }
}

const fn full(name: &'static str, action: Action) -> TracePoint {
    TracePoint { name, action, is_basic: false }
}

/// Trace points that are recorded.
pub const EVENTS: &[TracePoint] = &[
    full("block_bio_queue", Action::Queued),
    full("block_getrq", Action::Got),
    full("block_sleeprq", Action::Slept),
    full("block_rq_insert", Action::Inserted),
    basic("block_rq_issue", Action::Issued),
    basic("block_rq_complete", Action::Completed),
    full("block_bio_complete", Action::Completed),
    full("block_rq_requeue", Action::Requeued),
    full("block_bio_backmerge", Action::BackMerged),
    full("block_bio_frontmerge", Action::FrontMerged),
    full("block_rq_merge", Action::Joined),
    full("block_split", Action::Split),
    full("block_bio_remap", Action::Remapped),
    full("block_rq_remap", Action::Remapped),
    full("block_bio_bounce", Action::Bounced),
];

/// Offsets of the fields of a record.
#[derive(Clone, Copy, Debug)]
struct Plan {
    action: Action,
    pid: Option<Field>,
    dev: Field,
    sector: Field,
    letters: Field,
    sectors: Option<Field>,
    bytes: Option<Field>,
    name: Option<Field>,
    priority: Option<Field>,
    error: Option<Field>,
    new_sector: Option<Field>,
    from: Option<(Field, Field)>,
}

impl Plan {
    fn of(point: TracePoint, description: &Description) -> Result<Self, Error> {
        let find = |name: &str| description.fields.get(name).copied();
        let must = |name: &str| {
            find(name).ok_or_else(|| Error::Damaged {
                name: format!("events/block/{}/format", point.name),
                place: Place::Line(1),
                what: format!("there is no field {name}"),
            })
        };
        Ok(Self {
            action: point.action,
            pid: find("common_pid"),
            dev: must("dev")?,
            sector: must("sector")?,
            letters: must("rwbs")?,
            sectors: find("nr_sector"),
            bytes: find("bytes"),
            name: find("comm"),
            priority: find("ioprio"),
            error: find("error"),
            new_sector: find("new_sector"),
            from: find("old_dev").zip(find("old_sector")),
        })
    }
}

/// Reader of the records of one kernel.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    plans: HashMap<u16, Plan>,
    points: HashMap<u16, PointPlan>,
    /// Number of the event of new names, its task and the name.
    rename: Option<(u16, Field, Field)>,
    names: HashMap<u32, [u8; 16]>,
    others: u64,
}

impl RecordDecoder {
    /// Learns the form of a trace point; whether it is one of [`EVENTS`].
    ///
    /// # Errors
    /// [`Error::Damaged`] if a field is missing without which the event says nothing.
    pub fn learn(&mut self, description: &Description) -> Result<bool, Error> {
        let Some(point) = EVENTS.iter().find(|point| point.name == description.name) else {
            return Ok(false);
        };
        self.plans.insert(description.id, Plan::of(*point, description)?);
        Ok(true)
    }

    /// Learns the form of a trace point of another layer.
    pub fn learn_point(&mut self, system: &str, description: &Description) {
        self.points.insert(description.id, PointPlan::of(system, description));
    }

    /// Learns the form of the event `task_rename`, which becomes the note of a process's name;
    /// whether it has what is needed.
    pub fn learn_rename(&mut self, description: &Description) -> bool {
        let field = |name: &str| description.fields.get(name).copied();
        let found = field("common_pid").zip(field("newcomm"));
        self.rename = found.map(|(pid, name)| (description.id, pid, name));
        self.rename.is_some()
    }

    /// True if no event has told the name of a process so far; asked again, it counts as told.
    pub fn is_first_of(&mut self, pid: u32) -> bool {
        if self.names.len() >= PROCESSES_MAX {
            self.names.clear();
        }
        match self.names.entry(pid) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert([0; 16]);
                true
            }
        }
    }

    /// Records that were of no event that is known.
    pub const fn others(&self) -> u64 {
        self.others
    }

    /// Reads a record; false if it is of no known event. Before the first event of a process, and
    /// after it has taken another name, `note` becomes the note of its name.
    #[inline]
    pub fn read(
        &mut self,
        content: &[u8],
        (time_ns, cpu): (u64, u32),
        event: &mut Event,
        note: &mut Option<Event>,
    ) -> bool {
        let id = number(content, Field::number(0, 2)) as u16;
        event.clear();
        event.time_ns = time_ns;
        event.cpu = cpu;
        let Some(plan) = self.plans.get(&id) else {
            if let Some((_, pid, name)) = self.rename.filter(|(rename, _, _)| *rename == id) {
                event.set_process(number(content, pid) as u32, text(content, name));
                (event.time_ns, event.cpu) = (time_ns, cpu);
                self.is_first_of(event.pid);
                return true;
            }
            let point = self.points.get(&id);
            self.others += u64::from(point.is_none());
            return point.map(|point| point.read(content, event)).is_some();
        };
        event.action = plan.action;
        event.pid = plan.pid.map_or(0, |field| number(content, field) as u32);
        event.device = Device(number(content, plan.dev) as u32);
        event.sector = number(content, plan.sector);
        event.categories = letters(content, plan.letters).with(Categories::of_action(plan.action));
        let sectors = plan.sectors.map_or(0, |field| number(content, field) as u32);
        let bytes = plan.bytes.map_or(0, |field| number(content, field) as u32);
        event.bytes = sectors.saturating_mul(SECTOR_BYTES).max(bytes);
        event.priority = plan.priority.map_or(0, |field| number(content, field) as u16);
        event.error = plan.error.map_or(0, |field| number(content, field) as u16);
        if let Some(field) = plan.new_sector {
            event.payload.extend_from_slice(&number(content, field).to_be_bytes());
        }
        if let Some((device, sector)) = plan.from {
            let device = Device(number(content, device) as u32);
            event.set_remap(Remap { device, sector: number(content, sector) });
        }
        if let Some(field) = plan.name {
            *note = self.named(event, text(content, field));
        }
        true
    }

    /// The note of a process's name, if that is new.
    fn named(&mut self, event: &Event, found: &[u8]) -> Option<Event> {
        let mut name = [0; 16];
        let length = found.len().min(15);
        name[..length].copy_from_slice(&found[..length]);
        if self.names.get(&event.pid) == Some(&name) {
            return None;
        }
        if self.names.len() >= PROCESSES_MAX {
            self.names.clear();
        }
        self.names.insert(event.pid, name);
        let mut note = Event { time_ns: event.time_ns, cpu: event.cpu, ..Event::default() };
        let (time_ns, cpu) = (note.time_ns, note.cpu);
        note.set_process(event.pid, if event.pid == 0 { b"swapper" } else { &name[..length] });
        (note.time_ns, note.cpu) = (time_ns, cpu);
        Some(note)
    }
}

/// A number of 1, 2, 4 or 8 bytes; 0 where the record is too short.
#[inline]
pub(super) fn number(content: &[u8], field: Field) -> u64 {
    let bytes = content.get(field.offset..).unwrap_or_default();
    let found = match field.size {
        1 => bytes.first().map(|byte| u64::from(*byte)),
        2 => bytes.first_chunk().map(|bytes| u64::from(u16::from_ne_bytes(*bytes))),
        4 => bytes.first_chunk().map(|bytes| u64::from(u32::from_ne_bytes(*bytes))),
        8 => bytes.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)),
        _ => None,
    };
    found.unwrap_or(0)
}

/// Text in a field of fixed size, without the zeroes behind it.
#[inline]
pub(super) fn text(content: &[u8], field: Field) -> &[u8] {
    let bytes = content.get(field.offset..field.offset + field.size).unwrap_or_default();
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..length]
}

fn letters(content: &[u8], field: Field) -> Categories {
    let letters = std::str::from_utf8(text(content, field)).ok();
    letters.and_then(Categories::of_letters).unwrap_or_default()
}
