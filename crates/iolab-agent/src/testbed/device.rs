//! A whole block device (class C): raw, or with a file system of ours on all of it.
//!
//! Everything that speaks against it is looked for before anything is changed, in a rehearsal by
//! the same code: what it is (rule R1), who uses it (R2, R4), what lies on it (R3), whether its
//! serial was typed (R5). It is claimed for the whole study; the kernel takes the claim over while
//! a file system of ours is mounted. At the end both ends are blank but for our marker.
//!
//! Raw use: files are slices of the device, see `measure::slices`. The first and the last mebibyte
//! are never part of one. Left out: partitions, volumes, a journal on a second device, purging.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, mknod};

use super::api::{Asked, Kind, Opening, Prepared, Testbed};
use super::filesystem::{self, Volume};
use super::loop_device::{RUNTIME_FOLDER, enter_namespace, make_runtime_folder};
use super::precondition::{self, Outcome, Room};
use crate::control::Control;
use crate::disk::{self, Claim, Disk, EDGE_BYTES, Ends, Erased, Identity, Patience, Verdict};
use crate::error::{Error, Result};
use crate::journal::Change;
use crate::machine::{DeviceIdentity, Machine};
use crate::owned_directory;
use crate::protocol::{
    ActionKind, DeviceSpec, Precondition, RawDevice, Stack, StackRecord, Warning,
};

/// `fs` of a stack without a file system.
pub const NO_FILE_SYSTEM: &str = "none";
/// A tenant's file cannot have this name, for it begins with a dot.
const NODE: &str = ".device";
const NODE_MODE: Mode = Mode::from_bits_truncate(0o600);

/// An open device testbed.
struct DeviceTestbed {
    disk: Disk,
    identity: Identity,
    uuid: String,
    devices: Vec<String>,
    folder: PathBuf,
    /// Ours, unless a file system of ours has it.
    claim: Option<Claim>,
    mounted: Option<Stack>,
    /// Of the file system that was made last.
    parameters: Vec<String>,
    facts: BTreeMap<String, String>,
    warnings: Vec<Warning>,
}

/// The user's own device.
const CLASS: &str = "C";

impl Kind for DeviceSpec {
    fn class(&self) -> &'static str {
        CLASS
    }

    fn is_erasing(&self) -> bool {
        true
    }
}

/// Opens one.
pub fn open(mut spec: DeviceSpec, opening: Opening) -> Result<Box<dyn Testbed>> {
    let Opening { machine, control, run, boundary, .. } = opening;
    if let Some(boundary) = boundary {
        spec.path = boundary.device_path(&spec.path)?;
    }
    if !machine.is_dry_run() && !nix::unistd::geteuid().is_root() {
        return Err(Error::refused(
            "a whole device needs root",
            "run it as root or with sudo, or use --on dir:PATH",
        ));
    }
    let Seen { disk, claim, content, stored, repeated } = look(machine, &spec)?;
    boundary.map_or(Ok(()), |boundary| boundary.check_device(&disk.name))?;
    let identity = disk.identity(machine);
    let node = disk.node.display().to_string();
    // A rehearsal tells what would have to be typed; what was typed must be right even there.
    if !machine.is_dry_run() || spec.erase_serial.is_some() {
        let typed = spec.erase_serial.as_deref();
        disk::check_confirmation(&identity, &node, typed, repeated.is_some())?;
    }
    let mut facts = facts_of(machine, (&disk, &identity), repeated.is_some());
    facts.extend(stored.map(|text| ("erase.stored".to_owned(), text)));
    let typed_at = repeated.filter(|_| spec.erase_serial.is_none()).unwrap_or_else(disk::unix_s);
    machine.act(ActionKind::Exec, "unshare", "private mount namespace", enter_namespace)?;
    let mut testbed = DeviceTestbed {
        devices: vec![disk.name.clone()],
        uuid: owned_directory::fresh_token()?,
        folder: Path::new(RUNTIME_FOLDER).join(run),
        disk,
        identity,
        claim,
        mounted: None,
        parameters: Vec::new(),
        facts,
        warnings: Vec::new(),
    };
    if content == Verdict::Unseen {
        testbed.warnings.push(Warning::new(
            "content_not_checked",
            format!("{node} was not read: what lies on it is looked at when root runs the study"),
            "rehearse as root to see everything",
        ));
    }
    match testbed.begin(machine, control, &spec, typed_at) {
        Ok(()) => Ok(Box::new(testbed)),
        Err(error) => {
            // What is in the journal is put back next; our mount must not be in the way.
            let _ = testbed.close(machine);
            Err(error)
        }
    }
}

/// State before anything was changed.
struct Seen {
    disk: Disk,
    claim: Option<Claim>,
    content: Verdict,
    /// A warning if something is stored between its ends.
    stored: Option<String>,
    /// Time at which the serial was typed, if this very study is repeated on what it left.
    repeated: Option<u64>,
}

/// Rules R1 to R4, in a rehearsal as far as its user may look.
fn look(machine: &mut Machine, spec: &DeviceSpec) -> Result<Seen> {
    if !spec.path.is_absolute() {
        return Err(Error::protocol("the path of a device must be absolute"));
    }
    let disk = Disk::find(machine, &spec.path)?;
    disk::refuse_use(machine, &disk, &spec.protected, Patience::Glance)?;
    let node = disk.node.display().to_string();
    let claim =
        machine.act(ActionKind::ClaimDevice, node.clone(), "for nobody else", || disk.claim())?;
    if machine.is_dry_run() && disk.file.is_some() {
        disk.check_claim()?;
    }
    let held = claim.as_ref().map(Claim::file).or(disk.file.as_ref());
    let Some(held) = held else {
        return Ok(Seen { disk, claim, content: Verdict::Unseen, stored: None, repeated: None });
    };
    let identity = disk.identity(machine);
    let ends = Ends::read(held, identity.size_bytes)
        .map_err(|error| Error::io("read", &disk.node, error))?;
    let content = disk::verdict(&ends);
    disk::refuse_content(&disk, &content, identity.size_bytes)?;
    let study = spec.study.as_deref().unwrap_or_default();
    let repeated = disk::repeated(&identity, held, &content, study, disk::unix_s());
    // What the same study left is known, and unchanged where it is sampled.
    let stored = match repeated {
        Some(_) => None,
        None => disk::stored(&disk, held, &content, &identity)?,
    };
    Ok(Seen { disk, claim, content, stored, repeated })
}

fn facts_of(
    machine: &Machine,
    (disk, identity): (&Disk, &Identity),
    is_confirmed: bool,
) -> BTreeMap<String, String> {
    let wear = disk::wear(machine, &disk.name, disk.file.as_ref());
    let mut facts = BTreeMap::new();
    let mut add = |name: &str, value: String| facts.insert(format!("erase.{name}"), value);
    add("node", disk.node.display().to_string());
    add("serial", identity.serial.clone());
    add("serial_is", identity.source.to_owned());
    add("model", identity.model.clone());
    add("size_bytes", identity.size_bytes.to_string());
    add("phrase", disk::phrase(identity));
    add("is_confirmed", is_confirmed.to_string());
    add("is_rotational", wear.is_rotational.to_string());
    if let Some(rated) = wear.rated_bytes() {
        add("rated_bytes", rated.to_string());
    }
    if let Some(used) = wear.used_percent {
        add("used_percent", used.to_string());
    }
    facts
}

impl DeviceTestbed {
    /// From here on the device counts as erased.
    fn begin(
        &mut self,
        machine: &mut Machine,
        control: &mut dyn Control,
        spec: &DeviceSpec,
        typed_at: u64,
    ) -> Result<()> {
        self.make_folder(machine)?;
        self.note_erased(machine, spec.study.clone(), typed_at)?;
        let how = spec.precondition;
        if how == Precondition::None {
            return Ok(());
        }
        let round = Duration::from_nanos(spec.precondition_round_ns);
        let node = self.disk.node.display().to_string();
        let bytes = precondition::bytes_max(how, self.room());
        let detail = format!("precondition {}: at most {bytes} bytes", how.name());
        let outcome = machine.act(ActionKind::WriteDevice, node, detail, || {
            self.precondition((how, round), control)
        })?;
        self.note_precondition(how, &outcome.unwrap_or_default());
        Ok(())
    }

    fn point(&self) -> PathBuf {
        self.folder.join("mnt")
    }

    fn slices(&self) -> PathBuf {
        self.folder.join("slices")
    }

    /// Room that may be written without a file system.
    fn room(&self) -> Room {
        let end = self.identity.size_bytes - EDGE_BYTES;
        Room { start: EDGE_BYTES, end: end / EDGE_BYTES * EDGE_BYTES }
    }

    /// A memory file system that nobody else sees, with a node of our own: a name under /dev may be
    /// given to another device while trials run.
    fn make_folder(&self, machine: &mut Machine) -> Result<()> {
        let folder = &self.folder;
        let change = Change::MountPointCreated { path: folder.clone() };
        let action = (ActionKind::CreateDirectory, folder.display().to_string(), String::new());
        machine.make(change, action, || make_runtime_folder(folder))?;
        let detail = format!("tmpfs with a private node of {}", self.disk.node.display());
        machine
            .act(ActionKind::Mount, folder.display().to_string(), detail, || {
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
                let options = Some("mode=0700,size=1m");
                mount(Some("iolab"), folder, Some("tmpfs"), flags, options)
                    .map_err(|error| Error::io("mount on", folder, error))?;
                for inner in [self.point(), self.slices()] {
                    fs::create_dir(&inner).map_err(|error| Error::io("create", &inner, error))?;
                }
                let node = self.slices().join(NODE);
                mknod(&node, SFlag::S_IFBLK, NODE_MODE, self.disk.rdev)
                    .map_err(|error| Error::io("make", &node, error))
            })
            .map(drop)
    }

    /// Note what is needed to leave the device as ours, whatever happens.
    fn note_erased(
        &self,
        machine: &mut Machine,
        study: Option<String>,
        typed_at: u64,
    ) -> Result<()> {
        let change = Change::DeviceErased {
            device: DeviceIdentity::of(machine, &self.disk.name, None),
            erased: Erased {
                serial: self.identity.serial.clone(),
                size_bytes: self.identity.size_bytes,
                rdev: self.disk.rdev,
                uuid: self.uuid.clone(),
                confirmed_at_unix_s: typed_at,
                study,
            },
        };
        let ids = machine.intend(vec![change])?;
        machine.applied(&ids)
    }

    fn precondition(
        &self,
        (how, round): (Precondition, Duration),
        control: &mut dyn Control,
    ) -> Result<Outcome> {
        let node = self.slices().join(NODE);
        let flags = libc::O_DIRECT | libc::O_NOFOLLOW;
        let opened = OpenOptions::new().write(true).custom_flags(flags).open(&node);
        let device = opened.map_err(|error| Error::io("open", &node, error))?;
        precondition::run(how, (&device, self.room()), round, control)
    }

    fn note_precondition(&mut self, how: Precondition, outcome: &Outcome) {
        let rounds: Vec<String> = outcome.rounds.iter().map(|rate| format!("{rate:.0}")).collect();
        let pairs = [
            ("method", how.name().to_owned()),
            ("written_bytes", outcome.written_bytes.to_string()),
            ("rounds_iops", rounds.join(",")),
            ("is_steady", outcome.is_steady.to_string()),
        ];
        let named = pairs.map(|(name, value)| (format!("precondition.{name}"), value));
        self.facts.extend(named);
        if how == Precondition::Random && !outcome.rounds.is_empty() && !outcome.is_steady {
            self.warnings.push(Warning::new(
                "not_steady",
                format!("random writes were not steady after {} rounds", outcome.rounds.len()),
                "the drive still changes: read the rounds over time, or use longer rounds",
            ));
        }
    }

    fn volume<'a>(&'a self, node: &'a str, point: &'a Path) -> Volume<'a> {
        Volume {
            device: node,
            journal_device: None,
            point,
            bytes: self.identity.size_bytes,
            uuid: Some(&self.uuid),
        }
    }

    fn unmount(&mut self, machine: &mut Machine) -> Result<()> {
        if self.mounted.is_some() {
            filesystem::unmount(machine, &self.point())?;
            self.mounted = None;
        }
        if self.claim.is_none() && !machine.is_dry_run() {
            self.claim = Some(self.disk.claim()?);
        }
        Ok(())
    }

    fn mount_fresh(&mut self, machine: &mut Machine, stack: &Stack) -> Result<()> {
        let (node, point) = (self.disk.node.display().to_string(), self.point());
        filesystem::check(stack, &self.volume(&node, &point))?;
        self.unmount(machine)?;
        // mkfs and mount claim it themselves; the number is kept by the descriptor for reading.
        self.claim = None;
        self.check_node(machine)?;
        self.parameters = filesystem::make(machine, stack, &self.volume(&node, &point))?;
        self.check_node(machine)?;
        filesystem::mount(machine, stack, &self.volume(&node, &point))?;
        self.mounted = Some(stack.clone());
        let data = point.join("data");
        machine
            .act(ActionKind::CreateDirectory, data.display().to_string(), "", || {
                fs::create_dir(&data).map_err(|error| Error::io("create", &data, error))
            })
            .map(drop)
    }

    fn check_node(&self, machine: &Machine) -> Result<()> {
        let found = fs::symlink_metadata(&self.disk.node);
        let is_same =
            found.is_ok_and(|it| it.file_type().is_block_device() && it.rdev() == self.disk.rdev);
        if is_same || machine.is_dry_run() {
            return Ok(());
        }
        Err(Error::refused(
            format!("{} leads to another device by now", self.disk.node.display()),
            "the study ends here; look which device you mean",
        ))
    }

    fn prepare_raw(&mut self, machine: &mut Machine, stack: &Stack) -> Result<Prepared> {
        let has_options = !stack.mkfs_options.is_empty() || !stack.mount_options.is_empty();
        if has_options || stack.has_external_journal {
            return Err(Error::failed(
                "a device without a file system has no options for mkfs or mount and no journal",
                "leave them out, or choose a file system",
            ));
        }
        self.unmount(machine)?;
        let queue = format!("/sys/block/{}/queue/logical_block_size", self.disk.name);
        let unit = machine.peek(queue).and_then(|text| text.parse().ok()).unwrap_or(512);
        let room = self.room();
        let node = self.disk.node.display().to_string();
        let detail = format!("slices within bytes {} to {}", room.start, room.end);
        machine.act(ActionKind::WriteDevice, node, detail, || Ok(()))?;
        Ok(Prepared {
            folder: self.slices(),
            twins: Vec::new(),
            token: None,
            raw: Some(RawDevice {
                node: NODE.to_owned(),
                start_bytes: room.start,
                end_bytes: room.end,
                unit_bytes: unit,
            }),
            stack: Some(StackRecord {
                asked: stack.clone(),
                effective_mount_options: String::new(),
                parameters: Vec::new(),
            }),
            reserve_bytes: 0,
            warnings: Vec::new(),
            places: Vec::new(),
            images: Vec::new(),
        })
    }

    fn prepare_file_system(&mut self, machine: &mut Machine, asked: Asked) -> Result<Prepared> {
        let stack = asked.stack.expect("it was looked at before");
        if stack.has_external_journal {
            return Err(Error::failed(
                "a device testbed has no second device for a journal",
                "leave external_journal out, or use --on loop:1g",
            ));
        }
        if asked.is_fresh_fs || self.mounted.as_ref() != Some(stack) {
            self.mount_fresh(machine, stack)?;
        }
        let point = self.point();
        let options = filesystem::effective_options(&point).unwrap_or_default();
        Ok(Prepared {
            folder: point.join("data"),
            twins: Vec::new(),
            token: None,
            raw: None,
            stack: Some(StackRecord {
                asked: stack.clone(),
                effective_mount_options: options,
                parameters: self.parameters.clone(),
            }),
            // All of it is ours; filling it harms nobody.
            reserve_bytes: 0,
            warnings: filesystem::warnings_of(stack),
            places: Vec::new(),
            images: Vec::new(),
        })
    }
}

impl Testbed for DeviceTestbed {
    fn class(&self) -> &'static str {
        CLASS
    }

    fn directory(&self) -> &Path {
        &self.folder
    }

    fn devices(&self) -> &[String] {
        &self.devices
    }

    fn loop_run(&self) -> Option<&str> {
        None
    }

    fn facts(&self) -> BTreeMap<String, String> {
        self.facts.clone()
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn free_bytes(&self) -> u64 {
        let room = self.room();
        room.end - room.start
    }

    fn check_knobs(&self, _machine: &Machine, _knobs: &BTreeMap<String, String>) -> Result<()> {
        Ok(())
    }

    fn check_fast_switching(&self) -> Result<()> {
        Ok(()) // The device was claimed as a whole.
    }

    fn prepare(&mut self, machine: &mut Machine, asked: Asked) -> Result<Prepared> {
        match asked.stack {
            Some(stack) if stack.fs == NO_FILE_SYSTEM => self.prepare_raw(machine, stack),
            Some(_) => self.prepare_file_system(machine, asked),
            None => Err(Error::protocol("a device testbed needs a stack; fs may be none")),
        }
    }

    fn clean(&mut self, machine: &mut Machine) -> Result<()> {
        if self.mounted.is_none() {
            return Ok(());
        }
        let data = self.point().join("data");
        let files = data.join("*").display().to_string();
        let removed = machine.act(ActionKind::RemoveFile, files, "after the trial", || {
            owned_directory::clear(&data, None)
        });
        removed.map(drop)
    }

    /// Gives the claim back; what is on the device is in the journal.
    fn close(&mut self, machine: &mut Machine) -> Result<()> {
        let unmounted = self.unmount(machine);
        self.claim = None;
        let released = filesystem::unmount(machine, &self.folder);
        unmounted.and(released)
    }
}
