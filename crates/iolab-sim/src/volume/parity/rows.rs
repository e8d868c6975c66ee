//! Rows with writes: what has gathered, what is being written, and who waits for it.

use std::collections::BTreeMap;

use super::plan::RowPlan;
use crate::api::bio::Status;
use crate::volume::members::Command;
use crate::volume::ranges::Ranges;
use crate::volume::slots::Slots;

/// Linux md handles a row in columns of one page: 4 KiB. [code]
pub(super) const COLUMN_SECTORS: u64 = 8;

/// State of an operation on a row. Reads end before the first write starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not locked: what has gathered may start.
    Idle,
    /// Old data or parity are on their way.
    Reading,
    /// Parity is computed.
    Computing,
    /// Data and parity are on their way.
    Writing,
}

/// Sectors of a row to be written, and the parents to be told.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub(super) touched: Vec<Ranges>,
    pub(super) columns: Ranges,
    pub(super) parents: Vec<u32>,
    pub(super) command: Option<Command>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.touched.iter_mut().for_each(Ranges::clear);
        self.columns.clear();
        self.parents.clear();
        self.command = None;
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.command.is_none()
    }

    pub(super) fn sectors(&self) -> u64 {
        self.touched.iter().map(Ranges::sectors).sum()
    }

    /// Adds sectors of a data unit; answers with the number of new sectors and new columns.
    pub(super) fn add(&mut self, index: u16, from: u64, to: u64) -> (u64, u64) {
        let new = self.touched[usize::from(index)].add(from, to);
        let columns = (from / COLUMN_SECTORS, to.div_ceil(COLUMN_SECTORS));
        (new, self.columns.add(columns.0, columns.1))
    }

    /// Takes on a bio's flags; the first bio's submitter stands for all.
    pub(super) fn join(&mut self, command: Command) {
        let flags = self.command.map_or(command.flags, |known| known.flags.with(command.flags));
        self.command = Some(Command { flags, ..self.command.unwrap_or(command) });
    }
}

/// A row with something to write.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) number: u64,
    pub(super) phase: Phase,
    pub(super) pending: u32,
    pub(super) gathered: Batch,
    pub(super) active: Batch,
    pub(super) plan: RowPlan,
    /// Time at which the gathered part stops waiting for more.
    pub(super) deadline: u64,
    pub(super) is_ready: bool,
    /// A member of which something could not be read.
    pub(super) unread: Option<u16>,
    /// The plan is the second one, which does without that member.
    pub(super) is_second_plan: bool,
    /// Something failed that redundancy did not make good.
    pub(super) status: Status,
    /// A crash now would leave data and parity that do not match.
    pub(super) is_at_risk: bool,
    /// Its place in the order of destaging.
    pub(super) cost: Option<u64>,
}

/// The rows that have something to write, by number.
#[derive(Debug)]
pub(super) struct Rows {
    slots: Slots<Row>,
    by_number: BTreeMap<u64, u32>,
    data: usize,
}

impl Rows {
    pub(super) fn new(data: u16) -> Self {
        Self { slots: Slots::default(), by_number: BTreeMap::new(), data: usize::from(data) }
    }

    /// The row of this number, fresh if it had nothing to write.
    pub(super) fn enter(&mut self, number: u64) -> u32 {
        if let Some(&slot) = self.by_number.get(&number) {
            return slot;
        }
        let data = self.data;
        let slot = self.slots.reuse(|| Row::new(data));
        self.slots[slot].number = number;
        self.by_number.insert(number, slot);
        slot
    }

    /// The row of this number, if it has something to write.
    pub(super) fn find(&self, number: u64) -> Option<&Row> {
        self.by_number.get(&number).map(|&slot| &self.slots[slot])
    }

    /// Slots of rows in a range of numbers, ascending.
    pub(super) fn within(&self, numbers: core::ops::Range<u64>) -> impl Iterator<Item = u32> + '_ {
        self.by_number.range(numbers).map(|(_, &slot)| slot)
    }

    /// The row has nothing to write any more.
    pub(super) fn leave(&mut self, slot: u32) {
        self.by_number.remove(&self.slots[slot].number);
        self.slots.remove(slot);
    }
}

impl core::ops::Index<u32> for Rows {
    type Output = Row;
    fn index(&self, slot: u32) -> &Row {
        &self.slots[slot]
    }
}

impl core::ops::IndexMut<u32> for Rows {
    fn index_mut(&mut self, slot: u32) -> &mut Row {
        &mut self.slots[slot]
    }
}

impl Row {
    fn new(data: usize) -> Self {
        let batch = Batch { touched: vec![Ranges::default(); data], ..Batch::default() };
        Self {
            number: 0,
            phase: Phase::Idle,
            pending: 0,
            gathered: batch.clone(),
            active: batch,
            plan: RowPlan::default(),
            deadline: 0,
            is_ready: false,
            unread: None,
            is_second_plan: false,
            status: Ok(()),
            is_at_risk: false,
            cost: None,
        }
    }

    /// Tell whether all that can gather has gathered.
    pub(super) fn is_full(&self, unit: u64) -> bool {
        self.gathered.touched.iter().all(|touched| touched.covers(0, unit))
    }
}
