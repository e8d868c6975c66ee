//! Order of jobs, their groups in the results, and the clones that are told together.

use super::job::Job;
use super::parse::Typing;
use super::value::Amount;
use crate::diagnostic::{Diagnostic, Problem};

/// Clones of a job that run and are told together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Ordinal of the job.
    pub job: usize,
    /// First of its clones.
    pub first: u64,
    /// Number of clones.
    pub clones: u64,
    /// Group of results.
    pub group: u32,
    /// Jobs of one level run at once, levels one after the other.
    pub level: usize,
    /// Its results are added to those of the unit before it.
    pub is_joined: bool,
    /// A name that no other unit has.
    pub name: String,
}

/// Units of all jobs, in order.
pub fn units(typing: &Typing, words: &[String]) -> Result<Vec<Unit>, Diagnostic> {
    let mut found: Vec<Unit> = Vec::new();
    let (mut group, mut base, mut last_group) = (0_u32, 0_usize, None);
    let mut top = 0;
    for (index, job) in typing.jobs.iter().enumerate() {
        if index > 0 && (job.is_stonewalled || job.begins_group) {
            group += 1;
        }
        if index > 0 && job.is_stonewalled {
            base = top + 1;
        }
        let level = match &job.wait_for {
            Some(name) => waiting_level(typing, words, (job, name), &found)?.max(base),
            None => base,
        };
        top = top.max(level);
        // A recorded stream is done again by one worker; states are those of single clones.
        let is_single = job.replay.file.is_some()
            || job.verifying.is_state_saved
            || job.verifying.is_state_loaded;
        // Rounded, each clone's region has a distance of its own to the next.
        let has_shares = matches!(job.offset_increment, Amount::Percent(1..));
        let is_one = job.clones == 1 || (job.is_group_reported && !is_single && !has_shares);
        let count = if is_one { 1 } else { job.clones };
        for first in 0..count {
            let is_joined = job.is_group_reported && last_group == Some(group);
            let clones = if is_one { job.clones } else { 1 };
            let name = unused(&job.name, &found);
            found.push(Unit { job: index, first, clones, group, level, is_joined, name });
            last_group = Some(group).filter(|_| job.is_group_reported);
        }
    }
    lonely_waitees(typing, words, &found)?;
    Ok(found)
}

/// Level of a job that waits for another one.
fn waiting_level(
    typing: &Typing,
    words: &[String],
    (job, name): (&Job, &str),
    found: &[Unit],
) -> Result<usize, Diagnostic> {
    let levels = found.iter().filter(|unit| typing.jobs[unit.job].name == name);
    levels.map(|unit| unit.level + 1).max().ok_or_else(|| {
        let what = format!("{}: waitee job {name} unknown", job.name);
        let problem = Problem::new(what, "name a job that stands before it");
        job.place_of("wait_for", &typing.globals).tell(words, problem)
    })
}

/// Refuse a job that others wait for and that runs with more: all would be waited for: there must
/// be nobody else.
fn lonely_waitees(typing: &Typing, words: &[String], found: &[Unit]) -> Result<(), Diagnostic> {
    for job in &typing.jobs {
        let Some(name) = &job.wait_for else { continue };
        let waited = found.iter().filter(|unit| typing.jobs[unit.job].name == *name);
        for unit in waited {
            let with = found
                .iter()
                .find(|other| other.level == unit.level && typing.jobs[other.job].name != *name);
            if let Some(other) = with {
                let other = &typing.jobs[other.job].name;
                let what = format!("wait_for={name}: job {other} runs beside it");
                let remedy = "write stonewall, which waits for all of them";
                let place = job.place_of("wait_for", &typing.globals);
                return Err(place.tell(words, Problem::new(what, remedy)));
            }
        }
    }
    Ok(())
}

fn unused(name: &str, found: &[Unit]) -> String {
    let is_used = |name: &str| found.iter().any(|unit| unit.name == name);
    if !is_used(name) {
        return name.to_owned();
    }
    let numbered = (found.len() as u64 + 1..).map(|number| format!("{name}#{number}"));
    numbered.into_iter().find(|name| !is_used(name)).unwrap_or_default()
}
