//! What is possible as this user and what is noisy here; each failing check names a way out.
//!
//! It reads and tries harmless system calls only. Left out: the extension module and the agent's
//! own place, which the front end checks.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use iolab_real::Engine;
use nix::unistd::{AccessFlags, access, geteuid};

use crate::cgroup;
use crate::disk::{self, Identity, Inspected};
use crate::facts;
use crate::knob::offered_schedulers;
use crate::machine::{Machine, find_program};
use crate::noise::{Noise, standing_warnings};
use crate::protocol::{Check, CheckStatus};
use crate::testbed::{FILE_SYSTEMS, leaves_of, system_devices};

/// All checks; `paths` are directories or whole devices that the user thinks of.
pub fn checks(paths: &[PathBuf], state_dir: &Path) -> Vec<Check> {
    let machine = Machine::new(true);
    let here = [PathBuf::from("/")];
    let paths = if paths.is_empty() { &here } else { paths };
    let mut found = vec![root(), journal(state_dir), loop_devices()];
    found.extend(FILE_SYSTEMS.iter().map(|row| tool(row.name, row.mkfs)));
    found.extend(engines(paths));
    found.push(memory_limit());
    found.push(debugfs());
    found.push(virtualization(&machine));
    found.push(clocksource(&machine));
    found.extend(noise(&machine));
    let named: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    found.extend(devices(&machine, &named));
    for path in paths {
        found.extend(if is_block_device(path) {
            named_device(&machine, path)
        } else {
            place(&machine, path)
        });
    }
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

fn root() -> Check {
    if geteuid().is_root() {
        return ok("root", "this user is root: loop testbeds and knobs are possible");
    }
    let message = "this user is not root: only directories, without knobs";
    warn("root", message, "sudo -v, then the same command again")
}

fn journal(state_dir: &Path) -> Check {
    let exists = state_dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let shown = state_dir.display();
    if access(exists, AccessFlags::W_OK).is_ok() {
        return ok("journal", format!("changes are recorded in {shown}"));
    }
    fail(
        "journal",
        format!("{shown} cannot be written"),
        format!("sudo chown $USER {}", exists.display()),
    )
}

fn loop_devices() -> Check {
    let path = Path::new("/dev/loop-control");
    if !path.exists() {
        return fail("loop", "the kernel has no loop devices", "modprobe loop");
    }
    if access(path, AccessFlags::W_OK).is_ok() {
        return ok("loop", "private loop devices can be made");
    }
    warn("loop", "private loop devices need root", "sudo -v, then the same command again")
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
fn engines(paths: &[PathBuf]) -> Vec<Check> {
    let is_usable = |path: &&PathBuf| path.is_dir() || is_block_device(path);
    let paths: Vec<PathBuf> = paths.iter().filter(is_usable).cloned().collect();
    let mut possible = Vec::new();
    let mut found = Vec::new();
    for engine in Engine::ALL {
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
    warn(
        "debugfs",
        "not readable here: a driver's depth can be verified on loop testbeds only",
        "mount -t debugfs none /sys/kernel/debug",
    )
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

fn noise(machine: &Machine) -> Vec<Check> {
    let before = Noise::sample(machine);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut warnings = before.warnings_until(&Noise::sample(machine));
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
        match disk::inspect(machine, &node) {
            Ok(device) => found.push(erasable(title, &node, &device)),
            // Nothing is wrong with a machine whose disks are in use.
            Err(error) => {
                let message = format!("--on device: is refused: {error}");
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
    let device = match disk::inspect(machine, path) {
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

fn place(machine: &Machine, path: &Path) -> Vec<Check> {
    let shown = path.display().to_string();
    if path.exists() && !path.is_dir() {
        let hint = "name the directory it lies in, or a whole device, as lsblk lists them";
        return vec![fail(shown, "is neither a directory nor a block device", hint)];
    }
    if !path.is_dir() {
        let hint = format!("mkdir -p {shown}");
        return vec![fail(shown, "does not exist", hint)];
    }
    let mut found = Vec::new();
    if access(path, AccessFlags::W_OK).is_err() {
        let hint = format!("sudo chown $USER {shown}");
        found.push(fail(shown.as_str(), "cannot be written by this user", hint));
    }
    let devices = leaves_of(machine, path);
    if devices.is_empty() {
        let hint = "use a directory on a disk's file system, or --on loop:1g";
        found.push(warn(
            shown.as_str(),
            "no block device is under it: no knobs, no counters",
            hint,
        ));
    }
    let system = system_devices(machine);
    for device in devices {
        let offered = offered_schedulers(machine, &device).join(", ");
        let message = format!("lies on {device}, which offers the schedulers {offered}");
        if device.starts_with("loop") {
            let hint = "a loop testbed here would be nested; choose an --image-dir on a disk";
            found.push(warn(shown.as_str(), format!("{message}; it is a loop device"), hint));
        } else if system.contains(&device) {
            let hint = format!("to change its knobs: --allow-knobs-on {device}");
            found.push(warn(
                shown.as_str(),
                format!("{message}; it carries the running system"),
                hint,
            ));
        } else {
            found.push(ok(shown.as_str(), message));
        }
    }
    found
}
