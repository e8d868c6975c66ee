//! All that speaks against a device, in one order: what it is, who uses it, what lies on it.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::busy::{Patience, in_use, unfit};
use super::claim::Disk;
use super::content::{Ends, Verdict, verdict, wipe_command};
use super::identity::Identity;
use super::sample::Survey;
use crate::error::{Error, Result};
use crate::machine::Machine;

/// A device that could be used.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// Identity of the device.
    pub identity: Identity,
    /// A warning if something is stored between its blank ends.
    pub stored: Option<String>,
}

/// Looks at the device behind `path` without claiming or changing it.
pub fn inspect(machine: &Machine, path: &Path, patience: Patience) -> Result<Inspected> {
    let disk = Disk::find(machine, path)?;
    refuse_use(machine, &disk, &[], patience)?;
    let identity = disk.identity(machine);
    let mut stored = None;
    if let Some(file) = &disk.file {
        disk.check_claim()?;
        let ends = Ends::read(file, identity.size_bytes);
        let ends = ends.map_err(|error| Error::io("read", &disk.node, error))?;
        let content = verdict(&ends);
        refuse_content(&disk, &content, identity.size_bytes)?;
        stored = self::stored(&disk, file, &content, &identity)?;
    }
    Ok(Inspected { identity, stored })
}

/// A warning if samples between the blank ends of a device are not blank: rule R3 looks at the ends
/// only, and whoever uses a device without any label lets it through.
pub fn stored(
    disk: &Disk,
    held: &File,
    content: &Verdict,
    identity: &Identity,
) -> Result<Option<String>> {
    let run = match content {
        Verdict::Marked(marker) => Some(marker.run.as_str()),
        _ => None,
    };
    let survey = Survey::of(held, identity.size_bytes, &identity.serial);
    let survey = survey.map_err(|error| Error::io("read", &disk.node, error))?;
    Ok(survey.warning(run))
}

/// Rules R1, R2 and R4: refuses what is unfit, in use, or carries the running system, its programs
/// or one of the `protected` paths.
pub fn refuse_use(
    machine: &Machine,
    disk: &Disk,
    protected: &[PathBuf],
    patience: Patience,
) -> Result<()> {
    let mut protected = protected.to_vec();
    protected.extend(std::fs::read_link("/proc/self/exe"));
    let why = in_use(machine, &disk.name, &protected, patience);
    let why = why.or_else(|| unfit(machine, &disk.name));
    why.map_or(Ok(()), |why| Err(Error::refused(why.what, why.hint)))
}

/// Rule R3: refuses a device that is not empty, with the command that would empty it.
pub fn refuse_content(disk: &Disk, content: &Verdict, size_bytes: u64) -> Result<()> {
    let node = disk.node.display().to_string();
    let what = match content {
        Verdict::Unseen | Verdict::Blank | Verdict::Marked(_) => return Ok(()),
        Verdict::Labels(found) => {
            let shown: Vec<String> =
                found.iter().map(|one| format!("{} at byte {}", one.name, one.offset)).collect();
            format!("{node} is not empty: {}", shown.join(", "))
        }
        Verdict::Data(offset) => format!(
            "{node} is not empty: at byte {offset} there is something that iolab does not know"
        ),
    };
    let command = wipe_command(&node, size_bytes);
    let hint = format!("iolab never wipes it; if nobody needs what is on it: {command}");
    Err(Error::refused(what, hint))
}
