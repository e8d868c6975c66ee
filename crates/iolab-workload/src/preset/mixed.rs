//! Streams that run at once for a fixed time: where requests queue, a scheduler has something to
//! decide.

use iolab_model::op::{Access, Durability, TransferFlags};
use iolab_model::target::Content;
use iolab_model::{Bytes, Error, Ns, Priority, Seed};
use serde::Deserialize;

use crate::spec::{
    Direction, Flush, FsyncPolicy, Limit, LockPolicy, Manner, Opening, Pattern, Phase, Tenant,
    VERSION, WorkersAs, Workload,
};
use crate::verify::Verify;

/// Wishes for a mixed workload; the JSON that the Python front passes.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of the workload description")]
pub struct MixedRequest {
    #[serde(default = "mixed_name")]
    pub name: String,
    pub duration_ns: Ns,
    pub engine: String,
    #[serde(default)]
    pub workers_as: WorkersAs,
    pub seed: Seed,
    #[serde(default)]
    pub access: Access,
    #[serde(default)]
    pub durability: Durability,
    #[serde(default)]
    pub content: Content,
    #[serde(default)]
    pub verify: Verify,
    #[serde(default)]
    pub pin_cpus: Vec<u32>,
    #[serde(default)]
    pub cuts_ns: Vec<Ns>,
    pub streams: Vec<StreamRequest>,
}

/// One stream: a number of equal workers with a pattern, a depth and perhaps a rate.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of the workload description")]
pub struct StreamRequest {
    pub name: String,
    pub read_share: f64,
    pub pattern: PatternName,
    pub io_size_bytes: Bytes,
    #[serde(default = "one")]
    pub depth: u32,
    #[serde(default = "one")]
    pub workers: u32,
    pub file_bytes: Bytes,
    #[serde(default)]
    pub rate_ops_per_s: Option<f64>,
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
    #[serde(default)]
    pub begins_ns: Ns,
    #[serde(default)]
    pub ends_ns: Option<Ns>,
    #[serde(default)]
    pub think_ns: Ns,
    #[serde(default)]
    pub priority: Option<Priority>,
    #[serde(default)]
    pub ops: Option<u64>,
    #[serde(default)]
    pub share: Option<f64>,
}

iolab_model::registry! {
    /// Patterns that a stream can have.
    pub enum PatternName as "pattern" {
        /// Ascending.
        Sequential = "sequential",
        /// Descending.
        Reverse = "reverse",
        /// `IOzone`'s stride rule with stride 17.
        Stride = "stride",
        /// Each record once, `IOzone`'s order.
        Permutation = "permutation",
        /// Independent draws.
        Uniform = "uniform",
        /// Record 0.
        Same = "same",
    }
}

impl From<PatternName> for Pattern {
    fn from(name: PatternName) -> Self {
        match name {
            PatternName::Sequential => Self::Sequential,
            PatternName::Reverse => Self::Reverse,
            PatternName::Stride => Self::Stride { stride: 17 },
            PatternName::Permutation => Self::Permutation,
            PatternName::Uniform => Self::Uniform,
            PatternName::Same => Self::Same,
        }
    }
}

fn one() -> u32 {
    1
}

fn mixed_name() -> String {
    "mixed".into()
}

/// The workload in which all streams run at once, each on files of its own.
pub fn mixed(request: &MixedRequest) -> Result<Workload, Error> {
    let workload = Workload {
        file_sets: Vec::new(),
        key_spaces: Vec::new(),
        version: VERSION,
        name: request.name.clone(),
        engine: request.engine.clone(),
        workers_as: request.workers_as,
        seed: request.seed,
        content: request.content,
        verify: request.verify,
        pin_cpus: request.pin_cpus.clone(),
        interval_ns: Ns::from_ms(100),
        is_calibrated: true,
        goes_on_after_failure: false,
        phases: vec![Phase {
            name: request.name.clone(),
            is_stonewalled: false,
            keeps_files: false,
            engine: None,
            ignores: Vec::new(),
            records_per_op: 1,
            cuts_ns: request.cuts_ns.clone(),
            pause_after_ns: Ns(0),
            tenants: request.streams.iter().map(|stream| tenant(request, stream)).collect(),
        }],
    };
    let mut names: Vec<&str> = request.streams.iter().map(|s| s.name.as_str()).collect();
    names.sort_unstable();
    if let Some([twice, ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::BadWorkload {
            problem: format!("two streams are called {twice}"),
            remedy: "give each stream its own name".into(),
        });
    }
    let late = request.streams.iter().find(|stream| stream.begins_ns >= stream.ends(request));
    if let Some(stream) = late {
        return Err(Error::BadWorkload {
            problem: format!(
                "stream {} begins after {} ns and ends after {} ns",
                stream.name,
                stream.begins_ns.0,
                stream.ends(request).0
            ),
            remedy: "let it begin before it ends, and both before the workload's duration".into(),
        });
    }
    let mut earlier = Ns(0);
    for &cut in &request.cuts_ns {
        if cut <= earlier || cut >= request.duration_ns {
            return Err(Error::BadWorkload {
                problem: format!("a cut after {} ns", cut.0),
                remedy: "cuts ascend, and lie inside the workload's duration".into(),
            });
        }
        earlier = cut;
    }
    workload.check()?;
    Ok(workload)
}

impl StreamRequest {
    /// Time at which it ends; never later than the workload.
    fn ends(&self, request: &MixedRequest) -> Ns {
        self.ends_ns.unwrap_or(request.duration_ns).min(request.duration_ns)
    }
}

fn tenant(request: &MixedRequest, stream: &StreamRequest) -> Tenant {
    let direction = if stream.read_share >= 1.0 {
        Direction::Read
    } else if stream.read_share <= 0.0 {
        Direction::Write
    } else {
        Direction::Mixed { read_share: stream.read_share }
    };
    Tenant {
        name: stream.name.clone(),
        workers: stream.workers,
        is_file_shared: false,
        file: format!("stream-{}", stream.name),
        file_first: 0,
        file_step: 1,
        file_bytes: stream.file_bytes,
        region: None,
        io_size_bytes: stream.io_size_bytes,
        pattern: stream.pattern.into(),
        direction,
        depth: stream.depth,
        access: request.access,
        durability: request.durability,
        fsync: match stream.fsync_every {
            0 => FsyncPolicy::None,
            ops => FsyncPolicy::Every { ops },
        },
        flush: stream.flush,
        vectors: stream.vectors,
        flags: stream.flags,
        lock: stream.lock,
        is_preallocated: stream.is_preallocated,
        files: Vec::new(),
        is_close_timed: false,
        stream_buffer_bytes: Bytes(0),
        opening: Opening::LaidOut,
        primes_first_record: false,
        rate_ops_per_s: stream.rate_ops_per_s,
        think_ns: stream.think_ns,
        begins_ns: stream.begins_ns,
        priority: stream.priority,
        share: stream.share,
        file_set: None,
        program: None,
        kv: None,
        manner: Manner::default(),
        draws: None,
        limit: match (stream.ops, stream.ends(request).since(stream.begins_ns)) {
            (Some(ops), within) => Limit::Ops { ops, within_ns: Some(within) },
            (None, duration_ns) => Limit::Time { duration_ns },
        },
    }
}
