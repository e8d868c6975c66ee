//! From what was typed to phases.

use iolab_model::Bytes;
use iolab_model::op::Access;
use iolab_model::target::Content;
use iolab_workload::Workload;
use iolab_workload::draws::{Draws, Source};
use iolab_workload::file_set::{FileAction, FileOrder, FileSetWork, LinkKind};
use iolab_workload::spec::{
    Direction, FsyncPolicy, Limit, Manner, Opening, Pattern, Phase, Tenant,
};
use iolab_workload::waits::{WaitFor, Waits};

use super::csv::{IO_PHASES, Line, PHASES};
use super::plan::{Plan, Show};
use super::typed::{CHUNK, Files, SEEKERS, SEEKS, STEP, Size, Typed};
use crate::diagnostic::Problem;
use crate::option::Common;
use crate::plan::{Asked, Row};
use crate::workload::{phase, tenant, workload};

/// Version that the tables and lines name: the one whose forms these are.
const PROGRAM: &str = "2.00a";
/// Smallest file of the default size, in MiB.
const SIZE_MIB_MIN: u64 = 300;
/// Memory of one file of the file phases: name, directory, pointer.
const FILE_BYTES_IN_MEMORY: u64 = 37;
/// All small files together; more fits into no file system.
const FILES_KIB_MAX: u64 = 1 << 50;
/// Share of the tickets that are updates.
const UPDATE_SHARE: f64 = 0.1;

/// Questions to the machine.
#[derive(Clone, Debug)]
pub struct Host {
    /// Memory in MiB.
    pub ram_mib: u64,
    /// Its name.
    pub name: String,
    /// Number of this process, for names of files.
    pub process: u32,
    /// For want of -z.
    pub seed: u32,
}

/// The plan of a command line.
pub fn lower(typed: &Typed, common: Common, host: &Host, command: String) -> Result<Plan, Problem> {
    let ram_mib = typed.ram_mib.unwrap_or(host.ram_mib);
    let size = typed.size.clone().unwrap_or_else(|| default_size(ram_mib));
    check(typed, &size, ram_mib)?;
    let mut notes = Vec::new();
    let mut per_char_mib = typed.per_char_mib.min(size.mib);
    if typed.is_direct && per_char_mib > 0 {
        if typed.is_compat {
            return Err(Problem::new("Can't write() - disk full?", "add -f: direct I/O of 1 byte"));
        }
        notes.push("-D: the per-character phases are left out, one byte cannot be direct".into());
        per_char_mib = 0;
    }
    if typed.concurrency > 1 {
        notes.push(if typed.is_compat {
            "-c starts no copies, in the original neither: it is printed only".into()
        } else {
            format!(
                "-c {}: so many workers make, read and remove files, each in a directory of its \
                 own; the phases on the large file have one",
                typed.concurrency
            )
        });
    }
    check_together(typed, common.repeat)?;
    let seed = typed.seed.unwrap_or(host.seed);
    let file = format!("Bonnie.{}", host.process);
    let lowering = Lowering { typed, size: &size, seed, per_char_mib, file: &file };
    let workload = lowering.workload();
    let folders = workload.phases.iter().flat_map(|phase| &phase.tenants);
    let mut files: Vec<String> = folders.flat_map(Tenant::file_names).collect();
    files.sort_unstable();
    files.dedup();
    workload.check().map_err(|error| Problem::new(error.to_string(), "see `--help`"))?;
    let rows = vec![row(typed, &size, workload)];
    let common = Common { repeat: typed.runs.unwrap_or(common.repeat), ..common };
    Ok(Plan {
        dialect: "bonnie++".into(),
        only_text: None,
        notes,
        directory: typed.directory.clone(),
        files,
        cache: "as_is".into(),
        asked: asked(typed),
        show: Show {
            command,
            is_quiet: typed.is_quiet,
            is_csv_only: typed.runs.is_some(),
            runs: common.repeat.max(1),
            size: size_text(&size, typed.concurrency),
            line: line(typed, &size, host, seed),
        },
        common,
        rows,
    })
}

/// Requests to the front end beside measuring.
fn asked(typed: &Typed) -> Asked {
    let number = |(number, name): (u16, &&str)| ((*name).to_owned(), number);
    let numbers = || (0..).zip(PHASES.iter()).map(number).collect();
    Asked {
        user: typed.user.clone(),
        is_scratch: true,
        random_file: typed.random_file.clone(),
        waits: typed.waits.map(|kind| Waits { kind, numbers: numbers() }),
        semaphores: typed.semaphores,
        ..Asked::default()
    }
}

/// Check options of copies that wait for each other.
fn check_together(typed: &Typed, repeat: u32) -> Result<(), Problem> {
    if typed.semaphores.is_some() && typed.waits.is_some() {
        return Err(Problem::new("-p and -y at the same time", "make the semaphores first"));
    }
    let runs = typed.runs.unwrap_or(repeat);
    if typed.waits == Some(WaitFor::Semaphores) && runs > 1 {
        return Err(Problem::new(
            format!("-y s with {runs} runs: a semaphore that was counted down serves no second"),
            "run it once for each set that -p makes",
        ));
    }
    Ok(())
}

fn row(typed: &Typed, size: &Size, workload: Workload) -> Row {
    let small = files_kib(&typed.files).saturating_mul(copies(typed).into());
    let chunk = if size.mib > 0 { size.chunk } else { typed.files.chunk };
    let record_kb = (chunk >> 10).max(1);
    Row {
        name: "bonnie++".into(),
        file_kb: (size.mib << 10).max(small).max(record_kb),
        record_kb,
        children: 1,
        workload,
        control_groups: Vec::new(),
    }
}

/// Workers of the phases on small files.
fn copies(typed: &Typed) -> u32 {
    if typed.is_compat { 1 } else { u32::try_from(typed.concurrency).unwrap_or(1) }
}

/// Largest size of all small files of a worker, in KiB.
fn files_kib(files: &Files) -> u64 {
    files.thousands.saturating_mul(files.size_max.max(0).cast_unsigned())
}

/// Twice the memory; a rest of more than half a GiB is made a whole one.
fn default_size(ram_mib: u64) -> Size {
    let mut mib = (2 * ram_mib).max(SIZE_MIB_MIN);
    if mib % 1024 > 512 {
        mib = mib.next_multiple_of(1024);
    }
    Size { mib, chunk: CHUNK, seeks: SEEKS, seekers: SEEKERS }
}

fn check(typed: &Typed, size: &Size, ram_mib: u64) -> Result<(), Problem> {
    let thousands = typed.files.thousands;
    if size.mib == 0 && thousands == 0 {
        let problem = "-s 0 and -n 0 leave nothing to measure";
        return Err(Problem::new(problem, "give one of them a size"));
    }
    if size.mib > 0 && ram_mib > 0 && size.mib * typed.concurrency < 2 * ram_mib {
        return Err(Problem::new(
            format!("File size should be double RAM for good results, RAM is {ram_mib}M."),
            format!(
                "write -s {}, or -r 0 if the page cache shall be measured; -D measures the disk \
                 at any size",
                default_size(ram_mib).mib
            ),
        ));
    }
    if files_kib(&typed.files) > FILES_KIB_MAX {
        return Err(Problem::new(
            format!("{thousands}K files of {} bytes", typed.files.size_max),
            "use fewer or smaller files with -n",
        ));
    }
    let files_kb = thousands.saturating_mul(FILE_BYTES_IN_MEMORY);
    if ram_mib > 0 && files_kb.saturating_mul(2) > ram_mib << 10 {
        return Err(Problem::new(
            format!("{thousands}K files need {} MiB of memory for their names", files_kb >> 10),
            "use fewer files with -n, or -r 0",
        ));
    }
    Ok(())
}

/// The size as the table shows it: what is the default is left out.
fn size_text(size: &Size, concurrency: u64) -> String {
    let unless = |value: u64, default: u64, text: String| {
        if value == default { String::new() } else { text }
    };
    let parts = [
        mib_text(size.mib),
        unless(size.chunk, CHUNK, bytes_text(size.chunk)),
        unless(concurrency, 1, concurrency.to_string()),
        unless(size.seeks, SEEKS, size.seeks.to_string()),
        unless(size.seekers, SEEKERS, size.seekers.to_string()),
    ];
    parts.join(":").trim_end_matches(':').to_owned()
}

fn mib_text(mib: u64) -> String {
    match mib {
        _ if mib >= 1 << 20 && mib.is_multiple_of(1 << 20) => format!("{}T", mib >> 20),
        _ if mib >= 1 << 10 && mib.is_multiple_of(1 << 10) => format!("{}G", mib >> 10),
        _ => format!("{mib}M"),
    }
}

fn bytes_text(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

fn line(typed: &Typed, size: &Size, host: &Host, seed: u32) -> Line {
    let Files { thousands, size_max, size_min, directories, .. } = typed.files;
    let unless = |is_absent: bool, text: String| if is_absent { String::new() } else { text };
    let has_io = size.mib > 0;
    let has_files = thousands > 0;
    let largest = match size_max {
        -1 => "link".to_owned(),
        -2 => "symlink".to_owned(),
        0 => String::new(),
        _ => size_max.to_string(),
    };
    Line {
        program: PROGRAM.into(),
        name: typed.name.clone().unwrap_or_else(|| host.name.clone()),
        concurrency: typed.concurrency.to_string(),
        seed: typed.random_file.clone().unwrap_or_else(|| seed.to_string()),
        file_size: unless(!has_io, mib_text(size.mib)),
        chunk: String::new(),
        seeks: unless(!has_io, size.seeks.to_string()),
        seekers: unless(!has_io, size.seekers.to_string()),
        files: unless(!has_files, thousands.to_string()),
        size_max: unless(!has_files, largest),
        size_min: unless(!has_files || size_min == 0, size_min.to_string()),
        directories: unless(!has_files || directories == 1, directories.to_string()),
        ..Line::default()
    }
}

struct Lowering<'a> {
    typed: &'a Typed,
    size: &'a Size,
    seed: u32,
    per_char_mib: u64,
    file: &'a str,
}

impl Lowering<'_> {
    fn workload(&self) -> Workload {
        let mut phases = Vec::new();
        if self.size.mib > 0 {
            for (place, name) in PHASES[..IO_PHASES].iter().enumerate() {
                phases.extend(self.io_phase(place, name));
            }
            if let Some(last) = phases.last_mut() {
                last.keeps_files = false;
            }
        }
        if self.typed.files.thousands > 0 {
            for (place, name) in PHASES.iter().enumerate().skip(IO_PHASES) {
                phases.push(phase(name, vec![self.file_set(place - IO_PHASES)]));
            }
        }
        let content = if self.typed.is_compat { Content::Zero } else { Content::Incompressible };
        workload("bonnie++", u64::from(self.seed), content, phases)
    }

    /// One of the phases on the large file; `None` for one that is left out.
    fn io_phase(&self, place: usize, name: &str) -> Option<Phase> {
        let is_per_char = matches!(place, 0 | 3);
        if is_per_char && self.per_char_mib == 0 {
            return None;
        }
        let mib = if is_per_char { self.per_char_mib } else { self.size.mib };
        let io = if is_per_char { STEP } else { self.size.chunk };
        let is_direct = self.typed.is_direct && (place == 1 || !self.typed.is_compat);
        let base = Tenant {
            file_bytes: Bytes(mib << 20),
            io_size_bytes: Bytes(io),
            access: if is_direct { Access::Direct } else { Access::Plain },
            manner: Manner { call_bytes: u32::from(is_per_char), ..Manner::default() },
            ..tenant(self.file)
        };
        let write = |base| Tenant { opening: Opening::Create, direction: Direction::Write, ..base };
        let tenants = match place {
            0 | 1 => vec![write(base)],
            2 => vec![Tenant { direction: Direction::Update { write_share: 1.0 }, ..base }],
            3 | 4 => vec![base],
            _ => self.seekers(&base),
        };
        (!tenants.is_empty()).then(|| phase(name, tenants))
    }

    /// The numbers of the program: first a ticket for each seek, then names and sizes of files.
    fn draws(&self) -> Draws {
        let tickets = if self.size.mib > 0 { self.size.seeks } else { 0 };
        Draws { source: Source::CLibrary { seed: self.seed }, tickets }
    }

    /// Tickets are dealt in turn; who has one less than others ends earlier.
    fn seekers(&self, base: &Tenant) -> Vec<Tenant> {
        let Size { seeks, seekers, .. } = *self.size;
        if seeks == 0 {
            return Vec::new();
        }
        vec![Tenant {
            workers: u32::try_from(seekers.min(seeks)).expect("there are at most 1024"),
            pattern: Pattern::Uniform,
            direction: Direction::Update { write_share: UPDATE_SHARE },
            fsync: if self.typed.is_flushed {
                FsyncPolicy::Every { ops: 1 }
            } else {
                FsyncPolicy::Timed
            },
            limit: Limit::Ops { ops: seeks.div_ceil(seekers), within_ns: None },
            draws: Some(self.draws()),
            ..base.clone()
        }]
    }

    fn file_set(&self, place: usize) -> Tenant {
        let Files { thousands, size_max, size_min, directories, chunk } = self.typed.files;
        let action = [FileAction::Create, FileAction::Read, FileAction::Remove][place % 3];
        let order = if place < 3 { FileOrder::Sequential } else { FileOrder::Random };
        let work = FileSetWork {
            action,
            order,
            files: thousands << 10,
            directories,
            size_min_bytes: Bytes(if size_max > 0 { size_min } else { 0 }),
            size_max_bytes: Bytes(size_max.max(0).cast_unsigned()),
            link: match size_max {
                -1 => LinkKind::Hard,
                -2 => LinkKind::Symbolic,
                _ => LinkKind::None,
            },
            is_flushed: self.typed.is_flushed,
            is_sparse: false,
        };
        Tenant {
            file_bytes: Bytes(chunk),
            io_size_bytes: Bytes(chunk),
            direction: if action == FileAction::Read { Direction::Read } else { Direction::Write },
            file_set: Some(work),
            draws: Some(self.draws()),
            workers: copies(self.typed),
            is_file_shared: copies(self.typed) == 1,
            ..tenant(self.file)
        }
    }
}
