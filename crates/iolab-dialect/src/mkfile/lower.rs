//! From what was typed to one phase for each file.

use std::path::Path;

use iolab_model::op::{Access, Durability, TransferFlags};
use iolab_model::target::Content;
use iolab_model::{Bytes, Ns, Seed};
use iolab_workload::Workload;
use iolab_workload::file_set::{FileAction, FileOrder, FileSetWork, LinkKind};
use iolab_workload::spec::{
    Direction, Flush, FsyncPolicy, Limit, LockPolicy, Opening, Pattern, Phase, Tenant, VERSION,
    WorkersAs,
};
use iolab_workload::verify::Verify;
use serde::{Deserialize, Serialize};

use super::options::Typed;
use crate::diagnostic::Problem;
use crate::option::Common;
use crate::plan::Asked;

/// Everything about one command line; each file is a row.
pub type Plan = crate::plan::Plan<Show, Row>;

/// What stands for the file's own block size until it is known.
const BLOCK: u64 = 4096;

/// How results are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// -v.
    pub is_verbose: bool,
    /// Size of each file.
    pub bytes: u64,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its size; at least the block.
    pub file_kb: u64,
    /// Bytes of a transfer, in KiB.
    pub record_kb: u64,
    /// Always 1.
    pub children: u32,
    /// What is measured.
    pub workload: Workload,
}

/// The plan of a command line.
pub fn lower(typed: &Typed, common: Common) -> Result<Plan, Problem> {
    let (Some(bytes), false) = (typed.bytes, typed.files.is_empty()) else {
        let usage = "mkfile [-nv] SIZE[g|k|b|m] FILE...";
        return Err(Problem::new("a size and at least one file are needed", usage));
    };
    let (directory, files) = places(&typed.files)?;
    let rows = files.iter().map(|name| row(typed, name, bytes)).collect::<Result<Vec<_>, _>>()?;
    let mut notes = Vec::new();
    if !typed.is_sparse && !typed.is_synced && bytes > 0 {
        notes.push(
            "mkfile flushes nothing: the time is that of the page cache unless the files are \
             larger than memory; --sync flushes inside the time"
                .into(),
        );
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
        show: Show { is_verbose: typed.is_verbose, bytes },
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

fn row(typed: &Typed, name: &str, bytes: u64) -> Result<Row, Problem> {
    let workload = Workload {
        version: VERSION,
        name: "mkfile".into(),
        engine: "sync".into(),
        workers_as: WorkersAs::Threads,
        seed: Seed(0),
        content: if typed.is_random { Content::Incompressible } else { Content::Zero },
        verify: Verify::None,
        pin_cpus: Vec::new(),
        interval_ns: Ns::from_ms(100),
        is_calibrated: false,
        phases: vec![phase(typed, name, bytes)],
    };
    workload.check().map_err(|error| Problem::new(error.to_string(), "use another name"))?;
    let needed = if typed.is_sparse { BLOCK } else { bytes.max(BLOCK) };
    let name = name.to_owned();
    Ok(Row { name, file_kb: needed.div_ceil(1024), record_kb: BLOCK >> 10, children: 1, workload })
}

fn phase(typed: &Typed, name: &str, bytes: u64) -> Phase {
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
    Phase {
        name: "mkfile".into(),
        is_stonewalled: false,
        keeps_files: true,
        engine: None,
        ignores: Vec::new(),
        cuts_ns: Vec::new(),
        tenants: vec![tenant(name, work)],
    }
}

fn tenant(name: &str, work: FileSetWork) -> Tenant {
    Tenant {
        name: "main".into(),
        workers: 1,
        is_file_shared: true,
        file: name.into(),
        file_first: 0,
        file_step: 1,
        files: Vec::new(),
        file_bytes: Bytes(work.size_max_bytes.0.max(BLOCK)),
        io_size_bytes: Bytes(BLOCK),
        pattern: Pattern::Sequential,
        direction: Direction::Write,
        depth: 1,
        access: Access::Plain,
        durability: Durability::None,
        fsync: if work.is_flushed { FsyncPolicy::Timed } else { FsyncPolicy::None },
        is_close_timed: true,
        flush: Flush::Fsync,
        vectors: 0,
        flags: TransferFlags::NONE,
        lock: LockPolicy::None,
        is_preallocated: false,
        stream_buffer_bytes: Bytes(0),
        opening: Opening::Create,
        primes_first_record: false,
        rate_ops_per_s: None,
        think_ns: Ns(0),
        begins_ns: Ns(0),
        priority: None,
        share: None,
        limit: Limit::Once,
        file_set: Some(work),
        draws: None,
    }
}
