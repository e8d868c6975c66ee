//! Job files of fio, and studies of such jobs.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use iolab_trace::stages::text::duration;

use super::EmittedWorkload;
use super::bound::LengthBound;
use super::jobs::{Job, Jobs, Making};
use super::shares;
use crate::report::{FilePattern, PatternReport};
use crate::stream::pauses::AccessPauses;

/// Characters of a name that are kept: what is added makes no more than the 255 bytes of a file
/// system.
const NAME_MAX: usize = 200;

/// A job file.
pub fn job_file(report: &PatternReport) -> EmittedWorkload {
    let mut made = EmittedWorkload {
        text: String::from(
            "; Run it with: iolab fio FILE, or fio FILE\n\
             ; Remove its files (*.pattern) before it runs again, else what grows is overwritten\n",
        ),
        ..EmittedWorkload::default()
    };
    for (file, Jobs { jobs, losses, .. }) in all_jobs(report, shares::WHOLE) {
        made.begin_file(";", file, &losses);
        made.files += usize::from(!jobs.is_empty());
        for job in jobs {
            let _ = writeln!(made.text, "[{}]", job.name);
            for (name, value) in job.options {
                let equals = if value.is_empty() { "" } else { "=" };
                let _ = writeln!(made.text, "{name}{equals}{value}");
            }
        }
    }
    made
}

/// A study file.
pub fn study(report: &PatternReport) -> EmittedWorkload {
    let jobs = all_jobs(report, shares::FINE);
    let text = String::from(
        "# Run it with: iolab run FILE\n\
         name = \"pattern\"\n\
         testbed = \"loop:SIZE\"\n\
         \n\
         [factors]\n\
         scheduler = [\"none\", \"mq-deadline\", \"bfq\"]\n\
         \n\
         [settings]\n\
         fs = \"ext4\"\n",
    )
    .replace("SIZE", &space(&jobs));
    let mut made = EmittedWorkload { text, ..EmittedWorkload::default() };
    // One workload: its files are used at once, or one after the other, as they were.
    let mut words = EmittedWorkload::default();
    for (file, Jobs { jobs, losses, .. }) in jobs {
        words.begin_file("#", file, &losses);
        words.files += usize::from(!jobs.is_empty());
        for job in jobs {
            let options: Vec<String> = job.options.iter().map(word).collect();
            let _ = writeln!(words.text, "  \"--name={}\", {},", job.name, options.join(", "));
        }
    }
    if words.files > 0 {
        let _ =
            write!(made.text, "\n[[workloads]]\ndialect = \"fio\"\ncommand = [{}]\n", words.text);
    }
    (made.losses, made.files) = (words.losses, words.files);
    made
}

fn word((name, value): &(&'static str, String)) -> String {
    if value.is_empty() { format!("\"--{name}\"") } else { format!("\"--{name}={value}\"") }
}

/// Size of a device on which all files have room twice, with a file system.
fn space(files: &[(&FilePattern, Jobs)]) -> String {
    let number = |job: &Job, wanted: &str| {
        let found = job.options.iter().find(|(name, _)| *name == wanted);
        found.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let bytes = |job: &Job| {
        let shares =
            number(job, "offset_increment").and_then(|_| number(job, "numjobs")).unwrap_or(1);
        let size = number(job, "size").unwrap_or(0).saturating_mul(shares);
        size.saturating_add(number(job, "offset").unwrap_or(0))
    };
    let lengths = files.iter().map(|(_, jobs)| jobs.jobs.iter().map(bytes).max().unwrap_or(0));
    let bytes = lengths.fold(0_u64, u64::saturating_add).saturating_mul(2);
    format!("{}g", bytes.div_ceil(1 << 30).max(1))
}

/// Files in the order in which the program came to them, with their jobs. A file that it came to
/// when it was done with those before waits for these.
fn all_jobs(report: &PatternReport, steps: u64) -> Vec<(&FilePattern, Jobs)> {
    let making = Making { bound: LengthBound::of(report), steps };
    let mut files: Vec<&FilePattern> = report.files.iter().collect();
    files.sort_by_key(|file| file.begins_ns);
    let (mut names, mut end) = (UsedNames::default(), None);
    let mut turns = Turns::default();
    let mut found: Vec<(&FilePattern, Jobs)> = Vec::with_capacity(files.len());
    for file in files {
        let mut jobs = Jobs::of(file, &names.unused(&plain_name(file)), making);
        let begins = file.begins_ns;
        let is_behind = end.is_some() && begins >= end;
        if let (Some(first), true) = (jobs.jobs.first_mut(), is_behind) {
            first.options.push(("stonewall", String::new()));
        }
        // A wall of one file is one of all.
        if !is_behind && found.last().is_some_and(|(_, before)| before.is_in_parts) {
            jobs.lose([
                "it was used beside the file before it: here only beside its last part".to_owned()
            ]);
        } else if jobs.is_in_parts && !is_behind && !found.is_empty() {
            jobs.lose([
                "its parts followed each other: here they wait for the files before it, too"
                    .to_owned(),
            ]);
        }
        let idle = begins.zip(end).map_or(0, |(begins, end)| begins.saturating_sub(end));
        let accesses = file.reads.count + file.writes.count;
        if AccessPauses::of_one(idle).are_told(file.lasted_ns, accesses) {
            jobs.lose([format!("a pause of {} before it", duration(idle as f64))]);
        }
        jobs.lose(turns.with(file).map(|with| {
            format!("one process used it and {with} in turn: here they are used at once")
        }));
        let ends = begins.zip(file.lasted_ns).map(|(begin, lasted)| begin.saturating_add(lasted));
        end = end.max(ends);
        found.push((file, jobs));
    }
    found
}

/// Files that one task uses in turn: of each task the one that it was done with last.
#[derive(Default)]
struct Turns(HashMap<u32, (u64, String)>);

impl Turns {
    /// Name of a file before this one that its only task had not done with.
    fn with(&mut self, file: &FilePattern) -> Option<String> {
        let (task, begins) = (file.only_task?, file.begins_ns?);
        let end = begins.saturating_add(file.lasted_ns?);
        let before = self.0.get(&task).cloned();
        if before.as_ref().is_none_or(|(before, _)| *before < end) {
            self.0.insert(task, (end, file.shown_name()));
        }
        before.filter(|(end, _)| begins < *end).map(|(_, name)| name)
    }
}

/// Names that files have.
#[derive(Default)]
pub struct UsedNames {
    names: HashSet<String>,
    /// Number from which on those with a number may be free.
    next: HashMap<String, u64>,
}

impl UsedNames {
    /// A name that no other file has.
    pub fn unused(&mut self, name: &str) -> String {
        if self.names.insert(name.to_owned()) {
            return name.to_owned();
        }
        let next = self.next.entry(name.to_owned()).or_insert(2);
        loop {
            let numbered = format!("{name}-{next}");
            *next += 1;
            if self.names.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// The name of a file without its folders and without what a section's name cannot have.
pub fn plain_name(file: &FilePattern) -> String {
    let last = file.name.rsplit('/').find(|part| !part.is_empty()).unwrap_or("file");
    // fio 3.33 takes every section whose name begins so for the one of all jobs.
    let front = if last.starts_with("global") { "file-" } else { "" };
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    let plain = last.chars().take(NAME_MAX).map(|one| if is_plain(one) { one } else { '-' });
    front.chars().chain(plain).collect()
}
