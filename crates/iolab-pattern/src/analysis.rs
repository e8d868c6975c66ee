//! A whole trace, from its first line to the tallies of all files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iolab_trace::Error;
use iolab_trace::choice::Chosen;
use iolab_trace::error::Caveat;
use iolab_trace::event::{Action, Categories, Event};
use iolab_trace::format::open_windows;
use iolab_trace::source::{Input, Source, Window};

use crate::access::{AccessStream, File, FileAccess, Happening, StableWait};
use crate::points::{PointReader, has_calls};
use crate::processes::TracedProcesses;
use crate::stream::tally::{Budget, FileTally, PlacedAccess, Stream};
use crate::text::reader::{Reader, knows};

/// Devices that are told apart, so that memory is bounded: a tally takes some kilobytes.
const DEVICES_MAX: usize = 1 << 12;

/// Streams of one description that are told apart, so that memory is bounded.
const STREAMS_MAX: usize = 64;
/// The same of all descriptions together: some 3 kB each.
const STREAMS_OF_ALL_MAX: usize = 1 << 16;
const SECOND_NS: u64 = 1_000_000_000;
/// Stands for all tasks that share a position; the kernel has no task of this number.
const NO_TASK: u32 = u32::MAX;
/// Stands for all descriptions of a file that are too many.
const NO_DESCRIPTION: usize = usize::MAX;

/// Tallies of a trace.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Default)]
pub struct PatternAnalysis {
    /// Name of the format.
    pub format: String,
    /// Files, by their numbers.
    pub files: Vec<File>,
    /// Tally of each file.
    pub tallies: Vec<FileTally>,
    /// Number of calls or events.
    pub calls: u64,
    /// True if requests went through `io_uring`, which no trace of calls shows.
    pub has_ring: bool,
    /// Requests of `io_submit` that the trace leaves out.
    pub hidden: u64,
    /// Copies between descriptors whose offsets the trace leaves out.
    pub unplaced: u64,
    /// Reads and writes of standard input, output and error that are no known files.
    pub of_standard: u64,
    /// Reads and writes that failed, by the name of the error.
    pub failed: BTreeMap<String, u64>,
    /// Reads and writes that moved more than they were asked for.
    pub impossible: u64,
    /// Processes whose descriptors are not known, because there are too many.
    pub unfollowed: u64,
    /// Reads and writes that had not ended.
    pub cut_off: u64,
    /// True of a recording of the kernel's trace points.
    pub is_of_points: bool,
    /// Tasks that came while several others were making one: their files may be another's.
    pub guessed: u64,
    /// True if the trace has times.
    pub has_times: bool,
    /// True if the trace has times of ends, too.
    pub has_durations: bool,
    /// True if these are no whole seconds.
    pub has_fractions: bool,
    /// True of a block trace.
    pub is_of_blocks: bool,
    /// Findings about lines.
    pub caveats: Vec<Caveat>,
    /// Streams of each description: one of all tasks that move its position, and one of each task
    /// that tells places.
    streams: HashMap<AccessStream, BTreeMap<u32, Stream>>,
    /// Number of those of single tasks.
    streams_of_tasks: usize,
    /// Files that were written since the last sync(2), each once.
    dirty: BTreeSet<usize>,
    budget: Budget,
    /// End of the last access of a task.
    last_end: HashMap<u32, u64>,
    /// Time that a task has been in other calls about files since then.
    aside_ns: HashMap<u32, u64>,
    /// True if it is several texts without times: nobody knows which came first.
    pub is_unordered: bool,
    begin_ns: Option<u64>,
    ordinal: u64,
}

impl PatternAnalysis {
    /// Follows the calls of a text of strace or truss.
    pub fn of_calls(windows: Vec<Window>) -> Result<Self, Error> {
        let is_several = windows.len() > 1;
        let mut reader = Reader::new(windows);
        let (mut analysis, mut processes) = (Self::default(), TracedProcesses::default());
        analysis.caveats = processes.follow(&mut reader, |happening| {
            analysis.take(happening);
            Ok(())
        })?;
        let format = if reader.is_of_truss() { "truss" } else { "strace" };
        format.clone_into(&mut analysis.format);
        analysis.is_unordered = is_several && !analysis.has_times;
        Ok(analysis.with(&processes))
    }

    /// Follows the calls of a recording of the kernel's trace points.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn of_points(source: &mut dyn Source, format: &str) -> Result<Self, Error> {
        let mut reader = PointReader::new(source);
        let format = format.to_owned();
        let mut analysis = Self { format, is_of_points: true, ..Self::default() };
        let mut processes = TracedProcesses::default();
        analysis.caveats = processes.follow_points(&mut reader, |happening| {
            analysis.take(happening);
            Ok(())
        })?;
        analysis.cut_off = reader.cut_off() as u64;
        Ok(analysis.with(&processes))
    }

    /// The whole, with what is known of the processes in the end.
    fn with(mut self, processes: &TracedProcesses) -> Self {
        self.files = processes.files().to_vec();
        (self.calls, self.hidden) = (processes.calls, processes.hidden);
        (self.unplaced, self.has_ring) = (processes.unplaced, processes.has_ring);
        (self.guessed, self.unfollowed) = (processes.guessed(), processes.unfollowed());
        self.impossible = processes.impossible;
        (self.of_standard, self.failed) = (processes.of_standard, processes.failed.clone());
        self.finish();
        self
    }

    /// Follows the requests of a block trace: every device is a file, and its accesses are the bios
    /// that entered its queue; of a trace without these, the requests that were issued.
    pub fn of_blocks(source: &mut dyn Source, format: &str) -> Result<Self, Error> {
        let format = format.to_owned();
        let mut analysis = Self { format, is_of_blocks: true, ..Self::default() };
        let mut devices = HashMap::new();
        let mut event = Event::default();
        let mut entered: Option<Action> = None;
        while source.next(&mut event)? {
            analysis.calls += 1;
            let is_entry = matches!(event.action, Action::Queued | Action::Issued);
            if !is_entry && event.action != Action::Completed {
                continue;
            }
            // Devices behind the first ones share a place.
            let next = devices.len().min(DEVICES_MAX);
            let (file, under_way) = devices.entry(event.device).or_insert((next, 0_u64));
            let file = *file;
            match event.action {
                Action::Issued => *under_way += 1,
                Action::Completed => {
                    // Told only here: a trace without completions has no depth.
                    analysis.take(&Happening::Depth(file, *under_way));
                    *under_way = under_way.saturating_sub(1);
                    analysis.tally(file).complete(event.time_ns, event.is_write());
                }
                _ => {}
            }
            if !is_entry || *entered.get_or_insert(event.action) != event.action {
                continue;
            }
            if event.categories.has(Categories::FLUSH) {
                analysis.take(&Happening::Synced(file, StableWait::Flush));
            }
            // A discard moves nothing.
            if event.bytes == 0 || event.categories.has(Categories::DISCARD) {
                continue;
            }
            let offset = event.sector.saturating_mul(512);
            analysis.take(&Happening::Access(FileAccess {
                stream: AccessStream { file, description: 0 },
                task: event.pid,
                is_write: event.is_write(),
                offset: Some(offset),
                bytes: u64::from(event.bytes),
                requested: u64::from(event.bytes),
                begin_ns: Some(event.time_ns),
                end_ns: None,
                is_sought: false,
                // Requests of a block device have passed the page cache, if they came by it.
                is_direct: true,
                aside_ns: 0,
                is_placed: false,
            }));
        }
        let names: HashMap<_, _> = source.devices().into_iter().collect();
        let count = devices.len().min(DEVICES_MAX + 1);
        analysis.files = vec![File::default(); count];
        if let Some(others) = analysis.files.get_mut(DEVICES_MAX) {
            others.name = b"(all other devices)".to_vec();
        }
        for (device, (file, _)) in devices.into_iter().filter(|(_, (file, _))| *file < DEVICES_MAX)
        {
            let name = names.get(&device).cloned().unwrap_or_else(|| device.to_string());
            analysis.files[file].name = name.into_bytes();
        }
        analysis.caveats = source.caveats().to_vec();
        analysis.finish();
        Ok(analysis)
    }

    fn tally(&mut self, file: usize) -> &mut FileTally {
        if self.tallies.len() <= file {
            self.tallies.resize_with(file + 1, FileTally::default);
        }
        &mut self.tallies[file]
    }

    fn take(&mut self, happening: &Happening) {
        match happening {
            Happening::Access(access) => self.take_access(access),
            Happening::Synced(file, wait) => {
                self.tally(*file);
                self.tallies[*file].wait(*wait, &mut self.budget);
            }
            Happening::AllSynced => {
                for file in std::mem::take(&mut self.dirty) {
                    let tally = &mut self.tallies[file];
                    if tally.is_dirty {
                        tally.wait(StableWait::Fsync, &mut self.budget);
                    }
                }
            }
            Happening::Emptied(file) => self.tally(*file).empty(),
            Happening::SoughtInVain(file) => self.tally(*file).sought_in_vain += 1,
            Happening::Closed(key) => {
                for (task, stream) in self.streams.remove(key).unwrap_or_default() {
                    self.streams_of_tasks -= usize::from(task != NO_TASK);
                    self.finish_stream(*key, stream);
                }
            }
            Happening::Depth(file, depth) => {
                let tally = self.tally(*file);
                tally.depth = tally.depth.max(*depth);
                tally.queue_depth = tally.queue_depth.max(*depth);
            }
            Happening::Busy(task, lasted) => {
                let aside = self.aside_ns.entry(*task).or_default();
                *aside = aside.saturating_add(*lasted);
            }
        }
    }

    fn take_access(&mut self, access: &FileAccess) {
        let at = self.place_of(access);
        self.has_times |= access.begin_ns.is_some();
        self.has_durations |= access.end_ns.is_some();
        self.has_fractions |= access.begin_ns.is_some_and(|begin| !begin.is_multiple_of(SECOND_NS));
        let task = access.task;
        let before = self.last_end.get(&task).copied();
        let aside = self.aside_ns.remove(&task).unwrap_or(0);
        let pause = |(begin, end): (u64, u64)| begin.saturating_sub(end).saturating_sub(aside);
        let think_ns = access.begin_ns.zip(before).map(pause);
        if let Some(end) = access.end_ns.or(access.begin_ns) {
            self.last_end.insert(task, end);
        }
        self.tally(access.stream.file);
        // Descriptions that are too many share a stream of their file.
        let is_new = self.streams.len() >= STREAMS_OF_ALL_MAX;
        let key = match access.stream {
            key if is_new && !self.streams.contains_key(&key) => {
                AccessStream { description: NO_DESCRIPTION, ..key }
            }
            key => key,
        };
        let streams = self.streams.entry(key).or_default();
        let own = if access.is_placed { task } else { NO_TASK };
        let has_room = streams.len() < STREAMS_MAX && self.streams_of_tasks < STREAMS_OF_ALL_MAX;
        let own = if has_room || streams.contains_key(&own) { own } else { NO_TASK };
        let stream = streams.entry(own).or_insert_with(|| {
            self.streams_of_tasks += usize::from(own != NO_TASK);
            Stream::default()
        });
        let tally = &mut self.tallies[access.stream.file];
        let access = FileAccess { aside_ns: aside, ..*access };
        tally.add(stream, &PlacedAccess { access, at, think_ns }, &mut self.budget);
        if tally.is_dirty {
            self.dirty.insert(access.stream.file);
        }
        self.ordinal += 1;
    }

    /// Place along the time of a picture: nanoseconds since the first access, or its number.
    fn place_of(&mut self, access: &FileAccess) -> u64 {
        match access.begin_ns {
            Some(begin) => begin.saturating_sub(*self.begin_ns.get_or_insert(begin)),
            None => self.ordinal,
        }
    }

    fn finish(&mut self) {
        let mut streams: Vec<_> = std::mem::take(&mut self.streams).into_iter().collect();
        streams.sort_by_key(|(key, _)| (key.file, key.description));
        for (key, streams) in streams {
            for stream in streams.into_values() {
                self.finish_stream(key, stream);
            }
        }
        let files = self.files.len();
        self.tallies.resize_with(files, FileTally::default);
        for tally in &mut self.tallies {
            tally.finish(&mut self.budget);
        }
    }

    /// Counts what was held back until the stream's end.
    fn finish_stream(&mut self, key: AccessStream, mut stream: Stream) {
        let held = stream.finish();
        let placed: Vec<PlacedAccess> = held
            .into_iter()
            .map(|access| PlacedAccess { access, at: self.place_of(&access), think_ns: None })
            .collect();
        self.tally(key.file);
        self.tallies[key.file].finish_stream(stream, &placed, &mut self.budget);
    }
}

/// Bytes by which a text of calls is known: the first lines may be those of a long `execve`.
const HEAD_BYTES: usize = 1 << 16;

impl PatternAnalysis {
    /// Follows a trace in one file or several, whichever kind it is.
    ///
    /// # Errors
    /// The files are no trace, cannot be read, or have none of the devices that are asked for.
    pub fn of(inputs: Vec<Input>, devices: &[String]) -> Result<Self, Error> {
        let mut windows: Vec<Window> = inputs.into_iter().map(Window::new).collect();
        let (mut is_calls, mut other) = (false, None);
        for window in &mut windows {
            window.ensure(HEAD_BYTES)?;
            match knows(window.bytes()) {
                true => is_calls = true,
                // A thread that did nothing leaves an empty file.
                false if window.bytes().is_empty() => {}
                false => other = other.or_else(|| Some(window.name().to_owned())),
            }
        }
        if let Some(other) = other.filter(|_| is_calls) {
            return Err(Error::Option(format!(
                "{other} is no text of strace or truss, other files are; read it alone"
            )));
        }
        if is_calls {
            if let Some(device) = devices.first() {
                return Err(Error::Option(format!(
                    "a trace of system calls has no devices, and {device} is asked for"
                )));
            }
            return Self::of_calls(windows);
        }
        let (format, mut source) = open_windows(windows).map_err(neither)?;
        if devices.is_empty() && has_calls(&source.facts()) {
            return Self::of_points(source.as_mut(), format.name);
        }
        if !devices.is_empty() {
            source = Box::new(Chosen::new(source, devices));
        }
        Self::of_blocks(source.as_mut(), format.name)
    }
}

fn neither(error: Error) -> Error {
    match error {
        Error::Unknown { name, what, formats } => Error::Option(format!(
            "{name} is neither a text of strace or truss nor a block trace: {what}; formats of \
             block traces are {formats}"
        )),
        other => other,
    }
}
