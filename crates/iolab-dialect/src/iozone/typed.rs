//! Typed options of an `IOzone` command line, before anything is decided.

use iolab_model::op::Advice;
use serde::{Deserialize, Serialize};

/// Everything that the options of one command line said, in the original's own units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// `--compat` stands somewhere: silent substitutions are made as the original makes them.
    pub is_compat: bool,
    /// Selected tests (-i), by number; empty: all.
    pub tests: Vec<u32>,
    /// Table that is asked for.
    pub table: Table,
    /// Number of children and their files (-t -l -u -F).
    pub children: Children,
    /// Way in which I/O is done.
    pub how: How,
    /// Choice of what is shown and written.
    pub shown: Shown,
    /// Lines of the banner, in the order of the options.
    pub banner: Vec<String>,
    /// Notes for the user, in the order of the options: one note each on standard error.
    pub notes: Vec<String>,
    /// -h: only the help text is wanted.
    pub is_help: bool,
    /// -v: only the version is wanted.
    pub is_version: bool,
}

/// File sizes and record sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Table {
    /// -a.
    pub is_auto: bool,
    /// -A.
    pub is_old_auto: bool,
    /// -z: no cross-over.
    pub is_full: bool,
    /// -E: extension tests.
    pub has_extensions: bool,
    /// -+n.
    pub has_no_retest: bool,
    /// -s, in kB.
    pub file_kb: Vec<u64>,
    /// -r, in kB.
    pub record_kb: Vec<u64>,
    /// -n and -g, in kB.
    pub file_kb_range: (Option<u64>, Option<u64>),
    /// -y and -q, in kB.
    pub record_kb_range: (Option<u64>, Option<u64>),
    /// -+x.
    pub multiplier: u64,
}

/// Children of throughput mode, and files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Children {
    /// -t, each.
    pub counts: Vec<u32>,
    /// -l.
    pub lower: Option<u32>,
    /// -u.
    pub upper: Option<u32>,
    /// -T.
    pub are_threads: bool,
    /// -F.
    pub files: Vec<String>,
    /// -f.
    pub file: Option<String>,
    /// -w.
    pub keeps_files: bool,
    /// -+k.
    pub is_aggregate: bool,
    /// -x.
    pub is_stonewall_off: bool,
    /// -P.
    pub first_cpu: Option<u32>,
    /// -+O, per child.
    pub ops_per_s: Option<u32>,
    /// -+p.
    pub read_percent: Option<u32>,
    /// -+K.
    pub readers: Option<u32>,
    /// -+B.
    pub is_mix_sequential: bool,
    /// -+R: the file that lists the names of the children's files.
    pub list: Option<String>,
    /// -+E: files of others, which are only read.
    pub is_foreign: bool,
    /// -+N: what a file holds is kept until it is overwritten.
    pub keeps_content: bool,
    /// -+V, -+L: all use the first file.
    pub is_shared: bool,
    /// -d, in microseconds.
    pub start_delay_us: u64,
}

/// Way in which I/O is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct How {
    /// -I.
    pub is_direct: bool,
    /// -o, -+r.
    pub is_sync: bool,
    /// -+D.
    pub is_data_sync: bool,
    /// -B, -D.
    pub is_mapped: bool,
    /// -D.
    pub syncs_async: bool,
    /// -G.
    pub syncs: bool,
    /// -H or -k.
    pub depth: Option<(&'static str, u32)>,
    /// -W.
    pub locks_file: bool,
    /// -+l.
    pub locks_records: bool,
    /// -c.
    pub times_close: bool,
    /// -e.
    pub times_flush: bool,
    /// -j.
    pub stride: u64,
    /// -J, in ms.
    pub compute_ms: u64,
    /// -U: caches are emptied before each reading test.
    pub is_cold: bool,
    /// -V or -+d.
    pub verify: Option<u32>,
    /// -+q, in seconds.
    pub pause_s: u64,
    /// -+A.
    pub advice: Option<Advice>,
    /// -m.
    pub has_buffers: bool,
    /// -K.
    pub is_disturbed: bool,
    /// -+b.
    pub burst: Option<Burst>,
    /// -+J: the time of -J counts.
    pub counts_compute: bool,
    /// -X and -Y.
    pub replays: Replays,
    /// Kind of data.
    pub data: Data,
}

/// Shares of data that can be de-duplicated or compressed, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// -+w, of each granule.
    pub duplicate_percent: u8,
    /// -+y, of -+w.
    pub everywhere_percent: u8,
    /// -+C, of -+w.
    pub within_percent: u8,
    /// -+a, of what is not -+w.
    pub zero_percent: u8,
    /// -+S.
    pub seed: u32,
    /// -+W.
    pub skew: u32,
    /// -+Q.
    pub granule_bytes: Option<u64>,
}

impl Data {
    /// Tell whether data have shares at all.
    pub fn is_blended(&self) -> bool {
        self.duplicate_percent > 0 || self.zero_percent > 0
    }
}

/// Pauses between bursts (-+b).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Data between two pauses, in kB.
    pub kb: u64,
    /// Length of a pause.
    pub ms: u64,
}

/// Telemetry files, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replays {
    /// -X.
    pub write: Option<String>,
    /// -Y.
    pub read: Option<String>,
}

impl Replays {
    /// Tell whether neither is given.
    pub fn is_empty(&self) -> bool {
        self.write.is_none() && self.read.is_none()
    }
}

/// Choice of what is shown and written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Shown {
    /// -O, -N.
    pub unit: Unit,
    /// -R, implied by -b.
    pub has_report: bool,
    /// -b.
    pub workbook: Option<String>,
    /// -C.
    pub has_children: bool,
    /// -+u.
    pub has_cpu: bool,
    /// -M.
    pub has_machine: bool,
    /// -S, in kB.
    pub cache_kb: u64,
    /// -L, in bytes.
    pub cache_line: u64,
    /// -Q.
    pub has_latencies: bool,
    /// -+z.
    pub has_histograms: bool,
    /// -+T.
    pub has_stamps: bool,
}

/// Unit of the results.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "IozoneUnit")]
pub enum Unit {
    /// kB/s.
    #[default]
    KiloBytes,
    /// Operations per second (-O).
    Operations,
    /// Microseconds per operation (-N).
    Microseconds,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            is_auto: false,
            is_old_auto: false,
            is_full: false,
            has_extensions: false,
            has_no_retest: false,
            file_kb: Vec::new(),
            record_kb: Vec::new(),
            file_kb_range: (None, None),
            record_kb_range: (None, None),
            multiplier: 2,
        }
    }
}

impl Default for How {
    fn default() -> Self {
        Self {
            is_direct: false,
            is_sync: false,
            is_data_sync: false,
            is_mapped: false,
            syncs_async: false,
            syncs: false,
            depth: None,
            locks_file: false,
            locks_records: false,
            times_close: false,
            times_flush: false,
            stride: 17,
            compute_ms: 0,
            is_cold: false,
            verify: None,
            pause_s: 0,
            advice: None,
            has_buffers: false,
            is_disturbed: false,
            burst: None,
            counts_compute: false,
            replays: Replays::default(),
            data: Data::default(),
        }
    }
}

impl Typed {
    /// Nothing typed yet.
    pub fn new(is_compat: bool) -> Self {
        Self {
            is_compat,
            tests: Vec::new(),
            table: Table::default(),
            children: Children::default(),
            how: How::default(),
            shown: Shown { cache_kb: 1024, cache_line: 32, ..Shown::default() },
            banner: Vec::new(),
            notes: Vec::new(),
            is_help: false,
            is_version: false,
        }
    }

    /// Tell whether throughput mode is asked for.
    pub fn is_throughput(&self) -> bool {
        let Children { counts, lower, upper, .. } = &self.children;
        !counts.is_empty() || lower.is_some() || upper.is_some()
    }

    /// Largest number of children asked for so far: so many names -F takes.
    pub fn children_max(&self) -> usize {
        let Children { counts, upper, .. } = &self.children;
        counts.iter().chain(upper).copied().max().unwrap_or(0) as usize
    }
}
