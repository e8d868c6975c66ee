//! Files that are read, and files whose problems are told with line and key.

use super::*;
use iolab_workload::Workload;
use iolab_workload::program::Node;

const GOOD: &str = r#"
[[file_sets]]
name = "data"
files = 4
file_size = "1m"

[[tenants]]
name = "reader"

[tenants.program]
limit = { time = "1.5s" }
steps = [
  { id = "read", does = "read", size = "4k", at = { pick = "uniform" }, file = {
    by = "pick", set = "data", pick = "reverse" } },
  { does = "think", duration = "10us" },
]
"#;

#[test]
fn sizes_and_durations_are_written_as_people_do() {
    let file = read("mine.toml", GOOD).unwrap();
    assert_eq!(file.workload.name, "mine");
    let json = serde_json::to_value(&file.workload).unwrap();
    assert_eq!(json["file_sets"][0]["file_bytes"], 1 << 20);
    let program = &json["phases"][0]["tenants"][0]["program"];
    assert_eq!(program["limit"]["time_ns"], 1_500_000_000_u64);
    assert_eq!(program["steps"][0]["size_bytes"], 4096);
    assert_eq!(program["steps"][1]["duration_ns"], 10_000);
    let again: Workload = serde_json::from_value(json).unwrap();
    assert_eq!(again, file.workload);
}

#[test]
fn problems_have_a_line_a_key_and_a_remedy() {
    let cases = [
        ("size = \"4k\"", "size = \"4q\"", 13, "4q"),
        ("duration = \"10us\"", "duration = \"10\"", 15, "10s"),
        ("files = 4", "filez = 4", 4, "did you mean `files`?"),
        ("does = \"think\"", "does = \"thnik\"", 15, "did you mean `think`?"),
        ("set = \"data\"", "set = \"dta\"", 14, "did you mean `data`?"),
        ("at = { pick = \"uniform\" }", "at = { pick = \"unifrm\" }", 13, "uniform"),
        ("limit = { time", "limt = { time", 11, "did you mean `limit`?"),
        ("steps = [", "steps = [[", 16, "unclosed array"),
        ("name = \"reader\"", "name = \"reader\"\nworkers = 0", 7, "at least 1"),
        (
            "does = \"think\",",
            "does = \"think\", key = { by = \"new\", space = \"x\" },",
            14,
            "`key`",
        ),
    ];
    for (from, to, line, expected) in cases {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from} is not there");
        let problem = read("mine.toml", &text).expect_err(to);
        let message = problem.to_string();
        assert!(message.contains(expected), "{message} lacks {expected}");
        assert!(problem.line.abs_diff(line) <= 1, "{message}: not line {line}");
        assert!(message.starts_with("mine.toml, line "), "{message}");
    }
}

#[test]
fn shares_are_compared() {
    let expected = [("read".to_owned(), 70.0), ("write".to_owned(), 30.0)].into();
    let counted = |read, write| [("read".to_owned(), read), ("write".to_owned(), write)].into();
    assert_eq!(Expect::surprise(&expected, &counted(705, 295), 0.02), None);
    assert!(Expect::surprise(&expected, &counted(800, 200), 0.02).unwrap().contains("read"));
    assert!(Expect::surprise(&expected, &counted(0, 0), 0.02).is_some());
}

/// Issue 14, point 4: `manner.op_log` of somebody's workload file wrote into any directory.
#[test]
fn a_file_does_not_choose_where_logs_are_written() {
    let text = GOOD.replace("name = \"reader\"", "name = \"reader\"\nmanner.op_log = \"/etc\"");
    let told = read("gift.toml", &text).unwrap_err().to_string();
    assert!(told.contains("op_log") && told.contains("leave it out"), "{told}");
}

/// Texts of a workload file with a recorded stream, and of the stream itself.
const RECORDED: &str = r#"
[[file_sets]]
name = "data"
files = 1
file_size = "1m"

[[tenants]]
name = "again"

[tenants.program]
recorded = { file = "trace.log", set = "data", path = "direct" }
pace = { kind = "recorded", speed = 2.0 }
"#;

fn folder_with(stream: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace.log"), stream).unwrap();
    folder
}

#[test]
fn a_recorded_stream_lies_beside_the_file_and_gives_the_steps() {
    let stream = "iolab recorded stream 1\n0 read 0 0 4096\n9 write 0 4096 8192\n9 fsync 0\n";
    let folder = folder_with(stream);
    let subject = folder.path().join("again.toml").display().to_string();
    let workload = read(&subject, RECORDED).unwrap().workload;
    let program = workload.phases[0].tenants[0].program.as_ref().unwrap();
    let recorded = program.recorded.as_ref().unwrap();
    assert_eq!(recorded.file, folder.path().join("trace.log"));
    assert_eq!(recorded.content.as_ref().unwrap().ops, 3);
    let names: Vec<&str> = program.steps.iter().map(Node::name).collect();
    assert_eq!(names, ["read", "write", "fsync"]);
    assert_eq!(workload.phases[0].tenants[0].io_size_bytes.0, 8192);
    let json = serde_json::to_value(&workload).unwrap();
    let again: Workload = serde_json::from_value(json).unwrap();
    again.check().unwrap();
}

#[test]
fn a_line_that_is_no_operation_is_told_with_both_files() {
    let folder = folder_with("iolab recorded stream 1\n0 read 0 0 4096\n0 raed 0 0 4096\n");
    let subject = folder.path().join("again.toml").display().to_string();
    let problem = read(&subject, RECORDED).unwrap_err();
    assert_eq!(problem.line, 11);
    let message = problem.to_string();
    assert!(message.contains("trace.log: line 3: 'raed' is none of"), "{message}");
    std::fs::remove_file(folder.path().join("trace.log")).unwrap();
    let message = read(&subject, RECORDED).unwrap_err().to_string();
    assert!(message.contains("trace.log: it cannot be read: No such file"), "{message}");
    let message = read(&subject, &RECORDED.replace("trace.log", "/dev/zero")).unwrap_err();
    assert!(message.to_string().contains("no ordinary file"), "{message}");
}

/// A study is stored with the text of its workload, and run again from another directory.
#[test]
fn names_of_recorded_streams_are_made_whole() {
    let folder = std::path::Path::new("/some where");
    let whole = anchored(RECORDED, folder);
    assert_eq!(whole, RECORDED.replace("\"trace.log\"", "\"/some where/trace.log\""));
    assert_eq!(anchored(&whole, std::path::Path::new("/else")), whole);
    let table = "[tenants.program.recorded]\nfile = 'a\"b' # trace\nset = 'file'\n";
    let expected = table.replace("'a\"b'", "\"/some where/a\\\"b\"");
    assert_eq!(anchored(table, folder), expected);
    for other in [GOOD, "no [toml"] {
        assert_eq!(anchored(other, folder), other);
    }
}
