//! The trace of a simulated trial: written while it is simulated, so that memory does not grow with
//! its length. The file is the one that the front end made, as for a recorded trial.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;

use iolab_drive::record::Warning;
use iolab_model::TraceEvent;
use iolab_protocol::agent::{EventSet, OutputFile, RecordingResult, TraceOfTrial, TrialTrace};
use iolab_trace::simulated::EventFile;
use iolab_trace::source::Facts;

/// A trace that is being written.
pub struct SimulatedTrace {
    recording: EventFile,
    output: File,
    bytes: u64,
    problem: Option<String>,
}

impl SimulatedTrace {
    /// Begins to write to the file of a trial.
    ///
    /// # Errors
    ///
    /// It is not the empty file that the front end made, or cannot be opened.
    pub fn begin(asked: &TrialTrace, facts: &Facts, queues: u16) -> Result<Self, String> {
        let output = opened(&asked.output).map_err(|error| {
            format!("{} cannot be written: {error}", asked.output.path.display())
        })?;
        let is_basic = asked.events == EventSet::IssueComplete;
        let recording =
            EventFile::begin(facts, queues, is_basic).map_err(|error| error.to_string())?;
        Ok(Self { recording, output, bytes: 0, problem: None })
    }

    /// Adds events; what cannot be written any more ends the trace, not the trial.
    pub fn add(&mut self, events: &[TraceEvent]) {
        if self.problem.is_some() {
            return;
        }
        let added = self.recording.add(events).map_err(|error| error.to_string());
        let buffer = std::mem::take(self.recording.buffer());
        self.problem = added.and_then(|()| self.write(&buffer)).err();
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.output.write_all(bytes);
        let whole = self.bytes + bytes.len() as u64;
        // A file that is full has a part of it.
        self.bytes = self.output.metadata().map_or(whole, |found| found.len());
        written.map_err(|error| error.to_string())
    }

    /// Ends the file; what is told of it in the record, and what is wrong with it.
    pub fn finish(mut self, elapsed_ns: u64) -> (TraceOfTrial, Option<Warning>) {
        let events = self.recording.events();
        if self.problem.is_none() {
            let Self { recording, mut output, mut bytes, .. } = self;
            let ended = recording.finish().map_err(|error| error.to_string()).and_then(|tail| {
                bytes += tail.len() as u64;
                output.write_all(&tail).map_err(|error| error.to_string())
            });
            return told(events, bytes, elapsed_ns, ended.err());
        }
        told(events, self.bytes, elapsed_ns, self.problem.take())
    }
}

fn told(
    events: u64,
    bytes: u64,
    elapsed_ns: u64,
    problem: Option<String>,
) -> (TraceOfTrial, Option<Warning>) {
    let warning = problem.as_ref().map(|problem| {
        Warning::new(
            "trace_ends_early",
            format!("the trace could not be written any more: {problem}"),
            "make room; its stage times are those of the part that was written",
        )
    });
    // Observing costs a simulated machine nothing.
    let (cpu_ns, lost, vanished) = (0, BTreeMap::new(), Vec::new());
    let recorded = RecordingResult { events, bytes, elapsed_ns, cpu_ns, lost, vanished, problem };
    (TraceOfTrial { recorded, file: None, sha256: None }, warning)
}

fn opened(output: &OutputFile) -> io::Result<File> {
    let file = OpenOptions::new().write(true).open(&output.path)?;
    let found = file.metadata()?;
    let is_it = (found.dev(), found.ino()) == (output.device, output.inode);
    if found.is_file() && is_it && found.len() == 0 {
        return Ok(file);
    }
    Err(io::Error::other("it was replaced or written meanwhile"))
}
