//! Values that tests begin with.

use iolab_model::{Ns, Sector};

use super::super::Cfq;
use crate::api::bio::{Bio, BioId, Flags, Operation, Priority, ProcessId, Submitter};
use crate::api::request::Request;
use crate::api::scheduler::{Attach, Hz, SchedulerContext};

/// A read of process 0.
pub(in super::super) fn request_at(sector: u64, sectors: u32) -> Request {
    Request::of(&read(0, sector, sectors), Ns(0))
}

/// A read.
pub(super) fn read(process: u32, sector: u64, sectors: u32) -> Bio {
    let priority = Priority::default();
    let process = ProcessId(process);
    Bio {
        id: BioId(0),
        operation: Operation::Read,
        sector: Sector(sector),
        sectors,
        flags: Flags::NONE,
        submitter: Submitter { process, priority, cpu: 0 },
        segments: 0,
    }
}

/// cfq with default tunables at HZ = 1000.
pub(in super::super) fn cfq(is_rotational: bool) -> Cfq {
    cfq_at(Hz(1_000), is_rotational)
}

pub(super) fn cfq_at(hz: Hz, is_rotational: bool) -> Cfq {
    Cfq::attach(&SchedulerContext {
        is_rotational,
        hz,
        slots: 128,
        depth: 1,
        cpus: 1,
        attached: Ns(0),
    })
}
