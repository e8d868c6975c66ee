//! Options that say which tests run, and with which sizes. Facts: the behaviour of `IOzone` 3.489.

use super::super::values::{RECORD_KB_MAX, ascending, at_least, record_kb, select_test, size_kb};
use super::{Row, flag, value};
use crate::option::Standing::{Differs, Done};

const WHAT: &str = "What is run";

pub(super) const ROWS: &[Row] = &[
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
    flag("-+E", WHAT, "read files of others; nothing is written or removed", Done, |t, _| {
        t.children.is_foreign = true;
        t.children.keeps_files = true;
        t.say(">>> No Verify mode. <<<")
    }),
    flag("-+N", WHAT, "test 0 writes into the file that is there", Done, |t, _| {
        t.children.keeps_content = true;
        Ok(())
    }),
    value(("-+q", "SECONDS"), WHAT, "wait so long after each test", Done, |t, g| {
        t.how.pause_s = at_least(g, 0, "a number of seconds")?;
        let seconds = t.how.pause_s;
        t.say(&format!("Delay {seconds} seconds between tests enabled."))
    }),
];
