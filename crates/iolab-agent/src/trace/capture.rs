//! The reading child: one order on standard input, the trace on standard output, words on standard
//! error.
//!
//! It is a process of its own: it can be killed without the journal, and its CPU time is the cost
//! of recording. It ends when its input ends. The trace is written block by block, so a killed one
//! leaves a file that is readable up to its last block. Left out: making and removing the instance,
//! which is the agent's.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use iolab_trace::ring::{
    Description, EVENTS, PageLayout, RecordDecoder, TracePoint, check_event_header,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use std::os::fd::AsFd as _;

use super::capture_loop::Capture;
use super::feeds;
use super::layers::{self, Chosen};
use super::order::{Order, Said};
use super::paths::Paths;
use super::processes;
use super::tally;
use super::tracefs::Tracefs;
use crate::error::{Error, Result};
use crate::lines::LineReader;
use crate::protocol::{Backend, EventSet};
use crate::sys;

/// Pause between readings of the buffers: 8 MiB fill in some 200 ms at the utmost.
const PAUSE: Duration = Duration::from_millis(40);
/// The same while there is much to read.
const SHORT_PAUSE: Duration = Duration::from_millis(4);
/// The same where names of files are looked up: a file that is closed sooner has none.
const LOOK_PAUSE: Duration = Duration::from_millis(1);
/// Longest description of the kernel that is read.
const DESCRIPTION_BYTES_MAX: usize = 1 << 16;
/// Time to wait for the order.
const PATIENCE: Duration = Duration::from_secs(10);

/// Entry point of `iolab-agent capture`.
pub fn main() -> ExitCode {
    let mut input = LineReader::new(sys::standard_input());
    let said = match capture(&mut input) {
        Ok(said) => said,
        Err(error) => Said::Failed { what: error.to_string(), hint: error.hint() },
    };
    let code = u8::from(matches!(said, Said::Failed { .. }));
    say(&said);
    ExitCode::from(code)
}

/// Says something to the agent; one that is gone hears nothing.
pub(super) fn say(said: &Said) {
    let line = serde_json::to_string(said).expect("it has only text keys");
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn capture(input: &mut LineReader) -> Result<Said> {
    wait(input, PATIENCE);
    let line = input.next_line().ok_or_else(|| Error::protocol("no order"))?;
    let order: Order =
        serde_json::from_str(&line).map_err(|error| Error::protocol(error.to_string()))?;
    let tracefs = Tracefs::open()?;
    let files = |name: &String| Files(tracefs.root().join("instances").join(name));
    let names = [Some(&order.instance), order.process_instance.as_ref()];
    let instances: Vec<Files> = names.into_iter().flatten().map(files).collect();
    let (mut decoder, layout, mut chosen) = describe(tracefs.root(), &order)?;
    chosen.extend(layers::learn(tracefs.root(), &order, &mut decoder)?);
    let is_perf = order.backend == Backend::Perf;
    let instances = if is_perf { Vec::new() } else { instances };
    // Before the trace points, which have their events of a call behind the path then.
    let paths = order.has_file_calls().then(|| Paths::watch(tracefs.root()));
    set_up(&instances, &order, &chosen)?;
    let _guards: Vec<Option<File>> = instances.iter().map(guard).collect();
    let begun = if order.awaits_process { instances.len().min(1) } else { instances.len() };
    let cpus = if is_perf { feeds::rings(&order, &chosen)? } else { feeds::pipes(&instances)? };
    let mut capture = Capture::begin(cpus, &order, decoder, layout, paths)?;
    sys::run_before_others();
    capture.note_descriptors(&order.pids);
    switch(&instances[..begun], "1")?;
    capture.switch_rings(true)?;
    say(&Said::Ready);
    let mut is_busy = false;
    while capture.goes_on() {
        wait(input, pause(is_busy, &order));
        while let Some(pid) = input.next_line() {
            let pid = pid.trim().parse().map_err(|_| Error::protocol("that is no process"))?;
            follow_later(&instances, &mut capture, &chosen, pid)?;
            say(&Said::Follows);
        }
        if input.is_at_end() {
            break;
        }
        is_busy = capture.round();
    }
    switch(&instances, "0")?;
    capture.switch_rings(false)?;
    Ok(Said::Recorded(capture.finish()))
}

/// Time until the buffers are read again.
fn pause(is_busy: bool, order: &Order) -> Duration {
    match () {
        () if order.has_file_calls() => LOOK_PAUSE,
        () if is_busy => SHORT_PAUSE,
        () => PAUSE,
    }
}

/// Begins or ends recording in all instances.
fn switch(instances: &[Files], value: &str) -> Result<()> {
    instances.iter().try_for_each(|instance| instance.write("tracing_on", value))
}

fn wait(input: &mut LineReader, timeout: Duration) {
    {
        let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::from(timeout.as_millis() as u16));
    }
    input.fill();
}

/// Files of an instance.
#[derive(Debug)]
pub(super) struct Files(pub PathBuf);

impl Files {
    /// Writes a setting.
    pub fn write(&self, name: &str, value: &str) -> Result<()> {
        let path = self.0.join(name);
        fs::write(&path, value).map_err(|error| Error::io("write", shown(&path), error))
    }

    /// Opens a file without waiting for its content.
    pub fn open(&self, name: &Path) -> Result<File> {
        let path = self.0.join(name);
        let mut options = OpenOptions::new();
        let opened = options.read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        opened.map_err(|error| Error::io("open", shown(&path), error))
    }

    /// CPUs that have a buffer.
    pub fn cpus(&self) -> Vec<u32> {
        let Ok(listing) = fs::read_dir(self.0.join("per_cpu")) else { return Vec::new() };
        let names = listing.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let numbers = names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok());
        let mut cpus: Vec<u32> = numbers.collect();
        cpus.sort_unstable();
        cpus
    }
}

/// A path as others would find it.
fn shown(path: &Path) -> PathBuf {
    let at = path.components().position(|part| part.as_os_str() == "instances");
    let rest: PathBuf = path.components().skip(at.unwrap_or(0)).collect();
    Path::new("/sys/kernel/tracing").join(rest)
}

/// Trace points of the kernel that are to be recorded.
fn points<'a>(root: &Path, order: &'a Order) -> impl Iterator<Item = (&'static str, String)> + 'a {
    let is_wanted = |point: &TracePoint| match order.events {
        _ if order.devices.is_empty() => false,
        _ if order.is_live => tally::POINTS.contains(&point.name),
        EventSet::Full => true,
        EventSet::IssueComplete => point.is_basic,
    };
    let wanted = EVENTS.iter().filter(move |point| is_wanted(point));
    let folder = root.join("events/block");
    wanted.filter_map(move |point| {
        let text = fs::read_to_string(folder.join(point.name).join("format")).ok()?;
        Some((point.name, text))
    })
}

/// The kernel's own description of its pages and events.
fn describe(root: &Path, order: &Order) -> Result<(RecordDecoder, PageLayout, Vec<Chosen>)> {
    let read = |name: &str| {
        let path = root.join(name);
        read_at_once(&path).map_err(|error| Error::io("read", shown(&path), error))
    };
    let unknown = |error: iolab_trace::Error| layers::unknown(&error);
    check_event_header(&read("events/header_event")?).map_err(unknown)?;
    let layout = PageLayout::parse(&read("events/header_page")?).map_err(unknown)?;
    let mut decoder = RecordDecoder::default();
    let mut chosen = Vec::new();
    for (name, text) in points(root, order) {
        let folder = format!("events/block/{name}");
        let description =
            Description::parse(&format!("{folder}/format"), &text).map_err(unknown)?;
        if decoder.learn(&description).map_err(unknown)? {
            let (id, filter) = (description.id, order.block_filter());
            chosen.push(Chosen { folder, id, filter, is_of_processes: false });
        }
    }
    if chosen.is_empty() && !order.devices.is_empty() {
        return Err(Error::failed(
            "this kernel has no trace points of block devices",
            "use a kernel with CONFIG_BLK_DEV_IO_TRACE, or watch the counters: iolab iostat",
        ));
    }
    Ok((decoder, layout, chosen))
}

/// Content of a file that gives nothing behind the first piece that is read, however small that was
/// (`show_header` of Linux `kernel/trace/trace_events.c`).
fn read_at_once(path: &Path) -> std::io::Result<String> {
    let mut bytes = vec![0; DESCRIPTION_BYTES_MAX];
    let count = File::open(path)?.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// Clock, memory and filtered events, all of this instance alone; nothing is recorded yet.
fn set_up(instances: &[Files], order: &Order, chosen: &[Chosen]) -> Result<()> {
    for instance in instances {
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        let kibibytes = (order.buffer_bytes >> 10).max(64);
        instance.write("buffer_size_kb", &kibibytes.to_string())?;
    }
    let Some(instance) = instances.first() else { return Ok(()) };
    if let Some(instance) = instances.get(1).filter(|_| !order.pids.is_empty()) {
        follow(instance, &order.pids)?;
        // One of them may have ended, and its number be another's: looked at again, now that the
        // kernel would notice its end.
        processes::check(&order.pids, order.bound_uid)?;
    }
    for Chosen { folder, filter, is_of_processes, .. } in chosen {
        let instance = instances.get(usize::from(*is_of_processes)).unwrap_or(instance);
        if !filter.is_empty() {
            instance.write(&format!("{folder}/filter"), filter)?;
        }
        instance.write(&format!("{folder}/enable"), "1")?;
    }
    Ok(())
}

/// Restricts an instance to processes and what they start; the kernel takes those out that end.
fn follow(instance: &Files, pids: &[u32]) -> Result<()> {
    instance.write("options/event-fork", "1")?;
    let threads = processes::threads_of(pids);
    let told: Vec<String> = threads.iter().map(u32::to_string).collect();
    instance.write("set_event_pid", &told.join(" "))
}

/// Records a process from now on: the agent's own child, which waits meanwhile.
fn follow_later(
    instances: &[Files],
    capture: &mut Capture,
    chosen: &[Chosen],
    pid: u32,
) -> Result<()> {
    capture.note_descriptors(&[pid]);
    capture.follow(chosen, pid)?;
    let Some(instance) = instances.get(1) else { return Ok(()) };
    follow(instance, &[pid])?;
    instance.write("tracing_on", "1")
}

/// Held open: when the last holder is gone, however it ended, the kernel stops recording here and
/// frees the memory.
fn guard(instance: &Files) -> Option<File> {
    instance.write("options/disable_on_free", "1").ok()?;
    OpenOptions::new().write(true).open(instance.0.join("free_buffer")).ok()
}
