//! Contradictions of jobs, and differences between them that are refused.

use iolab_model::target::Content;
use iolab_workload::spec::LockPolicy;

use super::super::buffers::{self, content};
use super::super::engine::{self, Engine};
use super::super::host::Host;
use super::super::job::Job;
use super::super::program;
use super::super::value::Amount;
use super::{Lowering, Result, Work, check_cpus};
use crate::diagnostic::{Diagnostic, Problem};

impl<H: Host> Lowering<'_, H> {
    /// Refuse contradictions within one job.
    pub(super) fn check(&mut self, job: &Job) -> Result<()> {
        let wrong = |name, what: String, remedy: &str| (name, Problem::new(what, remedy));
        if self.typing.program.is_readonly && job.rw.writes() {
            let what = format!("job <{}> writes, but --readonly is given", job.name);
            return self.at(job, wrong("rw", what, "write rw=read, or leave --readonly out"));
        }
        if job.is_time_based && job.runtime_ns == 0 {
            let note = "time_based counts only with runtime; it is ignored, as in fio";
            self.notes.push(format!("job {}: {note}", job.name));
        }
        if job.delay_ns.1 > 0 && job.is_stonewalled {
            let note = "startdelay counts from the stonewall, not from the beginning of the run";
            self.notes.push(format!("job {}: {note}", job.name));
        }
        let files = if job.filename.is_empty() { job.nrfiles } else { job.filename.len() as u64 };
        if let (Some(Amount::Bytes(bytes)), None) = (job.size, job.filesize)
            && bytes > 0
            && bytes < files
        {
            let what = format!("{bytes} bytes divided among {files} files leave none for each");
            return self.at(job, wrong("size", what, "write a larger size=, or fewer files"));
        }
        if job.is_strided != Some(true) && job.zone_bytes > 0 {
            let what = "zonesize needs zonemode=strided".to_owned();
            let remedy = "write zonemode=strided, or leave zonesize out";
            return self.at(job, wrong("zonesize", what, remedy));
        }
        self.check_verification(job)?;
        self.check_commands(job)?;
        self.check_loops(job)?;
        if job.is_thought_at_issue && job.think_ns > 0 && job.depth > 1 {
            let what =
                "pauses counted from where transfers begin, with several under way".to_owned();
            let remedy = "write thinktime_blocks_type=complete, or iodepth=1";
            return self.at(job, wrong("thinktime_blocks_type", what, remedy));
        }
        self.check_locks_and_pauses(job)?;
        self.on(job, check_cpus(job, self.host))?;
        Ok(())
    }

    /// Refuse what cannot be verified; note how the rest is.
    fn check_verification(&mut self, job: &Job) -> Result<()> {
        let wrong = |name, what: String, remedy: &str| (name, Problem::new(what, remedy));
        if job.verify == Some("pattern") && job.verify_pattern.is_none() {
            let what = "verify=pattern needs verify_pattern".to_owned();
            return self
                .at(job, wrong("verify", what, "write for instance verify_pattern=0xdeadbeef"));
        }
        if job.is_only_verified && job.verify.is_none() {
            let what = "verify_only needs verify".to_owned();
            return self.at(job, wrong("verify_only", what, "write for instance verify=crc32c"));
        }
        if job.is_only_verified && job.rw.is_mixed() {
            let what = "verify_only of a job that also reads: which blocks it has written is not \
                        known afterwards"
                .to_owned();
            return self.at(job, wrong("verify_only", what, "write rw=write or rw=randwrite"));
        }
        if job.verify.is_some() && job.rw.trims() {
            let what = "verify of trims is not done".to_owned();
            return self.at(job, wrong("verify", what, "write rw=write or rw=randwrite"));
        }
        let is_of_a_kind = buffers::is_of_a_kind(job) && buffers::verified_pattern(job).is_none();
        let is_program = program::culprit(job).is_some();
        if job.verifies_own() && job.verifying.backlog > 0 && is_program {
            let note = "of several files or sizes all is read back in the end";
            self.notes.push(format!("job {}: verify_backlog: {note}", job.name));
        }
        if job.is_verified_apart() && job.may_end_early() && !is_program {
            let note = "all that was to be written is read, also what was not reached";
            let name = if job.ends_all { "exitall" } else { "runtime" };
            self.notes.push(format!("job {}: verify with {name}: {note}", job.name));
        }
        if job.compares() && is_of_a_kind {
            let what = "verify beside buffer contents is not done: blocks carry iolab's own stamps"
                .to_owned();
            let remedy = "leave zero_buffers, buffer_pattern and the like out";
            return self.at(job, wrong("verify", what, remedy));
        }
        if let Some(name) = job.verify.filter(|name| job.compares() && *name != "pattern") {
            let note = "blocks are checked by iolab's own stamps";
            self.notes.push(format!("job {}: verify={name}: {note}", job.name));
        }
        Ok(())
    }

    /// Refuse locks around transfers that overlap; note pauses of no length.
    fn check_locks_and_pauses(&mut self, job: &Job) -> Result<()> {
        let is_locked = job.lock != LockPolicy::None;
        if is_locked && job.depth > 1 && engine::of(job).is_ok_and(Engine::is_asynchronous) {
            let what = "lockfile with iodepth above 1 is not done".to_owned();
            let problem = Problem::new(what, "write iodepth=1, and numjobs=");
            return self.at(job, ("lockfile", problem));
        }
        let pauses = [
            ("thinktime_iotime", job.pauses.every_ns > 0),
            ("thinktime_spin", job.pauses.burning_ns > 0),
        ];
        for (name, _) in pauses.iter().filter(|(_, is_asked)| *is_asked && job.think_ns == 0) {
            let note = format!("job {}: {name} counts only with thinktime, as in fio", job.name);
            self.notes.push(note);
        }
        Ok(())
    }

    /// Refuse passes and overlaps that are not done.
    fn check_loops(&self, job: &Job) -> Result<()> {
        let refused = if job.is_renewed() && job.rw.reads() {
            let what = "unlink_each_loop: the second pass of a job that reads would find no file";
            Some(("unlink_each_loop", what, "write rw=write, or leave loops out"))
        } else if job.is_renewed() && (job.clones > 1 && !job.filename.is_empty()) {
            let what = "unlink_each_loop with loops of clones that share a file is not done";
            Some(("unlink_each_loop", what, "leave filename out, so that each has its own"))
        } else if job.is_renewed() && job.rw_more.is_some() && !job.rw.is_random() {
            let what = "unlink_each_loop with loops over a region that skips blocks is not done";
            Some(("unlink_each_loop", what, "leave the number behind rw= out"))
        } else if job.is_renewed() && job.engine == "mmap" {
            let what = "unlink_each_loop with loops over a mapped file is not done";
            Some(("unlink_each_loop", what, "write ioengine=psync"))
        } else if job.is_serialized && job.has_no_map && job.rw.writes() && job.depth > 1 {
            let what = "serialize_overlap with norandommap is not done: transfers could overlap";
            Some(("serialize_overlap", what, "leave norandommap out, or write iodepth=1"))
        } else {
            None
        };
        let Some((name, what, remedy)) = refused else { return Ok(()) };
        self.at(job, (name, Problem::new(what, remedy)))
    }

    /// Refuse commands that were not allowed; note where they run at another time than with fio.
    fn check_commands(&mut self, job: &Job) -> Result<()> {
        let asked = [("exec_prerun", &job.command_before), ("exec_postrun", &job.command_after)];
        for (name, line) in asked {
            let Some(line) = line else { continue };
            if !self.typing.program.may_execute {
                let what = format!("{name}={line}: a job file starts no commands unasked");
                let remedy = "add --allow-exec to the command line; a study runs none";
                return self.at(job, (name, Problem::new(what, remedy)));
            }
            let is_all_at_once = self.typing.jobs.iter().all(|job| !job.is_stonewalled);
            if !is_all_at_once || self.typing.jobs.iter().any(|job| job.wait_for.is_some()) {
                let when = if name == "exec_prerun" { "before all jobs" } else { "after all jobs" };
                self.notes.push(format!("job {}: {name} runs {when}", job.name));
            }
        }
        Ok(())
    }

    /// Refuse differences between jobs that fio allows and that must be equal here.
    pub(super) fn check_together(&self) -> Result<()> {
        let jobs = &self.typing.jobs;
        let Some(first) = jobs.first() else {
            let wanted = self.typing.program.sections.join(", ");
            let problem = match wanted.as_str() {
                "" => Problem::new(
                    "No job(s) defined",
                    "name a job file that has a section besides [global], or write --name=X",
                ),
                _ => Problem::new(
                    format!("No job(s) defined: there is no section {wanted}"),
                    "name a section of the job file with --section",
                ),
            };
            return Err(Diagnostic::of_all("fio", self.words, problem));
        };
        let writers = || jobs.iter().filter(|job| job.rw.writes_data());
        let verified = |job: &&Job| job.compares();
        let mut checked = jobs.iter().filter(verified).map(buffers::verified_pattern);
        let pattern = checked.next().unwrap_or_default();
        let odd = [
            (
                "verify",
                jobs.iter().filter(verified).find(|job| buffers::verified_pattern(job) != pattern),
            ),
            ("ioscheduler", jobs.iter().find(|job| job.scheduler != first.scheduler)),
            ("randseed", jobs.iter().find(|job| job.seed != first.seed)),
            (
                "zero_buffers",
                // Whoever verifies knows what each block is made of, so all are made alike.
                writers().find(|job| {
                    let first = writers().next().map_or(Content::Incompressible, content);
                    jobs.iter().any(Job::compares) && content(job) != first
                }),
            ),
        ];
        for (name, job) in odd {
            if let Some(job) = job {
                let what = match name {
                    "verify" => format!(
                        "job {} is verified by a pattern and others are not, or by another one",
                        job.name
                    ),
                    _ => format!(
                        "{name} of job {} differs from that of job {}, which is not done",
                        job.name, first.name
                    ),
                };
                let problem = Problem::new(what, "write it in [global], for all jobs");
                return self.at(job, (name, problem));
            }
        }
        Ok(())
    }

    /// Refuse states of runs with different seeds: all workers of a run have the same.
    pub(super) fn check_states(&self, works: &[Work]) -> Result<()> {
        let mut seeds = works.iter().filter_map(|work| Some((work, work.state?.seed)));
        let Some((_, first)) = seeds.next() else { return Ok(()) };
        let Some((work, _)) = seeds.find(|(_, seed)| *seed != first) else { return Ok(()) };
        let what = "the states of the jobs are of runs with different seeds".to_owned();
        let problem = Problem::new(what, "verify the jobs of one run together");
        self.at(&self.typing.jobs[work.unit.job], ("verify_state_load", problem))
    }

    /// Refuse what transfers nothing where data are verified.
    pub(super) fn check_null(&self, works: &[Work]) -> Result<()> {
        let jobs = || works.iter().map(|work| &self.typing.jobs[work.unit.job]);
        let null = works.iter().find(|work| work.engine.name == "null");
        let (Some(null), Some(job)) = (null, jobs().find(|job| job.compares())) else {
            return Ok(());
        };
        let what = format!("ioengine=null beside job {}, which verifies, is not done", job.name);
        let problem = Problem::new(what, "leave verify out, or run them by two commands");
        self.at(&self.typing.jobs[null.unit.job], ("ioengine", problem))
    }

    /// Refuse results that would be written over a file that the jobs work on.
    pub(super) fn check_output(&self, works: &[Work]) -> Result<()> {
        let Some(output) = &self.typing.program.output else { return Ok(()) };
        let plain = |name: &str| name.trim_start_matches("./").to_owned();
        let of_files = works.iter().filter(|work| !work.engine.is_without_files());
        let mut paths = of_files.flat_map(|work| &work.paths);
        if !paths.any(|path| plain(&path.text()) == plain(output)) {
            return Ok(());
        }
        let what = format!("--output={output} is a file that the jobs work on");
        let problem = Problem::new(what, "name another file for the results");
        Err(Diagnostic::of_all("fio", self.words, problem))
    }

    /// Refuse an end of jobs that have not begun.
    pub(super) fn check_ends(&self, works: &[Work]) -> Result<()> {
        let last = works.iter().map(|work| work.unit.level).max().unwrap_or(0);
        let ends = |work: &&Work| {
            let job = &self.typing.jobs[work.unit.job];
            job.ends_all && job.ends_later_ones && work.unit.level < last
        };
        let Some(work) = works.iter().find(ends) else { return Ok(()) };
        let what = "exit_what=all is not done where jobs follow behind a stonewall".to_owned();
        let problem = Problem::new(what, "write exit_what=stonewall");
        self.at(&self.typing.jobs[work.unit.job], ("exit_what", problem))
    }

    /// Files of a program lie in one directory with those of all others.
    pub(super) fn check_directories(&self, works: &[Work]) -> Result<()> {
        let real = || works.iter().filter(|work| !work.engine.is_without_files());
        let mut folders = real().flat_map(|work| &work.paths).map(|path| &path.directory);
        let Some(first) = folders.next() else { return Ok(()) };
        if folders.all(|folder| folder == first) {
            return Ok(());
        }
        let Some(work) = real().find(|work| work.set.is_some()) else { return Ok(()) };
        let job = &self.typing.jobs[work.unit.job];
        let what =
            "several directories are not done beside jobs of several files or sizes".to_owned();
        self.at(job, ("directory", Problem::new(what, "use one directory for all jobs")))
    }

    /// Refuse nice values of threads.
    pub(super) fn check_nice(&self, works: &[Work]) -> Result<()> {
        let Some(job) = self.typing.jobs.iter().find(|job| job.nice != 0) else { return Ok(()) };
        if !self.are_threads(works) {
            return Ok(());
        }
        let what =
            "threads have no nice value; with several files or sizes, and ioengine=null, all are";
        self.at(job, ("nice", Problem::new(what, "leave it out, or write thread=0")))
    }
}
