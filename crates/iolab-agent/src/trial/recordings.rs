//! Files of recorded streams: opened with the rights of whoever asks, handed to the measuring child
//! as open descriptors.
//!
//! Root opens none of them with rights of its own where it works for somebody: a name in a request
//! leads to nothing that its sender could not read. The child gets `/proc/self/fd/N` in place of
//! the name, and opens nothing else ([`crate::measure`]). A recording that is another one than when
//! the study was planned is refused before anything is prepared. Left out: what the streams hold,
//! which the child checks line by line.

use std::fs::{File, OpenOptions};
use std::io::BufReader;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use iolab_workload::Workload;
use iolab_workload::program::{Recorded, RecordedIdentity};

use crate::error::{Error, Result};
use crate::identity::on_behalf;
use crate::machine::Machine;
use crate::protocol::{RunAs, TrialSpec};

/// Directory in which a process finds its own descriptors.
const DESCRIPTORS: &str = "/proc/self/fd/";
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 18;

/// Open files of the recorded streams of a workload.
#[derive(Debug, Default)]
pub struct Recordings {
    files: Vec<File>,
}

impl Recordings {
    /// The workload of a trial with its recordings open; a rehearsal opens none.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened or is no ordinary one.
    pub fn taken(machine: &Machine, spec: &TrialSpec) -> Result<(Workload, Self)> {
        let mut workload = spec.workload.clone();
        let mut recordings = Self::default();
        if !machine.is_dry_run() {
            recordings = Self::open(&mut workload, machine.user())?;
        }
        Ok((workload, recordings))
    }

    /// Opens the recordings of a workload with the rights of `user`; the workload names their
    /// descriptors from then on.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened or is no ordinary one.
    fn open(workload: &mut Workload, user: Option<&RunAs>) -> Result<Self> {
        let mut files = Vec::new();
        for recorded in recordings(workload) {
            let file = on_behalf(user, || open(&recorded.file))?;
            check_unchanged(&file, recorded)?;
            recorded.file = PathBuf::from(format!("{DESCRIPTORS}{}", file.as_raw_fd()));
            files.push(file);
        }
        Ok(Self { files })
    }

    /// Their descriptors.
    pub fn descriptors(&self) -> Vec<RawFd> {
        self.files.iter().map(File::as_raw_fd).collect()
    }
}

/// True if every recorded stream of a workload is a descriptor that was handed over.
pub fn are_handed_over(workload: &mut Workload) -> bool {
    let is_descriptor = |recorded: &mut Recorded| {
        let number = recorded.file.to_str().and_then(|path| path.strip_prefix(DESCRIPTORS));
        number.is_some_and(|number| number.parse::<u16>().is_ok())
    };
    recordings(workload).all(is_descriptor)
}

fn recordings(workload: &mut Workload) -> impl Iterator<Item = &mut Recorded> {
    let tenants = workload.phases.iter_mut().flat_map(|phase| &mut phase.tenants);
    let programs = tenants.filter_map(|tenant| tenant.program.as_mut());
    programs.filter_map(|program| program.recorded.as_mut())
}

/// Refuses a recording that is another one than when the study was planned.
fn check_unchanged(file: &File, recorded: &Recorded) -> Result<()> {
    let Some(content) = &recorded.content else { return Ok(()) };
    let found = RecordedIdentity::of(BufReader::with_capacity(BUFFER_BYTES, file));
    let what = match found {
        Ok(found) if found == content.identity => return Ok(()),
        Ok(found) => format!("it has {found}; it had {} when it was planned", content.identity),
        Err(error) => error.to_string(),
    };
    let what =
        format!("the recorded stream {} is another one now: {what}", recorded.file.display());
    Err(Error::refused(what, "put the recording back as it was, or begin a new study with it"))
}

/// Opens an ordinary file; a pipe is not waited for.
fn open(path: &Path) -> Result<File> {
    let refused = |why: String| {
        let what = format!("the recorded stream {} is not read: {why}", path.display());
        Error::refused(what, "name an ordinary file that you may read")
    };
    if !path.is_absolute() {
        return Err(refused("its name does not begin with /".to_owned()));
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| refused(error.to_string()))?;
    match file.metadata() {
        Ok(found) if found.is_file() => Ok(file),
        Ok(_) => Err(refused("it is no ordinary file".to_owned())),
        Err(error) => Err(refused(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_workload::program::RecordedContent;
    use serde_json::json;

    fn workload(file: &str) -> Workload {
        let recorded = json!({"file": file, "format": "iolab", "set": "data"});
        let mut tenant = serde_json::to_value(iolab_workload::spec::Tenant::of_program(
            "main",
            1,
            iolab_workload::program::Program::default(),
        ))
        .unwrap();
        tenant["program"] = json!({"steps": [], "recorded": recorded});
        let phases = json!([{"name": "p", "tenants": [tenant]}]);
        serde_json::from_value(
            json!({"version": 1, "name": "w", "engine": "psync", "seed": 1, "phases": phases}),
        )
        .unwrap()
    }

    #[test]
    fn names_become_descriptors() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut found = workload(file.path().to_str().unwrap());
        assert!(!are_handed_over(&mut found));
        let recordings = Recordings::open(&mut found, None).unwrap();
        assert_eq!(recordings.descriptors().len(), 1);
        assert!(are_handed_over(&mut found));
        for name in ["/proc/self/fd/../maps", "/proc/self/fd/", "/etc/passwd", "x"] {
            assert!(!are_handed_over(&mut workload(name)), "{name}");
        }
    }

    /// A trial that ends by time would not notice: the end of the recording is never read.
    #[test]
    fn a_recording_that_changed_is_refused_by_size_and_digest() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().to_str().unwrap();
        std::fs::write(name, "iolab recorded stream 1\n0 read 0 0 512\n").unwrap();
        let mut planned = workload(name);
        let recorded = recordings(&mut planned).next().unwrap();
        let reader = BufReader::new(file.reopen().unwrap());
        recorded.content = RecordedContent::of(reader, recorded).ok();
        assert!(recorded.content.is_some());
        assert!(Recordings::open(&mut planned.clone(), None).is_ok());
        for text in ["iolab recorded stream 1\n0 read 0 1 512\n", "short"] {
            std::fs::write(name, text).unwrap();
            let error = Recordings::open(&mut planned.clone(), None).unwrap_err().to_string();
            let expected = format!("it has {} bytes, digest ", text.len());
            assert!(error.contains(name) && error.contains(&expected), "{error}");
            assert!(error.contains("it had 39 bytes, digest "), "{error}");
        }
    }

    /// A pipe would stop the agent for as long as nobody writes; a device may do anything.
    #[test]
    fn only_ordinary_files_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let pipe = pipe.display().to_string();
        for name in [&pipe, "/dev/zero", "/tmp", "relative", "/nowhere/at/all"] {
            let error = Recordings::open(&mut workload(name), None).unwrap_err();
            assert!(error.to_string().contains("is not read"), "{name}: {error}");
        }
    }
}
