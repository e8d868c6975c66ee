//! The file half of a stack: which file system lies on it, in how much memory, by which kernel.

use std::collections::BTreeMap;
use std::path::Path;

use iolab_files::api::file_system::CacheKind;
use iolab_files::api::frame::Replacement;
use iolab_files::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris, StripeFacts};
use iolab_files::api::options::FsOptions;
use iolab_files::api::own_cache::DeviceQueue;
use iolab_files::api::write_back::Throttle;
use iolab_files::api::write_back::VmSettings;
use iolab_files::fs::list::{FILE_SYSTEMS, FileSystemRow, Home, find};
use iolab_files::machine::{Deciders, Machine, MachineCost, MachineSettings};
use iolab_files::readahead::{ReadAheadEra, Walk};
use iolab_files::reclaim::{Adaptive, TwoLists};
use iolab_files::writeback::{DirtyControl, Unlimited, Writer};
use iolab_model::{Bytes, Ns};
use serde::{Deserialize, Serialize};

use crate::api::layer::Info;
use crate::error::SimError;
use crate::target::{CpuCost, DIRECTORY, Simulation};

/// Memory for pages of files, if neither stack nor study says how much. [assume]
const MEMORY: Bytes = Bytes(8 << 30);
/// Least memory: pages of a window and of a write, many times over.
const MEMORY_MIN: Bytes = Bytes(16 << 20);
/// Beginning of the name of a release of Solaris.
const SOLARIS: &str = "solaris-";
/// Memory of this machine that a page of the simulated one takes: its frame, its slots and bits.
const REAL_BYTES_PER_PAGE: u64 = 40;

/// A file system on a stack, as in a stack file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilesSpec {
    /// Name of the file system; absent: files are extents of the bare device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<String>,
    /// Words of mkfs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mkfs_options: Vec<String>,
    /// Words of mount.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mount_options: Vec<String>,
    /// Version of the kernel whose rules hold, as in `"6.18"` or `"solaris-8"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Variables of the kernel by their names in /etc/system, as in `system = { ufs_HW = 393216 }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub system: BTreeMap<String, u64>,
    /// Memory for pages of files, as in `"32g"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Era of read-ahead; absent: that of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readahead_era: Option<ReadAheadEra>,
    /// Search for absent pages beside large folios; absent: as the kernel does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ra_walk: Option<Walk>,
    /// Limit of the memory that a study sets.
    #[serde(skip)]
    pub limit: Option<Bytes>,
}

impl FilesSpec {
    /// Tell whether nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Memory for pages of files.
    pub fn memory_bytes(&self) -> Result<Bytes, SimError> {
        if let Some(limit) = self.limit.filter(|limit| *limit < MEMORY_MIN) {
            return Err(SimError::Inconsistent {
                subject: format!("memory limit {limit}"),
                problem: "is too small for a simulation".into(),
                remedy: format!("give it at least {MEMORY_MIN}"),
            });
        }
        let own = self.own_memory()?;
        Ok(self.limit.map_or(own, |limit| own.min(limit)))
    }

    fn own_memory(&self) -> Result<Bytes, SimError> {
        let Some(text) = &self.memory else { return Ok(MEMORY) };
        let refuse = |problem: String| SimError::Inconsistent {
            subject: format!("memory = {text:?}"),
            problem,
            remedy: "write a size, as in memory = \"32g\"".into(),
        };
        let bytes: Bytes = text.parse().map_err(|_| refuse("is no size".into()))?;
        if bytes < MEMORY_MIN {
            return Err(refuse(format!("is less than {MEMORY_MIN}")));
        }
        Ok(bytes)
    }

    /// Memory of this machine that simulating it takes, beside that of the drives.
    pub fn real_bytes(&self) -> Result<u64, SimError> {
        if self.fs.is_none() {
            return Ok(0);
        }
        Ok(self.memory_bytes()?.0 / 4096 * REAL_BYTES_PER_PAGE)
    }

    fn row(&self) -> Result<Option<&'static FileSystemRow>, SimError> {
        self.fs.as_deref().map(|name| find(name).map_err(SimError::Files)).transpose()
    }

    /// Kernel and release that hold for a file system: one of them is its own, the other one is
    /// not looked at.
    fn kernel(&self, row: &FileSystemRow) -> Result<(Kernel, Solaris), SimError> {
        let Some(text) = self.kernel.as_deref() else { return Ok(Default::default()) };
        match (row.home, text.strip_prefix(SOLARIS)) {
            (Home::Linux, None) => Ok((text.parse().map_err(SimError::Files)?, Solaris::default())),
            (Home::Solaris, Some(release)) => {
                let known = release.parse().ok().filter(|number| (7..=10).contains(number));
                let refuse = || SimError::Inconsistent {
                    subject: format!("kernel {text:?}"),
                    problem: "is no release whose rules are known".into(),
                    remedy: "write kernel = \"solaris-8\"; known: 7 to 10".into(),
                };
                Ok((Kernel::default(), Solaris(known.ok_or_else(refuse)?)))
            }
            (home, _) => Err(SimError::Inconsistent {
                subject: format!("kernel {text:?} with fs {:?}", row.name),
                problem: format!("{} belongs to {home:?}", row.name),
                remedy: match home {
                    Home::Linux => "write kernel = \"6.18\", or leave it out".into(),
                    Home::Solaris => "write kernel = \"solaris-8\", or leave it out".into(),
                },
            }),
        }
    }

    fn kernel_text(&self, row: &FileSystemRow) -> Result<String, SimError> {
        let (kernel, solaris) = self.kernel(row)?;
        Ok(match row.home {
            Home::Linux => kernel.to_string(),
            Home::Solaris => solaris.to_string(),
        })
    }

    fn system_text(&self) -> String {
        let set = self.system.iter().map(|(name, value)| format!("{name}={value}"));
        set.collect::<Vec<_>>().join(" ")
    }

    /// Facts that are stored with every result.
    pub fn facts(&self) -> Result<Vec<(String, String)>, SimError> {
        let Some(row) = self.row()? else { return Ok(Vec::new()) };
        let facts = [
            ("sim.fs", format!("{}: {}", row.name, row.title)),
            ("sim.fs.age", "fresh: made for this trial, empty, never aged".into()),
            ("sim.fs.mkfs_options", self.mkfs_options.join(" ")),
            ("sim.fs.mount_options", self.mount_options.join(",")),
            ("sim.kernel", self.kernel_text(row)?),
            ("sim.memory", self.memory_bytes()?.to_string()),
            ("sim.system", self.system_text()),
        ];
        let facts =
            facts.into_iter().filter(|(name, value)| *name != "sim.system" || !value.is_empty());
        Ok(facts.map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// Settings from outside for the file half, under the kernel's names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilesOverrides {
    /// File system of the trial, with its options, in place of the stack's.
    pub made: Option<FilesMade>,
    /// Limit of the memory of a trial: its pages of files have no more than that.
    pub memory: Option<Bytes>,
    /// `read_ahead_kb`.
    pub read_ahead_kb: Option<u64>,
    /// `vm.*`, by name.
    pub vm: BTreeMap<String, u64>,
}

/// A file system that a trial makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesMade {
    /// Name.
    pub fs: String,
    /// Words of mkfs.
    pub mkfs_options: Vec<String>,
    /// Words of mount.
    pub mount_options: Vec<String>,
}

impl FilesMade {
    /// Options that the trial names; those of the stack if it names none, and means the same file
    /// system.
    fn or_own(&self, named: &[String], spec: &FilesSpec, own: &[String]) -> Vec<String> {
        let is_same = spec.fs.as_deref() == Some(&self.fs);
        if named.is_empty() && is_same { own.to_vec() } else { named.to_vec() }
    }
}

/// Settings of write-back that a study may name.
pub const VM_KNOBS: [&str; 6] = [
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
];

/// Name that stands for a device without a file system.
pub const NO_FILE_SYSTEM: &str = "none";

impl FilesOverrides {
    /// The stack's file half with these settings.
    pub fn apply(&self, spec: &FilesSpec) -> FilesSpec {
        let mut applied = match &self.made {
            None => spec.clone(),
            Some(made) => FilesSpec {
                fs: (made.fs != NO_FILE_SYSTEM).then(|| made.fs.clone()),
                mkfs_options: made.or_own(&made.mkfs_options, spec, &spec.mkfs_options),
                mount_options: made.or_own(&made.mount_options, spec, &spec.mount_options),
                ..spec.clone()
            },
        };
        applied.limit = self.memory.filter(|_| applied.fs.is_some());
        applied
    }

    /// Settings of write-back; of a pair of bytes and ratio the one that is set counts.
    fn vm(&self) -> VmSettings {
        let mut vm = VmSettings::default();
        for (name, &value) in &self.vm {
            match name.as_str() {
                "dirty_ratio" => (vm.dirty_ratio, vm.dirty_bytes) = (value, 0),
                "dirty_background_ratio" => {
                    (vm.dirty_background_ratio, vm.dirty_background_bytes) = (value, 0);
                }
                "dirty_bytes" => vm.dirty_bytes = value,
                "dirty_background_bytes" => vm.dirty_background_bytes = value,
                "dirty_expire_centisecs" => vm.dirty_expire_centisecs = value,
                _ => vm.dirty_writeback_centisecs = value,
            }
        }
        vm
    }
}

/// Facts that the block half tells the file half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Below {
    pub info: Info,
    pub cpu: CpuCost,
    pub cpus: u16,
    /// Processors that workers share, or 0, and how long they keep one that others wait for.
    pub processors: u16,
    pub slice: Ns,
    pub max_sectors_kb: u64,
    pub requests_max: u32,
    /// Stripes of a volume that the machine makes.
    pub stripe: Option<StripeFacts>,
    /// The second device of the file system, by its key in the stack.
    pub second: Option<(&'static str, Info)>,
}

impl Below {
    /// The devices of a file system, by role.
    fn devices(&self) -> Vec<DeviceFacts> {
        let facts = |info: &Info, stripe| DeviceFacts {
            bytes: info.capacity.0 * 512,
            is_rotational: info.is_rotational,
            io_min_bytes: info.chunk_sectors * 512,
            io_opt_bytes: 0,
            stripe,
        };
        let second = self.second.as_ref().map(|(_, info)| facts(info, None));
        [Some(facts(&self.info, self.stripe)), second].into_iter().flatten().collect()
    }
}

/// The machine of a stack with a file system; `None`: files are extents of the bare device.
pub(crate) fn machine(
    spec: &FilesSpec,
    overrides: &FilesOverrides,
    below: Below,
) -> Result<Option<Machine>, SimError> {
    let spec = overrides.apply(spec);
    let Some(row) = spec.row()? else {
        let given = [
            ("mkfs_options", !spec.mkfs_options.is_empty()),
            ("mount_options", !spec.mount_options.is_empty()),
            ("system", !spec.system.is_empty()),
            ("log_device or meta_device", below.second.is_some()),
        ];
        let lost = given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name);
        let lost: Vec<&str> = lost.collect();
        return if lost.is_empty() { Ok(None) } else { Err(without_a_file_system(&lost)) };
    };
    let make = make_spec(&spec, row, &below)?;
    let kernel = make.kernel;
    let file_system = (row.make)(&make).map_err(SimError::Files)?;
    let vm = overrides.vm();
    let settings = MachineSettings {
        memory_bytes: spec.memory_bytes()?.0,
        cpus: below.cpus,
        processors: below.processors,
        slice: below.slice,
        kernel,
        cost: MachineCost {
            call_ns: below.cpu.call_ns,
            page_ns: below.cpu.page_ns,
            copy_ns_per_kib: below.cpu.copy_ns_per_kib,
            submit_ns: below.cpu.submit_ns,
            complete_ns: below.cpu.complete_ns,
        },
        vm,
        read_ahead_kb: overrides.read_ahead_kb.unwrap_or(128),
        max_sectors_kb: below.max_sectors_kb,
        requests_max: below.requests_max,
        read_ahead_era: spec.readahead_era,
        walk: spec.ra_walk.unwrap_or(Walk::Exact),
    };
    let throttle: Box<dyn Throttle> = match row.home {
        Home::Linux => Box::new(DirtyControl::new(vm, u32::from(below.cpus), kernel)),
        Home::Solaris => Box::new(Unlimited),
    };
    let replacement: Box<dyn Replacement> = match file_system.facts().cache {
        CacheKind::Own(own) => Box::new(Adaptive::new(own.bytes / 4096)),
        CacheKind::Pages | CacheKind::Bypass => Box::new(TwoLists::new()),
    };
    let deciders =
        Deciders { file_system, throttle, flusher: Box::new(Writer::new(vm, kernel)), replacement };
    let root = Path::new(DIRECTORY).to_path_buf();
    Ok(Some(Machine::new(Simulation::EPOCH, settings, deciders, root)))
}

/// Everything that mkfs and mount know.
fn make_spec(
    spec: &FilesSpec,
    row: &'static FileSystemRow,
    below: &Below,
) -> Result<MakeSpec, SimError> {
    let (kernel, solaris) = spec.kernel(row)?;
    if let Some((key, _)) = below.second.filter(|(key, _)| row.second_device != Some(*key)) {
        return Err(without_a_second_device(row, key));
    }
    let mount = FsOptions::mount(row.name, row.mount, &spec.mount_options);
    let mount = mount.map_err(SimError::Files)?;
    if let Some((one, other)) = mount.contradiction() {
        return Err(SimError::Inconsistent {
            subject: format!("mount_options of {}", row.name),
            problem: format!("{one} and {other} at once"),
            remedy: "leave one of them out".into(),
        });
    }
    Ok(MakeSpec {
        devices: below.devices(),
        kernel,
        mkfs: FsOptions::mkfs(row.name, row.mkfs, &spec.mkfs_options).map_err(SimError::Files)?,
        mount,
        cpus: below.cpus,
        memory_bytes: spec.memory_bytes()?.0,
        map_cost: Ns(below.cpu.map_ns),
        solaris,
        system: FsOptions::system(
            row.name,
            row.system,
            spec.system.iter().map(|(name, &value)| (name.as_str(), value)),
        )
        .map_err(SimError::Files)?,
    })
}

/// The queue that the file system keeps in front of each device, if it has one.
pub(crate) fn device_queue(
    spec: &FilesSpec,
    overrides: &FilesOverrides,
    below: &Below,
) -> Result<Option<DeviceQueue>, SimError> {
    let spec = overrides.apply(spec);
    let Some(row) = spec.row()? else { return Ok(None) };
    let Some(queue) = row.device_queue else { return Ok(None) };
    queue(&make_spec(&spec, row, below)?).map(Some).map_err(SimError::Files)
}

/// Refuses what is of a file system, by the names of these keys.
fn without_a_file_system(keys: &[&str]) -> SimError {
    let known: Vec<&str> = FILE_SYSTEMS.iter().map(|row| row.name).collect();
    SimError::Inconsistent {
        subject: keys.join(", "),
        problem: "belongs to a file system, and the stack names none".into(),
        remedy: format!(
            "choose one: --fs NAME of compare, or [files] and fs = \"NAME\" in a stack file; \
             known: {}",
            known.join(", ")
        ),
    }
}

fn without_a_second_device(row: &FileSystemRow, key: &str) -> SimError {
    let known = FILE_SYSTEMS.iter().filter(|row| row.second_device == Some(key));
    let known: Vec<&str> = known.map(|row| row.name).collect();
    SimError::Inconsistent {
        subject: format!("{key} with fs {:?}", row.name),
        problem: "is not modelled".into(),
        remedy: format!("leave it out; known with it: {}", known.join(", ")),
    }
}
