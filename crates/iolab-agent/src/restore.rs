//! Putting back what a journal says was changed: backwards, verified, and never on somebody else's.
//!
//! An entry stays open until what it describes was read back; what cannot be put back is a problem
//! that names the thing and what to do. Changes of an older boot are gone with it, except for what
//! lies on disks. Left out: mounts, which end with the private namespace of the dead agent.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde::Serialize;

use crate::disk;
use crate::error::{Error, Result};
use crate::journal::{self, Change, Entry, Journal, State};
use crate::knob::{Knob, Site, find};
use crate::machine::{DeviceIdentity, Machine, Whose};
use crate::owned_directory;
use crate::plausible;
use crate::protocol::ActionKind;
use crate::sys;

/// How long the kernel may take to give up a dead agent's mounts, loop devices and tasks.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(20);

/// What a restore did.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    /// Put back and verified.
    pub restored: Vec<String>,
    /// Gone without us.
    pub obsolete: Vec<String>,
    /// Not put back.
    pub problems: Vec<String>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.restored.extend(other.restored);
        self.obsolete.extend(other.obsolete);
        self.problems.extend(other.problems);
    }
}

enum Undone {
    Restored,
    Obsolete,
    /// What has that name now is somebody else's, and left alone; the text says how that was seen.
    Foreign(String),
}

/// Undoes everything in the machine's journal; what cannot be undone stays in it.
pub fn undo(machine: &mut Machine, boot_id: &str) -> Outcome {
    let mut outcome = Outcome::default();
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

/// Undoes what dead runs left, or one of them.
pub fn undo_dead_runs(state_dir: &Path, boot_id: &str, only: Option<&str>) -> Outcome {
    let mut outcome = Outcome::default();
    for path in journal::files(state_dir) {
        if only.is_some_and(|run| path.file_stem().is_none_or(|stem| stem != run)) {
            continue;
        }
        match Journal::adopt(&path) {
            Ok(Some(journal)) => outcome.add(undo_journal(journal, boot_id)),
            Ok(None) if only.is_some() => {
                outcome.problems.push(format!("{} is in use: its agent lives", path.display()));
            }
            Ok(None) => {}
            Err(error) => outcome.problems.push(format!("{error}: {}", error.hint())),
        }
    }
    outcome
}

/// Undoes one dead run and removes its journal once nothing is left.
pub fn undo_journal(journal: Journal, boot_id: &str) -> Outcome {
    let mut machine = Machine::new(false);
    machine.attach_journal(journal);
    let mut outcome = undo(&mut machine, boot_id);
    if let Err(error) = finish(&mut machine) {
        outcome.problems.push(error.to_string());
    }
    outcome
}

/// Removes the machine's journal if nothing is left in it.
pub fn finish(machine: &mut Machine) -> Result<()> {
    match machine.detach_journal() {
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

fn settle(machine: &mut Machine, entry: &Entry, result: Result<Undone>, outcome: &mut Outcome) {
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
        Change::ScratchCreated { path, .. } => format!("scratch {} removed", path.display()),
        Change::CgroupCreated { path } => format!("cgroup {} removed", path.display()),
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
        Change::LoopAdded { number } => undo_loop(machine, *number, run),
        Change::ImageCreated { path } => {
            remove(machine, ActionKind::RemoveFile, path, |path| fs::remove_file(path))
        }
        Change::DirectoryCreated { path, token } => {
            let target = path.display().to_string();
            machine.act(ActionKind::RemoveDirectory, target, "with all that is in it", || {
                owned_directory::remove(path, token)
            })?;
            Ok(Undone::Restored)
        }
        Change::ScratchCreated { path, began_at_unix_ns } => {
            undo_scratch(machine, path, *began_at_unix_ns)
        }
        Change::MountPointCreated { path } => {
            let undone =
                remove(machine, ActionKind::RemoveDirectory, path, |path| fs::remove_dir(path));
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
        Change::DeviceErased { device, erased } => {
            Ok(match disk::settle(machine, device, erased, run)? {
                disk::Left::Marked => Undone::Restored,
                disk::Left::Alone(how) => Undone::Foreign(how),
            })
        }
        Change::CachesDropped { .. } => Ok(Undone::Obsolete),
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

/// Whether a knob, as it was in a dry run's last trial, may be another after that of the study.
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
        // After a crash the number is free, and somebody may have taken it.
        let backing = machine.peek(format!("/sys/block/{device}/loop/backing_file"));
        if let Some(image) = backing.filter(|image| !plausible::is_image_of(image, run)) {
            return Ok(Undone::Foreign(format!("{device} is attached to {image} now")));
        }
    }
    machine.act(ActionKind::RemoveLoop, format!("/dev/{device}"), "", || {
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
    })?;
    Ok(Undone::Restored)
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

/// Removes a scratch file or directory, if it can be the one that the run made.
fn undo_scratch(machine: &mut Machine, path: &Path, began_at_unix_ns: u64) -> Result<Undone> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(Undone::Obsolete) };
    // File systems note a time that is some ms old.
    let began = UNIX_EPOCH + Duration::from_nanos(began_at_unix_ns) - Duration::from_secs(1);
    if found.created().is_ok_and(|made| made < began) {
        return Ok(Undone::Foreign("it is older than the run".into()));
    }
    if found.is_file() {
        return remove(machine, ActionKind::RemoveFile, path, |path| fs::remove_file(path));
    }
    if !found.is_dir() {
        return Ok(Undone::Foreign("it is neither a file nor a directory".into()));
    }
    // Whoever measured may just be dying, and make one more file in it.
    remove(machine, ActionKind::RemoveDirectory, path, |path| match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
            Err(ErrorKind::ResourceBusy.into())
        }
        done => done,
    })
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
        let outcome = undo_dead_runs(state.path(), "boot-2", None);
        assert!(outcome.problems.is_empty(), "{outcome:?}");
        assert_eq!((outcome.restored.len(), outcome.obsolete.len()), (2, 1));
        assert!(!owned.exists() && !image.exists());
        assert!(journal::files(state.path()).is_empty());
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
