//! The write-ahead journal of changes: what must be undone, on disk before it is done.
//!
//! One file of JSON lines per run, `<state>/journal/<run>.jsonl`, appended only. A line counts once
//! its newline is on disk; a torn last line is a change that never began. The owner holds a lock on
//! the file as long as it lives, so a journal that can be locked belongs to a dead run.
//!
//! Two runs at once must not both change a setting: the second would take the first one's value for
//! the original. So whoever intends to change one looks, in turn, into the journals of the others.
//!
//! Left out: how to undo an entry, which is `restore`'s.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::disk::Erased;
use crate::error::{Error, Result};
use crate::machine::DeviceIdentity;

const SUFFIX: &str = "jsonl";

/// Something that must be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A knob gets another value, itself or as a consequence of another knob (`new` is null).
    Knob {
        /// Name in the list of knobs.
        knob: String,
        /// Its file, checked again before it is written.
        path: PathBuf,
        /// What to write back.
        old: String,
        /// What it gets.
        new: Option<String>,
        /// The device, none for a setting of the whole machine.
        device: Option<DeviceIdentity>,
    },
    /// A loop number that did not exist.
    LoopAdded {
        /// `8` of `loop8`.
        number: u32,
    },
    /// An image file; it is unlinked as soon as it is attached.
    ImageCreated {
        /// Contains the run.
        path: PathBuf,
    },
    /// A directory for the data of trials.
    DirectoryCreated {
        /// Ends with the token.
        path: PathBuf,
        /// Also inside, in a file.
        token: String,
    },
    /// A scratch file or directory beside the user's own files, named as bonnie++ names them.
    ScratchCreated {
        /// Ends with `Bonnie.` and a number.
        path: PathBuf,
        /// Nothing had this name before.
        began_at_unix_ns: u64,
    },
    /// An empty directory to mount on.
    MountPointCreated {
        /// Contains the run.
        path: PathBuf,
    },
    /// A memory cgroup.
    CgroupCreated {
        /// Contains the run.
        path: PathBuf,
    },
    /// A whole device was erased, as its serial was typed.
    DeviceErased {
        /// The device.
        device: DeviceIdentity,
        /// How it is to be left.
        erased: Erased,
    },
    /// The page cache of everybody was dropped; nothing to undo, but somebody may wonder.
    CachesDropped {
        /// Trial that asked.
        trial: String,
    },
}

impl Change {
    /// What it made, if that is a file or a folder.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::ImageCreated { path }
            | Self::DirectoryCreated { path, .. }
            | Self::ScratchCreated { path, .. }
            | Self::MountPointCreated { path }
            | Self::CgroupCreated { path } => Some(path),
            _ => None,
        }
    }

    /// The file of the kernel that it changes, if that is a setting which others may change, too.
    fn setting(&self) -> Option<&Path> {
        match self {
            Self::Knob { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Whether a reboot undoes it.
    pub fn is_volatile(&self) -> bool {
        match self {
            // A mount point lies in /run, which need not be a tmpfs.
            Self::DirectoryCreated { .. }
            | Self::ScratchCreated { .. }
            | Self::ImageCreated { .. }
            | Self::MountPointCreated { .. } => false,
            Self::Knob { .. }
            | Self::LoopAdded { .. }
            | Self::CgroupCreated { .. }
            // After a reboot a name or number says nothing: the device is looked at like any other.
            | Self::DeviceErased { .. }
            | Self::CachesDropped { .. } => true,
        }
    }
}

/// How far a change has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// May have been done.
    Intent,
    /// Was done.
    Applied,
    /// Was undone and verified.
    Restored,
    /// Needs no undoing any more.
    Obsolete,
}

/// A change in a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number in this journal.
    pub id: u64,
    /// What must be undone.
    pub change: Change,
    /// How far it has come.
    pub state: State,
}

impl Entry {
    /// Whether it still must be undone.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Intent | State::Applied)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    run: String,
    boot_id: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Open { version: u32, run: String, boot_id: String },
    Intent { id: u64, change: Change },
    State { id: u64, state: State },
}

/// A journal whose lock is ours.
#[derive(Debug)]
pub struct Journal {
    /// None for the journal of a dry run.
    file: Option<Flock<File>>,
    path: PathBuf,
    header: Header,
    entries: BTreeMap<u64, Entry>,
    /// Another process made the changes.
    is_adopted: bool,
    /// Why the file does not say what is settled.
    unnoted: Option<Error>,
    #[cfg(test)]
    pub(crate) fuse: Option<crate::machine::Fuse>,
}

impl Journal {
    /// Starts the journal of `run`.
    pub fn create(state_dir: &Path, run: &str, boot_id: &str) -> Result<Self> {
        let folder = folder(state_dir);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| unwritable("create", &folder, &error))?;
        check_place(state_dir)?;
        let path = file_of(state_dir, run);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| unwritable("create", &path, &error))?;
        let header = Header { version: 1, run: run.to_owned(), boot_id: boot_id.to_owned() };
        // A restore may have found it unlocked, taken it for a dead run's, and removed it.
        let file = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, error)| Error::io("lock", &path, error))?;
        if !path.exists() {
            let what = format!("{} was removed by a restore at the same time", path.display());
            return Err(Error::failed(what, "try again"));
        }
        let mut journal = Self {
            file: Some(file),
            path,
            header: header.clone(),
            entries: BTreeMap::new(),
            is_adopted: false,
            unnoted: None,
            #[cfg(test)]
            fuse: None,
        };
        let Header { version, run, boot_id } = header;
        let begun = journal.append(&[Line::Open { version, run, boot_id }]);
        if let Err(error) = begun.and_then(|()| sync_directory(&folder)) {
            let _ = fs::remove_file(&journal.path); // Nothing was changed: nobody needs it.
            return Err(error);
        }
        Ok(journal)
    }

    /// The journal of a dry run, which is nowhere but in memory.
    pub fn on_paper(state_dir: &Path, run: &str, boot_id: &str) -> Self {
        Self {
            is_adopted: false,
            unnoted: None,
            file: None,
            path: file_of(state_dir, run),
            header: Header { version: 1, run: run.to_owned(), boot_id: boot_id.to_owned() },
            entries: BTreeMap::new(),
            #[cfg(test)]
            fuse: None,
        }
    }

    /// Opens the journal of a dead run; none if its owner lives or it is gone.
    pub fn adopt(path: &Path) -> Result<Option<Self>> {
        Self::open(path, FlockArg::LockExclusiveNonblock)
    }

    /// Opens a journal as soon as its owner is dead; none if it is gone then.
    pub fn inherit(path: &Path) -> Result<Option<Self>> {
        Self::open(path, FlockArg::LockExclusive)
    }

    fn open(path: &Path, how: FlockArg) -> Result<Option<Self>> {
        let nofollow = nix::libc::O_NOFOLLOW;
        let opened = OpenOptions::new().read(true).append(true).custom_flags(nofollow).open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", path, error)),
        };
        let mut file = match Flock::lock(file, how) {
            Ok(file) => file,
            Err((_, nix::Error::EWOULDBLOCK)) => return Ok(None),
            Err((_, error)) => return Err(Error::io("lock", path, error)),
        };
        if !path.exists() {
            return Ok(None); // Its owner finished while we waited.
        }
        let owner = file.metadata().map_err(|error| Error::io("look at", path, error))?.uid();
        if owner != nix::unistd::geteuid().as_raw() {
            return Err(Error::refused(
                format!("the journal {} belongs to user {owner}", path.display()),
                "only journals of one's own are acted on",
            ));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| Error::io("read", path, error))?;
        let (header, entries) = parse(path, &whole_lines(&text))?;
        let whole = whole_bytes(&text);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(|error| Error::io("truncate", path, error))?;
        }
        file.seek(SeekFrom::End(0)).map_err(|error| Error::io("seek", path, error))?;
        Ok(Some(Self {
            file: Some(file),
            path: path.to_path_buf(),
            header,
            entries,
            is_adopted: true,
            unnoted: None,
            #[cfg(test)]
            fuse: None,
        }))
    }

    /// Whether it is that of a dead run.
    pub fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// The run whose changes these are.
    pub fn run(&self) -> &str {
        &self.header.run
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The boot in which the changes were made.
    pub fn boot_id(&self) -> &str {
        &self.header.boot_id
    }

    /// Changes that still must be undone, oldest first.
    pub fn open_entries(&self) -> Vec<Entry> {
        self.entries.values().filter(|entry| entry.is_open()).cloned().collect()
    }

    /// Records that `changes` are about to be made; on disk when this returns.
    ///
    /// Refused while another run has changed one of the same settings.
    pub fn intend(&mut self, changes: Vec<Change>) -> Result<Vec<u64>> {
        let _turn = self.take_turn()?;
        self.refuse_taken(&changes)?;
        let first = self.entries.last_key_value().map_or(1, |(id, _)| id + 1);
        let (mut lines, mut entries, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for (id, change) in (first..).zip(changes) {
            lines.push(Line::Intent { id, change: change.clone() });
            entries.push((id, Entry { id, change, state: State::Intent }));
            ids.push(id);
        }
        self.append(&lines)?;
        self.entries.extend(entries);
        Ok(ids)
    }

    /// Records how far changes have come.
    pub fn mark(&mut self, ids: &[u64], state: State) -> Result<()> {
        let lines: Vec<Line> = ids.iter().map(|id| Line::State { id: *id, state }).collect();
        self.append(&lines)?;
        for id in ids {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.state = state;
            }
        }
        Ok(())
    }

    /// Records how far undoing has come, in memory at least.
    ///
    /// A full disk must not turn a machine that was put back into one that was not: once nothing is
    /// open the file goes, which needs no space; until then a later restore does it again.
    pub fn settle(&mut self, id: u64, state: State) {
        if let Err(error) = self.mark(&[id], state) {
            self.unnoted = Some(error);
            self.entries.entry(id).and_modify(|entry| entry.state = state);
        }
    }

    /// Why the file does not say all that is settled, if so.
    pub fn unnoted(&self) -> Option<&Error> {
        self.unnoted.as_ref()
    }

    /// Removes the file; nothing may be open any more.
    pub fn finish(self) -> Result<()> {
        assert!(self.open_entries().is_empty(), "a journal with open entries must be kept");
        fs::remove_file(&self.path).map_err(|error| Error::io("remove", &self.path, error))?;
        self.path.parent().map_or(Ok(()), sync_directory)
    }

    fn append(&mut self, lines: &[Line]) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut text = String::new();
        for line in lines {
            text += &serde_json::to_string(line).expect("a journal line has only text keys");
            text.push('\n');
        }
        #[cfg(test)]
        if let Some(fuse) = &self.fuse {
            fuse.burn_append(file, text.as_bytes())?;
            return Ok(());
        }
        let good = file.metadata().map_err(|error| Error::io("look at", &self.path, error))?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|error| {
            // Half a line (a full disk) would spoil the next one: the change never begins, so the
            // line goes. If even that fails, opening the journal cuts a torn end off.
            let _ = file.set_len(good.len());
            unwritable("append to", &self.path, &error)
        })
    }

    /// Waits until no other run is between looking and writing.
    fn take_turn(&self) -> Result<Option<Flock<File>>> {
        if self.file.is_none() {
            return Ok(None); // A dry run writes nothing that could be in anybody's way.
        }
        let Some(folder) = self.path.parent() else { return Ok(None) };
        let opened = File::open(folder).map_err(|error| Error::io("open", folder, error))?;
        Flock::lock(opened, FlockArg::LockExclusive)
            .map(Some)
            .map_err(|(_, error)| Error::io("lock", folder, error))
    }

    fn refuse_taken(&self, changes: &[Change]) -> Result<()> {
        let wanted = |path: &Path| changes.iter().any(|change| change.setting() == Some(path));
        if changes.iter().all(|change| change.setting().is_none()) {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(&self.path);
        for path in files_in(folder).into_iter().filter(|path| *path != self.path) {
            let Ok(text) = fs::read(&path) else { continue }; // It has just finished.
            let (header, entries) = parse(&path, &whole_lines(&text))?;
            let open = entries.values().filter(|entry| entry.is_open());
            let taken = open.filter(|_| header.boot_id == self.header.boot_id);
            let Some(setting) =
                taken.filter_map(|entry| entry.change.setting()).find(|p| wanted(p))
            else {
                continue;
            };
            return Err(Error::refused(
                format!("{} is being changed by another run, {}", setting.display(), header.run),
                "wait until that one has ended; if it is dead, run `iolab restore`",
            ));
        }
        Ok(())
    }
}

/// Refuses, as root, a place for journals that others could change: they say what root will write.
///
/// Only what exists is looked at; what does not is made for its owner alone.
pub fn check_place(state_dir: &Path) -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    for folder in [state_dir.to_path_buf(), folder(state_dir)] {
        // What a link is called is its owner's choice, what it leads to that of another.
        for found in [fs::symlink_metadata(&folder), fs::metadata(&folder)] {
            let Ok(found) = found else { continue };
            let mode = found.mode();
            let is_writable = mode & 0o022 != 0 && mode & 0o1000 == 0 && !found.is_symlink();
            let trouble = match found.uid() {
                0 if is_writable => format!("can be changed by others (mode {:o})", mode & 0o7777),
                0 => continue,
                owner => format!("belongs to user {owner}"),
            };
            return Err(Error::refused(
                format!("{} {trouble}, and root acts on the journals in it", folder.display()),
                format!(
                    "see what is in it, then: chown root: {0}; chmod go-w {0}",
                    folder.display()
                ),
            ));
        }
    }
    Ok(())
}

fn unwritable(action: &str, path: &Path, error: &std::io::Error) -> Error {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "nothing is changed before the journal says so: make room on that file system"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "nothing is changed before the journal says so: it needs a file system that is writable"
        }
        ErrorKind::PermissionDenied => "nothing is changed before the journal says so: see HOME",
        _ => "nothing is changed before the journal says so",
    };
    Error::failed(format!("cannot {action} {}: {error}", path.display()), hint)
}

/// File of a run's journal.
pub fn file_of(state_dir: &Path, run: &str) -> PathBuf {
    folder(state_dir).join(run).with_extension(SUFFIX)
}

/// All journals, by name.
pub fn files(state_dir: &Path) -> Vec<PathBuf> {
    files_in(&folder(state_dir))
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|suffix| suffix == SUFFIX));
    found.sort();
    found
}

fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("journal")
}

fn sync_directory(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| Error::io("sync", folder, error))
}

/// Length without a torn end.
fn whole_bytes(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn whole_lines(text: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&text[..whole_bytes(text)])
}

fn parse(path: &Path, text: &str) -> Result<(Header, BTreeMap<u64, Entry>)> {
    let mut header = None;
    let mut entries = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = serde_json::from_str(line).map_err(|error| {
            Error::failed(
                format!("line {} of {} cannot be read: {error}", number + 1, path.display()),
                "it says what to restore by hand; remove the file afterwards",
            )
        })?;
        match line {
            Line::Open { version, run, boot_id } => header = Some(Header { version, run, boot_id }),
            Line::Intent { id, change } => {
                entries.insert(id, Entry { id, change, state: State::Intent });
            }
            Line::State { id, state } => {
                if let Some(entry) = entries.get_mut(&id) {
                    entry.state = state;
                }
            }
        }
    }
    // Killed before the first line was whole: nothing was changed.
    let run = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let header = header.unwrap_or(Header { version: 1, run, boot_id: String::new() });
    Ok((header, entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: u32) -> Change {
        Change::LoopAdded { number }
    }

    #[test]
    fn what_was_intended_is_found_again_without_the_torn_end() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(state.path(), "run-1", "boot").unwrap();
        let ids = journal.intend(vec![change(8), change(9)]).unwrap();
        journal.mark(&ids[..1], State::Restored).unwrap();
        let path = file_of(state.path(), "run-1");
        drop(journal);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(br#"{"line":"intent","id":3,"chan"#).unwrap();
        let mut journal = Journal::adopt(&path).unwrap().expect("its owner is dead");
        let left = journal.open_entries();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].change, change(9));
        assert_eq!((journal.header.run.as_str(), journal.boot_id()), ("run-1", "boot"));
        journal.mark(&[left[0].id], State::Obsolete).unwrap();
        journal.finish().unwrap();
        assert!(files(state.path()).is_empty());
    }

    #[test]
    fn a_living_owner_keeps_its_journal() {
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::create(state.path(), "run-1", "boot").unwrap();
        let path = file_of(state.path(), "run-1");
        assert!(Journal::adopt(&path).unwrap().is_none());
        drop(journal);
        assert!(Journal::adopt(&path).unwrap().is_some());
    }

    fn setting(old: &str) -> Change {
        Change::Knob {
            knob: "vm.vfs_cache_pressure".to_owned(),
            path: "/proc/sys/vm/vfs_cache_pressure".into(),
            old: old.to_owned(),
            new: None,
            device: None,
        }
    }

    /// Two runs at once changed one setting; the second took the first one's value for the original
    /// and left it behind for good.
    #[test]
    fn a_setting_is_changed_by_one_run_at_a_time() {
        let state = tempfile::tempdir().unwrap();
        let mut first = Journal::create(state.path(), "run-1", "boot").unwrap();
        let mut second = Journal::create(state.path(), "run-2", "boot").unwrap();
        let ids = first.intend(vec![setting("100")]).unwrap();
        let error = second.intend(vec![change(8), setting("73")]).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(error.to_string().contains("run-1"), "{error}");
        assert_eq!(second.open_entries(), []);
        second.intend(vec![change(8)]).expect("what is no setting is not shared");
        first.mark(&ids, State::Restored).unwrap();
        second.intend(vec![setting("100")]).expect("it has its original value again");
    }

    #[test]
    fn a_setting_of_an_earlier_boot_is_free() {
        let state = tempfile::tempdir().unwrap();
        let mut first = Journal::create(state.path(), "run-1", "boot-1").unwrap();
        first.intend(vec![setting("100")]).unwrap();
        let mut second = Journal::create(state.path(), "run-2", "boot-2").unwrap();
        second.intend(vec![setting("100")]).unwrap();
    }

    #[test]
    fn the_same_run_cannot_start_twice() {
        let state = tempfile::tempdir().unwrap();
        let _journal = Journal::create(state.path(), "run-1", "boot").unwrap();
        assert!(Journal::create(state.path(), "run-1", "boot").is_err());
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_an_error_not_a_loss() {
        let state = tempfile::tempdir().unwrap();
        let path = file_of(state.path(), "run-1");
        drop(Journal::create(state.path(), "run-1", "boot").unwrap());
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"nonsense\n{\"line\":\"state\",\"id\":1,\"state\":\"applied\"}\n").unwrap();
        let message = Journal::adopt(&path).unwrap_err().to_string();
        assert!(message.contains("line 2"), "{message}");
    }
}
