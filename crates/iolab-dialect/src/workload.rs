//! The plainest workloads, which dialects of one worker and one file at a time begin from.

use iolab_model::op::{Access, Durability, TransferFlags};
use iolab_model::target::Content;
use iolab_model::{Bytes, Ns, Seed};
use iolab_workload::Workload;
use iolab_workload::spec::{
    Direction, Flush, FsyncPolicy, Limit, LockPolicy, Manner, Opening, Pattern, Phase, Tenant,
    VERSION, WorkersAs,
};
use iolab_workload::verify::Verify;

/// A workload of system calls, its harness's own cost measured.
pub fn workload(name: &str, seed: u64, content: Content, phases: Vec<Phase>) -> Workload {
    Workload {
        file_sets: Vec::new(),
        key_spaces: Vec::new(),
        version: VERSION,
        name: name.into(),
        engine: "sync".into(),
        workers_as: WorkersAs::Threads,
        seed: Seed(seed),
        content,
        verify: Verify::None,
        pin_cpus: Vec::new(),
        interval_ns: Ns::from_ms(100),
        is_calibrated: true,
        goes_on_after_failure: false,
        phases,
    }
}

/// A phase whose files stay.
pub fn phase(name: &str, tenants: Vec<Tenant>) -> Phase {
    Phase {
        name: name.to_owned(),
        is_stonewalled: false,
        keeps_files: true,
        engine: None,
        ignores: Vec::new(),
        records_per_op: 1,
        cuts_ns: Vec::new(),
        pause_after_ns: Ns(0),
        tenants,
    }
}

/// A worker that reads one file from its front, the flush and the close inside the time.
pub fn tenant(file: &str) -> Tenant {
    Tenant {
        name: "main".into(),
        workers: 1,
        is_file_shared: true,
        file: file.into(),
        file_first: 0,
        file_step: 1,
        files: Vec::new(),
        file_bytes: Bytes(0),
        region: None,
        io_size_bytes: Bytes(0),
        pattern: Pattern::Sequential,
        direction: Direction::Read,
        depth: 1,
        access: Access::Plain,
        durability: Durability::None,
        fsync: FsyncPolicy::Timed,
        is_close_timed: true,
        flush: Flush::Fsync,
        vectors: 0,
        flags: TransferFlags::NONE,
        lock: LockPolicy::None,
        is_preallocated: false,
        stream_buffer_bytes: Bytes(0),
        opening: Opening::Existing,
        primes_first_record: false,
        rate_ops_per_s: None,
        think_ns: Ns(0),
        begins_ns: Ns(0),
        priority: None,
        share: None,
        limit: Limit::Once,
        file_set: None,
        program: None,
        kv: None,
        draws: None,
        manner: Manner::default(),
    }
}
