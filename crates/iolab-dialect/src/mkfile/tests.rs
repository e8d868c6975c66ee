//! Command lines, right and wrong.

use iolab_model::Bytes;
use iolab_model::target::Content;

use super::lower::Plan;
use super::parse::parse;
use super::render::{Event, render};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn plan(text: &str) -> Plan {
    parse(&words(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn sizes_are_those_of_solaris() {
    for (text, bytes) in
        [("0", 0), ("17", 17), ("3k", 3072), ("8192b", 4 << 20), ("2M", 2 << 20), ("1g", 1 << 30)]
    {
        let plan = plan(&format!("{text} file"));
        let work = plan.rows[0].workload.phases[0].tenants[0].file_set.clone().unwrap();
        assert_eq!(work.size_max_bytes, Bytes(bytes), "{text}");
        assert_eq!(plan.rows[0].workload.content, Content::Zero);
    }
}

#[test]
fn a_row_is_a_file() {
    let plan = plan("-nv 64m /data/a /data/b");
    assert_eq!((plan.directory.as_str(), plan.files.join(" ")), ("/data", "a b".to_owned()));
    assert_eq!(plan.rows[0].file_kb, 4, "a sparse file needs no space");
    let shown: String = (0..2).map(|index| render(&plan, &Event::Row { index })).collect();
    assert_eq!(shown, "a 67108864 bytes\nb 67108864 bytes\n");
    assert_eq!(render(&self::plan("1k a"), &Event::Row { index: 0 }), "");
    assert!(plan.notes.is_empty());
    assert_eq!(self::plan("64m a").notes.len(), 1);
    assert!(self::plan("--help").only_text.unwrap().contains("--sync"));
    let work = self::plan("--random --sync 1m a");
    assert_eq!(work.rows[0].workload.content, Content::Incompressible);
}

#[test]
fn malformed_command_lines_are_refused_with_a_remedy() {
    for (text, message) in [
        ("", "a size and at least one file are needed"),
        ("64m", "a size and at least one file are needed"),
        ("-x 64m a", "there is no option -x"),
        ("64x a", "unknown size 64x"),
        ("64kb a", "unknown size 64kb"),
        ("1.5m a", "unknown size 1.5m"),
        ("m a", "unknown size m"),
        ("99999999999g a", "no file can be so large"),
        ("1m a b/c", "files in several directories"),
        ("1m a a", "'a' twice"),
        ("1m dir/", "names no file"),
        ("1m ..", "names no file"),
        ("1m .hidden", "file name \".hidden\""),
        ("--random=1 1m a", "--random takes no value"),
        ("--on sim:x --iostat 0 1m a", "'0' is no interval"),
        ("--on sim:x --iostat 1e9 1m a", "'1e9' is no interval"),
        ("--on sim:x --iostat -p5 1m a", "--iostat knows no -p"),
        ("--on sim:x --iostat", "--iostat needs a value"),
        ("--on sim:x --iostat= 1m a", "'' is not what an iostat is asked"),
        ("--randon 1m a", "there is no option --randon"),
    ] {
        let error = parse(&words(text)).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn an_iostat_looks_on_at_a_simulated_stack() {
    let typed = |words: &str| {
        let mut all = self::words("--on sim:x --time 1m a");
        all.push(format!("--iostat={words}"));
        parse(&all).map(|plan| plan.show.iostat.expect("it was asked for"))
    };
    let asked = typed("-xc 5 3").unwrap();
    assert_eq!((asked.interval_ns, asked.reports), (5_000_000_000, Some(3)));
    assert!(asked.has_processors && !asked.has_names_last && !asked.is_linux);
    assert_eq!(typed("0.5").unwrap().interval_ns, 500_000_000);
    assert!(typed("-linux 5").unwrap().is_linux);
    for (words, message) in [
        ("-c -linux 5", "belong to the layouts of Solaris"),
        ("5 0", "'0' is no number"),
        ("5 3 1", "is not what an iostat is asked"),
    ] {
        let error = typed(words).expect_err(words).to_string();
        assert!(error.contains(message), "{words}: {error}");
    }
}

proptest::proptest! {
    /// Any words are a plan or a message, never a panic.
    #[test]
    fn any_words_are_a_plan_or_a_message(
        text in "( ?(-[nvx]{1,3}|--[a-z]{1,8}|[0-9]{1,20}[kbmgx]{0,2}|[ -~]{0,6})){0,6}"
    ) {
        if let Err(error) = parse(&words(&text)) {
            proptest::prop_assert!(!error.to_string().is_empty());
        }
    }
}
