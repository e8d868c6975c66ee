//! Performs a phase that makes, reads or removes many small files, and times each of them.
//!
//! The calls are those of bonnie++ 2.00, as traced: names relative to the set's own directory,
//! subdirectories entered in sequential order and named in paths in random order, sync(2) at the
//! end of what changes. A directory's order is the kernel's. Making the directories is not timed. A
//! single file of a size is made as by mkfile.
//!
//! Left out: several workers, and direct I/O, which many small files are not made with.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use iolab_drive::clock::monotonic;
use iolab_drive::coordinate::{Observer, PhaseOutcome, WorkerOutcome, assemble};
use iolab_drive::recorder::Recorder;
use iolab_model::op::{Handle, Op, Submission, Token};
use iolab_model::seed::Stream;
use iolab_model::target::Content;
use iolab_model::{Bytes, Completion, Error, Ns};
use iolab_real::created;
use iolab_workload::StreamReport;
use iolab_workload::draws::{Draws, Source};
use iolab_workload::file_set::{DrawnSet, FileAction, FileOrder, FileSetWork, LinkKind};
use iolab_workload::spec::{Opening, Phase, Tenant, Workload};

/// Between two questions whether to stop.
const WATCH_EVERY: u64 = 32;
/// Of a file to swap to: sticky, for its owner only (mkfile of Solaris and illumos).
const SWAP_MODE: u32 = 0o1600;

/// Runs the phase in the working directory.
///
/// # Errors
///
/// The directory of the set cannot be made or entered; what fails later is in the report.
pub fn run_files<O: Observer>(
    (workload, phase): (&Workload, &Phase),
    observer: &mut O,
) -> Result<PhaseOutcome, Error> {
    let tenant = &phase.tenants[0];
    let Some(work) = &tenant.file_set else {
        unreachable!("only phases of file sets come here");
    };
    let home = File::open(".").map_err(|error| failed("open", ".", &error))?;
    if work.action != FileAction::Extend {
        enter(work, &tenant.file)?;
    }
    observer.laid_out();
    let mut runner = Runner::new(work, (workload, tenant), observer);
    let outcome = runner.run();
    let left = nix::unistd::fchdir(&home);
    left.map_err(|errno| failed("leave", &tenant.file, &io::Error::from(errno)))?;
    if work.action == FileAction::Remove && outcome.is_ok() {
        let _ = fs::remove_dir(&tenant.file);
    }
    let worker = runner.finish(outcome);
    Ok(assemble(phase, vec![worker], workload.interval_ns))
}

/// Makes the directory of the set, and those in it, where it is the first to work in them.
fn enter(work: &FileSetWork, folder: &str) -> Result<(), Error> {
    let make = |path: &str| match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("make", path, &error))
        }
        _ => Ok(()),
    };
    if work.action == FileAction::Create {
        make(folder)?;
    }
    std::env::set_current_dir(folder).map_err(|error| failed("enter", folder, &error))?;
    if work.action == FileAction::Create {
        for name in (0..work.directories).filter_map(|number| work.directory_name(number)) {
            make(&name)?;
        }
    }
    Ok(())
}

fn failed(what: &str, path: &str, error: &io::Error) -> Error {
    Error::BadWorkload {
        problem: format!("cannot {what} the directory {path}: {error}"),
        remedy: "see that the testbed's file system is sound and has space".into(),
    }
}

struct Runner<'a, O> {
    work: &'a FileSetWork,
    /// Of the set's directory, or of the one file.
    name: String,
    /// What is there already is somebody's.
    takes_only_free_names: bool,
    draws: Draws,
    observer: &'a mut O,
    recorder: Recorder,
    report: StreamReport,
    buffer: Vec<u8>,
    /// What fills it; absent: zeros.
    contents: Option<Stream>,
    started: Ns,
    is_stopped: bool,
}

impl<'a, O: Observer> Runner<'a, O> {
    fn new(
        work: &'a FileSetWork,
        (workload, tenant): (&Workload, &Tenant),
        observer: &'a mut O,
    ) -> Self {
        let mut buffer = vec![0; tenant.io_size_bytes.0 as usize];
        let is_zero = workload.content == Content::Zero;
        let mut contents = (!is_zero).then(|| workload.seed.stream("file contents", 0));
        if let Some(contents) = &mut contents {
            contents.fill(&mut buffer);
        }
        Self {
            work,
            name: tenant.file.clone(),
            takes_only_free_names: tenant.opening == Opening::New,
            draws: tenant.draws.clone().unwrap_or(Draws {
                source: Source::CLibrary { seed: workload.seed.0 as u32 },
                tickets: 0,
            }),
            observer,
            recorder: Recorder::new(1, workload.interval_ns, None),
            report: StreamReport::default(),
            buffer,
            contents,
            started: Ns(0),
            is_stopped: false,
        }
    }

    fn run(&mut self) -> io::Result<()> {
        // Names and order are made before the clock runs.
        let (names, sizes) = self.paths_and_sizes();
        self.observer.starting();
        self.started = monotonic();
        self.observer.released();
        let done = match (self.work.action, self.work.order) {
            (FileAction::Create, _) => self.create_all(&names, &sizes),
            (FileAction::Extend, _) => self.extend(),
            (_, FileOrder::Sequential) => self.in_order_of_directory(),
            (_, FileOrder::Random) => self.in_given_order(&names),
        };
        let done = done.and_then(|()| self.end());
        self.report.elapsed_ns = monotonic().since(self.started).0;
        self.report.started_ns = self.started.0;
        self.observer.ended();
        done
    }

    /// Paths in the order in which they are touched, none where the directory gives the order; and
    /// the sizes of what is made.
    fn paths_and_sizes(&self) -> (Vec<String>, Vec<Bytes>) {
        let work = self.work;
        let is_given = work.action == FileAction::Create || work.order == FileOrder::Random;
        if !is_given {
            return (Vec::new(), Vec::new());
        }
        let DrawnSet { names, sizes, order } = work.drawn(&self.draws);
        let path = |(index, name): (u64, String)| {
            let folder = work.directory_name(work.directory_of(index));
            folder.map_or_else(|| name.clone(), |folder| format!("{folder}/{name}"))
        };
        let mut paths: Vec<String> = (0..).zip(names).map(path).collect();
        let order = order.iter().map(|&index| std::mem::take(&mut paths[index as usize]));
        (order.collect(), sizes)
    }

    fn create_all(&mut self, paths: &[String], sizes: &[Bytes]) -> io::Result<()> {
        for (path, size) in paths.iter().zip(sizes) {
            let is_first = self.report.ops == 0;
            self.step(|runner| match runner.work.link {
                LinkKind::Hard if !is_first => fs::hard_link(&paths[0], path).map(|()| 0),
                LinkKind::Symbolic if !is_first => {
                    std::os::unix::fs::symlink(&paths[0], path).map(|()| 0)
                }
                _ => runner.create(path, size.0),
            })?;
            if self.is_stopped {
                break;
            }
        }
        Ok(())
    }

    fn create(&mut self, path: &str, size: u64) -> io::Result<u64> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut left = size;
        while left > 0 {
            let length = left.min(self.buffer.len() as u64);
            file.write_all(&self.buffer[..length as usize])?;
            left -= length;
        }
        if self.work.is_flushed {
            file.sync_all()?;
            flush_directory(Path::new(path).parent())?;
        }
        Ok(size)
    }

    /// The calls of mkfile: length, zeros from the front in blocks of the file's own size, mode.
    ///
    /// A file that could not be filled is removed; one that could not be opened is not ours.
    fn extend(&mut self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(SWAP_MODE);
        if self.takes_only_free_names {
            options.create_new(true);
        } else {
            options.create(true).truncate(true);
        }
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&self.name)?;
        if self.takes_only_free_names {
            created::note(file.as_raw_fd());
        }
        self.fill(&file).map_err(|error| {
            let end = match fs::remove_file(&self.name) {
                Ok(()) => "the incomplete file was removed",
                Err(_) => "the incomplete file is still there",
            };
            io::Error::new(error.kind(), format!("{error}; {end}"))
        })
    }

    fn fill(&mut self, file: &File) -> io::Result<()> {
        let size = self.work.size_max_bytes.0;
        if size > 0 {
            self.step(|runner| file.write_all_at(&runner.buffer[..1], size - 1).map(|()| 1))?;
        }
        self.buffer.resize(file.metadata()?.blksize() as usize, 0);
        let mut at = 0;
        while at < size && !self.work.is_sparse && !self.is_stopped {
            let length = (size - at).min(self.buffer.len() as u64);
            if let Some(contents) = &mut self.contents {
                contents.fill(&mut self.buffer[..length as usize]);
            }
            let written = self.step(|runner| {
                file.write_all_at(&runner.buffer[..length as usize], at).map(|()| length)
            });
            written.map_err(|error| {
                let what = format!("initialized {at} of {size} bytes: {error}");
                io::Error::new(error.kind(), what)
            })?;
            at += length;
        }
        if self.work.is_flushed {
            file.sync_all()?;
        }
        // The sticky bit is root's to set; without it the file is as good.
        let _ = file.set_permissions(fs::Permissions::from_mode(SWAP_MODE));
        Ok(())
    }

    /// Reads or removes what each directory holds, in its own order.
    fn in_order_of_directory(&mut self) -> io::Result<()> {
        for number in 0..self.work.directories {
            let folder = self.work.directory_name(number);
            if let Some(folder) = &folder {
                std::env::set_current_dir(folder)?;
            }
            for entry in fs::read_dir(".")? {
                let name = entry?.file_name();
                self.touch(Path::new(&name))?;
                if self.is_stopped {
                    break;
                }
            }
            if folder.is_some() {
                std::env::set_current_dir("..")?;
            }
        }
        Ok(())
    }

    fn in_given_order(&mut self, paths: &[String]) -> io::Result<()> {
        for path in paths {
            self.touch(Path::new(path))?;
            if self.is_stopped {
                break;
            }
        }
        Ok(())
    }

    fn touch(&mut self, path: &Path) -> io::Result<()> {
        self.step(|runner| match runner.work.action {
            FileAction::Remove => {
                fs::remove_file(path)?;
                if runner.work.is_flushed {
                    flush_directory(path.parent())?;
                }
                Ok(0)
            }
            _ => runner.read(path),
        })
    }

    fn read(&mut self, path: &Path) -> io::Result<u64> {
        let size = fs::metadata(path)?.len();
        if size == 0 {
            return Ok(0);
        }
        let mut file = File::open(path)?;
        let mut left = size;
        while left > 0 {
            let length = left.min(self.buffer.len() as u64) as usize;
            file.read_exact(&mut self.buffer[..length])?;
            left -= length as u64;
        }
        Ok(size)
    }

    /// One file, timed.
    fn step(&mut self, deed: impl FnOnce(&mut Self) -> io::Result<u64>) -> io::Result<()> {
        let begin = monotonic();
        let moved = deed(self)?;
        let end = monotonic();
        let (handle, length) = (Handle(0), Bytes(moved));
        let op = match self.work.action {
            FileAction::Read => Op::read(handle, Bytes(0), length),
            _ => Op::write(handle, Bytes(0), length),
        };
        let token = Token(0);
        self.recorder.submitted(&Submission { token, intended: begin, is_timed: true, op });
        let outcome = Ok(length);
        self.recorder.completed(&Completion { token, outcome, submitted: begin, completed: end });
        let report = &mut self.report;
        report.ops += 1;
        report.bytes += moved;
        match self.work.action {
            FileAction::Read => report.read_bytes += moved,
            FileAction::Create | FileAction::Extend => report.write_bytes += moved,
            FileAction::Remove => {}
        }
        if report.ops.is_multiple_of(WATCH_EVERY) && self.observer.should_stop() {
            self.is_stopped = true;
        }
        Ok(())
    }

    /// What is timed after the last file.
    fn end(&mut self) -> io::Result<()> {
        if self.is_stopped {
            return Ok(());
        }
        if self.work.action == FileAction::Remove {
            for name in (0..self.work.directories).filter_map(|n| self.work.directory_name(n)) {
                fs::remove_dir(name)?;
            }
        }
        if matches!(self.work.action, FileAction::Create | FileAction::Remove) {
            nix::unistd::sync();
        }
        Ok(())
    }

    fn finish(self, outcome: io::Result<()>) -> WorkerOutcome {
        let mut report = self.report;
        if let Err(error) = outcome {
            report.errors = 1;
            report.first_error = Some(match self.work.action {
                FileAction::Extend => format!("{}: {error}", self.name),
                _ => format!("file number {}: {error}", report.ops),
            });
        }
        WorkerOutcome::new(0, report, self.recorder)
    }
}

fn flush_directory(path: Option<&Path>) -> io::Result<()> {
    let path = path.filter(|path| !path.as_os_str().is_empty());
    File::open(path.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests;
