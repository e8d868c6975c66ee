//! Options of files: which, how large, how they are made.

use super::done_rows;
use iolab_workload::spec::LockPolicy;

use crate::diagnostic::Problem;
use crate::fio::job::Fallocate;
use crate::fio::row::{Kind, Row};
use crate::fio::shape;
use crate::fio::value::Amount as Bytes;
use crate::option::Standing::{Differs, Done, Ignored};

use Kind::{Amount, Choice, ChoiceAndMore, Count, Flag, Size, SizeRange, Text};

/// Ways of allocating space: none, fallocate(2) or something else.
const FALLOCATE: &[&str] = &["none", "native", "posix", "keep", "truncate", "0", "1"];
/// An amount that is none.
const NOTHING: Bytes = Bytes::Bytes(0);

/// Files that a job names at most.
const FILES_MAX: usize = 65_536;

const SERVICES: &[&str] =
    &["roundrobin", "sequential", "random", "zipf", "pareto", "normal", "gauss"];

fn paths(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut is_escaped = false;
    for letter in text.chars() {
        match letter {
            '\\' if !is_escaped => is_escaped = true,
            ':' if !is_escaped => found.push(String::new()),
            _ => {
                let last = found.last_mut().expect("it begins with one");
                if is_escaped && letter != ':' {
                    last.push('\\');
                }
                last.push(letter);
                is_escaped = false;
            }
        }
    }
    found.retain(|path| !path.is_empty());
    found
}

/// Rows.
pub const ROWS: &[Row] = done_rows! { "Files";
    "filename": Text, "", T1,
        "files, separated by colons; names of the global section and of the job add up",
        Differs("at most 65536; a device may be read; to be written it needs --on device:") =>
        |job, value| {
            let text = value.text();
            let found = paths(&text);
            if found.is_empty() {
                return Err(Problem::new("filename names no file", "name one, or leave it out"));
            }
            if job.filename.len() + found.len() > FILES_MAX {
                let what = format!("more than {FILES_MAX} files of a job");
                return Err(Problem::new(what, "name fewer, or use nrfiles="));
            }
            job.filename.extend(found);
            Ok(())
        };
    "directory": Text, ".", T1, "directory of the files; must exist",
        Differs("one directory; without --on it is where all jobs work") => |job, value| {
            job.directory = paths(&value.text());
            Ok(())
        };
    "filename_format": Text, "$jobname.$jobnum.$filenum", T1,
        "names of files that are not named: $jobname, $jobnum, $filenum",
        Differs("without directories in the name") => |job, value| {
            job.filename_format = value.text();
            Ok(())
        };
    "unique_filename": Flag, "1", T1, "names that several clients do not share",
        Ignored("only for clients and servers") => |_, _| Ok(());
    "nrfiles" | "nr_files": Count(1, 1 << 20), "1", T1, "files of each clone",
        Differs("16384 at most where data are moved: all of them stay open") => |job, value| {
            job.nrfiles = value.number();
            Ok(())
        };
    "openfiles": Count(0, 1 << 20), "0", T1, "files that are open at once (0: all)",
        Ignored("all files of a job stay open") => |_, _| Ok(());
    "file_service_type": ChoiceAndMore(SERVICES), "roundrobin", T1, "which file is next",
        Done => |job, value| {
            let name = SERVICES[value.word()];
            shape::service(name, value.more().as_deref())?;
            job.file_service = (name.to_owned(), value.more());
            Ok(())
        };
    "filesize": SizeRange, "", T1, "size of each file; of a range one that the seed decides",
        Done => |job, value| {
            let (low, high) = value.range();
            job.filesize = Some((low, high));
            Ok(())
        };
    "size": Amount, "", T1, "region of the file that is worked on, and how much is moved", Done =>
        |job, value| {
            job.size = Some(value.amount());
            Ok(())
        };
    "io_size" | "io_limit": Amount, "", T1, "how much is moved, where that is not size",
        Done => |job, value| {
            job.io_size = Some(value.amount()).filter(|amount| *amount != NOTHING);
            Ok(())
        };
    "offset" | "fileoffset": Amount, "0", T1,
        "where in the file the region begins", Done => |job, value| {
        job.offset = value.amount();
        Ok(())
    };
    "offset_increment": Amount, "0", T1, "from one clone's region to the next one's", Done =>
        |job, value| {
            job.offset_increment = value.amount();
            Ok(())
        };
    "offset_align": Size, "0", T1, "what an offset in percent is a multiple of", Done =>
        |job, value| {
            job.offset_align = value.number();
            Ok(())
        };
    "number_ios": Count(0, i64::MAX), "0", T1, "end after so many transfers (0: no limit)",
        Differs("those of ramp_time are counted, too") =>
        |job, value| {
            job.number_ios = value.number();
            Ok(())
        };
    "loops": Count(1, 1 << 32), "1", T1, "passes over the region", Done => |job, value| {
        job.loops = value.number();
        Ok(())
    };
    "fill_device" | "fill_fs": Flag, "0", T2, "write until there is no space left",
        Differs("up to the end of what is there, or of size=; a file system is not filled up") =>
        |job, value| {
            job.fills = value.flag();
            Ok(())
        };
    "create_only": Flag, "0", T1, "files are laid out, and nothing else is done",
        Done => |job, value| {
            job.is_only_created = value.flag();
            Ok(())
        };
    "file_append": Flag, "0", T2, "offsets count from the old end of the file", Done =>
        |job, value| {
            job.is_appended = value.flag();
            Ok(())
        };
    "unlink_each_loop": Flag, "0", T1,
        "files are removed after each pass and made anew for the next one",
        Differs("not of files that are read, mapped or shared by clones, where there are passes") =>
        |job, value| {
            job.is_unlinked_each_loop = value.flag();
            Ok(())
        };
    "lockfile": Choice(&["none", "exclusive", "readwrite"]), "none", T2,
        "lock of the file around each transfer: of everybody, or with readers together",
        Differs("by fcntl(2), of the file's own; one transfer under way") =>
        |job, value| {
            job.lock = match value.word() {
                1 => LockPolicy::Exclusive,
                2 => LockPolicy::ReadWrite,
                _ => LockPolicy::None,
            };
            Ok(())
        };
    "overwrite": Flag, "0", T1, "files are laid out before they are written", Done => |job, value| {
        job.is_overwritten = value.flag();
        Ok(())
    };
    "create_serialize": Flag, "1", T1, "files are made one after the other",
        Ignored("they always are") => |_, _| Ok(());
    "create_fsync": Flag, "1", T1, "files are flushed when they are made",
        Ignored("they always are") => |_, _| Ok(());
    "create_on_open": Flag, "0", T1, "files are made when they are opened",
        Ignored("files of a writing job are made empty just before its time begins; those of \
                 others must have data") => |_, _| Ok(());
    "allow_file_create": Flag, "1", T1, "a missing file may be made", Done => |job, value| {
        job.may_create = value.flag();
        Ok(())
    };
    "fallocate": Choice(FALLOCATE), "native", T1, "how space is allocated when a file is made",
        Differs("posix is native; beside several files or sizes keep is native, and none is \
                 truncate") => |job, value| {
            job.fallocate = match value.word() {
                0 | 5 => Fallocate::None,
                3 => Fallocate::Keep,
                4 => Fallocate::Truncate,
                _ => Fallocate::Native,
            };
            Ok(())
        };
    "invalidate": Flag, "1", T1, "the file's part of the page cache is dropped first",
        Differs("in jobs of several files or sizes the same for all that read") => |job, value| {
            job.is_invalidated = value.flag();
            Ok(())
        };
    "pre_read": Flag, "0", T1, "files are read once before, so that they are in the page cache",
        Differs("the same for all jobs that read") => |job, value| {
            job.is_pre_read = value.flag();
            Ok(())
        };
    "unlink": Flag, "0", T1, "files are removed in the end",
        Differs("when the last job has ended; only files that iolab may replace") => |job, value| {
            job.is_unlinked = value.flag();
            Ok(())
        };
    "allow_mounted_write": Flag, "0", T1, "a mounted device may be written to",
        Ignored("a device is written with --on device: alone, never while it is mounted") =>
        |_, _| Ok(());
    "zonemode": Choice(&["none", "strided", "zbd"]), "none", T2, "work zone by zone (strided)",
        Differs("zbd, zoned devices, is refused") => |job, value| {
            if value.word() == 2 {
                let remedy = "write zonemode=strided, or leave it out";
                return Err(Problem::new("zonemode=zbd: zoned devices are not done", remedy));
            }
            job.is_strided = Some(value.word() == 1);
            Ok(())
        };
    "zonesize": Size, "0", T2, "bytes that are moved before the next zone", Done => |job, value| {
        job.zone_bytes = value.number();
        Ok(())
    };
    "zonerange": Size, "0", T2, "length of a zone; 0: zonesize", Done => |job, value| {
        job.zone_range = value.number();
        Ok(())
    };
    "zoneskip": Size, "0", T2, "bytes between two zones", Done => |job, value| {
        job.zone_skip = value.number();
        Ok(())
    };
};
