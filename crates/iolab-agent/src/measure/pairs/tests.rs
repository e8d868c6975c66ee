//! Sessions on files in a temporary directory, and how long slices become.

use std::time::Instant;

use serde_json::{Value, json};

use super::cast::Cast;
use super::{run, slice_of};
use crate::measure::request::Request;
use crate::protocol::{ChosenBy, PairsSpec};

const MS: u64 = 1_000_000;

fn workload(record_bytes: u64, access: &str, opening: &str) -> Value {
    json!({
        "version": 1, "name": "x", "engine": "psync", "seed": 7,
        "phases": [{"name": "random-read", "tenants": [{
            "name": "random-read", "workers": 1, "file": "data", "file_bytes": 1 << 20,
            "io_size_bytes": record_bytes, "pattern": {"kind": "uniform"},
            "direction": {"kind": "read"}, "access": access, "opening": opening,
        }]}],
    })
}

fn spec(workloads: &[Value], units: u32) -> PairsSpec {
    let treatments: Vec<Value> =
        workloads.iter().map(|workload| json!({"knobs": {}, "workload": workload})).collect();
    serde_json::from_value(json!({
        "treatments": treatments, "slice_min_ns": 2 * MS, "slice_max_ns": 65 * MS,
        "washout_ns": 0, "unit_ns": 20 * MS, "units": units, "time_ns": 0, "seed": 3,
    }))
    .unwrap()
}

fn request(directory: &std::path::Path, workload: &Value) -> Request {
    serde_json::from_value(json!({
        "trial": "t0001", "directory": directory, "workload": workload,
    }))
    .unwrap()
}

#[test]
fn what_could_not_be_alternated_is_told() {
    let level = workload(4096, "direct", "laid_out");
    let whole = || spec(&[level.clone(), level.clone()], 1);
    assert_eq!(whole().problem(), None);
    let mut uneven = whole();
    uneven.treatments[1].knobs.insert("read_ahead_kb".into(), "64".into());
    assert!(uneven.problem().unwrap().contains("different knobs"));
    for change in [
        |it: &mut PairsSpec| it.washout_ns = u64::MAX,
        |it: &mut PairsSpec| it.unit_ns = u64::MAX,
        |it: &mut PairsSpec| it.slice_max_ns = u64::MAX,
    ] {
        let mut long = whole();
        change(&mut long);
        assert!(long.problem().unwrap().contains("longer than an hour"));
    }
}

#[test]
fn a_session_has_every_cell_equally_often_in_every_unit() {
    let place = tempfile::tempdir_in(".").unwrap();
    let workloads = [workload(4096, "direct", "laid_out"), workload(8192, "direct", "existing")];
    let (spec, request) = (spec(&workloads, 3), request(place.path(), &workloads[0]));
    let ended = run(&request, &spec, Instant::now()).unwrap();
    let record = ended.record.unwrap_or_else(|| panic!("{:?}", ended.why));
    assert_eq!(record.units.len(), 3);
    let slices = &record.slices;
    for unit in 0..3 {
        for cell in 0..2 {
            let found = (0..slices.unit.len())
                .filter(|i| (slices.unit[*i], slices.cell[*i]) == (unit, cell))
                .count();
            assert_eq!(found, record.slices_per_unit as usize, "unit {unit}, cell {cell}");
        }
    }
    for index in 0..slices.ops.len() {
        let size = [4096, 8192][slices.cell[index] as usize];
        assert_eq!(slices.bytes[index], slices.ops[index] * size);
        assert!(slices.length_ns[index] > 0 && slices.ops[index] > 0);
    }
    let recorded: u64 = record
        .units
        .iter()
        .flat_map(|unit| unit.service.iter().flatten())
        .filter_map(|service| service.read.as_ref())
        .map(iolab_model::Histogram::count)
        .sum();
    assert_eq!(recorded, slices.ops.iter().sum::<u64>());
}

#[test]
fn what_cannot_be_alternated_is_refused_with_its_reason() {
    let place = tempfile::tempdir_in(".").unwrap();
    for (bad, why) in [
        (writing(workload(4096, "plain", "laid_out")), "without an fsync inside the time"),
        (flushed(writing(workload(4096, "direct", "laid_out"))), "flushes"),
        (workload(4096, "mapped", "laid_out"), "mapped files"),
        (workload(4096, "direct", "create"), "new files"),
    ] {
        let (spec, request) = (spec(&[bad.clone(), bad.clone()], 1), request(place.path(), &bad));
        let error = run(&request, &spec, Instant::now()).err().expect("it is refused").to_string();
        assert!(error.contains(why), "{error}");
    }
}

fn writing(mut workload: Value) -> Value {
    workload["phases"][0]["tenants"][0]["direction"] = json!({"kind": "write"});
    workload
}

fn flushed(mut workload: Value) -> Value {
    workload["phases"][0]["tenants"][0]["fsync"] = json!({"kind": "timed"});
    workload
}

#[test]
fn a_slice_of_buffered_writes_leaves_no_dirty_page_and_pays_for_its_flush() {
    let place = tempfile::tempdir_in(".").unwrap();
    let level = flushed(writing(workload(4096, "plain", "laid_out")));
    let mut spec = spec(&[level.clone(), level.clone()], 4);
    spec.washout_ns = MS;
    let request = request(place.path(), &level);
    let ended = run(&request, &spec, Instant::now()).unwrap();
    let record = ended.record.unwrap_or_else(|| panic!("{:?}", ended.why));
    assert_eq!(record.units.len(), 4);
    let file = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
    assert!(matches!(iolab_real::cache::unwritten_pages(&file).unwrap(), None | Some(0)));
    let codes: Vec<_> = ended.warnings.iter().map(|it| it.code.as_str()).collect();
    assert!(!codes.contains(&"slices_not_written"), "{codes:?}");
    // One pass over the file at most, and an fsync that is counted in its time.
    assert!(record.slices.bytes.iter().all(|bytes| (4096..=1 << 20).contains(bytes)));
    let flushes = record.units.iter().flat_map(|unit| unit.service.iter().flatten());
    let flushes: u64 =
        flushes.filter_map(|it| it.sync.as_ref()).map(iolab_model::Histogram::count).sum();
    assert_eq!(flushes, record.slices.ops.len() as u64);
}

#[test]
fn pages_of_buffered_reads_are_dropped_before_each_slice() {
    const PAGES: u64 = 4096;
    let place = tempfile::tempdir_in(".").unwrap();
    let mut level = workload(4096, "plain", "laid_out");
    level["phases"][0]["tenants"][0]["file_bytes"] = json!(PAGES * 4096);
    let (spec, request) = (spec(&[level.clone(), level.clone()], 4), request(place.path(), &level));
    let ended = run(&request, &spec, Instant::now()).unwrap();
    let record = ended.record.unwrap_or_else(|| panic!("{:?}", ended.why));
    let last = record.slices.ops.last().copied().unwrap();
    let all: u64 = record.slices.ops.iter().sum();
    let file = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
    let kept = iolab_real::cache::residency(&file).unwrap().resident_pages;
    // What is left is of the last slice: the layout's pages and all other slices' are gone.
    assert!(kept <= 4 * (last + 8), "{kept} pages after {last} operations of {all}");
    assert!(kept < PAGES, "nothing was dropped");
    assert_eq!(record.cells[0].access, Some(iolab_model::op::Access::Plain));
}

#[test]
fn slices_are_as_long_as_operations_and_switches_ask_within_their_limits() {
    let mut spec = spec(&[], 1);
    spec.slice_min_ns = 12 * MS;
    assert_eq!(slice_of(&spec, 10_000, 0), (12 * MS, ChosenBy::Shortest));
    assert_eq!(slice_of(&spec, MS, 0), (20 * MS, ChosenBy::Operations));
    assert_eq!(slice_of(&spec, MS, 20 * MS), (50 * MS, ChosenBy::Switches));
    assert_eq!(slice_of(&spec, MS, 30 * MS), (65 * MS, ChosenBy::Longest));
}

fn with_knobs(levels: &[&str]) -> PairsSpec {
    let work = workload(4096, "direct", "laid_out");
    let mut spec = spec(&vec![work; levels.len()], 1);
    for (treatment, level) in spec.treatments.iter_mut().zip(levels) {
        treatment.knobs.insert("scheduler".into(), (*level).into());
    }
    spec
}

#[test]
fn every_set_of_knobs_has_every_twin_once_and_no_twin_has_two() {
    let spec = with_knobs(&["none", "bfq", "none", "kyber"]);
    let cast = Cast::of(&spec, 3).unwrap();
    for treatment in 0..4 {
        let mut places: Vec<usize> = (0..3).map(|shift| cast.place(treatment, shift)).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2], "treatment {treatment}");
    }
    for shift in 0..3 {
        let assigned = cast.assignment(shift);
        for (place, treatment) in assigned.iter().enumerate() {
            assert_eq!(cast.place(*treatment, shift), place);
        }
        assert_eq!(cast.place(0, shift), cast.place(2, shift), "they have the same knobs");
    }
    assert_eq!(cast.actors().len(), 4 * 3, "every cell has its worker on every device");
}

/// Two file systems: the second treatment lies on the first device.
fn with_images() -> PairsSpec {
    let stack = |fs: &str| {
        json!({"fs": fs, "mkfs_options": [], "mount_options": [],
        "has_external_journal": false})
    };
    let work = workload(4096, "direct", "laid_out");
    let mut spec = spec(&[work.clone(), work], 1);
    let images = json!([{"place": 1, "stack": stack("ext4")}, {"place": 0, "stack": stack("xfs")}]);
    spec.images = serde_json::from_value(images).unwrap();
    (spec.treatments[0].place, spec.treatments[1].place) = (Some(1), Some(0));
    spec
}

#[test]
fn treatments_with_file_systems_of_their_own_stay_on_their_devices() {
    let spec = with_images();
    assert_eq!(spec.problem(), None);
    let cast = Cast::of(&spec, 2).unwrap();
    assert_eq!((cast.places(), cast.exchanged()), (2, 1));
    assert_eq!((cast.place(0, 0), cast.place(1, 0)), (1, 0));
    assert!(Cast::of(&spec, 3).is_err());
}

#[test]
fn images_that_fit_no_treatment_or_device_are_told() {
    type Change = fn(&mut PairsSpec);
    let wrong: [(Change, &str); 5] = [
        (|it| it.images[0].place = 0, "one on each device"),
        (|it| it.treatments[0].place = Some(2), "without an image"),
        (|it| it.treatments[0].place = None, "names none"),
        (|it| it.treatments[0].place = Some(0), "no treatment works on"),
        (
            |it| {
                it.treatments[0].knobs.insert("nomerges".into(), "0".into());
                it.treatments[1].knobs.insert("nomerges".into(), "1".into());
            },
            "images and knobs",
        ),
    ];
    for (change, why) in wrong {
        let mut spec = with_images();
        change(&mut spec);
        let problem = spec.problem().unwrap_or_default();
        assert!(problem.contains(why), "{problem} and not {why}");
    }
}

#[test]
fn a_session_with_images_works_where_each_treatment_belongs() {
    let place = tempfile::tempdir_in(".").unwrap();
    let (here, there) = (place.path().join("a"), place.path().join("b"));
    for folder in [&here, &there] {
        std::fs::create_dir(folder).unwrap();
    }
    let mut request = request(&here, &workload(4096, "direct", "laid_out"));
    request.twins = vec![there];
    let ended = run(&request, &with_images(), Instant::now()).unwrap();
    let record = ended.record.unwrap_or_else(|| panic!("{:?}", ended.why));
    let slices = &record.slices;
    assert!(!slices.cell.is_empty() && record.places == 1);
    for index in 0..slices.cell.len() {
        assert_eq!(slices.place[index], 1 - slices.cell[index], "slice {index}");
    }
}

#[test]
fn twins_are_as_many_as_sets_of_knobs() {
    let why = Cast::of(&with_knobs(&["none", "bfq", "kyber"]), 2).err().unwrap().to_string();
    assert!(why.contains("3 sets of knobs on 2 devices"), "{why}");
}

#[test]
fn only_slices_shorter_than_a_second_switch_fast() {
    let mut spec = with_knobs(&["none", "mq-deadline"]);
    assert!(spec.may_switch_fast());
    spec.slice_min_ns = 1000 * MS;
    assert!(!spec.may_switch_fast());
    assert!(!with_knobs(&["none", "none"]).may_switch_fast());
}
