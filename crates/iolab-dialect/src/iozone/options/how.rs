//! Options about how I/O is done. Facts: the behaviour of `IOzone` 3.489.

use super::super::values::{advice, asynchronous, at_least, burst};
use super::{Row, flag, value};
use crate::option::Standing::{Differs, Done, Ignored};

const HOW: &str = "How I/O is done";

pub(super) const ROWS: &[Row] = &[
    flag("-I", HOW, "direct I/O (not for fwrite and fread, which have none)", Done, |t, _| {
        t.how.is_direct = true;
        t.say("O_DIRECT feature enabled")
    }),
    flag("-o", HOW, "writes are synchronous (O_SYNC)", Done, |t, _| {
        t.how.is_sync = true;
        t.say("SYNC Mode. ")
    }),
    flag("-+D", HOW, "writes are synchronous but for metadata (O_DSYNC)", Done, |t, _| {
        t.how.is_data_sync = true;
        t.say(">>> O_DSYNC mode enabled. <<<")
    }),
    flag(
        "-+r",
        HOW,
        "reads and writes are synchronous",
        Differs("Linux has no O_RSYNC but O_SYNC: writes are synchronous, reads plain"),
        |t, _| {
            t.how.is_sync = true;
            t.say("Read & Write sync mode active.")
        },
    ),
    flag("-B", HOW, "mapped files", Done, |t, _| {
        t.how.is_mapped = true;
        t.say("Using mmap files")
    }),
    flag("-D", HOW, "mapped files, each record sent to the disk without waiting", Done, |t, _| {
        (t.how.is_mapped, t.how.syncs_async) = (true, true);
        t.say("Using msync(MS_ASYNC) on mmap files")
    }),
    flag("-G", HOW, "with -B or -D: each record made durable", Done, |t, _| {
        t.how.syncs = true;
        t.say("Using msync(MS_SYNC) on mmap files")
    }),
    value(
        ("-H", "N"),
        HOW,
        "asynchronous I/O, N at once",
        Differs("io_uring in place of the C library's threads; data are not copied again"),
        asynchronous,
    ),
    value(
        ("-k", "N"),
        HOW,
        "asynchronous I/O without copying, N at once",
        Differs("io_uring in place of the C library's threads"),
        asynchronous,
    ),
    flag("-W", HOW, "lock the file", Done, |t, _| {
        t.how.locks_file = true;
        t.say("Lock file when reading/writing.")
    }),
    flag(
        "-p",
        HOW,
        "purge the processor's cache before each operation",
        Ignored("it never concerned the page cache; for that use -U or --on a testbed"),
        |t, _| {
            t.note("-p does nothing here: it purged the processor's cache, not the page cache")?;
            t.say("Purge Mode On")
        },
    ),
    value(
        ("-S", "KB"),
        HOW,
        "size of the processor's cache (1024)",
        Ignored("it only served -p"),
        |t, g| {
            t.shown.cache_kb = g.number("a number of kB")?;
            Ok(())
        },
    ),
    value(
        ("-L", "BYTES"),
        HOW,
        "size of a line of the processor's cache (32)",
        Ignored("buffers are aligned to pages"),
        |t, g| {
            t.shown.cache_line = g.number("a number of bytes")?;
            Ok(())
        },
    ),
    value(("-j", "N"), HOW, "stride of test 5, in records (17)", Done, |t, g| {
        t.how.stride = at_least(g, 1, "a number of records")?;
        Ok(())
    }),
    value(
        ("-J", "MS"),
        HOW,
        "so long between two operations, not counted",
        Differs("it sleeps, and the rate is that of the time inside the calls"),
        |t, g| {
            t.how.compute_ms = at_least(g, 1, "a number of milliseconds")?;
            Ok(())
        },
    ),
    value(("-+O", "N"), HOW, "throughput mode: N operations per second per child", Done, |t, g| {
        t.children.ops_per_s = Some(at_least(g, 1, "a number of operations")? as u32);
        Ok(())
    }),
    flag("-c", HOW, "closing is timed", Done, |t, _| {
        t.how.times_close = true;
        t.say("Include close in write timing")
    }),
    flag("-e", HOW, "flushing is timed", Done, |t, _| {
        t.how.times_flush = true;
        t.say("Include fsync in write timing")
    }),
    flag("-+l", HOW, "lock each record", Done, |t, _| {
        t.how.locks_records = true;
        t.say(">>> Record locking mode enabled. <<<")
    }),
    flag(
        "-Z",
        HOW,
        "write one page beside each mapping",
        Ignored("that page is written before the time begins"),
        |t, _| {
            t.note("-Z does nothing here: the page beside the mapping was never in the time")?;
            t.say("Enable mmap & file I/O mixing.")
        },
    ),
    value(
        ("-+A", "N"),
        HOW,
        "advice about mapped files: 0 normal 1 random 2 sequential 3 dontneed 4 willneed",
        Done,
        advice,
    ),
    flag("-m", HOW, "cycle through buffers of 16 MB together", Done, |t, _| {
        t.how.has_buffers = true;
        t.say("Multi_buffer. Work area 16777216 bytes")
    }),
    flag("-K", HOW, "test 1 jumps elsewhere before every hundredth record", Done, |t, _| {
        t.how.is_disturbed = true;
        t.say("Disrupted read patterns selected.")
    }),
    value(
        ("-+b", "SIZE,MS"),
        HOW,
        "writing tests: after so much data a flush and a pause, which is not counted",
        Done,
        burst,
    ),
    flag("-+J", HOW, "count the time of -J", Done, |t, _| {
        t.how.counts_compute = true;
        t.say(">>> Think time is included in throughput cal. <<<")
    }),
];
