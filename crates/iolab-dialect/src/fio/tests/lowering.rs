//! Lowering of jobs: expected meaning of options.

use iolab_model::op::{Access, Advice, FlagName, RangeSync};
use iolab_model::{Bytes, Ns};
use iolab_workload::program::{
    Amount, Course, Deed, FileBy, FileSet, Fill, Node, Pace, Place, Program, Reuse,
};
use iolab_workload::spec::{
    Burst, Cpus, Direction, Flush, FsyncPolicy, Limit, LockPolicy, Opening, Pattern, Phase,
    Preallocation, ReadingBack, Tenant, WorkersAs,
};
use iolab_workload::verify::Verify;

use super::super::dialect::plan;
use super::super::host::There;
use super::super::logs::LogShow;
use super::super::plan::Plan;
use super::{Paper, words};

fn plan_of(text: &str) -> Plan {
    plan(&words(text), &Paper::default()).map_err(|e| e.to_string()).unwrap()
}

fn tenant(text: &str) -> Tenant {
    plan_of(&format!("--name=x {text}")).rows[0].workload.phases[0].tenants[0].clone()
}

fn ops(text: &str) -> u64 {
    let tenant = tenant(text);
    match tenant.limit {
        Limit::Once => tenant.ops_of_a_pass(),
        Limit::Ops { ops, .. } => ops,
        Limit::Time { .. } => 0,
    }
}

fn refusal(text: &str) -> String {
    plan(&words(text), &Paper::default()).expect_err("it is refused").to_string()
}

#[test]
fn amounts_are_those_of_the_recorded_sequences() {
    for (text, count) in [
        ("--size=10k", 2),
        ("--size=32k --io_size=48k", 12),
        ("--size=256k --bs=64k --io_size=100k", 2),
        ("--size=16k --io_size=40k", 10),
        ("--size=8k --loops=3", 6),
        ("--size=50% --filesize=64k", 8),
        ("--size=32k --number_ios=3", 3),
        ("--size=1m --io_size=2m --filesize=4m --bs=64k", 32),
        ("--size=8m --filesize=4m", 1024),
        // Loops beside other amounts, as counted by fio 3.33.
        ("--size=16k --io_size=32k --loops=2", 8),
        ("--size=16k --io_size=32k --loops=3", 12),
        ("--size=16k --io_size=40k --loops=2", 12),
        ("--size=16k --io_size=8k --loops=3", 6),
        ("--size=16k --number_ios=3 --loops=3", 9),
        ("--size=16k --number_ios=6 --loops=2", 8),
    ] {
        assert_eq!(ops(text), count, "{text}");
        let (program, _) = program_of(&format!("--name=x {text} --random_distribution=zipf:1.2"));
        let bytes = program.limit.total_bytes.map(|bytes| bytes.0);
        let unit = if text.contains("64k") && text.contains("--bs") { 65_536 } else { 4096 };
        assert_eq!(bytes, Some(count * unit), "{text}");
    }
}

#[test]
fn regions_are_where_fio_has_them() {
    let place = |text| {
        let region = tenant(text).region.unwrap();
        (region.from_bytes.0 >> 10, region.bytes.0 >> 10, region.step_bytes.0 >> 10)
    };
    assert_eq!(place("--size=16k --offset=8k"), (8, 16, 0));
    assert_eq!(place("--size=25% --offset=50% --filesize=4m --bs=64k"), (2048, 2048, 0));
    let clones = plan_of(
        "--name=q --filename=f --filesize=4m --numjobs=4 --offset_increment=1m --size=1m --bs=64k",
    );
    let tenants = &clones.rows[0].workload.phases[0].tenants;
    let from: Vec<u64> = tenants.iter().map(|t| t.region.unwrap().from_bytes.0 >> 20).collect();
    assert_eq!(from, [0, 1, 2, 3]);
    assert!(tenants.iter().all(|t| t.is_file_shared && t.file == "f"));
}

#[test]
fn options_become_fields() {
    let t =
        tenant("--rw=randwrite --size=1m --direct=1 --ioengine=libaio --iodepth=8 --sync=dsync");
    assert_eq!((t.pattern, t.direction), (Pattern::Shuffled, Direction::Write));
    assert_eq!((t.access, t.depth, t.opening), (Access::Direct, 8, Opening::Keep));
    assert!(t.is_preallocated);
    let t = tenant("--rw=randrw --rwmixread=70 --size=1m --norandommap --runtime=2 --time_based");
    assert_eq!((t.pattern, t.opening), (Pattern::Uniform, Opening::LaidOut));
    assert_eq!(t.direction, Direction::Mixed { read_share: 0.7 });
    assert_eq!(t.limit, Limit::Time { duration_ns: Ns(2_000_000_000) });
    let t = tenant("--rw=write --size=1m --fsync=8 --end_fsync=1 --rate=1m --thinktime=5");
    assert_eq!(
        t.fsync,
        FsyncPolicy::Between { ops: 8, is_ended: true, pass_ops: 0, is_repeated: false }
    );
    assert_eq!((t.rate_ops_per_s, t.think_ns), (Some(256.0), Ns(5000)));
}

/// Before, files were flushed once, at the end of all passes, and of several files by fdatasync(2)
/// where a job says `fdatasync=`. fio 3.33 does it in each pass, by fsync(2).
#[test]
fn what_was_written_is_flushed_at_the_end_of_each_pass() {
    let of = |text: &str| match tenant(&format!("--rw=write --bs=4k --size=16k {text}")).fsync {
        FsyncPolicy::Between { ops, is_ended, pass_ops, .. } => (ops, is_ended, pass_ops),
        _ => (0, false, 0),
    };
    assert_eq!(of("--fsync_on_close=1"), (0, true, 0));
    assert_eq!(of("--fsync_on_close=1 --io_size=40k"), (0, true, 4));
    assert_eq!(of("--end_fsync=1 --loops=2 --fsync=3"), (3, true, 4));
    assert_eq!(of("--end_fsync=1 --time_based --runtime=1"), (0, true, 4));
    assert_eq!(of("--fsync=3 --loops=2"), (3, false, 0));
    let (program, _) = program_of(
        "--name=a --rw=write --nrfiles=2 --size=16k --loops=2 --fdatasync=1 --end_fsync=1",
    );
    let course = program.steps[0].at.as_ref().and_then(|at| at.course.as_ref()).unwrap();
    assert!(course.flushes);
    assert_eq!((program.steps[1].does, program.after[0].does), (Deed::Fdatasync, Deed::Fsync));
}

/// Before, a pass with a skip that leaves the grid was as many transfers as the region holds.
#[test]
fn a_pass_ends_where_a_part_of_a_transfer_is_left() {
    let moved = |text: &str| {
        let (program, _) = program_of(&format!("--name=a --bs=4k --size=32k {text}"));
        program.limit.total_bytes.map(|bytes| bytes.0 / 4096)
    };
    for (text, count) in [
        ("--rw=read:4", 7),
        ("--rw=read:4 --loops=2", 14),
        ("--rw=read:4 --io_size=64k", 16),
        ("--rw=read:2k", 5),
        ("--rw=read:4k", 8),
        ("--rw=read:-2k", 8),
    ] {
        assert_eq!(moved(text), Some(count), "{text}");
    }
}

/// Before, several loops were refused, and one removed the files at the end, which fio 3.33 leaves.
#[test]
fn files_that_go_with_each_loop_are_made_anew_for_the_next_one() {
    let plan = plan_of("--name=x --rw=write --size=1m --unlink_each_loop=1");
    let phase = &plan.rows[0].workload.phases[0];
    assert!(phase.keeps_files && phase.tenants[0].program.is_none());
    let (program, _) = program_of("--name=x --rw=write --size=1m --unlink_each_loop=1 --loops=2");
    let course = program.steps[0].at.as_ref().and_then(|at| at.course.as_ref()).unwrap();
    assert!(course.renews && course.is_endless);
    let some = plan_of("--name=x --rw=write --size=4k --unlink=1 --name=y --rw=write --size=4k");
    assert!(some.rows[0].workload.phases[0].keeps_files);
    let tenants = &some.rows[0].workload.phases[0].tenants;
    assert_eq!([0, 1].map(|tenant| tenants[tenant].manner.is_unlinked), [true, false]);
}

/// Before, these engines were refused.
#[test]
fn blocks_and_lengths_are_changed_by_engines_of_their_own() {
    let of = |text: &str| {
        let (program, set) = program_of(&format!("--name=x --size=16k {text}"));
        let steps = program.all_nodes().filter(|node| node.at.is_some());
        let steps: Vec<_> = steps.map(|node| (node.does, node.keeps_length)).collect();
        (steps, program.limit.passes, set.fill)
    };
    let (steps, passes, fill) = of("--ioengine=falloc --rw=write --loops=3");
    assert_eq!((steps, passes, fill), (vec![(Deed::Allocate, false)], Some(12), Fill::Allocated));
    let (steps, ..) = of("--ioengine=falloc --rw=randrw");
    assert_eq!(steps, [(Deed::Allocate, true), (Deed::Allocate, false)]);
    let (steps, ..) = of("--ioengine=falloc --rw=trimwrite");
    assert_eq!(steps, [(Deed::Punch, false), (Deed::Allocate, false)]);
    let (steps, _, fill) = of("--ioengine=ftruncate --rw=write --fallocate=none");
    assert_eq!((steps, fill), (vec![(Deed::Truncate, false)], Fill::Sparse));
}

/// Before, a rate in bytes of several sizes was refused.
#[test]
fn a_rate_in_bytes_of_several_sizes_stays_in_bytes() {
    let (program, _) = program_of("--name=x --rw=randwrite --size=1m --bsrange=4k-64k --rate=2m");
    assert_eq!(program.pace, Pace::Bytes { bytes_per_s: 2_097_152.0 });
    let (fixed, _) = program_of("--name=x --rw=randwrite --size=1m --nrfiles=2 --rate=2m");
    assert_eq!(fixed.pace, Pace::Rate { passes_per_s: 512.0 });
}

/// Before, one rate of a mixed job was refused, and two had one clock.
#[test]
fn reads_and_writes_have_rates_of_their_own() {
    let pace = |more: &str| {
        let (program, _) = program_of(&format!("--name=x --size=64k --rw=randrw {more}"));
        (program.pace, program.steps[0].steps.len())
    };
    let of = |reads_per_s, writes_per_s, is_in_bytes| {
        (Pace::Directions { reads_per_s, writes_per_s, is_in_bytes }, 2)
    };
    assert_eq!(pace("--bs=4k,8k --rate=1m,2m"), of(1_048_576.0, 2_097_152.0, true));
    assert_eq!(pace("--rate_iops=100,50"), of(100.0, 50.0, false));
    assert_eq!(pace("--rate=,1m"), of(0.0, 256.0, false));
    assert_eq!(pace("--rate_iops=50,"), of(50.0, 0.0, false));
    // What is never drawn has no rate.
    assert_eq!(pace("--rate_iops=50, --rwmixread=100"), (Pace::Rate { passes_per_s: 50.0 }, 0));
    assert_eq!(pace("--rate_iops=50, --rwmixread=0"), (Pace::Closed, 0));
    let poisson = "--name=x --size=64k --rw=randrw --rate_process=poisson --rate_iops=5,";
    assert!(refusal(poisson).contains("write both"));
}

/// Before, these worked on one file with one size only.
#[test]
fn several_files_are_locked_paused_and_searched_as_one_is() {
    let program = |more: &str| {
        let plan = plan_of(&format!("--name=a --size=64k --nrfiles=2 {more}"));
        plan.rows[0].workload.phases[0].tenants[0].clone()
    };
    let read = program("--lockfile=exclusive");
    assert_eq!((read.lock, read.manner.burst), (LockPolicy::Exclusive, None));
    // Who keeps readers out must be allowed to write.
    assert!(!read.program.unwrap().steps[0].is_read_only);
    let pause = Burst { ops: 1, pause_ns: Ns(5000), ..Burst::default() };
    assert_eq!(program("--thinktime=5").manner.burst, Some(pause));
    let both = Burst { ops: 3, lasting_ns: Ns(9_000_000_000), burning_ns: Ns(2000), ..pause };
    let words = "--thinktime=5 --thinktime_iotime=9 --thinktime_blocks=3 --thinktime_spin=2";
    assert_eq!(program(words).manner.burst, Some(both));
    let paced = program("--thinktime=5 --rate_iops=9");
    assert_eq!(paced.program.unwrap().pace, Pace::Rate { passes_per_s: 9.0 });
    let ring = program("--ioengine=io_uring --iodepth=8 --iodepth_low=2 --force_async=4");
    assert_eq!((ring.manner.kernel_thread_every, ring.manner.refill_at), (4, Some(2)));
    let search = program("--ioengine=libaio --iodepth=8 --latency_target=1ms --latency_window=1s");
    assert_eq!(search.manner.rules.depth_search.map(|search| search.depth_max), Some(8));
    let names = "--name=a --size=64k --nrfiles=2 --ioengine=filestat --lockfile=exclusive";
    assert!(refusal(names).contains("no data are moved"));
}

#[test]
fn each_of_several_jobs_has_its_own_ramp_time() {
    let words = "--size=64k --time_based --runtime=5 --name=a --ramp_time=2 --name=b \
                 --ramp_time=1 --startdelay=3 --name=c --name=d --ramp_time=2";
    let plan = plan_of(words);
    let tenants = &plan.rows[0].workload.phases[0].tenants;
    let warm: Vec<u64> = tenants.iter().map(|it| it.manner.warm_up_ns.0 / 1_000_000_000).collect();
    assert_eq!(warm, [2, 1, 0, 2]);
}

#[test]
fn rings_have_all_that_is_asked_for() {
    let engine = |more: &str| {
        let plan = plan_of(&format!("--name=a --size=64k --ioengine=io_uring --direct=1 {more}"));
        plan.rows[0].workload.engine.clone()
    };
    assert_eq!(engine("--fixedbufs --registerfiles"), "io_uring_fixed");
    assert_eq!(engine("--fixedbufs --sqthread_poll"), "io_uring_fixed_sqpoll");
    assert_eq!(engine("--fixedbufs --hipri"), "io_uring_fixed_poll");
    assert_eq!(engine("--sqthread_poll --hipri"), "io_uring_sqpoll_poll");
    assert_eq!(engine("--registerfiles --sqthread_poll --hipri"), "io_uring_fixed_sqpoll_poll");
    let flags =
        |more: &str| -> Vec<FlagName> { tenant(&format!("--size=64k {more}")).flags.into() };
    assert_eq!(flags("--ioengine=pvsync2 --hipri"), [FlagName::HighPriority]);
    let both = "--ioengine=io_uring --nowait=1 --uncached=1";
    assert_eq!(flags(both), [FlagName::NoWait, FlagName::DoNotCache]);
    let (program, _) = program_of("--name=x --size=64k --ioengine=pvsync2 --hipri --nrfiles=2");
    assert!(!program.steps[0].flags.is_empty());
    assert!(
        refusal("--name=a --size=4k --nowait=1").contains("nowait does not go with ioengine=psync")
    );
    let pinned = tenant("--size=64k --ioengine=io_uring --sqthread_poll --sqthread_poll_cpu=1");
    assert_eq!(pinned.manner.submitter_cpu, Some(1));
    assert!(refusal("--name=a --size=4k --sqthread_poll_cpu=4000").contains("no CPU 4000"));
    assert!(
        refusal("--name=a --size=4k --hipri").contains("hipri does not go with ioengine=psync")
    );
}

/// Before, jobs of several engines at once were refused, and so was exitall of some of them.
#[test]
fn jobs_of_several_engines_run_at_once() {
    let plan = plan_of(
        "--size=8k --name=u --ioengine=io_uring --name=p --rw=write --verify=md5 --exitall \
         --name=c --ioengine=cpuio --cpuload=10 --runtime=1",
    );
    let [work, verify] = &plan.rows[0].workload.phases[..] else { panic!("two phases") };
    let own = |phase: &Phase| -> Vec<Option<String>> {
        phase.tenants.iter().map(|tenant| tenant.manner.engine.clone()).collect()
    };
    let engine = |name: &str| Some(name.to_owned());
    assert_eq!(work.engine, engine("io_uring"), "the first that touches files");
    assert_eq!(own(work), [None, engine("psync"), engine("null")]);
    assert_eq!((verify.engine.clone(), own(verify)), (engine("psync"), vec![None]));
    assert!(work.is_stonewalled, "exitall of one is that of all");
    assert_eq!(plan.rows[0].workload.engine, "io_uring");
}

/// Before, memory that clones share was refused, and so were other calls than stat(2).
#[test]
fn what_changes_nothing_is_noted() {
    for text in ["--mem=shm", "--iomem=mmapshared", "--stat_type=lstat"] {
        let plan = plan_of(&format!("--name=x --size=4k {text}"));
        assert!(plan.notes.iter().any(|note| note.contains("changes nothing here")), "{text}");
    }
}

/// Before, logs of several files or clones were refused.
#[test]
fn a_log_of_actions_has_all_files_and_clones() {
    let logs = |text: &str| plan_of(text).show.logs;
    let places = |log: &LogShow| -> Vec<(usize, usize)> {
        let all = log.clones.iter().flatten();
        all.map(|source| (source.first_path, source.first_target)).collect()
    };
    let clones = logs("--name=a --size=8k --numjobs=3 --write_iolog=l");
    assert_eq!(clones[0].targets, ["a.0.0", "a.1.0", "a.2.0"]);
    assert_eq!(places(&clones[0]), [(0, 0), (0, 1), (0, 2)]);
    let shared = logs("--name=a --size=8k --numjobs=2 --filename=f --write_iolog=l");
    assert_eq!((shared[0].targets.len(), places(&shared[0])), (1, vec![(0, 0), (0, 0)]));
    let files =
        logs("--name=b --nrfiles=3 --size=12k --name=a --filename=A:B --size=8k --write_iolog=l");
    assert_eq!((files[0].targets.join(" "), places(&files[0])), ("A B".into(), vec![(3, 0)]));
    let null =
        logs("--name=a --ioengine=null --filename=A:B --size=8k --numjobs=2 --write_iolog=l");
    // Each clone has a set of its own.
    assert_eq!((null[0].targets.join(" "), places(&null[0])), ("A B".into(), vec![(0, 0), (2, 0)]));
}

/// Before, `fallocate=keep` and `sync_file_range` were refused, and `fallocate=truncate` was none.
#[test]
fn room_is_made_and_ranges_are_synced_as_asked() {
    let made = |value: &str| {
        let t = tenant(&format!("--rw=write --size=16k --fallocate={value}"));
        (t.is_preallocated, t.manner.preallocation)
    };
    assert_eq!(made("keep"), (true, Preallocation::Reserved));
    assert_eq!(made("truncate"), (true, Preallocation::Length));
    assert_eq!(made("posix"), (true, Preallocation::Extended));
    assert!(!made("none").0 && !made("0").0);
    let t = tenant("--rw=write --size=16k --sync_file_range=wait_before,write:3");
    let parts = RangeSync { waits_before: true, writes: true, waits_after: false };
    assert_eq!((t.flush, t.manner.range_sync), (Flush::SyncFileRange, parts));
    assert_eq!(
        t.fsync,
        FsyncPolicy::Between { ops: 3, is_ended: false, pass_ops: 0, is_repeated: false }
    );
    let (program, _) =
        program_of("--name=a --rw=write --nrfiles=3 --size=64k --sync_file_range=write:4");
    let step = &program.steps[1];
    assert_eq!((step.does, step.range_sync.waits_after), (Deed::SyncFileRange, false));
    let both = "--name=a --size=4k --rw=write --fsync=1 --sync_file_range=write:1";
    assert!(refusal(both).contains("fsync and sync_file_range exclude each other"));
}

/// Before, these options were refused, or changed nothing (`fadvise_hint`, `thinktime_spin`).
#[test]
fn pauses_locks_niceness_and_advice_are_those_that_are_asked_for() {
    let burst = |text: &str| tenant(&format!("--size=64k {text}")).manner.burst;
    let pause = Burst { pause_ns: Ns(5000), ..Burst::default() };
    let timed = Burst { lasting_ns: Ns(9_000_000_000), ..pause };
    assert_eq!(burst("--thinktime=5 --thinktime_iotime=9"), Some(timed));
    let both = Burst { bytes: Bytes(12288), ..timed };
    assert_eq!(burst("--thinktime=5 --thinktime_iotime=9 --thinktime_blocks=3"), Some(both));
    let burning = Burst { bytes: Bytes(4096), burning_ns: Ns(2000), ..pause };
    assert_eq!(burst("--thinktime=5 --thinktime_spin=2"), Some(burning));
    let delayed = Burst { bytes: Bytes(4096), delays_schedule: true, ..pause };
    assert_eq!(burst("--thinktime=5 --rate_iops=9 --rate_ignore_thinktime"), Some(delayed));
    assert_eq!(burst("--thinktime=5"), None);
    let told = plan_of("--name=x --size=4k --thinktime_iotime=1").notes;
    assert!(told.iter().any(|note| note.contains("counts only with thinktime")), "{told:?}");

    let advice = |text: &str| tenant(&format!("--size=64k {text}")).manner.advice;
    assert_eq!(advice("--rw=randread"), Some(Advice::Random));
    assert_eq!(advice("--rw=write"), Some(Advice::Sequential));
    assert_eq!(advice("--rw=randread --fadvise_hint=sequential"), Some(Advice::Sequential));
    assert_eq!(advice("--rw=read --fadvise_hint=random"), Some(Advice::Random));
    assert_eq!(advice("--rw=read --fadvise_hint=0"), None);
    assert_eq!(advice("--rw=read --direct=1"), None);
    let (program, _) = program_of("--name=a --rw=randread --nrfiles=3 --size=64k");
    assert_eq!(program.steps[0].advice, Some(Advice::Random));

    let lock = |text: &str| tenant(&format!("--size=64k --lockfile={text}")).lock;
    assert_eq!(lock("exclusive"), LockPolicy::Exclusive);
    assert_eq!(lock("readwrite"), LockPolicy::ReadWrite);
    let deep = "--name=a --size=64k --lockfile=exclusive --ioengine=io_uring --iodepth=4";
    assert!(refusal(deep).contains("iodepth above 1"));

    assert_eq!(tenant("--size=4k --nice=-3").manner.nice, -3);
    assert!(refusal("--name=a --size=4k --nice=3 --thread").contains("threads have no nice value"));
    let ring = "--size=64k --ioengine=io_uring --force_async=4";
    assert_eq!(tenant(ring).manner.kernel_thread_every, 4);
    assert!(refusal("--name=a --size=4k --force_async=4").contains("ioengine=psync"));
}

#[test]
fn data_caches_and_ends_are_those_that_are_asked_for() {
    use iolab_model::target::Content;
    let plan = plan_of(
        "--rw=write --size=1m --buffer_compress_percentage=70 --exitall --name=a --name=b \
         --random_generator=lfsr",
    );
    let workload = &plan.rows[0].workload;
    assert!(matches!(workload.content, Content::Blend(blend) if blend.chunk_zero_percent == 70));
    assert!(workload.phases[0].is_stonewalled);
    assert_eq!(workload.phases[0].tenants[0].limit, Limit::Ops { ops: 256, within_ns: None });
    assert!(
        plan.notes.iter().any(|note| note.starts_with("random_generator=lfsr changes nothing"))
    );
    assert_eq!(plan_of("--name=a --size=4k --pre_read=1").cache, "warm");
    assert_eq!(plan_of("--name=a --size=4k").cache, "cold");
    assert_eq!(plan_of("--name=a --size=4k --invalidate=0").cache, "as_is");
    // Where jobs differ, each that asks for it drops its own file.
    let both = plan_of("--size=4k --name=a --invalidate=0 --name=b --name=w --rw=write");
    let tenants = &both.rows[0].workload.phases[0].tenants;
    let drops = [0, 1, 2].map(|tenant: usize| tenants[tenant].manner.drops_cache_first);
    assert_eq!((both.cache.as_str(), drops), ("as_is", [false, true, true]));
}

#[test]
fn the_cache_of_a_file_that_is_only_written_is_dropped_first_as_by_fio() {
    let first = |line: &str| {
        let plan = plan_of(&format!("--name=a --size=64k --ioengine=psync {line}"));
        plan.rows[0].workload.phases[0].tenants[0].manner.drops_cache_first
    };
    for line in ["--rw=write", "--rw=randwrite --overwrite=1", "--rw=write --loops=2"] {
        assert!(first(line), "{line}");
    }
    for line in [
        "--rw=write --invalidate=0",
        "--rw=randwrite --overwrite=1 --pre_read=1",
        "--rw=write --direct=1",
        "--rw=randtrim",
        // What is read follows `cache`.
        "--rw=read",
        "--rw=randrw",
    ] {
        assert!(!first(line), "{line}");
    }
}

#[test]
fn the_cache_is_dropped_at_each_pass_as_by_fio() {
    let every = |line: &str| {
        let plan = plan_of(&format!("--name=a --size=64k --ioengine=psync {line}"));
        plan.rows[0].workload.phases[0].tenants[0].manner.drops_cache_every
    };
    assert_eq!(every("--rw=read"), 0, "there is one pass");
    for line in [
        "--rw=read --time_based --runtime=1",
        "--rw=randrw --time_based --runtime=1",
        "--rw=randread --loops=3",
        "--rw=read --io_size=192k",
        "--rw=randread --norandommap=0 --loops=2",
    ] {
        assert_eq!(every(line), 16, "{line}");
    }
    for line in [
        "--rw=randread --norandommap --loops=3",
        "--rw=read --direct=1 --loops=3",
        "--rw=read --pre_read=1 --loops=3",
        "--rw=read --invalidate=0 --loops=3",
        "--rw=read --runtime=1",
    ] {
        assert_eq!(every(line), 0, "{line}");
    }
    let by_course = |line: &str| {
        let plan = plan_of(&format!("--name=a --size=64k --ioengine=psync {line}"));
        let tenant = &plan.rows[0].workload.phases[0].tenants[0];
        let steps = &tenant.program.as_ref().unwrap().steps;
        let course = |node: &Node| node.at.as_ref().and_then(|at| at.course.clone());
        steps.iter().filter_map(course).any(|course| course.drops_cache)
    };
    assert!(by_course("--rw=read --nrfiles=2 --time_based --runtime=1"));
    assert!(by_course("--rw=randread --bsrange=4k-8k --loops=3"));
    for line in [
        "--rw=read --nrfiles=2",
        "--rw=randread --random_distribution=zipf:1.2 --loops=3",
        "--rw=read --nrfiles=2 --direct=1 --loops=3",
        "--rw=read --zonemode=strided --zonesize=16k --zoneskip=16k --time_based --runtime=1",
    ] {
        assert!(!by_course(line), "{line}");
    }
}

#[test]
fn files_are_called_as_fio_calls_them() {
    let plan = plan_of("--name=w --rw=write --size=4k --numjobs=2 --group_reporting");
    assert_eq!(plan.files, ["w.0.0", "w.1.0"]);
    assert_eq!(plan.rows[0].workload.workers_as, WorkersAs::Processes);
    assert_eq!(plan.rows[0].workload.phases[0].tenants[0].workers, 2);
    let mut paper = Paper::default();
    paper.there.insert("/tmp".into(), There::Directory);
    let line = words("--name=a --size=4k --filename=/tmp/x --name=b --size=4k");
    let plan = super::super::dialect::plan(&line, &paper).map_err(|e| e.to_string()).unwrap();
    assert_eq!((plan.directory.as_str(), plan.files.len()), ("", 2));
    assert_eq!(plan.files, ["/cwd/b.0.0", "/tmp/x"]);
}

/// Before, `size=100%` of a device was refused.
#[test]
fn shares_of_a_device_are_those_of_its_size() {
    let mut paper = Paper::default();
    paper.there.insert("/dev/sdx".into(), There::Device(1 << 20));
    let of = |text: &str| {
        let text = format!("--on device:/dev/sdx --direct=1 --name=x --filename={text}");
        let plan = plan(&words(&text), &paper).map_err(|e| e.to_string());
        plan.map(|plan| plan.rows[0].workload.phases[0].tenants[0].clone())
    };
    let part = of("/dev/sdx --size=50% --offset=25%").unwrap().region.unwrap();
    assert_eq!((part.from_bytes, part.bytes), (Bytes(256 << 10), Bytes(512 << 10)));
    assert_eq!(of("/dev/sdx").unwrap().records(), 256, "without size= it is the whole");
    assert!(of("other --size=50%").unwrap_err().contains("in percent"));
}

#[test]
fn a_file_that_is_there_is_only_read() {
    let mut paper = Paper::default();
    paper.there.insert("f".into(), There::File(8192));
    let of = |text: &str| {
        let plan = plan(&words(text), &paper).map_err(|e| e.to_string()).unwrap();
        plan.rows[0].workload.phases[0].tenants[0].clone()
    };
    let t = of("--name=x --filename=f");
    assert_eq!((t.opening, t.records()), (Opening::Existing, 2));
    assert_eq!(of("--name=x --filename=f --size=16k").opening, Opening::LaidOut);
}

#[test]
fn groups_and_stonewalls_are_those_of_fio() {
    let plan = plan_of(
        "--size=1m --ioengine=null --name=a --numjobs=2 --group_reporting --name=b --new_group \
         --rw=write --group_reporting --name=c --stonewall --name=d --stonewall --startdelay=1",
    );
    let seen: Vec<_> = plan.show.units.iter().map(|u| (&*u.name, u.group, u.place.0)).collect();
    assert_eq!(seen, [("a", 0, 0), ("b", 1, 0), ("c", 2, 1), ("d", 3, 2)]);
    assert!(plan.notes.iter().any(|note| note.contains("counts from the stonewall")));
    assert_eq!(plan.rows[0].workload.workers_as, WorkersAs::Threads, "null shares no files");
}

#[test]
fn what_is_written_is_read_again_to_verify() {
    let plan = plan_of("--name=v --rw=randwrite --size=1m --verify=crc32c --filename=f");
    let phases = &plan.rows[0].workload.phases;
    assert_eq!(phases.len(), 2);
    assert_eq!(phases[1].tenants[0].direction, Direction::Read);
    assert_eq!(plan.show.units[0].verified, Some((1, 0)));
    assert!(plan.rows[0].workload.verify.is_on());
}

#[test]
fn of_a_job_that_also_reads_its_writes_are_read_again() {
    let job = "--name=v --rw=randrw --size=1m --verify=crc32c --filename=f";
    let verifier = |more: &str| {
        let plan = plan_of(&format!("{job} {more}"));
        let phases = &plan.rows[0].workload.phases;
        assert_eq!((phases.len(), plan.show.units[0].verified), (2, Some((1, 0))), "{more}");
        phases[1].tenants[0].clone()
    };
    let whole = verifier("--rwmixread=70");
    assert_eq!(whole.direction, Direction::Reread { read_share: 0.7 });
    assert_eq!((whole.limit, whole.name.as_str()), (Limit::Once, "v"));
    assert!(whole.manner.verified.may_be_foreign, "the file may be there before");
    assert_eq!(verifier("--loops=3").limit, Limit::Ops { ops: 768, within_ns: None });
    let timed = verifier("--runtime=5 --time_based");
    assert_eq!((timed.direction, timed.limit), (Direction::Read, Limit::Once));
    let cut = plan_of(
        "--name=v --rw=write --size=1m --verify=md5 --exitall --name=w --size=4k --exitall",
    );
    let verifier = &cut.rows[0].workload.phases[1].tenants[0];
    assert!(verifier.manner.verified.may_be_foreign, "it may end with the other job");
    assert!(cut.notes.iter().any(|note| note.contains("verify with exitall")), "{:?}", cut.notes);
    let own = tenant("--rw=rw --size=64k --verify=md5 --verify_backlog=3").manner.read_back;
    assert_eq!(own, Some(ReadingBack { after_ops: 3, batch_ops: 3 }));
}

#[test]
fn each_job_has_cpus_of_its_own() {
    let plan = plan_of(
        "--name=a --size=4k --cpus_allowed=0 --name=b --size=4k --cpus_allowed=0-1 --name=c \
         --size=64k --bsrange=4k-8k --cpumask=2 --cpus_allowed_policy=split --name=d --size=4k",
    );
    let cpus = plan.rows[0].workload.phases[0].tenants.iter().map(|tenant| {
        let Cpus { numbers, is_split } = &tenant.manner.cpus;
        (numbers.clone(), *is_split)
    });
    let expected = [(vec![0], false), (vec![0, 1], false), (vec![1], true), (vec![], false)];
    assert_eq!(cpus.collect::<Vec<_>>(), expected);
    assert!(plan.rows[0].workload.pin_cpus.is_empty());
}

#[test]
fn a_verification_of_nothing_reads_and_compares_nothing() {
    let plan = plan_of("--name=v --rw=write --size=64k --verify=null");
    let workload = &plan.rows[0].workload;
    assert_eq!((workload.phases.len(), workload.verify), (2, Verify::None));
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
    let reader = plan_of("--name=v --rw=read --size=64k --verify=null");
    assert_eq!(reader.rows[0].workload.phases.len(), 1);
}

#[test]
fn what_a_program_has_written_is_read_again() {
    let plan = plan_of(
        "--name=v --rw=randwrite --nrfiles=3 --size=96k --bsrange=4k-16k --fsync=2 --end_fsync=1 \
         --verify=md5",
    );
    let phases = &plan.rows[0].workload.phases;
    let [writer, verifier] = [0, 1].map(|phase| {
        let tenant: &Tenant = &phases[phase].tenants[0];
        tenant.program.clone().expect("it is a program")
    });
    assert_eq!(verifier.steps.len(), 1, "no flushes");
    assert_eq!(verifier.draws_of.as_ref(), Some(&phases[0].name));
    assert!(verifier.after.is_empty() && verifier.moves(false) && !verifier.moves(true));
    let [there, again] = [&writer, &verifier].map(|of| of.steps[0].at.clone().unwrap());
    let course = again.course.clone().map(|own| Course { flushes: true, ..own });
    assert_eq!(there, Place { course, ..again }, "the same places, and no flushes between passes");
    assert_eq!(verifier.limit.total_bytes, writer.limit.total_bytes);
    assert!(plan.rows[0].workload.verify.is_on());
    let backlog =
        plan_of("--name=v --rw=write --nrfiles=2 --size=64k --verify=md5 --verify_backlog=2");
    assert_eq!(backlog.rows[0].workload.phases.len(), 2);
    assert!(backlog.notes.iter().any(|note| note.contains("all is read back in the end")));
    let mixed =
        plan_of("--name=v --rw=randrw --nrfiles=3 --size=96k --bsrange=4k-16k --verify=md5");
    assert!(mixed.notes.iter().any(|note| note.contains("each block of its files is read once")));
    let all = mixed.rows[0].workload.phases[1].tenants[0].program.clone().unwrap();
    assert_eq!(all.limit.total_bytes, Some(Bytes(96 << 10)));
    assert_eq!(all.steps[0].size_bytes, Some(Amount::Constant(4096)));
}

#[test]
fn blocks_that_are_verified_are_those_that_are_asked_for() {
    let verified = |more: &str| {
        tenant(&format!("--rw=write --size=1m --bs=12k --verify=md5 {more}")).manner.verified
    };
    let bytes = |more| verified(more).bytes.map(|bytes| bytes.0);
    assert_eq!(bytes(""), None);
    assert_eq!(bytes("--verify_interval=512"), Some(512));
    assert_eq!(bytes("--verify_interval=6k"), Some(6144));
    assert_eq!(bytes("--verify_interval=5k"), Some(12_288), "one that divides nothing is bs");
    assert_eq!(bytes("--verify_interval=1m"), Some(12_288));
    assert_eq!(verified("--verify_offset=4048").header_at_bytes, Bytes(4048));
    assert!(!verified("").are_kept && verified("--verify_dump").are_kept);
    assert!(plan_of("--name=a --rw=write --size=4k --verify=md5 --verify_dump").show.are_dumped);
    assert!(!plan_of("--name=a --size=4k --verify_dump").show.are_dumped);
    let job = "--name=a --rw=write --size=64k --verify=md5";
    assert!(refusal(&format!("{job} --verify_interval=256")).contains("multiple of 512"));
    for at in ["40", "4049"] {
        let told = refusal(&format!("{job} --verify_offset={at}"));
        assert!(told.contains("write 48 to 4048, for blocks of 4096 bytes"), "{told}");
    }
}

#[test]
fn a_backlog_is_read_back_by_the_writer_itself() {
    let job = "--name=v --rw=randwrite --size=1m --verify=crc32c --filename=f";
    let plan = plan_of(&format!("{job} --verify_backlog=8 --verify_backlog_batch=4"));
    let phases = &plan.rows[0].workload.phases;
    assert_eq!((phases.len(), plan.show.units[0].verified), (1, None));
    let rule = ReadingBack { after_ops: 8, batch_ops: 4 };
    assert_eq!(phases[0].tenants[0].manner.read_back, Some(rule));
    let whole = tenant("--rw=write --size=1m --verify=md5 --verify_backlog=8").manner.read_back;
    assert_eq!(whole, Some(ReadingBack { after_ops: 8, batch_ops: 8 }));
    let text = "--rw=write --size=1m --verify=md5 --verify_backlog=8 --do_verify=0";
    assert_eq!(tenant(text).manner.read_back, None);
}

#[test]
fn a_saved_state_limits_what_is_verified_and_gives_the_seed() {
    let saving = "--name=v --rw=write --size=64k --verify=md5 --verify_state_save=1 --numjobs=2 \
                  --group_reporting --name=w --rw=write --size=64k";
    let states = plan_of(saving).show.states;
    let names: Vec<&str> = states.iter().map(|one| one.file.as_str()).collect();
    assert_eq!(names, ["local-v-0-verify.state", "local-v-1-verify.state"]);
    assert_eq!((states[1].tenant, states[1].worker, states[1].state.write_bytes), (1, 0, 4096));
    assert!(plan_of("--name=v --rw=write --size=64k --verify=md5").show.states.is_empty());

    let mut paper = Paper::default();
    paper.there.insert("f".into(), There::File(65_536));
    let mut told = |text: &str, content: Option<String>| {
        paper.files.clear();
        paper.files.extend(content.map(|content| ("local-v-0-verify.state".to_owned(), content)));
        let all =
            format!("--name=v --filename=f --size=64k --verify=md5 --verify_state_load {text}");
        plan(&words(&all), &paper).map_err(|error| error.to_string())
    };
    let state = |seed: u64, bytes: u64, writes: u64| {
        format!(
            "{{\"iolab_verify_state\":1,\"seed\":{seed},\"write_bytes\":{bytes},\
             \"writes\":{writes}}}"
        )
    };
    for (text, writes, expected) in [("--rw=randread", 5, 5), ("--rw=write --verify_only", 99, 16)]
    {
        let plan = told(text, Some(state(77, 4096, writes))).unwrap();
        let workload = &plan.rows[0].workload;
        assert_eq!(workload.seed.0, 77);
        let limit = workload.phases[0].tenants[0].limit;
        assert_eq!(limit, Limit::Ops { ops: expected, within_ns: None });
    }
    for (text, content, part) in [
        ("--rw=read", None, "local-v-0-verify.state cannot be read"),
        ("--rw=read", Some("garbage".to_owned()), "is no state that iolab has saved"),
        ("--rw=read", Some(state(1, 8192, 3)), "with writes of 8192 bytes"),
        ("--rw=write", Some(state(1, 4096, 3)), "for jobs that only read"),
    ] {
        let error = told(text, content).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

/// Before, the reads after a writing job ended at its first wrong block, whatever
/// `continue_on_error` said.
#[test]
fn wrong_blocks_end_the_verification_of_a_writer_as_was_asked_for() {
    let job = "--name=v --rw=write --size=1m --verify=crc32c --verify_interval=1k";
    let reader = |more: &str| {
        let manner =
            plan_of(&format!("{job} {more}")).rows[0].workload.phases[1].tenants[0].manner.clone();
        assert_eq!(manner.verified.bytes, Some(Bytes(1024)));
        manner.rules.tolerance.map(|tolerance| (tolerance.mismatches, tolerance.ends_at_mismatch))
    };
    assert_eq!(reader(""), None);
    assert_eq!(reader("--verify_fatal"), None);
    assert_eq!(reader("--continue_on_error=verify"), Some((true, false)));
    assert_eq!(reader("--continue_on_error=verify --verify_fatal"), Some((true, true)));
}

#[test]
fn what_jobs_cannot_do_together_is_refused_where_it_stands() {
    for (text, part) in [
        (
            "--size=64k --name=a --ioengine=null --name=b --rw=write --verify=md5",
            "beside job b, which verifies",
        ),
        (
            "--size=64k --name=a --ioengine=null --nrfiles=2 --name=b",
            "several files or sizes without any, beside jobs with files",
        ),
        ("--name=a --size=4k --nrfiles=8192 --numjobs=4000", "leave none for each"),
        ("--name=a --size=1g --nrfiles=20000 --ioengine=null", "open at once"),
        ("--name=a --size=1g --nrfiles=16384 --numjobs=4000", "more than 1048576 files"),
        (
            "--rw=write --size=4k --name=a --verify=md5 --name=b --verify=pattern \
             --verify_pattern=0xab --stonewall",
            "verified by a pattern and others are not",
        ),
    ] {
        let told = refusal(text);
        assert!(told.contains(part), "{text}: {told}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_where_it_stands() {
    for (text, part) in [
        ("--name=a --size=4k --rw=randread:x", "no number of transfers"),
        ("--name=a --size=4k --nrfiles=4", "size too small"),
        ("--name=a --size=64k --rw=rw --verify=md5 --verify_only", "which blocks it has written"),
        (
            "--name=a --ioengine=filecreate --filesize=4k --rw=write --verify=md5",
            "nothing to do with ioengine=filecreate",
        ),
        ("--name=a --size=64k --rw=trim --ramp_time=1", "ramp_time of operations on names"),
        ("--name=a --size=64k --filename=a:a", "comes twice"),
        ("--name=a --size=64k --nrfiles=2 --filename_format=x", "several files are called x"),
        ("--name=a --size=64k --rate_process=poisson", "needs a rate"),
        ("--name=a --size=64k --bsrange=4k-8k --rate=1m --rate_process=poisson", "a rate in bytes"),
        ("--name=a --size=64k --rw=trim --bsrange=4k-8k", "trims of several sizes"),
        ("--name=a --size=64k --rw=trimwrite --fsync=2", "flushes between trims"),
        ("--name=a --size=64k --rw=trim --readonly", "--readonly"),
        ("--name=a --size=64k --zonesize=8k", "zonemode=strided"),
        ("--name=a --size=64k --zonemode=strided", "needs zonesize"),
        ("--name=a --size=64k --zonemode=zbd", "zoned devices"),
        ("--name=a --rw=write --size=64k --buffer_pattern=abc", "'abc' is no pattern"),
        ("--name=a --size=64k --rate=1m --rate_min=2m", "above the rate itself"),
        ("--output=./f --name=a --size=64k --filename=f", "is a file that the jobs work on"),
        ("--name=a --rw=write --size=64k --buffer_pattern=1 --zero_buffers", "beside zero_buffers"),
        (
            "--name=a --rw=write --size=64k --dedupe_percentage=20 --verify=md5",
            "beside buffer contents",
        ),
        ("--name=a --read_iolog=none.log", "none.log: it cannot be read"),
        ("--name=a --size=4k --write_hist_log=x", "log_hist_msec"),
        ("--name=a --size=8k --rw=read --unlink_each_loop=1 --loops=2", "find no file"),
        (
            "--name=a --size=8k --rw=write --unlink_each_loop=1 --loops=2 --filename=f --numjobs=2",
            "clones that share a file",
        ),
        ("--name=a --ioengine=ftruncate --rw=read --size=8k", "only writes"),
        ("--name=a --ioengine=falloc --rw=write --size=64k --bsrange=4k-8k", "several sizes"),
        ("--name=a --ioengine=falloc --rw=write --size=4k --write_bw_log=x", "ioengine=falloc"),
        ("--name=a --ioengine=filestat --filesize=4k --write_lat_log=x", "ioengine=filestat"),
        ("--name=a --size=4k --bs=64k", "size too small"),
        ("--name=a --rw=read", "you need to specify size="),
        ("--name=a --size=4k --ioengine=rbd", "there is no network"),
        ("--name=a --size=4k --rw=write --fsync=1 --fdatasync=1", "fsync and fdatasync exclude"),
        ("--name=a --size=4k --cpus_allowed=7", "there is no CPU 7"),
        ("--size=8k --name=a --invalidate=0 --name=b --nrfiles=2", "invalidate differs"),
        ("--name=a --size=4k --iodepth=4 --warnings-fatal", "whatever iodepth says"),
        ("--name=a --size=4k --exec_prerun=reboot", "starts no commands unasked"),
        ("--name=a --size=4k --exec_postrun=reboot", "add --allow-exec"),
        ("--name=a --size=4k --ioscheduler=none --name=b --size=4k", "ioscheduler of job b"),
        (
            "--name=a --size=4k --exitall --exit_what=all --name=b --size=4k --stonewall",
            "exit_what=all is not done where jobs follow",
        ),
        (
            "--name=a --size=8k --ioengine=libaio --direct=1 --iodepth=2 --thinktime=5 \
             --thinktime_blocks_type=issue",
            "with several under way",
        ),
    ] {
        let told = refusal(text);
        assert!(told.contains(part), "{text}: {told}");
    }
}

/// The program of the only tenant.
fn program_of(text: &str) -> (Program, FileSet) {
    let plan = plan_of(text);
    let workload = &plan.rows[0].workload;
    assert_eq!(workload.workers_as, WorkersAs::Threads);
    let program = workload.phases[0].tenants[0].program.clone().expect("it is a program");
    (program, workload.file_sets[0].clone())
}

#[test]
fn what_a_stream_cannot_say_is_a_program() {
    let (program, set) =
        program_of("--name=a --rw=write --nrfiles=3 --size=64k --fsync=4 --numjobs=2");
    assert_eq!(set.tree.names.len(), 3, "each clone is told for itself");
    // 64k over 3 files with 4k transfers: 5 each.
    assert_eq!(program.limit.total_bytes, Some(Bytes(15 * 4096)));
    assert_eq!(program.steps.len(), 2, "a write and a flush");
    let (program, set) = program_of(
        "--name=a --rw=write --nrfiles=3 --size=64k --numjobs=2 --group_reporting --bs=4k",
    );
    assert_eq!(set.tree.names[..2], ["a.0.0", "a.1.0"], "the first of each clone");
    assert!(program.steps[0].file.as_ref().is_some_and(|file| file.is_own));
    let (program, _) = program_of(
        "--name=a --rw=randrw --bssplit=4k/50:64k/50 --size=8m --io_size=1m --ioengine=null \
         --random_distribution=zipf:1.2 --rwmixread=70",
    );
    assert_eq!(program.limit.total_bytes, Some(Bytes(1 << 20)));
    let weights: Vec<f64> = program.steps[0].steps.iter().map(|step| step.weight).collect();
    assert!((weights[0] - 0.7).abs() < 1e-9 && (weights[1] - 0.3).abs() < 1e-9, "{weights:?}");
    let (program, _) = program_of("--name=a --rw=read:4k --size=1m --ioengine=null");
    let at = program.steps[0].at.as_ref().and_then(|at| at.course.as_ref()).unwrap();
    assert_eq!((at.skip_bytes, at.picked_percent), (4096, 0));
    let (program, _) = program_of(
        "--name=a --rw=randread --size=1m --rate_iops=100 --rate_process=poisson --time_based \
         --runtime=1",
    );
    assert_eq!(program.pace, Pace::Poisson { passes_per_s: 100.0 });
    assert_eq!(program.limit.total_bytes, None);
    let (program, set) = program_of("--name=a --ioengine=filecreate --nrfiles=5 --filesize=4k");
    assert_eq!((program.limit.passes, set.existing_percent as u64), (Some(5), 0));
}

/// Before, `end_fsync` beside several files was refused.
#[test]
fn each_file_of_a_clone_is_flushed_once_at_its_end() {
    for word in ["--end_fsync=1", "--fsync_on_close=1"] {
        let (program, _) =
            program_of(&format!("--name=a --rw=write --nrfiles=3 --size=64k {word}"));
        let [last] = &program.after[..] else { panic!("one step follows: {:?}", program.after) };
        let file = last.file.as_ref().expect("it has a file");
        assert_eq!((last.does, file.by), (Deed::Fsync, FileBy::Own));
        assert_eq!(last.times, Some(Amount::Constant(3)));
    }
    let (program, _) = program_of("--name=a --rw=write --bsrange=4k-8k --size=64k --end_fsync=1");
    assert_eq!(program.after[0].times, None);
    assert_eq!(program.after[0].file.as_ref().map(|file| file.by), Some(FileBy::Same));
}

#[test]
fn commands_and_a_scheduler_are_handed_on() {
    let plan = plan_of(
        "--allow-exec --ioscheduler=bfq --name=a/b --filename=x --size=4k --numjobs=2 \
         --exec_prerun=true --exec_postrun=sync",
    );
    let seen: Vec<_> = plan.show.commands.iter().map(|one| (&*one.file, one.is_before)).collect();
    assert_eq!(seen, [("a_b.prerun.txt", true), ("a_b.postrun.txt", false)]);
    assert_eq!((&*plan.show.commands[0].line, plan.show.commands[0].times), ("true", 2));
    assert_eq!(plan.show.scheduler.as_deref(), Some("bfq"));
    let without = plan_of("--name=a --size=4k").show;
    assert!(without.commands.is_empty() && without.scheduler.is_none());
}

#[test]
fn a_range_of_delays_is_divided_among_the_clones() {
    let begins = |text: &str| -> Vec<(u64, u64)> {
        let plan = plan_of(text);
        let tenants = &plan.rows[0].workload.phases[0].tenants;
        let of = |t: &Tenant| (t.begins_ns.0 / 1_000_000, t.manner.begin_step_ns.0 / 1_000_000);
        tenants.iter().map(of).collect()
    };
    assert_eq!(begins("--name=a --size=4k --startdelay=2"), [(2000, 0)]);
    let range = "--name=a --size=4k --startdelay=2-6 --numjobs=2";
    assert_eq!(begins(range), [(3000, 0), (5000, 0)]);
    assert_eq!(begins(&format!("{range} --group_reporting")), [(3000, 2000)]);
    // Programs begin later as streams do.
    let of_files = "--name=a --size=4k --nrfiles=2 --startdelay=1 --filesize=4k";
    assert_eq!(begins(of_files), [(1000, 0)]);
}

#[test]
fn sizes_may_be_of_any_bytes_or_follow_the_order() {
    use iolab_workload::program::{Amount, Spread};
    let step = |text: &str| {
        let (program, _) = program_of(text);
        match program.steps[0].size_bytes.clone() {
            Some(Amount::Drawn(Spread::Uniform { from, to, step })) => (from, to, step),
            other => panic!("{other:?}"),
        }
    };
    let of = "--name=a --size=1m --bsrange=4k-9k";
    assert_eq!(step(of), (4096, 8192, 4096));
    assert_eq!(step(&format!("{of} --bs_unaligned")), (4096, 9216, 1));
    assert_eq!(
        tenant("--size=64k --bs=4k,8k --bs_is_seq_rand --rw=randread").io_size_bytes.0,
        8192
    );
    assert_eq!(tenant("--size=64k --bs=4k,8k --bs_is_seq_rand --rw=write").io_size_bytes.0, 4096);
    let mixed = tenant("--size=64k --bs=4k,8k --bs_is_seq_rand --rw=randrw");
    assert_eq!(mixed.io_size_bytes.0, 8192, "both directions");
}

#[test]
fn what_is_done_otherwise_is_noted() {
    let plan = plan_of("--name=a --size=64k --rw=write --verify=md5 --verify_async=2");
    let notes = plan.notes.join("\n");
    assert!(notes.contains("verify_async=2 changes nothing"), "{notes}");
}

#[test]
fn trims_are_discards_and_a_pass_is_a_block() {
    use iolab_workload::program::Deed;
    let (program, set) = program_of("--name=a --rw=randtrim --size=64k --bs=4k,4k,8k");
    assert_eq!(program.steps[0].does, Deed::Discard);
    assert_eq!((program.steps.len(), program.limit.passes), (1, Some(8)));
    assert_eq!(set.fill, iolab_workload::program::Fill::Data, "there is something to trim");
    let (program, _) = program_of("--name=a --rw=trimwrite --size=64k");
    let done: Vec<Deed> = program.steps.iter().map(|step| step.does).collect();
    assert_eq!((done, program.limit.passes), (vec![Deed::Discard, Deed::Write], Some(16)));
    assert_eq!(program.steps[1].at.as_ref().and_then(|at| at.of.as_deref()), Some("trim"));
}

#[test]
fn zones_and_flows_are_taken_over() {
    let (program, _) = program_of(
        "--name=a --size=256k --zonemode=strided --zonesize=8k --zonerange=32k --zoneskip=24k \
         --flow=3 --flow_id=7",
    );
    let zones = program.steps[0].at.as_ref().and_then(|at| at.course.as_ref()?.zones).unwrap();
    let bytes = [zones.moved_bytes, zones.bytes, zones.skip_bytes].map(|bytes| bytes.0 >> 10);
    assert_eq!(bytes, [8, 32, 24]);
    let flow = program.flow.unwrap();
    assert_eq!((flow.weight, flow.name), (3, "flow7".to_owned()));
    let (program, _) = program_of("--name=a --size=64k --zonemode=strided --zonesize=8k");
    let zones = program.steps[0].at.as_ref().and_then(|at| at.course.as_ref()?.zones).unwrap();
    assert_eq!(zones.bytes, zones.moved_bytes);
}

#[test]
fn aligned_places_are_drawn_without_a_map() {
    use iolab_workload::program::Pick;
    let (program, _) =
        program_of("--name=a --rw=randread --size=1m --bssplit=512/50:8k/50 --ba=4k");
    let at = program.steps[0].at.as_ref().unwrap();
    assert_eq!((at.unit_bytes, &at.pick), (Some(Bytes(4096)), &Some(Pick::Uniform)));
    assert!(refusal("--name=a --rw=randread --size=1m --ba=0").contains("0 bytes"));
}

#[test]
fn what_is_written_is_what_was_asked_for() {
    use iolab_model::target::{BytePattern, Content};
    let content = |text: &str| {
        plan_of(&format!("--name=a --rw=write --size=1m {text}")).rows[0].workload.content
    };
    let pattern = BytePattern::of(&[0xde, 0xad]).unwrap();
    assert_eq!(content("--buffer_pattern=0xdead"), Content::Pattern(pattern));
    let blend = |text: &str| match content(text) {
        Content::Blend(blend) => {
            (blend.within_percent, blend.everywhere_percent, blend.chunk_zero_percent)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(blend("--dedupe_percentage=30"), (30, 0, 0));
    assert_eq!(blend("--dedupe_percentage=30 --dedupe_global=1"), (0, 30, 0));
    assert_eq!(blend("--dedupe_percentage=50 --buffer_compress_percentage=50"), (50, 0, 50));
    assert_eq!(content("--zero_buffers"), Content::Zero);
    // What is only read is made of it.
    let read = plan_of("--name=a --rw=read --size=1m --zero_buffers");
    assert_eq!(read.rows[0].workload.content, Content::Zero);
}

#[test]
fn each_job_writes_its_own_data() {
    use iolab_model::target::Content;
    let plan = plan_of(
        "--size=64k --name=a --rw=write --name=b --rw=write --zero_buffers --name=c --rw=read \
         --buffer_compress_percentage=50 --bsrange=4k-8k",
    );
    let workload = &plan.rows[0].workload;
    let [a, b, c] = [0, 1, 2].map(|tenant| workload.phases[0].tenants[tenant].manner.content);
    assert_eq!((workload.content, a, b), (Content::Incompressible, None, Some(Content::Zero)));
    assert!(matches!(c, Some(Content::Blend(blend)) if blend.chunk_zero_percent == 50));
    assert_eq!(workload.file_sets.len(), 1);
    assert_eq!(workload.file_sets[0].content, c);
    let verified = "--size=64k --rw=write --name=a --verify=md5 --name=b --zero_buffers";
    assert!(refusal(verified).contains("zero_buffers of job b"));
}

#[test]
fn a_recorded_log_is_a_recorded_stream() {
    use iolab_workload::program::Deed::{Fsync, Read, Write};
    use iolab_workload::program::{Pace, RecordedFormat};
    let log = "fio version 3 iolog\n0 d add\n0 d open\n100 d write 0 4096\n20000 d read 4096 8192\n\
               60000 d sync 0 0\n120000 d read 16384 4096\n125000 d close\n";
    let two = "fio version 2 iolog\nd read 0 512\ne write 512 512\n";
    let paper = Paper::with(&[("l", log), ("two", two), ("s", "fio version 2 iolog\nd sync\n")]);
    let of = |text: &str| {
        let plan = plan(&words(text), &paper).unwrap();
        let phase = &plan.rows[0].workload.phases[0];
        let program = phase.tenants[0].program.clone().unwrap();
        (plan.files.clone(), phase.tenants.len(), program)
    };
    let (files, _, program) = of("--name=a --read_iolog=l --replay_time_scale=50");
    let recorded = program.recorded.unwrap();
    let content = recorded.content.unwrap();
    assert_eq!((files, content.does), (vec!["d".to_owned()], vec![Write, Read, Fsync]));
    assert_eq!((content.ops, content.end_bytes.0), (4, 20480));
    assert_eq!((recorded.file.to_str(), recorded.format), (Some("/cwd/l"), RecordedFormat::Iolog));
    assert_eq!(program.pace, Pace::Recorded { speed: 0.5 });
    let (files, _, program) =
        of("--name=a --read_iolog=l --replay_no_stall=1 --replay_redirect=e --replay_skip=sync \
         --replay_scale=2 --replay_align=4k");
    let content = program.recorded.unwrap().content.unwrap();
    assert_eq!((files, content.does), (vec!["e".to_owned()], vec![Write, Read]));
    assert_eq!((content.end_bytes.0, program.pace), (12288, Pace::Closed));
    assert_eq!(of("--name=a --read_iolog=two").0, ["d", "e"]);
    // Each clone does it again, also where they are told together.
    assert_eq!(of("--name=a --read_iolog=l --numjobs=3 --group_reporting").1, 3);
    for (text, part) in [
        ("--readonly --name=a --read_iolog=l", "writes, but --readonly"),
        ("--name=a --read_iolog=s", "s has no transfer"),
        ("--name=a --read_iolog=l --replay_align=3", "no power of 2"),
    ] {
        let told = plan(&words(text), &paper).unwrap_err().to_string();
        assert!(told.contains(part), "{text}: {told}");
    }
}

#[test]
fn logs_are_numbered_through_the_whole_run() {
    let plan = plan_of(
        "--name=a --size=4k --numjobs=2 --group_reporting --write_bw_log=x --log_avg_msec=500 \
         --name=b --size=4k --write_lat_log --stonewall --name=c --size=4k --write_iolog=i",
    );
    let named: Vec<&str> = plan.show.logs.iter().map(|log| log.file.as_str()).collect();
    assert!(named.starts_with(&["x_bw.1.log", "x_bw.2.log"]), "{named:?}");
    assert!(named.ends_with(&["i"]), "{named:?}");
}

#[test]
fn submission_and_refilling_follow_the_batch_options() {
    let manner = |text: &str| {
        let t = tenant(&format!("--size=1m --direct=1 --ioengine=libaio --iodepth=16 {text}"));
        (t.manner.submission_group, t.manner.refill_at)
    };
    assert_eq!(manner(""), (1, None));
    assert_eq!(manner("--iodepth_batch_submit=16 --iodepth_batch_complete_max=16"), (16, None));
    assert_eq!(manner("--iodepth_batch=0"), (16, None));
    assert_eq!(manner("--iodepth_batch_complete_min=4"), (1, Some(12)));
    assert_eq!(manner("--iodepth_low=8"), (1, Some(8)));
    assert_eq!(manner("--iodepth_low=8 --iodepth_batch_complete=16"), (1, Some(0)));
    let psync = tenant("--size=1m --iodepth=16 --iodepth_low=2");
    assert_eq!((psync.manner.submission_group, psync.manner.refill_at), (0, None));
}

#[test]
fn a_job_of_the_cpu_runs_beside_others_and_touches_no_file() {
    let both = plan_of(
        "--name=burn --ioengine=cpuio --cpuload=25 --cpuchunks=1000 --runtime=2 --name=io \
         --rw=read --size=1m --ioengine=libaio --direct=1",
    );
    let phase = &both.rows[0].workload.phases[0];
    assert_eq!((phase.engine.as_deref(), phase.tenants.len()), (Some("libaio"), 2));
    let steps = &phase.tenants[0].program.as_ref().unwrap().steps;
    let lengths: Vec<u64> =
        steps.iter().map(|step| step.duration_ns.as_ref().unwrap().most()).collect();
    assert_eq!(lengths, [1_000_000, 3_000_000]);
    assert_eq!(both.files, ["io.0.0"]);
    assert!(refusal("--name=a --ioengine=cpuio --cpuload=10").contains("never ends"));
    assert!(refusal("--name=a --ioengine=cpuio --runtime=1").contains("cpuload"));
}

#[test]
fn lowest_rates_appending_and_single_passes_become_what_they_say() {
    let t = tenant("--rw=randrw --size=1m --rate_min=1m,2m --rate_iops_min=10 --rate_cycle=500");
    let least = t.manner.rules.least.unwrap();
    assert_eq!((least.bytes_per_s, least.ops_per_s), ([1 << 20, 2 << 20], [10, 10]));
    let writer = tenant("--rw=write --size=1m --rate_min=1m").manner.rules.least.unwrap();
    assert_eq!(writer.bytes_per_s, [0, 1 << 20]);
    assert_eq!(least.cycle_ns, Ns(500_000_000));
    let mut paper = Paper::default();
    paper.there.insert("f".into(), There::File(3 << 20));
    let line = words("--name=x --filename=f --rw=write --size=1m --file_append=1");
    let plan = plan(&line, &paper).map_err(|e| e.to_string()).unwrap();
    let appended = &plan.rows[0].workload.phases[0].tenants[0];
    let region = appended.region.unwrap();
    assert_eq!((region.from_bytes, region.bytes), (Bytes(3 << 20), Bytes(1 << 20)));
    assert_eq!(appended.file_bytes, Bytes(4 << 20));
    // The rest of the file's size is written behind what is there.
    let line = words("--name=x --filename=f --rw=write --filesize=4m --file_append=1");
    let plan = super::super::dialect::plan(&line, &paper).map_err(|e| e.to_string()).unwrap();
    let region = plan.rows[0].workload.phases[0].tenants[0].region.unwrap();
    assert_eq!((region.from_bytes, region.bytes), (Bytes(3 << 20), Bytes(1 << 20)));
    assert_eq!(ops("--rw=write --size=1m --create_only=1"), 0);
    assert!(
        refusal("--name=x --rw=randwrite --size=1m --norandommap --iodepth=4 --serialize_overlap")
            .contains("could overlap")
    );
}

#[test]
fn a_direction_without_sizes_of_its_own_has_those_of_bs() {
    let plan = plan_of("--name=x --rw=randrw --size=1m --bs=8k --bssplit=16k/50:32k/50,");
    let program = plan.rows[0].workload.phases[0].tenants[0].program.as_ref().unwrap();
    let write = program.all_nodes().find(|node| node.name() == "write").unwrap();
    assert_eq!(write.size_bytes, Some(Amount::Constant(8192)));
}

#[test]
fn files_are_called_after_their_section() {
    let job = "[global]\nname=g\nsize=64k\n[j1]\nrw=write\n[j2]\nname=zz\nrw=write\n";
    let paper = Paper::with(&[("job.fio", job)]);
    let plan = plan(&words("job.fio"), &paper).map_err(|e| e.to_string()).unwrap();
    assert_eq!(plan.files, ["j1.0.0", "j2.0.0"]);
    assert_eq!(plan.show.units[1].name, "zz");
}

#[test]
fn what_is_there_and_only_read_is_not_written() {
    let mut paper = Paper::default();
    paper.there.insert("f".into(), There::File(64 << 10));
    paper.there.insert("/dev/sdx".into(), There::Device(64 << 10));
    paper.there.insert("/dev".into(), There::Directory);
    let plan_of = |text: &str| plan(&words(text), &paper).map_err(|error| error.to_string());
    let reuse = |text: &str| plan_of(text).unwrap().rows[0].workload.file_sets[0].reuse;
    let sizes = "--name=a --bsrange=4k-8k";
    for file in ["f", "/dev/sdx"] {
        let read = format!("{sizes} --filename={file} --rw=randread --size=64k");
        assert_eq!(reuse(&read), Reuse::Untouched, "{file}");
    }
    assert_eq!(reuse(&format!("{sizes} --filename=f --rw=randread --size=1m")), Reuse::Kept);
    assert_eq!(reuse(&format!("{sizes} --filename=f --rw=randrw --size=64k")), Reuse::Kept);
    let missing = plan_of("--name=a --filename=/dev/sdy --rw=read --size=4k").unwrap_err();
    assert!(missing.contains("there is no device /dev/sdy"), "{missing}");
}

#[test]
fn regions_of_devices_end_where_they_end_and_skipping_ends_where_a_file_goes_on() {
    let mut paper = Paper::default();
    paper.there.insert("/dev/sdx".into(), There::Device(1 << 20));
    paper.there.insert("/dev".into(), There::Directory);
    paper.there.insert("f".into(), There::File(1 << 20));
    let bytes = |text: &str| {
        let found = plan(&words(&format!("--name=a --rw=read {text}")), &paper);
        let tenant = found.unwrap().rows[0].workload.phases[0].tenants[0].clone();
        tenant.program.as_ref().and_then(|own| own.limit.total_bytes).map_or_else(
            || match tenant.limit {
                Limit::Ops { ops, .. } => ops * tenant.io_size_bytes.0,
                _ => tenant.ops_of_a_pass() * tenant.io_size_bytes.0,
            },
            |bytes| bytes.0,
        )
    };
    // As moved by fio 3.33.
    assert_eq!(bytes("--filename=/dev/sdx --size=4m"), 1 << 20);
    assert_eq!(bytes("--filename=/dev/sdx --size=512k --offset=768k"), 256 << 10);
    assert_eq!(bytes("--filename=/dev/sdx --size=100% --offset=50%"), 512 << 10);
    let clones =
        "--name=a --rw=read --filename=/dev/sdx --size=512k --offset_increment=384k --numjobs=3";
    assert!(plan(&words(clones), &paper).is_err(), "the last clone's region would be shorter");
    assert_eq!(bytes("--filename=f --rw=read:4k --bs=4k --size=64k"), 32 << 10);
    assert_eq!(bytes("--filename=f --rw=read:4k --bs=4k --size=1m"), 1 << 20);
}
