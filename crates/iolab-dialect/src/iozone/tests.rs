//! Meaning of command lines, and the output, against recordings of the original.

use iolab_model::op::Access;
use iolab_workload::preset::IozoneTest as T;
use iolab_workload::spec::{FsyncPolicy, Opening, WorkersAs};

use super::biff::worksheet;
use super::parse::parse;
use super::plan::Plan;
use super::render::render;
use super::report::cells;
use super::result::{Event, PhaseResult, RowResult, WorkerResult};

mod refined;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/iozone");

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn plan(text: &str) -> Plan {
    parse(&words(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    parse(&words(text)).expect_err(text).to_string()
}

fn golden(name: &str) -> String {
    std::fs::read_to_string(format!("{GOLDEN}/{name}")).unwrap()
}

/// A phase of one child whose cell is exactly `kb_per_s`.
fn phase(name: T, kb_per_s: u64) -> PhaseResult {
    let second = 1_000_000_000;
    let bytes = kb_per_s << 10;
    let worker = WorkerResult { child: 0, ops: 4, bytes, elapsed_ns: second, call_ns: second };
    PhaseResult { name, elapsed_ns: second, parent_ns: None, cpu_ns: 0, workers: vec![worker] }
}

/// A child that pauses is rated by the time of its own calls, one that does not by all of its time.
#[test]
fn every_child_has_a_rate_of_its_own() {
    let child = |child, call_ms: u64| WorkerResult {
        child,
        ops: 16,
        bytes: 1 << 20,
        elapsed_ns: 1_000_000_000,
        call_ns: call_ms * 1_000_000,
    };
    let workers = vec![child(0, 100), child(1, 400)];
    let phase = PhaseResult {
        name: T::Write,
        elapsed_ns: 1_000_000_000,
        parent_ns: None,
        cpu_ns: 0,
        workers,
    };
    let rates = |text: &str| {
        let plan = plan(text);
        let rates = phase.workers.iter().map(|worker| phase.child(worker, &plan).1);
        (rates.collect::<Vec<_>>(), phase.children_rate(&plan), phase.cell(&plan))
    };
    assert_eq!(rates("-t 2 -i 0 -J 5"), (vec![10_240.0, 2_560.0], 12_800.0, 5_120));
    assert_eq!(rates("-t 2 -i 0"), (vec![1_024.0, 1_024.0], 2_048.0, 2_048));
}

/// Issue 14, point 17: the parent's time was that of the transfers, and its line up to 20 times the
/// original's, whose parent waits until its children have flushed, closed and gone.
#[test]
fn the_parent_waits_until_its_children_have_gone() {
    let plan = plan("-t 1 -i 0 -s 1m");
    let of = |parent_ns| {
        let phase = PhaseResult { parent_ns, ..phase(T::Write, 1024) };
        let row = RowResult { index: 0, phases: vec![phase], is_failed: false };
        let text = render(&plan, &Event::Row(row));
        let line = text.lines().find(|line| line.contains("Parent sees")).unwrap().to_owned();
        line.split_whitespace().rev().nth(1).unwrap().to_owned()
    };
    assert_eq!(of(Some(4_000_000_000)), "256.00");
    assert_eq!(of(None), "1024.00");
}

/// The table lines of a recording, as results of a plan.
fn results(plan: &Plan, stdout: &str) -> Vec<RowResult> {
    let lines = stdout.lines().skip_while(|line| !line.contains("reclen")).skip(1);
    let lines = lines.take_while(|line| !line.trim().is_empty());
    lines
        .enumerate()
        .map(|(index, line)| {
            let numbers: Vec<u64> =
                line.split_whitespace().skip(2).map(|n| n.parse().unwrap()).collect();
            let tests = plan.rows[index].tests.iter();
            let phases = tests.zip(numbers).map(|(test, number)| phase(*test, number)).collect();
            RowResult { index, phases, is_failed: false }
        })
        .collect()
}

/// Everything from `Run began` on, the two lines around it left out.
fn after_banner(text: &str) -> String {
    let start = text.find("Run began").unwrap();
    text[start..].split_once("\n\n").unwrap().1.to_owned()
}

fn shown(plan: &Plan, rows: &[RowResult]) -> String {
    let (began, version, machine) = (String::new(), "1".to_owned(), String::new());
    let mut text = render(plan, &Event::Begin { began, version, machine });
    for row in rows {
        text += &render(plan, &Event::Row(row.clone()));
    }
    text + &render(plan, &Event::End { rows: rows.to_vec() })
}

/// Whole outputs whose numbers tell their own layout, byte for byte.
#[test]
fn recorded_tables_are_printed_byte_for_byte() {
    for name in [
        "single_default",
        "multi_s_r",
        "excel_auto",
        "default_R_all",
        "suffix_case",
        "auto_A",
        "stride_j",
        "bare_numbers",
        "auto_crossover",
        "auto_z_crossover_off",
        "auto_plus_x4",
        "lock_W",
        "odsync",
        "rsync",
    ] {
        let command = golden(&format!("{name}.cmd"));
        let command = command.trim().strip_prefix("iozone ").unwrap();
        let plan = plan(command);
        let wanted = golden(&format!("{name}.stdout"));
        let rows = results(&plan, &wanted);
        assert_eq!(rows.len(), plan.rows.len(), "{name}");
        // Numbers that touch cannot be told apart; the notes on short times are not printed here.
        let wanted = wanted.split("Timer resolution").next().unwrap();
        assert_eq!(after_banner(&shown(&plan, &rows)), after_banner(wanted), "{name}");
    }
}

#[test]
fn the_recorded_spreadsheet_is_written_byte_for_byte_but_for_what_was_never_set() {
    for (name, file) in [("excel_auto", "auto"), ("default_R_all", "all")] {
        let command = golden(&format!("{name}.cmd"));
        let plan = plan(command.trim().strip_prefix("iozone ").unwrap());
        let rows = results(&plan, &golden(&format!("{name}.stdout")));
        let wanted = std::fs::read(format!("{GOLDEN}/{name}.{file}.xls")).unwrap();
        let found = worksheet(&cells(&plan, &rows));
        assert_eq!(found.len(), wanted.len(), "{name}");
        let differing: Vec<usize> =
            (0..found.len()).filter(|at| found[*at] != wanted[*at]).collect();
        // The last byte of each label's text area is whatever was in memory.
        let label = 4 + 264;
        assert!(
            differing.iter().all(|at| found[*at] == 0 && is_end_of_label(&found, *at, label)),
            "{name}: {differing:?}"
        );
    }
}

/// Tell whether byte `at` is the last one of a label record.
fn is_end_of_label(file: &[u8], at: usize, label: usize) -> bool {
    let mut start = 0;
    while start < file.len() {
        let length = 4 + usize::from(u16::from_le_bytes([file[start + 2], file[start + 3]]));
        if (start..start + length).contains(&at) {
            return length == label && at == start + length - 1;
        }
        start += length;
    }
    false
}

#[test]
fn throughput_mode_has_its_own_order_and_no_test_4() {
    let plan = plan("-t 2");
    let names: Vec<&str> = plan.rows[0].tests.iter().map(|test| test.name()).collect();
    assert_eq!(
        names,
        [
            "write",
            "rewrite",
            "read",
            "reread",
            "backward-read",
            "stride-read",
            "random-read",
            "mix",
            "random-write",
            "pwrite",
            "pread",
            "fwrite",
            "fread"
        ]
    );
    assert_eq!(plan.files, ["iozone.DUMMY.0", "iozone.DUMMY.1"]);
    let workload = &plan.rows[0].workload;
    assert_eq!(workload.workers_as, WorkersAs::Processes);
    assert!(workload.phases.iter().all(|phase| phase.is_stonewalled));
    assert!(workload.phases.iter().all(|phase| !phase.tenants[0].primes_first_record));
}

#[test]
fn the_mix_divides_its_children_as_asked() {
    let roles = |text: &str| {
        let plan = plan(text);
        let phase = plan.rows[0].workload.phases.last().unwrap().clone();
        phase.tenants.iter().map(|t| (t.name.clone(), t.files.clone())).collect::<Vec<_>>()
    };
    let files = |list: &[&str]| list.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
    let split = |readers: &[&str], writers: &[&str]| {
        vec![("readers".to_owned(), files(readers)), ("writers".to_owned(), files(writers))]
    };
    assert_eq!(
        roles("-t 4 -i 0 -i 8 -F a b c d"),
        split(&["a", "c"], &["b", "d"]),
        "even ones read"
    );
    assert_eq!(roles("-t 4 -i 0 -i 8 -+p 75 -F a b c d"), split(&["a", "b", "c"], &["d"]));
    assert_eq!(roles("-t 4 -i 0 -i 8 -+K 1 -F a b c d"), split(&["a"], &["b", "c", "d"]));
    assert_eq!(roles("-t 1 -i 0 -i 8 -F a"), [("readers".to_owned(), files(&["a"]))]);
}

#[test]
fn timing_options_move_the_flush_and_the_close() {
    let tenant = |text: &str| plan(text).rows[0].workload.phases[0].tenants[0].clone();
    let flush_and_close = |text: &str| {
        let tenant = tenant(text);
        (tenant.fsync, tenant.is_close_timed)
    };
    assert_eq!(flush_and_close("-i 0"), (FsyncPolicy::After, false));
    assert_eq!(flush_and_close("-i 0 -e"), (FsyncPolicy::Timed, false));
    assert_eq!(flush_and_close("-i 0 -c"), (FsyncPolicy::None, true));
    assert_eq!(flush_and_close("-i 0 -c -e"), (FsyncPolicy::Timed, true));
}

#[test]
fn direct_io_is_not_for_streams_and_that_is_said() {
    let plan = plan("-I -i 0 -i 6 -s 64k -r 4k");
    let phases = &plan.rows[0].workload.phases;
    assert_eq!(phases[0].tenants[0].access, Access::Direct);
    assert_eq!(phases[2].tenants[0].access, Access::Stdio);
    assert_eq!(phases[2].ignores, ["direct I/O"]);
    assert!(plan.notes[0].contains("page-cache numbers"), "{:?}", plan.notes);
}

#[test]
fn files_are_made_once_and_kept_until_the_row_ends() {
    let phases = plan("-i 0 -i 1").rows[0].workload.phases.clone();
    let openings: Vec<Opening> = phases.iter().map(|phase| phase.tenants[0].opening).collect();
    assert_eq!(openings[0], Opening::Create);
    assert!(openings[1..].iter().all(|opening| *opening == Opening::Existing));
    let kept: Vec<bool> = phases.iter().map(|phase| phase.keeps_files).collect();
    assert_eq!(kept, [true, true, true, false]);
    assert!(plan("-i 0 -w").rows[0].workload.phases[1].keeps_files);
    let there = |text: &str| plan(text).rows[0].workload.phases[0].tenants[0].opening;
    assert_eq!(there("-i 1 -f t.tmp"), Opening::Existing);
    assert_eq!(there("-i 1 --on loop:1g"), Opening::LaidOut, "no file of an earlier command");
}

#[test]
fn compatibility_brings_back_the_silent_substitutions() {
    let tests = |text: &str| plan(text).rows[0].tests.clone();
    assert_eq!(tests("-i 12 --compat"), [T::Write, T::Rewrite]);
    assert_eq!(tests("-i foo --compat"), [T::Write, T::Rewrite]);
    assert_eq!(tests("-i 12 -i 0"), [T::Write, T::Rewrite, T::Preadv]);
    assert_eq!(plan("-i 0 -s 128x -r 16q --compat").rows[0].name, "128k/16k");
    assert_eq!(plan("-i 0 -s 0.5m --compat").rows[0].name, "512k/4k");
    assert_eq!(plan("-i 0 -l 8k --compat -s 64k").rows[0].children, 8);
}

/// Command lines that cannot be meant: what the message must contain.
const MALFORMED: &[(&str, &str)] = &[
    ("", "measures nothing"),
    ("-y2 -5", "there is no option -5"),
    ("-s 64k --json", "there is no option --json"),
    ("-+9 -s 64k", "there is no option -+9"),
    ("-s", "-s needs a value: SIZE"),
    ("-i 0 -F a b", "-F stands before -t"),
    ("-t 2 -i 0 -s 64k -F only", "-F takes 2 file names, there are 1"),
    ("-t 2 -F -i 0", "-F would take the option -i"),
    ("-t 2 -F a a", "-F names a twice"),
    ("-f x -t 2 -F a b", "-f names one file"),
    ("-t 2 -i 0 -f x", "-f names one file"),
    ("-a -t 2", "exclude each other"),
    ("-N -t 2 -i 0", "-N does not exist in throughput mode"),
    ("-U /mnt -t 1", "-U does not exist in throughput mode"),
    ("-t 2000 -i 0", "more than 1024 children"),
    ("-t 0 -i 0", "starts no child"),
    ("-i 13", "there is no test 13"),
    ("-i -1", "-i takes the number of a test"),
    ("-i foo", "-i takes the number of a test, not 'foo'"),
    ("-s 0.5m -i 0", "write a whole number of kB, or with k, m or g: -s 512k"),
    ("-s 128x -i 0", "-s takes a size, not '128x'"),
    ("-r 32m -s 64m -i 0", "larger than 16384 kB"),
    ("-s 16k -r 64k", "a record of 64 kB is larger than the file of 16 kB"),
    ("-a -y 128k -n 64k -g 256k -i 0", "smallest record, 128 kB"),
    ("-a -y 1m -q 64k -i 0", "the table is empty"),
    ("-i 0 -l 8k -s 64k", "for direct I/O write -I"),
    ("-B -H 2 -i 0", "no asynchronous I/O"),
    ("-H 2 -k 2 -i 0", "asynchronous I/O twice"),
    ("-G -i 0", "-G does nothing without mapped files"),
    ("-i 8", "none of the tests asked for"),
    ("-+m nofile -t 1", "runs on one machine"),
    ("-X no-such-file -i 0", "-X no-such-file: No such file"),
    ("-X /dev/null -i 0", "-X /dev/null: it is no regular file"),
    ("-t 1 -i 0 -+R /proc/kallsyms", "-+R /proc/kallsyms: it is larger than 1 MiB"),
    ("-X Cargo.toml -i 0", "-X: Cargo.toml, line 1: it has 1 words"),
    ("-X Cargo.toml -i 0 -s 64k", "-X and -s exclude each other"),
    ("-Y Cargo.toml -i 1 -a", "-Y and -a exclude each other"),
    ("-Y Cargo.toml -i 2", "test 2 is not replayed"),
    ("-d x -t 2", "-d takes a number of microseconds, not 'x'"),
    ("-+q -1 -i 0", "-+q takes a number of seconds, not '-1'"),
    ("-+A 9 -B", "there is no advice 9"),
    ("-+A 1 -i 0", "-+A advises about mapped files"),
    ("-+b 32k -i 0", "-+b takes two numbers, not '32k'"),
    ("-+b 0,5 -i 0", "-+b takes a size, not '0'"),
    ("-+b 1m,x -i 0", "milliseconds after the comma, not 'x'"),
    ("-+E -i 0 -f x", "-+E only reads, and test 0 writes"),
    ("-+E -f x", "-+E without -i would write"),
    ("-+E -i 1", "-+E does not say which file"),
    ("-+V -i 0", "share a file among several children"),
    ("-t 2 -+R no-such-list", "-+R no-such-list: No such file"),
    ("-+R Cargo.toml -i 0", "-+R belongs to throughput mode"),
    ("-t 2 -F a b -+R Cargo.toml", "-F and -+R name files twice"),
    ("-t 2 -F src/a nowhere/b", "-F names a file in nowhere: No such file"),
    ("-t 2 -F src/a ./src/a", "names a twice"),
    ("-t 2 -F src/a b --on loop:1g", "a testbed is one place"),
    ("-+w 101 -i 0", "-+w 101 is more than everything"),
    ("-+y 5 -i 0", "shares of -+w, which is not there"),
    ("-+w 5 -+y 60 -+C 60 -i 0", "together more than all"),
    ("-+w 5 -V 1 -i 0", "write data of their own"),
    ("-+w 5 -+Q 700 -i 0", "-+Q 700 is no multiple of 512"),
    ("-m -H 4 -i 0", "-m cycles through buffers"),
    ("-K -H 4 -i 1", "-K jumps between records"),
    ("-+b 32k,1 -D -i 0", "-+b flushes after each burst"),
    ("-i 0 -f /dev/sda", "use --on device:/dev/sda"),
    ("-d 5 -i 0", "-d is about several children"),
    ("-+z -i 0", "write files of throughput mode only"),
    ("-+p75 -t 2", "write -+p 75"),
    ("-i 0 surplus", "'surplus' is neither an option"),
    ("-n 64k -i 0", "limits of automatic mode"),
    ("-s 64k -s 64k", "not larger than the 64 kB before it"),
    ("-J 40000000000000 -i 0", "write 2147483647 or less"),
    ("-+b 32k,40000000000000 -i 0", "write 2147483647 or less"),
    ("-t 2 -+O 4294967296 -i 0", "write 2147483647 or less"),
];

#[test]
fn malformed_command_lines_are_refused_with_a_remedy() {
    for (text, wanted) in MALFORMED {
        let found = refusal(text);
        let squeezed = found.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed.contains(wanted), "{text}: {found}");
        assert!(found.lines().count() >= 3, "{text}: no remedy: {found}");
    }
}

#[test]
fn every_option_of_the_specification_has_a_row_and_none_has_two() {
    let mut names: Vec<&str> = super::options::OPTIONS.iter().map(|row| row.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    let plain = "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ".chars();
    for option in plain.map(|c| format!("-{c}")) {
        assert!(names.contains(&option.as_str()), "{option}");
    }
    for option in "xnEBNpKqRhmcistVLDrlAJObTuzdwyCaSWQMXZkUHP".chars().map(|c| format!("-+{c}")) {
        assert!(names.contains(&option.as_str()), "{option}");
    }
}

#[test]
fn a_plan_survives_its_way_to_the_front_end_and_back() {
    for text in ["-a -g 1m", "-t 3 -R -C", "-i 0 -I --on loop:1g --repeat 3"] {
        let there = plan(text);
        let back: Plan = serde_json::from_str(&serde_json::to_string(&there).unwrap()).unwrap();
        assert_eq!(there, back);
    }
}

/// Options that exist and that do not, values, and what is neither.
const ANY_WORD: &str =
    "-?[+]?[a-zA-Z0-9+é]{0,3}|--[a-z]{2,7}(=[a-z0-9:]{0,4})?|[0-9]{1,2}[kmgt]?|[0-9]{9,20}[kmgt]?";

proptest::proptest! {
    /// Any words are a plan or a message: a plan that is whole, or a message with its remedy; never
    /// a panic.
    #[test]
    fn any_words_give_a_plan_or_a_message(
        all in proptest::collection::vec(ANY_WORD, 0..8)
    ) {
        match parse(&all) {
            Ok(plan) => {
                let text = serde_json::to_string(&plan).unwrap();
                let back: Plan = serde_json::from_str(&text).unwrap();
                proptest::prop_assert_eq!(plan, back);
            }
            Err(error) => proptest::prop_assert!(error.to_string().lines().count() >= 3),
        }
    }
}
