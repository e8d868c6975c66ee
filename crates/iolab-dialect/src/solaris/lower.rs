//! Meaning of the lines: a row for each, and the stack that they make.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::emission::{Said, emission};
use super::geometry::{
    Contradiction, Limits, MAXCONTIG, Stripe, check, limits, resolved, shown, stripe, volume_of,
};
use super::line::{LineFault, quoted};
use super::mcf::family;
use super::stack::{Parts, stack_text};
use super::tunable::{BLOCK, Meaning, RELEASES, Unit, amount};
use super::typed::{Fs, Manager, Setting, Typed, Used, VolumeShape};

/// Facts that the lines do not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImportOptions {
    /// Profile of the disks.
    pub device: Option<String>,
    /// Memory, as in `155m`; absent: that of a line `physmem`.
    pub memory: Option<String>,
    /// Release of Solaris; absent: 8.
    pub release: Option<u8>,
    /// File system, if lines are of several.
    pub fs: Option<String>,
    /// Name of the stack.
    pub name: String,
    /// Headline of the stack.
    pub title: String,
}

/// A line, and what it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ImportedLine")]
pub struct Row {
    /// `FILE:LINE`.
    pub place: String,
    /// The line.
    pub typed: String,
    /// Tunable, or what the line is about.
    pub tunable: String,
    /// Value with its unit; empty: none.
    pub value: String,
    /// Effect in the stack, or the reason why there is none.
    pub effect: String,
    /// Tell whether it contradicts the rest, or is doubtful.
    pub is_caution: bool,
}

/// Lines, read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ImportedConfig {
    /// A row for each thing that a line says.
    pub rows: Vec<Row>,
    /// File system.
    pub fs: Option<String>,
    /// Text of the stack file, if it could be written.
    pub stack: Option<String>,
    /// Reason why it could not.
    pub problem: Option<String>,
    /// Advice on that.
    pub remedy: Option<String>,
}

/// Release of Solaris if nobody says another.
const RELEASE: u8 = 8;
/// Release with which ZFS begins.
const ZFS_RELEASE: u8 = 10;

/// Reads everything that is meant.
pub fn lower(typed: &Typed, options: &ImportOptions) -> Result<ImportedConfig, LineFault> {
    let release = options.release.unwrap_or(RELEASE);
    check_devices(typed)?;
    super::mcf::check_mcf(typed)?;
    let fs = file_system(typed, options)?;
    check_releases(typed, fs, (release, options.release.is_none()))?;
    let volume = fs.and_then(|fs| volume_of(typed, fs));
    let shape = volume.and_then(|volume| resolved(typed, &volume.shape, 0));
    let limits = limits(typed, volume.map(|volume| volume.manager));
    let stripe = shape.as_ref().and_then(stripe);
    let contradictions = match fs {
        Some(fs) => check(typed, fs, (limits, stripe))?,
        None => Vec::new(),
    };
    let meaning = Meant { typed, fs, limits, stripe, contradictions };
    let mut rows = meaning.rows();
    rows.extend(typed.volumes.iter().map(|one| {
        let is_below = volume.is_some_and(|below| below.line == one.line);
        (one.line, meaning.row_of_volume(one, is_below, shape.as_ref()))
    }));
    rows.sort_by_key(|(line, _)| *line);
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    let mut imported = ImportedConfig {
        rows,
        fs: fs.map(|fs| fs.name().to_owned()),
        stack: None,
        problem: None,
        remedy: None,
    };
    match meaning.stack(options, release, (shape.as_ref(), &imported.rows)) {
        Ok(text) => imported.stack = Some(text),
        Err((problem, remedy)) => {
            (imported.problem, imported.remedy) = (Some(problem), Some(remedy));
        }
    }
    Ok(imported)
}

/// Refuses commands of one file system on another one's device.
fn check_devices(typed: &Typed) -> Result<(), LineFault> {
    for (index, used) in typed.used.iter().enumerate() {
        let is_other = |other: &&Used| {
            other.fs != used.fs && other.names.iter().any(|name| used.names.contains(name))
        };
        if let Some(other) = typed.used[..index].iter().find(is_other) {
            let what = format!(
                "`{}` is of {}, and {} makes this a {}",
                used.command,
                used.fs.name(),
                typed.line(other.line).place(),
                other.fs.name()
            );
            let remedy = match (used.command, other.fs) {
                ("tunefs", Fs::Vxfs) => "tune VxFS with vxtunefs -o KEY=VALUE MOUNT_POINT",
                _ => "leave it out, or name another device",
            };
            return Err(typed.line(used.line).fault(&used.at, what, remedy));
        }
    }
    Ok(())
}

/// The file system of the stack.
fn file_system(typed: &Typed, options: &ImportOptions) -> Result<Option<Fs>, LineFault> {
    let asked = options.fs.as_deref().and_then(Fs::named);
    let first = typed.used.first();
    let Some(first) = first else { return Ok(asked) };
    if asked.is_some() {
        return Ok(asked);
    }
    match typed.used.iter().find(|used| used.fs != first.fs) {
        None => Ok(Some(first.fs)),
        Some(other) => {
            let what = format!(
                "`{}` is of {}, and {} is of {}: a stack has one file system",
                other.command,
                other.fs.name(),
                typed.line(first.line).place(),
                first.fs.name()
            );
            let remedy = match (other.command, first.fs) {
                ("tunefs", Fs::Vxfs) => "tune VxFS with vxtunefs, or choose one with --fs NAME",
                _ => "choose one with --fs NAME, or import their files one by one",
            };
            Err(typed.line(other.line).fault(&other.at, what, remedy))
        }
    }
}

/// Refuses tunables of another release.
fn check_releases(
    typed: &Typed,
    fs: Option<Fs>,
    (release, is_usual): (u8, bool),
) -> Result<(), LineFault> {
    for set in &typed.settings {
        let (first, last) = set.tunable.releases;
        if !(first..=last).contains(&release) {
            let of = if first == last { format!("{first}") } else { format!("{first} to {last}") };
            let what = format!(
                "{} is a tunable of Solaris {of} ({}), and this is Solaris {release}",
                set.tunable.plain(),
                set.tunable.manual
            );
            let remedy = format!("leave it out, or say --release {first}");
            return Err(typed.fault(set, what, remedy));
        }
    }
    let zfs = typed.used.iter().find(|used| used.fs == Fs::Zfs && fs == Some(Fs::Zfs));
    match zfs.filter(|_| release < ZFS_RELEASE) {
        Some(used) => {
            let usual = if is_usual { ", as nothing else was said" } else { "" };
            let what =
                format!("ZFS begins with Solaris {ZFS_RELEASE}, and this is {release}{usual}");
            let remedy = format!("say --release {ZFS_RELEASE}");
            Err(typed.line(used.line).fault(&used.at, what, remedy))
        }
        None => Ok(()),
    }
}

/// Everything that decides about a row.
struct Meant<'a> {
    typed: &'a Typed,
    fs: Option<Fs>,
    limits: Limits,
    stripe: Option<Stripe>,
    contradictions: Vec<Contradiction>,
}

/// Effect of the disks of a pool, and whether that is doubtful.
fn of_pool(shape: &VolumeShape) -> (String, bool) {
    match shape {
        VolumeShape::Plain { .. } => ("one disk".into(), false),
        VolumeShape::Copies { .. } | VolumeShape::Raidz { groups: 1, .. } => {
            ("volume".into(), false)
        }
        _ => ("volume: a stripe in place of what ZFS spreads block by block".into(), false),
    }
}

/// Settings of this key replace each other.
fn key(set: &Setting) -> (Option<Fs>, String) {
    let name = match set.tunable.meaning {
        Meaning::Maxcontig => "maxcontig",
        Meaning::Make(option) => option,
        Meaning::Mount if set.fs == Some(Fs::Vxfs) && set.tunable.name.ends_with("log") => "log",
        Meaning::Mount => set.tunable.name.trim_start_matches("no"),
        _ => set.tunable.plain(),
    };
    (set.fs, name.to_owned())
}

impl Meant<'_> {
    /// A row for each setting and note, with the index of its line.
    fn rows(&self) -> Vec<(usize, Row)> {
        let mut rows: Vec<(usize, Row)> = self
            .typed
            .settings
            .iter()
            .enumerate()
            .map(|(at, set)| (set.line, self.row(at, set)))
            .collect();
        rows.extend(self.typed.notes.iter().map(|note| {
            let line = self.typed.line(note.line);
            let row = Row {
                place: line.place(),
                typed: quoted(&line.text),
                tunable: quoted(&note.about),
                value: quoted(&note.value),
                effect: note.effect.clone(),
                is_caution: note.is_caution,
            };
            (note.line, row)
        }));
        rows
    }

    fn row(&self, at: usize, set: &Setting) -> Row {
        let line = self.typed.line(set.line);
        let (mut effect, mut is_caution) = self.effect(at, set);
        let found = self.contradictions.iter();
        for other in found.filter(|other| (other.line, other.at) == (set.line, set.at.start)) {
            effect = format!("{effect}; {}", other.text);
            is_caution = true;
        }
        if !set.remark.is_empty() {
            effect = format!("{effect}; {}", set.remark);
        }
        let value = match set.tunable.unit {
            Unit::Flag => String::new(),
            Unit::Word(_) | Unit::Text => set.typed.clone(),
            unit => unit.shown(set.value),
        };
        Row {
            place: line.place(),
            typed: quoted(&line.text),
            tunable: format!("{} {}", set.command, set.tunable.plain()).trim().to_owned(),
            value: quoted(&value),
            effect,
            is_caution: is_caution || set.is_caution,
        }
    }

    /// Effect of a setting, and whether that is doubtful.
    fn effect(&self, at: usize, set: &Setting) -> (String, bool) {
        if let (Some(fs), Some(own)) = (self.fs, set.fs)
            && fs != own
        {
            return (format!("none: it is of {}, the stack has {}", own.name(), fs.name()), false);
        }
        let later = self.typed.settings[at + 1..].iter().find(|other| key(other) == key(set));
        if let Some(later) = later {
            return (format!("replaced by {}", self.typed.line(later.line).place()), false);
        }
        let (mut text, mut is_caution) = self.said(set);
        if let Some(problem) = self.doubt(at, set) {
            (text, is_caution) = (format!("{text}; {problem}"), true);
        }
        (text, is_caution)
    }

    fn said(&self, set: &Setting) -> (String, bool) {
        let limit = |name: &str| format!("{name}: the queue cuts what is longer");
        match set.tunable.meaning {
            Meaning::Maxphys if self.limits.manager.is_some() => {
                (limit("volume.parameters.max_transfer_bytes"), false)
            }
            Meaning::Maxphys => (limit("queue.max_sectors_kb"), false),
            Meaning::MdMaxphys | Meaning::VolMaxio => match self.manager() {
                Some(manager)
                    if (manager == Manager::Md) == (set.tunable.meaning == Meaning::MdMaxphys) =>
                {
                    (limit("queue.max_sectors_kb"), false)
                }
                _ => ("none: no line makes a volume of that manager".into(), true),
            },
            Meaning::Throttle if self.limits.manager.is_some() => {
                ("none: the members of a volume have their own depth".into(), false)
            }
            Meaning::Throttle => ("queue.queue_depth".into(), false),
            Meaning::Physmem => ("files.memory".into(), false),
            Meaning::Nothing(why) => (format!("none: {why}"), false),
            _ => self.of_file_system(set),
        }
    }

    fn of_file_system(&self, set: &Setting) -> (String, bool) {
        let Some(fs) = self.fs else { return ("checked: no line makes one".into(), false) };
        match (emission(fs).say)(set) {
            Said::Make(word) => (format!("files.mkfs_options {word}"), false),
            Said::Mount(word) => (format!("files.mount_options {word}"), false),
            Said::System(name, value) => (format!("files.system {name} = {value}"), false),
            Said::Nothing(why) => (format!("none: {why}"), false),
            Said::Missing(why) => (format!("none: {why}"), true),
        }
    }

    fn manager(&self) -> Option<Manager> {
        let fs = self.fs?;
        volume_of(self.typed, fs).map(|volume| volume.manager)
    }

    /// Something that the kernel or the manual does not mean so.
    fn doubt(&self, at: usize, set: &Setting) -> Option<String> {
        let value = |name: &str| self.typed.last_of_name(name).map(|set| set.value);
        match (set.tunable.plain(), set.tunable.meaning) {
            ("ufs_HW" | "ufs_LW", _) => {
                let (high, low) = (value("ufs_HW")?, value("ufs_LW")?);
                (high <= low).then(|| {
                    "ufs_HW is not above ufs_LW: the kernel sets both back to its defaults".into()
                })
            }
            ("-a" | "-C" | "maxcontig", Meaning::Maxcontig) if set.command == "tunefs" => {
                let before = self.typed.settings[..at].iter().rev();
                let before = before.filter(|other| other.tunable.meaning == Meaning::Maxcontig);
                let blocks = before.map(|other| other.value).next().unwrap_or(MAXCONTIG);
                (blocks == set.value).then(|| format!("it changes nothing: it was {blocks} before"))
            }
            ("recordsize", _) => {
                (!set.value.is_power_of_two()).then(|| "no power of two: zfs refuses it".into())
            }
            _ => None,
        }
    }

    fn row_of_volume(
        &self,
        volume: &super::typed::Volume,
        is_below: bool,
        resolved: Option<&VolumeShape>,
    ) -> Row {
        let mut is_caution = false;
        let effect = if !is_below {
            "a part, or not below the file system".to_owned()
        } else if let Some(shape) = resolved {
            let mut text = "volume".to_owned();
            if let VolumeShape::Plain { disks: 2.. } = shape {
                is_caution = true;
                text = "one disk: disks one after the other are not simulated".into();
            }
            if volume.manager == Manager::Pool {
                (text, is_caution) = of_pool(shape);
                return self.volume_row(volume, (text, is_caution));
            }
            if let Some(stripe) = self.stripe {
                text = format!("volume; a stripe of data is {}", stripe.shown());
                let cluster = MAXCONTIG * BLOCK;
                let has_none = self.typed.last_of(Meaning::Maxcontig).is_none();
                if self.fs == Some(Fs::Ufs) && has_none && stripe.bytes() != cluster {
                    is_caution = true;
                    let blocks = stripe.bytes() / BLOCK;
                    let _ = write!(
                        text,
                        "; no line sets the cluster, and the default of {} is not that: \
                         newfs -C {blocks} would be",
                        amount(cluster)
                    );
                }
            }
            text
        } else {
            is_caution = true;
            "its parts are made of each other".into()
        };
        self.volume_row(volume, (effect, is_caution))
    }

    fn volume_row(
        &self,
        volume: &super::typed::Volume,
        (effect, is_caution): (String, bool),
    ) -> Row {
        let line = self.typed.line(volume.line);
        let kind = if volume.manager == Manager::Pool { "pool" } else { "volume" };
        Row {
            place: line.place(),
            typed: quoted(&line.text),
            tunable: format!("{kind} {}", quoted(&volume.name)),
            value: shown(&volume.shape),
            effect,
            is_caution,
        }
    }

    /// Text of the stack file; else why there is none, and what to do.
    fn stack(
        &self,
        options: &ImportOptions,
        release: u8,
        (shape, rows): (Option<&VolumeShape>, &[Row]),
    ) -> Result<String, (String, String)> {
        let Some(fs) = self.fs else {
            let remedy = "add the line that makes or mounts it, or --fs ufs";
            return Err(("no line is of a file system".into(), remedy.into()));
        };
        let say = emission(fs).say;
        if !(RELEASES.0..=RELEASES.1).contains(&release) {
            let problem = format!("Solaris {release} is not simulated");
            return Err((problem, format!("say --release {} to {}", RELEASES.0, RELEASES.1)));
        }
        let Some(device) = &options.device else {
            let problem = "no line says which disks these are".to_owned();
            let remedy = "add --device PROFILE, as in --device scsi7200-1995; `iolab sim profiles` \
                          lists them";
            return Err((problem, remedy.to_owned()));
        };
        let settings = self.typed.settings.iter().enumerate();
        let counts = settings.filter(|(at, set)| {
            set.fs == Some(fs)
                && !self.typed.settings[at + 1..].iter().any(|other| key(other) == key(set))
        });
        let mut said: Vec<Said> = counts.map(|(_, set)| say(set)).collect();
        let family = (fs == Fs::Qfs).then(|| family(self.typed));
        if family.is_some_and(|family| family.has_meta && family.is_dual) {
            said.push(Said::Make("-t md".into()));
        }
        let depth = self.typed.last_of(Meaning::Throttle).map(|set| set.value);
        let memory = self.typed.last_of(Meaning::Physmem).map(|set| set.value * BLOCK);
        Ok(stack_text(&Parts {
            options,
            fs,
            release,
            device,
            limits: self.limits,
            shape: shape.unwrap_or(&VolumeShape::Plain { disks: 1 }),
            depth,
            memory,
            said: &said,
            meta: family.filter(|family| family.has_meta),
            has_log: fs == Fs::Zfs && !self.typed.pool_logs.is_empty(),
            rows,
        }))
    }
}
