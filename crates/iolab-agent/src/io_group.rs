//! Control groups of streams: a weight among others, and limits of bytes and operations per second.
//!
//! Version 2 where it owns the io controller, else version 1 (blkio). A weight counts under the
//! scheduler bfq, and with iocost. Version 1 charges only what a process submits itself, which
//! buffered writes are not: they reach the device by the kernel's flusher.
//! Sources: Documentation/admin-guide/cgroup-v2.rst ("IO"), cgroup-v1/blkio-controller.rst,
//! Documentation/block/bfq-iosched.rst (weights from 1 to 1000).
//! Left out: latency targets (io.latency), turning controllers on for the whole machine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::journal::{Change, State};
use crate::machine::Machine;
use crate::mounts;
use crate::protocol::{ActionKind, GroupSeat, IoGroup};
use crate::restore::patiently;

/// Version of the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The control groups of one trial.
#[derive(Debug, Default)]
pub struct IoGroups {
    seats: Vec<GroupSeat>,
    paths: Vec<PathBuf>,
    journal_ids: Vec<u64>,
}

impl IoGroups {
    /// Makes the groups that are asked for, with their weights and their limits on `devices`.
    pub fn create(
        machine: &mut Machine,
        run: &str,
        devices: &[String],
        (asked, has_memory_limit): (&[IoGroup], bool),
    ) -> Result<Self> {
        if asked.is_empty() {
            return Ok(Self::default());
        }
        let (parent, version) = hierarchy()?;
        if version == Version::Two && has_memory_limit {
            return Err(Error::refused(
                "a process is in one control group of version 2: a memory limit and a stream's \
                 weight or limit exclude each other",
                "leave one of them out",
            ));
        }
        let numbers = numbers_of(machine, devices)?;
        let paths: Vec<PathBuf> =
            (0..asked.len()).map(|index| parent.join(format!("iolab-{run}-io{index}"))).collect();
        let mut made = Self::default();
        for (group, path) in asked.iter().zip(&paths) {
            let settings = settings(group, version, &numbers);
            if let Err(error) = made.add(machine, path, group, &settings) {
                let _ = made.remove(machine);
                return Err(error);
            }
        }
        Ok(made)
    }

    /// Makes one more group. What is there already is another's, and not removed with ours.
    fn add(
        &mut self,
        machine: &mut Machine,
        path: &Path,
        group: &IoGroup,
        settings: &[Setting],
    ) -> Result<()> {
        let detail: Vec<String> =
            settings.iter().map(|(file, value, _)| format!("{file} = {value}")).collect();
        let change = Change::CgroupCreated { path: path.to_path_buf() };
        let action = (ActionKind::CreateCgroup, path.display().to_string(), detail.join("; "));
        let (journal_id, created) = machine.make(change, action, || {
            fs::create_dir(path).map_err(|error| Error::io("create", path, error))
        })?;
        self.journal_ids.push(journal_id);
        let procs = path.join("cgroup.procs");
        let seat = |tenant: &String| GroupSeat { tenant: tenant.clone(), procs: procs.clone() };
        self.seats.extend(group.tenants.iter().map(seat));
        self.paths.push(path.to_path_buf());
        created.map_or(Ok(()), |()| set(path, settings))
    }

    /// Group of the workers of each tenant.
    pub fn seats(&self) -> Vec<GroupSeat> {
        self.seats.clone()
    }

    /// Removes them; their processes are gone or about to be.
    pub fn remove(self, machine: &mut Machine) -> Result<()> {
        for path in &self.paths {
            machine.act(ActionKind::RemoveCgroup, path.display().to_string(), "", || {
                match patiently(|| fs::remove_dir(path)) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                    result => result.map_err(|error| Error::io("remove", path, error)),
                }
            })?;
        }
        match machine.journal() {
            Some(journal) if !self.journal_ids.is_empty() => {
                journal.mark(&self.journal_ids, State::Restored)
            }
            _ => Ok(()),
        }
    }
}

/// A file of a group, what is written into it, and whether the kernel may lack it.
type Setting = (&'static str, String, bool);

/// Gives a group its weight and its limits.
fn set(path: &Path, settings: &[Setting]) -> Result<()> {
    let is_there = |file: &str| path.join(file).exists();
    let (wanted, optional): (Vec<_>, Vec<_>) =
        settings.iter().partition(|(_, _, is_optional)| !is_optional);
    if !optional.is_empty() && !optional.iter().any(|(file, ..)| is_there(file)) {
        return Err(Error::refused(
            "this kernel has no weights of control groups for I/O",
            "leave cgroup_weight out, or use priority",
        ));
    }
    for (file, value, _) in
        wanted.into_iter().chain(optional.into_iter().filter(|(file, ..)| is_there(file)))
    {
        let file = path.join(file);
        fs::write(&file, value).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL | libc::ERANGE) => Error::refused(
                format!("{} takes no {value}: {error}", file.display()),
                "weights go from 1 to 1000",
            ),
            _ => Error::io("write", &file, error),
        })?;
    }
    Ok(())
}

/// Texts that are written into a group's files; of two files for a weight the kernel may have one.
fn settings(group: &IoGroup, version: Version, devices: &[String]) -> Vec<Setting> {
    let mut found = Vec::new();
    let limits = [
        (group.max_read_bytes_per_s, "blkio.throttle.read_bps_device", "rbps"),
        (group.max_write_bytes_per_s, "blkio.throttle.write_bps_device", "wbps"),
        (group.max_read_ops_per_s, "blkio.throttle.read_iops_device", "riops"),
        (group.max_write_ops_per_s, "blkio.throttle.write_iops_device", "wiops"),
    ];
    if let Some(weight) = group.weight {
        let files = match version {
            Version::One => ["blkio.bfq.weight", "blkio.weight"],
            Version::Two => ["io.bfq.weight", "io.weight"],
        };
        found.extend(files.map(|file| (file, weight.to_string(), true)));
    }
    for device in devices {
        for (limit, file, word) in limits {
            let Some(limit) = limit else { continue };
            found.push(match version {
                Version::One => (file, format!("{device} {limit}"), false),
                Version::Two => ("io.max", format!("{device} {word}={limit}"), false),
            });
        }
    }
    found
}

/// `7:8` of each device.
fn numbers_of(machine: &Machine, devices: &[String]) -> Result<Vec<String>> {
    if devices.is_empty() {
        return Err(Error::refused(
            "a stream's weight or limit needs a block device under the testbed, and none was found",
            "use --on loop:1g, or a directory on a disk's file system",
        ));
    }
    let number = |name: &String| {
        let path = format!("/sys/block/{name}/dev");
        machine.peek(&path).or_else(|| machine.is_dry_run().then(|| name.clone())).ok_or_else(
            || {
                Error::failed(
                    format!("{path} cannot be read"),
                    "see whether the device is still there",
                )
            },
        )
    };
    devices.iter().map(number).collect()
}

/// Tell whether groups are possible, and where; the error says why not.
fn hierarchy() -> Result<(PathBuf, Version)> {
    let mounts = mounts::all();
    let unified = mounts.iter().find(|mount| mount.fs == "cgroup2").map(|mount| &mount.point);
    if let Some(point) = unified.filter(|point| is_enabled(point)) {
        return Ok((point.clone(), Version::Two));
    }
    let is_blkio = |options: &str| options.split(',').any(|option| option == "blkio");
    if let Some(mount) = mounts.iter().find(|m| m.fs == "cgroup" && is_blkio(&m.super_options)) {
        return Ok((mount.point.clone(), Version::One));
    }
    Err(Error::failed(
        "no control group can be given weights or limits of I/O: no hierarchy hands the io \
         controller down",
        "as root: echo +io > /sys/fs/cgroup/cgroup.subtree_control",
    ))
}

fn is_enabled(point: &Path) -> bool {
    fs::read_to_string(point.join("cgroup.subtree_control"))
        .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "io"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> IoGroup {
        IoGroup {
            tenants: vec!["bulk".into()],
            weight: Some(50),
            max_write_bytes_per_s: Some(1 << 20),
            max_read_ops_per_s: Some(100),
            ..IoGroup::default()
        }
    }

    #[test]
    fn version_1_has_a_file_for_each_limit() {
        let found = settings(&group(), Version::One, &["7:8".into()]);
        let found: Vec<_> = found.iter().map(|(file, value, _)| (*file, value.as_str())).collect();
        let expected = [
            ("blkio.bfq.weight", "50"),
            ("blkio.weight", "50"),
            ("blkio.throttle.write_bps_device", "7:8 1048576"),
            ("blkio.throttle.read_iops_device", "7:8 100"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn version_2_has_one_file_for_all_limits() {
        let found = settings(&group(), Version::Two, &["7:8".into()]);
        let found: Vec<_> = found.iter().map(|(file, value, _)| (*file, value.as_str())).collect();
        let expected = [
            ("io.bfq.weight", "50"),
            ("io.weight", "50"),
            ("io.max", "7:8 wbps=1048576"),
            ("io.max", "7:8 riops=100"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_kernel_without_weights_is_told_from_one_with() {
        let place = tempfile::tempdir().unwrap();
        let weight =
            settings(&IoGroup { weight: Some(10), ..IoGroup::default() }, Version::One, &[]);
        let error = set(place.path(), &weight).unwrap_err();
        assert!(error.to_string().contains("no weights"), "{error}");
    }

    /// Issue 14, point 9: a group that was there was removed with ours, and by every restore.
    #[test]
    fn a_group_of_anothers_is_not_removed() {
        let (place, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut machine = Machine::new(false);
        let journal = crate::journal::Journal::create(state.path(), "run-1", "boot").unwrap();
        machine.attach_journal(journal);
        let (own, theirs) = (place.path().join("own"), place.path().join("theirs"));
        fs::create_dir(&theirs).unwrap();
        let mut made = IoGroups::default();
        made.add(&mut machine, &own, &group(), &[]).unwrap();
        let error = made.add(&mut machine, &theirs, &group(), &[]).unwrap_err();
        assert!(error.is_there_already(), "{error}");
        made.remove(&mut machine).unwrap();
        assert_eq!((own.exists(), theirs.exists()), (false, true));
        assert_eq!(machine.journal().unwrap().open_entries(), []);
    }
}
