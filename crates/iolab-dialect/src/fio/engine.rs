//! fio's engines and what stands for them.

use super::geometry::Wrong;
use super::job::Job;
use crate::diagnostic::Problem;

/// An engine of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Engine {
    /// As fio calls it.
    pub name: &'static str,
    /// Several transfers can be under way.
    pub is_asynchronous: bool,
    /// True if it makes, looks for or removes files and moves no data.
    pub is_of_names: bool,
    /// True if it changes lengths and blocks of files and moves no data.
    pub is_of_space: bool,
    /// True if it touches no files.
    pub is_without_files: bool,
    /// Description, in one line.
    pub doc: &'static str,
}

const fn engine(name: &'static str, is_asynchronous: bool, doc: &'static str) -> Engine {
    Engine {
        name,
        is_asynchronous,
        is_of_names: false,
        is_of_space: false,
        is_without_files: false,
        doc,
    }
}

const fn of_names(name: &'static str, doc: &'static str) -> Engine {
    Engine { is_of_names: true, ..engine(name, false, doc) }
}

const fn of_space(name: &'static str, doc: &'static str) -> Engine {
    Engine { is_of_space: true, ..engine(name, false, doc) }
}

const fn without_files(name: &'static str, doc: &'static str) -> Engine {
    Engine { is_without_files: true, ..engine(name, false, doc) }
}

/// The engine that burns the CPU.
pub const CPU: &str = "cpuio";
/// The engine that allocates.
pub const FALLOC: &str = "falloc";
/// The engine that sets lengths.
pub const FTRUNCATE: &str = "ftruncate";

/// Engines that are done.
pub const ENGINES: [Engine; 17] = [
    engine("psync", false, "pread and pwrite"),
    engine("sync", false, "lseek, then read or write"),
    engine("vsync", false, "lseek, then readv or writev"),
    engine("pvsync", false, "preadv and pwritev"),
    engine("pvsync2", false, "preadv2 and pwritev2"),
    engine("libaio", true, "Linux's older asynchronous I/O"),
    engine("io_uring", true, "rings shared with the kernel"),
    engine("posixaio", true, "POSIX asynchronous I/O of the C library: threads"),
    engine("mmap", false, "a mapped file"),
    engine("splice", false, "splice and vmsplice, through a pipe"),
    without_files("null", "nothing is transferred: the cost of the generator itself"),
    without_files(CPU, "the CPU is burnt, nothing is transferred"),
    of_names("filecreate", "each file is made; counted as a read of one block"),
    of_names("filestat", "each file is asked about; counted as a read of one block"),
    of_names("filedelete", "each file is removed; counted as a read of one block"),
    of_space(
        FALLOC,
        "fallocate(2): a write allocates a range, a read keeps the length, a trim makes a hole",
    ),
    of_space(FTRUNCATE, "ftruncate(2): a write sets the length to where it would begin"),
];

/// fio's other engines, and why they are refused.
const OTHERS: [(&str, &str); 24] = [
    ("exec", "a job file starts no programs here"),
    ("sg", "raw commands to devices are not done"),
    ("net", "there is no network"),
    ("netsplice", "there is no network"),
    ("rdma", "there is no network"),
    ("rados", "there is no network"),
    ("rbd", "there is no network"),
    ("gfapi", "there is no network"),
    ("gfapi_async", "there is no network"),
    ("http", "there is no network"),
    ("nbd", "there is no network"),
    ("libhdfs", "there is no network"),
    ("dfs", "there is no network"),
    ("nfs", "there is no network"),
    ("pmemblk", "persistent memory is not done"),
    ("dev-dax", "persistent memory is not done"),
    ("libpmem", "persistent memory is not done"),
    ("mtd", "flash without a block layer is not done"),
    ("e4defrag", "it is not done"),
    ("libblkio", "it is not done"),
    ("io_uring_cmd", "raw commands to devices are not done"),
    ("xnvme", "raw commands to devices are not done"),
    ("windowsaio", "this is Linux"),
    ("solarisaio", "this is Linux"),
];

impl Engine {
    /// Tell whether its work is the same with whatever engine the jobs beside it use.
    pub fn goes_with_all(self) -> bool {
        self.name == CPU || self.is_of_names || self.is_of_space
    }
}

/// The engine of a job.
pub fn of(job: &Job) -> Result<Engine, Wrong> {
    if let Some(found) = ENGINES.iter().find(|engine| engine.name == job.engine) {
        return Ok(*found);
    }
    let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
    let other = OTHERS.iter().find(|(name, _)| *name == job.engine);
    let why = match other {
        Some((_, why)) => format!(": {why}"),
        None => iolab_model::nearest::did_you_mean(&job.engine, names.iter().copied()),
    };
    let shown: String = job.engine.chars().take(40).collect();
    let what = format!("ioengine {shown} is not supported{why}");
    Err(("ioengine", Problem::new(what, format!("supported: {}", names.join(", ")))))
}

/// Our engine for a job.
pub fn ours(job: &Job, engine: Engine) -> Result<&'static str, Wrong> {
    if job.kernel_thread_every > 0 && engine.name != "io_uring" {
        let what = format!("force_async with ioengine={}", engine.name);
        return Err(("force_async", Problem::new(what, "use it with ioengine=io_uring")));
    }
    let kinds = [job.has_submission_thread, job.has_fixed_buffers, job.is_polled];
    if engine.name != "io_uring" {
        let names = ["sqthread_poll", "fixedbufs", "hipri"];
        if let Some(place) = kinds.iter().position(|is_on| *is_on) {
            let what = format!("{} with ioengine={}", names[place], engine.name);
            return Err((names[place], Problem::new(what, "use it with ioengine=io_uring")));
        }
        return Ok(match engine.name {
            // Whatever the jobs beside it use.
            CPU => "null",
            _ if engine.is_of_names || engine.is_of_space => "psync",
            name => name,
        });
    }
    match kinds {
        [false, false, false] => Ok("io_uring"),
        [true, false, false] => Ok("io_uring_sqpoll"),
        [false, true, false] => Ok("io_uring_fixed"),
        [false, false, true] => Ok("io_uring_poll"),
        _ => {
            let what = "several of sqthread_poll, fixedbufs and hipri".to_owned();
            Err(("ioengine", Problem::new(what, "use one of them")))
        }
    }
}
