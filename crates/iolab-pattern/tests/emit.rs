//! Workloads of a trace keep places and turns, or tell that they do not.

use iolab_pattern::analysis::PatternAnalysis;
use iolab_pattern::emit::{EmittedWorkload, PatternForm, emit};
use iolab_pattern::report::PatternReport;
use iolab_trace::source::{Input, Window};

const MIB: u64 = 1 << 20;

/// Report and job file of calls on one file.
fn emitted(calls: &[String]) -> (PatternReport, EmittedWorkload) {
    let text = format!("openat(AT_FDCWD, \"/d/f\", O_RDWR) = 3\n{}\n", calls.concat());
    let input = Input::new("text", std::io::Cursor::new(text.into_bytes()));
    let analysis = PatternAnalysis::of_calls(vec![Window::new(input)]).unwrap();
    let report = PatternReport::of(&analysis, "", None);
    let made = emit(&report, PatternForm::Fio);
    (report, made)
}

fn read(size: u64, at: u64) -> String {
    format!("pread64(3, \"\"..., {size}, {at}) = {size}\n")
}

fn write(size: u64, at: u64) -> String {
    format!("pwrite64(3, \"\"..., {size}, {at}) = {size}\n")
}

/// Places of so many blocks of 4 KiB in no order, some of them twice.
fn anywhere(count: u64, blocks: u64) -> Vec<u64> {
    let mut state = 1_u64;
    let mut next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % blocks * 4096
    };
    (0..count).map(&mut next).collect()
}

/// Sections of a job file, each with its options.
fn sections(made: &EmittedWorkload) -> Vec<Vec<&str>> {
    let is_option = |line: &&str| !line.is_empty() && !line.starts_with(';');
    let mut sections: Vec<Vec<&str>> = Vec::new();
    for line in made.text.lines().filter(is_option) {
        if line.starts_with('[') {
            sections.push(Vec::new());
        }
        sections.last_mut().unwrap().push(line);
    }
    sections
}

fn has(section: &[&str], options: &[&str]) -> bool {
    options.iter().all(|option| section.contains(option))
}

/// Symptom: the second half of a log was read from its beginning, and so was the first.
#[test]
fn a_part_of_a_job_file_is_where_it_was() {
    let mut calls: Vec<String> = (0..256).map(|at| read(65_536, at * 65_536)).collect();
    calls.extend(anywhere(300, 16_384).into_iter().map(|at| write(4096, at)));
    calls.extend((256..512).map(|at| read(65_536, at * 65_536)));
    let (report, made) = emitted(&calls);
    let spans: Vec<_> = report.files[0].phases.iter().map(|phase| phase.span).collect();
    assert_eq!((spans[0], spans[2]), (Some((0, 16 * MIB)), Some((16 * MIB, 32 * MIB))));
    let jobs = sections(&made);
    assert!(has(&jobs[0], &["rw=read", "size=16777216"]), "{}", made.text);
    assert!(jobs[0].iter().all(|option| !option.starts_with("offset")), "{}", made.text);
    // Without the last one fio makes the file anew, and reads holes.
    assert!(has(&jobs[1], &["rw=randwrite", "overwrite=1"]), "{}", made.text);
    assert!(has(&jobs[2], &["rw=read", "offset=16777216", "size=16777216"]), "{}", made.text);
    assert_eq!(made.losses, Vec::<String>::new());
}

#[test]
fn a_log_that_is_read_between_is_not_laid_out() {
    let append = |part: u64| (0..256).map(move |at| write(65_536, part * 16 * MIB + at * 65_536));
    let mut calls: Vec<String> = append(0).collect();
    calls.extend(anywhere(200, 4096).into_iter().map(|at| read(4096, at)));
    calls.extend(append(1));
    let (_, made) = emitted(&calls);
    let jobs = sections(&made);
    assert!(has(&jobs[2], &["rw=write", "offset=16777216", "size=16777216"]), "{}", made.text);
    assert!(!made.text.contains("overwrite"), "{}", made.text);
}

#[test]
fn iozone_goes_through_the_whole_file_and_that_is_told() {
    let mut calls: Vec<String> = (0..64).map(|at| write(65_536, at * 65_536)).collect();
    calls.extend((0..16).map(|at| read(65_536, at * 65_536)));
    let (report, _) = emitted(&calls);
    let made = emit(&report, PatternForm::Iozone);
    let told = "the places of its parts: each test goes through the whole file";
    assert!(made.losses.iter().any(|loss| loss.ends_with(told)), "{:?}", made.losses);
}

#[test]
fn the_places_of_parts_of_a_file_that_is_too_large_are_told() {
    let mut calls: Vec<String> = (0..64).map(|at| read(65_536, at * 65_536)).collect();
    calls.extend((0..64).map(|at| write(65_536, (64 << 30) + at * 65_536)));
    let (_, made) = emitted(&calls);
    assert!(made.losses.iter().any(|loss| loss.contains("the places of its parts")));
    assert!(!made.text.contains("offset="), "{}", made.text);
}

#[test]
fn a_file_far_from_whose_beginning_all_was_is_told() {
    let calls: Vec<String> = (0..64).map(|at| read(65_536, 200 * MIB + at * 65_536)).collect();
    let (_, made) = emitted(&calls);
    assert!(made.losses[0].contains("begins at 200 MiB of the traced one"), "{:?}", made.losses);
    assert!(has(&sections(&made)[0], &["size=4194304"]), "{}", made.text);
}

/// Symptom: two processes read and wrote both the source and the copy.
#[test]
fn a_stream_that_reads_and_one_that_writes_are_a_job_each() {
    let copy = |at: u64| [read(16_384, at * 16_384), write(16_384, 200 * MIB + at * 16_384)];
    let calls: Vec<String> = (0..400).flat_map(copy).collect();
    let (report, made) = emitted(&calls);
    assert!(report.files[0].is_stream_each);
    let jobs = sections(&made);
    assert!(has(&jobs[0], &["[f-reads]", "rw=read", "size=6553600"]), "{}", made.text);
    let own = ["[f-writes]", "rw=write", "offset=209715200", "size=6553600", "overwrite=1"];
    assert!(has(&jobs[1], &own), "{}", made.text);
    assert!(!made.text.contains("stonewall"), "{}", made.text);
    assert_eq!(made.losses, ["/d/f: its streams take turns: here they run at once"]);
}

#[test]
fn streams_of_which_nobody_knows_what_reads_and_what_writes_are_told() {
    let four = |at: u64| {
        let place = |stream: u64| stream * 64 * MIB + at * 16_384;
        [0, 1]
            .map(|one| read(16_384, place(one)))
            .into_iter()
            .chain([2, 3].map(place).map(|place| write(16_384, place)))
    };
    let calls: Vec<String> = (0..200).flat_map(four).collect();
    let (report, made) = emitted(&calls);
    assert!(!report.files[0].is_stream_each);
    let told = made.losses.join("\n");
    assert!(told.contains("which of its streams read and which write"), "{told}");
    assert!(told.contains("take turns: here they run at once"), "{told}");
}

/// Symptom: a database with a hot megabyte became evenly drawn reads, without a word.
#[test]
fn hot_spots_are_told_and_even_places_are_not() {
    let even: Vec<String> = anywhere(3000, 65_536).into_iter().map(|at| read(4096, at)).collect();
    let mut hot = even.clone();
    for (at, place) in anywhere(3000, 256).into_iter().enumerate().filter(|(at, _)| at % 10 > 0) {
        hot[at] = read(4096, place);
    }
    assert_eq!(emitted(&even).1.losses, Vec::<String>::new());
    let many: Vec<String> = anywhere(9000, 2048).into_iter().map(|at| read(4096, at)).collect();
    assert_eq!(emitted(&many).1.losses, Vec::<String>::new());
    let told = emitted(&hot).1;
    assert!(told.losses[0].contains("half of them within 1.0 MiB: here all places are alike"));
    assert!(told.text.contains("; not kept: 8"), "{}", told.text);
}

#[test]
fn what_is_written_back_where_it_was_read_is_told() {
    let places = anywhere(300, 16_384).into_iter();
    let calls: Vec<String> = places.flat_map(|at| [read(4096, at), write(4096, at)]).collect();
    let (report, made) = emitted(&calls);
    assert_eq!(report.files[0].written_back, 300);
    assert!(
        made.losses[0].contains("100 % of its writes go to the place of the read just before"),
        "{:?}",
        made.losses
    );
    let places = anywhere(600, 16_384);
    let apart: Vec<String> =
        places.chunks(2).flat_map(|at| [read(4096, at[0]), write(4096, at[1])]).collect();
    assert_eq!(emitted(&apart).1.losses, Vec::<String>::new());
}

#[test]
fn files_that_a_workload_leaves_out_are_told_in_it() {
    let text: String = (3..20)
        .flat_map(|one| {
            let opened = format!("openat(AT_FDCWD, \"/d/f{one}\", O_RDWR) = {one}\n");
            let read = move |at| format!("pread64({one}, \"\"..., 4096, {}) = 4096\n", at * 4096);
            std::iter::once(opened).chain((0..10).map(read))
        })
        .collect();
    let input = Input::new("text", std::io::Cursor::new(text.into_bytes()));
    let analysis = PatternAnalysis::of_calls(vec![Window::new(input)]).unwrap();
    let report = PatternReport::of(&analysis, "", Some(12));
    for (form, mark) in
        [(PatternForm::Fio, ";"), (PatternForm::Study, "#"), (PatternForm::Iozone, "#")]
    {
        let made = emit(&report, form);
        let told = "5 more files with 200.0 KiB; --all takes them";
        assert_eq!(made.losses.last().unwrap(), told);
        assert!(made.text.ends_with(&format!("{mark} not kept: {told}\n")), "{}", made.text);
    }
}

/// A log whose room is allocated, one that only grows, and one that is only read: fio allocates
/// room for each file that it writes unless it is told not to.
#[test]
fn room_is_allocated_where_the_program_did() {
    let log = |calls: &[&str]| {
        let mut all: Vec<String> = calls.iter().map(|call| format!("{call}\n")).collect();
        all.extend((0..64).map(|at| write(4096, at * 4096)));
        emitted(&all)
    };
    let fallocate = "fallocate(3, 0, 0, 1048576) = 0";
    for (calls, way, loss) in [
        (vec![], "fallocate=none", ""),
        (vec![fallocate], "fallocate=native", ""),
        (vec![fallocate; 3], "fallocate=native", "in 3 steps"),
        (vec!["fallocate(3, 0x1, 0, 1048576) = 0"], "fallocate=keep", ""),
        (vec!["fallocate(3, FALLOC_FL_KEEP_SIZE, 0, 1048576) = 0"], "fallocate=keep", ""),
        (
            vec!["fallocate(3, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 4096) = 0"],
            "fallocate=none",
            "cleared once",
        ),
        (vec!["fallocate(3, 0x3, 0, 4096) = 0"; 2], "fallocate=none", "cleared 2 times"),
        (vec!["fallocate(3, 0, 0, 4096) = -1 EOPNOTSUPP (Operation)"], "fallocate=none", ""),
    ] {
        let (report, made) = log(&calls);
        assert!(has(&sections(&made)[0], &[way]), "{calls:?}: {}", made.text);
        assert_eq!(made.losses.len(), usize::from(!loss.is_empty()), "{:?}", made.losses);
        assert!(made.losses.iter().all(|told| told.contains(loss)), "{:?}", made.losses);
        let is_told = report.files[0].sentence.contains("fallocate");
        assert_eq!(is_told, !calls.is_empty() && !calls[0].contains("-1"), "{report:?}");
        let iozone = emit(&report, PatternForm::Iozone);
        assert_eq!(iozone.text.contains("not kept: "), is_told, "{}", iozone.text);
    }
    let (_, made) = emitted(&(0..64).map(|at| read(4096, at * 4096)).collect::<Vec<_>>());
    assert!(!made.text.contains("fallocate"), "{}", made.text);
}
