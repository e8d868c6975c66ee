//! Programs that an engineer traced: what decides their time, who does what, and which steps each
//! task goes on in is told and emitted.

use std::fmt::Write as _;

use iolab_pattern::analysis::PatternAnalysis;
use iolab_pattern::emit::{EmittedWorkload, PatternForm, emit};
use iolab_pattern::report::{FilePattern, PatternReport};
use iolab_pattern::stream::class::AccessPattern;
use iolab_trace::source::{Input, Window};

const MIB: u64 = 1 << 20;
const MS: u64 = 1000;

/// A trace of strace that is written call by call; times in microseconds.
struct Traced {
    text: String,
    now_us: u64,
    with_durations: bool,
}

impl Traced {
    fn new(flags: &str) -> Self {
        let mut traced = Self { text: String::new(), now_us: 0, with_durations: true };
        traced.call(1, &format!("openat(AT_FDCWD, \"/d/f\", {flags}) = 3"), 10);
        traced
    }

    /// A call that takes so long.
    fn call(&mut self, task: u32, call: &str, lasted_us: u64) {
        let (seconds, us) = (1_700_000_000 + self.now_us / 1_000_000, self.now_us % 1_000_000);
        write!(self.text, "{task} {seconds}.{us:06} {call}").unwrap();
        if self.with_durations {
            write!(self.text, " <{}.{:06}>", lasted_us / 1_000_000, lasted_us % 1_000_000).unwrap();
        }
        self.text.push('\n');
        self.now_us += lasted_us;
    }

    fn read(&mut self, task: u32, at: u64, size: u64) {
        self.call(task, &format!("pread64(3, \"\"..., {size}, {at}) = {size}"), 20);
    }

    fn write(&mut self, task: u32, at: u64, size: u64) {
        self.call(task, &format!("pwrite64(3, \"\"..., {size}, {at}) = {size}"), 20);
    }

    fn pause(&mut self, pause_us: u64) {
        self.now_us += pause_us;
    }

    fn report(&self) -> PatternReport {
        let input = Input::new("text", std::io::Cursor::new(self.text.clone().into_bytes()));
        PatternReport::of(&PatternAnalysis::of_calls(vec![Window::new(input)]).unwrap(), "", None)
    }
}

fn only(report: &PatternReport) -> &FilePattern {
    assert_eq!(report.files.len(), 1, "{report:?}");
    &report.files[0]
}

fn job(report: &PatternReport) -> EmittedWorkload {
    emit(report, PatternForm::Fio)
}

fn has(made: &EmittedWorkload, options: &[&str]) {
    for option in options {
        assert!(made.text.lines().any(|line| line == *option), "{option}: {}", made.text);
    }
}

fn loses(made: &EmittedWorkload, words: &str) {
    assert!(made.losses.iter().any(|loss| loss.contains(words)), "{words}: {:?}", made.losses);
}

/// Symptom: 100 writes and a second of sleep, five times, were emitted without a pause.
#[test]
fn a_pause_every_hundred_writes_is_told_and_emitted() {
    let mut traced = Traced::new("O_WRONLY|O_CREAT, 0600");
    for at in 0..500 {
        if at > 0 && at % 100 == 0 {
            traced.pause(1000 * MS);
        }
        traced.write(1, at * 32_768, 32_768);
    }
    let report = traced.report();
    let sentence = &only(&report).sentence;
    assert!(
        sentence.contains("pauses of 1.00 s after 100 accesses on average, 4.00 s in all"),
        "{sentence}"
    );
    let made = job(&report);
    has(&made, &["thinktime=1000000us", "thinktime_blocks=100"]);
    let iozone = emit(&report, PatternForm::Iozone);
    loses(&iozone, "pauses of 1.00 s");
}

/// Symptom: pauses of 2 and 8 ms were pauses of 8.26 ms, and the workload took twice the time.
#[test]
fn pauses_of_several_lengths_have_a_mean() {
    let mut traced = Traced::new("O_RDONLY");
    for at in 0..400 {
        traced.read(1, at * 4096, 4096);
        traced.pause(if at % 2 == 0 { 2 * MS } else { 8 * MS });
    }
    let report = traced.report();
    let sentence = &only(&report).sentence;
    let told = "pauses of 2.00 ms to 8.00 ms (4.99 ms on average) between accesses";
    assert!(sentence.contains(told), "{sentence}");
    let made = job(&report);
    has(&made, &["thinktime=4992us"]);
    assert!(!made.text.contains("thinktime_blocks"), "{}", made.text);
    loses(&made, "pauses of 2.00 ms to 8.00 ms: here 4.99 ms each");
}

/// Symptom: a slow phase ran as fast as the one before it, and the pause between was gone.
#[test]
fn pauses_are_those_of_their_phase() {
    let mut traced = Traced::new("O_RDWR");
    for at in 0..200 {
        traced.write(1, at * 65_536, 65_536);
    }
    traced.pause(3000 * MS);
    for at in 0..100_u64 {
        traced.read(1, at * at * 7919 % 199 * 65_536, 4096);
        traced.pause(20 * MS);
    }
    let report = traced.report();
    let file = only(&report);
    let sentence = &file.sentence;
    assert!(sentence.contains("then after a pause of 3.00 s 100 random reads"), "{sentence}");
    assert!(sentence.ends_with("with pauses of 20.00 ms between accesses."), "{sentence}");
    let made = job(&report);
    let (before, after) = made.text.split_once("[f-part2]").unwrap();
    assert!(!before.contains("thinktime") && after.contains("thinktime=20000us"), "{}", made.text);
    loses(&made, "a pause of 3.00 s before a part of it");
}

#[test]
fn a_busy_machine_makes_no_pauses() {
    let mut traced = Traced::new("O_RDONLY");
    for at in 0..2000 {
        traced.read(1, at * 4096, 4096);
        traced.pause(if at % 1000 == 500 { 2 * MS } else { 100 });
    }
    let report = traced.report();
    assert!(!only(&report).sentence.contains("pause"), "{}", only(&report).sentence);
    assert!(!job(&report).text.contains("thinktime"));
}

/// Symptom: without durations the sentence was silent and the job had the pauses.
#[test]
fn a_text_without_durations_tells_what_its_pauses_are() {
    let mut traced = Traced::new("O_RDONLY");
    traced.with_durations = false;
    traced.text.clear();
    for at in 0..100 {
        traced.read(1, at * 4096, 4096);
        traced.pause(10 * MS);
    }
    let report = traced.report();
    let sentence = &only(&report).sentence;
    assert!(sentence.contains("between accesses (with the access before)"), "{sentence}");
    assert!(report.notes[0].ends_with("add -T to the options of strace"), "{:?}", report.notes);
    let made = job(&report);
    has(&made, &["thinktime=10020us", &format!("; note: {}", report.notes[0])]);
    loses(&made, "times of accesses");
}

/// Symptom: four writers, each in steps of its own, were random writes that left holes.
#[test]
fn tasks_that_go_on_in_steps_of_their_own_keep_them() {
    let mut traced = Traced::new("O_RDWR|O_CREAT, 0600");
    traced.call(1, "clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2", 10);
    traced.call(1, "clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 3", 10);
    let mut next = [0_u64; 3];
    for turn in 0..600_u64 {
        // In turns of uneven length, as a scheduler makes them.
        let task = (turn * turn / 7 % 3) as usize;
        if next[task] < 100 {
            let at = next[task] * 3 * 65_536 + task as u64 * 65_536;
            traced.write(task as u32 + 1, at, 65_536);
            next[task] += 1;
        }
    }
    let report = traced.report();
    let file = only(&report);
    assert_eq!((file.pattern, file.streams), (AccessPattern::Strided, 3), "{}", file.sentence);
    assert!(file.phases.is_empty(), "{}", file.sentence);
    assert!(file.sentence.contains("3 streams, each every 192 KiB"), "{}", file.sentence);
    let made = job(&report);
    has(&made, &["rw=write:131072", "numjobs=3", "offset_increment=65536"]);
    loses(&made, "its streams take turns: here they run at once");
}

/// Symptom: two threads, each of which read backward, were random.
#[test]
fn threads_that_read_backward_through_one_descriptor_do_so() {
    let mut traced = Traced::new("O_RDONLY");
    traced.call(1, "clone(flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2", 10);
    let mut next = [200_u64; 2];
    for turn in 0..900_u64 {
        let task = (turn * turn / 5 % 2) as usize;
        if next[task] > 0 {
            next[task] -= 1;
            traced.read(task as u32 + 1, next[task] * 4096 + task as u64 * 8 * MIB, 4096);
        }
    }
    let report = traced.report();
    let file = only(&report);
    assert_eq!((file.pattern, file.streams), (AccessPattern::Backward, 2), "{}", file.sentence);
    has(&job(&report), &["rw=read:-8192", "numjobs=2", "offset_increment=8388608"]);
}

#[test]
fn a_pool_of_threads_has_the_order_of_all_together() {
    let mut traced = Traced::new("O_RDONLY");
    for task in 2..6 {
        traced.call(1, &format!("clone(flags=CLONE_FILES|CLONE_THREAD) = {task}"), 10);
    }
    for at in 0..400_u64 {
        traced.read((at * at / 3 % 4) as u32 + 2, at * 65_536, 4096);
    }
    let report = traced.report();
    assert_eq!(only(&report).pattern, AccessPattern::Strided, "{}", only(&report).sentence);
}

/// Symptom: a backup beside random writers became three processes that did both.
#[test]
fn readers_and_writers_have_jobs_of_their_own() {
    let mut traced = Traced::new("O_RDWR");
    traced.call(1, "clone(flags=CLONE_FILES|CLONE_THREAD) = 2", 10);
    for at in 0..64_u64 {
        traced.read(1, at * MIB, MIB);
        for one in 0..4 {
            let number = at * 4 + one;
            let place = number * number * 7919 % 8191 * 8192;
            traced.write(2, place, 8192);
        }
    }
    let report = traced.report();
    let made = job(&report);
    let (reads, writes) = made.text.split_once("[f-writes]").unwrap();
    for option in ["rw=read", "bs=1048576", "io_size=67108864", "size=67108864"] {
        assert!(reads.lines().any(|line| line == option), "{option}: {}", made.text);
    }
    for option in ["rw=randwrite", "bs=8192"] {
        assert!(writes.lines().any(|line| line == option), "{option}: {}", made.text);
    }
    assert!(!made.text.contains("rwmixread") && !made.text.contains("numjobs"), "{}", made.text);
}

/// Symptom: a copy was two programs at once, without a word.
#[test]
fn files_that_one_process_uses_in_turn_are_told() {
    let mut traced = Traced::new("O_RDONLY");
    traced.call(1, "openat(AT_FDCWD, \"/d/copy\", O_WRONLY|O_CREAT, 0600) = 4", 10);
    for at in 0..50 {
        traced.read(1, at * 65_536, 65_536);
        traced.call(1, "write(4, \"\"..., 65536) = 65536", 30);
    }
    let made = job(&traced.report());
    loses(&made, "one process used it and /d/f in turn");
}

/// Symptom: columns that were read one after the other were the first column, four times.
#[test]
fn columns_and_stretches_far_apart_are_told() {
    let mut traced = Traced::new("O_RDONLY");
    for column in 0..4 {
        for row in 0..100 {
            traced.read(1, row * 262_144 + column * 8192, 8192);
        }
    }
    loses(&job(&traced.report()), "it goes through the file 4 times, each time at other places");

    let mut traced = Traced::new("O_RDONLY");
    for at in 0..300 {
        traced.read(1, at * 4096, 4096);
    }
    for at in 0..30 {
        traced.read(1, 60 * MIB + at * 4096, 4096);
    }
    let report = traced.report();
    let sentence = &only(&report).sentence;
    assert!(sentence.contains("bytes 0 to 63037440, aligned to 4 KiB, 2 % of these"), "{sentence}");
    loses(&job(&report), "jumps between its stretches, which span 60.1 MiB");
}

/// Symptom: fio 3.33 waited 994 times where the program did 100 times.
#[test]
fn waits_that_fio_multiplies_are_told() {
    let mut traced = Traced::new("O_RDWR|O_DIRECT");
    for at in 0..500_u64 {
        let place = at * at * 7919 % 9973 * 8192;
        traced.read(1, place, 8192);
        if at % 10 == 0 {
            traced.write(1, place, 8192);
            traced.call(1, "fdatasync(3) = 0", 500);
        }
    }
    let report = traced.report();
    assert!(only(&report).sentence.contains("past the page cache (O_DIRECT)"));
    loses(&job(&report), "fio 3.33 waits once more after each read");
    let study = emit(&report, PatternForm::Study);
    assert!(!study.text.contains("fio 3.33"), "{}", study.text);
}

#[test]
fn waits_with_nothing_written_are_told_beside_the_others() {
    let mut traced = Traced::new("O_WRONLY|O_CREAT, 0600");
    for at in 0..20 {
        traced.write(1, at * 4096, 4096);
    }
    for _ in 0..3 {
        traced.call(1, "fsync(3) = 0", 100);
    }
    let report = traced.report();
    let told = "waits for stable storage once (fsync), and 2 times with nothing written before";
    assert!(only(&report).sentence.contains(told), "{}", only(&report).sentence);
}

/// Symptom: eight threads, each of which paused for 200 ms, used a file each 25 ms, and the emitted
/// process each 200 ms; one process for each request had no pauses at all.
#[test]
fn pauses_are_those_of_the_file_whoever_uses_it() {
    for tasks in [1, 8, 60] {
        let mut traced = Traced::new("O_RDONLY");
        for task in 2..=tasks {
            traced.call(1, &format!("clone(flags=CLONE_FILES|CLONE_THREAD) = {task}"), 10);
        }
        for at in 0..60_u64 {
            traced.read(at as u32 % tasks + 1, at * at * 7919 % 997 * 8192, 8192);
            traced.pause(25 * MS);
        }
        let report = traced.report();
        let sentence = &only(&report).sentence;
        assert!(sentence.contains("pauses of 25.00 ms between accesses"), "{tasks}: {sentence}");
        has(&job(&report), &["thinktime=25000us"]);
    }
}

/// Several at once pause so much longer each: all together have the rate of the file.
#[test]
fn processes_at_once_share_the_pauses_of_a_file() {
    let mut traced = Traced::new("O_RDONLY");
    for task in 2..5 {
        traced.call(1, &format!("clone(flags=CLONE_FILES|CLONE_THREAD) = {task}"), 10);
    }
    for at in 0..100_u64 {
        let begin = traced.now_us;
        for task in 1..5_u64 {
            traced.now_us = begin + task;
            traced.read(task as u32, (at * 4 + task) * (at + 3) * 7919 % 997 * 8192, 8192);
        }
        traced.pause(40 * MS);
    }
    let made = job(&traced.report());
    has(&made, &["numjobs=4", "thinktime=160004us", "thinktime_blocks=4"]);
}

/// Symptom: a task that logged after three seconds had a pause of three seconds in the log.
#[test]
fn idle_time_before_the_first_access_of_a_task_is_no_pause_of_the_file() {
    let mut traced = Traced::new("O_WRONLY|O_CREAT|O_APPEND, 0600");
    traced.call(1, "openat(AT_FDCWD, \"/d/other\", O_RDONLY) = 4", 10);
    traced.call(1, "clone(flags=CLONE_FILES|CLONE_THREAD) = 2", 10);
    traced.call(2, "read(4, \"\"..., 100) = 100", 10);
    for at in 0..300 {
        traced.call(1, "write(3, \"\"..., 100) = 100", 10);
        if at == 290 {
            traced.call(2, "write(3, \"\"..., 100) = 100", 10);
        }
        traced.pause(10 * MS);
    }
    let report = traced.report();
    let log = report.files.iter().find(|file| file.name == "/d/f").unwrap();
    assert!(log.sentence.contains("pauses of 10.00 ms between accesses"), "{}", log.sentence);
}

#[test]
fn times_of_whole_seconds_tell_no_pauses() {
    let mut traced = Traced::new("O_RDONLY");
    traced.text.clear();
    for at in 0..2000 {
        traced.now_us = at / 400 * 1_000_000;
        traced.read(1, at * 4096, 4096);
    }
    let report = traced.report();
    assert_eq!((only(&report).depth, only(&report).pauses.all.count), (0, 0));
    assert!(report.notes[0].starts_with("times of whole seconds"), "{:?}", report.notes);
    let made = job(&report);
    assert!(!made.text.contains("thinktime") && !made.text.contains("numjobs"), "{}", made.text);
}

/// Symptom: a step of 1 MiB that a child each made was one of 8 KiB, "100 % at random places".
#[test]
fn steps_of_all_together_are_those_of_the_whole_file() {
    let mut traced = Traced::new("O_RDONLY");
    for task in 2..62 {
        traced.call(1, &format!("clone(flags=CLONE_FILES|CLONE_THREAD) = {task}"), 10);
        traced.read(task, u64::from(task) * MIB, 4096);
    }
    let report = traced.report();
    let sentence = &only(&report).sentence;
    assert!(sentence.starts_with("60 reads of 4 KiB, every 1 MiB; "), "{sentence}");
    has(&job(&report), &["rw=read:1044480"]);
}

/// Symptom: a file that was written directly and read through the page cache was "past" it.
#[test]
fn direct_io_is_that_of_a_descriptor() {
    let mut traced = Traced::new("O_RDWR|O_DIRECT");
    traced.call(1, "openat(AT_FDCWD, \"/d/f\", O_RDONLY) = 4", 10);
    for at in 0..40 {
        traced.write(1, at * 4096, 4096);
        traced.call(1, &format!("pread64(4, \"\"..., 4096, {}) = 4096", at * 4096), 10);
    }
    let report = traced.report();
    let sentence = &only(&report).sentence;
    assert!(sentence.contains("40 of them past the page cache (O_DIRECT)"), "{sentence}");
    loses(&job(&report), "direct I/O of 40 of its 80 accesses");
    let mut traced = Traced::new("O_RDONLY");
    traced.call(1, "fcntl(3, F_SETFL, O_RDONLY|O_DIRECT) = 0", 10);
    for at in 0..40 {
        traced.read(1, at * 4096, 4096);
    }
    has(&job(&traced.report()), &["direct=1"]);
}

#[test]
fn what_readers_and_writers_lose_is_told() {
    let mut traced = Traced::new("O_RDWR");
    traced.call(1, "clone(flags=CLONE_FILES|CLONE_THREAD) = 2", 10);
    traced.call(2, "openat(AT_FDCWD, \"/d/f\", O_WRONLY|O_APPEND) = 4", 10);
    for at in 0..300_u64 {
        traced.call(2, "write(4, \"\"..., 512) = 512", 10);
        if at >= 100 {
            traced.read(1, at * at * 7919 % 997 * 8192, 8192);
        }
    }
    let made = job(&traced.report());
    has(&made, &["[f-reads]", "[f-writes]", "bs=512"]);
    loses(&made, "its reads began after 101 writes: here at once");
    loses(&made, "appended writes: here they begin where the file does");
}

#[test]
fn a_pause_between_two_files_is_told() {
    let mut traced = Traced::new("O_RDONLY");
    traced.call(1, "openat(AT_FDCWD, \"/d/other\", O_WRONLY|O_CREAT, 0600) = 4", 10);
    for at in 0..50 {
        traced.read(1, at * 4096, 4096);
    }
    traced.pause(600 * MS);
    for _ in 0..50 {
        traced.call(1, "write(4, \"\"..., 4096) = 4096", 10);
    }
    loses(&job(&traced.report()), "a pause of 600.00 ms before it");
}

/// Symptom: fio reads a line of more than 8191 bytes as several, so that the name of a file could
/// end in an option, `exec_prerun=`.
#[test]
fn no_name_of_a_file_is_more_than_a_comment() {
    let mut traced = Traced::new("O_RDONLY");
    let name = format!("/d/{}exec_prerun=touch /tmp/x;:", "\\377".repeat(2700));
    traced.call(1, &format!("openat(AT_FDCWD, \"{name}\", O_RDWR|O_CREAT, 0600) = 4"), 10);
    for at in 0..40 {
        traced.read(1, at * 4096, 4096);
        traced.call(1, "write(4, \"\"..., 4096) = 4096", 10);
        traced.call(1, "mmap(NULL, 4096, PROT_READ, MAP_SHARED, 4, 0) = 0x7f0000000000", 10);
    }
    let report = traced.report();
    for form in [PatternForm::Fio, PatternForm::Study, PatternForm::Iozone] {
        let text = emit(&report, form).text;
        assert!(text.lines().all(|line| line.len() < 8000), "{form:?}");
    }
}

/// fio takes every section whose name begins with `global` for the one of all jobs.
#[test]
fn names_of_jobs_are_free_and_none_is_global() {
    let mut traced = Traced::new("O_RDONLY");
    for number in 0..300 {
        let name = if number < 100 { "globals.db" } else { "x" };
        let call = format!("openat(AT_FDCWD, \"/d{number}/{name}\", O_RDONLY) = 4");
        traced.call(1, &call, 10);
        traced.call(1, "read(4, \"\"..., 4096) = 4096", 10);
        traced.call(1, "close(4) = 0", 10);
    }
    let made = job(&traced.report());
    let names: Vec<&str> = made.text.lines().filter(|line| line.starts_with('[')).collect();
    let different: std::collections::HashSet<&&str> = names.iter().collect();
    assert_eq!((names.len(), different.len()), (300, 300));
    assert!(names.iter().all(|name| !name.starts_with("[global")));
    has(&made, &["[file-globals.db]", "[file-globals.db-100]", "[x-200]"]);
}

#[test]
fn a_program_that_is_run_keeps_what_it_inherits() {
    let mut traced = Traced::new("O_RDWR|O_CLOEXEC");
    traced.call(1, "openat(AT_FDCWD, \"/d/kept\", O_RDWR) = 4", 10);
    traced.call(1, "dup3(4, 5, O_CLOEXEC) = 5", 10);
    traced.call(1, "dup2(4, 6) = 6", 10);
    traced.call(1, "execve(\"/bin/x\", [\"x\"], 0x7f) = 0", 10);
    for descriptor in 3..7 {
        traced.call(1, &format!("pwrite64({descriptor}, \"\"..., 4096, 0) = 4096"), 10);
    }
    traced.call(1, "close_range(6, 6, 0) = 0", 10);
    traced.call(1, "pwrite64(6, \"\"..., 4096, 0) = 4096", 10);
    let report = traced.report();
    let of = |name: &str| report.files.iter().find(|file| file.name == name);
    assert_eq!(of("/d/kept").map(|file| file.writes.count), Some(2));
    assert!(of("/d/f").is_none(), "closed on exec");
}

#[test]
fn calls_that_are_lost_or_impossible_are_told() {
    let mut traced = Traced::new("O_RDWR");
    traced.text += "read(3, \"x\", 4096\n";
    traced.call(1, "write(3, \"\"..., 9223372036854775807) = 9223372036854775807", 10);
    traced.call(1, "io_submit(0x7f, 9223372036854775807, [{}]) = 9223372036854775807", 10);
    traced.write(1, 0, 4096);
    let input = Input::new("text", std::io::Cursor::new(traced.text.clone().into_bytes()));
    let found = PatternAnalysis::of_calls(vec![Window::new(input)]).unwrap();
    assert_eq!(found.impossible, 2);
    assert!(found.caveats[0].to_string().contains("it is no system call: `read(3"));
    assert_eq!(only(&traced.report()).writes.bytes, 4096);
}

#[test]
fn nobody_waits_for_pauses_of_days() {
    let mut traced = Traced::new("O_RDONLY");
    for at in 0..20 {
        traced.read(1, at * 4096, 4096);
        traced.pause(86_400_000 * MS);
    }
    let made = job(&traced.report());
    has(&made, &["thinktime=60000000us"]);
    loses(&made, "pauses of 86400.00 s: here 60.00 s each");
}

/// A request that takes 10 ms is no pause of 10 ms; what lies behind its completion is one.
#[test]
fn pauses_of_a_block_trace_begin_at_completions() {
    let of = |pause_ms: u64| {
        let mut text = String::from("ts_ns,event,sector,nr_sectors,rwbs,device\n");
        for at in 0..60_u64 {
            let (begin, sector) = (1 + at * (10 + pause_ms) * 1_000_000, at * at * 7919 % 997 * 8);
            for (event, time) in [("Q", begin), ("D", begin + 10), ("C", begin + 10_000_000)] {
                writeln!(text, "{time},{event},{sector},8,R,8:0").unwrap();
            }
        }
        let input = Input::new("text", std::io::Cursor::new(text.into_bytes()));
        PatternReport::of(&PatternAnalysis::of(vec![input], &[]).unwrap(), "", None)
    };
    let busy = of(0);
    assert_eq!(only(&busy).pauses.all.count, 0, "{}", only(&busy).sentence);
    let paused = of(20);
    let sentence = &only(&paused).sentence;
    assert!(sentence.ends_with("pauses of 20.00 ms between accesses."), "{sentence}");
    has(&job(&paused), &["thinktime=20000us"]);
}
