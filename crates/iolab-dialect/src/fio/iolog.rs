//! Recordings that a job does again, `read_iolog`: fio's text logs and recordings by blktrace(8).
//!
//! The job becomes a recorded stream ([`Recorded`]): the log is read once for its sizes and names,
//! and stays in its file. Left out: logs that are merged.

use core::num::NonZeroU64;
use std::path::PathBuf;

use iolab_model::{Bytes, Ns, blktrace};
use iolab_workload::program::{
    Deed, Limits, Node, Pace, Program, Recorded, RecordedContent, RecordedFormat, RecordedReader,
};

use super::host::Host;
use super::job::{Job, Rw};
use super::parse::Typing;
use super::value::Amount as Size;
use crate::diagnostic::{Diagnostic, Problem};

/// Recorded speed in percent.
const USUAL_PERCENT: u64 = 100;
/// Deeds that the values of `replay_skip` leave out.
const SKIPS: [(&str, &[Deed]); 4] = [
    ("read", &[Deed::Read]),
    ("write", &[Deed::Write]),
    ("trim", &[Deed::Discard]),
    ("sync", &[Deed::Fsync, Deed::Fdatasync]),
];

/// Options of replays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `read_iolog`.
    pub file: Option<String>,
    /// `replay_no_stall`.
    pub has_no_pauses: bool,
    /// `replay_time_scale` in percent; absent: the recorded speed.
    pub time_percent: Option<u64>,
    /// `replay_redirect`.
    pub redirect: Option<String>,
    /// `replay_skip`.
    pub skip: Vec<Deed>,
    /// `replay_scale`; absent: 1.
    pub divisor: Option<NonZeroU64>,
    /// `replay_align`; absent: 1.
    pub unit_bytes: Option<NonZeroU64>,
    /// The recording, once its file is read.
    pub recorded: Option<Recorded>,
}

/// Deeds that the directions of `replay_skip` name.
pub fn skipped(text: &str) -> Result<Vec<Deed>, Problem> {
    let mut found = Vec::new();
    for name in text.split(',') {
        let known = SKIPS.iter().find(|(known, _)| *known == name);
        let Some((_, deeds)) = known else {
            let what = format!("replay_skip has no value '{name}'");
            return Err(Problem::new(what, "use read, write, trim, sync"));
        };
        found.extend_from_slice(deeds);
    }
    Ok(found)
}

/// Makes the names of recordings whole, so that the words mean the same elsewhere.
pub fn anchor(typing: &mut Typing, host: &impl Host) {
    let jobs = typing.jobs.iter_mut().flat_map(|job| &mut job.typed);
    for typed in jobs.chain(&mut typing.globals).filter(|typed| typed.row.name == "read_iolog") {
        if let Some(text) = &mut typed.text {
            *text = whole(text, host).to_string_lossy().into_owned();
        }
    }
}

fn whole(name: &str, host: &impl Host) -> PathBuf {
    PathBuf::from(host.directory()).join(name)
}

/// Reads the recordings that jobs replay, and makes of each job what its recording says.
pub fn load(typing: &mut Typing, words: &[String], host: &impl Host) -> Result<(), Diagnostic> {
    let globals = typing.globals.clone();
    for job in typing.jobs.iter_mut().filter(|job| job.replay.file.is_some()) {
        let told = take(job, host);
        told.map_err(|problem| job.place_of("read_iolog", &globals).tell(words, problem))?;
    }
    Ok(())
}

fn take(job: &mut Job, host: &impl Host) -> Result<(), Problem> {
    let path = job.replay.file.clone().unwrap_or_default();
    let remedy = "name a log of fio's write_iolog, or of blktrace";
    let wrong = |why: String| Problem::new(format!("{path}{why}"), remedy);
    let unreadable = |why: String| wrong(format!(" cannot be read: {why}"));
    let mut from = host.open(&path).map_err(|why| wrong(format!(": {why}")))?;
    let head = from.fill_buf().map_err(|error| unreadable(error.to_string()))?;
    let is_of_devices = blktrace::is_swapped(head).is_some();
    if is_of_devices && job.replay.redirect.is_none() {
        let what = format!("{path} is a recording of a device, whose data a replay overwrites");
        return Err(Problem::new(
            what,
            "write replay_redirect=FILE: what is to be read and written",
        ));
    }
    let mut recorded = asked(job, whole(&path, host), is_of_devices);
    let mut reader = RecordedReader::new(from, &recorded);
    let content = RecordedContent::of_all(&mut reader).map_err(|why| wrong(format!(", {why}")))?;
    if content.most_bytes == Bytes(0) {
        return Err(wrong(" has no transfer".to_owned()));
    }
    let does = |deed| content.does.contains(&deed);
    job.rw = match (does(Deed::Read), does(Deed::Write) || does(Deed::Discard)) {
        (true, true) => Rw::Mixed,
        (true, false) => Rw::Read,
        (false, _) => Rw::Write,
    };
    job.filename = match &job.replay.redirect {
        Some(file) => vec![file.clone()],
        None => reader.names().map(std::borrow::Cow::into_owned).collect(),
    };
    let all = content.end_bytes.0.saturating_mul(content.files);
    (job.bs, job.bsrange, job.bssplit) = ([content.least_bytes.0; 3], [None; 3], None);
    (job.size, job.io_size, job.number_ios) = (Some(Size::Bytes(all)), None, 0);
    recorded.content = Some(content);
    job.replay.recorded = Some(recorded);
    Ok(())
}

/// The recording of a job, and what of it is done.
fn asked(job: &Job, file: PathBuf, is_of_devices: bool) -> Recorded {
    let format = if is_of_devices { RecordedFormat::Blktrace } else { RecordedFormat::Iolog };
    let asked = &job.replay;
    Recorded {
        skip: asked.skip.clone(),
        at_divisor: asked.divisor.unwrap_or(NonZeroU64::MIN),
        at_unit_bytes: asked.unit_bytes.unwrap_or(NonZeroU64::MIN),
        is_one_file: asked.redirect.is_some(),
        ..Recorded::plain(file, format, "")
    }
}

/// The recorded program of a job, on the files of a set; `opened` is a step of the job.
pub fn program(job: &Job, set: &str, opened: impl Fn(Deed) -> Node) -> Program {
    let recorded = job.replay.recorded.clone().map(|own| Recorded { set: set.to_owned(), ..own });
    let does = recorded.as_ref().and_then(|own| own.content.as_ref()).map(|content| &content.does);
    let percent = job.replay.time_percent.unwrap_or(USUAL_PERCENT);
    let pace = if job.replay.has_no_pauses {
        Pace::Closed
    } else {
        Pace::Recorded { speed: percent as f64 / USUAL_PERCENT as f64 }
    };
    let time_ns = (job.runtime_ns > 0).then_some(Ns(job.runtime_ns));
    let limit = Limits { passes: Some(job.loops), time_ns, ..Limits::default() };
    let steps = does.into_iter().flatten().map(|does| opened(*does)).collect();
    let mut program = Program { steps, limit, pace, recorded, ..Program::default() };
    program.complete_recorded();
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_that_are_skipped_are_known() {
        assert_eq!(skipped("read,sync").unwrap(), [Deed::Read, Deed::Fsync, Deed::Fdatasync]);
        assert!(skipped("all").is_err());
    }
}
