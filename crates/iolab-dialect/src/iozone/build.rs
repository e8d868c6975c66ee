//! One row's workload: a phase per test, with what the options ask for.

use std::fmt::Write as _;

use iolab_model::op::{Access, Durability, TransferFlags};
use iolab_model::target::{Blend, Content};
use iolab_model::{Bytes, Ns, Seed};
use iolab_workload::Workload;
use iolab_workload::preset::IozoneTest as T;
use iolab_workload::preset::{IozoneRequest, IozoneTest, iozone};
use iolab_workload::spec::{
    Burst, Direction, Flush, FsyncPolicy, LockPolicy, Manner, Opening, Pattern, Phase, Tenant,
    WorkersAs,
};
use iolab_workload::verify::Verify;

use super::plan::Row;
use super::telemetry::{Recorded, Telemetry};
use super::typed::Typed;
use crate::diagnostic::Problem;
use crate::option::Common;

/// Size of one row.
#[derive(Clone, Copy)]
pub struct Size {
    /// File size; of a replay the whole kB of it.
    pub file_kb: u64,
    /// Record size; 0: each operation has its own.
    pub record_kb: u64,
    /// Children.
    pub children: u32,
}

/// Reads beside a write that is replayed have records of this size.
const RECORD_BYTES: u64 = 4096;
/// -m: the buffers of a child together.
const WORK_AREA_BYTES: u64 = 16 << 20;
/// -K jumps before so many records.
const JUMPS_EVERY: u64 = 100;

/// Values that all phases of a row share.
pub struct Build<'a> {
    typed: &'a Typed,
    files: &'a [String],
    size: Size,
    recorded: &'a Recorded,
    /// On a testbed, where no file of an earlier command can be.
    is_elsewhere: bool,
    is_simulated: bool,
}

/// Size in the largest unit that divides it.
fn short(kb: u64) -> String {
    match kb {
        kb if kb % (1 << 20) == 0 => format!("{}g", kb >> 20),
        kb if kb % (1 << 10) == 0 => format!("{}m", kb >> 10),
        kb => format!("{kb}k"),
    }
}

impl<'a> Build<'a> {
    /// The builder of a row.
    pub fn new(
        typed: &'a Typed,
        common: &Common,
        (files, size): (&'a [String], Size),
        recorded: &'a Recorded,
    ) -> Self {
        let is_elsewhere = common.on.is_some();
        let is_simulated = common.on.as_deref().is_some_and(|on| on.starts_with("sim"));
        Self { typed, files, size, recorded, is_elsewhere, is_simulated }
    }

    /// The row.
    pub fn row(&self, tests: &[IozoneTest]) -> Result<Row, Problem> {
        let Size { file_kb, record_kb, children } = self.size;
        let record = if record_kb == 0 { "replay".to_owned() } else { short(record_kb) };
        let mut name = format!("{}/{record}", short(file_kb));
        if self.typed.is_throughput() {
            let _ = write!(name, "/{children}");
        }
        let workload = self.workload(tests)?;
        workload.check().map_err(|error| {
            Problem::new(format!("{name}: {error}"), "change -s, -r or the way I/O is done")
        })?;
        Ok(Row { name, file_kb, record_kb, children, tests: tests.to_vec(), workload })
    }

    /// The recorded operations of a test.
    fn replay(&self, test: IozoneTest) -> Option<&'a Telemetry> {
        match test {
            T::Write | T::Rewrite => self.recorded.write.as_ref(),
            T::Read | T::Reread => self.recorded.read.as_ref(),
            _ => None,
        }
    }

    /// Bytes of the file and of the largest operation.
    fn bytes(&self, test: IozoneTest) -> (u64, u64) {
        if self.recorded.is_empty() {
            return (self.size.file_kb << 10, self.size.record_kb << 10);
        }
        let file_bytes = self.recorded.file_bytes();
        let record = self.replay(test).map_or(RECORD_BYTES, Telemetry::length_max);
        (file_bytes, record.min(file_bytes))
    }
}

impl Build<'_> {
    fn workload(&self, tests: &[IozoneTest]) -> Result<Workload, Problem> {
        let (typed, count) = (self.typed, tests.len());
        let first = self.preset(T::Write)?;
        let mut workload = Workload { phases: Vec::with_capacity(count), ..first };
        let mut is_there = false;
        for (index, &test) in tests.iter().enumerate() {
            let mut phase = self.phase(test)?;
            for tenant in &mut phase.tenants {
                tenant.opening = match test {
                    T::Write => self.created(),
                    _ if is_there => Opening::Existing,
                    T::Fwrite | T::Pwrite | T::Pwritev => self.created(),
                    _ if self.is_elsewhere => Opening::LaidOut,
                    _ => Opening::Existing,
                };
            }
            is_there = true;
            phase.keeps_files = index + 1 < count || typed.children.keeps_files;
            workload.phases.push(phase);
        }
        if typed.how.verify.is_some() && workload.phases[0].tenants[0].opening == Opening::Existing
        {
            return Err(Problem::new(
                "-V checks what the same command wrote, and it writes nothing first",
                "add -i 0",
            ));
        }
        Ok(workload)
    }

    /// Way of opening the file when it is written for the first time. The original's children do
    /// not cut off what they find.
    fn created(&self) -> Opening {
        let is_kept_there = self.typed.is_compat && self.typed.is_throughput();
        let is_kept = self.typed.children.keeps_content || is_kept_there;
        if is_kept && !self.is_elsewhere { Opening::Keep } else { Opening::Create }
    }

    /// Content that is written.
    fn content(&self) -> Content {
        let (how, data) = (&self.typed.how, &self.typed.how.data);
        if data.is_blended() {
            let of = |whole: u8, share: u8| (u32::from(whole) * u32::from(share) / 100) as u8;
            let duplicate = data.duplicate_percent;
            let everywhere = of(duplicate, data.everywhere_percent);
            let within = of(duplicate, data.within_percent);
            return Content::Blend(Blend {
                granule_bytes: Bytes(data.granule_bytes.unwrap_or(self.bytes(T::Write).1)),
                across_percent: duplicate.saturating_sub(everywhere).saturating_sub(within),
                everywhere_percent: everywhere,
                within_percent: within,
                chunk_bytes: Bytes(0),
                chunk_zero_percent: 0,
                zero_percent: of(100 - duplicate, data.zero_percent),
                seed: Seed(u64::from(data.seed)),
                skew: data.skew,
            });
        }
        if self.typed.is_compat && how.verify.is_none() {
            return Content::Zero;
        }
        Content::Incompressible
    }

    /// Workload that the preset has for a test.
    fn preset(&self, test: IozoneTest) -> Result<Workload, Problem> {
        let (how, children) = (&self.typed.how, &self.typed.children);
        let (file_bytes, io_size_bytes) = self.bytes(test);
        let request = IozoneRequest {
            tests: vec![test],
            file_bytes: Bytes(file_bytes),
            io_size_bytes: Bytes(io_size_bytes),
            workers: self.size.children,
            engine: match how {
                how if how.is_mapped => "mmap",
                how if how.depth.is_some() => "io_uring",
                _ => "sync",
            }
            .into(),
            // A simulation has no processes; its workers are alone in their files all the same.
            workers_as: match (self.typed.is_throughput(), children.are_threads) {
                (true, false) if !self.is_simulated => WorkersAs::Processes,
                _ => WorkersAs::Threads,
            },
            access: if how.is_direct { Access::Direct } else { Access::Plain },
            durability: match how {
                how if how.is_sync => Durability::Sync,
                how if how.is_data_sync => Durability::DataSync,
                _ => Durability::None,
            },
            fsync: iolab_workload::preset::FsyncChoice::None,
            fsync_every: 0,
            flush: Flush::Fsync,
            vectors: 0,
            flags: TransferFlags::NONE,
            lock: match how {
                how if how.locks_records => LockPolicy::Record,
                how if how.locks_file => LockPolicy::WholeFile,
                _ => LockPolicy::None,
            },
            is_preallocated: false,
            is_cold: false,
            seed: Seed(u64::from(how.verify.unwrap_or(0)) + 1),
            stride: how.stride,
            depth: how.depth.map_or(1, |(_, depth)| depth),
            content: self.content(),
            verify: if how.verify.is_some() { Verify::Full } else { Verify::None },
            pin_cpus: Vec::new(),
        };
        let mut workload =
            iozone(&request).map_err(|error| Problem::new(error.to_string(), "change -s or -r"))?;
        // A row must not cost more than its work; what the harness costs is known elsewhere.
        workload.is_calibrated = false;
        Ok(workload)
    }

    fn phase(&self, test: IozoneTest) -> Result<Phase, Problem> {
        let is_mix = test == T::Mix;
        let workload = self.preset(if is_mix { T::RandomRead } else { test })?;
        let mut phase = workload.phases.into_iter().next().expect("one test makes one phase");
        test.name().clone_into(&mut phase.name);
        phase.is_stonewalled = self.typed.is_throughput() && !self.typed.children.is_stonewall_off;
        phase.pause_after_ns = Ns(self.typed.how.pause_s.saturating_mul(1_000_000_000));
        let mut tenant = phase.tenants.remove(0);
        self.adjust(&mut tenant, test);
        self.refine(&mut tenant, test);
        phase.tenants = if is_mix { self.mix(&tenant) } else { vec![tenant] };
        Ok(phase)
    }

    /// Change a tenant by options that the preset does not know.
    fn adjust(&self, tenant: &mut Tenant, test: IozoneTest) {
        let (how, children) = (&self.typed.how, &self.typed.children);
        if children.is_shared {
            tenant.is_file_shared = true;
            tenant.file.clone_from(&self.files[0]);
        } else {
            tenant.files = self.files.to_vec();
        }
        tenant.primes_first_record &= !self.typed.is_throughput();
        let is_stream = tenant.access == Access::Stdio;
        let syncs = how.is_mapped && (how.syncs || how.syncs_async) && tenant.writes();
        if syncs {
            tenant.flush = if how.syncs { Flush::Msync } else { Flush::MsyncAsync };
        }
        tenant.fsync = match how {
            _ if syncs => FsyncPolicy::Every { ops: 1 },
            how if how.times_flush => FsyncPolicy::Timed,
            how if how.times_close => FsyncPolicy::None,
            _ => FsyncPolicy::After,
        };
        tenant.is_close_timed = how.times_close;
        if is_stream || matches!(test, T::Pwritev | T::Preadv | T::Pwrite | T::Pread) {
            tenant.depth = 1;
        }
        tenant.think_ns = Ns::from_ms(how.compute_ms);
        tenant.rate_ops_per_s = children.ops_per_s.map(f64::from);
    }

    /// Change a tenant by options that few command lines have.
    fn refine(&self, tenant: &mut Tenant, test: IozoneTest) {
        let (how, io) = (&self.typed.how, tenant.io_size_bytes.0);
        let is_stream = tenant.access == Access::Stdio;
        let manner = &mut tenant.manner;
        if let Some(telemetry) = self.replay(test) {
            manner.replay.clone_from(&telemetry.ops);
        }
        if how.is_disturbed && matches!(test, T::Read | T::Reread) {
            manner.jumps_every = JUMPS_EVERY;
        }
        if how.has_buffers && tenant.depth == 1 {
            manner.buffers = (WORK_AREA_BYTES / io).max(1) as u32;
        }
        if how.is_mapped {
            manner.advice = how.advice;
        }
        let delay_us = self.typed.children.start_delay_us;
        manner.begin_step_ns = Ns(delay_us.saturating_mul(1000));
        if let Some(burst) = how.burst.filter(|_| test.writes() && !is_stream) {
            let bytes = Bytes(burst.kb << 10);
            manner.burst =
                Some(Burst { bytes, pause_ns: Ns::from_ms(burst.ms), ..Burst::default() });
            tenant.fsync = FsyncPolicy::Every { ops: bytes.0.div_ceil(io) };
            tenant.flush = if how.is_mapped { Flush::Msync } else { Flush::Fsync };
        }
    }

    /// In the mix some children read and the others write: every second one, or as asked.
    fn mix(&self, like: &Tenant) -> Vec<Tenant> {
        let children = &self.typed.children;
        let count = self.size.children;
        let reads = |child: u32| match (children.readers, children.read_percent) {
            (Some(readers), _) => child < readers,
            (None, Some(percent)) => child < count * percent / 100,
            (None, None) => child.is_multiple_of(2),
        };
        let half = |name: &str, direction: Direction, is_wanted: &dyn Fn(u32) -> bool| {
            let mine: Vec<u32> = (0..count).filter(|child| is_wanted(*child)).collect();
            let file = |child: &u32| self.files[*child as usize].clone();
            let files =
                if children.is_shared { Vec::new() } else { mine.iter().map(file).collect() };
            // Children begin in their order, whatever they do.
            let delay = like.manner.begin_step_ns.0;
            let first = mine.first().copied().unwrap_or(0);
            let step = mine.get(1).map_or(1, |second| second - first);
            let manner = Manner {
                begin_step_ns: Ns(delay.saturating_mul(u64::from(step))),
                ..like.manner.clone()
            };
            let pattern =
                if children.is_mix_sequential { Pattern::Sequential } else { Pattern::Permutation };
            Tenant {
                name: name.into(),
                workers: mine.len() as u32,
                files,
                begins_ns: Ns(delay.saturating_mul(u64::from(first))),
                manner,
                direction,
                pattern,
                ..like.clone()
            }
        };
        let readers = half("readers", Direction::Read, &reads);
        let writers = half("writers", Direction::Write, &|child| !reads(child));
        [readers, writers].into_iter().filter(|tenant| tenant.workers > 0).collect()
    }
}
