//! A whole stack as data: queues, volumes, devices, and what software costs.
//!
//! A stack is a profile's name or a TOML file:
//!
//! ```toml
//! name = "raid5-of-five"
//! title = "Five SATA disks behind a controller, RAID 5"
//!
//! [volume]
//! members = 5
//! parameters = { layout = "raid5", unit_bytes = 131072 }
//! member.device.profile = "sata7200-4tb"
//! ```
//!
//! A queue with a scheduler stands in front of the whole (a controller's volume looks like one
//! disk), unless members have queues of their own (`member.queue`): then, as with software RAID,
//! each of them schedules.

pub mod device;
pub mod faults;

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use iolab_files::api::make::StripeFacts;
use iolab_files::fs::list::{LOG_DEVICE, META_DEVICE};
use iolab_model::{Ns, Sector, Seed};
use serde::{Deserialize, Serialize};

use self::device::DeviceSpec;
use self::faults::FaultSpec;
use crate::api::layer::{Layer, reason};
use crate::device as devices;
use crate::device::faulty::Faulty;
use crate::error::SimError;
use crate::files::{Below, FilesOverrides, FilesSpec, device_queue, machine};
use crate::profile::Profile;
use crate::queue::{BlockQueue, QueueParameters};
use crate::software::{CostTable, ProcessorClocks, Software};
use crate::target::{Beside, CpuCost, DIRECTORY, EXTENT, Placement, Simulation};
use crate::vdev_queue::VdevQueue;

/// Commands that a queue gives to an array at once, if the stack file does not say: the tagged
/// queue of a SCSI unit. [assume]
const ARRAY_DEPTH: u32 = 64;

/// Largest request if nothing limits it further (Linux include/linux/blkdev.h:
/// `BLK_DEF_MAX_SECTORS_CAP`, 2560 sectors from 4.3 to 6.12).
const MAX_SECTORS_KB: u64 = 1280;
/// Requests of a queue, if the stack does not say (Linux block/blk-mq.c: twice
/// `BLKDEV_DEFAULT_RQ` with a scheduler).
const REQUESTS: u32 = 256;

/// Members of one volume; md takes 384 (Linux drivers/md: `MD_SB_DISKS` of version 1 metadata).
const MEMBERS_MAX: u32 = 384;

/// A stack, as in a stack file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Name.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// Place where files begin.
    #[serde(default)]
    pub placement: Placement,
    /// Cost of software.
    #[serde(default)]
    pub cpu: CpuCost,
    /// Cost of schedulers.
    #[serde(default)]
    pub software: Software,
    /// Settings of the queue in front of the whole.
    #[serde(default)]
    pub queue: Option<QueueParameters>,
    /// A single device ...
    #[serde(default)]
    pub device: Option<DeviceSpec>,
    /// ... or several.
    #[serde(default)]
    pub volume: Option<VolumeSpec>,
    /// A file system on it.
    #[serde(default, skip_serializing_if = "FilesSpec::is_default")]
    pub files: FilesSpec,
    /// A device of its own for the log of the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_device: Option<MemberSpec>,
    /// A device of its own for the metadata of the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_device: Option<MemberSpec>,
    /// Commands that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultSpec>,
    /// Further places, each a stack of its own: sets of files that name one lie there. Settings
    /// from outside are those of this stack alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, Stack>,
}

/// Several equal members that look like one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// Number of members.
    pub members: u32,
    /// Description of each of them.
    pub member: Box<MemberSpec>,
    /// Layout and its options.
    pub parameters: crate::volume::VolumeParameters,
}

/// A member of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberSpec {
    /// Its own queue, as with software RAID; absent behind a controller.
    #[serde(default)]
    pub queue: Option<QueueParameters>,
    /// A device ...
    #[serde(default)]
    pub device: Option<DeviceSpec>,
    /// ... or a volume.
    #[serde(default)]
    pub volume: Option<VolumeSpec>,
}

/// Settings from outside (factors of a study) that every queue takes which a study compares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueOverrides {
    /// The scheduler.
    pub scheduler: Option<crate::sched::SchedulerKind>,
    /// Its tunables.
    pub tunables: BTreeMap<String, u64>,
    /// Request slots.
    pub nr_requests: Option<u32>,
    /// Commands given to the device at once.
    pub queue_depth: Option<u32>,
    /// Longest request.
    pub max_sectors_kb: Option<u32>,
    /// 0, 1 or 2.
    pub nomerges: Option<u8>,
    /// Target of write-back throttling.
    pub wbt_lat_usec: Option<i32>,
    /// Settings of the file half.
    pub files: FilesOverrides,
}

impl QueueOverrides {
    fn apply(&self, to: &QueueParameters) -> QueueParameters {
        let mut queue = to.clone();
        if let Some(scheduler) = self.scheduler.filter(|&other| other != queue.scheduler) {
            // The file's tunables are those of the scheduler that it names.
            queue.scheduler = scheduler;
            queue.tunables.clear();
        }
        queue.tunables.extend(self.tunables.iter().map(|(name, &value)| (name.clone(), value)));
        queue.nr_requests = self.nr_requests.or(queue.nr_requests);
        queue.queue_depth = self.queue_depth.or(queue.queue_depth);
        queue.max_sectors_kb = self.max_sectors_kb.or(queue.max_sectors_kb);
        queue.nomerges = self.nomerges.unwrap_or(queue.nomerges);
        queue.wbt_lat_usec = self.wbt_lat_usec.or(queue.wbt_lat_usec);
        queue
    }
}

impl Stack {
    /// Parses a stack file; `subject` names it in errors.
    pub fn parse(subject: &str, text: &str) -> Result<Self, SimError> {
        toml::from_str(text).map_err(|error| crate::profile::syntax_error(subject, text, &error))
    }

    /// A queue in front of one device of a built-in profile.
    pub fn of_profile(name: &str) -> Result<Self, SimError> {
        let profile = Profile::built_in(name)?;
        Ok(Self {
            name: name.to_owned(),
            title: profile.title,
            placement: Placement::Spread,
            cpu: CpuCost::default(),
            software: Software::default(),
            queue: None,
            device: Some(DeviceSpec::of_profile(name)),
            volume: None,
            files: FilesSpec::default(),
            log_device: None,
            meta_device: None,
            faults: Vec::new(),
            places: BTreeMap::new(),
        })
    }

    /// A simulation of it.
    pub fn build(&self, overrides: &QueueOverrides, seed: Seed) -> Result<Simulation, SimError> {
        let processors = ProcessorClocks::new(self.software.processors);
        let own = self.layer(overrides, seed, &processors)?;
        if self.places.is_empty() {
            let mut below = self.below(overrides, own.info());
            let queue = device_queue(&self.files, &overrides.files, &below)?;
            let dirty = Rc::default();
            let queued = |layer: Box<dyn Layer>| match queue {
                Some(queue) => Box::new(VdevQueue::new(queue, layer, Rc::clone(&dirty))) as Box<_>,
                None => layer,
            };
            let own = queued(own);
            // A study may take the file system away from a stack: its second device is left alone
            // then.
            let is_bare =
                self.files.fs.is_some() && overrides.files.apply(&self.files).fs.is_none();
            let second = self.second_device()?.filter(|_| !is_bare);
            let (own, second_from) = match second {
                Some(second) => {
                    self.with_second_device(own, second, seed, (queued, &processors, &mut below))?
                }
                None => (own, Sector(0)),
            };
            let machine = machine(&self.files, &overrides.files, below)?;
            let simulation = Simulation::new(own, self.cpu, self.placement);
            let simulation = simulation.with_second_at(second_from).telling_dirty(dirty);
            let simulation = simulation.on_processors(processors).on_cpus(self.cpus());
            return Ok(simulation.with_files(machine));
        }
        let has_files = !overrides.files.apply(&self.files).is_default();
        if has_files || self.second_device()?.is_some() {
            return Err(SimError::Inconsistent {
                subject: format!("stack {}", self.name),
                problem: "has a file system and further places".into(),
                remedy: "leave one of them out: a file system lies on one device so far".into(),
            });
        }
        let (mut beside, mut areas) = (Beside::new(own), Vec::new());
        for (number, (name, stack)) in (0..).zip(&self.places) {
            stack.check_place(name)?;
            let seed = Seed(seed.stream("place", number).next_u64());
            let layer = stack.layer(&QueueOverrides::default(), seed, &processors)?;
            let capacity = layer.info().capacity;
            areas.push((name, beside.add(name, layer, EXTENT), capacity));
        }
        let mut simulation = Simulation::new(Box::new(beside), self.cpu, self.placement);
        for (name, from, capacity) in areas {
            simulation = simulation.with_area(Path::new(DIRECTORY).join(name), from, capacity);
        }
        Ok(simulation.on_processors(processors).on_cpus(self.cpus()))
    }

    /// The second device of the file system, and its key.
    fn second_device(&self) -> Result<Option<(&'static str, &MemberSpec)>, SimError> {
        match (&self.log_device, &self.meta_device) {
            (None, None) => Ok(None),
            (Some(log), None) => Ok(Some((LOG_DEVICE, log))),
            (None, Some(meta)) => Ok(Some((META_DEVICE, meta))),
            (Some(_), Some(_)) => Err(SimError::Inconsistent {
                subject: format!("stack {}", self.name),
                problem: format!("has {LOG_DEVICE} and {META_DEVICE}"),
                remedy: "leave one of them out: a file system has one second device".into(),
            }),
        }
    }

    /// The stack with the second device of the file system beside it, and the sector where that
    /// begins.
    fn with_second_device(
        &self,
        own: Box<dyn Layer>,
        (key, spec): (&'static str, &MemberSpec),
        seed: Seed,
        (queued, processors, below): (
            impl Fn(Box<dyn Layer>) -> Box<dyn Layer>,
            &ProcessorClocks,
            &mut Below,
        ),
    ) -> Result<(Box<dyn Layer>, Sector), SimError> {
        let builder = Builder {
            stack: self,
            overrides: &QueueOverrides::default(),
            seed: Seed(seed.stream(key, 0).next_u64()),
            software: (self.costs()?, processors.clone()),
        };
        let is_queued = !has_inner_queue(spec.volume.as_ref());
        let layer = builder.layer(spec, key, is_queued)?;
        below.second = Some((key, layer.info()));
        let mut beside = Beside::new(own);
        let from = beside.add(key, queued(layer), EXTENT);
        Ok((Box::new(beside), from))
    }

    /// Stripes of a volume that the machine itself makes, which its volume manager tells of.
    fn stripe(&self) -> Option<StripeFacts> {
        let volume = self.volume.as_ref().filter(|volume| has_inner_queue(Some(volume)))?;
        let (columns, has_parity) = volume.parameters.layout.columns(u64::from(volume.members))?;
        let unit_bytes = volume.parameters.stripe_unit_bytes();
        Some(StripeFacts { unit_bytes, columns, has_parity })
    }

    /// Facts of the block half that the file half has to know.
    fn below(&self, overrides: &QueueOverrides, info: crate::api::layer::Info) -> Below {
        let queue = overrides.apply(&self.queue.clone().unwrap_or_default());
        let most = u64::from(info.max_sectors / 2);
        let limit = queue.max_sectors_kb.map_or(MAX_SECTORS_KB, u64::from);
        Below {
            info,
            cpu: self.cpu,
            cpus: self.cpus(),
            processors: self.software.processors,
            slice: self.software.slice(),
            max_sectors_kb: limit.min(most.max(4)),
            requests_max: queue.nr_requests.unwrap_or(REQUESTS),
            stripe: self.stripe(),
            second: None,
        }
    }

    /// Refuses what cannot be a further place.
    fn check_place(&self, name: &str) -> Result<(), SimError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let problem = if name.is_empty() || !name.bytes().all(is_plain) {
            "has a name with other characters than a-z, A-Z, 0-9, - and _"
        } else if !self.places.is_empty() {
            "has places itself"
        } else {
            return Ok(());
        };
        Err(SimError::Inconsistent {
            subject: format!("place {name:?}"),
            problem: problem.to_owned(),
            remedy: "name each place once, beside the others".to_owned(),
        })
    }

    /// Its layers.
    fn layer(
        &self,
        overrides: &QueueOverrides,
        seed: Seed,
        processors: &ProcessorClocks,
    ) -> Result<Box<dyn Layer>, SimError> {
        self.check_cost()?;
        faults::check(&self.faults, self.volume.as_ref())?;
        let software = (self.costs()?, processors.clone());
        let builder = Builder { stack: self, overrides, seed, software };
        let top = MemberSpec {
            queue: self.queue.clone(),
            device: self.device.clone(),
            volume: self.volume.clone(),
        };
        builder.layer(&top, &self.name, !has_inner_queue(self.volume.as_ref()))
    }

    /// Costs of schedulers: the stack's own, those of machines with its device, or the usual ones.
    fn costs(&self) -> Result<CostTable, SimError> {
        let profiles = self.profiles()?;
        self.software.table(profiles.iter().find_map(|profile| profile.software.as_deref()))
    }

    /// Layer below the first queue, as a probe has it: read caches off, never busy, flash small.
    pub(crate) fn bare(&self, seed: Seed) -> Result<Box<dyn Layer>, SimError> {
        let probed = self.for_probing()?;
        let software = (Software::free().table(None)?, ProcessorClocks::default());
        let overrides = &QueueOverrides::default();
        let builder = Builder { stack: &probed, overrides, seed, software };
        let (device, volume) = (probed.device.clone(), probed.volume.clone());
        builder.layer(&MemberSpec { queue: None, device, volume }, "probed", false)
    }

    /// The same with every device prepared for a probe.
    fn for_probing(&self) -> Result<Self, SimError> {
        let mut probed = Self { faults: Vec::new(), ..self.clone() };
        if let Some(device) = &mut probed.device {
            device.prepare_for_probing()?;
        }
        let mut volume = probed.volume.as_mut();
        while let Some(inside) = volume {
            if let Some(device) = &mut inside.member.device {
                device.prepare_for_probing()?;
            }
            volume = inside.member.volume.as_mut();
        }
        Ok(probed)
    }

    /// Software that takes a second per step is a slip of the pen.
    fn check_cost(&self) -> Result<(), SimError> {
        const MOST_NS: u64 = 1_000_000_000;
        let CpuCost { call_ns, submit_ns, complete_ns, page_ns, copy_ns_per_kib, map_ns } =
            self.cpu;
        let costs = [
            ("call_ns", call_ns),
            ("submit_ns", submit_ns),
            ("complete_ns", complete_ns),
            ("page_ns", page_ns),
            ("copy_ns_per_kib", copy_ns_per_kib),
            ("map_ns", map_ns),
        ];
        match costs.into_iter().find(|&(_, ns)| ns > MOST_NS) {
            None => Ok(()),
            Some((name, ns)) => Err(SimError::OutOfRange {
                name: format!("cpu: {name}"),
                value: ns as f64,
                unit: "ns".into(),
                min: 0.0,
                max: MOST_NS as f64,
            }),
        }
    }

    /// Bytes that its devices' tables take at most.
    pub fn memory_bytes(&self) -> Result<u64, SimError> {
        let mut bytes = memory(self.device.as_ref(), self.volume.as_ref())?;
        for second in [&self.log_device, &self.meta_device].into_iter().flatten() {
            bytes = bytes.saturating_add(memory(second.device.as_ref(), second.volume.as_ref())?);
        }
        for place in self.places.values() {
            bytes = bytes.saturating_add(place.memory_bytes()?);
        }
        Ok(bytes.saturating_add(self.files.real_bytes()?))
    }

    /// Refuses a stack that would need more memory than allowed, before any is taken.
    pub fn check_memory(&self, allowed_bytes: u64) -> Result<(), SimError> {
        let needed = self.memory_bytes()?;
        if needed <= allowed_bytes {
            return Ok(());
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let of_pages = self.files.real_bytes()?;
        let remedy = if of_pages > needed / 2 {
            format!(
                "pages of files take {} MiB of it: write a smaller `memory` in [files]",
                mib(of_pages)
            )
        } else {
            "use fewer members or smaller drives (parameter logical_capacity)".into()
        };
        Err(SimError::Inconsistent {
            subject: format!("stack {}", self.name),
            problem: format!(
                "needs {} MiB of this machine's memory, {} MiB may be used",
                mib(needed),
                mib(allowed_bytes)
            ),
            remedy,
        })
    }

    /// Processors of the queues in it; all queues see the same machine, so the most counts.
    fn cpus(&self) -> u16 {
        let member = self.volume.as_ref().map_or(1, member_cpus);
        self.queue.as_ref().map_or(1, |queue| queue.cpus).max(member)
    }

    /// The profiles of all devices in it, overrides applied, by their place in the stack; without
    /// those of further places.
    pub fn profiles(&self) -> Result<Vec<Profile>, SimError> {
        let mut all = Vec::new();
        collect(self.device.as_ref(), self.volume.as_ref(), &mut all)?;
        for second in [&self.log_device, &self.meta_device].into_iter().flatten() {
            collect(second.device.as_ref(), second.volume.as_ref(), &mut all)?;
        }
        Ok(all)
    }

    /// Flat names and values that are stored with every result.
    pub fn facts(&self) -> Result<Vec<(String, String)>, SimError> {
        let mut facts = vec![
            ("testbed.kind".to_owned(), "simulated".to_owned()),
            ("sim.stack".to_owned(), self.name.clone()),
            ("sim.title".to_owned(), self.title.clone()),
            ("sim.software".to_owned(), self.costs()?.name),
        ];
        for (index, fault) in self.faults.iter().enumerate() {
            let device =
                fault.device.as_ref().map_or_else(String::new, |d| format!("device {d}: "));
            let text = format!("{device}{}: {}", fault.text(), reason(fault.error.errno()));
            facts.push((format!("sim.fault.{index}"), text));
        }
        facts.extend(self.files.facts()?);
        for profile in self.profiles()? {
            let counts: Vec<String> =
                profile.provenance().iter().map(|(tag, count)| format!("{count} {tag}")).collect();
            let name = format!("sim.profile.{}", profile.name);
            facts.push((name, format!("{} (parameters: {})", profile.title, counts.join(", "))));
        }
        for (name, stack) in &self.places {
            let own = stack.facts()?.into_iter().skip(1);
            facts.extend(own.map(|(fact, value)| (format!("place.{name}.{fact}"), value)));
        }
        Ok(facts)
    }
}

fn memory(device: Option<&DeviceSpec>, volume: Option<&VolumeSpec>) -> Result<u64, SimError> {
    let own = match device {
        Some(spec) => devices::memory_bytes(&spec.resolve()?)?,
        None => 0,
    };
    match volume {
        Some(v) => {
            let member = memory(v.member.device.as_ref(), v.member.volume.as_ref())?;
            Ok(own.saturating_add(member.saturating_mul(u64::from(v.members))))
        }
        None => Ok(own),
    }
}

fn member_cpus(volume: &VolumeSpec) -> u16 {
    let own = volume.member.queue.as_ref().map_or(1, |queue| queue.cpus);
    own.max(volume.member.volume.as_ref().map_or(1, member_cpus))
}

fn has_inner_queue(volume: Option<&VolumeSpec>) -> bool {
    volume.is_some_and(|v| v.member.queue.is_some() || has_inner_queue(v.member.volume.as_ref()))
}

fn collect(
    device: Option<&DeviceSpec>,
    volume: Option<&VolumeSpec>,
    all: &mut Vec<Profile>,
) -> Result<(), SimError> {
    if let Some(spec) = device {
        let mut profile = spec.resolve()?;
        while let Some(inner) = profile.inner.clone() {
            all.push(profile);
            profile = Profile::built_in(&inner)?;
        }
        all.push(profile);
    }
    match volume {
        Some(v) => collect(v.member.device.as_ref(), v.member.volume.as_ref(), all),
        None => Ok(()),
    }
}

struct Builder<'a> {
    stack: &'a Stack,
    overrides: &'a QueueOverrides,
    seed: Seed,
    /// Costs of schedulers and the processors that bear them.
    software: (CostTable, ProcessorClocks),
}

impl Builder<'_> {
    fn layer(
        &self,
        spec: &MemberSpec,
        instance: &str,
        is_queued: bool,
    ) -> Result<Box<dyn Layer>, SimError> {
        let below = match (&spec.device, &spec.volume) {
            (Some(device), None) => {
                if device.refuse_above.is_some() && !is_queued && spec.queue.is_none() {
                    return Err(SimError::Inconsistent {
                        subject: format!("stack {}, {instance}", self.stack.name),
                        problem: "has `refuse_above`, but no queue in front that could be refused"
                            .into(),
                        remedy: "give the members queues of their own with member.queue".into(),
                    });
                }
                let layer = devices::build(&device.resolve()?, self.seed, instance)?;
                let layer = self.with_faults(layer, instance);
                device.limited(layer)?
            }
            (None, Some(volume)) => self.volume(volume, instance)?,
            (Some(_), Some(_)) => {
                return Err(SimError::Inconsistent {
                    subject: format!("stack {}, {instance}", self.stack.name),
                    problem: "names both a device and a volume".into(),
                    remedy: "remove one of them; what a volume consists of is its `member`, as in \
                             member.device.profile = NAME"
                        .into(),
                });
            }
            (None, None) => {
                return Err(SimError::Inconsistent {
                    subject: format!("stack {}, {instance}", self.stack.name),
                    problem: "needs either a device or a volume".into(),
                    remedy: "write [device] with a profile, or [volume] with members".into(),
                });
            }
        };
        if !is_queued && spec.queue.is_none() {
            return Ok(below);
        }
        let mut parameters = self.overrides.apply(&spec.queue.clone().unwrap_or_default());
        if spec.volume.is_some() {
            // An array queues without limit; without one here a scheduler would have no say.
            parameters.queue_depth.get_or_insert(ARRAY_DEPTH);
        }
        let (table, processors) = &self.software;
        let queue = BlockQueue::new(Ns(0), &parameters, below)?;
        Ok(Box::new(queue.charged(table, processors.clone())))
    }

    /// The layer, or one around it of which some commands fail.
    fn with_faults(&self, layer: Box<dyn Layer>, instance: &str) -> Box<dyn Layer> {
        let place = instance.strip_prefix(&self.stack.name).unwrap_or(instance);
        let place = place.trim_start_matches('.');
        let rules: Vec<FaultSpec> =
            self.stack.faults.iter().filter(|fault| fault.is_at(place)).cloned().collect();
        if rules.is_empty() {
            return layer;
        }
        let device = if place.is_empty() { "the device".into() } else { format!("device {place}") };
        Box::new(Faulty::new(layer, &device, rules, self.seed))
    }

    fn volume(&self, volume: &VolumeSpec, instance: &str) -> Result<Box<dyn Layer>, SimError> {
        if !(1..=MEMBERS_MAX).contains(&volume.members) {
            return Err(SimError::OutOfRange {
                name: format!("{instance}: members"),
                value: f64::from(volume.members),
                unit: String::new(),
                min: 1.0,
                max: f64::from(MEMBERS_MAX),
            });
        }
        let member = |index| self.layer(&volume.member, &format!("{instance}.{index}"), false);
        let members: Result<Vec<_>, _> = (0..volume.members).map(member).collect();
        crate::volume::build(members?, &volume.parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_without_a_device_says_what_is_missing() {
        let stack = Stack::parse("x.toml", "name = \"x\"").unwrap();
        let error = stack.build(&QueueOverrides::default(), Seed(1)).err().unwrap().to_string();
        assert!(error.contains("either a device or a volume"), "{error}");
    }

    #[test]
    fn too_many_flash_drives_are_refused_before_they_are_made() {
        let text = r#"
            name = "shelf"
            [volume]
            members = 24
            parameters = { layout = "raid0", unit_bytes = 65536 }
            member.device.profile = "sata-860pro-256"
        "#;
        let stack = Stack::parse("x.toml", text).unwrap();
        let error = stack.check_memory(1 << 30).unwrap_err().to_string();
        assert!(error.starts_with("stack shelf: needs "), "{error}");
        assert!(error.contains("1024 MiB may be used"), "{error}");
        assert_eq!(stack.check_memory(u64::MAX), Ok(()));
    }

    #[test]
    fn workers_are_spread_over_the_processors_of_the_queues() {
        let text = r#"
            name = "software-mirror"
            [volume]
            members = 2
            parameters = { layout = "raid1" }
            member.device.profile = "fixed-100us"
            member.queue = { scheduler = "kyber", cpus = 3 }
        "#;
        let stack = Stack::parse("x.toml", text).unwrap();
        let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
        assert_eq!([0, 1, 2, 3].map(|lane| simulation.cpu_of(lane)), [0, 1, 2, 0]);
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        let error = Stack::parse("x.toml", "name = \"x\"\n[devise]\n").unwrap_err().to_string();
        assert!(error.contains("devise") && error.contains("x.toml"), "{error}");
    }

    #[test]
    fn a_volume_of_volumes_can_be_built() {
        let text = r#"
            name = "stripe-of-mirrors"
            [volume]
            members = 2
            parameters = { layout = "raid0", unit_bytes = 65536 }
            [volume.member.volume]
            members = 2
            parameters = { layout = "raid1" }
            member.device.profile = "fixed-100us"
        "#;
        let stack = Stack::parse("x.toml", text).unwrap();
        let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
        assert_eq!(simulation.info().capacity.0, 2 * 2_147_483_648);
    }
}
