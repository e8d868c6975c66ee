//! Options that refine how children work, and the files beside the report.

use iolab_model::op::Advice;
use iolab_model::target::{Blend, Content};
use iolab_model::{Bytes, Ns, Seed};
use iolab_workload::preset::IozoneTest as T;
use iolab_workload::spec::{Burst, FsyncPolicy, LockPolicy, Opening, Phase, Tenant};

use super::super::plan::Plan;
use super::super::render::render;
use super::super::result::Event;
use super::super::side::{Part, Who};
use super::{golden, plan};

fn phases(text: &str) -> Vec<Phase> {
    plan(text).rows[0].workload.phases.clone()
}

fn tenant(text: &str, index: usize) -> Tenant {
    phases(text)[index].tenants[0].clone()
}

/// Name of the file of a part, and what is appended to it.
fn side(plan: &Plan, part: Part) -> (String, String) {
    let shown: serde_json::Value = serde_json::from_str(&render(plan, &Event::Side(part))).unwrap();
    let text = |key: &str| shown[key].as_str().unwrap().to_owned();
    (text("name"), text("text"))
}

const fn who(test: T, child: usize) -> Who {
    Who { test, child, is_writer: false }
}

/// The rows of a recorded file, as operations.
fn operations(text: &str) -> Vec<(u64, u64, u64)> {
    let rows = text.lines().skip(1).take_while(|line| !line.is_empty());
    let row = |line: &str| {
        let words: Vec<i64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        (words[0] as u64 * 1024, words[1] as u64 * 1000, words[2] as u64)
    };
    rows.map(row).collect()
}

#[test]
fn recorded_files_of_latencies_are_written_byte_for_byte() {
    let alone = plan("-Q -i 0 -i 1 -s 256k -r 16k -f t.tmp");
    let wanted = golden("offset_latency_Q.wol.dat");
    let part = Part::Operations {
        who: who(T::Write, 0),
        is_first: true,
        operations: operations(&wanted),
        times_ns: Some((0, 0, 0)),
    };
    assert_eq!(side(&alone, part), ("wol.dat".to_owned(), wanted));
    let children = plan("-t 2 -Q -i 0 -i 1 -+n -s 64k -r 16k");
    for (test, code) in [(T::Write, "wol"), (T::Read, "rol")] {
        let name = format!("Child_0_{code}.dat");
        let wanted = golden(&format!("t2_Q.{name}"));
        let part = Part::Operations {
            who: who(test, 0),
            is_first: true,
            operations: operations(&wanted),
            times_ns: Some((0, 0, 0)),
        };
        assert_eq!(side(&children, part), (name, wanted));
    }
    assert_eq!(alone.show.side.logged, [T::Write, T::Rewrite, T::Read, T::Reread]);
    assert_eq!(plan("-Q -i 2 -i 3").show.side.logged, [], "alone only the first two tests");
    assert_eq!(plan("-t 2 -Q -i 3").show.side.logged, [T::BackwardRead]);
}

#[test]
fn recorded_histograms_and_times_are_written_byte_for_byte() {
    let plan = plan("-t 2 -+z -+T -i 0 -i 1 -+n -s 256k -r 16k");
    let wanted = golden("t2_z_T.Iozone_histogram_child_0.txt");
    let mut found = String::new();
    for (block, test) in wanted.split_inclusive("\n\n").zip([T::Write, T::Read]) {
        let cells = block.lines().skip(1).flat_map(|line| {
            line.split(':').skip(2).map(|cell| cell.split_whitespace().next().unwrap().to_owned())
        });
        let counts: Vec<u64> = cells.map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(counts.len(), plan.show.side.limits_ns.len() + 1);
        let (name, text) = side(&plan, Part::Histogram { who: who(test, 0), counts });
        assert_eq!(name, "Iozone_histogram_child_0.txt");
        found += &text;
    }
    assert_eq!(found, wanted);
    let wanted = golden("t2_z_T.Child_1.log");
    let times: Vec<String> = wanted.lines().map(|line| line[26..].to_owned()).collect();
    let mut found = String::new();
    for (pair, test) in times.chunks(2).zip([T::Write, T::Read]) {
        let (began, ended) = (pair[0].clone(), pair[1].clone());
        let (name, text) = side(&plan, Part::Stamps { who: who(test, 1), began, ended });
        assert_eq!(name, "Child_1.log");
        found += &text;
    }
    assert_eq!(found, wanted);
}

#[test]
fn a_telemetry_file_takes_the_place_of_sizes_and_patterns() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/iozone");
    let text = format!("-X {golden}/telemetry_XY.w.tel -Y {golden}/telemetry_XY.r.tel -f t.tmp");
    let plan = plan(&text);
    let row = &plan.rows[0];
    assert_eq!((row.name.as_str(), row.file_kb, row.record_kb), ("12k/replay", 12, 0));
    assert_eq!(row.tests, [T::Write, T::Rewrite, T::Read, T::Reread]);
    let places = |phase: usize| {
        let tenant = &row.workload.phases[phase].tenants[0];
        tenant.manner.replay.iter().map(|op| op.at.0).collect::<Vec<_>>()
    };
    assert_eq!(places(0), [0, 8192, 4096]);
    assert_eq!(places(3), [0, 4096, 8192]);
    assert_eq!(row.workload.phases[0].tenants[0].used_bytes(), Bytes(12288));
    assert_eq!(plan.show.paused, [T::Write, T::Rewrite], "only the writes have pauses");
    let only_writes = super::plan(&format!("-X {golden}/telemetry_XY.w.tel -i 1 -f t.tmp"));
    assert_eq!(only_writes.rows[0].tests, [T::Write, T::Rewrite, T::Read, T::Reread]);
    let read = &only_writes.rows[0].workload.phases[2].tenants[0];
    assert_eq!((read.manner.replay.len(), read.io_size_bytes), (0, Bytes(4096)));
}

#[test]
fn children_begin_one_after_the_other_also_in_the_mix() {
    let delays = |text: &str| {
        let phase = phases(text).pop().unwrap();
        let all = phase.tenants.iter().map(|t| (t.begins_ns.0, t.manner.begin_step_ns.0));
        all.collect::<Vec<_>>()
    };
    assert_eq!(delays("-t 3 -d 100 -i 1"), [(0, 100_000)]);
    let even_and_odd = [(0, 200_000), (100_000, 200_000)];
    assert_eq!(delays("-t 4 -d 100 -i 0 -i 8"), even_and_odd);
    assert_eq!(delays("-t 4 -d 100 -i 0 -i 8 -+K 3"), [(0, 100_000), (300_000, 100_000)]);
}

#[test]
fn a_shared_file_is_that_of_the_first_child() {
    let shared = plan("-t 2 -+V -i 0 -F a b");
    let first = &shared.rows[0].workload.phases[0].tenants[0];
    assert_eq!(shared.files, ["a"]);
    assert_eq!((first.is_file_shared, first.file.as_str(), first.files.len()), (true, "a", 0));
    assert_eq!(first.lock, LockPolicy::None);
    let locked = tenant("-t 2 -+L -i 0", 0);
    assert_eq!((locked.lock, locked.file.as_str()), (LockPolicy::Record, "iozone.DUMMY.0"));
}

#[test]
fn files_may_lie_in_several_directories_and_names_in_a_list() {
    let apart = plan("-t 3 -i 0 -F src/a src/../src/b ../iolab-sim/c");
    assert_eq!(apart.directory, "src");
    assert_eq!(apart.files[..2], ["a", "b"], "the same directory, spelt otherwise");
    assert!(apart.files[2].starts_with('/') && apart.files[2].ends_with("/iolab-sim/c"));
    let list = std::env::temp_dir().join(format!("iolab-list-{}", std::process::id()));
    std::fs::write(&list, "a\n\n b\nc\n").unwrap();
    let listed = plan(&format!("-+R {} -t 2 -i 0", list.display()));
    std::fs::remove_file(&list).unwrap();
    assert_eq!(listed.files, ["a", "b"]);
}

#[test]
fn what_is_found_is_kept_or_only_read_if_that_is_asked_for() {
    assert_eq!(tenant("-i 0 -+N", 0).opening, Opening::Keep);
    assert_eq!(tenant("-i 0 -+N --on loop:1g", 0).opening, Opening::Create);
    assert_eq!(tenant("-t 2 -i 0", 0).opening, Opening::Create);
    assert_eq!(tenant("-t 2 -i 0 --compat", 0).opening, Opening::Keep, "children never truncate");
    let foreign = plan("-+E -i 1 -i 2 -f precious -s 64k");
    assert!(foreign.asked.is_read_only);
    assert_eq!(foreign.rows[0].tests, [T::Read, T::Reread, T::RandomRead]);
    for phase in &foreign.rows[0].workload.phases {
        assert!(phase.keeps_files && phase.tenants.iter().all(|t| !t.writes()));
        assert_eq!(phase.tenants[0].opening, Opening::Existing);
    }
}

#[test]
fn refinements_reach_the_workload() {
    let jumps: Vec<u64> =
        phases("-K -i 0 -i 1").iter().map(|p| p.tenants[0].manner.jumps_every).collect();
    assert_eq!(jumps, [0, 0, 100, 100]);
    assert_eq!(tenant("-m -i 0 -s 1m -r 64k", 0).manner.buffers, 256);
    assert_eq!(tenant("-B -+A 2 -i 0", 0).manner.advice, Some(Advice::Sequential));
    let pauses: Vec<u64> = phases("-+q 2 -i 0").iter().map(|p| p.pause_after_ns.0).collect();
    assert_eq!(pauses, [2_000_000_000; 2]);
    let burst = tenant("-+b 40k,5 -i 0 -i 1 -r 16k", 0);
    let pause_ns = Ns::from_ms(5);
    let wanted = Burst { bytes: Bytes(40 << 10), pause_ns, ..Burst::default() };
    assert_eq!(burst.manner.burst, Some(wanted));
    assert_eq!(burst.fsync, FsyncPolicy::Every { ops: 3 });
    assert_eq!(tenant("-+b 40k,5 -i 0 -i 1 -r 16k", 2).manner.burst, None, "reads have no bursts");
    assert_eq!(plan("-J 5 -i 0").show.paused, [T::Write, T::Rewrite]);
    assert_eq!(plan("-J 5 -+J -i 0").show.paused, []);
    assert_eq!(plan("-c -J 5 -i 0").show.paused, [T::Write, T::Rewrite], "the close is a call");
}

#[test]
fn shares_of_the_data_are_those_that_were_asked_for() {
    let content = |text: &str| plan(text).rows[0].workload.content;
    let wanted = Blend {
        granule_bytes: Bytes(64 << 10),
        across_percent: 20,
        everywhere_percent: 10,
        within_percent: 10,
        zero_percent: 30,
        chunk_bytes: Bytes(0),
        chunk_zero_percent: 0,
        seed: Seed(9),
        skew: 2,
    };
    let all = "-+w 40 -+y 25 -+C 25 -+a 50 -+S 9 -+W 2 -i 0 -s 1m -r 64k";
    assert_eq!(content(all), Content::Blend(wanted));
    assert_eq!(content("-+S 9 -i 0"), Content::Incompressible);
    assert_eq!(content("--compat -i 0"), Content::Zero);
    assert_eq!(plan("-+w 40 -i 0 -i 1").show.paused, [T::Write, T::Rewrite]);
}
