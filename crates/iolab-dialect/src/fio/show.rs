//! Form of the results of jobs.

use iolab_workload::Workload;
use iolab_workload::spec::WorkersAs;

use super::command::Format;
use super::job::{Job, Rw, Typed, Unified};
use super::logs::logs;
use super::lower::{Places, Work};
use super::parse::Typing;
use super::plan::{Command, Head, Show, UnitShow};
use super::{rules, verify_state};

/// Form of the results of a plan.
pub fn show(typing: &Typing, works: &[Work], places: &[Places], workload: &Workload) -> Show {
    let Typing { program, jobs, globals, .. } = typing;
    let formats =
        if program.formats.is_empty() { vec![Format::Normal] } else { program.formats.clone() };
    let units = works.iter().zip(places).map(|(work, place)| {
        let job = &jobs[work.unit.job];
        unit_show(job, work, place)
    });
    let mut heads: Vec<Head> = Vec::new();
    for work in works.iter().filter(|work| work.unit.first == 0) {
        heads.push(head(&jobs[work.unit.job], work.unit.group));
    }
    Show {
        output: program.output.clone(),
        formats,
        terse_version: if program.terse_version == 0 { 3 } else { program.terse_version },
        globals: valued(globals),
        are_threads: workload.workers_as == WorkersAs::Threads
            && jobs.iter().any(|job| job.is_thread),
        heads,
        units: units.collect(),
        logs: logs(jobs, works, places, &workload.phases),
        commands: jobs.iter().flat_map(commands).collect(),
        scheduler: jobs.iter().find_map(|job| job.scheduler.clone()),
        are_dumped: jobs.iter().any(|job| job.verify.is_some() && job.verifying.is_dumped),
        states: verify_state::shown(jobs, works, places, workload),
        status_ns: program.status_ns,
        eta: program.eta,
        eta_newline_ns: program.eta_newline_ns,
    }
}

/// Commands of a job, as fio names the files of their output.
fn commands(job: &Job) -> Vec<Command> {
    let asked = [(true, "prerun", &job.command_before), (false, "postrun", &job.command_after)];
    let made = asked.into_iter().filter_map(|(is_before, word, line)| {
        let file = format!("{}.{word}.txt", job.name.replace('/', "_"));
        let (job, times) = (job.name.clone(), job.clones);
        line.clone().map(|line| Command { job, is_before, line, file, times })
    });
    made.collect()
}

/// Options that have a value, as results tell them.
fn valued(typed: &[Typed]) -> Vec<(String, String)> {
    let with = |typed: &Typed| typed.text.clone().map(|text| (typed.row.name.to_owned(), text));
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, text) in typed.iter().filter_map(with) {
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = text,
            None => found.push((name, text)),
        }
    }
    found
}

fn head(job: &Job, group: u32) -> Head {
    Head {
        name: job.name.clone(),
        group,
        rw: job.rw_name.to_owned(),
        sizes: job.sizes(),
        engine: job.engine.clone(),
        depth: job.depth,
        clones: job.clones,
    }
}

/// Letter of what a job does: small where its places are random.
fn letter(job: &Job) -> &'static str {
    match job.rw {
        Rw::Read => "R",
        Rw::RandRead => "r",
        Rw::Write => "W",
        Rw::RandWrite => "w",
        Rw::Mixed => "M",
        Rw::RandMixed => "m",
        Rw::Trim | Rw::TrimWrite => "D",
        Rw::RandTrim | Rw::RandTrimWrite => "d",
    }
}

fn unit_show(job: &Job, work: &Work, place: &Places) -> UnitShow {
    let percentiles = [job.percentiles.slat, job.percentiles.clat, job.percentiles.lat];
    UnitShow {
        name: job.name.clone(),
        group: work.unit.group,
        clones: work.unit.clones,
        is_joined: work.unit.is_joined,
        letter: letter(job).to_owned(),
        options: valued(&job.typed),
        description: job.description.clone(),
        place: place.work,
        verified: place.verified,
        ramp_ns: job.ramp_ns,
        is_unified: job.unified != Unified::None,
        is_told_twice: job.unified == Unified::Both,
        depth: work.tenant.depth,
        rules: rules::shown(job, &work.tenant.manner.rules),
        is_untold: job.is_untold,
        is_null: work.engine.is_without_files(),
        name_bytes: if work.engine.is_of_names() { job.bs[0] } else { 0 },
        trim_bytes: if job.rw.trims() { job.sizes()[2].0 } else { 0 },
        space_bytes: if work.engine.is_of_space() {
            [job.sizes()[0].0, job.sizes()[1].0]
        } else {
            [0; 2]
        },
        percentiles,
        percentile_list: job.percentile_list.clone(),
        disabled: job.disabled,
    }
}
