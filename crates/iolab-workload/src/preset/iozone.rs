//! `IOzone`'s tests as phases, with its access patterns, file handling and order.
//!
//! Single stream (one worker): read and reread are primed with one untimed read of record 0.
//! Several workers: throughput mode, no priming, the first to finish stops the others. Left out
//! until the dialect exists: tests that need mmap, stdio or vectored calls.

use iolab_model::op::{Access, Durability};
use iolab_model::target::Content;
use iolab_model::{Bytes, Error, Seed, registry};
use serde::Deserialize;

use crate::spec::{
    Direction, FsyncPolicy, Limit, Opening, Pattern, Phase, Tenant, VERSION, WorkersAs, Workload,
};

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
    }
}

impl IozoneTest {
    /// Place in throughput mode, where random tests come after backward and stride reads.
    fn throughput_rank(self) -> u32 {
        match self {
            Self::Write => 0,
            Self::Rewrite => 1,
            Self::Read => 2,
            Self::Reread => 3,
            Self::BackwardRead => 4,
            Self::StrideRead => 5,
            Self::RandomRead => 6,
            Self::RandomWrite => 7,
            Self::RecordRewrite => 8,
        }
    }

    fn pattern(self, stride: u64) -> Pattern {
        match self {
            Self::Write | Self::Rewrite | Self::Read | Self::Reread => Pattern::Sequential,
            Self::RandomRead | Self::RandomWrite => Pattern::Permutation,
            Self::BackwardRead => Pattern::Reverse,
            Self::RecordRewrite => Pattern::Same,
            Self::StrideRead => Pattern::Stride { stride },
        }
    }

    fn direction(self) -> Direction {
        match self {
            Self::Write | Self::Rewrite | Self::RandomWrite | Self::RecordRewrite => {
                Direction::Write
            }
            _ => Direction::Read,
        }
    }
}

/// What is asked for; the JSON that the Python front passes.
#[derive(Clone, Debug, Deserialize)]
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
    pub seed: Seed,
    #[serde(default = "seventeen")]
    pub stride: u64,
    #[serde(default = "one")]
    pub depth: u32,
    #[serde(default)]
    pub content: Content,
    #[serde(default)]
    pub pin_cpus: Vec<u32>,
}

/// Whether the final fsync is inside the timing (`IOzone`'s -e), after it, or not made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
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
    let count = tests.len();
    let phase = |(index, &test): (usize, &IozoneTest)| Phase {
        name: test.name().to_owned(),
        is_stonewalled: is_throughput,
        keeps_files: index + 1 < count,
        tenants: vec![tenant(request, test, index == 0)],
    };
    let workload = Workload {
        version: VERSION,
        name: "iozone".into(),
        engine: request.engine.clone(),
        workers_as: request.workers_as,
        seed: request.seed,
        content: request.content,
        pin_cpus: request.pin_cpus.clone(),
        interval_ns: iolab_model::Ns::from_ms(100),
        is_calibrated: true,
        phases: tests.iter().enumerate().map(phase).collect(),
    };
    workload.check()?;
    Ok(workload)
}

fn tenant(request: &IozoneRequest, test: IozoneTest, is_first: bool) -> Tenant {
    let is_sequential_read = matches!(test, IozoneTest::Read | IozoneTest::Reread);
    Tenant {
        name: "main".into(),
        workers: request.workers,
        is_file_shared: false,
        file: "iozone".into(),
        file_bytes: request.file_bytes,
        io_size_bytes: request.io_size_bytes,
        pattern: test.pattern(request.stride),
        direction: test.direction(),
        depth: request.depth,
        access: request.access,
        durability: request.durability,
        fsync: match request.fsync {
            FsyncChoice::None => FsyncPolicy::None,
            FsyncChoice::After => FsyncPolicy::After,
            FsyncChoice::Timed => FsyncPolicy::Timed,
        },
        opening: match test {
            IozoneTest::Write => Opening::Create,
            _ if is_first => Opening::LaidOut,
            _ => Opening::Existing,
        },
        primes_first_record: is_sequential_read && request.workers == 1,
        rate_ops_per_s: None,
        think_ns: iolab_model::Ns(0),
        priority: None,
        limit: Limit::Once,
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
    fn throughput_mode_is_stonewalled_and_reordered() {
        let workload = iozone(&request("\"random-read\",\"stride-read\",\"write\"", 2)).unwrap();
        let names: Vec<&str> = workload.phases.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["write", "stride-read", "random-read"]);
        assert!(workload.phases.iter().all(|p| p.is_stonewalled));
        assert!(!workload.phases[1].tenants[0].primes_first_record);
    }

    #[test]
    fn an_unknown_test_names_the_known_ones() {
        let text = serde_json::from_str::<IozoneTest>("\"randread\"").unwrap_err().to_string();
        assert!(text.contains("random-read"), "{text}");
    }
}
