//! State that a dry run would have reached by now, so that what follows goes the way it would for
//! real.
//!
//! Restoring above all: it undoes what was changed, and on paper something must have been. Left
//! out: what the kernel makes of a value; where it chooses one itself, the value is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::protocol::ActionKind;

/// Changes that nobody made.
#[derive(Debug, Default)]
pub struct Paper {
    /// Contents of files that would have been written, or changed as a consequence.
    texts: BTreeMap<PathBuf, String>,
    /// Files and folders in which the kernel would have chosen anew.
    unknown: BTreeSet<PathBuf>,
    /// Files and folders that would have been made, and not removed again.
    made: BTreeSet<PathBuf>,
    /// Knobs that were given a value, of a device or of the machine.
    set: BTreeSet<(Option<String>, String)>,
    /// Devices that would exist, and which existing one shows what they would be like.
    stand_ins: BTreeMap<String, String>,
}

/// Content that a file would have.
pub enum Text<'a> {
    /// This.
    Known(&'a str),
    /// Value that the kernel chose.
    Unknown,
    /// Present content: nothing would have changed it.
    Unchanged,
}

impl Paper {
    /// Content that a file would have.
    pub fn text(&self, path: &Path) -> Text<'_> {
        match self.texts.get(path) {
            Some(text) => Text::Known(text),
            None if path.ancestors().any(|place| self.unknown.contains(place)) => Text::Unknown,
            None => Text::Unchanged,
        }
    }

    /// Lets a file hold `text`.
    pub fn write(&mut self, path: &Path, text: &str) {
        self.texts.insert(path.to_path_buf(), text.to_owned());
    }

    /// Lets the kernel choose what a file, or each file of a folder, holds.
    pub fn forget(&mut self, place: PathBuf) {
        self.texts.retain(|path, _| !path.starts_with(&place));
        self.unknown.insert(place);
    }

    /// Takes notice of a knob that is given a value.
    pub fn note_knob(&mut self, device: Option<&str>, knob: &str) {
        self.set.insert((device.map(str::to_owned), knob.to_owned()));
    }

    /// Tell whether a knob was ever given a value.
    pub fn was_set(&self, device: Option<&str>, knob: &str) -> bool {
        self.set.contains(&(device.map(str::to_owned), knob.to_owned()))
    }

    /// Takes notice of an action that makes or removes a path.
    pub fn note(&mut self, kind: ActionKind, target: &str) {
        match kind {
            ActionKind::CreateFile | ActionKind::CreateDirectory | ActionKind::CreateCgroup => {
                self.made.insert(PathBuf::from(target));
            }
            ActionKind::RemoveFile | ActionKind::RemoveDirectory | ActionKind::RemoveCgroup => {
                self.made.remove(Path::new(target));
            }
            _ => {}
        }
    }

    /// Tell whether a path would have been made and is not removed.
    pub fn has(&self, path: &Path) -> bool {
        self.made.contains(path)
    }

    /// Lets the device `stand_in` show what `name`, which does not exist, would be like.
    pub fn let_stand_in(&mut self, name: &str, stand_in: &str) {
        self.stand_ins.insert(name.to_owned(), stand_in.to_owned());
    }

    /// Tell whether a device exists on paper only.
    pub fn is_stood_in_for(&self, name: &str) -> bool {
        self.stand_ins.contains_key(name)
    }

    /// Devices that exist on paper only, with their stand-ins.
    pub fn stand_ins(&self) -> impl Iterator<Item = (&str, &str)> {
        self.stand_ins.iter().map(|(name, stand_in)| (name.as_str(), stand_in.as_str()))
    }
}
