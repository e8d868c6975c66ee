//! Events of a few made-up processes, and what became of their files.

use iolab_trace::event::Event;

use super::*;
use crate::analysis::PatternAnalysis;
use crate::report::{FilePattern, PatternReport};

/// Events that are given one after the other.
struct Given(std::vec::IntoIter<Event>);

impl Source for Given {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        let Some(next) = self.0.next() else { return Ok(false) };
        *event = next;
        Ok(true)
    }

    fn caveats(&self) -> &[Caveat] {
        &[]
    }
}

/// Events of lines of task, time and text.
fn events(lines: &[(u32, u64, &str)]) -> Vec<Event> {
    let event = |(pid, time_ns, text): &(u32, u64, &str)| Event {
        action: Action::Point,
        pid: *pid,
        time_ns: *time_ns,
        payload: text.as_bytes().to_vec(),
        ..Event::default()
    };
    lines.iter().map(event).collect()
}

fn analysis(events: Vec<Event>) -> PatternAnalysis {
    PatternAnalysis::of_points(&mut Given(events.into_iter()), "iotrace").unwrap()
}

fn report(lines: &[(u32, u64, &str)]) -> PatternReport {
    PatternReport::of(&analysis(events(lines)), "", None)
}

fn row<'a>(report: &'a PatternReport, name: &str) -> &'a FilePattern {
    let names: Vec<&String> = report.files.iter().map(|file| &file.name).collect();
    report.files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("{names:?}"))
}

/// A file is opened as descriptor 3 and looked up at once.
const OPENED: [(u32, u64, &str); 3] = [
    (7, 10, "syscalls:sys_enter_openat dfd=4294967196 flags=66 mode=384"),
    (7, 12, "iolab:descriptor fd=3 seen=13 path=/d/a\\040b"),
    (7, 12, "syscalls:sys_exit_openat ret=3"),
];

fn opened(rest: &[(u32, u64, &str)]) -> PatternReport {
    let mut lines = OPENED.to_vec();
    lines.extend_from_slice(rest);
    report(&lines)
}

#[test]
fn the_table_is_sorted_and_every_call_is_one_that_is_followed() {
    assert!(CALLS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    for (name, _) in CALLS {
        assert!(crate::calls::effect_of(name.as_bytes()).is_some(), "{name}");
    }
}

#[test]
fn calls_are_printed_as_strace_prints_them() {
    for (enter, result, expected) in [
        ("pread64 fd=3 count=4096 pos=8192", 4096, "pread64(3</f>, NULL, 4096, 8192) = 4096"),
        ("preadv2 fd=3 vlen=2 pos_l=18446744073709551615 pos_h=0 flags=16", 7, {
            "preadv2(3</f>, NULL, 2, -1, 16) = 7"
        }),
        ("openat dfd=4294967196 flags=577 mode=438", 3, "openat(NULL, NULL, 577) = 3</f>"),
        ("splice fd_in=3 off_in=given fd_out=4 off_out=NULL len=9 flags=0", 9, {
            "splice(3</f>, given, 4, NULL) = 9"
        }),
        ("mmap addr=0 len=42 prot=3 flags=34 fd=18446744073709551615 off=0", 1, {
            "mmap(NULL, 42, 3, NULL, -1) = 1"
        }),
        ("mmap addr=0 len=42 prot=3 flags=34 fd=4294967295 off=0", 1, {
            "mmap(NULL, 42, 3, NULL, -1) = 1"
        }),
        ("fsync fd=3", -5, "fsync(3</f>) = -5"),
    ] {
        let call = enter.split(' ').next().unwrap();
        let begin = format!("syscalls:sys_enter_{enter}");
        let end = format!("syscalls:sys_exit_{call} ret={result}");
        let lines = [
            (7, 5, "iolab:descriptor fd=3 seen=6 path=/f"),
            (7, 5, begin.as_str()),
            (7, 1_000_000_045, end.as_str()),
        ];
        let mut source = Given(events(&lines).into_iter());
        let mut reader = PointReader::new(&mut source);
        let deed = reader.advance().unwrap();
        assert!(matches!(deed, Some(PointDeed::Call { task: 7, begin_ns: 5 })), "{deed:?}");
        let told = String::from_utf8_lossy(reader.body()).into_owned();
        assert_eq!(told, format!("{expected} <1.000000040>"));
        assert!(reader.advance().unwrap().is_none());
    }
}

#[test]
fn a_file_has_the_path_that_was_looked_up_and_the_calls_of_its_descriptor() {
    let report = opened(&[
        (7, 20, "syscalls:sys_enter_pread64 fd=3 count=4096 pos=0"),
        (7, 25, "syscalls:sys_exit_pread64 ret=4096"),
        (7, 30, "syscalls:sys_enter_pread64 fd=3 count=4096 pos=4096"),
        (7, 36, "syscalls:sys_exit_pread64 ret=4096"),
        (7, 40, "syscalls:sys_enter_fsync fd=3"),
        (7, 41, "syscalls:sys_exit_fsync ret=0"),
    ]);
    let file = row(&report, "/d/a b");
    assert_eq!((file.reads.count, file.reads.bytes, file.syncs), (2, 8192, 1));
    assert_eq!(file.lasted_ns, Some(16), "from the first beginning to the last end");
    assert!(report.has_times && report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn a_name_that_was_looked_up_after_the_descriptor_was_closed_does_not_count() {
    for closing in [
        "syscalls:sys_enter_close fd=3",
        "syscalls:sys_enter_close_range fd=3 max_fd=4294967295 flags=0",
        "syscalls:sys_enter_dup2 oldfd=1 newfd=3",
    ] {
        let lines = [
            (7, 10, "syscalls:sys_enter_openat dfd=0 flags=0 mode=0"),
            (7, 12, "iolab:descriptor fd=3 seen=500 path=/another"),
            (7, 12, "syscalls:sys_exit_openat ret=3"),
            (7, 20, "syscalls:sys_enter_read fd=3 count=10"),
            (7, 21, "syscalls:sys_exit_read ret=10"),
            (7, 400, closing),
            (7, 501, "syscalls:sys_enter_fsync fd=9"),
        ];
        let report = report(&lines);
        let names: Vec<&String> = report.files.iter().map(|file| &file.name).collect();
        assert_eq!(names, ["descriptor 3 of process 7"], "{closing}");
        assert!(report.notes[0].contains("the names of 1 file are not known"), "{closing}");
    }
}

#[test]
fn the_path_that_a_call_was_given_is_a_name_unless_a_look_saw_where_it_leads() {
    for (closed, name) in [(400, "/link"), (600, "/target")] {
        let lines = [
            (7, 10, "syscalls:sys_enter_openat dfd=0 flags=0 mode=0"),
            (7, 12, "iolab:descriptor fd=3 seen=500 path=/target"),
            (7, 12, "iolab:opened fd=3 path=/link"),
            (7, 12, "syscalls:sys_exit_openat ret=3"),
            (7, 20, "syscalls:sys_enter_read fd=3 count=10"),
            (7, 21, "syscalls:sys_exit_read ret=10"),
            (7, closed, "syscalls:sys_enter_close fd=3"),
            (7, 601, "syscalls:sys_exit_close ret=0"),
        ];
        let report = report(&lines);
        assert_eq!(report.files[0].name, name);
        assert!(report.notes.is_empty(), "{:?}", report.notes);
    }
}

#[test]
fn openings_without_a_name_are_no_single_file_and_a_library_is_not_listed() {
    let mut lines = Vec::new();
    for _ in 0..2 {
        lines.extend([
            (7, 10, "syscalls:sys_enter_openat dfd=0 flags=0 mode=0"),
            (7, 12, "syscalls:sys_exit_openat ret=3"),
            (7, 20, "syscalls:sys_enter_read fd=3 count=10"),
            (7, 21, "syscalls:sys_exit_read ret=10"),
            (7, 22, "syscalls:sys_enter_close fd=3"),
            (7, 23, "syscalls:sys_exit_close ret=0"),
        ]);
    }
    let code = [
        (7, 30, "syscalls:sys_enter_openat dfd=0 flags=0 mode=0"),
        (7, 32, "syscalls:sys_exit_openat ret=3"),
        (7, 33, "syscalls:sys_enter_read fd=3 count=832"),
        (7, 34, "syscalls:sys_exit_read ret=832"),
        (7, 35, "syscalls:sys_enter_mmap addr=0 len=9 prot=5 flags=2 fd=3 off=0"),
        (7, 36, "syscalls:sys_exit_mmap ret=4096"),
    ];
    lines.extend(code);
    let found = PatternReport::of(&analysis(events(&lines)), "", Some(9));
    let names: Vec<&String> = found.files.iter().map(|file| &file.name).collect();
    assert_eq!(names, ["descriptor 3 of process 7", "descriptor 3 of process 7 (opening 2)"]);
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
    assert!(found.notes[0].contains("the names of 2 files"), "{:?}", found.notes);
    assert_eq!(report(&lines).files.len(), 3, "all are listed where all are wanted");
}

#[test]
fn a_thread_closes_what_its_process_has_and_a_child_does_not() {
    for (flags, is_named) in [(0x400, false), (0, true)] {
        let made = format!("task:task_newtask pid=8 comm=x clone_flags={flags} oom_score_adj=0");
        let lines = [
            (7, 5, made.as_str()),
            (7, 10, "syscalls:sys_enter_openat dfd=0 flags=0 mode=0"),
            (7, 12, "iolab:descriptor fd=3 seen=500 path=/another"),
            (7, 12, "syscalls:sys_exit_openat ret=3"),
            (7, 20, "syscalls:sys_enter_read fd=3 count=10"),
            (7, 21, "syscalls:sys_exit_read ret=10"),
            (8, 400, "syscalls:sys_enter_close fd=3"),
        ];
        assert_eq!(report(&lines).files[0].name == "/another", is_named);
    }
}

#[test]
fn a_name_that_comes_later_stands_from_then_on() {
    let report = report(&[
        (7, 10, "syscalls:sys_enter_openat dfd=0 flags=0 mode=0"),
        (7, 12, "syscalls:sys_exit_openat ret=3"),
        (7, 20, "iolab:descriptor fd=3 seen=21 path=/late"),
        (7, 20, "syscalls:sys_enter_read fd=3 count=10"),
        (7, 21, "syscalls:sys_exit_read ret=10"),
        (7, 22, "syscalls:sys_enter_read fd=3 count=10"),
        (7, 23, "syscalls:sys_exit_read ret=10"),
    ]);
    let file = row(&report, "/late");
    assert_eq!((file.span, file.is_opened_before), (Some((0, 20)), false));
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn what_a_process_held_has_place_size_and_threads() {
    let report = report(&[
        (7, 1, "iolab:held fd=3 flags=32769 pos=4096 size=9000 path=/log\\040(deleted)"),
        (7, 1, "iolab:held fd=4 flags=33793 pos=0 size=700 path=/tail"),
        (7, 1, "iolab:held fd=1 flags=1 pos=0 path=pipe:[12]"),
        (8, 1, "iolab:task group=7"),
        (8, 10, "syscalls:sys_enter_write fd=3 count=100"),
        (8, 11, "syscalls:sys_exit_write ret=100"),
        (8, 12, "syscalls:sys_enter_write fd=4 count=5"),
        (8, 13, "syscalls:sys_exit_write ret=5"),
        (8, 14, "syscalls:sys_enter_write fd=1 count=5"),
        (8, 15, "syscalls:sys_exit_write ret=5"),
    ]);
    assert_eq!(report.files.len(), 2, "a pipe is no file");
    let log = row(&report, "/log");
    assert_eq!((log.span, log.is_opened_before), (Some((4096, 4196)), true));
    assert_eq!(row(&report, "/tail").span, Some((700, 705)), "it is appended to");
}

#[test]
fn a_child_reads_on_where_its_parent_stopped() {
    let report = opened(&[
        (7, 20, "syscalls:sys_enter_read fd=3 count=10"),
        (7, 21, "syscalls:sys_exit_read ret=10"),
        (7, 22, "task:task_newtask pid=8 comm=x clone_flags=18874368 oom_score_adj=0"),
        (8, 24, "iolab:descriptor fd=3 seen=25 path=/d/a\\040b"),
        (8, 24, "syscalls:sys_enter_read fd=3 count=10"),
        (8, 25, "syscalls:sys_exit_read ret=10"),
        (8, 26, "sched:sched_process_exit comm=x pid=8 prio=120"),
    ]);
    let file = row(&report, "/d/a b");
    assert_eq!((file.span, file.streams), (Some((0, 20)), 1));
}

#[test]
fn another_program_has_what_is_not_closed_on_exec() {
    let report = opened(&[
        (7, 15, "syscalls:sys_enter_fcntl fd=3 cmd=1030 arg=10"),
        (7, 16, "syscalls:sys_exit_fcntl ret=10"),
        (7, 17, "syscalls:sys_enter_execve"),
        (7, 18, "syscalls:sys_exit_execve ret=0"),
        (7, 20, "syscalls:sys_enter_read fd=3 count=10"),
        (7, 21, "syscalls:sys_exit_read ret=10"),
        (7, 22, "syscalls:sys_enter_read fd=10 count=20"),
        (7, 23, "syscalls:sys_exit_read ret=20"),
    ]);
    assert_eq!(row(&report, "/d/a b").reads.bytes, 10);
    assert_eq!(row(&report, "descriptor 10 of process 7").reads.bytes, 20);
}

#[test]
fn what_trace_points_do_not_tell_is_said() {
    let report = opened(&[
        (7, 20, "syscalls:sys_enter_io_submit ctx_id=140000000000000 nr=3"),
        (7, 21, "syscalls:sys_exit_io_submit ret=3"),
        (7, 22, "syscalls:sys_enter_copy_file_range fd_in=3 off_in=given fd_out=3 off_out=NULL"),
        (7, 23, "syscalls:sys_exit_copy_file_range ret=100"),
        (7, 24, "syscalls:sys_enter_read fd=3 count=10"),
    ]);
    let notes = report.notes.join("\n");
    for part in [
        "trace points leave out 3 of the requests of io_submit",
        "leave out the offset of a copy between descriptors",
        "one read or write had not ended",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn ends_without_beginnings_and_strange_events_do_no_harm() {
    let lines = [
        (7, 1, "syscalls:sys_exit_read ret=10"),
        (7, 2, "syscalls:sys_enter_read fd=3 count=10"),
        (7, 3, "syscalls:sys_exit_write ret=10"),
        (7, 4, "syscalls:sys_enter_read"),
        (7, 5, "syscalls:sys_exit_read"),
        (7, 6, "iolab:descriptor fd=x seen=1 path=/a"),
        (7, 6, "iolab:descriptor fd=3"),
        (7, 6, "iolab:held fd=3 path=\\"),
        (7, 6, "iolab:task"),
        (7, 6, "task:task_newtask comm=x"),
        (7, 7, ""),
        (7, 8, "syscalls:sys_enter_lseek fd=3 offset=x whence=0"),
        (7, 9, "syscalls:sys_exit_lseek ret=99999999999999999999999"),
        (7, 9, "syscalls:sys_enter_getpid"),
        (7, 9, "syscalls:sys_exit_getpid ret=7"),
    ];
    assert!(report(&lines).files.is_empty());
}

#[test]
fn a_look_that_never_comes_true_does_not_keep_the_whole_trace_in_memory() {
    let mut many = events(&OPENED);
    many[1].payload = b"iolab:descriptor fd=3 seen=9223372036854775807 path=/a".to_vec();
    let one = [
        (7, 20, "syscalls:sys_enter_pread64 fd=3 count=1 pos=0"),
        (7, 21, "syscalls:sys_exit_pread64 ret=1"),
    ];
    for _ in 0..AHEAD_MAX + 10 {
        many.extend(events(&one));
    }
    let report = PatternReport::of(&analysis(many), "", None);
    let file = row(&report, "descriptor 3 of process 7");
    assert_eq!(file.reads.count as usize, AHEAD_MAX + 10);
}

#[test]
fn a_recording_of_calls_is_known_by_its_facts() {
    let facts = |layers: &str| Facts::from([(LAYERS_FACT.to_owned(), layers.to_owned())]);
    assert!(has_calls(&facts("ext4, file-calls")));
    assert!(!has_calls(&facts("syscalls")) && !has_calls(&Facts::new()));
}
