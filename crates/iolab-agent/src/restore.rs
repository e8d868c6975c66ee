//! Putting back what a journal says was changed: backwards, verified, and never on somebody else's.
//!
//! An entry stays open until what it describes was read back; what cannot be put back is a problem
//! that names the thing and what to do. Changes of an older boot are gone with it, except for what
//! lies on disks. Left out: mounts, which end with the private namespace of the dead agent.

mod dead_runs;

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::boundary;
use crate::disk;
use crate::error::{Error, Result};
use crate::identity::on_behalf;
use crate::journal::{Change, Entry, Journal, State};
use crate::knob::{Knob, Site, find};
use crate::machine::{DeviceIdentity, Machine, Whose};
use crate::owned_directory;
use crate::plausible;
use crate::protocol::{ActionKind, Restored, RunAs};
use crate::sys;
use crate::trace;
use crate::trusted::{Shared, weakness};

pub use dead_runs::{adopt, undo_dead_runs};

/// Time that the kernel may take to give up a dead agent's mounts, loop devices and tasks.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);

enum Undone {
    Restored,
    Obsolete,
    /// Another user's object under that name, which is left alone; the text says how that was seen.
    Foreign(String),
}

/// Undoes everything in the machine's journal; what cannot be undone stays in it.
pub fn undo(machine: &mut Machine, boot_id: &str) -> Restored {
    let mut outcome = Restored::default();
    let Some(journal) = machine.journal() else { return outcome };
    let is_same_boot = journal.boot_id() == boot_id;
    let run = journal.run().to_owned();
    let mut entries = journal.open_entries();
    entries.reverse();
    for batch in entries.chunk_by(|a, b| is_knob(a) && is_knob(b)) {
        let mut results = Vec::new();
        for entry in batch {
            let result = plausible::check(&run, &entry.change);
            results.push(result.and_then(|()| undo_one(machine, (entry, &run), is_same_boot)));
        }
        for (entry, result) in batch.iter().zip(results) {
            let result = result.and_then(|undone| match undone {
                Undone::Restored => verify(machine, &entry.change).map(|()| undone),
                Undone::Obsolete | Undone::Foreign(_) => Ok(undone),
            });
            settle(machine, entry, result, &mut outcome);
        }
    }
    outcome
}

/// Undoes one dead run and removes its journal once nothing is left.
pub fn undo_journal(journal: Journal, boot_id: &str) -> Restored {
    let mut machine = Machine::new(false);
    machine.work_for(journal.uid().map(|uid| boundary::user_of(uid, None)));
    machine.attach_journal(journal);
    let mut outcome = undo(&mut machine, boot_id);
    if let Err(error) = finish(&mut machine) {
        outcome.problems.push(format!("{error}{}", after(": ", &error.hint())));
    }
    outcome
}

/// Removes the machine's journal if nothing is left in it.
pub fn finish(machine: &mut Machine) -> Result<()> {
    match machine.detach_journal() {
        // What it hid may still be changed: only somebody who has looked may remove it.
        Some(journal) if !journal.damaged().is_empty() => {
            let numbers: Vec<String> = journal.damaged().iter().map(usize::to_string).collect();
            let path = journal.path().display();
            Err(Error::failed(
                format!(
                    "line {} of {path} is damaged: what it says was not undone, everything else \
                     was looked at",
                    numbers.join(", ")
                ),
                format!("read it, put back by hand what it says, then remove {path}"),
            ))
        }
        Some(journal) if journal.open_entries().is_empty() => {
            let path = journal.path().display().to_string();
            machine
                .act(ActionKind::RemoveFile, path, "all is put back", || journal.finish())
                .map(drop)
        }
        Some(journal) => match journal.unnoted() {
            None => Ok(()),
            Some(error) => Err(Error::failed(
                format!("what was put back could not be noted ({error})"),
                "the next `iolab restore` does it again",
            )),
        },
        None => Ok(()),
    }
}

fn is_knob(entry: &Entry) -> bool {
    matches!(entry.change, Change::Knob { .. })
}

fn settle(machine: &mut Machine, entry: &Entry, result: Result<Undone>, outcome: &mut Restored) {
    let what = describe(&entry.change);
    let state = match result {
        Ok(Undone::Restored) => {
            outcome.restored.push(what);
            State::Restored
        }
        Ok(Undone::Obsolete) => {
            outcome.obsolete.push(what);
            State::Obsolete
        }
        Ok(Undone::Foreign(how)) => {
            outcome.obsolete.push(format!("{what}: left alone, {how}"));
            State::Obsolete
        }
        Err(error) => {
            outcome.problems.push(format!("{what}: {error}{}", after(": ", &error.hint())));
            return;
        }
    };
    machine.journal().expect("its entries are being undone").settle(entry.id, state);
}

fn after(separator: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{separator}{text}") }
}

fn describe(change: &Change) -> String {
    match change {
        Change::Knob { knob, old, device: Some(device), .. } => {
            format!("{knob} of {} to {old}", device.name)
        }
        Change::Knob { knob, old, device: None, .. } => format!("{knob} to {old}"),
        Change::LoopAdded { number } => format!("loop{number} removed"),
        Change::ImageCreated { path } => format!("image {} removed", path.display()),
        Change::DirectoryCreated { path, .. } | Change::MountPointCreated { path } => {
            format!("directory {} removed", path.display())
        }
        Change::CgroupCreated { path } => format!("cgroup {} removed", path.display()),
        Change::TraceInstance { name } => format!("recording {name} removed"),
        Change::DeviceErased { device, .. } => format!(
            "{}: both ends are blank but for iolab's marker; what was written between them is \
             still there",
            device.name
        ),
        Change::CachesDropped { trial } => format!("caches were dropped for {trial}"),
    }
}

fn undo_one(
    machine: &mut Machine,
    (entry, run): (&Entry, &str),
    is_same_boot: bool,
) -> Result<Undone> {
    if !is_same_boot && entry.change.is_volatile() {
        return Ok(Undone::Obsolete);
    }
    match &entry.change {
        Change::Knob { knob, path, old, device, .. } => {
            undo_knob(machine, knob, path, old, device.as_ref())
        }
        Change::LoopAdded { number } if is_unsure(machine, entry) => {
            let how =
                format!("the journal is damaged: whether the run added loop{number} is unknown");
            Ok(Undone::Foreign(how))
        }
        Change::LoopAdded { number } => undo_loop(machine, *number, run),
        Change::ImageCreated { path } | Change::DirectoryCreated { path, .. }
            if is_owner_lost(machine) && !machine.has(path) =>
        {
            Ok(Undone::Obsolete)
        }
        Change::ImageCreated { path } => {
            // Images are root's, in directories that nobody else can exchange.
            let user = if is_owner_lost(machine) { stand_in(path)? } else { None };
            remove(machine, ActionKind::RemoveFile, path, |path| {
                let removed = on_behalf(user.as_ref(), || Ok(fs::remove_file(path)));
                removed.unwrap_or_else(|error| Err(std::io::Error::other(error)))
            })
        }
        Change::DirectoryCreated { path, token } => {
            let target = path.display().to_string();
            let is_lost = is_owner_lost(machine);
            let user = if is_lost { stand_in(path)? } else { machine.user().cloned() };
            machine.act(ActionKind::RemoveDirectory, target, "with all that is in it", || {
                on_behalf(user.as_ref(), || owned_directory::remove(path, token))
            })?;
            Ok(Undone::Restored)
        }
        Change::MountPointCreated { path } => {
            let undone = remove(machine, ActionKind::RemoveDirectory, path, remove_mount_point);
            if let Some(folder) = path.parent() {
                let of_all_runs = folder.display().to_string();
                machine.act(ActionKind::RemoveDirectory, of_all_runs, "if it is empty", || {
                    let _ = fs::remove_dir(folder);
                    Ok(())
                })?;
            }
            undone
        }
        Change::CgroupCreated { path } => {
            remove(machine, ActionKind::RemoveCgroup, path, |path| fs::remove_dir(path))
        }
        Change::TraceInstance { name } => {
            let target = name.clone();
            let removed = machine.act(ActionKind::RemoveTraceInstance, target, "", || {
                trace::remove_instance(name)
            })?;
            Ok(if removed == Some(false) { Undone::Obsolete } else { Undone::Restored })
        }
        Change::DeviceErased { device, erased } => {
            Ok(match disk::settle(machine, device, erased, run)? {
                disk::Left::Marked => Undone::Restored,
                disk::Left::Alone(how) => Undone::Foreign(how),
            })
        }
        Change::CachesDropped { .. } => Ok(Undone::Obsolete),
    }
}

fn is_owner_lost(machine: &mut Machine) -> bool {
    let is_lost = machine.journal().is_some_and(|journal| journal.is_owner_lost());
    is_lost && nix::unistd::geteuid().is_root()
}

/// The user with whose rights something is reached of which nothing says for whom it was made:
/// root goes only where nobody else can exchange a name (none), the folder's owner anywhere else.
fn stand_in(made: &Path) -> Result<Option<RunAs>> {
    let folder = made.parent().unwrap_or(made);
    let Some(weakness) = weakness(folder, Shared::IfSticky) else { return Ok(None) };
    let found = fs::symlink_metadata(folder);
    match found.map_err(|error| Error::io("look at", folder, error))?.uid() {
        0 => Err(Error::failed(
            format!("the journal is damaged: for whom it was made is unknown, and {weakness}"),
            "look at it, and remove it by hand",
        )),
        uid => Ok(Some(boundary::user_of(uid, None))),
    }
}

/// Tell whether a lost line may have said that a number was somebody else's already.
fn is_unsure(machine: &mut Machine, entry: &Entry) -> bool {
    let is_damaged = machine.journal().is_some_and(|journal| !journal.damaged().is_empty());
    is_damaged && entry.state == State::Intent
}

/// Removes the folder that was mounted on, and what a run that was not mounted there left in it.
///
/// It is the run's own, below a folder of root; a mount in it is not entered.
fn remove_mount_point(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
            owned_directory::clear(path, None).map_err(std::io::Error::other)?;
            fs::remove_dir(path)
        }
        done => done,
    }
}

fn undo_knob(
    machine: &mut Machine,
    name: &str,
    path: &Path,
    old: &str,
    device: Option<&DeviceIdentity>,
) -> Result<Undone> {
    if let Some(device) = device {
        match device.whose(machine) {
            Whose::Same => {}
            Whose::Gone => return Ok(Undone::Obsolete),
            Whose::Foreign(difference) => {
                let how = format!("{} is not the device it was: {difference}", device.name);
                return Ok(Undone::Foreign(how));
            }
        }
    }
    let (_, knob) = find(name)?;
    let site = Site { device: device.map(|device| device.name.as_str()), knob: name };
    if knob.path(site) != path {
        return Err(Error::failed(
            format!("the journal names {} for {name}, which is not its file", path.display()),
            "nothing was written; look at the journal",
        ));
    }
    let is_other = knob.read(machine, site).as_deref() != Some(old);
    if is_other || may_be_other(machine, knob, site, old) {
        knob.write(machine, site, old)?;
        if !is_other {
            machine.remark(" (if the last trial leaves another)");
        }
        if site.device.is_some_and(|name| machine.is_on_paper(name)) {
            machine.remark(" (or the value found at the start)");
        }
    }
    Ok(Undone::Restored)
}

/// Tell whether a knob, as it was in a dry run's last trial, may be another after that of the
/// study.
fn may_be_other(machine: &Machine, knob: &dyn Knob, site: Site, old: &str) -> bool {
    // Of two names for one setting one is 0; what does not take a 0 gets it by the other's writing.
    let is_by_twin = knob.twin(site.knob).is_some() && knob.check(machine, site, old).is_err();
    machine.was_set_on_paper(site.device, site.knob) && !is_by_twin
}

fn undo_loop(machine: &mut Machine, number: u32, run: &str) -> Result<Undone> {
    let device = format!("loop{number}");
    machine.release_loop(number)?;
    // A device on paper is there until it is removed, and nobody else's.
    if !machine.is_dry_run() {
        if !machine.exists(format!("/sys/block/{device}")) {
            return Ok(Undone::Obsolete);
        }
        if let Some(image) = foreign_image(machine, &device, run) {
            return Ok(Undone::Foreign(format!("{device} is attached to {image} now")));
        }
    }
    let removed = machine.act(ActionKind::RemoveLoop, format!("/dev/{device}"), "", || {
        let path = Path::new("/dev/loop-control");
        let control = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| Error::io("open", path, error))?;
        patiently(|| sys::remove_loop(&control, number)).map_err(|error| match error.kind() {
            ErrorKind::ResourceBusy => Error::failed(
                format!("{device} is in use"),
                format!("see `losetup /dev/{device}`; detach it, then run `iolab restore`"),
            ),
            _ => Error::io("remove", format!("/dev/{device}"), error),
        })
    });
    match (removed, foreign_image(machine, &device, run)) {
        // Somebody who looked for a free device was faster than the removal.
        (Err(_), Some(image)) => {
            Ok(Undone::Foreign(format!("{device} is attached to {image} now")))
        }
        (removed, _) => removed.map(|_| Undone::Restored),
    }
}

/// The image behind a loop device, if it is none of the run's: once detached, a number is free.
fn foreign_image(machine: &Machine, device: &str, run: &str) -> Option<String> {
    let image = machine.peek(format!("/sys/block/{device}/loop/backing_file"))?;
    (!machine.is_dry_run() && !plausible::is_image_of(&image, run)).then_some(image)
}

fn remove(
    machine: &mut Machine,
    kind: ActionKind,
    path: &Path,
    how: impl Fn(&Path) -> std::io::Result<()>,
) -> Result<Undone> {
    if !machine.has(path) {
        return Ok(Undone::Obsolete);
    }
    machine.act(kind, path.display().to_string(), "", || {
        patiently(|| how(path)).map_err(|error| Error::io("remove", path, error))
    })?;
    Ok(Undone::Restored)
}

/// Tries again while something is busy that is about to end.
pub fn patiently(mut attempt: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                sleep(PAUSE);
            }
            result => return result,
        }
    }
}

fn verify(machine: &Machine, change: &Change) -> Result<()> {
    let Change::Knob { knob: name, path, old, device, .. } = change else { return Ok(()) };
    let (_, knob) = find(name)?;
    let site = Site { device: device.as_ref().map(|device| device.name.as_str()), knob: name };
    match knob.read(machine, site) {
        Some(value) if value != *old => Err(Error::failed(
            format!("it reads {value} after {old} was written"),
            format!("write {old} to {} by hand", path.display()),
        )),
        // A depth that cannot be read back was written in the one way that works without reading.
        _ => Ok(()),
    }
}

/// Identifies this boot.
pub fn boot_id() -> String {
    File::open("/proc/sys/kernel/random/boot_id")
        .and_then(std::io::read_to_string)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal;
    use crate::knob::KnobSet;
    use crate::machine::{fake_machine, tree};

    fn changed(devices: &[&str]) -> (tempfile::TempDir, tempfile::TempDir, Machine) {
        let (root, mut machine) = fake_machine();
        let state = tempfile::tempdir().unwrap();
        machine.attach_journal(Journal::create(state.path(), "run-1", "boot-1").unwrap());
        let devices: Vec<String> = devices.iter().map(|name| (*name).to_owned()).collect();
        let asked = [("scheduler".to_owned(), "bfq".to_owned())].into();
        KnobSet::new(&devices, None).apply(&mut machine, &asked).unwrap();
        (root, state, machine)
    }

    #[test]
    fn a_foreign_device_is_left_alone_and_the_entry_closed() {
        let (root, _state, mut machine) = changed(&["sda"]);
        std::fs::write(root.path().join("sys/block/sda/diskseq"), "99").unwrap();
        let before = tree(root.path());
        let outcome = undo(&mut machine, "boot-1");
        assert!(outcome.restored.is_empty() && outcome.problems.is_empty(), "{outcome:?}");
        assert!(outcome.obsolete[0].contains("sda is not the device it was"), "{outcome:?}");
        assert_eq!(tree(root.path()), before);
        assert!(machine.journal().unwrap().open_entries().is_empty(), "further runs go on");
    }

    #[test]
    fn settings_of_an_older_boot_are_obsolete() {
        let (root, _state, mut machine) = changed(&["sda"]);
        let before = tree(root.path());
        let outcome = undo(&mut machine, "boot-2");
        assert!(outcome.problems.is_empty() && outcome.restored.is_empty(), "{outcome:?}");
        assert_eq!(tree(root.path()), before);
        assert!(machine.journal().unwrap().open_entries().is_empty());
    }

    #[test]
    fn what_lies_on_disks_is_removed_after_a_reboot_too() {
        let place = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let owned = place.path().join(".iolab-1");
        let image = place.path().join(".iolab-run-1-0.img");
        let mut journal = Journal::create(state.path(), "run-1", "boot-1").unwrap();
        let changes = vec![
            Change::DirectoryCreated { path: owned.clone(), token: "token".to_owned() },
            Change::ImageCreated { path: image.clone() },
            Change::LoopAdded { number: 4_000 },
        ];
        journal.intend(changes).unwrap();
        owned_directory::create(&owned, "token").unwrap();
        std::fs::write(owned.join("data.0"), "noise").unwrap();
        std::fs::write(&image, "noise").unwrap();
        drop(journal);
        let outcome = undo_dead_runs(None, state.path(), "boot-2", None);
        assert!(outcome.problems.is_empty(), "{outcome:?}");
        assert_eq!((outcome.restored.len(), outcome.obsolete.len()), (2, 1));
        assert!(!owned.exists() && !image.exists());
        assert!(journal::files(state.path()).is_empty());
    }

    /// Issue 14, point 5: a mount that led elsewhere left data in the folder that was mounted on,
    /// and every later restore failed because it was not empty.
    #[test]
    fn a_mount_point_with_something_in_it_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let point = place.path().join("point");
        fs::create_dir_all(point.join("data/deeper")).unwrap();
        fs::write(point.join("data/deeper/file"), "noise").unwrap();
        std::os::unix::fs::symlink("/etc", point.join("data/link")).unwrap();
        remove_mount_point(&point).unwrap();
        assert!(!point.exists() && Path::new("/etc").exists());
    }

    /// Issue 14, point 9: a damaged line blocked the restore of everything, in all journals.
    #[test]
    fn a_damaged_line_is_told_and_all_others_are_undone() {
        let (place, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let image = |run: &str, n: u32| place.path().join(format!(".iolab-{run}-{n}.img"));
        for run in ["run-1", "run-2"] {
            let mut journal = Journal::create(state.path(), run, "boot").unwrap();
            let changes = (0..3).map(|n| Change::ImageCreated { path: image(run, n) }).collect();
            journal.intend(changes).unwrap();
            (0..3).for_each(|n| fs::write(image(run, n), "noise").unwrap());
        }
        let path = journal::file_of(state.path(), "run-1");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("-1.img", "-2.img")).unwrap();
        let outcome = undo_dead_runs(None, state.path(), "boot", None);
        assert_eq!(outcome.restored.len(), 5, "{outcome:?}");
        let [problem] = &outcome.problems[..] else { panic!("{outcome:?}") };
        assert!(problem.contains("line 3 of") && problem.contains("run-1.jsonl"), "{problem}");
        assert!(image("run-1", 1).exists(), "nobody knows that it was ours");
        assert_eq!(journal::files(state.path()), [path]);
    }

    /// Issue 14, point 9: beside a run that was under way a restore said that nothing was changed.
    #[test]
    fn a_living_run_is_named() {
        let state = tempfile::tempdir().unwrap();
        let _journal = Journal::create(state.path(), "run-1", "boot").unwrap();
        let outcome = undo_dead_runs(None, state.path(), "boot", None);
        let told = format!("run run-1 (pid {}) is under way", std::process::id());
        assert!(outcome.alive[0].starts_with(&told), "{outcome:?}");
        assert!(outcome.problems.is_empty() && outcome.restored.is_empty());
    }

    #[test]
    fn a_path_that_is_not_the_knobs_own_is_not_written() {
        let (_root, _state, mut machine) = changed(&["sda"]);
        let change = Change::Knob {
            knob: "nomerges".to_owned(),
            path: "/etc/passwd".into(),
            old: "1".to_owned(),
            new: None,
            device: Some(DeviceIdentity::of(&machine, "sda", None)),
        };
        machine.intend(vec![change]).unwrap();
        let outcome = undo(&mut machine, "boot-1");
        assert!(outcome.problems[0].contains("/etc/passwd"), "{outcome:?}");
    }

    #[test]
    fn a_setting_that_does_not_stick_is_a_problem() {
        let (root, _state, mut machine) = changed(&["sda"]);
        let scheduler = root.path().join("sys/block/sda/queue/scheduler");
        std::fs::write(&scheduler, "none [bfq]").unwrap();
        std::fs::remove_dir_all(root.path().join("sys/block/sda/queue/iosched")).unwrap();
        std::fs::remove_file(&scheduler).unwrap();
        let outcome = undo(&mut machine, "boot-1");
        assert!(!outcome.problems.is_empty());
        assert!(!machine.journal().unwrap().open_entries().is_empty());
    }
}
