//! Requests that leave the machine, and what is done when they end.

use iolab_model::{Ns, Sector};

use super::task::{RunBy, TaskIndex};
use crate::api::block::{BlockRun, DeviceId, FileRun};

/// Name of a request; unique among those on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutgoingId(pub u32);

/// Action that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingKind {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Give sectors back.
    Discard,
    /// Flush the device's write cache.
    Flush,
}

/// A request on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a request")]
pub struct Outgoing {
    /// Its name.
    pub id: OutgoingId,
    /// Time at which its submitter's processor gets to it; never before now.
    pub at: Ns,
    /// Action that it asks for.
    pub kind: OutgoingKind,
    /// Device, by its role.
    pub device: DeviceId,
    /// First sector.
    pub sector: Sector,
    /// Length; 0 of a flush.
    pub sectors: u32,
    /// Pieces of memory; 0: one for each page.
    pub segments: u32,
    /// A task waits for it.
    pub is_sync: bool,
    /// Flush the write cache first.
    pub is_preflush: bool,
    /// Durable when done.
    pub is_fua: bool,
    /// Metadata.
    pub is_meta: bool,
    /// Write-back that can wait.
    pub is_background: bool,
    /// Process that submits it.
    pub runner: RunBy,
}

/// Pages or blocks that a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cargo {
    /// Nothing that the machine keeps track of.
    Plain,
    /// Pages being read: file, first, number.
    Read(u32, u64, u64),
    /// Pages being written: file, first, number; and its blocks.
    Write(u32, (u64, u64), FileRun),
    /// Blocks of a direct write.
    Direct(u32, FileRun),
    /// Pages of the device being written by their age.
    Metadata((u64, u64), BlockRun),
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct OnItsWay {
    pub cargo: Cargo,
    /// Tasks that wait for it; true: they fail with it.
    pub waiters: Vec<(TaskIndex, bool)>,
    pub is_flushers: bool,
}

/// Description of a request before it is made.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a request")]
pub(super) struct Want {
    pub kind: OutgoingKind,
    pub device: DeviceId,
    pub sector: Sector,
    pub sectors: u64,
    pub segments: u32,
    pub is_sync: bool,
    pub is_preflush: bool,
    pub is_fua: bool,
    pub is_meta: bool,
    pub is_background: bool,
}

impl Want {
    pub const fn new(kind: OutgoingKind, device: DeviceId, sector: Sector, sectors: u64) -> Self {
        Self {
            kind,
            device,
            sector,
            sectors,
            segments: 0,
            is_sync: true,
            is_preflush: false,
            is_fua: false,
            is_meta: false,
            is_background: false,
        }
    }
}
