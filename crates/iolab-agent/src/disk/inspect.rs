//! All that speaks against a device, in one order: what it is, who uses it, what lies on it.

use std::path::{Path, PathBuf};

use super::busy::{in_use, unfit};
use super::claim::Disk;
use super::content::{Ends, Verdict, verdict, wipe_command};
use super::identity::Identity;
use crate::error::{Error, Result};
use crate::machine::Machine;

/// Looks at the device behind `path` without claiming or changing it; who it is, if it could be
/// used.
pub fn inspect(machine: &Machine, path: &Path) -> Result<Identity> {
    let disk = Disk::find(machine, path)?;
    refuse_use(machine, &disk, &[])?;
    let identity = disk.identity(machine);
    if let Some(file) = &disk.file {
        disk.check_claim()?;
        let ends = Ends::read(file, identity.size_bytes);
        let ends = ends.map_err(|error| Error::io("read", &disk.node, error))?;
        refuse_content(&disk, &verdict(&ends), identity.size_bytes)?;
    }
    Ok(identity)
}

/// Rules R1, R2 and R4: refuses what is unfit, in use, or carries the running system, its programs
/// or one of the `protected` paths.
pub fn refuse_use(machine: &Machine, disk: &Disk, protected: &[PathBuf]) -> Result<()> {
    let mut protected = protected.to_vec();
    protected.extend(std::fs::read_link("/proc/self/exe"));
    let why = in_use(machine, &disk.name, &protected).or_else(|| unfit(machine, &disk.name));
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
