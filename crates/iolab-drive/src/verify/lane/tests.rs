use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use iolab_model::op::{Handle, Op, OpenHow, PathId, Submission, Token};
use iolab_model::target::{BytePattern, Content, LaneRequest};
use iolab_model::{Bytes, Lane, Ns, Seed, Target};
use iolab_workload::StreamReport;
use iolab_workload::spec::rules::Tolerance;
use iolab_workload::spec::{Direction, Limit, Opening, Pattern, ReadingBack, Region, Workload};
use iolab_workload::verify::{KeptBlock, Mismatch, VerifiedBlocks, Verify};

use crate::coordinate::NoObserver;
use crate::pump::run_threads;
use crate::target::{Memory, Null};
use crate::verify::Findings;

const TEXT: &str = r#"{"version":1,"name":"test","engine":"memory","seed":7,"verify":"full",
    "phases":[
    {"name":"write","keeps_files":true,"tenants":[{"name":"main","workers":1,"file":"data",
     "file_bytes":65536,"io_size_bytes":8192,"pattern":{"kind":"sequential"},
     "direction":{"kind":"write"},"opening":"create"}]},
    {"name":"rewrite","keeps_files":true,"tenants":[{"name":"main","workers":1,"file":"data",
     "file_bytes":65536,"io_size_bytes":8192,"pattern":{"kind":"permutation"},
     "direction":{"kind":"write"},"opening":"existing"}]},
    {"name":"read","keeps_files":true,"tenants":[{"name":"main","workers":1,"file":"data",
     "file_bytes":65536,"io_size_bytes":8192,"pattern":{"kind":"sequential"},
     "direction":{"kind":"read"},"opening":"existing"}]}]}"#;

fn workload() -> Workload {
    let workload: Workload = serde_json::from_str(TEXT).unwrap();
    workload.check().unwrap();
    workload
}

fn run(target: &Memory, workload: &Workload, phase: usize) -> Vec<StreamReport> {
    let phase = &workload.phases[phase];
    let outcome =
        run_threads(target, (workload, phase), Path::new("/"), |_| {}, &mut NoObserver).unwrap();
    outcome.tenants.into_iter().flat_map(|tenant| tenant.workers).collect()
}

/// Changes bytes of a file behind everybody's back.
fn tamper(target: &Memory, name: &str, change: impl FnOnce(&mut [u8])) {
    let mut lane = target
        .open(&LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(1 << 20),
            content: Content::Prepared,
            seed: Seed(0),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from([Path::new("/").join(name)]),
        })
        .unwrap();
    let how = OpenHow { is_readable: true, is_writable: true, ..OpenHow::default() };
    let mut perform = |op| {
        let mut done = Vec::new();
        let submission = Submission { token: Token(0), intended: Ns(0), is_timed: false, op };
        lane.submit_batch(Ns(0), &[submission], &mut done);
        done[0].outcome.unwrap()
    };
    perform(Op::Open { path: PathId(0), handle: Handle(0), how });
    let length = perform(Op::Stat { path: PathId(0) });
    perform(Op::read(Handle(0), Bytes(0), length));
    change(&mut lane.buffer(Token(0)).unwrap()[..length.0 as usize]);
    let mut done = Vec::new();
    let op = Op::write(Handle(0), Bytes(0), length);
    lane.submit_batch(
        Ns(0),
        &[Submission { token: Token(0), intended: Ns(0), is_timed: false, op }],
        &mut done,
    );
    assert_eq!(done[0].outcome, Ok(length));
}

/// Writes, tampers before phase `read`, reads; the reader's report.
fn planted(workload: &Workload, change: impl FnOnce(&mut [u8])) -> StreamReport {
    let target = Memory::default();
    let name = workload.phases[0].tenants[0].file_name(0);
    run(&target, workload, 0);
    run(&target, workload, 1);
    tamper(&target, &name, change);
    run(&target, workload, 2).remove(0)
}

fn found(report: &StreamReport) -> (&str, u64, u64) {
    let first = report.mismatches.first().expect("something was found");
    (first.kind.as_str(), first.offset_bytes, report.mismatch_count)
}

#[test]
fn what_comes_back_as_written_is_no_alarm() {
    let report = planted(&workload(), |_| ());
    assert_eq!((report.errors, report.ops, report.mismatch_count), (0, 8, 0));
}

#[test]
fn a_flipped_byte_is_found_and_named() {
    let report = planted(&workload(), |bytes| bytes[20_000] ^= 0x10);
    assert_eq!(found(&report), ("flipped", 20_000, 1));
    assert_eq!((report.errors, report.ops), (1, 2), "records before it count");
    let message = report.first_error.unwrap();
    for part in ["data.0", "offset 16384", "byte 20000", "the phase rewrite"] {
        assert!(message.contains(part), "{message} lacks {part}");
    }
}

#[test]
fn headers_find_what_is_in_headers_and_leave_the_rest() {
    let workload = Workload { verify: Verify::Headers, ..workload() };
    assert_eq!(found(&planted(&workload, |bytes| bytes[16_384 + 17] ^= 1)).0, "flipped");
    assert_eq!(planted(&workload, |bytes| bytes[20_000] ^= 1).errors, 0, "payload is not theirs");
}

#[test]
fn a_torn_write_is_found_and_named() {
    let target = Memory::default();
    let workload = workload();
    run(&target, &workload, 0);
    let mut old = Vec::new();
    tamper(&target, "data.0", |bytes| old = bytes.to_vec());
    run(&target, &workload, 1);
    tamper(&target, "data.0", |bytes| bytes[9_216..12_288].copy_from_slice(&old[9_216..12_288]));
    let report = run(&target, &workload, 2).remove(0);
    assert_eq!(found(&report), ("torn", 9_216, 1));
    let message = report.first_error.unwrap();
    for part in ["offset 8192", "in the phase rewrite", "in the phase write"] {
        assert!(message.contains(part), "{message} lacks {part}");
    }
}

#[test]
fn a_misplaced_block_is_found_and_named() {
    let report = planted(&workload(), |bytes| bytes.copy_within(4096..8192, 40_960));
    assert_eq!(found(&report), ("misplaced", 40_960, 1));
    assert!(report.first_error.unwrap().contains("belongs to offset 4096 of this file"));
}

#[test]
fn a_lost_rewrite_is_stale_data() {
    let target = Memory::default();
    let workload = workload();
    run(&target, &workload, 0);
    let mut old = Vec::new();
    tamper(&target, "data.0", |bytes| old = bytes.to_vec());
    run(&target, &workload, 1);
    tamper(&target, "data.0", |bytes| bytes[4096..8192].copy_from_slice(&old[4096..8192]));
    let report = run(&target, &workload, 2).remove(0);
    assert_eq!(found(&report), ("stale", 4096, 1));
    let message = report.first_error.unwrap();
    assert!(message.contains("the phase rewrite has overwritten it since"), "{message}");
}

#[test]
fn lost_writes_and_strangers_are_told_apart() {
    assert_eq!(found(&planted(&workload(), |bytes| bytes[..12_288].fill(0))), ("zeros", 0, 2));
    assert_eq!(found(&planted(&workload(), |bytes| bytes[..4096].fill(b'x'))).0, "foreign");
}

#[test]
fn a_worker_that_reads_what_it_writes_knows_its_own_last_write() {
    let mut workload = workload();
    workload.phases.truncate(1);
    let tenant = &mut workload.phases[0].tenants[0];
    tenant.pattern = Pattern::Uniform;
    tenant.direction = Direction::Mixed { read_share: 0.5 };
    tenant.opening = Opening::LaidOut;
    tenant.limit = Limit::Ops { ops: 4000, within_ns: None };
    let report = run(&Memory::default(), &workload, 0).remove(0);
    assert_eq!((report.errors, report.ops), (0, 4000));
}

#[test]
fn concurrent_writers_of_one_file_raise_no_false_alarm_and_hide_no_stranger() {
    let mut workload = workload();
    for phase in &mut workload.phases {
        let tenant = &mut phase.tenants[0];
        (tenant.is_file_shared, tenant.workers) = (true, 4);
    }
    let mixed = &mut workload.phases[1].tenants[0];
    mixed.pattern = Pattern::Uniform;
    mixed.direction = Direction::Mixed { read_share: 0.5 };
    mixed.limit = Limit::Ops { ops: 2000, within_ns: None };
    // One makes it, all use it.
    workload.phases[0].tenants[0].workers = 1;
    let target = Memory::default();
    for phase in 0..3 {
        for report in run(&target, &workload, phase) {
            assert_eq!(report.first_error, None, "phase {phase}");
        }
    }
    tamper(&target, "data", |bytes| bytes.copy_within(4096..8192, 40_960));
    let reports = run(&target, &workload, 2);
    assert!(reports.iter().any(|report| report.mismatch_count > 0), "{reports:?}");
}

#[test]
fn a_target_that_keeps_nothing_is_refused() {
    let workload = workload();
    let pair = (&workload, &workload.phases[2]);
    let error = run_threads(&Null, pair, Path::new("/"), |_| {}, &mut NoObserver).unwrap_err();
    assert!(error.to_string().contains("give back what was written"), "{error}");
}

#[test]
fn a_reader_that_goes_on_counts_all_wrong_blocks() {
    let mut workload = workload();
    let tolerance = Tolerance { mismatches: true, ..Tolerance::default() };
    workload.phases[2].tenants[0].manner.rules.tolerance = Some(tolerance);
    let report = planted(&workload, |bytes| {
        bytes[20_000] ^= 1;
        bytes[50_000] ^= 1;
    });
    assert_eq!((report.ops, report.mismatch_count), (6, 2));
    assert_eq!(report.tolerated.unwrap().errors, 2);
    assert_eq!(report.errors, 1, "and it is told in the end");
}

#[test]
fn every_byte_of_a_pattern_is_compared() {
    let pattern = BytePattern::of(&[0xde, 0xad, 0xbe]).unwrap();
    let mut workload = Workload { content: Content::Pattern(pattern), ..workload() };
    workload.check().unwrap();
    assert_eq!(planted(&workload, |_| ()).errors, 0);
    let report = planted(&workload, |bytes| {
        assert_eq!(bytes[8192..8196], [0xde, 0xad, 0xbe, 0xde], "each transfer begins anew");
        bytes[20_000] ^= 1;
    });
    assert_eq!(found(&report), ("flipped", 20_000, 1));
    workload.phases[2].tenants[0].manner.expects_written = true;
    let report = planted(&workload, |bytes| bytes[16_384..24_576].fill(0));
    assert_eq!(found(&report), ("zeros", 16_384, 1));
}

#[test]
fn a_lost_block_of_a_region_is_found() {
    let mut workload = workload();
    let region = Region { from_bytes: Bytes(8192), bytes: Bytes(32768), step_bytes: Bytes(0) };
    for phase in &mut workload.phases {
        phase.tenants[0].region = Some(region);
    }
    let report = planted(&workload, |bytes| bytes[16_384..24_576].fill(0));
    assert_eq!(found(&report).0, "zeros");
}

#[test]
fn the_first_wrong_block_ends_a_reader_that_would_go_on() {
    let mut workload = workload();
    let tolerance = Tolerance { mismatches: true, ends_at_mismatch: true, ..Tolerance::default() };
    workload.phases[2].tenants[0].manner.rules.tolerance = Some(tolerance);
    let report = planted(&workload, |bytes| {
        bytes[20_000] ^= 1;
        bytes[50_000] ^= 1;
    });
    assert_eq!((report.ops, report.mismatch_count), (2, 1));
    assert_eq!(report.tolerated.unwrap().errors, 1);
}

/// All phases with these blocks.
fn in_blocks(blocks: VerifiedBlocks) -> Workload {
    let mut workload = workload();
    for phase in &mut workload.phases {
        phase.tenants[0].manner.verified = blocks;
    }
    workload.check().unwrap();
    workload
}

#[test]
fn blocks_are_as_large_as_was_asked_for() {
    for bytes in [512, 8192] {
        let blocks = VerifiedBlocks { bytes: Some(Bytes(bytes)), ..VerifiedBlocks::default() };
        let report = planted(&in_blocks(blocks), |content| content[20_000] ^= 1);
        assert_eq!(found(&report), ("flipped", 20_000, 1));
        assert_eq!(report.mismatches[0].block_bytes, bytes);
        assert_eq!(planted(&in_blocks(blocks), |_| ()).errors, 0);
    }
    let mut odd = workload();
    for bytes in [1000, 3072, 16_384] {
        odd.phases[0].tenants[0].manner.verified.bytes = Some(Bytes(bytes));
        let error = odd.check().unwrap_err().to_string();
        assert!(error.contains("multiples of 512 bytes that divide"), "{error}");
    }
}

#[test]
fn a_header_stands_where_it_was_asked_for_and_faults_are_told_by_their_place() {
    let blocks = VerifiedBlocks { header_at_bytes: Bytes(1000), ..VerifiedBlocks::default() };
    let workload = in_blocks(blocks);
    let report = planted(&workload, |bytes| {
        assert_eq!(&bytes[4096 + 1000..4096 + 1008], b"iolabVB1");
        bytes[4096 + 1017] ^= 1;
    });
    assert_eq!(found(&report), ("flipped", 4096 + 1017, 1));
    let report = planted(&workload, |bytes| bytes[4096 + 5] ^= 1);
    assert_eq!(found(&report), ("flipped", 4096 + 5, 1));
    assert_eq!(planted(&workload, |_| ()).errors, 0);
    let mut odd = workload;
    for at in [1, 47, 4049] {
        odd.phases[0].tenants[0].manner.verified.header_at_bytes = Bytes(at);
        assert!(odd.check().unwrap_err().to_string().contains("48 bytes"), "{at}");
    }
}

#[test]
fn wrong_blocks_are_kept_as_they_were_read_and_as_they_should_be() {
    let blocks =
        VerifiedBlocks { are_kept: true, header_at_bytes: Bytes(512), ..VerifiedBlocks::default() };
    let workload = in_blocks(blocks);
    let digits = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let (mut before, mut after) = (String::new(), String::new());
    let report = planted(&workload, |bytes| {
        before = digits(&bytes[16_384..20_480]);
        bytes[20_000] ^= 1;
        after = digits(&bytes[16_384..20_480]);
    });
    let kept = report.mismatches[0].kept.clone().unwrap();
    assert_eq!((kept.at_bytes, kept.received, kept.expected), (16_384, after, Some(before)));
    // Of lost data nobody knows which write was to be there: it was another phase's.
    let report = planted(&workload, |bytes| bytes[16_384..20_480].fill(0));
    let kept = report.mismatches[0].kept.clone().unwrap();
    assert_eq!((kept.received, kept.expected), ("00".repeat(4096), None));
    assert!(planted(&self::workload(), |bytes| bytes[0] ^= 1).mismatches[0].kept.is_none());
}

#[test]
fn no_more_wrong_blocks_are_kept_than_there_is_room_for() {
    let (mut findings, one) =
        (Findings::default(), KeptBlock { at_bytes: 0, received: String::new(), expected: None });
    let mismatch = || Mismatch {
        file: String::new(),
        offset_bytes: 0,
        block_bytes: 1,
        kind: String::new(),
        message: String::new(),
        kept: None,
    };
    for bytes in [1 << 18, 1 << 19, 1 << 18] {
        findings.add(mismatch);
        findings.keep(bytes, || one.clone());
    }
    let are_kept = |found: &Findings| -> Vec<bool> {
        found.first().iter().map(|one| one.kept.is_some()).collect()
    };
    assert_eq!(are_kept(&findings), [true, false, true]);
    for _ in 0..10 {
        findings.add(mismatch);
        findings.keep(0, || one.clone());
    }
    assert_eq!(are_kept(&findings).len(), 8, "the rest is counted");
}

#[test]
fn a_writer_reads_back_what_it_wrote_while_it_writes() {
    let mut workload = workload();
    workload.phases.truncate(1);
    let tenant = &mut workload.phases[0].tenants[0];
    tenant.manner.read_back = Some(ReadingBack { after_ops: 3, batch_ops: 3 });
    for (pattern, depth) in [(Pattern::Sequential, 1), (Pattern::Shuffled, 4)] {
        let tenant = &mut workload.phases[0].tenants[0];
        (tenant.pattern, tenant.depth) = (pattern, depth);
        workload.check().unwrap();
        let report = run(&Memory::default(), &workload, 0).remove(0);
        assert_eq!((report.errors, report.ops), (0, 16));
        assert_eq!((report.read_bytes, report.write_bytes), (65_536, 65_536));
    }
}
