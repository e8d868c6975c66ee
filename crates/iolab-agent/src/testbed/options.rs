//! Options for mkfs and mount that a testbed takes: closed lists, because lists of what is
//! forbidden failed.
//!
//! `X-mount.subdir=` made a run measure the host's disk, `mke2fs -z` left a file in `/`, `-d`,
//! `-l` and `--rootdir` read outside. What is not in a list is refused by name. Words for mkfs are
//! understood as getopt(3) would: values apart or attached, letters in one word, long names with
//! `=` or a word behind. Left out: whether a value fits the device; mkfs and the kernel say that.

mod form;
mod mkfs;
mod mount;

use nix::mount::MsFlags;
use serde::Serialize;

pub use form::Form;

use crate::error::{Error, Result, nearest};

/// An option that is taken.
#[derive(Debug)]
pub struct Row {
    name: &'static str,
    /// A longer name for the same.
    alias: Option<&'static str>,
    fs: &'static [&'static str],
    form: Form,
}

impl Row {
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }

    /// Name and value as a phrase.
    fn describe(&self) -> String {
        let names =
            self.alias.map_or_else(|| self.name.to_owned(), |it| format!("{}|{it}", self.name));
        match self.form.describe() {
            values if values.is_empty() => names,
            values => format!("{names} ({values})"),
        }
    }
}

/// Arguments of mount(2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Options of all file systems.
    pub flags: MsFlags,
    /// Options of this one.
    pub words: Vec<String>,
}

/// Options for mount(2), each in the list of its file system.
pub fn mount_options(fs: &str, texts: &[String]) -> Result<MountOptions> {
    let mut found = MountOptions { flags: MsFlags::empty(), words: Vec::new() };
    for word in texts.iter().flat_map(|text| text.split(',')) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if let (Some(generic), None) = (mount::GENERIC.iter().find(|it| it.name == name), value) {
            found.flags = (found.flags - generic.cleared) | generic.set;
            continue;
        }
        let row = mount::ROWS.iter().find(|row| row.is_called(name) && row.fs.contains(&fs));
        let Some(row) = row else { return Err(unknown_mount(fs, word, name)) };
        if let Some(trouble) = row.form.trouble(value) {
            return Err(bad_value("mount", word, &trouble));
        }
        found.words.push(word.to_owned());
    }
    Ok(found)
}

fn unknown_mount(fs: &str, word: &str, name: &str) -> Error {
    if let Some((_, why)) = mount::NEVER.iter().find(|(never, _)| *never == name) {
        let what = format!("no testbed takes the mount option '{}': {why}", printable(word));
        return Error::refused(what, "leave it out");
    }
    let generic = mount::GENERIC.iter().map(|row| row.name);
    let own = mount::ROWS.iter().filter(|row| row.fs.contains(&fs)).map(|row| row.name);
    let known: Vec<&str> = generic.chain(own).collect();
    let others = mount::ROWS.iter().find(|row| row.is_called(name)).map(|row| row.fs);
    unknown(("mount", word), fs, others, meant(name, &known), &known)
}

/// The name that was probably meant. Of two letters any name is as near as any other, and who types
/// `suid` does not mean `nosuid`.
fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let is_opposite = |it: &str| it.strip_prefix("no") == Some(name);
    nearest(name, known).filter(|it| name.len() > 2 && !is_opposite(it))
}

/// Refuses a name: says who has it, or which one is near, or else all that there are.
fn unknown(
    (program, shown): (&str, &str),
    fs: &str,
    others: Option<&[&str]>,
    near: Option<&str>,
    known: &[&str],
) -> Error {
    let (more, hint) = match (others, near) {
        (Some([other]), _) => (format!("; {other} has it"), String::new()),
        (Some(others), _) => (format!("; {} have it", others.join(", ")), String::new()),
        (None, Some(near)) => (format!("; did you mean '{near}'?"), String::new()),
        (None, None) => (String::new(), format!("it takes {}; see {PAGE}", known.join(", "))),
    };
    let shown = printable(shown);
    let what = format!("a testbed with {fs} takes no {program} option '{shown}'{more}");
    Error::refused(what, hint)
}

/// Lists every option and what it takes.
const PAGE: &str = "docs/reference/mkfs-and-mount-options.md";

fn bad_value(program: &str, shown: &str, trouble: &str) -> Error {
    let (shown, trouble) = (printable(shown), printable(trouble));
    Error::refused(format!("{program} option '{shown}' {trouble}"), format!("see {PAGE}"))
}

/// The begin of a text, without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().take(400).map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

/// One option for mkfs and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsOption {
    /// As in the list.
    pub name: &'static str,
    /// Value of the option.
    pub value: Option<String>,
}

/// Options for mkfs, each in the list of its file system.
pub fn mkfs_options(fs: &str, words: &[String]) -> Result<Vec<MkfsOption>> {
    let mut words = words.iter().map(String::as_str);
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if word.starts_with("--") {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let row = find_mkfs(fs, word, name)?;
            let value = value.or_else(|| row.form.takes_value().then(|| words.next()).flatten());
            found.push(taken(row, value)?);
            continue;
        }
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
        let mut rest = letters.ok_or_else(|| unknown_mkfs(fs, word, word))?;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let row = find_mkfs(fs, word, &format!("-{letter}"))?;
            let mut value = None;
            if row.form.takes_value() {
                value = if rest.is_empty() { words.next() } else { Some(rest) };
                rest = "";
            }
            found.push(taken(row, value)?);
        }
    }
    Ok(found)
}

fn taken(row: &'static Row, value: Option<&str>) -> Result<MkfsOption> {
    match row.form.trouble(value) {
        Some(trouble) => Err(bad_value("mkfs", row.name, &trouble)),
        None => Ok(MkfsOption { name: row.name, value: value.map(str::to_owned) }),
    }
}

fn find_mkfs(fs: &str, word: &str, name: &str) -> Result<&'static Row> {
    let row = mkfs::ROWS.iter().find(|row| row.is_called(name) && row.fs.contains(&fs));
    row.ok_or_else(|| unknown_mkfs(fs, word, name))
}

fn unknown_mkfs(fs: &str, word: &str, name: &str) -> Error {
    let own = mkfs::ROWS.iter().filter(|row| row.fs.contains(&fs));
    let known: Vec<&str> = own.flat_map(|row| std::iter::once(row.name).chain(row.alias)).collect();
    // Of single letters each is as near as any other.
    let near = meant(name, &known).filter(|_| name.starts_with("--"));
    let shown = if name.starts_with('-') { name } else { word };
    unknown(("mkfs", shown), fs, None, near, &known)
}

/// Fault of options of an option, joined by commas.
fn list_trouble(rows: &[Row], text: &str) -> Option<String> {
    text.split(',').find_map(|word| {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let Some(row) = rows.iter().find(|row| row.is_called(name)) else {
            let known: Vec<&str> = rows.iter().map(|row| row.name).collect();
            return Some(match meant(name, &known) {
                Some(near) => format!("has no '{name}'; did you mean '{near}'?"),
                None => format!("has no '{name}', but {}", known.join(", ")),
            });
        };
        row.form.trouble(value).map(|trouble| format!("with '{name}' {trouble}"))
    })
}

/// A row for people: what the reference page shows.
#[derive(Debug, Serialize)]
pub struct Entry {
    program: &'static str,
    fs: Vec<&'static str>,
    name: &'static str,
    alias: Option<&'static str>,
    values: String,
}

/// Every option of mkfs and mount that a stack may have.
pub fn entries() -> Vec<Entry> {
    let all: Vec<&str> = super::FILE_SYSTEMS.iter().map(|row| row.name).collect();
    let row = |program, row: &Row| Entry {
        program,
        fs: row.fs.to_vec(),
        name: row.name,
        alias: row.alias,
        values: row.form.describe(),
    };
    let generic = mount::GENERIC.iter().map(|it| Entry {
        program: "mount",
        fs: all.clone(),
        name: it.name,
        alias: None,
        values: String::new(),
    });
    let own = mount::ROWS.iter().map(|it| row("mount", it));
    generic.chain(own).chain(mkfs::ROWS.iter().map(|it| row("mkfs", it))).collect()
}

#[cfg(test)]
mod tests;
