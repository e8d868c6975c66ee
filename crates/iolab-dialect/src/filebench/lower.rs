//! From a script to a workload: one phase, a tenant for each thread of each process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use iolab_model::priority::PriorityClass;
use iolab_model::target::Content;
use iolab_model::{Ns, Priority, Seed};
use iolab_workload::Workload;
use iolab_workload::program::{Limits, Program};
use iolab_workload::spec::{Tenant, WorkersAs};

use super::expansion;
use super::filesets::{self, Lowered};
use super::lex::{ScriptFault, ScriptSpot};
use super::plan::{Command, FlowopShow, Show, ToldAs};
use super::scope::ScriptScope;
use super::script::{Said, Script};
use super::steps::{Steps, StepsContext, Told};
use super::syntax::{Flowop, Quit, Thread, WmlProcess};
use super::words::{Attribute, FlowopKind};
use crate::workload::{phase, workload};

type Result<T> = std::result::Result<T, ScriptFault>;

/// Root of random numbers: trees and sizes are the same in every run, as with the original.
const SEED: u64 = 0x000f_11eb;
/// Threads of a run at most: each is one of the kernel's, with a stack and buffers.
const THREADS_MAX: u64 = 16_384;
/// Operations under way of a thread at most, as rings have.
const DEPTH_MAX: u64 = 4096;
/// Best effort has eight levels; 8 stands for none.
const PRIORITY_NONE: u64 = 8;

/// Result of a script.
#[derive(Debug)]
pub struct LoweredScript {
    /// Measured workload; absent: the script ends without a run.
    pub workload: Option<Workload>,
    /// Directory of the files.
    pub directory: String,
    /// Form of the results.
    pub show: Show,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Largest bytes of a transfer.
    pub record_bytes: u64,
    /// Largest bytes of a file.
    pub file_bytes: u64,
}

/// Requests of the command line.
#[derive(Clone, Debug, Default)]
pub struct LoweringWishes {
    /// Commands of the script may run.
    pub may_execute: bool,
    /// Files lie where a testbed says, not where the script does.
    pub has_testbed: bool,
    /// Engine; absent: by what the script does.
    pub engine: Option<String>,
}

struct Loop<'a> {
    process: &'a WmlProcess,
    thread: &'a Thread,
    name: String,
    instances: u64,
}

/// The workload of a script, and how it is told.
pub fn lower(script: &Script, wishes: &LoweringWishes) -> Result<LoweredScript> {
    let mut outcome = said(script, wishes)?;
    let Some(run) = script.run else { return Ok(outcome) };
    let mut sets = Vec::new();
    for files in &script.files {
        let lowered = filesets::lower(files, &script.scope, Seed(SEED))?;
        if sets.iter().any(|known: &Lowered| known.set.name == lowered.set.name) {
            let what = format!("a second fileset {}", lowered.set.name);
            return Err(ScriptFault::new(files.given.spot, what, "give each its own name"));
        }
        outcome.notes.extend(lowered.notes.clone());
        sets.push(lowered);
    }
    let threads = threads(script)?;
    expansion::check(script, threads.iter().map(|one| &one.thread.flowops[..]))?;
    let (semaphores, blocks) = meetings(script, &threads)?;
    let context = StepsContext { script, files: &sets, semaphores: &semaphores, blocks: &blocks };
    let mut tenants = Vec::new();
    let mut has_asynchronous = false;
    let mut all_told: Vec<(usize, Told)> = Vec::new();
    for one in &threads {
        let tenant =
            tenant(&context, one, run, tenants.len(), (&mut all_told, &mut outcome.notes))?;
        has_asynchronous |= tenant.depth > 1;
        tenants.push(tenant);
    }
    if tenants.is_empty() {
        return Err(ScriptFault::new(run, "no process with a thread", "write define process"));
    }
    outcome.show.flowops = shown(&all_told);
    place(&mut sets, (wishes, run), &mut outcome)?;
    finish(script, (sets, tenants), (wishes, has_asynchronous, run), &mut outcome)?;
    Ok(outcome)
}

/// Everything before the run: texts and commands.
fn said(script: &Script, wishes: &LoweringWishes) -> Result<LoweredScript> {
    let mut show = Show {
        has_histograms: script.has_histograms,
        period_s: script.reports.map_or(0, |reports| reports.period_s),
        is_set_back: script.reports.is_some_and(|reports| reports.is_set_back),
        is_timeout: script.quit == Quit::Timeout,
        ..Show::default()
    };
    for said in &script.said {
        match said {
            Said::Text(text) => show.said.push(text.clone()),
            Said::Command(line, spot) if !wishes.may_execute => {
                let what = format!("system \"{line}\": a script starts no commands unasked");
                let remedy = "read them, then add --allow-exec to the command line";
                return Err(ScriptFault::new(*spot, what, remedy));
            }
            Said::Command(line, spot) if script.run.is_none() => {
                let what = format!("system \"{line}\" in a script that measures nothing");
                return Err(ScriptFault::new(*spot, what, "run it in a shell"));
            }
            Said::Command(line, _) => show.commands.push(Command { line: line.clone() }),
        }
    }
    if script.has_histograms {
        show.said.push("Latency histogram enabled".to_owned());
    }
    Ok(LoweredScript {
        workload: None,
        directory: String::new(),
        show,
        notes: script.notes.clone(),
        record_bytes: 0,
        file_bytes: 0,
    })
}

/// Threads with their instances, in the order of the script.
fn threads(script: &Script) -> Result<Vec<Loop<'_>>> {
    let scope = &script.scope;
    let mut all: Vec<Loop<'_>> = Vec::new();
    for process in &script.processes {
        let of_process = scope.number(&process.given, Attribute::Instances, 1)?;
        let process_name = scope.text(&process.given, Attribute::Name)?.unwrap_or_default();
        for thread in &process.threads {
            let instances = scope.number(&thread.given, Attribute::Instances, 1)?;
            let name = scope.text(&thread.given, Attribute::Name)?.unwrap_or_default();
            let name = if name.is_empty() || name == process_name {
                process_name.clone()
            } else {
                format!("{process_name}.{name}")
            };
            let mut unique = if name.is_empty() { "process".to_owned() } else { name };
            while all.iter().any(|known| known.name == unique) {
                unique.push('\'');
            }
            let instances = of_process.saturating_mul(instances);
            all.push(Loop { process, thread, name: unique, instances });
        }
    }
    let total = all.iter().fold(0_u64, |sum, one| sum.saturating_add(one.instances));
    if total > THREADS_MAX {
        let spot = all.first().map_or(ScriptSpot::default(), |one| one.process.given.spot);
        let what = format!("{total} threads");
        return Err(ScriptFault::new(
            spot,
            what,
            format!("write instances for at most {THREADS_MAX}"),
        ));
    }
    Ok(all)
}

type Semaphores = BTreeMap<String, (u64, u64)>;

/// Flowops that others are about, by the names that they have in the report.
fn meetings(script: &Script, threads: &[Loop<'_>]) -> Result<(Semaphores, BTreeSet<String>)> {
    let (mut semaphores, mut blocks) = (BTreeMap::new(), BTreeSet::new());
    for one in threads {
        let mut left: Vec<(String, &Flowop)> =
            one.thread.flowops.iter().map(|flowop| (String::new(), flowop)).collect();
        while let Some((prefix, flowop)) = left.pop() {
            let name = script.scope.text(&flowop.given, Attribute::Name)?.unwrap_or_default();
            let name = format!("{prefix}{name}");
            match flowop.row.map(|row| row.kind) {
                Some(FlowopKind::SemBlock) => {
                    let water = script.scope.number(&flowop.given, Attribute::HighWater, 1)?;
                    let known = semaphores.entry(name).or_insert((0_u64, water));
                    known.0 = known.0.saturating_add(one.instances);
                }
                Some(FlowopKind::Block) => {
                    blocks.insert(name);
                }
                // A composite in itself, or one that is too long, was refused.
                None => {
                    let inner = script.composites.get(&flowop.kind);
                    let inner = inner.into_iter().flat_map(|composite| &composite.flowops);
                    left.extend(inner.map(|flowop| (format!("{name}."), flowop)));
                }
                _ => {}
            }
        }
    }
    Ok((semaphores, blocks))
}

fn tenant(
    context: &StepsContext<'_>,
    one: &Loop<'_>,
    run: ScriptSpot,
    index: usize,
    (all_told, notes): (&mut Vec<(usize, Told)>, &mut Vec<String>),
) -> Result<Tenant> {
    let scope = &context.script.scope;
    let given = &one.thread.given;
    let memory = scope.number(given, Attribute::MemSize, 0)?;
    let mut steps = Steps::new(context, memory);
    let flow = steps.of(&one.thread.flowops)?;
    notes.append(&mut steps.notes);
    if flow.is_empty() {
        return Err(ScriptFault::new(given.spot, "a thread without flowops", "write flowop in it"));
    }
    all_told.extend(steps.told.drain(..).map(|told| (index, told)));
    if scope.number(&one.process.given, Attribute::Nice, 0)? > 0 {
        notes.push(format!("{}: nice changes nothing here", one.name));
    }
    let endless = Limits { passes: Some(u64::MAX), ..Limits::default() };
    let limit = Limits { time_ns: context.script.time_ns, ..endless };
    let program = Program { steps: flow, limit, ..Program::default() };
    let Ok(workers) = u32::try_from(one.instances) else {
        return Err(ScriptFault::new(run, format!("{} threads", one.instances), "use fewer"));
    };
    let under_way = steps.asynchronous.saturating_mul(2).min(DEPTH_MAX - 1) as u32;
    Ok(Tenant {
        depth: under_way + 1,
        priority: priority(scope, one)?,
        ..Tenant::of_program(&one.name, workers, program)
    })
}

fn priority(scope: &ScriptScope, one: &Loop<'_>) -> Result<Option<Priority>> {
    match scope.number(&one.thread.given, Attribute::IoPrio, PRIORITY_NONE)? {
        PRIORITY_NONE => Ok(None),
        level @ 0..=7 => {
            Ok(Some(Priority { class: PriorityClass::BestEffort, level: level as u8 }))
        }
        other => {
            let what = format!("ioprio of {other}");
            Err(ScriptFault::new(one.thread.given.spot, what, "write 0 to 7, or 8 for none"))
        }
    }
}

/// Rows of the report: operations of one name are one row, where the first of them stands.
fn shown(told: &[(usize, Told)]) -> Vec<FlowopShow> {
    let mut rows: Vec<FlowopShow> = Vec::new();
    for (tenant, one) in told {
        let part = one.id.iter().map(|id| (*tenant, id.clone()));
        if let Some(row) = rows.iter_mut().find(|row| row.name == one.name) {
            row.parts.extend(part);
            continue;
        }
        let counts = one.row.map_or(ToldAs::Control, |row| row.counts.into());
        rows.push(FlowopShow { name: one.name.clone(), counts, parts: part.collect() });
    }
    rows
}

/// The directory that all filesets lie in.
fn place(
    sets: &mut [Lowered],
    (wishes, run): (&LoweringWishes, ScriptSpot),
    outcome: &mut LoweredScript,
) -> Result<()> {
    let Some(first) = sets.first() else { return Ok(()) };
    if wishes.has_testbed {
        return Ok(());
    }
    let mut common = PathBuf::from(&first.path);
    for set in sets.iter().skip(1) {
        while !Path::new(&set.path).starts_with(&common) {
            if !common.pop() {
                break;
            }
        }
    }
    let common = if common.as_os_str().is_empty() { PathBuf::from(".") } else { common };
    if let Some(set) = sets.iter().find(|set| !is_on_one_device(&common, Path::new(&set.path))) {
        let what = format!("filesets on several file systems: {} and {}", first.path, set.path);
        let remedy = "measure one after the other, or name one place with --on";
        return Err(ScriptFault::new(run, what, remedy));
    }
    outcome.directory = common.to_string_lossy().into_owned();
    Ok(())
}

/// Tell whether two directories lie on the same file system; what is not there counts as such.
fn is_on_one_device(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
    match (device(one), device(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

fn finish(
    script: &Script,
    (sets, tenants): (Vec<Lowered>, Vec<Tenant>),
    (wishes, has_asynchronous, run): (&LoweringWishes, bool, ScriptSpot),
    outcome: &mut LoweredScript,
) -> Result<()> {
    let (mut used, mut unused) = (Vec::new(), Vec::new());
    for lowered in sets {
        let mut programs = tenants.iter().filter_map(|tenant| tenant.program.as_ref());
        if programs.any(|program| program.uses_set(&lowered.set.name)) {
            used.push(lowered);
        } else {
            unused.push(lowered.set.name);
        }
    }
    for name in unused {
        outcome.notes.push(format!("{name}: no flowop uses it, so that it is not made"));
    }
    outcome.file_bytes = used.iter().map(|one| one.set.file_bytes.most()).max().unwrap_or(0);
    outcome.record_bytes = tenants.iter().map(|tenant| tenant.io_size_bytes.0).max().unwrap_or(0);
    outcome.show.files = used.iter().map(|one| one.show.clone()).collect();
    for process in &script.processes {
        let name = script.scope.text(&process.given, Attribute::Name)?.unwrap_or_default();
        let instances = script.scope.number(&process.given, Attribute::Instances, 1)?;
        outcome.show.processes.push((name, instances));
    }
    let mut phase = phase("run", tenants);
    phase.keeps_files = false;
    phase.is_stonewalled = script.quit != Quit::AllDone;
    if let (Some(reports), Some(time)) = (script.reports, script.time_ns) {
        let period = Ns::from_seconds(reports.period_s);
        let cuts = (1_u64..).map(|number| Ns(period.0.saturating_mul(number)));
        phase.cuts_ns = cuts.take_while(|cut| *cut < time).take(10_000).collect();
    }
    let usual = if has_asynchronous { "io_uring" } else { "psync" };
    let engine = wishes.engine.clone().unwrap_or_else(|| usual.to_owned());
    let workload = Workload {
        file_sets: used.into_iter().map(|one| one.set).collect(),
        workers_as: WorkersAs::Threads,
        engine,
        is_calibrated: false,
        goes_on_after_failure: false,
        // Layout of the slices over time; the report needs none.
        ..workload("filebench", SEED, Content::Incompressible, vec![phase])
    };
    if let Err(error) = workload.check() {
        return Err(ScriptFault::new(
            run,
            error.to_string(),
            "change what it is about in the script",
        ));
    }
    let mut seen = BTreeSet::new();
    outcome.notes.retain(|note| seen.insert(note.clone()));
    outcome.workload = Some(workload);
    Ok(())
}
