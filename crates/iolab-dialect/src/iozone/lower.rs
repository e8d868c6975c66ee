//! From what was typed to what it means: rows, files, and one workload per row.

use std::fmt::Write as _;

use iolab_model::op::{Access, Durability, TransferFlags};
use iolab_model::target::Content;
use iolab_model::{Bytes, Ns, Seed};
use iolab_workload::Workload;
use iolab_workload::preset::IozoneTest as T;
use iolab_workload::preset::{IozoneRequest, IozoneTest, iozone};
use iolab_workload::spec::{
    Direction, Flush, FsyncPolicy, LockPolicy, Opening, Pattern, Phase, Tenant, WorkersAs,
};
use iolab_workload::verify::Verify;

use super::plan::{Columns, Plan, Row, Show, Throughput};
use super::select::{single_tests, throughput_tests};
use super::tables::{children_counts, sizes};
use super::typed::{Typed, Unit};
use crate::diagnostic::Problem;
use crate::option::Common;

/// The file of single and automatic mode, and the stem of throughput mode's files.
const FILE: &str = "iozone.tmp";
const FILES: &str = "iozone.DUMMY";

/// What the words mean; `command` is the whole command line.
pub fn lower(mut typed: Typed, common: Common, command: String) -> Result<Plan, Problem> {
    check(&typed)?;
    if typed.children.keeps_files && common.on.is_some() {
        typed.notes.push("-w: the testbed of --on and its files are removed at the end".into());
    }
    let is_throughput = typed.is_throughput();
    let tests =
        if is_throughput { throughput_tests(&mut typed)? } else { single_tests(&mut typed)? };
    note_page_cache(&mut typed, &tests);
    let counts = children_counts(&typed);
    let places = places(&typed, counts.iter().copied().max().unwrap_or(1))?;
    let mut rows = Vec::new();
    for (file_kb, record_kb) in sizes(&typed, counts.iter().copied().max().unwrap_or(1))? {
        for &children in &counts {
            let size = Size { file_kb, record_kb, children };
            let files = &places.names[..children as usize];
            rows.push(row(&typed, &common, (&tests, files), size)?);
        }
    }
    Ok(Plan {
        dialect: "iozone".into(),
        only_text: None,
        notes: typed.notes.clone(),
        directory: places.directory,
        files: places.names,
        first_cpu: typed.children.first_cpu,
        cache: if typed.how.is_cold { "cold" } else { "as_is" }.into(),
        workbook: typed.shown.workbook.clone(),
        show: show(&typed, &tests, &counts, command),
        common,
        rows,
    })
}

/// Streams always go through the page cache: said before their numbers stand beside direct ones.
fn note_page_cache(typed: &mut Typed, tests: &[IozoneTest]) {
    let how = &typed.how;
    let asked = match how {
        how if how.is_direct => "-I",
        how if how.is_sync => "-o",
        how if how.is_data_sync => "-+D",
        _ => return,
    };
    if tests.iter().any(|test| matches!(test, T::Fwrite | T::Fread)) {
        typed.notes.push(format!(
            "{asked} does not reach fwrite and fread: their columns are page-cache numbers"
        ));
    }
}

/// Combinations that mean nothing.
fn check(typed: &Typed) -> Result<(), Problem> {
    let wrong = |what: &str, remedy: &str| Err(Problem::new(what, remedy));
    let (how, table) = (&typed.how, &typed.table);
    let is_auto = table.is_auto || table.is_old_auto;
    let has_range = table.file_kb_range != (None, None) || table.record_kb_range != (None, None);
    if typed.is_throughput() && (is_auto || has_range) {
        return wrong(
            "throughput mode (-t, -l, -u) and automatic mode (-a -n -g -y -q) exclude each other",
            "for throughput mode give one -s and one -r",
        );
    }
    if typed.is_throughput() && typed.shown.unit == Unit::Microseconds {
        return wrong("-N does not exist in throughput mode", "use -O, or leave out -t");
    }
    if typed.is_throughput() && typed.children.file.is_some() {
        return wrong("-f names one file for several children", "use -F with one name per child");
    }
    if typed.is_throughput() && how.is_cold {
        return wrong("-U does not exist in throughput mode", "leave it out, or leave out -t");
    }
    if how.is_mapped && how.depth.is_some() {
        return wrong("mapped files (-B, -D) have no asynchronous I/O", "use one of -B and -H");
    }
    if how.is_mapped && how.is_direct {
        return wrong("mapped files (-B, -D) have no direct I/O", "use one of -B and -I");
    }
    if how.is_mapped && (how.is_sync || how.is_data_sync) {
        return wrong("O_SYNC means nothing for mapped files", "use -B -G in place of -o");
    }
    if how.is_mapped && how.times_close {
        return wrong("-c is not done for mapped files", "use -e, which is");
    }
    if how.syncs && !how.is_mapped && !typed.is_compat {
        return wrong("-G does nothing without mapped files", "add -B, or leave out -G");
    }
    if how.locks_records && how.depth.is_some_and(|(_, depth)| depth > 1) {
        return wrong("-+l locks one record at a time", "leave out -H or -k");
    }
    let (readers, percent) = (typed.children.readers, typed.children.read_percent);
    if readers.is_some() && percent.is_some() {
        return wrong("-+p and -+K both say who reads in test 8", "use one of them");
    }
    if typed.children.lower > typed.children.upper && typed.children.upper.is_some() {
        return wrong("-l is more than -u", "give the smaller number to -l");
    }
    Ok(())
}

/// Where the files lie.
struct Places {
    directory: String,
    names: Vec<String>,
}

fn places(typed: &Typed, children: u32) -> Result<Places, Problem> {
    let children = children as usize;
    if !typed.is_throughput() {
        if !typed.children.files.is_empty() {
            return Err(Problem::new("-F belongs to throughput mode", "use -f, or add -t N"));
        }
        let path = typed.children.file.as_deref().unwrap_or(FILE);
        let (directory, name) = split(path)?;
        return Ok(Places { directory, names: vec![name] });
    }
    let files = &typed.children.files;
    if files.is_empty() {
        let names = (0..children).map(|child| format!("{FILES}.{child}")).collect();
        return Ok(Places { directory: String::new(), names });
    }
    if files.len() < children {
        return Err(Problem::new(
            format!("-F names {} files for {children} children", files.len()),
            "write -F after the largest -t or -u, with one name per child",
        ));
    }
    let split: Vec<(String, String)> =
        files.iter().map(|file| split(file)).collect::<Result<_, _>>()?;
    let directory = split[0].0.clone();
    if let Some((other, _)) = split.iter().find(|(other, _)| *other != directory) {
        let shown = |path: &str| if path.is_empty() { "." } else { path }.to_owned();
        return Err(Problem::new(
            format!("-F names files in {} and in {}", shown(&directory), shown(other)),
            "put them into one directory; for several disks run one command on each",
        ));
    }
    Ok(Places { directory, names: split.into_iter().map(|(_, name)| name).collect() })
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

fn show(typed: &Typed, tests: &[IozoneTest], counts: &[u32], command: String) -> Show {
    let shown = &typed.shown;
    let is_plain = !typed.how.is_mapped && typed.how.depth.is_none();
    let has = |test: IozoneTest| tests.contains(&test);
    Show {
        banner: typed.banner.clone(),
        command,
        unit: shown.unit,
        has_report: shown.has_report || shown.workbook.is_some(),
        has_children: shown.has_children,
        has_cpu: shown.has_cpu,
        has_machine: shown.has_machine,
        compute_ms: typed.how.compute_ms,
        cache_kb: shown.cache_kb,
        cache_line: shown.cache_line,
        stride: typed.how.stride,
        columns: Columns {
            is_short: typed.table.is_old_auto,
            has_streams: is_plain,
            is_fwrite_blank: !is_plain && !typed.tests.is_empty() && !typed.tests.contains(&6),
            has_positioned: typed.table.has_extensions && is_plain,
            has_vectored: has(T::Pwritev) || has(T::Preadv),
            has_no_retest: typed.table.has_no_retest,
        },
        throughput: typed.is_throughput().then(|| Throughput {
            child: if typed.children.are_threads { "thread" } else { "process" }.into(),
            range: match (typed.children.lower, typed.children.upper) {
                (None, None) => None,
                _ => Some((counts[0], counts[counts.len() - 1])),
            },
            children: match (typed.children.lower, typed.children.upper) {
                (None, None) => counts[counts.len() - 1],
                _ => counts[0],
            },
        }),
    }
}

/// Size of one row.
#[derive(Clone, Copy)]
struct Size {
    file_kb: u64,
    record_kb: u64,
    children: u32,
}

fn row(
    typed: &Typed,
    common: &Common,
    (tests, files): (&[IozoneTest], &[String]),
    size: Size,
) -> Result<Row, Problem> {
    let Size { file_kb, record_kb, children } = size;
    let mut name = format!("{}/{}", short(file_kb), short(record_kb));
    if typed.is_throughput() {
        let _ = write!(name, "/{children}");
    }
    let is_elsewhere = common.on.is_some();
    let is_simulated = common.on.as_deref().is_some_and(|on| on.starts_with("sim"));
    let build = Build { typed, files, size, is_elsewhere, is_simulated };
    let workload = build.workload(tests)?;
    workload.check().map_err(|error| {
        Problem::new(format!("{name}: {error}"), "change -s, -r or the way I/O is done")
    })?;
    Ok(Row { name, file_kb, record_kb, children, tests: tests.to_vec(), workload })
}

/// Size in the largest unit that divides it.
fn short(kb: u64) -> String {
    match kb {
        kb if kb % (1 << 20) == 0 => format!("{}g", kb >> 20),
        kb if kb % (1 << 10) == 0 => format!("{}m", kb >> 10),
        kb => format!("{kb}k"),
    }
}

/// What all phases of a row share.
struct Build<'a> {
    typed: &'a Typed,
    files: &'a [String],
    size: Size,
    /// On a testbed, where no file of an earlier command can be.
    is_elsewhere: bool,
    is_simulated: bool,
}

impl Build<'_> {
    fn workload(&self, tests: &[IozoneTest]) -> Result<Workload, Problem> {
        let (typed, count) = (self.typed, tests.len());
        let first = self.preset(T::Write)?;
        let mut workload = Workload { phases: Vec::with_capacity(count), ..first };
        let mut is_there = false;
        for (index, &test) in tests.iter().enumerate() {
            let mut phase = self.phase(test)?;
            for tenant in &mut phase.tenants {
                tenant.opening = match test {
                    T::Write => Opening::Create,
                    _ if is_there => Opening::Existing,
                    T::Fwrite | T::Pwrite | T::Pwritev => Opening::Create,
                    _ if self.is_elsewhere => Opening::LaidOut,
                    _ => Opening::Existing,
                };
            }
            is_there = true;
            phase.keeps_files = index + 1 < count || typed.children.keeps_files;
            workload.phases.push(phase);
        }
        if typed.how.verify.is_some() && workload.phases[0].tenants[0].opening == Opening::Existing
        {
            return Err(Problem::new(
                "-V checks what the same command wrote, and it writes nothing first",
                "add -i 0",
            ));
        }
        Ok(workload)
    }

    /// What the preset says about a test.
    fn preset(&self, test: IozoneTest) -> Result<Workload, Problem> {
        let (how, children) = (&self.typed.how, &self.typed.children);
        let request = IozoneRequest {
            tests: vec![test],
            file_bytes: Bytes(self.size.file_kb << 10),
            io_size_bytes: Bytes(self.size.record_kb << 10),
            workers: self.size.children,
            engine: match how {
                how if how.is_mapped => "mmap",
                how if how.depth.is_some() => "io_uring",
                _ => "sync",
            }
            .into(),
            // A simulation has no processes; its workers are alone in their files all the same.
            workers_as: match (self.typed.is_throughput(), children.are_threads) {
                (true, false) if !self.is_simulated => WorkersAs::Processes,
                _ => WorkersAs::Threads,
            },
            access: if how.is_direct { Access::Direct } else { Access::Plain },
            durability: match how {
                how if how.is_sync => Durability::Sync,
                how if how.is_data_sync => Durability::DataSync,
                _ => Durability::None,
            },
            fsync: iolab_workload::preset::FsyncChoice::None,
            fsync_every: 0,
            flush: Flush::Fsync,
            vectors: 0,
            flags: TransferFlags::NONE,
            lock: match how {
                how if how.locks_records => LockPolicy::Record,
                how if how.locks_file => LockPolicy::WholeFile,
                _ => LockPolicy::None,
            },
            is_preallocated: false,
            seed: Seed(u64::from(how.verify.unwrap_or(0)) + 1),
            stride: how.stride,
            depth: how.depth.map_or(1, |(_, depth)| depth),
            content: if self.typed.is_compat && how.verify.is_none() {
                Content::Zero
            } else {
                Content::Incompressible
            },
            verify: if how.verify.is_some() { Verify::Full } else { Verify::None },
            pin_cpus: Vec::new(),
        };
        let mut workload =
            iozone(&request).map_err(|error| Problem::new(error.to_string(), "change -s or -r"))?;
        // A row must not cost more than its work; what the harness costs is known elsewhere.
        workload.is_calibrated = false;
        Ok(workload)
    }

    fn phase(&self, test: IozoneTest) -> Result<Phase, Problem> {
        let is_mix = test == T::Mix;
        let workload = self.preset(if is_mix { T::RandomRead } else { test })?;
        let mut phase = workload.phases.into_iter().next().expect("one test makes one phase");
        test.name().clone_into(&mut phase.name);
        phase.is_stonewalled = self.typed.is_throughput() && !self.typed.children.is_stonewall_off;
        let mut tenant = phase.tenants.remove(0);
        self.adjust(&mut tenant, test);
        phase.tenants = if is_mix { self.mix(&tenant) } else { vec![tenant] };
        Ok(phase)
    }

    /// What the preset does not know.
    fn adjust(&self, tenant: &mut Tenant, test: IozoneTest) {
        let (how, children) = (&self.typed.how, &self.typed.children);
        tenant.files = self.files.to_vec();
        tenant.primes_first_record &= !self.typed.is_throughput();
        let is_stream = tenant.access == Access::Stdio;
        let syncs = how.is_mapped && (how.syncs || how.syncs_async) && tenant.writes();
        if syncs {
            tenant.flush = if how.syncs { Flush::Msync } else { Flush::MsyncAsync };
        }
        tenant.fsync = match how {
            _ if syncs => FsyncPolicy::Every { ops: 1 },
            how if how.times_flush => FsyncPolicy::Timed,
            how if how.times_close => FsyncPolicy::None,
            _ => FsyncPolicy::After,
        };
        tenant.is_close_timed = how.times_close;
        if is_stream || matches!(test, T::Pwritev | T::Preadv | T::Pwrite | T::Pread) {
            tenant.depth = 1;
        }
        tenant.think_ns = Ns::from_ms(how.compute_ms);
        tenant.rate_ops_per_s = children.ops_per_s.map(f64::from);
    }

    /// In the mix some children read and the others write: every second one, or as asked.
    fn mix(&self, like: &Tenant) -> Vec<Tenant> {
        let children = &self.typed.children;
        let count = self.size.children;
        let reads = |child: u32| match (children.readers, children.read_percent) {
            (Some(readers), _) => child < readers,
            (None, Some(percent)) => child < count * percent / 100,
            (None, None) => child.is_multiple_of(2),
        };
        let half = |name: &str, direction: Direction, is_wanted: &dyn Fn(u32) -> bool| {
            let files: Vec<String> = (0..count)
                .filter(|child| is_wanted(*child))
                .map(|child| self.files[child as usize].clone())
                .collect();
            let pattern =
                if children.is_mix_sequential { Pattern::Sequential } else { Pattern::Permutation };
            Tenant {
                name: name.into(),
                workers: files.len() as u32,
                files,
                direction,
                pattern,
                ..like.clone()
            }
        };
        let readers = half("readers", Direction::Read, &reads);
        let writers = half("writers", Direction::Write, &|child| !reads(child));
        [readers, writers].into_iter().filter(|tenant| tenant.workers > 0).collect()
    }
}
