//! From pages to the file: read in rounds, merged by time, written block by block.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use iolab_trace::Event;
use iolab_trace::event::{Action, Categories};
use iolab_trace::native::LOST_FACT;
use iolab_trace::ring::{LostBefore, Merger, Page, PageLayout, RecordDecoder};
use iolab_trace::source::Facts;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

use super::capture::{Files, read_page, say};
use super::device::Traced;
use super::order::{Order, Said};
use super::processes;
use super::trace_file::TraceFile;
use crate::error::Result;
use crate::protocol::{RecordingResult, RecordingSoFar};

/// After this time a block ends, so that a killed recording lacks little.
const BLOCK_TIME: Duration = Duration::from_secs(1);

/// Buffer of one CPU.
struct Cpu {
    number: u32,
    /// Which instance.
    recorder: u32,
    /// Where the kernel counts what it lost.
    stats: PathBuf,
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
    started: Instant,
    told: Instant,
    vanished: Vec<String>,
}

impl Capture {
    /// Opens the buffers, and writes the head of the file.
    pub fn begin(
        instances: &[Files],
        order: &Order,
        decoder: RecordDecoder,
        layout: PageLayout,
    ) -> Result<Self> {
        let mut cpus = Vec::new();
        for (recorder, instance) in (0..).zip(instances) {
            for number in instance.cpus() {
                let folder = PathBuf::from(format!("per_cpu/cpu{number}"));
                let pipe = instance.open(&folder.join("trace_pipe_raw"))?;
                let stats = instance.0.join(folder).join("stats");
                cpus.push(Cpu { number, recorder, stats, pipe, last_ns: 0 });
            }
        }
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
            started: now,
            told: now,
            vanished: Vec::new(),
        };
        capture.file.push(&wall_clock());
        capture.file.end_block();
        Ok(capture)
    }

    /// Whether there is still something to record, and somewhere to write it.
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
            let lost = lost(&self.cpus).values().sum();
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
        let Cpu { number, recorder, last_ns, .. } = &mut self.cpus[index];
        let mut page = Page::new(&self.page[..count], &self.layout);
        if page.lost() != LostBefore::None {
            self.merger.push_of(*recorder, lost_note(page.lost(), page.time_ns(), *number));
        }
        let mut note = None;
        for record in page.by_ref() {
            let mut event = Event::default();
            let place = (record.time_ns, *number);
            if self.decoder.read(record.content, place, &mut event, &mut note) {
                if event.action == Action::Point && self.decoder.is_first_of(event.pid) {
                    note = named(&event);
                }
                if let Some(note) = note.take() {
                    self.merger.push_of(*recorder, note);
                }
                self.merger.push_of(*recorder, event);
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
        let count = std::fs::read_to_string(&cpu.stats).map_or(0, |text| lost_in(&text));
        if count > 0 {
            *all.entry(cpu.number).or_default() += count;
        }
    }
    all
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

/// The note of a process's name, if the process is still there; no event of other layers has it.
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
    fn losses_of_all_kinds_are_counted() {
        let stats = "entries: 292\noverrun: 60\ncommit overrun: 2\nbytes: 19368\n\
            oldest event ts:  2580.829013\ndropped events: 1\nread events: 9\n";
        assert_eq!(lost_in(stats), 63);
        assert_eq!(lost_in(""), 0);
    }

    #[test]
    fn a_gap_is_a_message_of_its_cpu() {
        let event = lost_note(LostBefore::Count(60), 7, 3);
        let text = String::from_utf8(event.payload).unwrap();
        assert!(text.contains("60 events of CPU 3"), "{text}");
        assert!((event.time_ns, event.cpu, event.action) == (7, 3, Action::Message));
    }
}
