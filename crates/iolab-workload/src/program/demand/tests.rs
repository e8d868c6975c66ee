//! Bounds of small workloads, computed by hand.

use super::*;
use crate::program::KeySpace;
use crate::spec::Tenant;

fn workload(sets: &str, workers: u32, program: &str) -> Workload {
    let program: Program = serde_json::from_str(program).unwrap();
    let tenant = Tenant::of_program("main", workers, program);
    let sets: Vec<FileSet> = serde_json::from_str(sets).unwrap();
    serde_json::from_value(serde_json::json!({
        "version": crate::spec::VERSION, "name": "w", "engine": "psync", "seed": 1,
        "file_sets": sets, "phases": [{"name": "p", "tenants": [tenant]}],
    }))
    .unwrap()
}

const SETS: &str = r#"[{"name":"s","files":100,"file_bytes":{"by":"uniform","from":1,"to":1000},
    "existing_percent":80}]"#;
const EXISTING: &str = r#""file":{"by":"existing","set":"s"}"#;

fn of(program: &str) -> Demand {
    demand(&workload(SETS, 2, program)).unwrap()
}

#[test]
fn a_workload_of_streams_has_no_programs() {
    let mut streams = workload(SETS, 1, r#"{"steps":[]}"#);
    streams.phases[0].tenants[0].program = None;
    assert_eq!(demand(&streams), None);
}

#[test]
fn files_are_as_many_and_as_large_as_they_may_be() {
    let read = format!(r#"{{"steps":[{{"does":"open",{EXISTING}}},{{"does":"close"}}]}}"#);
    let found = of(&read);
    assert_eq!((found.file_bytes, found.laid_bytes), (80_000, 80_000));
    assert_eq!((found.written_bytes, found.is_file_bound), (Some(0), true));
    let create = r#"{"steps":[{"does":"create","file":{"by":"absent","set":"s"}},
        {"does":"write","is_whole":true,"size_bytes":10},{"does":"close"}],
        "limit":{"passes":10}}"#;
    let found = of(create);
    assert_eq!((found.file_bytes, found.laid_bytes), (100_000, 80_000));
    assert_eq!(found.written_bytes, Some(2 * 10 * 1000));
}

/// Small files beside a large one were each counted with the size of the large one.
#[test]
fn a_whole_file_is_one_of_the_set_that_the_step_or_its_slot_names() {
    let sets = r#"[{"name":"small","files":9,"file_bytes":10},
        {"name":"large","files":1,"file_bytes":1000000}]"#;
    let written = |steps: &str| {
        let program = format!(r#"{{"steps":[{steps}],"limit":{{"passes":3}}}}"#);
        demand(&workload(sets, 1, &program)).unwrap().written_bytes
    };
    let open = |set: &str, slot: &str| {
        format!(r#"{{"does":"open","slot":"{slot}","file":{{"by":"existing","set":"{set}"}}}},"#)
    };
    let whole = |slot: &str| {
        format!(r#"{{"does":"write","slot":"{slot}","is_whole":true,"size_bytes":1}}"#)
    };
    let both = open("small", "a") + &open("large", "b");
    assert_eq!(written(&(both.clone() + &whole("a"))), Some(30));
    assert_eq!(written(&(both + &whole("b"))), Some(3_000_000));
    let either = open("small", "a") + &open("large", "a") + &whole("a");
    assert_eq!(written(&either), Some(3_000_000));
    let rename = r#"{"does":"rename","file":{"by":"existing","set":"large"},
        "to_file":{"by":"absent","set":"small"}},"#;
    assert_eq!(written(&(rename.to_owned() + &open("small", "a") + &whole("a"))), Some(3_000_000));
}

#[test]
fn rates_of_reads_and_writes_need_a_choice_between_the_two() {
    let of = |steps: &str, rates: &str| {
        let pace = format!(r#"{{"kind":"directions",{rates}}}"#);
        workload(SETS, 1, &format!(r#"{{"steps":[{steps}],"pace":{pace}}}"#)).check()
    };
    let transfer = |does: &str| {
        format!(r#"{{"does":"{does}",{EXISTING},"at":{{"from_bytes":0}},"size_bytes":500}}"#)
    };
    let choice =
        format!(r#"{{"does":"choose","steps":[{},{}]}}"#, transfer("read"), transfer("write"));
    let rates = r#""reads_per_s":5.0,"writes_per_s":0.0"#;
    of(&choice, rates).unwrap();
    for (steps, rates, problem) in [
        (transfer("read"), rates, "without a choice"),
        (choice.clone(), r#""reads_per_s":0.0,"writes_per_s":0.0"#, "rates of 0 reads"),
        (choice, r#""reads_per_s":-1.0,"writes_per_s":1.0"#, "rates of -1 reads"),
    ] {
        let told = of(&steps, rates).unwrap_err().to_string();
        assert!(told.contains(problem), "{told}");
    }
}

#[test]
fn what_is_appended_comes_on_top() {
    let append = |limit: &str| {
        let write = r#"{"does":"write","position":"append","size_bytes":500}"#;
        let open = format!(r#"{{"does":"open",{EXISTING}}}"#);
        of(&format!(r#"{{"before":[{open}],"steps":[{write}],"limit":{limit}}}"#))
    };
    let found = append(r#"{"passes":7}"#);
    assert_eq!((found.written_bytes, found.file_bytes), (Some(7000), 87_000));
    assert_eq!(append(r#"{"ops":9}"#).written_bytes, Some(9000));
    assert_eq!(append(r#"{"total_bytes":5000}"#).written_bytes, Some(11_000));
    assert_eq!(append(r#"{"count":{"id":"write","ops":3}}"#).written_bytes, Some(3000));
    let timed = append(r#"{"time_ns":2000000000}"#);
    assert_eq!((timed.written_bytes, timed.is_file_bound), (None, false));
    assert_eq!((timed.file_bytes, timed.time_ns), (80_000, Ns::from_ms(2000)));
}

#[test]
fn a_choice_costs_what_its_costliest_step_costs_and_a_rate_bounds_it() {
    let steps = r#"[{"does":"choose","times":3,"steps":[
        {"does":"write","position":"append","size_bytes":{"by":"uniform","from":1,"to":40}},
        {"does":"read","size_bytes":100}]}]"#;
    let program = format!(
        r#"{{"steps":{steps},"pace":{{"kind":"rate","passes_per_s":10.0}},
            "limit":{{"time_ns":1000000000}}}}"#
    );
    let found = of(&program);
    assert_eq!(found.written_bytes, Some(2 * 11 * 3 * 40));
    assert_eq!(found.moved_bytes, Some(2 * 11 * 3 * 100));
}

#[test]
fn a_place_in_a_file_makes_no_file_larger_unless_it_lies_behind_its_end() {
    let write = |at: &str| {
        let step = format!(r#"{{"does":"write","at":{at},"size_bytes":100,{EXISTING}}}"#);
        of(&format!(r#"{{"steps":[{step}],"limit":{{"time_ns":1}}}}"#)).is_file_bound
    };
    assert!(write(r#"{"pick":"uniform"}"#));
    assert!(!write(r#"{"pick":"uniform","from_bytes":900,"within_bytes":200}"#));
}

#[test]
fn what_is_larger_than_any_number_stays_so() {
    let sets = r#"[{"name":"s","files":16000000,"file_bytes":9000000000000000000}]"#;
    let program = format!(r#"{{"steps":[{{"does":"stat",{EXISTING}}}]}}"#);
    assert_eq!(demand(&workload(sets, 1, &program)).unwrap().file_bytes, u64::MAX);
}

#[test]
fn records_of_a_store_count() {
    let program = r#"{"steps":[{"does":"get","key":{"by":"pick","space":"k"}}]}"#;
    let mut keys = workload("[]", 1, program);
    keys.key_spaces = vec![KeySpace {
        name: "k".into(),
        records: 1000,
        value_bytes: Amount::Constant(1000),
        is_hashed: false,
        is_loaded: false,
    }];
    let found = demand(&keys).unwrap();
    assert!(found.file_bytes >= 1_000_000, "{found:?}");
    assert_eq!(found.laid_bytes, found.file_bytes);
}
