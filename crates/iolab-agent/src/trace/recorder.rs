//! The agent's side of a recording: the instance and the child that reads it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::instance::Instance;
use super::order::{Order, Said};
use crate::error::{Error, Result};
use crate::lines::LineReader;
use crate::machine::{Machine, command};
use crate::protocol::{Backend, LiveSecond, RecordingResult, RecordingSoFar};
use crate::sys;

/// The command by which the agent starts the child.
const NAME: &str = "capture";
/// Time that the child may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(250);
const COMPLAINTS_MAX: usize = 8;

/// A recording that is under way.
#[derive(Debug)]
pub struct Recorder {
    instances: Vec<Instance>,
    child: Child,
    /// The child ends when this is closed.
    input: Option<ChildStdin>,
    words: LineReader,
    is_ready: bool,
    /// True until the process is named that is to be followed, if one is awaited.
    awaits_process: bool,
    last: Option<Said>,
    complaints: VecDeque<String>,
    seconds: Vec<LiveSecond>,
}

impl Recorder {
    /// Begins to record into `output`; none in a dry run. Events are recorded when it returns.
    ///
    /// # Errors
    ///
    /// It cannot begin; nothing is left.
    pub fn start(
        machine: &mut Machine,
        run: &str,
        order: Order,
        output: Option<File>,
    ) -> Result<Option<Self>> {
        let mut order = order;
        let Some(mut instances) = first_instance(machine, run, &mut order)? else {
            return Ok(None);
        };
        let Some(output) = output else { return Ok(None) };
        let awaits_process = order.awaits_process && order.wants_processes();
        let (child, input, words) = match spawn_in(&mut instances, machine, run, order, output) {
            Ok(parts) => parts,
            Err(error) => {
                remove_all(instances, machine)?;
                return Err(error);
            }
        };
        let input = Some(input);
        let mut recorder = Self {
            instances,
            child,
            input,
            words,
            is_ready: false,
            awaits_process,
            last: None,
            complaints: VecDeque::new(),
            seconds: Vec::new(),
        };
        recorder.listen_until(|recorder| recorder.is_ready);
        if recorder.is_ready {
            return Ok(Some(recorder));
        }
        match recorder.finish(machine) {
            Err(error) => Err(error),
            Ok(_) => Err(Error::failed("the recorder did not begin", "try again")),
        }
    }

    /// Records a process and what it starts from now on, if one is awaited; it must not begin its
    /// work before this returns.
    ///
    /// # Errors
    ///
    /// It cannot be followed.
    pub fn follow(&mut self, pid: u32) -> Result<()> {
        let Some(input) = self.input.as_mut().filter(|_| self.awaits_process) else {
            return Ok(());
        };
        // A child that is dead says why, or how it died.
        let _ = input.write_all(format!("{pid}\n").as_bytes());
        self.listen_until(|recorder| !recorder.awaits_process);
        if self.awaits_process {
            let why = match &self.last {
                Some(Said::Failed { what, .. }) => what.as_str(),
                _ => "the recorder does not answer",
            };
            let what = format!("the calls of the measuring process cannot be recorded: {why}");
            return Err(Error::failed(what, "record block events alone (trace = true)"));
        }
        Ok(())
    }

    /// Next line of the child.
    pub fn words(&mut self) -> &mut LineReader {
        &mut self.words
    }

    /// Takes what the child has said; how far it is, if it said so.
    pub fn listen(&mut self) -> Option<RecordingSoFar> {
        self.words.fill();
        let mut progress = None;
        while let Some(line) = self.words.next_line() {
            match serde_json::from_str::<Said>(&line) {
                Ok(Said::Ready) => self.is_ready = true,
                Ok(Said::Follows) => self.awaits_process = false,
                Ok(Said::Progress(so_far)) => progress = Some(so_far),
                Ok(Said::Second(second)) => self.seconds.push(second),
                Ok(said) => self.last = Some(said),
                Err(_) => {
                    self.complaints.push_back(line);
                    if self.complaints.len() > COMPLAINTS_MAX {
                        self.complaints.pop_front();
                    }
                }
            }
        }
        progress
    }

    /// Takes the seconds that the child has told, if devices are watched.
    pub fn take_seconds(&mut self) -> Vec<LiveSecond> {
        std::mem::take(&mut self.seconds)
    }

    /// Tell whether the child has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.last.is_some() || self.words.is_finished()
    }

    /// Listens until something is so, the child has ended, or it has taken too long.
    fn listen_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) && !self.has_ended() && Instant::now() < deadline {
            self.wait(POLL);
            self.listen();
        }
    }

    fn wait(&self, timeout: Duration) {
        let mut fds = [PollFd::new(self.words.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::from(timeout.as_millis() as u16));
    }

    /// Ends the recording, and removes the instance.
    ///
    /// # Errors
    ///
    /// The child failed, or the instance could not be removed.
    pub fn finish(&mut self, machine: &mut Machine) -> Result<RecordingResult> {
        drop(self.input.take());
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended() && Instant::now() < deadline {
            self.wait(POLL);
            self.listen();
        }
        if self.last.is_none() {
            let _ = self.child.kill();
        }
        let status = self.child.wait();
        self.listen();
        remove_all(std::mem::take(&mut self.instances), machine)?;
        match self.last.take() {
            Some(Said::Recorded(recorded)) => Ok(recorded),
            Some(Said::Failed { what, hint }) => Err(Error::failed(what, hint)),
            _ => {
                let how = status.map_or_else(|error| error.to_string(), |it| it.to_string());
                let said = self.complaints.make_contiguous().join(" | ");
                Err(Error::failed(
                    format!("the recorder ended without a result ({how}) {said}").trim_end(),
                    "what it wrote can be read up to the last block; try again",
                ))
            }
        }
    }
}

type Parts = (Child, ChildStdin, LineReader);

/// The instance for devices; none where perf events are recorded; `None` in a dry run.
///
/// # Errors
///
/// There is no way to record.
fn first_instance(
    machine: &mut Machine,
    run: &str,
    order: &mut Order,
) -> Result<Option<Vec<Instance>>> {
    let why = if order.backend == Backend::Perf {
        "as asked for".to_owned()
    } else {
        match Instance::create(machine, run) {
            Ok(instance) => return Ok(instance.map(|it| vec![it])),
            Err(error) if order.backend == Backend::Auto && is_closed(&error) => error.to_string(),
            Err(error) => return Err(error),
        }
    };
    if order.devices.is_empty() {
        let what = format!("calls of processes alone are recorded by tracefs only ({why})");
        return Err(Error::failed(what, "name a device, too, or use strace"));
    }
    order.backend = Backend::Perf;
    let told = format!("perf_event_open, rings of each CPU ({why})");
    order.facts.insert("backend".to_owned(), told);
    Ok(Some(Vec::new()))
}

/// True if tracefs is there and cannot be written, as in a container.
fn is_closed(error: &Error) -> bool {
    let codes = [libc::EROFS, libc::EPERM, libc::EACCES, libc::ENOSYS, libc::ENOENT];
    matches!(error, Error::Io { source, .. }
        if source.raw_os_error().is_some_and(|code| codes.contains(&code)))
}

/// Makes what instances are lacking, and starts the child.
fn spawn_in(
    instances: &mut Vec<Instance>,
    machine: &mut Machine,
    run: &str,
    mut order: Order,
    output: File,
) -> Result<Parts> {
    if let Some(first) = instances.first() {
        order.instance.clone_from(&first.name);
    }
    if order.backend != Backend::Perf
        && order.wants_processes()
        && let Some(instance) = Instance::create(machine, run)?
    {
        order.process_instance = Some(instance.name.clone());
        instances.push(instance);
    }
    spawn(&order, output)
}

/// Removes all; one that cannot be removed does not keep the others.
fn remove_all(instances: Vec<Instance>, machine: &mut Machine) -> Result<()> {
    let removed = instances.into_iter().map(|instance| instance.remove(machine));
    removed.fold(Ok(()), Result::and)
}

/// Starts the child and tells it what to do; what it hears, and what it says.
fn spawn(order: &Order, output: File) -> Result<Parts> {
    let mut command = command("/proc/self/exe");
    command
        .arg(NAME)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::piped())
        .process_group(0);
    sys::die_with_parent(&mut command);
    let mut child = command.spawn().map_err(|error| Error::io("start", "the recorder", error))?;
    let mut line = serde_json::to_string(order).expect("an order has only text keys");
    line.push('\n');
    let mut input = child.stdin.take().expect("it was piped");
    // A child that is dead already tells more by how it died.
    let _ = input.write_all(line.as_bytes());
    let words = LineReader::new(OwnedFd::from(child.stderr.take().expect("it was piped")));
    Ok((child, input, words))
}
