//! From pages to the file: read in rounds, merged by time, written block by block.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use iolab_trace::Event;
use iolab_trace::event::{Action, Categories};
use iolab_trace::native::{LOST_FACT, Writer};
use iolab_trace::ring::{LostBefore, Merger, Page, PageLayout, RecordDecoder};
use iolab_trace::source::Facts;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::statvfs::fstatvfs;
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

use super::capture::{Files, read_page, say};
use super::device::Traced;
use super::order::{Order, Said};
use crate::error::{Error, Result};
use crate::protocol::{RecordingResult, RecordingSoFar};
use crate::testbed::{RESERVE_BYTES, reserve_of_size};

/// Bytes that are handed to the file at once.
const PIECE_BYTES: usize = 1 << 18;
/// After this time a block ends, so that a killed recording lacks little.
const BLOCK_TIME: Duration = Duration::from_secs(1);
const MIB: u64 = 1 << 20;

/// Buffer of one CPU.
struct Cpu {
    number: u32,
    pipe: File,
    /// Time of the last event that was read.
    last_ns: u64,
}

/// A recording that is under way.
pub(super) struct Capture {
    cpus: Vec<Cpu>,
    decoder: RecordDecoder,
    layout: PageLayout,
    page: Vec<u8>,
    pages_max: usize,
    merger: Merger,
    file: TraceFile,
    devices: Vec<Traced>,
    folder: PathBuf,
    started: Instant,
    told: Instant,
    vanished: Vec<String>,
}

impl Capture {
    /// Opens the buffers, and writes the head of the file.
    pub fn begin(
        instance: &Files,
        order: &Order,
        decoder: RecordDecoder,
        layout: PageLayout,
    ) -> Result<Self> {
        let open = |number: u32| {
            let name = PathBuf::from(format!("per_cpu/cpu{number}/trace_pipe_raw"));
            Ok(Cpu { number, pipe: instance.open(&name)?, last_ns: 0 })
        };
        let cpus = instance.cpus().into_iter().map(open).collect::<Result<Vec<Cpu>>>()?;
        let mut facts = order.facts.clone();
        facts.extend(counters(&order.devices, "before"));
        let now = Instant::now();
        let mut capture = Self {
            cpus,
            decoder,
            page: vec![0; layout.page_bytes],
            pages_max: order.buffer_bytes as usize / layout.page_bytes + 1,
            layout,
            merger: Merger::default(),
            file: TraceFile::begin(&facts, order.bytes_max)?,
            devices: order.devices.clone(),
            folder: instance.0.clone(),
            started: now,
            told: now,
            vanished: Vec::new(),
        };
        capture.file.push(&wall_clock());
        capture.file.end_block();
        Ok(capture)
    }

    /// Tell whether there is still something to record, and somewhere to write it.
    pub fn goes_on(&self) -> bool {
        self.file.may_grow() && self.vanished.len() < self.devices.len()
    }

    /// Reads what is there; whether that was much.
    pub fn round(&mut self) -> bool {
        let pages = self.read_all();
        self.file.write_pieces();
        if self.told.elapsed() >= BLOCK_TIME {
            self.told = Instant::now();
            self.file.end_block();
            self.file.look_at_space();
            self.look_for_devices();
            let lost = lost(&self.folder, &self.cpus).values().sum();
            let (events, bytes) = (self.file.events, self.file.bytes);
            say(&Said::Progress(RecordingSoFar { events, bytes, lost }));
        }
        pages > self.pages_max / 4
    }

    /// Reads all CPUs once and writes what is complete; the most pages that one had.
    fn read_all(&mut self) -> usize {
        let mut drained_ns = monotonic_ns();
        let mut most = 0;
        for index in 0..self.cpus.len() {
            let mut pages = 0;
            while pages < self.pages_max {
                let count = read_page(&mut self.cpus[index].pipe, &mut self.page);
                if count == 0 {
                    break;
                }
                pages += 1;
                self.decode(index, count);
            }
            if pages == self.pages_max {
                drained_ns = drained_ns.min(self.cpus[index].last_ns);
            }
            most = most.max(pages);
        }
        self.merger.take_before(drained_ns).for_each(|event| self.file.push(&event));
        most
    }

    fn decode(&mut self, index: usize, count: usize) {
        let Cpu { number, last_ns, .. } = &mut self.cpus[index];
        let mut page = Page::new(&self.page[..count], &self.layout);
        if page.lost() != LostBefore::None {
            self.merger.push(lost_note(page.lost(), page.time_ns(), *number));
        }
        let mut note = None;
        for record in page.by_ref() {
            let mut event = Event::default();
            let place = (record.time_ns, *number);
            if self.decoder.read(record.content, place, &mut event, &mut note) {
                if let Some(note) = note.take() {
                    self.merger.push(note);
                }
                self.merger.push(event);
            }
            *last_ns = record.time_ns;
        }
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
        self.merger.take_all().for_each(|event| self.file.push(&event));
        self.look_for_devices();
        let lost = lost(&self.folder, &self.cpus);
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
        let file = self.file.finish(&facts);
        RecordingResult {
            events: file.0,
            bytes: file.1,
            elapsed_ns: elapsed.as_nanos() as u64,
            cpu_ns: cpu_ns(),
            lost,
            vanished: self.vanished,
            problem: file.2,
        }
    }
}

/// The file behind standard output.
struct TraceFile {
    output: File,
    writer: Writer,
    buffer: Vec<u8>,
    events: u64,
    bytes: u64,
    bytes_max: Option<u64>,
    /// Reason why it must not grow any more.
    limit: Option<String>,
    /// Reason why it could not be written any more.
    problem: Option<String>,
}

/// A size for messages.
fn size_text(bytes: u64) -> String {
    if bytes < 10 * MIB { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes / MIB) }
}

/// Rule R10: why a file of `bytes` must not grow where so much is free, and must stay free.
fn limit_of(bytes: u64, bytes_max: Option<u64>, free: u64, reserve: u64) -> Option<String> {
    if free < reserve {
        return Some(format!(
            "{} are free on its file system, of which {} stay free",
            size_text(free),
            size_text(reserve)
        ));
    }
    let limit = bytes_max.filter(|limit| bytes >= *limit)?;
    Some(format!("it has {bytes} bytes, and others may write {limit} at once (max_bytes of root)"))
}

impl TraceFile {
    fn begin(facts: &Facts, bytes_max: Option<u64>) -> Result<Self> {
        let output: OwnedFd = std::io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Error::io("open", "the trace file", error))?;
        let mut buffer = Vec::new();
        let writer = Writer::new(facts, &mut buffer)
            .map_err(|error| Error::failed(error.to_string(), ""))?;
        let (limit, problem) = (None, None);
        let output = output.into();
        let mut file =
            Self { output, writer, buffer, events: 0, bytes: 0, bytes_max, limit, problem };
        file.look_at_space();
        match file.limit {
            Some(limit) => {
                let what = format!("nothing was recorded: {limit}");
                Err(Error::refused(what, "make room, or name a place on another file system"))
            }
            None => Ok(file),
        }
    }

    /// Tell whether it can and may be written.
    fn may_grow(&self) -> bool {
        self.problem.is_none() && self.limit.is_none()
    }

    /// Looks whether there is still room for it; a file system that does not say has some.
    fn look_at_space(&mut self) {
        let Ok(status) = fstatvfs(&self.output) else { return };
        let unit = status.fragment_size();
        let reserve = reserve_of_size(status.blocks() * unit, RESERVE_BYTES);
        let free = status.blocks_available() * unit;
        self.limit = limit_of(self.bytes, self.bytes_max, free, reserve);
    }

    fn push(&mut self, event: &Event) {
        if self.problem.is_none() {
            let pushed = self.writer.push(event, &mut self.buffer);
            self.events += 1;
            self.note(pushed.map_err(|error| error.to_string()));
        }
        if self.buffer.len() >= 4 * PIECE_BYTES {
            self.flush();
        }
    }

    fn note(&mut self, result: std::result::Result<(), String>) {
        if let Err(problem) = result {
            self.problem.get_or_insert(problem);
        }
    }

    fn write_pieces(&mut self) {
        if self.buffer.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    fn end_block(&mut self) {
        let ended = self.writer.end_block(&mut self.buffer).map_err(|error| error.to_string());
        self.note(ended);
        self.flush();
    }

    fn flush(&mut self) {
        if self.problem.is_none() {
            let written = self.output.write_all(&self.buffer);
            self.note(written.map_err(|error| error.to_string()));
            // A file that is full has a part of the piece.
            let whole = self.bytes + self.buffer.len() as u64;
            self.bytes = self.output.metadata().map_or(whole, |found| found.len());
        }
        self.buffer.clear();
    }

    /// Events, bytes, and what went wrong.
    fn finish(mut self, facts: &Facts) -> (u64, u64, Option<String>) {
        let added = self.writer.add_facts(facts, &mut self.buffer);
        self.note(added.map_err(|error| error.to_string()));
        self.flush();
        let mut tail = Vec::new();
        if self.problem.is_none() {
            let Self { writer, mut output, mut bytes, events, limit, .. } = self;
            let ended = writer.finish(&mut tail).map_err(|error| error.to_string());
            let ended = ended.and_then(|()| {
                bytes += tail.len() as u64;
                output.write_all(&tail).map_err(|error| error.to_string())
            });
            return (events, bytes, ended.err().or(limit));
        }
        (self.events, self.bytes, self.problem)
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
fn lost(folder: &Path, cpus: &[Cpu]) -> BTreeMap<u32, u64> {
    let files = Files(folder.to_path_buf());
    let count = |cpu: &Cpu| {
        let text = files.read(Path::new(&format!("per_cpu/cpu{}/stats", cpu.number)))?;
        Some((cpu.number, lost_in(&text)))
    };
    cpus.iter().filter_map(count).filter(|(_, count)| *count > 0).collect()
}

/// Sum of what `per_cpu/cpuN/stats` says of lost events.
fn lost_in(stats: &str) -> u64 {
    let kinds = ["overrun", "commit overrun", "dropped events"];
    let values = stats.lines().filter_map(|line| line.split_once(':'));
    let lost = values.filter(|(name, _)| kinds.contains(&name.trim()));
    lost.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}

/// A message where events are missing.
fn lost_note(lost: LostBefore, time_ns: u64, cpu: u32) -> Event {
    let text = match lost {
        LostBefore::Count(count) => {
            format!("iolab: {count} events of CPU {cpu} were lost before this")
        }
        LostBefore::None | LostBefore::Some => {
            format!("iolab: events of CPU {cpu} were lost before this")
        }
    };
    note(Action::Message, time_ns, cpu, text.into_bytes())
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
    fn losses_of_all_kinds_are_counted() {
        let stats = "entries: 292\noverrun: 60\ncommit overrun: 2\nbytes: 19368\n\
            oldest event ts:  2580.829013\ndropped events: 1\nread events: 9\n";
        assert_eq!(lost_in(stats), 63);
        assert_eq!(lost_in(""), 0);
    }

    #[test]
    fn a_file_stops_at_the_reserve_and_at_what_others_may_write() {
        assert_eq!(limit_of(5 << 20, None, 3 << 20, 2 << 20), None);
        assert_eq!(limit_of(5 << 20, Some(6 << 20), 2 << 20, 2 << 20), None);
        let told = limit_of(0, None, (3 << 20) - 1, 3 << 20).unwrap();
        assert!(
            told.contains("3071 KiB are free") && told.contains("3072 KiB stay free"),
            "{told}"
        );
        let told = limit_of(6 << 20, Some(6 << 20), 1 << 40, 5 << 30).unwrap();
        assert!(told.contains("6291456 bytes") && told.contains("max_bytes"), "{told}");
    }

    #[test]
    fn a_gap_is_a_message_of_its_cpu() {
        let event = lost_note(LostBefore::Count(60), 7, 3);
        let text = String::from_utf8(event.payload).unwrap();
        assert!(text.contains("60 events of CPU 3"), "{text}");
        assert!((event.time_ns, event.cpu, event.action) == (7, 3, Action::Message));
    }
}
