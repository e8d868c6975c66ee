//! A private loop device: an image of ours, a number of ours, a mount that nobody else sees.
//!
//! The number is fresh, because a number keeps its scheduler and a shrunk depth after detaching
//! (tried on Linux 6.18); the device is direct and detaches itself; the mount lies in a private
//! namespace. So the kernel cleans up most of it when the agent dies, and the journal knows the
//! rest.
//!
//! Twins are several of them made alike, each with a file system of its own, for slices whose
//! treatments differ in knobs. Left out: partitions, volumes of several devices; a second device of
//! one that has no twin is for a journal.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::api::{Asked, Kind, Opening, Prepared, Testbed};
use super::filesystem::{self, Volume};
use super::{image, leaves_of};
use crate::error::{Error, Result};
use crate::journal::{Change, State};
use crate::machine::Machine;
use crate::owned_directory;
use crate::protocol::{ActionKind, LoopSpec, Stack, StackRecord, Warning};
use crate::sys;

const BYTES_MIN: u64 = 64 << 20;
/// A journal needs no more, and writing it costs time.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;
pub(super) const RUNTIME_FOLDER: &str = "/run/iolab";
/// A comparison of more sets of knobs than this is long, and so many images are large.
const TWINS_MAX: u32 = 8;
/// Devices that others may take from under us before it is an error.
const ATTEMPTS_MAX: u32 = 16;
const NODE_PATIENCE: Duration = Duration::from_secs(5);

/// Refuses sizes and numbers that no image can have.
fn check(spec: &LoopSpec) -> Result<()> {
    if spec.size_bytes < BYTES_MIN || !spec.size_bytes.is_multiple_of(4096) {
        return Err(Error::protocol("size_bytes must be a multiple of 4096, 64 MiB at least"));
    }
    if !(1..=2).contains(&spec.device_count) {
        return Err(Error::protocol("device_count must be 1, or 2 for an external journal"));
    }
    if !(1..=TWINS_MAX).contains(&spec.twin_count) || spec.twin_count > 1 && spec.device_count > 1 {
        return Err(Error::protocol(format!(
            "twin_count must be 1 to {TWINS_MAX}, and 1 where device_count is 2"
        )));
    }
    if ![512, 1024, 2048, 4096].contains(&spec.logical_block_bytes) {
        return Err(Error::protocol("logical_block_bytes must be 512, 1024, 2048 or 4096"));
    }
    if !spec.image_dir.is_absolute() {
        return Err(Error::protocol("image_dir must be an absolute path"));
    }
    Ok(())
}

/// Sizes of the images, the data first.
fn sizes(spec: &LoopSpec) -> Vec<u64> {
    if spec.twin_count > 1 {
        return vec![spec.size_bytes; spec.twin_count as usize];
    }
    let journal = spec.size_bytes.min(JOURNAL_BYTES_MAX);
    [spec.size_bytes, journal][..spec.device_count as usize].to_vec()
}

/// An image to be attached; there is no file in a dry run.
struct Image {
    path: PathBuf,
    file: Option<fs::File>,
    block_bytes: u32,
}

/// A loop device that was added, not attached yet.
struct Added {
    number: u32,
    journal_id: u64,
}

/// An open loop testbed.
struct LoopTestbed {
    run: String,
    devices: Vec<String>,
    nodes: Vec<String>,
    folder: PathBuf,
    /// Devices made alike.
    twins: usize,
    bytes: u64,
    /// The file systems that are mounted, in the order in which they were made.
    mounted: Vec<Stack>,
    /// Mount points.
    mount_points: Vec<PathBuf>,
    /// Of the file system that was made last on each device.
    parameters: Vec<Vec<String>>,
    warnings: Vec<Warning>,
}

/// Nothing of the user's is touched, but it needs root.
const CLASS: &str = "B";

impl Kind for LoopSpec {
    fn class(&self) -> &'static str {
        CLASS
    }
}

/// Opens one.
pub fn open(mut spec: LoopSpec, opening: Opening) -> Result<Box<dyn Testbed>> {
    check(&spec)?;
    let folder = Path::new(RUNTIME_FOLDER).join(opening.own_name());
    let Opening { machine, control, run, boundary, .. } = opening;
    if !machine.is_dry_run() && !nix::unistd::geteuid().is_root() {
        return Err(Error::refused(
            "a loop testbed needs root",
            "run it as root or with sudo, or use --on dir:PATH",
        ));
    }
    let sizes = sizes(&spec);
    let bytes = sizes.iter().copied().fold(0, u64::saturating_add);
    if let Some(boundary) = boundary {
        spec.image_dir = boundary.image_dir(&spec.image_dir, bytes)?;
    }
    image::check_space(&spec.image_dir, bytes)?;
    machine.act(ActionKind::Exec, "unshare", "private mount namespace", enter_namespace)?;
    let mut testbed = LoopTestbed {
        run: run.to_owned(),
        devices: Vec::new(),
        nodes: Vec::new(),
        folder,
        twins: spec.twin_count as usize,
        bytes: spec.size_bytes,
        mounted: Vec::new(),
        mount_points: Vec::new(),
        parameters: Vec::new(),
        warnings: Vec::new(),
    };
    testbed.make_mount_points(machine)?;
    // A name that nobody can have taken: what the journal holds is removed, whoever made it.
    let token = owned_directory::fresh_token()?;
    for (index, bytes) in sizes.into_iter().enumerate() {
        let path = spec.image_dir.join(format!(".iolab-{run}-{token}-{index}.img"));
        let change = Change::ImageCreated { path: path.clone() };
        let shown = path.display().to_string();
        let action = (ActionKind::CreateFile, shown, format!("{bytes} bytes of noise"));
        let (_, file) = machine.make(change, action, || image::create(&path, bytes, control))?;
        let image = Image { path, file, block_bytes: spec.logical_block_bytes };
        testbed.attach(machine, &image)?;
    }
    testbed.note_nesting(machine, &spec.image_dir);
    Ok(Box::new(testbed))
}

impl LoopTestbed {
    /// The run's folder; twins are mounted in folders below it.
    fn make_mount_points(&self, machine: &mut Machine) -> Result<()> {
        let folders = [self.folder.clone()].into_iter();
        for folder in
            folders.chain((0..self.twins).filter(|_| self.twins > 1).map(|i| self.point(i)))
        {
            let change = Change::MountPointCreated { path: folder.clone() };
            let action = (ActionKind::CreateDirectory, folder.display().to_string(), String::new());
            machine.make(change, action, || {
                if folder == self.folder {
                    make_runtime_folder(&folder)
                } else {
                    fs::create_dir(&folder).map_err(|error| Error::io("create", &folder, error))
                }
            })?;
        }
        Ok(())
    }

    /// Mount point of a device's file system.
    fn point(&self, twin: usize) -> PathBuf {
        if self.twins == 1 { self.folder.clone() } else { self.folder.join(format!("twin-{twin}")) }
    }

    /// Attaches an image to a loop device of its own. Between adding one and attaching to it,
    /// somebody who looks for a free device may take it: then it is left to them.
    fn attach(&mut self, machine: &mut Machine, image: &Image) -> Result<()> {
        for _ in 1..ATTEMPTS_MAX {
            let added = add_device(machine)?;
            match self.attach_to(machine, added.number, image) {
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::ResourceBusy => {
                    if let Some(journal) = machine.journal() {
                        journal.mark(&[added.journal_id], State::Obsolete)?;
                    }
                }
                result => return result,
            }
        }
        let number = add_device(machine)?.number;
        self.attach_to(machine, number, image)
    }

    fn attach_to(&mut self, machine: &mut Machine, number: u32, image: &Image) -> Result<()> {
        let path = &image.path;
        let node = format!("/dev/loop{number}");
        let name = format!("iolab-{}", self.run);
        let detail = format!("{} direct, detached by itself", path.display());
        let device = machine.act(ActionKind::AttachLoop, node.clone(), detail, || {
            let file = image.file.as_ref().expect("the image was made, for this is no dry run");
            let device = OpenOptions::new().read(true).write(true).open(&node);
            device
                .and_then(|device| {
                    sys::attach_loop(&device, file, image.block_bytes, &name).map(|()| device)
                })
                .map_err(|error| Error::io("attach", &node, error))
        })?;
        machine.hold_loop(number, device);
        self.devices.push(format!("loop{number}"));
        self.nodes.push(node.clone());
        machine.act(
            ActionKind::RemoveFile,
            path.display().to_string(),
            "while attached",
            || fs::remove_file(path).map_err(|error| Error::io("remove", path, error)),
        )?;
        let is_direct = machine.peek(format!("/sys/block/loop{number}/loop/dio"));
        if is_direct.as_deref() != Some("1") && !machine.is_dry_run() {
            self.warnings.push(Warning::new(
                "loop_not_direct",
                format!("{node} goes through the host's page cache: direct I/O was not possible"),
                "use an --image-dir on ext4 or xfs, or a larger logical_block_bytes",
            ));
        }
        Ok(())
    }

    fn note_nesting(&mut self, machine: &Machine, image_dir: &Path) {
        let below = leaves_of(machine, image_dir);
        if let Some(name) = below.iter().find(|name| name.starts_with("loop")) {
            self.warnings.push(Warning::new(
                "nested_loop",
                format!("the image lies on another loop device ({name}): three block layers"),
                "choose an --image-dir on a disk",
            ));
        }
    }

    fn volume<'a>(&'a self, twin: usize, point: &'a Path) -> Volume<'a> {
        let journal = self.nodes.get(1).filter(|_| self.twins == 1);
        Volume {
            device: &self.nodes[twin],
            journal_device: journal.map(String::as_str),
            point,
            bytes: self.bytes,
            uuid: None,
        }
    }

    fn unmount(&mut self, machine: &mut Machine) -> Result<()> {
        self.mounted.clear();
        while let Some(point) = self.mount_points.pop() {
            if let Err(error) = filesystem::unmount(machine, &point) {
                self.mount_points.push(point);
                return Err(error);
            }
        }
        Ok(())
    }

    fn data_folder(&self, twin: usize) -> PathBuf {
        self.point(twin).join("data")
    }

    /// Makes and mounts a file system on every device, in this order.
    fn mount_fresh(&mut self, machine: &mut Machine, stacks: &[(usize, &Stack)]) -> Result<()> {
        for (twin, stack) in stacks {
            filesystem::check(stack, &self.volume(*twin, &self.point(*twin)))?;
        }
        self.unmount(machine)?;
        self.parameters = vec![Vec::new(); self.twins];
        for (twin, stack) in stacks {
            let point = self.point(*twin);
            self.parameters[*twin] = filesystem::make(machine, stack, &self.volume(*twin, &point))?;
            filesystem::mount(machine, stack, &self.volume(*twin, &point))?;
            self.mount_points.push(point);
            let data = self.data_folder(*twin);
            machine.act(ActionKind::CreateDirectory, data.display().to_string(), "", || {
                fs::create_dir(&data).map_err(|error| Error::io("create", &data, error))
            })?;
        }
        self.mounted = stacks.iter().map(|(_, stack)| (*stack).clone()).collect();
        Ok(())
    }

    /// True if this stack is mounted on every device.
    fn is_everywhere(&self, stack: &Stack) -> bool {
        !self.mounted.is_empty() && self.mounted.iter().all(|mounted| mounted == stack)
    }

    /// A file system as it was made on a device.
    fn stack_record(&self, twin: usize, stack: &Stack) -> StackRecord {
        StackRecord {
            asked: stack.clone(),
            effective_mount_options: filesystem::effective_options(&self.point(twin))
                .unwrap_or_default(),
            parameters: self.parameters.get(twin).cloned().unwrap_or_default(),
        }
    }

    /// Images for treatments that have their own: each device once.
    fn images<'a>(&self, asked: &Asked<'a>) -> Result<Vec<(usize, &'a Stack)>> {
        let found: Vec<_> = asked.images.iter().map(|it| (it.place, &it.stack)).collect();
        let on = |twin: usize| found.iter().filter(|(place, _)| *place == twin).count();
        if found.len() == self.twins && (0..self.twins).all(|twin| on(twin) == 1) {
            return Ok(found);
        }
        Err(Error::protocol(format!("{} images on {} devices", found.len(), self.twins)))
    }
}

impl Testbed for LoopTestbed {
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
        Some(&self.run)
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The size of the device, for it has no file system yet.
    fn free_bytes(&self) -> u64 {
        self.bytes
    }

    fn check_knobs(&self, _machine: &Machine, _knobs: &BTreeMap<String, String>) -> Result<()> {
        Ok(())
    }

    fn check_fast_switching(&self) -> Result<()> {
        Ok(()) // The devices are ours, and so is all on them.
    }

    fn prepare(&mut self, machine: &mut Machine, asked: Asked) -> Result<Prepared> {
        let stack = asked.stack.ok_or_else(|| Error::protocol("a loop testbed needs a stack"))?;
        let mut images = Vec::new();
        if !asked.images.is_empty() {
            images = self.images(&asked)?;
            self.mount_fresh(machine, &images)?;
            images.sort_by_key(|(twin, _)| *twin);
        } else if asked.is_fresh_fs || !self.is_everywhere(stack) {
            let stacks: Vec<_> = (0..self.twins).map(|twin| (twin, stack)).collect();
            self.mount_fresh(machine, &stacks)?;
        }
        Ok(Prepared {
            folder: self.data_folder(0),
            twins: (1..self.twins).map(|twin| self.data_folder(twin)).collect(),
            token: None,
            raw: None,
            stack: Some(self.stack_record(0, stack)),
            images: images.iter().map(|(twin, own)| self.stack_record(*twin, own)).collect(),
            // The image has all its space already; filling it harms nobody.
            reserve_bytes: 0,
            warnings: filesystem::warnings_of(stack),
            places: Vec::new(),
        })
    }

    fn clean(&mut self, machine: &mut Machine) -> Result<()> {
        if self.mounted.is_empty() {
            return Ok(());
        }
        for twin in 0..self.twins {
            let data = self.data_folder(twin);
            let files = data.join("*").display().to_string();
            machine.act(ActionKind::RemoveFile, files, "after the trial", || {
                owned_directory::clear(&data, None)
            })?;
        }
        Ok(())
    }

    fn close(&mut self, machine: &mut Machine) -> Result<()> {
        self.unmount(machine)
    }
}

/// Adds a loop device above all that exist; the next one if somebody else was faster.
fn add_device(machine: &mut Machine) -> Result<Added> {
    let names = machine.list("/sys/block");
    let numbers = names.iter().filter_map(|name| name.strip_prefix("loop")?.parse().ok());
    let ours = machine.loop_numbers();
    let mut number = numbers.chain(ours).max().map_or(0, |highest: u32| highest + 1);
    let journal_id = loop {
        match add_loop(machine, number) {
            Err(error) if error.is_there_already() => number += 1,
            added => break added?,
        }
    };
    let stand_in = names.iter().find(|name| name.starts_with("loop"));
    if let (true, Some(stand_in)) = (machine.is_dry_run(), stand_in) {
        machine.let_stand_in(&format!("loop{number}"), stand_in);
    }
    Ok(Added { number, journal_id })
}

/// Adds one loop device, and says its number in the journal; an error if there is one.
fn add_loop(machine: &mut Machine, number: u32) -> Result<u64> {
    let node = format!("/dev/loop{number}");
    let action = (ActionKind::AddLoop, node.clone(), String::new());
    let added = machine.make(Change::LoopAdded { number }, action, || {
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control");
        control
            .and_then(|control| sys::add_loop(&control, number))
            .and_then(|()| wait_for(Path::new(&node)))
            .map_err(|error| Error::io("add", &node, error))
    })?;
    Ok(added.0)
}

/// Makes the run's own folder, which must not exist, in one that nobody but root may enter.
pub(super) fn make_runtime_folder(folder: &Path) -> Result<()> {
    let parent = Path::new(RUNTIME_FOLDER);
    let fail = |error| Error::io("create", folder, error);
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(fail)?;
    let found = fs::symlink_metadata(parent).map_err(fail)?;
    if !found.is_dir() || found.uid() != nix::unistd::geteuid().as_raw() {
        let what = format!("{RUNTIME_FOLDER} is not root's: somebody else has made it");
        return Err(Error::refused(what, "look at it, and remove it"));
    }
    fs::set_permissions(parent, fs::Permissions::from_mode(0o700)).map_err(fail)?;
    DirBuilder::new().mode(0o700).create(folder).map_err(fail)
}

/// From here on nobody sees our mounts, and they end with us.
///
/// What others unmount goes here, too: a private copy of all mounts would keep their devices busy
/// as long as we live.
pub(super) fn enter_namespace() -> Result<()> {
    let private = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
        // Only debugfs tells the real depth of a driver; it is often not mounted.
        if fs::read_dir("/sys/kernel/debug").is_ok_and(|mut names| names.next().is_none()) {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            let _ = mount(Some("debugfs"), "/sys/kernel/debug", Some("debugfs"), flags, none);
        }
        Ok(())
    };
    private().map_err(|error: nix::Error| {
        Error::failed(
            format!("a private mount namespace is not possible: {error}"),
            "containers may forbid it; run it on the host, or use --on dir:PATH",
        )
    })
}

/// The node of a new device appears a little later where udev makes it.
fn wait_for(node: &Path) -> std::io::Result<()> {
    let deadline = Instant::now() + NODE_PATIENCE;
    while !node.exists() {
        if Instant::now() > deadline {
            return Err(ErrorKind::NotFound.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(size_bytes: u64, device_count: u32, logical_block_bytes: u32) -> LoopSpec {
        let image_dir = "/var/tmp".into();
        LoopSpec { size_bytes, image_dir, device_count, logical_block_bytes, twin_count: 1 }
    }

    fn twins(twin_count: u32, device_count: u32) -> LoopSpec {
        LoopSpec { twin_count, ..spec(1 << 30, device_count, 512) }
    }

    #[test]
    fn impossible_specs_are_refused() {
        assert!(check(&spec(1 << 30, 1, 512)).is_ok());
        assert!(check(&twins(3, 1)).is_ok());
        for wrong in [spec(1 << 20, 1, 512), spec(1 << 30, 3, 512), spec(1 << 30, 1, 520)] {
            assert!(check(&wrong).is_err(), "{wrong:?}");
        }
        for wrong in [twins(0, 1), twins(9, 1), twins(2, 2)] {
            assert!(check(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn twins_are_alike_and_the_journals_image_is_small() {
        assert_eq!(sizes(&twins(3, 1)), [1 << 30; 3]);
        assert_eq!(sizes(&spec(1 << 30, 2, 512)), [1 << 30, 256 << 20]);
        assert_eq!(sizes(&spec(128 << 20, 2, 512)), [128 << 20, 128 << 20]);
    }
}
