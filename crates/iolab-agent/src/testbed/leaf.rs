//! Block devices that really serve a path.
//!
//! From the path's mount to its device or devices, from a partition to its disk, from a volume down
//! to its members; a loop device is a leaf, because it has a queue of its own. tmpfs, network file
//! systems and whatever is not understood have none. Source: Documentation/filesystems/proc.rst 3.5
//! (mountinfo).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::machine::{Machine, command, find_program};
use crate::mounts::{self, Mount};

/// Overlays on overlays and volumes on volumes are followed this far.
const DEPTH_MAX: u32 = 8;

/// Leaf devices under `path`, sorted; empty if there are none or they cannot be found.
pub fn leaves_of(machine: &Machine, path: &Path) -> Vec<String> {
    let mut found = BTreeSet::new();
    if let Some(mount) = mounts::of(path) {
        of_mount(machine, &mount, DEPTH_MAX, &mut found);
    }
    found.into_iter().collect()
}

/// Leaf devices below a device, by the path of its node.
pub fn leaves_of_device(machine: &Machine, node: &Path) -> Vec<String> {
    let mut found = BTreeSet::new();
    of_source(machine, node, DEPTH_MAX, &mut found);
    found.into_iter().collect()
}

/// Leaf devices that carry the running system: `/`, `/boot`, `/home` and swap.
pub fn system_devices(machine: &Machine) -> BTreeSet<String> {
    let places = ["/", "/boot", "/boot/efi", "/home", "/usr", "/var"].map(Path::new);
    let mut found: BTreeSet<String> =
        places.iter().flat_map(|path| leaves_of(machine, path)).collect();
    let swaps = machine.peek("/proc/swaps").unwrap_or_default();
    for line in swaps.lines().skip(1) {
        let source = line.split_whitespace().next().unwrap_or_default();
        if source.starts_with("/dev/") {
            of_source(machine, Path::new(source), DEPTH_MAX, &mut found);
        } else {
            found.extend(leaves_of(machine, Path::new(source)));
        }
    }
    found
}

fn of_mount(machine: &Machine, mount: &Mount, depth: u32, found: &mut BTreeSet<String>) {
    match mount.fs.as_str() {
        "btrfs" => of_btrfs(machine, &mount.source, depth, found),
        "zfs" => of_pool(machine, &mount.source, depth, found),
        "overlay" if depth > 0 => {
            let mut options = mount.super_options.split(',');
            let upper = options.find_map(|option| option.strip_prefix("upperdir="));
            // It may be relative, or lie in another container: then nothing is known.
            let upper = upper.map(Path::new).filter(|path| path.is_absolute());
            if let Some(mount) = upper.and_then(mounts::of) {
                of_mount(machine, &mount, depth - 1, found);
            }
        }
        _ if mount.number.starts_with("0:") => {}
        _ => of_number(machine, &mount.number, depth, found),
    }
}

/// btrfs spans devices and has an anonymous number: its own folder in sysfs names them.
fn of_btrfs(machine: &Machine, source: &str, depth: u32, found: &mut BTreeSet<String>) {
    let Some(one) = name_of(machine, Path::new(source)) else { return };
    for fsid in machine.list("/sys/fs/btrfs") {
        let devices = machine.list(format!("/sys/fs/btrfs/{fsid}/devices"));
        if devices.contains(&one) {
            for device in devices {
                of_block(machine, Path::new("/sys/class/block").join(device), depth, found);
            }
        }
    }
}

/// ZFS keeps its devices to itself; its own tool tells them, if it is there.
fn of_pool(machine: &Machine, source: &str, depth: u32, found: &mut BTreeSet<String>) {
    let pool = source.split('/').next().unwrap_or_default();
    let Some(zpool) = find_program("zpool") else { return };
    let Ok(output) = command(zpool).args(["status", "-P", pool]).output() else { return };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        if word.starts_with("/dev/") {
            of_source(machine, Path::new(word), depth, found);
        }
    }
}

fn of_source(machine: &Machine, source: &Path, depth: u32, found: &mut BTreeSet<String>) {
    if let Some(name) = name_of(machine, source) {
        of_block(machine, Path::new("/sys/class/block").join(name), depth, found);
    }
}

fn name_of(machine: &Machine, source: &Path) -> Option<String> {
    Some(machine.resolve(source)?.file_name()?.to_string_lossy().into_owned())
}

fn of_number(machine: &Machine, number: &str, depth: u32, found: &mut BTreeSet<String>) {
    of_block(machine, PathBuf::from(format!("/sys/dev/block/{number}")), depth, found);
}

fn of_block(machine: &Machine, path: PathBuf, depth: u32, found: &mut BTreeSet<String>) {
    let Some(mut folder) = machine.resolve(path) else { return };
    if machine.exists(folder.join("partition")) {
        folder.pop();
    }
    let members = machine.list(folder.join("slaves"));
    if members.is_empty() || depth == 0 {
        found.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
        return;
    }
    for member in members {
        of_block(machine, folder.join("slaves").join(member), depth - 1, found);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::machine::fake_machine;

    #[test]
    fn volumes_are_followed_to_their_disks_and_partitions_to_theirs() {
        let (root, machine) = fake_machine();
        let devices = root.path().join("sys/devices");
        for name in ["dm-0/slaves", "sdx/sdx1", "sdx/slaves", "loop8x/slaves"] {
            fs::create_dir_all(devices.join(name)).unwrap();
        }
        fs::write(devices.join("sdx/sdx1/partition"), "1").unwrap();
        symlink("../../sdx/sdx1", devices.join("dm-0/slaves/sdx1")).unwrap();
        symlink("../../loop8x", devices.join("dm-0/slaves/loop8x")).unwrap();
        let numbers = root.path().join("sys/dev/block");
        fs::create_dir_all(&numbers).unwrap();
        symlink("../../devices/dm-0", numbers.join("253:0")).unwrap();
        let mut found = BTreeSet::new();
        of_number(&machine, "253:0", DEPTH_MAX, &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["loop8x", "sdx"]);
    }

    #[test]
    fn memory_has_no_device() {
        let (_root, machine) = fake_machine();
        assert!(leaves_of(&machine, Path::new("/proc")).is_empty());
    }
}
