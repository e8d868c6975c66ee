//! Fitness of a device, and its use by others (rules R2 and R4).
//!
//! The device, its partitions and everything that was built on them, by number and not by name, are
//! looked for among mounts, swaps, multi-device file systems, images of loop devices and the open
//! files of processes. The image of a loop device is looked for likewise, by its inode: whoever
//! writes it writes the device. What is not seen from here (another mount namespace, ZFS) is
//! refused by the kernel when the device is claimed. Sources: Documentation/filesystems/proc.rst
//! 3.5, Documentation/ABI (`holders`, `slaves`, `queue/zoned`), proc(5).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::image::{Image, image_of, number_of};
use crate::machine::Machine;
use crate::mounts::{self, Mount};
use crate::testbed::{leaves_of, system_devices};

/// Reason why a device is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// On what, and why.
    pub what: String,
    /// Advice: a choice that would be accepted.
    pub hint: String,
}

/// Smaller devices are none that anybody measures.
pub const BYTES_MIN: u64 = 64 << 20;
/// Volumes on volumes are followed this far.
const DEPTH_MAX: u32 = 8;
/// Mount points of the running system.
const SYSTEM_POINTS: &[&str] = &["/", "/boot", "/boot/efi", "/home", "/usr", "/var"];

/// Programs that look at any device (losetup, blkid, lsblk, udisks) have closed it after this.
const GLANCE: Duration = Duration::from_secs(2);
/// Between two looks at who has a device open.
const PAUSE: Duration = Duration::from_millis(100);

/// Kernel name to `major:minor` of a device and of all that was built on it.
type Family = BTreeMap<String, String>;

/// Reason why a device can be no testbed, even if nobody uses it.
pub fn unfit(machine: &Machine, name: &str) -> Option<Why> {
    let why = |what: String, hint: &str| Some(Why { what, hint: hint.to_owned() });
    let folder = Path::new("/sys/block").join(name);
    let peek = |file: &str| machine.peek(folder.join(file)).unwrap_or_default();
    let bytes = peek("size").parse::<u64>().unwrap_or(0) * 512;
    let below = machine.list(folder.join("slaves"));
    let zoned = peek("queue/zoned");
    if !below.is_empty() {
        let what = format!("{name} is a volume on {}, no device of its own", below.join(", "));
        return why(what, "name a whole disk; a volume's scheduler is that of its disks");
    }
    if let Some(Image { shown, device: Some(number), .. }) = image_of(machine, name) {
        let what = format!("{name} is a loop device over the device {shown} ({number})");
        return why(what, "name that device itself");
    }
    if name.starts_with("ram") || name.starts_with("zram") {
        let what = format!("{name} is memory, not a device that keeps anything");
        return why(what, "name a disk, or use --on loop:1g");
    }
    if bytes == 0 {
        let what = if peek("removable") == "1" {
            format!("{name} has no medium")
        } else {
            format!("{name} has no size: nothing is attached")
        };
        return why(what, "insert a medium, or name another device");
    }
    if peek("ro") == "1" {
        let hint = format!("if that is wrong: blockdev --setrw /dev/{name}");
        return why(format!("{name} is read-only"), &hint);
    }
    if !matches!(zoned.as_str(), "" | "none") {
        let what = format!("{name} is a zoned device ({zoned}): it cannot be written at random");
        return why(what, "name a conventional device");
    }
    if bytes < BYTES_MIN {
        let what = format!("{name} has {} MiB, less than {}", bytes >> 20, BYTES_MIN >> 20);
        return why(what, "name a larger device");
    }
    None
}

/// Treatment of a process that has a device open at the moment of the look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Use of the device: nothing is to be taken, and a list of all devices must not wait for each.
    None,
    /// Use of the device only if the process still has it open two seconds later: the device is to
    /// be taken.
    Glance,
}

/// First use of a device that is found; `protected` are paths that must not lie on it.
pub fn in_use(
    machine: &Machine,
    name: &str,
    protected: &[PathBuf],
    patience: Patience,
) -> Option<Why> {
    let family = family(machine, name);
    let mounts = mounts::parse_all(&machine.peek("/proc/self/mountinfo").unwrap_or_default());
    system(machine, name, (&family, &mounts), protected)
        .or_else(|| mounted(machine, name, &family, &mounts))
        .or_else(|| several_devices(machine, name, &family))
        .or_else(|| image(machine, name, &family))
        .or_else(|| twin(machine, name))
        .or_else(|| held(machine, name))
        .or_else(|| kept_open(machine, name, &family, patience))
}

/// The device, its partitions, what holds any of them, and other loop devices with its image.
fn family(machine: &Machine, name: &str) -> Family {
    let mut found = Family::new();
    add(machine, name, DEPTH_MAX, &mut found);
    for (other, _) in twins(machine, name) {
        add(machine, &other, DEPTH_MAX, &mut found);
    }
    found
}

/// Other loop devices with the same image, under whatever name and from whatever offset.
fn twins(machine: &Machine, name: &str) -> Vec<(String, Image)> {
    let Some(own) = image_of(machine, name) else { return Vec::new() };
    let others = machine.list("/sys/block").into_iter().filter(|other| other != name);
    let images = others.filter_map(|other| Some((image_of(machine, &other)?, other)));
    images.filter(|(image, _)| image.is_same(&own)).map(|(image, other)| (other, image)).collect()
}

fn add(machine: &Machine, name: &str, depth: u32, found: &mut Family) {
    let Some(folder) = folder_of(machine, name) else { return };
    let number = machine.peek(folder.join("dev")).unwrap_or_default();
    if found.insert(name.to_owned(), number).is_some() || depth == 0 {
        return;
    }
    for holder in machine.list(folder.join("holders")) {
        add(machine, &holder, depth - 1, found);
    }
    for part in machine.list(&folder) {
        let inner = folder.join(&part);
        if !machine.exists(inner.join("partition")) {
            continue;
        }
        found.insert(part, machine.peek(inner.join("dev")).unwrap_or_default());
        for holder in machine.list(inner.join("holders")) {
            add(machine, &holder, depth - 1, found);
        }
    }
}

fn folder_of(machine: &Machine, name: &str) -> Option<PathBuf> {
    let places = ["/sys/class/block", "/sys/block"];
    places.iter().find_map(|place| machine.resolve(Path::new(place).join(name)))
}

/// Rule R4: there is no way round this one.
fn system(
    machine: &Machine,
    name: &str,
    (family, mounts): (&Family, &[Mount]),
    protected: &[PathBuf],
) -> Option<Why> {
    let mut carried: Vec<String> = mounts
        .iter()
        .filter(|mount| is_on(machine, mount, family))
        .filter(|mount| SYSTEM_POINTS.iter().any(|point| mount.point == Path::new(point)))
        .map(|mount| mount.point.display().to_string())
        .collect();
    let points: Vec<PathBuf> = carried.iter().map(PathBuf::from).collect();
    carried.extend(swaps(machine, family));
    // What lies below a point that is named already is no news.
    for path in protected.iter().filter(|path| !points.iter().any(|it| path.starts_with(it))) {
        let holds = mounts.iter().filter(|mount| path.starts_with(&mount.point));
        let nearest = holds.max_by_key(|mount| mount.point.as_os_str().len());
        let is_here = nearest.is_some_and(|mount| is_on(machine, mount, family))
            || leaves_of(machine, path).iter().any(|leaf| leaf == name);
        if is_here {
            carried.push(path.display().to_string());
        }
    }
    if carried.is_empty() && system_devices(machine).contains(name) {
        carried.push("a part of it".to_owned());
    }
    carried.sort();
    carried.dedup();
    (!carried.is_empty()).then(|| Why {
        what: format!("{name} carries the running system ({})", listed(&carried)),
        hint: "no option changes that; name another disk, or use --on loop:1g".to_owned(),
    })
}

/// `a, b and c`.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn is_on(machine: &Machine, mount: &Mount, family: &Family) -> bool {
    let source = machine.resolve(&mount.source);
    let name = source.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    // btrfs has numbers of its own, but names one of its devices.
    family.values().any(|number| *number == mount.number)
        || (mount.number.starts_with("0:") && name.is_some_and(|name| family.contains_key(name)))
}

fn mounted(machine: &Machine, name: &str, family: &Family, mounts: &[Mount]) -> Option<Why> {
    let mount = mounts.iter().find(|mount| is_on(machine, mount, family))?;
    let point = mount.point.display();
    Some(Why {
        what: format!("{name} is in use: {} is mounted on {point}", mount.source),
        hint: format!("if you mean that device: umount {point}, and look at what is on it"),
    })
}

fn swaps(machine: &Machine, family: &Family) -> Vec<String> {
    let swaps = machine.peek("/proc/swaps").unwrap_or_default();
    let sources = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let images: Vec<Image> = family.keys().filter_map(|name| image_of(machine, name)).collect();
    let is_here = |source: &&str| {
        let real = machine.resolve(source).unwrap_or_else(|| PathBuf::from(source));
        if images.iter().any(|image| image.is_at(&machine.real(&real))) {
            return true;
        }
        real.file_name().and_then(|name| name.to_str()).is_some_and(|n| family.contains_key(n))
    };
    sources.filter(is_here).map(|source| format!("swap on {source}")).collect()
}

/// A mounted btrfs on several devices names one of them in mountinfo, all of them in sysfs.
fn several_devices(machine: &Machine, name: &str, family: &Family) -> Option<Why> {
    for fsid in machine.list("/sys/fs/btrfs") {
        let members = machine.list(format!("/sys/fs/btrfs/{fsid}/devices"));
        if let Some(member) = members.iter().find(|member| family.contains_key(*member)) {
            return Some(Why {
                what: format!("{name} is in use: {member} belongs to the mounted btrfs {fsid}"),
                hint: "unmount it, and look at what is on it".to_owned(),
            });
        }
    }
    None
}

/// A loop device over the device itself.
fn image(machine: &Machine, name: &str, family: &Family) -> Option<Why> {
    machine.list("/sys/block").into_iter().find_map(|other| {
        let image = image_of(machine, &other)?;
        let shown = &image.shown;
        let real = machine.resolve(shown).unwrap_or_else(|| PathBuf::from(shown));
        let is_number = image.device.is_some_and(|it| family.values().any(|number| *number == it));
        let is_name = shown.starts_with("/dev/")
            && real.file_name()?.to_str().is_some_and(|below| family.contains_key(below));
        (is_number || is_name).then(|| Why {
            what: format!("{name} is in use: /dev/{other} is attached to {shown}"),
            hint: format!("if it is not needed: losetup -d /dev/{other}"),
        })
    })
}

/// Other loop device with the same image: its user, from whatever offset, loses the data.
fn twin(machine: &Machine, name: &str) -> Option<Why> {
    let (other, image) = twins(machine, name).into_iter().next()?;
    Some(Why {
        what: format!(
            "{name} is in use: /dev/{other} has the same image, attached as {}",
            image.shown
        ),
        hint: format!("if it is not needed: losetup -d /dev/{other}"),
    })
}

/// Volumes and arrays: device mapper (LVM, crypt, multipath), md, bcache.
fn held(machine: &Machine, name: &str) -> Option<Why> {
    let folder = folder_of(machine, name)?;
    let mut places = vec![(name.to_owned(), folder.join("holders"))];
    for part in machine.list(&folder) {
        if machine.exists(folder.join(&part).join("partition")) {
            places.push((part.clone(), folder.join(&part).join("holders")));
        }
    }
    places.extend(twins(machine, name).into_iter().map(|(twin, _)| {
        let holders = Path::new("/sys/block").join(&twin).join("holders");
        (twin, holders)
    }));
    places.into_iter().find_map(|(part, holders)| {
        let holder = machine.list(holders).into_iter().next()?;
        let kind = machine.peek(format!("/sys/block/{holder}/dm/uuid")).unwrap_or_default();
        let kind = match kind.split('-').next().unwrap_or_default() {
            "LVM" => "an LVM volume",
            "CRYPT" => "an encrypted volume",
            "mpath" => "a multipath device",
            _ if holder.starts_with("md") => "a RAID array",
            _ if holder.starts_with("bcache") => "a bcache device",
            _ => "a volume",
        };
        Some(Why {
            what: format!("{name} is in use: {holder}, {kind}, lies on {part}"),
            hint: format!("see lsblk /dev/{name}; take {holder} apart first if you mean it"),
        })
    })
}

/// Databases, servers (NBD) and virtual machines open devices and images without claiming them.
///
/// Programs that look at all devices for a moment use none, so that with `Patience::Glance` a
/// process counts only if it has the device open at the end of the wait, too.
fn kept_open(machine: &Machine, name: &str, family: &Family, patience: Patience) -> Option<Why> {
    let wait = match patience {
        Patience::None => Duration::ZERO,
        Patience::Glance => GLANCE,
    };
    let deadline = Instant::now() + wait;
    loop {
        let why = opened(machine, name, family)?;
        if Instant::now() >= deadline {
            return Some(why);
        }
        sleep(PAUSE);
    }
}

/// The first process found that has a device or its image open.
fn opened(machine: &Machine, name: &str, family: &Family) -> Option<Why> {
    let own = std::process::id().to_string();
    let image = image_of(machine, name);
    for pid in machine.list("/proc") {
        if pid == own || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let folder = Path::new("/proc").join(&pid);
        let command = machine.peek(folder.join("comm")).unwrap_or_default();
        // udev looks at every device that changed, for a moment.
        if command.starts_with("(udev") || command.starts_with("systemd-udevd") {
            continue;
        }
        for fd in machine.list(folder.join("fd")) {
            let place = machine.real(&folder.join("fd").join(fd));
            let link = fs::read_link(&place).unwrap_or_default();
            let named = link.strip_prefix("/dev").ok().and_then(|path| path.to_str());
            let is_named = named.is_some_and(|name| family.contains_key(name));
            let opened = if is_named || is_number(&place, family) {
                "it".to_owned()
            } else if image.as_ref().is_some_and(|image| image.is_at(&place)) {
                format!("its image {}", link.display())
            } else {
                continue;
            };
            return Some(Why {
                what: format!("{name} is in use: process {pid} ({command}) has {opened} open"),
                hint: format!("end it first: ps -fp {pid}"),
            });
        }
    }
    None
}

fn is_number(place: &Path, family: &Family) -> bool {
    let Ok(found) = fs::metadata(place) else { return false };
    let is_here = |found: &str| family.values().any(|number| number == found);
    found.file_type().is_block_device() && is_here(&number_of(found.rdev()))
}

#[cfg(test)]
mod tests;
