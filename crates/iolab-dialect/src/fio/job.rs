//! One job as its options describe it, before anything is made of it.

use iolab_model::op::{Advice, RangeSync, WriteLife};
use iolab_model::target::BytePattern;
use iolab_workload::program::Weighted;
use iolab_workload::spec::LockPolicy;

use super::iolog;
use super::logs;
use super::place::Place;
use super::row::Row;
use super::rules;
use super::value::Amount;
use super::verify;

/// Directions that a job moves data in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rw {
    /// Sequential reads.
    #[default]
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// Both, sequential.
    Mixed,
    /// Both, random.
    RandMixed,
    /// Sequential trims.
    Trim,
    /// Random trims.
    RandTrim,
    /// Each block is trimmed, then written; sequential.
    TrimWrite,
    /// Each block is trimmed, then written; random.
    RandTrimWrite,
}

impl Rw {
    /// Tell whether it ever reads.
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::RandRead | Self::Mixed | Self::RandMixed)
    }

    /// Tell whether it ever writes or trims.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::RandRead)
    }

    /// Tell whether its places are random.
    pub const fn is_random(self) -> bool {
        matches!(
            self,
            Self::RandRead
                | Self::RandWrite
                | Self::RandMixed
                | Self::RandTrim
                | Self::RandTrimWrite
        )
    }

    /// Tell whether it ever trims.
    pub const fn trims(self) -> bool {
        matches!(self, Self::Trim | Self::RandTrim | Self::TrimWrite | Self::RandTrimWrite)
    }

    /// Tell whether it moves data to the file.
    pub const fn writes_data(self) -> bool {
        self.writes() && !matches!(self, Self::Trim | Self::RandTrim)
    }

    /// Tell whether it both reads and writes.
    pub const fn is_mixed(self) -> bool {
        matches!(self, Self::Mixed | Self::RandMixed)
    }
}

/// Promise of a write that returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Nothing.
    #[default]
    None,
    /// `O_SYNC`.
    Sync,
    /// `O_DSYNC`.
    Dsync,
}

/// Way of allocating space when a file is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallocate {
    /// Not before it is written.
    None,
    /// fallocate(2).
    #[default]
    Native,
    /// fallocate(2) with `KEEP_SIZE`.
    Keep,
    /// ftruncate(2): the length alone.
    Truncate,
}

/// Advice to the kernel about the order of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advised {
    /// None.
    Nothing,
    /// That of the job.
    #[default]
    Order,
    /// This one.
    As(Advice),
}

/// Pauses, beside their length and the transfers between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// `thinktime_iotime`; 0: any.
    pub every_ns: u64,
    /// `thinktime_spin`.
    pub burning_ns: u64,
    /// `rate_ignore_thinktime`.
    pub delays_schedule: bool,
}

/// Choice of results of reads and writes that are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unified {
    /// Reads, writes and trims.
    #[default]
    None,
    /// All together.
    Mixed,
    /// Both ways.
    Both,
}

/// An option as it was given.
#[derive(Clone, Debug)]
pub struct Typed {
    /// Its row.
    pub row: &'static Row,
    /// Its value after replacement of variables; absent: it stood alone.
    pub text: Option<String>,
    /// Place in the text.
    pub at: Place,
}

/// Choice of latencies that have percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Of submission.
    pub slat: bool,
    /// Of completion.
    pub clat: bool,
    /// Of both.
    pub lat: bool,
}

/// One section.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Job {
    /// Name of the section.
    pub section: String,
    /// Name in results.
    pub name: String,
    /// Place where its section begins.
    pub at: Place,
    /// Number of options of global sections before it.
    pub globals: usize,
    /// Its own options, the file's name last.
    pub typed: Vec<Typed>,
    /// description.
    pub description: Option<String>,
    /// `kb_base`: 1024 or 1000.
    pub kb_base: u64,
    /// filename, all that were given.
    pub filename: Vec<String>,
    /// directory.
    pub directory: Vec<String>,
    /// `filename_format`.
    pub filename_format: String,
    /// nrfiles.
    pub nrfiles: u64,
    /// `file_service_type`, and what stands behind its colon.
    pub file_service: (String, Option<String>),
    /// filesize.
    pub filesize: Option<(u64, u64)>,
    /// size.
    pub size: Option<Amount>,
    /// `io_size`.
    pub io_size: Option<Amount>,
    /// offset.
    pub offset: Amount,
    /// `offset_increment`.
    pub offset_increment: Amount,
    /// `offset_align`.
    pub offset_align: u64,
    /// `number_ios`; 0: no limit.
    pub number_ios: u64,
    /// loops.
    pub loops: u64,
    /// overwrite.
    pub is_overwritten: bool,
    /// `allow_file_create`.
    pub may_create: bool,
    /// fallocate.
    pub fallocate: Fallocate,
    /// `pre_read`.
    pub is_pre_read: bool,
    /// invalidate.
    pub is_invalidated: bool,
    /// unlink.
    pub is_unlinked: bool,
    /// rw.
    pub rw: Rw,
    /// rw as it is called.
    pub rw_name: &'static str,
    /// Text behind the colon of rw.
    pub rw_more: Option<String>,
    /// `rw_sequencer` is identical.
    pub is_identical: bool,
    /// bs of reads, writes and trims.
    pub bs: [u64; 3],
    /// `bs_unaligned`.
    pub is_unaligned: bool,
    /// `bs_is_seq_rand`.
    pub is_sized_by_order: bool,
    /// bsrange, if given.
    pub bsrange: [Option<(u64, u64)>; 3],
    /// bssplit, if given.
    pub bssplit: Option<[Vec<Weighted>; 3]>,
    /// rwmixread.
    pub read_percent: u64,
    /// `percentage_random`, if given.
    pub percentage_random: [Option<u64>; 3],
    /// `random_distribution`.
    pub distribution: String,
    /// norandommap.
    pub has_no_map: bool,
    /// randrepeat.
    pub is_repeated: bool,
    /// randseed.
    pub seed: Option<u64>,
    /// direct.
    pub is_direct: bool,
    /// sync.
    pub sync: Sync,
    /// fsync.
    pub fsync: u64,
    /// fdatasync.
    pub fdatasync: u64,
    /// `sync_file_range`: its parts, and writes between two; absent: none.
    pub range_sync: Option<(RangeSync, u64)>,
    /// `end_fsync`.
    pub is_flushed_at_end: bool,
    /// `fsync_on_close`.
    pub is_flushed_on_close: bool,
    /// `zero_buffers`.
    pub has_zeros: bool,
    /// `buffer_compress_percentage`.
    pub compress_percent: u64,
    /// `buffer_compress_chunk`.
    pub compress_chunk: u64,
    /// `buffer_pattern`.
    pub pattern: Option<BytePattern>,
    /// `dedupe_percentage`.
    pub dedupe_percent: u64,
    /// `dedupe_global`.
    pub is_dedupe_global: bool,
    /// blockalign of reads, writes and trims, if given.
    pub align: [Option<u64>; 3],
    /// `zonemode` is strided, none or not said.
    pub is_strided: Option<bool>,
    /// `zonesize`.
    pub zone_bytes: u64,
    /// `zonerange`; 0: that of `zonesize`.
    pub zone_range: u64,
    /// `zoneskip`.
    pub zone_skip: u64,
    /// flow; 0: none.
    pub flow: u64,
    /// `flow_id`.
    pub flow_id: u64,
    /// exitall.
    pub ends_all: bool,
    /// `exitall_on_error`.
    pub ends_on_error: bool,
    /// `exit_what` is all.
    pub ends_later_ones: bool,
    /// `exec_prerun`.
    pub command_before: Option<String>,
    /// `exec_postrun`.
    pub command_after: Option<String>,
    /// cgroup.
    pub control_group: Option<String>,
    /// `cgroup_weight`.
    pub control_group_weight: Option<u32>,
    /// ioscheduler.
    pub scheduler: Option<String>,
    /// ioengine, as it is called.
    pub engine: String,
    /// `sqthread_poll_cpu`.
    pub submitter_cpu: Option<u32>,
    /// nowait.
    pub is_nowait: bool,
    /// uncached.
    pub is_uncached: bool,
    /// hipri.
    pub is_polled: bool,
    /// fixedbufs.
    pub has_fixed_buffers: bool,
    /// `sqthread_poll`.
    pub has_submission_thread: bool,
    /// iodepth.
    pub depth: u64,
    /// numjobs.
    pub clones: u64,
    /// thread.
    pub is_thread: bool,
    /// `group_reporting`.
    pub is_group_reported: bool,
    /// `new_group`.
    pub begins_group: bool,
    /// stonewall.
    pub is_stonewalled: bool,
    /// `wait_for`.
    pub wait_for: Option<String>,
    /// startdelay.
    pub delay_ns: (u64, u64),
    /// runtime.
    pub runtime_ns: u64,
    /// `time_based`.
    pub is_time_based: bool,
    /// `ramp_time`.
    pub ramp_ns: u64,
    /// rate in bytes per second of reads, writes and trims.
    pub rate: [u64; 3],
    /// `rate_iops`.
    pub rate_iops: [u64; 3],
    /// `rate_process` is poisson.
    pub is_poisson: bool,
    /// thinktime.
    pub think_ns: u64,
    /// `thinktime_blocks`, if given.
    pub think_blocks: Option<u64>,
    /// `thinktime_iotime` and the like.
    pub pauses: Pauses,
    /// nice.
    pub nice: i8,
    /// lockfile.
    pub lock: LockPolicy,
    /// `force_async`; 0: none.
    pub kernel_thread_every: u64,
    /// `fadvise_hint`.
    pub advice: Advised,
    /// `write_hint`.
    pub write_life: WriteLife,
    /// `thinktime_blocks_type` is issue.
    pub is_thought_at_issue: bool,
    /// prio.
    pub prio: Option<u64>,
    /// prioclass.
    pub prio_class: Option<u64>,
    /// `cpus_allowed`.
    pub cpus: Option<String>,
    /// `cpus_allowed_policy` is split.
    pub is_cpu_split: bool,
    /// verify, if on.
    pub verify: Option<&'static str>,
    /// `verify_pattern`.
    pub verify_pattern: Option<BytePattern>,
    /// `verify_only`.
    pub is_only_verified: bool,
    /// `do_verify`.
    pub is_verified_after: bool,
    /// `verify_interval` and the like.
    pub verifying: verify::Asked,
    /// `unified_rw_reporting`.
    pub unified: Unified,
    /// `slat_percentiles` and the like.
    pub percentiles: Percentiles,
    /// `percentile_list`.
    pub percentile_list: Vec<f64>,
    /// `gtod_reduce` and `disable_*`: slat, clat, lat, bw.
    pub disabled: [bool; 4],
    /// A log that is done again.
    pub replay: iolog::Asked,
    /// Rules of the job that follow from measurements.
    pub rules: rules::Asked,
    /// Logs that are written.
    pub logs: logs::Asked,
    /// `iodepth_batch`; 0: iodepth.
    pub submitted_together: u64,
    /// `iodepth_batch_complete_min`.
    pub ends_awaited: u64,
    /// `iodepth_low`; 0: iodepth.
    pub depth_low: u64,
    /// cpuload; 0: none.
    pub cpu_percent: u64,
    /// cpuchunks.
    pub cpu_chunk_ns: u64,
    /// `create_only`.
    pub is_only_created: bool,
    /// `file_append`.
    pub is_appended: bool,
    /// `unlink_each_loop`.
    pub is_unlinked_each_loop: bool,
    /// `serialize_overlap`.
    pub is_serialized: bool,
    /// stats is 0.
    pub is_untold: bool,
    /// `fill_device`.
    pub fills: bool,
}

/// Percentiles that fio tells unless others are asked for.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Job {
    /// A section in which nothing is said.
    pub fn new(name: &str, at: Place) -> Self {
        Self {
            section: name.to_owned(),
            name: name.to_owned(),
            at,
            kb_base: 1024,
            filename_format: "$jobname.$jobnum.$filenum".to_owned(),
            nrfiles: 1,
            loops: 1,
            may_create: true,
            is_invalidated: true,
            file_service: ("roundrobin".to_owned(), None),
            rw_name: "read",
            bs: [4096; 3],
            read_percent: 50,
            distribution: "random".to_owned(),
            is_repeated: true,
            compress_chunk: 512,
            engine: "psync".to_owned(),
            depth: 1,
            clones: 1,
            submitted_together: 1,
            ends_awaited: 1,
            cpu_chunk_ns: 50_000_000,
            is_verified_after: true,
            percentiles: Percentiles { slat: false, clat: true, lat: false },
            percentile_list: PERCENTILES.to_vec(),
            ..Self::default()
        }
    }

    /// True if its files are removed in the end.
    pub fn is_renewed(&self) -> bool {
        let is_timed = self.is_time_based && self.runtime_ns > 0;
        let has_passes = is_timed || self.loops > 1 || self.io_size.is_some();
        self.is_unlinked_each_loop && has_passes
    }

    /// With `verify_only` nothing is written: it reads what it would write.
    pub fn read_only_if_verified(&mut self) {
        if self.is_only_verified && self.verify.is_some() {
            self.rw = match self.rw {
                Rw::Write => Rw::Read,
                Rw::RandWrite => Rw::RandRead,
                other => other,
            };
        }
    }

    /// Tell whether fio drops the file's cached pages between two passes as it does before the
    /// first: where it knows that a pass is over, which it does not where a block may be drawn
    /// twice (strace of fio 3.33).
    pub fn drops_cache_each_pass(&self) -> bool {
        let is_drawn_anew = self.has_no_map || self.distribution != "random";
        let knows_passes = !(self.rw.is_random() && is_drawn_anew);
        self.is_invalidated && !self.is_pre_read && !self.is_direct && knows_passes
    }

    /// True if it reads what an earlier run has written, and compares it.
    pub fn verifies_earlier(&self) -> bool {
        self.compares() && !self.rw.writes()
    }

    /// Smallest and largest size of the transfers of each direction.
    pub fn sizes(&self) -> [(u64, u64); 3] {
        std::array::from_fn(|place| {
            let place = self.place_of_sizes(place);
            match &self.bssplit {
                Some(split) if !split[place].is_empty() => {
                    let sizes = || split[place].iter().map(|row| row.value);
                    (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
                }
                _ => self.bsrange[place].unwrap_or((self.bs[place], self.bs[place])),
            }
        })
    }

    /// Place of the sizes of a direction: with `bs_is_seq_rand` the first are those of sequential
    /// transfers, the second those of random ones.
    pub fn place_of_sizes(&self, direction: usize) -> usize {
        if self.is_sized_by_order { usize::from(self.rw.is_random()) } else { direction }
    }

    /// Transfers between two pauses; 0: any number.
    pub fn thinks_after(&self) -> u64 {
        self.think_blocks.unwrap_or(u64::from(self.pauses.every_ns == 0))
    }

    /// Advice about an open file of the job.
    pub fn advised(&self) -> Option<Advice> {
        match self.advice {
            _ if self.is_direct => None,
            Advised::Nothing => None,
            Advised::As(advice) => Some(advice),
            Advised::Order if self.rw.is_random() => Some(Advice::Random),
            Advised::Order => Some(Advice::Sequential),
        }
    }

    /// Tell whether what was written is flushed at the end of each pass.
    pub fn is_flushed_after_pass(&self) -> bool {
        self.rw.writes() && (self.is_flushed_at_end || self.is_flushed_on_close)
    }

    /// Writes between two flushes; 0: none.
    pub fn flush_every(&self) -> u64 {
        let of_ranges = self.range_sync.map_or(0, |(_, every)| every);
        self.fsync.max(self.fdatasync).max(of_ranges)
    }

    /// Place where an option was given last, its section's beginning if it was not.
    pub fn place_of<'a>(&'a self, name: &str, globals: &'a [Typed]) -> &'a Place {
        let all = globals[..self.globals.min(globals.len())].iter().chain(&self.typed);
        let found = all.rev().find(|typed| typed.row.name == name);
        found.map_or(&self.at, |typed| &typed.at)
    }
}
