//! fio's engines and what stands for them.

use iolab_model::op::{FlagName, TransferFlags};

use super::geometry::Wrong;
use super::job::Job;
use crate::diagnostic::Problem;

/// Work of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Transfers, one under way.
    Waits,
    /// Transfers, several under way.
    Queues,
    /// Makes, looks for or removes files, and moves no data.
    Names,
    /// Changes lengths and blocks of files, and moves no data.
    Space,
    /// Touches no files.
    Nothing,
}

/// An engine of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine {
    /// As fio calls it.
    pub name: &'static str,
    kind: Kind,
    /// Description, in one line.
    pub doc: &'static str,
    /// Job options that are those of this engine.
    pub options: &'static [&'static str],
}

const fn engine(name: &'static str, kind: Kind, doc: &'static str) -> Engine {
    Engine { name, kind, doc, options: &[] }
}

impl Engine {
    const fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }
}

/// The engine that burns the CPU.
pub const CPU: &str = "cpuio";
/// The engine that allocates.
pub const FALLOC: &str = "falloc";
/// The engine that sets lengths.
pub const FTRUNCATE: &str = "ftruncate";

/// Engines that are done.
pub const ENGINES: [Engine; 17] = [
    engine("psync", Kind::Waits, "pread and pwrite"),
    engine("sync", Kind::Waits, "lseek, then read or write"),
    engine("vsync", Kind::Waits, "lseek, then readv or writev"),
    engine("pvsync", Kind::Waits, "preadv and pwritev"),
    engine("pvsync2", Kind::Waits, "preadv2 and pwritev2").with(&[
        "hipri",
        "hipri_percentage",
        "uncached",
        "nowait",
    ]),
    engine("libaio", Kind::Queues, "Linux's older asynchronous I/O").with(&["userspace_reap"]),
    engine("io_uring", Kind::Queues, "rings shared with the kernel").with(&[
        "fixedbufs",
        "registerfiles",
        "sqthread_poll",
        "sqthread_poll_cpu",
        "hipri",
        "nonvectored",
        "uncached",
        "nowait",
        "force_async",
    ]),
    engine("posixaio", Kind::Queues, "POSIX asynchronous I/O of the C library: threads"),
    engine("mmap", Kind::Waits, "a mapped file").with(&["thp"]),
    engine("splice", Kind::Waits, "splice and vmsplice, through a pipe"),
    engine("null", Kind::Nothing, "nothing is transferred: the cost of the generator itself"),
    engine(CPU, Kind::Nothing, "the CPU is burnt, nothing is transferred").with(&[
        "cpuload",
        "cpuchunks",
        "cpumode",
        "exit_on_io_done",
    ]),
    engine("filecreate", Kind::Names, "each file is made; counted as a read of one block"),
    engine("filestat", Kind::Names, "each file is asked about; counted as a read of one block")
        .with(&["stat_type"]),
    engine("filedelete", Kind::Names, "each file is removed; counted as a read of one block"),
    engine(
        FALLOC,
        Kind::Space,
        "fallocate(2): a write allocates a range, a read keeps the length, a trim makes a hole",
    ),
    engine(FTRUNCATE, Kind::Space, "ftruncate(2): a write sets the length to where it would begin"),
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
    /// Tell whether several of its transfers can be under way.
    pub fn is_asynchronous(self) -> bool {
        self.kind == Kind::Queues
    }

    /// Tell whether it makes, looks for or removes files, and moves no data.
    pub fn is_of_names(self) -> bool {
        self.kind == Kind::Names
    }

    /// Tell whether it changes lengths and blocks of files, and moves no data.
    pub fn is_of_space(self) -> bool {
        self.kind == Kind::Space
    }

    /// Tell whether it touches no files.
    pub fn is_without_files(self) -> bool {
        self.kind == Kind::Nothing
    }
}

/// Reason why an engine of fio is not done.
pub fn why_not(name: &str) -> Option<&'static str> {
    OTHERS.iter().find(|(other, _)| *other == name).map(|(_, why)| *why)
}

/// The engine of a job.
pub fn of(job: &Job) -> Result<Engine, Wrong> {
    if let Some(found) = ENGINES.iter().find(|engine| engine.name == job.engine) {
        return Ok(*found);
    }
    let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
    let why = match why_not(&job.engine) {
        Some(why) => format!(": {why}"),
        None => iolab_model::nearest::did_you_mean(&job.engine, names.iter().copied()),
    };
    let shown: String = job.engine.chars().take(40).collect();
    let what = format!("ioengine {shown} is not supported{why}");
    Err(("ioengine", Problem::new(what, format!("supported: {}", names.join(", ")))))
}

/// Our engine for a job.
pub fn ours(job: &Job, engine: Engine) -> Result<&'static str, Wrong> {
    if job.kernel_thread_every > 0 && engine.name != "io_uring" {
        let what = format!("force_async does not go with ioengine={}", engine.name);
        return Err(("force_async", Problem::new(what, "use it with ioengine=io_uring")));
    }
    // That polls by a flag of each transfer.
    let is_polled = job.is_polled && engine.name != "pvsync2";
    let kinds = [job.has_submission_thread, job.has_fixed_buffers, is_polled];
    if is_polled && engine.name == "io_uring" && !job.is_direct {
        let what = "hipri through the page cache has nothing to poll for".to_owned();
        return Err(("hipri", Problem::new(what, "write direct=1 as well, or leave hipri out")));
    }
    let flags = [("nowait", job.is_nowait), ("uncached", job.is_uncached)];
    if let Some((name, _)) = flags.iter().find(|flag| flag.1)
        && !["io_uring", "pvsync2"].contains(&engine.name)
    {
        let what = format!("{name} does not go with ioengine={}", engine.name);
        return Err((name, Problem::new(what, "use it with ioengine=io_uring or pvsync2")));
    }
    if engine.name != "io_uring" {
        let names = ["sqthread_poll", "fixedbufs", "hipri"];
        if let Some(place) = kinds.iter().position(|is_on| *is_on) {
            let what = format!("{} does not go with ioengine={}", names[place], engine.name);
            let also = if names[place] == "hipri" { " or pvsync2" } else { "" };
            let remedy = format!("use it with ioengine=io_uring{also}");
            return Err((names[place], Problem::new(what, remedy)));
        }
        return Ok(match engine.name {
            CPU => "null",
            _ if engine.is_of_names() || engine.is_of_space() => "psync",
            name => name,
        });
    }
    Ok(match kinds {
        [false, false, false] => "io_uring",
        [true, false, false] => "io_uring_sqpoll",
        [false, true, false] => "io_uring_fixed",
        [false, false, true] => "io_uring_poll",
        [true, true, false] => "io_uring_fixed_sqpoll",
        [false, true, true] => "io_uring_fixed_poll",
        [true, false, true] => "io_uring_sqpoll_poll",
        [true, true, true] => "io_uring_fixed_sqpoll_poll",
    })
}

/// Flags of each transfer of a job.
pub fn flags(job: &Job, engine: Engine) -> TransferFlags {
    let asked = [
        (FlagName::HighPriority, job.is_polled && engine.name == "pvsync2"),
        (FlagName::NoWait, job.is_nowait),
        (FlagName::DoNotCache, job.is_uncached),
    ];
    let flags = asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(flag, _)| flag);
    flags.collect::<Vec<_>>().into()
}
