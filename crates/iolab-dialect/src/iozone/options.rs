//! The options of `IOzone`, one row each. Facts: the program's behaviour, version 3.489.

use super::typed::{Typed, Unit};
use super::values::{
    RECORD_KB_MAX, ascending, asynchronous, at_least, children, exclusive, record_kb, select_test,
    size_kb, take_files,
};
use crate::diagnostic::Problem;
use crate::option::{Given, Grammar, OptionRow, Standing, Takes};

const WHAT: &str = "What is run";
const FILES: &str = "Files and children";
const HOW: &str = "How I/O is done";
const SHOWN: &str = "Reports and checks";
const CLUSTER: &str = "Several machines";

/// The command line.
pub const GRAMMAR: Grammar<Typed> = Grammar { program: "iozone", rows: OPTIONS, word: None };

type Row = OptionRow<Typed>;
type Update = fn(&mut Typed, &Given<'_>) -> Result<(), Problem>;

const fn flag(
    name: &'static str,
    group: &'static str,
    doc: &'static str,
    standing: Standing,
    update: Update,
) -> Row {
    OptionRow { name, takes: Takes::Nothing, group, doc, standing, update }
}

const fn value(
    (name, metavar): (&'static str, &'static str),
    group: &'static str,
    doc: &'static str,
    standing: Standing,
    update: Update,
) -> Row {
    let is_plus = name.as_bytes()[1] == b'+';
    let takes = if is_plus { Takes::NextWord(metavar) } else { Takes::Value(metavar) };
    OptionRow { name, takes, group, doc, standing, update }
}

/// An option that is refused by name.
const fn refused(
    name: &'static str,
    group: &'static str,
    doc: &'static str,
    why: &'static str,
    instead: &'static str,
) -> Row {
    let standing = Standing::Refused(why, instead);
    OptionRow { name, takes: Takes::Nothing, group, doc, standing, update: |_, _| Ok(()) }
}

use Standing::{Differs, Done, Ignored};

/// All options.
pub const OPTIONS: &[Row] = &[
    flag("-a", WHAT, "automatic mode: a table of file sizes and record sizes", Done, |t, _| {
        t.table.is_auto = true;
        t.say("Auto Mode")
    }),
    flag("-A", WHAT, "the same as -az -i0 -i1, obsolete", Done, |t, _| {
        t.table.is_old_auto = true;
        t.table.is_full = true;
        t.tests.extend([0, 1]);
        t.say("Auto Mode 2. This option is obsolete. Use -az -i0 -i1 ")
    }),
    flag("-z", WHAT, "with -a: small records for large files too", Done, |t, _| {
        t.table.is_full = true;
        t.say("Cross over of record size disabled.")
    }),
    value(
        ("-i", "N"),
        WHAT,
        "run test N: 0 write/rewrite 1 read/reread 2 random 3 backward read 4 record rewrite \
         5 stride read 6 fwrite 7 fread 8 mix 9 pwrite 10 pread 11 pwritev 12 preadv",
        Differs("an unknown number is refused, not replaced by 0; 11 and 12 exist"),
        select_test,
    ),
    flag("-E", WHAT, "add the columns of pwrite and pread", Done, |t, _| {
        t.table.has_extensions = true;
        Ok(())
    }),
    value(
        ("-s", "SIZE"),
        WHAT,
        "file size in kB, or with k, m, g; may be repeated",
        Differs("a fraction or another suffix is refused, not read as something else"),
        |t, g| {
            let kb = size_kb(t, g, 512)?;
            ascending(&t.table.file_kb, kb, g)?;
            t.table.file_kb.push(kb);
            t.say(&format!("File size set to {kb} kB"))
        },
    ),
    value(
        ("-r", "SIZE"),
        WHAT,
        "record size in kB, or with k, m, g; may be repeated; at most 16m",
        Differs("a fraction or another suffix is refused, not read as something else"),
        |t, g| {
            let kb = size_kb(t, g, 4)?;
            let kb = record_kb(kb, g)?;
            ascending(&t.table.record_kb, kb, g)?;
            t.table.record_kb.push(kb);
            t.say(&format!("Record Size {kb} kB"))
        },
    ),
    value(("-n", "SIZE"), WHAT, "with -a: smallest file size (64k)", Done, |t, g| {
        let kb = size_kb(t, g, 64)?.max(4);
        t.table.file_kb_range.0 = Some(kb);
        t.say(&format!("Using minimum file size of {kb} kilobytes."))
    }),
    value(("-g", "SIZE"), WHAT, "with -a: largest file size (512m)", Done, |t, g| {
        let kb = size_kb(t, g, 512 << 10)?;
        t.table.file_kb_range.1 = Some(kb);
        t.say(&format!("Using maximum file size of {kb} kilobytes."))
    }),
    value(("-y", "SIZE"), WHAT, "with -a: smallest record size (4k)", Done, |t, g| {
        let kb = record_kb(size_kb(t, g, 4)?, g)?;
        t.table.record_kb_range.0 = Some(kb);
        t.say(&format!("Using Minimum Record Size {kb} kB"))
    }),
    value(("-q", "SIZE"), WHAT, "with -a: largest record size (16m)", Done, |t, g| {
        let kb = record_kb(size_kb(t, g, RECORD_KB_MAX)?, g)?;
        t.table.record_kb_range.1 = Some(kb);
        t.say(&format!("Using Maximum Record Size {kb} kB"))
    }),
    value(("-+x", "N"), WHAT, "with -a: factor from one size to the next (2)", Done, |t, g| {
        t.table.multiplier = at_least(g, 2, "a factor")?;
        Ok(())
    }),
    flag("-+n", WHAT, "no second passes; their columns show 0", Done, |t, _| {
        t.table.has_no_retest = true;
        t.say("No retest option selected")
    }),
    flag("-+B", WHAT, "test 8 in sequence, not at random", Done, |t, _| {
        t.children.is_mix_sequential = true;
        t.say(">>> Sequential Mixed workload. <<<")
    }),
    value(("-+p", "PERCENT"), WHAT, "share of the children that read in test 8", Done, |t, g| {
        let percent: u32 = g.number("a percentage")?;
        let percent = percent.clamp(1, 100);
        t.children.read_percent = Some(percent);
        t.say(&format!("Percent read in mix test is {percent}"))
    }),
    value(("-+K", "N"), WHAT, "so many children read in test 8, the others write", Done, |t, g| {
        t.children.readers = Some(g.number("a number of children")?);
        Ok(())
    }),
    refused(
        "-+E",
        WHAT,
        "use a foreign file, read only",
        "reading another program's file is not done",
        "write one with -i 0 -w and read that",
    ),
    refused(
        "-+N",
        WHAT,
        "write into the file that is there",
        "test 0 always makes a new file here",
        "leave it out: the rewrite column is about blocks that exist",
    ),
    refused("-+q", WHAT, "wait after each test", "nothing waits here", "leave it out"),
    value(("-f", "PATH"), FILES, "the file (iozone.tmp)", Done, |t, g| {
        if g.value.is_empty() {
            return Err(Problem::new("-f '' is no file", "name one, for instance -f t.tmp"));
        }
        if !t.children.files.is_empty() {
            return Err(exclusive("-f and -F name files twice", "leave one of them out"));
        }
        t.children.file = Some(g.value.to_owned());
        Ok(())
    }),
    OptionRow {
        name: "-F",
        takes: Takes::Words("file names", Typed::children_max),
        group: FILES,
        doc: "throughput mode: one file name per child, after -t or -u",
        standing: Differs("a name that begins with a dash is refused"),
        update: take_files,
    },
    value(
        ("-t", "N"),
        FILES,
        "throughput mode with N children; may be repeated",
        Differs("a number with a suffix or below 1 is refused"),
        |t, g| {
            let count = children(t, g)?;
            t.children.counts.push(count);
            Ok(())
        },
    ),
    value(
        ("-l", "N"),
        FILES,
        "throughput mode with N children, or up to -u",
        Differs("-l 8k is refused: mostly -I was meant"),
        |t, g| {
            t.children.lower = Some(children(t, g)?);
            Ok(())
        },
    ),
    value(("-u", "N"), FILES, "throughput mode up to N children", Done, |t, g| {
        t.children.upper = Some(children(t, g)?);
        Ok(())
    }),
    flag("-T", FILES, "children are threads, not processes", Done, |t, _| {
        t.children.are_threads = true;
        Ok(())
    }),
    value(("-P", "CPU"), FILES, "pin child i to CPU + i", Done, |t, g| {
        t.children.first_cpu = Some(g.number("the number of a CPU")?);
        Ok(())
    }),
    flag("-w", FILES, "keep the files", Done, |t, _| {
        t.children.keeps_files = true;
        t.say("Setting no_unlink")
    }),
    flag("-x", FILES, "no child stops the others", Done, |t, _| {
        t.children.is_stonewall_off = true;
        t.say("Stonewall disabled")
    }),
    flag("-+k", FILES, "-s is the sum over all children", Done, |t, _| {
        t.children.is_aggregate = true;
        Ok(())
    }),
    value(
        ("-U", "MOUNT"),
        FILES,
        "empty caches before each test",
        Differs("the file's pages are dropped and that is verified; nothing is unmounted"),
        |t, _| {
            t.how.is_cold = true;
            t.note(
                "-U: no file system is unmounted; before each reading test the file's pages are \
                 dropped from the cache and that is verified",
            )
        },
    ),
    flag("-M", FILES, "print the machine's name", Done, |t, _| {
        t.shown.has_machine = true;
        Ok(())
    }),
    refused(
        "-d",
        FILES,
        "so long between the starts of two children",
        "children begin together",
        "use a [workload] with begin in a study file",
    ),
    refused(
        "-+V",
        FILES,
        "all children share one file",
        "a shared file is not done in this dialect",
        "use a [workload] with is_file_shared in a study file",
    ),
    refused(
        "-+L",
        FILES,
        "all children share one file, with locks",
        "a shared file is not done in this dialect",
        "use -+l for locks in files of their own",
    ),
    refused("-+R", FILES, "names of files in a file", "lists are not read", "use -F NAME..."),
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
    refused(
        "-Z",
        HOW,
        "mix mapped and plain I/O",
        "one page written beside a mapping changes nothing that is measured",
        "leave it out, or use -B alone",
    ),
    refused("-+A", HOW, "madvise", "advice is not given", "leave it out"),
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
    flag("-+l", HOW, "lock each record", Done, |t, _| {
        t.how.locks_records = true;
        Ok(())
    }),
    flag(
        "-m",
        HOW,
        "cycle through several buffers",
        Ignored("every operation has a buffer of the engine"),
        |t, _| {
            t.note("-m does nothing here: buffers are those of the engine")?;
            t.say("Multi_buffer. Work area 16777216 bytes")
        },
    ),
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
    refused(
        "-K",
        HOW,
        "disturb read-ahead in test 1",
        "jumps inside a sequential pass are not done",
        "use -i 2 or -i 5",
    ),
    value(("-+O", "N"), HOW, "throughput mode: N operations per second per child", Done, |t, g| {
        t.children.ops_per_s = Some(at_least(g, 1, "a number of operations")? as u32);
        Ok(())
    }),
    refused(
        "-+b",
        HOW,
        "bursts",
        "bursts are not done in this dialect",
        "use -+O N, or a [workload] with streams in a study file",
    ),
    refused("-+J", HOW, "count the time of -J", "-J is never counted", "leave it out"),
    flag("-c", HOW, "closing is timed", Done, |t, _| {
        t.how.times_close = true;
        t.say("Include close in write timing")
    }),
    flag("-e", HOW, "flushing is timed", Done, |t, _| {
        t.how.times_flush = true;
        t.say("Include fsync in write timing")
    }),
    flag("-R", SHOWN, "the Excel report as text", Done, |t, _| {
        t.shown.has_report = true;
        t.say("Excel chart generation enabled")
    }),
    value(
        ("-b", "FILE"),
        SHOWN,
        "the Excel report as a file: BIFF2, or .xlsx by its name",
        Differs("whether it can be written is known before the first test"),
        |t, g| {
            if g.value.is_empty() {
                return Err(Problem::new("-b '' is no file", "name one, for instance -b out.xls"));
            }
            t.shown.workbook = Some(g.value.to_owned());
            Ok(())
        },
    ),
    flag("-O", SHOWN, "results in operations per second", Done, |t, _| {
        t.shown.unit = Unit::Operations;
        t.say("OPS Mode. Output is in operations per second.")
    }),
    flag("-N", SHOWN, "results in microseconds per operation", Done, |t, _| {
        t.shown.unit = Unit::Microseconds;
        t.say("Microseconds/op Mode. Output is in microseconds per operation.")
    }),
    flag("-C", SHOWN, "throughput mode: what each child moved", Done, |t, _| {
        t.shown.has_children = true;
        Ok(())
    }),
    refused(
        "-Q",
        SHOWN,
        "files of offset and latency of every operation",
        "operations are counted in histograms, not kept one by one",
        "see the latencies in `iolab report`",
    ),
    refused(
        "-+z",
        SHOWN,
        "throughput mode: histogram files",
        "histograms are stored, not written to files",
        "see the latencies in `iolab report`",
    ),
    flag(
        "-+T",
        SHOWN,
        "files of time stamps",
        Ignored("the store has the times of every phase"),
        |t, _| t.note("-+T does nothing here: times of all phases are in the stored run"),
    ),
    flag(
        "-+u",
        SHOWN,
        "CPU use",
        Differs("of the timed region; of child processes from their start to their end"),
        |t, _| {
            t.shown.has_cpu = true;
            t.say("CPU utilization Resolution = 0.000 seconds.")?;
            t.say("CPU utilization Excel chart enabled")
        },
    ),
    value(
        ("-V", "N"),
        SHOWN,
        "verify all that is read",
        Differs("blocks that know their file, place and age; N only tells runs apart"),
        |t, g| {
            let pattern: u32 = g.number("the number of a pattern")?;
            t.how.verify = Some(pattern);
            t.say(&format!("Verify Mode. Pattern {:x}", (pattern & 255) * 0x0101_0101))?;
            t.say("Performance measurements are invalid in this mode.")
        },
    ),
    flag("-+d", SHOWN, "verify, with data that differ from record to record", Done, |t, _| {
        t.how.verify = Some(0);
        t.say(">>> I/O Diagnostic mode enabled. <<<")?;
        t.say("Performance measurements are invalid in this mode.")
    }),
    refused(
        "-X",
        SHOWN,
        "replay a file of writes",
        "telemetry files are not replayed yet",
        "use `iolab sim replay` for a recorded trace",
    ),
    refused(
        "-Y",
        SHOWN,
        "replay a file of reads",
        "telemetry files are not replayed yet",
        "use `iolab sim replay` for a recorded trace",
    ),
    refused("-+w", SHOWN, "data with duplicates", DATA, DATA_INSTEAD),
    refused("-+y", SHOWN, "duplicates inside a file", DATA, DATA_INSTEAD),
    refused("-+C", SHOWN, "duplicates only inside a file", DATA, DATA_INSTEAD),
    refused("-+a", SHOWN, "compressible share of the data", DATA, DATA_INSTEAD),
    refused("-+S", SHOWN, "seed of duplicates", DATA, DATA_INSTEAD),
    refused("-+W", SHOWN, "offset of duplicates", DATA, DATA_INSTEAD),
    refused("-+Q", SHOWN, "granule of duplicates", DATA, DATA_INSTEAD),
    refused("-+M", SHOWN, "check sums", DATA, "use -+d"),
    refused("-+X", SHOWN, "a short pattern", DATA, DATA_INSTEAD),
    refused("-+Z", SHOWN, "an old pattern", DATA, DATA_INSTEAD),
    flag("-h", SHOWN, "this text", Done, |t, _| {
        t.is_help = true;
        Ok(())
    }),
    flag("-v", SHOWN, "the version", Done, |t, _| {
        t.is_version = true;
        Ok(())
    }),
    refused("-+m", CLUSTER, "children on other machines", MACHINES, MACHINES_INSTEAD),
    refused("-+h", CLUSTER, "name of this machine", MACHINES, MACHINES_INSTEAD),
    refused("-+t", CLUSTER, "measure the network", MACHINES, MACHINES_INSTEAD),
    refused("-+c", CLUSTER, "internal", MACHINES, MACHINES_INSTEAD),
    refused("-+i", CLUSTER, "internal", MACHINES, MACHINES_INSTEAD),
    refused("-+s", CLUSTER, "internal", MACHINES, MACHINES_INSTEAD),
    refused("-+H", CLUSTER, "an external time server", MACHINES, MACHINES_INSTEAD),
    refused("-+P", CLUSTER, "an external time server", MACHINES, MACHINES_INSTEAD),
    refused("-+U", CLUSTER, "unbuffered I/O of Windows", "this is Linux", "use -I"),
];

const DATA: &str = "data are incompressible, and each page differs";
const DATA_INSTEAD: &str = "leave it out, or use --compat for the original's zero-filled data";
const MACHINES: &str = "one command line runs on one machine";
const MACHINES_INSTEAD: &str = "start iolab on each machine, and compare with `iolab diff`";
