//! From what was typed to what it means: rows, files, and one workload per row.

use iolab_workload::preset::IozoneTest;
use iolab_workload::preset::IozoneTest as T;

use super::build::{Build, Size};
use super::places::places;
use super::plan::{Columns, Plan, Show, Throughput};
use super::select::{single_tests, throughput_tests};
use super::side::Side;
use super::tables::{children_counts, sizes};
use super::telemetry::{self, Recorded};
use super::typed::{Typed, Unit};
use crate::diagnostic::Problem;
use crate::option::Common;
use crate::plan::Asked;

/// Meaning of the words; `command` is the whole command line.
pub fn lower(mut typed: Typed, common: Common, command: String) -> Result<Plan, Problem> {
    check(&typed)?;
    if typed.children.keeps_files && common.on.is_some() {
        typed.notes.push("-w: the testbed of --on and its files are removed at the end".into());
    }
    let recorded = Recorded::read(&typed.how.replays)?;
    let is_throughput = typed.is_throughput();
    let tests =
        if is_throughput { throughput_tests(&mut typed)? } else { single_tests(&mut typed)? };
    note_page_cache(&mut typed, &tests);
    if typed.how.data.is_blended() {
        let text = "-+w, -+a: data are made between the operations, and the rate is that of the \
                    time inside the calls";
        typed.notes.push(text.into());
    }
    let counts = children_counts(&typed);
    let children_max = counts.iter().copied().max().unwrap_or(1);
    let places = places(&typed, &common, children_max)?;
    let sizes = if recorded.is_empty() {
        sizes(&typed, children_max)?
    } else {
        // The original shows such a file's size, and 0 for the record.
        vec![(recorded.file_bytes() >> 10, 0)]
    };
    let mut rows = Vec::new();
    for (file_kb, record_kb) in sizes {
        for &children in &counts {
            let size = Size { file_kb, record_kb, children };
            let count = places.names.len().min(children as usize);
            let build = Build::new(&typed, &common, (&places.names[..count], size), &recorded);
            rows.push(build.row(&tests)?);
        }
    }
    Ok(Plan {
        dialect: "iozone".into(),
        only_text: None,
        notes: typed.notes.clone(),
        directory: places.directory,
        files: places.names,
        cache: if typed.how.is_cold { "cold" } else { "as_is" }.into(),
        asked: Asked {
            first_cpu: typed.children.first_cpu,
            workbook: typed.shown.workbook.clone(),
            is_read_only: typed.children.is_foreign,
            ..Asked::default()
        },
        show: show(&typed, (&tests, &counts), &recorded, command),
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
    if !how.replays.is_empty() {
        telemetry::check(typed)?;
    }
    check_foreign(typed)?;
    check_manner(typed)
}

/// Options whose files are somebody else's (-+E).
fn check_foreign(typed: &Typed) -> Result<(), Problem> {
    let wrong = |what: &str, remedy: &str| Err(Problem::new(what, remedy));
    let children = &typed.children;
    if !children.is_foreign {
        return Ok(());
    }
    if typed.tests.is_empty() {
        return wrong("-+E without -i would write", "select tests that read, for instance -i 1");
    }
    if let Some(test) = typed.tests.iter().find(|test| matches!(test, 0 | 4 | 6 | 8 | 9 | 11)) {
        let what = format!("-+E only reads, and test {test} writes");
        return Err(Problem::new(
            what,
            "select tests that read: 1, 2 (its reads), 3, 5, 7, 10, 12",
        ));
    }
    if children.file.is_none() && children.files.is_empty() && children.list.is_none() {
        return wrong("-+E does not say which file", "name it with -f, or with -F and -t");
    }
    if typed.how.verify.is_some() {
        return wrong("-V and -+d check what the same command wrote", "leave out -+E or them");
    }
    if typed.how.replays.write.is_some() {
        return wrong("-X writes, and -+E only reads", "leave one of them out");
    }
    Ok(())
}

/// Refinements that would do nothing, or cannot be done together.
fn check_manner(typed: &Typed) -> Result<(), Problem> {
    let wrong = |what: &str, remedy: &str| Err(Problem::new(what, remedy));
    let (how, children) = (&typed.how, &typed.children);
    let is_silent = typed.is_compat;
    let is_alone = !typed.is_throughput();
    if is_alone && !is_silent && children.start_delay_us > 0 {
        return wrong("-d is about several children", "add -t N, or leave -d out");
    }
    if is_alone && !is_silent && children.is_shared {
        return wrong("-+V and -+L share a file among several children", "add -t N");
    }
    if is_alone && !is_silent && (typed.shown.has_histograms || typed.shown.has_stamps) {
        return wrong("-+z and -+T write files of throughput mode only", "add -t N");
    }
    if how.advice.is_some() && !how.is_mapped && !is_silent {
        return wrong("-+A advises about mapped files", "add -B");
    }
    if how.has_buffers && how.depth.is_some_and(|(_, depth)| depth > 1) {
        return wrong("-m cycles through buffers, -H and -k have one each", "leave out -m");
    }
    if how.is_disturbed && (how.locks_records || how.depth.is_some_and(|(_, depth)| depth > 1)) {
        return wrong("-K jumps between records, one at a time", "leave out -+l, -+L, -H and -k");
    }
    if u32::from(how.data.everywhere_percent) + u32::from(how.data.within_percent) > 100 {
        return wrong("-+y and -+C are shares of -+w: together more than all", "use less of one");
    }
    let is_shared_only = how.data.everywhere_percent > 0 || how.data.within_percent > 0;
    if is_shared_only && how.data.duplicate_percent == 0 && !is_silent {
        return wrong("-+y and -+C are shares of -+w, which is not there", "add -+w PERCENT");
    }
    if how.data.is_blended() && how.verify.is_some() {
        return wrong("-V and -+d write data of their own", "leave out -+w and -+a, or them");
    }
    if how.burst.is_some() && how.is_mapped && (how.syncs || how.syncs_async) {
        return wrong("-+b flushes after each burst, -D and -G after each record", "use one");
    }
    Ok(())
}

fn show(
    typed: &Typed,
    (tests, counts): (&[IozoneTest], &[u32]),
    recorded: &Recorded,
    command: String,
) -> Show {
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
        time_lines: time_lines(typed, recorded),
        paused: paused(typed, tests, recorded),
        start_delay_ns: typed.children.start_delay_us.saturating_mul(1000),
        last_lines: typed.how.burst.map_or_else(Vec::new, |burst| {
            let sleep = format!("Burst sleep duration set to {} msec", burst.ms);
            vec![format!("Burst size set to {} Kbytes.", burst.kb), sleep]
        }),
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
        side: Side::of(typed, tests),
    }
}

/// Lines about compute time above the table.
fn time_lines(typed: &Typed, recorded: &Recorded) -> Vec<String> {
    let mut lines = recorded.time_lines();
    let ms = typed.how.compute_ms;
    if ms > 0 {
        let seconds = ms as f64 / 1e3;
        lines.push(format!("Compute time {seconds:.6} seconds for reads and writes."));
    }
    lines
}

/// Tests whose time is not all work: their rates are those of the time inside the calls.
fn paused(typed: &Typed, tests: &[IozoneTest], recorded: &Recorded) -> Vec<IozoneTest> {
    let how = &typed.how;
    let thinks = how.compute_ms > 0 && !how.counts_compute;
    let is_paused = |test: &IozoneTest| {
        let replay = match test {
            T::Write | T::Rewrite => &recorded.write,
            T::Read | T::Reread => &recorded.read,
            _ => &None,
        };
        thinks
            || ((how.burst.is_some() || how.data.is_blended()) && test.writes())
            || replay.as_ref().is_some_and(telemetry::Telemetry::has_pauses)
    };
    tests.iter().copied().filter(is_paused).collect()
}
