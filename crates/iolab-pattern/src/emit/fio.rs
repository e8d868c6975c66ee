//! Job files of fio, and studies of such jobs.

use std::collections::HashSet;
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
    let (mut names, mut end) = (HashSet::from(["global".to_owned()]), None);
    let mut found: Vec<(&FilePattern, Jobs)> = Vec::with_capacity(files.len());
    for file in files {
        let mut jobs = Jobs::of(file, &unused(&plain_name(file), &mut names), making);
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
        let with: Vec<String> = found
            .iter()
            .filter(|(before, _)| take_turns(before, file))
            .map(|(before, _)| before.shown_name())
            .collect();
        if let [with, others @ ..] = with.as_slice() {
            let others = if others.is_empty() { "" } else { " and others" };
            jobs.lose([format!(
                "one process used it and {with}{others} in turn: here they are used at once"
            )]);
        }
        let ends = begins.zip(file.lasted_ns).map(|(begin, lasted)| begin.saturating_add(lasted));
        end = end.max(ends);
        found.push((file, jobs));
    }
    found
}

/// True if one task used two files, the second before it was done with the first.
fn take_turns(before: &FilePattern, file: &FilePattern) -> bool {
    let end = before.begins_ns.zip(before.lasted_ns).map(|(begin, lasted)| begin + lasted);
    let is_one = file.only_task.is_some() && file.only_task == before.only_task;
    is_one && file.begins_ns.zip(end).is_some_and(|(begins, end)| begins < end)
}

/// A name that no other file has.
pub fn unused(name: &str, names: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|one| !names.contains(one));
    let free = free.unwrap_or_default();
    names.insert(free.clone());
    free
}

/// The name of a file without its folders and without what a section's name cannot have.
pub fn plain_name(file: &FilePattern) -> String {
    let last = file.name.rsplit('/').find(|part| !part.is_empty()).unwrap_or("file");
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    last.chars().take(NAME_MAX).map(|one| if is_plain(one) { one } else { '-' }).collect()
}
