//! The files of blktrace(8), one per CPU: records of version 7 in either byte order.
//!
//! Layout: Linux `include/uapi/linux/blktrace_api.h`. Files of one device and of several are merged
//! by time; records of one file keep their order. Notes of processes and of the wall clock are
//! given as soon as they are read, which is before the events that lie within the same
//! [`CHUNK_BYTES`](crate::source::CHUNK_BYTES) of the file, so that names are known when they are
//! needed. Left out: other versions, which are refused by number.

use std::collections::VecDeque;

use iolab_model::blktrace::RecordHead as Header;
pub use iolab_model::blktrace::{MAGIC, RECORD_BYTES, VERSION, is_swapped};

use crate::error::{Caveat, Error, Place};
use crate::event::{Action, Categories, Device, Event};
use crate::source::{Input, Source, Window};

const CGROUP_FLAG: u32 = 1 << 8;

/// Kind of record: its action without flags, and whether it is a note.
#[inline]
fn action_of(code: u32) -> Option<Action> {
    let low = (code & 0xffff & !CGROUP_FLAG) as u16;
    if code >> 16 & u32::from(Categories::NOTIFY.0) != 0 {
        return match low {
            0 => Some(Action::NoteProcess),
            1 => Some(Action::NoteTime),
            2 => Some(Action::Message),
            _ => None,
        };
    }
    match low {
        1..=17 => Action::of_code(low),
        _ => None,
    }
}

/// Fills an event from a record; false if it is of a kind that nothing is known of.
#[inline]
fn decode(header: &Header<'_>, payload: &[u8], event: &mut Event) -> bool {
    let code = header.action();
    let Some(action) = action_of(code) else { return false };
    event.action = action;
    event.categories = Categories((code >> 16) as u16);
    event.sequence = header.word(4);
    event.time_ns = header.time_ns();
    event.sector = header.sector();
    event.bytes = header.length();
    event.pid = header.word(32);
    event.device = Device(header.device());
    event.cpu = header.word(40);
    event.error = header.half(44);
    event.priority = 0;
    event.cgroup = None;
    event.payload.clear();
    if payload.is_empty() && code & CGROUP_FLAG == 0 {
        return true;
    }
    let mut rest = payload;
    if code & CGROUP_FLAG != 0
        && let Some((id, behind)) = payload.split_first_chunk()
    {
        let id = u64::from_le_bytes(*id);
        event.cgroup = Some(if header.is_swapped { id.swap_bytes() } else { id });
        rest = behind;
    }
    event.payload.extend_from_slice(rest);
    if header.is_swapped && action == Action::NoteTime {
        event.payload.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    }
    true
}

/// One file.
struct Stream {
    window: Window,
    is_swapped: bool,
    /// Bytes behind the window's beginning whose notes have been given already.
    scanned: usize,
    /// Time of the next event; `None` at the end.
    time_ns: Option<u64>,
    /// Records of unknown kinds so far, and the offset of the first.
    unknown: (u64, u64),
}

/// Length of the whole records, and the bytes after them.
enum Whole {
    /// A record of this length.
    Record(usize),
    /// The end of the file.
    End,
    /// Not the end, but no whole record either.
    Broken(Caveat),
}

impl Stream {
    fn open(mut window: Window) -> Result<Self, Error> {
        window.ensure(RECORD_BYTES)?;
        let is_swapped = is_swapped(window.bytes()).unwrap_or(false);
        Ok(Self { window, is_swapped, scanned: 0, time_ns: None, unknown: (0, 0) })
    }

    fn caveat(&self, what: String, is_damage: bool) -> Whole {
        let (name, offset) = (self.window.name().to_owned(), self.window.offset());
        Whole::Broken(Caveat { name, place: Place::Offset(offset), what, is_damage })
    }

    /// Length of the record at a place in the window that has been read, if it is whole.
    fn record_at(&self, at: usize) -> Option<(Header<'_>, &[u8])> {
        let bytes = self.window.bytes().get(at..)?;
        let header = Header { bytes: bytes.first_chunk()?, is_swapped: self.is_swapped };
        let length = RECORD_BYTES + header.payload_bytes();
        let payload = bytes.get(RECORD_BYTES..length)?;
        (header.magic() == MAGIC | VERSION).then_some((header, payload))
    }

    /// The record at the window's beginning, read whole.
    fn whole(&mut self) -> Result<Whole, Error> {
        if !self.window.ensure(RECORD_BYTES)? {
            let left = self.window.bytes().len();
            let cut = format!("the last record is cut off after {left} bytes and is not used");
            return Ok(if left == 0 { Whole::End } else { self.caveat(cut, false) });
        }
        let Some(bytes) = self.window.bytes().first_chunk() else { return Ok(Whole::End) };
        let header = Header { bytes, is_swapped: self.is_swapped };
        let magic = header.magic();
        if magic != MAGIC | VERSION {
            return Ok(self.caveat(wrong_magic(magic), true));
        }
        let length = RECORD_BYTES + header.payload_bytes();
        if !self.window.ensure(length)? {
            let cut = "the payload of the last record is cut off; it is not used".to_owned();
            return Ok(self.caveat(cut, false));
        }
        Ok(Whole::Record(length))
    }

    /// Goes to the next event that is not a note; gives notes of what is read anew.
    fn advance(
        &mut self,
        notes: &mut VecDeque<Event>,
        caveats: &mut Vec<Caveat>,
    ) -> Result<(), Error> {
        self.time_ns = None;
        loop {
            let length = match self.whole()? {
                Whole::Record(length) => length,
                Whole::End => {
                    caveats.extend(self.unknown_caveat());
                    return Ok(());
                }
                Whole::Broken(caveat) => {
                    caveats.extend(self.unknown_caveat());
                    caveats.push(caveat);
                    return Ok(());
                }
            };
            if self.scanned == 0 {
                self.scan(notes);
            }
            let Some((header, _)) = self.record_at(0) else { return Ok(()) };
            let (action, time_ns) = (action_of(header.action()), header.time_ns());
            let is_early = matches!(action, None | Some(Action::NoteProcess | Action::NoteTime));
            if action.is_none() {
                let first = if self.unknown.0 == 0 { self.window.offset() } else { self.unknown.1 };
                self.unknown = (self.unknown.0 + 1, first);
            }
            if !is_early {
                self.time_ns = Some(time_ns);
                return Ok(());
            }
            self.take(length);
        }
    }

    /// Records of kinds that a newer kernel may write.
    fn unknown_caveat(&self) -> Option<Caveat> {
        let (count, first) = self.unknown;
        let what = match count {
            0 => return None,
            1 => "a record of an unknown kind is left out".to_owned(),
            _ => format!("{count} records of unknown kinds are left out, the first one here"),
        };
        let (name, place) = (self.window.name().to_owned(), Place::Offset(first));
        Some(Caveat { name, place, what, is_damage: false })
    }

    fn take(&mut self, length: usize) {
        self.window.take(length);
        self.scanned = self.scanned.saturating_sub(length);
    }

    /// Gives the notes of all whole records in the window.
    fn scan(&mut self, notes: &mut VecDeque<Event>) {
        let mut at = 0;
        while let Some((header, payload)) = self.record_at(at) {
            let is_note = u32::from(Categories::NOTIFY.0) << 16 & header.action() != 0;
            if is_note {
                let mut event = Event::default();
                if decode(&header, payload, &mut event) && event.action != Action::Message {
                    notes.push_back(event);
                }
            }
            at += RECORD_BYTES + payload.len();
        }
        self.scanned = at;
    }
}

fn wrong_magic(magic: u32) -> String {
    if magic & 0xffff_ff00 == MAGIC {
        format!("a record of version {}, only {VERSION} is known", magic & 0xff)
    } else {
        format!("no record begins here ({magic:#010x}); the rest of the file is not used")
    }
}

/// Records of several files, merged by time.
pub struct Reader {
    streams: Vec<Stream>,
    /// Streams that have an event, the earliest first.
    order: VecDeque<usize>,
    notes: VecDeque<Event>,
    caveats: Vec<Caveat>,
    devices: Vec<(Device, String)>,
}

impl Reader {
    /// Opens files whose beginning has been read.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the first record of a file that is not empty is no record of version
    /// 7, [`Error::Read`] if a file cannot be read.
    pub fn open(windows: Vec<Window>) -> Result<Self, Error> {
        let mut reader = Self {
            streams: Vec::new(),
            order: VecDeque::new(),
            notes: VecDeque::new(),
            caveats: Vec::new(),
            devices: Vec::new(),
        };
        for window in windows {
            let mut stream = Stream::open(window)?;
            let known = reader.caveats.len();
            stream.advance(&mut reader.notes, &mut reader.caveats)?;
            if let Some(caveat) = reader.caveats.get(known)
                && caveat.is_damage
                && caveat.place == Place::Offset(0)
            {
                let Caveat { name, place, what, .. } = caveat.clone();
                return Err(Error::Damaged { name, place, what });
            }
            let index = reader.streams.len();
            reader.know_device(&stream);
            reader.streams.push(stream);
            reader.insert(index);
        }
        Ok(reader)
    }

    /// Keeps the name that the files of a device share: all before `.blktrace.CPU`.
    fn know_device(&mut self, stream: &Stream) {
        let Some((header, _)) = stream.record_at(0) else { return };
        let device = Device(header.device());
        let file = stream.window.name().rsplit('/').next().unwrap_or_default();
        let name = file.split(".blktrace.").next().unwrap_or(file);
        if self.devices.iter().all(|(known, _)| *known != device) {
            self.devices.push((device, name.to_owned()));
        }
    }

    /// Reads one file or several from their beginning.
    pub fn of_inputs(inputs: Vec<Input>) -> Result<Self, Error> {
        Self::open(inputs.into_iter().map(Window::new).collect())
    }

    fn time(&self, index: usize) -> u64 {
        self.streams[index].time_ns.unwrap_or(u64::MAX)
    }

    /// Puts a stream where blkparse puts it: behind the first, and before others that are not
    /// earlier. Only the order of equal times depends on that.
    fn insert(&mut self, index: usize) {
        let Some(time) = self.streams[index].time_ns else { return };
        let at = match self.order.front() {
            None => 0,
            Some(&first) if time < self.time(first) => 0,
            Some(_) => {
                let later = self.order.iter().skip(1).position(|other| self.time(*other) >= time);
                later.map_or(self.order.len(), |at| at + 1)
            }
        };
        self.order.insert(at, index);
    }
}

impl Source for Reader {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        if let Some(note) = self.notes.pop_front() {
            *event = note;
            return Ok(true);
        }
        let Some(&index) = self.order.front() else { return Ok(false) };
        let stream = &mut self.streams[index];
        let Some((header, payload)) = stream.record_at(0) else { return Ok(false) };
        decode(&header, payload, event);
        let length = RECORD_BYTES + payload.len();
        stream.take(length);
        stream.advance(&mut self.notes, &mut self.caveats)?;
        let next = stream.time_ns;
        let second = self.order.get(1).map(|other| self.time(*other));
        if next.is_none() || second.is_some_and(|second| next > Some(second)) {
            self.order.pop_front();
            self.insert(index);
        }
        Ok(true)
    }

    fn caveats(&self) -> &[Caveat] {
        &self.caveats
    }

    fn devices(&self) -> Vec<(Device, String)> {
        self.devices.clone()
    }
}
