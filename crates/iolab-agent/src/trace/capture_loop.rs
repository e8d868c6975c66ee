//! From pages to the file: read in rounds, merged by time, written block by block.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use iolab_trace::Event;
use iolab_trace::event::{Action, Categories};
use iolab_trace::native::LOST_FACT;
use iolab_trace::ring::perf::PerfRecord;
use iolab_trace::ring::{CpuEvents, LostBefore, Merger, Page, PageLayout, RecordDecoder, SLACK_NS};
use iolab_trace::source::Facts;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

use super::capture::say;
use super::descriptors::{self, Looks};
use super::device::Traced;
use super::feeds::{self, Cpu, Feed, read_page};
use super::layers::Chosen;
use super::order::{Order, Said};
use super::paths::Paths;
use super::processes;
use super::sink::Sink;
use super::tally::Tally;
use super::trace_file::TraceFile;
use crate::error::{Error, Result};
use crate::protocol::RecordingResult;

/// After this time a block ends, so that a killed recording lacks little.
const BLOCK_TIME: Duration = Duration::from_secs(1);

/// Fact that says how paths of files that are opened become known.
const PATHS_FACT: &str = "paths of openings";

/// A recording that is under way.
pub(super) struct Capture {
    cpus: Vec<Cpu>,
    decoder: RecordDecoder,
    layout: PageLayout,
    page: Vec<u8>,
    pages_max: usize,
    merger: Merger,
    sink: Sink,
    /// Events that were lost up to the second told last.
    lost_told: u64,
    devices: Vec<Traced>,
    started: Instant,
    told: Instant,
    vanished: Vec<String>,
    /// Names of files, if they are looked up.
    looks: Option<Looks>,
    /// Paths of files that are opened, if the kernel tells them.
    paths: Option<Paths>,
}

impl Capture {
    /// Opens the buffers, and writes the head of the file.
    pub fn begin(
        cpus: Vec<Cpu>,
        order: &Order,
        decoder: RecordDecoder,
        layout: PageLayout,
        paths: Option<io::Result<Paths>>,
    ) -> Result<Self> {
        let mut facts = order.facts.clone();
        if let Some(paths) = &paths {
            let told = match paths {
                Ok(_) => "copied by a program in the kernel".to_owned(),
                Err(error) => format!("looked up after the call (no program: {error})"),
            };
            facts.insert(PATHS_FACT.to_owned(), told);
        }
        facts.extend(counters(&order.devices, "before"));
        let now = Instant::now();
        let mut capture = Self {
            cpus,
            decoder,
            page: vec![0; layout.page_bytes],
            pages_max: order.buffer_bytes as usize / layout.page_bytes + 1,
            layout,
            merger: Merger::default(),
            sink: sink_of(order, &facts)?,
            lost_told: 0,
            devices: order.devices.clone(),
            started: now,
            told: now,
            vanished: Vec::new(),
            looks: order.has_file_calls().then(Looks::default),
            paths: paths.and_then(io::Result::ok),
        };
        capture.sink.push(&wall_clock());
        capture.sink.end_block(0);
        Ok(capture)
    }

    /// Notes the descriptors that processes have already, if files are followed.
    pub fn note_descriptors(&mut self, pids: &[u32]) {
        if let Some(paths) = &mut self.paths {
            for pid in pids {
                paths.hold(*pid);
            }
        }
        if self.looks.is_some() {
            let now_ns = monotonic_ns();
            pids.iter().flat_map(|pid| descriptors::held(*pid, now_ns)).for_each(|note| {
                self.merger.push(note);
            });
        }
    }

    /// Tell whether there is still something to record, and somewhere to write it.
    pub fn goes_on(&self) -> bool {
        let has_all_gone = !self.devices.is_empty() && self.vanished.len() == self.devices.len();
        self.sink.may_grow() && !has_all_gone
    }

    /// Records a process, too, if events come from rings.
    pub fn follow(&mut self, chosen: &[Chosen], pid: u32) -> Result<()> {
        feeds::follow(&mut self.cpus, chosen, &[pid], true)
    }

    /// Reads what is there; whether that was much.
    pub fn round(&mut self) -> bool {
        let pages = self.read_all();
        if self.told.elapsed() >= BLOCK_TIME {
            self.told = Instant::now();
            self.look_for_devices();
            let lost = lost(&self.cpus).values().sum();
            if let Some(so_far) = self.sink.end_block(lost) {
                say(&Said::Progress(so_far));
            }
        }
        self.tell_seconds();
        pages > self.pages_max / 4
    }

    /// Tells the seconds that have ended, if devices are watched.
    fn tell_seconds(&mut self) {
        for mut second in self.sink.take_seconds() {
            let lost = lost(&self.cpus).values().sum();
            second.lost = lost - std::mem::replace(&mut self.lost_told, lost).min(lost);
            say(&Said::Second(second));
        }
    }

    /// Reads all CPUs once and writes what is complete; the most pages that one had.
    fn read_all(&mut self) -> usize {
        let mut drained_ns = monotonic_ns();
        let mut most = 0;
        for index in 0..self.cpus.len() {
            let pages = self.read_cpu(index);
            if pages == self.pages_max {
                drained_ns = drained_ns.min(self.cpus[index].last_ns);
            }
            most = most.max(pages);
        }
        if let Some(paths) = &mut self.paths {
            paths.read();
        }
        let Self { merger, paths, sink, .. } = self;
        merger.take_before(drained_ns).for_each(|event| push(&event, paths, sink));
        self.sink.end_round(drained_ns.saturating_sub(SLACK_NS));
        most
    }

    /// Reads what one CPU has, in pages, or in bytes of a ring as so many pages.
    fn read_cpu(&mut self, index: usize) -> usize {
        let Cpu { number, recorder, feed, last_ns } = &mut self.cpus[index];
        let mut taker = Taker {
            decoder: &mut self.decoder,
            queue: self.merger.queue_of(*recorder, *number),
            cpu: *number,
            looks: self.looks.as_mut(),
        };
        match feed {
            Feed::Pipe(file, _) => {
                let mut pages = 0;
                while pages < self.pages_max {
                    let count = read_page(file, &mut self.page);
                    if count == 0 {
                        break;
                    }
                    pages += 1;
                    let page = Page::new(&self.page[..count], &self.layout);
                    *last_ns = taker.page(page).unwrap_or(*last_ns);
                }
                pages
            }
            Feed::Ring(ring, lost) => {
                let bytes = ring.read(|found| match found {
                    PerfRecord::Record(time_ns, content) => {
                        taker.record(time_ns, content);
                        *last_ns = time_ns;
                    }
                    PerfRecord::Lost(count) => {
                        *lost += count;
                        taker.lost(LostBefore::Count(count), *last_ns);
                    }
                });
                (bytes as usize / self.layout.page_bytes).min(self.pages_max.saturating_sub(1))
            }
        }
    }

    /// Begins or ends recording by rings.
    pub fn switch_rings(&self, is_on: bool) -> Result<()> {
        let rings = self.cpus.iter().filter_map(|cpu| match &cpu.feed {
            Feed::Ring(ring, _) => Some(ring),
            Feed::Pipe(..) => None,
        });
        let mut switched = rings.map(|ring| ring.switch(is_on));
        let done = switched.try_for_each(std::convert::identity);
        done.map_err(|error| Error::io("switch", "perf events", error))
    }

    fn look_for_devices(&mut self) {
        let gone = self.devices.iter().filter(|device| !device.is_there());
        let names: Vec<String> = gone.map(|device| device.name.clone()).collect();
        self.vanished = names;
    }

    /// Reads the rest and ends the file.
    pub fn finish(mut self) -> RecordingResult {
        let elapsed = self.started.elapsed();
        while self.read_all() == self.pages_max {}
        let Self { merger, paths, sink, .. } = &mut self;
        merger.take_all().for_each(|event| push(&event, paths, sink));
        if let Sink::Live(tally) = &mut self.sink {
            tally.finish(monotonic_ns());
        }
        self.tell_seconds();
        self.look_for_devices();
        let lost = lost(&self.cpus);
        let mut facts = counters(&self.devices, "after");
        let total: u64 = lost.values().sum();
        facts.insert(LOST_FACT.to_owned(), total.to_string());
        for (cpu, count) in &lost {
            facts.insert(format!("{LOST_FACT} of CPU {cpu}"), count.to_string());
        }
        facts.insert("elapsed ns".to_owned(), elapsed.as_nanos().to_string());
        facts.insert("recorder cpu ns".to_owned(), cpu_ns().to_string());
        if !self.vanished.is_empty() {
            facts.insert("vanished devices".to_owned(), self.vanished.join(" "));
        }
        let (events, bytes, problem) = self.sink.finish(&facts);
        RecordingResult {
            events,
            bytes,
            elapsed_ns: elapsed.as_nanos() as u64,
            cpu_ns: cpu_ns(),
            lost,
            vanished: self.vanished,
            problem,
        }
    }
}

/// Hands an event over, behind the path of what it opens.
#[inline]
fn push(event: &Event, paths: &mut Option<Paths>, sink: &mut Sink) {
    if let Some(note) = paths.as_mut().and_then(|paths| paths.heed(event)) {
        sink.push(&note);
    }
    sink.push(event);
}

/// Receiver of the events that are wanted.
fn sink_of(order: &Order, facts: &Facts) -> Result<Sink> {
    if order.is_live {
        return Ok(Sink::Live(Box::new(Tally::new(monotonic_ns()))));
    }
    TraceFile::begin(facts, order.bytes_max).map(|file| Sink::File(Box::new(file)))
}

/// Takes records of one CPU: into events, and these where they wait for their turn.
struct Taker<'a> {
    decoder: &'a mut RecordDecoder,
    queue: &'a mut CpuEvents,
    cpu: u32,
    looks: Option<&'a mut Looks>,
}

impl Taker<'_> {
    /// Takes a page; the time of its last record.
    fn page(&mut self, mut page: Page<'_>) -> Option<u64> {
        if page.lost() != LostBefore::None {
            self.lost(page.lost(), page.time_ns());
        }
        let mut last_ns = None;
        for record in page.by_ref() {
            self.record(record.time_ns, record.content);
            last_ns = Some(record.time_ns);
        }
        last_ns
    }

    fn lost(&mut self, lost: LostBefore, time_ns: u64) {
        self.queue.push(lost_note(lost, time_ns, self.cpu));
    }

    #[inline]
    fn record(&mut self, time_ns: u64, content: &[u8]) {
        let (mut event, mut note) = (Event::default(), None);
        if !self.decoder.read(content, (time_ns, self.cpu), &mut event, &mut note) {
            return;
        }
        // Events of these have no name, of completions that of whoever was interrupted.
        let is_nameless = matches!(event.action, Action::Point | Action::Completed);
        if is_nameless && self.decoder.is_first_of(self.cpu, event.pid) {
            note = named(&event);
        }
        if let Some(note) = note.take() {
            self.queue.push(note);
        }
        if let Some(note) = self.looks.as_mut().and_then(|looks| looks.heed(&event)) {
            self.queue.push(note);
        }
        self.queue.push(event);
    }
}

/// The kernel's counters of devices, as facts.
fn counters(devices: &[Traced], when: &str) -> Facts {
    let told = devices.iter().filter_map(|device| {
        Some((format!("counters {when} {}", device.name), device.counters()?))
    });
    told.collect()
}

/// Events that were lost so far, by CPU.
fn lost(cpus: &[Cpu]) -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    for cpu in cpus {
        let count = cpu.lost();
        if count > 0 {
            *all.entry(cpu.number).or_default() += count;
        }
    }
    all
}

/// A message where events are missing.
fn lost_note(lost: LostBefore, time_ns: u64, cpu: u32) -> Event {
    note(Action::Message, time_ns, cpu, lost.message(cpu).into_bytes())
}

/// The note of a process's name, if the process is still there; the event itself has none.
fn named(event: &Event) -> Option<Event> {
    let name = processes::name_of(event.pid)?;
    let mut note = Event::default();
    note.set_process(event.pid, &name);
    (note.time_ns, note.cpu) = (event.time_ns, event.cpu);
    Some(note)
}

/// The wall clock at this time of the trace.
fn wall_clock() -> Event {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut payload = (since.as_secs() as u32).to_le_bytes().to_vec();
    payload.extend_from_slice(&since.subsec_nanos().to_le_bytes());
    note(Action::NoteTime, monotonic_ns(), 0, payload)
}

fn note(action: Action, time_ns: u64, cpu: u32, payload: Vec<u8>) -> Event {
    Event { action, categories: Categories::NOTIFY, time_ns, cpu, payload, ..Event::default() }
}

fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds() as u64)
}

/// CPU time of this process.
fn cpu_ns() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| {
        (usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_message_of_its_cpu() {
        let event = lost_note(LostBefore::Count(60), 7, 3);
        let text = String::from_utf8(event.payload).unwrap();
        assert!(text.contains("60 events of CPU 3"), "{text}");
        assert!((event.time_ns, event.cpu, event.action) == (7, 3, Action::Message));
    }
}
