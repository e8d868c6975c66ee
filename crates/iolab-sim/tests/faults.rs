//! Injected errors: who is told of a command that fails, through schedulers, splits and volumes.
//!
//! The rules are those of the kernel: all bios of a request fail with it, a bio fails with any of
//! its pieces, a mirror reads the other copy and drops the member that cannot be written.

use std::path::PathBuf;
use std::sync::Arc;

use iolab_model::error::Errno;
use iolab_model::op::{
    Access, Durability, Handle, Op, OpenHow, PathId, Position, Submission, Token, Transfer,
    TransferFlags,
};
use iolab_model::target::Content;
use iolab_model::{Bytes, Completion, Lane, LaneRequest, Ns, Seed, Target};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget, Simulation};

const KIB_4: u64 = 4096;
const MIRROR: &str = "[volume]\nmembers = 2\nparameters = { layout = \"raid1\" }\n\
                      member.device.profile = \"fixed-100us\"\n";

/// A target of the stack that these lines describe.
fn target(faults: &str, below: &str) -> SimTarget {
    seeded(faults, below, 1)
}

fn seeded(faults: &str, below: &str, seed: u64) -> SimTarget {
    let text =
        format!("name = \"tested\"\ncpu = {{ call_ns = 0, submit_ns = 0 }}\n{faults}{below}");
    let stack = Stack::parse("tested.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let built = stack.build(&QueueOverrides::default(), Seed(seed));
    SimTarget::new(built.unwrap_or_else(|error| panic!("{error}")), Vec::new())
}

fn array(layout: &str, members: u32) -> String {
    let parameters = format!("{{ layout = \"{layout}\", unit_bytes = 65536 }}");
    format!(
        "[volume]\nmembers = {members}\nparameters = {parameters}\n\
         member.device.profile = \"fixed-100us\"\n"
    )
}

/// A lane with one file of `bytes` bytes, which begins at sector 0; the writes are not counted by
/// any rule, because it is only allocated.
fn opened(target: &SimTarget, bytes: u64) -> SimLane {
    let request = LaneRequest {
        worker: 0,
        depth: 64,
        buffer_bytes: Bytes(1 << 20),
        content: Content::Zero,
        seed: Seed(7),
        priority: None,
        submitter_cpu: None,
        paths: Arc::from([PathBuf::from("/simulated/file")]),
    };
    let mut lane = target.open(&request).unwrap();
    let how = OpenHow {
        access: Access::Direct,
        durability: Durability::None,
        is_truncating: false,
        ..OpenHow::default()
    };
    let (handle, path) = (Handle(0), PathId(0));
    for op in [Op::Create { path, handle, how }, Op::Truncate { handle, length: Bytes(bytes) }] {
        assert_eq!(outcomes(&mut lane, &[op]), [Ok(Bytes(0))]);
    }
    lane
}

fn at(offset: u64, length: u64) -> Transfer {
    Transfer {
        handle: Handle(0),
        at: Position::At(Bytes(offset)),
        length: Bytes(length),
        vectors: 1,
        flags: TransferFlags::default(),
        call_bytes: 0,
        is_unchecked: false,
        is_of_kernel_thread: false,
    }
}

fn read(offset: u64) -> Op {
    Op::Read(at(offset, KIB_4))
}

fn write(offset: u64) -> Op {
    Op::Write(at(offset, KIB_4))
}

const SYNC: Op = Op::Fsync { handle: Handle(0) };

/// Ends of ops that are submitted together, in the order of submission.
fn outcomes(lane: &mut SimLane, ops: &[Op]) -> Vec<Result<Bytes, Errno>> {
    let submission = |(index, &op)| Submission {
        token: Token(index),
        intended: lane_start(),
        is_timed: true,
        op,
    };
    let batch: Vec<Submission> = (0..).zip(ops).map(submission).collect();
    let mut done: Vec<Completion> = Vec::new();
    let now = lane.now();
    let accepted = lane.submit_batch(now, &batch, &mut done);
    assert_eq!(accepted.total(), ops.len());
    while done.len() < ops.len() {
        lane.reap(1, Ns::MAX, &mut done).unwrap();
    }
    done.sort_by_key(|completion| completion.token.0);
    done.iter().map(|completion| completion.outcome).collect()
}

const fn lane_start() -> Ns {
    Ns(0)
}

/// Each op alone, one after the other.
fn one_by_one(lane: &mut SimLane, ops: &[Op]) -> Vec<Result<Bytes, Errno>> {
    ops.iter().flat_map(|op| outcomes(lane, &[*op])).collect()
}

fn incidents(target: &SimTarget) -> Vec<(&'static str, String)> {
    let all = target.inspect(Simulation::incidents);
    all.into_iter().map(|incident| (incident.code, incident.message)).collect()
}

fn counter(target: &SimTarget, name: &str) -> u64 {
    let all = target.inspect(Simulation::counters);
    all.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value as u64)
}

const OK: Result<Bytes, Errno> = Ok(Bytes(KIB_4));
const EIO: Result<Bytes, Errno> = Err(Errno::EIO);
const ENOSPC: Result<Bytes, Errno> = Err(Errno::ENOSPC);
const DEVICE: &str = "[device]\nprofile = \"fixed-100us\"\n";

#[test]
fn only_what_touches_the_sectors_fails() {
    let fault = "[[faults]]\nof = \"read\"\nsectors = \"15..20\"\nerror = \"EIO\"\n";
    let target = target(fault, DEVICE);
    let mut lane = opened(&target, 1 << 20);
    // Sectors 0-7, 8-15, 16-23, 24-31; a write to the bad ones goes well.
    let ops = [read(0), read(KIB_4), read(2 * KIB_4), read(3 * KIB_4), write(2 * KIB_4)];
    assert_eq!(one_by_one(&mut lane, &ops), [OK, EIO, EIO, OK, OK]);
    let told = incidents(&target);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "faults_injected");
    assert_eq!(
        told[0].1,
        "the device: 2 commands failed with Input/output error (os error 5) because the stack file \
         says so (reads, sectors 15..20); the first had 8 sectors at sector 8"
    );
}

#[test]
fn some_go_well_first_and_only_so_many_fail() {
    let fault = "[[faults]]\nof = \"write\"\nafter_ops = 2\ntimes = 1\nerror = \"ENOSPC\"\n";
    let mut lane = opened(&target(fault, DEVICE), 1 << 20);
    let ops = [write(0), read(0), write(0), write(0), write(0)];
    assert_eq!(one_by_one(&mut lane, &ops), [OK, OK, OK, ENOSPC, OK]);
}

#[test]
fn chance_is_the_seeds() {
    let fault = "[[faults]]\nprobability = 0.3\nerror = \"EIO\"\n";
    let draw = |seed| {
        let mut lane = opened(&seeded(fault, DEVICE, seed), 1 << 20);
        one_by_one(&mut lane, &vec![read(0); 400])
    };
    let first = draw(5);
    let failed = first.iter().filter(|outcome| outcome.is_err()).count();
    // 400 draws of 0.3: 120, standard deviation 9.2.
    assert!((80..160).contains(&failed), "{failed}");
    assert_eq!(draw(5), first);
    assert_ne!(draw(6), first);
}

#[test]
fn a_merged_request_fails_all_its_bios() {
    // One command at a time: what comes while it is out is merged by the scheduler.
    let fault = "[[faults]]\nsectors = \"24\"\nerror = \"EIO\"\n";
    let queue = "[queue]\nscheduler = \"mq-deadline\"\nqueue_depth = 1\nlook_ahead = 0\n";
    let target = target(fault, &format!("{queue}{DEVICE}"));
    let mut lane = opened(&target, 1 << 20);
    let ops = [read(1 << 19), read(2 * KIB_4), read(3 * KIB_4), read(4 * KIB_4), read(64 * KIB_4)];
    assert_eq!(outcomes(&mut lane, &ops), [OK, EIO, EIO, EIO, OK]);
    assert_eq!(counter(&target, "read_merges"), 2);
    // Alone only the one with the bad sector fails.
    assert_eq!(one_by_one(&mut lane, &ops), [OK, OK, EIO, OK, OK]);
}

#[test]
fn a_split_bio_fails_with_any_piece() {
    let fault = "[[faults]]\nsectors = \"24\"\ntimes = 1\nerror = \"ENOSPC\"\n";
    let target = target(fault, &format!("[queue]\nmax_sectors_kb = 4\n{DEVICE}"));
    let mut lane = opened(&target, 1 << 20);
    let long = Op::Write(at(0, 8 * KIB_4));
    assert_eq!(outcomes(&mut lane, &[long]), [ENOSPC]);
    assert_eq!(counter(&target, "split_bios"), 1);
    assert_eq!(outcomes(&mut lane, &[long]), [Ok(Bytes(8 * KIB_4))]);
}

#[test]
fn a_flush_that_fails_fails_the_sync() {
    let fault = "[[faults]]\nof = \"flush\"\ntimes = 1\nerror = \"EIO\"\n";
    let mut lane = opened(&target(fault, "[device]\nprofile = \"sata7200-4tb\"\n"), 1 << 20);
    assert_eq!(one_by_one(&mut lane, &[write(0), SYNC, SYNC]), [OK, EIO, Ok(Bytes(0))]);
}

#[test]
fn a_mirror_reads_the_other_copy() {
    let fault = "[[faults]]\ndevice = \"0\"\nof = \"read\"\nerror = \"EIO\"\n";
    let target = target(fault, MIRROR);
    let mut lane = opened(&target, 1 << 20);
    let ops = [read(0), read(8 * KIB_4), write(0), read(0)];
    assert_eq!(one_by_one(&mut lane, &ops), [OK; 4]);
    let told = incidents(&target);
    let repaired = told.iter().find(|(code, _)| *code == "reads_repaired");
    assert!(repaired.unwrap().1.contains("answered by other members of the raid1 volume"));
    assert!(!told.iter().any(|(code, _)| *code == "member_lost"), "{told:?}");
}

#[test]
fn a_mirror_with_two_bad_copies_fails() {
    let bad =
        |device| format!("[[faults]]\ndevice = \"{device}\"\nof = \"read\"\nerror = \"ENOSPC\"\n");
    let mut lane = opened(&target(&format!("{}{}", bad(0), bad(1)), MIRROR), 1 << 20);
    // md tells EIO, whatever the copies said.
    assert_eq!(one_by_one(&mut lane, &[read(0), write(0)]), [EIO, OK]);
}

#[test]
fn a_mirror_drops_the_member_that_cannot_be_written_but_never_the_last() {
    let fault = "[[faults]]\ndevice = \"1\"\nof = \"write\"\nafter_ops = 1\nerror = \"EIO\"\n\
                 [[faults]]\ndevice = \"0\"\nof = \"write\"\nafter_ops = 4\ntimes = 1\n\
                 error = \"EIO\"\n";
    let target = target(fault, MIRROR);
    let mut lane = opened(&target, 1 << 20);
    let ops = [write(0), write(0), write(0), read(0)];
    assert_eq!(one_by_one(&mut lane, &ops), [OK; 4]);
    let lost: Vec<String> = incidents(&target)
        .into_iter()
        .filter(|(code, _)| *code == "member_lost")
        .map(|(_, message)| message)
        .collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].starts_with("member 1 of the raid1 volume failed a write"), "{}", lost[0]);
    // Nothing goes to a dropped member: two writes reached it, the second failed.
    assert_eq!(counter(&target, "member.1.writes"), 2);
    assert_eq!(counter(&target, "member.1.reads"), 0);
    assert_eq!(one_by_one(&mut lane, &[write(0), write(0), write(0)]), [OK, EIO, OK]);
}

#[test]
fn raid10_repairs_within_a_pair() {
    let fault = "[[faults]]\ndevice = \"2\"\nerror = \"EIO\"\n";
    let target = target(fault, &array("raid10", 4));
    let mut lane = opened(&target, 1 << 20);
    // Units in turn: the second is on members 2 and 3.
    let ops = [read(0), read(65_536), write(65_536), read(65_536), write(0)];
    assert_eq!(one_by_one(&mut lane, &ops), [OK; 5]);
    assert!(counter(&target, "member.3.reads") >= 2);
}

#[test]
fn a_stripe_fails_with_its_member_and_hands_the_errno_on() {
    let fault = "[[faults]]\ndevice = \"1\"\nerror = \"ENOSPC\"\n";
    let mut lane = opened(&target(fault, &array("raid0", 2)), 1 << 20);
    let across = Op::Read(at(65_536 - KIB_4, 2 * KIB_4));
    assert_eq!(one_by_one(&mut lane, &[read(0), read(65_536), across]), [OK, ENOSPC, ENOSPC]);
}

#[test]
fn parity_answers_a_read_that_fails() {
    for layout in ["raid5", "raid6"] {
        let target = target(
            "[[faults]]\ndevice = \"0\"\nof = \"read\"\nerror = \"EIO\"\n",
            &array(layout, 5),
        );
        let mut lane = opened(&target, 4 << 20);
        let all: Vec<Op> = (0..32).map(|unit| read(unit * 65_536)).collect();
        assert!(one_by_one(&mut lane, &all).iter().all(|outcome| *outcome == OK), "{layout}");
        let small: Vec<Op> = (0..32).map(|unit| write(unit * 65_536)).collect();
        assert!(one_by_one(&mut lane, &small).iter().all(|outcome| *outcome == OK), "{layout}");
        let told = incidents(&target);
        assert!(told.iter().any(|(code, _)| *code == "reads_repaired"), "{layout}: {told:?}");
        assert!(!told.iter().any(|(code, _)| *code == "member_lost"), "{layout}: {told:?}");
    }
}

#[test]
fn an_array_stands_one_failed_write_and_not_two_members() {
    let fault = "[[faults]]\ndevice = \"0\"\nof = \"write\"\ntimes = 1\nerror = \"EIO\"\n\
                 [[faults]]\ndevice = \"3\"\nof = \"read\"\nafter_ops = 20\nerror = \"EIO\"\n";
    let target = target(fault, &array("raid5", 4));
    let mut lane = opened(&target, 4 << 20);
    let writes: Vec<Op> = (0..12).map(|unit| write(unit * 65_536)).collect();
    assert!(one_by_one(&mut lane, &writes).iter().all(|outcome| *outcome == OK));
    let told = incidents(&target);
    assert!(told.iter().any(|(_, message)| message.contains("runs degraded")), "{told:?}");
    let reads: Vec<Op> = (0..60).map(|unit| read(unit * 65_536)).collect();
    let outcomes = one_by_one(&mut lane, &reads);
    assert!(outcomes.contains(&EIO) && outcomes.contains(&OK), "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| *outcome == OK || *outcome == EIO));
}

#[test]
fn a_member_of_a_member_has_its_place() {
    let nested = "[volume]\nmembers = 2\nparameters = { layout = \"raid0\", unit_bytes = 65536 }\n\
                  [volume.member.volume]\nmembers = 2\nparameters = { layout = \"raid1\" }\n\
                  member.device.profile = \"fixed-100us\"\n";
    let fault = "[[faults]]\ndevice = \"1.0\"\nof = \"read\"\nerror = \"EIO\"\n";
    let target = target(fault, nested);
    let mut lane = opened(&target, 1 << 20);
    assert_eq!(one_by_one(&mut lane, &[read(0), read(65_536)]), [OK, OK]);
    assert!(incidents(&target).iter().any(|(_, message)| message.starts_with("device 1.0: 1 ")));
}
