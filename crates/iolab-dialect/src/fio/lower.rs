//! From jobs to a workload: phases of tenants, and how their results are told.

use iolab_model::Ns;
use iolab_model::target::Content;
use iolab_workload::Workload;
use iolab_workload::program::FileSet;
use iolab_workload::spec::{Cpus, LockPolicy, Opening, Phase, Tenant, WorkersAs};
use iolab_workload::verify::Verify;

use super::buffers::{self, content};
use super::engine::{self, Engine};
use super::expand::{Unit, units};
use super::geometry::{Wrong, geometry, io_bytes};
use super::host::{Host, There};
use super::job::{Job, Typed};
use super::logs;
use super::parse::Typing;
use super::places::{self, Path};
use super::plan::Plan;
use super::program;
use super::show::show;
use super::tenant::tenant_of;
use super::{verify, verify_state};
use crate::diagnostic::{Diagnostic, Problem};
use crate::option::Standing;
use crate::plan::{Asked, Row};
use crate::workload::{phase, workload};

/// Root of random numbers unless `randseed` or `randrepeat=0` say otherwise.
const SEED: u64 = 0x00f1_0f10;
/// fio's samples of rates.
const SAMPLE: Ns = Ns::from_ms(500);

type Result<T> = std::result::Result<T, Diagnostic>;

/// Work of one unit, before it is put into a phase.
pub struct Work {
    /// Clones of the unit.
    pub unit: Unit,
    /// fio's engine.
    pub engine: Engine,
    ours: &'static str,
    /// Tenant that does their work.
    pub tenant: Tenant,
    paths: Vec<Path>,
    /// Files of a program.
    pub set: Option<FileSet>,
    /// Reads back what a program has written, if it is verified.
    verifier: Option<Tenant>,
    /// State of an earlier run that has written it.
    state: Option<verify_state::VerifyState>,
}

impl Work {
    /// Tenant that reads back what was written.
    fn verifier(&self) -> Tenant {
        self.verifier.clone().unwrap_or_else(|| verify::verifier(&self.tenant))
    }

    /// The file of one of its clones, as fio calls it.
    pub fn target(&self, job: &Job, clone: usize) -> String {
        if self.engine.is_without_files() {
            let own = || format!("{}.{}.0", job.section, self.unit.first + clone as u64);
            return job.filename.first().cloned().unwrap_or_else(own);
        }
        self.paths.get(clone).or(self.paths.first()).map_or_else(String::new, Path::text)
    }

    /// All of its files, as fio calls them.
    pub fn targets(&self, job: &Job) -> Vec<String> {
        if self.engine.is_without_files() && !job.filename.is_empty() {
            return job.filename.clone();
        }
        self.paths.iter().map(Path::text).collect()
    }
}

struct Lowering<'a, H> {
    typing: &'a Typing,
    words: &'a [String],
    host: &'a H,
    notes: Vec<String>,
}

/// The plan of what was typed.
pub fn lower(typing: &Typing, words: &[String], host: &impl Host) -> Result<Plan> {
    let mut lowering = Lowering { typing, words, host, notes: typing.notes.clone() };
    lowering.plan()
}

impl<H: Host> Lowering<'_, H> {
    fn at<T>(&self, job: &Job, (name, problem): Wrong) -> Result<T> {
        Err(job.place_of(name, &self.typing.globals).tell(self.words, problem))
    }

    fn on<T>(&self, job: &Job, told: std::result::Result<T, Wrong>) -> Result<T> {
        told.or_else(|wrong| self.at(job, wrong))
    }

    fn plan(&mut self) -> Result<Plan> {
        self.note_what_does_nothing();
        for job in &self.typing.jobs {
            self.check(job)?;
        }
        self.check_together()?;
        let mut works = Vec::new();
        for unit in units(self.typing, self.words)? {
            let work = self.work(unit, &works)?;
            works.push(work);
        }
        self.check_directories(&works)?;
        self.check_states(&works)?;
        self.check_null(&works)?;
        let directory = self.place_files(&mut works);
        let (phases, places) = self.phases(&works)?;
        self.check_ends(&works)?;
        self.check_nice(&works)?;
        let cache = self.cache(&works)?;
        let workload = self.workload(&works, phases);
        let told = workload.check();
        told.map_err(|error| {
            let problem = Problem::new(error.to_string(), "change the job that it is about");
            Diagnostic::of_all("fio", self.words, problem)
        })?;
        let files: std::collections::BTreeSet<String> = works
            .iter()
            .filter(|work| !work.engine.is_without_files())
            .flat_map(|work| work.tenant.file_names())
            .collect();
        let largest = works.iter().map(|work| work.tenant.file_bytes.0).max().unwrap_or(0);
        let record = works.iter().map(|work| work.tenant.io_size_bytes.0).max().unwrap_or(0);
        let program = &self.typing.program;
        if program.are_notes_fatal
            && let Some(note) = self.notes.first()
        {
            let problem = Problem::new(note.clone(), "correct it, or leave --warnings-fatal out");
            return Err(Diagnostic::of_all("fio", self.words, problem));
        }
        Ok(Plan {
            dialect: "fio".into(),
            common: self.typing.common.clone(),
            only_text: None,
            notes: std::mem::take(&mut self.notes),
            directory,
            files: files.into_iter().collect(),
            cache,
            asked: Asked { workbook: None, ..Asked::default() },
            show: show(self.typing, &works, &places, &workload),
            rows: vec![Row {
                name: self.typing.jobs[0].name.clone(),
                file_kb: largest.div_ceil(1024),
                record_kb: record.div_ceil(1024).max(1),
                children: works.iter().map(|work| work.tenant.workers).sum(),
                workload,
            }],
        })
    }

    /// Options that are accepted and change nothing, where they ask for something.
    fn note_what_does_nothing(&mut self) {
        let mut seen = std::collections::BTreeSet::new();
        let own = self.typing.jobs.iter().flat_map(|job| &job.typed);
        for Typed { row, text, .. } in self.typing.globals.iter().chain(own) {
            let Standing::Ignored(why) = row.standing else { continue };
            let text = text.as_deref().unwrap_or("1");
            if text != row.default && seen.insert((row.name, text)) {
                self.notes.push(format!("{}={text} changes nothing here: {why}", row.name));
            }
        }
        let is_simulated = self.typing.common.on.as_ref().is_some_and(|on| on.starts_with("sim:"));
        if self.typing.program.status_ns > 0 && is_simulated {
            let note = "--status-interval shows nothing in simulation, where time is virtual";
            self.notes.push(note.to_owned());
        }
        let threads = self.typing.jobs.iter().filter(|job| job.is_thread).count();
        if threads > 0 && threads < self.typing.jobs.len() {
            self.notes.push("some jobs ask for threads: all of them are threads".to_owned());
        }
    }

    /// Refuse contradictions within one job.
    fn check(&mut self, job: &Job) -> Result<()> {
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
        if job.verify == Some("pattern") && job.verify_pattern.is_none() {
            let what = "verify=pattern without verify_pattern".to_owned();
            return self.at(job, wrong("verify", what, "write verify_pattern=0xdeadbeef, or so"));
        }
        if job.is_only_verified && job.verify.is_none() {
            let what = "verify_only without verify".to_owned();
            return self.at(job, wrong("verify_only", what, "write verify=crc32c, or so"));
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
        if job.is_strided != Some(true) && job.zone_bytes > 0 {
            let what = "zonesize without zonemode=strided".to_owned();
            let remedy = "write zonemode=strided, or leave zonesize out";
            return self.at(job, wrong("zonesize", what, remedy));
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
            let what = "verify of data of a kind: blocks carry iolab's own stamps".to_owned();
            let remedy = "leave zero_buffers, buffer_pattern and the like out";
            return self.at(job, wrong("verify", what, remedy));
        }
        self.check_commands(job)?;
        self.check_loops(job)?;
        if job.is_thought_at_issue && job.think_ns > 0 && job.depth > 1 {
            let what =
                "pauses counted from where transfers begin, with several under way".to_owned();
            let remedy = "write thinktime_blocks_type=complete, or iodepth=1";
            return self.at(job, wrong("thinktime_blocks_type", what, remedy));
        }
        if let Some(name) = job.verify.filter(|name| job.compares() && *name != "pattern") {
            let note = "blocks are checked by iolab's own stamps";
            self.notes.push(format!("job {}: verify={name}: {note}", job.name));
        }
        self.check_locks_and_pauses(job)?;
        self.on(job, check_cpus(job, self.host))?;
        Ok(())
    }

    /// Refuse locks around transfers that overlap; note pauses of no length.
    fn check_locks_and_pauses(&mut self, job: &Job) -> Result<()> {
        let is_locked = job.lock != LockPolicy::None;
        if is_locked && job.depth > 1 && engine::of(job).is_ok_and(Engine::is_asynchronous) {
            let what = "lockfile with several transfers under way is not done".to_owned();
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
            let what = "unlink_each_loop of a job that reads: its second pass finds no file";
            Some(("unlink_each_loop", what, "write rw=write, or leave loops out"))
        } else if job.is_renewed() && (job.clones > 1 && !job.filename.is_empty()) {
            let what = "unlink_each_loop with several passes of clones that share files";
            Some(("unlink_each_loop", what, "leave filename out, so that each has its own"))
        } else if job.is_renewed() && job.rw_more.is_some() && !job.rw.is_random() {
            let what = "unlink_each_loop with several passes that skip";
            Some(("unlink_each_loop", what, "leave the number behind rw= out"))
        } else if job.is_renewed() && job.engine == "mmap" {
            let what = "unlink_each_loop with several passes of a mapped file";
            Some(("unlink_each_loop", what, "write ioengine=psync"))
        } else if job.is_serialized && job.has_no_map && job.rw.writes() && job.depth > 1 {
            let what = "serialize_overlap with norandommap, where transfers could overlap";
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
                let remedy = "read them, then add --allow-exec to the command line";
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
    fn check_together(&self) -> Result<()> {
        let jobs = &self.typing.jobs;
        let Some(first) = jobs.first() else {
            let wanted = self.typing.program.sections.join(", ");
            let problem = match wanted.as_str() {
                "" => Problem::new("No job(s) defined", "name a job file, or write --name=X"),
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
                writers().find(|job| {
                    content(job) != writers().next().map_or(Content::Incompressible, content)
                }),
            ),
        ];
        for (name, job) in odd {
            if let Some(job) = job {
                let what = format!("{name} of job {} is not that of job {}", job.name, first.name);
                let problem = Problem::new(what, "write it in [global], for all jobs");
                return self.at(job, (name, problem));
            }
        }
        Ok(())
    }

    fn work(&mut self, unit: Unit, before: &[Work]) -> Result<Work> {
        let job = &self.typing.jobs[unit.job];
        let engine = self.on(job, engine::of(job))?;
        let ours = self.on(job, engine::ours(job, engine))?;
        if engine.name == engine::CPU {
            let tenant = self.on(job, program::of_the_cpu(job, &unit))?;
            return Ok(Work {
                unit,
                engine,
                ours,
                tenant,
                paths: Vec::new(),
                set: None,
                verifier: None,
                state: None,
            });
        }
        self.on(job, buffers::check(job))?;
        self.on(job, logs::check(job, engine.is_of_names() || engine.is_of_space()))?;
        let is_null = engine.name == "null";
        let is_here = self.typing.common.on.is_none() && !is_null;
        let is_program = program::is_needed(job, engine);
        let mut paths = if is_program {
            self.on(job, places::many(job, &unit))?
        } else if is_null {
            vec![Path { directory: String::new(), name: "fio-null".into() }]
        } else {
            self.on(job, places::files(job, &unit))?
        };
        for path in paths.iter().filter(|_| is_here) {
            self.on(job, places::check(job, path, self.host))?;
        }
        if !is_here {
            for path in &mut paths {
                path.directory.clear();
            }
        }
        let looked_at = is_here.then(|| paths[0].text());
        self.note_depth(job, &unit, engine);
        if is_program {
            let number = format!("files{}", before.len());
            let files = (paths.as_slice(), number.as_str());
            let made = (self.host, looked_at.as_deref());
            let made = |job: &Job| program::program_of(job, &unit, engine, files, made);
            let (mut tenant, set) = self.on(job, made(job))?;
            let verifier = self.verifier_of_program(job, &tenant, made)?;
            if !is_null && !program::makes_names(engine) {
                let bytes = set.file_bytes.most();
                let found = self.opening(job, &paths, (bytes, is_here), before)?;
                // Who removes files must be allowed to, even if it never writes to them.
                let removes = program::removes_names(engine);
                tenant.opening = if removes { Opening::LaidOut } else { found };
            }
            let set = Some(set);
            return Ok(Work { unit, engine, ours, tenant, paths, set, verifier, state: None });
        }
        let io = self.on(job, io_bytes(job))?;
        let geometry = self.on(job, geometry(job, self.host, looked_at.as_deref(), io))?;
        let opening = self.opening(job, &paths, (geometry.file, is_here), before)?;
        let opening = if is_null { Opening::Existing } else { opening };
        let made = tenant_of(job, &unit, engine, (&geometry, opening), &paths);
        let mut tenant = self.on(job, made)?;
        let index = before.iter().map(|work| work.unit.clones).sum();
        let state = verify_state::loaded(job, index, &tenant, self.host);
        let state = self.on(job, state)?;
        if let Some(state) = &state {
            tenant = verify_state::limited(tenant, state);
        }
        Ok(Work { unit, engine, ours, tenant, paths, set: None, verifier: None, state })
    }

    /// Tenant that reads back what the program of a job has written, if it is verified: in the same
    /// order, or, where that follows from measurements, all of its files.
    fn verifier_of_program(
        &mut self,
        job: &Job,
        tenant: &Tenant,
        made: impl Fn(&Job) -> std::result::Result<(Tenant, FileSet), Wrong>,
    ) -> Result<Option<Tenant>> {
        if !job.is_verified_apart() {
            return Ok(None);
        }
        if let Some(twin) = verify::rereading(tenant) {
            return Ok(Some(twin));
        }
        let note = "each block of its files is read once after the writes";
        self.notes.push(format!("job {}: verify: {note}", job.name));
        let (mut reader, _) = self.on(job, made(&verify::reading_all(job)))?;
        reader.manner.expects_written = false;
        Ok(Some(reader))
    }

    /// Refuse states of runs with different seeds: all workers of a run have the same.
    fn check_states(&self, works: &[Work]) -> Result<()> {
        let mut seeds = works.iter().filter_map(|work| Some((work, work.state?.seed)));
        let Some((_, first)) = seeds.next() else { return Ok(()) };
        let Some((work, _)) = seeds.find(|(_, seed)| *seed != first) else { return Ok(()) };
        let what = "the states of the jobs are of runs with different seeds".to_owned();
        let problem = Problem::new(what, "verify the jobs of one run together");
        self.at(&self.typing.jobs[work.unit.job], ("verify_state_load", problem))
    }

    /// Tells where an engine has one transfer under way, whatever was asked for.
    fn note_depth(&mut self, job: &Job, unit: &Unit, engine: Engine) {
        if job.depth > 1 && !engine.is_asynchronous() && unit.first == 0 {
            let note = "has one transfer under way, whatever iodepth says, as in fio";
            self.notes.push(format!("job {}: ioengine={} {note}", job.name, engine.name));
        }
        if engine.name == "libaio" && !job.is_direct && job.depth > 1 && unit.first == 0 {
            let note = "libaio without direct=1 has one transfer under way: the kernel waits";
            self.notes.push(format!("job {}: {note}", job.name));
        }
    }

    /// Refuse what transfers nothing where data are verified.
    fn check_null(&self, works: &[Work]) -> Result<()> {
        let jobs = || works.iter().map(|work| &self.typing.jobs[work.unit.job]);
        let null = works.iter().find(|work| work.engine.name == "null");
        let (Some(null), Some(job)) = (null, jobs().find(|job| job.compares())) else {
            return Ok(());
        };
        let what = format!("ioengine=null beside job {}, which verifies, is not done", job.name);
        let problem = Problem::new(what, "leave verify out, or run them by two commands");
        self.at(&self.typing.jobs[null.unit.job], ("ioengine", problem))
    }

    /// Refuse an end of jobs that have not begun.
    fn check_ends(&self, works: &[Work]) -> Result<()> {
        let last = works.iter().map(|work| work.unit.level).max().unwrap_or(0);
        let ends = |work: &&Work| {
            let job = &self.typing.jobs[work.unit.job];
            job.ends_all && job.ends_later_ones && work.unit.level < last
        };
        let Some(work) = works.iter().find(ends) else { return Ok(()) };
        let what = "exit_what=all before jobs that have not begun is not done".to_owned();
        let problem = Problem::new(what, "write exit_what=stonewall");
        self.at(&self.typing.jobs[work.unit.job], ("exit_what", problem))
    }

    /// Files of a program lie in one directory with those of all others.
    fn check_directories(&self, works: &[Work]) -> Result<()> {
        let real = || works.iter().filter(|work| !work.engine.is_without_files());
        let mut folders = real().flat_map(|work| &work.paths).map(|path| &path.directory);
        let Some(first) = folders.next() else { return Ok(()) };
        if folders.all(|folder| folder == first) {
            return Ok(());
        }
        let Some(work) = real().find(|work| work.set.is_some()) else { return Ok(()) };
        let job = &self.typing.jobs[work.unit.job];
        let what = "several directories beside several files or sizes are not done yet".to_owned();
        self.at(job, ("directory", Problem::new(what, "use one directory for all jobs")))
    }

    /// Treatment of a file before the time begins.
    fn opening(
        &self,
        job: &Job,
        paths: &[Path],
        (bytes_needed, is_here): (u64, bool),
        before: &[Work],
    ) -> Result<Opening> {
        let is_plain = job.rw.writes() && !job.rw.reads() && !job.rw.trims();
        let is_cut_short = job.verify.is_some() && job.may_end_early();
        if is_plain && !job.is_overwritten && !is_cut_short {
            return Ok(Opening::Keep);
        }
        let large = |path: &Path| match self.host.at(&path.text()) {
            There::File(bytes) => bytes >= bytes_needed,
            _ => false,
        };
        if is_here && paths.iter().all(large) {
            return Ok(Opening::Existing);
        }
        let is_made = |path: &Path| before.iter().any(|work| work.paths.contains(path));
        if job.verifies_earlier() {
            if let Some(path) = paths.iter().find(|path| !is_made(path)) {
                let what = format!("{} does not hold what is to be verified", path.text());
                let remedy = "write it first, with the same file, sizes and verify=: by a job \
                              before it, or, where files stay (no --on), by a command before";
                return self.at(job, ("verify", Problem::new(what, remedy)));
            }
            return Ok(Opening::Existing);
        }
        if !job.may_create && !paths.iter().all(is_made) {
            let what = "file creation disallowed by allow_file_create=0".to_owned();
            let problem = Problem::new(what, "make the file first, or leave the option out");
            return self.at(job, ("allow_file_create", problem));
        }
        Ok(Opening::LaidOut)
    }

    /// Names of files as the plan has them, and the directory that they are in.
    fn place_files(&self, works: &mut [Work]) -> String {
        let real = || works.iter().filter(|work| !work.engine.is_without_files());
        let mut folders = real().flat_map(|work| &work.paths).map(|path| path.directory.clone());
        let Some(first) = folders.next() else { return String::new() };
        if folders.all(|folder| folder == first) {
            return first;
        }
        for work in works.iter_mut().filter(|work| !work.engine.is_without_files()) {
            let whole: Vec<String> =
                work.paths.iter().map(|path| path.absolute(self.host)).collect();
            work.tenant.file.clone_from(&whole[0]);
            if !work.tenant.is_file_shared {
                work.tenant.files = whole;
            }
        }
        String::new()
    }

    /// Phases, and for each work where it is done and where it is verified.
    fn phases(&self, works: &[Work]) -> Result<(Vec<Phase>, Vec<Places>)> {
        let levels = works.iter().map(|work| work.unit.level).max().unwrap_or(0);
        let mut phases: Vec<Phase> = Vec::new();
        let mut places = vec![Places::default(); works.len()];
        for level in 0..=levels {
            let here: Vec<usize> =
                (0..works.len()).filter(|index| works[*index].unit.level == level).collect();
            let Some(first) = here.first() else { continue };
            let mut made = self.phase(works, &here)?;
            made.name = names(here.iter().map(|index| &*works[*index].unit.name));
            for (tenant, index) in here.iter().enumerate() {
                places[*index].work = (phases.len(), tenant);
            }
            phases.push(made);
            let verified: Vec<usize> = here
                .iter()
                .copied()
                .filter(|index| self.typing.jobs[works[*index].unit.job].is_verified_apart())
                .collect();
            if verified.is_empty() {
                continue;
            }
            let tenants = verified.iter().map(|index| works[*index].verifier()).collect();
            for (tenant, index) in verified.iter().enumerate() {
                places[*index].verified = Some((phases.len(), tenant));
            }
            let name = format!("{}: verify", works[*first].unit.name);
            let mut made = phase(&name.replace('/', "-"), tenants);
            let ours = verified.iter().map(|index| works[*index].ours);
            give_engines(&mut made, engine_of(works, &verified), ours);
            phases.push(made);
        }
        let is_unlinked = self.typing.jobs.iter().all(|job| job.is_unlinked);
        if let Some(last) = phases.last_mut() {
            last.keeps_files = !is_unlinked;
        }
        let mut seen = std::collections::BTreeSet::new();
        for (index, phase) in phases.iter_mut().enumerate() {
            if !seen.insert(phase.name.clone()) {
                phase.name = format!("{}#{}", phase.name, index + 1);
            }
        }
        // What reads back draws as what wrote.
        for Places { work, verified } in &places {
            let Some((phase, tenant)) = verified else { continue };
            let wrote = phases[work.0].name.clone();
            if let Some(program) = &mut phases[*phase].tenants[*tenant].program {
                program.draws_of = Some(wrote);
            }
        }
        Ok((phases, places))
    }

    fn phase(&self, works: &[Work], here: &[usize]) -> Result<Phase> {
        let first = &works[here[0]];
        let first_job = &self.typing.jobs[first.unit.job];
        for index in here {
            let job = &self.typing.jobs[works[*index].unit.job];
            if job.ramp_ns != first_job.ramp_ns {
                let what = "jobs that run at once have different ramp_time".to_owned();
                return self.at(job, ("ramp_time", Problem::new(what, "use the same")));
            }
        }
        let is_of_files = |index: &&usize| !works[**index].engine.is_without_files();
        let makes_none = |index: &&usize| !is_of_files(index) && works[**index].set.is_some();
        let mut pairs = here.iter().filter(is_of_files).zip(here.iter().filter(makes_none));
        if let Some((_, without)) = pairs.next() {
            let what = "several files or sizes without any, beside jobs with files".to_owned();
            let problem = Problem::new(what, "use one file and size, or write stonewall between");
            return self.at(&self.typing.jobs[works[*without].unit.job], ("ioengine", problem));
        }
        let tenants = here.iter().map(|index| works[*index].tenant.clone()).collect();
        let mut made = phase("", tenants);
        let engine = engine_of(works, here);
        give_engines(&mut made, engine, here.iter().map(|index| works[*index].ours));
        for (tenant, index) in made.tenants.iter_mut().zip(here) {
            tenant.manner.is_unlinked = self.typing.jobs[works[*index].unit.job].is_unlinked;
        }
        if first_job.ramp_ns > 0 {
            made.cuts_ns = vec![Ns(first_job.ramp_ns)];
        }
        made.is_stonewalled = first_job.ends_all;
        Ok(made)
    }

    /// Tell whether the files' parts of the page cache are dropped first.
    fn cache(&self, works: &[Work]) -> Result<String> {
        let asked: Vec<&Job> = works
            .iter()
            .filter(|work| !work.engine.is_without_files() && work.tenant.reads())
            .map(|work| &self.typing.jobs[work.unit.job])
            .collect();
        let is_warm = asked.iter().any(|job| job.is_pre_read);
        if let Some(job) = asked.iter().find(|job| is_warm && !job.is_pre_read) {
            let what = "pre_read differs between jobs that read".to_owned();
            return self.at(job, ("pre_read", Problem::new(what, "write it in [global]")));
        }
        if is_warm {
            return Ok("warm".to_owned());
        }
        let is_cold = asked.iter().any(|job| job.is_invalidated);
        if let Some(job) = asked.iter().find(|job| is_cold && !job.is_invalidated) {
            let what = "invalidate differs between jobs that read".to_owned();
            let problem = Problem::new(what, "write it in [global], for all jobs");
            return self.at(job, ("invalidate", problem));
        }
        Ok(if is_cold { "cold" } else { "as_is" }.to_owned())
    }

    /// Tell whether clones are threads: some share what processes do not.
    fn are_threads(&self, works: &[Work]) -> bool {
        let is_shared = |work: &Work| work.engine.name == "null" || work.tenant.program.is_some();
        works.iter().any(is_shared) || self.typing.jobs.iter().any(|job| job.is_thread)
    }

    /// Refuse nice values of threads.
    fn check_nice(&self, works: &[Work]) -> Result<()> {
        let Some(job) = self.typing.jobs.iter().find(|job| job.nice != 0) else { return Ok(()) };
        if !self.are_threads(works) {
            return Ok(());
        }
        let what = "nice of threads; with several files or sizes, and ioengine=null, all are";
        self.at(job, ("nice", Problem::new(what, "leave it out, or write thread=0")))
    }

    fn workload(&self, works: &[Work], phases: Vec<Phase>) -> Workload {
        let jobs = &self.typing.jobs;
        let saved = works.iter().find_map(|work| work.state).map(|state| state.seed.0);
        let seed = match saved.or(jobs[0].seed) {
            Some(seed) => seed,
            None if jobs.iter().any(|job| !job.is_repeated) => self.host.chance(),
            None => SEED,
        };
        let writes = |job: &&Job| job.rw.writes_data() || job.compares();
        let content = jobs.iter().find(writes).map_or(Content::Incompressible, content);
        let is_verified = jobs.iter().any(Job::compares);
        Workload {
            engine: works
                .iter()
                .find(|work| !work.engine.is_without_files())
                .unwrap_or(&works[0])
                .ours
                .to_owned(),
            workers_as: if self.are_threads(works) {
                WorkersAs::Threads
            } else {
                WorkersAs::Processes
            },
            verify: if is_verified { Verify::Full } else { Verify::None },
            interval_ns: SAMPLE,
            file_sets: works.iter().filter_map(|work| work.set.clone()).collect(),
            ..workload("fio", seed, content, phases)
        }
    }
}

/// Engine of a phase of some works: of those that touch files, if there are any.
fn engine_of(works: &[Work], here: &[usize]) -> &'static str {
    let touches = |index: &&usize| !works[**index].engine.is_without_files();
    works[*here.iter().find(touches).unwrap_or(&here[0])].ours
}

/// Gives a phase its engine, and those tenants another one that have it.
fn give_engines(phase: &mut Phase, engine: &str, ours: impl Iterator<Item = &'static str>) {
    phase.engine = Some(engine.to_owned());
    for (tenant, own) in phase.tenants.iter_mut().zip(ours) {
        tenant.manner.engine = (own != engine).then(|| own.to_owned());
    }
}

/// Files of a work, and those where it is verified.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places {
    /// Phase and tenant.
    pub work: (usize, usize),
    /// Phase and tenant.
    pub verified: Option<(usize, usize)>,
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 3;
    let all: Vec<&str> = all.collect();
    let mut text = all[..all.len().min(SHOWN)].join("+").replace('/', "-");
    if all.len() > SHOWN {
        text.push_str("+...");
    }
    text
}

/// Numbers of CPUs in a list, and the part of it that is none.
fn cpus(text: &str) -> (Vec<u32>, Option<String>) {
    let mut found = Vec::new();
    for part in text.split([',', ':']) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        match (low.trim().parse::<u32>(), high.trim().parse::<u32>()) {
            (Ok(low), Ok(high)) if low <= high && high < 4096 => found.extend(low..=high),
            _ => return (found, Some(part.to_owned())),
        }
    }
    (found, None)
}

/// CPUs of the clones of a job.
pub(super) fn cpus_of(job: &Job) -> Cpus {
    let numbers = job.cpus.as_deref().map(|text| cpus(text).0).unwrap_or_default();
    Cpus { numbers, is_split: job.is_cpu_split && job.cpus.is_some() }
}

/// Refuses CPUs that are none, or that this machine has not.
pub fn check_cpus(job: &Job, host: &impl Host) -> std::result::Result<(), Wrong> {
    let Some(text) = &job.cpus else { return Ok(()) };
    let (found, odd) = cpus(text);
    let what = match (odd, found.iter().find(|cpu| u64::from(**cpu) >= host.cpus())) {
        (Some(part), _) => format!("cpus_allowed: '{part}' is no CPU and no range of them"),
        (None, Some(cpu)) => format!("there is no CPU {cpu}"),
        (None, None) => return Ok(()),
    };
    Err(("cpus_allowed", Problem::new(what, format!("use 0 to {}", host.cpus() - 1))))
}
