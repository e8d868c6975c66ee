//! The volume below the file system, its stripe, and whether clusters fit to it.

use std::fmt::Write as _;

use super::line::LineFault;
use super::tunable::{BLOCK, Meaning, SECTOR, Unit, amount};
use super::typed::{Fs, Manager, Setting, Typed, Volume, VolumeShape};

/// Longest transfer of a driver without `set maxphys` (SPARC). [doc]
pub const MAXPHYS: u64 = 128 << 10;
/// Longest transfer of `VxVM` without `set vxio:vol_maxio`: 512 units of 512 bytes. [doc]
const VOL_MAXIO: u64 = 512 * SECTOR;
/// Blocks of a cluster without newfs -C: maxphys of SPARC. [doc]
pub const MAXCONTIG: u64 = 16;
/// Mirrors of mirrors of ... at most.
const NESTED_MAX: u32 = 8;

/// Data of one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Disks with data.
    pub disks: u32,
    /// Bytes on each.
    pub unit: u64,
}

impl Stripe {
    /// Bytes of one stripe of data.
    pub fn bytes(self) -> u64 {
        u64::from(self.disks) * self.unit
    }

    /// For people: `7 x 128 KiB = 896 KiB`.
    pub fn shown(self) -> String {
        format!("{} x {} = {}", self.disks, amount(self.unit), amount(self.bytes()))
    }
}

/// A shape with all names resolved.
pub fn resolved(typed: &Typed, shape: &VolumeShape, depth: u32) -> Option<VolumeShape> {
    let find = |name: &String| {
        let found = typed.volumes.iter().rev().find(|volume| volume.name == *name);
        match found {
            Some(volume) if depth < NESTED_MAX => resolved(typed, &volume.shape, depth + 1),
            Some(_) => None,
            None => Some(VolumeShape::Plain { disks: 1 }),
        }
    };
    match shape {
        VolumeShape::Mirror { of } => {
            let inside = find(of.first()?)?;
            let copies = u32::try_from(of.len()).unwrap_or(u32::MAX);
            Some(match copies {
                1 => inside,
                _ => VolumeShape::Copies { copies, inside: Box::new(inside) },
            })
        }
        VolumeShape::Trans { data } => find(data),
        other => Some(other.clone()),
    }
}

/// Stripe of data of a resolved shape.
pub fn stripe(shape: &VolumeShape) -> Option<Stripe> {
    match *shape {
        VolumeShape::Stripe { columns, unit }
        | VolumeShape::StripedMirrors { columns, unit, .. } => {
            Some(Stripe { disks: columns, unit })
        }
        VolumeShape::Raid5 { columns, unit } => Some(Stripe { disks: columns - 1, unit }),
        VolumeShape::Copies { ref inside, .. } => stripe(inside),
        _ => None,
    }
}

/// A shape for people.
pub fn shown(shape: &VolumeShape) -> String {
    match shape {
        VolumeShape::Plain { disks: 1 } => "one disk".into(),
        VolumeShape::Plain { disks } => format!("{disks} disks one after the other"),
        VolumeShape::Stripe { columns, unit } => format!("RAID 0 of {columns} x {}", amount(*unit)),
        VolumeShape::Raid5 { columns, unit } => format!("RAID 5 of {columns} x {}", amount(*unit)),
        VolumeShape::Mirror { of } => format!("mirror of {}", of.join(", ")),
        VolumeShape::Copies { copies, inside } => format!("{copies} copies of {}", shown(inside)),
        VolumeShape::StripedMirrors { columns, unit, copies } => {
            format!("RAID 0 of {columns} x {} over mirrors of {copies}", amount(*unit))
        }
        VolumeShape::Raidz { groups: 1, disks, parities, .. } => {
            format!("raidz{parities} of {disks}")
        }
        VolumeShape::Raidz { groups, disks, parities, .. } => {
            format!("{groups} raidz{parities} of {disks}")
        }
        VolumeShape::Trans { data } => format!("{data} with a log"),
    }
}

/// The volume below the file system: that which its lines name, or the last one that is no part of
/// another.
pub fn volume_of(typed: &Typed, fs: Fs) -> Option<&Volume> {
    let names = || typed.used.iter().filter(|used| used.fs == fs).flat_map(|used| &used.names);
    let is_named = |volume: &&Volume| names().any(|name| *name == volume.name);
    let is_part = |volume: &&Volume| {
        typed.volumes.iter().any(|other| match &other.shape {
            VolumeShape::Mirror { of } => of.contains(&volume.name),
            VolumeShape::Trans { data } => *data == volume.name,
            _ => false,
        })
    };
    let mut all = typed.volumes.iter().rev();
    all.clone().find(is_named).or_else(|| all.find(|volume| !is_part(volume)))
}

/// Longest transfers on the way to the disks.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of the driver.
    pub maxphys: u64,
    /// Of the manager of volumes; none: there is no volume.
    pub manager: Option<u64>,
}

/// The limits that the lines set.
pub fn limits(typed: &Typed, manager: Option<Manager>) -> Limits {
    let set = |meaning: Meaning, unit: u64| typed.last_of(meaning).map(|set| set.value * unit);
    let maxphys = set(Meaning::Maxphys, 1).unwrap_or(MAXPHYS);
    let manager = manager.map(|manager| match manager {
        Manager::Md => set(Meaning::MdMaxphys, 1).unwrap_or(maxphys),
        Manager::Vx => set(Meaning::VolMaxio, SECTOR).unwrap_or(VOL_MAXIO),
        Manager::Pool => maxphys,
    });
    Limits { maxphys, manager }
}

/// Something that travels together.
struct Cluster<'a> {
    /// Setting that decides it.
    set: &'a Setting,
    /// Bytes of one request.
    request: u64,
    /// Bytes that are to be one stripe.
    whole: u64,
    /// Value that would be a stripe, in words.
    better: fn(Stripe) -> String,
}

fn blocks(stripe: Stripe) -> String {
    format!("{} blocks would be", stripe.bytes() / BLOCK)
}

fn kib(stripe: Stripe) -> String {
    format!("{} KiB would be", stripe.bytes() >> 10)
}

fn bytes(stripe: Stripe) -> String {
    format!("{} bytes would be", stripe.bytes())
}

fn streams(stripe: Stripe) -> String {
    format!("{} with nstream {} would be", amount(stripe.unit), stripe.disks)
}

/// Setting of one request, of how many make a cluster, and the value that would be a stripe.
type Part<'a> = (Option<&'a Setting>, Option<&'a Setting>, fn(Stripe) -> String);

fn clusters(typed: &Typed, fs: Fs) -> Vec<Cluster<'_>> {
    fn part<'a>(
        set: Option<&'a Setting>,
        times: Option<&'a Setting>,
        better: fn(Stripe) -> String,
    ) -> Part<'a> {
        (set, times, better)
    }
    let own = |name: &str| typed.last(Some(fs), name);
    let rows: Vec<Part<'_>> = match fs {
        Fs::Ufs => vec![part(typed.last_of(Meaning::Maxcontig), None, blocks)],
        Fs::Vxfs => vec![
            part(own("read_pref_io"), own("read_nstream"), streams),
            part(own("write_pref_io"), own("write_nstream"), streams),
            part(own("align"), None, bytes),
        ],
        Fs::Qfs => vec![
            part(own("maxcontig"), None, blocks),
            part(own("-a"), None, kib),
            part(own("writebehind"), None, kib),
        ],
        Fs::Zfs => Vec::new(),
    };
    rows.into_iter()
        .filter_map(|(set, times, better)| {
            let set = set?;
            let request = set.value.saturating_mul(set.tunable.unit.bytes().unwrap_or(1));
            let whole = request.saturating_mul(times.map_or(1, |times| times.value));
            Some(Cluster { set, request, whole, better })
        })
        .collect()
}

/// A contradiction between a setting and the stack: line and characters of the setting, and what is
/// to be said.
pub struct Contradiction {
    /// Index of the line.
    pub line: usize,
    /// First character of the setting in it.
    pub at: usize,
    /// Sentence.
    pub text: String,
}

/// Refuses a cluster that is cut on its way, and tells of one that is no stripe.
pub fn check(
    typed: &Typed,
    fs: Fs,
    (limits, stripe): (Limits, Option<Stripe>),
) -> Result<Vec<Contradiction>, LineFault> {
    let mut found = Vec::new();
    for Cluster { set, request, whole, better } in clusters(typed, fs) {
        // Space is given in units of these two; they say nothing of requests.
        let is_request = set.tunable.name != "align" && set.command != "sammkfs";
        let least = limits.manager.map_or(limits.maxphys, |manager| manager.min(limits.maxphys));
        if is_request && request > least {
            return Err(cut(typed, set, (request, limits)));
        }
        let Some(stripe) = stripe.filter(|stripe| stripe.bytes() != whole) else { continue };
        let mut text = format!("{} is not the stripe of {}", amount(whole), stripe.shown());
        let _ = write!(text, ": {}", better(stripe));
        found.push(Contradiction { line: set.line, at: set.at.start, text });
    }
    Ok(found)
}

/// A cluster longer than something on its way lets pass.
fn cut(typed: &Typed, set: &Setting, (request, limits): (u64, Limits)) -> LineFault {
    let (name, limit, remedy) = match limits.manager {
        Some(limit) if request > limit && limit < limits.maxphys => (
            "the volume manager's limit",
            limit,
            format!(
                "add set md:md_maxphys={request}, or for VxVM set vxio:vol_maxio={} (512 bytes)",
                request.div_ceil(SECTOR)
            ),
        ),
        _ => ("maxphys", limits.maxphys, format!("add set maxphys={request} to /etc/system")),
    };
    let what = format!(
        "{} {} is above {name} of {}: each cluster would be cut; the manual has {}",
        set.tunable.name,
        Unit::Bytes.shown(request),
        amount(limit),
        set.tunable.limits(),
    );
    typed.fault(set, what, format!("{remedy}, or write a smaller cluster"))
}
