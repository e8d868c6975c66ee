//! Paths of the files of a command line.

use std::path::Path;

use super::typed::Typed;
use crate::diagnostic::Problem;
use crate::option::Common;
use crate::text_file::read_limited;

/// The file of single and automatic mode, and the stem of throughput mode's files.
const FILE: &str = "iozone.tmp";
const FILES: &str = "iozone.DUMMY";

/// Paths of the files.
pub struct Places {
    /// Directory of the first one; empty: the current one.
    pub directory: String,
    /// Names in that directory, or whole paths of files in others.
    pub names: Vec<String>,
}

/// More than this is not read of a list of names (-+R).
const LIST_BYTES_MAX: u64 = 1 << 20;

/// Places of the files of so many children.
pub fn places(typed: &Typed, common: &Common, children: u32) -> Result<Places, Problem> {
    let children = if typed.children.is_shared { 1 } else { children as usize };
    if !typed.is_throughput() {
        if !typed.children.files.is_empty() || typed.children.list.is_some() {
            let option = if typed.children.list.is_some() { "-+R" } else { "-F" };
            let what = format!("{option} belongs to throughput mode");
            return Err(Problem::new(what, "use -f, or add -t N"));
        }
        let path = typed.children.file.as_deref().unwrap_or(FILE);
        let (directory, name) = split(path)?;
        return Ok(Places { directory, names: vec![name] });
    }
    let (option, mut files) = match &typed.children.list {
        Some(list) => ("-+R", listed(list, &typed.children.files)?),
        None => ("-F", typed.children.files.clone()),
    };
    if files.is_empty() {
        let names = (0..children).map(|child| format!("{FILES}.{child}")).collect();
        return Ok(Places { directory: String::new(), names });
    }
    if files.len() < children {
        return Err(Problem::new(
            format!("{option} names {} files for {children} children", files.len()),
            match option {
                "-F" => "write -F after the largest -t or -u, with one name per child",
                _ => "write one name per child into the list, each on a line of its own",
            },
        ));
    }
    // Children of a shared file use the first one; of a list that is too long, its beginning.
    if typed.children.is_shared || option == "-+R" {
        files.truncate(children);
    }
    let split: Vec<(String, String)> =
        files.iter().map(|file| split(file)).collect::<Result<_, _>>()?;
    let directory = split[0].0.clone();
    match split.iter().find(|(other, _)| *other != directory) {
        Some((other, _)) if common.on.is_some() => Err(Problem::new(
            format!("{option} names files in {} and in {}", shown(&directory), shown(other)),
            "a testbed is one place: leave --on out, or name files without directories",
        )),
        Some(_) => several(option, &split),
        None => {
            let names: Vec<String> = split.into_iter().map(|(_, name)| name).collect();
            different(option, &names)?;
            Ok(Places { directory, names })
        }
    }
}

fn shown(directory: &str) -> &str {
    if directory.is_empty() { "." } else { directory }
}

/// Files in several directories: those outside the first one have whole paths.
fn several(option: &str, split: &[(String, String)]) -> Result<Places, Problem> {
    let resolved = |directory: &str| {
        std::fs::canonicalize(shown(directory)).map_err(|error| {
            let what = format!("{option} names a file in {}: {error}", shown(directory));
            Problem::new(what, "name files in directories that exist")
        })
    };
    let first = resolved(&split[0].0)?;
    let mut names = Vec::new();
    for (directory, name) in split {
        let directory = resolved(directory)?;
        if directory == first {
            names.push(name.clone());
            continue;
        }
        let path = directory.join(name);
        let path = path.to_str().ok_or_else(|| {
            let what = format!("{} is not written in UTF-8", path.display());
            Problem::new(what, "name files in other directories")
        })?;
        names.push(path.to_owned());
    }
    different(option, &names)?;
    Ok(Places { directory: split[0].0.clone(), names })
}

/// Each child needs a file of its own.
fn different(option: &str, names: &[String]) -> Result<(), Problem> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Problem::new(
            format!("{option} names {} twice", pair[0]),
            "each child needs a file of its own; to share one use -+V",
        )),
        None => Ok(()),
    }
}

/// The names that a list of -+R holds, one a line.
fn listed(list: &str, others: &[String]) -> Result<Vec<String>, Problem> {
    const REMEDY: &str = "name a text file with one file name a line";
    if !others.is_empty() {
        return Err(Problem::new("-F and -+R name files twice", "leave one of them out"));
    }
    let wrong = |why: &str| Problem::new(format!("-+R {list}: {why}"), REMEDY);
    let read = read_limited(Path::new(list), LIST_BYTES_MAX);
    let Some(bytes) = read.map_err(|error| wrong(&error.to_string()))? else {
        return Err(wrong("it is larger than 1 MiB"));
    };
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
    let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.is_empty() { Err(wrong("it names no file")) } else { Ok(names) }
}

/// Directory and name of a path; an empty one is the current directory.
fn split(path: &str) -> Result<(String, String), Problem> {
    let (directory, name) = match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((directory, name)) => (directory, name),
        None => ("", path),
    };
    if directory == "/dev" {
        return Err(Problem::new(
            format!("{path} is a device: all data on it would be lost"),
            format!("use --on device:{path}, which asks first"),
        ));
    }
    if name.is_empty() || name.starts_with('.') {
        return Err(Problem::new(
            format!("'{path}' has no plain file name"),
            "name a file that does not begin with a dot, for instance t.tmp",
        ));
    }
    Ok((directory.to_owned(), name.to_owned()))
}
