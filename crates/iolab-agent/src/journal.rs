//! The write-ahead journal of changes: what must be undone, on disk before it is done.
//!
//! One file of JSON lines per run, `<state>/journal/<run>.jsonl`, appended only; `run_name` has the
//! names. A line counts once its newline is on disk; a torn last line is a change that
//! never began. The owner holds a lock on the file as long as it lives, so a journal that can be
//! locked belongs to a dead run. A damaged line hides what it says and nothing else; a journal that
//! has one is kept. One of another version is not acted on.
//!
//! Two runs at once must not both change a setting: the second would take the first one's value for
//! the original. So whoever intends to change one looks, in turn, into the journals of the others.
//!
//! Left out: how to undo an entry, which is `restore`'s.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use self::place::{files_in, folder, sync_directory, uid_in, unwritable};
use self::record::{Header, Line, Parsed, parse};
use crate::error::{Error, Result};
use crate::run_name;

#[cfg(test)]
mod fuzz;
mod lines;
mod open;
mod place;
mod record;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub use place::files;
pub use place::{check_place, check_writable, file_of, files_of, owner_of_lock, run_of};
pub use record::{Change, Entry, State};

/// A journal whose lock is ours.
#[derive(Debug)]
pub struct Journal {
    /// File; none for the journal of a dry run.
    file: Option<Flock<File>>,
    path: PathBuf,
    header: Header,
    entries: BTreeMap<u64, Entry>,
    /// Another process made the changes.
    is_adopted: bool,
    /// Nothing says for whom root made the changes.
    is_owner_lost: bool,
    /// Reason why the file does not say what is settled.
    unnoted: Option<Error>,
    /// Numbers of lines that cannot be read.
    damaged: Vec<usize>,
    #[cfg(test)]
    pub(crate) fuse: Option<crate::machine::Fuse>,
}

impl Journal {
    /// Starts the journal of `run`.
    #[cfg(test)]
    pub fn create(state_dir: &Path, run: &str, boot_id: &str) -> Result<Self> {
        Self::create_for(None, state_dir, run, boot_id)
    }

    /// Starts the journal of `run`, whose changes root makes for a user, or for itself.
    pub fn create_for(
        uid: Option<u32>,
        state_dir: &Path,
        run: &str,
        boot_id: &str,
    ) -> Result<Self> {
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
            .map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => Error::refused(
                    format!("a run of the name {} is there already", run_name::parts(run).1),
                    "take another name; what a dead run left is undone by `iolab restore`",
                ),
                _ => unwritable("create", &path, &error),
            })?;
        let header = Header { uid, ..Header::of(run, boot_id) };
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
            is_owner_lost: false,
            unnoted: None,
            damaged: Vec::new(),
            #[cfg(test)]
            fuse: None,
        };
        let Header { version, run, boot_id, uid } = header;
        let iolab = env!("CARGO_PKG_VERSION").to_owned();
        let begun = journal.append(&[Line::Open { version, run, boot_id, uid, iolab }]);
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
            is_owner_lost: false,
            unnoted: None,
            damaged: Vec::new(),
            file: None,
            path: file_of(state_dir, run),
            header: Header::of(run, boot_id),
            entries: BTreeMap::new(),
            #[cfg(test)]
            fuse: None,
        }
    }

    /// Tell whether it is that of a dead run.
    pub fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// The run whose changes these are.
    pub fn run(&self) -> &str {
        &self.header.run
    }

    /// The user for whom root made the changes.
    pub fn uid(&self) -> Option<u32> {
        self.header.uid
    }

    /// True if nothing says that: the first line is damaged, and the name has no number.
    pub fn is_owner_lost(&self) -> bool {
        self.is_owner_lost
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The boot in which the changes were made.
    pub fn boot_id(&self) -> &str {
        &self.header.boot_id
    }

    /// Numbers of lines that are damaged; what they say is not known.
    pub fn damaged(&self) -> &[usize] {
        &self.damaged
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

    /// Reason why the file does not say all that is settled, if so.
    pub fn unnoted(&self) -> Option<&Error> {
        self.unnoted.as_ref()
    }

    /// Removes the file; nothing may be open any more.
    pub fn finish(self) -> Result<()> {
        assert!(self.open_entries().is_empty(), "a journal with open entries must be kept");
        fs::remove_file(&self.path).map_err(|error| Error::io("remove", &self.path, error))?;
        self.path.parent().map_or(Ok(()), sync_directory)
    }

    fn append(&mut self, changes: &[Line]) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut text = String::new();
        for line in changes {
            let json = serde_json::to_string(line).map_err(|error| unsayable(&error))?;
            text += &lines::sealed(&json);
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
            let Parsed { header, entries, .. } = match parse(&path, &text) {
                Err(_) if self.header.uid.is_some() => {
                    let what = "what another run has changed cannot be read";
                    return Err(Error::refused(what, "ask root to run `iolab restore`"));
                }
                parsed => parsed?,
            };
            let open = entries.values().filter(|entry| entry.is_open());
            let is_same_boot =
                header.as_ref().is_none_or(|header| header.boot_id == self.header.boot_id);
            let taken = open.filter(|_| is_same_boot);
            let Some(setting) =
                taken.filter_map(|entry| entry.change.setting()).find(|p| wanted(p))
            else {
                continue;
            };
            let uid = header.as_ref().and_then(|header| header.uid).or_else(|| uid_in(&path));
            if self.header.uid.is_some() && uid != self.header.uid {
                return Err(Error::refused(
                    format!("{} is being changed by another user's run", setting.display()),
                    "wait until that one has ended, or ask root",
                ));
            }
            return Err(Error::refused(
                format!("{} is being changed by another run, {}", setting.display(), run_of(&path)),
                "wait until that one has ended; if it is dead, run `iolab restore`",
            ));
        }
        Ok(())
    }
}

/// A line of JSON is text; the kernel's names need not be.
fn unsayable(error: &serde_json::Error) -> Error {
    let what = format!("a change cannot be written into the journal, and is not made: {error}");
    Error::refused(what, "use paths that are UTF-8")
}
