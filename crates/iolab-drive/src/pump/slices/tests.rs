//! Slices of a worker on files in memory, with its data and its place kept between them.

use iolab_model::{Bytes, Erased, Ns};
use iolab_workload::Workload;

use super::{SliceCount, SliceDriver, SliceLength, Turn, run_slices};
use crate::coordinate::NoObserver;
use crate::pump::{lay_out, seats};
use crate::recorder::ClassHistograms;
use crate::target::Memory;

const RECORD: u64 = 4096;

fn workload(depth: u32) -> Workload {
    serde_json::from_value(serde_json::json!({
        "version": 1, "name": "x", "engine": "memory", "seed": 7,
        "phases": [{"name": "read", "tenants": [{
            "name": "read", "workers": 1, "file": "data", "file_bytes": 64 * RECORD,
            "io_size_bytes": RECORD, "pattern": {"kind": "sequential"},
            "direction": {"kind": "read"}, "depth": depth, "opening": "laid_out",
            "limit": {"kind": "time", "duration_ns": 1_u64 << 62},
        }]}],
    }))
    .unwrap()
}

/// Asks for some slices, then for what was recorded, then for the end.
struct Script {
    left: u32,
    length: SliceLength,
    counts: Vec<SliceCount>,
    recorded: Vec<u64>,
    is_collected: bool,
    flushes: u64,
}

impl SliceDriver for Script {
    fn next(&mut self, count: Option<SliceCount>) -> Turn {
        self.counts.extend(count);
        if self.left > 0 {
            self.left -= 1;
            return Turn::Slice(self.length);
        }
        if std::mem::replace(&mut self.is_collected, true) { Turn::End } else { Turn::Collect }
    }

    fn collect(&mut self, service: ClassHistograms) {
        self.recorded.push(service.read.map_or(0, |histogram| histogram.count()));
        self.flushes += service.sync.map_or(0, |histogram| histogram.count());
    }
}

fn run(slice: Ns, washout: Ns, slices: u32) -> Script {
    let (workload, target, here) = (workload(1), Memory::default(), std::path::Path::new("."));
    let phase = &workload.phases[0];
    lay_out(Erased::new(&target), (&workload, phase, None), here, &mut NoObserver).unwrap();
    let seat = seats(&workload, phase, None)[0];
    let length = SliceLength { slice, washout };
    let (counts, recorded) = (Vec::new(), Vec::new());
    let mut script =
        Script { left: slices, length, counts, recorded, is_collected: false, flushes: 0 };
    run_slices(&seat, &target, here, &mut script).unwrap();
    script
}

#[test]
fn every_slice_counts_its_own_operations_and_all_are_recorded_once() {
    let script = run(Ns::from_ms(2), Ns(0), 5);
    assert_eq!(script.counts.len(), 5);
    for pair in script.counts.windows(2) {
        assert!(pair[0].end_ns <= pair[1].begin_ns, "{pair:?}");
    }
    for count in &script.counts {
        assert!(count.ops > 0 && count.bytes == count.ops * RECORD, "{count:?}");
    }
    let counted: u64 = script.counts.iter().map(|count| count.ops).sum();
    assert_eq!(script.recorded, [counted]);
}

#[test]
fn a_washout_is_driven_and_not_counted() {
    let script = run(Ns::from_ms(2), Ns::from_ms(5), 3);
    for pair in script.counts.windows(2) {
        let pause = pair[1].begin_ns - pair[0].end_ns;
        // What is longer than a slice counts at any time: this process was not let run.
        let is_stalled = pair[1].longest_ns > 2_000_000;
        assert!(pause >= 5_000_000 || is_stalled, "only {pause} ns between two slices");
    }
}

#[test]
fn what_is_longer_than_a_slice_is_finished_and_charged() {
    // Every operation is longer than a slice of one nanosecond: the first one counts, alone.
    let script = run(Ns(1), Ns(0), 4);
    for count in &script.counts {
        assert_eq!((count.ops, count.bytes), (1, RECORD));
        assert_eq!(count.longest_ns, count.end_ns - count.begin_ns);
    }
}

#[test]
fn a_file_that_is_too_short_is_an_error_and_not_an_endless_slice() {
    let (workload, target, here) = (workload(1), Memory::default(), std::path::Path::new("."));
    let mut short = workload.clone();
    short.phases[0].tenants[0].file_bytes = Bytes(RECORD);
    lay_out(Erased::new(&target), (&short, &short.phases[0], None), here, &mut NoObserver).unwrap();
    let seat = seats(&workload, &workload.phases[0], None)[0];
    let length = SliceLength { slice: Ns::from_ms(1), washout: Ns(0) };
    let (counts, recorded) = (Vec::new(), Vec::new());
    let mut script = Script { left: 1, length, counts, recorded, is_collected: false, flushes: 0 };
    let error = run_slices(&seat, &target, here, &mut script).unwrap_err();
    assert!(error.to_string().contains("the file ends there"), "{error}");
}

#[test]
fn a_slice_of_buffered_writes_is_one_pass_with_its_fsync_inside_its_time() {
    let (mut workload, target) = (workload(1), Memory::default());
    let here = std::path::Path::new(".");
    let tenant = &mut workload.phases[0].tenants[0];
    tenant.direction = iolab_workload::spec::Direction::Write;
    tenant.fsync = iolab_workload::spec::FsyncPolicy::Timed;
    lay_out(Erased::new(&target), (&workload, &workload.phases[0], None), here, &mut NoObserver)
        .unwrap();
    let seat = seats(&workload, &workload.phases[0], None)[0];
    let length = SliceLength { slice: Ns::from_ms(10_000), washout: Ns::from_ms(1) };
    let (counts, recorded) = (Vec::new(), Vec::new());
    let mut script = Script { left: 3, length, counts, recorded, is_collected: false, flushes: 0 };
    run_slices(&seat, &target, here, &mut script).unwrap();
    // Ten seconds are allowed; what ends each slice is the end of its file, counted from its first.
    assert!(script.counts.iter().all(|count| count.ops == 64), "{:?}", script.counts);
    assert_eq!(script.flushes, 3);
}
