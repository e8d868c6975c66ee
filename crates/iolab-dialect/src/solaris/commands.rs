//! The commands that are understood, one row each, and the options they share.

use super::line::{LineFault, LineWord};
use super::tables::{
    MKFS_UFS, MKFS_VXFS, MOUNT_ALL, MOUNT_SAMFS, MOUNT_UFS, MOUNT_VXFS, NEWFS, SAMMKFS, TUNEFS,
    VXTUNEFS, ZFS,
};
use super::tunable::{Numbers, Tunable, Unit, value_of};
use super::typed::{Fs, Setting, Typed};
use super::volumes::{metainit, metattach, vxassist};
use super::zpool::zpool;

/// A command in work: its line, its name, its words behind it.
pub struct Given<'a> {
    /// Index of its line.
    pub line: usize,
    /// Its name and place.
    pub command: &'a LineWord,
    /// Words behind it.
    pub words: &'a [LineWord],
}

type Read = fn(&mut Typed, &Given<'_>) -> Result<(), LineFault>;

/// Effect of a command on a stack.
enum Does {
    /// Its words are read.
    Reads(Read),
    /// Nothing; why.
    Nothing(&'static str),
}

struct Command {
    names: &'static [&'static str],
    does: Does,
}

const RUNS: &str = "makes no stack: run it with iolab mkfile --on sim:STACK --iostat 5";
const LOOKS: &str = "looks on: iolab mkfile --on sim:STACK --iostat '-xc 5', or iolab iostat";
const SHELL: &str = "sets nothing that a stack has";

/// Every command.
const COMMANDS: &[Command] = &[
    Command { names: &["newfs"], does: Does::Reads(newfs) },
    Command { names: &["tunefs", "tuneufs"], does: Does::Reads(tunefs) },
    Command { names: &["mkfs"], does: Does::Reads(mkfs) },
    Command { names: &["mount"], does: Does::Reads(mount) },
    Command { names: &["vxtunefs"], does: Does::Reads(vxtunefs) },
    Command { names: &["sammkfs"], does: Does::Reads(sammkfs) },
    Command { names: &["metainit"], does: Does::Reads(metainit) },
    Command { names: &["metattach"], does: Does::Reads(metattach) },
    Command { names: &["vxassist"], does: Does::Reads(vxassist) },
    Command { names: &["zpool"], does: Does::Reads(zpool) },
    Command { names: &["zfs"], does: Does::Reads(zfs) },
    Command { names: &["adb"], does: Does::Nothing("the lines below it are adb's") },
    Command { names: &["mkfile", "time", "ptime", "dd", "cp"], does: Does::Nothing(RUNS) },
    Command { names: &["iostat", "vmstat", "mpstat", "sar"], does: Does::Nothing(LOOKS) },
    Command {
        names: &["umount", "fsck", "mkdir", "cd", "ls", "vi", "cat", "sync", "init", "reboot"],
        does: Does::Nothing(SHELL),
    },
    Command { names: &["metastat", "vxprint", "df", "fstyp"], does: Does::Nothing(SHELL) },
    Command { names: &["metadb", "metaclear", "vxdisk", "vxdg"], does: Does::Nothing(SHELL) },
    Command { names: &["samd", "swap", "prtconf", "prtvtoc"], does: Does::Nothing(SHELL) },
];

/// Names of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|command| command.names.iter().copied())
}

/// Tell whether a word is a command.
pub fn is_command(word: &LineWord) -> bool {
    names().any(|name| name == word.base())
}

/// Reads a command.
pub fn read(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let name = given.command.base();
    let Some(command) = COMMANDS.iter().find(|command| command.names.contains(&name)) else {
        return Ok(());
    };
    match command.does {
        Does::Reads(read) => read(typed, given),
        Does::Nothing(why) => {
            typed.note(given.line, name, why);
            Ok(())
        }
    }
}

/// A place where tunables are typed.
pub struct Of {
    /// Command.
    pub command: &'static str,
    /// File system.
    pub fs: Option<Fs>,
    /// Its tunables.
    pub tables: &'static [&'static [Tunable]],
}

impl Of {
    fn find(&self, name: &str) -> Option<&'static Tunable> {
        self.tables.iter().flat_map(|table| table.iter()).find(|row| row.name == name)
    }

    fn known(&self) -> String {
        let names = self.tables.iter().flat_map(|table| table.iter()).map(|row| row.name);
        names.collect::<Vec<_>>().join(", ")
    }

    /// Notes a tunable with its value.
    fn set(
        &self,
        typed: &mut Typed,
        line: usize,
        (tunable, name, word): (&'static Tunable, &LineWord, Option<&LineWord>),
    ) -> Result<(), LineFault> {
        let value = match word {
            Some(word) => value_of(tunable, typed.line(line), word, Numbers::Decimal)?,
            None => 0,
        };
        let end = word.map_or(name.at.end, |word| word.at.end);
        typed.settings.push(Setting {
            line,
            at: name.at.start..end.max(name.at.end),
            command: self.command,
            tunable,
            value,
            typed: word.map_or_else(String::new, |word| word.text.clone()),
            fs: self.fs,
            remark: String::new(),
            is_caution: false,
        });
        Ok(())
    }

    /// `key=value,key` of one word.
    pub fn keys(&self, typed: &mut Typed, line: usize, list: &LineWord) -> Result<(), LineFault> {
        for part in list.parts() {
            let (key, value) = part.key_value();
            let Some(tunable) = self.find(&key.text) else {
                let known = self.tables.iter().flat_map(|table| table.iter()).map(|row| row.name);
                let hint = iolab_model::nearest::did_you_mean(&key.text, known);
                let what = format!("{} knows no `{}`{hint}", self.command, key.text);
                return Err(typed.line(line).fault(
                    &key.at,
                    what,
                    format!("known: {}", self.known()),
                ));
            };
            let value = value.filter(|value| !value.text.is_empty());
            match (tunable.unit, &value) {
                (Unit::Flag, Some(value)) => {
                    let what = format!("{} takes no value ({})", tunable.name, tunable.manual);
                    return Err(typed.line(line).fault(&value.at, what, "leave it out"));
                }
                (Unit::Flag, None) | (_, Some(_)) => {}
                (_, None) => {
                    let what = format!("{} needs a value: {}", tunable.name, tunable.limits());
                    let remedy = format!("write {}=VALUE", tunable.name);
                    return Err(typed.line(line).fault(&key.at, what, remedy));
                }
            }
            self.set(typed, line, (tunable, &key, value.as_ref()))?;
        }
        Ok(())
    }

    /// Options of one letter with their values; answers the other words.
    pub fn letters(
        &self,
        typed: &mut Typed,
        given: &Given<'_>,
    ) -> Result<Vec<LineWord>, LineFault> {
        let mut rest = Vec::new();
        let mut words = given.words.iter();
        while let Some(word) = words.next() {
            let Some(letters) = word.text.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                rest.push(word.clone());
                continue;
            };
            let letter: String = letters.chars().take(1).collect();
            let name =
                LineWord { text: format!("-{letter}"), at: word.at.start..word.at.start + 2 };
            let Some(tunable) = self.find(&name.text) else {
                let what = format!("{} has no option {}", self.command, name.text);
                let remedy = format!("known: {}", self.known());
                return Err(typed.line(given.line).fault(&word.at, what, remedy));
            };
            if tunable.unit == Unit::Flag {
                self.set(typed, given.line, (tunable, &name, None))?;
                continue;
            }
            let attached = &letters[letter.len()..];
            let value = if attached.is_empty() {
                words.next().cloned()
            } else {
                Some(LineWord { text: attached.to_owned(), at: name.at.end..word.at.end })
            };
            let Some(value) = value else {
                let what = format!("{} {} needs a value", self.command, name.text);
                let remedy = tunable.limits();
                return Err(typed.line(given.line).fault(&word.at, what, remedy));
            };
            self.set(typed, given.line, (tunable, &name, Some(&value)))?;
        }
        Ok(rest)
    }
}

const OF_NEWFS: Of = Of { command: "newfs", fs: Some(Fs::Ufs), tables: &[NEWFS] };
const OF_TUNEFS: Of = Of { command: "tunefs", fs: Some(Fs::Ufs), tables: &[TUNEFS] };
const OF_SAMMKFS: Of = Of { command: "sammkfs", fs: Some(Fs::Qfs), tables: &[SAMMKFS] };
/// Keys of vxtunefs.
pub const OF_VXTUNEFS: Of = Of { command: "vxtunefs", fs: Some(Fs::Vxfs), tables: &[VXTUNEFS] };
/// Properties of ZFS.
pub const OF_ZFS: Of = Of { command: "zfs", fs: Some(Fs::Zfs), tables: &[ZFS] };
const OF_MKFS: &[(&str, Of)] = &[
    ("ufs", Of { command: "mkfs -F ufs -o", fs: Some(Fs::Ufs), tables: &[MKFS_UFS] }),
    ("vxfs", Of { command: "mkfs -F vxfs -o", fs: Some(Fs::Vxfs), tables: &[MKFS_VXFS] }),
];
const OF_MOUNT: &[(&str, Of)] = &[
    ("ufs", Of { command: "mount", fs: Some(Fs::Ufs), tables: &[MOUNT_UFS, MOUNT_ALL] }),
    ("vxfs", Of { command: "mount", fs: Some(Fs::Vxfs), tables: &[MOUNT_VXFS, MOUNT_ALL] }),
    ("samfs", Of { command: "mount", fs: Some(Fs::Qfs), tables: &[MOUNT_SAMFS, MOUNT_ALL] }),
];

fn newfs(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let names = OF_NEWFS.letters(typed, given)?;
    one_name(typed, given, &names, "newfs [OPTIONS] RAW_DEVICE")?;
    typed.uses(given.line, Fs::Ufs, "newfs", (given.command.at.clone(), &names));
    Ok(())
}

fn tunefs(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let names = OF_TUNEFS.letters(typed, given)?;
    one_name(typed, given, &names, "tunefs [OPTIONS] RAW_DEVICE")?;
    typed.uses(given.line, Fs::Ufs, "tunefs", (given.command.at.clone(), &names));
    if given.command.base() == "tuneufs" {
        typed.note(given.line, "tuneufs", "taken for tunefs(1M): there is no tuneufs");
    }
    Ok(())
}

/// Refuses anything but one name.
fn one_name(
    typed: &Typed,
    given: &Given<'_>,
    names: &[LineWord],
    usage: &str,
) -> Result<(), LineFault> {
    let line = typed.line(given.line);
    match names {
        [_] => Ok(()),
        [] => Err(line.fault(&given.command.at, "it names no device", format!("write {usage}"))),
        [_, second, ..] => {
            let what = format!("'{}' is one name too many", second.text);
            Err(line.fault(&second.at, what, format!("write {usage}")))
        }
    }
}

/// Words of `-F TYPE`, lists of `-o`, and the names behind them.
struct Typical {
    kind: Option<LineWord>,
    lists: Vec<LineWord>,
    names: Vec<LineWord>,
}

fn typical(typed: &Typed, given: &Given<'_>) -> Result<Typical, LineFault> {
    let mut found = Typical { kind: None, lists: Vec::new(), names: Vec::new() };
    let mut words = given.words.iter();
    while let Some(word) = words.next() {
        let value = |next: Option<&LineWord>| {
            let line = typed.line(given.line);
            let what = format!("{} needs a value", word.text);
            next.cloned().ok_or_else(|| line.fault(&word.at, what, "write one behind it"))
        };
        match word.text.as_str() {
            "-F" | "-t" => found.kind = Some(value(words.next())?),
            "-o" => found.lists.push(value(words.next())?),
            text if text.starts_with('-') && text.len() > 1 => {}
            _ => found.names.push(word.clone()),
        }
    }
    Ok(found)
}

/// The row of the file system that `-F` names.
fn of_kind(
    typed: &Typed,
    given: &Given<'_>,
    kind: Option<&LineWord>,
    rows: &'static [(&'static str, Of)],
) -> Result<&'static Of, LineFault> {
    let known: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    let line = typed.line(given.line);
    let Some(kind) = kind else {
        let what = format!("{} does not say of which file system", given.command.base());
        let remedy = format!("write -F TYPE, one of {}", known.join(", "));
        return Err(line.fault(&given.command.at, what, remedy));
    };
    let found = rows.iter().find(|(name, _)| *name == kind.text);
    found.map(|(_, of)| of).ok_or_else(|| {
        let what = format!("`{}` is no file system of {}", kind.text, given.command.base());
        line.fault(&kind.at, what, format!("known: {}", known.join(", ")))
    })
}

fn mkfs(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let found = typical(typed, given)?;
    let of = of_kind(typed, given, found.kind.as_ref(), OF_MKFS)?;
    for list in &found.lists {
        of.keys(typed, given.line, list)?;
    }
    if found.names.is_empty() {
        one_name(typed, given, &[], "mkfs -F TYPE -o KEY=VALUE RAW_DEVICE [SECTORS]")?;
    }
    if let Some(fs) = of.fs {
        let names = &found.names[..1];
        typed.uses(given.line, fs, of.command, (given.command.at.clone(), names));
    }
    if let Some(size) = found.names.get(1) {
        typed.note(
            given.line,
            format!("size {}", size.text),
            "units of 512 bytes; the file system fills the device of the profile",
        );
    }
    Ok(())
}

fn mount(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let mut found = typical(typed, given)?;
    if found.kind.is_none() && found.lists.is_empty() {
        typed.note(given.line, "mount", "as the manual has it: no option");
        return Ok(());
    }
    if found.kind.is_none()
        && let Some(fs) = known_fs(typed, &found.names)
    {
        let text = if fs == Fs::Qfs { "samfs".into() } else { fs.name().to_owned() };
        found.kind = Some(LineWord { text, at: given.command.at.clone() });
    }
    mounted(typed, given, &found)
}

/// A file system that an earlier line put onto one of these devices, or the only one so far.
fn known_fs(typed: &Typed, names: &[LineWord]) -> Option<Fs> {
    let is_one = |used: &&super::typed::Used| {
        names.iter().any(|name| used.names.iter().any(|other| other == name.base()))
    };
    let first = typed.used.first().map(|used| used.fs);
    let only = first.filter(|&fs| typed.used.iter().all(|used| used.fs == fs));
    typed.used.iter().find(is_one).map(|used| used.fs).or(only)
}

fn mounted(typed: &mut Typed, given: &Given<'_>, found: &Typical) -> Result<(), LineFault> {
    let of = of_kind(typed, given, found.kind.as_ref(), OF_MOUNT)?;
    for list in &found.lists {
        of.keys(typed, given.line, list)?;
    }
    if let Some(fs) = of.fs {
        typed.uses(given.line, fs, "mount", (given.command.at.clone(), &found.names));
    }
    if found.lists.is_empty() {
        typed.note(given.line, "mount", "no option: the defaults of the release");
    }
    Ok(())
}

/// A row of /etc/vfstab: device, raw device, mount point, type, pass, at boot, options.
pub fn vfstab(typed: &mut Typed, line: usize, words: &[LineWord]) -> Result<bool, LineFault> {
    let [device, _, point, kind, _, _, options] = words else { return Ok(false) };
    if !OF_MOUNT.iter().any(|(name, _)| *name == kind.text) {
        return Ok(false);
    }
    let lists = if options.text == "-" { Vec::new() } else { vec![options.clone()] };
    let names = vec![device.clone(), point.clone()];
    let found = Typical { kind: Some(kind.clone()), lists, names };
    mounted(typed, &Given { line, command: device, words }, &found)?;
    Ok(true)
}

fn vxtunefs(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let mut names = Vec::new();
    let mut has_keys = false;
    for word in given.words {
        if word.text.contains('=') {
            has_keys = true;
            OF_VXTUNEFS.keys(typed, given.line, word)?;
        } else if !word.text.starts_with('-') {
            names.push(word.clone());
        }
    }
    typed.uses(given.line, Fs::Vxfs, "vxtunefs", (given.command.at.clone(), &names));
    if !has_keys {
        typed.note(given.line, "vxtunefs", "prints, and sets nothing");
    }
    Ok(())
}

/// A row of /etc/vx/tunefstab: device, keys.
pub fn tunefstab(typed: &mut Typed, line: usize, words: &[LineWord]) -> Result<bool, LineFault> {
    let Some((device, keys)) = words.split_first() else { return Ok(false) };
    let is_row = !keys.is_empty()
        && !device.text.contains('=')
        && keys.iter().all(|key| key.text.contains('='));
    if !is_row {
        return Ok(false);
    }
    for key in keys {
        OF_VXTUNEFS.keys(typed, line, key)?;
    }
    typed.uses(line, Fs::Vxfs, "tunefstab", (device.at.clone(), std::slice::from_ref(device)));
    Ok(true)
}

fn sammkfs(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let names = OF_SAMMKFS.letters(typed, given)?;
    one_name(typed, given, &names, "sammkfs [-a KIB] FS_NAME")?;
    typed.uses(given.line, Fs::Qfs, "sammkfs", (given.command.at.clone(), &names));
    Ok(())
}

fn zfs(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    const USAGE: &str = "write zfs set PROPERTY=VALUE DATASET, or zfs create [-o ...] DATASET";
    let line = typed.line(given.line);
    let Some((what, rest)) = given.words.split_first() else {
        return Err(line.fault(&given.command.at, "it says nothing to do", USAGE));
    };
    let (mut names, mut keys) = (Vec::new(), Vec::new());
    for word in rest {
        if word.text.contains('=') {
            keys.push(word);
        } else if !word.text.starts_with('-') {
            names.push(word.clone());
        }
    }
    match what.text.as_str() {
        "set" | "create" => {}
        "get" | "list" | "mount" | "umount" | "destroy" | "snapshot" => {
            typed.note(given.line, format!("zfs {}", what.text), "sets nothing that a stack has");
            return Ok(());
        }
        other => {
            let what_is = format!("zfs has no `{other}` here");
            return Err(line.fault(&what.at, what_is, USAGE));
        }
    }
    if names.is_empty() || (what.text == "set" && keys.is_empty()) {
        return Err(line.fault(&what.at, format!("zfs {} lacks something", what.text), USAGE));
    }
    for key in keys {
        OF_ZFS.keys(typed, given.line, key)?;
    }
    if what.text == "create" {
        typed.note(given.line, "zfs create", "a data set of the pool");
    }
    typed.uses(given.line, Fs::Zfs, "zfs", (given.command.at.clone(), &names));
    Ok(())
}
