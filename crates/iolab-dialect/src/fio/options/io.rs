//! Options of transfers: direction, size, order, how they are made.

use super::done_rows;
use iolab_model::op::{Advice, WriteLife};

use crate::diagnostic::Problem;
use crate::fio::buffers;
use crate::fio::job::{Advised, Rw, Sync};
use crate::fio::row::{Kind, Row};
use crate::fio::shape;
use crate::option::Standing::{Differs, Done, Ignored};

use Kind::{Choice, ChoiceAndMore, Count, Counts, Flag, SizeRanges, Sizes, Text};

const RW: &[&str] = &[
    "read",
    "write",
    "randread",
    "randwrite",
    "rw",
    "readwrite",
    "randrw",
    "trim",
    "randtrim",
    "trimwrite",
    "randtrimwrite",
];
const RWS: [Rw; 11] = [
    Rw::Read,
    Rw::Write,
    Rw::RandRead,
    Rw::RandWrite,
    Rw::Mixed,
    Rw::Mixed,
    Rw::RandMixed,
    Rw::Trim,
    Rw::RandTrim,
    Rw::TrimWrite,
    Rw::RandTrimWrite,
];
const SYNC: &[&str] = &["none", "0", "sync", "1", "dsync"];

/// Rows.
pub const ROWS: &[Row] = done_rows! { "Transfers";
    "rw" | "readwrite": ChoiceAndMore(RW), "read", T1, "direction and order",
        Differs("trims of a file make holes, where fio 3.33 fails with ENOTTY") => |job, value| {
            job.rw = RWS[value.word()];
            // As fio tells it: one name for the two of the sequential mix.
            job.rw_name = if job.rw == Rw::Mixed { "rw" } else { RW[value.word()] };
            job.rw_more = value.more();
            Ok(())
        };
    "bs" | "blocksize": Sizes, "4k", T1, "bytes of a transfer that reads, writes, trims",
        Done => |job, value| {
            job.bssplit = None;
            for (place, size) in value.three().into_iter().enumerate() {
                if size == Some(0) {
                    return Err(Problem::new("transfers of no bytes", "write for instance bs=4k"));
                }
                if let Some(size) = size {
                    (job.bs[place], job.bsrange[place]) = (size, None);
                }
            }
            Ok(())
        };
    "bsrange" | "blocksize_range": SizeRanges, "", T1, "smallest and largest transfer",
        Done => |job, value| {
            job.bssplit = None;
            for (place, range) in value.ranges().into_iter().enumerate() {
                job.bsrange[place] = range.or(job.bsrange[place]);
            }
            Ok(())
        };
    "bs_unaligned" | "blocksize_unaligned": Flag, "0", T1,
        "sizes of bsrange are any number of bytes, not only multiples of the smallest",
        Done => |job, value| {
            job.is_unaligned = value.flag();
            Ok(())
        };
    "bs_is_seq_rand" | "blocksize_is_seq_rand": Flag, "0", T2,
        "the first size is that of sequential transfers, the second that of random ones",
        Differs("by rw alone, also beside percentage_random") => |job, value| {
            job.is_sized_by_order = value.flag();
            Ok(())
        };
    "bssplit": Text, "", T1, "several transfer sizes with their shares: 4k/60:64k/40",
        Differs("shares that do not add up to 100 % are refused") => |job, value| {
            let text = value.text();
            job.bssplit = Some(shape::split(&text, job.kb_base)?);
            Ok(())
        };
    "rw_sequencer": Choice(&["sequential", "identical"]), "sequential", T1,
        "what follows a random place with rw=...:N", Done => |job, value| {
            job.is_identical = value.word() == 1;
            Ok(())
        };
    "rwmixread": Count(0, 100), "50", T1, "percent of the transfers of a mixed job that read",
        Done => |job, value| {
            job.read_percent = value.number();
            Ok(())
        };
    "rwmixwrite": Count(0, 100), "50", T1, "percent that write; of both options the last counts",
        Done => |job, value| {
            job.read_percent = 100 - value.number();
            Ok(())
        };
    "percentage_random": Counts(100), "100", T1, "percent of the transfers at random places",
        Done => |job, value| {
            for (place, percent) in value.three().into_iter().enumerate() {
                job.percentage_random[place] = percent.or(job.percentage_random[place]);
            }
            Ok(())
        };
    "random_distribution": Text, "random", T1, "how random places are distributed",
        Differs("zones of their own for reads, writes and trims, as fio's manual says and fio \
                 3.33 refuses") => |job, value| {
            let text = value.text();
            shape::distribution(&text, 0, shape::Worked { bytes: None, kb_base: job.kb_base })?;
            job.distribution = text;
            Ok(())
        };
    "norandommap": Flag, "0", T1, "random places without memory: some again, some never", Done =>
        |job, value| {
            job.has_no_map = value.flag();
            Ok(())
        };
    "softrandommap": Flag, "0", T2, "go on without the map of places where there is no memory",
        Ignored("there is memory, or it is refused") => |_, _| Ok(());
    "random_generator": Choice(&["tausworthe", "lfsr", "tausworthe64"]), "tausworthe", T1,
        "source of random numbers",
        Ignored("iolab has its own, which every release keeps") =>
        |_, _| Ok(());
    "randrepeat": Flag, "1", T1, "the same random numbers in every run", Done => |job, value| {
        job.is_repeated = value.flag();
        Ok(())
    };
    "allrandrepeat": Flag, "0", T1, "the same random numbers of every kind in every run",
        Done => |job, value| {
            job.is_repeated |= value.flag();
            Ok(())
        };
    "randseed": Count(0, i64::MAX), "", T1, "root of the random numbers",
        Differs("always counts, not only with randrepeat=0; the same for all jobs") =>
        |job, value| {
            job.seed = Some(value.number());
            Ok(())
        };
    "direct": Flag, "0", T1, "past the page cache (O_DIRECT)", Done => |job, value| {
        job.is_direct = value.flag();
        Ok(())
    };
    "buffered": Flag, "1", T1, "through the page cache", Done => |job, value| {
        job.is_direct = !value.flag();
        Ok(())
    };
    "sync": Choice(SYNC), "none", T1, "what a returning write promises: O_SYNC, O_DSYNC", Done =>
        |job, value| {
            job.sync = match value.word() {
                0 | 1 => Sync::None,
                4 => Sync::Dsync,
                _ => Sync::Sync,
            };
            Ok(())
        };
    "fsync": Count(0, i64::MAX), "0", T1, "fsync(2) after so many writes, not after the last",
        Done => |job, value| {
            job.fsync = value.number();
            Ok(())
        };
    "fdatasync": Count(0, i64::MAX), "0", T1,
        "fdatasync(2) after so many writes, not after the last",
        Differs("counted as flushes, where fio 3.33 counts short reads") => |job, value| {
            job.fdatasync = value.number();
            Ok(())
        };
    "sync_file_range": Text, "", T2,
        "sync_file_range(2) after so many writes: wait_before,write,wait_after:N",
        Differs("beside several files or sizes of the whole file, not only of what was written \
                 since the last one") =>
        |job, value| {
            job.range_sync = Some(shape::range_sync(&value.text())?);
            Ok(())
        };
    "end_fsync": Flag, "0", T1, "one fsync(2) at the end, inside the time", Done => |job, value| {
        job.is_flushed_at_end = value.flag();
        Ok(())
    };
    "fsync_on_close": Flag, "0", T1, "one fsync(2) when a written file is closed",
        Differs("at the end of the job, inside the time") => |job, value| {
            job.is_flushed_on_close = value.flag();
            Ok(())
        };
    "fadvise_hint": Choice(&["0", "1", "sequential", "random"]), "1", T1,
        "posix_fadvise(2) about the order: 0 none, 1 that of the job",
        Differs("not with direct=1, where it changes nothing") => |job, value| {
            job.advice = match value.word() {
                0 => Advised::Nothing,
                1 => Advised::Order,
                2 => Advised::As(Advice::Sequential),
                _ => Advised::As(Advice::Random),
            };
            Ok(())
        };
    "write_hint": Choice(&["none", "short", "medium", "long", "extreme"]), "none", T2,
        "how long data will live, a hint for the device",
        Differs("also with direct=1, where fio asks for what Linux 5.17 removed and fails") =>
        |job, value| {
            job.write_life = match value.word() {
                0 => WriteLife::None,
                1 => WriteLife::Short,
                2 => WriteLife::Medium,
                3 => WriteLife::Long,
                _ => WriteLife::Extreme,
            };
            Ok(())
        };
    "zero_buffers": Flag, "0", T1, "zeros are written", Done => |job, value| {
        job.has_zeros = value.flag();
        Ok(())
    };
    "buffer_compress_percentage": Count(0, 100), "0", T1,
        "percent of the written data that are zeros",
        Done => |job, value| {
            job.compress_percent = value.number();
            Ok(())
        };
    "buffer_compress_chunk": Kind::Size, "512", T1, "in pieces of this size",
        Done => |job, value| {
            job.compress_chunk = value.number();
            Ok(())
        };
    "buffer_pattern": Text, "", T1,
        "bytes that are written again and again: 0xHEX, a number, \"text\"",
        Differs("at most 32 bytes, not from a file") =>
        |job, value| {
            job.pattern = Some(buffers::pattern(&value.text())?);
            Ok(())
        };
    "dedupe_percentage": Count(0, 100), "0", T2, "percent of the written data that repeat",
        Differs("whole pages: of two pages one is always the same, if it is 50 %") => |job, value| {
            job.dedupe_percent = value.number();
            Ok(())
        };
    "dedupe_mode": Choice(&["repeat", "working_set"]), "repeat", T2, "which data repeat",
        Differs("the same pages in either mode") => |_, _| Ok(());
    "dedupe_working_set_percentage": Count(0, 100), "5", T2, "share of the data that repeat",
        Ignored("few pages repeat often") => |_, _| Ok(());
    "dedupe_global": Flag, "0", T2, "they repeat across files", Done => |job, value| {
        job.is_dedupe_global = value.flag();
        Ok(())
    };
    "ba" | "blockalign": Sizes, "", T1, "alignment of random places; ends the random map",
        Done => |job, value| {
            job.align = value.three();
            if job.align.contains(&Some(0)) {
                return Err(Problem::new("places aligned to 0 bytes", "write for instance ba=4k"));
            }
            Ok(())
        };
    "io_submit_mode": Choice(&["inline", "offload"]), "inline", T2, "who submits",
        Ignored("the clone itself; a rate's clock does not wait for slow transfers, and \
                 response_ns tells what it would have waited") => |_, _| Ok(());
    "refill_buffers": Flag, "0", T1, "new random data for every write",
        Ignored("every page of every write differs already") => |_, _| Ok(());
    "scramble_buffers": Flag, "1", T1, "written data differ a little from write to write",
        Ignored("every page of every write differs") => |_, _| Ok(());
    "ioengine": Text, "psync", T1, "how transfers are made", Done => |job, value| {
        job.engine = value.text();
        Ok(())
    };
    "iodepth": Count(1, 4096), "1", T1, "transfers under way at once",
        Differs("a synchronous engine has one, as in fio; a note says so") => |job, value| {
            job.depth = value.number();
            Ok(())
        };
    "iodepth_batch" | "iodepth_batch_submit": Count(0, 4096), "1", T1,
        "most transfers that are submitted together (0: iodepth)",
        Differs("fewer where fewer are due: none waits for others") => |job, value| {
            job.submitted_together = value.number();
            Ok(())
        };
    "iodepth_batch_complete_min" | "iodepth_batch_complete": Count(0, 4096), "1", T1,
        "transfers that must end before new ones begin, once iodepth are under way",
        Differs("each is timed when it ends, not when all have; not for jobs of several sizes or \
                 files") => |job, value| {
            job.ends_awaited = value.number();
            Ok(())
        };
    "iodepth_batch_complete_max": Count(0, 4096), "1", T1,
        "transfers that are taken at most at once",
        Differs("what has ended is taken") => |_, _| Ok(());
    "iodepth_low": Count(0, 4096), "0", T1,
        "transfers that are left before new ones begin, once iodepth are under way (0: iodepth)",
        Differs("not for jobs of several sizes or files") => |job, value| {
            job.depth_low = value.number();
            Ok(())
        };
    "serialize_overlap": Flag, "0", T2, "overlapping transfers wait for each other",
        Differs("they never overlap: each block once per pass; refused where they could") =>
        |job, value| {
            job.is_serialized = value.flag();
            Ok(())
        };
    "hipri": Flag, "0", T2, "completion is polled for (io_uring, pvsync2)", Done => |job, value| {
        job.is_polled = value.flag();
        Ok(())
    };
    "fixedbufs": Flag, "0", T2, "registered buffers (io_uring)",
        Differs("with registered files") => |job, value| {
            job.has_fixed_buffers = value.flag();
            Ok(())
        };
    "registerfiles": Flag, "0", T2, "registered files (io_uring)",
        Differs("with registered buffers") => |job, value| {
            job.has_fixed_buffers |= value.flag();
            Ok(())
        };
    "sqthread_poll": Flag, "0", T2, "a thread of the kernel submits (io_uring)", Done =>
        |job, value| {
            job.has_submission_thread = value.flag();
            Ok(())
        };
    "sqthread_poll_cpu": Count(0, 4096), "", T2,
        "CPU of the thread of the kernel that submits (io_uring)", Done => |job, value| {
            job.submitter_cpu = Some(value.number() as u32);
            Ok(())
        };
    "nowait": Flag, "0", T2, "a transfer that would have to wait fails with EAGAIN",
        Differs("with io_uring and pvsync2") => |job, value| {
            job.is_nowait = value.flag();
            Ok(())
        };
    "uncached": Flag, "0", T2, "what is moved leaves the page cache again (Linux 6.14)",
        Differs("with io_uring and pvsync2") => |job, value| {
            job.is_uncached = value.flag();
            Ok(())
        };
    "force_async": Count(0, i64::MAX), "0", T2,
        "of so many transfers one is done by a thread of the kernel (io_uring)",
        Done => |job, value| {
            job.kernel_thread_every = value.number();
            Ok(())
        };
    "nonvectored": Flag, "1", T2, "plain reads and writes (io_uring)",
        Ignored("they always are") => |_, _| Ok(());
    "mem" | "iomem": Choice(&["malloc", "mmap", "mmapshared", "shm"]), "malloc", T2,
        "memory of the buffers",
        Ignored("buffers are pages of each worker's own, and nobody else reads them") =>
        |_, _| Ok(());
    "iomem_align" | "mem_align": Kind::Size, "0", T2, "alignment of the buffers",
        Ignored("they are aligned for direct I/O") => |_, _| Ok(());
};
