//! Garbage collection: when, which block, and its next step.
//!
//! Collection of a die works row by row on one victim: read the valid units of a row, write what
//! was gathered as soon as it fills a row, erase the victim when nothing in it is valid. Rows of a
//! victim that have been read count as space already (they come back without further programs), so
//! that writes of the host and collection alternate finely instead of in whole blocks.

use super::ftl::{BlockState, Ftl, NONE};
use super::parameters::VictimChoice;

/// Next step of collection on a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing can be won.
    Nothing,
    /// Erase this block.
    Erase(u32),
    /// Write what was gathered.
    Program,
    /// Read a row of the victim.
    Read,
}

impl Ftl {
    /// Tell whether the host may start a row on this die: enough space is free, and enough of it
    /// really so for collection to finish what it has begun.
    pub fn host_may_write(&self, die: u32) -> bool {
        let space = &self.dies[die as usize];
        let row = u64::from(self.geometry.row_units());
        let block = u64::from(self.geometry.block_units());
        let rows_left = if space.open == NONE { 0 } else { self.geometry.rows - space.next_row };
        let real = space.free.len() as u64 * block + u64::from(rows_left) * row;
        let scanned = u64::from(space.scan.1) * row;
        let returning = (space.draining.len() as u64 + u64::from(space.erasing)) * block;
        let promised = real + scanned + returning;
        let start = u64::from(self.policy.start_blocks) * block;
        let hard = (u64::from(self.policy.hard_blocks) + 2) * block;
        promised >= start + row + space.gathered.len() as u64 && real >= hard + row
    }

    /// Next step of collection on a die where the host may not write.
    ///
    /// Chooses a victim if one is needed.
    pub fn next_step(&mut self, die: u32) -> Step {
        if let Some(block) = self.erasable(die) {
            return Step::Erase(block);
        }
        if self.has_gathered_row(die) {
            return Step::Program;
        }
        if self.dies[die as usize].scan.0 == NONE && !self.choose_victim(die) {
            let is_empty = self.dies[die as usize].gathered.is_empty();
            return if is_empty { Step::Nothing } else { Step::Program };
        }
        Step::Read
    }

    /// A victim in which nothing is valid any more.
    pub fn erasable(&self, die: u32) -> Option<u32> {
        let space = &self.dies[die as usize];
        space.draining.iter().copied().find(|&block| self.valid[block as usize] == 0)
    }

    /// Tell whether a victim is open and there is room for another row of it.
    pub fn can_read_on(&self, die: u32) -> bool {
        let space = &self.dies[die as usize];
        space.scan.0 != NONE && space.gathered.len() <= self.geometry.row_units() as usize
    }

    /// Tell whether a full row of units that are still valid has been gathered.
    pub fn has_gathered_row(&mut self, die: u32) -> bool {
        let row = self.geometry.row_units() as usize;
        let gathered = &mut self.dies[die as usize].gathered;
        if gathered.len() < row {
            return false;
        }
        gathered.retain(|&unit| self.owner[unit as usize] != 0);
        gathered.len() >= row
    }

    fn choose_victim(&mut self, die: u32) -> bool {
        let first = die * self.geometry.blocks;
        let blocks = first..first + self.geometry.blocks;
        let best = match self.policy.victim {
            VictimChoice::Greedy => blocks
                .filter(|&block| self.state[block as usize] == BlockState::Closed)
                .min_by_key(|&block| self.valid[block as usize]),
            VictimChoice::Choices(choices) => self.best_of(first, choices),
        };
        // A block in which everything is valid yields no space.
        let Some(block) =
            best.filter(|&block| self.valid[block as usize] < self.geometry.block_units())
        else {
            return false;
        };
        self.state[block as usize] = BlockState::Victim;
        self.dies[die as usize].scan = (block, 0);
        true
    }

    /// The closed block with the fewest valid units among some drawn at random (with replacement).
    fn best_of(&mut self, first: u32, choices: u32) -> Option<u32> {
        let mut best: Option<u32> = None;
        let mut seen = 0;
        // Nearly all blocks are closed when collection runs; the bound is for tiny drives.
        for _ in 0..choices.saturating_mul(8).max(8 * self.geometry.blocks) {
            let block = first + self.random.below(u64::from(self.geometry.blocks)) as u32;
            if self.state[block as usize] != BlockState::Closed {
                continue;
            }
            if best.is_none_or(|held| self.valid[block as usize] < self.valid[held as usize]) {
                best = Some(block);
            }
            seen += 1;
            let is_useful =
                best.is_some_and(|held| self.valid[held as usize] < self.geometry.block_units());
            if seen >= choices && is_useful {
                break;
            }
        }
        best
    }

    /// Reads the next row of the victim that holds anything and gathers its valid units; returns
    /// its first unit and how many there were, or nothing if the rest of the victim is void.
    pub fn gather(&mut self, die: u32) -> Option<(u32, u32)> {
        let row_units = self.geometry.row_units();
        let space = &mut self.dies[die as usize];
        let (block, row) = space.scan;
        debug_assert_ne!(block, NONE, "a victim was chosen before");
        for row in row..self.geometry.rows {
            let first = self.geometry.first_of_row(block, row);
            let before = space.gathered.len();
            let units = first..first + row_units;
            space.gathered.extend(units.filter(|&unit| self.owner[unit as usize] != 0));
            let count = (space.gathered.len() - before) as u32;
            if count > 0 {
                space.scan.1 = row + 1;
                if space.scan.1 == self.geometry.rows {
                    space.scan = (NONE, 0);
                    space.draining.push(block);
                }
                self.counts.collect_rows += 1;
                return Some((first, count));
            }
        }
        space.scan = (NONE, 0);
        space.draining.push(block);
        None
    }

    /// Moves up to a row of gathered units into a new row; returns its first unit and the count,
    /// which is 0 if all of them have become void meanwhile (then no row was started).
    pub fn rewrite_gathered(&mut self, die: u32) -> (u32, u32) {
        let index = die as usize;
        let mut gathered = std::mem::take(&mut self.dies[index].gathered);
        gathered.retain(|&unit| self.owner[unit as usize] != 0);
        let count = gathered.len().min(self.geometry.row_units() as usize);
        if count == 0 {
            self.dies[index].gathered = gathered;
            return (0, 0);
        }
        let first = self.start_row(die);
        for (target, source) in (first..).zip(gathered.drain(..count)) {
            let logical = self.owner[source as usize] - 1;
            self.drop_unit(source);
            self.put(target, logical);
            self.settle(logical, target);
        }
        self.dies[index].gathered = gathered;
        self.counts.moved_units += count as u64;
        self.counts.padding_units += u64::from(self.geometry.row_units()) - count as u64;
        (first, count as u32)
    }

    /// The erase of an [`Ftl::erasable`] block begins.
    pub fn begin_erase(&mut self, block: u32) {
        let die = self.geometry.die_of_block(block) as usize;
        let units = self.geometry.block_units();
        let space = &mut self.dies[die];
        space.draining.retain(|&other| other != block);
        // Gathered units that became void must not be taken for those written after the erase.
        space.gathered.retain(|&unit| unit / units != block);
        space.erasing += 1;
    }

    /// The block is erased.
    pub fn end_erase(&mut self, block: u32) {
        let space = &mut self.dies[self.geometry.die_of_block(block) as usize];
        space.erasing -= 1;
        space.free.push_back(block);
        self.state[block as usize] = BlockState::Free;
        self.counts.erases += 1;
    }

    /// Collects on a die, as if no time passed, until the host may write there; false if nothing
    /// more can be won.
    pub fn make_room(&mut self, die: u32) -> bool {
        while !self.host_may_write(die) {
            match self.next_step(die) {
                Step::Nothing => return false,
                Step::Erase(block) => {
                    self.begin_erase(block);
                    self.end_erase(block);
                }
                Step::Read => {
                    self.gather(die);
                }
                Step::Program => {
                    let (first, count) = self.rewrite_gathered(die);
                    if count > 0 {
                        self.row_done(first);
                    }
                }
            }
        }
        true
    }

    /// Writes units `0..count` in order, as if no time passed.
    pub fn fill(&mut self, count: u32) {
        let row = self.geometry.row_units();
        for (index, start) in (0..count).step_by(row as usize).enumerate() {
            let die = self.roomy_die(index as u32);
            self.write_row(die, start..(start + row).min(count));
        }
    }

    /// Writes `count` units drawn at random from the whole capacity, as if no time passed.
    pub fn overwrite(&mut self, count: u64) {
        let row = self.geometry.row_units();
        let mut units = vec![0; row as usize];
        let mut die = 0;
        let mut left = count;
        while left > 0 {
            let part = left.min(u64::from(row)) as usize;
            for unit in &mut units[..part] {
                *unit = self.random.below(u64::from(self.geometry.logical_units)) as u32;
            }
            die = self.roomy_die(die);
            self.write_row(die, units[..part].iter().copied());
            die += 1;
            left -= part as u64;
        }
    }

    /// The first die from `start` on (round robin) that takes a row.
    fn roomy_die(&mut self, start: u32) -> u32 {
        let dies = self.geometry.dies();
        (start..start + dies)
            .map(|die| die % dies)
            .find(|&die| self.make_room(die))
            .expect("the geometry was checked: some die has room")
    }
}
