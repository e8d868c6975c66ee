//! Options about files and children. Facts: the behaviour of `IOzone` 3.489.

use super::super::typed::Typed;
use super::super::values::{at_least, children, exclusive, take_files};
use super::{Row, flag, value};
use crate::diagnostic::Problem;
use crate::option::{
    OptionRow,
    Standing::{Differs, Done},
    Takes,
};

const FILES: &str = "Files and children";

pub(super) const ROWS: &[Row] = &[
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
    value(
        ("-d", "MICROSECONDS"),
        FILES,
        "so long between the starts of two children",
        Done,
        |t, g| {
            t.children.start_delay_us = at_least(g, 0, "a number of microseconds")?;
            Ok(())
        },
    ),
    flag("-+V", FILES, "all children share the first file", Done, |t, _| {
        t.children.is_shared = true;
        t.say(">>> Shared file mode enabled. <<<")
    }),
    flag("-+L", FILES, "all children share the first file, each record locked", Done, |t, _| {
        (t.children.is_shared, t.how.locks_records) = (true, true);
        t.say(">>> Record locking, shared file mode enabled. <<<")
    }),
    value(
        ("-+R", "FILE"),
        FILES,
        "throughput mode: names of the children's files, one a line of FILE",
        Differs("it may stand before -t; a missing name is an error"),
        |t, g| {
            t.children.list = Some(g.value.to_owned());
            t.say(&format!("Filenames from a file option enabled. File: {}", g.value))
        },
    ),
];
