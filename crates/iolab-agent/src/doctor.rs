//! Check of what is possible as this user and what is noisy here; each failing check names a way
//! out.
//!
//! It reads and tries harmless system calls only. Left out: the extension module and the agent's
//! own place, which the front end checks.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iolab_real::Engine;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, User, access, geteuid};

use crate::boundary::Boundary;
use crate::cgroup;
use crate::disk::{self, Identity, Inspected, Patience};
use crate::error::Result;
use crate::facts;
use crate::knob::offered_schedulers;
use crate::machine::{Machine, find_program};
use crate::names::abilities;
use crate::noise::{Noise, Span, standing_warnings};
use crate::protocol::{Check, CheckStatus};
use crate::testbed::{FILE_SYSTEMS, leaves_of, system_devices};

/// All checks; `paths` are directories or whole devices that the user thinks of. Without any, the
/// working directory and the home directory are judged: where results and journals go.
///
/// `state_dir` is where journals go, or why there is no such place.
///
/// Within a `boundary` root works for an ordinary user, and only what its policy has is possible.
pub fn checks(
    paths: &[PathBuf],
    state_dir: &Result<PathBuf>,
    boundary: Option<&Result<Boundary>>,
) -> Vec<Check> {
    let machine = Machine::new(true);
    let (places, mut misses) = if paths.is_empty() { usual_places() } else { named(paths) };
    let mut found = vec![root(boundary), journal(state_dir), loop_devices(boundary)];
    found.extend(FILE_SYSTEMS.iter().map(|row| tool(row.name, row.mkfs)));
    found.extend(engines(&places));
    found.push(rocksdb());
    found.push(memory_limit());
    found.push(debugfs());
    found.push(virtualization(&machine));
    found.push(clocksource(&machine));
    found.extend(halting(&machine));
    found.extend(noise(&machine));
    let named: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    found.extend(devices(&machine, &named));
    for place in &places {
        found.extend(if is_block_device(&place.path) {
            named_device(&machine, &place.path)
        } else {
            place.checks(&machine)
        });
    }
    found.append(&mut misses);
    found
}

fn is_block_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

fn ok(name: impl Into<String>, message: impl Into<String>) -> Check {
    check(name, CheckStatus::Ok, message, "")
}

fn warn(name: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Check {
    check(name, CheckStatus::Warn, message, hint)
}

fn fail(name: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Check {
    check(name, CheckStatus::Fail, message, hint)
}

fn check(
    name: impl Into<String>,
    status: CheckStatus,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Check {
    Check { name: name.into(), status, message: message.into(), hint: hint.into() }
}

/// The step for an ordinary user; the front end adds that line.
const AS_ROOT: &str = "sudo \"$(command -v iolab)\" ..., or see `agent by sudo` below";

/// Actions of root for others, which its policy alone allows.
const BY_POLICY: &str = "root names the class in /etc/iolab/agent.toml";

/// The library of `iolab ycsb ... rocksdb`.
fn rocksdb() -> Check {
    match iolab_kv::rocksdb::find() {
        Ok(found) => {
            let message = format!("RocksDB {} ({})", found.version, found.path.display());
            ok("rocksdb", message)
        }
        Err(iolab_model::Error::BadWorkload { problem, remedy }) => {
            warn("rocksdb", problem, remedy)
        }
        Err(error) => warn("rocksdb", error.to_string(), "install librocksdb"),
    }
}

fn root(boundary: Option<&Result<Boundary>>) -> Check {
    if let Some(boundary) = boundary {
        return match boundary {
            Ok(boundary) => bounded(boundary),
            Err(error) => fail("root", error.to_string(), error.hint()),
        };
    }
    if geteuid().is_root() {
        return ok("root", "this user is root: loop testbeds and knobs are possible");
    }
    let message = "this user is not root: only directories, without knobs";
    warn("root", message, AS_ROOT)
}

/// Actions of root that an ordinary user is allowed.
fn bounded(boundary: &Boundary) -> Check {
    let kinds = [
        ("A+", "knobs under directories"),
        ("B", "private loop devices and their knobs"),
        ("C", "whole devices"),
    ];
    let told = |is_allowed: bool| {
        let found = kinds.iter().filter(|(class, _)| boundary.has_class(class) == is_allowed);
        found.map(|(class, what)| format!("{what} ({class})")).collect::<Vec<_>>().join(", ")
    };
    let (may, may_not) = (told(true), told(false));
    let nothing = |text: &str| if text.is_empty() { "nothing".to_owned() } else { text.to_owned() };
    let message = format!(
        "{}; possible: {}; not: {}",
        boundary.described(),
        nothing(&may),
        nothing(&may_not)
    );
    if may_not.is_empty() { ok("root", message) } else { warn("root", message, BY_POLICY) }
}

fn journal(state_dir: &Result<PathBuf>) -> Check {
    let state_dir = match state_dir {
        Ok(state_dir) => state_dir,
        Err(error) => {
            return fail("journal", error.to_string(), format!("set HOME, or {}", elsewhere()));
        }
    };
    let exists = state_dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let shown = state_dir.display();
    let Err(errno) = access(exists, WRITABLE) else {
        return ok("journal", format!("changes are recorded in {shown}"));
    };
    let message =
        format!("{shown} cannot be made: {} is not for this user to write", shown_of(exists));
    let hint = match opened_again(exists, errno) {
        Some(way) => format!("{way}, or {}", elsewhere()),
        None => elsewhere(),
    };
    fail("journal", message, hint)
}

/// Advice on another directory for journals.
pub fn elsewhere() -> String {
    let advice = "set XDG_STATE_HOME to a directory of your own";
    match own_directory() {
        Some(path) => {
            let path = path.display();
            format!("{advice}: `mkdir -p {path}; export XDG_STATE_HOME={path}`")
        }
        None => format!("{advice}; ask who runs this machine for one"),
    }
}

fn loop_devices(boundary: Option<&Result<Boundary>>) -> Check {
    let has_class =
        |boundary: &Result<Boundary>| boundary.as_ref().is_ok_and(|it| it.has_class("B"));
    if boundary.is_some_and(|boundary| !has_class(boundary)) {
        return warn("loop", "the policy has no private loop devices (class B)", BY_POLICY);
    }
    let path = Path::new("/dev/loop-control");
    if !path.exists() {
        return fail("loop", "the kernel has no loop devices", "as root: modprobe loop");
    }
    if access(path, AccessFlags::W_OK).is_ok() {
        return ok("loop", "private loop devices can be made");
    }
    warn("loop", "private loop devices need root", AS_ROOT)
}

fn tool(name: &str, program: &str) -> Check {
    let package = match name {
        "xfs" => "xfsprogs",
        "btrfs" => "btrfs-progs",
        _ => "e2fsprogs",
    };
    let name = format!("fs {name}");
    match find_program(program) {
        Some(path) => ok(name, path.display().to_string()),
        None => warn(name, format!("{program} is not installed"), format!("apt install {package}")),
    }
}

/// Every engine is tried as a trial would use it; those that work share a line. What is no place
/// for a trial at all is told once, elsewhere.
fn engines(places: &[Place]) -> Vec<Check> {
    let is_directory = |path: &Path| path.is_dir() && access(path, WRITABLE).is_ok();
    let is_usable = |path: &&PathBuf| is_directory(path) || is_block_device(path);
    let paths: Vec<PathBuf> =
        places.iter().map(|place| &place.path).filter(is_usable).cloned().collect();
    let mut possible = Vec::new();
    let mut found = Vec::new();
    for engine in Engine::ALL {
        // What hinders one that has the means of several is told of these.
        if engine.is_combined() {
            let is_possible = !paths.is_empty() && engine.probe(&paths).is_ok();
            possible.extend(is_possible.then(|| engine.name()));
            continue;
        }
        if paths.is_empty() && !abilities(*engine).has_plain {
            // What does direct I/O alone depends on the device; elsewhere the kernel decides.
            let message = "not tried: no place here can be written, and it depends on the device";
            let hint = "name a directory of your own, or a device: iolab doctor PATH";
            found.push(warn(format!("engine {engine}"), message, hint));
            continue;
        }
        match engine.probe(&paths) {
            Ok(()) => possible.push(engine.name()),
            Err(refused) => {
                let name = format!("engine {engine}");
                found.push(warn(name, format!("is not possible: {}", refused.why), refused.remedy));
            }
        }
    }
    found.insert(0, ok("engines", format!("{} can be used", possible.join(", "))));
    found
}

fn memory_limit() -> Check {
    match cgroup::hierarchy() {
        Ok((path, file)) => ok("memory limit", format!("{file} in {}", path.display())),
        Err(error) => warn("memory limit", error.to_string(), error.hint()),
    }
}

fn debugfs() -> Check {
    if Path::new("/sys/kernel/debug/block").exists() {
        return ok("debugfs", "depths of drivers can be verified");
    }
    // Mounted, it is root's alone: to mount it again would change nothing.
    let is_closed = access("/sys/kernel/debug", AccessFlags::X_OK).is_err();
    let message = "not readable here: a driver's depth can be verified on loop testbeds only";
    let hint = "as root: mount -t debugfs none /sys/kernel/debug";
    warn("debugfs", message, if is_closed { "only root can read it" } else { hint })
}

fn virtualization(machine: &Machine) -> Check {
    match facts::virtualization(machine).as_deref() {
        Some("none") => ok("virtualization", "this is no virtual machine"),
        Some(kind) => warn(
            "virtualization",
            format!("this is a virtual machine ({kind}): its host schedules I/O again"),
            "compare levels, do not trust absolute numbers",
        ),
        None => ok("virtualization", "unknown"),
    }
}

fn clocksource(machine: &Machine) -> Check {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match machine.peek(path).as_deref() {
        Some(name @ ("hpet" | "acpi_pm" | "jiffies" | "refined-jiffies")) => warn(
            "clock",
            format!("the clock source {name} is slow: each latency is measured with it"),
            "boot with tsc=reliable clocksource=tsc",
        ),
        Some(name) => ok("clock", name),
        None => ok("clock", "unknown"),
    }
}

/// Idle processors of a guest that never poll before they halt: waking one is the host's work.
fn halting(machine: &Machine) -> Option<Check> {
    let governor = machine.peek("/sys/devices/system/cpu/cpuidle/current_governor")?;
    let polled_ns = machine.peek("/sys/module/haltpoll/parameters/guest_halt_poll_ns")?;
    // Four bytes: the latency that somebody allows at most; 0: they poll. Only root may look.
    let allowed = fs::read("/dev/cpu_dma_latency");
    let is_kept_awake = allowed.as_ref().is_ok_and(|allowed| *allowed == [0; 4]);
    (governor == "haltpoll" && polled_ns == "0" && !is_kept_awake).then(|| {
        let whether = if allowed.is_ok() { "" } else { "unless root keeps them awake, " };
        let message = format!(
            "{whether}idle processors of this guest halt at once, and waking one takes tens of \
             microseconds: with one operation in flight fast devices look slower"
        );
        let hint = "as root, in the shell that runs iolab: exec 9>/dev/cpu_dma_latency; printf \
                    '\\0\\0\\0\\0' >&9 (until exec 9>&-)";
        warn("idle", message, hint)
    })
}

fn noise(machine: &Machine) -> Vec<Check> {
    let before = Noise::sample(machine);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut warnings = before.warnings_until(&Noise::sample(machine), Span::Moment);
    warnings.extend(standing_warnings(machine));
    if warnings.is_empty() {
        return vec![ok("noise", "nothing disturbs measurements right now")];
    }
    warnings.into_iter().map(|it| warn(it.code, it.message, it.hint)).collect()
}

/// Every device that has a size, but for those `named`: whether `--on device:` would take it, and
/// why not.
fn devices(machine: &Machine, named: &[PathBuf]) -> Vec<Check> {
    let mut found = Vec::new();
    for name in machine.list("/sys/block") {
        let size = machine.peek(format!("/sys/block/{name}/size")).unwrap_or_default();
        if matches!(size.as_str(), "" | "0") {
            continue;
        }
        let node = PathBuf::from(format!("/dev/{}", name.replace('!', "/")));
        let title = format!("device {name}");
        if named.contains(&node) {
            continue;
        }
        match disk::inspect(machine, &node, Patience::None) {
            Ok(device) => found.push(erasable(title, &node, &device)),
            // Nothing is wrong with a machine whose disks are in use.
            Err(error) => {
                let why = error.to_string();
                let why = why.strip_prefix(&format!("{name} "));
                let why = why.map_or_else(|| error.to_string(), |rest| format!("it {rest}"));
                let message = format!("cannot be erased by `--on device:`: {why}");
                found.push(check(title, CheckStatus::Ok, message, ""));
            }
        }
    }
    found
}

/// A device that would be taken, and what would be lost.
fn erasable(title: String, node: &Path, device: &Inspected) -> Check {
    let Identity { model, serial, size_bytes, .. } = &device.identity;
    let message = format!(
        "--on device:{} would erase {model} {serial} ({} MiB), once its serial is typed",
        node.display(),
        size_bytes >> 20
    );
    let Some(stored) = &device.stored else { return ok(title, message) };
    let hint = format!("look whose it is before you type the serial: lsblk -f {}", node.display());
    warn(title, format!("{message}; {stored}"), hint)
}

/// A device that the user thinks of: whether it would be taken (rule R13: or why not), and what its
/// queue offers. Checks of directories say nothing about it.
fn named_device(machine: &Machine, path: &Path) -> Vec<Check> {
    let shown = path.display().to_string();
    let device = match disk::inspect(machine, path, Patience::Glance) {
        Ok(device) => device,
        Err(error) => {
            let message = format!("--on device:{shown} is refused: {error}");
            return vec![fail(shown, message, error.hint())];
        }
    };
    let node = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let name = node.strip_prefix("/dev").unwrap_or(&node).display().to_string().replace('/', "!");
    let offered = offered_schedulers(machine, &name).join(", ");
    let schedulers = ok(shown.as_str(), format!("{name} offers the schedulers {offered}"));
    vec![erasable(shown, path, &device), schedulers]
}

/// A directory or device to be judged.
struct Place {
    /// Name in the list: the path as it was named, or what it is to the user.
    name: String,
    path: PathBuf,
    /// The user has named it: what is wrong with it is an error, otherwise only worth knowing.
    is_named: bool,
}

const WRITABLE: AccessFlags = AccessFlags::W_OK.union(AccessFlags::X_OK);

fn named(paths: &[PathBuf]) -> (Vec<Place>, Vec<Check>) {
    let place = |path: &PathBuf| Place {
        name: path.display().to_string(),
        path: path.clone(),
        is_named: true,
    };
    (paths.iter().map(place).collect(), Vec::new())
}

/// Directories of the user: the current one, to which results go, and the home; and what cannot be
/// found.
fn usual_places() -> (Vec<Place>, Vec<Check>) {
    let (mut places, mut misses) = (Vec::<Place>::new(), Vec::new());
    let place = |name: &str, path| Place { name: name.to_owned(), path, is_named: false };
    match std::env::current_dir() {
        Ok(path) => places.push(place("working directory", path)),
        Err(error) => {
            let message = format!("it cannot be told where it is: {error}");
            misses.push(warn("working directory", message, format!("cd to another: {}", own())));
        }
    }
    match home() {
        Some(path) if places.iter().any(|place| place.path == path) => {}
        Some(path) => places.push(place("home directory", path)),
        None => {
            let message = "HOME is not set, and the list of users names none";
            misses.push(warn("home directory", message, format!("set HOME: {}", own())));
        }
    }
    (places, misses)
}

/// The user's home, by the environment or else the list of users.
pub fn home() -> Option<PathBuf> {
    let said = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    said.or_else(|| User::from_uid(geteuid()).ok().flatten().map(|user| user.dir))
}

/// A directory that this user may have to itself. What belongs to others stays theirs: nothing here
/// advises to take it over.
fn own() -> String {
    own_directory().map_or_else(
        || "ask who runs this machine for one".to_owned(),
        |path| format!("mkdir -p {}", path.display()),
    )
}

fn own_directory() -> Option<PathBuf> {
    let roots = home().into_iter().chain(["/var/tmp", "/tmp"].map(PathBuf::from));
    let free = roots.into_iter().find(|path| path.is_dir() && access(path, WRITABLE).is_ok());
    free.map(|path| path.join("iolab-test"))
}

/// Way in which this user can write to a directory, or one to write to instead.
fn way_to_write(path: &Path, errno: Errno) -> String {
    let shown = path.display();
    if errno == Errno::EROFS {
        return format!("{shown} is on a file system that is mounted read-only: {}", own());
    }
    opened_again(path, errno).unwrap_or_else(|| format!("use a directory of your own: {}", own()))
}

/// Advice for a directory of the user's own, which may be opened again; `/` is nobody's, even where
/// root has no rights.
pub fn opened_again(path: &Path, errno: Errno) -> Option<String> {
    let is_own = fs::metadata(path).is_ok_and(|found| found.uid() == geteuid().as_raw());
    let is_possible = is_own && path.parent().is_some() && errno != Errno::EROFS;
    is_possible.then(|| format!("chmod u+wx {}", path.display()))
}

fn shown_of(path: &Path) -> String {
    path.display().to_string()
}

impl Place {
    /// Something that is not as it should be.
    fn trouble(&self, message: &str, hint: impl Into<String>) -> Check {
        let status = if self.is_named { CheckStatus::Fail } else { CheckStatus::Warn };
        check(self.name.as_str(), status, self.said(message), hint)
    }

    /// Sentence about it; the path first where the name is another.
    fn said(&self, message: &str) -> String {
        if self.is_named {
            message.to_owned()
        } else {
            format!("{} {message}", self.path.display())
        }
    }

    fn checks(&self, machine: &Machine) -> Vec<Check> {
        let path = self.path.as_path();
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                let hint = "name the directory it lies in, or a whole device, as lsblk lists them";
                return vec![self.trouble("is neither a directory nor a block device", hint)];
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return vec![self.trouble("does not exist", way_to_make(path))];
            }
            Err(error) => {
                let message = format!("cannot be looked at: {error}");
                return vec![
                    self.trouble(&message, format!("use a directory of your own: {}", own())),
                ];
            }
        }
        let mut found = Vec::new();
        if let Err(errno) = access(path, WRITABLE) {
            found.push(self.trouble("cannot be written by this user", way_to_write(path, errno)));
        }
        found.extend(self.devices(machine));
        found
    }

    /// Devices under a directory.
    fn devices(&self, machine: &Machine) -> Vec<Check> {
        let mut found = Vec::new();
        let path = self.path.as_path();
        let devices = leaves_of(machine, path);
        if devices.is_empty() {
            let hint = "use a directory on a disk's file system, or --on loop:1g";
            found.push(warn(
                self.name.as_str(),
                self.said("has no block device under it: no knobs, no counters"),
                hint,
            ));
        }
        let system = system_devices(machine);
        for device in devices {
            let offered = offered_schedulers(machine, &device).join(", ");
            let message =
                self.said(&format!("lies on {device}, which offers the schedulers {offered}"));
            if device.starts_with("loop") {
                let hint = "a loop testbed here would be nested; choose an --image-dir on a disk";
                found.push(warn(
                    self.name.as_str(),
                    format!("{message}; it is a loop device"),
                    hint,
                ));
            } else if system.contains(&device) {
                let hint = format!("to change its knobs: --allow-knobs-on {device}");
                found.push(warn(
                    self.name.as_str(),
                    format!("{message}; it carries the running system"),
                    hint,
                ));
            } else {
                found.push(ok(self.name.as_str(), message));
            }
        }
        found
    }
}

/// Command that makes a directory: made, if this user may make it there.
fn way_to_make(path: &Path) -> String {
    let exists = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    if access(exists, WRITABLE).is_ok() {
        return format!("mkdir -p {}", path.display());
    }
    format!("use a directory of your own: {}", own())
}
