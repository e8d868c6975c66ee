//! Recorded traces give the text that blkparse 1.2.0 gave: `tests/golden/trace/README.md` says
//! where they come from.

use std::path::PathBuf;

use iolab_trace::Input;
use iolab_trace::format::blktrace::Reader;
use iolab_trace::show::{Show, show};
use iolab_trace::write::blkparse::{Format, Options, mask_of};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/trace")
}

fn golden(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// Output of blkparse of its own run, `Input file ... added`, is no part of the text.
fn recorded(name: &str) -> String {
    let lines = golden(name);
    lines.split_inclusive('\n').filter(|line| !line.starts_with("Input file ")).collect()
}

fn reader(names: &[&str]) -> Reader {
    let inputs = names.iter().map(|name| {
        let content = std::fs::File::open(folder().join(name)).unwrap();
        Input::new(*name, content)
    });
    Reader::of_inputs(inputs.collect()).unwrap()
}

fn shown(names: &[&str], options: &Show) -> String {
    let mut text = Vec::new();
    let mut sink = |piece: &[u8]| {
        text.extend_from_slice(piece);
        Ok(())
    };
    show(&mut reader(names), options, &mut sink).unwrap();
    String::from_utf8(text).unwrap()
}

const SYN: [&str; 2] = ["syn.blktrace.0", "syn.blktrace.1"];

#[test]
fn golden_traces_give_the_recorded_text() {
    let cases: [(&[&str], &str); 7] = [
        (&SYN, "syn.blkparse.txt"),
        (&["nb.blktrace.0", "nb.blktrace.1"], "nb.blkparse.txt"),
        (&["tracefsbin.blktrace.0"], "tracefsbin.blkparse.txt"),
        (&["md/md0.blktrace.0", "md/md0.blktrace.1"], "md/md0.blkparse.txt"),
        (&["md/md1.blktrace.0", "md/md1.blktrace.1"], "md/md1.blkparse.txt"),
        (&["md/nullb3.blktrace.0", "md/nullb3.blktrace.1"], "md/nullb3.blkparse.txt"),
        (
            &[
                "md/md1.blktrace.0",
                "md/md1.blktrace.1",
                "md/nullb3.blktrace.0",
                "md/nullb3.blktrace.1",
                "md/nullb4.blktrace.0",
                "md/nullb4.blktrace.1",
            ],
            "md/raid0-merged.blkparse.txt",
        ),
    ];
    for (files, text) in cases {
        assert_eq!(shown(files, &Show::default()), recorded(text), "{text}");
    }
}

#[test]
fn golden_filter_prints_reads_only() {
    let lines = Options { mask: mask_of("read").unwrap(), ..Options::default() };
    let options = Show { lines, is_quiet: true, has_programs: false };
    assert_eq!(shown(&SYN, &options), recorded("syn.blkparse-a-read.txt"));
}

#[test]
fn golden_summaries_per_program_are_those_of_blkparse() {
    let options = Show { has_programs: true, is_quiet: true, ..Show::default() };
    assert_eq!(shown(&SYN, &options), recorded("syn.blkparse-s.txt"));
}

/// blkparse's `%U` prints what lies behind the record unless the event has a count.
#[test]
fn golden_format_prints_every_field() {
    let format = r"%a|%C|%c|%D|%d|%e|%m|%M|%n|%N|%p|%P|%s|%S|%t|%u|%U|\n";
    let format = Some(Format::parse(format).unwrap());
    let lines = Options { format, ..Options::default() };
    let options = Show { lines, is_quiet: true, has_programs: false };
    let masked = |text: &str| -> Vec<String> {
        let rows = text.lines().map(|line| {
            let fields: Vec<&str> = line.split('|').collect();
            let has_count = matches!(fields[0], "U" | "UT" | "X" | "A");
            let kept = if has_count { fields.len() } else { fields.len().saturating_sub(2).max(1) };
            fields[..kept].join("|")
        });
        rows.collect()
    };
    assert_eq!(masked(&shown(&SYN, &options)), masked(&recorded("syn.blkparse-f.txt")));
}

/// blkparse's time of a completion is right only if the request has the `fs` bit, which none has
/// here; ours is the time since the issue.
#[test]
fn golden_tracking_appends_times() {
    let lines = Options { tracks: true, ..Options::default() };
    let options = Show { lines, is_quiet: true, has_programs: false };
    let without_ends = |text: &str| -> Vec<String> {
        let rows = text.lines().map(|line| match line.split_once(" (") {
            Some((before, _)) if line.contains("  C ") || line.contains(" C ") => before.to_owned(),
            _ => line.to_owned(),
        });
        rows.collect()
    };
    let (ours, theirs) = (shown(&SYN, &options), recorded("syn.blkparse-t.txt"));
    assert_eq!(without_ends(&ours), without_ends(&theirs));
    assert!(ours.contains("C  RS 2048 + 8 (  200000) [0]"), "{ours}");
}
