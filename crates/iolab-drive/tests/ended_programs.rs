//! End of programs whose steps are longer than their time.

use std::path::Path;
use std::time::{Duration, Instant};

use iolab_drive::coordinate::NoObserver;
use iolab_drive::pump::{Part, run_threads};
use iolab_drive::target::Memory;
use iolab_workload::Workload;
use iolab_workload::program::Program;
use iolab_workload::spec::Tenant;
use iolab_workload::verify::Books;
use serde_json::{Value, json};

/// A minute, in nanoseconds.
const LONG_NS: u64 = 60_000_000_000;

/// Time that a program of one worker takes with so much time for its steps.
fn time_of(steps: &Value, after: &Value) -> Duration {
    let limit_ns = 20_000_000;
    let mut tenant = serde_json::to_value(Tenant::of_program("t", 1, Program::default())).unwrap();
    tenant["program"] = json!({"steps": steps, "after": after, "limit": {"time_ns": limit_ns}});
    let value = json!({"version": 1, "name": "w", "engine": "memory", "seed": 1,
                       "phases": [{"name": "p", "tenants": [tenant]}]});
    let workload: Workload = serde_json::from_value(value).unwrap();
    workload.check().unwrap();
    let part = Part { workload: &workload, phase: &workload.phases[0], books: Books::default() };
    let (begun, memory) = (Instant::now(), Memory::default());
    let outcome = run_threads(&memory, part, Path::new("/m"), |_| {}, &mut NoObserver).unwrap();
    assert_eq!(outcome.tenants[0].workers[0].first_error, None);
    begun.elapsed()
}

#[test]
fn a_program_ends_with_its_time_whatever_its_steps_ask_for() {
    let step = |does: &str, ns: u64| json!([{"does": does, "duration_ns": ns}]);
    for does in ["think", "burn"] {
        let took = time_of(&step(does, LONG_NS), &json!([]));
        assert!(took < Duration::from_nanos(LONG_NS / 2), "{does}: {took:?}");
    }
    // Behind the time a step sleeps as long as it says, and not on account of the one before.
    let took = time_of(&step("think", LONG_NS), &step("think", 30_000_000));
    assert!((50..30_000).contains(&took.as_millis()), "{took:?}");
}
