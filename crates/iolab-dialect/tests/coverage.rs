//! The table of what other programs' options lower to: every path that it names is in the
//! description, and what has no path has a reason.

use iolab_workload::Workload;
use serde_json::{Map, Value, json};

const TABLE: &str = include_str!("../../../docs/design/0008-coverage.tsv");

/// A value that no field takes: a field that is there complains about its type.
fn nonsense() -> Value {
    json!({"?": 0})
}

/// A description that has nothing but this path, in pieces between dots.
fn nested(pieces: &[&str]) -> Value {
    let Some((piece, rest)) = pieces.split_first() else { return nonsense() };
    let (name, value) = match piece.split_once('=') {
        // `key=value` at the end; `key{by=value}` is a table with a tag.
        Some((name, value)) if !name.contains('{') => (name, json!(value)),
        _ => match piece.split_once('{') {
            Some((name, tag)) => {
                let (key, value) = tag.trim_end_matches('}').split_once('=').unwrap();
                let mut table = match rest {
                    [] => Map::new(),
                    _ => nested(rest).as_object().cloned().unwrap(),
                };
                table.insert(key.into(), json!(value));
                (name, Value::Object(table))
            }
            None => (*piece, nested(rest)),
        },
    };
    match name.strip_suffix("[]") {
        Some(list) => json!({ list: [value] }),
        None => json!({ name: value }),
    }
}

/// Reason why a path is not in the description.
fn complaint(path: &str) -> Option<String> {
    let pieces: Vec<&str> = path.split('.').collect();
    let error = serde_json::from_value::<Workload>(nested(&pieces)).unwrap_err().to_string();
    let is_unknown = error.contains("unknown ") && !error.contains("`?`");
    is_unknown.then_some(error)
}

#[test]
fn every_path_is_in_the_description() {
    let mut sources = std::collections::BTreeMap::new();
    for line in TABLE.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [source, options, path, reason] = columns[..] else { panic!("{line}") };
        assert!(!options.is_empty() && !line.contains("special"), "{line}");
        assert_eq!(path == "-", !reason.is_empty(), "a path or a reason: {line}");
        if path != "-" {
            assert_eq!(complaint(path), None, "{line}");
        }
        *sources.entry(source).or_insert(0) += options.split(", ").count();
    }
    let names: Vec<&str> = sources.keys().copied().collect();
    assert_eq!(names, ["bonnie", "filebench", "fio", "iozone", "ycsb"]);
}

#[test]
fn a_path_that_is_not_there_is_found() {
    for path in [
        "phases[].tenants[].program.stepz[]",
        "phases[].tenants[].program.steps[].at.pick{by=zipf}.thetta",
        "phases[].tenants[].program.steps[].at.pick{by=zip}.theta",
        "phases[].tenants[].program.steps[].does=frobnicate",
        "file_sets[].filez",
    ] {
        assert!(complaint(path).is_some(), "{path}");
    }
}
