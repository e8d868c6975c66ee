//! The examples of the contract are understood, and nothing else is.

use std::collections::BTreeMap;

use super::*;
use crate::error::{Error, Result};

fn call(text: &str) -> Result<Call> {
    call_of(parse(text)?)
}

#[test]
fn the_contracts_examples_are_understood() {
    let hello = r#"{"id":1,"method":"hello","params":
        {"protocol":1,"run":"r-12ab","is_dry_run":false,"state_dir":null}}"#;
    assert!(matches!(call(hello), Ok(Call::Hello(Hello { protocol: 1, .. }))));
    let trial = r#"{"id":2,"method":"run_trial","params":{"trial":"t0007",
        "stack":{"fs":"ext4","mkfs_options":[],"mount_options":["nodelalloc"],
                 "has_external_journal":false},
        "is_fresh_fs":true,
        "knobs":{"scheduler":"bfq","bfq.slice_idle":"0","vm.dirty_ratio":"10"},
        "cache":"cold","memory_limit_bytes":null,"reserve_bytes":5368709120,
        "time_limit_ns":600000000000,
        "workload":{"version":1,"name":"w","engine":"psync","seed":1,"phases":[]}}}"#;
    let Ok(Call::RunTrial(spec)) = call(trial) else { panic!("{:?}", call(trial)) };
    assert_eq!(spec.cache, Cache::Cold);
    assert_eq!(spec.workload.engine, "psync");
    let again: TrialSpec = serde_json::from_value(serde_json::to_value(&spec).unwrap()).unwrap();
    assert_eq!(serde_json::to_value(again).unwrap(), serde_json::to_value(spec).unwrap());
    for simple in ["close_testbed", "interrupt", "shutdown"] {
        call(&format!(r#"{{"id":3,"method":"{simple}","params":{{}}}}"#)).unwrap();
    }
}

#[test]
fn unknown_fields_and_methods_are_refused_by_name() {
    let error = call(r#"{"id":1,"method":"doctor","params":{"paths":[],"colour":1}}"#);
    assert!(error.unwrap_err().to_string().contains("colour"));
    let error = call(r#"{"id":1,"method":"run_trail","params":{}}"#).unwrap_err();
    assert!(error.to_string().contains("did you mean 'run_trial'?"), "{error}");
    assert!(call(r#"{"id":1,"method":"hello","params":{},"extra":0}"#).is_err());
    assert!(call("hello").is_err());
}

#[test]
fn answers_have_the_contracts_form() {
    let text = |message: &Message| serde_json::to_string(message).unwrap();
    let closed = Answer::ShutDown(ShutDown { problems: Vec::new() });
    assert_eq!(text(&answer(7, Ok(closed))), r#"{"id":7,"result":{"problems":[]}}"#);
    let error = answer(8, Err(Error::refused("no", "ask")));
    let expected = r#"{"id":8,"error":{"code":"refused","message":"no","hint":"ask"}}"#;
    assert_eq!(text(&error), expected);
    let event = Message::Event {
        event: "progress",
        params: Progress { share: Some(0.5), ..Progress::default() },
    };
    let expected = r#"{"event":"progress","params":{"phase":"","message":"","share":0.5}}"#;
    assert_eq!(text(&event), expected);
}

#[test]
fn a_record_has_every_field_of_the_contract() {
    let stack = Stack {
        fs: "ext4".to_owned(),
        mkfs_options: Vec::new(),
        mount_options: Vec::new(),
        has_external_journal: false,
    };
    let record = Record {
        trial: "t1".to_owned(),
        status: Status::DryRun,
        error: None,
        started_at_unix_ns: 1,
        elapsed_ns: 2,
        engine: "psync".to_owned(),
        knobs: BTreeMap::new(),
        stack: Some(StackRecord {
            asked: stack,
            effective_mount_options: "rw".to_owned(),
            parameters: Vec::new(),
        }),
        facts: BTreeMap::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        phases: Vec::new(),
        pairs: None,
        made: BTreeMap::new(),
        trace: None,
        simulation: None,
        host_writes: None,
        images: Vec::new(),
        session: None,
    };
    let value = serde_json::to_value(record).unwrap();
    assert_eq!(value["status"], "dry_run");
    assert_eq!(value["stack"]["effective_mount_options"], "rw");
    assert_eq!(value["stack"]["fs"], "ext4");
    assert!(value["error"].is_null());
}

#[test]
fn both_lines_of_the_child_are_told_apart() {
    let line = r#"{"progress":{"trial":"t1","phase":"p","message":"","share":0.4}}"#;
    assert!(matches!(serde_json::from_str(line), Ok(MeasureLine::Progress { .. })));
    let line = r#"{"released":{"phase":"p","at_ns":7}}"#;
    assert!(matches!(serde_json::from_str(line), Ok(MeasureLine::Released { at_ns: 7, .. })));
    let line = r#"{"result":{"status":"interrupted","error":null,"phases":[],"warnings":[]}}"#;
    assert!(matches!(serde_json::from_str(line), Ok(MeasureLine::Result { .. })));
}

#[test]
fn a_kind_of_testbed_that_does_not_exist_is_named_with_the_nearest() {
    let error = call(r#"{"id":1,"method":"open_testbed","params":{"kind":"lop"}}"#).unwrap_err();
    assert!(error.to_string().contains("did you mean 'loop'?"), "{error}");
    let line = r#"{"id":1,"method":"open_testbed","params":{"kind":"loop","colour":1}}"#;
    let error = call(line).unwrap_err().to_string();
    assert!(error.contains("a loop testbed") && error.contains("colour"), "{error}");
    for kind in TestbedSpec::KINDS {
        let line = format!(r#"{{"id":1,"method":"open_testbed","params":{{"kind":"{kind}"}}}}"#);
        assert!(call(&line).unwrap_err().to_string().contains("missing field"), "{kind}");
    }
}
