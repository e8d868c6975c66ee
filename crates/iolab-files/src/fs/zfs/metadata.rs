//! Metadata: which blocks a transaction group writes beside its data, and where they lie.
//!
//! Indirect blocks of 16 KiB hold 128 pointers, blocks of dnodes 32 dnodes. All of them are
//! compressed: 4 KiB are written [assume]. There are two copies, three of what belongs to the pool.

use super::driver::Zfs;
use super::group::Group;
use crate::api::block::{BlockRun, FileRun};
use crate::api::context::Context;
use crate::api::file_system::{Step, WriteFlags};

/// Pointers of an indirect block: 16 KiB of 128 bytes.
const POINTERS: u64 = 128;
/// Dnodes of a block: 16 KiB of 512 bytes.
const DNODES: u32 = 32;
/// Entries of a leaf of a directory: 16 KiB, half full. [assume]
const LEAF_ENTRIES: u64 = 128;
/// Blocks of the pool that every group changes: space maps, their dnodes, history. Eight, with the
/// copies 24. [assume]
const POOL_BLOCKS: u32 = 8;

/// Name of a block of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MetaKey {
    /// Dnodes, by number of their block.
    Dnodes(u32),
    /// Block of pointers of a file: level above the data, and its number there.
    Indirect(u32, u8, u64),
    /// Leaf of a directory.
    Leaf(u32, u64),
    /// Block of the pool's own.
    Pool(u32),
}

impl MetaKey {
    /// The block with the dnode of a file.
    pub const fn dnode(number: u32) -> Self {
        Self::Dnodes(number / DNODES)
    }

    /// The leaf with an entry.
    pub fn leaf(directory: u32, name: &str, entries: u64) -> Self {
        // FNV-1a: names spread evenly, as by the hash of a ZAP.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::Leaf(directory, hash % entries.div_ceil(LEAF_ENTRIES).max(1))
    }

    /// Copies of it.
    const fn copies(self) -> usize {
        match self {
            Self::Pool(_) => 3,
            _ => 2,
        }
    }
}

impl Zfs {
    /// Levels of pointers above the records of a file.
    fn levels(records: u64) -> u8 {
        let (mut levels, mut blocks) = (0, records);
        while blocks > 1 {
            blocks = blocks.div_ceil(POINTERS);
            levels += 1;
        }
        levels
    }

    fn records_of(&self, number: u32) -> u64 {
        let size = self.nodes.get(&number).map_or(0, |node| node.state.size);
        size.div_ceil(self.rules.record_bytes)
    }

    /// Blocks of pointers on the way to a range, as far as they exist on the device.
    pub(super) fn look_for_pointers(&self, cx: &mut Context, run: FileRun) {
        let number = run.node.0;
        let per_record = self.record_blocks();
        for level in 1..=Self::levels(self.records_of(number)) {
            let share = per_record * POINTERS.pow(u32::from(level));
            for index in [run.first / share, (run.end() - 1) / share] {
                self.look_at(cx, MetaKey::Indirect(number, level, index));
            }
        }
    }

    /// Notes that a block of metadata is looked at, if it is on the device.
    pub(super) fn look_at(&self, cx: &mut Context, key: MetaKey) {
        if let Some(&place) = self.metadata.get(&key).and_then(|places| places.first()) {
            let run = BlockRun::new(place, 1);
            if cx.effects.reads.last() != Some(&run) {
                cx.reads(run);
            }
        }
    }

    /// Everything that a group has to write beside its data, lowest level first.
    fn changed_metadata(&self, group: &Group) -> Vec<MetaKey> {
        let mut keys = group.metadata.clone();
        for (&number, records) in &group.dirty {
            if !self.nodes.contains_key(&number) {
                continue;
            }
            keys.insert(MetaKey::dnode(number));
            for level in 1..=Self::levels(self.records_of(number)) {
                let share = POINTERS.pow(u32::from(level));
                let pointers = records.iter().map(|record| record / share);
                keys.extend(pointers.map(|index| MetaKey::Indirect(number, level, index)));
            }
        }
        keys.retain(|key| match key {
            MetaKey::Indirect(number, ..) | MetaKey::Leaf(number, _) => {
                self.nodes.contains_key(number)
            }
            MetaKey::Dnodes(_) | MetaKey::Pool(_) => true,
        });
        keys.extend((0..POOL_BLOCKS).map(MetaKey::Pool));
        let mut keys: Vec<_> = keys.into_iter().collect();
        let rank = |key: &MetaKey| match key {
            MetaKey::Indirect(_, level, _) => u32::from(*level),
            MetaKey::Leaf(..) => 1,
            MetaKey::Dnodes(_) => 100,
            MetaKey::Pool(_) => 101,
        };
        keys.sort_by_key(|key| (rank(key), *key));
        keys
    }

    /// Gives the metadata of the group that is being written new places; steps that write them.
    pub(super) fn write_metadata(&mut self, cx: &mut Context) -> Vec<Step> {
        let Some(mut syncing) = self.syncing.take() else { return Vec::new() };
        let mut steps = Vec::new();
        for key in self.changed_metadata(&syncing.group) {
            let mut places = Vec::new();
            for copy in 0..key.copies() {
                let Some(place) = self.slabs.take(1) else { break };
                let run = BlockRun::new(place, 1);
                if copy == 0 {
                    // The cache holds what was just written.
                    cx.dirties(run);
                    steps.push(Step::Dirtied(run));
                } else {
                    steps.push(Step::Write(run, WriteFlags::default()));
                }
                places.push(place);
            }
            let old = self.metadata.insert(key, places.clone()).unwrap_or_default();
            syncing.group.freed.extend(old.into_iter().map(|place| (place, 1)));
            syncing.group.written.push((key, places));
        }
        self.syncing = Some(syncing);
        steps.push(Step::Wait);
        steps
    }

    /// The metadata of a file that is gone.
    pub(super) fn forget_metadata(&mut self, number: u32) {
        let pointers =
            MetaKey::Indirect(number, 0, 0)..=MetaKey::Indirect(number, u8::MAX, u64::MAX);
        let leaves = MetaKey::Leaf(number, 0)..=MetaKey::Leaf(number, u64::MAX);
        for range in [pointers, leaves] {
            let keys: Vec<_> = self.metadata.range(range).map(|(&key, _)| key).collect();
            for key in keys {
                let places = self.metadata.remove(&key).unwrap_or_default();
                self.open.freed.extend(places.into_iter().map(|place| (place, 1)));
                self.open.written.push((key, Vec::new()));
            }
        }
    }
}
