//! From jobs to a workload: phases of tenants, and how their results are told.

mod checks;
mod control_groups;
mod openings;

use iolab_model::Ns;
use iolab_model::target::Content;
use iolab_workload::Workload;
use iolab_workload::program::{FileSet, Reuse};
use iolab_workload::spec::rules::TenantRules;
use iolab_workload::spec::{Cpus, Opening, Phase, Tenant, WorkersAs};
use iolab_workload::verify::Verify;

use super::buffers::{self, content};
use super::engine::{self, Engine};
use super::eta::When;
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
    /// Devices for which files of the testbed stand.
    devices: Vec<String>,
}

/// The plan of what was typed.
pub fn lower(typing: &Typing, words: &[String], host: &impl Host) -> Result<Plan> {
    let mut lowering =
        Lowering { typing, words, host, notes: typing.notes.clone(), devices: Vec::new() };
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
        self.check_output(&works)?;
        let directory = self.place_files(&mut works);
        let cache = self.cache(&mut works)?;
        let (phases, places) = self.phases(&works)?;
        self.check_ends(&works)?;
        self.check_nice(&works)?;
        let control_groups = self.control_groups(&works)?;
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
            asked: Asked {
                devices_not_used: std::mem::take(&mut self.devices),
                ..Asked::default()
            },
            show: show(self.typing, &works, &places, &workload),
            rows: vec![Row {
                name: self.typing.jobs[0].name.clone(),
                file_kb: largest.div_ceil(1024),
                record_kb: record.div_ceil(1024).max(1),
                children: works.iter().map(|work| work.tenant.workers).sum(),
                workload,
                control_groups,
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
        let asked = [
            ("--status-interval", self.typing.program.status_ns > 0),
            ("--eta=always", self.typing.program.eta == When::Always),
        ];
        for (name, _) in asked.iter().filter(|(_, is_asked)| *is_asked && is_simulated) {
            self.notes.push(format!("{name} shows nothing in simulation, where time is virtual"));
        }
        let sections = &self.typing.program.sections;
        for name in sections {
            if self.typing.jobs.iter().all(|job| job.section != *name) {
                self.notes
                    .push(format!("--section={name}: no job file has a section of this name"));
            }
        }
        let threads = self.typing.jobs.iter().filter(|job| job.is_thread).count();
        if threads > 0 && threads < self.typing.jobs.len() {
            self.notes.push("some jobs ask for threads: all of them are threads".to_owned());
        }
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
            self.paths_of_many(job, &unit, engine, before)?
        } else if is_null {
            vec![Path { directory: String::new(), name: "fio-null".into() }]
        } else {
            self.on(job, places::files(job, &unit))?
        };
        for path in paths.iter().filter(|_| is_here) {
            self.on(job, places::check(job, path, self.host))?;
        }
        if !is_here {
            self.note_devices(job, &unit, &paths);
            for path in &mut paths {
                path.directory.clear();
            }
        }
        let looked_at =
            if is_here { Some(paths[0].text()) } else { self.whole_device(job).map(str::to_owned) };
        self.note_effects(job, &unit, engine);
        if is_program {
            let (tenant, set, verifier) = self.program(
                (job, &unit, engine),
                &paths,
                (is_here, looked_at.as_deref()),
                before,
            )?;
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
        let state = self.on(job, verify_state::loaded(job, index, &tenant, self.host))?;
        if let Some(state) = &state {
            tenant = verify_state::limited(tenant, state);
        }
        Ok(Work { unit, engine, ours, tenant, paths, set: None, verifier: None, state })
    }

    /// A program that does what a unit of a job does, its files, and what reads them back.
    fn program(
        &mut self,
        (job, unit, engine): (&Job, &Unit, Engine),
        paths: &[Path],
        (is_here, looked_at): (bool, Option<&str>),
        before: &[Work],
    ) -> Result<(Tenant, FileSet, Option<Tenant>)> {
        let number = format!("files{}", before.len());
        let files = (paths, number.as_str());
        let made = (self.host, looked_at);
        let made = |job: &Job| program::program_of(job, unit, engine, files, made);
        let (mut tenant, mut set) = self.on(job, made(job))?;
        let verifier = self.verifier_of_program(job, &tenant, made)?;
        if engine.name != "null" && !program::makes_names(engine) {
            let bytes = set.file_bytes.most();
            let found = self.opening(job, paths, (bytes, is_here), before)?;
            // Who removes files must be allowed to, even if it never writes to them.
            let removes = program::removes_names(engine);
            tenant.opening = if removes { Opening::LaidOut } else { found };
            let is_read = !removes && !job.rw.writes() && !job.rw.trims();
            if is_read && is_here && paths.iter().all(|path| self.is_large(path, bytes)) {
                set.reuse = Reuse::Untouched;
            }
        }
        Ok((tenant, set, verifier))
    }

    /// Files of a unit that is a program, if they are not too many.
    fn paths_of_many(
        &self,
        job: &Job,
        unit: &Unit,
        engine: Engine,
        before: &[Work],
    ) -> Result<Vec<Path>> {
        let named = before.iter().map(|work| work.paths.len() as u64).sum();
        self.on(job, program::check_files(job, unit, engine, named))?;
        self.on(job, places::many(job, unit))
    }

    /// The device that the jobs work on and that a job names: its sizes are shares of it.
    fn whole_device(&self, job: &Job) -> Option<&str> {
        let path = self.typing.common.on.as_deref()?.strip_prefix("device:")?;
        (job.filename == [path]).then_some(path)
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
        // Of the rules, failures alone are for who reads it back, too.
        let tolerance = tenant.manner.rules.tolerance.clone();
        let rules = TenantRules { tolerance, ..TenantRules::default() };
        if let Some(mut twin) = verify::rereading(tenant) {
            twin.manner.rules = rules;
            return Ok(Some(twin));
        }
        let note = "each block of its files is read once after the writes";
        self.notes.push(format!("job {}: verify: {note}", job.name));
        let (mut reader, _) = self.on(job, made(&verify::reading_all(job)))?;
        reader.manner.expects_written = false;
        reader.manner.rules = rules;
        Ok(Some(reader))
    }

    /// Tells that a device which a job names is not used on a testbed of its own.
    fn note_devices(&mut self, job: &Job, unit: &Unit, paths: &[Path]) {
        if self.whole_device(job).is_some() || unit.first > 0 {
            return;
        }
        let is_device = |path: &&Path| matches!(self.host.at(&path.text()), There::Device(_));
        for path in paths.iter().filter(is_device) {
            self.devices.push(path.text());
            self.notes.push(format!(
                "job {}: {} itself is not used: on the testbed a file has its name; without --on \
                 jobs that only read read the device",
                job.name,
                path.text()
            ));
        }
    }

    /// Tells what has no effect, or another than it has with fio.
    fn note_effects(&mut self, job: &Job, unit: &Unit, engine: Engine) {
        let mut note = |text: &str| {
            if unit.first == 0 {
                self.notes.push(format!("job {}: {text}", job.name));
            }
        };
        if program::has_two_sizes(job) {
            note(
                "reads and writes of different sizes go to places that are drawn evenly, as with \
                 norandommap: in fio's map of places few of the larger ones find room",
            );
        }
        if job.submitter_cpu.is_some() && !job.has_submission_thread {
            note("sqthread_poll_cpu has no effect without sqthread_poll=1");
        }
        if job.distribution != "random" && !job.rw.is_random() {
            note("random_distribution has no effect on an order that is not random");
        }
        let is_typed = |name: &str| job.typed.iter().any(|typed| typed.row.name == name);
        if is_typed("direct") && is_typed("buffered") {
            note("of direct and buffered the last one counts, as in fio");
        }
        let block = job.verifying.interval;
        if job.compares()
            && block > 0
            && !job.bs[usize::from(!job.rw.reads())].is_multiple_of(block)
        {
            note("verify_interval does not divide bs: each transfer is one block, as in fio");
        }
        if job.number_ios > 0 && job.is_time_based && job.runtime_ns > 0 {
            note("number_ios has no effect with time_based, as in fio");
        }
        if job.pauses.burning_ns > job.think_ns && job.think_ns > 0 {
            note(
                "thinktime_spin is longer than thinktime: the CPU is burnt for thinktime, where \
                 fio burns for all of thinktime_spin",
            );
        }
        if job.depth > 1 && !engine.is_asynchronous() && unit.first == 0 {
            let note = "has one transfer under way, whatever iodepth says, as in fio";
            self.notes.push(format!("job {}: ioengine={} {note}", job.name, engine.name));
        }
        if engine.name == "libaio" && !job.is_direct && job.depth > 1 && unit.first == 0 {
            let note = "libaio through the page cache waits for each transfer; write direct=1, or \
                        ioengine=io_uring";
            let depth = job.depth;
            self.notes.push(format!("job {}: iodepth={depth} has no effect: {note}", job.name));
        }
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
            self.complete(&mut made, works, &verified);
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
        self.complete(&mut made, works, here);
        made.is_stonewalled = first_job.ends_all;
        Ok(made)
    }

    /// Gives a phase of some works its engine, and its tenants what they do not share.
    fn complete(&self, phase: &mut Phase, works: &[Work], here: &[usize]) {
        let engine = engine_of(works, here);
        phase.engine = Some(engine.to_owned());
        for (tenant, work) in phase.tenants.iter_mut().zip(here.iter().map(|it| &works[*it])) {
            tenant.manner.engine = (work.ours != engine).then(|| work.ours.to_owned());
            let job = &self.typing.jobs[work.unit.job];
            tenant.manner.content = self.own_content(job);
            tenant.manner.is_unlinked = self.typing.jobs[work.unit.job].is_unlinked;
        }
    }

    /// Tell whether the files' parts of the page cache are dropped first: of all that is read, or,
    /// where jobs differ, by the workers of those that ask for it.
    fn cache(&self, works: &mut [Work]) -> Result<String> {
        let reads = |work: &Work| !work.engine.is_without_files() && work.tenant.reads();
        let reading = works.iter().filter(|work| reads(work));
        let asked: Vec<&Job> = reading.map(|work| &self.typing.jobs[work.unit.job]).collect();
        let is_warm = asked.iter().any(|job| job.is_pre_read);
        if let Some(job) = asked.iter().find(|job| is_warm && !job.is_pre_read) {
            let what = "pre_read differs between jobs that read".to_owned();
            return self.at(job, ("pre_read", Problem::new(what, "write it in [global]")));
        }
        if is_warm {
            return Ok("warm".to_owned());
        }
        let is_cold = asked.iter().any(|job| job.is_invalidated);
        if is_cold && asked.iter().any(|job| !job.is_invalidated) {
            let is_asked = |work: &Work| self.typing.jobs[work.unit.job].is_invalidated;
            for work in works.iter_mut().filter(|work| reads(work) && is_asked(work)) {
                if work.tenant.program.is_some() {
                    let what =
                        "invalidate differs between jobs that read, and this one has several \
                                files or sizes"
                            .to_owned();
                    let problem = Problem::new(what, "write it in [global], for all jobs");
                    return self.at(&self.typing.jobs[work.unit.job], ("invalidate", problem));
                }
                work.tenant.manner.drops_cache_first = true;
            }
            return Ok("as_is".to_owned());
        }
        Ok(if is_cold { "cold" } else { "as_is" }.to_owned())
    }

    /// Tell whether clones are threads: some share what processes do not.
    fn are_threads(&self, works: &[Work]) -> bool {
        let is_shared = |work: &Work| work.engine.name == "null" || work.tenant.program.is_some();
        works.iter().any(is_shared) || self.typing.jobs.iter().any(|job| job.is_thread)
    }

    fn workload(&self, works: &[Work], phases: Vec<Phase>) -> Workload {
        let jobs = &self.typing.jobs;
        let saved = works.iter().find_map(|work| work.state).map(|state| state.seed.0);
        let seed = match saved.or(jobs[0].seed) {
            Some(seed) => seed,
            None if jobs.iter().any(|job| !job.is_repeated) => self.host.chance(),
            None => SEED,
        };
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
            // Jobs behind a stonewall begin all the same; what has failed is not read back.
            goes_on_after_failure: !is_verified
                && !jobs.iter().any(|job| job.ends_on_error && job.ends_later_ones),
            file_sets: works.iter().filter_map(|work| self.set_of(work)).collect(),
            ..workload("fio", seed, self.usual_content(), phases)
        }
    }
}

impl<H: Host> Lowering<'_, H> {
    /// Content of the first job that writes or compares, else of the first one.
    fn usual_content(&self) -> Content {
        let jobs = &self.typing.jobs;
        let writes = |job: &&Job| job.rw.writes_data() || job.compares();
        let first = jobs.iter().find(writes).or(jobs.first());
        first.map_or(Content::Incompressible, content)
    }

    /// Content of a job, where it is not the usual one: of the files that it only reads as well,
    /// which are made of it.
    fn own_content(&self, job: &Job) -> Option<Content> {
        let is_verified = self.typing.jobs.iter().any(Job::compares);
        Some(content(job)).filter(|content| !is_verified && *content != self.usual_content())
    }

    /// Files of a work's program, made of the content of its job.
    fn set_of(&self, work: &Work) -> Option<FileSet> {
        let content = self.own_content(&self.typing.jobs[work.unit.job]);
        work.set.clone().map(|set| FileSet { content, ..set })
    }
}

/// Engine of a phase of some works: of those that touch files, if there are any.
fn engine_of(works: &[Work], here: &[usize]) -> &'static str {
    let touches = |index: &&usize| !works[**index].engine.is_without_files();
    works[*here.iter().find(touches).unwrap_or(&here[0])].ours
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
    let remedy = format!("use 0 to {}", host.cpus() - 1);
    if let Some(cpu) = job.submitter_cpu.filter(|cpu| u64::from(*cpu) >= host.cpus()) {
        return Err(("sqthread_poll_cpu", Problem::new(format!("there is no CPU {cpu}"), remedy)));
    }
    let Some(text) = &job.cpus else { return Ok(()) };
    let (found, odd) = cpus(text);
    let what = match (odd, found.iter().find(|cpu| u64::from(**cpu) >= host.cpus())) {
        (Some(part), _) => format!("cpus_allowed: '{part}' is no CPU and no range of them"),
        (None, Some(cpu)) => format!("there is no CPU {cpu}"),
        (None, None) => return Ok(()),
    };
    Err(("cpus_allowed", Problem::new(what, remedy)))
}
