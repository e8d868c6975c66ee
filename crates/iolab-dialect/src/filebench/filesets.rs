//! Files and filesets as sets of files of a workload.

use iolab_model::Seed;
use iolab_workload::program::{Amount, Branching, FileSet, Fill, Reuse, Spread, Tree};

use super::lex::ScriptFault;
use super::plan::FilesShow;
use super::scope::{Bound, ScriptScope};
use super::script::DefinedFiles;
use super::syntax::Givens;
use super::words::Attribute;

type Result<T> = std::result::Result<T, ScriptFault>;

/// Shape of widths and depths of a fileset, in thousandths.
const DIR_GAMMA: u64 = 1500;
/// Bytes of a file.
const SIZE: u64 = 1024;
/// Threads that make files side by side at most.
const MAKERS: u32 = 32;
/// Files and directories of a set at most: their names and sizes are kept.
const FILES_MAX: u64 = 10_000_000;

/// A file or fileset, lowered.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The set.
    pub set: FileSet,
    /// Directory in which it lies.
    pub path: String,
    /// As it is told.
    pub show: FilesShow,
    /// Files are opened for reading only.
    pub is_read_only: bool,
    /// Files are opened for writing only.
    pub is_write_only: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Tell whether a path leads to devices: all of `/dev` but for the memory that lies there.
fn lies_among_devices(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    path.starts_with('/') && parts.first() == Some(&"dev") && parts.get(1) != Some(&"shm")
}

/// Name and directory of a file or fileset.
fn name_and_path(given: &Givens, scope: &ScriptScope) -> Result<(String, String)> {
    let wrong = |what: String, remedy: &str| Err(ScriptFault::new(given.spot, what, remedy));
    let (Some(name), Some(path)) =
        (scope.text(given, Attribute::Name)?, scope.text(given, Attribute::Path)?)
    else {
        return wrong("a fileset without name or path".into(), "write name=NAME,path=DIRECTORY");
    };
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\n', '\0']);
    if !is_plain {
        return wrong(format!("the name '{name}'"), "write a name without / and no dot in front");
    }
    if lies_among_devices(&path) {
        let what = format!("path={path},name={name}: a device, on which all data would be lost");
        return wrong(
            what,
            "name a directory on a file system; `iolab run --on device:` asks first",
        );
    }
    Ok((name, path))
}

/// A file or fileset as a set of files.
pub fn lower(files: &DefinedFiles, scope: &ScriptScope, seed: Seed) -> Result<Lowered> {
    let given = &files.given;
    let wrong = |what: String, remedy: &str| Err(ScriptFault::new(given.spot, what, remedy));
    let (name, path) = name_and_path(given, scope)?;
    let entries = scope.number(given, Attribute::Entries, u64::from(files.is_file))?;
    let leafs = scope.number(given, Attribute::LeafDirs, 0)?;
    if entries == 0 && leafs == 0 {
        return wrong(
            "Fileset has no files or leafdirs".into(),
            "write entries=1000, or leafdirs=100",
        );
    }
    if entries.saturating_add(leafs) > FILES_MAX {
        let what = format!("a fileset of {} files", entries.saturating_add(leafs));
        return wrong(what, "write entries for at most 10 million");
    }
    let mut notes = Vec::new();
    let tree = tree(files, scope, (&name, leafs), &mut notes)?;
    if tree.width == Some(1) {
        return wrong("directories of one entry each, without end".into(), "write dirwidth=20");
    }
    let existing_percent = prealloc(files, scope)?;
    let set = FileSet {
        place: None,
        is_flat: false,
        files: entries,
        file_bytes: size(files, scope)?,
        tree,
        existing_percent,
        reuse: Reuse::Continue,
        fill: Fill::Data,
        content: None,
        makers: if scope.switch(given, Attribute::Paralloc)? { MAKERS } else { 0 },
        name: name.clone(),
    };
    for (attribute, text) in [(Attribute::Reuse, "reuse"), (Attribute::TrustTree, "trusttree")] {
        if scope.switch(given, attribute)? {
            notes.push(format!("{text}: files are made for each run, and removed after it"));
        }
    }
    if given.find(Attribute::Cached).is_some() {
        notes.push("cached changes nothing here: see cache in a study".to_owned());
    }
    let width = set.tree.width.unwrap_or(0);
    let show = FilesShow {
        is_file: files.is_file,
        entries,
        width,
        depth: set.mean_depth(),
        leafs,
        bytes: set.drawn(seed).sizes.iter().sum(),
        name,
    };
    Ok(Lowered {
        set,
        path,
        show,
        is_read_only: scope.switch(given, Attribute::ReadOnly)?,
        is_write_only: scope.switch(given, Attribute::WriteOnly)?,
        notes,
    })
}

fn tree(
    files: &DefinedFiles,
    scope: &ScriptScope,
    (name, leafs): (&str, u64),
    notes: &mut Vec<String>,
) -> Result<Tree> {
    let given = &files.given;
    if files.is_file {
        // One directory, and the file in it.
        return Ok(Tree { leaf_directories: leafs, ..Tree::default() });
    }
    let width = scope.amount(given, Attribute::DirWidth)?;
    if width.is_none() {
        notes.push(format!("{name}: Fileset has no directory width: each directory has one entry"));
    }
    let (width, drawn) = match width {
        None => (0, None),
        Some(Amount::Constant(width)) => (width, None),
        Some(drawn) => (drawn.most(), Some(drawn)),
    };
    let shape = scope.number(given, Attribute::DirGamma, DIR_GAMMA)? as f64 / 1000.0;
    Ok(Tree {
        width: Some(width),
        width_shape: shape,
        leaf_directories: leafs,
        has_leaf_directories: prealloc(files, scope)? > 0.0,
        branching: Some(Branching {
            width: drawn,
            depth: scope.amount(given, Attribute::DirDepth)?,
        }),
        ..Tree::default()
    })
}

/// Percentage of the files that exist.
fn prealloc(files: &DefinedFiles, scope: &ScriptScope) -> Result<f64> {
    let Some(given) = files.given.find(Attribute::Prealloc) else { return Ok(0.0) };
    match scope.resolve(&given.value)? {
        Bound::Boolean(all) => Ok(if all { 100.0 } else { 0.0 }),
        Bound::Integer(percent @ 0..=100) => Ok(percent as f64),
        other => {
            let what = format!("prealloc of {}", other.text());
            Err(ScriptFault::new(given.value.spot, what, "write a percentage from 0 to 100"))
        }
    }
}

fn size(files: &DefinedFiles, scope: &ScriptScope) -> Result<Amount> {
    let size = scope.amount(&files.given, Attribute::Size)?.unwrap_or(Amount::Constant(SIZE));
    let shape = scope.number(&files.given, Attribute::SizeGamma, 0)?;
    Ok(match size {
        Amount::Constant(mean) if shape > 0 && mean > 0 => {
            let (mean, shape) = (mean as f64, shape as f64 / 1000.0);
            let most = (mean / shape * (shape + 40.0)).ceil() as u64;
            Amount::Drawn(Spread::Gamma { mean, shape, least: 0, most, round: 0 })
        }
        other => other,
    })
}
