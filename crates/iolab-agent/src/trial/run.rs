//! From a trial spec to a record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use iolab_workload::Workload;

use super::changes::Changes;
use super::child::{MeasureProgram, Place, measure};
use super::recordings::Recordings;
use crate::boundary::Boundary;
use crate::cgroup::MemoryLimit;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::facts;
use crate::identity::on_behalf;
use crate::io_group::IoGroups;
use crate::journal::Change;
use crate::knob::KnobSet;
use crate::machine::Machine;
use crate::memory;
use crate::noise::{Noise, Span};
use crate::owned_directory;
use crate::protocol::{
    ActionKind, Cache, Counter, MeasureOrder, MeasureResult, PairsImageRecord, PairsSpec, Progress,
    Record, RecordingResult, RunAs, StackRecord, Status, TraceOfTrial, TrialSpec, Warning,
};
use crate::testbed::{Asked, Prepared, Testbed};
use crate::trace::{self, Recorder};

/// Surroundings in which a trial runs.
pub struct Context<'a> {
    /// The machine; its journal is open.
    pub machine: &'a mut Machine,
    /// Testbed of the trial.
    pub testbed: &'a mut dyn Testbed,
    /// Its knobs.
    pub knobs: &'a mut KnobSet,
    /// Name of the run.
    pub run: &'a str,
    /// Permissions of root, if it works for another user.
    pub boundary: Option<&'a Boundary>,
    /// Program that measures.
    pub program: &'a MeasureProgram,
    /// Nothing of ours kept the machine busy just before.
    pub is_first: bool,
}

/// Runs one trial. What goes wrong before the measuring is an error, later it is in the record.
pub fn run(context: Context, spec: &TrialSpec, control: &mut dyn Control) -> Result<Record> {
    let Context { machine, testbed, knobs, run, boundary, program, is_first } = context;
    let (started, started_at) = (Instant::now(), SystemTime::now());
    control.progress(Progress {
        trial: Some(spec.trial.clone()),
        phase: "prepare".to_owned(),
        share: Some(0.0),
        ..Progress::default()
    });
    if let Some(boundary) = boundary {
        let place = (testbed.class(), testbed.devices());
        boundary.check_trial(place, testbed.is_users(), spec)?;
    }
    testbed.check_knobs(machine, &spec.knobs)?;
    check_changes(machine, testbed, spec)?;
    let (workload, recordings) = Recordings::taken(machine, spec)?;
    let prepared = testbed.prepare(machine, Asked::of(spec))?;
    let run_as = match boundary {
        Some(boundary) => boundary.measures_as(testbed.class(), spec),
        None => spec.run_as.clone(),
    };
    hand_over(machine, testbed, &prepared, run_as.as_ref())?;
    let applied = knobs.apply(machine, &spec.knobs)?;
    let facts = facts_of_all(machine, testbed, &prepared)?;
    let images = images_of(spec, &prepared)?;
    let noise = Noise::sample(machine);
    let noise = if is_first { noise } else { noise.without_averages() };
    let what = What { spec, prepared: &prepared, run, run_as, boundary, workload, recordings };
    let (measured, trace) = measure_traced((machine, knobs), testbed, &what, program, control)?;
    let mut warnings = prepared.warnings;
    warnings.extend(applied.warnings);
    warnings.extend(noise.warnings_until(&Noise::sample(machine), Span::Trial));
    warnings.extend(measured.warnings);
    // What cannot be cleaned up was perhaps not measured where it should: that is no result.
    let (mut status, mut error) = (measured.status, measured.error);
    if let Err(problem) = testbed.clean(machine) {
        warnings.push(not_cleaned(&problem.to_string()));
        status = Status::Failed;
        error.get_or_insert_with(|| problem.to_string());
    }
    Ok(Record {
        trial: spec.trial.clone(),
        status,
        error,
        started_at_unix_ns: unix_ns(started_at),
        elapsed_ns: started.elapsed().as_nanos() as u64,
        engine: spec.workload.engine.clone(),
        knobs: if machine.is_dry_run() { rehearsed(applied.knobs, spec) } else { applied.knobs },
        stack: prepared.stack,
        facts,
        warnings,
        actions: machine.take_actions(),
        phases: measured.phases,
        pairs: measured.pairs,
        made: measured.made,
        trace: trace.map(|recorded| TraceOfTrial { recorded, file: None, sha256: None }),
        simulation: None,
        host_writes: None,
        session: None,
        images,
    })
}

/// Facts of the machine, of the devices and of the places that are measured.
fn facts_of_all(
    machine: &Machine,
    testbed: &dyn Testbed,
    prepared: &Prepared,
) -> Result<facts::Facts> {
    let mut facts = facts::machine(machine);
    facts.extend(memory::fact(machine));
    for device in testbed.devices() {
        facts.extend(facts::device(machine, device));
    }
    // Slices of a device lie in no file system; what stands in for them is in memory.
    if prepared.raw.is_none() {
        let places = || Ok(facts_of_places(prepared));
        facts.extend(on_behalf(machine.user().filter(|_| testbed.class() == "A+"), places)?);
    }
    Ok(facts)
}

/// The file systems of treatments that have their own, as they were made.
fn images_of(spec: &TrialSpec, prepared: &Prepared) -> Result<Vec<PairsImageRecord>> {
    let asked = spec.pairs.as_ref().map_or(0, |pairs| pairs.images.len());
    if prepared.images.len() != asked {
        return Err(Error::refused(
            "images of their own for treatments are made on private loop devices only",
            "use --on loop:SIZE, or compare whole trials",
        ));
    }
    let folders = std::iter::once(&prepared.folder).chain(&prepared.twins);
    let each = prepared.images.iter().zip(folders);
    let record = |(stack, folder): (&StackRecord, &PathBuf)| PairsImageRecord {
        stack: stack.clone(),
        facts: facts::place(folder),
    };
    Ok(each.map(record).collect())
}

/// Facts of the file systems under a trial's files: those of a place after its name.
fn facts_of_places(prepared: &Prepared) -> BTreeMap<String, String> {
    let mut found = facts::place(&prepared.folder);
    for place in &prepared.places {
        let own = facts::place(&place.folder).into_iter();
        found.extend(own.map(|(name, value)| (format!("place.{}.{name}", place.name), value)));
    }
    found
}

/// Refuses knobs that could not be changed while the workload runs.
fn check_changes(machine: &Machine, testbed: &dyn Testbed, spec: &TrialSpec) -> Result<()> {
    for change in &spec.changes {
        testbed.check_knobs(machine, &change.knobs)?;
    }
    for treatment in spec.pairs.iter().flat_map(|pairs| &pairs.treatments) {
        testbed.check_knobs(machine, &treatment.knobs)?;
    }
    if let Some(problem) = spec.pairs.as_ref().and_then(PairsSpec::problem) {
        return Err(Error::protocol(problem));
    }
    if spec.pairs.as_ref().is_some_and(PairsSpec::may_switch_fast) {
        testbed.check_fast_switching()?;
    }
    Ok(())
}

/// Gives a directory that is ours to whom measures there; one of the user's is as it is.
fn hand_over(
    machine: &Machine,
    testbed: &dyn Testbed,
    prepared: &Prepared,
    run_as: Option<&RunAs>,
) -> Result<()> {
    let Some(run_as) = run_as else { return Ok(()) };
    if !nix::unistd::geteuid().is_root() {
        let what = format!("only root can measure as user {}", run_as.uid);
        return Err(Error::refused(what, "run it as root or with sudo"));
    }
    if prepared.raw.is_some() {
        let what = "a device without a file system belongs to root";
        return Err(Error::refused(what, "choose a file system, or measure as root"));
    }
    if !prepared.twins.is_empty() {
        let what = "twin devices are measured as root";
        return Err(Error::refused(what, "leave run_as out, or compare whole trials"));
    }
    // What was made for a user is his already.
    let is_theirs = testbed.class() == "A+" && machine.user().is_some();
    if !testbed.is_users() && !is_theirs && !machine.is_dry_run() {
        let owner = (run_as.uid, run_as.gid);
        owned_directory::give(&prepared.folder, prepared.token.as_deref(), owner)?;
        for place in &prepared.places {
            owned_directory::give(&place.folder, place.token.as_deref(), owner)?;
        }
    }
    Ok(())
}

/// Subject of a measurement: workload, place and user.
struct What<'a> {
    spec: &'a TrialSpec,
    prepared: &'a Prepared,
    run: &'a str,
    run_as: Option<RunAs>,
    boundary: Option<&'a Boundary>,
    /// The workload, whose recorded streams are descriptors.
    workload: Workload,
    recordings: Recordings,
}

/// Measures, and records what reaches the devices, if the trial asks for it.
fn measure_traced(
    (machine, knobs): (&mut Machine, &mut KnobSet),
    testbed: &dyn Testbed,
    what: &What,
    program: &MeasureProgram,
    control: &mut dyn Control,
) -> Result<(MeasureResult, Option<RecordingResult>)> {
    let place = (testbed.class(), testbed.devices());
    let asked =
        trace::Asked { spec: what.spec, run: what.run, testbed: place, boundary: what.boundary };
    let mut begun = trace::begin(machine, &asked)?;
    let recorder = begun.as_mut().map(|(recorder, _)| recorder);
    let how = (program, recorder);
    let measured = measure_limited((machine, knobs), testbed, what, how, control);
    let Some((recorder, warnings)) = begun else { return Ok((measured?, None)) };
    let ended = trace::end(machine, recorder);
    let mut measured = measured?;
    measured.warnings.extend(warnings);
    let (found, warnings) = ended?;
    measured.warnings.extend(warnings);
    Ok((measured, Some(found)))
}

/// Measures within the control groups that the trial asks for.
fn measure_limited(
    (machine, knobs): (&mut Machine, &mut KnobSet),
    testbed: &dyn Testbed,
    what: &What,
    (program, recorder): (&MeasureProgram, Option<&mut Recorder>),
    control: &mut dyn Control,
) -> Result<MeasureResult> {
    let spec = what.spec;
    let asked = (&spec.io_groups[..], spec.memory_limit_bytes.is_some());
    let groups = IoGroups::create(machine, what.run, testbed.devices(), asked)?;
    let limit = match spec.memory_limit_bytes.map(|b| MemoryLimit::create(machine, what.run, b)) {
        Some(Ok(limit)) => Some(limit),
        Some(Err(error)) => {
            groups.remove(machine)?;
            return Err(error);
        }
        None => None,
    };
    let place = Place { limit: limit.as_ref(), recorder };
    let measured = measure_now((machine, knobs), testbed, what, (program, place, &groups), control);
    let removed = [groups.remove(machine), limit.map_or(Ok(()), |limit| limit.remove(machine))];
    let mut measured = measured?;
    let problems = removed.into_iter().filter_map(Result::err);
    measured.warnings.extend(problems.map(|error| not_cleaned(&error.to_string())));
    Ok(measured)
}

/// Measures, and changes knobs meanwhile.
fn measure_now(
    (machine, knobs): (&mut Machine, &mut KnobSet),
    testbed: &dyn Testbed,
    what: &What,
    how: (&MeasureProgram, Place, &IoGroups),
    control: &mut dyn Control,
) -> Result<MeasureResult> {
    let ((program, mut place, groups), What { spec, prepared, boundary, .. }) = (how, what);
    let class = testbed.class();
    let may_drop_caches = class != "A" && spec.cache == Cache::Cold
        && boundary.is_none_or(|boundary| boundary.may_drop_caches(class))
        // Direct I/O on a device has nothing to drop.
        && prepared.raw.is_none();
    if may_drop_caches {
        note_drop(machine, &spec.trial)?;
    }
    let order = MeasureOrder {
        trial: &spec.trial,
        directory: prepared.folder.clone(),
        twins: &prepared.twins,
        token: prepared.token.as_deref(),
        is_ours: !testbed.is_users(),
        device: prepared.raw.as_ref(),
        counters: testbed.devices().iter().map(|name| counter(name)).collect(),
        groups: groups.seats(),
        cache: spec.cache,
        may_drop_caches,
        reserve_bytes: prepared.reserve_bytes,
        place_reserves: prepared
            .places
            .iter()
            .map(|place| (place.name.as_str(), place.reserve_bytes))
            .collect(),
        time_limit_ns: spec.time_limit_ns,
        waits: spec.waits.as_ref(),
        interim: spec.interim,
        run_as: what.run_as.as_ref(),
        enters_as_user: boundary.is_some() && class == "A+",
        is_favoured: boundary.is_none(),
        files: testbed.is_users().then(|| spec.files.clone().unwrap_or_default()),
        descriptors: what.recordings.descriptors(),
        pairs: spec.pairs.as_ref(),
        workload: &what.workload,
    };
    let shown = prepared.folder.display().to_string();
    let is_real = machine.act(ActionKind::Exec, "measure", shown, || Ok(()))?.is_some();
    let mut changes = Changes::new(machine, knobs, spec);
    let mut measured = if is_real {
        measure(program, &order, (&mut place, &mut changes), control)?
    } else {
        changes.rehearse()?;
        rehearsal()
    };
    let done = changes.finish();
    // Only a workload of one phase has changes.
    if let Some(phase) = measured.phases.first_mut() {
        phase.marks = done.marks;
    }
    if let Some(pairs) = &mut measured.pairs {
        pairs.knobs = done.knobs;
    }
    measured.warnings.extend(done.warnings);
    Ok(measured)
}

/// The child may drop the page cache of everybody; that is said and recorded, it cannot be undone.
fn note_drop(machine: &mut Machine, trial: &str) -> Result<()> {
    let ids = machine.intend(vec![Change::CachesDropped { trial: trial.to_owned() }])?;
    machine.act(ActionKind::DropCaches, "/proc/sys/vm/drop_caches", "if needed", || Ok(()))?;
    match machine.journal() {
        Some(journal) if !ids.is_empty() => journal.mark(&ids, crate::journal::State::Obsolete),
        _ => Ok(()),
    }
}

fn counter(name: &str) -> Counter {
    Counter { name: name.to_owned(), stat_path: PathBuf::from(format!("/sys/block/{name}/stat")) }
}

fn rehearsal() -> MeasureResult {
    let (phases, warnings) = (Vec::new(), Vec::new());
    let made = BTreeMap::new();
    MeasureResult { status: Status::DryRun, error: None, phases, pairs: None, warnings, made }
}

/// A device that does not exist cannot be read back: the record shows what was asked for.
fn rehearsed(mut found: BTreeMap<String, String>, spec: &TrialSpec) -> BTreeMap<String, String> {
    found.extend(spec.knobs.clone());
    found
}

fn not_cleaned(what: &str) -> Warning {
    Warning::new("not_cleaned", what, "it is tried again when the testbed closes")
}

fn unix_ns(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as u64)
}
