//! Names of the files of jobs: as fio makes them, and as the plan tells them.

use super::expand::Unit;
use super::geometry::Wrong;
use super::host::{Host, There};
use super::job::Job;
use crate::diagnostic::Problem;

/// A file: its directory (empty: the working one) and its name there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// As typed.
    pub directory: String,
    /// Without directories.
    pub name: String,
}

impl Path {
    /// As one text.
    pub fn text(&self) -> String {
        match self.directory.as_str() {
            "" => self.name.clone(),
            "/" => format!("/{}", self.name),
            directory => format!("{directory}/{}", self.name),
        }
    }

    /// From the root on.
    pub fn absolute(&self, host: &impl Host) -> String {
        let text = self.text();
        let stripped = text.strip_prefix("./").unwrap_or(&text);
        if text.starts_with('/') { text } else { format!("{}/{stripped}", host.directory()) }
    }
}

fn wrong<T>(name: &'static str, what: String, remedy: &str) -> Result<T, Wrong> {
    Err((name, Problem::new(what, remedy)))
}

/// Files of a unit, one for each clone; a single one: all share it.
pub fn files(job: &Job, unit: &Unit) -> Result<Vec<Path>, Wrong> {
    match job.filename.as_slice() {
        [] => {
            let clones = unit.first..unit.first + unit.clones;
            clones.map(|clone| generated(job, clone, 0)).collect()
        }
        [name, ..] => named(job, name).map(|path| vec![path]),
    }
}

/// All files of a unit that has several: those that are named, which its clones share, or as many
/// of each clone, the first of every clone before the second ones.
pub fn many(job: &Job, unit: &Unit) -> Result<Vec<Path>, Wrong> {
    if !job.filename.is_empty() {
        let mut found: Vec<Path> = Vec::new();
        for name in &job.filename {
            let path = named(job, name)?;
            if found.contains(&path) {
                return wrong("filename", format!("{} comes twice", path.text()), "name it once");
            }
            found.push(path);
        }
        return Ok(found);
    }
    let clones = unit.first..unit.first + unit.clones;
    let each = |file| clones.clone().map(move |clone| generated(job, clone, file));
    let found: Vec<Path> = (0..job.nrfiles).flat_map(each).collect::<Result<_, _>>()?;
    let mut names = std::collections::BTreeSet::new();
    if let Some(path) = found.iter().find(|path| !names.insert(path.text())) {
        let what = format!("several files are called {}", path.text());
        return wrong("filename_format", what, "write $jobnum and $filenum in it");
    }
    Ok(found)
}

/// A file that the user named.
fn named(job: &Job, name: &str) -> Result<Path, Wrong> {
    if name == "-" {
        let what = "standard input and output are no files".to_owned();
        return wrong("filename", what, "name a file");
    }
    let (folder, name) = name
        .rsplit_once('/')
        .map_or(("", name), |(folder, name)| (if folder.is_empty() { "/" } else { folder }, name));
    let first = job.directory.first().map_or("", String::as_str);
    let directory = match (first, folder) {
        (_, folder) if folder.starts_with('/') => folder.to_owned(),
        (first, "") => first.to_owned(),
        ("", folder) => folder.to_owned(),
        (first, folder) => format!("{}/{folder}", first.trim_end_matches('/')),
    };
    checked("filename", Path { directory, name: name.to_owned() })
}

/// A file whose name follows from the job's.
fn generated(job: &Job, clone: u64, file: u64) -> Result<Path, Wrong> {
    let name = job
        .filename_format
        // That of the section: name= changes results alone (seen with fio 3.33).
        .replace("$jobname", &job.section)
        .replace("$jobnum", &clone.to_string())
        .replace("$filenum", &file.to_string())
        .replace("$clientuid", "");
    let directory = match job.directory.as_slice() {
        [] => String::new(),
        all => all[(clone % all.len() as u64) as usize].clone(),
    };
    checked("filename_format", Path { directory, name })
}

/// Folders of /dev whose names are those of devices.
const DEVICE_FOLDERS: [&str; 2] = ["/dev/disk/", "/dev/mapper"];

/// A directory without what means the working one: `.`, `./a` and `a` alike.
fn from_here(directory: &str) -> &str {
    let mut plain = directory;
    while let Some(rest) = plain.strip_prefix("./") {
        plain = rest.trim_start_matches('/');
    }
    if plain == "." { "" } else { plain }
}

fn checked(option: &'static str, path: Path) -> Result<Path, Wrong> {
    let is_plain = !path.name.is_empty() && !path.name.starts_with('.') && !path.name.contains('/');
    if is_plain {
        return Ok(Path { directory: from_here(&path.directory).to_owned(), ..path });
    }
    let what = format!("'{}' is no plain name of a file", path.name);
    wrong(option, what, "use a name without / that does not begin with a dot")
}

/// Refuses a directory that is none, and one in the place of a file.
pub fn check(job: &Job, path: &Path, host: &impl Host) -> Result<(), Wrong> {
    let directory = if path.directory.is_empty() { "." } else { &path.directory };
    if directory != "." && host.at(directory) != There::Directory {
        let option = if job.directory.is_empty() { "filename" } else { "directory" };
        return wrong(
            option,
            format!("{directory} is not a directory"),
            "make it, or name another",
        );
    }
    let found = host.at(&path.text());
    // What is made there is memory, and looks like a disk.
    let is_among_devices =
        directory == "/dev" || DEVICE_FOLDERS.iter().any(|folder| directory.starts_with(folder));
    if is_among_devices && found == There::Nothing {
        let remedy = "name one that is there (lsblk), or a file on a disk";
        return wrong("filename", format!("there is no device {}", path.text()), remedy);
    }
    match found {
        // The front end refuses devices, pipes and links for all dialects alike.
        There::Nothing | There::File(_) | There::Device(_) | There::Special => Ok(()),
        There::Directory => {
            wrong("filename", format!("{} is a directory", path.text()), "name a file in it")
        }
    }
}
