//! The translation layer: which flash unit holds which logical unit, and the state of every block.
//!
//! Pure book-keeping, no time. One block per die is open; units are appended to it row by row,
//! from the host and from garbage collection alike. Two arrays of 32-bit numbers are the map and
//! its inverse; they are allocated zeroed, so that memory is taken only where something was
//! written. Left out: wear levelling (free blocks are used in the order in which they were
//! erased), bad blocks, writing the map itself to flash.

use std::collections::VecDeque;

use iolab_model::seed::Stream;

use super::geometry::Geometry;
use super::parameters::CollectionPolicy;

/// No block, no slot.
pub const NONE: u32 = u32::MAX;

/// Marks map entries that name a slot of the write cache instead of a flash unit.
const CACHED: u32 = 1 << 31;

/// Place of a logical unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Never written, or trimmed.
    Nowhere,
    /// In this flash unit.
    Flash(u32),
    /// In this slot of the write cache.
    Cache(u32),
}

/// State of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// Erased.
    Free,
    /// Being filled, or its last row is being programmed.
    Open,
    /// Full: may be collected.
    Closed,
    /// Being collected.
    Victim,
}

/// The space of one die.
#[derive(Debug)]
pub(super) struct DieSpace {
    /// Erased blocks, the next to use first.
    pub(super) free: VecDeque<u32>,
    /// The open block or `NONE`.
    pub(super) open: u32,
    /// Next row of the open block.
    pub(super) next_row: u32,
    /// The block that is being read for collection or `NONE`, and its next row.
    pub(super) scan: (u32, u32),
    /// Valid units read from victims, not yet written again.
    pub(super) gathered: Vec<u32>,
    /// Victims that have been read, but still hold gathered units.
    pub(super) draining: Vec<u32>,
    /// Blocks that are being erased.
    pub(super) erasing: u32,
}

/// Counts so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct FtlCounts {
    /// Units of the host given a place on flash.
    pub host_units: u64,
    /// Units moved by collection.
    pub moved_units: u64,
    /// Units of rows that were programmed with nothing in them.
    pub padding_units: u64,
    /// Rows read by collection.
    pub collect_rows: u64,
    /// Blocks (of all planes of a die) erased.
    pub erases: u64,
}

/// Map, inverse map, blocks.
#[derive(Debug)]
pub struct Ftl {
    pub(super) geometry: Geometry,
    pub(super) policy: CollectionPolicy,
    /// Logical unit to place: 0, flash unit + 1, or `CACHED` and a slot.
    map: Vec<u32>,
    /// Flash unit to logical unit + 1; 0 if the unit is not valid.
    pub(super) owner: Vec<u32>,
    /// Valid units per block.
    pub(super) valid: Vec<u32>,
    pub(super) state: Vec<BlockState>,
    pub(super) dies: Vec<DieSpace>,
    pub(super) random: Stream,
    /// Counts so far.
    pub counts: FtlCounts,
}

impl Ftl {
    /// An erased drive.
    pub fn new(geometry: Geometry, policy: CollectionPolicy, random: Stream) -> Self {
        let dies = (0..geometry.dies())
            .map(|die| DieSpace {
                free: (die * geometry.blocks..(die + 1) * geometry.blocks).collect(),
                open: NONE,
                next_row: 0,
                scan: (NONE, 0),
                gathered: Vec::with_capacity(2 * geometry.row_units() as usize),
                draining: Vec::new(),
                erasing: 0,
            })
            .collect();
        let blocks = (geometry.dies() * geometry.blocks) as usize;
        Self {
            geometry,
            policy,
            map: vec![0; geometry.logical_units as usize],
            owner: vec![0; geometry.physical_units() as usize],
            valid: vec![0; blocks],
            state: vec![BlockState::Free; blocks],
            dies,
            random,
            counts: FtlCounts::default(),
        }
    }

    /// Place of a logical unit.
    #[inline]
    pub fn place(&self, logical: u32) -> Place {
        match self.map[logical as usize] {
            0 => Place::Nowhere,
            entry if entry >= CACHED => Place::Cache(entry - CACHED),
            entry => Place::Flash(entry - 1),
        }
    }

    /// The logical unit is in a cache slot now; its copy on flash is void.
    pub fn set_cached(&mut self, logical: u32, slot: u32) {
        if let Place::Flash(unit) = self.place(logical) {
            self.drop_unit(unit);
        }
        self.map[logical as usize] = CACHED | slot;
    }

    /// The logical unit holds nothing any more; its copy on flash is void.
    pub fn forget(&mut self, logical: u32) {
        if let Place::Flash(unit) = self.place(logical) {
            self.drop_unit(unit);
        }
        self.map[logical as usize] = 0;
    }

    /// Make the content of `unit` the current one of the logical unit.
    pub fn settle(&mut self, logical: u32, unit: u32) {
        debug_assert_eq!(self.owner[unit as usize], logical + 1, "settled where it was put");
        self.map[logical as usize] = unit + 1;
    }

    /// Makes a flash unit void.
    pub fn drop_unit(&mut self, unit: u32) {
        debug_assert_ne!(self.owner[unit as usize], 0, "a void unit was dropped again");
        self.owner[unit as usize] = 0;
        self.valid[self.geometry.block_of(unit) as usize] -= 1;
    }

    /// Reserves the next row of the die's open block and returns its first unit.
    ///
    /// The caller has made sure that there is room, see [`Ftl::host_may_write`].
    pub fn start_row(&mut self, die: u32) -> u32 {
        let space = &mut self.dies[die as usize];
        if space.open == NONE || space.next_row == self.geometry.rows {
            let block = space.free.pop_front().expect("room was asked for before");
            debug_assert_eq!(self.valid[block as usize], 0, "an erased block is empty");
            self.state[block as usize] = BlockState::Open;
            space.open = block;
            space.next_row = 0;
        }
        space.next_row += 1;
        self.geometry.first_of_row(space.open, space.next_row - 1)
    }

    /// Puts a logical unit into a unit of a started row; the map is not changed, see `settle`.
    #[inline]
    pub fn put(&mut self, unit: u32, logical: u32) {
        debug_assert_eq!(self.owner[unit as usize], 0, "a unit is written once between erases");
        self.owner[unit as usize] = logical + 1;
        self.valid[self.geometry.block_of(unit) as usize] += 1;
    }

    /// The row that starts with this unit has been programmed.
    pub fn row_done(&mut self, first: u32) {
        let block = self.geometry.block_of(first);
        let row = first % self.geometry.block_units() / self.geometry.row_units();
        if row + 1 == self.geometry.rows {
            self.state[block as usize] = BlockState::Closed;
        }
    }

    /// Writes one row of logical units at once, as if no time passed.
    pub fn write_row(&mut self, die: u32, logical: impl IntoIterator<Item = u32>) {
        let first = self.start_row(die);
        let mut unit = first;
        for logical in logical {
            self.forget(logical);
            self.put(unit, logical);
            self.settle(logical, unit);
            unit += 1;
        }
        let used = unit - first;
        debug_assert!(used <= self.geometry.row_units(), "a row is a row");
        self.counts.host_units += u64::from(used);
        self.counts.padding_units += u64::from(self.geometry.row_units() - used);
        self.row_done(first);
    }

    /// Erased blocks of a die.
    pub fn free_blocks(&self, die: u32) -> u32 {
        self.dies[die as usize].free.len() as u32
    }

    /// Checks that map, inverse map, counts and block states agree; says what does not.
    pub fn check(&self) -> Result<(), String> {
        let mut valid = vec![0_u32; self.valid.len()];
        for (unit, &owner) in self.owner.iter().enumerate() {
            if owner == 0 {
                continue;
            }
            let block = self.geometry.block_of(unit as u32) as usize;
            valid[block] += 1;
            let is_settled = self.map[owner as usize - 1] == unit as u32 + 1;
            let is_under_way = self.state[block] == BlockState::Open
                && matches!(self.place(owner - 1), Place::Cache(_));
            if !is_settled && !is_under_way {
                return Err(format!("unit {unit} of {:?} maps elsewhere", self.state[block]));
            }
        }
        for (logical, &entry) in self.map.iter().enumerate() {
            let is_lost = entry != 0
                && entry < CACHED
                && self.owner[entry as usize - 1] != logical as u32 + 1;
            if is_lost {
                return Err(format!("logical unit {logical} maps to a unit of another"));
            }
        }
        if valid != self.valid {
            return Err("valid counts differ from the map".to_owned());
        }
        for (die, space) in self.dies.iter().enumerate() {
            let wrong = |&&block: &&u32| self.state[block as usize] != BlockState::Free;
            if let Some(block) = space.free.iter().find(wrong) {
                return Err(format!("block {block} on the free list of die {die} is not free"));
            }
        }
        Ok(())
    }
}
