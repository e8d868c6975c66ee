//! `Zfs`: state of a mounted pool with one file system, and what its parts share.

use std::collections::BTreeMap;

use iolab_model::Ns;

use super::admission::Throttle;
use super::group::{Change, Entry, Group, InLog, Stage, Syncing};
use super::intent_log::IntentLog;
use super::metadata::MetaKey;
use super::metaslab::Metaslabs;
use super::node::{NodeState, ZNode};
use super::options::{BLOCK, Geometry, ZfsRules};
use crate::api::block::{DeviceId, NodeId};
use crate::api::context::{Context, Tid};
use crate::api::file_system::{FsJob, JobId, RunsAs, Step, WriteFlags};
use crate::api::make::MakeSpec;
use crate::error::FilesError;

/// Object number of the root directory, and first one that files get.
pub const ROOT: u32 = 4;
const FIRST_NODE: u32 = 8;
/// Copies of the label: two at each end of the device.
const LABELS: u64 = 4;
/// Bytes of a label, and where its ring of uberblocks begins.
const LABEL_BYTES: u64 = 256 << 10;
const RING_BYTES: u64 = 128 << 10;
/// Bytes of an uberblock.
const UBERBLOCK_BYTES: u64 = 4096;

/// A mounted pool with its file system.
#[derive(Clone, Debug)]
pub struct Zfs {
    pub(super) rules: ZfsRules,
    pub(super) geometry: Geometry,
    pub(super) slabs: Metaslabs,
    pub(super) nodes: BTreeMap<u32, ZNode>,
    pub(super) metadata: BTreeMap<MetaKey, Vec<u64>>,
    /// State that the last durable group has left on the device.
    pub(super) image: BTreeMap<u32, NodeState>,
    pub(super) image_metadata: BTreeMap<MetaKey, Vec<u64>>,
    /// Number of the last change.
    pub(super) last: Tid,
    /// The last change that a durable group holds.
    pub(super) synced: Tid,
    pub(super) open: Group,
    pub(super) closed: Option<Group>,
    pub(super) syncing: Option<Syncing>,
    /// A writer waits for the next group to open.
    pub(super) wants_next: bool,
    /// True if somebody waits for the open group to be durable.
    pub(super) is_open_asked: bool,
    /// Changes up to this one are to be durable in a group.
    pub(super) asked: Tid,
    /// Time from which the timer of groups counts.
    pub(super) cycle: Ns,
    pub(super) throttle: Throttle,
    pub(super) log: IntentLog,
    /// A write has failed, and the pool goes on no more.
    pub(super) is_suspended: bool,
    pub(super) next_node: u32,
    next_job: u64,
    /// Groups written, and their data and time.
    pub(super) groups: u64,
}

impl Zfs {
    /// A fresh pool.
    pub fn make(spec: &MakeSpec) -> Result<Self, FilesError> {
        let (rules, geometry) = ZfsRules::new(spec)?;
        let root = NodeState { links: 2, ..NodeState::default() };
        let data = (geometry.first, geometry.blocks);
        let node = ZNode { state: root.clone(), ..ZNode::default() };
        Ok(Self {
            slabs: Metaslabs::new(data, BLOCK, geometry.prefers_low),
            throttle: Throttle::new(&rules),
            log: IntentLog::default(),
            rules,
            geometry,
            nodes: BTreeMap::from([(ROOT, node)]),
            metadata: BTreeMap::new(),
            image: BTreeMap::from([(ROOT, root)]),
            image_metadata: BTreeMap::new(),
            last: Tid(0),
            synced: Tid(0),
            open: Group::default(),
            closed: None,
            syncing: None,
            wants_next: false,
            is_open_asked: false,
            asked: Tid(0),
            cycle: Ns(0),
            is_suspended: false,
            next_node: FIRST_NODE,
            next_job: 0,
            groups: 0,
        })
    }

    pub(super) fn node(&self, node: NodeId) -> Option<&ZNode> {
        self.nodes.get(&node.0)
    }

    /// Blocks of a record.
    pub(super) const fn record_blocks(&self) -> u64 {
        self.rules.record_bytes / BLOCK
    }

    // --- Changes ---

    /// Notes a change in the open group.
    pub(super) fn change(&mut self, cx: &mut Context, change: Change) {
        self.last = Tid(self.last.0 + 1);
        cx.changes(self.last);
        self.open.since.get_or_insert(cx.now);
        self.open.last = self.last;
        self.open.entries.push(Entry { tid: self.last, change, log: InLog::No });
    }

    /// Notes changed metadata.
    pub(super) fn touch_metadata(&mut self, cx: &Context, key: MetaKey) {
        self.open.since.get_or_insert(cx.now);
        self.open.metadata.insert(key);
    }

    pub(super) fn job(&mut self, steps: Vec<Step>, is_sync: bool) -> FsJob {
        self.next_job += 1;
        FsJob { id: JobId(self.next_job), runs_as: RunsAs::Thread(0), is_sync, steps }
    }

    // --- Groups ---

    /// Time at which the timer closes the open group.
    pub(super) fn timer(&self) -> Ns {
        let Some(since) = self.open.since else { return Ns::MAX };
        if self.closed.is_some() || self.syncing.is_some() {
            return Ns::MAX;
        }
        let period = self.rules.period.0.max(1);
        // The timer runs whether there is something to write or not.
        let rounds = since.since(self.cycle).0 / period + 1;
        Ns(self.cycle.0 + rounds * period)
    }

    /// Tell whether the open group is to be closed.
    fn is_due(&self, now: Ns) -> bool {
        let is_wanted =
            self.wants_next || self.is_open_asked || self.throttle.wants_group(self.dirty_bytes());
        !self.open.is_empty() && (is_wanted || now >= self.timer())
    }

    /// Bytes of data that are dirty or on their way.
    pub(super) fn dirty_bytes(&self) -> u64 {
        let closed = self.closed.as_ref().map_or(0, |group| group.bytes);
        self.open.bytes + closed + self.syncing.as_ref().map_or(0, |syncing| syncing.left)
    }

    /// Closes the open group if there is a reason, and begins to write a closed one.
    fn turn(&mut self, now: Ns) {
        if self.closed.is_none() && self.is_due(now) {
            (self.wants_next, self.is_open_asked) = (false, false);
            self.open.last = self.last;
            self.closed = Some(core::mem::take(&mut self.open));
        }
        if self.syncing.is_none()
            && let Some(group) = self.closed.take()
        {
            self.cycle = now;
            let left = group.bytes;
            let stage = Stage::Data;
            self.syncing = Some(Syncing { group, stage, job: None, since: now, left });
        }
    }

    /// The next job: of the intent log, or of a group.
    pub(super) fn next_job(&mut self, cx: &mut Context) -> Option<FsJob> {
        if let Some(job) = self.log_job() {
            return Some(job);
        }
        self.turn(cx.now);
        let syncing = self.syncing.as_ref().filter(|syncing| syncing.job.is_none())?;
        let (steps, is_sync) = match syncing.stage {
            Stage::Data => (self.data_steps(), false),
            Stage::Metadata => (self.write_metadata(cx), false),
            Stage::Label => (self.label_steps(), true),
        };
        let job = self.job(steps, is_sync);
        if let Some(syncing) = &mut self.syncing {
            syncing.job = Some(job.id);
        }
        Some(job)
    }

    /// Flushes and a new uberblock in each label.
    fn label_steps(&self) -> Vec<Step> {
        let flush = [Step::Flush(DeviceId::MAIN), Step::Wait];
        let slots = (LABEL_BYTES - RING_BYTES) / UBERBLOCK_BYTES;
        let slot = RING_BYTES + self.groups % slots * UBERBLOCK_BYTES;
        let labels = (0..LABELS).map(|label| {
            let from_end = (LABELS - label) * LABEL_BYTES;
            let begin = match label {
                0 | 1 => label * LABEL_BYTES,
                _ => self.geometry.device_bytes / LABEL_BYTES * LABEL_BYTES - from_end,
            };
            let first = iolab_model::Sector((begin + slot) / 512);
            let sectors = (UBERBLOCK_BYTES / 512) as u32;
            Step::WriteSectors(DeviceId::MAIN, first, sectors, WriteFlags::default())
        });
        let mut steps: Vec<Step> = Vec::new();
        if self.rules.flushes {
            steps.extend(flush.clone());
        }
        steps.extend(labels);
        steps.push(Step::Wait);
        if self.rules.flushes {
            steps.extend(flush);
        }
        steps
    }

    /// A job has ended.
    pub(super) fn end_job(&mut self, now: Ns, job: JobId) {
        if self.end_log_job(job) {
            return;
        }
        let Some(syncing) = self.syncing.as_mut().filter(|syncing| syncing.job == Some(job)) else {
            return;
        };
        syncing.job = None;
        match syncing.stage {
            Stage::Data => {
                self.throttle.measure(syncing.group.bytes, now.since(syncing.since));
                syncing.left = 0;
                syncing.stage = Stage::Metadata;
            }
            Stage::Metadata => syncing.stage = Stage::Label,
            Stage::Label => self.settle(),
        }
    }

    /// The group that was written is durable.
    fn settle(&mut self) {
        let Some(Syncing { group, .. }) = self.syncing.take() else { return };
        self.groups += 1;
        for entry in &group.entries {
            entry.change.apply(&mut self.image);
        }
        for (key, places) in group.written {
            if places.is_empty() {
                self.image_metadata.remove(&key);
            } else {
                self.image_metadata.insert(key, places);
            }
        }
        for (first, count) in group.freed {
            self.slabs.give(first, count);
        }
        self.synced = self.synced.max(group.last);
    }

    /// Blocks that are free now or will be.
    pub(super) fn free_blocks(&self) -> u64 {
        let groups = [Some(&self.open), self.closed.as_ref()];
        let syncing = self.syncing.as_ref().map(|syncing| &syncing.group);
        let groups = groups.into_iter().chain([syncing]).flatten();
        let waiting: u64 = groups.flat_map(|group| &group.freed).map(|(_, count)| count).sum();
        self.slabs.free() + waiting
    }
}
