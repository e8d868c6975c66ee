//! State that the agent keeps between requests, and the handling of each request.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use crate::boundary::Boundary;
use crate::control::Control;
use crate::doctor;
use crate::error::{Error, Result};
use crate::facts;
use crate::identity::on_behalf;
use crate::journal::{self, Change, Journal};
use crate::knob::{KnobSet, offered_schedulers};
use crate::machine::Machine;
use crate::memory;
use crate::noise;
use crate::protocol::{
    Action, ActionKind, Answer, Call, Checks, Closed, Greeted, Hello, Nothing, OpenJournal,
    OpenedTestbed, PROTOCOL, RestoreParams, RunAs, ShutDown, TestbedSpec, TraceRecorded, TrialSpec,
    Warning,
};
use crate::request;
use crate::restore;
use crate::run_name;
use crate::testbed::{self, Opening, Testbed};
use crate::trace::{self, Recording};
use crate::trial::{self, Context, MeasureProgram};
use crate::watchdog::Watchdog;

/// Root's journals.
const SYSTEM_STATE: &str = "/var/lib/iolab";

/// Everything between the first request and the last.
#[derive(Default)]
pub struct Session {
    /// The user for whom root works, if it is for one.
    caller: Option<RunAs>,
    greeting: Option<Greeting>,
    open: Option<Open>,
    program: MeasureProgram,
    is_unrestored: bool,
}

struct Greeting {
    /// The run's name on this machine.
    run: String,
    state_dir: PathBuf,
    boot_id: String,
    is_dry_run: bool,
    boundary: Option<Boundary>,
}

impl Greeting {
    /// The user whose runs these are; none: root's own, or everybody's who is not root.
    fn uid(&self) -> Option<u32> {
        self.boundary.as_ref().map(|boundary| boundary.user().uid)
    }

    /// The name on this machine of a run that is to be restored: as its user calls it, or as it is
    /// shown.
    fn name_of(&self, asked: &str) -> Result<String> {
        let (uid, run) = run_name::parts(asked);
        run_name::check(run)?;
        let name = run_name::on_machine(uid.or(self.uid()), run);
        // An older iolab gave runs of all users the names that these chose.
        let is_there = journal::file_of(&self.state_dir, &name).exists();
        Ok(if is_there { name } else { asked.to_owned() })
    }
}

struct Open {
    machine: Machine,
    testbed: Box<dyn Testbed>,
    knobs: KnobSet,
    watchdog: Option<Watchdog>,
    /// No trial has run yet.
    is_fresh: bool,
}

impl Session {
    /// A session in which root works for `caller`; for itself if there is none.
    pub fn of(caller: Option<RunAs>) -> Self {
        Self { caller, ..Self::default() }
    }

    /// Does what was asked; `shutdown` only closes, the caller ends.
    pub fn handle(&mut self, call: Call, control: &mut dyn Control) -> Result<Answer> {
        match call {
            Call::Hello(hello) => self.hello(hello),
            Call::Doctor(params) => {
                // Who has no place for a journal cannot be greeted, but needs the doctor most.
                let greeted = self.greeting.as_ref().map(|greeting| Ok(greeting.state_dir.clone()));
                let state_dir = greeted.unwrap_or_else(usual_state_dir);
                let boundary = self.caller.clone().map(Boundary::around);
                on_behalf(self.caller.as_ref(), || {
                    let (paths, boundary) = (&params.paths, boundary.as_ref());
                    Ok(Answer::Checks(Checks {
                        checks: doctor::checks(paths, &state_dir, boundary),
                    }))
                })
            }
            Call::OpenTestbed(spec) => self.open_testbed(spec, control),
            Call::RunTrial(spec) => self.run_trial(&spec, control),
            Call::RecordTrace(spec) => self.trace(|how| trace::record(how, &spec, control)),
            Call::WatchTrace(spec) => self.trace(|how| trace::watch(how, &spec, control)),
            Call::CloseTestbed => self.close_testbed(),
            Call::Restore(params) => self.restore(&params),
            Call::Interrupt | Call::Proceed => Ok(Answer::Nothing(Nothing {})), // Nothing runs.
            Call::Shutdown => {
                let (problems, _) = self.close();
                Ok(Answer::ShutDown(ShutDown { problems }))
            }
        }
    }

    /// Closes what is open; whether everything that this session changed was put back.
    pub fn end(&mut self) -> bool {
        let (problems, _) = self.close();
        for problem in &problems {
            eprintln!("iolab-agent: not restored: {problem}");
        }
        !self.is_unrestored
    }

    fn greeting(&self) -> Result<&Greeting> {
        self.greeting.as_ref().ok_or_else(|| Error::protocol("say hello first"))
    }

    fn hello(&mut self, hello: Hello) -> Result<Answer> {
        if hello.protocol != PROTOCOL {
            let what = format!("protocol {} is not spoken here, only {PROTOCOL}", hello.protocol);
            return Err(Error::protocol(what));
        }
        run_name::check(&hello.run)?;
        if self.open.is_some() {
            return Err(Error::protocol("a testbed is open; close it before the next hello"));
        }
        let boundary = self.caller.clone().map(Boundary::around).transpose()?;
        if boundary.is_some() && hello.state_dir.is_some() {
            let what = "root keeps the journals of others in its own place, not in a given one";
            return Err(Error::refused(what, "leave state_dir out"));
        }
        let state_dir = hello.state_dir.map_or_else(usual_state_dir, Ok)?;
        journal::check_place(&state_dir)?;
        let boot_id = restore::boot_id();
        let uid = boundary.as_ref().map(|boundary| boundary.user().uid);
        let open_journals = open_journals((uid, &state_dir), &boot_id, |_| true);
        let answer = Answer::Greeted(Greeted {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            is_root: geteuid().is_root(),
            uid: geteuid().as_raw(),
            boot_id: boot_id.clone(),
            open_journals,
            boundary: boundary.as_ref().map(Boundary::told),
        });
        let (run, is_dry_run) = (run_name::on_machine(uid, &hello.run), hello.is_dry_run);
        self.greeting = Some(Greeting { run, state_dir, boot_id, is_dry_run, boundary });
        Ok(answer)
    }

    fn open_testbed(&mut self, spec: TestbedSpec, control: &mut dyn Control) -> Result<Answer> {
        if self.open.is_some() {
            return Err(Error::protocol("a testbed is open; close it first"));
        }
        let greeting = self.greeting()?;
        let kind = testbed::kind_of(&spec);
        let boundary = greeting.boundary.as_ref();
        if let Some(boundary) = boundary {
            boundary.check_class(kind.class)?;
        }
        refuse_open_journals(greeting, |change| {
            // A rehearsal only looks, but what a dead run left on a device looks like somebody's.
            let is_erased = matches!(change, Change::DeviceErased { .. });
            !greeting.is_dry_run || (is_erased && kind.is_erasing)
        })?;
        let mut machine = Machine::new(greeting.is_dry_run);
        machine.set_class(kind.class);
        machine.work_for(self.caller.clone());
        if greeting.is_dry_run && kind.class == testbed::CLASS_OF_USERS {
            journal::check_writable(&greeting.state_dir)?; // Root runs the others, elsewhere.
        }
        // Before any mount namespace is entered.
        let watchdog = begin_journal(&mut machine, greeting)?;
        let run = &greeting.run;
        let opening = Opening { machine: &mut machine, control, run, boundary, place: None };
        match testbed::open(spec, opening) {
            Ok(testbed) => {
                let knobs = KnobSet::new(testbed.knob_devices(), testbed.loop_run());
                let open =
                    self.open.insert(Open { machine, testbed, knobs, watchdog, is_fresh: true });
                Ok(Answer::Opened(opened(open)))
            }
            Err(error) => {
                let boot_id = greeting.boot_id.clone();
                let problems = put_back(&mut machine, watchdog, &boot_id);
                if problems.is_empty() {
                    return Err(error);
                }
                self.is_unrestored = true;
                Err(Error::RestoreIncomplete { cause: error.to_string(), problems })
            }
        }
    }

    fn run_trial(&mut self, spec: &TrialSpec, control: &mut dyn Control) -> Result<Answer> {
        request::check_names(spec)?;
        let Greeting { run, boundary, .. } = self.greeting()?;
        let (run, boundary) = (run.clone(), boundary.clone());
        let Some(open) = &mut self.open else {
            return Err(Error::protocol("no testbed is open; open one first"));
        };
        let warning = open.watchdog.as_mut().map_or(Ok(None), Watchdog::tend)?;
        // A loop testbed has just written its image.
        let is_first = std::mem::take(&mut open.is_fresh) && open.testbed.loop_run().is_none();
        let context = Context {
            machine: &mut open.machine,
            testbed: open.testbed.as_mut(),
            knobs: &mut open.knobs,
            run: &run,
            boundary: boundary.as_ref(),
            program: &self.program,
            is_first,
        };
        let mut record = trial::run(context, spec, control)?;
        record.warnings.extend(warning);
        Ok(Answer::Record(Box::new(record)))
    }

    /// Does something with block events of devices, and leaves nothing behind.
    fn trace(&mut self, work: impl FnOnce(Recording) -> Result<TraceRecorded>) -> Result<Answer> {
        if self.open.is_some() {
            return Err(Error::protocol("a testbed is open; close it first"));
        }
        let greeting = self.greeting()?;
        if greeting.is_dry_run {
            return Err(Error::protocol("a dry run records nothing"));
        }
        refuse_open_journals(greeting, |_| true)?;
        let mut machine = Machine::new(false);
        machine.set_class("C");
        machine.work_for(self.caller.clone());
        let watchdog = begin_journal(&mut machine, greeting)?;
        let Greeting { run, state_dir, boot_id, boundary, .. } = greeting;
        let how = Recording { machine: &mut machine, run, state_dir, boundary: boundary.as_ref() };
        let recorded = work(how);
        let problems = put_back(&mut machine, watchdog, &boot_id.clone());
        if problems.is_empty() {
            return Ok(Answer::TraceRecorded(recorded?));
        }
        self.is_unrestored = true;
        let cause = recorded.err().map_or_else(|| "recorded".to_owned(), |it| it.to_string());
        Err(Error::RestoreIncomplete { cause, problems })
    }

    fn close_testbed(&mut self) -> Result<Answer> {
        if self.open.is_none() {
            return Err(Error::protocol("no testbed is open"));
        }
        let (problems, actions) = self.close();
        Ok(Answer::Closed(Closed { is_restored: problems.is_empty(), problems, actions }))
    }

    fn close(&mut self) -> (Vec<String>, Vec<Action>) {
        let Some(mut open) = self.open.take() else { return (Vec::new(), Vec::new()) };
        let boot_id = self.greeting().map(|greeting| greeting.boot_id.clone()).unwrap_or_default();
        let mut problems = Vec::new();
        problems.extend(open.testbed.close(&mut open.machine).err().map(|error| error.to_string()));
        problems.extend(put_back(&mut open.machine, open.watchdog.take(), &boot_id));
        self.is_unrestored |= !problems.is_empty();
        (problems, open.machine.take_actions())
    }

    fn restore(&mut self, params: &RestoreParams) -> Result<Answer> {
        let greeting = self.greeting()?;
        if greeting.is_dry_run {
            return Err(Error::protocol("a dry run restores nothing"));
        }
        let run = params.run.as_deref().map(|run| greeting.name_of(run)).transpose()?;
        let Greeting { state_dir, boot_id, .. } = greeting;
        let outcome = restore::undo_dead_runs(greeting.uid(), state_dir, boot_id, run.as_deref());
        self.is_unrestored |= !outcome.problems.is_empty();
        Ok(Answer::Restored(outcome))
    }
}

/// Lets changes be recorded and watched over; there is no watchdog in a dry run.
fn begin_journal(machine: &mut Machine, greeting: &Greeting) -> Result<Option<Watchdog>> {
    let Greeting { state_dir, run, boot_id, .. } = greeting;
    let path = journal::file_of(state_dir, run).display().to_string();
    let journal = machine.act(ActionKind::CreateFile, path, "journal of the changes", || {
        Journal::create_for(greeting.uid(), state_dir, run, boot_id)
    })?;
    machine.attach_journal(journal.unwrap_or_else(|| Journal::on_paper(state_dir, run, boot_id)));
    machine.act(ActionKind::Exec, "watchdog", "restores if the agent dies", || {
        Watchdog::start(state_dir, run)
    })
}

/// Undoes what is in the machine's journal; dismisses the watchdog if nothing is left for it.
fn put_back(machine: &mut Machine, watchdog: Option<Watchdog>, boot_id: &str) -> Vec<String> {
    let mut problems = restore::undo(machine, boot_id).problems;
    problems.extend(restore::finish(machine).err().map(|error| error.to_string()));
    if let (Some(watchdog), true) = (watchdog, problems.is_empty()) {
        watchdog.dismiss();
    }
    problems
}

fn opened(open: &mut Open) -> OpenedTestbed {
    let (machine, testbed) = (&open.machine, &open.testbed);
    let devices = testbed.devices().to_vec();
    let mut facts = facts::machine(machine);
    facts.extend(memory::fact(machine));
    for device in &devices {
        facts.extend(facts::device(machine, device));
    }
    facts.extend(testbed.facts());
    let mut warnings: Vec<Warning> = testbed.warnings().to_vec();
    warnings.extend(noise::standing_warnings(machine));
    OpenedTestbed {
        class: testbed.class().to_owned(),
        directory: testbed.directory().to_path_buf(),
        schedulers: common_schedulers(machine, testbed.knob_devices()),
        knob_devices: testbed.knob_devices().to_vec(),
        devices,
        free_bytes: testbed.free_bytes(),
        facts,
        warnings,
        actions: open.machine.take_actions(),
    }
}

/// Schedulers that all devices offer, in the order of the first.
fn common_schedulers(machine: &Machine, devices: &[String]) -> Vec<String> {
    let mut offers = devices.iter().map(|device| offered_schedulers(machine, device));
    let mut common = offers.next().unwrap_or_default();
    for offer in offers {
        common.retain(|name| offer.contains(name));
    }
    common
}

fn usual_state_dir() -> Result<PathBuf> {
    if geteuid().is_root() {
        return Ok(PathBuf::from(SYSTEM_STATE));
    }
    let absolute = |name| {
        std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute())
    };
    let base =
        absolute("XDG_STATE_HOME").or_else(|| doctor::home().map(|home| home.join(".local/state")));
    base.map(|base| base.join("iolab")).ok_or_else(|| {
        Error::failed("there is no place for the journal: HOME is not set", "set HOME")
    })
}

/// Journals of dead runs in which something is left to do about a change that `is_meant`, each with
/// all that is left to do: that is what a restore will undo. A user is told of his own only.
fn open_journals(
    (uid, state_dir): (Option<u32>, &Path),
    boot_id: &str,
    is_meant: impl Fn(&Change) -> bool,
) -> Vec<OpenJournal> {
    let mut found = Vec::new();
    for path in journal::files_of(uid, state_dir) {
        let name = journal::run_of(&path);
        // Root must tell the runs of users apart, a user has none but his own.
        let run = uid.map_or(&*name, |_| run_name::parts(&name).1).to_owned();
        match restore::adopt(&path) {
            Ok(Some(journal)) => {
                let is_same_boot = journal.boot_id() == boot_id;
                let open = journal.open_entries().into_iter().map(|entry| entry.change);
                let left: Vec<Change> =
                    open.filter(|change| is_same_boot || is_on_disk(change)).collect();
                let damaged = journal.damaged().len();
                if damaged > 0 || left.iter().any(&is_meant) {
                    found.push(OpenJournal { run, entries: left.len() + damaged });
                }
            }
            Ok(None) => {}
            Err(_) => found.push(OpenJournal { run, entries: 1 }),
        }
    }
    found
}

fn is_on_disk(change: &Change) -> bool {
    !change.is_volatile() && change.path().is_some_and(|path| fs::symlink_metadata(path).is_ok())
}

fn refuse_open_journals(greeting: &Greeting, is_meant: impl Fn(&Change) -> bool) -> Result<()> {
    let whose = (greeting.uid(), greeting.state_dir.as_path());
    let open = open_journals(whose, &greeting.boot_id, is_meant);
    if open.is_empty() {
        return Ok(());
    }
    Err(Error::refused(
        left_behind(&open),
        "run `iolab restore` first: it undoes what can be undone",
    ))
}

/// Sentence about the number of runs that left changes, and of the changes.
fn left_behind(open: &[OpenJournal]) -> String {
    let names: Vec<&str> = open.iter().map(|journal| journal.run.as_str()).collect();
    let names = names.join(", ");
    let runs = match open.len() {
        1 => format!("an earlier run ({names})"),
        count => format!("{count} earlier runs ({names})"),
    };
    match open.iter().map(|journal| journal.entries).sum() {
        1 => format!("{runs} left a change that is not undone"),
        entries => format!("{runs} left {entries} changes that are not undone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_counted_in_runs_and_changes() {
        let told = |entries: &[usize]| {
            let one = |(index, &entries)| OpenJournal { run: format!("run-{index}"), entries };
            left_behind(&entries.iter().enumerate().map(one).collect::<Vec<_>>())
        };
        assert_eq!(told(&[1]), "an earlier run (run-0) left a change that is not undone");
        assert_eq!(told(&[11]), "an earlier run (run-0) left 11 changes that are not undone");
        let two = "2 earlier runs (run-0, run-1) left 12 changes that are not undone";
        assert_eq!(told(&[11, 1]), two);
    }
}
