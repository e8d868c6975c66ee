//! Records of the kernel's block trace points into events.
//!
//! Source: Linux `include/trace/events/block.h`, 4.18 to 6.18, by the kernel's own descriptions.
//! Left out: plugs, which name no device; `block_io_start`, `block_io_done` and `block_rq_error`,
//! which repeat what others say; zones.

use super::description::{Description, Field};
use super::names::Names;
use super::point::PointPlan;
use crate::error::{Error, Place};
use crate::event::{Action, Categories, Device, Event, Remap};

const SECTOR_BYTES: u32 = 512;
/// CPUs whose names of processes are kept apart.
const CPUS_MAX: usize = 1024;

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

    /// Fills an event whose time and CPU are set.
    #[inline]
    fn read(&self, content: &[u8], event: &mut Event) {
        event.action = self.action;
        event.pid = self.pid.map_or(0, |field| number(content, field) as u32);
        event.device = Device(number(content, self.dev) as u32);
        event.sector = number(content, self.sector);
        event.categories = letters(content, self.letters).with(Categories::of_action(self.action));
        let sectors = self.sectors.map_or(0, |field| number(content, field) as u32);
        let bytes = self.bytes.map_or(0, |field| number(content, field) as u32);
        event.bytes = sectors.saturating_mul(SECTOR_BYTES).max(bytes);
        event.priority = self.priority.map_or(0, |field| number(content, field) as u16);
        event.error = self.error.map_or(0, |field| number(content, field) as u16);
        if let Some(field) = self.new_sector {
            event.payload.extend_from_slice(&number(content, field).to_be_bytes());
        }
        if let Some((device, sector)) = self.from {
            let device = Device(number(content, device) as u32);
            event.set_remap(Remap { device, sector: number(content, sector) });
        }
    }
}

/// Form of the records of one number.
#[derive(Debug)]
enum Form {
    Block(Box<Plan>),
    Point(Box<PointPlan>),
    /// A task takes another name: the task, and the name.
    Rename(Field, Field),
}

/// Reader of the records of one kernel.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    /// By the number of the event.
    forms: Vec<Option<Form>>,
    /// By CPU: those of one CPU are read before those of another, whatever their times, and a name
    /// must stand before the first event of its process.
    names: Vec<Names>,
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
        self.keep(description, Form::Block(Box::new(Plan::of(*point, description)?)));
        Ok(true)
    }

    /// Learns the form of a trace point of another layer.
    pub fn learn_point(&mut self, system: &str, description: &Description) {
        self.keep(description, Form::Point(Box::new(PointPlan::of(system, description))));
    }

    /// Learns the form of the event `task_rename`, which becomes the note of a process's name;
    /// whether it has what is needed.
    pub fn learn_rename(&mut self, description: &Description) -> bool {
        let field = |name: &str| description.fields.get(name).copied();
        let found = field("common_pid").zip(field("newcomm"));
        if let Some((pid, name)) = found {
            self.keep(description, Form::Rename(pid, name));
        }
        found.is_some()
    }

    fn keep(&mut self, description: &Description, form: Form) {
        let place = usize::from(description.id);
        if place >= self.forms.len() {
            self.forms.resize_with(place + 1, || None);
        }
        self.forms[place] = Some(form);
    }

    /// True if no event of a CPU has told the name of a process so far; asked again, it counts as
    /// told.
    pub fn is_first_of(&mut self, cpu: u32, pid: u32) -> bool {
        names_of(&mut self.names, cpu).is_first_of(pid)
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
        let id = number(content, Field::number(0, 2)) as usize;
        event.clear();
        event.time_ns = time_ns;
        event.cpu = cpu;
        match self.forms.get(id).and_then(Option::as_ref) {
            Some(Form::Block(plan)) => {
                plan.read(content, event);
                if let Some(field) = plan.name {
                    *note = names_of(&mut self.names, cpu).note_of(event, text(content, field));
                }
            }
            Some(Form::Point(point)) => point.read(content, event),
            Some(Form::Rename(pid, name)) => {
                event.set_process(number(content, *pid) as u32, text(content, *name));
                (event.time_ns, event.cpu) = (time_ns, cpu);
                names_of(&mut self.names, cpu).is_first_of(event.pid);
            }
            None => {
                self.others += 1;
                return false;
            }
        }
        true
    }
}

/// Names that events of a CPU have told; CPUs of high numbers share.
#[inline]
fn names_of(names: &mut Vec<Names>, cpu: u32) -> &mut Names {
    let place = cpu as usize % CPUS_MAX;
    if place >= names.len() {
        names.resize_with(place + 1, Names::default);
    }
    &mut names[place]
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
    Categories::of_letters(text(content, field)).unwrap_or_default()
}
