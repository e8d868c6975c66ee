//! The text of a stack file that the lines make.

use std::fmt::Write as _;

use super::emission::Said;
use super::geometry::Limits;
use super::lower::{ImportOptions, Row};
use super::mcf::Family;
use super::tunable::SECTOR;
use super::typed::{Fs, VolumeShape};
use super::zpool::ALIQUOT;

/// Everything that stands in it.
pub struct Parts<'a> {
    /// Facts that the lines do not tell.
    pub options: &'a ImportOptions,
    /// File system.
    pub fs: Fs,
    /// Release of Solaris.
    pub release: u8,
    /// Profile of a disk.
    pub device: &'a str,
    /// Longest transfers.
    pub limits: Limits,
    /// Volume below the file system.
    pub shape: &'a VolumeShape,
    /// Commands given to a disk at once.
    pub depth: Option<u64>,
    /// Memory of the machine, in bytes.
    pub memory: Option<u64>,
    /// Tunables of the file system.
    pub said: &'a [Said],
    /// Devices of a QFS whose metadata have one of their own.
    pub meta: Option<Family>,
    /// Tell whether the intent log of a pool has a device of its own.
    pub has_log: bool,
    /// The table.
    pub rows: &'a [Row],
}

/// Memory if neither a line nor an option says how much. [assume]
const MEMORY: &str = "128m";

/// The same of a machine with ZFS. [assume]
const ZFS_MEMORY: &str = "1g";

/// The ZFS of Solaris 10 lives in the simulator as the first one of Linux, which was made from it.
const ZFS_KERNEL: &str = "\
kernel = \"2.6.32\"  # ZFS on Linux 0.6.0, with the throttle and the queue of Solaris 10
";

/// Longest request that a queue of the simulator takes, KiB.
const QUEUE_KIB_MAX: u64 = 1 << 20;

/// Cost of software on a SPARC of the time.
const CPU: &str = "\
# A SPARC of the time. Assumptions: 20 us for a call, 10 us for a page, 250 MB/s of copying.
[cpu]
call_ns = 20000
page_ns = 10000
copy_ns_per_kib = 3900
submit_ns = 60000
complete_ns = 60000
";

/// A string of TOML.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            _ if letter.is_control() => quoted.push(' '),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn comment(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The whole file.
pub fn stack_text(parts: &Parts<'_>) -> String {
    let mut text = String::from("# Written by `iolab sim import-config` from these lines:\n");
    for Row { place, typed, tunable, value, effect, is_caution } in parts.rows {
        let mark = if *is_caution { " (!)" } else { "" };
        let about = format!("{tunable} {value}");
        let _ = writeln!(text, "# {}", comment(&format!("{place}: {typed}")));
        let _ = writeln!(text, "#     {}", comment(&format!("{}: {effect}{mark}", about.trim())));
    }
    let ImportOptions { name, title, .. } = parts.options;
    let _ = writeln!(text, "name = {}\ntitle = {}\n", string(name), string(title));
    let Limits { maxphys, manager } = parts.limits;
    if let Some(Family { is_said, .. }) = parts.meta {
        let remark = if is_said { "" } else { "  # assumed: no row of mcf says it" };
        let kib = (maxphys >> 10).min(QUEUE_KIB_MAX);
        let _ = writeln!(
            text,
            "meta_device.device.profile = {}{remark}\n\
             meta_device.queue = {{ scheduler = \"noop\", nomerges = 2, \
             max_sectors_kb = {kib} }}\n",
            string(parts.device)
        );
    }
    if parts.has_log {
        let kib = (maxphys >> 10).min(QUEUE_KIB_MAX);
        let _ = writeln!(
            text,
            "log_device.device.profile = {}\n\
             log_device.queue = {{ scheduler = \"noop\", nomerges = 2, \
             max_sectors_kb = {kib} }}\n",
            string(parts.device)
        );
    }
    let volume = volume_text(parts, "");
    if volume.is_empty() {
        let _ = writeln!(text, "[device]\nprofile = {}\n", string(parts.device));
    }
    let limit = if volume.is_empty() { maxphys } else { manager.unwrap_or(maxphys) };
    let kib = (limit >> 10).min(QUEUE_KIB_MAX);
    let _ = writeln!(
        text,
        "# The driver cuts at maxphys and sorts nothing; the disk has a tagged queue.\n\
         [queue]\nscheduler = \"noop\"\nnomerges = 2\nmax_sectors_kb = {kib}"
    );
    if let Some(depth) = parts.depth.filter(|_| volume.is_empty()) {
        let _ = writeln!(text, "queue_depth = {depth}");
    }
    if !volume.is_empty() {
        let _ = write!(text, "\n[volume]\n{volume}");
    }
    let _ = write!(text, "\n{CPU}\n{}", files_text(parts));
    text
}

/// Keys of the volume, each with `prefix`; empty for one disk.
fn volume_text(parts: &Parts<'_>, prefix: &str) -> String {
    shape_text(parts, parts.shape, prefix)
}

fn shape_text(parts: &Parts<'_>, shape: &VolumeShape, prefix: &str) -> String {
    let maxphys = parts.limits.maxphys / SECTOR * SECTOR;
    let striped = |layout: &str, members: u32, unit: u64, inside: Option<&VolumeShape>| {
        let mut text = format!(
            "{prefix}members = {members}\n\
             {prefix}parameters = {{ layout = \"{layout}\", unit_bytes = {unit}, \
             max_transfer_bytes = {maxphys} }}\n"
        );
        text.push_str(&member_text(parts, inside, prefix));
        text
    };
    match shape {
        VolumeShape::Stripe { columns, unit } => striped("raid0", *columns, *unit, None),
        VolumeShape::Raid5 { columns, unit } => striped("raid5", *columns, *unit, None),
        VolumeShape::Copies { copies, inside } => {
            let mut text = format!(
                "{prefix}members = {copies}\n{prefix}parameters = {{ layout = \"raid1\" }}\n"
            );
            text.push_str(&member_text(parts, Some(inside), prefix));
            text
        }
        VolumeShape::Raidz { groups: groups @ 2.., disks, parities, sector } => {
            let (disks, parities, sector) = (*disks, *parities, *sector);
            let group = VolumeShape::Raidz { groups: 1, disks, parities, sector };
            striped("raid0", *groups, ALIQUOT, Some(&group))
        }
        VolumeShape::Raidz { disks, parities, sector, .. } => {
            let mut text = format!(
                "{prefix}members = {disks}\n{prefix}parameters = {{ layout = \"raidz{parities}\", \
                 unit_bytes = {sector}, max_transfer_bytes = {maxphys} }}\n"
            );
            text.push_str(&member_text(parts, None, prefix));
            text
        }
        VolumeShape::StripedMirrors { columns, unit, copies } => {
            let mirror = VolumeShape::Copies {
                copies: *copies,
                inside: Box::new(VolumeShape::Plain { disks: 1 }),
            };
            striped("raid0", *columns, *unit, Some(&mirror))
        }
        VolumeShape::Plain { .. } | VolumeShape::Mirror { .. } | VolumeShape::Trans { .. } => {
            String::new()
        }
    }
}

fn member_text(parts: &Parts<'_>, inside: Option<&VolumeShape>, prefix: &str) -> String {
    let text = inside.map_or_else(String::new, |shape| {
        shape_text(parts, shape, &format!("{prefix}member.volume."))
    });
    if text.is_empty() {
        return format!("{prefix}member.device.profile = {}\n", string(parts.device));
    }
    text
}

fn files_text(parts: &Parts<'_>) -> String {
    let kernel = match parts.fs {
        Fs::Zfs => ZFS_KERNEL.to_owned(),
        _ => format!("kernel = \"solaris-{}\"\n", parts.release),
    };
    let mut text = format!("[files]\nfs = {}\n{kernel}", string(parts.fs.name()));
    let (memory, remark) = match (&parts.options.memory, parts.memory) {
        (Some(memory), _) => (memory.clone(), ""),
        (None, Some(bytes)) => (format!("{}k", bytes >> 10), ""),
        (None, None) => {
            let assumed = if parts.fs == Fs::Zfs { ZFS_MEMORY } else { MEMORY };
            (assumed.to_owned(), "  # assumed: no line says it")
        }
    };
    let _ = writeln!(text, "memory = {}{remark}", string(&memory));
    let (mut make, mut mount, mut system) = (Vec::new(), Vec::new(), Vec::new());
    for said in parts.said {
        match said {
            Said::Make(word) => make.push(string(word)),
            Said::Mount(word) => mount.push(string(word)),
            Said::System(name, value) => system.push(format!("{name} = {value}")),
            Said::Nothing(_) | Said::Missing(_) => {}
        }
    }
    for (name, words) in [("mkfs_options", make), ("mount_options", mount)] {
        if !words.is_empty() {
            let _ = writeln!(text, "{name} = [{}]", words.join(", "));
        }
    }
    if !system.is_empty() {
        let _ = writeln!(text, "system = {{ {} }}", system.join(", "));
    }
    text
}
