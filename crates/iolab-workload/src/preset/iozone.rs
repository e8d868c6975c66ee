//! `IOzone`'s thirteen tests as phases, with its access patterns, file handling and order.
//!
//! Single stream (one worker): read and reread are primed with one untimed read of record 0.
//! Several workers: throughput mode, no priming, the first to finish stops the others. Three
//! families bring their own way of calling, whatever engine the others use: fwrite and fread are
//! streams (and therefore never direct), pwrite and pread are positioned calls, pwritev and preadv
//! vectored ones. Tests 11 and 12 exist in few builds of the original, where a group of records can
//! run past the end of the file; here groups tile the file and each is visited once, in random
//! order.

use iolab_model::op::{Access, Durability, TransferFlags};
use iolab_model::target::Content;
use iolab_model::{Bytes, Error, Ns, Seed, registry};
use serde::Deserialize;

use crate::operation::{Nature, OperationKind};
use crate::spec::{
    Direction, Flush, FsyncPolicy, Limit, LockPolicy, Manner, Opening, Pattern, Phase, Tenant,
    VERSION, WorkersAs, Workload,
};
use crate::verify::Verify;

/// Records that one vectored call of tests 11 and 12 moves at most.
const GROUP: u64 = 16;

registry! {
    /// An operation as `IOzone`'s tables name it; the order is that of its test numbers.
    pub enum IozoneTest as "test" {
        /// Test 0, first pass: a new file.
        Write = "write",
        /// Test 0, second pass: blocks that exist.
        Rewrite = "rewrite",
        /// Test 1, first pass.
        Read = "read",
        /// Test 1, second pass.
        Reread = "reread",
        /// Test 2, first pass.
        RandomRead = "random-read",
        /// Test 2, second pass, in the same order.
        RandomWrite = "random-write",
        /// Test 3.
        BackwardRead = "backward-read",
        /// Test 4: record 0 over and over.
        RecordRewrite = "record-rewrite",
        /// Test 5.
        StrideRead = "stride-read",
        /// Test 6, first pass: a stream with a buffer of one record.
        Fwrite = "fwrite",
        /// Test 6, second pass.
        Frewrite = "frewrite",
        /// Test 7, first pass.
        Fread = "fread",
        /// Test 7, second pass.
        Freread = "freread",
        /// Test 8: every second worker reads at random, the others write; several workers only.
        Mix = "mix",
        /// Test 9, first pass: pwrite(2).
        Pwrite = "pwrite",
        /// Test 9, second pass.
        Repwrite = "repwrite",
        /// Test 10, first pass: pread(2).
        Pread = "pread",
        /// Test 10, second pass.
        Repread = "repread",
        /// Test 11: pwritev(2), groups of up to 16 records in random order.
        Pwritev = "pwritev",
        /// Test 12: preadv(2), the same groups.
        Preadv = "preadv",
    }
}

/// Way in which a test makes its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// As the study's engine does.
    Engine,
    /// Through a stream of the C library.
    Stream,
    /// pread(2), pwrite(2).
    Positioned,
    /// preadv(2), pwritev(2).
    Vectored,
}

impl IozoneTest {
    /// Place in throughput mode, which has an order of its own.
    fn throughput_rank(self) -> u32 {
        match self {
            Self::Write => 0,
            Self::Rewrite => 1,
            Self::Read => 2,
            Self::Reread => 3,
            Self::BackwardRead => 4,
            Self::StrideRead => 5,
            Self::RandomRead => 6,
            Self::Mix => 7,
            Self::RandomWrite => 8,
            Self::RecordRewrite => 9,
            Self::Pwrite => 10,
            Self::Repwrite => 11,
            Self::Pread => 12,
            Self::Repread => 13,
            Self::Pwritev => 14,
            Self::Preadv => 15,
            Self::Fwrite => 16,
            Self::Frewrite => 17,
            Self::Fread => 18,
            Self::Freread => 19,
        }
    }

    fn calls(self) -> Calls {
        match self {
            Self::Fwrite | Self::Frewrite | Self::Fread | Self::Freread => Calls::Stream,
            Self::Pwrite | Self::Repwrite | Self::Pread | Self::Repread => Calls::Positioned,
            Self::Pwritev | Self::Preadv => Calls::Vectored,
            _ => Calls::Engine,
        }
    }

    fn pattern(self, stride: u64) -> Pattern {
        match self {
            Self::RandomRead | Self::RandomWrite | Self::Mix | Self::Pwritev | Self::Preadv => {
                Pattern::Permutation
            }
            Self::BackwardRead => Pattern::Reverse,
            Self::RecordRewrite => Pattern::Same,
            Self::StrideRead => Pattern::Stride { stride },
            _ => Pattern::Sequential,
        }
    }

    fn direction(self) -> Direction {
        match self {
            Self::Write
            | Self::Rewrite
            | Self::RandomWrite
            | Self::RecordRewrite
            | Self::Fwrite
            | Self::Frewrite
            | Self::Pwrite
            | Self::Repwrite
            | Self::Pwritev => Direction::Write,
            _ => Direction::Read,
        }
    }

    /// Tell whether any of its workers writes.
    pub fn writes(self) -> bool {
        self.direction() == Direction::Write || self == Self::Mix
    }

    /// Nature of the test, under any name; its access is absent where the study chooses.
    pub fn nature(self) -> Nature {
        let reads = self.direction() == Direction::Read;
        Nature {
            kind: OperationKind::of_transfers(reads, self.writes()),
            reads,
            writes: self.writes(),
            io_size_bytes: None,
            access: (self.calls() == Calls::Stream).then_some(Access::Stdio),
        }
    }

    /// Tell whether it makes its calls in its own way, whatever engine is chosen.
    pub fn has_own_calls(self) -> bool {
        self.calls() != Calls::Engine
    }

    /// Records that one call moves at most.
    pub fn records_per_call(self) -> u64 {
        if self.calls() == Calls::Vectored { GROUP } else { 1 }
    }

    /// Tell whether it makes a new file if there is none yet.
    pub fn creates(self) -> bool {
        matches!(self, Self::Write | Self::Fwrite | Self::Pwrite | Self::Pwritev)
    }
}

impl Calls {
    /// Engine that makes these calls; absent: the study's.
    fn engine(self) -> Option<String> {
        let name = match self {
            Self::Engine => return None,
            Self::Stream => "stdio",
            Self::Positioned => "psync",
            Self::Vectored => "pvsync",
        };
        Some(name.to_owned())
    }
}

/// Wishes for a test; the JSON that the Python front passes.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of the workload description")]
pub struct IozoneRequest {
    pub tests: Vec<IozoneTest>,
    pub file_bytes: Bytes,
    pub io_size_bytes: Bytes,
    #[serde(default = "one")]
    pub workers: u32,
    pub engine: String,
    #[serde(default)]
    pub workers_as: WorkersAs,
    #[serde(default)]
    pub access: Access,
    #[serde(default)]
    pub durability: Durability,
    #[serde(default)]
    pub fsync: FsyncChoice,
    #[serde(default)]
    pub fsync_every: u64,
    #[serde(default)]
    pub flush: Flush,
    #[serde(default)]
    pub vectors: u16,
    #[serde(default)]
    pub flags: TransferFlags,
    #[serde(default)]
    pub lock: LockPolicy,
    #[serde(default)]
    pub is_preallocated: bool,
    /// Nothing is read before the clock starts, as a cold page cache asks for; `IOzone` itself
    /// reads record 0.
    #[serde(default)]
    pub is_cold: bool,
    pub seed: Seed,
    #[serde(default = "seventeen")]
    pub stride: u64,
    #[serde(default = "one")]
    pub depth: u32,
    #[serde(default)]
    pub content: Content,
    #[serde(default)]
    pub verify: Verify,
    #[serde(default)]
    pub pin_cpus: Vec<u32>,
}

/// Place of the final fsync: inside the timing (`IOzone`'s -e), after it, or not made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FsyncChoice {
    /// Not made.
    None,
    /// Made, not timed.
    #[default]
    After,
    /// Made and timed.
    Timed,
}

fn one() -> u32 {
    1
}

fn seventeen() -> u64 {
    17
}

/// The workload that runs the asked tests in `IOzone`'s order on one file per worker.
pub fn iozone(request: &IozoneRequest) -> Result<Workload, Error> {
    let mut tests = request.tests.clone();
    let is_throughput = request.workers > 1;
    tests.sort_by_key(|test| if is_throughput { test.throughput_rank() } else { *test as u32 });
    tests.dedup();
    check(request, &tests)?;
    let count = tests.len();
    let phase = |(index, &test): (usize, &IozoneTest)| Phase {
        name: test.name().to_owned(),
        is_stonewalled: is_throughput,
        keeps_files: index + 1 < count,
        engine: test.calls().engine(),
        ignores: ignored(request, test),
        records_per_op: test.records_per_call(),
        cuts_ns: Vec::new(),
        pause_after_ns: Ns(0),
        tenants: tenants(request, test, index == 0),
    };
    let workload = Workload {
        file_sets: Vec::new(),
        key_spaces: Vec::new(),
        version: VERSION,
        name: "iozone".into(),
        engine: request.engine.clone(),
        workers_as: request.workers_as,
        seed: request.seed,
        content: request.content,
        verify: request.verify,
        pin_cpus: request.pin_cpus.clone(),
        interval_ns: Ns::from_ms(100),
        is_calibrated: true,
        goes_on_after_failure: false,
        phases: tests.iter().enumerate().map(phase).collect(),
    };
    workload.check()?;
    Ok(workload)
}

fn check(request: &IozoneRequest, tests: &[IozoneTest]) -> Result<(), Error> {
    let wrong = |problem: String, remedy: &str| {
        Err(Error::BadWorkload { problem, remedy: remedy.to_owned() })
    };
    if tests.contains(&IozoneTest::Mix) && request.workers < 2 {
        return wrong(
            "test mix with one worker: every second worker writes, so it needs two".into(),
            "use at least 2 workers",
        );
    }
    if request.fsync_every > 0 && request.fsync == FsyncChoice::Timed {
        return wrong(
            format!("a flush after every {} writes, and a timed one", request.fsync_every),
            "use one of them: fsync_every, or fsync timed",
        );
    }
    let bound = tests.iter().find(|test| test.calls() != Calls::Engine);
    if let (Some(test), true) = (bound, request.depth > 1) {
        return wrong(
            format!("test {} makes one call at a time, not {}", test.name(), request.depth),
            "use depth 1, or leave the test out",
        );
    }
    Ok(())
}

/// Wishes that this test cannot fulfil: streams know neither direct nor durable writes, and a test
/// that makes calls of its own makes them in its own way.
fn ignored(request: &IozoneRequest, test: IozoneTest) -> Vec<String> {
    let calls = test.calls();
    let (is_own, is_stream) = (calls != Calls::Engine, calls == Calls::Stream);
    let asked = [
        (is_stream && request.access == Access::Direct, "direct I/O"),
        (is_stream && request.durability != Durability::None, "durable writes (O_SYNC, O_DSYNC)"),
        (is_stream && request.lock != LockPolicy::None, "locks"),
        (is_stream && request.flush != Flush::Fsync, "flush but fsync"),
        (is_own && !request.flags.is_empty(), "flags of transfers"),
        (is_own && request.vectors > 1, "choice of the parts of a call"),
    ];
    asked.into_iter().filter(|(is_ignored, _)| *is_ignored).map(|(_, what)| what.into()).collect()
}

/// One tenant; two for the mix, in which even workers read and odd ones write.
fn tenants(request: &IozoneRequest, test: IozoneTest, is_first: bool) -> Vec<Tenant> {
    let all = tenant(request, test, is_first);
    if test != IozoneTest::Mix {
        return vec![all];
    }
    let half = |name: &str, first: u32, direction: Direction| Tenant {
        name: name.into(),
        workers: (request.workers + 1 - first) / 2,
        file_first: first,
        file_step: 2,
        direction,
        ..all.clone()
    };
    vec![half("readers", 0, Direction::Read), half("writers", 1, Direction::Write)]
}

fn tenant(request: &IozoneRequest, test: IozoneTest, is_first: bool) -> Tenant {
    let is_sequential_read = matches!(test, IozoneTest::Read | IozoneTest::Reread);
    let calls = test.calls();
    let is_stream = calls == Calls::Stream;
    let records = (request.file_bytes.0 / request.io_size_bytes.0.max(1)).max(1);
    let group = if calls == Calls::Vectored { records.min(GROUP) } else { 1 };
    Tenant {
        name: "main".into(),
        workers: request.workers,
        is_file_shared: false,
        file: "iozone".into(),
        file_first: 0,
        file_step: 1,
        file_bytes: request.file_bytes,
        region: None,
        io_size_bytes: Bytes(request.io_size_bytes.0 * group),
        pattern: test.pattern(request.stride),
        direction: test.direction(),
        depth: request.depth,
        access: if is_stream { Access::Stdio } else { request.access },
        durability: if is_stream { Durability::None } else { request.durability },
        fsync: match (request.fsync_every, request.fsync) {
            (1.., _) => FsyncPolicy::Every { ops: request.fsync_every },
            (0, FsyncChoice::None) => FsyncPolicy::None,
            (0, FsyncChoice::After) => FsyncPolicy::After,
            (0, FsyncChoice::Timed) => FsyncPolicy::Timed,
        },
        flush: if is_stream { Flush::Fsync } else { request.flush },
        vectors: match calls {
            Calls::Engine => request.vectors,
            Calls::Vectored => group as u16,
            Calls::Stream | Calls::Positioned => 0,
        },
        flags: if calls == Calls::Engine { request.flags } else { TransferFlags::NONE },
        lock: if is_stream { LockPolicy::None } else { request.lock },
        is_preallocated: request.is_preallocated,
        files: Vec::new(),
        is_close_timed: false,
        stream_buffer_bytes: if is_stream { request.io_size_bytes } else { Bytes(0) },
        opening: match test {
            _ if is_first && test.creates() => Opening::Create,
            IozoneTest::Write => Opening::Create,
            _ if is_first => Opening::LaidOut,
            _ => Opening::Existing,
        },
        primes_first_record: is_sequential_read && request.workers == 1 && !request.is_cold,
        rate_ops_per_s: None,
        think_ns: Ns(0),
        share: None,
        begins_ns: Ns(0),
        priority: None,
        limit: Limit::Once,
        file_set: None,
        program: None,
        kv: None,
        manner: Manner::default(),
        draws: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tests: &str, workers: u32) -> IozoneRequest {
        serde_json::from_str(&format!(
            "{{\"tests\":[{tests}],\"file_bytes\":65536,\"io_size_bytes\":4096,\
             \"engine\":\"psync\",\"seed\":1,\"workers\":{workers}}}"
        ))
        .unwrap()
    }

    #[test]
    fn tests_run_in_their_own_order_and_once() {
        let workload = iozone(&request("\"random-read\",\"write\",\"write\",\"read\"", 1)).unwrap();
        let names: Vec<&str> = workload.phases.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["write", "read", "random-read"]);
        let kept: Vec<bool> = workload.phases.iter().map(|p| p.keeps_files).collect();
        assert_eq!(kept, [true, true, false]);
    }

    #[test]
    fn a_study_that_only_reads_lays_the_file_out() {
        let workload = iozone(&request("\"read\",\"reread\"", 1)).unwrap();
        let openings: Vec<Opening> = workload.phases.iter().map(|p| p.tenants[0].opening).collect();
        assert_eq!(openings, [Opening::LaidOut, Opening::Existing]);
        assert!(workload.phases[0].tenants[0].primes_first_record);
    }

    #[test]
    fn nothing_is_read_before_a_cold_read() {
        let cold = IozoneRequest { is_cold: true, ..request("\"read\",\"reread\"", 1) };
        let phases = iozone(&cold).unwrap().phases;
        assert!(phases.iter().all(|phase| !phase.tenants[0].primes_first_record));
    }

    #[test]
    fn throughput_mode_is_stonewalled_and_reordered() {
        let workload = iozone(&request("\"random-read\",\"stride-read\",\"write\"", 2)).unwrap();
        let names: Vec<&str> = workload.phases.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["write", "stride-read", "random-read"]);
        assert!(workload.phases.iter().all(|p| p.is_stonewalled));
        assert!(!workload.phases[1].tenants[0].primes_first_record);
    }

    #[test]
    fn all_thirteen_tests_make_a_workload_in_both_orders() {
        let all: Vec<String> =
            IozoneTest::ALL.iter().map(|test| format!("\"{}\"", test.name())).collect();
        let without_mix: Vec<String> = all.iter().filter(|t| !t.contains("mix")).cloned().collect();
        assert_eq!(iozone(&request(&without_mix.join(","), 1)).unwrap().phases.len(), 19);
        let workload = iozone(&request(&all.join(","), 3)).unwrap();
        let names: Vec<&str> = workload.phases.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names[6..9], ["random-read", "mix", "random-write"]);
        assert_eq!(names.last(), Some(&"freread"));
    }

    #[test]
    fn streams_say_what_they_ignore() {
        let text = "\"write\",\"fwrite\"";
        let request = IozoneRequest { access: Access::Direct, ..request(text, 1) };
        let workload = iozone(&request).unwrap();
        assert_eq!(workload.phases[0].ignores, Vec::<String>::new());
        assert_eq!(workload.phases[1].ignores, ["direct I/O"]);
        let fwrite = &workload.phases[1].tenants[0];
        assert_eq!((fwrite.access, fwrite.opening), (Access::Stdio, Opening::Existing));
        assert_eq!(workload.engine_of(&workload.phases[1]), "stdio");
        assert_eq!(workload.engine_of(&workload.phases[0]), "psync");
    }

    #[test]
    fn calls_of_their_own_say_what_they_ignore_and_two_flushes_are_one_too_many() {
        let text = "\"write\",\"pwrite\",\"preadv\"";
        let flags = TransferFlags::DATA_SYNC;
        let request = IozoneRequest { flags, vectors: 4, ..request(text, 1) };
        let workload = iozone(&request).unwrap();
        let ignored: Vec<usize> = workload.phases.iter().map(|p| p.ignores.len()).collect();
        assert_eq!(ignored, [0, 2, 2]);
        let kept: Vec<bool> = workload.phases.iter().map(|p| p.tenants[0].flags == flags).collect();
        assert_eq!(kept, [true, false, false]);
        let request = IozoneRequest { fsync_every: 2, fsync: FsyncChoice::Timed, ..request };
        assert!(iozone(&request).unwrap_err().to_string().contains("one of them"));
    }

    #[test]
    fn in_the_mix_even_workers_read_their_files_and_odd_ones_write_theirs() {
        let workload = iozone(&request("\"write\",\"mix\"", 5)).unwrap();
        let [readers, writers] = &workload.phases[1].tenants[..] else { panic!("two tenants") };
        let names = |tenant: &Tenant| tenant.file_names().collect::<Vec<_>>();
        assert_eq!(names(readers), ["iozone.0", "iozone.2", "iozone.4"]);
        assert_eq!(names(writers), ["iozone.1", "iozone.3"]);
        assert!(iozone(&request("\"mix\"", 1)).unwrap_err().to_string().contains("2 workers"));
    }

    #[test]
    fn vectored_tests_move_groups_of_records() {
        let workload = iozone(&request("\"preadv\"", 1)).unwrap();
        let tenant = &workload.phases[0].tenants[0];
        assert_eq!((tenant.vectors, tenant.io_size_bytes), (16, Bytes(65536)));
        let deep = IozoneRequest { depth: 8, ..request("\"preadv\"", 1) };
        assert!(iozone(&deep).unwrap_err().to_string().contains("one call at a time"));
    }

    #[test]
    fn an_unknown_test_names_the_known_ones() {
        let text = serde_json::from_str::<IozoneTest>("\"randread\"").unwrap_err().to_string();
        assert!(text.contains("random-read"), "{text}");
    }
}
