//! Files that are read, and files whose problems are told with line and key.

use super::*;
use iolab_workload::Workload;

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
        ("id = \"read\", ", "id = \"read\", slot = \"x\", ", 13, "alone"),
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
