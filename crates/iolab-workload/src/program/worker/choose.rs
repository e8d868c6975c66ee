//! Choice of the object of a step: files, keys, places.

use super::super::choice::{FileBy, KeyBy, WhenNone};
use super::super::code::{Chosen, KeyFrom};
use super::super::draw;
use super::super::pick::Pick;
use super::super::place::Cursor;
use super::super::stage::{FileId, Purpose, Wanted};
use super::{Last, ProgramWorker};
use crate::group::GroupState;

/// A file that was chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) id: FileId,
    /// True if it was taken for use, and must be given back.
    pub(super) is_held: bool,
}

impl<G: GroupState> ProgramWorker<'_, G> {
    /// Chooses a file, or says what to do without one.
    pub(super) fn choose(
        &mut self,
        node: usize,
        chosen: &Chosen,
        purpose: Purpose,
        is_directory: bool,
    ) -> Result<Held, WhenNone> {
        let named = match chosen.choice.by {
            FileBy::Slot => self.slots[chosen.slot].last,
            FileBy::Same => self.last[chosen.step].file,
            FileBy::Local => {
                let id = self.local_file(chosen.local).ok_or(chosen.choice.when_none)?;
                return self.take_local(chosen, id, purpose, is_directory);
            }
            _ => None,
        };
        let (set, wanted) = match (chosen.choice.by, named) {
            (FileBy::Slot, None) if chosen.choice.set.is_some() => (chosen.set, Wanted::Next),
            (FileBy::Slot | FileBy::Same, None) => return Err(chosen.choice.when_none),
            (_, Some(id)) => (id.set as usize, Wanted::This(id.number)),
            _ => (chosen.set, self.wanted(node, chosen, is_directory)),
        };
        let found = self.stage.sets[set].choose(wanted, purpose, is_directory, &mut self.random);
        match found {
            Ok(number) => {
                let id = FileId { set: set as u32, number };
                Ok(Held { id, is_held: purpose == Purpose::Use })
            }
            // Another worker holds one: it will be there again.
            Err(true) if named.is_none() => Err(WhenNone::Wait),
            // The slot's file is gone, or in use: there would be others.
            Err(_) if named.is_some() && chosen.choice.set.is_some() => Err(WhenNone::Skip),
            Err(_) => Err(chosen.choice.when_none),
        }
    }

    /// The variable's file is held by the composite; who removes it must be the only one.
    fn take_local(
        &mut self,
        chosen: &Chosen,
        id: FileId,
        purpose: Purpose,
        is_directory: bool,
    ) -> Result<Held, WhenNone> {
        let set = &self.stage.sets[id.set as usize];
        if purpose == Purpose::Remove {
            set.release(id.number, is_directory);
            let wanted = Wanted::This(id.number);
            let found = set.choose(wanted, purpose, is_directory, &mut self.random);
            if found.is_err() {
                return Err(chosen.choice.when_none);
            }
        }
        Ok(Held { id, is_held: false })
    }

    fn wanted(&mut self, node: usize, chosen: &Chosen, is_directory: bool) -> Wanted {
        let set = &self.stage.sets[chosen.set];
        let count = set.count(is_directory);
        // Its own order of files is counted beside the places of the files.
        let mut turn = || {
            let nobody = FileId { set: u32::MAX, number: 0 };
            let counter = self.picked.counts.entry((node, nobody)).or_insert(0);
            *counter += 1;
            *counter - 1
        };
        match chosen.choice.by {
            FileBy::Next | FileBy::NextAbsent => Wanted::Next,
            FileBy::Own => {
                let own = (count.saturating_sub(self.index)).div_ceil(self.workers).max(1);
                let step = (turn() % u64::from(own)) as u32;
                Wanted::From(self.index % count.max(1) + step * self.workers, self.workers)
            }
            FileBy::Pick => {
                let turn = turn();
                let pick = chosen.choice.pick.as_ref().unwrap_or(&Pick::Uniform);
                let n = u64::from(count).max(1);
                Wanted::From(pick.next((n, n), turn, &mut self.random, self.key) as u32, 1)
            }
            _ => Wanted::Any,
        }
    }

    /// Chooses the file of a variable.
    pub(super) fn choose_local(&mut self, chosen: &Chosen) -> Result<FileId, WhenNone> {
        let is_new = chosen.choice.by.is_absent();
        let purpose = if is_new { Purpose::Make } else { Purpose::Use };
        let node = self.frames.last().map_or(0, |frame| frame.node);
        self.choose(node, chosen, purpose, false).map(|held| held.id)
    }

    /// Gives back what a variable held.
    pub(super) fn give_back(&mut self, chosen: &Chosen, id: FileId) {
        let set = &self.stage.sets[id.set as usize];
        match chosen.choice.by {
            // It was never made.
            FileBy::Absent | FileBy::NextAbsent => set.settle(id.number, false, false),
            FileBy::Local => {}
            _ => set.release(id.number, false),
        }
    }

    /// Chooses a key: its space and its number.
    pub(super) fn choose_key(&mut self, from: &KeyFrom) -> (usize, u64) {
        match from.choice.by {
            KeyBy::New => (from.space, self.stage.spaces[from.space].fresh()),
            KeyBy::Same => self.last[from.step].key.unwrap_or((from.space, 0)),
            KeyBy::Local => self.local(from.local).key.unwrap_or((from.space, 0)),
            KeyBy::Pick => {
                let space = &self.stage.spaces[from.space];
                let (known, before) = (space.known().max(1), space.space.records);
                let pick = from.choice.pick.as_ref().unwrap_or(&Pick::Uniform);
                let nobody = FileId { set: u32::MAX - 1, number: from.space as u32 };
                let counter = self.picked.counts.entry((0, nobody)).or_insert(0);
                *counter += 1;
                let number = pick.next((known, before), *counter - 1, &mut self.random, self.key);
                (from.space, number)
            }
        }
    }

    /// Begin of a transfer of so many bytes; `None`: the file has no such place.
    pub(super) fn place(&mut self, node: usize, file: FileId, is_write: bool) -> Option<u64> {
        let code = std::sync::Arc::clone(&self.code);
        let flat = &code.flats[node];
        let Some(at) = &flat.node.at else { return Some(0) };
        if let Some(step) = flat.place_of {
            return self.last[step].at.checked_add_signed(at.plus_bytes);
        }
        let set = &self.stage.sets[file.set as usize];
        let size = set.size(file.number);
        let size = if is_write { size.max(set.nominal[file.number as usize]) } else { size };
        let unit = at.unit_bytes.map_or(flat.unit, |unit| unit.0).max(1);
        let from = at.from_bytes.0 + at.worker_step_bytes.0 * u64::from(self.index);
        let within = at.within_bytes.map_or(size.saturating_sub(from), |within| within.0);
        // The last place must leave room for the largest transfer.
        let room = within.min(size.saturating_sub(from));
        let places = room.checked_sub(flat.unit).map_or(0, |rest| rest / unit + 1);
        if places == 0 {
            return None;
        }
        let pick = at.pick.as_ref().unwrap_or(&Pick::Sequential);
        let count = match at.cursor {
            Cursor::Shared => self.shared_count(node),
            Cursor::Worker => {
                let counter = self.picked.counts.entry((node, file)).or_insert(0);
                *counter += 1;
                *counter - 1
            }
        };
        let mut key = draw::scatter(u64::from(file.number), u64::MAX, self.key);
        if *pick == Pick::Permutation && at.cursor == Cursor::Worker {
            key = key.wrapping_add(u64::from(self.index) << 40);
        }
        let place = pick.next((places, places), count, &mut self.random, key);
        Some(from + place * unit)
    }

    /// Remembers what a step works on, for steps that refer to it.
    pub(super) fn remember(&mut self, node: usize, last: Last) {
        self.last[node] = last;
    }
}
