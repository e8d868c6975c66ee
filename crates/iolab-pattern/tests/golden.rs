//! Recordings of one program under all usual options of strace, and a listing of truss.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use iolab_pattern::access::Happening;
use iolab_pattern::analysis::PatternAnalysis;
use iolab_pattern::emit::{EmittedWorkload, PatternForm, emit};
use iolab_pattern::processes::TracedProcesses;
use iolab_pattern::report::{FilePattern, PatternReport};
use iolab_pattern::stream::class::{AccessClass, AccessPattern};
use iolab_pattern::text::reader::{Reader, knows};
use iolab_trace::source::{Input, Window};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/trace/strace")
}

fn windows(names: &[&str]) -> Vec<Window> {
    let open =
        |name: &&str| Window::new(Input::new(*name, File::open(folder().join(name)).unwrap()));
    names.iter().map(open).collect()
}

fn of_text(text: &str) -> PatternReport {
    let input = Input::new("text", std::io::Cursor::new(text.as_bytes().to_vec()));
    PatternReport::of(&PatternAnalysis::of_calls(vec![Window::new(input)]).unwrap(), "", None)
}

fn only(report: &PatternReport) -> &FilePattern {
    assert_eq!(report.files.len(), 1, "{report:?}");
    &report.files[0]
}

/// Accesses of the program's file: direction, offset or None at an unknown end, bytes.
type Accesses = BTreeMap<(bool, Option<u64>, u64), u32>;

fn expected() -> Accesses {
    let mut found = Accesses::new();
    let text = fs::read_to_string(folder().join("expected-data-file.csv")).unwrap();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let key = (fields[1].contains("write"), fields[2].parse().ok(), fields[3].parse().unwrap());
        *found.entry(key).or_default() += 1;
    }
    found
}

fn followed(names: &[&str]) -> Accesses {
    let mut reader = Reader::new(windows(names));
    let (mut processes, mut accesses) = (TracedProcesses::default(), Vec::new());
    let caveats = processes
        .follow(&mut reader, |happening| {
            if let Happening::Access(access) = happening {
                accesses.push(*access);
            }
            Ok(())
        })
        .unwrap();
    assert!(caveats.is_empty(), "{names:?}: {caveats:?}");
    let mut found = Accesses::new();
    for access in accesses {
        let name = &processes.files()[access.stream.file].name;
        if name == b"data" || name.ends_with(b"/data") {
            *found.entry((access.is_write, access.offset, access.bytes)).or_default() += 1;
        }
    }
    found
}

const CAPTURES: [&[&str]; 6] = [
    &["f.txt"],
    &["f-ns.txt"],
    &["f-r-Xraw.txt"],
    &["f-y-T-ttt.txt"],
    &["f-yy-tt-T-s0.txt"],
    &["ff-y-ttt-T.32358", "ff-y-ttt-T.32362", "ff-y-ttt-T.32369"],
];

/// The truth with what it leaves out: `sendfile`, `copy_file_range` and asynchronous reads of the
/// same file; and with the end of the file, which the reader knows because it saw it grow.
fn truth() -> Accesses {
    let mut truth = expected();
    let appended = truth.remove(&(true, None, 333)).unwrap();
    truth.insert((true, Some(655_360), 333), appended);
    for other in
        [(false, Some(0), 65_536), (false, Some(65_536), 65_536), (false, Some(40_960), 4096)]
    {
        *truth.entry(other).or_default() += 1;
    }
    truth
}

#[test]
fn every_form_of_the_text_gives_the_accesses_of_the_program() {
    for names in CAPTURES {
        let mut truth = truth();
        if names[0].contains("-s0") {
            // With `-s 0` and without `-v` strace leaves out the requests of io_submit.
            truth.remove(&(false, Some(40_960), 4096));
        }
        assert_eq!(followed(names), truth, "{names:?}");
    }
    // On the terminal remarks of strace stand within lines.
    assert_eq!(followed(&["stderr-f.txt"]), truth());
}

#[test]
fn requests_that_the_text_leaves_out_are_told() {
    let names = windows(&["f-yy-tt-T-s0.txt"]);
    let report = PatternReport::of(&PatternAnalysis::of_calls(names).unwrap(), "", None);
    assert!(report.notes.iter().any(|note| note.contains("leaves out 1 of")), "{report:?}");
}

#[test]
fn texts_are_known_by_their_beginnings() {
    for names in CAPTURES {
        assert!(knows(&fs::read(folder().join(names[0])).unwrap()), "{names:?}");
    }
    assert!(!knows(b"it was a dark (and stormy) night\n"));
    assert!(!knows(&fs::read(folder().join("app.c")).unwrap()));
}

#[test]
fn phases_of_the_program_are_found() {
    let report = PatternReport::of(
        &PatternAnalysis::of_calls(windows(&["f-y-T-ttt.txt"])).unwrap(),
        "",
        None,
    );
    let data = report.files.iter().find(|file| file.name.ends_with("/data")).unwrap();
    let patterns: Vec<AccessPattern> = data.phases.iter().map(|phase| phase.pattern).collect();
    assert_eq!(
        patterns[..5],
        [
            AccessPattern::Sequential,
            AccessPattern::Sequential,
            AccessPattern::Strided,
            AccessPattern::Backward,
            AccessPattern::Random
        ],
        "{:#?}",
        data.phases
    );
    assert_eq!((data.phases[0].accesses, data.phases[0].mean_bytes), (40, 16_384));
    assert_eq!(data.syncs, 3);
    assert!(report.notes[0].contains("io_uring"));
    assert_eq!(report.notes[1], "1 read or write failed: EBADF (1)");
    assert!(report.notes[2].contains("/data was mapped"));
}

/// The listing of the article on Solaris, as additions/07 describes it (TR-1): positions in
/// hexadecimal, buffers as addresses, and every read returns nothing.
#[test]
fn five_random_reads_of_the_article_are_five_random_reads() {
    let positions =
        [225_968_128_u64, 174_915_584, 262_504_448, 259_645_440, 135_151_616, 38_617_088];
    let mut text = String::new();
    for (index, position) in positions.iter().enumerate() {
        let _ = writeln!(text, "lseek(3, 0x{position:08X}, SEEK_SET)\t\t= 0x{position:08X}");
        if index < 5 {
            text.push_str("read(3, 0xFFBDF5B0, 8192)\t\t\t= 0\n");
        }
    }
    let report = of_text(&text);
    let file = only(&report);
    assert_eq!(file.pattern, AccessPattern::Random);
    assert_eq!((file.reads.count, file.reads.bytes), (5, 5 * 8192));
    assert_eq!((file.sought, file.alignment >= Some(8192)), (5, true));
    assert!(file.is_size_by_request);
    let random: u64 = file
        .classes
        .iter()
        .filter(|row| matches!(row.class, AccessClass::Random))
        .map(|row| row.accesses)
        .sum();
    assert_eq!((random, file.span), (5, Some((135_151_616, 262_504_448 + 8192))));
}

#[test]
fn a_process_shares_positions_with_its_child_and_a_thread_the_descriptors() {
    let text = "\
10 openat(AT_FDCWD, \"f\", O_RDONLY) = 3
10 read(3, \"\", 4096) = 4096
10 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>
11 read(3, \"\", 4096) = 4096
10 <... clone resumed>, child_tidptr=0x7) = 11
10 read(3, \"\", 4096) = 4096
11 close(3) = 0
10 read(3, \"\", 4096) = 4096
10 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 12
12 close(3) = 0
12 openat(AT_FDCWD, \"g\", O_RDONLY) = 3
10 read(3, \"\", 100) = 100
";
    let report = of_text(text);
    let of = |name: &str| report.files.iter().find(|file| file.name == name).unwrap().reads;
    assert_eq!((of("f").count, of("f").bytes, of("g").count), (4, 4 * 4096, 1));
    assert_eq!(report.files[0].span, Some((0, 4 * 4096)));
}

#[test]
fn streams_that_take_turns_are_counted() {
    let mut text = String::from("open(\"f\", O_RDONLY) = 3\n");
    for at in 0..40_u64 {
        let offset = (at % 4) * (1 << 24) + at / 4 * 4096;
        let _ = writeln!(text, "pread64(3, \"\", 4096, {offset}) = 4096");
    }
    let report = of_text(&text);
    assert_eq!((only(&report).pattern, only(&report).streams), (AccessPattern::Interleaved, 4));
}

#[test]
fn lines_that_are_no_calls_are_told_and_the_rest_is_used() {
    let report = PatternAnalysis::of_calls(vec![Window::new(Input::new(
        "text",
        std::io::Cursor::new(b"hello\nopen(\"f\", 0) = 3\nread(3, \"\", 1) = 1\nworld\n".to_vec()),
    ))])
    .unwrap();
    assert_eq!(report.tallies[0].reads, (1, 1));
    assert_eq!(report.caveats.len(), 1);
    assert!(report.caveats[0].to_string().contains("line 1"), "{}", report.caveats[0]);
}

#[test]
fn a_file_that_is_opened_for_every_access_is_still_sequential() {
    let mut text = String::new();
    for at in 0..100_u64 {
        let _ = writeln!(
            text,
            "open(\"f\", O_RDONLY) = 3\npread64(3, \"\", 4096, {}) = 4096\nclose(3) = 0",
            at * 4096
        );
    }
    assert_eq!(only(&of_text(&text)).pattern, AccessPattern::Sequential);
}

#[test]
fn threads_and_children_share_one_position() {
    let mut text = String::from("10 open(\"f\", O_RDONLY) = 3\n");
    for child in 11..75 {
        let _ = writeln!(text, "10 fork() = {child}\n{child} read(3, \"\", 4096) = 4096");
    }
    assert_eq!(only(&of_text(&text)).pattern, AccessPattern::Sequential);
}

#[test]
fn many_small_files_are_listed_although_each_is_a_small_part() {
    let mut text = String::new();
    for file in 0..1500 {
        let _ = writeln!(
            text,
            "open(\"f{file}\", O_RDONLY) = 3\nread(3, \"\", 20000) = 20000\nclose(3) = 0"
        );
    }
    let input = Input::new("text", std::io::Cursor::new(text.into_bytes()));
    let analysis = PatternAnalysis::of_calls(vec![Window::new(input)]).unwrap();
    let report = PatternReport::of(&analysis, "", Some(12));
    assert_eq!((report.files.len(), report.files_left_out), (12, 1488));
}

#[test]
fn requests_of_lists_and_waits_of_a_queue_are_counted() {
    let text = "open(\"f\", O_RDWR|O_DIRECT) = 3\n\
        io_submit(0x7f, 2, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PREADV, aio_fildes=3, \
        aio_buf=[{iov_base=0x1, iov_len=4096}, {iov_base=0x2, iov_len=4096}], aio_offset=8192}, \
        {aio_data=0, aio_lio_opcode=IOCB_CMD_FDSYNC, aio_fildes=3}]) = 2\n";
    let report = of_text(text);
    let file = only(&report);
    assert_eq!((file.reads.count, file.reads.bytes, file.syncs), (1, 8192, 1));
    assert_eq!((file.span, file.queue_depth), (Some((8192, 16_384)), 2));
}

#[test]
fn a_stride_is_told_although_random_reads_came_first() {
    let mut text = String::from("open(\"f\", O_RDONLY) = 3\n");
    let offsets = (0..100_u64).map(|at| (at * at * 7919 % 104_729) << 12);
    for offset in offsets.chain((0..900).map(|at| at << 18)) {
        let _ = writeln!(text, "pread64(3, \"\", 4096, {offset}) = 4096");
    }
    let report = of_text(&text);
    assert_eq!(
        (only(&report).pattern, only(&report).stride),
        (AccessPattern::Strided, Some(1 << 18))
    );
}

#[test]
fn a_closed_description_gives_its_place_and_its_classes() {
    // Tasks and descriptors come and go; what they did to two files stays.
    let mut text = String::new();
    for task in 10..2010 {
        let _ = writeln!(
            text,
            "{task} openat(AT_FDCWD, \"f\", O_RDONLY) = 3\n\
             {task} dup(3) = 4\n{task} close(3) = 0\n\
             {task} read(4, \"\", 4096) = 4096\n{task} read(4, \"\", 4096) = 4096\n\
             {task} openat(AT_FDCWD, \"g\", O_RDONLY) = 3\n{task} read(3, \"\", 10) = 10\n\
             {task} +++ exited with 0 +++"
        );
    }
    let report = of_text(&text);
    let of = |name: &str| report.files.iter().find(|file| file.name == name).unwrap();
    assert_eq!((of("f").reads.count, of("g").reads.count), (4000, 2000));
    let sequential = |name: &str| {
        let rows = of(name).classes.iter();
        rows.filter(|row| row.class == AccessClass::Sequential).map(|row| row.accesses).sum::<u64>()
    };
    assert_eq!((sequential("f"), sequential("g")), (4000, 2000));
}

#[test]
fn files_of_two_kinds_are_no_trace_and_cut_calls_are_told() {
    let input = |text: &str| Input::new("text", std::io::Cursor::new(text.as_bytes().to_vec()));
    let both = vec![input("close(3) = 0\n"), input("once upon a time\n")];
    let told = PatternAnalysis::of(both, &[]).err().unwrap().to_string();
    assert!(told.contains("no text of strace or truss, other files are"), "{told}");
    let cut = "7 close(3) = 0\n7 read(4,  <unfinished ...>\n8 futex(0x1,  <unfinished ...>\n";
    let analysis = PatternAnalysis::of(vec![input(cut)], &[]).unwrap();
    assert_eq!(analysis.caveats.len(), 1);
    assert!(analysis.caveats[0].what.starts_with("one read or write had not ended"));
}

#[test]
fn a_call_with_a_thousand_requests_is_read() {
    let one = "{aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3, aio_buf=0x1, \
               aio_nbytes=4096, aio_offset=8192}";
    let list = vec![one; 1000].join(", ");
    let report =
        of_text(&format!("open(\"f\", O_RDONLY) = 3\nio_submit(0x7f, 1000, [{list}]) = 1000\n"));
    assert_eq!(only(&report).reads.count, 1000);
}

#[test]
fn the_same_bytes_again_and_again_are_one_place() {
    let one = "open(\"f\", O_RDONLY) = 3\nread(3, \"\", 4096) = 4096\nclose(3) = 0\n";
    let report = of_text(&one.repeat(50));
    let sentence = &only(&report).sentence;
    assert!(sentence.starts_with("50 reads of 4 KiB, always at the same place"), "{sentence}");
}

#[test]
fn content_that_was_thrown_away_is_not_touched_again() {
    let round = |how: &str| {
        format!(
            "openat(AT_FDCWD, \"a\", O_WRONLY|O_CREAT{how}, 0600) = 3\n\
             write(3, \"x\"..., 8192) = 8192\nwrite(3, \"x\"..., 8192) = 8192\nclose(3) = 0\n"
        )
    };
    let cut = of_text(&round("|O_TRUNC").repeat(5));
    let file = only(&cut);
    assert_eq!((file.emptied, file.reused_share, file.span), (4, Some(0.0), Some((0, 16384))));
    assert!(file.sentence.contains("thrown away 4 times"), "{}", file.sentence);
    let removed = format!("{}unlink(\"a\") = 0\n", round("")).repeat(5);
    assert_eq!(
        (only(&of_text(&removed)).emptied, only(&of_text(&removed)).reused_share),
        (5, Some(0.0))
    );
    let at = format!("{}unlinkat(AT_FDCWD, \"a\", 0) = 0\n", round("")).repeat(5);
    assert_eq!(only(&of_text(&at)).emptied, 5);
    let shown = "openat(AT_FDCWD</d>, \"a\", O_WRONLY|O_CREAT, 0600) = 3</d/a>\n\
                 write(3</d/a>, \"x\"..., 8192) = 8192\nclose(3</d/a>) = 0\nunlink(\"a\") = 0\n";
    assert_eq!(only(&of_text(&shown.repeat(5))).emptied, 5);
    let shortened = format!(
        "{}openat(AT_FDCWD, \"a\", O_RDWR) = 3\nftruncate(3, 0) = 0\n\
         write(3, \"x\"..., 4096) = 4096\n",
        round("")
    );
    assert_eq!(
        (only(&of_text(&shortened)).emptied, only(&of_text(&shortened)).reused_share),
        (1, Some(0.0))
    );
    let kept = of_text(&round("").repeat(5));
    assert_eq!((only(&kept).emptied, only(&kept).reused_share), (0, Some(0.8)));
}

#[test]
fn reads_in_order_between_writes_anywhere_are_told_apart() {
    let mut text = String::from("openat(AT_FDCWD, \"/d/f\", O_RDWR) = 3\n");
    for at in 0..200_u64 {
        let anywhere = (at * at * 7919 % 1009) << 20;
        let _ = writeln!(text, "pread64(3, \"\"..., 4096, {}) = 4096", at * 4096);
        let _ = writeln!(text, "pwrite64(3, \"\"..., 4096, {anywhere}) = 4096");
    }
    let report = of_text(&text);
    let file = only(&report);
    assert_eq!(file.pattern, AccessPattern::Mixed);
    assert_eq!(file.directions, Some((AccessPattern::Sequential, AccessPattern::Random)));
    let told = "of 4 KiB, reads one after the other, writes at random places";
    assert!(file.sentence.contains(told), "{}", file.sentence);
    assert!(file.random_shares.0 < 0.02 && file.random_shares.1 > 0.98);
}

#[test]
fn what_fails_and_what_no_file_is_known_of_is_told() {
    let mut text = String::from("openat(AT_FDCWD, \"/d/f\", O_RDONLY) = 3\n");
    for _ in 0..50 {
        text.push_str("pread64(3, 0x7f, 4096, 0) = -1 EIO (Input/output error)\n");
        text.push_str("read(3, 0x7f, 4096) = -1 EINTR (Interrupted system call)\n");
        text.push_str("read(0, \"\"..., 4096) = 4096\nwrite(1, \"\"..., 4096) = 4096\n");
    }
    let notes = of_text(&text).notes;
    assert_eq!(notes[0], "50 reads or writes failed: EIO (50)");
    assert!(notes[1].starts_with("100 reads and writes of standard input, output or error"));
    // What a call has said to be no file, and what little a program prints, is nobody's workload.
    let text = "pipe([0, 1]) = 0\nread(0, \"\"..., 9) = 9\nwrite(1, \"\"..., 9) = 9\n";
    let no_times = "no times: pauses, and what was used at the same time, are not known";
    let told = of_text(text).notes;
    assert!(told.len() == 1 && told[0].starts_with(no_times), "{told:?}");
    let truss = "pread64(5, 0x1, 512, 0)  Err#5 EIO\n".repeat(3);
    assert_eq!(of_text(&truss).notes, ["3 reads or writes failed: EIO (3)", no_times]);
}

/// Text of a program that writes one file with a size and a flag of its opening.
fn written(flags: &str, accesses: impl IntoIterator<Item = (u64, u64)>, after: &str) -> String {
    let mut text = format!("openat(AT_FDCWD, \"/d/f\", O_RDWR|O_CREAT{flags}, 0600) = 3\n");
    for (offset, bytes) in accesses {
        let _ = writeln!(text, "pwrite64(3, \"\"..., {bytes}, {offset}) = {bytes}\n{after}");
    }
    text
}

fn emitted(text: &str, form: PatternForm) -> EmittedWorkload {
    emit(&of_text(text), form)
}

#[test]
fn the_way_of_waiting_is_told_and_emitted() {
    for (flags, after, told, fio, iozone) in [
        ("|O_SYNC", "", "(O_SYNC)", "\nsync=sync\n", " -o "),
        ("|O_DSYNC", "", "(O_DSYNC)", "\nsync=dsync\n", " -+D "),
        ("", "fsync(3) = 0\n", "(fsync)", "\nfsync=1\nend_fsync=1\n", " -o "),
        ("", "fdatasync(3) = 0\n", "(fdatasync)", "\nfdatasync=1\nend_fsync=1\n", " -o "),
    ] {
        let text = written(flags, (0..50).map(|at| (at * 4096, 4096)), after);
        let sentence = only(&of_text(&text)).sentence.clone();
        assert!(sentence.contains(&format!("after every write {told}")), "{sentence}");
        let job = emitted(&text, PatternForm::Fio);
        assert!(job.text.contains(fio) && job.losses.is_empty(), "{job:?}");
        let line = emitted(&text, PatternForm::Iozone);
        assert!(line.text.contains(iozone), "{line:?}");
        assert_eq!(line.losses.len(), usize::from(!after.is_empty()), "{line:?}");
    }
}

#[test]
fn one_block_that_is_written_again_and_again_is_one_place() {
    let text = written("", (0..50).map(|_| (8192, 4096)), "");
    let report = of_text(&text);
    let file = only(&report);
    assert_eq!(file.pattern, AccessPattern::Same);
    assert!(file.sentence.contains("always at the same place"), "{}", file.sentence);
    let job = emitted(&text, PatternForm::Fio).text;
    assert!(job.contains("size=4096\n") && job.contains("io_size=204800\n"), "{job}");
    assert!(emitted(&text, PatternForm::Iozone).text.contains(" -i 0 -i 4 "));
}

/// A trace of a sparse file: one access lies at 4 EiB.
#[test]
fn no_workload_of_a_sparse_file_fills_a_disk() {
    let text = written("", (0..50).map(|at| ((at * at * 7919 % 1009) << 52, 4096)), "");
    for form in PatternForm::ALL {
        let made = emitted(&text, *form);
        assert!(made.losses[0].starts_with("/d/f: its length: the accesses span"), "{made:?}");
        let used = made.text.lines().filter(|line| !line.starts_with(['#', ';']));
        let sizes = used.flat_map(|line| line.split(['=', ' ', '"', ':', 'k', 'g']));
        let largest = sizes.filter_map(|word| word.parse::<u64>().ok()).max().unwrap();
        assert!(largest <= 16 << 30, "{largest} in {}", made.text);
    }
    let strided = written("", (0..50).map(|at| (at << 40, 4096)), "");
    let made = emitted(&strided, PatternForm::Fio);
    assert_eq!((made.files, made.losses.len()), (0, 1), "{made:?}");
    assert!(made.losses[0].contains("steps of 1 TiB do not fit"), "{made:?}");
    // The end of the last address, and a file that was cut to a size that no disk has.
    let end =
        written("", [(u64::MAX >> 1, 4096), (0, 4096)], "ftruncate(3, 4611686018427387904) = 0");
    assert!(emitted(&end, PatternForm::Study).text.contains("loop:32g"));
}

#[test]
fn iozone_gets_no_file_that_its_tests_would_show_otherwise() {
    let mut mixed = String::from("openat(AT_FDCWD, \"/d/f\", O_RDWR) = 3\n");
    for at in 0..200_u64 {
        let call = if at % 3 == 0 { "pwrite64" } else { "pread64" };
        let place = (at * at * 7919 % 1009) << 20;
        let _ = writeln!(mixed, "{call}(3, \"\"..., 4096, {place}) = 4096");
    }
    let sizes =
        written("", (0..50).map(|at| (at << 16, if at % 2 == 0 { 4096 } else { 8192 })), "");
    for (text, told) in [(mixed, "here both take turns"), (sizes, "these accesses have several")] {
        let made = emitted(&text, PatternForm::Iozone);
        assert_eq!((made.files, made.losses.len()), (0, 1), "{made:?}");
        assert!(made.losses[0].contains(told), "{made:?}");
        assert_eq!(emitted(&text, PatternForm::Fio).files, 1);
    }
}

#[test]
fn phases_have_sizes_waits_and_strides_of_their_own() {
    let mut text = written("", (0..100).map(|at| (at * 65_536, 65_536)), "");
    for at in 0..100_u64 {
        let size = if at % 4 == 0 { 8192 } else { 4096 };
        let place = (at * at * 7919 % 1009) << 16;
        let _ = writeln!(text, "pwrite64(3, \"\"..., {size}, {place}) = {size}\nfsync(3) = 0");
    }
    for at in 0..100_u64 {
        let _ = writeln!(text, "pread64(3, \"\"..., 4096, {}) = 4096", at << 18);
    }
    for at in 0..60_u64 {
        let _ = writeln!(text, "pread64(3, \"\"..., 4096, {}) = 4096", at << 15);
    }
    let job = emitted(&text, PatternForm::Fio);
    let parts: Vec<&str> = job.text.split("[f-part").skip(1).collect();
    assert!(parts[0].contains("rw=write\nbs=65536\n") && !parts[0].contains("fsync"), "{job:?}");
    assert!(parts[1].contains("rw=randwrite\nbssplit=4096/75:8192/25\n"), "{}", parts[1]);
    assert!(parts[1].contains("fsync=1\n"), "{}", parts[1]);
    assert!(parts[2].contains("rw=read:258048\n"), "{}", parts[2]);
}

#[test]
fn waits_for_all_files_and_for_mapped_ones_are_those_of_the_files_that_were_written() {
    let text = "\
        openat(AT_FDCWD, \"/t/a\", O_RDWR|O_CREAT, 0644) = 3\n\
        openat(AT_FDCWD, \"/t/b\", O_RDWR|O_CREAT, 0644) = 4\n\
        openat(AT_FDCWD, \"/t/c\", O_RDWR) = 5\n\
        read(5, \"x\"..., 4096) = 4096\n\
        write(3, \"x\"..., 4096) = 4096\n\
        sync() = 0\n\
        write(3, \"x\"..., 4096) = 4096\n\
        write(4, \"x\"..., 4096) = 4096\n\
        sync_file_range(4, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0\n\
        syncfs(3) = 0\n\
        mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 4, 0) = 0x7f0000001000\n\
        msync(0x7f0000002000, 4096, MS_SYNC) = 0\n\
        msync(0x7f0000002000, 4096, MS_ASYNC) = 0\n\
        msync(0x7f0000003000, 4096, MS_SYNC) = 0\n";
    let report = of_text(text);
    let waits = |name: &str| {
        let file = report.files.iter().find(|file| file.name == name).unwrap();
        (file.syncs, file.waits.ranges)
    };
    assert_eq!([waits("/t/a"), waits("/t/b"), waits("/t/c")], [(2, 0), (2, 1), (0, 0)]);
}

#[test]
fn a_file_that_keeps_another_name_is_not_thrown_away() {
    let text = "\
        openat(AT_FDCWD, \"/t/tmp\", O_RDWR|O_CREAT|O_EXCL, 0444) = 3\n\
        write(3, \"x\"..., 4096) = 4096\n\
        close(3) = 0\n\
        link(\"/t/tmp\", \"/t/final\") = 0\n\
        unlink(\"/t/tmp\") = 0\n";
    assert_eq!(only(&of_text(text)).emptied, 0);
    let removed = format!("{text}unlink(\"/t/final\") = 0\n");
    assert_eq!(only(&of_text(&removed)).emptied, 1);
}

/// Lines of reads of `/t/a` and writes of `/t/b` that take turns; `a` is read again behind them in
/// other sizes.
fn two_files_at_once() -> String {
    let mut text = String::from(
        "1.000000 openat(AT_FDCWD, \"/t/a\", O_RDONLY) = 3 <0.000010>\n\
         1.000100 openat(AT_FDCWD, \"/t/b\", O_WRONLY|O_CREAT, 0644) = 4 <0.000010>\n",
    );
    for number in 0..64 {
        let at = 1.0 + f64::from(number + 1) * 1e-3;
        let _ = writeln!(text, "{at:.6} read(3, \"x\"..., 4096) = 4096 <0.000010>");
        let _ = writeln!(text, "{:.6} write(4, \"x\"..., 4096) = 4096 <0.000010>", at + 5e-4);
    }
    for number in 0..64 {
        let at = 1.1 + f64::from(number) * 1e-3;
        let place = 65536 * ((number * 37) % 64);
        let _ = writeln!(text, "{at:.6} pread64(3, \"x\"..., 65536, {place}) = 65536 <0.000010>");
    }
    text
}

#[test]
fn files_that_were_used_beside_a_file_of_several_parts_are_told_of_its_walls() {
    let report = of_text(&two_files_at_once());
    let parts = report.files.iter().find(|file| file.name == "/t/a").unwrap().phases.len();
    assert_eq!(parts, 2);
    let losses = emit(&report, PatternForm::Fio).losses;
    let told: Vec<_> = losses.iter().filter(|loss| loss.contains("beside its last part")).collect();
    assert_eq!(told.len(), 1, "{losses:?}");
    assert!(told[0].starts_with("/t/b"), "{losses:?}");
}

#[test]
fn what_a_job_does_not_keep_is_told() {
    let mut vectors = String::from("openat(AT_FDCWD, \"/d/f\", O_RDONLY) = 3\n");
    for at in 0..20 {
        let two = "[{iov_base=\"\"..., iov_len=1024}, {iov_base=\"\"..., iov_len=3072}]";
        writeln!(vectors, "preadv(3, {two}, 2, {}) = 4096", at * 4096).unwrap();
    }
    let losses = emitted(&vectors, PatternForm::Fio).losses;
    assert!(losses[0].contains("several buffers in each call"), "{losses:?}");
    let text = "\
        openat(AT_FDCWD, \"/t/a\", O_RDWR|O_CREAT, 0644) = 3\n\
        write(3, \"x\"..., 4096) = 4096\n\
        sync_file_range(3, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0\n\
        ftruncate(3, 0) = 0\n\
        write(3, \"x\"..., 4096) = 4096\n";
    let losses = emit(&of_text(text), PatternForm::Fio).losses.join("\n");
    assert!(losses.contains("sync_file_range, which it calls once"), "{losses}");
    assert!(losses.contains("thrown away once: here it stays"), "{losses}");
}

/// A call of a task with the time at which it began and that it took, in microseconds.
fn timed(task: u32, begin_us: u64, call: &str, lasted_us: u64) -> String {
    let at = format!("{}.{:06}", 1_700_000_000 + begin_us / 1_000_000, begin_us % 1_000_000);
    format!("{task} {at} {call} <0.{lasted_us:06}>\n")
}

#[test]
fn a_wait_for_stable_storage_is_no_pause() {
    let mut text = timed(1, 0, r#"openat(AT_FDCWD, "log", O_RDWR|O_CREAT, 0644) = 3"#, 10);
    for at in 0..40 {
        let begin = 1_000 + at * 20_000;
        text += &timed(1, begin, r#"write(3, ""..., 4096) = 4096"#, 20);
        text += &timed(1, begin + 30, "fdatasync(3) = 0", 9_000);
    }
    let report = of_text(&text);
    let file = only(&report);
    let think = file.think.unwrap();
    let pause = 20_000_000 - 9_000_000 - 20_000_u64;
    assert!(think.p50_ns.abs_diff(pause) <= pause / 64, "{think:?}");
    assert!(file.sentence.contains("pauses of 10.9"), "{}", file.sentence);
}

#[test]
fn a_wait_with_nothing_written_before_is_no_rhythm() {
    let mut text = String::from("openat(AT_FDCWD, \"/d/f\", O_RDWR) = 3\nfsync(3) = 0\n");
    for _ in 0..50 {
        text += "write(3, \"\"..., 4096) = 4096\n";
    }
    text += "fsync(3) = 0\nfsync(3) = 0\n";
    let report = of_text(&text);
    let file = only(&report);
    assert_eq!((file.syncs, file.idle_waits.fsync, file.writes_per_sync), (3, 2, Some(50.0)));
    assert!(file.sentence.contains("waits for stable storage once (fsync)"), "{}", file.sentence);
    let job = emit(&report, PatternForm::Fio).text;
    assert!(job.contains("end_fsync=1") && !job.contains("\nfsync="), "{job}");
}

#[test]
fn readers_and_writers_that_take_turns_are_no_phases() {
    let of = |writer: u32, turn: u64| {
        let mut text = String::from("1 openat(AT_FDCWD, \"/d/f\", O_RDWR) = 3\n");
        text += "1 clone(flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 2\n";
        for at in 0..12 * turn {
            if (at / turn).is_multiple_of(2) {
                writeln!(text, "1 pread64(3, \"\"..., 4096, {}) = 4096", at * 4096).unwrap();
            } else {
                let place = at * at * 7919 % 997 * 65_536;
                writeln!(text, "{writer} pwrite64(3, \"\"..., 4096, {place}) = 4096").unwrap();
            }
        }
        of_text(&text)
    };
    assert!(only(&of(1, 40)).phases.len() > 2, "one task that does both in turn has phases");
    assert!(only(&of(2, 200)).phases.len() > 2, "no scheduler, but parts of what both do");
    // Turns as long as a scheduler might let them be.
    let report = of(2, 40);
    let file = only(&report);
    assert!(file.phases.is_empty(), "{:?}", file.phases);
    assert_eq!(file.directions, Some((AccessPattern::Sequential, AccessPattern::Random)));
}

#[test]
fn files_without_times_have_no_common_order() {
    let window = |name: &str, text: String| {
        Window::new(Input::new(name, std::io::Cursor::new(text.into_bytes())))
    };
    let part = |call: &str, step: u64| {
        let mut text = String::from("openat(AT_FDCWD, \"/d/f\", O_RDWR) = 3</d/f>\n");
        for at in 0..100_u64 {
            let place = at * step % (1 << 30);
            writeln!(text, "{call}(3</d/f>, \"\"..., 4096, {place}) = 4096").unwrap();
        }
        text
    };
    let texts = vec![
        window("out.1", part("pread64", 4096)),
        window("out.2", part("pwrite64", 7919 * 65_536)),
    ];
    let report = PatternReport::of(&PatternAnalysis::of_calls(texts).unwrap(), "", None);
    assert!(only(&report).phases.is_empty());
    assert!(report.notes.iter().any(|note| note.contains("came first is not known")), "{report:?}");
}

#[test]
fn what_is_changed_where_it_was_read_is_told() {
    let mut text = String::from("openat(AT_FDCWD, \"/d/f\", O_RDWR) = 3\n");
    for at in 0..40_u64 {
        let place = at * 65_536;
        writeln!(text, "pread64(3, \"\"..., 4096, {place}) = 4096").unwrap();
        writeln!(text, "pwrite64(3, \"\"..., 4096, {place}) = 4096").unwrap();
    }
    let report = of_text(&text);
    let file = only(&report);
    assert_eq!(file.written_back, 40);
    let told = "each write goes to the place that was read just before";
    assert!(file.sentence.contains(told), "{}", file.sentence);
}

#[test]
fn a_line_of_megabytes_is_one_call_and_its_data_are_none() {
    let forged = "\\n1 pwrite64(4, \\\"\\\", 999424, 4096) = 999424\n";
    for (fill, end) in [("A", "\""), ("\\303", "\""), ("A", "\"...")] {
        let mut data = String::new();
        while data.len() < 3 << 20 {
            data += &fill.repeat(10_000);
            data += forged.trim_end();
        }
        let text = format!(
            "1 openat(AT_FDCWD, \"/d/a\", O_RDWR) = 3\n1 openat(AT_FDCWD, \"/d/b\", O_RDWR) = 4\n\
             1 pwrite64(3, \"{data}{end}, 2097152, 65536) = 2097152\n\
             1 pread64(3, \"\", 4096, 0) = 4096\n"
        );
        let report = of_text(&text);
        let file = only(&report);
        assert_eq!((file.writes.count, file.writes.bytes, file.reads.count), (1, 2 << 20, 1));
        assert_eq!(file.span, Some((0, (2 << 20) + 65_536)));
    }
}

#[test]
fn what_moved_more_than_it_was_asked_for_is_not_counted() {
    let report = of_text(
        "openat(AT_FDCWD, \"/d/a\", O_RDWR) = 3\nwrite(3, \"\", 4096) = 9223372036854775807\n\
         write(3, \"\", 4096) = 4096\n",
    );
    assert_eq!(only(&report).writes.bytes, 4096);
    assert!(report.notes.iter().any(|note| note.starts_with("one read or write is")), "{report:?}");
}

#[test]
fn descriptors_of_too_many_processes_take_no_more_memory() {
    let mut text = String::new();
    for number in 0..1000 {
        writeln!(text, "1 openat(AT_FDCWD, \"/d/{number}\", O_RDWR) = {}", number + 3).unwrap();
    }
    for child in 2..4000 {
        writeln!(text, "1 fork() = {child}").unwrap();
    }
    text += "1 write(3, \"\", 4096) = 4096\n3999 write(3, \"\", 4096) = 4096\n";
    let report = of_text(&text);
    assert!(report.notes.iter().any(|note| note.contains("too many open files")), "{report:?}");
    assert_eq!(report.files.iter().find(|file| file.name == "/d/0").unwrap().writes.count, 1);
}

#[test]
fn a_file_is_cut_by_its_path_and_of_mapped_ones_the_largest_is_named() {
    let report = of_text(
        "openat(AT_FDCWD, \"/d/locale\", O_RDONLY) = 3\n\
         mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000000000\n\
         openat(AT_FDCWD, \"/d/database\", O_RDWR) = 4\n\
         mmap(NULL, 1073741824, PROT_READ, MAP_SHARED, 4, 0) = 0x7e0000000000\n\
         openat(AT_FDCWD, \"/d/log\", O_WRONLY|O_CREAT, 0600) = 5\n\
         write(5, \"\", 4096) = 4096\ntruncate(\"/d/log\", 0) = 0\n",
    );
    assert_eq!(only(&report).emptied, 1);
    let note = "/d/database and another file were mapped";
    assert!(report.notes[0].starts_with(note), "{:?}", report.notes);
}

#[test]
fn two_traces_in_one_file_are_told() {
    let one = |begin: u64| -> String {
        let mut text = String::new();
        for at in begin..begin + 20 {
            writeln!(text, "{at}.000000 write(3, \"\", 4096) = 4096").unwrap();
        }
        text
    };
    let caveats = |text: String| {
        let input = Input::new("text", std::io::Cursor::new(text.into_bytes()));
        PatternAnalysis::of_calls(vec![Window::new(input)]).unwrap().caveats
    };
    let found = caveats(one(1_700_001_000) + &one(1_700_000_500) + &one(1_700_000_200));
    assert_eq!(found.len(), 1, "{found:?}");
    let told = found[0].to_string();
    assert!(told.contains("line 21: its time goes back by 519.00 s"), "{told}");
    assert!(told.ends_with("; 1 more such line"), "{told}");
    assert_eq!(caveats(one(1_700_000_000)).len(), 0);
}

/// Symptom: a trace with a request on each of 400,000 devices took 2 GB.
#[test]
fn devices_that_are_too_many_share_a_place() {
    let mut text = String::from("ts_ns,event,device,sector,bytes,rwbs\n");
    for number in 0..5000_u32 {
        let (major, minor) = (8 + number / 250, number % 250);
        writeln!(text, "{number},Q,{major}:{minor},0,4096,R").unwrap();
    }
    let input = Input::new("text", std::io::Cursor::new(text.into_bytes()));
    let found = PatternAnalysis::of(vec![input], &[]).unwrap();
    assert_eq!(found.files.len(), 4097);
    assert_eq!(found.files[4096].name, b"(all other devices)");
    assert_eq!(found.tallies[4096].accesses(), 5000 - 4096);
    assert!(found.files.iter().all(|file| !file.name.is_empty()));
}
