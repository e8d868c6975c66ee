//! Issue 14, point 17: a phase of a few microseconds is as long as its transfers.
//!
//! Symptom: `IOzone` on files of 64 kB printed up to four times as much as iolab. Causes: the timed
//! region of a worker without company began before the counters of the machine were read, it
//! fetched the memory of its histograms, and its clock and code were new to it; and "Parent sees"
//! ended with the last transfer, where the original's parent waits until its children have gone.

use std::path::Path;
use std::time::Duration;

use iolab_drive::Observer;
use iolab_drive::pump::run_threads;
use iolab_drive::target::Null;
use iolab_workload::Workload;

const LONG: Duration = Duration::from_millis(40);

/// An observer that takes long to read counters.
struct Slow;

impl Observer for Slow {
    fn starting(&mut self) {
        std::thread::sleep(LONG);
    }
    fn ended(&mut self) {
        std::thread::sleep(LONG);
    }
}

fn small(workers: u32) -> Workload {
    let text = format!(
        r#"{{"version":1,"name":"x","engine":"null","seed":7,"phases":[{{"name":"p","tenants":[
        {{"name":"main","workers":{workers},"file":"data","file_bytes":65536,
        "io_size_bytes":4096,"pattern":{{"kind":"sequential"}},"direction":{{"kind":"read"}},
        "limit":{{"kind":"once"}},"opening":"existing"}}]}}]}}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_reading_of_counters_is_in_no_time() {
    for workers in [1, 2] {
        let workload = small(workers);
        let pair = (&workload, &workload.phases[0]);
        let outcome = run_threads(&Null, pair, Path::new("/"), |_| {}, &mut Slow).unwrap();
        let parent = outcome.parent_ns.expect("in real time somebody waits");
        for report in &outcome.tenants[0].workers {
            assert_eq!(report.ops, 16);
            assert!(u128::from(report.elapsed_ns) < LONG.as_nanos() / 2, "{}", report.elapsed_ns);
        }
        assert!(parent >= outcome.tenants[0].workers[0].elapsed_ns, "{workers}: {parent}");
        assert!(u128::from(parent) < LONG.as_nanos() / 2, "{workers}: {parent}");
    }
}
