//! From what was typed to one phase for each file.

use std::path::Path;

use iolab_model::Bytes;
use iolab_model::op::Access;
use iolab_model::target::Content;
use iolab_workload::file_set::{FileAction, FileOrder, FileSetWork, LinkKind};
use iolab_workload::spec::{Direction, FsyncPolicy, Opening, Tenant};
use serde::{Deserialize, Serialize};

use super::options::{Iostat, Typed};
use crate::diagnostic::Problem;
use crate::option::Common;
use crate::plan::{Asked, Row};
use crate::workload::{phase, tenant, workload};

/// Everything about one command line; each file is a row.
pub type Plan = crate::plan::Plan<Show, Row>;

/// Stand-in for the file's own block size until it is known.
const BLOCK: u64 = 4096;

/// Form of the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShownByMkfile")]
pub struct Show {
    /// -v.
    pub is_verbose: bool,
    /// Size of each file.
    pub bytes: u64,
    /// Reports of an iostat that looks on.
    #[serde(default)]
    pub iostat: Option<Iostat>,
    /// --time.
    #[serde(default)]
    pub is_clocked: bool,
}

/// The plan of a command line.
pub fn lower(typed: &Typed, common: Common) -> Result<Plan, Problem> {
    let (Some(bytes), false) = (typed.bytes, typed.files.is_empty()) else {
        let usage = "mkfile [-nv] SIZE[g|k|b|m] FILE...";
        return Err(Problem::new("a size and at least one file are needed", usage));
    };
    let (directory, files) = places(&typed.files)?;
    let access = if common.is_bare_simulation() { Access::Direct } else { Access::Plain };
    let rows = files.iter().map(|name| row(typed, name, (bytes, access)));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let mut notes = Vec::new();
    if !typed.is_sparse && !typed.is_synced && bytes > 0 && !common.stores_nothing() {
        let note = match access {
            Access::Direct => {
                "a simulated disk has no page cache: each block of 4 KiB is written to the device \
                 by itself; [files] of a stack file brings a file system and its cache"
            }
            _ => {
                "mkfile flushes nothing: the time is that of the page cache unless the files are \
                 larger than memory; --sync flushes inside the time"
            }
        };
        notes.push(note.into());
    }
    Ok(Plan {
        dialect: "mkfile".into(),
        common,
        only_text: None,
        notes,
        directory,
        files,
        cache: "as_is".into(),
        asked: Asked::default(),
        show: Show {
            is_verbose: typed.is_verbose,
            bytes,
            iostat: typed.iostat.clone(),
            is_clocked: typed.is_clocked,
        },
        rows,
    })
}

/// The directory of all files, and their names in it.
fn places(files: &[String]) -> Result<(String, Vec<String>), Problem> {
    let mut directory = None;
    let mut names: Vec<String> = Vec::new();
    for file in files {
        let path = Path::new(file);
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| !file.ends_with('/'));
        let Some(name) = name else {
            return Err(Problem::new(format!("'{file}' names no file"), "name the file itself"));
        };
        let folder = path.parent().map_or("", |folder| folder.to_str().unwrap_or_default());
        let first = directory.get_or_insert_with(|| folder.to_owned());
        if first != folder {
            let problem = format!("files in several directories, '{first}' and '{folder}'");
            return Err(Problem::new(problem, "run mkfile once for each directory"));
        }
        if names.iter().any(|other| other == name) {
            return Err(Problem::new(format!("'{file}' twice"), "name each file once"));
        }
        names.push(name.to_owned());
    }
    Ok((directory.unwrap_or_default(), names))
}

fn row(typed: &Typed, name: &str, (bytes, access): (u64, Access)) -> Result<Row, Problem> {
    let content = if typed.is_random { Content::Incompressible } else { Content::Zero };
    let tenants = vec![Tenant { access, ..tenant_of(typed, name, bytes) }];
    let workload = workload("mkfile", 0, content, vec![phase("mkfile", tenants)]);
    workload.check().map_err(|error| Problem::new(error.to_string(), "use another name"))?;
    let needed = if typed.is_sparse { BLOCK } else { bytes.max(BLOCK) };
    Ok(Row {
        name: name.to_owned(),
        file_kb: needed.div_ceil(1024),
        record_kb: BLOCK >> 10,
        children: 1,
        workload,
        control_groups: Vec::new(),
    })
}

fn tenant_of(typed: &Typed, name: &str, bytes: u64) -> Tenant {
    let work = FileSetWork {
        action: FileAction::Extend,
        order: FileOrder::Sequential,
        files: 1,
        directories: 1,
        size_min_bytes: Bytes(bytes),
        size_max_bytes: Bytes(bytes),
        link: LinkKind::None,
        is_flushed: typed.is_synced,
        is_sparse: typed.is_sparse,
    };
    Tenant {
        file_bytes: Bytes(bytes.max(BLOCK)),
        io_size_bytes: Bytes(BLOCK),
        direction: Direction::Write,
        fsync: if typed.is_synced { FsyncPolicy::Timed } else { FsyncPolicy::None },
        opening: Opening::Create,
        file_set: Some(work),
        ..tenant(name)
    }
}
